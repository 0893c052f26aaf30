"""Sums that know their axes: addition, subtraction and reindexing follow from the declared arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Self, cast

import numpy as np

from posteriori.invariants import require_kind
from posteriori.statistics.axes import Axes, WithAxes, axes_of
from posteriori.statistics.differences import difference, exceeds
from posteriori.tables.columns import Column
from posteriori.typing import Array


class Sums(WithAxes):
    """Sufficient statistics: a frozen dataclass of arrays, of other sums, and of what they are sums of.

    Arrays declared by `Axes` and nested sums add up; a flag holds for a sum if it holds for both parts; other fields
    are the same in both. A class overrides what its arrays do differently, such as means that merge.
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
            else:
                values[field.name] = mine and theirs if isinstance(mine, bool) else mine
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
