"""One weight a log factor, learned on what each row's own model says of it without having seen it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from posteriori import kernels
from posteriori.learning.leave_one_out import check_closed_form, left_out_factors
from posteriori.model import FactorWeights, GenerativeModel
from posteriori.sources import MemorySource
from posteriori.sources.threads import blas
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Batch
from posteriori.typing import Array

__all__ = ["PENALTY", "FactorWeights", "fit_weights", "learn_weights"]

PENALTY = 10.0
MOST_ROWS = 5000
MOST_FACTORS = 1 << 24  # 128 MB
_LEAST = -700.0  # in nats: what a factor of probability 0 counts as


def fit_weights(
    log_factors: Array, log_prior: Array, components: Array, weight: Array, penalty: float = PENALTY
) -> FactorWeights:
    r"""Return the weights and biases of greatest penalised conditional likelihood: a convex problem.

    .. math::
        \min_{b,\, w \ge 0} -\sum_i \omega_i \log p(y_i \mid x_i)
        + \frac{\lambda}{2} \sum_j (w_j - \bar w)^2 + \frac{1}{2} (\bar w - 1)^2
        + \frac{1}{2} \sum_c (b_c - \log \pi_c)^2, \quad
        p(y \mid x) \propto e^{b_y + \sum_j w_j \log p(x_j \mid y)}

    The weights are drawn to a common one, w̄, which is found with them, and that weakly to 1; biases to the log prior.

    Parameters
    ----------
    log_factors : ndarray (n, C, d)
        In nats, of rows that the densities have not learned from; −inf counts as −700.
    log_prior : ndarray (C,)
        In nats; a class of −inf keeps it as its bias.
    components : ndarray (n,)
        The true class of each row.
    weight : ndarray (n,)
        ω, the weight of each row.
    penalty : float
        λ ≥ 0, in rows: as a row's conditional log-likelihood is in nats whatever the units of the columns, so is this
        free of scale. 0 leaves each weight to itself; inf gives one for all.

    Returns
    -------
    FactorWeights

    References
    ----------
    Zaidi, Cerquides, Carman & Webb, Alleviating naive Bayes attribute independence assumption by attribute weighting,
    JMLR 14 (2013), section 4 (weights of conditional likelihood, on the rows learned from).
    """
    present = np.flatnonzero(np.isfinite(log_prior))
    place = np.searchsorted(present, components)
    factors = log_factors if len(present) == len(log_prior) else log_factors[:, present]
    factors = np.maximum(factors, _LEAST)
    problem = _Problem(
        factors - factors[np.arange(len(factors)), place][:, np.newaxis, :],
        place,
        np.asarray(weight, np.float64),
        log_prior[present],
        float(penalty),
    )
    n_classes, d = problem.gain.shape[1:]
    bounds = [(None, None)] * n_classes + [(0.0, None)] * (1 if np.isinf(penalty) else d)
    start = np.concatenate([log_prior[present], np.ones(len(bounds) - n_classes)])
    with blas().limit(limits=1, user_api="blas"):  # its threads would wait for each other over a few numbers
        found = minimize(problem, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_LIMITS).x
    bias = np.full(len(log_prior), -np.inf)
    bias[present] = found[:n_classes]
    return FactorWeights(bias, np.broadcast_to(found[n_classes:], d).copy())


_LIMITS = {"maxiter": 500, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-6}


@dataclass(frozen=True)
class _Problem:
    """What is minimised, over the biases and then the weights, or the one weight if all are to be alike."""

    gain: Array
    components: Array
    weight: Array
    log_prior: Array
    penalty: float

    def __call__(self, place: Array) -> tuple[float, Array]:
        n_classes, d = self.gain.shape[1:]
        bias, free = place[:n_classes], place[n_classes:]
        weights = np.ascontiguousarray(np.broadcast_to(free, d))
        gradient = np.zeros(n_classes + d)
        loss = kernels.conditional_loss(
            self.gain, self.components, self.weight, bias, weights, gradient[:n_classes], gradient[n_classes:]
        )
        apart = bias - self.log_prior
        loss += 0.5 * float(apart @ apart)
        gradient[:n_classes] += apart
        if np.isinf(self.penalty):
            gradient = np.append(gradient[:n_classes], gradient[n_classes:].sum() + (free[0] - 1.0))
            return loss + 0.5 * float(free[0] - 1.0) ** 2, gradient
        # w̄ is where its own derivative is 0, so that it adds nothing to those of the weights.
        common = (self.penalty * weights.sum() + 1.0) / (self.penalty * d + 1.0)
        spread = weights - common
        loss += 0.5 * self.penalty * float(spread @ spread) + 0.5 * float(common - 1.0) ** 2
        gradient[n_classes:] += self.penalty * spread
        return loss, gradient


def learn_weights(
    source: MemorySource,
    model: GenerativeModel,
    statistics: JointStatistics,
    recoded: Callable[[Batch], Batch] | None = None,
) -> FactorWeights:
    """Return the weights of a model's factors, from its leave-one-out log factors of the rows it was learned from.

    At most 5,000 rows are looked at, spread evenly over the classes, and fewer where they would have more than 2²⁴
    factors: what is learned is d + C numbers.

    Parameters
    ----------
    source : MemorySource
        The rows, with labels; those of no weight are passed over.
    model : GenerativeModel
    statistics : JointStatistics
        That it was estimated from.
    recoded : callable, optional
        Takes a batch of the source to one in the codes of the model, if these are others.

    Raises
    ------
    ValueError
        Labels or cells were hidden, and the model was learned by EM.
    TypeError
        A density has no leave-one-out.
    """
    check_closed_form(model, statistics)
    assert source.labels is not None
    assert source.classes is not None
    components = source.labels.components(source.classes, slice(0, source.table.n_rows))
    counted = np.flatnonzero(components >= 0 if source.weight is None else (components >= 0) & (source.weight > 0))
    most = min(MOST_ROWS, max(1, MOST_FACTORS // (model.n_components * len(model.schema.columns))))
    chosen = np.zeros(len(components), np.bool_)
    chosen[counted[evenly(components[counted], most)]] = True

    def left_out(batch: Batch) -> list[tuple[Array, Assignment]]:
        labels = batch.assignment
        assert labels is not None
        rows = np.flatnonzero(chosen[batch.start : batch.start + len(batch)])
        if not len(rows):
            return []
        given = Assignment(labels.component[rows], labels.weight[rows], labels.n_components)
        part = batch.rows(rows)
        part = replace(part if recoded is None else recoded(part), assignment=given)
        return [(left_out_factors(model, statistics, part), given)]

    parts = source.reduce(left_out)
    factors, component, weight = (
        np.concatenate([factors for factors, _ in parts]),
        np.concatenate([given.component for _, given in parts]),
        np.concatenate([given.weight for _, given in parts]),
    )
    if len(counted) > len(weight):
        weight = weight * (len(counted) / len(weight))  # each row stands for several
    return fit_weights(factors, model.log_prior, component, weight)


def evenly(components: Array, most: int) -> Array:
    """Return the places of at most so many rows, as many of each class as it has a share, in order."""
    n = len(components)
    if n <= most:
        return np.arange(n)
    shuffled = np.random.default_rng(0).permutation(n)
    by_class = shuffled[np.argsort(components[shuffled], kind="stable")]
    return np.sort(by_class[np.arange(most) * n // most])
