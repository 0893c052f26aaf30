"""Frames of polars as tables, and Arrow tables, which polars takes without copying."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.lazy_polars import pl
from posteriori.tables.columns import Column, categorical_column
from posteriori.tables.encoding import distinct_numbers, encode_numbers, encode_present
from posteriori.tables.messages import not_numeric, unusable
from posteriori.tables.objects import (
    FEW_CELLS,
    encode_objects,
    hash_strings,
    no_text,
    object_column,
    object_numbers,
    object_strings,
    whole_numbers,
)
from posteriori.tables.schema import Schema
from posteriori.tables.tiles import code_tile, number_tile
from posteriori.tables.times import TimeType, times_of_polars, type_of_polars
from posteriori.typing import Array


@dataclass(frozen=True)
class PolarsTable:
    """A polars DataFrame, or an Arrow table converted to one without copying.

    Attributes
    ----------
    arrow : tuple of str
        The Arrow data type of each column, where the table was an Arrow table.
    first : int
        The number of the first row, where the frame is a part of a longer table whose slices name its rows.
    """

    frame: pl.DataFrame
    container: str = "polars"
    arrow: tuple[str, ...] = ()
    first: int = 0
    dtype = ""
    named = True

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.frame.height

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.frame.columns)

    def _part(self, rows: slice) -> pl.DataFrame:
        if not self.first:
            return self.frame[rows]
        return self.frame[rows.start - self.first : rows.stop - self.first]

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""
        series = _cells(self.frame, j)
        name, dtype = self.names[j], series.dtype
        label = self.data_type(j)
        if isinstance(dtype, pl.Enum):
            return categorical_column(name, dtype.categories.to_list(), label, declared=True)
        if _is_string(dtype):
            return categorical_column(name, series.cast(pl.String).drop_nulls().unique().to_list(), label)
        if dtype == pl.Boolean:
            nothing = series.null_count() == len(series)
            return categorical_column(name, [] if nothing else [False, True], label)
        if dtype == pl.Object:
            return object_column(name, series.to_list(), categorical)
        numeric = dtype.is_numeric() or dtype == pl.Null
        if numeric and not categorical:
            return Column(name, "continuous", dtype=label)
        if numeric:
            return categorical_column(name, _distinct(series.drop_nulls()), label)
        raise unusable(name, label if self.arrow else str(dtype))

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        return self._data_types[j]

    @cached_property
    def _data_types(self) -> Sequence[str]:
        return self.arrow or [dtype.base_type().__name__ for dtype in self.frame.dtypes]  # dtypes is a list of all

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        return _cells(self.frame, j).drop_nulls().unique().to_list()

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Return the present integers of column j in the first rows; None if it does not hold integers."""
        series = _cells(self.frame, j).head(self.n_rows if n_rows is None else n_rows).drop_nulls()
        if series.dtype == pl.Object:
            return whole_numbers(series.to_list())
        return series.to_numpy() if series.dtype.is_integer() and not _is_wide(series.dtype) else None

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Return hashes of the present cells of column j in the first rows; None if it does not hold strings."""
        series = _cells(self.frame, j).head(self.n_rows if n_rows is None else n_rows).drop_nulls()
        if series.dtype == pl.Object:
            return hash_strings(series.to_list())
        if series.dtype in (pl.String, pl.Categorical):
            return series.cast(pl.String).hash().to_numpy()
        return None

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations that column j holds; None if it holds others."""
        return type_of_polars(_cells(self.frame, j))

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Return column j of some rows as times (n,) of the type that a model has, NaT where missing."""
        return times_of_polars(_cells(self._part(rows), j), wanted, self.names[j])

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Return column j of some rows as strings, None where missing; ValueError if it does not hold strings."""
        series = _cells(self._part(rows), j)
        if series.dtype == pl.Object:
            return object_strings(series.to_list(), self.names[j])
        if not _is_string(series.dtype) and series.null_count() < len(series):
            raise no_text(self.names[j], str(series.dtype))
        return series.cast(pl.String).to_list()

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as floats (n, d), NaN where missing."""
        part = self._part(rows)
        pairs = zip(columns, schema_columns, strict=True)
        arrays = [_numbers(_cells(part, j), column, rows.start or 0) for j, column in pairs]
        return number_tile(arrays, part.height)

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return categorical columns of some rows as codes (n, d), and the number of unseen categories per column."""
        part = self._part(rows)
        series = [_cells(part, j) for j in columns]
        return code_tile(
            [_codes(cells, column) for cells, column in zip(series, schema_columns, strict=True)],
            schema,
            schema_columns,
            part.height,
        )


def needs_cells(dtype: pl.DataType, categorical: bool) -> bool:
    """Return whether the categories of a column are known only from its cells, and not from its polars data type."""
    return dtype in (pl.String, pl.Categorical, pl.Boolean) or (categorical and dtype.is_numeric())


def _cells(frame: pl.DataFrame, j: int) -> pl.Series:
    """Return column j under a plain name: methods of a polars series also read a name such as "^a$" as a pattern."""
    return frame.to_series(j).alias("cells")


def _array(series: pl.Series, name: str) -> Array:
    if series.dtype in (pl.Null, pl.Decimal, pl.Float16):
        series = series.cast(pl.Float64)
    if _is_wide(series.dtype):
        series = _as_doubles(series, name)
    return series.to_numpy()  # null becomes NaN


def _as_doubles(series: pl.Series, name: str) -> pl.Series:
    """Return integers of 128 bits as floats, and warn if this rounds them."""
    doubles = series.cast(pl.Float64)
    # The float of the largest integer may lie just above the range of the type, where the cast back gives null.
    if not doubles.cast(series.dtype, strict=False).eq_missing(series).all():
        warnings.warn(
            f"column {name!r} holds integers of more than 53 bits, which are rounded to floating-point numbers; "
            "rescale the column where the last digits matter",
            UserWarning,
            stacklevel=2,
        )
    return doubles


def _distinct(present: pl.Series) -> list[Any]:
    """Return the distinct numbers of a column without missing cells."""
    if _is_wide(present.dtype):
        return list(set(present.to_list()))
    return distinct_numbers(_array(present, present.name))


def _numbers(series: pl.Series, column: Column, start: int) -> Array:
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if series.dtype == pl.Object:
        return object_numbers(series.to_list(), column, start)
    if series.dtype == pl.Boolean:
        series = series.cast(pl.Float32)
    if not series.dtype.is_numeric():
        raise not_numeric(column.name, str(series.dtype))
    return _array(series, column.name)


def _codes(series: pl.Series, column: Column) -> tuple[Array, int]:
    dtype, n_missing = series.dtype, series.null_count()
    if n_missing == len(series):
        return np.zeros(len(series), column.code_type), 0
    if dtype == pl.Object or _is_wide(dtype):
        return encode_objects(series.to_list(), column)
    if _is_string(dtype):
        if column.kinds != {"strings"} or len(series) <= FEW_CELLS:  # an Enum would take longer to set up
            return encode_objects(series.to_list(), column)
        known = series if dtype == column.strings else series.cast(column.strings, strict=False)
        n_without = known.null_count()
        present = known.is_not_null().to_numpy() if n_without else slice(None)
        codes = np.zeros(len(series), column.code_type)
        places = known.drop_nulls().to_physical().to_numpy()
        codes[present] = np.add(places, 1, dtype=codes.dtype, casting="unsafe")
        return codes, n_without - n_missing
    if dtype != pl.Boolean and not dtype.is_numeric():
        raise unusable(column.name, str(dtype))
    if n_missing and not dtype.is_float():  # as integers, because floats would round them
        return encode_present(_array(series.drop_nulls(), column.name), series.is_not_null().to_numpy(), column)
    return encode_numbers(_array(series, column.name), column)


def _is_wide(dtype: pl.DataType) -> bool:
    """Return whether NumPy has no such integers."""
    return dtype in (pl.Int128, pl.UInt128)


def _is_string(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)
