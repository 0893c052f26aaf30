"""Weighted counts of words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_equal, require_kind
from posteriori.statistics.axes import Axes
from posteriori.statistics.differences import exceeds
from posteriori.statistics.sums import Sums
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


class SumsOfRows(Sums):
    """Sums over rows of words, which are complete: a missing count cannot be learned from."""

    weight: Any
    n_columns: Any

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the sums fit these columns and this number of components."""
        check_equal("the number of columns of the counts of words", self.n_columns, len(columns))
        super().check_against(columns, n_components)

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because the support of counts is bounded."""
        return np.ones(self.n_columns, np.bool_)

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, columns): that of all rows."""
        return np.tile(self.weight[:, np.newaxis], (1, self.n_columns))

    def without(self, tile: Bags | Numbers, assignment: Assignment) -> Self:
        """Return the sums without the rows of a tile."""
        return self - type(self).of(tile, assignment)

    @classmethod
    @abstractmethod
    def of(cls, tile: Bags | Numbers, assignment: Assignment) -> Self:
        """Return the sums of the rows of a tile."""


@dataclass(frozen=True)
class WordCounts(SumsOfRows):
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
    weight: Annotated[Array, Axes("the weight of the rows", "z", low=0.0)]
    count: Annotated[Array, Axes("the counts of words", "z", "word", low=0.0, high=_LARGEST)]

    @classmethod
    def of(cls, tile: Bags | Numbers, assignment: Assignment) -> WordCounts:
        """Return the counts of the rows of a tile. O(stored cells), one table increment each."""
        bags, labels = bags_of(tile), assignment
        count = np.zeros((labels.n_components, bags.n_words))
        kernels.add_word_counts(bags.starts, bags.words, bags.counts, labels.component, labels.weight, count)
        return cls(n_columns_of(tile), np.bincount(labels.component, labels.weight, labels.n_components), count)

    def would_go_negative(self, other: WordCounts) -> Array:
        """Return where other holds more than these counts, (Z, columns)."""
        over = np.asarray(exceeds(other.count, self.count))
        return over if self.n_columns == over.shape[1] else np.asarray(over.any(axis=1, keepdims=True))

    @property
    def total(self) -> Array:
        """The sum of the counts of all words, (Z,)."""
        return np.asarray(self.count.sum(axis=1))

    @property
    def mean_total(self) -> float:
        """The mean over all rows of the sum of their counts."""
        weight = float(self.weight.sum())
        return float(self.count.sum()) / weight if weight > 0 else 0.0


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
