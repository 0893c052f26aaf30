"""Columns of two distinct whole numbers, such as 0 and 1: which rows show that they are categories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.reading.column_kinds import FEWEST_CELLS
from posteriori.sources import LabelledSource, source_of
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema, Table
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.polars import LazyTable, PolarsTable, StreamedTable
from posteriori.tables.schema import categorical_column
from posteriori.user_warnings import warn

FARTHEST = 15  # apart, as in a pool; two numbers farther apart are a quantity that happens to have two values
_ONE_CLASS = categorical_column("", [0], "int64")
_HEAD_ROWS = 1000  # rows after which most columns of numbers are no longer candidates


@dataclass(frozen=True)
class _EndsOfColumns:
    """The number of cells, the lowest and the highest of each column of numbers, and whether none lies between; (d,).

    It covers rows of positive weight. + is associative and commutative, so that the parts of a table do not matter.
    """

    n: Array
    low: Array
    high: Array
    only: Array

    @classmethod
    def of(cls, batch: Batch) -> _EndsOfColumns:
        values = batch.numbers.values
        if batch.assignment is not None and not batch.assignment.weight.all():
            values = values[batch.assignment.weight > 0]
        present = ~np.isnan(values)
        low = np.where(present, values, np.inf).min(axis=0, initial=np.inf)
        high = np.where(present, values, -np.inf).max(axis=0, initial=-np.inf)
        only = (~present | (values == low) | (values == high)).all(axis=0)
        return cls(present.sum(axis=0), low, high, only)

    def __add__(self, other: _EndsOfColumns) -> _EndsOfColumns:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        only = self._lies_at(low, high) & other._lies_at(low, high)
        return _EndsOfColumns(self.n + other.n, low, high, only)

    def _lies_at(self, low: Array, high: Array) -> Array:
        at = ((self.low == low) | (self.low == high)) & ((self.high == low) | (self.high == high))
        return np.asarray(self.only & (at | (self.n == 0)))

    @property
    def may_be_categories(self) -> Array:
        """Which columns hold at most two numbers, whole and close enough, so that further rows may show two."""
        with np.errstate(invalid="ignore"):
            whole = (self.low == np.floor(self.low)) & (self.high == np.floor(self.high))
            return np.asarray(self.only & ((self.n == 0) | (whole & (self.high - self.low <= FARTHEST))))

    @property
    def are_categories(self) -> Array:
        """Which columns hold two numbers of this kind, in 20 cells or more."""
        return np.asarray(self.may_be_categories & (self.n >= FEWEST_CELLS) & (self.low < self.high))


def with_two_values(
    schema: Schema, table: Table, places: Sequence[int], distributions: Any, stated: Collection[int], weight: Any
) -> Schema:
    """Return a schema in which the columns of numbers with two values are categorical.

    A column is one if its cells in rows of positive weight are two distinct whole numbers, at most 15 apart, in 20
    cells or more. Columns whose density `distributions` states stay numbers. Takes a pass over the rows of a table
    beyond memory if its first rows do not rule out every column.

    Parameters
    ----------
    schema : Schema
    table : Table
    places : sequence of int
        The position in the table of each column of the schema.
    distributions
        The parameter of the estimator.
    stated : collection of int
        The positions in the table of the columns that parameters name.
    weight : ndarray (n,) or None

    Raises
    ------
    UnseenCategoryError
        The table is a scan of which only the first rows are read, and these do not rule out every column.
    """
    if not (distributions is None or isinstance(distributions, Mapping)):
        return schema
    numbers = [
        j
        for j, column in enumerate(schema.columns)
        if column.kind == "continuous" and column.part is None and places[j] not in stated
    ]
    if not numbers:
        return schema
    likely = _likely(schema, table, places, numbers, weight)
    if not likely:
        return schema
    if getattr(table, "from_first_rows", False):
        raise UnseenCategoryError("a column of two values takes a pass over all rows")
    found: _EndsOfColumns = _rows_of(schema, table, places, likely, weight).reduce(_EndsOfColumns.of)
    columns = list(schema.columns)
    for j, low, high, two in zip(likely, found.low, found.high, found.are_categories, strict=True):
        if two:
            column = columns[j]
            cells = [int(low), int(high)] if "int" in column.dtype.lower() else [float(low), float(high)]
            columns[j] = categorical_column(column.name, cells, column.dtype)
    return replace(schema, columns=tuple(columns))


def _rows_of(
    schema: Schema, table: Table, places: Sequence[int], columns: Sequence[int], weight: Array | None
) -> LabelledSource:
    """Return some columns of numbers of a table, with the weights of the rows."""
    part = replace(schema, columns=tuple([schema.columns[j] for j in columns]), target=None)
    return source_of(table, part, [places[j] for j in columns], None, _ONE_CLASS, weight)


def _likely(
    schema: Schema, table: Table, places: Sequence[int], columns: Sequence[int], weight: Array | None
) -> list[int]:
    """Return the columns whose first rows do not rule out two values; all, where first rows cannot be read alone."""
    if isinstance(table, StreamedTable):
        if weight is not None and not weight.all():
            return list(columns)
        frame = next(iter(table.frames([table.names[places[j]] for j in columns])), None)
        if frame is None:
            return []
        part = PolarsTable(frame.head(_HEAD_ROWS))
        read = replace(schema, columns=tuple([schema.columns[j] for j in columns]))
        head = _rows_of(read, part, range(len(columns)), range(len(columns)), None)
    elif isinstance(table, LazyTable):
        return list(columns)
    else:
        head = _rows_of(schema, table, places, columns, weight)
    found = _EndsOfColumns.of(head.batch(slice(0, min(head.table.n_rows, _HEAD_ROWS))))
    return [j for j, possible in zip(columns, found.may_be_categories, strict=True) if possible]


def warn_of_third_values(before: Schema, after: Schema, stated: Collection[int]) -> None:
    """Warn of columns of numbers that were categories for their two values, and hold others in further rows."""
    for j, (old, new) in enumerate(zip(before.columns, after.columns, strict=True)):
        chosen = old.kind == "categorical" and old.kinds == {"numbers"} and len(old.categories) == 2
        if chosen and old.part is None and j not in stated and len(new.categories) > 2:
            other = next(cell for cell in new.categories if cell not in old.lookup)
            warn(
                f"column {old.name!r} held {old.categories[0]:g} and {old.categories[1]:g} in the first rows, which "
                f"made them categories, and holds {other:g} now, which becomes a further one; a fit of all rows takes "
                'them as numbers, and so does columns=po.Columns(categorical_features="from_dtype")'
            )
