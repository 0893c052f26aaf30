"""The summary of a table that candidates of a pool see: ranges, counts, missing cells and cardinalities."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.model_cost import ColumnSummary, TableSummary
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges
from posteriori.support.typing import Array
from posteriori.tables import Batch

_MOST_VALUES = 16  # of a column, to be counted


@dataclass(frozen=True)
class _Tally:
    """Counts of one part of the rows; + adds parts up."""

    n_rows: int
    n_incomplete: int
    n_missing: Array
    ranges: ColumnRanges
    values: Array  # per column, bit v mod 16 for each whole number v; all bits if the range of the part is wider
    whole_counts: bool

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(
            self.n_rows + other.n_rows,
            self.n_incomplete + other.n_incomplete,
            self.n_missing + other.n_missing,
            self.ranges + other.ranges,
            self.values | other.values,
            self.whole_counts and other.whole_counts,
        )


def _tally(batch: Batch) -> _Tally:
    """Return the counts of the rows of positive weight."""
    labels, schema = batch.assignment, batch.schema
    if labels is not None and not labels.weight.all():
        counted = np.flatnonzero(labels.weight)
        batch = replace(batch.rows(counted), assignment=labels.rows(counted))
    missing = np.zeros(len(schema.columns), np.int64)
    n_incomplete = 0
    continuous, categorical = list(schema.of_kind("continuous")), list(schema.of_kind("categorical"))
    if continuous:
        without = np.isnan(batch.numbers.values)
        missing[continuous] = without.sum(axis=0)
        n_incomplete = int(without.any(axis=1).sum())
    if categorical:
        missing[categorical] = (batch.codes.values == 0).sum(axis=0)
    ranges = ColumnRanges.of(batch)
    whole_counts = all(bool((bags.counts == np.floor(bags.counts)).all()) for bags in batch.bags)
    return _Tally(len(batch), n_incomplete, missing, ranges, _whole_values(batch, ranges), whole_counts)


def _whole_values(batch: Batch, ranges: ColumnRanges) -> Array:
    """Return the whole numbers of each column as bits, (d,); all bits where they are not whole or lie far apart."""
    values = np.full(len(ranges.whole), (1 << _MOST_VALUES) - 1, np.int64)
    few = _has_few_values(ranges)
    for position, j in enumerate(batch.schema.of_kind("continuous")):
        if few[j]:
            numbers = batch.numbers.values[:, position]
            within = numbers[(numbers >= ranges.lowest[j]) & (numbers <= ranges.highest[j])]
            remainders = np.mod(within, _MOST_VALUES).astype(np.int64)  # first, as no integer holds 1e19
            values[j] = np.bitwise_or.reduce(1 << remainders, initial=0)
    return values


def _has_few_values(ranges: ColumnRanges) -> Array:
    """Which columns hold whole numbers within a range so small that their remainders are distinct."""
    with np.errstate(invalid="ignore"):
        return np.asarray(ranges.whole & (ranges.highest - ranges.lowest < _MOST_VALUES))


def summarise_table(source: LabelledSource, n_classes: int) -> TableSummary:
    """Return the ranges, counts, missing cells and cardinalities of the training rows. O(n·d), one read.

    Parameters
    ----------
    source : LabelledSource
    n_classes : int
        C.
    """
    tally: _Tally = source.reduce(_tally)
    ranges = tally.ranges
    few = _has_few_values(ranges) & ranges.has_numbers
    columns = tuple(
        ColumnSummary(
            column.name,
            column.kind,
            column.cardinality if column.kind == "categorical" else 0,
            int(tally.n_missing[j]),
            float(ranges.lowest[j]),
            float(ranges.highest[j]),
            bool(ranges.whole[j]),
            int(tally.values[j]).bit_count() if few[j] else 0,
        )
        for j, column in enumerate(source.schema.columns)
        if j in source.schema.dense
    )
    n_counts = len(source.schema.of_kind("counts"))
    return TableSummary(columns, tally.n_rows, n_classes, tally.n_incomplete, n_counts, tally.whole_counts)
