"""How good held-out posteriors are, with standard errors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from posteriori.learning.metrics import calibration, fill_undefined
from posteriori.typing import Array

_LEAST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`


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
        Over rows: what repeating the whole with other rows would change is more.
    calibration_error_se : float
        Over folds; NaN where there is one.
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
        """Return the names of the scores and of their errors."""
        return [field.name for field in dataclasses.fields(cls)]


def scores_of(
    y_true: Array, posterior: Array, weight: Array, prior: Array | None = None, fold: Array | None = None
) -> Scores:
    """Return the scores of posteriors (n, C); of rows that no class can produce the prior (n, C) is judged."""
    if prior is not None:
        posterior = fill_undefined(posterior, prior)
    rows = np.arange(len(y_true))
    of_true = posterior[rows, y_true]
    squares = (posterior**2).sum(axis=1) - 2.0 * of_true + 1.0
    losses = [
        -np.log(np.maximum(of_true, _LEAST)),
        (posterior.argmax(axis=1) == y_true).astype(np.float64),
        squares,
    ]
    (loss, loss_se), (right, right_se), (brier, brier_se) = (_mean(part, weight) for part in losses)
    errors = [calibration(y_true, posterior, weight).expected_error]
    if fold is not None:
        parts = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
        errors += [
            calibration(y_true[part], posterior[part], weight[part]).expected_error
            for part in parts
            if weight[part].sum() > 0
        ]
    spread = float(np.std(errors[1:], ddof=1) / np.sqrt(len(errors) - 1)) if len(errors) > 2 else float("nan")
    return Scores(loss, loss_se, right, right_se, brier, brier_se, errors[0], spread)


def area_under_curve(y_true: Array, posterior: Array, weight: Array | None = None) -> float:
    r"""Return the area under the ROC curve: one class against the others, averaged by the share of each class.

    That of class c is the probability that a row of it has a greater p(c | x) than a row of another class, ties
    counting half (Mann & Whitney). NaN where there is one class only. Of two classes it is that of the second. These
    are the numbers of `sklearn.metrics.roc_auc_score`, with ``multi_class="ovr", average="weighted"`` for more classes.

    Parameters
    ----------
    y_true : ndarray (n,)
    posterior : ndarray (n, C)
    weight : ndarray (n,), optional
        Of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> area_under_curve(np.array([0, 0, 1, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.6, 0.4], [0.2, 0.8]]))
    0.75
    """
    weight = np.ones(len(y_true)) if weight is None else weight
    total, share = 0.0, 0.0
    n_classes = posterior.shape[1]
    # Of two classes the second alone, as in scikit-learn: both say the same, but for probabilities that round to 1.
    for c in range(n_classes) if n_classes != 2 else (1,):
        own = y_true == c
        of_class, of_others = weight[own].sum(), weight[~own].sum()
        if of_class > 0 and of_others > 0:
            total += of_class * _exceeds(posterior[:, c], own, weight) / (of_class * of_others)
            share += of_class
    return float(total / share) if share > 0 else float("nan")


def _exceeds(score: Array, own: Array, weight: Array) -> float:
    """Return the weight of the pairs of a row of the class and another in which the former has the greater score."""
    position = rankdata(score, method="dense").astype(np.int64) - 1
    others = np.bincount(position, np.where(own, 0.0, weight))
    below = np.cumsum(others) - others
    return float((np.where(own, weight, 0.0) * (below + 0.5 * others)[position]).sum())


def _mean(values: Array, weight: Array) -> tuple[float, float]:
    """Return a weighted mean and its standard error over rows."""
    total = weight.sum()
    mean = float(weight @ values / total)
    return mean, float(np.sqrt(weight**2 @ (values - mean) ** 2) / total)
