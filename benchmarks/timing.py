"""How the benchmarks time: alternately, in one run, so that a drift of the machine touches both sides."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from experiments.page import markdown_table

RESULTS = Path(__file__).parent / "RESULTS.md"
PREFACE = """# Speed

Written by `make bench`. Every ratio is of medians of runs taken in turn, in one process, on the same data. The line
below each table names the commit that was measured; in tables that are older than this rule, the commit that wrote it.
"""


@dataclass(frozen=True)
class Row:
    """A line of the table: what was asked for, and what was measured."""

    work: str
    ours: str
    theirs: str
    ratio: str
    target: str
    met: bool


def alternately(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Return the median seconds of each by a clock, run in turn after one warm-up of each."""
    ours(), theirs()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for position, work in enumerate((ours, theirs)):
            gc.collect()
            start = clock()
            work()
            seconds[position].append(clock() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def show(seconds: float) -> str:
    """Write seconds in the unit that suits them."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def faster(work: str, ours: float, theirs: float, at_least: float, than: str) -> Row:
    """Return a row in which we should take at most 1 / at_least of their time."""
    ratio = theirs / ours
    return Row(work, show(ours), f"{than} {show(theirs)}", f"{ratio:.1f}×", f"≥ {at_least:g}×", ratio >= at_least)


def within(work: str, ours: float, theirs: float, at_most: float, of: str) -> Row:
    """Return a row in which we should take at most at_most times their time."""
    ratio = ours / theirs
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
    quick = "--quick" in sys.argv[1:]
    warnings.simplefilter("error")
    start = time.perf_counter()
    table = markdown(rows(quick))
    took = show(time.perf_counter() - start)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn", "pandas", "polars"))
    where = f"{platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}; "
    section = f"## {title}\n\n{table}\n\n{where}posteriori {version('posteriori')}, commit {commit()}. Took {took}.\n"
    print(section)
    if quick:
        return
    page = RESULTS.read_text() if RESULTS.exists() else PREFACE
    before, found, after = page.partition(f"## {title}\n")
    following = after.find("\n## ") if found else -1
    rest = after[following + 1 :] if following >= 0 else ""
    RESULTS.write_text(before + section + ("\n" + rest if rest else "") if found else f"{page.rstrip()}\n\n{section}")
