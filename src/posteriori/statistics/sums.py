"""Sufficient statistics: sums over rows, which form a commutative monoid under +.

Sums that know their axes are added, subtracted with a guard, and reindexed by what they declare. `JointStatistics` are
those of a model: the weight of each component, the sums of each block, and the ranges of the columns.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, cast, get_args, get_type_hints, runtime_checkable

import numpy as np

from posteriori import kernels
from posteriori.support.checks import LARGEST, check_equal, check_numbers, require, require_kind
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Batch, split_by_component
from posteriori.tables.schema import Column

_OF_MEANS = frozenset({"shift", "offset"})  # the fields of sums that do not grow with the weight of the rows
_OF_WEIGHTS = 1e-10  # relative to the sum: the order in which fractions are added changes it by less
_OF_SUMS = 1e-12  # a sum of numbers or squares that falls below this share of its former value is 0
_BEYOND = 1e-9  # a sum of squares that falls further below 0 than this share never contained the removed rows
_LAST_DIGITS = 4 * np.finfo(np.float64).eps  # of a number
_SMALLEST = 1e-140  # half of a range whose squares keep their digits, 1e-9 of the variances in it too
_LARGEST = 1e75  # products of two variances of such numbers stay finite
_COARSE = 1e-3  # share of a column's variance: rounding within a narrow component is no contradiction


def difference(total: Array, part: Array) -> Array:
    """Return the weight total − part, and 0 where the difference is rounding error; exact for whole numbers.

    Parameters
    ----------
    total, part : ndarray
        ≥ 0, of the same shape.
    """
    rest = total - part
    return np.where(rest > np.where(_whole(total) & _whole(part), 0.0, _OF_WEIGHTS * total), rest, 0.0)


def exceeds(part: Array, total: Array) -> Array:
    """Return where a weight exceeds the total from which it is subtracted, by more than rounding."""
    return np.asarray(part - total > np.where(_whole(total) & _whole(part), 0.0, _OF_WEIGHTS * total))


def squares_left(total: Array, part: Array) -> Array:
    """Return the sum of squares total − part, and 0 where the difference is rounding error."""
    rest = total - part
    return np.where(rest > _OF_SUMS * total, rest, 0.0)


def squares_exceed(part: Array, total: Array, slack: Array) -> Array:
    """Return where a sum of squares exceeds the total from which it is subtracted, by more than rounding.

    Parameters
    ----------
    part, total : ndarray
    slack : ndarray
        The absolute rounding error, independent of the total (`slack_of`).
    """
    return np.asarray(part > total * (1.0 + _BEYOND) + slack)


def no_more_than_rounding(rest: Array, size: Array) -> Array:
    """Return which sums, of either sign, are rounding error relative to their former size."""
    return np.asarray(np.abs(rest) <= _OF_SUMS * size)


def slack_of(weight: Array, mean: Array, variance: Array) -> Array:
    """Return how much of a sum of squares may be rounding error from earlier subtractions.

    Parameters
    ----------
    weight, mean : ndarray
        Weight and mean of the rows of a component.
    variance : ndarray
        The variance of the columns over all components (`variance_of_all`).
    """
    return weight * (_OF_SUMS * variance + (_LAST_DIGITS * mean) ** 2)


def variance_of_all(weight: Array, mean: Array, scatter: Array) -> Array:
    """Return the variance of columns over all components, (d,): within plus between components."""
    total = weight.sum(axis=0)
    share = weight / np.where(total > 0, total, 1.0)
    centre = (share * mean).sum(axis=0)
    within = scatter.sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.asarray(within + (share * (mean - centre) ** 2).sum(axis=0))


def ratio(part: Array, rest: Array) -> Array:
    """Return part / rest, and 0 where rest is 0."""
    return np.where(rest > 0, part / np.where(rest > 0, rest, 1.0), 0.0)


def indefinite(rest: Array, squares: Array, weight: float, variance: Array) -> Array:
    """Return which column (d,) makes a symmetric matrix (d, d) indefinite; none if it is a scatter matrix.

    Parameters
    ----------
    rest : ndarray (d, d)
    squares : ndarray (d,)
        The sum of squares of each column before the subtraction, over rows of this weight.
    weight : float
    variance : ndarray (d,)
        The variance of each column over all components.
    """
    scale = np.sqrt(np.maximum(squares, 0.0) + _COARSE * weight * variance)
    is_culprit = np.zeros(len(scale), np.bool_)
    varies = np.flatnonzero(scale > 0)
    if len(varies):
        values, vectors = np.linalg.eigh(rest[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies]))
        if values[0] < -_BEYOND * len(varies):
            is_culprit[varies[np.argmax(np.abs(vectors[:, 0]))]] = True
    return is_culprit


def _whole(weight: Array) -> Array:
    return np.asarray(weight == np.floor(weight))


@dataclass(frozen=True)
class Axes:
    """The name of an array in messages, its axes, and the range of its numbers, both ends included.

    Written in an annotation: ``mean: Annotated[Array, Axes("the means", "z", "column")]``. The axes of a block of
    columns are "z" (components), "column", "word" (V), "slot" (K + 1 per column, the first for missing cells); a class
    may have others. Without axes the value is one number.
    """

    name: str
    axes: tuple[str, ...]
    low: float
    high: float

    def __init__(self, name: str, *axes: str, low: float = -LARGEST, high: float = LARGEST) -> None:
        for field, value in (("name", name), ("axes", axes), ("low", low), ("high", high)):
            object.__setattr__(self, field, value)


class WithAxes:
    """A dataclass whose arrays are declared by `Axes`."""

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the arrays, and `cardinalities` if there is one, fit the columns and components."""
        if hasattr(self, "cardinalities"):
            check_equal("the number of categories", self.cardinalities, tuple(one.cardinality for one in columns))
        check_axes(self, sizes_of(columns, n_components))


def sizes_of(columns: Sequence[Column], n_components: int) -> dict[str, int]:
    """Return the length of each axis of a block of columns."""
    return {
        "z": n_components,
        "column": len(columns),
        "word": sum(column.width if column.kind == "counts" else 1 for column in columns),
        "slot": sum(column.cardinality + 1 for column in columns),
    }


def check_axes(value: Any, sizes: Mapping[str, int]) -> None:
    """Raise ValueError unless each declared array of a dataclass has the length of its axes and numbers in range."""
    for name, axes in axes_of(cast(Any, type(value))).items():
        array = getattr(value, name)
        if array is not None:
            shape = [sizes[axis] for axis in axes.axes]
            check_numbers(axes.name, np.asarray(array), shape, axes.low, axes.high)


@functools.cache
def axes_of(kind: Any) -> dict[str, Axes]:
    """Return the axes that a dataclass declares of its arrays, by field."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: axes for field in fields(kind) for axes in _declared(hints[field.name])}


def _declared(hint: Any) -> Iterator[Axes]:
    return (part for part in get_args(hint) if isinstance(part, Axes))


class Sums(WithAxes):
    """Sufficient statistics: a frozen dataclass of arrays, of other sums, and of what they are sums of.

    Arrays declared by `Axes` and nested sums add up; a flag holds for a sum if it holds for both parts; other fields
    have to be the same in both. A class overrides what its arrays do differently, such as means that merge.
    """

    def __add__(self, other: Self) -> Self:
        return self._joined(other, lambda a, b: a + b, lambda a, b: a + b)

    def __sub__(self, other: Self) -> Self:
        return self._joined(other, difference, lambda a, b: a - b)

    def _joined(self, other: Self, of_arrays: Callable[[Any, Any], Any], of_sums: Callable[[Any, Any], Any]) -> Self:
        declared, values = axes_of(cast(Any, type(self))), dict[str, Any]()
        for field in fields(self):  # type: ignore[arg-type]  # every class of sums is a dataclass
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name in declared:
                values[field.name] = of_arrays(mine, theirs)
            elif isinstance(mine, Sums):
                values[field.name] = of_sums(mine, theirs)
            elif isinstance(mine, tuple) and mine and isinstance(mine[0], Sums):
                values[field.name] = tuple(of_sums(a, b) for a, b in zip(mine, theirs, strict=True))
            elif isinstance(mine, bool):
                values[field.name] = mine and theirs
            elif mine is not theirs and mine != theirs:
                raise ValueError("parameters have changed since the last call; use fit to start over")
            else:
                values[field.name] = mine
        return type(self)(**values)

    def scaled(self, factor: float) -> Self:
        """Return the sums of the same rows with their weights multiplied; a mean, shift + offset, stays."""
        declared, values = axes_of(cast(Any, type(self))), dict[str, Any]()
        for field in fields(self):  # type: ignore[arg-type]  # every class of sums is a dataclass
            value = getattr(self, field.name)
            if field.name in declared and field.name not in _OF_MEANS:
                value = value * factor
            elif isinstance(value, Sums):
                value = value.scaled(factor)
            elif isinstance(value, tuple) and value and isinstance(value[0], Sums):
                value = tuple(one.scaled(factor) for one in value)
            values[field.name] = value
        return type(self)(**values)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Self:
        """Return the sums of other components, categories or words, by their indices here, −1 for a new one."""
        declared, values = axes_of(cast(Any, type(self))), dict[str, Any]()
        for field in fields(self):  # type: ignore[arg-type]  # every class of sums is a dataclass
            value = getattr(self, field.name)
            if field.name in declared:
                value = _reindexed(value, declared[field.name], components, columns)
            elif isinstance(value, Sums):
                value = value.reindexed(components, columns)
            values[field.name] = value
        return type(self)(**values)

    def would_go_negative(self, other: Self) -> Array:
        """Return where other holds more than these sums, (Z, d), if all arrays have one number per column."""
        declared = axes_of(cast(Any, type(self)))
        assert all(axes.axes == ("z", "column") and axes.low == 0.0 for axes in declared.values())
        over = [exceeds(getattr(other, name), getattr(self, name)) for name in declared]
        negative: Array = np.logical_or.reduce(over)
        return negative

    def is_exact(self) -> bool:
        """Return True: nothing in the sums is an expectation; a class whose missing cells are expected overrides it."""
        return True


def check_sums(factory: Any, sums: Any, columns: Sequence[Column], n_components: int) -> None:
    """Raise ValueError unless sums are those of a factory, and fit these columns and this number of components."""
    if isinstance(factory, type) and issubclass(factory, Sums):
        require_kind(sums, factory)
    factory.check_against(sums, columns, n_components)


def _reindexed(array: Array, axes: Axes, components: Sequence[int], columns: Sequence[Sequence[int]] | None) -> Array:
    for position, axis in enumerate(axes.axes):
        if axis == "z":
            array = gather(array, components, position)
        elif axis == "word" and columns is not None:
            array = gather(array, columns[0], position)
    return array


def gather(sums: Array, positions: Sequence[int] | Array, axis: int = 0) -> Array:
    """Return sums[positions] along an axis, with zeros where a position is −1; the result is C-contiguous."""
    if axis:
        return np.ascontiguousarray(gather(np.ascontiguousarray(sums.swapaxes(0, axis)), positions).swapaxes(0, axis))
    if isinstance(positions, range) and positions.step == 1 and positions.start >= 0:
        return sums[positions.start : positions.stop].copy()
    index = np.asarray(positions, np.int64)
    return np.where((index >= 0).reshape(-1, *[1] * (sums.ndim - 1)), sums[index], 0.0)


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

    @property
    def has_normal_squares(self) -> Array:
        """In which columns squares of differences keep their digits, (d,) booleans; also of equal numbers."""
        spread = np.where(self.has_numbers, self.highest / 2.0 - self.lowest / 2.0, 0.0)  # halves do not overflow
        return np.asarray((self.lowest >= self.highest) | (spread >= _SMALLEST))

    @property
    def room(self) -> Array:
        """How far beyond its range a number still is one of it, (d,): whole numbers stand for half a unit more."""
        return np.where(self.whole, 0.5, 0.0)

    def outside(self, batch: Batch) -> Array:
        """Return which cells of a batch hold numbers beyond the ranges, (n, d) booleans."""
        outside = np.zeros((len(batch), len(self.lowest)), np.bool_)
        columns = [j for j in batch.schema.of_kind("continuous") if self.has_numbers[j]]
        cells = batch.numbers.values[:, [batch.schema.of_kind("continuous").index(j) for j in columns]]
        lowest, highest = self.lowest - self.room, self.highest + self.room
        outside[:, columns] = (cells < lowest[columns]) | (cells > highest[columns])
        return outside

    def take(self, columns: Sequence[int]) -> ColumnRanges:
        """Return the ranges of some columns, by their positions."""
        positions = list(columns)
        return ColumnRanges(self.lowest[positions], self.highest[positions], self.whole[positions])


def ranges_of(each: Sequence[ColumnRanges | None]) -> ColumnRanges | None:
    """Return the ranges over all members of a pool; None if those of one are unknown."""
    known = [one for one in each if one is not None]
    if not known or len(known) < len(each):
        return None
    total = known[0]
    for one in known[1:]:
        total = total + one
    return total


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

    def scaled(self, factor: float) -> JointStatistics:
        """Return the statistics of the same rows with their weights multiplied; ranges stay."""
        blocks = tuple(block.scaled(factor) for block in self.blocks)
        return JointStatistics(self.weight * factor, blocks, self.hidden * factor, self.ranges)

    def reindexed(
        self, components: Sequence[int], columns: Sequence[Sequence[Sequence[int]] | None] | None = None
    ) -> JointStatistics:
        """Return the same sums in another order, as `Statistics.reindexed` does; columns has one entry per block."""
        pairs = zip(self.blocks, [None] * len(self.blocks) if columns is None else columns, strict=True)
        return JointStatistics(
            gather(self.weight, components),
            tuple(block.reindexed(components, moves) for block, moves in pairs),
            self.hidden,
            self.ranges,
        )
