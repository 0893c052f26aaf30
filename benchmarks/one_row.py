"""One row at a time, by container, and the start of the command line: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.one_row [--quick]   (--quick: a tenth of the calls, to see that it runs)

Calls are timed in turn with GaussianNB of scikit-learn on a NumPy row. The times are medians of the CPU time of single
calls, so that other work on the machine counts little. A process of the command line is timed by its CPU time, too.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.naive_bayes import GaussianNB

import posteriori as po
from benchmarks.timing import Row, report, show, within
from posteriori.datasets import load_penguins

N_ROWS, N_COLUMNS, CALLS = 2000, 10, 500
_MAIN = "import sys; from posteriori.cli import main; sys.exit(main())"
_MODELS: dict[str, Callable[[], Any]] = {
    "NaiveBayes": po.NaiveBayes,
    "TreeAugmentedNaiveBayes": po.TreeAugmentedNaiveBayes,
    "GaussianDiscriminant": po.GaussianDiscriminant,
    "GenerativeClassifier": po.GenerativeClassifier,
}


def _medians(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median CPU seconds of each call; the calls take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(3):
            call()
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.thread_time()
            call()
            seconds[name].append(time.thread_time() - start)
    return {name: median(taken) for name, taken in seconds.items()}


def _calls(model: Any, of_array: Any, frame: pl.DataFrame, values: Any) -> dict[str, Callable[[], object]]:
    """Return one call per container: the same row as NumPy, polars, pandas, a dict, and a dict to the scorer."""
    pandas, row, scorer = pd.DataFrame(frame.to_dict(as_series=False)), frame.row(0, named=True), model.scorer()
    calls: dict[str, Callable[[], object]] = {
        "polars": lambda: model.predict_proba(frame),
        "pandas": lambda: model.predict_proba(pandas),
        "a dict": lambda: model.predict_proba(row),
        "a dict, by scorer()": lambda: scorer(row),
    }
    return calls if of_array is None else {"NumPy": lambda: of_array.predict_proba(values), **calls}


def _numbers(quick: bool) -> list[Row]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N_ROWS, N_COLUMNS))
    y = (values[:, 0] + values[:, 1] * values[:, 2] + rng.normal(size=N_ROWS) > 0).astype(int)
    frame = pl.DataFrame(values, schema=[f"c{j}" for j in range(N_COLUMNS)])
    theirs = GaussianNB().fit(values, y)
    rows = []
    for title, make in _MODELS.items():
        calls = _calls(make().fit(frame, y), make().fit(values, y), frame.head(1), values[:1])
        found = _medians({"": lambda: theirs.predict_proba(values[:1]), **calls}, CALLS // (10 if quick else 1))
        base = found.pop("")
        limit = 3.3 if title == "GenerativeClassifier" else 1.0
        for container, taken in found.items():
            rows.append(within(f"{title}, {N_COLUMNS} numbers, {container}", taken, base, limit, "GaussianNB on NumPy"))
    return rows


def _mixed(quick: bool) -> list[Row]:
    """Return the times of rows of strings and numbers, which GaussianNB cannot read: beside its time on NumPy."""
    rng = np.random.default_rng(0)
    values, y = rng.normal(size=(N_ROWS, 7)), rng.integers(0, 3, N_ROWS)
    theirs = GaussianNB().fit(values, y)
    penguins = load_penguins()
    rows = []
    for title in ("NaiveBayes", "GenerativeClassifier"):
        calls = _calls(_MODELS[title]().fit(penguins, "species"), None, penguins.drop("species").head(1), None)
        found = _medians({"": lambda: theirs.predict_proba(values[:1]), **calls}, CALLS // (10 if quick else 1))
        base = found.pop("")
        limit = 3.3 if title == "GenerativeClassifier" else 1.0
        for container, taken in found.items():
            rows.append(within(f"{title}, penguins, {container}", taken, base, limit, "GaussianNB on NumPy"))
    return rows


def _cpu_seconds(arguments: list[str]) -> float:
    """Return the CPU seconds of a run of the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", _MAIN, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _command_line(quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        model, table = str(Path(folder) / "model.posteriori"), str(Path(folder) / "one.csv")
        penguins = load_penguins()
        po.save(po.GenerativeClassifier().fit(penguins, "species"), model)
        penguins.head(1).write_csv(table)
        rows = []
        for work, arguments, limit in (
            ("posteriori --help", ["--help"], 0.3),
            ("posteriori predict, one row, the pool", ["predict", model, table], 1.0),
        ):
            _cpu_seconds(arguments)
            taken = median(_cpu_seconds(arguments) for _ in range(1 if quick else 5))
            rows.append(
                Row(
                    work,
                    f"{taken:.2f} s of CPU",
                    "—",
                    "—",
                    f"≤ {show(limit) if limit < 1 else '1.0 s'}",
                    taken <= limit,
                )
            )
        return rows


def rows(quick: bool) -> list[Row]:
    """Return the lines of the table."""
    return [*_numbers(quick), *_mixed(quick), *_command_line(quick)]


if __name__ == "__main__":
    report("One row at a time", rows)
