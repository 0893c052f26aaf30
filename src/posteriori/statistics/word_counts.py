"""Weighted counts of words and events: totals, repeats, and exposure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from posteriori import kernels
from posteriori.statistics.sums import Axes, Sums, check_axes, exceeds, sizes_of
from posteriori.support.checks import check_equal, require_kind
from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.schema import Column

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


LEVELS = 8  # a count above it is counted as this
_EXACT = 64  # totals up to it are kept apart; above it, in steps of 2 %
_STEP = 1.02
_TOTALS = 1024  # bins of totals; the last one holds all that are larger


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
        of_floats = exactly.astype(np.float64, copy=False)  # without rows, bincount counts in integers
        at_least = np.ascontiguousarray(np.cumsum(of_floats[:, :, ::-1], axis=2)[:, :, ::-1])
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


def exposure_of(tile: Bags | Numbers) -> Array:
    """Return the exposure of each row, (n,): that of the tile, or the sum of the counts of the row."""
    return bags_of(tile).totals if tile.exposure is None else tile.exposure


@dataclass(frozen=True)
class ExposedCounts(SumsOfRows):
    """Per component: the counts of words, and the sum of the exposures of the rows.

    Attributes
    ----------
    words : WordCounts
    exposure : ndarray (Z,)
        Σ w·ℓ.
    """

    words: WordCounts
    exposure: Annotated[Array, Axes("the exposures", "z", low=0.0, high=_LARGEST)]

    @property
    def n_columns(self) -> int:
        """The number of columns of the table."""
        return self.words.n_columns

    @property
    def weight(self) -> Array:
        """The weight of the rows, (Z,)."""
        return self.words.weight

    @property
    def count(self) -> Array:
        """Σ w·x, (Z, V)."""
        return self.words.count

    def would_go_negative(self, other: ExposedCounts) -> Array:
        """Return where other holds more than these sums, (Z, columns)."""
        over = exceeds(other.exposure, self.exposure)
        return np.asarray(self.words.would_go_negative(other.words) | over[:, np.newaxis])

    @classmethod
    def of(cls, tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
        """Return the sums of the rows of a tile, whose exposures are known. O(stored cells)."""
        words = WordCounts.of(replace(tile, exposure=None), assignment)
        of_rows = assignment.weight * exposure_of(tile)
        return cls(words, np.bincount(assignment.component, of_rows, assignment.n_components))


@dataclass(frozen=True)
class CountExposed:
    """The statistics factory of `ExposedCounts`, by the name of the column of exposures; None is the row's total.

    The name takes part in equality, so that fits with different exposures share no statistics.
    """

    exposure: str | int | None = None

    @staticmethod
    def check_against(statistics: ExposedCounts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, ExposedCounts)
        statistics.words.check_against(columns, n_components)
        statistics.check_against(columns, n_components)

    @staticmethod
    def of(tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
        """Return the sums of the rows of a tile, whose exposures are known. O(stored cells)."""
        return ExposedCounts.of(tile, assignment)
