"""A fitted classifier as a law: of its features and of the class, which is a column like the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posteriori.fitting.fitted import Fitted
from posteriori.joint.grids import NumberGrid
from posteriori.joint.law import Law
from posteriori.model.beliefs import NoTablesError, Tables
from posteriori.model.predictive import NumberCells
from posteriori.tables import Column


def law_of(fitted: Fitted) -> Law:
    """Return the law of the columns and the class of a classifier whose columns have tables.

    Raises
    ------
    NoTablesError
        A column has none: numbers that are not cut into bins, or several parents; or the factors are weighted.
    """
    model = fitted.model
    if model.weights is not None:
        raise NoTablesError("the factors of the columns are weighted, which is no joint distribution")
    tables, schema = Tables.of(model), model.schema
    label = replace(fitted.target, name=fitted.target.name or "class")
    of_class = model.of_class or tuple(range(model.n_classes))
    is_class = np.equal.outer(np.array(of_class), np.arange(model.n_classes)).astype(np.float64)
    place = len(schema.columns)
    with_label = Tables(tables.log_prior, (*tables.columns, place), (*tables.parents, -1), (*tables.tables, is_class))
    grids = {j: _grid(fitted, j, schema.columns[j]) for j in tables.columns if schema.columns[j].is_binned}
    return Law(replace(schema, columns=(*schema.columns, label)), (with_label,), np.ones(1), grids)


def _grid(fitted: Fitted, j: int, column: Column) -> NumberGrid:
    """Return the bins of a column, each of one cell, within the range of the training rows."""
    cuts, ranges = np.array(column.cuts or ()), fitted.ranges
    if ranges is None or not np.isfinite(ranges.lowest[j]):
        raise NoTablesError(f"the range of {column.name!r} is unknown")
    low, high = float(ranges.lowest[j]), float(ranges.highest[j])
    edges = np.concatenate([[min([low, *cuts[:1]])], cuts, [max([high, *cuts[-1:]])]])
    if not ranges.whole[j]:
        return NumberGrid(NumberCells(edges[:-1], edges[1:]), np.arange(len(cuts) + 1), np.ones(len(cuts) + 1))
    lows, highs = np.ceil(edges[:-1]), np.append(np.ceil(cuts) - 1.0, np.floor(edges[-1]))
    return NumberGrid(NumberCells(lows, np.maximum(highs, lows), 1.0), np.arange(len(cuts) + 1), np.ones(len(cuts) + 1))
