"""Columns that were read one by one as one array of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posteriori.tables.columns import Column
from posteriori.tables.schema import Schema
from posteriori.typing import Array


def number_tile(arrays: list[Array], n_rows: int) -> Array:
    """Return columns as one row-major array: float32 if all of them are, else float64."""
    narrow = bool(arrays) and all(array.dtype == np.float32 for array in arrays)
    tile = np.empty((n_rows, len(arrays)), np.float32 if narrow else np.float64)
    for position, array in enumerate(arrays):
        tile[:, position] = array
    return tile


def code_tile(
    encoded: list[tuple[Array, int]], schema: Schema, columns: Sequence[Column], n_rows: int
) -> tuple[Array, dict[str, int]]:
    """Return columns of codes as one row-major array, and the number of unseen categories per column."""
    tile = np.empty((n_rows, len(encoded)), schema.code_dtype)
    for position, (codes, _) in enumerate(encoded):
        tile[:, position] = codes
    pairs = zip(columns, encoded, strict=True)
    return tile, {column.name: unmatched for column, (_, unmatched) in pairs if unmatched}
