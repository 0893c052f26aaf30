"""Documents, docstrings and comments name files of the project that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "docs", "experiments", "benchmarks", "examples", "fuzz", "tests")
PAGES = ("README.md", "CONTRIBUTING.md", "Makefile", ".ci/run")


def texts():
    """Return the files in which paths are looked for."""
    files = [ROOT / page for page in PAGES]
    for folder in FOLDERS:
        files += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in {".py", ".md"}]
    return [path for path in files if path != Path(__file__)]


def named(text, folder):
    """Return the paths of Python files below a folder of the project that a text names."""
    return set(re.findall(rf"(?<![\w/.]){folder}/[\w/]+\.py\b", text))


@pytest.mark.parametrize("folder", ["tests", "docs", "experiments", "benchmarks", "examples", "fuzz"])
def test_every_file_that_is_named_exists(folder):
    absent = [
        f"{path.relative_to(ROOT)} names {name}"
        for path in texts()
        for name in sorted(named(path.read_text(encoding="utf-8"), folder))
        if not (ROOT / name).exists()
    ]
    assert absent == []


def test_paths_are_found_in_text_but_not_in_other_projects():
    text = "Laws (tests/test_absent.py), `tests/cli/test_cli.py`; not sklearn/tests/test_other.py"
    assert named(text, "tests") == {"tests/test_absent.py", "tests/cli/test_cli.py"}
