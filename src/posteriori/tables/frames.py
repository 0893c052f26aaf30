"""Data frames as tables: polars (and, by way of it, Arrow) and pandas."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.lazy_polars import pl
from posteriori.tables.columns import Column, categorical_column, kind_of
from posteriori.tables.encoding import distinct_numbers, encode_distinct, encode_numbers, encode_present
from posteriori.tables.messages import unusable
from posteriori.tables.objects import (
    encode_objects,
    hash_strings,
    no_text,
    object_column,
    object_numbers,
    object_strings,
    plain_cell,
    whole_numbers,
)
from posteriori.tables.schema import Schema
from posteriori.tables.table import name_twice
from posteriori.tables.times import TimeType, times_of_pandas, times_of_polars, type_of_pandas, type_of_polars
from posteriori.typing import Array

_FEW = 1000  # rows, up to which look-ups of cells beat the set-up of an Enum


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
            return categorical_column(name, _distinct_polars(series.drop_nulls()), label)
        raise unusable(name, str(dtype))

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        return self.arrow[j] if self.arrow else self.frame.dtypes[j].base_type().__name__

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
        arrays = [_polars_numbers(_cells(part, j), column, rows.start or 0) for j, column in pairs]
        return _tile(arrays, part.height)

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return categorical columns of some rows as codes (n, d), and the number of unseen categories per column."""
        part = self._part(rows)
        series = [_cells(part, j) for j in columns]
        return _code_tile(
            [_polars_codes(cells, column) for cells, column in zip(series, schema_columns, strict=True)],
            schema,
            schema_columns,
            part.height,
        )


@dataclass(frozen=True)
class PandasTable:
    """A pandas DataFrame.

    Attributes
    ----------
    offset : int
        The number of the first row, where the frame is a part of a longer table: for messages.
    """

    frame: Any
    names: tuple[str, ...]
    named: bool
    offset: int = 0
    container = "pandas"
    dtype = ""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.frame)

    @cached_property
    def _columns(self) -> dict[int, Any]:
        return {}

    @cached_property
    def _arrays(self) -> dict[int, Array | None]:
        return {}

    def _column(self, j: int) -> Any:
        """Return column j as a Series; kept, because pandas takes 30 µs to make one."""
        if j not in self._columns:
            self._columns[j] = self.frame.iloc[:, j]
        return self._columns[j]

    def _array(self, j: int) -> Array | None:
        """Return a column of NumPy numbers as an array without a copy, which is cheap to slice; None for another."""
        if j not in self._arrays:
            series = self._column(j)
            is_plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf"
            self._arrays[j] = series.to_numpy() if is_plain else None  # np.asarray takes ten times as long
        return self._arrays[j]

    @cached_property
    def _is_uniform(self) -> bool:
        """Whether all columns have one NumPy type of numbers, so that pandas converts rows to one array at once."""
        dtypes = set(self.frame.dtypes)
        return len(dtypes) == 1 and isinstance(dtype := dtypes.pop(), np.dtype) and dtype.kind in "iuf"

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""
        series, name, label = self._column(j), self.names[j], self.data_type(j)
        dtype = series.dtype
        kind = getattr(dtype, "kind", "O")
        if label in ("category", "ordered"):
            cells = [plain_cell(cell, name) for cell in dtype.categories]
            return categorical_column(name, cells, label, declared=True)
        if label == "object":
            return object_column(name, series.tolist(), categorical)
        if _is_pandas_string(dtype):
            return categorical_column(name, series.dropna().unique().tolist(), label)
        if kind == "b":
            return categorical_column(name, [] if series.isna().all() else [False, True], label)
        if kind in "iuf" and not categorical:
            return Column(name, "continuous", dtype=label)
        if kind in "iuf":
            return categorical_column(name, distinct_numbers(series.dropna().to_numpy()), label)
        raise unusable(name, label)

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        present = self._column(j).dropna()
        try:
            cells: list[Any] = present.unique().tolist()
        except TypeError:  # an unhashable cell, which `plain_cell` names
            return [plain_cell(cell, self.names[j]) for cell in present]
        return cells

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        label = str(self._column(j).dtype)
        return "ordered" if label == "category" and self._column(j).dtype.ordered else label

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Return the present integers of column j in the first rows; None if it does not hold integers."""
        present = self._column(j).iloc[:n_rows].dropna()
        if self.data_type(j) == "object":
            return whole_numbers(present.tolist())
        if getattr(present.dtype, "kind", "O") not in "iu":
            return None
        return np.asarray(present.to_numpy(dtype=_numpy_dtype(present.dtype)))

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Return hashes of the present cells of column j in the first rows; None if it does not hold strings."""
        label, present = self.data_type(j), self._column(j).iloc[:n_rows].dropna()
        if label == "object":
            return hash_strings(present.tolist())
        if label != "category" and (label == "ordered" or not _is_pandas_string(present.dtype)):
            return None
        import pandas as pd

        return np.asarray(pd.util.hash_pandas_object(present, index=False))

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations that column j holds; None if it holds others."""
        return type_of_pandas(self._column(j))

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Return column j of some rows as times (n,) of the type that a model has, NaT where missing."""
        return times_of_pandas(self._column(j).iloc[rows], wanted, self.names[j])

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Return column j of some rows as strings, None where missing; ValueError if it does not hold strings."""
        return object_strings(self._column(j).iloc[rows].tolist(), self.names[j])

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as floats (n, d), NaN where missing."""
        if self._is_uniform:
            cells = self.frame.iloc[rows].to_numpy()
            cells = cells if list(columns) == list(range(cells.shape[1])) else cells[:, columns]
            return np.require(cells, np.float32 if cells.dtype == np.float32 else np.float64, ["C", "A", "W"])
        arrays = []
        for j, column in zip(columns, schema_columns, strict=True):
            array = self._array(j)
            if array is None:
                arrays.append(_pandas_numbers(self._column(j).iloc[rows], column, self.offset + (rows.start or 0)))
            else:
                arrays.append(array[rows])
        return _tile(arrays, len(range(*rows.indices(self.n_rows))))

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return categorical columns of some rows as codes (n, d), and the number of unseen categories per column."""
        encoded = []
        for j, column in zip(columns, schema_columns, strict=True):
            array = self._array(j)
            if array is None:
                encoded.append(_pandas_codes(self._column(j).iloc[rows], column))
            else:
                encoded.append(encode_numbers(array[rows], column))
        return _code_tile(encoded, schema, schema_columns, len(range(*rows.indices(self.n_rows))))


def needs_cells(dtype: pl.DataType, categorical: bool) -> bool:
    """Return whether the categories of a column are known only from its cells, and not from its polars data type."""
    return dtype in (pl.String, pl.Categorical, pl.Boolean) or (categorical and dtype.is_numeric())


def pandas_table(native: Any) -> PandasTable:
    """Open a pandas DataFrame.

    Raises
    ------
    TypeError
        Some column names are strings, and others are not.
    ValueError
        Two columns share a name.
    """
    titles = native.columns.tolist()
    if not native.columns.is_unique and (twice := name_twice(titles)):
        raise twice
    named = all(isinstance(name, str) for name in titles)
    if not named and any(isinstance(name, str) for name in titles):
        raise TypeError("column names are partly strings; make all of them strings: X.columns = X.columns.astype(str)")
    names = tuple(titles) if named else tuple(f"x{j}" for j in range(native.shape[1]))
    return PandasTable(native, names, named)


def _tile(arrays: list[Array], n_rows: int) -> Array:
    """Return columns as one row-major array: float32 if all of them are, else float64."""
    narrow = bool(arrays) and all(array.dtype == np.float32 for array in arrays)
    tile = np.empty((n_rows, len(arrays)), np.float32 if narrow else np.float64)
    for position, array in enumerate(arrays):
        tile[:, position] = array
    return tile


def _code_tile(
    encoded: list[tuple[Array, int]], schema: Schema, columns: Sequence[Column], n_rows: int
) -> tuple[Array, dict[str, int]]:
    tile = np.empty((n_rows, len(encoded)), schema.code_dtype)
    for position, (codes, _) in enumerate(encoded):
        tile[:, position] = codes
    pairs = zip(columns, encoded, strict=True)
    return tile, {column.name: unmatched for column, (_, unmatched) in pairs if unmatched}


def _cells(frame: pl.DataFrame, j: int) -> pl.Series:
    """Return column j under a plain name: methods of a polars series also read a name such as "^a$" as a pattern."""
    return frame.to_series(j).alias("cells")


def _polars_array(series: pl.Series, name: str) -> Array:
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


def _distinct_polars(present: pl.Series) -> list[Any]:
    """Return the distinct numbers of a column without missing cells."""
    if _is_wide(present.dtype):
        return list(set(present.to_list()))
    return distinct_numbers(_polars_array(present, present.name))


def _polars_numbers(series: pl.Series, column: Column, start: int) -> Array:
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    if series.dtype == pl.Object:
        return object_numbers(series.to_list(), column, start)
    if series.dtype == pl.Boolean:
        series = series.cast(pl.Float32)
    _require_numeric(column, str(series.dtype), series.dtype.is_numeric())
    return _polars_array(series, column.name)


def _polars_codes(series: pl.Series, column: Column) -> tuple[Array, int]:
    dtype, n_missing = series.dtype, series.null_count()
    if n_missing == len(series):
        return np.zeros(len(series), column.code_type), 0
    if dtype == pl.Object or _is_wide(dtype):
        return encode_objects(series.to_list(), column)
    if _is_string(dtype):
        if column.kinds != {"strings"} or len(series) <= _FEW:  # an Enum would take longer to set up
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
        return encode_present(_polars_array(series.drop_nulls(), column.name), series.is_not_null().to_numpy(), column)
    return encode_numbers(_polars_array(series, column.name), column)


def _pandas_numbers(series: Any, column: Column, start: int) -> Array:
    dtype = series.dtype
    if str(dtype) == "object":
        return object_numbers(series.tolist(), column, start)
    if getattr(dtype, "kind", "O") not in "iufb":
        _require_numeric(column, str(dtype), bool(series.isna().all()))
        return np.full(len(series), np.nan)
    if isinstance(dtype, np.dtype):
        return np.asarray(series)
    narrow = np.dtype(_numpy_dtype(dtype)) == np.float32
    return np.asarray(series.to_numpy(dtype=np.float32 if narrow else np.float64, na_value=np.nan))


def _pandas_codes(series: Any, column: Column) -> tuple[Array, int]:
    import pandas as pd

    label, kind = str(series.dtype), getattr(series.dtype, "kind", "O")
    if label == "category":
        local, distinct = series.array.codes, list(series.dtype.categories)
    elif label == "object" or _is_pandas_string(series.dtype):
        if label == "object" or len(series) <= _FEW:  # look-ups of few cells are faster than a hash table of all
            return encode_objects(series.tolist(), column)
        local, distinct = pd.factorize(series)
    elif kind in "iufb":
        if isinstance(series.dtype, np.dtype):
            return encode_numbers(np.asarray(series), column)
        present = series.notna().to_numpy(dtype=bool)
        return encode_present(series[present].to_numpy(dtype=_numpy_dtype(series.dtype)), present, column)
    else:
        raise unusable(column.name, label)
    distinct = [plain_cell(cell, column.name) for cell in distinct]
    lookup = encode_distinct(distinct, column)
    if np.array_equal(lookup[:-1], np.arange(1, len(lookup))):
        return np.add(local, 1, dtype=column.code_type, casting="unsafe"), 0  # a missing cell is −1
    codes = lookup[local]
    unmatched = int(np.count_nonzero(local >= 0) - np.count_nonzero(codes))
    if unmatched:
        column.require_kinds({kind_of(cell) for cell in distinct if cell not in column.lookup})
    return codes, unmatched


def _numpy_dtype(dtype: Any) -> Any:
    """Return the NumPy type of a nullable or Arrow type of pandas, and of the values of a sparse one."""
    dtype = getattr(dtype, "subtype", dtype)
    return getattr(dtype, "numpy_dtype", dtype)


def _is_pandas_string(dtype: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_string_dtype(dtype))


def _require_numeric(column: Column, dtype: str, numeric: bool) -> None:
    if not numeric:
        raise ValueError(f"column {column.name!r} was numeric in training but is {dtype} now; convert it")


def _is_wide(dtype: pl.DataType) -> bool:
    """Return whether NumPy has no such integers."""
    return dtype in (pl.Int128, pl.UInt128)


def _is_string(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)
