"""Description of the columns of a table: missing cells, mean, standard deviation, range, and counts of labels."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from posteriori.reading import Scan
from posteriori.statistics.moments import Moments
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch
from posteriori.tables.polars import exactly

_BATCH_ROWS = 1 << 17
_MAX_VALUES = 3  # distinct values are counted up to this number
_MANY_LABELS = 100_000


@dataclass(frozen=True)
class Cells:
    """Cells of one column.

    Attributes
    ----------
    present, missing : int
        NaN is missing too.
    mean, sd, lowest, highest : float or None
        Of a numeric column, in data units, or of a column of dates or durations, in microseconds since 1970; sd has
        n − 1 in the denominator. None if there are too few numbers.
    """

    present: int
    missing: int
    mean: float | None = None
    sd: float | None = None
    lowest: float | None = None
    highest: float | None = None


@dataclass(frozen=True)
class NumericColumns:
    """Additive description of numeric columns; + is associative and commutative up to rounding.

    Attributes
    ----------
    n_rows : int
    moments : Moments (1, d)
    lowest, highest : ndarray (d,)
        In data units; inf and −inf in a column without numbers.
    """

    n_rows: int
    moments: Moments
    lowest: Array
    highest: Array

    @classmethod
    def of(cls, batch: Batch) -> NumericColumns:
        """Return the description of the rows of a batch. O(n·d), two reads."""
        values = batch.numbers.values
        one_component = Assignment(np.zeros(len(batch), np.int32), np.ones(len(batch)), 1)
        return cls(
            len(batch),
            Moments.of(batch.numbers, one_component),
            np.fmin.reduce(values, axis=0, initial=np.inf),
            np.fmax.reduce(values, axis=0, initial=-np.inf),
        )

    def __add__(self, other: NumericColumns) -> NumericColumns:
        return NumericColumns(
            self.n_rows + other.n_rows,
            self.moments + other.moments,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )

    def column(self, position: int) -> Cells:
        """Return the description of one column."""
        present = round(float(self.moments.weight[0, position]))
        missing = self.n_rows - present
        if not present:
            return Cells(0, missing)
        scatter = float(self.moments.scatter[0, position])
        return Cells(
            present,
            missing,
            float(self.moments.mean[0, position]),
            # The scatter of a column with infinite cells is NaN.
            math.sqrt(scatter / (present - 1)) if present > 1 and scatter >= 0 else None,
            float(self.lowest[position]),
            float(self.highest[position]),
        )


@dataclass(frozen=True)
class ScannedColumn:
    """Description of a column of a file.

    Attributes
    ----------
    dtype : polars data type
    cells : Cells
    n_values : int
        Number of distinct values up to 2; 3 if there are more, or if it is a float column with two.
    counts_rows : bool
        Whether the column holds whole numbers, each one larger by 1 than that of the row above.
    """

    dtype: pl.DataType
    cells: Cells
    n_values: int
    counts_rows: bool


@dataclass(frozen=True)
class ScannedTable:
    """Description of a table of files.

    Attributes
    ----------
    n_rows : int
    columns : dict from str to ScannedColumn
        The features.
    labels : dict
        Number of rows of each label; rows without a label are not counted.
    """

    n_rows: int
    columns: dict[str, ScannedColumn]
    labels: dict[Any, int]

    @property
    def n_labelled(self) -> int:
        """Number of rows with a label."""
        return sum(self.labels.values())


def describe_scan(
    scan: Scan,
    features: Sequence[str],
    target: str | None,
    progress: Callable[[int], None] | None = None,
    check_labels: Callable[[Mapping[Any, int]], None] | None = None,
) -> ScannedTable:
    """Describe the columns of a table of files, before a model has given them kinds. One pass.

    Parameters
    ----------
    scan : Scan
    features : sequence of str
    target : str or None
        The column of labels; None counts no labels.
    progress : callable, optional
        Called with the number of rows of each part that has been read.
    check_labels : callable, optional
        Called with the labels counted so far as soon as there are very many, so that an error can end the pass early.
    """
    names = [*features, *([] if target is None else [target])]
    starts = range(0, scan.n_rows, _BATCH_ROWS)
    slices = [slice(start, min(start + _BATCH_ROWS, scan.n_rows)) for start in starts]
    keys = dict(zip(features, map(str, range(len(features))), strict=True))
    labels: Counter[Any] = Counter()
    parts = []
    for part, rows in zip(scan.parts(slices, [scan.names.index(name) for name in names]), slices, strict=True):
        cells = part.frame.lazy()
        expressions = [one for name, key in keys.items() for one in _expressions(name, key, scan.types[name], rows)]
        counted = [] if target is None else [_label_counts(cells, target)]
        found, *counts = pl.collect_all([cells.select(expressions), *counted])
        parts.append(found)
        for one in counts:
            labels.update(dict(zip(*one.get_columns(), strict=True)))
        if check_labels is not None and len(labels) > _MANY_LABELS:
            check_labels(labels)
        if progress is not None:
            progress(rows.stop - rows.start)
    series = {one.name: one for one in pl.concat(parts)}
    sizes = [rows.stop - rows.start for rows in slices]
    columns = {name: _column(series, key, scan.types[name], sizes) for name, key in keys.items()}
    return ScannedTable(scan.n_rows, columns, dict(labels))


def _label_counts(cells: pl.LazyFrame, target: str) -> pl.LazyFrame:
    labels = exactly(target)
    known = labels.is_not_null()
    if cells.collect_schema()[target].is_float():
        known &= labels.is_not_nan()
    return cells.filter(known).group_by(labels).agg(pl.len().alias(f"rows of {target}"))


def _expressions(name: str, key: str, dtype: pl.DataType, rows: slice) -> list[pl.Expr]:
    """Return the aggregates of a column over one part of the rows, each called "key aggregate"."""
    column = exactly(name)
    if dtype.is_float():
        column = column.fill_nan(None)
    found = {"missing": column.null_count()}
    number = _as_number(column, dtype)
    if number is not None:
        found |= {"mean": number.mean(), "variance": number.var(ddof=0)}
        found |= {"lowest": number.min(), "highest": number.max()}
    if dtype.is_integer():
        # A column that counts the rows differs from the row number by a constant.
        step = column.cast(pl.Int64, strict=False) - pl.int_range(rows.start, rows.stop, dtype=pl.Int64)
        found |= {"lowest_step": step.min(), "highest_step": step.max()}
    if dtype.is_integer() or dtype in (pl.Boolean, pl.String, pl.Categorical, pl.Enum):
        found["values"] = column.drop_nulls().unique().head(_MAX_VALUES).implode()
    return [expression.alias(f"{key} {aggregate}") for aggregate, expression in found.items()]


def _as_number(column: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    """Return a column of numbers as floats, and one of dates or durations as microseconds; None for another."""
    if dtype.is_numeric() or dtype == pl.Null:
        return column.cast(pl.Float64)
    if isinstance(dtype, pl.Datetime):
        return column.dt.replace_time_zone(None).dt.epoch("us").cast(pl.Float64)
    if dtype == pl.Date:
        return column.dt.epoch("us").cast(pl.Float64)
    return column.dt.total_microseconds().cast(pl.Float64) if isinstance(dtype, pl.Duration) else None


def _column(series: dict[str, pl.Series], key: str, dtype: pl.DataType, sizes: Sequence[int]) -> ScannedColumn:
    """Combine the aggregates of the parts of a column."""

    def of(aggregate: str) -> pl.Series | None:
        return series.get(f"{key} {aggregate}")

    missing, mean, variance, lowest, highest = map(of, ("missing", "mean", "variance", "lowest", "highest"))
    assert missing is not None
    if mean is None or variance is None or lowest is None or highest is None:
        n_missing = int(missing.sum())
        cells = Cells(sum(sizes) - n_missing, n_missing)
    else:
        parts = zip(sizes, missing, mean, variance, lowest, highest, strict=True)
        cells = _merge(_one_column(*part) for part in parts).column(0)
    values, lowest_step, highest_step = map(of, ("values", "lowest_step", "highest_step"))
    if values is not None:
        n_values = min(values.explode().drop_nulls().n_unique(), _MAX_VALUES)
    else:
        n_values = 0 if cells.lowest is None else 1 if cells.lowest == cells.highest else _MAX_VALUES
    counts_rows = (
        lowest_step is not None
        and highest_step is not None
        and lowest_step.min() is not None
        and lowest_step.min() == highest_step.max()
    )
    return ScannedColumn(dtype, cells, n_values, counts_rows)


def _one_column(
    n_rows: int, missing: int, mean: float | None, variance: float | None, lowest: float | None, highest: float | None
) -> NumericColumns:
    """Return the description of a column from the aggregates of a part of its rows; None if it has no number there."""
    present = n_rows - missing
    weight, shift, scatter = (np.array([[value or 0.0]]) for value in (present, mean, present * (variance or 0.0)))
    moments = Moments(weight, shift, np.zeros((1, 1)), scatter)
    low, high = (np.inf if lowest is None else lowest), (-np.inf if highest is None else highest)
    return NumericColumns(n_rows, moments, np.array([low]), np.array([high]))


def _merge(parts: Iterable[NumericColumns]) -> NumericColumns:
    with np.errstate(invalid="ignore", over="ignore"):  # infinite cells are refused when the model is fitted
        return functools.reduce(operator.add, parts)
