"""Columns of few whole numbers: codes, grades and small counts."""

from __future__ import annotations

import numpy as np

from posteriori.densities import Gaussian
from posteriori.learning.initialization import sampled
from posteriori.model import Block
from posteriori.sources import source_of
from posteriori.statistics.resolution import few_whole_numbers
from posteriori.tables import Table, infer_schema


def numeric_codes(table: Table) -> list[int]:
    """Return the positions of the numeric columns that hold from 2 to 10 distinct values, all of them whole numbers.

    A mixture takes them for categories where `categorical_features` is "auto": one Gaussian a value describes such a
    column better the more components there are, although they find no group of rows.

    Raises
    ------
    ValueError
        A cell is infinite.
    """
    columns = [j for j in range(len(table.names)) if table.time_type(j) is None]
    if not columns:
        return []
    schema = infer_schema(table, columns)
    numbers = schema.of_kind("continuous")
    if not numbers:
        return []
    source = source_of(table, schema, columns).numeric_columns()
    (rows,) = sampled(source, (Block(Gaussian(), numbers),))
    likely = [columns[j] for j, few in zip(numbers, few_whole_numbers(rows.numbers), strict=True) if few]
    return [j for j in likely if few_whole_numbers(_distinct(table, j)).all()]


def _distinct(table: Table, j: int) -> np.ndarray:
    """Return the distinct numbers of a column, (m, 1): those of all rows, and not of the sampled ones only."""
    return np.array([float(cell) for cell in table.distinct(j)])[:, np.newaxis]
