"""Training rows and rows to predict as sources, dense or sparse, and sums over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite

from posteriori.sources import Source, source_of
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Bags, Batch, Column, Labels, Schema, Table
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.blocks import open_sparse
from posteriori.tables.columns import categorical_column
from posteriori.typing import Array


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
            return JointStatistics(weight, sums(cells_of(batch), rows))

        return self.source.reduce(accumulate)

    def with_past(self, statistics: JointStatistics) -> JointStatistics:
        """Return the statistics of these rows plus those of the earlier rows."""
        return statistics if self.past is None else self.past + statistics


def cells_of(batch: Batch) -> Array | Bags:
    """Return the cells of a batch of dense rows as an array (n, d), of sparse rows as bags."""
    return batch.bags[0] if batch.bags else batch.numbers.values


def open_rows(X: Any) -> Source:
    """Return a source of validated rows."""
    table, schema = _open(X)
    return source_of(table, schema, range(len(schema.columns)), local=True)


def open_labelled(X: Any, y: Array, classes: Array, weight: Array | None) -> Source:
    """Return a source of validated rows with labels and weights."""
    labels = Labels(ArrayTable(y.reshape(-1, 1)))
    target = categorical_column("y", classes.tolist(), classes.dtype.str, declared=True)
    table, schema = _open(X)
    return source_of(table, schema, range(len(schema.columns)), labels, target, weight, local=True)


def _open(X: Any) -> tuple[Table, Schema]:
    if issparse(X):
        table = open_sparse(X)
        return table, Schema((table.column(0, False),), table.container)
    return ArrayTable(X), Schema(tuple(Column(f"x{j}", "continuous") for j in range(X.shape[1])))


def require_finite(values: Any, name: str, allow_nan: bool = False) -> None:
    """Raise the ValueError of scikit-learn unless all cells of X are finite, or NaN if that is allowed."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞ in its sum
        assert_all_finite(values, allow_nan=allow_nan, estimator_name=name, input_name="X")
