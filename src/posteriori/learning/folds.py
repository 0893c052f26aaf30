"""Assignment of rows to the folds of cross-validation, and stratified subsamples."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.typing import Array


def stratified_folds(y_true: Array, folds: int, random_state: int = 0) -> Array:
    """Return the fold of each row, (n,). The counts of a class in any two folds differ by at most one."""
    shuffled = np.random.default_rng(random_state).permutation(len(y_true))
    by_class = shuffled[np.argsort(y_true[shuffled], kind="stable")]
    fold = np.empty(len(y_true), np.int64)
    fold[by_class] = np.arange(len(y_true)) % folds
    return fold


def assign_folds(y_true: Array, folds: Any, *, stratified: bool = True, groups: Any = None, seed: int = 0) -> Array:
    """Return the fold of each row, (n,).

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row.
    folds : int or array-like (n,)
        The number of folds, or the fold of each row.
    stratified : bool
        Whether to spread every class evenly over the folds.
    groups : array-like (n,), optional
        The group of each row. Rows of one group are in the same fold, so that no model is evaluated on a group that it
        was trained on.
    seed : int
        Of the shuffle of the rows before they are assigned.

    Raises
    ------
    ValueError
        There are fewer than two folds, more folds than rows or groups, or not one group per row.
    """
    n = len(y_true)
    if not isinstance(folds, int | np.integer):
        _, fold = np.unique(np.asarray(folds), return_inverse=True)
        if len(fold) != n or fold.max() < 1:
            raise ValueError(
                f"folds has {len(fold)} entries and {len(np.unique(fold))} distinct values; give the fold of each of "
                f"the {n} rows, with two or more distinct values"
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
