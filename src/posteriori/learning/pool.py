r"""Several models, one posterior: the few parameters that are fitted discriminatively.

.. math:: p(y \mid x) \propto \exp\Big(b_y + \sum_m w_m \log p_m(y \mid x)\Big), \qquad w_m \ge 0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from posteriori import kernels
from posteriori.typing import Array

_FLOOR = -700.0  # of a log posterior in nats: a member that calls a row impossible is not to decide alone
_BIAS_PENALTY = 0.1  # of that on the weights
_MOST_ROWS = 20_000  # that the parameters are fitted on: a few dozen are known to 1 % from these
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
        """Return log p(y | x) in nats, (n, C), from that of every member, (n, M, C)."""
        score = self.bias + np.einsum("m,nmc->nc", self.weight, floored(log_posteriors))
        score -= score.max(axis=1, keepdims=True)
        return score - np.log(np.exp(score).sum(axis=1, keepdims=True))


def floored(log_posteriors: Array) -> Array:
    """Return log posteriors that can be weighed: no member rules a class out for good, nor says nothing at all."""
    known = np.where(np.isnan(log_posteriors), -np.log(log_posteriors.shape[-1]), log_posteriors)
    return np.maximum(known, _FLOOR)


def fit_pool(
    log_posteriors: Array, components: Array, weight: Array, penalty: float = 1.0, start: Pool | None = None
) -> Pool:
    r"""Return the pool of greatest penalised conditional likelihood of rows that the members were not trained on.

    .. math:: \min_{w \ge 0,\, b} \; -\sum_i r_i \log p(y_i \mid x_i)
              + \frac{\lambda}{2} \Big(M \sum_m (w_m - 1/M)^2 + \tfrac{1}{10} \sum_y b_y^2\Big)

    It is convex. The penalty draws towards the geometric mean of the members, so that few rows say little. Rows of a
    class that no member knew, being its only ones, are left out.

    Parameters
    ----------
    log_posteriors : ndarray (n, M, C)
        In nats.
    components : ndarray (n,)
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
    n, n_members, n_classes = log_posteriors.shape
    of_true = log_posteriors[np.arange(n), :, components]
    chosen = np.flatnonzero((weight > 0) & (of_true > _FLOOR).any(axis=1))
    if not len(chosen):
        return Pool(np.full(n_members, 1.0 / n_members), np.zeros(n_classes))
    total = float(weight.sum())
    if len(chosen) > _MOST_ROWS:
        chosen = chosen[np.random.default_rng(0).permutation(len(chosen))[:_MOST_ROWS]]
    log_densities = np.ascontiguousarray(floored(log_posteriors[chosen]))
    component = components[chosen].astype(np.int32)
    row_weight = np.ascontiguousarray(weight[chosen], np.float64)
    row_weight = row_weight * (total / row_weight.sum())
    scratch, middle = np.empty(n_classes), 1.0 / n_members

    def loss(parameters: Array) -> tuple[float, Array]:
        w, b = parameters[:n_members], parameters[n_members:]
        w_gradient, b_gradient = np.zeros(n_members), np.zeros(n_classes)
        value = kernels.pooled_loss(log_densities, component, row_weight, w, b, scratch, w_gradient, b_gradient)
        value += 0.5 * penalty * (n_members * ((w - middle) ** 2).sum() + _BIAS_PENALTY * (b**2).sum())
        w_gradient += penalty * n_members * (w - middle)
        b_gradient += penalty * _BIAS_PENALTY * b
        return value / total, np.concatenate([w_gradient, b_gradient]) / total

    begin = np.concatenate([np.full(n_members, middle), np.zeros(n_classes)])
    if start is not None:
        begin = np.concatenate([start.weight, start.bias])
    bounds = [(0.0, None)] * n_members + [(None, None)] * n_classes
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300, "ftol": 1e-9})
    w, b = found.x[:n_members], found.x[n_members:]
    return Pool(np.where(w < _LEAST, 0.0, w), b - b.mean())
