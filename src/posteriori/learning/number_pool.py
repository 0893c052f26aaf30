"""The weights of a pool whose classes are the cells of a number, by its ranked probability score and its log score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.learning.minimisation import minimum
from posteriori.model import Pool
from posteriori.support.typing import Array

OF_LOG_SCORE = 0.1  # of the log score, beside the ranked score relative to that of the marginal distribution
_TOLERANCE = 1e-6  # of the score, whose standard error by thousands of rows is above a thousandth


@dataclass(frozen=True)
class NumberScore:
    r"""The score of probabilities of cells, of rows whose numbers are known; less is better.

    .. math:: \sum_i r_i \Bigl(\frac{\mathrm{CRPS}(F_i, y_i)}{\mathrm{CRPS}(F, y)}
              - \tfrac{1}{10} \log p_i(y_i)\Bigr) / \sum_i r_i

    The continuous ranked probability score is that of the ends of the cells, by the trapezoidal rule; it is divided by
    the mean score of the distribution of all rows, so that units do not matter.

    References
    ----------
    Gneiting & Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 102 (2007).
    """

    own: tuple[Array, Array]  # the row and the cell of each number
    share: Array  # (n,): r, in total 1
    at_end: Array  # (G,): of the interval around the upper end of each cell, relative to the score of all rows
    is_below: Array  # (n, G): whether the number is at or below this end

    @classmethod
    def of(cls, cell: Array, weight: Array, widths: Array) -> NumberScore:
        """Return the score of rows by their cells and weights, (n,), and the widths of cells, (G,)."""
        n_cells, share = len(widths), weight / weight.sum()
        at_end = np.append((widths[:-1] + widths[1:]) / 2.0, 0.0)
        is_below = cell[:, np.newaxis] <= np.arange(n_cells)
        marginal = np.cumsum(np.bincount(cell, share, n_cells))
        usual = float(share @ (((marginal - is_below) ** 2) @ at_end)) or at_end.sum()  # 0 where all are in one cell
        return cls((np.arange(len(cell)), cell), share, at_end / usual, is_below)

    def apart(self, probability: Array) -> Array:
        """Return by how much the distribution functions of rows differ from those of their numbers, (n, G)."""
        found = np.cumsum(probability, axis=1)
        found -= self.is_below
        return found

    def of_rows(self, probability: Array, apart: Array) -> float:
        """Return the score of probabilities, (n, G)."""
        return float(self.share @ ((apart * apart) @ self.at_end - OF_LOG_SCORE * np.log(probability[self.own])))


def fit_number_pool(
    log_probability: Array, cell: Array, weight: Array, widths: Array, penalty: float, start: Array | None = None
) -> Pool:
    r"""Return the pool of the least penalised `NumberScore` on rows that the members were not trained on.

    .. math:: \min_{w \ge 0} \; \sum_i r_i\, \mathrm{score}(p_i, y_i)
              + \frac{\lambda M}{2} \sum_m \Bigl(w_m - \frac{1}{M}\Bigr)^2, \qquad
              p_i(g) \propto \prod_m p_{im}(g)^{w_m}

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
    """
    n, n_cells, n_members = log_probability.shape
    score = NumberScore.of(cell, weight, widths)
    of_member = np.ascontiguousarray(log_probability.reshape(-1, n_members).T)
    centre, pull = np.full(n_members, 1.0 / n_members), penalty * n_members / weight.sum()

    def loss(position: Array) -> tuple[float, Array]:
        p = (position @ of_member).reshape(n, n_cells)
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        apart = score.apart(p)
        value = score.of_rows(np.maximum(p, np.finfo(np.float64).tiny), apart)
        apart *= 2.0 * score.at_end
        of_p = np.cumsum(apart[:, ::-1], axis=1)[:, ::-1]
        of_p += OF_LOG_SCORE - np.einsum("ij,ij->i", of_p, p)[:, np.newaxis]
        of_p *= p
        of_p[score.own] -= OF_LOG_SCORE
        of_p *= score.share[:, np.newaxis]
        value += 0.5 * pull * ((position - centre) ** 2).sum()
        return value, of_member @ of_p.ravel() + pull * (position - centre)

    begin = centre if start is None else start
    found = minimum(loss, begin, np.ones(n_members), slice(None), _TOLERANCE)
    return Pool(found, np.zeros(n_cells))
