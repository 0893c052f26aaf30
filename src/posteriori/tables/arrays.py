"""Tables of NumPy arrays and Python objects, and their cells as codes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.support.checks import is_missing
from posteriori.support.typing import Array
from posteriori.tables.messages import holds_intervals, unusable
from posteriori.tables.schema import Cell, Column, Schema, categorical_column, kind_of
from posteriori.tables.table import NO_ROWS, UnseenRows
from posteriori.tables.times import TimeType, times_of_array, type_of_array, type_of_objects

_DENSE_RANGE = 1 << 17  # a wider range of integers is sorted, not marked in an array of flags


def write_column(column: Column) -> Array:
    """Return the categories of a column as an array, of the type that was read if NumPy has it and it holds them."""
    cells: list[Any] = list(column.categories)
    mixed, strings = len(column.kinds) > 1, column.kinds == {"strings"}
    if mixed or column.dtype in ("object", "|O") or (strings and column.dtype[:2] != "<U"):
        return objects_array(cells)
    dtype = number_type(column.dtype)
    if dtype is not None:
        with contextlib.suppress(OverflowError):
            written = np.array(cells, dtype)
            if written.tolist() == cells:
                return written
    return np.array(cells)  # of a wider type, because later rows held categories that the first type cannot


def objects_array(cells: list[Any]) -> Array:
    """Return cells as an array of Python objects."""
    out = np.empty(len(cells), dtype=object)
    out[:] = cells
    return out


def number_type(label: str) -> np.dtype[Any] | None:
    """Return the NumPy type of numbers with this name of a data type (<i4, int32, Int32); None if it names another."""
    name = label if label[:1] in "<>|=" else label.lower().removesuffix("[pyarrow]")
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):  # ValueError: NumPy reads a name with commas as a record
        return None
    return dtype if dtype.kind in "biuf" else None


def distinct_numbers(values: Array) -> list[Cell]:
    """Return the distinct numbers of a one-dimensional array, sorted, without NaN."""
    if values.dtype.kind == "b":
        return [False, True]
    if values.dtype.kind == "f":
        return list(np.unique(values[~np.isnan(values)]).tolist())
    return list(distinct_integers(values.reshape(-1, 1))[0])


def distinct_integers(values: Array) -> list[list[int]]:
    """Return the distinct integers of every column of an (n, d) array, sorted.

    The array is read once if all integers lie within 256 of those in the first row, otherwise three times.
    """
    n, d = values.shape
    if not n:
        return [[] for _ in range(d)]
    if values.dtype == np.uint64 and values.max() > np.iinfo(np.int64).max:
        return [np.unique(values[:, j]).tolist() for j in range(d)]
    low, width = values[0].astype(np.int64) - 256, np.full(d, 512)
    seen = _seen_integers(values, low, width)
    if seen is None:
        high = np.full(d, np.iinfo(np.int64).min)
        low = np.full(d, np.iinfo(np.int64).max)
        for block in _integer_blocks(values):
            kernels.integer_ranges(block, low, high)
        # In Python's integers, because the width of a range may overflow 64 bits.
        spans = [int(h) - int(least) + 1 for least, h in zip(low, high, strict=True)]
        width = np.array([span if span <= _DENSE_RANGE else 0 for span in spans])
        seen = _seen_integers(values, low, width, partly=True)
        assert seen is not None
    starts = np.concatenate([[0], np.cumsum(width)])
    return [
        (np.flatnonzero(seen[starts[j] : starts[j + 1]]) + low[j]).tolist()
        if width[j]
        else np.unique(values[:, j]).tolist()
        for j in range(d)
    ]


def _seen_integers(values: Array, low: Array, width: Array, partly: bool = False) -> Array | None:
    """Mark the integers from low[j] on that each column holds; return None if it holds others, unless `partly`."""
    starts = np.concatenate([[0], np.cumsum(width)])
    seen = np.zeros(starts[-1], np.bool_)
    for block in _integer_blocks(values):
        if not kernels.mark_integers(block, low, starts, seen) and not partly:
            return None
    return seen


def _integer_blocks(values: Array) -> Iterator[Array]:
    rows = max(1, (1 << 20) // values.shape[1])
    return (_integers(values[start : start + rows]) for start in range(0, len(values), rows))


def encode_numbers(values: Array, column: Column) -> tuple[Array, Array]:
    """Return the codes of a one-dimensional numeric array, and the rows of an unseen category.

    Raises ValueError if the categories are not numbers.
    """
    kind = values.dtype.kind
    missing = np.isnan(values) if kind == "f" else np.array(False)
    dense = column.dense_lookup
    if dense is None or (values.dtype == np.uint64 and dense[0] < 0):
        codes = _search(values, column)
    else:
        low, lookup = dense
        fits = None
        if kind == "f":
            fits = (values >= low) & (values <= low + len(lookup) - 1) & (values == np.floor(values))
            values = np.where(fits, values, 0).astype(np.int64)
        codes = np.empty((len(values), 1), column.code_type)
        starts = np.array([0, len(lookup)])
        kernels.encode_integers(_integers(values.reshape(-1, 1)), np.array([low]), lookup, starts, codes)
        codes = codes[:, 0]
        if fits is not None:
            codes[~fits] = 0
    if len(codes) - np.count_nonzero(codes) == np.count_nonzero(missing):
        return codes, NO_ROWS
    column.require_kinds(["booleans" if kind == "b" else "numbers"])
    return codes, np.flatnonzero((codes == 0) & ~missing)


def _search(values: Array, column: Column) -> Array:
    if values.dtype.kind not in "iu":
        values = values.astype(np.float64)
    known, code = column.numbers_as(values.dtype.newbyteorder("="))
    if not len(known):
        return np.zeros(len(values), column.code_type)
    position = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[position] == values, code[position], 0).astype(column.code_type)


def encode_present(values: Array, present: Array, column: Column) -> tuple[Array, Array]:
    """Return the codes of a column from its present cells, and the rows of an unseen category."""
    codes = np.zeros(len(present), column.code_type)
    codes[present], unseen = encode_numbers(values, column)
    return codes, np.flatnonzero(present)[unseen] if len(unseen) else unseen


def encode_integer_tile(values: Array, columns: Sequence[Column], codes: Array) -> bool:
    """Encode (n, d) integers at once; return False if the categories of a column need another way."""
    dense = [column.dense_lookup for column in columns]
    lookups = [pair for pair in dense if pair is not None]
    if len(lookups) < len(dense):
        return False
    low = np.array([pair[0] for pair in lookups])
    if values.dtype == np.uint64 and low.min() < 0:  # the largest would wrap around to negative categories
        return False
    starts = np.concatenate([[0], np.cumsum([len(pair[1]) for pair in lookups])])
    lookup = np.concatenate([pair[1] for pair in lookups])
    kernels.encode_integers(_integers(values), low, lookup, starts, codes)
    return True


def encode_distinct(distinct: Sequence[Any], column: Column) -> Array:
    """Return the code of each distinct cell, and 0 as the last entry, which a local code of −1 reads."""
    return np.array([*(column.lookup.get(cell, 0) for cell in distinct), 0], column.code_type)


def _integers(values: Array) -> Array:
    return np.require(values, np.int64, ["C", "A", "W"])


FEW_CELLS = 1000  # look-ups of so many cells one by one beat the set-up of an Enum or a hash table


def plain_cell(cell: Any, name: str) -> Cell:
    """Return a cell as a Python str, bool, int or float; TypeError if the cell is of another type."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str | bool | int | float):
        return cell
    if isinstance(cell, Decimal):
        return float(cell)
    if type(cell).__name__ == "Interval":  # of pandas, which is not imported here
        raise holds_intervals(name, str(cell))
    raise TypeError(
        f"column {name!r} holds a {type(cell).__name__} ({reprlib.repr(cell)}); "
        "cells must be numbers, strings or booleans"
    )


def object_column(name: str, cells: list[Any], categorical: bool) -> Column:
    """Infer a column from its cells, as a categorical one even if they are numbers if `categorical`.

    Raises TypeError if a cell is not a number, a string or a boolean, and ValueError if the cells are of several
    kinds.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    types = set(map(type, present))
    if not categorical and all(map(_is_number, types)):
        return Column(name, "continuous", dtype="object")
    try:
        distinct = {plain_cell(cell, name) for cell in set(present)}
    except TypeError:  # an unhashable cell, which `plain_cell` names
        distinct = {plain_cell(cell, name) for cell in present}
    # From the types, because True and 1 are one element of a set of cells.
    kinds = {"strings" if issubclass(t, str) else "numbers" if _is_number(t) else "booleans" for t in types}
    if len(kinds) > 1 and not categorical:
        raise ValueError(
            f"column {name!r} mixes {' and '.join(sorted(kinds, reverse=True))}; convert all cells "
            "to numbers, or to strings, which are categories"
        )
    if kinds == {"booleans"}:
        return categorical_column(name, [False, True], "object")
    return categorical_column(name, distinct, "object")


def object_numbers(cells: list[Any], column: Column, start: int) -> Array:
    """Return the cells of a continuous column as floats: NaN where missing, 1 where true. The first row is `start`.

    Raises TypeError if a cell is not a number, a string or a boolean, and ValueError if a cell is not a number, or
    is too large for a float.
    """
    if not all(issubclass(kind, Real | Decimal | np.bool_) for kind in set(map(type, cells))):
        cells = [np.nan if is_missing(cell) else cell for cell in cells]
        for row, cell in enumerate(cells, start):
            if not isinstance(cell, Real | Decimal | np.bool_):
                plain_cell(cell, column.name)
                raise ValueError(
                    f"column {column.name!r} was numeric in training but holds {cell!r} in row {row}; convert it"
                )
    try:
        return np.array(cells, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"column {column.name!r} holds an integer too large for a float; rescale the column") from None


def encode_objects(cells: list[Any], column: Column) -> tuple[Array, Array]:
    """Return the codes of a list of Python cells, and the rows of an unseen category.

    Raises TypeError if a cell is not a number, a string or a boolean, and ValueError if a cell of an unseen
    category is of a kind that no category has.
    """
    found = map(column.lookup.get, cells, itertools.repeat(0))
    try:
        codes = np.fromiter(found, dtype=column.code_type, count=len(cells))
    except TypeError:  # an unhashable cell, which `plain_cell` names
        for cell in cells:
            if not is_missing(cell):
                plain_cell(cell, column.name)
        raise
    unmatched = np.flatnonzero(codes == 0)
    if len(unmatched) == cells.count(None):
        return codes, NO_ROWS
    if any(isinstance(cells[i], Decimal) for i in unmatched):  # Decimal("0.1") is not the category 0.1
        return encode_objects([float(cell) if isinstance(cell, Decimal) else cell for cell in cells], column)
    unseen = [i for i in unmatched.tolist() if not is_missing(cells[i])]
    column.require_kinds({kind_of(plain_cell(cells[i], column.name)) for i in unseen})
    return codes, np.array(unseen, np.int64)


def object_strings(cells: list[Any], name: str) -> list[str | None]:
    """Return the strings of a column of text, None where missing; ValueError if a cell is not a string."""
    for row, cell in enumerate(cells):
        if not isinstance(cell, str) and not is_missing(cell):
            raise no_text(name, f"{reprlib.repr(cell)} in row {row} of a batch")
    return [cell if isinstance(cell, str) else None for cell in cells]


def no_text(name: str, found: str) -> ValueError:
    """Return the error for a column of text that holds something else."""
    return ValueError(f"column {name!r} is read as text, which is strings, but holds {found}; convert it to strings")


def whole_numbers(cells: list[Any]) -> Array | None:
    """Return the integers among cells of which some are missing; None if another cell is among them, or one too large.

    Cells without a value are none of either kind: the result is None.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    kinds = set(map(type, present))
    if not kinds or not all(issubclass(kind, Integral) and not issubclass(kind, bool) for kind in kinds):
        return None
    try:
        return np.array(present, dtype=np.int64)
    except OverflowError:
        return None


def hash_strings(cells: list[Any]) -> Array | None:
    """Return a hash of 64 bits of each present cell, the same in every process; None unless all are strings."""
    present = [cell for cell in cells if not is_missing(cell)]
    if not present or not all(issubclass(kind, str) for kind in set(map(type, present))):
        return None
    hashes = [hashlib.blake2b(cell.encode("utf-8", "surrogatepass"), digest_size=8).digest() for cell in present]
    return np.frombuffer(b"".join(hashes), np.uint64)


def _is_number(kind: type[Any]) -> bool:
    return issubclass(kind, Real | Decimal) and not issubclass(kind, bool | np.bool_)


@dataclass(frozen=True)
class ArrayTable:
    """An (n, d) array of floats, integers, booleans, strings or Python objects."""

    values: Array
    title: str | None = None  # the name of the column, where there is only one
    offset: int = 0  # the number of the first row, where the array is a part of a longer table: for messages
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
    ) -> tuple[Array, UnseenRows]:
        """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column."""
        values = self.values[rows]
        if len(columns) < values.shape[1] or tuple(columns) != tuple(range(len(columns))):
            values = values[:, columns]
        codes = np.empty(values.shape, schema.code_dtype)
        if values.dtype.kind in "iu" and encode_integer_tile(values, schema_columns, codes):
            if codes.all():
                return codes, {}
            unseen = [np.flatnonzero(of_column == 0) for of_column in codes.T]
            for column, found in zip(schema_columns, unseen, strict=True):
                column.require_kinds(["numbers"] if len(found) else [])
        else:
            unseen = []
            for position, column in enumerate(schema_columns):
                codes[:, position], found = self._column_codes(values[:, position], column)
                unseen.append(found)
        return codes, {column.name: found for column, found in zip(schema_columns, unseen, strict=True) if len(found)}

    def _column_codes(self, values: Array, column: Column) -> tuple[Array, Array]:
        if values.dtype.kind in "OU":
            return encode_objects(values.tolist(), column)
        return encode_numbers(values, column)


def plain_array(values: Array, name: str, times: bool = False) -> Array:
    """Return an array as a plain NumPy array of numbers, strings, booleans or objects; or of times if `times`.

    Raises TypeError if its cells are bytes, dates or records, or some are masked, and ValueError if its cells are
    complex numbers.
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
    return values.astype(object) if dtype.kind == "T" else np.asarray(values)  # T: NumPy's StringDType
