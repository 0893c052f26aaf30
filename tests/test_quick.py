"""The list of the tests that the quick run leaves out, and how it is chosen."""

import ast
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests import quick

ROOT = Path(__file__).parents[1]


def functions_of(path):
    """Return the names of the test functions of a file, also of those that are made by calls."""
    tree = ast.parse(path.read_text("utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return names | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def unknown(file, functions):
    """Return those functions of a file that it does not have, or the file if it does not exist."""
    known = functions_of(ROOT / file) if (ROOT / file).exists() else set()
    return [f"{file}::{name}" for name in functions if name not in known] or [file] * (not known)


@pytest.mark.prose
def test_every_listed_test_exists():
    gone = []
    for file, functions in quick.listed().files.items():
        if not file.startswith("tests/drop_in/"):  # its functions are those of scikit-learn
            gone += unknown(file, functions)
    assert not gone, f"make quick lists them again: {gone}"


@pytest.mark.prose
def test_every_test_with_a_number_exists():
    gone = []
    for name in quick.listed_weekly().kept:
        file, _, function = name.partition("::")
        gone += unknown(file, [function] if function else [])
    assert not gone, f"tests/weekly.txt names what is gone: {gone}"


def notes_of(tmp_path, reached, seconds):
    """Return notes of tests that reach the given steps of a file."""
    steps = sorted({step for one in reached.values() for step in one})
    np.savez_compressed(
        tmp_path / "main.npz",
        steps=[f"src/a.py:{start}:{end}" for start, end in steps],
        tests=list(reached),
        seconds=[seconds[name] for name in reached],
        ends=np.cumsum([len(one) for one in reached.values()]),
        reached=np.array([steps.index(step) for one in reached.values() for step in one], dtype=np.int32),
    )
    return quick.Notes(tmp_path)


A, B, C, D = "t.py::test_a[1]", "t.py::test_a[2]", "t.py::test_b", "u.py::test_c"
REACHED = {
    A: [(-1, 1), (1, 2), (2, 3)],
    B: [(-1, 1), (1, 3)],  # the other branch of line 1
    C: [(-1, 1), (1, 2), (2, 3), (2, 4)],
    D: [(-1, 1), (1, 2)],
}


def test_a_folder_without_notes_is_named(tmp_path):
    with pytest.raises(SystemExit, match="has no notes of tests; run make quick"):
        quick.Notes(tmp_path)


def test_lines_and_branches_are_what_tests_reach(tmp_path):
    notes = notes_of(tmp_path, REACHED, dict.fromkeys(REACHED, 1.0))
    # Lines 1, 2, 3 and 4; the branches 1 to 2, 1 to 3, 2 to 3 and 2 to 4.
    assert notes.n_items == 8
    assert {notes.tests[i]: len(items) for i, items in enumerate(notes.reached)} == {A: 5, B: 3, C: 7, D: 3}


def test_the_cover_reaches_everything_in_the_fewest_seconds(tmp_path):
    notes = notes_of(tmp_path, REACHED, {A: 1.0, B: 1.0, C: 1.5, D: 0.1})
    assert {notes.tests[i] for i in quick.cover(notes, range(4))} == {B, C}  # A and D come first, and C replaces them
    assert {notes.tests[i] for i in quick.cover(notes, [0, 1, 3])} == {A, B}


MANY = [f"v.py::test_d[{k}]" for k in range(5)]
EVERY = [*REACHED, *MANY]


@pytest.mark.parametrize(
    ("part", "left_out"),
    [(1.0, set()), (0.5, {("u.py", "test_c")}), (0.0, {("t.py", "test_a"), ("u.py", "test_c"), ("v.py", "test_d")})],
)
def test_the_costliest_functions_beyond_the_cover_go(part, left_out, tmp_path):
    seconds = {A: 1.0, B: 1.0, C: 1.5, D: 5.0} | dict.fromkeys(MANY, 0.5)
    notes = notes_of(tmp_path, REACHED | {case: [(-1, 1)] for case in MANY}, seconds)
    assert quick.choose(notes, EVERY, part) == left_out


@pytest.mark.parametrize(
    ("functions", "lines"),
    [
        ({("t.py", "test_a"), ("u.py", "test_c")}, ["t.py", "  test_a", "u.py"]),
        ({("t.py", "test_a"), ("t.py", "test_b")}, ["t.py"]),
        (set(), []),
    ],
)
def test_the_list_is_read_as_it_was_written(functions, lines):
    text = quick.as_list(functions, {quick.parts_of(nodeid)[:2] for nodeid in EVERY})
    assert text.split() == [line.strip() for line in lines]
    full = quick.Full(text)
    assert {quick.parts_of(nodeid)[:2] for nodeid in EVERY if nodeid in full} == functions


def test_the_first_case_of_a_function_is_quick():
    full = quick.Full("t.py\n  test_b\nu.py\n")
    assert full.of(EVERY) == {B, C, D, *MANY[1:]}
    assert full.of([MANY[3]]) == set()  # asked for alone
    assert "t.py::test_new" not in full
    assert "u.py::test_new" in full  # until the list is made again: its file is not read
    assert full.holds_all_of("u.py")
    assert not full.holds_all_of("t.py")


def test_the_check_finds_a_list_that_leaves_out_too_much(tmp_path):
    notes = notes_of(tmp_path, REACHED, dict.fromkeys(REACHED, 1.0))
    assert quick.share_of_quick(notes, quick.Full(""), [B, A, C, D]) == 1.0
    assert quick.share_of_quick(notes, quick.Full(""), REACHED) == 7 / 8  # the branch that B alone takes
    assert quick.share_of_quick(notes, quick.Full("t.py\n  test_b"), REACHED) == 5 / 8


def test_the_list_is_short():
    assert quick.LIST.stat().st_size <= 20_000


CASES = [f"w.py::test_e[{k}]" for k in range(30)]


def test_a_function_keeps_its_number_of_cases():
    weekly = quick.Weekly("# slow\nw.py 2\nw.py::test_e 5\nx.py::test_f 0\ny.py::test_g all\n")
    assert len(set(CASES) - weekly.of(CASES)) == 5
    others = [case.replace("test_e", "test_other") for case in CASES]
    assert len(set(others) - weekly.of(others)) == 2
    assert weekly.of(["x.py::test_f"]) == {"x.py::test_f"}
    for file, function, left in (("y.py", "test_g", 30), ("z.py", "test_h", quick.KEPT)):
        cases = [f"{file}::{function}[{k}]" for k in range(30)]
        assert len(set(cases) - weekly.of(cases)) == left


def test_kept_cases_lie_apart_and_differ_by_function():
    kept = {name: quick.spread([*range(30)], 5, name) for name in ("test_a", "test_b", "test_c")}
    for numbers in kept.values():
        assert set(np.diff([*sorted(numbers), min(numbers) + 30])) == {6}
    assert len(set(map(min, kept.values()))) > 1
    assert quick.spread([1, 2, 3], 5, "test_a") == [1, 2, 3]


def test_every_test_is_quick_full_or_weekly(request):
    marks = quick.marks_of(CASES)
    assert Counter(marks.get(case) for case in CASES) == {None: 1, "full": quick.KEPT, "weekly": 29 - quick.KEPT}
    for item in request.session.items:
        assert len({"full", "weekly"} & {mark.name for mark in item.iter_markers()}) <= 1, item.nodeid


def test_every_test_runs_in_one_of_four_commands():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    plain = re.search(r"addopts = .* -m '(.+?)'", (ROOT / "pyproject.toml").read_text("utf-8"))[1]
    targets = dict(re.findall(r"^(\w+): (?:.*\n\t)+?.*pytest .*?-m (\".+?\"|\w+)", makefile, re.MULTILINE))
    commands = [plain, *(targets[name].strip('"') for name in ("full", "weekly", "lint"))]
    for mark in ("quick", "full", "weekly"):
        for prose in (False, True):
            names = {"full": mark == "full", "weekly": mark == "weekly", "prose": prose}
            assert sum(eval(command, names) for command in commands) == 1, (mark, prose)
