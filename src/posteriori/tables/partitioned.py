"""Tables in partitions that live elsewhere: tasks are sent to the rows, and only their results come back."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.polars import LazyTable, too_many_categories
from posteriori.tables.schema import MAX_CATEGORIES, Column, Schema
from posteriori.tables.table import Table, UnseenRows, joined_codes

T = TypeVar("T")

Task = Callable[[Iterable[Table], Any], T]  # takes a partition, as tables in memory, and its context


class PartitionedTable(LazyTable):
    """A lazy table in partitions, such as that of a cluster.

    An engine runs a task where each partition is (`run`), and adds up the results on their way back (`fold`).
    """

    @abstractmethod
    def run(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield task(tables, context) of every partition, in their order.

        Parameters
        ----------
        task : callable
            Takes the rows of one partition, as consecutive tables in memory of `columns`, and its context.
        columns : sequence of int
        contexts : sequence, optional
            The context of each partition; None for all where it is absent.
        """

    @abstractmethod
    def fold(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> T:
        """Return the sum of task(tables, context) over all partitions, added up in pairs where they are.

        Raises ValueError if no partition has a row.
        """

    @abstractmethod
    def column_from_cells(self, j: int, cells: list[Any]) -> Table:
        """Return distinct cells of column j as a table in memory of one column, of the type of column j."""

    @abstractmethod
    def map_rows(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return the result of a method for every row, as a collection of this engine that computes nothing yet.

        Parameters
        ----------
        method : callable
            Takes some rows, in the type that this engine has them in on a worker, and returns (n,) or (n, C).
        title : str
            The name of the result, where it becomes a column.
        example : ndarray
            The result for other rows, which shows its data type and its number of columns.
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
        """The row numbers of every partition in the whole table."""
        stops = np.cumsum(self.lengths).tolist()
        return [slice(stop - length, stop) for stop, length in zip(stops, self.lengths, strict=True)]

    @property
    def _narrowest(self) -> Sequence[int]:
        """The columns that are read to count rows: the cheapest one."""
        return (0,)

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, UnseenRows]:
        """Return columns of some rows as codes (`Schema.code_dtype`), and the rows of unseen categories by column."""
        return joined_codes(list(self.run(_Encode(schema, tuple(schema_columns)), columns)), rows)

    def empty_column(self, j: int) -> Table:
        """Return column j without rows, as a table in memory of one column."""
        return self.column_from_cells(j, [])

    def find_distinct(self, names: Sequence[str]) -> Mapping[str, Table]:
        """Return the distinct cells of some columns from one pass, per column as a table in memory of that column."""
        positions = [self.names.index(name) for name in names]
        distinct = self.fold(_find_cells, positions)
        pairs = zip(positions, distinct.cells, strict=True)
        return {self.names[j]: self.column_from_cells(j, list(cells)) for j, cells in pairs}


@dataclass(frozen=True)
class Distinct:
    """The distinct cells of columns; the sum is that of the union of the rows."""

    names: tuple[str, ...]
    cells: tuple[frozenset[Any], ...]

    def __add__(self, other: Distinct) -> Distinct:
        cells = tuple(a | b for a, b in zip(self.cells, other.cells, strict=True))
        for name, distinct in zip(self.names, cells, strict=True):
            if len(distinct) > MAX_CATEGORIES:
                raise too_many_categories(name, MAX_CATEGORIES)
        return Distinct(self.names, cells)


@dataclass(frozen=True)
class _Encode:
    """A task that encodes the categorical columns of a partition."""

    schema: Schema
    columns: tuple[Column, ...]

    def __call__(self, tables: Iterable[Table], context: None) -> tuple[Array, UnseenRows]:
        del context
        positions = list(range(len(self.columns)))
        nothing: UnseenRows = {}
        # The first block has no rows: a partition may have no table.
        blocks = [(np.empty((0, len(positions)), self.schema.code_dtype), nothing)]
        blocks += [table.codes(positions, self.schema, self.columns, slice(0, table.n_rows)) for table in tables]
        return joined_codes(blocks, slice(None))


def _count_rows(tables: Iterable[Table], context: None) -> int:
    del context
    return sum(table.n_rows for table in tables)


def _find_cells(tables: Iterable[Table], context: None) -> Any:
    """Return the distinct cells of a partition; None where it has no rows."""
    del context
    total = None
    for table in tables:
        cells = tuple(frozenset(table.distinct(j)) for j in range(len(table.names)))
        total = add(total, Distinct(table.names, cells))
    return total


def add(a: T | None, b: T | None) -> T | None:
    """Return a + b, where None is the result of a partition without rows."""
    if a is None or b is None:
        return b if a is None else a
    total: T = operator.add(a, b)
    return total


def add_in_pairs(parts: Sequence[T | None]) -> T:
    """Return the sum of parts, added up as a binary tree: neighbours first, so that rounding errors stay small.

    Raises ValueError if every part is None: no partition has a row.
    """
    left = list(parts)
    while len(left) > 1:
        left = [add(*left[k : k + 2]) if k + 1 < len(left) else left[k] for k in range(0, len(left), 2)]
    if left[0] is None:
        raise ValueError("Found array with 0 sample(s): no partition has a row; give at least one")
    return left[0]
