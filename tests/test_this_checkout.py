"""Tests test the sources beside them, and refuse to test another copy of the package unawares."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import posteriori
from tests.this_checkout import why_not_tested

ROOT = Path(__file__).parents[1]


@pytest.fixture
def other_copy(tmp_path):
    package = tmp_path / "installed" / "posteriori"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('the other copy is imported')\n")
    return package


def collect(*, allowed, package):
    """Collect one file of tests in a process that finds another copy of the package first."""
    environment = os.environ | {"PYTHONPATH": str(package.parent), "POSTERIORI_TEST_INSTALLED": allowed}
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--collect-only"]
    command.append("tests/test_paths.py")
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_another_copy_is_refused_before_it_is_imported(other_copy):
    done = collect(package=other_copy, allowed="")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"these tests would test the copy of posteriori in {other_copy.resolve()} instead of this checkout; run "
        '.venv/bin/python -m pip install --editable ".[test]", or set POSTERIORI_TEST_INSTALLED=1 to test that copy\n'
    )


def test_another_copy_is_tested_if_a_variable_allows_it(other_copy):
    done = collect(package=other_copy, allowed="1")
    assert "the other copy is imported" in done.stdout + done.stderr


def test_a_checkout_is_known_through_a_link(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "posteriori").symlink_to(Path(posteriori.__file__).parent)
    assert why_not_tested(tmp_path) == ""


def test_a_package_that_is_absent_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert why_not_tested().startswith("posteriori is not installed; run ")
