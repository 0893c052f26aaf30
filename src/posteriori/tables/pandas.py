"""Tables of pandas and Arrow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.arrays import (
    FEW_CELLS,
    distinct_numbers,
    encode_distinct,
    encode_numbers,
    encode_objects,
    encode_present,
    hash_strings,
    object_column,
    object_numbers,
    object_strings,
    plain_cell,
    whole_numbers,
)
from posteriori.tables.batch import code_tile, number_tile
from posteriori.tables.messages import not_numeric, unusable
from posteriori.tables.schema import Column, Schema, categorical_column, kind_of
from posteriori.tables.table import NO_ROWS, UnseenRows, name_twice
from posteriori.tables.times import TimeType, times_of_pandas, type_of_pandas


def plain_column(values: Any, keep_dictionaries: bool) -> Any | None:
    """Return a column of Arrow as booleans, numbers, strings or times; None if its cells are something else.

    Run ends and dictionaries are expanded, except dictionaries of strings if they are to be kept. Decimals of any
    width become floats of 64 bits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = values.type, pa.types
    if types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in values.chunks]
        return plain_column(pa.chunked_array(chunks, kind.value_type), keep_dictionaries)
    if types.is_dictionary(kind):
        if keep_dictionaries and kind.value_type in (pa.string(), pa.large_string()):
            return values
        chunks = [chunk.dictionary_decode() for chunk in values.chunks]
        return plain_column(pa.chunked_array(chunks, kind.value_type), keep_dictionaries)
    if types.is_decimal(kind) or types.is_null(kind):
        return values.cast(pa.float64())
    if kind == pa.string_view():
        return values.cast(pa.large_string())
    is_time = types.is_temporal(kind) and not types.is_interval(kind)
    is_scalar = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    return values if is_time or is_scalar or kind in (pa.string(), pa.large_string()) else None


def plain_table(table: Any) -> Any:
    """Return a table of Arrow with plain columns; other columns get cells of bytes, which no model reads."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        plain = plain_column(column, keep_dictionaries=True)
        columns.append(pa.repeat(pa.scalar(b""), table.num_rows) if plain is None else plain)
    return pa.table(columns, names=table.column_names)


def type_names(table: Any, plain: Any) -> tuple[str, ...]:
    """Return the names of the types of plain columns, and of the original types of columns that no model reads."""
    import pyarrow as pa

    pairs = zip(table.schema.types, plain.schema.types, strict=True)
    return tuple(str(given if read == pa.binary() else read) for given, read in pairs)


def type_of_name(name: str) -> Any | None:
    """Return the type of Arrow with this name; None for one with parameters other than a unit and a time zone."""
    import pyarrow as pa

    zoned = re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", name)
    if zoned:
        return pa.timestamp(zoned[1], zoned[2])
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return None


@dataclass(frozen=True)
class PandasTable:
    """A pandas DataFrame."""

    frame: Any
    names: tuple[str, ...]
    named: bool
    offset: int = 0  # the number of the first row, where the frame is a part of a longer table: for messages
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
            series = self.frame.iloc[:, j]
            self._columns[j] = _plain(series, self.names[j]) if hasattr(series.dtype, "pyarrow_dtype") else series
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
        if _is_string(dtype):
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
            cells = [float(cell) if isinstance(cell, Decimal) else cell for cell in present.unique().tolist()]
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
        if label != "category" and (label == "ordered" or not _is_string(present.dtype)):
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
                arrays.append(_numbers(self._column(j).iloc[rows], column, self.offset + (rows.start or 0)))
            else:
                arrays.append(array[rows])
        return number_tile(arrays, len(range(*rows.indices(self.n_rows))))

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, UnseenRows]:
        """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column."""
        encoded = []
        for j, column in zip(columns, schema_columns, strict=True):
            array = self._array(j)
            if array is None:
                encoded.append(_codes(self._column(j).iloc[rows], column))
            else:
                encoded.append(encode_numbers(array[rows], column))
        return code_tile(encoded, schema, schema_columns, len(range(*rows.indices(self.n_rows))))


def pandas_table(native: Any) -> PandasTable:
    """Open a pandas DataFrame.

    Labels of columns that are no strings are names as text. Only the labels 0, 1, … in this order are none: frames of
    arrays have them.

    Raises TypeError if some column names are strings, and others are not, and ValueError if two columns share a
    name.
    """
    labels = native.columns.tolist()
    are_strings = [isinstance(label, str) for label in labels]
    if any(are_strings) and not all(are_strings):
        raise TypeError("column names are partly strings; make all of them strings: X.columns = X.columns.astype(str)")
    names = tuple(labels) if all(are_strings) else tuple(map(label_name, labels))
    is_unique = native.columns.is_unique if all(are_strings) else len(set(names)) == len(names)
    if not is_unique and (twice := name_twice(names)):
        raise twice
    if labels and labels == list(range(len(labels))):
        return PandasTable(native, tuple(f"x{j}" for j in range(len(labels))), named=False)
    return PandasTable(native, names, named=True)


def label_name(label: Any) -> str:
    """Return the label of a column as text, the same for equal numbers of different types."""
    if isinstance(label, str):
        return label
    if isinstance(label, tuple):
        return f"({', '.join(repr(one) if isinstance(one, str) else label_name(one) for one in label)})"
    if isinstance(label, np.generic):
        label = label.item()
    return str(int(label) if isinstance(label, bool | float) and label == label // 1 else label)


def _plain(series: Any, name: str) -> Any:
    """Return a column of Arrow cells in a type that pandas computes with."""
    import pandas as pd
    import pyarrow as pa

    cells = series.array.__arrow_array__()
    cells = cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])
    plain = plain_column(cells, keep_dictionaries=False)
    if plain is None:
        raise unusable(name, str(series.dtype))
    if plain is cells:
        return series
    return pd.Series(pd.array(plain, dtype=pd.ArrowDtype(plain.type)), index=series.index)


def _numbers(series: Any, column: Column, start: int) -> Array:
    dtype = series.dtype
    if str(dtype) == "object":
        return object_numbers(series.tolist(), column, start)
    if getattr(dtype, "kind", "O") not in "iufb":
        if not series.isna().all():
            raise not_numeric(column.name, str(dtype))
        return np.full(len(series), np.nan)
    if isinstance(dtype, np.dtype):
        return np.asarray(series)
    narrow = np.dtype(_numpy_dtype(dtype)) == np.float32
    return np.asarray(series.to_numpy(dtype=np.float32 if narrow else np.float64, na_value=np.nan))


def _codes(series: Any, column: Column) -> tuple[Array, Array]:
    import pandas as pd

    label, kind = str(series.dtype), getattr(series.dtype, "kind", "O")
    if label == "category":
        local, distinct = series.array.codes, list(series.dtype.categories)
    elif label == "object" or _is_string(series.dtype):
        if label == "object" or len(series) <= FEW_CELLS:  # look-ups of few cells are faster than a hash table of all
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
        return np.add(local, 1, dtype=column.code_type, casting="unsafe"), NO_ROWS  # a missing cell is −1
    codes = lookup[local]
    unseen = np.flatnonzero((local >= 0) & (codes == 0))
    if len(unseen):
        column.require_kinds({kind_of(cell) for cell in distinct if cell not in column.lookup})
    return codes, unseen


def _numpy_dtype(dtype: Any) -> Any:
    """Return the NumPy type of a nullable or Arrow type of pandas, and of the values of a sparse one."""
    dtype = getattr(dtype, "subtype", dtype)
    return getattr(dtype, "numpy_dtype", dtype)


def _is_string(dtype: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_string_dtype(dtype))
