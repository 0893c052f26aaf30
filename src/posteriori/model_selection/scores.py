"""Scores of held-out posteriors, with standard errors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from posteriori.model_selection.metrics import calibration, fill_undefined
from posteriori.typing import Array

_SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`


@dataclass(frozen=True)
class Scores:
    """Means over rows, and their standard errors.

    Attributes
    ----------
    log_loss : float
        In nats, ≥ 0.
    accuracy : float
        In [0, 1].
    brier : float
        In [0, 2].
    calibration_error : float
        The expected calibration error of the predicted class, in [0, 1].
    log_loss_se, accuracy_se, brier_se : float
        Standard errors over the rows. Other training rows would change the scores by more.
    calibration_error_se : float
        Standard error over the folds; NaN if there is only one.
    """

    log_loss: float
    log_loss_se: float
    accuracy: float
    accuracy_se: float
    brier: float
    brier_se: float
    calibration_error: float
    calibration_error_se: float

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the scores and of their standard errors."""
        return [field.name for field in dataclasses.fields(cls)]


def scores_of(
    y_true: Array, posterior: Array, weight: Array, prior: Array | None = None, fold: Array | None = None
) -> Scores:
    """Return the scores of held-out posteriors.

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row.
    posterior : ndarray (n, C)
    weight : ndarray (n,)
    prior : ndarray (n, C), optional
        Replaces posteriors that are NaN, in rows that no class can produce.
    fold : ndarray (n,), optional
        The fold of each row, for the standard error of the calibration error.
    """
    if prior is not None:
        posterior = fill_undefined(posterior, prior)
    rows = np.arange(len(y_true))
    of_true = posterior[rows, y_true]
    squares = (posterior**2).sum(axis=1) - 2.0 * of_true + 1.0  # Σ_c (p_c − [c = y])²
    losses = [
        -np.log(np.maximum(of_true, _SMALLEST)),
        (posterior.argmax(axis=1) == y_true).astype(np.float64),
        squares,
    ]
    (loss, loss_se), (accuracy, accuracy_se), (brier, brier_se) = (_mean(values, weight) for values in losses)
    errors = [calibration(y_true, posterior, weight).expected_error]
    if fold is not None:
        held_out = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
        errors += [
            calibration(y_true[rows], posterior[rows], weight[rows]).expected_error
            for rows in held_out
            if weight[rows].sum() > 0
        ]
    # The error of the mean over rows is biased upwards by noise within bins: take the spread over folds.
    spread = float(np.std(errors[1:], ddof=1) / np.sqrt(len(errors) - 1)) if len(errors) > 2 else float("nan")
    return Scores(loss, loss_se, accuracy, accuracy_se, brier, brier_se, errors[0], spread)


def loss_difference(y_true: Array, posterior: Array, other: Array, weight: Array) -> tuple[float, float]:
    """Return the log-loss of held-out posteriors (n, C) minus that of others, and its standard error, in nats per row.

    The standard error is that of a mean of paired differences, which is smaller than that of each log-loss.
    """
    rows = np.arange(len(y_true))
    of_true, of_other = (np.maximum(one[rows, y_true], _SMALLEST) for one in (posterior, other))
    return _mean(np.log(of_other) - np.log(of_true), weight)


def area_under_curve(y_true: Array, posterior: Array, weight: Array | None = None) -> float:
    r"""Return the area under the ROC curve (AUC): one class against the others, averaged by the weights of the classes.

    The AUC of class c is the probability that a row of it has a greater p(c | x) than a row of another class, where
    ties count half (Mann & Whitney). For two classes it is that of the second. It is NaN if only one class occurs. The
    values equal those of `sklearn.metrics.roc_auc_score`, with ``multi_class="ovr", average="weighted"`` for more than
    two classes.

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row.
    posterior : ndarray (n, C)
    weight : ndarray (n,), optional
        The weight of each row.

    Examples
    --------
    >>> import numpy as np
    >>> area_under_curve(np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.6, 0.4], [0.2, 0.8]]))
    0.75
    """
    weight = np.ones(len(y_true)) if weight is None else weight
    total, total_weight = 0.0, 0.0
    n_classes = posterior.shape[1]
    # For two classes take the second alone, as scikit-learn does. The first differs if probabilities are rounded to 1.
    for c in range(n_classes) if n_classes != 2 else (1,):
        positive = y_true == c
        of_class, of_others = weight[positive].sum(), weight[~positive].sum()
        if of_class > 0 and of_others > 0:
            total += of_class * _mann_whitney(posterior[:, c], positive, weight) / (of_class * of_others)
            total_weight += of_class
    return float(total / total_weight) if total_weight > 0 else float("nan")


def _mann_whitney(score: Array, positive: Array, weight: Array) -> float:
    """Return the weight of the pairs of a positive and a negative row in which the positive one has the greater score.

    Ties count half.
    """
    rank = rankdata(score, method="dense").astype(np.int64) - 1
    negatives = np.bincount(rank, np.where(positive, 0.0, weight))
    below = np.cumsum(negatives) - negatives
    return float((np.where(positive, weight, 0.0) * (below + 0.5 * negatives)[rank]).sum())


def _mean(values: Array, weight: Array) -> tuple[float, float]:
    """Return a weighted mean and its standard error over rows."""
    total = weight.sum()
    mean = float(weight @ values / total)
    return mean, float(np.sqrt(weight**2 @ (values - mean) ** 2) / total)
