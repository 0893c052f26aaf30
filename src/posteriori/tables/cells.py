"""Read the columns of a schema from a table: its own columns, and parts of its dates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posteriori.tables.columns import Column
from posteriori.tables.encoding import encode_present
from posteriori.tables.parts import WEEKDAYS
from posteriori.tables.schema import Schema
from posteriori.tables.table import Table
from posteriori.typing import Array

Times = dict[int, Array]  # by position in the table; each column of dates is converted once per call


def read_numbers(table: Table, positions: Sequence[int], columns: Sequence[Column], rows: slice, times: Times) -> Array:
    """Return some continuous columns of some rows as floats (n, d), NaN where missing.

    Parameters
    ----------
    table : Table
    positions : sequence of int
        The position in the table of each column.
    columns : sequence of Column
    rows : slice
    times : dict
        The times of these rows that were read before; this function adds others.
    """
    plain = [k for k, column in enumerate(columns) if column.part is None]
    if len(plain) == len(columns):
        return table.numbers(positions, columns, rows)
    parts = {
        k: column.part.numbers(_times_of(table, positions[k], column, rows, times))
        for k, column in enumerate(columns)
        if column.part is not None
    }
    numbers = np.empty((len(next(iter(parts.values()))), len(columns)))
    if plain:
        numbers[:, plain] = table.numbers([positions[k] for k in plain], [columns[k] for k in plain], rows)
    for k, values in parts.items():
        numbers[:, k] = values
    return numbers


def read_codes(
    table: Table, positions: Sequence[int], schema: Schema, columns: Sequence[Column], rows: slice, times: Times
) -> tuple[Array, dict[str, int]]:
    """Return categorical columns of some rows as codes (n, d), and the number of unseen categories per column.

    The parameters are those of `read_numbers`.
    """
    plain = [k for k, column in enumerate(columns) if column.part is None]
    if len(plain) == len(columns):
        return table.codes(positions, schema, columns, rows)
    unseen: dict[str, int] = {}
    encoded: dict[int, Array] = {}
    for k, column in enumerate(columns):
        if column.part is None:
            continue
        encoded[k], n_unseen = _encoded(_times_of(table, positions[k], column, rows, times), column)
        if n_unseen:
            unseen[column.name] = n_unseen
    codes = np.empty((len(next(iter(encoded.values()))), len(columns)), schema.code_dtype)
    if plain:
        of_plain = [columns[k] for k in plain]
        codes[:, plain], more = table.codes([positions[k] for k in plain], schema, of_plain, rows)
        unseen |= more
    for k, values in encoded.items():
        codes[:, k] = values
    return codes, unseen


def _times_of(table: Table, position: int, column: Column, rows: slice, times: Times) -> Array:
    if position not in times:
        assert column.part is not None
        times[position] = table.times(position, column.part.type, rows)
    return times[position]


def _encoded(times: Array, column: Column) -> tuple[Array, int]:
    """Return the codes of a part of times (n,), and the number of cells of an unseen category."""
    assert column.part is not None
    present = ~np.isnat(times)
    values = column.part.integers(times[present])
    if column.part.name == "weekday":
        codes = np.zeros(len(times), np.uint16)
        codes[present] = np.array([column.lookup.get(day, 0) for day in WEEKDAYS], np.uint16)[values]
        return codes, 0
    return encode_present(values, present, column)
