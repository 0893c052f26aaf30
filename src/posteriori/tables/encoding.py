"""Cells to category codes. A value that no category matches is a missing cell, and is counted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.tables.schema import Cell, Column
from posteriori.typing import Array

_DENSE_RANGE = 1 << 17  # integers spread wider are not categories that a code could hold


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
    """Return the distinct numbers of a one-dimensional array, sorted, NaN left out."""
    if values.dtype.kind == "b":
        return [False, True]
    if values.dtype.kind == "f":
        return list(np.unique(values[~np.isnan(values)]).tolist())
    return list(distinct_integers(values.reshape(-1, 1))[0])


def distinct_integers(values: Array) -> list[list[int]]:
    """Return the distinct integers of every column of an (n, d) array, sorted. One read where all are 0 … 255."""
    n, d = values.shape
    if not n:
        return [[] for _ in range(d)]
    low, width = np.zeros(d, np.int64), np.full(d, 256)
    seen = _seen_integers(values, low, width)
    if seen is None:
        high = np.full(d, np.iinfo(np.int64).min)
        low = np.full(d, np.iinfo(np.int64).max)
        for block in _integer_blocks(values):
            kernels.integer_ranges(block, low, high)
        # In Python's integers, because a range may overflow; too wide a one is sorted instead.
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
    """Return which integers from low[j] on each column holds; None if it holds others, unless partly allows it."""
    starts = np.concatenate([[0], np.cumsum(width)])
    seen = np.zeros(starts[-1], np.bool_)
    for block in _integer_blocks(values):
        if not kernels.mark_integers(block, low, starts, seen) and not partly:
            return None
    return seen


def _integer_blocks(values: Array) -> Iterator[Array]:
    rows = max(1, (1 << 20) // values.shape[1])
    return (_integers(values[start : start + rows]) for start in range(0, len(values), rows))


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
