"""Compare the feature importance of the pool with permutation importance on new rows, and judge it on noise.

Usage: python -m experiments.importance [--rows N] [--tables a,b] [--keep FILE] [--write]

The default pool learns from 70 % of at most N rows (default 12,000) of ten tables, five of each half. Its `importance_`
is of out-of-fold rows. Permutation importance is the mean rise of the log-loss of the other 30 % over 5 shuffles of a
column. Both are compared by Spearman's rank correlation over the columns that are in no group of `importance_`, and
over those of them whose permutation importance is more than 2 standard errors from 0. Beside it stands the correlation
of permutation importance on one half of the other rows with that on the other half: what chance allows.
Noise: the pool learns again with shuffled copies of 5 columns; z is their importance over its standard error.
With --keep, figures are stored in a file, and tables already in it are not measured again. With --write, the table goes
into docs/guide/tasks/explain.md.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import polars as pl
from scipy.stats import spearmanr

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import SEED, Table, data_folder, tables

TABLES = "adult,car,electricity,german,krkopt,magic,marketing,mushroom,nursery,telco_churn"
N_SHUFFLES, N_NOISE = 5, 5
SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this
OF = ("", ": rank correlation", ": of halves")
Figures = dict[str, Any]


def losses(model: Any, rows: pl.DataFrame, truth: np.ndarray) -> np.ndarray:
    """Return the log-loss of each row."""
    return -np.log(np.maximum(model.predict_proba(rows)[np.arange(len(truth)), truth], SMALLEST))


def rises(model: Any, rows: pl.DataFrame, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the rise of the log-loss of each row without the cells of each column (d, n): the mean over shuffles."""
    whole, found = losses(model, rows, truth), []
    for name in rows.columns:
        shuffled = [rows.with_columns(rows[name][rng.permutation(rows.height)]) for _ in range(N_SHUFFLES)]
        found.append(np.mean([losses(model, one, truth) for one in shuffled], axis=0) - whole)
    return np.array(found)


def correlation(one: np.ndarray, other: np.ndarray, chosen: np.ndarray) -> float | None:
    """Return the rank correlation over the chosen columns, None of fewer than three."""
    return float(spearmanr(one[chosen], other[chosen]).statistic) if chosen.sum() > 2 else None


def with_noise(rows: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Return rows with shuffled copies of some columns, noise_0 and so on."""
    shuffled = [rows[:, int(j)][rng.permutation(rows.height)] for j in rng.permutation(rows.width)[:N_NOISE]]
    return rows.with_columns(column.alias(f"noise_{k}") for k, column in enumerate(shuffled))


def measure(table: Table) -> Figures:
    """Return the figures of a table."""
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(table.y))
    training, other = np.sort(order[: int(0.7 * len(order))]), order[int(0.7 * len(order)) :]
    train, labels = table.X[training], table.y[training].cast(pl.String)
    model = po.GenerativeClassifier(n_jobs=1).fit(train, labels)
    truth = np.searchsorted(model.classes_, table.y[other].cast(pl.String).to_numpy())
    rise, importance = rises(model, table.X[other], truth, rng), model.importance_
    mean, half = rise.mean(axis=1), len(other) // 2
    grouped = {name for group in importance.groups for name in group.columns}
    alone = np.array([name not in grouped for name in importance.names])
    certain = alone & (np.abs(mean) > 2.0 * rise.std(axis=1) / np.sqrt(len(other)))
    halves = rise[:, :half].mean(axis=1), rise[:, half:].mean(axis=1)
    noisy = with_noise(train, rng)
    noise = po.GenerativeClassifier(n_jobs=1).fit(noisy, labels).importance_
    quiet = (np.abs(noise.increase) <= 2.0 * noise.standard_error)[table.X.width :]
    return {
        "rows": len(other),
        "spearman": [
            [int(chosen.sum()), correlation(importance.increase, mean, chosen), correlation(*halves, chosen)]
            for chosen in (alone, certain)
        ],
        "quiet": float(quiet.mean()),
    }


def lines(figures: dict[str, Figures]) -> Iterator[list[str]]:
    """Yield a line for each table, and one with means."""
    cells = {name: [*one["spearman"][0], *one["spearman"][1]] for name, one in sorted(figures.items())}
    for name, of_table in cells.items():
        texts = ["–" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else f"{cell}" for cell in of_table]
        yield [name, f"{figures[name]['rows']:,}", *texts, f"{figures[name]['quiet']:.0%}"]
    known = [[one[k] for one in cells.values() if one[k] is not None] for k in (1, 2, 4, 5)]
    means = [f"{np.mean(one):.2f}" for one in known]
    yield ["mean", "", "", *means[:2], "", *means[2:], f"{np.mean([one['quiet'] for one in figures.values()]):.0%}"]


def main() -> None:
    """Measure the tables, and print or write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("there is no folder of tables, so nothing is measured")
    figures = json.loads(asked.keep.read_text()) if asked.keep and asked.keep.exists() else {}
    warnings.simplefilter("ignore", UserWarning)
    for table in tables(folder, [name for name in asked.tables.split(",") if name not in figures], asked.rows):
        figures[table.name] = measure(table)
        if asked.keep:
            asked.keep.write_text(json.dumps(figures, indent=1))
    head = ["table", "new rows", *(f"{which}{of}" for which in ("columns", "certain columns") for of in OF)]
    text = markdown_table([*head, "noise: \\|z\\| < 2"], lines(figures))
    print(text)
    if asked.write:
        replace_block("importance", text, DOCS / "guide" / "tasks" / "explain.md")


if __name__ == "__main__":
    main()
