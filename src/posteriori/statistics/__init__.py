"""Sufficient statistics: a commutative monoid under +."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from posteriori.statistics.counts import Counts, CountTogether, JointCounts, Presence
from posteriori.statistics.forests import LeafCounts
from posteriori.statistics.grouped import GroupedStatistics
from posteriori.statistics.moments import ColumnRanges, Moments, TailMoments
from posteriori.statistics.pairs import PairMoments, Pairs
from posteriori.statistics.row_records import RowFingerprints, RowSample
from posteriori.statistics.scatter import Scatter
from posteriori.statistics.sums import Sums, difference, gather
from posteriori.statistics.word_counts import (
    CountExposed,
    ExposedCounts,
    ScaledWordCounts,
    WordCounts,
    WordPresence,
    WordRepeats,
)
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Assignment, split_by_component

__all__ = [
    "ColumnRanges",
    "CountExposed",
    "CountTogether",
    "Counts",
    "ExposedCounts",
    "GroupedStatistics",
    "JointCounts",
    "JointStatistics",
    "LeafCounts",
    "Moments",
    "PairMoments",
    "Pairs",
    "Presence",
    "ResponsibilityStatisticsFactory",
    "ReversibleStatistics",
    "RowFingerprints",
    "RowSample",
    "ScaledWordCounts",
    "Scatter",
    "Statistics",
    "StatisticsFactory",
    "Sums",
    "TailMoments",
    "WordCounts",
    "WordPresence",
    "WordRepeats",
    "from_responsibilities",
]


class StatisticsFactory(Protocol):
    """Computes statistics from rows: a class of statistics, or an object that also says what to count."""

    def of(self, tile: Any, assignment: Assignment) -> Any:
        """Return the statistics of the rows of a tile."""


@runtime_checkable
class ResponsibilityStatisticsFactory(StatisticsFactory, Protocol):
    """Computes statistics also from responsibilities (n, Z), without copying the rows per component."""

    def from_responsibilities(self, tile: Any, responsibilities: Array) -> Any:
        """Return the statistics of the rows of a tile, with weight responsibilities[i, z] for row i and component z.

        Laws (tests/statistics/test_statistics.py): they equal the sum over z of the statistics with weights
        responsibilities[:, z].
        """


def from_responsibilities(sufficient_statistics: StatisticsFactory, tile: Any, responsibilities: Array) -> Any:
    """Return the statistics of the rows of a tile, with weight responsibilities[i, z] for row i and component z.

    Parameters
    ----------
    sufficient_statistics : StatisticsFactory
    tile : Numbers, Codes or Mixed
    responsibilities : ndarray (n, Z)
        ≥ 0, in rows.
    """
    if isinstance(sufficient_statistics, ResponsibilityStatisticsFactory):
        return sufficient_statistics.from_responsibilities(tile, responsibilities)
    return functools.reduce(
        operator.add, (sufficient_statistics.of(*part) for part in split_by_component(tile, responsibilities))
    )


class Statistics(Protocol):
    """Sums over rows, per component, from which a density can be estimated.

    Laws (tests/statistics/test_statistics.py): a + b equals one pass over the rows of both; + is associative
    and commutative; a row of weight k counts as k rows, and one of weight 0 as none.
    """

    @classmethod
    def of(cls, tile: Any, assignment: Assignment) -> Self:
        """Return the statistics of the rows of a tile."""

    def __add__(self, other: Self) -> Self: ...

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): no cell is infinite or has a square that overflows."""

    def is_exact(self) -> bool:
        """Return whether the sums are exact, without expectations of missing cells."""

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Self:
        """Return the same sums in another order, with zeros for new components and categories.

        components lists the current index of every component of the result, or −1 if it is new. columns does the same
        for the categories of each categorical column (None: unchanged).
        """


@runtime_checkable
class ReversibleStatistics(Protocol):
    """Statistics from which rows can be removed again.

    Laws (tests/classifiers/test_unlearn.py): (a + b) − b is a: exactly for counts and whole weights, for moments to
    1e-9 of the previous spread of the column, at any offset; and removing b from a + b never goes negative.
    """

    def __sub__(self, other: Self) -> Self: ...

    def would_go_negative(self, other: Self) -> Array:
        """Return where other holds more than these sums, (Z, d), so that it cannot be subtracted."""


@dataclass(frozen=True)
class JointStatistics:
    """The statistics of a joint p(z)·∏_b p(x_b | z): the weight of each component and the statistics of each block.

    Attributes
    ----------
    weight : ndarray (Z,)
        The weight of the rows of each component.
    blocks : tuple of Statistics
    hidden : float
        The weight of the rows whose component is hidden. The sums contain them as expected by an E-step.
    ranges : ColumnRanges, optional
        The range of every column of the schema; None if the ranges of some rows are unknown, as for an old model file.
    """

    weight: Array
    blocks: tuple[Any, ...]
    hidden: float = 0.0
    ranges: ColumnRanges | None = None

    def check_weight(self, n_components: int) -> None:
        """Raise ValueError unless there is one weight per component."""
        check_numbers("the weight of the components", self.weight, (n_components,), 0.0)
        require(0 <= self.hidden < float("inf"), f"the weight of rows without label is {self.hidden}")

    def __add__(self, other: JointStatistics) -> JointStatistics:
        blocks = zip(self.blocks, other.blocks, strict=True)
        sums = tuple([a + b for a, b in blocks])
        known = self.ranges is not None and other.ranges is not None
        ranges = self.ranges + other.ranges if known else None  # type: ignore[operator]
        return JointStatistics(self.weight + other.weight, sums, self.hidden + other.hidden, ranges)

    def __sub__(self, other: JointStatistics) -> JointStatistics:
        blocks = zip(self.blocks, other.blocks, strict=True)
        sums = tuple(a - b for a, b in blocks)
        return JointStatistics(difference(self.weight, other.weight), sums, self.hidden - other.hidden, self.ranges)

    def reindexed(
        self, components: Sequence[int], columns: Sequence[Sequence[Sequence[int]] | None]
    ) -> JointStatistics:
        """Return the same sums in another order, as `Statistics.reindexed` does; columns has one entry per block."""
        pairs = zip(self.blocks, columns, strict=True)
        return JointStatistics(
            gather(self.weight, components),
            tuple(block.reindexed(components, moves) for block, moves in pairs),
            self.hidden,
            self.ranges,
        )
