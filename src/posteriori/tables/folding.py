"""One pass over some columns of any table, which adds up what the rows show."""

from __future__ import annotations

import functools
import operator
from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar, cast

from posteriori.tables.lazy import StreamedTable
from posteriori.tables.partitioned import PartitionedTable, add
from posteriori.tables.polars import PolarsTable
from posteriori.tables.table import Table

T = TypeVar("T")

_ROWS = 1 << 16  # that are read at a time


class Look(ABC, Generic[T]):
    """What to look for in some columns: a task of a partition, whose result is None if it has no rows.

    A subclass defines `of_rows`, or `at` if it does not look at all rows. Results have +.
    """

    def of_rows(self, table: Table, columns: Sequence[int], rows: slice) -> T:
        """Return what some rows of a table in memory show."""
        raise NotImplementedError

    def at(self, table: Table, columns: Sequence[int]) -> T:
        """Return what a table in memory shows."""
        starts = range(0, table.n_rows, _ROWS) or (0,)
        slices = (slice(start, min(start + _ROWS, table.n_rows)) for start in starts)
        total: T = functools.reduce(operator.add, (self.of_rows(table, columns, rows) for rows in slices))
        return total

    def __call__(self, tables: Iterable[Table], context: None) -> T | None:
        """Return what the tables of a partition show."""
        del context
        total: T | None = None
        for table in tables:
            total = add(total, self.at(table, range(len(table.names))))
        return total


def fold_rows(table: Table, look: Look[T], columns: Sequence[int]) -> T:
    """Return what all rows of some columns of a table show, in one pass, wherever its rows are."""
    if isinstance(table, PartitionedTable):
        return cast(T, table.fold(look, columns))  # an error if no partition has a row
    if isinstance(table, StreamedTable):
        parts: Any = table.frames([table.names[j] for j in columns])
        total: T = functools.reduce(operator.add, (look.at(PolarsTable(part), range(len(columns))) for part in parts))
        return total
    return look.at(table, columns)
