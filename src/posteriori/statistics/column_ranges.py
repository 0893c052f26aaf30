"""The ranges of columns, and whether their numbers are integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_numbers, require
from posteriori.tables.batch import Batch
from posteriori.typing import Array

_LARGEST = 1e75  # products of two variances of such numbers stay finite


@dataclass(frozen=True)
class ColumnRanges:
    """The smallest and the largest number of every column, and whether all of its numbers are integers.

    It covers all rows of positive weight, with or without a label, of all classes. + is associative, commutative
    and idempotent, and `empty` is its identity. Subtraction is not possible: after `unlearn` a range may be wider
    than that of the remaining rows.

    Attributes
    ----------
    lowest, highest : ndarray (d,)
        In data units, columns in the order of the schema; inf and −inf in a column without any number, such as
        a categorical one.
    whole : ndarray (d,)
        Booleans; True in a column without any number.
    """

    lowest: Array
    highest: Array
    whole: Array

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless there is one range per column."""
        check_numbers("the lowest numbers", self.lowest, (n_columns,), -np.inf, np.inf)
        check_numbers("the highest numbers", self.highest, (n_columns,), -np.inf, np.inf)
        empty = (self.lowest == np.inf) & (self.highest == -np.inf)
        filled = np.isfinite(self.lowest) & np.isfinite(self.highest) & (self.lowest <= self.highest)
        require(bool((empty | filled).all()), "a range is not empty and does not run from a lower to a higher number")
        require(
            self.whole.shape == (n_columns,) and self.whole.dtype == np.bool_,
            "there is not one flag per column for whole numbers",
        )

    @classmethod
    def empty(cls, n_columns: int) -> ColumnRanges:
        """Return the ranges of no row."""
        return cls(np.full(n_columns, np.inf), np.full(n_columns, -np.inf), np.ones(n_columns, np.bool_))

    @classmethod
    def of(cls, batch: Batch) -> ColumnRanges:
        """Return the ranges of the rows of a batch. O(n·d), one read."""
        ranges = cls.empty(len(batch.schema.columns))
        continuous = list(batch.schema.of_kind("continuous"))
        if continuous:
            weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
            parts = ranges.lowest[continuous], ranges.highest[continuous], ranges.whole[continuous]
            kernels.widen_ranges(batch.numbers.values, weight, *parts)
            for array, part in zip((ranges.lowest, ranges.highest, ranges.whole), parts, strict=True):
                array[continuous] = part
        return ranges

    def __add__(self, other: ColumnRanges) -> ColumnRanges:
        return ColumnRanges(
            np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest), self.whole & other.whole
        )

    @property
    def has_numbers(self) -> Array:
        """Which columns have a number in some row, (d,) booleans."""
        return self.lowest <= self.highest

    @property
    def has_finite_squares(self) -> Array:
        """In which columns sums of squares stay finite, (d,) booleans."""
        extreme = np.where(self.has_numbers, np.maximum(np.abs(self.lowest), np.abs(self.highest)), 0.0)
        return np.asarray(extreme <= _LARGEST)

    def take(self, columns: Sequence[int]) -> ColumnRanges:
        """Return the ranges of some columns, by their positions."""
        positions = list(columns)
        return ColumnRanges(self.lowest[positions], self.highest[positions], self.whole[positions])
