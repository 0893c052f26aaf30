"""NumPy arrays as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np

from posteriori.tables.encoding import (
    distinct_integers,
    distinct_numbers,
    encode_integer_tile,
    encode_numbers,
    encode_objects,
    is_missing,
    plain_cell,
)
from posteriori.tables.schema import Column, Schema, categorical_column
from posteriori.typing import Array


@dataclass(frozen=True)
class ArrayTable:
    """An (n, d) array of floats, integers, booleans, strings or Python objects."""

    values: Array
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
        """x0, x1, …: scikit-learn's names for columns without one."""
        return tuple(f"x{j}" for j in range(self.values.shape[1]))

    @cached_property
    def _distinct_integers(self) -> list[list[int]]:
        return distinct_integers(self.values)  # of all columns at once, because the array lies row by row

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j; categorical says that it is to be so whatever its data type."""
        name, values, dtype = self.names[j], self.values[:, j], self.values.dtype.str
        if values.dtype.kind == "O":
            return _object_column(name, values.tolist(), categorical)
        if values.dtype.kind in "US":
            return categorical_column(name, set(values.tolist()), dtype)
        if categorical and values.dtype.kind in "iu":
            return categorical_column(name, self._distinct_integers[j], dtype)
        if categorical or values.dtype.kind == "b":
            return categorical_column(name, distinct_numbers(values), dtype)
        return Column(name, "continuous", dtype=dtype)

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as a tile: a view where the layout allows."""
        values = self.values[rows]
        if len(columns) < values.shape[1] or tuple(columns) != tuple(range(len(columns))):
            values = values[:, columns]
        if values.dtype.kind in "OUS":
            tile = np.empty(values.shape)
            for place, column in enumerate(schema_columns):
                tile[:, place] = _object_numbers(values[:, place].tolist(), column)
            return tile
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        return np.require(values, requirements=["C", "A", "W"])

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return some categorical columns of some rows as codes, and how many cells no category matches."""
        values = self.values[rows]
        if len(columns) < values.shape[1] or tuple(columns) != tuple(range(len(columns))):
            values = values[:, columns]
        codes = np.empty(values.shape, schema.code_dtype)
        if values.dtype.kind in "iu" and encode_integer_tile(values, schema_columns, codes):
            if codes.all():
                return codes, {}
            unmatched = len(codes) - np.count_nonzero(codes, axis=0)
        else:
            unmatched = np.zeros(len(columns), np.int64)
            for place, column in enumerate(schema_columns):
                codes[:, place], unmatched[place] = self._column_codes(values[:, place], column)
        return codes, {
            column.name: int(count) for column, count in zip(schema_columns, unmatched, strict=True) if count
        }

    def _column_codes(self, values: Array, column: Column) -> tuple[Array, int]:
        if values.dtype.kind in "OUS":
            return encode_objects(values.tolist(), column)
        if column.holds_strings:
            raise ValueError(f"column {column.name!r} held strings in training but holds numbers now; convert it")
        return encode_numbers(values, column)


def _object_column(name: str, cells: list[object], categorical: bool) -> Column:
    present = [cell for cell in cells if not is_missing(cell)]
    types = set(map(type, present))
    numeric = all(issubclass(kind, Real) and not issubclass(kind, bool | np.bool_) for kind in types)
    if numeric and not categorical:
        return Column(name, "continuous", dtype="object")
    try:
        distinct = {plain_cell(cell, name) for cell in set(present)}
    except TypeError:
        distinct = {plain_cell(cell, name) for cell in present}
    if types and types <= {bool, np.bool_}:
        return categorical_column(name, [False, True], "object")
    if not categorical and len({isinstance(cell, str) for cell in distinct}) > 1:
        raise ValueError(
            f"column {name!r} mixes strings and numbers; convert it to one of them, "
            "or name it in categorical_features"
        )
    return categorical_column(name, distinct, "object")


def _object_numbers(cells: list[object], column: Column) -> Array:
    try:
        return np.array([np.nan if is_missing(cell) else cell for cell in cells], dtype=np.float64)
    except (TypeError, ValueError):
        for cell in cells:
            if not is_missing(cell) and not isinstance(cell, Real):
                plain_cell(cell, column.name)
                raise ValueError(
                    f"column {column.name!r} was numeric in training but holds {cell!r} now; convert it"
                ) from None
        raise
