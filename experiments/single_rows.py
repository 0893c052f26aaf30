"""Measure the pool in single rows: with one and two cells unknown, and with one and two cells known.

Usage: python -m experiments.single_rows [--rows N] [--tables a,b] [--keep FILE] [--before FILE] [--write]

The default pool learns from 70 % of at most N rows (default 2,500) of every table of 100 rows or more.

One unknown: the posterior of a row without one cell should lie between those with its values: the row's own, their
neighbours and quantiles of the training rows, or the categories. Two unknown: with pairs of values of rows.
One known, two known: the posterior should be the share of the classes among the training rows with these cells; of
categories and numbers of few values, in columns without gaps, that 100 training rows or more have. The distance of two
distributions is half the sum of absolute differences. Hidden: the log-loss of the other rows with random cells hidden,
and by how much it exceeds that of the class prior at most, also where whole columns are hidden.
With --keep, figures are stored in a file, and tables already in it are not measured again. With --before, figures of
another state stand beside. With --write, the tables go into docs/measured/pool_notebook.md.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import polars as pl

import posteriori as po
from experiments.hidden_at_prediction import hidden
from experiments.page import POOL_NOTEBOOK, markdown_table, replace_block
from experiments.real_tables import SEED, Table, data_folder, in_first_half, read_index, tables
from posteriori.model_selection.metrics import log_loss

SHARES = (0.0, 0.05, 0.25, 0.5, 0.8, 0.95, 1.0)
FEWEST_ROWS, FEWEST_OF_VALUE = 100, 100
N_ROWS, N_COLUMNS, N_PAIRS, N_VALUES = 30, 12, 8, 40
MOST_CATEGORIES, FEW_VALUES = 12, 16
NEIGHBOURS = np.array([-0.06, -0.03, -0.01, 0.0, 0.01, 0.03, 0.06])  # in shares of the training rows
OUTSIDE, ABOVE = 0.01, 0.01
UNKNOWN, KNOWN = ("one unknown", "two unknown"), ("one known", "two known")
Figures = dict[str, Any]


def grid(column: pl.Series, own: Any) -> list[Any]:
    """Return values of a column: some categories, or quantiles and the neighbours of a value."""
    present = column.drop_nulls()
    if not column.dtype.is_numeric():
        return [own, *present.value_counts(sort=True)[column.name].head(MOST_CATEGORIES).to_list()]
    values = present.sort()
    near = values.search_sorted(own) + (NEIGHBOURS * len(values)).astype(int)
    places = np.concatenate([near, np.linspace(0, len(values) - 1, 10).astype(int)])
    return [own, *values.gather(np.unique(np.clip(places, 0, len(values) - 1))).to_list()]


def outside(model: Any, row: dict[str, Any], answers: Sequence[dict[str, Any]], schema: pl.Schema) -> float:
    """Return how far the posterior of a row lies outside of those with the answers for some of its cells."""
    rows = pl.DataFrame([row | dict.fromkeys(answers[0]), *({**row, **one} for one in answers)], schema=schema)
    first, *others = model.predict_proba(rows)
    low, high = np.min(others, axis=0), np.max(others, axis=0)
    return float(np.maximum(np.maximum(low - first, first - high), 0.0).max())


def unknown(model: Any, train: pl.DataFrame, rows: pl.DataFrame, rng: np.random.Generator) -> Figures:
    """Return the distances with one and with two cells unknown."""
    found: dict[str, list[float]] = {name: [] for name in UNKNOWN}
    varied = [name for name in train.columns if train[name].drop_nulls().n_unique() > 1]
    columns = rng.permutation(varied)[:N_COLUMNS].tolist()
    for row in rows.rows(named=True):
        present = [name for name in columns if row[name] is not None]
        for name in present:
            answers = [{name: value} for value in grid(train[name], row[name])]
            found["one unknown"].append(outside(model, row, answers, train.schema))
        for _ in range(N_PAIRS if len(present) > 1 else 0):
            pair = rng.permutation(present)[:2].tolist()
            drawn = (
                train.select(pair).drop_nulls().sample(N_VALUES, with_replacement=True, seed=int(rng.integers(2**31)))
            )
            answers = [{name: row[name] for name in pair}, *drawn.rows(named=True)]
            found["two unknown"].append(outside(model, row, answers, train.schema))
    return {
        name: [float(np.mean(np.array(one) > OUTSIDE)), float(np.mean(one)), float(np.max(one))]
        for name, one in found.items()
        if one
    }


def known_cells(train: pl.DataFrame) -> list[tuple[str, Any, pl.Series]]:
    """Return the cells that many training rows have, with the rows."""
    cells = []
    for name in train.columns:
        column = train[name]
        is_few = not column.dtype.is_numeric() or column.n_unique() <= FEW_VALUES
        if is_few and not column.null_count() and column.n_unique() > 1:
            for value in column.unique().sort().to_list():
                rows = column == value
                if rows.sum() >= FEWEST_OF_VALUE:
                    cells.append((name, value, rows))
    return cells


def known(model: Any, train: pl.DataFrame, labels: pl.Series, rng: np.random.Generator) -> Figures:
    """Return the distances from the shares of the classes with one and with two cells known."""
    cells = known_cells(train)
    pairs = [
        (one, other)
        for one, other in (rng.choice(len(cells), 2, replace=False) for _ in range(600 if len(cells) > 1 else 0))
        if cells[one][0] != cells[other][0] and (cells[one][2] & cells[other][2]).sum() >= FEWEST_OF_VALUE
    ]
    found = {}
    for title, sets in zip(KNOWN, ([(k,) for k in range(len(cells))], pairs[:200]), strict=True):
        rows, shares = [], []
        for places in sets:
            chosen = np.logical_and.reduce([cells[k][2].to_numpy() for k in places])
            of_rows = labels.filter(pl.Series(chosen))
            shares.append([(of_rows == str(label)).mean() for label in model.classes_])
            rows.append({cells[k][0]: cells[k][1] for k in places})
        if rows:
            posterior = model.predict_proba(pl.DataFrame(rows, schema=train.schema))
            distance = 0.5 * np.abs(posterior - np.array(shares)).sum(axis=1)
            found[title] = [float(distance.mean()), float(distance.max())]
    return found


def measure(table: Table) -> Figures:
    """Return the figures of a table."""
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(table.y))
    training, other = np.sort(order[: int(0.7 * len(order))]), np.sort(order[int(0.7 * len(order)) :])
    train, labels = table.X[training], table.y[training].cast(pl.String)
    rest, truth = table.X[other], table.y[other].cast(pl.String)
    model = po.GenerativeClassifier(n_jobs=1).fit(train, labels)
    places = np.searchsorted(model.classes_, truth.to_numpy())

    def loss_of(share: float, way: str) -> float:
        copies = range(3 if 0.0 < share < 1.0 else 1)
        rows = [hidden(rest, share, way, copy) for copy in copies]
        return float(np.mean([log_loss(places, model.predict_proba(one)) for one in rows]))

    figures: Figures = {f"hidden {share:.0%}": loss_of(share, "cells") for share in SHARES}
    losses = [figures[f"hidden {share:.0%}"] for share in SHARES] + [loss_of(share, "columns") for share in SHARES]
    figures["above prior"] = max(losses) - figures["hidden 100%"]
    rows = rest[rng.permutation(rest.height)[:N_ROWS]]
    return figures | unknown(model, train, rows, rng) | known(model, train, labels, rng)


def lines(figures: dict[str, Figures], state: str) -> Iterator[list[str]]:
    """Yield a line for each half."""
    for half, belongs in (("first half", in_first_half), ("second half", lambda name: not in_first_half(name))):
        chosen = {name: one for name, one in figures.items() if belongs(name)}
        cells = [f"{half} ({len(chosen)}), {state}"]
        for title in UNKNOWN:
            of_title = {name: one[title] for name, one in chosen.items() if title in one}
            share, mean, _ = np.mean(list(of_title.values()), axis=0)
            worst = max(of_title, key=lambda name: of_title[name][2])
            cells.append(f"{share:.1%} · {mean:.4f} · {of_title[worst][2]:.2f} ({worst})")
        for title in KNOWN:
            of_title = {name: one[title] for name, one in chosen.items() if title in one}
            worst = max(of_title, key=lambda name: of_title[name][1])
            mean = np.mean([one[0] for one in of_title.values()])
            cells.append(f"{100 * mean:.1f} · {100 * of_title[worst][1]:.1f} ({worst})")
        yield cells


def losses(figures: dict[str, Figures], state: str) -> Iterator[list[str]]:
    """Yield a line of log-losses for each half."""
    for half, belongs in (("first half", in_first_half), ("second half", lambda name: not in_first_half(name))):
        chosen = [one for name, one in figures.items() if belongs(name)]
        means = [np.mean([one[f"hidden {share:.0%}"] for one in chosen]) for share in SHARES]
        above = sum(one["above prior"] > ABOVE for one in chosen), max(one["above prior"] for one in chosen)
        yield [f"{half}, {state}", *(f"{mean:.4f}" for mean in means), f"{above[0]} · {above[1]:.3f}"]


def main() -> None:
    """Measure the tables, and print or write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--tables")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("there is no folder of tables, so nothing is measured")
    names = asked.tables.split(",") if asked.tables else [line["name"] for line in read_index(folder)]
    figures = json.loads(asked.keep.read_text()) if asked.keep and asked.keep.exists() else {}
    warnings.simplefilter("ignore", UserWarning)
    for table in tables(folder, [name for name in names if name not in figures], asked.rows):
        if len(table.y) >= FEWEST_ROWS:
            figures[table.name] = measure(table)
            if asked.keep:
                asked.keep.write_text(json.dumps(figures, indent=1))
    states = {"now": figures} | ({"before": json.loads(asked.before.read_text())} if asked.before else {})
    pairs = [(state, of_state) for state, of_state in sorted(states.items())]
    head = ["tables", *(f"{title}: outside · mean · worst" for title in UNKNOWN)]
    head += [f"{title}, points: mean · worst" for title in KNOWN]
    text = markdown_table(head, [line for state, one in pairs for line in lines(one, state)])
    head = ["log-loss", *(f"{share:.0%} hidden" for share in SHARES), "tables above the prior by 0.01 · most"]
    text += "\n\n" + markdown_table(head, [line for state, one in pairs for line in losses(one, state)])
    print(text)
    if asked.write:
        replace_block("single rows", text, POOL_NOTEBOOK)


if __name__ == "__main__":
    main()
