"""Facts about the columns of a fitted model: kind, density, cells and marks of missing ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posteriori.classifiers.estimator import Estimator
from posteriori.fitting.fitted import Fitted
from posteriori.reading import Scan
from posteriori.statistics import Counts
from posteriori.statistics.description import Cells, NumericColumns, ScannedTable
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Column

_FIRST_CATEGORIES = 12


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about one feature of a fitted model.

    Attributes
    ----------
    column : Column
    distribution : str or None
        The name of the density of the column, "pooled" in a pool; None of an ignored column.
    cells : Cells
        Present and missing cells; of a column of numbers mean, standard deviation and range, as the model reads them.
    counts : ndarray (K,) or None
        The number of rows of each category, where it is known.
    marks : mapping from str to int
        The texts that were read as missing, with their number of cells.
    """

    column: Column
    distribution: str | None
    cells: Cells
    counts: Array | None = None
    marks: Mapping[str, int] = field(default_factory=dict)


def distributions(estimator: Estimator) -> list[str | None]:
    """Return the name of the density of each column, "pooled" in a pool; None of an ignored column."""
    value = estimator.fitted_
    name_of, default = (value.model.column_densities, None) if isinstance(value, Fitted) else ({}, "pooled")
    return [None if one.is_ignored else name_of.get(j, default) for j, one in enumerate(estimator.schema_.columns)]


@dataclass(frozen=True)
class _ColumnTally:
    numbers: NumericColumns
    counts: Counts

    @classmethod
    def of(cls, batch: Batch) -> _ColumnTally:
        one_component = Assignment(np.zeros(len(batch), np.int32), np.ones(len(batch)), 1)
        return cls(NumericColumns.of(batch), Counts.of(batch.codes, one_component))

    def __add__(self, other: _ColumnTally) -> _ColumnTally:
        return _ColumnTally(self.numbers + other.numbers, self.counts + other.counts)


def facts_of_rows(estimator: Estimator, X: Any) -> list[ColumnFacts]:
    """Return the facts about the features of a fitted estimator in a table, in one pass.

    The cells of ignored columns and of columns of counts or text are not counted.
    """
    schema, tally = estimator.schema_, estimator._source(X).reduce(_ColumnTally.of)
    continuous, facts = schema.of_kind("continuous"), []
    for j, (column, distribution) in enumerate(zip(schema.columns, distributions(estimator), strict=True)):
        cells, counts = Cells(0, 0), None
        if column.kind == "continuous":
            cells = tally.numbers.column(continuous.index(j))
        elif column.kind == "categorical":
            position = schema.coded.index(j)
            missing = round(tally.counts.missing(position)[0])
            cells, counts = Cells(tally.numbers.n_rows - missing, missing), tally.counts.column(position)[0]
        facts.append(ColumnFacts(column, distribution, cells, counts))
    return facts


def facts_of_scan(estimator: Estimator, scan: Scan, description: ScannedTable) -> list[ColumnFacts]:
    """Return the facts about the features of a fitted estimator in the file that it was fitted to, by its description.

    Parameters
    ----------
    scan : Scan
        The file, which knows the cells that it read as missing.
    description : ScannedTable
        What one pass over the file has found; it counts no categories.
    """
    marked = scan.marked_cells()
    return [
        ColumnFacts(
            column,
            distribution,
            _as_read(description.columns[column.source].cells, column),
            marks=marked.get(column.source, {}),
        )
        for column, distribution in zip(estimator.schema_.columns, distributions(estimator), strict=True)
    ]


def column_facts(facts: Sequence[ColumnFacts], n_rows: int) -> list[dict[str, Any]]:
    """Return kind, distribution, missing cells and values of each feature."""
    columns = []
    for one in facts:
        column, cells = one.column, one.cells
        found: dict[str, Any] = {
            "name": column.name,
            "kind": column.shown_kind,
            "distribution": one.distribution,
            "missing": cells.missing,
            "missing_share": cells.missing / n_rows,
        }
        if one.marks:
            found["read_as_missing"] = dict(one.marks)
        if column.part is not None:
            found["part_of"] = column.source
        if column.is_ignored:
            found["reason"] = column.reason
        elif column.kind == "categorical":
            found["n_categories"] = len(column.categories)
            found["first_categories"] = list(column.categories[:_FIRST_CATEGORIES])
        elif column.kind == "counts":
            found["n_words"] = column.width
        else:
            found |= {"mean": cells.mean, "sd": cells.sd, "min": cells.lowest, "max": cells.highest}
            if column.cuts is not None:
                found["cuts"] = list(column.cuts)
        columns.append(found)
    return columns


def _as_read(cells: Cells, column: Column) -> Cells:
    """Return cells of a file as the model reads them: times in days or seconds, and no mean of categories."""
    if column.kind != "continuous":
        return Cells(cells.present, cells.missing)
    zero, unit = (0, 1) if column.part is None else (column.part.zero, column.part.unit)

    def scaled(value: float | None, start: int = zero) -> float | None:
        return None if value is None else (value - start) / unit

    lowest, highest = scaled(cells.lowest), scaled(cells.highest)
    return Cells(cells.present, cells.missing, scaled(cells.mean), scaled(cells.sd, 0), lowest, highest)
