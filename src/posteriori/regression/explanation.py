"""Predictions of numbers as sums: the mean where nothing is known, plus what each column moves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.model.predictive import PredictiveDensity
from posteriori.pool.partial_rows import without_cells
from posteriori.regression.held_out import COVERAGE
from posteriori.support.formatting import cell_text, number, plural
from posteriori.support.lazy_polars import pl
from posteriori.support.markup import paragraph, table
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

ROTATIONS = 3  # of the order of columns, each also in reverse
_MOST_SHOWN = 5  # rows in a notebook
_MOST_LISTED = 30  # columns of a row there
_NO_CELL = "not known"
_AT_ONCE = 2048  # rows with hidden cells

Predict = Callable[[Batch], PredictiveDensity]


@dataclass(frozen=True)
class NumberExplanation:
    r"""Means of rows as sums: E[y | x] = base + Σ_j part_j, in units of the target.

    .. math:: \mathrm{part}_j = \frac{1}{|\Pi|} \sum_{\pi \in \Pi}
              \mathrm{E}[y \mid x_{\text{before } j} \text{ and } x_j] - \mathrm{E}[y \mid x_{\text{before } j}]

    where "before j" are the columns that an order π of the columns has before j, and all other cells are unknown, so
    integrated out. Over all orders the parts are Shapley values. Here Π holds at most six orders: a random one with a
    fixed seed, the same one begun after a third and two thirds of the columns, and each in reverse. With at most three
    columns these are all orders. The parts add up exactly in any case, and a cell that is missing has the part 0. A
    hidden cell counts as missing: in a column with gaps in training, the part includes what a gap itself says.

    Attributes
    ----------
    target : str
        The name of y.
    feature_names : tuple of str (d)
        The columns; those that the model ignores are left out.
    values : ndarray of object (n, d)
        Cells as the model reads them; None where missing.
    base : float
        The mean of y where nothing is known.
    parts : ndarray (n, d)
        By how much each column moves the mean.
    mean : ndarray (n,)
        E[y | x].
    width : ndarray (n,)
        The width of the central 90 % interval.
    width_changes : ndarray (n, d)
        The width minus that without the cell of the column: negative where it makes the prediction more certain. They
        do not add up to the width.

    References
    ----------
    Shapley, A value for n-person games (1953). Castro, Gómez & Tejada, Polynomial calculation of the Shapley value
    based on sampling, Computers & Operations Research 36 (2009). Mitchell et al., Sampling permutations for Shapley
    value estimation, JMLR 23 (2022), on orders with their reverses.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> model = po.GenerativeRegressor(members=["additive"]).fit(penguins, "body_mass_g")
    >>> explanation = model.explain(penguins.head(2))
    >>> explanation
    <NumberExplanation: 2 rows, 7 columns; print(….sum_table(row)) writes the sum out>
    >>> bool(abs(explanation.base + explanation.parts.sum(axis=1) - explanation.mean).max() < 1e-6)
    True
    """

    target: str
    feature_names: tuple[str, ...]
    values: Array
    base: float
    parts: Array
    mean: Array
    width: Array
    width_changes: Array

    def __len__(self) -> int:
        return len(self.mean)

    def __repr__(self) -> str:
        shape = f"{plural(len(self), 'row')}, {plural(len(self.feature_names), 'column')}"
        return f"<NumberExplanation: {shape}; print(….sum_table(row)) writes the sum out>"

    def to_polars(self) -> pl.DataFrame:
        """Return the terms of the sums as a table: one line per row and term.

        Returns
        -------
        polars DataFrame
            ``row``; ``column``, "base" or the name of a column; ``value``, its cell as text, null if it is missing;
            ``part``, which adds up per row to the mean; ``width_change``, null for the base.
        """
        n, d = self.parts.shape
        cells = [cell for row in self.values for cell in (None, *row)]
        changes = np.concatenate([np.full((n, 1), np.nan), self.width_changes], axis=1)
        return pl.DataFrame(
            {
                "row": np.repeat(np.arange(n), d + 1),
                "column": ["base", *self.feature_names] * n,
                "value": pl.Series(
                    [None if cell is None else cell_text(cell, longest=None) for cell in cells], dtype=pl.String
                ),
                "part": np.concatenate([np.full((n, 1), self.base), self.parts], axis=1).ravel(),
                "width_change": pl.Series(changes.ravel()).fill_nan(None),
            }
        )

    def to_pandas(self) -> Any:
        """Return the table of `to_polars` as a DataFrame of pandas, which needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dict(as_series=False))

    def sum_table(self, row: int = 0) -> str:
        """Return the sum of one row as text: the base, what each column adds, the greatest first, and the mean."""
        lines = [["column", f"adds to {self.target}", "90 % interval"], *self._lines(row, len(self.feature_names))]
        widths = [max(len(line[k]) for line in lines) for k in range(3)]
        written = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
        rule = "─" * len(written[0])
        return "\n".join([written[0], rule, *written[1:-1], rule, written[-1]])

    def ranked(self, row: int) -> list[int]:
        """Return the columns that are known in a row, those that move the mean most first."""
        known = [j for j, cell in enumerate(self.values[row]) if cell is not None]
        return sorted(known, key=lambda j: -abs(self.parts[row, j]))

    def _lines(self, row: int, most: int) -> list[list[str]]:
        """Return the terms of a row as text: of each what it is, what it adds, and how it changes the width."""
        ranked = self.ranked(row)
        lines = [["base", number(self.base, 4), ""]]
        for j in ranked[:most]:
            name = f"{self.feature_names[j]} = {cell_text(self.values[row, j])}"
            lines.append([name, _signed(self.parts[row, j]), _signed(self.width_changes[row, j])])
        if len(ranked) > most:
            rest = float(self.parts[row, ranked[most:]].sum())
            lines.append([plural(len(ranked) - most, "more column"), _signed(rest), ""])
        missing = len(self.feature_names) - len(ranked)
        if missing:
            lines.append([plural(missing, "column") + f" {_NO_CELL}", "0", ""])
        return [*lines, ["= mean", number(float(self.mean[row]), 4), f"width {number(float(self.width[row]), 4)}"]]

    def _repr_html_(self) -> str:
        """Return the sums of the first rows as tables."""
        head = ["column", f"adds to {self.target}", "changes the 90 % interval by"]
        shown = range(min(len(self), _MOST_SHOWN))
        parts = [table(f"row {row}", head, self._lines(row, _MOST_LISTED)) for row in shown]
        if len(self) > _MOST_SHOWN:
            parts.append(paragraph(f"… and {plural(len(self) - _MOST_SHOWN, 'more row')}"))
        return "".join(parts)


@dataclass(frozen=True)
class Parts:
    """The parts of columns in the means of some rows, and their changes of the widths."""

    base: float
    parts: Array  # (n, d)
    mean: Array  # (n,)
    width: Array  # (n,)
    width_changes: Array  # (n, d)


def parts_of(predict: Predict, batch: Batch) -> Parts:
    """Return by how much each modelled column moves the density of rows.

    Parameters
    ----------
    predict : callable
        The densities of rows. It predicts each row at most 7 d times for d columns.
    batch : Batch
    """
    columns, orders = batch.schema.modelled, orders_of(batch.schema)
    every, places = frozenset(columns), np.arange(len(batch.schema.columns))
    first_known = [frozenset(order[:k]) for order in orders for k in range(len(columns) + 1)]
    known = list(dict.fromkeys([*first_known, *(every - {j} for j in columns)]))
    mean, width = np.empty((2, len(known), len(batch)))
    hidden = np.stack([~np.isin(places, list(one)) for one in known])
    for sets, density in with_hidden(predict, batch, hidden):
        mean[sets] = density.mean.reshape(-1, len(batch))
        width[sets] = np.diff(density.interval(COVERAGE), axis=1).reshape(-1, len(batch))
    place = {one: k for k, one in enumerate(known)}
    parts = np.zeros((len(batch), len(columns)))
    for order in orders:
        path = mean[[place[frozenset(order[:k])] for k in range(len(order) + 1)]]
        parts[:, [columns.index(j) for j in order]] += np.diff(path, axis=0).T / len(orders)
    changes = width[place[every]] - width[[place[every - {j}] for j in columns]]
    base = float(mean[place[frozenset()], 0]) if len(batch) else float("nan")
    return Parts(base, parts, mean[place[every]], width[place[every]], changes.T)


def with_hidden(predict: Predict, batch: Batch, hidden: Array) -> Iterator[tuple[slice, PredictiveDensity]]:
    """Yield the densities of all rows with each set of columns hidden, a few sets at a time, one set after the other.

    A prediction of few rows takes as long as one of many, so that the sets share it.

    Parameters
    ----------
    predict : callable
    batch : Batch
    hidden : ndarray (k, d)
        Which columns each set hides.
    """
    n = len(batch)
    at_once = max(_AT_ONCE // max(n, 1), 1)
    for first in range(0, len(hidden), at_once):
        some = hidden[first : first + at_once]
        rows = batch.rows(np.tile(np.arange(n), len(some)))
        yield slice(first, first + len(some)), predict(without_cells(rows, np.repeat(some, n, axis=0)))


def orders_of(schema: Schema) -> list[tuple[int, ...]]:
    """Return the orders in which columns become known; they do not depend on the order of named columns."""
    columns = schema.modelled
    ranks = schema.rank_by_name(columns)
    by_name = [columns[place] for place in np.argsort(ranks)]
    first = [by_name[place] for place in np.random.default_rng(0).permutation(len(by_name))]
    begins = [len(first) * k // ROTATIONS for k in range(ROTATIONS)]
    rotated = [(*first[begin:], *first[:begin]) for begin in begins]
    return sorted({order for one in rotated for order in (one, one[::-1])})


def _signed(value: float) -> str:
    return f"+{number(value, 4)}" if value > 0 else number(float(value), 4)
