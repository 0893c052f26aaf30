"""Arrays that know their axes: what a dataclass declares of them, and the check of a file that follows from it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast, get_args, get_type_hints

import numpy as np

from posteriori.invariants import LARGEST, check_equal, check_numbers
from posteriori.tables.columns import Column


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
