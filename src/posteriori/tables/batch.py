"""A few thousand rows as arrays: what densities and statistics see of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori import kernels
from posteriori.tables.schema import Schema, View
from posteriori.typing import Array


@dataclass(frozen=True)
class Numbers:
    """Continuous cells: values (n, d), float32 or float64, C-contiguous, NaN where missing.

    cuts holds the cut points of each column, None where it is not binned; it is empty where no column is.
    """

    values: Array
    cuts: tuple[tuple[float, ...] | None, ...] = ()

    def take(self, places: Sequence[int]) -> Numbers:
        """Return some of the columns."""
        cuts = tuple(self.cuts[place] for place in places) if self.cuts else ()
        return Numbers(np.ascontiguousarray(self.values[:, places]), cuts)


@dataclass(frozen=True)
class Codes:
    """Categorical and binned cells: codes (n, d), C-contiguous, 0 where missing, k + 1 for category or bin k.

    Of type uint8 or uint16.
    """

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

_LEAST_SHARE = 1e-18


@dataclass(frozen=True)
class Assignment:
    """Which component made each row: component (n,), −1 where it is hidden, with a weight (n,), out of n_components.

    Statistics are sums over rows whose component is known (`Batch.labelled`), or over `shares`.
    """

    component: Array
    weight: Array
    n_components: int


@dataclass(frozen=True)
class Batch:
    """Some rows of a table as two tiles, their columns in the order of the schema.

    A binned column is in both: its numbers, and the codes of its bins.

    Attributes
    ----------
    numbers : Numbers
        The continuous columns.
    codes : Codes
        The categorical and the binned columns.
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

    @classmethod
    def of(
        cls,
        schema: Schema,
        start: int,
        numbers: Array,
        categories: Array,
        unseen: dict[str, int],
        assignment: Assignment | None = None,
        fold: Array | None = None,
    ) -> Batch:
        """Return the batch of some rows' continuous cells and the codes of their categorical ones."""
        tile = Numbers(numbers, _cuts_of(schema))
        return cls(schema, start, tile, _coded(schema, numbers, categories), unseen, assignment, fold)

    def take(self, columns: Sequence[int], view: View) -> Tile:
        """Return the tile of some columns, by their positions in the schema: as numbers, as codes, or mixed.

        Where it is mixed, categories and bins are codes and the other columns numbers.
        """
        if view == "mixed":
            coded = [column in self.schema.coded for column in columns]
            places = [[j for j, is_coded in zip(columns, coded, strict=True) if is_coded == kind] for kind in (0, 1)]
            return Mixed(self._numbers(places[0]), self._codes(places[1]), tuple(not one for one in coded))
        return self._numbers(columns) if view == "continuous" else self._codes(columns)

    def _numbers(self, columns: Sequence[int]) -> Numbers:
        everything = self.schema.of_kind("continuous")
        if tuple(columns) == everything:
            return self.numbers
        return self.numbers.take([everything.index(column) for column in columns])

    def _codes(self, columns: Sequence[int]) -> Codes:
        everything = self.schema.coded
        if tuple(columns) == everything:
            return self.codes
        return self.codes.take([everything.index(column) for column in columns])

    def labelled(self) -> Batch:
        """Return the rows whose component is known; where that is not all, `start` is not theirs."""
        labels = self.assignment
        if labels is None or (labels.component >= 0).all():
            return self
        known = np.flatnonzero(labels.component >= 0)
        given = Assignment(labels.component[known], labels.weight[known], labels.n_components)
        return replace(self.rows(known), assignment=given)

    def shares(self, responsibilities: Array) -> Iterator[Batch]:
        """Yield, component by component, the rows that it may have made, each with its share of their weight.

        What is linear in the weights, as every sufficient statistic is, adds up over these to its expectation. Shares
        so small that no sum of doubles over many rows would show them are left out.
        """
        assert self.assignment is not None
        n_components = self.assignment.n_components
        for z in range(n_components):
            weight = self.assignment.weight * responsibilities[:, z]
            rows = np.flatnonzero((weight > 0) & (responsibilities[:, z] > _LEAST_SHARE))
            component = np.full(len(rows), z, np.int32)
            yield replace(self.rows(rows), assignment=Assignment(component, weight[rows], n_components))

    def with_schema(self, schema: Schema) -> Batch:
        """Return the same rows with the cut points of another schema of the same columns."""
        if schema is self.schema:
            return self
        categorical = [self.schema.coded.index(j) for j in self.schema.of_kind("categorical")]
        return replace(
            self,
            schema=schema,
            numbers=Numbers(self.numbers.values, _cuts_of(schema)),
            codes=_coded(schema, self.numbers.values, self.codes.values[:, categorical]),
        )

    def rows(self, chosen: Array | slice) -> Batch:
        """Return some of the rows, chosen by a mask, by their places or as a slice; the assignment is left behind."""
        return replace(
            self,
            numbers=replace(self.numbers, values=self.numbers.values[chosen]),
            codes=replace(self.codes, values=self.codes.values[chosen]),
            assignment=None,
            fold=None,
        )


def _cuts_of(schema: Schema) -> tuple[tuple[float, ...] | None, ...]:
    """Return the cut points of each continuous column; nothing where none is binned."""
    cuts = tuple(schema.columns[j].cuts for j in schema.of_kind("continuous"))
    return cuts if any(points is not None for points in cuts) else ()


def _coded(schema: Schema, numbers: Array, categories: Array) -> Codes:
    """Return the codes of the categorical columns, as they are, and of the binned ones, from their numbers."""
    coded, continuous = schema.coded, schema.of_kind("continuous")
    cardinalities = schema.cardinalities(coded)
    binned = [j for j in coded if schema.columns[j].is_binned]
    if not binned:
        return Codes(categories, cardinalities)
    codes = np.empty((len(numbers), len(coded)), schema.code_dtype)
    codes[:, [coded.index(j) for j in schema.of_kind("categorical")]] = categories
    starts, cuts = flat_cuts([schema.columns[j].cuts or () for j in binned])
    kernels.digitise(
        numbers,
        np.array([continuous.index(j) for j in binned]),
        starts,
        cuts,
        np.array([coded.index(j) for j in binned]),
        codes,
    )
    return Codes(codes, cardinalities)


def flat_cuts(cuts: Sequence[Sequence[float]]) -> tuple[Array, Array]:
    """Return the cut points of columns side by side, and where those of each start."""
    starts = np.concatenate([[0], np.cumsum([len(points) for points in cuts])]).astype(np.int64)
    return starts, np.array([point for points in cuts for point in points], np.float64)
