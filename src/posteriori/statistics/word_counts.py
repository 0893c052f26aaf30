"""Weighted counts of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_equal, check_numbers, require_kind
from posteriori.statistics.differences import difference, exceeds
from posteriori.statistics.moments import gather
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
from posteriori.typing import Array

_LARGEST = 1e300  # of a sum of counts


def bags_of(tile: Bags | Numbers) -> Bags:
    """Return the rows of a tile as bags: a column of counts, or columns of numbers that are one word each."""
    return tile if isinstance(tile, Bags) else Bags.of_numbers(tile.values)


def presence_of(tile: Bags | Numbers) -> Bags:
    """Return the rows of a tile with counts of 1 for words that occur and 0 for others; NaN stays NaN."""
    bags = bags_of(tile)
    return replace(bags, counts=np.where(np.isnan(bags.counts), np.nan, bags.counts > 0))


def scaled_of(tile: Bags | Numbers) -> Bags | Numbers:
    """Return the rows of a tile with log(1 + x) for each count x, divided by their Euclidean length; NaN stays NaN."""
    bags = bags_of(tile)
    logs = np.log1p(bags.counts)
    length = np.sqrt(bags.sums_per_row(np.nan_to_num(logs) ** 2))
    scaled = logs / np.where(length > 0, length, 1.0)[bags.row_of_cell]
    if isinstance(tile, Bags):
        return replace(tile, counts=scaled)
    return replace(tile, values=scaled.reshape(tile.values.shape))


def n_columns_of(tile: Bags | Numbers) -> int:
    """Return how many columns of the table a tile holds: one of bags, or one for each word."""
    return 1 if isinstance(tile, Bags) else tile.values.shape[1]


def n_words_of(columns: Sequence[Column]) -> int:
    """Return V, the number of words of a block of columns: those of a column of counts, or one per column."""
    return sum(column.width if column.kind == "counts" else 1 for column in columns)


@dataclass(frozen=True)
class WordCounts:
    """Per component: the weight of the rows, and the sum of the counts of each word.

    Attributes
    ----------
    n_columns : int
        The number of columns of the table: 1 for a column of counts, V for columns of numbers.
    weight : ndarray (Z,)
        The weight of the rows.
    count : ndarray (Z, V)
        Σ w·x.
    """

    n_columns: int
    weight: Array
    count: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(self, WordCounts)
        check_equal("the number of columns of the counts of words", self.n_columns, len(columns))
        check_numbers("the weight of the rows", self.weight, (n_components,), 0.0)
        check_numbers("the counts of words", self.count, (n_components, n_words_of(columns)), 0.0, _LARGEST)

    @classmethod
    def of(cls, tile: Bags | Numbers, assignment: Assignment) -> WordCounts:
        """Return the counts of the rows of a tile. O(stored cells), one table increment each."""
        bags, labels = bags_of(tile), assignment
        count = np.zeros((labels.n_components, bags.n_words))
        kernels.add_word_counts(bags.starts, bags.words, bags.counts, labels.component, labels.weight, count)
        return cls(n_columns_of(tile), np.bincount(labels.component, labels.weight, labels.n_components), count)

    def __add__(self, other: WordCounts) -> WordCounts:
        return replace(self, weight=self.weight + other.weight, count=self.count + other.count)

    def __sub__(self, other: WordCounts) -> WordCounts:
        return replace(self, weight=difference(self.weight, other.weight), count=difference(self.count, other.count))

    def would_go_negative(self, other: WordCounts) -> Array:
        """Return where other holds more than these counts, (Z, columns)."""
        over = np.asarray(exceeds(other.count, self.count))
        return over if self.n_columns == over.shape[1] else np.asarray(over.any(axis=1, keepdims=True))

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because the support of counts is bounded."""
        return np.ones(self.n_columns, np.bool_)

    def is_exact(self) -> bool:
        """Return True: nothing in the sums is an expectation."""
        return True

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, columns): that of all rows, which are complete."""
        return np.tile(self.weight[:, np.newaxis], (1, self.n_columns))

    @property
    def total(self) -> Array:
        """The sum of the counts of all words, (Z,)."""
        return np.asarray(self.count.sum(axis=1))

    @property
    def mean_total(self) -> float:
        """The mean over all rows of the sum of their counts."""
        weight = float(self.weight.sum())
        return float(self.count.sum()) / weight if weight > 0 else 0.0

    def without(self, tile: Bags | Numbers, assignment: Assignment) -> WordCounts:
        """Return the counts without the rows of a tile."""
        return self - WordCounts.of(tile, assignment)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> WordCounts:
        """Return the counts of other components or words, by their indices here, −1 for a new one."""
        count = gather(self.count, components)
        if columns is not None:
            count = np.ascontiguousarray(gather(count.T, columns[0]).T)
        return replace(self, weight=gather(self.weight, components), count=count)


class WordPresence:
    """The statistics factory that counts the rows in which each word occurs: `WordCounts` of counts cut at 1."""

    @staticmethod
    def check_against(statistics: WordCounts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, WordCounts)
        statistics.check_against(columns, n_components)

    @staticmethod
    def of(tile: Bags | Numbers, assignment: Assignment) -> WordCounts:
        """Return the weight of the rows of each component in which each word occurs."""
        return replace(WordCounts.of(presence_of(tile), assignment), n_columns=n_columns_of(tile))


class ScaledWordCounts(WordPresence):
    """Makes `WordCounts` of counts on a logarithmic scale, divided by the length of their row."""

    @staticmethod
    def of(tile: Bags | Numbers, assignment: Assignment) -> WordCounts:
        """Return the sums of the scaled counts of each word."""
        return WordCounts.of(scaled_of(tile), assignment)
