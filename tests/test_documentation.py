"""What the documents say is true."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import posteriori as po

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(po.__path__, "posteriori.") if "__main__" not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0


def public_objects():
    for name in po.__all__:
        thing = getattr(po, name)
        if inspect.ismodule(thing):
            yield from ((f"{name}.{inner}", getattr(thing, inner)) for inner in thing.__all__)
        else:
            yield name, thing


@pytest.mark.parametrize(("name", "thing"), list(public_objects()))
def test_every_parameter_of_what_is_public_is_described(name, thing):
    page = inspect.getdoc(thing)
    assert page, f"{name} has no docstring"
    if inspect.isclass(thing) and not hasattr(thing, "fit"):
        return  # a result: its attributes are described
    described = set(re.findall(r"^([\w, *]+?) :", page, re.MULTILINE))
    described = {word.strip(" *") for group in described for word in group.split(",")}
    missing = set(inspect.signature(thing).parameters) - described - {"self"}
    assert not missing, f"{name} does not describe {missing}"


@pytest.mark.parametrize("name", ["fit", "partial_fit", "predict", "predict_proba", "sample", "explain"])
def test_every_method_is_described(name):
    assert inspect.getdoc(getattr(po.NaiveBayes, name))


def run_the_python_of_the_readme():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {}
    exec("\n".join(blocks), names)
    return names


def test_the_python_of_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = run_the_python_of_the_readme()["net"]
    assert "posterior" in capsys.readouterr().out
    assert round(net.probability({"rain": "yes"}, given={"wet": "yes"}), 2) == 0.71
    assert round(net.probability({"rain": "yes"}, given={"wet": "yes", "sprinkler": "on"}), 2) == 0.32


PAGES = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.relative_to(ROOT).parts[1].startswith("auto_")
]
WITH_SESSIONS = [page for page in PAGES if "```pycon" in page.read_text()]


PEERS = {"pgmpy.md": "pgmpy", "pyagrum.md": "pyagrum"}  # pages that also run another library


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.oracle if page.name in PEERS else ()) for page in WITH_SESSIONS],
    ids=lambda page: page.relative_to(ROOT / "docs").as_posix(),
)
def test_the_sessions_of_the_docs_are_as_they_are_shown(page, tmp_path, monkeypatch):
    if page.name in PEERS:
        warnings.simplefilter("ignore")  # those of the other library
        pytest.importorskip(PEERS[page.name], reason=f"{PEERS[page.name]} is not installed (make oracles)")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text(), re.DOTALL)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.stem, str(page), 0)
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(session)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    from posteriori.cli import main

    penguins = ROOT / "src" / "posteriori" / "datasets" / "penguins.csv"
    page = (ROOT / "README.md").read_text()
    commands = [line.split("#")[0] for line in re.findall(r"\.venv/bin/posteriori (.*)", page)]
    assert len(commands) == 11
    monkeypatch.chdir(tmp_path)
    run_the_python_of_the_readme()  # writes the network that the commands read
    for command in commands:
        words = shlex.split(command.replace("src/posteriori/datasets/penguins.csv", str(penguins)))
        assert main(words) == 0, capsys.readouterr().err
    assert (tmp_path / "penguins.posteriori").exists()


def test_importing_posteriori_imports_nothing_heavy():
    heavy = ("numba", "polars", "matplotlib", "typer", "dask", "distributed", "pyspark", "duckdb", "sqlglot", "pyarrow")
    code = f"import posteriori, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_changelog_has_a_place_for_what_is_next():
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
