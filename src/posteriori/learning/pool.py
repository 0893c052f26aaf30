r"""The weights of a logarithmic opinion pool, learned from held-out posteriors of its members.

.. math:: p(y \mid x) \propto \exp\Bigl(b_y + \sum_m w_m \log p_m(y \mid x)\Bigr), \qquad w_m \ge 0
"""

from __future__ import annotations

import numpy as np

from posteriori.learning.folds import stratified_subsample
from posteriori.learning.log_linear import LogLinear, fit_log_linear
from posteriori.model import FLOOR, Pool
from posteriori.typing import Array

_BIAS_PENALTY = 0.1  # relative to the penalty on the weights
_FEWEST_ROWS = 5000
# With so many rows, estimation raises the expected log-loss on new rows by 1/500 nat: by p / 2n for p parameters and n
# rows (Akaike 1974).
ROWS_PER_PARAMETER = 250
_SMALLEST_WEIGHT = 1e-3  # a member of a smaller weight is dropped
_NEGLIGIBLE = 5e-4  # nats per row that members may be worth and still be dropped to predict faster (`prune_pool`)


def fit_pool(
    log_posteriors: Array, y_true: Array, weight: Array, penalty: float = 1.0, start: Pool | None = None
) -> Pool:
    r"""Return the pool of the greatest penalised conditional likelihood on rows that the members were not trained on.

    .. math:: \min_{w \ge 0,\, b} \; -\sum_i r_i \log p(y_i \mid x_i)
              + \frac{\lambda}{2} \Bigl(M \sum_m (w_m - 1/M)^2 + \tfrac{1}{10} \sum_y b_y^2\Bigr)

    The penalty pulls towards the geometric mean of the members, so that few rows change little. Rows whose true class
    has probability 0 under every member are left out: the members were trained without any row of the class. Of many
    rows a stratified subsample is used: 250 rows per parameter, and 5,000 at least.

    Parameters
    ----------
    log_posteriors : ndarray (n, C, M)
        In nats, as `clip_log_posteriors` returns them.
    y_true : ndarray (n,)
        The class index of each row.
    weight : ndarray (n,)
        r, the weight of each row.
    penalty : float
        λ, in nats.
    start : Pool, optional
        A point near the optimum.

    References
    ----------
    Genest & Zidek, Combining probability distributions: a critique and an annotated bibliography, Statistical Science
    1 (1986), on logarithmic opinion pools.
    """
    n, n_classes, n_members = log_posteriors.shape
    equal = LogLinear(np.zeros(n_classes), np.full(n_members, 1.0 / n_members))
    usable = np.flatnonzero((weight > 0) & (log_posteriors[np.arange(n), y_true] > FLOOR).any(axis=1))
    if not len(usable):
        return Pool(equal.weight, equal.bias)
    most = max(_FEWEST_ROWS, ROWS_PER_PARAMETER * (n_members + n_classes))
    chosen = usable[stratified_subsample(y_true[usable], most)]
    of_rows = weight[chosen] * (weight[usable].sum() / weight[chosen].sum())  # so that λ is relative to all rows
    fitted = fit_log_linear(
        log_posteriors[chosen],
        y_true[chosen],
        of_rows,
        equal,
        max(penalty, 1e-9) * _BIAS_PENALTY,  # biases need a penalty: adding a constant to all changes no posterior
        penalty * n_members * np.eye(n_members),
        None if start is None else LogLinear(start.bias, start.weight),
        tolerance=1e-8,
    )
    return Pool(np.where(fitted.weight < _SMALLEST_WEIGHT, 0.0, fitted.weight), fitted.bias)


def prune_pool(log_posteriors: Array, y_true: Array, weight: Array, penalty: float, pool: Pool) -> Pool:
    """Return the pool without the members that hardly lower its log-loss, so that it predicts faster.

    The member whose absence raises the log-loss least is dropped first. The log-loss of all rows rises by at most
    0.0005 nats per row in total, compared with the pool of all members.

    Parameters
    ----------
    log_posteriors, y_true, weight, penalty
        As in `fit_pool`.
    pool : Pool
        The pool of all members.
    """
    kept = np.flatnonzero(pool.weight > 0)
    most = _mean_loss(pool, log_posteriors, y_true, weight) + _NEGLIGIBLE
    while len(kept) > 1:
        trials = []
        for m in kept:
            others = kept[kept != m]
            start = Pool(pool.weight[others], pool.bias)
            found = fit_pool(log_posteriors[:, :, others], y_true, weight, penalty, start)
            loss = _mean_loss(found, log_posteriors[:, :, others], y_true, weight)
            trials.append((loss, int(m), _placed(found, others, len(pool.weight))))
        loss, dropped, found = min(trials, key=lambda trial: trial[0])
        if loss > most:
            break
        pool, kept = found, kept[kept != dropped]
    return pool


def fit_pool_of(
    members: Array, log_posteriors: Array, y_true: Array, weight: Array, penalty: float, start: Pool
) -> Pool:
    """Return the pool of some members, by a mask (M,); the others have the weight 0."""
    kept = np.flatnonzero(members)
    begin = Pool(start.weight[kept], start.bias)
    found = fit_pool(log_posteriors[:, :, kept], y_true, weight, penalty, begin)
    return _placed(found, kept, len(members))


def _placed(pool: Pool, kept: Array, n_members: int) -> Pool:
    """Return the pool of some members, by their positions, as a pool of all members."""
    weight = np.zeros(n_members)
    weight[kept] = pool.weight
    return Pool(weight, pool.bias)


def _mean_loss(pool: Pool, log_posteriors: Array, y_true: Array, weight: Array) -> float:
    log_posterior = pool.log_posterior(log_posteriors)
    return -float(weight @ log_posterior[np.arange(len(y_true)), y_true]) / float(weight.sum())
