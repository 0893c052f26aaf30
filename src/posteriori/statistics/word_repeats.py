"""How often words occur repeatedly in one row: what the Dirichlet-multinomial distribution is estimated from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.invariants import check_equal, check_numbers, require_kind
from posteriori.statistics.differences import difference, exceeds
from posteriori.statistics.moments import gather
from posteriori.statistics.word_counts import bags_of, n_columns_of, n_words_of
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
class WordRepeats:
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
    at_least: Array
    totals: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(self, WordRepeats)
        check_equal("the number of columns of the repeats of words", self.n_columns, len(columns))
        shape = (n_components, n_words_of(columns), LEVELS)
        check_numbers("the repeats of words", self.at_least, shape, 0.0, _LARGEST)
        check_numbers("the totals", self.totals, (n_components, _TOTALS), 0.0, _LARGEST)

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

    def __add__(self, other: WordRepeats) -> WordRepeats:
        return replace(self, at_least=self.at_least + other.at_least, totals=self.totals + other.totals)

    def __sub__(self, other: WordRepeats) -> WordRepeats:
        at_least, totals = difference(self.at_least, other.at_least), difference(self.totals, other.totals)
        return replace(self, at_least=at_least, totals=totals)

    def would_go_negative(self, other: WordRepeats) -> Array:
        """Return where other holds more than these sums, (Z, columns)."""
        over: Array = np.any(exceeds(other.at_least, self.at_least), axis=2)
        if self.n_columns == over.shape[1] > 1:
            return np.asarray(over)
        return np.asarray(
            (over | exceeds(other.totals, self.totals).any(axis=1, keepdims=True)).any(axis=1, keepdims=True)
        )

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because the support of counts is bounded."""
        return np.ones(self.n_columns, np.bool_)

    def is_exact(self) -> bool:
        """Return True: nothing in the sums is an expectation."""
        return True

    @property
    def weight(self) -> Array:
        """The weight of the rows, (Z,)."""
        return np.asarray(self.totals.sum(axis=1))

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, columns): that of all rows, which are complete."""
        return np.tile(self.weight[:, np.newaxis], (1, self.n_columns))

    def without(self, tile: Bags | Numbers, assignment: Assignment) -> WordRepeats:
        """Return the statistics without the rows of a tile."""
        return self - WordRepeats.of(tile, assignment)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> WordRepeats:
        """Return the sums of other components or words, by their indices here, −1 for a new one."""
        at_least = gather(self.at_least, components)
        if columns is not None:
            at_least = np.ascontiguousarray(gather(at_least.transpose(1, 0, 2), columns[0]).transpose(1, 0, 2))
        return replace(self, at_least=at_least, totals=gather(self.totals, components))
