"""One weight a log factor, learned on what each row's own model says of it without having seen it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from posteriori.learning.folds import stratified_subsample
from posteriori.learning.leave_one_out import check_closed_form, left_out_factors
from posteriori.learning.log_linear import FLOOR, LogLinear, fit_log_linear
from posteriori.model import FactorWeights, GenerativeModel
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Batch
from posteriori.typing import Array

__all__ = ["PENALTY", "FactorWeights", "fit_weights", "learn_weights"]

PENALTY = 10.0
MOST_ROWS = 5000
MOST_FACTORS = 1 << 20


def fit_weights(
    log_factors: Array,
    log_prior: Array,
    components: Array,
    weight: Array,
    penalty: float = PENALTY,
    start: FactorWeights | None = None,
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
    start : FactorWeights, optional
        Near which the optimum lies.

    Returns
    -------
    FactorWeights

    References
    ----------
    Zaidi, Cerquides, Carman & Webb, Alleviating naive Bayes attribute independence assumption by attribute weighting,
    JMLR 14 (2013), section 4 (weights of conditional likelihood, on the rows learned from).
    """
    present = np.flatnonzero(np.isfinite(log_prior))
    position = np.searchsorted(present, components)
    factors = log_factors if len(present) == len(log_prior) else log_factors[:, present]
    if np.isinf(penalty):
        factors = np.maximum(factors, FLOOR).sum(axis=2, keepdims=True)
    d = factors.shape[2]
    # With w̄ where its own derivative is 0, what is left is a quadratic about 1.
    pull = np.ones((1, 1)) if np.isinf(penalty) else penalty * np.eye(d) - penalty**2 / (penalty * d + 1.0)
    begin = None
    if start is not None and np.isfinite(start.bias[present]).all():
        begin = LogLinear(start.bias[present], start.weight[:d])
    found = fit_log_linear(factors, position, weight, LogLinear(log_prior[present], np.ones(d)), 1.0, pull, begin)
    bias = np.full(len(log_prior), -np.inf)
    bias[present] = found.bias
    return FactorWeights(bias, np.broadcast_to(found.weight, log_factors.shape[2]).copy())


def learn_weights(
    source: LabelledSource,
    model: GenerativeModel,
    statistics: JointStatistics,
    to_observed_codes: Callable[[Batch], Batch] | None = None,
    start: FactorWeights | None = None,
) -> FactorWeights:
    """Return the weights of a model's factors, from its leave-one-out log factors of the rows it was learned from.

    At most 5,000 rows are looked at, spread evenly over the classes, and fewer where they would have more than 2²⁰
    factors: what is learned is d + C numbers. Rows whose factors have no closed form (`LeaveOneOutDensity`) are passed
    over where half of them have one.

    Parameters
    ----------
    source : LabelledSource
        The rows, with labels; those of no weight are passed over.
    model : GenerativeModel
    statistics : JointStatistics
        That it was estimated from.
    to_observed_codes : callable, optional
        Takes a batch of the source to one in the codes of the model, if these are others.
    start : FactorWeights, optional
        Near which they lie.

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
    chosen[counted[stratified_subsample(components[counted], most)]] = True

    def left_out(batch: Batch, refit: bool) -> list[tuple[Array, Assignment]]:
        labels = batch.assignment
        assert labels is not None
        rows = np.flatnonzero(chosen[batch.start : batch.start + len(batch)])
        if not len(rows):
            return []
        given = Assignment(labels.component[rows], labels.weight[rows], labels.n_components)
        part = batch.rows(rows)
        part = replace(part if to_observed_codes is None else to_observed_codes(part), assignment=given)
        factors = left_out_factors(model, statistics, part, refit=refit)
        known = np.flatnonzero(~np.isnan(factors).any(axis=(1, 2)))
        return [(factors[known], given.rows(known))]

    parts = source.reduce(partial(left_out, refit=False))
    if 2 * sum(len(factors) for factors, _ in parts) < chosen.sum():
        parts = source.reduce(partial(left_out, refit=True))
    factors, component, weight = (
        np.concatenate([factors for factors, _ in parts]),
        np.concatenate([given.component for _, given in parts]),
        np.concatenate([given.weight for _, given in parts]),
    )
    if len(counted) > len(weight):
        weight = weight * (len(counted) / len(weight))  # each row stands for several
    return fit_weights(factors, model.log_prior, component, weight, start=start)
