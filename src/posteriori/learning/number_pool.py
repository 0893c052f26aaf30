"""The weights of a pool whose classes are the cells of a number, by its ranked probability score and its log score."""

from __future__ import annotations

import numpy as np

from posteriori.learning.minimisation import minimum
from posteriori.model import Pool
from posteriori.support.typing import Array

OF_LOG_SCORE = 0.1  # of the log score, beside the ranked score relative to that of the marginal distribution
_TOLERANCE = 1e-9


def fit_number_pool(
    log_probability: Array, cell: Array, weight: Array, widths: Array, penalty: float, start: Array | None = None
) -> Pool:
    r"""Return the pool of the least penalised score on rows that the members were not trained on.

    .. math:: \min_{w \ge 0} \; \sum_i r_i \Bigl(\frac{\mathrm{CRPS}(F_i, y_i)}{\mathrm{CRPS}(F, y)}
              - \tfrac{1}{10} \log p_i(y_i)\Bigr) + \frac{\lambda M}{2} \sum_m \Bigl(w_m - \frac{1}{M}\Bigr)^2, \qquad
              p_i(g) \propto \prod_m p_{im}(g)^{w_m}

    The continuous ranked probability score is that of the ends of the cells, by the trapezoidal rule; it is divided by
    the mean score of the distribution of all rows, so that units do not matter.

    Parameters
    ----------
    log_probability : ndarray (n, G, M)
        In nats.
    cell, weight : ndarray (n,)
        The cell of each target, and r.
    widths : ndarray (G,)
        Of the cells, in units of the target.
    penalty : float
        λ.
    start : ndarray (M,), optional
        Weights near the optimum.

    References
    ----------
    Gneiting & Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 102 (2007).
    """
    n, n_cells, n_members = log_probability.shape
    share = weight / weight.sum()
    at_end = np.append((widths[:-1] + widths[1:]) / 2.0, 0.0)  # of the interval around the upper end of each cell
    is_below = cell[:, np.newaxis] <= np.arange(n_cells)
    marginal = np.cumsum(np.bincount(cell, share, n_cells))
    usual = float(share @ (((marginal - is_below) ** 2) @ at_end)) or at_end.sum()  # 0 where targets are in one cell
    centre = np.full(n_members, 1.0 / n_members)
    own, pull = (np.arange(n), cell), penalty * n_members / weight.sum()

    def loss(position: Array) -> tuple[float, Array]:
        score = log_probability @ position
        score -= score.max(axis=1, keepdims=True)
        p = np.exp(score)
        p /= p.sum(axis=1, keepdims=True)
        apart = np.cumsum(p, axis=1) - is_below
        of_end = apart * (at_end / usual)
        of_p = 2.0 * np.cumsum(of_end[:, ::-1], axis=1)[:, ::-1]
        of_score = p * (of_p - (of_p * p).sum(axis=1, keepdims=True) + OF_LOG_SCORE)
        of_score[own] -= OF_LOG_SCORE
        own_log = score[own] - np.log(np.exp(score).sum(axis=1))
        value = share @ ((of_end * apart).sum(axis=1) - OF_LOG_SCORE * own_log)
        value += 0.5 * pull * ((position - centre) ** 2).sum()
        gradient = np.tensordot(of_score * share[:, np.newaxis], log_probability, axes=2)
        return float(value), gradient + pull * (position - centre)

    begin = centre if start is None else start
    found = minimum(loss, begin, np.ones(n_members), slice(None), _TOLERANCE)
    return Pool(found, np.zeros(n_cells))
