"""Sums per fold, and from them the sums over the rows outside each fold."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate as running
from typing import Any, TypeVar

import numpy as np

from posteriori.sources import LabelledSource
from posteriori.sources.threads import in_order, n_threads
from posteriori.tables import Batch
from posteriori.tables.batch import joined

T = TypeVar("T")


def per_fold(accumulate: Callable[[Batch], T], folds: int) -> Callable[[Batch], T]:
    """Return a function from a batch to statistics that have a component per pair of fold and class, fold first.

    Rows that are in no fold are counted in an extra fold, the last one.
    """

    def accumulate_per_fold(batch: Batch) -> T:
        labels = batch.assignment
        assert labels is not None
        fold = np.full(len(batch), -1, np.int32) if batch.fold is None else batch.fold
        assert fold.max(initial=-1) < folds  # kernels do not check bounds
        pair = np.where(fold < 0, folds, fold) * labels.n_components + labels.component
        component = np.where(labels.component < 0, -1, pair).astype(np.int32)
        pairs = replace(labels, component=component, n_components=(folds + 1) * labels.n_components)
        return accumulate(replace(batch, assignment=pairs))

    return accumulate_per_fold


def components_of_folds(n: int, folds: int) -> list[range]:
    """Return the components of each fold among n pairs of fold and class; last those of rows in no fold."""
    n_classes = n // (folds + 1)
    return [range(k * n_classes, (k + 1) * n_classes) for k in range(folds + 1)]


def sums_without_each(parts: list[T]) -> list[T]:
    """Return, for each fold, the sum of all parts except that of the fold, and last the sum of all parts.

    The last part belongs to the rows in no fold, and is in every sum.
    """
    # Cumulative sums from both ends: linear in the number of folds, and exact where subtracting a part would cancel.
    *of_fold, always = parts
    before = list(running([always, *of_fold], operator.add))
    after = list(running(reversed(of_fold), operator.add))[::-1]
    sums = [before[k] if k + 1 == len(of_fold) else operator.add(before[k], after[k + 1]) for k in range(len(of_fold))]
    return [*sums, before[-1]]


def outside(batch: Batch, k: int | None) -> Batch:
    """Return the rows of a batch that are not in fold k; all rows if k is None."""
    return batch if k is None else _rows(batch, batch.fold != k)


def inside(batch: Batch, k: int) -> Batch:
    """Return the rows of a batch that are in fold k; those in no fold if k is −1."""
    return _rows(batch, batch.fold == k)


def _rows(batch: Batch, chosen: Any) -> Batch:
    assert batch.fold is not None
    assert batch.assignment is not None
    rows = np.flatnonzero(chosen)
    return replace(batch.rows(rows), assignment=batch.assignment.rows(rows), fold=batch.fold[rows])


def rows_in_folds(source: LabelledSource) -> Batch:
    """Return the rows that are in a fold as one batch in memory, with labels and folds, from one pass."""

    def chosen(batch: Batch) -> Batch:
        assert batch.fold is not None
        return _rows(batch, batch.fold >= 0)

    return joined(list(source.stream(chosen, "reading")))


def sums_of_parts(source: LabelledSource, accumulate: Callable[[Batch], T], folds: int, held_out: Batch) -> list[T]:
    """Return the sums over the rows of each fold, and last over the rows in no fold, in one pass over the latter.

    With `per_fold`, every batch would fill a table for each fold, although few rows are in one.

    Parameters
    ----------
    source : LabelledSource
        All rows, with their folds.
    accumulate : callable
    folds : int
    held_out : Batch
        The rows that are in a fold (`rows_in_folds`).
    """
    others = source.reduce(lambda batch: accumulate(inside(batch, -1)))
    return [*in_order(range(folds), lambda k: accumulate(inside(held_out, k)), n_threads(source.n_jobs)), others]
