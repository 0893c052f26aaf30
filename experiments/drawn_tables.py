"""Measure tables that a joint model draws beside held-out rows.

Usage: python -m experiments.drawn_tables --output FILE [--tables NAME …] [--methods NAME …] [--again] [--beside FILE]

Each table has at most 3,000 rows without gaps, and its first 20 columns. A method learns from one half of the rows and
draws as many; these are compared with the other half. --output names a file of JSON lines; what it has is not measured
again, except with --again. --tables without a name shows the file alone. The methods:

joint           `JointModel.sample`.
copula          A Gaussian copula of the values of the training rows; the categories of a column are intervals in the
                order of their frequency, as in SDV.
forest          The adversarial random forest of arfpy, left out where that is not installed. Its numbers in columns of
                whole numbers are rounded, as those of its package for R are.
training rows   The training half itself: what a perfect method would reach.

The figures: the largest difference of correlations of two numbers; the share of the quantiles 0.01, 0.05, 0.25, 0.5,
0.75, 0.95 and 0.99 of numbers within two standard errors of those of the held-out half, by its order statistics; the
AUC of `compare_tables` (0.5 is perfect), and its mean distance of columns; the share of drawn numbers outside of the
range of the training rows; and that of numbers that are not whole, in columns of whole numbers.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from unittest import mock

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

import posteriori as po
from experiments.joint import Line, methods_left
from experiments.joint_law import HALVES, few_rows, half_of, halved, keep, read_frames, read_lines, warm_up
from experiments.page import markdown_table
from experiments.real_tables import SEED, data_folder

MOST_ROWS = 3000
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
# fmt: off
TABLES = (
    "Default", "adult", "concrete", "diamonds", "german",
    "magic", "page_blocks", "pendigits", "slid", "telco_churn",
)
# fmt: on
FIGURES = {
    "correlation": "largest difference of correlations",
    "quantiles": "quantiles within two errors",
    "auc": "AUC",
    "distance": "distance of columns",
    "outside": "outside of the range",
    "not_whole": "not whole",
    "seconds": "CPU s",
}


# Methods -----------------------------------------------------------------------------------------------------------


def by_joint_model(train: pl.DataFrame) -> pl.DataFrame:
    """Return as many rows as a joint model learned from."""
    found: pl.DataFrame = po.JointModel(keep_rows=False, n_jobs=1).fit(train).sample(len(train), random_state=SEED)
    return found


def by_copula(train: pl.DataFrame) -> pl.DataFrame:
    """Return rows of a Gaussian copula: normal scores of the ranks, their correlations, and the training values."""
    n, rng = len(train), np.random.default_rng(SEED)
    scores, ordered = [], []
    for column in train:
        _, place, count = np.unique(column.to_numpy(), return_inverse=True, return_counts=True)
        if not column.dtype.is_numeric():
            place = np.argsort(np.argsort(-count, kind="stable"))[place]
        order = np.lexsort((rng.random(n), place))  # equal values are in random order
        ordered.append(column[order])
        scores.append(np.empty(n))
        scores[-1][order] = ndtri((np.arange(n) + 0.5) / n)
    drawn = rng.multivariate_normal(np.zeros(len(scores)), np.corrcoef(scores), n)
    places = (ndtr(drawn) * n).astype(int)
    return pl.DataFrame([column[places[:, j]] for j, column in enumerate(ordered)])


def by_forest(train: pl.DataFrame) -> pl.DataFrame:
    """Return rows of an adversarial random forest."""
    import pandas
    from arfpy import arf

    # Columns are numbered, as arfpy 0.1.1 looks them up by position, which pandas 3 takes as a name.
    cells = {
        j: column.cast(pl.Float64).to_numpy() if column.dtype.is_numeric() else pandas.Categorical(column.to_list())
        for j, column in enumerate(train)
    }
    with mock.patch.object(np, "in1d", np.isin, create=True):  # which NumPy 2.4 has removed
        forest = arf.arf(x=pandas.DataFrame(cells), verbose=False, random_state=SEED)
        forest.forde()
        np.random.seed(SEED)  # noqa: NPY002 - arfpy has no other seed
        found = forest.forge(n=len(train))
    drawn = pl.DataFrame({name: found[j].tolist() for j, name in enumerate(train.columns)})
    return drawn.with_columns(pl.col(name).round() for name in whole_columns(train))


METHODS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "joint": by_joint_model,
    "copula": by_copula,
    "forest": by_forest,
    "training rows": lambda train: train,
}
_PACKAGES = dict.fromkeys(METHODS, "posteriori") | {"forest": "arfpy"}


# Figures -----------------------------------------------------------------------------------------------------------


def whole_columns(frame: pl.DataFrame) -> list[str]:
    """Return the names of the columns of whole numbers."""
    return [one.name for one in frame if one.dtype.is_numeric() and bool((one == one.round()).all())]


def correlation_apart(real: np.ndarray, drawn: np.ndarray) -> float:
    """Return the largest difference of correlations of two columns, NaN for fewer than two, of cells (n, d)."""
    if real.shape[1] < 2:
        return float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):  # of constant columns
        apart = np.abs(np.corrcoef(real, rowvar=False) - np.corrcoef(drawn, rowvar=False))
    return float(np.nanmax(apart))


def quantiles_within(real: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return which quantiles of drawn numbers are within two standard errors of the real ones, (L,).

    The error of a quantile is that of the number of rows below it, so that the ends are order statistics.
    """
    n, levels, ordered = len(real), np.array(LEVELS), np.sort(real)
    error = 2.0 * np.sqrt(n * levels * (1.0 - levels))
    low, high = (np.clip(one, 0, n - 1).astype(int) for one in (n * levels - error - 1.0, np.ceil(n * levels + error)))
    found = np.quantile(drawn, levels, method="inverted_cdf")
    return np.asarray((ordered[low] <= found) & (found <= ordered[high]))


def figures_of(train: pl.DataFrame, test: pl.DataFrame, drawn: pl.DataFrame) -> Line:
    """Return how drawn rows differ from the held-out ones, and leave the range and the grid of the training rows."""
    numbers = [name for name in drawn.columns if test[name].dtype.is_numeric()]
    learned, real, made = (one.select(pl.col(numbers).cast(pl.Float64)).to_numpy() for one in (train, test, drawn))
    within = [quantiles_within(real[:, j], made[:, j]) for j in range(len(numbers))]
    whole = drawn.select(name for name in whole_columns(train) if name in numbers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the pool that is the judge
        compared = po.compare_tables(test, drawn)
    return {
        "correlation": correlation_apart(real, made),
        "quantiles": float(np.mean(within)) if within else float("nan"),
        "auc": compared.auc,
        "distance": compared.columns["distance"].mean(),
        "outside": float(np.mean((made < learned.min(axis=0)) | (made > learned.max(axis=0)))),
        "not_whole": float(np.mean(whole.to_numpy() != np.round(whole.to_numpy()))) if whole.width else float("nan"),
    }


def measure(output: Path, names: Collection[str], methods: Sequence[str], again: bool = False) -> None:
    """Measure what the file does not have, and store it at once."""
    folder = data_folder()
    if folder is None:
        raise SystemExit("the tables are absent: set POSTERIORI_DATA")
    done: dict[str, set[str]] = {}
    for line in read_lines(output):
        done.setdefault(line["table"], set()).add(line["part"])
    warm_up()
    wanted = {name: package for name, package in _PACKAGES.items() if name in methods}
    for name, frame in read_frames(folder, names):
        train, test = halved(few_rows(frame, MOST_ROWS))
        for method in methods_left(wanted, set() if again else done.get(name, set())):
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of EM that has few steps, and of arfpy
                drawn = METHODS[method](train)
            about = {"part": method, "table": name, "half": half_of(name), "seconds": time.process_time() - begun}
            keep(output, [about | figures_of(train, test, drawn)], again)
            print(name, method, flush=True)


def summary(lines: Sequence[Line]) -> str:
    """Return a line per half and method, of tables that all methods have, and then one per table and method."""
    methods = [name for name in METHODS if any(line["part"] == name for line in lines)]
    cells = {(line["table"], line["part"]): line for line in lines}
    every = sorted({line["table"] for line in lines})
    common = [table for table in every if all((table, method) in cells for method in methods)]
    groups = {f"{half} half": [table for table in common if half_of(table) == half] for half in HALVES}
    groups |= {table: [table] for table in every}
    found = []
    for title, some in groups.items():
        for method in methods:
            own = [cells[table, method] for table in some if (table, method) in cells]
            if own:
                head = f"{title} ({len(own)})" if title not in every else title
                found.append([head, method, *(_mean([line[name] for line in own]) for name in FIGURES)])
    return markdown_table(["tables", "method", *FIGURES.values()], found)


def _mean(values: Sequence[float]) -> str:
    known = [value for value in values if value is not None and np.isfinite(value)]
    return f"{np.mean(known):.3f}" if known else "–"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--tables", nargs="*", default=TABLES, metavar="NAME")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure what the file has again")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="scores of an earlier state")
    asked = parser.parse_args()
    measure(asked.output, asked.tables, asked.methods, asked.again)
    for path in (asked.beside, asked.output):
        if path is not None:
            print(f"\n{path.name}\n\n{summary(read_lines(path))}")


if __name__ == "__main__":
    main()
