"""A few thousand rows as arrays: what densities and statistics see of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.tables.schema import Schema, View
from posteriori.typing import Array


@dataclass(frozen=True)
class Numbers:
    """Continuous cells: values (n, d), float32 or float64, C-contiguous, NaN where missing."""

    values: Array

    def take(self, places: Sequence[int]) -> Numbers:
        """Return some of the columns."""
        return Numbers(np.ascontiguousarray(self.values[:, places]))


@dataclass(frozen=True)
class Codes:
    """Categorical cells: codes (n, d), uint8 or uint16, C-contiguous, 0 where missing, k + 1 for category k."""

    values: Array
    cardinalities: tuple[int, ...]

    def take(self, places: Sequence[int]) -> Codes:
        """Return some of the columns."""
        return Codes(np.ascontiguousarray(self.values[:, places]), tuple(self.cardinalities[place] for place in places))


@dataclass(frozen=True)
class Mixed:
    """Cells of both kinds, with the kind of each column: continuous (d,) says which hold numbers."""

    numbers: Numbers
    codes: Codes
    continuous: tuple[bool, ...]


Tile = Numbers | Codes | Mixed


@dataclass(frozen=True)
class Assignment:
    """Which component made each row: component (n,), with a weight (n,), out of n_components."""

    component: Array
    weight: Array
    n_components: int


@dataclass(frozen=True)
class Batch:
    """Some rows of a table, one tile a kind of column, in the order of the schema.

    Attributes
    ----------
    start : int
        The number of the first row in its table, for messages.
    unseen : dict
        How many cells of a column, by name, hold a category that training did not know.
    assignment : Assignment or None
        The labels, where the rows have some.
    fold : ndarray (n,) or None
        The number of each row's fold, where statistics are kept per fold.
    """

    schema: Schema
    start: int
    numbers: Numbers
    codes: Codes
    unseen: dict[str, int]
    assignment: Assignment | None = None
    fold: Array | None = None

    def __len__(self) -> int:
        return len(self.numbers.values)

    def take(self, columns: tuple[int, ...], view: View) -> Tile:
        """Return the tile of some columns, by their positions in the schema, as numbers, as codes, or as both."""
        if view == "mixed":
            coded = [self.schema.columns[j].kind == "categorical" for j in columns]
            places = [[j for j, is_coded in zip(columns, coded, strict=True) if is_coded == kind] for kind in (0, 1)]
            return Mixed(self._numbers(places[0]), self._codes(places[1]), tuple(not one for one in coded))
        return self._numbers(columns) if view == "continuous" else self._codes(columns)

    def _numbers(self, columns: Sequence[int]) -> Numbers:
        everything = self.schema.of_kind("continuous")
        if tuple(columns) == everything:
            return self.numbers
        return self.numbers.take([everything.index(column) for column in columns])

    def _codes(self, columns: Sequence[int]) -> Codes:
        everything = self.schema.of_kind("categorical")
        if tuple(columns) == everything:
            return self.codes
        return self.codes.take([everything.index(column) for column in columns])

    def rows(self, chosen: Array) -> Batch:
        """Return some of the rows, chosen by a mask or by their places; the assignment is left behind."""
        return replace(
            self,
            numbers=Numbers(self.numbers.values[chosen]),
            codes=Codes(self.codes.values[chosen], self.codes.cardinalities),
            assignment=None,
            fold=None,
        )
