"""Choose the tests of the quick run: those that reach the lines and branches in the fewest seconds.

``python -m tests.quick`` (``make quick``) runs all tests with coverage, and notes for each the lines and branches of
the package that it reaches, and its seconds. A greedy set cover [1]_ takes the test with the most lines and branches
per second that no test before it reaches, until nearly all are reached. Coverage does not see what a test asserts, so
the cheapest case of each function joins, the cheapest first, while the run takes less than a part of all seconds. The
others are listed in ``tests/full.txt``; a function that is not listed is quick, so that a new one runs at once.

``--from FOLDER`` chooses by the notes of an earlier run. ``--check`` writes nothing: it exits with 1 if the tests that
are quick now reach less than 99.5 percent of what all reach.

.. [1] Chvátal, "A greedy heuristic for the set-covering problem", Mathematics of Operations Research 4(3), 1979.
"""

from __future__ import annotations

import argparse
import heapq
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "full.txt"
NOTES = ROOT / "build" / "quick"
PART = 0.075  # of the seconds of all tests
ENOUGH = 0.995  # of the lines and branches that all tests reach: below it the list is chosen again
_SHARE = 0.997  # at which the cover ends: the last lines cost the most seconds, such as a machine of Java
_NEVER = ("tests/sources/test_spark.py",)  # the first of its tests starts a machine of Java, whichever that is
_OVERHEAD = 0.02  # seconds that a test costs beside its own: reports between processes
_ALL = "not prose"


# --- The list


class Full:
    """The tests that the quick run leaves out, as a list of files, their functions (``  ``) and of these (``    ``).

    A file without functions is left out as a whole, and so is a function without cases. ``but [case]`` is quick though
    its function is left out; ``only [case]`` is left out and the others of its function are quick.
    """

    def __init__(self, text: str) -> None:
        self.files: dict[str, dict[str, list[str]]] = {}
        for line in text.splitlines():
            if not line.startswith(" "):
                functions = self.files.setdefault(line, {})
            elif not line.startswith("    "):
                cases = functions.setdefault(line.strip(), [])
            else:
                cases.append(line.strip())

    def __contains__(self, nodeid: str) -> bool:
        file, function, case = parts_of(nodeid)
        functions = self.files.get(file)
        if not functions:
            return functions is not None
        cases = functions.get(function)
        if not cases:
            return cases is not None
        return f"only {case}" in cases or (cases[0].startswith("but ") and f"but {case}" not in cases)

    def holds_all_of(self, file: str) -> bool:
        """Return whether a file is left out as a whole."""
        return self.files.get(file) == {}


def listed() -> Full:
    """Return the tests that the quick run leaves out."""
    return Full(LIST.read_text("utf-8"))


def parts_of(nodeid: str) -> tuple[str, str, str]:
    """Return the file, the function and the case of a test.

    >>> parts_of("tests/test_quick.py::TestC::test_d[x::y-1]")
    ('tests/test_quick.py', 'TestC::test_d', '[x::y-1]')
    """
    function, bracket, case = nodeid.partition("[")
    return function.partition("::")[0], function.partition("::")[2], bracket + case


def as_list(tests: list[str], quick: set[str]) -> str:
    """Return the list of the tests that are not quick, as `Full` reads it."""
    tree: dict[str, dict[str, dict[bool, list[str]]]] = {}
    for nodeid in sorted(tests):
        file, function, case = parts_of(nodeid)
        tree.setdefault(file, {}).setdefault(function, {True: [], False: []})[nodeid in quick].append(case)
    lines = []
    for file, functions in tree.items():
        left_out = {name: cases for name, cases in functions.items() if cases[False]}
        lines += [file] * bool(left_out)
        if not any(cases[True] for cases in functions.values()):
            continue
        for name, cases in left_out.items():
            lines.append(f"  {name}")
            if cases[True]:
                word = min(("but", "only"), key=lambda word: len(cases[word == "but"]))
                lines += [f"    {word} {case}" for case in cases[word == "but"]]
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


def cover(notes: Notes, share: float = 1.0) -> list[int]:
    """Return the numbers of tests that reach a share of everything: greedy, without those that later ones replace."""
    left = np.ones(notes.n_items, dtype=bool)
    cost = np.array(notes.seconds) + _OVERHEAD
    queue = [(-len(items) / cost[i], i) for i, items in enumerate(notes.reached) if not _is_never_quick(notes.tests[i])]
    heapq.heapify(queue)
    taken = []
    while queue and left.mean() > 1.0 - share:
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


def choose(notes: Notes, part: float) -> set[str]:
    """Return the quick tests: the cover, then the cheapest case of each function while its part of the time lasts."""
    cost = np.array(notes.seconds) + _OVERHEAD
    taken = cover(notes, _SHARE)
    names = [parts_of(nodeid)[:2] for nodeid in notes.tests]
    functions, spent = {names[i] for i in taken}, cost[taken].sum()
    print(f"{len(taken)} tests reach {_SHARE:.1%} of {notes.n_items:,} lines and branches, in {spent:.0f} s")
    for i in np.argsort(cost):
        if names[i] not in functions and not _is_never_quick(notes.tests[i]) and spent + cost[i] <= part * cost.sum():
            taken.append(i)
            functions.add(names[i])
            spent += cost[i]
    print(
        f"{len(taken)} of {len(notes.tests)} tests, of {len(functions)} functions, are quick: "
        f"{spent:.0f} s of {cost.sum():.0f} s"
    )
    return {notes.tests[i] for i in taken}


def share_of_quick(notes: Notes, full: Full) -> float:
    """Return the share of what all tests reach that those reach that are not listed."""
    reached = np.zeros(notes.n_items, dtype=bool)
    for nodeid, items in zip(notes.tests, notes.reached, strict=True):
        if nodeid not in full:
            reached[items] = True
    return float(reached.mean())


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
    notes = Notes(options.folder or NOTES)
    if options.check:
        share = share_of_quick(notes, listed())
        print(f"the quick run reaches {share:.2%} of the lines and branches that all tests reach")
        return int(share < ENOUGH)
    LIST.write_text(as_list(notes.tests, choose(notes, options.part)), "utf-8")
    print(f"wrote {LIST.relative_to(ROOT)}: the quick run reaches {share_of_quick(notes, listed()):.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
