"""Accuracy of a classifier, as a sum over the rows of any source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.sources import LabelledSource
from posteriori.tables import Batch, Column, check_weights, read_labels
from posteriori.typing import Array


@dataclass(frozen=True)
class Accuracy:
    """Weight of the rows whose class was predicted correctly, and of all rows.

    Attributes
    ----------
    right, weight : float
        In rows.
    impossible : int
        Number of rows that no class can produce.
    first : int
        Row number of the first such row.
    """

    right: float
    weight: float
    impossible: int
    first: int

    def __add__(self, other: Accuracy) -> Accuracy:
        return Accuracy(
            self.right + other.right,
            self.weight + other.weight,
            self.impossible + other.impossible,
            self.first if self.impossible else other.first,
        )

    @property
    def share(self) -> float:
        """Accuracy, in [0, 1]."""
        return self.right / self.weight


def accuracy_of(
    source: LabelledSource,
    y: Any,
    sample_weight: Any,
    target: Column,
    best: Callable[[Batch], Array],
    fallback: int,
) -> Accuracy:
    """Return the accuracy of predictions, by the labels of the rows.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    y, sample_weight
        As in `score`.
    target : Column
        The classes that predictions index. Labels may have other classes.
    best : callable
        Returns the class of each row of a batch, (n,), −1 if no class can produce it.
    fallback : int
        The class of such rows.
    """
    labels = read_labels(y, source.table)
    known = target.extended(labels.infer())
    weight = check_weights(sample_weight, source.table.n_rows)
    position = np.array([known.lookup[label] - 1 for label in target.categories])

    def judge(batch: Batch) -> Accuracy:
        assert batch.assignment is not None
        found, own = best(batch), batch.assignment.weight
        strange = np.flatnonzero(found < 0)
        right = position[np.where(found < 0, fallback, found)] == batch.assignment.component
        first = batch.number(int(strange[0])) if len(strange) else 0
        return Accuracy(float(own[right].sum()), float(own.sum()), len(strange), first)

    return source.with_labels(labels, known).with_weight(weight).reduce(judge)
