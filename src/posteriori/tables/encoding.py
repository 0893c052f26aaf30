"""Cells to category codes. A value that no category matches is a missing cell, and is counted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.tables.schema import Cell, Column
from posteriori.typing import Array


def is_missing(cell: Any) -> bool:
    """Whether a Python cell is None, NaN or pandas' NA or NaT."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except TypeError:  # pandas' NA has no truth value
        return True


def plain_cell(cell: Any, name: str) -> Cell:
    """Return a cell as the Python str, bool, int or float that it is.

    Raises
    ------
    TypeError
        It is none of them.
    """
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str | bool | int | float):
        return cell
    raise TypeError(
        f"column {name!r} holds a {type(cell).__name__} ({cell!r}); cells must be numbers, strings or booleans"
    )


def distinct_numbers(values: Array) -> list[Cell]:
    """Return the distinct numbers of a one-dimensional array, NaN left out."""
    if values.dtype.kind == "b":
        return [False, True]
    if values.dtype.kind == "f":
        return list(np.unique(values[~np.isnan(values)]).tolist())
    if not len(values):
        return []
    low, high = int(values.min()), int(values.max())
    if high - low >= 1 << 20:
        return list(np.unique(values).tolist())
    seen = np.zeros(high - low + 1, np.bool_)
    kernels.mark_integers(
        _integers(values.reshape(-1, 1)), np.array([low]), np.array([0, high - low + 1]), seen
    )
    return list((np.flatnonzero(seen) + low).tolist())


def encode_numbers(values: Array, column: Column) -> tuple[Array, int]:
    """Return the codes of a one-dimensional numeric array, and how many cells no category matches."""
    missing = int(np.count_nonzero(np.isnan(values))) if values.dtype.kind == "f" else 0
    dense = column.dense_lookup
    if dense is None:
        codes = np.zeros(len(values), np.uint16)
        for category, code in column.lookup.items():
            codes[values == category] = code
    else:
        low, lookup = dense
        if values.dtype.kind == "f":
            fits = (values >= low) & (values < low + len(lookup)) & (values == np.floor(values))
            values = np.where(fits, values, low - 1).astype(np.int64)
        codes = np.empty((len(values), 1), np.uint16)
        starts = np.array([0, len(lookup)])
        kernels.encode_integers(_integers(values.reshape(-1, 1)), np.array([low]), lookup, starts, codes)
        codes = codes[:, 0]
    return codes, len(codes) - int(np.count_nonzero(codes)) - missing


def encode_integer_tile(values: Array, columns: Sequence[Column], codes: Array) -> bool:
    """Write the codes of an (n, d) integer tile at once; return False where a column's categories forbid it."""
    dense = [column.dense_lookup for column in columns]
    found = [pair for pair in dense if pair is not None]
    if len(found) < len(dense):
        return False
    low = np.array([pair[0] for pair in found])
    starts = np.concatenate([[0], np.cumsum([len(pair[1]) for pair in found])])
    lookup = np.concatenate([pair[1] for pair in found])
    kernels.encode_integers(_integers(values), low, lookup, starts, codes)
    return True


def encode_objects(cells: list[Any], column: Column) -> tuple[Array, int]:
    """Return the codes of a list of Python cells, and how many no category matches."""
    try:
        codes = np.fromiter(
            map(column.lookup.get, cells, itertools.repeat(0)), dtype=np.uint16, count=len(cells)
        )
    except TypeError:  # an unhashable cell: say which
        for cell in cells:
            if not is_missing(cell):
                plain_cell(cell, column.name)
        raise
    unmatched = np.flatnonzero(codes == 0)
    return codes, sum(not is_missing(cells[i]) for i in unmatched)


def encode_distinct(distinct: Sequence[Any], column: Column) -> Array:
    """Return the code of each distinct cell: a table to look local codes up in; one more entry, 0, ends it."""
    return np.array([*(column.lookup.get(cell, 0) for cell in distinct), 0], np.uint16)


def _integers(values: Array) -> Array:
    return np.require(values, np.int64, ["C", "A", "W"])
