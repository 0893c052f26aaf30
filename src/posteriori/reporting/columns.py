"""Summary statistics of the columns of a table, computed in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.model import GenerativeModel
from posteriori.statistics import Counts, Moments
from posteriori.tables import Assignment, Batch, Column
from posteriori.typing import Array


@dataclass(frozen=True)
class ColumnFacts:
    """Summary of one feature.

    Attributes
    ----------
    column : Column
    distribution : str
        Name of the density of the column; "pooled" for a pool.
    missing : int
        Number of missing cells.
    mean, sd, low, high : float or None
        Of a numeric column, in its unit; None if it has no value.
    counts : ndarray (K,) or None
        Number of rows of each category.
    """

    column: Column
    distribution: str
    missing: int
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    counts: Array | None = None


@dataclass(frozen=True)
class _Tally:
    """Additive statistics: moments and range of the numbers, counts of the categories."""

    rows: int
    moments: Moments
    low: Array
    high: Array
    counts: Counts

    @classmethod
    def of(cls, batch: Batch) -> _Tally:
        everyone = Assignment(np.zeros(len(batch), np.int32), np.ones(len(batch)), 1)
        values = batch.numbers.values
        return cls(
            len(batch),
            Moments.of(batch.numbers, everyone),
            np.fmin.reduce(values, axis=0, initial=np.inf),
            np.fmax.reduce(values, axis=0, initial=-np.inf),
            Counts.of(batch.codes, everyone),
        )

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(
            self.rows + other.rows,
            self.moments + other.moments,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.counts + other.counts,
        )


def column_facts(estimator: Any, X: Any) -> list[ColumnFacts]:
    """Summarize the features of a fitted estimator in a table, in one pass.

    Parameters
    ----------
    estimator : fitted estimator
        The distribution of every column of a pool is "pooled", because its members differ.
    X : table (n, d)
    """
    schema, tally = estimator.schema_, estimator._source(X).reduce(_Tally.of)
    name_of = dict.fromkeys(range(len(schema.columns)), "pooled")
    if not hasattr(estimator, "members_"):
        model: GenerativeModel = estimator.model_
        makers = sorted(
            (block for block in model.blocks if not block.models_missingness), key=lambda block: block.shared
        )
        name_of |= {j: block.density.name for block in makers for j in block.columns}
    continuous = schema.of_kind("continuous")
    return [
        _facts_of_number(column, name_of[j], tally, continuous.index(j))
        if column.kind == "continuous"
        else _facts_of_category(column, name_of[j], tally.counts, schema.coded.index(j))
        for j, column in enumerate(schema.columns)
    ]


def _facts_of_number(column: Column, distribution: str, tally: _Tally, position: int) -> ColumnFacts:
    present = float(tally.moments.weight[0, position])
    missing = tally.rows - round(present)
    if not present:
        return ColumnFacts(column, distribution, missing)
    variance = tally.moments.scatter[0, position] / max(present - 1.0, 1.0)
    return ColumnFacts(
        column,
        distribution,
        missing,
        float(tally.moments.mean[0, position]),
        float(np.sqrt(variance)),
        float(tally.low[position]),
        float(tally.high[position]),
    )


def _facts_of_category(column: Column, distribution: str, counts: Counts, position: int) -> ColumnFacts:
    return ColumnFacts(column, distribution, round(counts.missing(position)[0]), counts=counts.column(position)[0])
