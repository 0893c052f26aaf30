"""Drawn rows that equal training rows in every cell, which are drawn again."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.joint.value import FittedJoint
from posteriori.support.typing import Array
from posteriori.tables import Batch


def row_keys(cells: Array) -> list[bytes]:
    """Return a key of each row of numbers, (n, d): equal for equal rows, in which missing cells, NaN, are equal.

    Examples
    --------
    >>> one, other, third = row_keys(np.array([[0.0, np.nan], [-0.0, np.nan], [0.0, 1.0]]))
    >>> one == other, one == third
    (True, False)
    """
    same = np.ascontiguousarray(np.where(np.isnan(cells), np.nan, cells + 0.0), np.float64)  # −0 + 0 is 0
    return [] if not same.size else same.view(f"V{same.itemsize * same.shape[1]}").ravel().tolist()


def keys_of_drawn(value: FittedJoint, columns: list[Array]) -> list[bytes]:
    """Return the keys of rows that are given as columns of the schema, as `columns_of` draws them."""
    return row_keys(np.column_stack([columns[j] for j in value.law.columns]))


def keys_of_table(value: FittedJoint, X: Any) -> frozenset[bytes]:
    """Return the keys of the rows of a table, of the columns of the model."""
    schema, law = value.schema, value.law

    def of_batch(batch: Batch) -> list[bytes]:
        return row_keys(
            np.column_stack(
                [
                    batch.numbers.values[:, schema.of_kind("continuous").index(j)]
                    if j in law.grids
                    else batch.codes.values[:, schema.coded.index(j)]
                    for j in law.columns
                ]
            )
        )

    return frozenset().union(*value.rows.source(X).stream(of_batch, "reading"))
