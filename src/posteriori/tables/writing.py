"""Codes and numbers back into a table of the type that was read."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.tables.batch import Batch
from posteriori.tables.schema import Column, Schema
from posteriori.typing import Array


def write_column(column: Column) -> Array:
    """Return the categories of a column as an array of the type they came in."""
    cells = list(column.categories)
    if column.dtype[:1] in "<>|=" and column.dtype:  # a NumPy type
        return np.array(cells, dtype=column.dtype)
    if any(isinstance(cell, str) for cell in cells):
        return np.array(cells, dtype=object)
    if column.dtype == "object":
        out = np.empty(len(cells), dtype=object)
        out[:] = cells
        return out
    return np.array(cells)


def decode(batch: Batch) -> Array:
    """Return the cells of a batch as Python values, (n, d) objects, None where missing."""
    schema = batch.schema
    cells = np.empty((len(batch), len(schema.columns)), dtype=object)
    for place, j in enumerate(schema.of_kind("continuous")):
        cells[:, j] = [None if x != x else x for x in batch.numbers.values[:, place].tolist()]
    for place, j in enumerate(schema.of_kind("categorical")):
        known = (None, *schema.columns[j].categories)
        cells[:, j] = [known[code] for code in batch.codes.values[:, place].tolist()]
    return cells


def write_table(schema: Schema, drawn: list[Array]) -> Any:
    """Return drawn columns (numbers, or codes from 1) as a table like the one the schema was inferred from."""
    cells = [_cells(column, values) for column, values in zip(schema.columns, drawn, strict=True)]
    if schema.container == "numpy":
        return _write_array(schema, cells)
    if schema.container == "pandas":
        return _write_pandas(schema, cells)
    return _write_polars(schema, cells)


def _cells(column: Column, values: Array) -> Array:
    if column.kind == "continuous":
        return values
    known = write_column(column)
    if not len(known):
        return np.full(len(values), np.nan)
    return known[values.astype(np.int64) - 1]


def _write_array(schema: Schema, cells: list[Array]) -> Array:
    if all(column.kind == "continuous" for column in schema.columns):
        narrow = schema.dtype == np.dtype(np.float32).str
        return np.column_stack(cells).astype(np.float32 if narrow else np.float64)
    kind = np.dtype(schema.dtype).kind
    if kind == "O":
        table = np.empty((len(cells[0]), len(cells)), dtype=object)
        for j, column in enumerate(cells):
            table[:, j] = column
        return table
    stacked = np.column_stack(cells)
    mixed = any(column.kind == "continuous" for column in schema.columns) and kind in "iu"
    return stacked.astype(np.float64) if mixed else stacked.astype(schema.dtype)


def _write_pandas(schema: Schema, cells: list[Array]) -> Any:
    import pandas as pd

    table = {}
    for column, values in zip(schema.columns, cells, strict=True):
        series = pd.Series(values)
        if column.dtype in ("category", "ordered"):
            dtype = pd.CategoricalDtype(list(column.categories), ordered=column.dtype == "ordered")
            series = series.astype(dtype)
        elif column.kind == "categorical":
            series = series.astype(column.dtype)
        elif column.dtype == "float32":
            series = series.astype(column.dtype)
        table[column.name] = series
    frame = pd.DataFrame(table)
    return frame if schema.named else frame.set_axis(range(len(cells)), axis=1)


def _write_polars(schema: Schema, cells: list[Array]) -> Any:
    import polars as pl

    series = []
    for column, values in zip(schema.columns, cells, strict=True):
        written = pl.Series(column.name, values.tolist())
        if column.dtype == "Enum":
            written = written.cast(pl.Enum(list(column.categories)))
        elif column.kind == "categorical" or column.dtype == "Float32":
            written = written.cast(getattr(pl, column.dtype))
        series.append(written)
    frame = pl.DataFrame(series)
    return frame.to_arrow() if schema.container == "pyarrow" else frame
