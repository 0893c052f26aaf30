"""Choose the tests of the quick run: those that reach the lines and branches in the fewest seconds.

``python -m tests.quick`` (``make quick``) runs all tests with coverage, and notes for each the lines and branches of
the package that it reaches, and its seconds. A greedy set cover [1]_ takes the test with the most lines and branches
per second that no test before it reaches, until nearly all are reached. Coverage does not see what a test asserts, so the
cheapest case of each function joins, the cheapest first, while the run has seconds left. The others are listed in
``tests/full.txt``; a test that is not listed is quick, so that a new one runs at once.

``--from FOLDER`` chooses by the notes of an earlier run. ``--check`` writes nothing: it exits with 1 if the tests that
are quick now reach less than 99.5 percent of what all reach, or if the list names tests that no longer exist.

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
SECONDS = 200.0  # of all processes together, as measured with coverage
ENOUGH = 0.995  # of the lines and branches that all tests reach: below it the list is chosen again
_SHARE = 0.998  # at which the cover ends: the last lines cost the most seconds, such as a machine of Java
_OVERHEAD = 0.02  # seconds that a test costs beside its own: reports between processes
_ALL = "not prose"


# --- The list


def listed() -> frozenset[str]:
    """Return the tests that the quick run leaves out: files, functions of files, and cases of functions."""
    return frozenset(LIST.read_text("utf-8").splitlines()) if LIST.exists() else frozenset()


def names_of(nodeid: str) -> tuple[str, str, str]:
    """Return the names under which a test may be listed: its file, its function, itself.

    >>> names_of("tests/a/test_b.py::test_c[x::y-1]")
    ('tests/a/test_b.py', 'tests/a/test_b.py::test_c', 'tests/a/test_b.py::test_c[x::y-1]')
    """
    function = nodeid.partition("[")[0]
    return function.partition("::")[0], function, nodeid


def as_list(tests: list[str], quick: set[str]) -> list[str]:
    """Return what is listed: whole files and functions of which no test is quick, and cases."""
    alive = {name for nodeid in quick for name in names_of(nodeid)}
    return sorted(
        {next(name for name in names_of(nodeid) if name not in alive) for nodeid in tests if nodeid not in quick}
    )


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
        self.n_items = 1 + max(max(items) for items in self.items)
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


def cover(notes: Notes, share: float = 1.0) -> list[int]:
    """Return the numbers of tests that reach a share of everything: greedy, without those that later ones replace."""
    left = np.ones(notes.n_items, dtype=bool)
    cost = np.array(notes.seconds) + _OVERHEAD
    queue = [(-len(items) / cost[i], i) for i, items in enumerate(notes.reached)]
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


def choose(notes: Notes, seconds: float) -> set[str]:
    """Return the quick tests: the cover, then the cheapest case of each function while there are seconds left."""
    cost = np.array(notes.seconds) + _OVERHEAD
    taken = cover(notes, _SHARE)
    names = [names_of(nodeid)[1] for nodeid in notes.tests]
    functions, spent = {names[i] for i in taken}, cost[taken].sum()
    print(f"{len(taken)} tests reach {_SHARE:.1%} of {notes.n_items:,} lines and branches, in {spent:.0f} s")
    for i in np.argsort(cost):
        if names[i] not in functions and spent + cost[i] <= seconds:
            taken.append(i)
            functions.add(names[i])
            spent += cost[i]
    print(
        f"{len(taken)} of {len(notes.tests)} tests, of {len(functions)} functions, are quick: "
        f"{spent:.0f} s of {cost.sum():.0f} s"
    )
    return {notes.tests[i] for i in taken}


def share_of_quick(notes: Notes, full: frozenset[str]) -> float:
    """Return the share of what all tests reach that those reach that are not listed."""
    reached = np.zeros(notes.n_items, dtype=bool)
    for nodeid, items in zip(notes.tests, notes.reached, strict=True):
        if full.isdisjoint(names_of(nodeid)):
            reached[items] = True
    return float(reached.mean())


def main() -> int:
    """Measure, and write or check the list."""
    parser = argparse.ArgumentParser(
        prog="tests.quick", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--from", dest="folder", type=Path, help="the notes of an earlier run")
    parser.add_argument("--check", action="store_true", help="write nothing, and exit with 1 if the list is incomplete")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of all processes together ({SECONDS:.0f})")
    options = parser.parse_args()
    if options.folder is None:
        command = [sys.executable, "-m", "pytest", "-p", "tests.quick", "--record-tests", str(NOTES), "-m", _ALL]
        subprocess.run(command, cwd=ROOT, check=True)
    notes = Notes(options.folder or NOTES)
    if options.check:
        share, known = share_of_quick(notes, listed()), {name for nodeid in notes.tests for name in names_of(nodeid)}
        print(f"the quick run reaches {share:.2%} of the lines and branches that all tests reach")
        for gone in sorted(listed() - known):
            print(f"tests/full.txt names a test that does not exist: {gone}")
        return int(share < ENOUGH or not listed() <= known)
    LIST.write_text("\n".join(as_list(notes.tests, choose(notes, options.seconds))) + "\n", "utf-8")
    print(f"wrote {LIST.relative_to(ROOT)}: the quick run reaches {share_of_quick(notes, listed()):.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
