"""The environment of the targets is whole and current: an installation that failed, or that is too old, is repeated."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Notes its words; makes an environment of itself; ends as the file `code` says when packages are installed.
_PYTHON = """#!/bin/sh
echo "$2" >> log
case "$2" in
  venv) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  pip) read code < code; exit "$code" ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Return a function that runs `make test` in a project and returns its exit code and the modules that ran."""
    program = shutil.which("make") or pytest.skip("make is not installed")
    shutil.copy(ROOT / "Makefile", tmp_path)
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(_PYTHON)
    python.chmod(0o755)
    environment = {"PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}

    def run(installs):
        (tmp_path / "log").write_text("")
        (tmp_path / "code").write_text("0\n" if installs else "1\n")
        done = subprocess.run([program, "test"], cwd=tmp_path, env=environment, capture_output=True, check=False)
        return done.returncode, (tmp_path / "log").read_text().split()

    return run


def test_an_environment_that_is_not_whole_is_installed_again(make, tmp_path):
    requirements = tmp_path / "pyproject.toml"
    requirements.write_text("")
    code, ran = make(installs=False)
    assert code != 0
    assert ran == ["venv", "pip"]
    assert make(installs=True) == (0, ["venv", "pip", "pytest"])
    assert make(installs=True) == (0, ["pytest"])
    later = (tmp_path / ".venv" / "complete").stat().st_mtime + 1
    os.utime(requirements, (later, later))
    assert make(installs=True) == (0, ["venv", "pip", "pytest"])
