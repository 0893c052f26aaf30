"""Metrics of probabilistic predictions, with standard errors, and comparison with the class prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.model.answer import Answer
from posteriori.registry import seen_by
from posteriori.support.typing import Array

__all__ = [
    "Calibration",
    "ClassScores",
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
    return float(np.average(y_true == posterior.argmax(axis=1), weights=weight))


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
    if np.isnan(posterior).any():
        raise ValueError("a probability is NaN; replace it by fill_undefined")
    if posterior.shape[1] == 1:  # its probability is 1, though the greatest below is less
        return 0.0
    of_true = np.clip(posterior[np.arange(len(y_true)), y_true], _SMALLEST, 1.0 - _SMALLEST)
    return float(np.average(-np.log(of_true), weights=weight))


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
    missed = (np.eye(posterior.shape[1])[y_true] - posterior) ** 2
    return float(np.average(missed.sum(axis=1), weights=weight))


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
class ClassScores:
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
    def of(cls, confusion: Array) -> ClassScores:
        """Return the measures of a confusion matrix (C, C), or with further columns of decisions for no class."""
        correct = np.diagonal(confusion).astype(np.float64)
        support, predicted = (
            confusion.sum(axis=1, dtype=np.float64),
            confusion.sum(axis=0, dtype=np.float64)[: len(confusion)],
        )
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


def precision_recall(y_true: Array, posterior: Array, weight: Array | None = None) -> ClassScores:
    """Return precision, recall and F1 of each class.

    Examples
    --------
    >>> precision_recall(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]])).precision
    array([0.5, 1. ])
    """
    return ClassScores.of(confusion_matrix(y_true, posterior, weight))


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
    total = np.bincount(position, weight, bins)
    sum_confidence = np.bincount(position, weight * confidence, bins)
    sum_correct = np.bincount(position, weight * correct, bins)
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


_SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in scikit-learn


def scores_of(
    y_true: Array, posterior: Array, weight: Array, prior: Array | None = None, fold: Array | None = None
) -> dict[str, float]:
    """Return the scores of held-out posteriors, and their standard errors as "log_loss_se".

    They are log_loss in nats, accuracy, brier in [0, 2] and calibration_error, the expected calibration error of the
    predicted class. The errors of the first three are over the rows: other training rows would change the scores by
    more. That of the calibration error is over the folds, and NaN if there is only one.

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
    means = dict(
        zip(("log_loss", "accuracy", "brier"), (weighted_mean(values, weight) for values in losses), strict=True)
    )
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
    means["calibration_error"] = errors[0], spread
    return {key: value for name, pair in means.items() for key, value in zip((name, f"{name}_se"), pair, strict=True)}


def loss_difference(y_true: Array, posterior: Array, other: Array, weight: Array) -> tuple[float, float]:
    """Return the log-loss of held-out posteriors (n, C) minus that of others, and its standard error, in nats per row.

    The standard error is that of a mean of paired differences, which is smaller than that of each log-loss.
    """
    rows = np.arange(len(y_true))
    of_true, of_other = (np.maximum(one[rows, y_true], _SMALLEST) for one in (posterior, other))
    return weighted_mean(np.log(of_other) - np.log(of_true), weight)


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
    rank = np.unique(score, return_inverse=True)[1]
    negatives = np.bincount(rank, np.where(positive, 0.0, weight))
    below = np.cumsum(negatives) - negatives
    return float((np.where(positive, weight, 0.0) * (below + 0.5 * negatives)[rank]).sum())


def weighted_mean(values: Array, weight: Array) -> tuple[float, float]:
    """Return the weighted mean of values, (n,), and its standard error over rows."""
    total = weight.sum()
    mean = float(weight @ values / total)
    return mean, float(np.sqrt(weight**2 @ (values - mean) ** 2) / total)


_SIGNIFICANT = 2.0  # standard errors
COVERAGE = 0.9  # of the intervals of levels and numbers that are judged


@dataclass(frozen=True)
class AgainstPrior:
    """The log-loss of posteriors against that of the class prior, on the same rows."""

    # log-loss of the posterior minus that of the prior, in nats per row; negative where the posterior is better
    difference: float
    standard_error: float  # the standard error of `difference`, a mean of paired differences over the rows
    # trend, trend_error: the score statistic of `compare_with_prior`, and its standard error
    trend: float
    trend_error: float

    @property
    def informs(self) -> bool:
        """Whether the posterior raises the probability of the true class, by more than two standard errors."""
        return self.trend > _SIGNIFICANT * self.trend_error

    @property
    def verdict(self) -> str:
        """The result in one word: "informative", "uninformative" or "overconfident".

        "uninformative": the log-loss is not below that of the prior by more than two standard errors, and `informs` is
        false. "overconfident": the log-loss is above that of the prior otherwise.
        """
        if not self.informs and self.difference >= -_SIGNIFICANT * self.standard_error:
            return "uninformative"
        return "overconfident" if self.difference > 0 else "informative"


def compare_with_prior(y_true: Array, posterior: Array, prior: Array, weight: Array) -> AgainstPrior:
    r"""Compare posteriors of held-out rows with the class prior.

    A log-loss above that of the prior has two possible reasons: the columns carry no information about the class, or
    the posteriors are overconfident. The score test of t = 0 in p_t(y | x) ∝ p(y)·(p(y | x) / p(y))^t separates them.
    Its statistic is the derivative of the log-likelihood,

    .. math:: s_{y_i}(x_i) - \sum_y p(y)\, s_y(x_i), \qquad s_y(x) = \log p(y \mid x) - \log p(y),

    whose mean is 0 if posterior and class are independent, however confident the posteriors are.

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row.
    posterior, prior : ndarray (n, C)
    weight : ndarray (n,)

    References
    ----------
    Rao, Linear Statistical Inference and Its Applications, 2nd ed., section 6e, on score tests.
    """
    rows = np.arange(len(y_true))
    log_posterior = np.log(np.maximum(fill_undefined(posterior, prior), _SMALLEST))
    log_ratio = log_posterior - np.log(np.maximum(prior, _SMALLEST))
    difference, error = weighted_mean(-log_ratio[rows, y_true], weight)
    trend, trend_error = weighted_mean(log_ratio[rows, y_true] - (prior * log_ratio).sum(axis=1), weight)
    return AgainstPrior(difference, error, trend, trend_error)


def pool_verdict(cv_results: Mapping[str, Sequence[Any]]) -> str:
    """Return a sentence on the candidate whose log-loss is below that of the pool; an empty string if there is none.

    Parameters
    ----------
    cv_results : mapping
        The attribute `cv_results_` of a `GenerativeClassifier`.
    """
    if "log_loss_above_pool" not in cv_results or sum(weight > 0 for weight in cv_results["weight"][:-1]) < 2:
        return ""
    above = list(cv_results["log_loss_above_pool"][:-1])
    best = min(range(len(above)), key=above.__getitem__)
    difference, error = above[best], cv_results["log_loss_above_pool_se"][best]
    if not difference < 0:
        return ""
    if difference < -_SIGNIFICANT * error:
        kept = f"more than two standard errors, but the best of {len(above)} candidates looks better than it is"
    else:
        kept = "within two standard errors, which does not show that it is better alone"
    name = cv_results["member"][best]
    return (
        f"{seen_by(name)} has a lower log-loss than the pool, by {-difference:.4f} ± {error:.4f} nats: "
        f"{kept}; the pool is kept"
    )


@dataclass(frozen=True)
class Levels:
    """Predictions of ordered classes beside the true levels: weighted means over the rows.

    Attributes
    ----------
    ranked_score : float
        The ranked probability score, Σ_k (F_k − [y ≤ k])², in levels: that of a sure prediction is the number of levels
        between it and the truth.
    shares : tuple of float
        As `HeldOutFigures.levels`.
    """

    ranked_score: float
    shares: tuple[float, float, float, float]

    @classmethod
    def of(cls, answer: Answer, truth: Array, weight: Array) -> Levels:
        """Compare answers about ordered categories with the true labels."""
        share, level, density = weight / weight.sum(), answer.codes(truth), answer.density
        low, high = density.interval(COVERAGE).T
        away = np.abs(density.median - level)
        means = (away == 0, away <= 1, (low <= level) & (level <= high), high - low + 1)
        same, near, held, width = (round(float(share @ of_rows), 12) for of_rows in means)
        return cls(float(share @ density.crps(level)), (same, near, held, width))
