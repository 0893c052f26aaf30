"""What each column of a table holds, from one pass over it."""

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
    """One feature.

    Attributes
    ----------
    column : Column
    distribution : str
        The name of the density that makes it.
    missing : int
        How many of its cells are missing.
    mean, sd, low, high : float or None
        Of a column of numbers, in its unit; None where it has no value.
    counts : ndarray (K,) or None
        The rows of each category.
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
    """What is added up: moments and extremes of numbers, and counts of codes."""

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
    """Return what the features of a fitted estimator hold in a table, in one pass.

    Parameters
    ----------
    estimator : fitted estimator
        The distributions of a pool's columns are called "pooled": its members have different ones.
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
