"""Check an installed wheel: `installed.py FOLDER`, the folder of the wheel.

It is installed in a fresh environment, which has no Numba. Its commands run there, then the quick tests of what its
machine code does; those of a checkout run on what Numba compiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = ("kernels", "densities", "statistics", "networks")
# What these tests and `tests/conftest.py` import beside the dependencies of the library.
_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "networkx", "pandas", "pyarrow", "matplotlib", "sqlglot")
_WITHOUT = """
import importlib.util, posteriori.datasets
from posteriori.kernels.machine.compiling import machine_code
posteriori.datasets.load_penguins().write_csv("penguins.csv")
assert machine_code(), "the wheel has no machine code"
assert not importlib.util.find_spec("numba"), "Numba is installed"
"""


def main() -> int:
    """Run all of it, and return 1 if something fails."""
    (wheel,) = Path(sys.argv[1]).resolve().glob("*.whl")
    environment = _ROOT / "build" / "installed"
    venv.create(environment, clear=True, with_pip=True)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    python, posteriori = str(scripts / "python"), str(scripts / "posteriori")
    tests = [str(_ROOT / "tests" / folder) for folder in _FOLDERS]
    works = [
        [python, "-m", "pip", "install", "--quiet", str(wheel)],
        [python, "-m", "pip", "check"],
        [python, "-c", _WITHOUT],
        [posteriori, "fit", "penguins.csv", "--target", "species", "--output", "penguins.posteriori"],
        [posteriori, "predict", "penguins.posteriori", "penguins.csv", "--output", "predicted.csv"],
        [python, "-m", "pip", "install", "--quiet", *_TOOLS],
        [python, "-P", "-m", "pytest", "-q", f"--rootdir={_ROOT}", "-c", str(_ROOT / "pyproject.toml"), *tests],
    ]
    settings = os.environ | {"POSTERIORI_TEST_INSTALLED": "1", "POSTERIORI_KERNELS": "package"}
    for words in works:
        if subprocess.run(words, cwd=environment, env=settings, check=False).returncode:
            print("failed:", *words[:4], file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
