"""The weight of rows without label, chosen by labelled rows that are held out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.learning import metrics
from posteriori.learning.out_of_fold import out_of_fold
from posteriori.tables import Column
from posteriori.typing import Array

# Descending, so that of equal losses the first is that of the greatest weight.
WEIGHT_GRID = (1.0, 0.3, 0.1, 0.01, 0.0)
_MOST_FOLDS = 5


def held_out_weight(
    estimator: Any, X: Any, y: Any, sample_weight: Array | None, y_true: Array, target: Column
) -> float:
    """Return the weight of rows without label whose models make the labelled rows that they have not seen most likely.

    Parameters
    ----------
    estimator : estimator with a parameter `unlabelled_weight`
        Is left as it was.
    X, y, sample_weight
        As in its `fit`.
    y_true : ndarray (n,)
        The number of each row's class, −1 where it has no label.
    target : Column
        The classes.

    Returns
    -------
    float
        Of `WEIGHT_GRID`, that of the least log-loss of the labelled rows, each by the model of the folds it is not in;
        1 where every row has a label.

    Raises
    ------
    ValueError
        A class has fewer than two labelled rows.
    """
    labelled = y_true[y_true >= 0]
    if len(labelled) == len(y_true):
        return 1.0
    rows = np.bincount(labelled, minlength=len(target.categories))
    if rows.min(initial=2) < 2:
        label = target.categories[rows.argmin()]
        raise ValueError(
            f'unlabelled_weight="held_out" takes two labelled rows of each class, and {label!r} has {rows.min()}; '
            "set it to a number"
        )
    folds = min(_MOST_FOLDS, int(rows.min()))
    weight = None if sample_weight is None else sample_weight[y_true >= 0]
    with warnings.catch_warnings():  # the model that is kept tells of its own
        warnings.simplefilter("ignore")
        losses = [_log_loss(estimator, share, X, y, sample_weight, weight, folds) for share in WEIGHT_GRID]
    return WEIGHT_GRID[int(np.argmin(losses))]


def _log_loss(
    estimator: Any, share: float, X: Any, y: Any, sample_weight: Array | None, weight: Array | None, folds: int
) -> float:
    one = clone(estimator).set_params(unlabelled_weight=share)
    scored = out_of_fold(one, X, y, folds=folds, sample_weight=sample_weight)
    posterior = metrics.fill_undefined(scored.posterior, scored.prior)
    return metrics.log_loss(scored.y_true, posterior, weight)
