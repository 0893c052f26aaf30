"""Choose the tests of the quick run: a case of each function, without the functions that cost most and reach least.

The rule: of a test function with cases the first one is quick, and the others are full. ``tests/full.txt`` names the
functions of which no case is quick. A function that it does not name is quick, so that a new one runs at once.
Of the tests that are not quick, `KEPT` cases of a function are full, and the others run once a week;
``tests/weekly.txt``, written by hand, gives another number.

``python -m tests.quick`` (``make quick``) runs all tests with coverage, and notes for each the lines and branches of
the package that it reaches, and its seconds. A greedy set cover [1]_ of the first cases takes the one with the most
lines and branches per second that no test before it reaches, until nearly all are reached: these functions stay. Of the
others, those that take the most seconds are named, until the quick run is short enough.

``--from FOLDER`` chooses by the notes of an earlier run. ``--check`` writes nothing: it exits with 1 if the tests that
are quick now reach less than 98 percent of what all reach.

.. [1] Chvátal, "A greedy heuristic for the set-covering problem", Mathematics of Operations Research 4(3), 1979.
"""

from __future__ import annotations

import argparse
import heapq
import subprocess
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "full.txt"
WEEKLY = ROOT / "tests" / "weekly.txt"
KEPT = 8  # cases of a function that are full
NOTES = ROOT / "build" / "quick"
PART = 0.075  # of the seconds of all tests
ENOUGH = 0.98  # of the lines and branches that all tests reach: below it the list is chosen again
_SHARE = 0.997  # of what first cases reach, at which the cover ends: the last lines cost the most seconds
_NEVER = ("tests/sources/test_spark.py",)  # the first of its tests starts a machine of Java, whichever that is
_OVERHEAD = 0.02  # seconds that a test costs beside its own: reports between processes
_ALL = "not prose"


# --- The list


class Full:
    """The functions of which the quick run has no case, as a list of files and their functions (``  ``).

    A file without functions is left out as a whole.
    """

    def __init__(self, text: str) -> None:
        self.files: dict[str, set[str]] = {}
        for line in text.splitlines():
            if not line.startswith(" "):
                functions = self.files.setdefault(line, set())
            else:
                functions.add(line.strip())

    def __contains__(self, nodeid: str) -> bool:
        file, function, _ = parts_of(nodeid)
        functions = self.files.get(file)
        return functions is not None and (not functions or function in functions)

    def of(self, nodeids: Iterable[str]) -> set[str]:
        """Return the tests that the quick run leaves out, of tests in their order: by the list, and by the rule."""
        tests = list(nodeids)
        return {nodeid for nodeid in tests if nodeid in self} | set(tests) - set(firsts(tests))

    def holds_all_of(self, file: str) -> bool:
        """Return whether a file is left out as a whole."""
        return self.files.get(file) == set()


class Weekly:
    """How many cases of a function are full, where that is not `KEPT`.

    A line is ``file::function number``, or ``file number`` for those of its functions that have no line; ``all`` is
    every case. Lines that begin with ``#`` are reasons.
    """

    def __init__(self, text: str) -> None:
        lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
        self.kept = {name: sys.maxsize if number == "all" else int(number) for name, number in lines}

    def of(self, nodeids: Iterable[str]) -> set[str]:
        """Return the weekly tests, of tests in their order that are not quick."""
        cases: dict[tuple[str, str], list[str]] = defaultdict(list)
        for nodeid in nodeids:
            cases[parts_of(nodeid)[:2]].append(nodeid)
        weekly: set[str] = set()
        for (file, function), some in cases.items():
            name = f"{file}::{function}"
            weekly.update(set(some) - set(spread(some, self.kept.get(name, self.kept.get(file, KEPT)), name)))
        return weekly


def spread(cases: list[str], n: int, name: str) -> list[str]:
    """Return `n` cases at equal distances, or all if there are fewer.

    The first one follows from the name of their function: functions of the same cases keep different ones.

    >>> spread(["a", "b", "c", "d", "e"], 2, "test_a"), spread(["a", "b"], 8, "test_a")
    (['b', 'd'], ['a', 'b'])
    """
    if n >= len(cases):
        return cases
    start = zlib.crc32(name.encode())
    return [cases[(start + k * len(cases) // n) % len(cases)] for k in range(n)]


def marks_of(nodeids: Iterable[str]) -> dict[str, str]:
    """Return the mark, full or weekly, of each test that is not quick, of tests in their order."""
    tests = list(nodeids)
    full = listed().of(tests)
    weekly = listed_weekly().of(nodeid for nodeid in tests if nodeid in full)
    return {nodeid: "weekly" if nodeid in weekly else "full" for nodeid in tests if nodeid in full}


def firsts(nodeids: Iterable[str]) -> list[str]:
    """Return the first case of each function.

    >>> firsts(["t.py::test_a[2]", "t.py::test_a[1]", "t.py::test_b"])
    ['t.py::test_a[2]', 't.py::test_b']
    """
    of_functions: dict[tuple[str, str], str] = {}
    for nodeid in nodeids:
        of_functions.setdefault(parts_of(nodeid)[:2], nodeid)
    return list(of_functions.values())


def listed() -> Full:
    """Return the tests that the quick run leaves out."""
    return Full(LIST.read_text("utf-8"))


def listed_weekly() -> Weekly:
    """Return the numbers of cases that the weekly run leaves to the full one."""
    return Weekly(WEEKLY.read_text("utf-8"))


def parts_of(nodeid: str) -> tuple[str, str, str]:
    """Return the file, the function and the case of a test.

    >>> parts_of("tests/test_quick.py::TestC::test_d[x::y-1]")
    ('tests/test_quick.py', 'TestC::test_d', '[x::y-1]')
    """
    function, bracket, case = nodeid.partition("[")
    return function.partition("::")[0], function.partition("::")[2], bracket + case


def as_list(functions: Iterable[tuple[str, str]], every: Iterable[tuple[str, str]]) -> str:
    """Return the list of the functions that are not quick, out of all, as `Full` reads it."""
    left_out: dict[str, set[str]] = defaultdict(set)
    for file, function in functions:
        left_out[file].add(function)
    everything: dict[str, set[str]] = defaultdict(set)
    for file, function in every:
        everything[file].add(function)
    lines = []
    for file in sorted(left_out):
        lines.append(file)
        lines += [] if left_out[file] == everything[file] else [f"  {name}" for name in sorted(left_out[file])]
    return "\n".join(lines) + "\n"


# --- Measuring: a plugin of pytest, loaded by `-p tests.quick`


class Recorder:
    """Notes of one process: the seconds of each test, and the numbers of the steps between lines that it makes."""

    def __init__(self, path: Path) -> None:
        import coverage

        self.path, self.steps, self.tests = path, {}, {}
        self.coverage = coverage.Coverage(
            branch=True, data_file=None, config_file=False, source=[str(ROOT / "src")], messages=False
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])  # as of a test of other processes
        self.coverage.start()

    def start(self, nodeid):
        self.coverage.stop()
        self.coverage.erase()
        self.coverage.start()
        return time.perf_counter()

    def stop(self, nodeid, began):
        seconds = time.perf_counter() - began
        self.coverage.stop()
        data = self.coverage.get_data()
        steps = {
            self.steps.setdefault((file, *arc), len(self.steps))
            for file in data.measured_files()
            for arc in data.arcs(file) or ()
        }
        self.tests[nodeid] = seconds, np.fromiter(steps, np.int32, len(steps))
        self.coverage.start()

    def save(self):
        self.coverage.stop()
        seconds, reached = zip(*self.tests.values(), strict=True)
        np.savez_compressed(
            self.path,
            steps=[f"{Path(file).relative_to(ROOT)}:{start}:{end}" for file, start, end in self.steps],
            tests=list(self.tests),
            seconds=seconds,
            ends=np.cumsum([len(one) for one in reached]),
            reached=np.concatenate(reached),
        )


_RECORDER: list[Recorder] = []


def pytest_addoption(parser):
    parser.addoption("--record-tests", metavar="FOLDER", help="write the lines and the seconds of each test to FOLDER")


def pytest_configure(config):
    folder = config.getoption("record_tests")
    if folder and (hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None)):
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = getattr(config, "workerinput", {}).get("workerid", "main")
        _RECORDER.append(Recorder(Path(folder, f"{name}.npz")))


def pytest_runtest_logstart(nodeid):
    for recorder in _RECORDER:
        recorder.began = recorder.start(nodeid)


def pytest_runtest_logfinish(nodeid):
    for recorder in _RECORDER:
        recorder.stop(nodeid, recorder.began)


def pytest_sessionfinish():
    for recorder in _RECORDER:
        recorder.save()


# --- Choosing


class Notes:
    """What each test reaches: `reached[i]` are the numbers of lines and branches of `tests[i]`, out of `n_items`."""

    def __init__(self, folder: Path) -> None:
        if not any(folder.glob("*.npz")):
            raise SystemExit(f"{folder} has no notes of tests; run make quick, or name another folder with --from")
        steps: dict[str, int] = {}
        self.tests, self.seconds, by_step = [], [], []
        for path in sorted(folder.glob("*.npz")):
            notes = np.load(path)
            number = np.array([steps.setdefault(step, len(steps)) for step in notes["steps"].tolist()], dtype=np.int64)
            self.tests += notes["tests"].tolist()
            self.seconds += notes["seconds"].tolist()
            by_step += np.split(number[notes["reached"]], notes["ends"][:-1])
        self.steps, self.by_step = list(steps), by_step
        self.items = _items_of(self.steps)
        self.n_items = 1 + max(max(items, default=-1) for items in self.items)
        starts = np.cumsum([0, *map(len, self.items)])
        flat = np.concatenate([np.array(items, dtype=np.int64) for items in self.items])
        self.reached = [
            np.unique(np.concatenate([flat[starts[k] : starts[k + 1]] for k in one])) if len(one) else one
            for one in by_step
        ]

    def lines(self) -> set[tuple[str, int]]:
        """Return the lines that tests reach, as file and number."""
        return {_line_of(step) for step in self.steps}

    def tests_by_line(self, lines: list[tuple[str, int]]) -> dict[tuple[str, int], list[int]]:
        """Return the numbers of the tests that reach each of some lines."""
        number = {line: k for k, line in enumerate(lines)}
        line_of = np.array([number.get(_line_of(step), -1) for step in self.steps])
        found: dict[tuple[str, int], list[int]] = {line: [] for line in lines}
        for i, steps in enumerate(self.by_step):
            for k in set(line_of[steps].tolist()) - {-1}:
                found[lines[k]].append(i)
        return found


def _line_of(step: str) -> tuple[str, int]:
    file, _, end = step.rsplit(":", 2)
    return file, int(end)


def _items_of(steps: list[str]) -> list[list[int]]:
    """Return the lines and the branches of each step `file:from:to`; from a line that has several, each is a branch."""
    parsed = [(file, int(start), int(end)) for file, start, end in (step.rsplit(":", 2) for step in steps)]
    ends = defaultdict(set)
    for file, start, end in parsed:
        ends[file, start].add(end)
    number: dict[tuple, int] = {}
    return [
        [
            number.setdefault(item, len(number))
            for item in ((file, start), (file, end), (file, start, end))
            if (len(item) == 2 and item[1] > 0) or (len(item) == 3 and start > 0 and len(ends[file, start]) > 1)
        ]
        for file, start, end in parsed
    ]


def _is_never_quick(nodeid: str) -> bool:
    return parts_of(nodeid)[0] in _NEVER


def cover(notes: Notes, tests: Collection[int], share: float = 1.0) -> list[int]:
    """Return those of some tests that reach a share of what these reach: greedy, without what later ones replace."""
    left = np.zeros(notes.n_items, dtype=bool)
    for i in tests:
        left[notes.reached[i]] = True
    n_items, cost = int(left.sum()), np.array(notes.seconds) + _OVERHEAD
    queue = [(-len(notes.reached[i]) / cost[i], i) for i in tests]
    heapq.heapify(queue)
    taken = []
    while queue and left.sum() > (1.0 - share) * n_items:
        promised, i = heapq.heappop(queue)
        gain = left[notes.reached[i]].sum() / cost[i]
        if not gain:
            continue
        if gain < -promised - 1e-9:  # others have taken a part of it since: it waits for its new turn
            heapq.heappush(queue, (-gain, i))
            continue
        taken.append(i)
        left[notes.reached[i]] = False
    times = np.zeros(notes.n_items, dtype=np.int64)
    for i in taken:
        times[notes.reached[i]] += 1
    for i in sorted(taken, key=lambda i: -cost[i]):
        if (times[notes.reached[i]] > 1).all():
            taken.remove(i)
            times[notes.reached[i]] -= 1
    return taken


def choose(notes: Notes, order: Iterable[str], part: float) -> set[tuple[str, str]]:
    """Return the functions that are left out: the costliest beyond the cover, until the rest is a part of all seconds.

    `order` are the tests in the order of collection, whose first cases are quick.
    """
    number, cost = {nodeid: i for i, nodeid in enumerate(notes.tests)}, np.array(notes.seconds) + _OVERHEAD
    cases = [number[nodeid] for nodeid in firsts(order) if nodeid in number]
    kept = set(cover(notes, [i for i in cases if not _is_never_quick(notes.tests[i])], _SHARE))
    spent, left_out = float(cost[cases].sum()), []
    for i in sorted(cases, key=lambda i: (not _is_never_quick(notes.tests[i]), -cost[i])):
        if _is_never_quick(notes.tests[i]) or (i not in kept and spent > part * cost.sum()):
            left_out.append(i)
            spent -= float(cost[i])
    print(
        f"{len(cases) - len(left_out)} of {len(cases)} functions are quick: {spent:.0f} s of {cost.sum():.0f} s; "
        f"{len(kept)} reach {_SHARE:.1%} of what first cases reach"
    )
    return {parts_of(notes.tests[i])[:2] for i in left_out}


def share_of_quick(notes: Notes, full: Full, order: Iterable[str]) -> float:
    """Return the share of what all tests reach that the quick ones reach; `order` is that of collection."""
    left_out, reached = full.of(order), np.zeros(notes.n_items, dtype=bool)
    for nodeid, items in zip(notes.tests, notes.reached, strict=True):
        if nodeid not in left_out:
            reached[items] = True
    return float(reached.mean())


def collected() -> list[str]:
    """Return all tests in the order of collection."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", _ALL]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if "::" in line]


def main() -> int:
    """Measure, and write or check the list."""
    parser = argparse.ArgumentParser(
        prog="tests.quick", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--from", dest="folder", type=Path, help="the notes of an earlier run")
    parser.add_argument("--check", action="store_true", help="write nothing, and exit with 1 if the list is incomplete")
    parser.add_argument("--part", type=float, default=PART, help=f"of the seconds of all tests ({PART})")
    options = parser.parse_args()
    if options.folder is None:
        command = [sys.executable, "-m", "pytest", "-p", "tests.quick", "--record-tests", str(NOTES), "-m", _ALL]
        subprocess.run(command, cwd=ROOT, check=True)
    notes, order = Notes(options.folder or NOTES), collected()
    if options.check:
        share = share_of_quick(notes, listed(), order)
        print(f"the quick run reaches {share:.2%} of the lines and branches that all tests reach")
        return int(share < ENOUGH)
    every = {parts_of(nodeid)[:2] for nodeid in order}
    LIST.write_text(as_list(choose(notes, order, options.part), every), "utf-8")
    print(f"wrote {LIST.relative_to(ROOT)}: the quick run reaches {share_of_quick(notes, listed(), order):.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
