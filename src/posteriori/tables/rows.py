"""Rows of a table of any supported type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from posteriori.support.typing import Array
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.blocks import Blocks
from posteriori.tables.pandas import PandasTable
from posteriori.tables.polars import PolarsTable
from posteriori.tables.table import Table


def take_rows(X: Any, rows: Sequence[int] | Array) -> Any:
    """Return rows of a table of any supported type, in the given order.

    Examples
    --------
    >>> take_rows([[1, "a"], [2, "b"]], [1])
    [[2, 'b']]
    """
    positions = [int(row) for row in rows]
    if isinstance(X, np.ndarray | Blocks):
        return X[positions]
    if sparse.issparse(X):
        return X.tocsr()[positions]
    if hasattr(X, "iloc"):  # pandas allows column names that are not strings; narwhals does not
        return X.iloc[positions]
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return frame[positions].to_native()
    return [X[row] for row in positions]


def part_of(table: Table, rows: Array) -> Table:
    """Return rows of a table in memory as one; a table of another kind is returned as it is."""
    if isinstance(table, ArrayTable):
        return replace(table, values=take_rows(table.values, rows))
    if isinstance(table, PandasTable | PolarsTable):
        return replace(table, frame=take_rows(table.frame, rows))
    return table
