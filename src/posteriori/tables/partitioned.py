"""Tables in partitions that live elsewhere: work goes to the rows, and only what it returns comes back."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from posteriori.tables.lazy import LazyTable, too_many_categories
from posteriori.tables.schema import MAX_CATEGORIES, Column, Schema
from posteriori.tables.table import Table
from posteriori.typing import Array

T = TypeVar("T")

Task = Callable[[Iterable[Table], Any], T]  # from a partition, as tables in memory, and what is its alone


class PartitionedTable(LazyTable):
    """A lazy table in partitions: a cluster's.

    An engine says how a task is run where each partition is (`run`), and how results are added up on their way back
    (`fold`).
    """

    @abstractmethod
    def run(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield task(tables, share) of every partition, in their order.

        Parameters
        ----------
        task : callable
            Takes the rows of one partition, as tables in memory of `columns` that follow one another, and its share.
        columns : sequence of int
        shares : sequence, optional
            What goes with each partition: None where it is absent.
        """

    @abstractmethod
    def fold(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None = None) -> T:
        """Return the sum of task(tables, share) over all partitions, added up in pairs where they are."""

    @abstractmethod
    def _table_of(self, j: int, cells: list[Any]) -> Table:
        """Return cells of column j as a table in memory of one column of its type."""

    @abstractmethod
    def each(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return what a method says of every row, as a collection of this engine that computes nothing yet.

        Parameters
        ----------
        method : callable
            Takes some rows, in the type that this engine has them in on a worker.
        title : str
            What it says, as the name of a column.
        example : ndarray
            What it says of some other rows: of the type and the number of columns that it will be.
        """

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The number of rows of every partition."""
        return tuple(self.run(_count_rows, self._narrowest))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.lengths)

    @property
    def slices(self) -> list[slice]:
        """Where the rows of every partition stand among all."""
        stops = np.cumsum(self.lengths).tolist()
        return [slice(stop - length, stop) for stop, length in zip(stops, self.lengths, strict=True)]

    @property
    def _narrowest(self) -> Sequence[int]:
        """The columns by which rows are counted."""
        return (0,)

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return columns of some rows as codes, two bytes or one a cell, and how many cells no category matches."""
        tiles, unseen = [], dict[str, int]()
        for tile, strange in self.run(_Encode(schema, tuple(schema_columns)), columns):
            tiles.append(tile)
            for name, count in strange.items():
                unseen[name] = unseen.get(name, 0) + count
        return np.concatenate(tiles)[rows], unseen

    def _without_rows(self, j: int) -> Table:
        return self._table_of(j, [])

    def _find_distinct(self, names: Sequence[str]) -> Mapping[str, Table]:
        positions = [self.names.index(name) for name in names]
        found = self.fold(_find_cells, positions)
        return {self.names[j]: self._table_of(j, list(cells)) for j, cells in zip(positions, found.cells, strict=True)}


@dataclass(frozen=True)
class Distinct:
    """The distinct cells of columns; those of more rows add up."""

    names: tuple[str, ...]
    cells: tuple[frozenset[Any], ...]

    def __add__(self, other: Distinct) -> Distinct:
        cells = tuple(a | b for a, b in zip(self.cells, other.cells, strict=True))
        for name, some in zip(self.names, cells, strict=True):
            if len(some) > MAX_CATEGORIES:
                raise too_many_categories(name, MAX_CATEGORIES)
        return Distinct(self.names, cells)


@dataclass(frozen=True)
class _Encode:
    """Takes the rows of a partition to codes."""

    schema: Schema
    columns: tuple[Column, ...]

    def __call__(self, tables: Iterable[Table], share: None) -> tuple[Array, dict[str, int]]:
        del share
        positions = list(range(len(self.columns)))
        tiles, unseen = [np.empty((0, len(positions)), self.schema.code_dtype)], dict[str, int]()
        for table in tables:
            tile, strange = table.codes(positions, self.schema, self.columns, slice(0, table.n_rows))
            tiles.append(tile)
            for name, count in strange.items():
                unseen[name] = unseen.get(name, 0) + count
        return np.concatenate(tiles), unseen


def _count_rows(tables: Iterable[Table], share: None) -> int:
    del share
    return sum(table.n_rows for table in tables)


def _find_cells(tables: Iterable[Table], share: None) -> Any:
    """Return the distinct cells of the rows of a partition; None where it has none."""
    del share
    found = None
    for table in tables:
        cells = tuple(frozenset(table.distinct(j)) for j in range(len(table.names)))
        part = Distinct(table.names, cells)
        found = part if found is None else found + part
    return found


def add(a: T | None, b: T | None) -> T | None:
    """Return a + b, where None is what a partition without rows gives."""
    if a is None or b is None:
        return b if a is None else a
    return operator.add(a, b)


def add_in_pairs(parts: Sequence[T | None]) -> T:
    """Return the sum of parts, neighbours first, as a tree adds them up."""
    left = list(parts)
    while len(left) > 1:
        left = [add(*left[k : k + 2]) if k + 1 < len(left) else left[k] for k in range(0, len(left), 2)]
    if left[0] is None:
        raise ValueError("Found array with 0 sample(s): no partition has a row; give at least one")
    return left[0]
