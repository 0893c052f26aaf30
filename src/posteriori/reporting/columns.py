"""Summary statistics of the columns of a table, computed in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.explain.column_distributions import column_distributions
from posteriori.statistics import Counts
from posteriori.statistics.description import Cells, NumericColumns
from posteriori.tables import Assignment, Batch, Column
from posteriori.typing import Array


@dataclass(frozen=True)
class ColumnFacts:
    """Summary of one feature.

    Attributes
    ----------
    column : Column
    distribution : str
        Name of the density of the column; "pooled" for a pool; the kind of a column without numbers and categories.
    cells : Cells
        Number of missing cells, 0 for an ignored column; mean, standard deviation and range of a numeric column.
    counts : ndarray (K,) or None
        Number of rows of each category.
    """

    column: Column
    distribution: str
    cells: Cells
    counts: Array | None = None


@dataclass(frozen=True)
class _Tally:
    numbers: NumericColumns
    counts: Counts

    @classmethod
    def of(cls, batch: Batch) -> _Tally:
        one_component = Assignment(np.zeros(len(batch), np.int32), np.ones(len(batch)), 1)
        return cls(NumericColumns.of(batch), Counts.of(batch.codes, one_component))

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(self.numbers + other.numbers, self.counts + other.counts)


def column_facts(estimator: Any, X: Any) -> list[ColumnFacts]:
    """Summarize the features of a fitted estimator in a table, in one pass.

    Parameters
    ----------
    estimator : fitted estimator
        The distribution of every column of a pool is "pooled", because its members differ.
    X : table (n, d)
    """
    schema, tally = estimator.schema_, estimator._source(X).reduce(_Tally.of)
    pooled = hasattr(estimator, "members_")
    name_of = {} if pooled else column_distributions(estimator.model_)
    continuous = schema.of_kind("continuous")
    facts = []
    for j, column in enumerate(schema.columns):
        if column.kind not in ("continuous", "categorical"):
            facts.append(ColumnFacts(column, column.kind, Cells(0, 0)))
            continue
        distribution = name_of.get(j, "pooled")
        if column.kind == "continuous":
            facts.append(ColumnFacts(column, distribution, tally.numbers.column(continuous.index(j))))
            continue
        position = schema.coded.index(j)
        missing = round(tally.counts.missing(position)[0])
        cells = Cells(tally.numbers.n_rows - missing, missing)
        facts.append(ColumnFacts(column, distribution, cells, tally.counts.column(position)[0]))
    return facts
