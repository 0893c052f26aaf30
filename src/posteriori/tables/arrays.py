"""NumPy arrays as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.tables.columns import Column, categorical_column
from posteriori.tables.encoding import (
    distinct_integers,
    distinct_numbers,
    encode_integer_tile,
    encode_numbers,
)
from posteriori.tables.messages import unusable
from posteriori.tables.missing import is_missing
from posteriori.tables.objects import (
    encode_objects,
    hash_strings,
    object_column,
    object_numbers,
    object_strings,
    plain_cell,
    whole_numbers,
)
from posteriori.tables.schema import Schema
from posteriori.tables.times import TimeType, times_of_array, type_of_array, type_of_objects
from posteriori.typing import Array


@dataclass(frozen=True)
class ArrayTable:
    """An (n, d) array of floats, integers, booleans, strings or Python objects.

    Attributes
    ----------
    title : str, optional
        The name of the column, where there is only one.
    offset : int
        The number of the first row, where the array is a part of a longer table: for messages.
    """

    values: Array
    title: str | None = None
    offset: int = 0
    container = "numpy"
    named = False

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.values)

    @property
    def dtype(self) -> str:
        """The data type of the array."""
        return self.values.dtype.str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """x0, x1, …: the names that scikit-learn gives to columns without names."""
        if self.title is not None:
            return (self.title,)
        return tuple(f"x{j}" for j in range(self.values.shape[1]))

    @cached_property
    def _distinct_integers(self) -> list[list[int]]:
        return distinct_integers(self.values)  # of all columns at once, because rows are contiguous in memory

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""
        name, values, dtype = self.names[j], self.values[:, j], self.values.dtype.str
        if values.dtype.kind in "mM":
            raise unusable(name, str(values.dtype))
        if values.dtype.kind == "O":
            return object_column(name, values.tolist(), categorical)
        if values.dtype.kind == "U":
            return categorical_column(name, set(values.tolist()), dtype)
        if categorical and values.dtype.kind in "iu":
            return categorical_column(name, self._distinct_integers[j], dtype)
        if categorical or values.dtype.kind == "b":
            return categorical_column(name, distinct_numbers(values), dtype)
        return Column(name, "continuous", dtype=dtype)

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        cells = self.values[:, j]
        if cells.dtype.kind == "O":
            return list({plain_cell(cell, self.names[j]) for cell in cells.tolist() if not is_missing(cell)})
        return distinct_numbers(cells) if cells.dtype.kind in "fiub" else np.unique(cells).tolist()

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        return "object" if self.values.dtype.kind == "O" else self.values.dtype.str

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Return the present integers of column j in the first rows; None if it does not hold integers."""
        cells = self.values[:n_rows, j]
        if cells.dtype.kind == "O":
            return whole_numbers(cells.tolist())
        return cells if cells.dtype.kind in "iu" else None

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Return hashes of the present cells of column j in the first rows; None if it does not hold strings."""
        cells = self.values[:n_rows, j]
        return hash_strings(cells.tolist()) if cells.dtype.kind in "OU" else None

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations that column j holds; None if it holds others."""
        if self.values.dtype.kind in "mM":
            return type_of_array(self.values.dtype)
        return type_of_objects(self.values[:, j].tolist()) if self.values.dtype.kind == "O" else None

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Return column j of some rows as times (n,) of the type that a model has, NaT where missing."""
        return times_of_array(self.values[rows, j], wanted, self.names[j])

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Return column j of some rows as strings, None where missing; ValueError if it does not hold strings."""
        return object_strings(self.values[rows, j].tolist(), self.names[j])

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as floats (n, d): a view where the layout allows."""
        values = self.values[rows]
        if len(columns) < values.shape[1] or tuple(columns) != tuple(range(len(columns))):
            values = values[:, columns]
        if values.dtype.kind in "OU":
            tile = np.empty(values.shape)
            for position, column in enumerate(schema_columns):
                tile[:, position] = object_numbers(
                    values[:, position].tolist(), column, self.offset + (rows.start or 0)
                )
            return tile
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        return np.require(values, requirements=["C", "A", "W"])

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return categorical columns of some rows as codes (n, d), and the number of unseen categories per column."""
        values = self.values[rows]
        if len(columns) < values.shape[1] or tuple(columns) != tuple(range(len(columns))):
            values = values[:, columns]
        codes = np.empty(values.shape, schema.code_dtype)
        if values.dtype.kind in "iu" and encode_integer_tile(values, schema_columns, codes):
            if codes.all():
                return codes, {}
            unmatched = (len(codes) - np.count_nonzero(codes, axis=0)).tolist()
            for column, count in zip(schema_columns, unmatched, strict=True):
                column.require_kinds(["numbers"] if count else [])
        else:
            unmatched = []
            for position, column in enumerate(schema_columns):
                codes[:, position], count = self._column_codes(values[:, position], column)
                unmatched.append(count)
        return codes, {column.name: count for column, count in zip(schema_columns, unmatched, strict=True) if count}

    def _column_codes(self, values: Array, column: Column) -> tuple[Array, int]:
        if values.dtype.kind in "OU":
            return encode_objects(values.tolist(), column)
        return encode_numbers(values, column)


def plain_array(values: Array, name: str, times: bool = False) -> Array:
    """Return an array as a plain NumPy array of numbers, strings, booleans or objects; or of times if `times`.

    Raises
    ------
    TypeError
        Its cells are bytes, dates or records, or some are masked.
    ValueError
        Its cells are complex numbers.
    """
    dtype = values.dtype
    if np.ma.is_masked(values):
        raise TypeError(f"{name} is a masked array; fill its masked cells: {name}.filled(np.nan)")
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is {dtype}; give real numbers")
    if dtype.kind == "S":
        raise TypeError(f"{name} is an array of bytes; decode them: {name}.astype(str)")
    if dtype.kind == "V" or (dtype.kind in "mM" and not times):
        raise TypeError(f"{name} is {dtype}; turn it into numbers or categories")
    return np.asarray(values)
