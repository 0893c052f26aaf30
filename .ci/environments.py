"""Run quick tests in fresh environments: `environments.py pythons [VERSION ...]` or `environments.py lowest`.

`pythons`: every supported version of Python that the machine has, or only those named, with the newest dependencies.
`lowest`: the lowest supported version of Python that the machine has, with the lowest version of each dependency that
pyproject.toml promises, and of Dask, DuckDB and Spark (whose tests are skipped without Java).

The environments stay in `.environments/`, each with its own cache of compiled kernels. A second run is faster.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
# What the quick tests import beside the dependencies of the library, and what the tests of engines do.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "networkx", "pandas", "pyarrow", "matplotlib")
ENGINES = ("dask", "duckdb", "sqlglot", "pyspark")
QUICK = (
    "classifiers/test_naive_bayes.py",
    "classifiers/test_naive_bayes_numbers.py",
    "classifiers/test_gaussian_discriminant.py",
    "classifiers/test_gaussian_forms.py",
    "classifiers/test_gaussian_missing_cells.py",
    "classifiers/test_undetermined_covariances.py",
    "densities/test_densities.py",
    "networks/test_dag.py",
    "persistence",
    "statistics",
    "tables/test_tables.py",
    "tables/test_codes.py",
)
QUICK_ENGINES = ("sources/test_dask.py", "sources/test_database.py", "sources/test_spark.py")


def find_python(version: str) -> str | None:
    """Return an interpreter of a version that starts and can make environments, from PATH or from pyenv, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python{version}")))]
    for python in filter(None, found):
        if subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def lowest_requirements() -> list[str]:
    """Return the lowest promised version of each dependency, as `numpy==2.1.*`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    extras = project["optional-dependencies"]
    of_engines = [*extras["dask"], *extras["spark"], *extras["sql"]]
    instead = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"][
        "instead"
    ]  # of an editable install
    promised = [*project["dependencies"], instead, *extras["plot"], *of_engines, *extras["test"]]
    lowest = dict(re.findall(r"^([\w-]+(?:\[[\w,]+\])?)>=([\d.]+)$", "\n".join(promised), re.MULTILINE))
    names = {name: re.split(r"\[", name)[0] for name in lowest}
    wanted = {re.split(r"[>=]", one)[0] for one in project["dependencies"]} | {*TOOLS, *ENGINES}
    without_bound = sorted(wanted - set(names.values()))
    if without_bound:
        raise ValueError(f"pyproject.toml has no lowest version of {', '.join(without_bound)}; write name>=version")
    pinned = [f"{name}=={version}.*" for name, version in lowest.items() if names[name] in wanted]
    return [*pinned, "setuptools"]  # Spark 3.5 imports its distutils


def run(name: str, python: str, requirements: list[str], tests: tuple[str, ...] = QUICK) -> bool:
    """Run tests in an environment, made if it does not exist, and return whether they pass."""
    folder = ROOT / ".environments" / name
    inside = str(folder / "bin" / "python")
    print(f"+ {name}: {python}", flush=True)
    commands = [
        [inside, "-m", "pip", "install", "--quiet", "--editable", str(ROOT), *requirements],
        [inside, "-m", "pip", "check"],
        [str(folder / "bin" / "posteriori"), "--version"],
        [inside, "-m", "pytest", "-q", "-m", "not prose", *(f"tests/{part}" for part in tests)],
    ]
    if not folder.exists():
        commands.insert(0, [python, "-m", "venv", str(folder)])
    # Each environment shows that kernels compile with its versions. PYTHONPATH would hide the install.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    environment.pop("PYTHONPATH", None)
    return all(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0 for command in commands)


def main() -> int:
    """Run what the arguments ask for and return 1 if a run failed."""
    parser = argparse.ArgumentParser(description="Run quick tests in fresh environments.")
    parser.add_argument("what", choices=("pythons", "lowest"))
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="only these versions of Python, such as 3.12")
    arguments = parser.parse_args()
    pythons = {version: find_python(version) for version in arguments.versions or VERSIONS}
    available = {version: python for version, python in pythons.items() if python}
    if not available:
        print("no supported Python is on PATH or in pyenv; install one of", *pythons)
        return 1
    if arguments.what == "lowest":
        first = next(iter(available))
        name, tests = f"lowest-{first}", (*QUICK, *QUICK_ENGINES)
        passed = {name: run(name, available[first], lowest_requirements(), tests)}
    else:
        passed = {version: run(version, python, list(TOOLS)) for version, python in available.items()}
    for name, passes in passed.items():
        print(f"{name}: {'passes' if passes else 'FAILS'}")
    for version in pythons.keys() - available.keys() if arguments.what == "pythons" else ():
        print(f"{version}: skipped, because python{version} is neither on PATH nor in pyenv")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
