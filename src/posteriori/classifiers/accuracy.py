"""How often a classifier is right: a fold over rows, wherever they are."""

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
    """How many rows of a class were predicted rightly.

    Attributes
    ----------
    right, weight : float
        In rows.
    impossible : int
        How many rows no class can produce.
    first : int
        The number of the first of them.
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
        """The share of the rows that were predicted rightly."""
        return self.right / self.weight


def accuracy_of(
    source: LabelledSource,
    y: Any,
    sample_weight: Any,
    target: Column,
    best: Callable[[Batch], Array],
    fallback: int,
) -> Accuracy:
    """Return how often predictions agree with labels.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    y, sample_weight
        As in `score`.
    target : Column
        The classes that the predictions are numbers of; labels may be others.
    best : callable
        Returns the class of each row of a batch, (n,), −1 where no class can produce it.
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
