"""A build makes machine code that needs no Numba, and where it cannot, the package requires Numba."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import posteriori

pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
pytest.importorskip("numba", reason="Numba, which compiles the kernels, is not installed")

_ROOT = Path(__file__).parents[2]
_LINE = "bayes.normalise(float64[:, ::1])\n"
_CONFIG = {"needs": ["numpy"], "compiler": ["ziglang"], "instead": "numba>=0.61"}
_NORMALISE = """
import sys
sys.modules["numba"] = None  # as if it were not installed
import numpy as np
from posteriori.kernels.loops.bayes import normalise
x = np.array([[1.0, 1.0], [0.0, -np.inf]])[:, ::-1]
normalise(x)
print(x.tolist())
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
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "_machine_code*"))
    (package / "kernels" / "machine" / "signatures.txt").write_text(_LINE)
    return tmp_path


def build(checkout, version="standard"):
    """Return what the hook adds to a wheel, and add the machine code to the package as a wheel would have it."""
    spec = importlib.util.spec_from_file_location("hatch_build", _ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    hook = module.MachineCode(str(checkout), _CONFIG, None, None, str(checkout), "wheel")
    added = {"force_include": {}, "pure_python": True, "dependencies": []}
    hook.initialize(version, added)
    for file, target in added["force_include"].items():
        shutil.copy(file, checkout / "src" / target)
    hook.finalize(version, added, "")
    assert not any(Path(file).exists() for file in added["force_include"])
    return added


def printed(checkout, **settings):
    """Return what a process prints that runs a kernel of the package without Numba."""
    paths = [str(checkout / "src"), sysconfig.get_path("purelib")]
    environment = {name: value for name, value in os.environ.items() if name != "POSTERIORI_KERNELS"}
    environment |= {"PYTHONPATH": os.pathsep.join(paths)} | settings
    command = [sys.executable, "-P", "-c", _NORMALISE]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(
    shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists(),
    reason="there is no compiler of C, or no headers of Python",
)
def test_a_build_compiles_despite_hidden_sources(checkout, tmp_path, monkeypatch):
    hidden = tmp_path / "isolated"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(_ISOLATED.format(hidden=[str(checkout / "src")]))
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    added = build(checkout)
    assert added["dependencies"] == []
    assert not added["pure_python"]
    assert added["tag"].startswith("cp311-abi3-")
    assert [Path(target).name for target in added["force_include"].values()] == ["_machine_code.abi3.so"]
    assert printed(checkout) == "[[0.5, 0.5], [0.0, 1.0]]"
    assert printed(checkout, POSTERIORI_KERNELS="python") == "[[0.5, 0.5], [0.0, 1.0]]"


@pytest.mark.parametrize("version", ["standard", "editable"])
def test_a_package_without_machine_code_requires_numba(checkout, version, monkeypatch):
    monkeypatch.setenv("CC", "false")  # a compiler that fails without a word
    added = build(checkout, version)
    why = [] if version == "editable" else ["posteriori/kernels/machine/no_machine_code.txt"]
    assert list(added["force_include"].values()) == why
    assert added["pure_python"]
    assert added["dependencies"] == ["numba>=0.61"]
    assert all((checkout / "src" / file).read_text() == "the compiler of C fails: without a word" for file in why)
    assert printed(checkout) == "[[0.5, 0.5], [0.0, 1.0]]"
