"""Folds of cross-validation: their assignment to rows, and sums over the rows outside each fold."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate as running
from typing import Any, TypeVar

import numpy as np

from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.support.threads import in_order, n_threads
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.batch import joined


def stratified_folds(y_true: Array, folds: int, random_state: int = 0) -> Array:
    """Return the fold of each row, (n,). The counts of a class in any two folds differ by at most one."""
    shuffled = np.random.default_rng(random_state).permutation(len(y_true))
    by_class = shuffled[np.argsort(y_true[shuffled], kind="stable")]
    fold = np.empty(len(y_true), np.int64)
    fold[by_class] = np.arange(len(y_true)) % folds
    return fold


def assign_folds(
    y_true: Array,
    folds: Any,
    *,
    stratified: bool = True,
    groups: Any = None,
    copies: Array | None = None,
    seed: int = 0,
) -> Array:
    """Return the fold of each row, (n,).

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row.
    folds : int, array-like (n,), pairs or splitter
        The number of folds, the fold of each row, or pairs of training and test rows, as a list or as an object of
        scikit-learn makes them: the test rows are the folds.
    stratified : bool
        Whether to spread every class evenly over the folds.
    groups : array-like (n,), optional
        The group of each row. Rows of one group are in the same fold, so that no model is evaluated on a group that it
    copies : ndarray (n,), optional
        The group of equal rows of each row, which are in the same fold, unless folds or groups are given.
    seed : int
        Of the shuffle        Of the shuffle of the rows before they are assigned.

    Raises
    ------
    ValueError
        There are fewer than two folds, more folds than rows or groups, or not one group per row; or the test rows of
        a splitter are not each row once.
    """
    n = len(y_true)
    if hasattr(folds, "split") and not isinstance(folds, str | bytes | np.ndarray):
        return _fold_of_each(folds.split(np.zeros((n, 1)), y_true, groups), n, f"folds={folds!r}")
    if isinstance(folds, Iterator):
        folds = list(folds)
    if _are_pairs(folds):
        return _fold_of_each(folds, n, "folds")
    if not isinstance(folds, int | np.integer):
        return _stated_folds(folds, n)
    if not 2 <= folds <= n:
        raise ValueError(f"folds is {folds}; give at least 2 and no more than the {n} rows")
    if groups is not None:
        return _grouped(y_true, int(folds), np.asarray(groups), stratified, seed)
    _, first, place = np.unique(np.arange(n) if copies is None else copies, return_index=True, return_inverse=True)
    if folds <= len(first) < n:
        return np.asarray(assign_folds(y_true[first], folds, stratified=stratified, seed=seed)[place])
    if stratified:
        return stratified_folds(y_true, int(folds), seed)
    return np.random.default_rng(seed).permutation(np.arange(n) % folds)


def _stated_folds(folds: Any, n: int) -> Array:
    """Return the fold of each row as consecutive integers, given any labels of folds."""
    stated = np.empty(())
    if isinstance(folds, Sequence) or hasattr(folds, "__array__"):
        with suppress(ValueError):  # of rows of several lengths
            stated = np.asarray(folds)
    if isinstance(folds, str | bytes) or stated.ndim != 1:
        raise ValueError(
            f"folds is {reprlib.repr(folds)}; give a number, the fold of each of the {n} rows, pairs of training and "
            "test rows, or a splitter of scikit-learn"
        )
    empty = np.flatnonzero(stated != stated)
    if len(empty):
        raise ValueError(f"folds is NaN for row {empty[0]}; give the fold of each row")
    _, fold = np.unique(stated, return_inverse=True)
    n_folds = int(fold.max(initial=-1)) + 1
    if len(fold) != n or n_folds < 2:
        raise ValueError(
            f"folds has {len(fold)} entries and {n_folds} distinct values; give the fold of each of the {n} rows, with "
            "two or more distinct values"
        )
    return fold.astype(np.int64)


def _are_pairs(folds: Any) -> bool:
    """Return whether folds are pairs of the positions of training and test rows."""
    return isinstance(folds, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(np.ndim(rows) == 1 for rows in pair) for pair in folds
    )


def entries_of(rows: Array, entries: Any, n: int) -> Any:
    """Return the entries of some of n rows, or their folds, where pairs of training and test rows are stated.

    Anything else, such as a number of folds, is returned as it is. Errors are those of `assign_folds`.
    """
    from posteriori.tables.rows import take_rows  # imported here: a scorer need not have narwhals

    if isinstance(entries, Iterator):
        entries = list(entries)
    if _are_pairs(entries):
        return _fold_of_each(entries, n, "folds", rows)[rows]
    return take_rows(entries, rows) if isinstance(entries, Sized) and len(entries) == n else entries


def _fold_of_each(pairs: Iterable[tuple[Any, Any]], n: int, shown: str, among: Array | None = None) -> Array:
    """Return the fold in which pairs of training and test rows test each of n rows, or each `among` these.

    A model is trained on all rows outside a fold, so that other training rows are an error.
    """
    counted = np.arange(n) if among is None else among
    instead = "; for other splits, such as in the order of time, fit the training rows and score the test rows yourself"
    fold, tests = np.empty(n, np.int64), np.zeros(n, np.int64)
    for k, pair in enumerate(pairs):
        training, rows = (np.intersect1d(_positions(part, n, shown), counted) for part in pair)
        fold[rows] = k
        tests[rows] += 1
        if len(training) + len(rows) < len(counted) or np.isin(rows, training).any():
            raise ValueError(f"{shown} trains split {k} on other rows than all those that it does not test{instead}")
    wrong = counted[tests[counted] != 1]
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"{shown} tests row {row} {tests[row]} times; give splits that test each row once, such as those of "
            f"StratifiedKFold{instead}"
        )
    return fold


def _positions(rows: Any, n: int, shown: str) -> Array:
    """Return the positions of rows, given as such or as a mask."""
    positions = np.asarray(rows)
    if positions.dtype == np.bool_ and len(positions) == n:
        positions = np.flatnonzero(positions)
    if positions.dtype.kind not in "iu" and len(positions):
        raise ValueError(f"{shown} names rows by {positions.dtype}; give their positions, or a mask of the {n} rows")
    outside = positions[(positions < -n) | (positions >= n)]
    if len(outside):
        raise ValueError(f"{shown} names row {outside[0]}, and there are {n} rows")
    found: Array = np.unique(positions.astype(np.int64) % n)
    return found


def _grouped(y_true: Array, folds: int, groups: Array, stratified: bool, seed: int) -> Array:
    """Return folds of whole groups: the largest group first, each to the fold whose class counts it keeps most even."""
    if len(groups) != len(y_true):
        raise ValueError(f"groups has {len(groups)} entries; give one for each of the {len(y_true)} rows")
    _, group = np.unique(groups, return_inverse=True)
    n_groups, n_classes = int(group.max()) + 1, int(y_true.max()) + 1
    if n_groups < folds:
        raise ValueError(f"folds is {folds}; give no more than the {n_groups} groups")
    stratum = y_true if stratified else np.zeros_like(y_true)
    counts = np.bincount(group * n_classes + stratum, minlength=n_groups * n_classes).reshape(n_groups, n_classes)
    target = np.maximum(counts.sum(axis=0) / folds, 1.0)
    filled, fold_of = np.zeros((folds, n_classes)), np.empty(n_groups, np.int64)
    shuffled = np.random.default_rng(seed).permutation(n_groups)
    for g in shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]:
        # The increase of Σ (count / target)² is least in the fold that lacks these classes most. Ties go to the fold
        # with the fewest rows.
        increase = (((filled + counts[g]) / target) ** 2 - (filled / target) ** 2).sum(axis=1)
        k = int(np.lexsort((filled.sum(axis=1), increase))[0])
        fold_of[g], filled[k] = k, filled[k] + counts[g]
    return fold_of[group]


def stratified_subsample(y_true: Array, most: int) -> Array:
    """Return the positions of at most `most` rows, ascending, in which each class keeps its share of the rows."""
    n = len(y_true)
    if n <= most:
        return np.arange(n)
    shuffled = np.random.default_rng(0).permutation(n)
    by_class = shuffled[np.argsort(y_true[shuffled], kind="stable")]
    return np.sort(by_class[np.arange(most) * n // most])  # evenly spaced in the order of the classes


T = TypeVar("T")


def with_pairs(batch: Batch, folds: int) -> Batch:
    """Return a batch whose components are the pairs of fold and class, fold first.

    Rows that are in no fold are in an extra fold, the last one.
    """
    labels = batch.assignment
    assert labels is not None
    fold = np.full(len(batch), -1, np.int32) if batch.fold is None else batch.fold
    assert fold.max(initial=-1) < folds  # kernels do not check bounds
    pair = np.where(fold < 0, folds, fold) * labels.n_components + labels.component
    component = np.where(labels.component < 0, -1, pair).astype(np.int32)
    pairs = replace(labels, component=component, n_components=(folds + 1) * labels.n_components)
    return replace(batch, assignment=pairs)


def components_of_folds(n: int, folds: int) -> list[range]:
    """Return the components of each fold among n pairs of fold and class; last those of rows in no fold."""
    n_classes = n // (folds + 1)
    return [range(k * n_classes, (k + 1) * n_classes) for k in range(folds + 1)]


def sums_outside_folds(sums: Any, n: int, folds: int) -> list[Any]:
    """Return the statistics of the rows outside each fold, and last of all rows, from those of n pairs (`with_pairs`).

    Rows without label are in no pair. Their weight is in every result, whatever their fold.
    """
    of_folds = sums_without_each([sums.reindexed(components) for components in components_of_folds(n, folds)])
    if isinstance(sums, JointStatistics):
        return [replace(one, hidden=sums.hidden) for one in of_folds]
    return of_folds


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

    With `with_pairs`, every batch would fill a table for each fold, although few rows are in one.

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
