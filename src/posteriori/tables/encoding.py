"""Encode cells as category codes. An unseen category becomes a missing cell, and is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.tables.columns import Cell, Column
from posteriori.typing import Array

_DENSE_RANGE = 1 << 17  # a wider range of integers is sorted, not marked in an array of flags


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


def encode_numbers(values: Array, column: Column) -> tuple[Array, int]:
    """Return the codes of a one-dimensional numeric array, and the number of cells of an unseen category.

    Raises
    ------
    ValueError
        The categories are not numbers.
    """
    kind = values.dtype.kind
    missing = int(np.count_nonzero(np.isnan(values))) if kind == "f" else 0
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
    unmatched = len(codes) - int(np.count_nonzero(codes)) - missing
    if unmatched:
        column.require_kinds(["booleans" if kind == "b" else "numbers"])
    return codes, unmatched


def _search(values: Array, column: Column) -> Array:
    if values.dtype.kind not in "iu":
        values = values.astype(np.float64)
    known, code = column.numbers_as(values.dtype.newbyteorder("="))
    if not len(known):
        return np.zeros(len(values), column.code_type)
    position = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[position] == values, code[position], 0).astype(column.code_type)


def encode_present(values: Array, present: Array, column: Column) -> tuple[Array, int]:
    """Return the codes of a column from its present cells, and the number of cells of an unseen category."""
    codes = np.zeros(len(present), column.code_type)
    codes[present], unmatched = encode_numbers(values, column)
    return codes, unmatched


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
