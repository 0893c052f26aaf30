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
from operator import attrgetter
from pathlib import Path

import matplotlib as mpl
import pytest

import posteriori as po

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(po.__path__, "posteriori.") if "__main__" not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    plt.close("all")
    assert results.failed == 0


def public_objects():
    for name in po.__all__:
        thing = getattr(po, name)
        if inspect.ismodule(thing):
            yield from ((f"{name}.{inner}", getattr(thing, inner)) for inner in thing.__all__)
        else:
            yield name, thing
    for name in re.findall(r"^   (\w+\.\w+)$", (ROOT / "docs/api/index.rst").read_text(encoding="utf-8"), re.MULTILINE):
        if name.split(".")[0] not in po.__all__:
            yield name, attrgetter(name)(po)


@pytest.mark.prose
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


@pytest.mark.prose
@pytest.mark.parametrize("name", po.plotting.__all__)
def test_every_plot_has_an_example(name):
    assert ">>> ax = po.plotting." in inspect.getdoc(getattr(po.plotting, name))


@pytest.mark.prose
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
    best = run_the_python_of_the_readme()["best"]
    assert best.members_
    assert "posterior" in capsys.readouterr().out


@pytest.mark.prose
def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


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


def commands_of(page):
    """Return the commands of the program in the shell blocks of a page, without comments."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
    lines = "\n".join(blocks).splitlines()
    found = [re.search(r"(?:^|&& \.venv/bin/|^\.venv/bin/)posteriori ([^#]*)", line) for line in lines]
    return [command[1] for command in found if command]


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch, capsys):
    from posteriori.cli import main

    penguins = "src/posteriori/datasets/penguins.csv"
    commands = commands_of(ROOT / "README.md")
    assert [command.split()[0] for command in commands] == ["fit", "explain"]
    monkeypatch.chdir(tmp_path)
    for command in commands:
        assert main(shlex.split(command.replace(penguins, str(ROOT / penguins)))) == 0, capsys.readouterr().err
    assert (tmp_path / "penguins.posteriori").exists()


# Pictures that the build of the site makes: path, and text for who cannot see them.
MADE = [(page, *found) for page in PAGES for found in re.findall(r"!\[(.*?)\]\((/auto_\S+)\)", page.read_text())]


@pytest.mark.prose
@pytest.mark.parametrize(("page", "text", "path"), MADE, ids=lambda cell: cell.stem if isinstance(cell, Path) else "")
def test_a_picture_of_a_page_is_that_of_an_example(page, text, path):
    made = re.fullmatch(r"/auto_(gallery|course)/images/sphx_glr_(\w+)_001\.png", path)
    example = ROOT / "docs" / made[1] / f"{made[2]}.py"
    assert "plt.show()" in example.read_text()
    assert len(text.split()) > 5, "the text says what the picture shows"


WITH_COMMANDS = [page for page in PAGES if "guide" in page.parts and commands_of(page)]


FILES = ROOT / "docs/guide/index.md"  # the page that makes the files of the guide


@pytest.fixture
def table_folder(tmp_path, monkeypatch):
    """Return a folder with the tables that the commands of the pages name."""
    from posteriori.datasets import load_penguins

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    exec("".join(example.source for example in doctest.DocTestParser().get_examples(FILES.read_text())), {})
    Path("data").mkdir()
    load_penguins().write_parquet("data/penguins.parquet")
    page = (ROOT / "docs/guide/tasks/costs.md").read_text()
    Path("costs.json").write_text(re.search(r"```json\n(.*?)```", page, re.DOTALL)[1])
    return tmp_path


@pytest.fixture
def shell_folder(table_folder, capsys):
    """Return that folder with the models and the network that the commands of the guide name."""
    from posteriori.cli import main
    from posteriori.datasets import load_penguins

    for command in commands_of(FILES):
        assert main(shlex.split(command)) == 0, capsys.readouterr().err
    capsys.readouterr()
    penguins = load_penguins()
    north = penguins["island"] != "Biscoe"
    for name, rows in (("north", north), ("south", ~north)):
        po.save(po.NaiveBayes().fit(penguins.filter(rows), "species"), f"{name}.posteriori")
    net = po.BayesianNetwork([("rain", "wet")])
    net.add_cpt("rain", {"yes": 0.3, "no": 0.7})
    net.add_cpt("wet", {"yes": {"yes": 0.9, "no": 0.1}, "no": {"yes": 0.2, "no": 0.8}})
    po.write_network(net, "sprinkler.bif")
    return table_folder


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_the_commands_of_the_guide_run(page, shell_folder, capsys):
    from posteriori.cli import main

    for command in commands_of(page) if page != FILES else ():  # which the fixture has run
        assert main(shlex.split(command)) == 0, f"{command}: {capsys.readouterr().err}"


def console_sessions_of(text):
    r"""Return each command of the console blocks of a page, without comment, and the output that the page shows.

    A command goes on in the next line after a \, and there after "> ", as in a shell.
    """
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL)).replace("\\\n> ", "")
    pieces = re.split(r"^\$ ", blocks, flags=re.MULTILINE)[1:]
    return [(command.partition("#")[0].split(), shown) for command, _, shown in (p.partition("\n") for p in pieces)]


WITH_CONSOLE = [page for page in PAGES if console_sessions_of(page.read_text())]
SAME = doctest.OutputChecker()


def is_shown(shown, printed):
    """Return whether a page shows what a command prints: "..." stands for any text, white space is not compared."""
    return SAME.check_output(shown + "\n", printed + "\n", doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


@pytest.mark.parametrize("page", WITH_CONSOLE, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_the_output_of_commands_is_as_it_is_shown(page, request, capsys):
    from posteriori.cli import main

    has_models = "start" not in page.parts and page.name != "index.md"
    request.getfixturevalue("shell_folder" if has_models else "table_folder")
    for (program, *arguments), shown in console_sessions_of(page.read_text()):
        assert program == "posteriori"
        code = main(arguments)
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert is_shown(shown, printed.out), f"{' '.join(arguments)} prints\n{printed.out}"


@pytest.mark.prose
def test_output_that_is_not_as_it_is_shown_is_found():
    ((command, shown),) = console_sessions_of(
        "```console\n$ posteriori show \\\n> m  # all\n0.12...\n  two\n...\n```\n"
    )
    assert command == ["posteriori", "show", "m"]
    assert is_shown(shown, "0.123 two\nthree\n")
    assert not is_shown(shown, "0.13 two\nthree\n")


@pytest.mark.prose
@pytest.mark.parametrize("page", WITH_CONSOLE, ids=lambda page: page.stem)
def test_every_console_block_begins_with_a_command(page):
    assert not re.search(r"```console\n(?!\$ posteriori )", page.read_text())


@pytest.mark.prose
@pytest.mark.parametrize("page", [page for page in PAGES if "guide" in page.parts], ids=lambda page: page.stem)
def test_a_page_says_where_the_files_of_its_commands_are_from(page):
    text = page.read_text()
    commands = [*map(str.split, commands_of(page)), *(command for command, _ in console_sessions_of(text))]
    shared = {"penguins.csv", "new.csv", "earlier.csv", "penguins.posteriori"}
    if page != FILES and shared.intersection(word for command in commands for word in command):
        assert "(../index.md#files-of-the-commands)" in text


@pytest.mark.prose
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_class_of_an_inner_namespace_is_named_with_it(page):
    listed = re.findall(r"^   ([\w.]+)$", (ROOT / "docs/api/index.rst").read_text(encoding="utf-8"), re.MULTILINE)
    inner = {name.rpartition(".")[2]: name for name in listed if "." in name and not name.startswith("drop_in")}
    named = set(re.findall(r"`([A-Z]\w+)[`(]|>([A-Z]\w+)</a>", page.read_text()))
    bare = {name for pair in named for name in pair if name in inner and not hasattr(po, name)}
    assert page.stem == "scikit_learn" or not bare, f"write {[inner[name] for name in bare]}"


def test_importing_posteriori_imports_nothing_heavy():
    heavy = ("numba", "polars", "matplotlib", "typer", "dask", "distributed", "pyspark", "duckdb", "sqlglot", "pyarrow")
    code = f"import posteriori, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
