"""A build compiles the kernels whatever the environment has, and a package that could not says why."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numba
import pytest

import posteriori
from posteriori.kernels.machine.machine_code import baseline

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
pytestmark = pytest.mark.skipif(baseline() is None, reason="no baseline is known of this kind of machine")

_ROOT = Path(__file__).parents[2]
_LINE = "bayes.normalise(float64[:, ::1])\n"
_NORMALISE = """
import warnings
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", UserWarning)
    from posteriori.kernels.loops.bayes import normalise
    normalise.compiled(np.zeros((1, 2)))
    normalise.compiled(np.zeros((1, 2), order="F"))
print([str(w.message) for w in caught])
"""
# As pip isolates a build: what the environment has on its path is taken off it, and PYTHONPATH with it.
_ISOLATED = """
import sys
sys.path = [path for path in sys.path if path not in {hidden!r}]
"""


@pytest.fixture
def checkout(tmp_path):
    """A checkout of which one kernel is listed."""
    source = Path(posteriori.__file__).parent
    package = tmp_path / "src" / "posteriori"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "compiled"))
    (package / "kernels" / "machine" / "signatures.txt").write_text(_LINE)
    return tmp_path


def build(checkout):
    """Return what the hook adds to a wheel, and the package with its machine code."""
    spec = importlib.util.spec_from_file_location("hatch_build", _ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hook = module.MachineCode(str(checkout), {"needs": []}, None, None, str(checkout), "wheel")
    added = {"force_include": {}, "pure_python": True, "dependencies": []}
    hook.initialize("standard", added)
    ((folder, target),) = added["force_include"].items()
    shutil.copytree(folder, checkout / "src" / target)
    hook.finalize("standard", added, "")
    assert not Path(folder).exists()
    return added, checkout / "src" / target


def said_by(checkout, cache):
    """Return the warnings of a process that runs a kernel of the package."""
    paths = [str(checkout / "src"), sysconfig.get_path("purelib")]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _NORMALISE], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_build_compiles_despite_hidden_sources(checkout, tmp_path, monkeypatch):
    hidden = tmp_path / "isolated"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(_ISOLATED.format(hidden=[str(checkout / "src")]))
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    for name, value in [("DISABLE_JIT", "1"), ("CACHE_DIR", str(tmp_path / "cache"))]:
        monkeypatch.setenv(f"NUMBA_{name}", value)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    added, compiled = build(checkout)
    assert not added["pure_python"]
    assert len(list(compiled.glob("*.code"))) == 1
    assert "failed" not in json.loads((compiled / "made_with.json").read_text())


def test_a_wheel_requires_the_numba_that_compiled_it(checkout):
    major, minor = numba.__version__.split(".")[:2]
    assert build(checkout)[0]["dependencies"] == [f"numba=={major}.{minor}.*"]


def test_a_package_without_compiled_kernels_states_why_once(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (checkout / "src" / "posteriori" / "kernels" / "machine" / "signatures.txt").write_text("bayes.spam(float64)\n")
    added, compiled = build(checkout)
    assert added["pure_python"]
    assert added["dependencies"] == []  # pure Python runs with any Numba
    assert [file.name for file in compiled.iterdir()] == ["made_with.json"]
    said = said_by(checkout, tmp_path / "other")
    assert said.count("was installed without machine code, because compiling it failed: AttributeError") == 1
    assert "'spam'" in said
    assert "kernels are compiled on first use instead" in said
