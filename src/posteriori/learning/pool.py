r"""Several models, one posterior.

.. math:: p(y \mid x) \propto \exp\Big(b_y + \sum_m w_m \log p_m(y \mid x)\Big), \qquad w_m \ge 0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.learning.folds import stratified_subsample
from posteriori.learning.log_linear import FLOOR, LogLinear, fit_log_linear
from posteriori.typing import Array

_BIAS_PENALTY = 0.1  # of that on the weights
_FEWEST_ROWS = 5000
_ROWS_A_PARAMETER = 250  # with as many, fitting costs 1/500 of a nat a row on others (half a parameter a row)
_LEAST = 1e-3  # of a weight, below which a member is dropped


@dataclass(frozen=True)
class Pool:
    """A logarithmic pool: a weight a member, and a bias a class.

    Attributes
    ----------
    weight : ndarray (M,)
        ≥ 0.
    bias : ndarray (C,)
        In nats.
    """

    weight: Array
    bias: Array

    def log_posterior(self, log_posteriors: Array) -> Array:
        """Return log p(y | x) in nats, (n, C), from those of all members, (n, C, M), as `clip_log_posteriors` gives."""
        score = log_posteriors @ self.weight + self.bias
        score -= score.max(axis=1, keepdims=True)
        return score - np.log(np.exp(score).sum(axis=1, keepdims=True))


def clip_log_posteriors(log_posteriors: Array) -> Array:
    """Return log posteriors that can be weighed: no member rules a class out for good, nor says nothing at all."""
    if not np.isfinite(log_posteriors.sum()):
        log_posteriors = np.where(np.isnan(log_posteriors), -np.log(log_posteriors.shape[1]), log_posteriors)
    return np.maximum(log_posteriors, FLOOR)


def fit_pool(
    log_posteriors: Array, y_true: Array, weight: Array, penalty: float = 1.0, start: Pool | None = None
) -> Pool:
    r"""Return the pool of greatest penalised conditional likelihood of rows that the members were not trained on.

    .. math:: \min_{w \ge 0,\, b} \; -\sum_i r_i \log p(y_i \mid x_i)
              + \frac{\lambda}{2} \Big(M \sum_m (w_m - 1/M)^2 + \tfrac{1}{10} \sum_y b_y^2\Big)

    The penalty draws towards the geometric mean of the members, so that few rows say little. Rows of a class that no
    member knew, being its only ones, are left out; and of many rows, as many are looked at as the parameters take: 250
    for each, or 5,000.

    Parameters
    ----------
    log_posteriors : ndarray (n, C, M)
        In nats, as `clip_log_posteriors` returns them.
    y_true : ndarray (n,)
        The true class of each row.
    weight : ndarray (n,)
        Of the rows.
    penalty : float
        λ, in nats.
    start : Pool, optional
        Near which the optimum lies.

    References
    ----------
    Genest & Zidek, Combining probability distributions: a critique and an annotated bibliography, Statistical Science
    1 (1986).
    """
    n, n_classes, n_members = log_posteriors.shape
    equal = LogLinear(np.zeros(n_classes), np.full(n_members, 1.0 / n_members))
    told = np.flatnonzero((weight > 0) & (log_posteriors[np.arange(n), y_true] > FLOOR).any(axis=1))
    if not len(told):
        return Pool(equal.weight, equal.bias)
    chosen = told[stratified_subsample(y_true[told], max(_FEWEST_ROWS, _ROWS_A_PARAMETER * (n_members + n_classes)))]
    of_rows = weight[chosen] * (weight[told].sum() / weight[chosen].sum())
    found = fit_log_linear(
        log_posteriors[chosen],
        y_true[chosen],
        of_rows,
        equal,
        max(penalty, 1e-9) * _BIAS_PENALTY,
        penalty * n_members * np.eye(n_members),
        None if start is None else LogLinear(start.bias, start.weight),
        tolerance=1e-8,
    )
    return Pool(np.where(found.weight < _LEAST, 0.0, found.weight), found.bias)
