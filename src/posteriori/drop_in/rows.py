"""Training rows and rows to predict as sources, dense or sparse, and sums over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from posteriori.sources import Source, local_source
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Batch, Codes, Column, Labels, Numbers, Schema
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.schema import categorical_column
from posteriori.typing import Array

T = TypeVar("T")


@dataclass(frozen=True)
class LabelledRows:
    """Training rows of a call of `fit` or `partial_fit`.

    Attributes
    ----------
    source : Source
    classes : ndarray (C,)
    weighted : bool
        Whether the caller gave weights.
    past : JointStatistics or None
        Statistics of earlier rows.
    complete : bool
        Whether no more rows will follow, as in `fit`.
    dtype : type
        Precision of X.
    """

    source: Source
    classes: Array
    weighted: bool
    past: JointStatistics | None
    complete: bool
    dtype: type[np.floating[Any]]

    def fold(self, sums: Callable[[Any, Assignment], tuple[Any, ...]]) -> JointStatistics:
        """Return the weight of each class, and the sum of `sums(values, assignment)` over all batches."""

        def accumulate(batch: Batch) -> JointStatistics:
            rows = batch.assignment
            assert rows is not None  # a source to learn from has labels
            weight = np.bincount(rows.component, rows.weight, rows.n_components)
            return JointStatistics(weight, sums(batch.numbers.values, rows))

        return self.source.reduce(accumulate)

    def with_past(self, statistics: JointStatistics) -> JointStatistics:
        """Return the statistics of these rows plus those of the earlier rows."""
        return statistics if self.past is None else self.past + statistics


@dataclass(frozen=True)
class _OneBatch:
    """Sparse matrix as a source with a single batch, because a sparse product already sums over rows."""

    batch: Batch

    @property
    def schema(self) -> Schema:
        """Empty schema: columns of a sparse matrix are never read one by one."""
        return self.batch.schema

    def numeric_columns(self) -> _OneBatch:
        """Return self: the rows are already in memory."""
        return self

    def with_schema(self, schema: Schema) -> _OneBatch:
        """Return the same rows with the cut points of another schema of the same columns."""
        return _OneBatch(self.batch.with_schema(schema))

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Return accumulate(batch)."""
        return accumulate(self.batch)

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch)."""
        return score(self.batch)


def open_rows(X: Any) -> Source:
    """Return a source of validated rows."""
    if issparse(X):
        return _one_batch(X)
    schema = _numeric_schema(X.shape[1])
    return local_source(ArrayTable(X), schema, range(X.shape[1]))


def open_labelled(X: Any, y: Array, classes: Array, weight: Array | None) -> Source:
    """Return a source of validated rows with labels and weights."""
    labels = Labels(ArrayTable(y.reshape(-1, 1)))
    target = categorical_column("y", classes.tolist(), classes.dtype.str, declared=True)
    if issparse(X):
        n = X.shape[0]
        component = labels.components(target, slice(0, n))
        weight = np.ones(n) if weight is None else weight
        return _one_batch(X, Assignment(component, weight, len(classes)))
    schema = _numeric_schema(X.shape[1])
    return local_source(ArrayTable(X), schema, range(X.shape[1]), labels, target, weight)


def _numeric_schema(n_features: int) -> Schema:
    return Schema(tuple(Column(f"x{j}", "continuous") for j in range(n_features)))


def _one_batch(X: Any, assignment: Assignment | None = None) -> _OneBatch:
    no_codes = Codes(np.empty((X.shape[0], 0), np.uint8), ())
    return _OneBatch(Batch(Schema(()), 0, Numbers(X), no_codes, {}, assignment))
