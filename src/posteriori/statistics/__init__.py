"""What is added up: sufficient statistics, a commutative monoid under +."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

from posteriori.invariants import check_numbers, require
from posteriori.statistics.column_ranges import ColumnRanges
from posteriori.statistics.counts import Counts, Presence
from posteriori.statistics.differences import difference
from posteriori.statistics.joint_counts import CountTogether, JointCounts
from posteriori.statistics.moments import Moments, gather
from posteriori.statistics.pair_moments import PairMoments
from posteriori.statistics.pairs import Pairs
from posteriori.statistics.row_sample import RowSample
from posteriori.statistics.scatter import Scatter
from posteriori.statistics.tail_moments import TailMoments
from posteriori.tables import Assignment, split_by_component
from posteriori.typing import Array

__all__ = [
    "ColumnRanges",
    "CountTogether",
    "Counts",
    "JointCounts",
    "JointStatistics",
    "Moments",
    "PairMoments",
    "Pairs",
    "Presence",
    "ResponsibilityStatisticsFactory",
    "ReversibleStatistics",
    "RowSample",
    "Scatter",
    "Statistics",
    "StatisticsFactory",
    "TailMoments",
    "from_responsibilities",
]


class StatisticsFactory(Protocol):
    """What makes statistics of rows: a kind of them, or one with what it is to count."""

    def of(self, tile: Any, assignment: Assignment) -> Any:
        """Return the statistics of the rows of a tile."""


@runtime_checkable
class ResponsibilityStatisticsFactory(StatisticsFactory, Protocol):
    """What makes statistics, also of rows of which every component has a share, without copying them."""

    def from_responsibilities(self, tile: Any, responsibilities: Array) -> Any:
        """Return the statistics of the rows of a tile, each of which counts for component z with weight shares[i, z].

        Laws (tests/test_statistics.py): they are the sums over the rows of each component, weighted by their shares.
        """


def from_responsibilities(sufficient_statistics: StatisticsFactory, tile: Any, responsibilities: Array) -> Any:
    """Return the statistics of the rows of a tile, each of which counts for component z with weight shares[i, z].

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
    """Sums over rows, a component each, from which a density can be estimated.

    Laws (tests/test_statistics.py): a + b is what one pass over the rows of both would give; + is associative
    and commutative; a row of weight k counts as k rows, and one of weight 0 as none.
    """

    @classmethod
    def of(cls, tile: Any, assignment: Assignment) -> Self:
        """Return the statistics of the rows of a tile."""

    def __add__(self, other: Self) -> Self: ...

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): no cell infinite, none whose square overflows."""

    def is_exact(self) -> bool:
        """Whether the sums are those of the rows, and not in part expectations of what is missing in them."""

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Self:
        """Return the same sums in another order, with empty places where something new will come.

        components lists, for every component of the result, its place here, or −1 where it is new; columns does so
        for the categories of each categorical column (None: as they are).
        """


@runtime_checkable
class ReversibleStatistics(Protocol):
    """Statistics that are sums out of which rows can be taken again.

    Laws (tests/test_forget.py): (a + b) − b is a: of counts and whole weights to the last digit, of moments to 1e-9 of
    what the column varied before, however far it lies from 0; and a + b lacks nothing of b.
    """

    def __sub__(self, other: Self) -> Self: ...

    def would_go_negative(self, other: Self) -> Array:
        """Return where other holds more than these sums, (Z, d), and so cannot be taken out of them."""


@dataclass(frozen=True)
class JointStatistics:
    """The statistics of a joint p(z)·∏_b p(x_b | z): the weight of each component, and those of each block.

    Attributes
    ----------
    weight : ndarray (Z,)
        The weight of the rows of each component.
    blocks : tuple of Statistics
    hidden : float
        The weight of the rows whose component is not known; they are in the sums only as an E-step expects them.
    ranges : ColumnRanges, optional
        The range of every column of the schema; None where the ranges of some rows are not known, as in a model file
        that has none.
    """

    weight: Array
    blocks: tuple[Any, ...]
    hidden: float = 0.0
    ranges: ColumnRanges | None = None

    def check_weight(self, n_components: int) -> None:
        """Raise ValueError unless there is a weight for each of so many components."""
        check_numbers("the weight of the components", self.weight, (n_components,), 0.0)
        require(0 <= self.hidden < float("inf"), f"the weight of rows without label is {self.hidden}")

    def __add__(self, other: JointStatistics) -> JointStatistics:
        blocks = zip(self.blocks, other.blocks, strict=True)
        sums = tuple(a + b for a, b in blocks)
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
        """Return the same sums in another order, as `Statistics.reindexed` does; columns has one entry a block."""
        pairs = zip(self.blocks, columns, strict=True)
        return JointStatistics(
            gather(self.weight, components),
            tuple(block.reindexed(components, moves) for block, moves in pairs),
            self.hidden,
            self.ranges,
        )
