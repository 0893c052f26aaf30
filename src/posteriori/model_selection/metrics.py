"""Metrics of probabilistic predictions: accuracy, log-loss, Brier score, confusion matrix and calibration.

All take `y_true`, `posterior` and `weight`, which are documented at `accuracy`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn import metrics

from posteriori.typing import Array

__all__ = [
    "Calibration",
    "PerClass",
    "accuracy",
    "brier_score",
    "calibration",
    "confusion_matrix",
    "fill_undefined",
    "log_loss",
    "precision_recall",
]


def accuracy(y_true: Array, posterior: Array, weight: Array | None = None) -> float:
    """Return the accuracy: the share of rows whose predicted class is the true one.

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row, in 0 … C − 1.
    posterior : ndarray (n, C)
        p(y | x) of each row. The predicted class is the most probable one, and the first of equally probable ones.
    weight : ndarray (n,), optional
        The weight of each row, ≥ 0; default 1.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> accuracy(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]))
    0.6666666666666666
    """
    return float(metrics.accuracy_score(y_true, posterior.argmax(axis=1), sample_weight=weight))


def log_loss(y_true: Array, posterior: Array, weight: Array | None = None) -> float:
    """Return the log-loss −(1/n) Σ_i log p(y_i | x_i) in nats.

    Returns
    -------
    float
        ≥ 0. A probability of 0 counts as 2.2e-16, as in scikit-learn, so that a row adds at most 36 nats.

    Raises
    ------
    ValueError
        A probability is NaN; replace it by `fill_undefined`.

    Examples
    --------
    >>> round(log_loss(np.array([0, 1]), np.array([[0.5, 0.5], [0.75, 0.25]])), 6)
    1.039721
    """
    n_classes = posterior.shape[1]
    if n_classes == 1:  # scikit-learn refuses one class; its probability is 1, and the loss 0
        return 0.0
    return float(metrics.log_loss(y_true, posterior, sample_weight=weight, labels=np.arange(n_classes)))


def brier_score(y_true: Array, posterior: Array, weight: Array | None = None) -> float:
    """Return the multi-class Brier score, (1/n) Σ_i Σ_c (p(c | x_i) − [c = y_i])².

    Returns
    -------
    float
        In [0, 2]. For two classes it is twice the score of one class.

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability, equation 2.

    Examples
    --------
    >>> brier_score(np.array([0, 1]), np.array([[0.5, 0.5], [0.0, 1.0]]))
    0.25
    """
    n_classes = posterior.shape[1]
    if n_classes == 1:
        return 0.0
    return float(
        metrics.brier_score_loss(
            y_true, posterior, sample_weight=weight, labels=np.arange(n_classes), scale_by_half=False
        )
    )


def confusion_matrix(y_true: Array, posterior: Array, weight: Array | None = None) -> Array:
    """Return the confusion matrix (C, C): the weight of the rows by true class (rows) and predicted class (columns).

    Examples
    --------
    >>> confusion_matrix(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]))
    array([[1, 0],
           [1, 1]])
    """
    n_classes = posterior.shape[1]
    cell = y_true * n_classes + posterior.argmax(axis=1)
    return np.bincount(cell, weight, n_classes**2).reshape(n_classes, n_classes)


@dataclass(frozen=True)
class PerClass:
    """Precision, recall and F1 of each class.

    Attributes
    ----------
    precision : ndarray (C,)
        The share of correct rows among those predicted as the class; NaN if no row is.
    recall : ndarray (C,)
        The share of correct rows among those of the class; NaN if it has no row.
    f1 : ndarray (C,)
        The harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN); NaN if no row is of the class or predicted
        as it.
    support : ndarray (C,)
        The weight of the rows of the class.
    """

    precision: Array
    recall: Array
    f1: Array
    support: Array

    @classmethod
    def of(cls, confusion: Array) -> PerClass:
        """Return the measures of a confusion matrix (C, C)."""
        correct = np.diagonal(confusion).astype(np.float64)
        support, predicted = confusion.sum(axis=1, dtype=np.float64), confusion.sum(axis=0, dtype=np.float64)
        return cls(
            _share(correct, predicted), _share(correct, support), _share(2.0 * correct, support + predicted), support
        )

    @property
    def macro(self) -> dict[str, float]:
        """The means of precision, recall and F1 over the classes that occur among the true or the predicted ones.

        All classes count alike. An undefined precision or recall counts as 0, as in scikit-learn with
        ``average="macro", zero_division=0``.
        """
        occurs = ~np.isnan(self.f1)
        measures = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {name: float(np.nan_to_num(values[occurs]).mean()) for name, values in measures.items()}


def _share(part: Array, whole: Array) -> Array:
    """Return part / whole, NaN where the whole is 0."""
    share: Array = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return share


def precision_recall(y_true: Array, posterior: Array, weight: Array | None = None) -> PerClass:
    """Return precision, recall and F1 of each class.

    Examples
    --------
    >>> precision_recall(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])).precision
    array([0.5, 1. ])
    """
    return PerClass.of(confusion_matrix(y_true, posterior, weight))


@dataclass(frozen=True)
class Calibration:
    """Reliability of predictions in bins of their confidence: calibrated predictions have accuracy = confidence.

    The confidence of a row is the probability of its predicted class.

    Attributes
    ----------
    edges : ndarray (B + 1,)
        Bin b holds the rows whose confidence is in (edges[b], edges[b + 1]]; the first bin also holds 0.
    weight : ndarray (B,)
        The weight of the rows in each bin.
    confidence, accuracy : ndarray (B,)
        The mean confidence and the accuracy of each bin; NaN if it is empty.
    """

    edges: Array
    weight: Array
    confidence: Array
    accuracy: Array

    @property
    def expected_error(self) -> float:
        """The expected calibration error, Σ_b (w_b / w)·|accuracy_b − confidence_b|, in [0, 1]."""
        gap = np.where(self.weight > 0, np.abs(self.accuracy - self.confidence), 0.0)
        return float(self.weight @ gap / self.weight.sum())


def calibration(y_true: Array, posterior: Array, weight: Array | None = None, *, bins: int = 10) -> Calibration:
    """Return accuracy by confidence, in bins of equal width.

    Parameters
    ----------
    bins : int, default 10
        The number of bins that divide [0, 1], ≥ 1.

    Raises
    ------
    ValueError
        `bins` is less than 1.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, equations 2 to 5.

    Examples
    --------
    >>> result = calibration(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.25, 0.75], [0.75, 0.25]]), bins=2)
    >>> result.weight, result.confidence, result.accuracy
    (array([0., 3.]), array([nan, 0.8]), array([       nan, 0.66666667]))
    >>> round(result.expected_error, 6)
    0.133333
    """
    if bins < 1:
        raise ValueError(f"bins is {bins}; give at least one")
    weight = np.ones(len(y_true)) if weight is None else weight
    confidence = posterior.max(axis=1)
    correct = posterior.argmax(axis=1) == y_true
    edges = np.linspace(0.0, 1.0, bins + 1)
    # Rounding can make a confidence exceed 1: clip it into the last bin.
    position = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
    total, sum_confidence, sum_correct = (
        np.bincount(position, weight * amount, bins) for amount in (np.ones(len(correct)), confidence, correct)
    )
    filled = np.where(total > 0, total, np.nan)
    return Calibration(edges, total, sum_confidence / filled, sum_correct / filled)


def fill_undefined(posterior: Array, prior: Array) -> Array:
    """Replace the posterior by the prior where it is NaN: in rows that no class can produce.

    Parameters
    ----------
    posterior : ndarray (n, C)
    prior : ndarray (C,) or (n, C)

    Examples
    --------
    >>> fill_undefined(np.array([[0.1, 0.9], [np.nan, np.nan]]), np.array([0.5, 0.5]))
    array([[0.1, 0.9],
           [0.5, 0.5]])
    """
    return np.where(np.isnan(posterior), prior, posterior)
