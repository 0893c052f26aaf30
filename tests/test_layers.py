"""Layers: each folder imports only from the rows below its own in layers.toml, and says what it is for."""

import ast
import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "posteriori"


def ranks(rows):
    """Return the rank of each folder or module of a table, highest first; names of one row share a rank."""
    found = {}
    for place, row in enumerate(rows):
        for name in row:
            assert name not in found, f"{name} occurs twice in the table"
            found[name] = -place
    return found


RANKS = ranks(tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))["rows"])


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree):
    """Return the modules of posteriori that a file imports when it is loaded, including those only for types.

    Imports inside functions are not counted: they run when the function is called.
    """
    found, waiting = set(), list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "a relative import, which this test cannot place; import from posteriori"
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        waiting += ast.iter_child_nodes(node)
    return {name for name in found if name.startswith("posteriori.")}


def imports_anywhere(tree):
    """Return the modules of posteriori that a file imports, also inside functions."""
    inside = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return imports(ast.Module(inside, []))


def named(tree):
    """Return the modules of posteriori that are named in strings, as "module:name" or as a module."""
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {match[1] for string in strings if (match := re.fullmatch(r"(posteriori(?:\.\w+)+)(?::\w+)?", string))}


def upward(arrows, rank):
    """Return the imports from a higher row of the table."""
    return sorted(
        f"{name} imports {other}"
        for name, other in arrows
        if {room(name), room(other)} <= set(rank) and rank[room(name)] < rank[room(other)]
    )


def in_cycles(arrows):
    """Return the modules that are on a cycle of imports, or import one that is."""
    below = {}
    for name, other in arrows:
        below.setdefault(name, set()).add(other)
        below.setdefault(other, set())
    while free := {name for name, others in below.items() if not others & below.keys()}:
        below = {name: others for name, others in below.items() if name not in free}
    return sorted(below)


def room(name):
    return name.split(".")[1] if "." in name else "posteriori"


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
REGISTRIES = {"engines", "registry", "model_files"}  # they name classes as strings, and import none


@cache  # and not at import: a run of other tests collects this file too
def trees():
    """Return each file of the package, parsed."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


@cache
def arrows_by(find):
    """Return pairs of a file and another one that `find` finds in it."""
    return {
        (name, other)
        for name, tree in trees().items()
        for other in find(tree)
        if other in FILES and other != name and not other.startswith(f"{name}.")
    }


def test_every_folder_and_module_is_in_the_table():
    assert {room(name) for name in FILES} - {"posteriori", "__main__"} == set(RANKS)


@pytest.mark.prose
@pytest.mark.parametrize("name", RANKS)
def test_each_says_what_it_is_for_in_a_few_sentences(name):
    paragraphs = (ast.get_docstring(trees()[f"posteriori.{name}"]) or "").split("\n\n")
    if name != "version":
        assert len(paragraphs) > 1, f"{name} has a title and no text; say what it is for"
    assert len(" ".join(paragraphs[:2]).split()) <= 90, f"{name}: the two paragraphs are long for a table"


@pytest.mark.prose
def test_the_table_of_the_site_shows_each_with_its_purpose():
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    spec = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "_extensions" / "layers.py")
    layers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layers)
    lines = layers.table()[2:]
    assert [re.match(r"\| (\d+) \| `(\w+)", line).groups() for line in lines] == [
        (str(1 - rank), name) for name, rank in RANKS.items()
    ]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines)  # a bar of p(x | z) ends no cell


def test_no_folder_imports_from_above():
    assert upward(arrows_by(imports), RANKS) == []


def test_no_function_imports_from_above():
    assert upward(arrows_by(imports_anywhere), RANKS) == []


def test_only_registries_name_classes_from_above():
    found = upward(arrows_by(named), RANKS)
    assert {room(line.split()[0]) for line in found} == REGISTRIES


def test_imports_between_files_have_no_cycles():
    assert in_cycles(arrows_by(imports)) == []


def test_imports_inside_functions_close_no_cycle():
    assert in_cycles(arrows_by(imports_anywhere)) == []


def test_what_compiles_loops_knows_none_of_them():
    machine, loops = "posteriori.kernels.machine", "posteriori.kernels.loops"
    arrows = arrows_by(imports_anywhere)
    assert [arrow for arrow in arrows if arrow[0].startswith(machine) and arrow[1].startswith(loops)] == []


def test_imports_are_found_at_load_time_only():
    text = """
import posteriori.model
def f():
    import posteriori.cli
if TYPE_CHECKING:
    from posteriori.sql import steps
"""
    assert imports(ast.parse(text)) == {"posteriori.model", "posteriori.sql", "posteriori.sql.steps"}
    assert imports_anywhere(ast.parse(text)) - imports(ast.parse(text)) == {"posteriori.cli"}
    assert named(ast.parse("x = 'posteriori.cli.fit:run', 'posteriori fit', 'posteriori.sql'")) == {
        "posteriori.cli.fit",
        "posteriori.sql",
    }


def test_an_upward_import_and_a_cycle_are_found():
    rank = ranks([["cli"], ["model", "sql"]])
    assert rank == {"cli": 0, "model": -1, "sql": -1}
    arrows = {("posteriori.cli.main", "posteriori.model"), ("posteriori.sql", "posteriori.model")}
    assert upward(arrows, rank) == []
    assert in_cycles(arrows) == []
    arrows.add(("posteriori.model", "posteriori.cli.main"))
    assert upward(arrows, rank) == ["posteriori.model imports posteriori.cli.main"]
    assert "posteriori.model" in in_cycles(arrows)
