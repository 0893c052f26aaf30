"""Measure what docs/scale.md works out: seconds per row, bytes of statistics, seconds to add them.

Usage: python -m experiments.scale   (two minutes, on a machine that does nothing else)
"""

from __future__ import annotations

import math
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from posteriori.statistics import CountTogether
from posteriori.support.threads import n_threads
from posteriori.tables import Assignment, Codes

PAGE = DOCS / "scale.md"
NETWORK = 1.25e9  # bytes per second: 10 Gbit/s, taken and not measured
PARTITION = 1_000_000  # rows
BATCH = 40_000  # rows that one thread counts before tables are added
MODELS = {"naive Bayes": po.NaiveBayes, "LDA": po.GaussianDiscriminant, "TAN": po.TreeAugmentedNaiveBayes}
ROWS = (1e9, 1e10, 1e12)
WORKERS = (1, 10, 1000)
WIDTHS = ((20, 10, 2), (50, 20, 5), (100, 20, 10), (300, 10, 5))  # columns, categories, classes


@dataclass(frozen=True)
class Cost:
    """What a fit takes: seconds per row on one worker, bytes of its statistics, seconds to add two of them."""

    row: float
    size: int
    add: float

    def fold(self, rows: float, workers: int) -> float:
        """Return the seconds in which all workers go through their rows and add up their own partitions."""
        partitions = rows / PARTITION / workers
        return rows / workers * self.row + max(partitions - 1.0, 0.0) * self.add

    def merge(self, workers: int) -> float:
        """Return the seconds in which the workers' sums are sent and added in pairs."""
        return math.ceil(math.log2(workers)) * (self.size / NETWORK + self.add) if workers > 1 else 0.0

    def most_workers(self, rows: float) -> float:
        """Return from how many workers on the merge takes longer than the fold: W·⌈log₂ W⌉ as large as this."""
        level = self.size / NETWORK + self.add
        workers = 2.0
        while self.fold(rows, int(workers)) > self.merge(int(workers)) and workers < 1e9:
            workers *= 1.05
        return workers if level > 0 else math.inf


def table(n: int, rng: np.random.Generator) -> pl.DataFrame:
    """Return n rows of 16 numbers, 4 strings and 3 classes, as those of benchmarks/sources.py."""
    y = rng.integers(0, 3, n)
    columns: dict[str, Any] = {f"x{j}": rng.normal(0.3 * y, 1.0) for j in range(16)}
    for j in range(4):
        k = 5 * (j + 1)
        columns[f"s{j}"] = np.array([f"category {c}" for c in range(k)])[(rng.integers(0, k, n) + y) % k]
    return pl.DataFrame(columns | {"y": np.array(["a", "b", "c"])[y]})


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the median seconds of some work, after one run to warm up."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measured(model: Any, rows: Any, n: int, y: Any = None) -> Cost:
    """Return what a fit of n rows costs."""
    row = seconds(lambda: model.fit(rows, y)) / n
    sums = model.statistics_
    return Cost(row, len(pickle.dumps(sums)), seconds(lambda: sums + sums))


def costs_of_files() -> dict[str, Cost]:
    """Return what each model costs on rows in Parquet files."""
    n = 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        table(n, np.random.default_rng(0)).write_parquet(path, row_group_size=1 << 18)
        return {name: measured(model(), po.scan(path, target="y"), n) for name, model in MODELS.items()}


def costs_of_pairs() -> dict[tuple[int, int, int], Cost]:
    """Return what it costs to count all pairs of columns of categories, of rows in memory, by their width."""
    found = {}
    for d, k, c in WIDTHS:
        rng = np.random.default_rng(0)
        tile = Codes(rng.integers(1, k + 1, (BATCH, d)).astype(np.uint8), (k,) * d)
        labels = Assignment(rng.integers(0, c, BATCH).astype(np.int32), np.ones(BATCH), c)
        sums = CountTogether().of(tile, labels)
        add = seconds(lambda sums=sums: sums + sums)
        batch = seconds(lambda tile=tile, labels=labels: CountTogether().of(tile, labels))
        found[d, k, c] = Cost((batch / n_threads(None) + add) / BATCH, sums.cells.nbytes, add)
    return found


def duration(t: float) -> str:
    """Write seconds in the unit that suits them."""
    for size, unit in (
        (86400 * 365.0, "years"),
        (86400.0, "days"),
        (3600.0, "h"),
        (60.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
    ):
        if t >= size:
            return f"{t / size:.3g} {unit}"
    return f"{t * 1e6:.3g} µs"


def volume(size: float) -> str:
    """Write bytes in the unit that suits them."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def table_of_costs(costs: dict[str, Cost]) -> str:
    """Return what was measured of each model on files."""
    lines = [
        [name, f"{one.row * 1e9:.0f} ns", f"{1 / one.row / 1e6:.1f} million", volume(one.size), duration(one.add)]
        for name, one in costs.items()
    ]
    return markdown_table(["model", "per row", "rows per second", "statistics", "to add two"], lines)


def table_of_clusters(costs: dict[str, Cost]) -> str:
    """Return what fits of many rows take on many workers."""
    lines = []
    for name, one in costs.items():
        for rows in ROWS:
            line = [name, f"1e{math.log10(rows):.0f}"]
            for workers in WORKERS:
                fold, merge = one.fold(rows, workers), one.merge(workers)
                line.append(duration(fold + merge) + (f" ({duration(merge)} of it)" if merge else ""))
            hours = one.fold(rows, 1) / 3600
            lines.append([*line, f"{hours:,.1f}" if hours < 100 else f"{hours:,.0f}"])
    workers = [f"{w} worker{'s' if w > 1 else ''}" for w in WORKERS]
    return markdown_table(["model", "rows", *workers, "worker-hours"], lines)


def table_of_widths(costs: dict[tuple[int, int, int], Cost]) -> str:
    """Return from how many workers on the merge of pair tables takes longer than going through the rows."""
    lines = []
    for (d, k, c), one in costs.items():
        line = [f"{d}×{k}, {c} classes", volume(one.size), f"{one.row * 1e9:,.0f} ns", duration(one.add)]
        for rows in (1e8, 1e10, 1e12):
            most = one.most_workers(rows)
            line.append(f"{most:,.0f}" if most < 1e5 else f"{most:.0e}".replace("e+0", "e"))
        lines.append(line)
    return markdown_table(
        ["columns × categories", "pair tables", "a row", "to add two", "1e8 rows", "1e10", "1e12"], lines
    )


def main() -> None:
    """Measure, and write the tables into the page."""
    costs = costs_of_files()
    replace_block("machine", f"A worker is a machine like that of the measurement: {n_threads(None)} cores.", PAGE)
    replace_block("costs", table_of_costs(costs), PAGE)
    replace_block("clusters", table_of_clusters(costs), PAGE)
    replace_block("widths", table_of_widths(costs_of_pairs()), PAGE)


if __name__ == "__main__":
    main()
