"""Tables of polars, in memory and lazy."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables.arrays import (
    FEW_CELLS,
    distinct_numbers,
    encode_numbers,
    encode_objects,
    encode_present,
    hash_strings,
    no_text,
    object_column,
    object_numbers,
    object_strings,
    whole_numbers,
)
from posteriori.tables.batch import code_tile, number_tile
from posteriori.tables.messages import not_numeric, unusable
from posteriori.tables.schema import Column, Schema, categorical_column
from posteriori.tables.table import NO_ROWS, Table, UnseenRows, joined_codes
from posteriori.tables.times import TimeType, times_of_polars, type_of_polars
from posteriori.user_warnings import warn


def exactly(*names: str) -> pl.Expr:
    """Return the columns with these names, in this order.

    `polars.col` would read ``*`` and names from ``^`` to ``$`` as patterns, but a file may use them as names.
    """
    return pl.selectors.by_name(*names).as_expr()


def is_polars_frame(X: Any) -> bool:
    """Return whether an object is a data frame of polars, which is not imported for other objects."""
    return type(X).__module__.partition(".")[0] == "polars" and isinstance(X, pl.DataFrame)


_TASKS = Path("/proc/self/task")  # the threads of this process, on Linux
_lost: list[str] = []  # threads of polars that only the parent process has


def _polars_threads() -> list[str]:
    """Return the names of the threads of polars; one placeholder where the system does not list threads."""
    if not _TASKS.is_dir():
        return ["polars"]
    names = []
    for task in _TASKS.iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:  # the thread has ended
            continue
    return [name for name in names if name.startswith("polars-") and name.removeprefix("polars-").isdigit()]


if hasattr(os, "register_at_fork"):
    _inherited: list[str] = []

    def _before() -> None:
        _inherited[:] = _polars_threads()

    def _in_child() -> None:
        _lost.extend(_inherited)

    os.register_at_fork(before=_before, after_in_child=_in_child)


def require_threads(what: str) -> None:
    """Raise RuntimeError where polars would wait forever for threads that a fork did not copy.

    Parameters
    ----------
    what : str
        The work that needs threads, as the subject of a sentence.
    """
    if _lost:
        raise RuntimeError(
            f"{what} needs the threads of polars, and this process was forked after they had started; "
            'start processes by "spawn" or "forkserver" (multiprocessing.set_start_method)'
        )


@dataclass(frozen=True)
class PolarsTable:
    """A polars DataFrame, or an Arrow table converted to one without copying."""

    frame: pl.DataFrame
    container: str = "polars"
    arrow: tuple[str, ...] = ()  # the Arrow data type of each column, where the table was an Arrow table
    # the number of the first row, where the frame is a part of a longer table whose slices name its rows
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
        series = _cells(self.frame, j)
        return type_of_polars(series) if series.dtype.is_temporal() or series.dtype == pl.Object else None

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
    ) -> tuple[Array, UnseenRows]:
        """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column."""
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
        warn(
            f"column {name!r} holds integers of more than 53 bits, which are rounded to floating-point numbers; "
            "rescale the column where the last digits matter"
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


def _codes(series: pl.Series, column: Column) -> tuple[Array, Array]:
    dtype, n_missing = series.dtype, series.null_count()
    if n_missing == len(series):
        return np.zeros(len(series), column.code_type), NO_ROWS
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
        if n_without == n_missing:
            return codes, NO_ROWS
        return codes, (known.is_null() & series.is_not_null()).arg_true().to_numpy()
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


_CODED_ROWS = 1 << 17  # rows that are encoded at a time


class LazyTable(ABC):
    """A table whose columns are known and whose rows are read in passes.

    The data type of a column gives its kind. Where it does not give the categories, one pass finds those of all
    columns (`find_categories`).
    """

    container: str = "polars"
    named: bool = True
    dtype: str = ""
    target: str | None = None

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The column names."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""

    @abstractmethod
    def find_distinct(self, names: Sequence[str]) -> Mapping[str, Table]:
        """Return the distinct cells of some columns from one pass, per column as a table in memory of that column."""

    @abstractmethod
    def empty_column(self, j: int) -> Table:
        """Return column j without rows, as a table in memory of one column."""

    @abstractmethod
    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, UnseenRows]:
        """Return columns of some rows as codes (`Schema.code_dtype`), and the rows of unseen categories by column."""

    @cached_property
    def _distinct(self) -> dict[str, Table]:
        return {}

    def find_categories(
        self, positions: Iterable[int], categorical: Collection[int] = (), target: str | None = None
    ) -> None:
        """Find the categories of some columns, and of the target, in one pass, except those that data types give."""
        names = [self.names[j] for j in positions if self.needs_cells(j, j in categorical)]
        self._find_cells([*names, target] if target in self.names and target not in names else names)

    def cells(self, j: int) -> Table:
        """Return the distinct cells of column j as a table of one column."""
        self._find_cells([self.names[j]])
        return self._distinct[self.names[j]]

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        return self.cells(j).distinct(0)

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""
        if self.needs_cells(j, categorical):
            return self.cells(j).column(0, categorical or self._is_stated(j))
        return self.empty_column(j).column(0, categorical)

    def marks(self, name: str) -> tuple[str, ...]:
        """Return the cells of a column that are read as missing, besides those that are in any table."""
        del name
        return ()

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        return self.empty_column(j).data_type(0)

    def holds_identifiers(self, j: int) -> bool:
        """Return whether column j is of strings, integers or Python objects, and not declared as categorical."""
        empty = self.empty_column(j)
        if self._is_stated(j):
            return False
        if empty.data_type(0).lower() == "object":
            return True
        return empty.whole_numbers(0, None) is not None or empty.hashes(0, None) is not None

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Raise ValueError, as `numbers`."""
        return self.numbers([j], [], slice(0, n_rows))

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Raise ValueError, as `numbers`."""
        return self.numbers([j], [], slice(0, n_rows))

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations of column j, from its data type."""
        return self.empty_column(j).time_type(0)

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Raise ValueError, as `numbers`."""
        del wanted
        return self.numbers([j], [], rows)

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Raise ValueError, as `numbers`."""
        self.numbers([j], [], rows)
        return []

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Raise ValueError: only `StreamedTable.parts` and partitions give numbers."""
        del columns, schema_columns, rows
        self.require_memory()

    def require_memory(self) -> NoReturn:
        """Raise ValueError: all rows at once are more than files give."""
        raise ValueError(f"this takes all rows of {self._listed} at once; read them into memory")

    def target_or(self, y: Any) -> Any:
        """Return y, or the target of the scan where y is None.

        Raises ValueError if both name a column, and the names differ.
        """
        if y is None:
            return self.target
        if isinstance(y, str) and self.target is not None and y != self.target:
            raise ValueError(f"y names {y!r} but the target of the scan is {self.target!r}; leave one of them out")
        return y

    @property
    def _listed(self) -> str:
        """The name of the rows in messages."""
        return "X"

    def _is_stated(self, j: int) -> bool:
        """Return whether the user declared column j as categorical."""
        del j
        return False

    def _find_cells(self, names: Sequence[str | None]) -> None:
        unread = [name for name in names if name is not None and name not in self._distinct]
        if unread:
            self._distinct.update(self.find_distinct(unread))


class StreamedTable(LazyTable):
    """A lazy table whose rows come to this process, part by part, as polars frames.

    Attributes
    ----------
    types : dict
        The polars data type of each column.
    categorical : frozenset of str
        The columns of numbers that hold categories.
    """

    types: dict[str, pl.DataType]
    categorical: frozenset[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.types)

    @abstractmethod
    def frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield some columns of all rows, in their order."""

    @abstractmethod
    def changed(self) -> ValueError:
        """Return the error for rows that have changed since they were scanned."""

    def parts(self, slices: Sequence[slice], columns: Sequence[int]) -> Iterator[PolarsTable]:
        """Yield some columns of consecutive slices of rows, from the first row to the last.

        A part knows the number of its first row, so that the slice of the whole table also names its rows in the part.
        Raises OSError, ValueError if the data is gone, is damaged, or has changed since it was scanned.
        """
        frames = self.frames([self.names[j] for j in columns])
        pending: list[pl.DataFrame] = []  # frames that were read but not yet yielded
        for rows in slices:
            n_rows = rows.stop - rows.start
            n_pending = sum(frame.height for frame in pending)
            while n_pending < n_rows:
                frame = next(frames, None)
                if frame is None:
                    raise self.changed()
                pending.append(frame)
                n_pending += frame.height
            joined = pending[0] if len(pending) == 1 else pl.concat(pending, rechunk=False)  # without copying
            yield PolarsTable(joined[:n_rows], first=rows.start)
            pending = [joined[n_rows:]]
        if any(frame.height for frame in (*pending, *frames)):
            raise self.changed()

    def _is_stated(self, j: int) -> bool:
        return self.names[j] in self.categorical

    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""
        return needs_cells(self.types[self.names[j]], categorical or self._is_stated(j))

    def empty_column(self, j: int) -> PolarsTable:
        """Return column j without rows, as a table in memory of one column."""
        return PolarsTable(pl.DataFrame(schema={self.names[j]: self.types[self.names[j]]}))

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, UnseenRows]:
        """Return columns of some rows as codes (`Schema.code_dtype`), and the rows of unseen categories by column."""
        positions = list(range(len(columns)))
        starts = range(0, self.n_rows, _CODED_ROWS)
        slices = [slice(start, min(start + _CODED_ROWS, self.n_rows)) for start in starts]
        parts = zip(self.parts(slices, columns), slices, strict=True)
        return joined_codes([part.codes(positions, schema, schema_columns, own) for part, own in parts], rows)


def too_many_categories(name: str, most: int) -> ValueError:
    """Return the error for a column that has more categories than codes."""
    return ValueError(
        f"column {name!r} has more than {most:,} categories; "
        "leave it out (is it an identifier?) or group its rare values"
    )
