"""Which rows are held out together."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.typing import Array


def stratified_folds(y_true: Array, folds: int, random_state: int = 0) -> Array:
    """Return a fold number for each row, (n,), such that every class is spread evenly, to one row, over the folds."""
    shuffled = np.random.default_rng(random_state).permutation(len(y_true))
    by_class = shuffled[np.argsort(y_true[shuffled], kind="stable")]
    fold = np.empty(len(y_true), np.int64)
    fold[by_class] = np.arange(len(y_true)) % folds
    return fold


def assign_folds(y_true: Array, folds: Any, *, stratified: bool = True, groups: Any = None, seed: int = 0) -> Array:
    """Return the number of each row's fold, (n,).

    Parameters
    ----------
    y_true : ndarray (n,)
        The class of each row.
    folds : int or array-like (n,)
        How many folds there are, or the fold of each row.
    stratified : bool
        Whether every class is spread evenly over the folds.
    groups : array-like (n,), optional
        Rows of one group are held out together, so that none of them teaches what the others are judged by.
    seed : int
        Of the shuffle that comes first.

    Raises
    ------
    ValueError
        There are fewer than two folds, more than rows or groups, or not one group a row.
    """
    n = len(y_true)
    if not isinstance(folds, int | np.integer):
        _, fold = np.unique(np.asarray(folds), return_inverse=True)
        if len(fold) != n or fold.max() < 1:
            raise ValueError(
                f"folds has {len(fold)} entries of {len(np.unique(fold))} kinds; give one of two or more a row"
            )
        return fold.astype(np.int64)
    if not 2 <= folds <= n:
        raise ValueError(f"folds is {folds}; give at least 2 and no more than the {n} rows")
    if groups is not None:
        return _grouped(y_true, int(folds), np.asarray(groups), stratified, seed)
    if stratified:
        return stratified_folds(y_true, int(folds), seed)
    return np.random.default_rng(seed).permutation(np.arange(n) % folds)


def _grouped(y_true: Array, folds: int, groups: Array, stratified: bool, seed: int) -> Array:
    """Return folds of whole groups: the largest first, each to the fold that it leaves most even."""
    if len(groups) != len(y_true):
        raise ValueError(f"groups has {len(groups)} entries; give one for each of the {len(y_true)} rows")
    _, group = np.unique(groups, return_inverse=True)
    n_groups, n_classes = int(group.max()) + 1, int(y_true.max()) + 1
    if n_groups < folds:
        raise ValueError(f"folds is {folds}; give no more than the {n_groups} groups")
    kind = y_true if stratified else np.zeros_like(y_true)
    table = np.bincount(group * n_classes + kind, minlength=n_groups * n_classes).reshape(n_groups, n_classes)
    wanted = np.maximum(table.sum(axis=0) / folds, 1.0)
    filled, fold_of = np.zeros((folds, n_classes)), np.empty(n_groups, np.int64)
    shuffled = np.random.default_rng(seed).permutation(n_groups)
    for one in shuffled[np.argsort(-table[shuffled].sum(axis=1), kind="stable")]:
        excess = (((filled + table[one]) / wanted) ** 2 - (filled / wanted) ** 2).sum(axis=1)
        position = int(np.lexsort((filled.sum(axis=1), excess))[0])
        fold_of[one], filled[position] = position, filled[position] + table[one]
    return fold_of[group]


def stratified_subsample(y_true: Array, most: int) -> Array:
    """Return the places of at most so many rows, as many of each class as it has a share, in order."""
    n = len(y_true)
    if n <= most:
        return np.arange(n)
    shuffled = np.random.default_rng(0).permutation(n)
    by_class = shuffled[np.argsort(y_true[shuffled], kind="stable")]
    return np.sort(by_class[np.arange(most) * n // most])
