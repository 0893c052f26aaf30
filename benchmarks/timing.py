"""How the benchmarks time: alternately, in one run, so that a drift of the machine touches both sides."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


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
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[float, float]:
    """Return the median seconds of each, run in turn after one warm-up of each."""
    ours(), theirs()
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for place, work in enumerate((ours, theirs)):
            gc.collect()
            start = time.perf_counter()
            work()
            seconds[place].append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def show(seconds: float) -> str:
    """Write seconds in the unit that suits them."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def faster(work: str, ours: float, theirs: float, at_least: float, than: str) -> Row:
    """Return a row in which we should take at most 1 / at_least of their time."""
    ratio = theirs / ours
    return Row(
        work, show(ours), f"{than} {show(theirs)}", f"{ratio:.1f}×", f"≥ {at_least:g}×", ratio >= at_least
    )


def within(work: str, ours: float, theirs: float, at_most: float, of: str) -> Row:
    """Return a row in which we should take at most at_most times their time."""
    ratio = ours / theirs
    return Row(work, show(ours), f"{of} {show(theirs)}", f"{ratio:.2f}×", f"≤ {at_most:g}×", ratio <= at_most)


def markdown(rows: list[Row]) -> str:
    """Write the rows as a Markdown table."""
    lines = ["| work | posteriori | against | ratio | target | met |", "|-|-|-|-|-|-|"]
    lines += [
        f"| {row.work} | {row.ours} | {row.theirs} | {row.ratio} | {row.target} | {'yes' if row.met else '**no**'} |"
        for row in rows
    ]
    return "\n".join(lines)
