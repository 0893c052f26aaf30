"""Sums that know their axes: addition, guarded subtraction and reindexing follow from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, cast, get_args, get_type_hints

import numpy as np

from posteriori.support.checks import LARGEST, check_equal, check_numbers, require_kind
from posteriori.support.typing import Array
from posteriori.tables.schema import Column

_OF_WEIGHTS = 1e-10  # relative to the sum: the order in which fractions are added changes it by less
_OF_SUMS = 1e-12  # a sum of numbers or squares that falls below this share of its former value is 0
_BEYOND = 1e-9  # a sum of squares that falls further below 0 than this share never contained the removed rows
_LAST_DIGITS = 4 * np.finfo(np.float64).eps  # of a number
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
    """Return what a dataclass declares of its arrays, by field."""
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
