"""How the benchmarks time: alternately, in one run, so that a drift of the machine touches both sides.

Every library, ours and the rivals, may use as many threads as there are cores that no other process uses when the run
begins: threads beyond those wait for each other, and count as CPU time. OMP_NUM_THREADS, if it is set, decides instead.
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from experiments.machine import THREADS, Moment, free_threads, limits, load_note, on_threads, others_now, threads
from experiments.page import markdown_table
from posteriori.version import __version__

RESULTS = Path(__file__).parent / "RESULTS.md"
PREFACE = """# Speed

Written by `make bench`. Every ratio is of medians of runs taken in turn, in one process, on the same data. Of two times
in a cell, the first is wall time and the second the CPU time of all threads. The line below each table names the commit
that was measured; in tables that are older than this rule, the commit that wrote it. It also gives the threads that
each library could use, and the cores that other processes used. Tables whose line does not give them are older: they
were measured with two threads on two cores, and perhaps beside other work.
"""
Seconds = np.ndarray  # of wall time and of CPU time of all threads of the process
WALL, CPU = 0, 1


@dataclass(frozen=True)
class Row:
    """A line of the table: what was asked for, and what was measured."""

    work: str
    ours: str
    theirs: str
    ratio: str
    target: str
    met: bool


def rival(model: Any) -> Any:
    """Return a model of another library, set to the number of threads of the run if it has such a parameter."""
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=threads())
    return model


def spent(work: Callable[[], object]) -> Seconds:
    """Return the wall and CPU seconds of some work."""
    gc.collect()
    start = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - start


def alternately(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> tuple[Seconds, Seconds]:
    """Return the median wall and CPU seconds of each, run in turn after one warm-up of each."""
    ours(), theirs()
    runs = np.array([[spent(work) for work in (ours, theirs)] for _ in range(repeats)])
    medians = np.median(runs, axis=0)
    return medians[0], medians[1]


def show(seconds: float | Seconds) -> str:
    """Write seconds in the unit that suits them; of a pair, wall time and CPU time."""
    if isinstance(seconds, np.ndarray):
        return f"{show(seconds[WALL])} (CPU {show(seconds[CPU])})"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def ratio_of(above: float | Seconds, below: float | Seconds, by: int = WALL) -> float:
    """Return a ratio of times: of pairs, by wall or by CPU time."""
    return float(np.atleast_1d(above)[by] / np.atleast_1d(below)[by])


def faster(
    work: str, ours: float | Seconds, theirs: float | Seconds, at_least: float, than: str, by: int = WALL
) -> Row:
    """Return a row in which we should take at most 1 / at_least of their time."""
    ratio = ratio_of(theirs, ours, by)
    return Row(work, show(ours), f"{than} {show(theirs)}", f"{ratio:.1f}×", f"≥ {at_least:g}×", ratio >= at_least)


def within(work: str, ours: float | Seconds, theirs: float | Seconds, at_most: float, of: str, by: int = WALL) -> Row:
    """Return a row in which we should take at most at_most times their time."""
    ratio = ratio_of(ours, theirs, by)
    return Row(work, show(ours), f"{of} {show(theirs)}", f"{ratio:.2f}×", f"≤ {at_most:g}×", ratio <= at_most)


def markdown(rows: list[Row]) -> str:
    """Write the rows as a Markdown table."""
    head = ["work", "posteriori", "against", "ratio", "target", "met"]
    cells = [[row.work, row.ours, row.theirs, row.ratio, row.target, "yes" if row.met else "**no**"] for row in rows]
    return markdown_table(head, cells)


def commit() -> str:
    """Return the short name of the commit that is measured, with a + if files were changed since."""
    name = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--dirty=+"],
        capture_output=True,
        text=True,
        cwd=RESULTS.parent,
        check=False,
    ).stdout
    return name.strip() or "unknown"


def report(title: str, rows: Callable[[bool], list[Row]]) -> None:
    """Run the benchmarks of a file, print their table, and put it in its place in RESULTS.md.

    With ``--quick`` in the command line a tenth of the rows is used and nothing is written.
    """
    before = others_now()
    if THREADS not in os.environ:  # begin again: libraries read the number of threads when they are loaded
        os.execve(sys.executable, sys.orig_argv, os.environ | limits(free_threads(before)))
    quick = "--quick" in sys.argv[1:]
    warnings.simplefilter("error")
    start = Moment.now()
    table = markdown(rows(quick))
    took, during = show(time.perf_counter() - start.wall), start.others()
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "pandas", "polars"))
    where = f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}; "
    load = f"{on_threads('Each library')}; {load_note(before, during, others_now())} before, during and after"
    made = f"{where}posteriori {__version__}, commit {commit()}. Took {took}. {load}."
    section = f"## {title}\n\n{table}\n\n{made}\n"
    print(section)
    if quick:
        return
    page = RESULTS.read_text() if RESULTS.exists() else PREFACE
    above, found, after = page.partition(f"## {title}\n")
    following = after.find("\n## ") if found else -1
    rest = after[following + 1 :] if following >= 0 else ""
    RESULTS.write_text(above + section + ("\n" + rest if rest else "") if found else f"{page.rstrip()}\n\n{section}")
