"""How often words occur repeatedly in one row: what the Dirichlet-multinomial distribution is estimated from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from posteriori.invariants import check_equal
from posteriori.statistics.axes import Axes, check_axes, sizes_of
from posteriori.statistics.differences import exceeds
from posteriori.statistics.word_counts import SumsOfRows, bags_of, n_columns_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
from posteriori.typing import Array

LEVELS = 8  # a count above it is counted as this
_EXACT = 64  # totals up to it are kept apart; above it, in steps of 2 %
_STEP = 1.02
_TOTALS = 1024  # bins of totals; the last one holds all that are larger
_LARGEST = 1e300


def total_of_bins() -> Array:
    """Return the total that stands for each bin of totals, (bins,)."""
    place = np.arange(_TOTALS)
    return np.where(place <= _EXACT, place, np.round(_EXACT * _STEP ** (place - _EXACT + 0.5)))


def _bin_of(total: Array) -> Array:
    """Return the bin of each total, which is a whole number."""
    above = _EXACT + np.floor(np.log(np.maximum(total, _EXACT) / _EXACT) / np.log(_STEP)).astype(np.int64)
    return np.where(total <= _EXACT, total.astype(np.int64), np.minimum(above, _TOTALS - 1))


@dataclass(frozen=True)
class WordRepeats(SumsOfRows):
    """Per component: the weight of the rows in which each word occurs at least k times, and of the rows by their total.

    Attributes
    ----------
    n_columns : int
        The number of columns of the table: 1 for a column of counts, V for columns of numbers.
    at_least : ndarray (Z, V, 8)
        The weight of the rows with x_j ≥ k, for k = 1 … 8. Their sum over k is Σ w·min(x_j, 8).
    totals : ndarray (Z, 1024)
        The weight of the rows by Σ_j min(x_j, 8): one bin per total up to 64, and bins of 2 % above.
    """

    n_columns: int
    at_least: Annotated[Array, Axes("the repeats of words", "z", "word", "level", low=0.0, high=_LARGEST)]
    totals: Annotated[Array, Axes("the totals", "z", "total", low=0.0, high=_LARGEST)]

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        check_equal("the number of columns of the repeats of words", self.n_columns, len(columns))
        check_axes(self, {**sizes_of(columns, n_components), "level": LEVELS, "total": _TOTALS})

    @classmethod
    def of(cls, tile: Bags | Numbers, assignment: Assignment) -> WordRepeats:
        """Return the statistics of the rows of a tile. O(stored cells)."""
        bags = bags_of(tile)
        level = np.minimum(bags.counts, LEVELS).astype(np.int64)
        row = bags.row_of_cell
        total = np.bincount(row, level, len(bags))
        z, weight, shape = assignment.component, assignment.weight, (assignment.n_components, bags.n_words, LEVELS)
        occurs = level > 0
        place = (z[row].astype(np.int64) * bags.n_words + bags.words) * LEVELS + level - 1
        exactly = np.bincount(place[occurs], weight[row][occurs], int(np.prod(shape))).reshape(shape)
        at_least = np.ascontiguousarray(np.cumsum(exactly[:, :, ::-1], axis=2)[:, :, ::-1])
        bins = np.bincount(z.astype(np.int64) * _TOTALS + _bin_of(total), weight, shape[0] * _TOTALS)
        return cls(n_columns_of(tile), at_least, bins.reshape(shape[0], _TOTALS))

    def would_go_negative(self, other: WordRepeats) -> Array:
        """Return where other holds more than these sums, (Z, columns)."""
        over: Array = np.any(exceeds(other.at_least, self.at_least), axis=2)
        if self.n_columns == over.shape[1] > 1:
            return np.asarray(over)
        return np.asarray(
            (over | exceeds(other.totals, self.totals).any(axis=1, keepdims=True)).any(axis=1, keepdims=True)
        )

    @property
    def weight(self) -> Array:
        """The weight of the rows, (Z,)."""
        return np.asarray(self.totals.sum(axis=1))
