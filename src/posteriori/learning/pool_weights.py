"""The weights of a pool: of its members in whole rows and in partial ones, and the members that it can do without."""

from __future__ import annotations

import numpy as np

from posteriori.learning.folds import stratified_subsample
from posteriori.learning.log_linear import LogLinear, fit_log_linear
from posteriori.learning.minimisation import bounded_step
from posteriori.model import FLOOR, Pool
from posteriori.support.typing import Array

_MOST_STEPS = 60  # of Newton's method
_BIAS_PENALTY = 0.1  # relative to the penalty on the weights
_FEWEST_ROWS = 5000
# With so many rows, estimation raises the expected log-loss on new rows by 1/500 nat: by p / 2n for p parameters and n
# rows (Akaike 1974).
ROWS_PER_PARAMETER = 250
_RIDGE = 1e-12  # of a Hessian whose members agree in all rows
_ENOUGH = 1e-10  # nats per row by which a further step would lower the loss
_SMALLEST_WEIGHT = 1e-3  # a member of a smaller weight is dropped
_NEGLIGIBLE = 5e-4  # nats per row that members may be worth and still be dropped to predict faster (`prune_pool`)


def fit_pool(
    log_posteriors: Array,
    y_true: Array,
    weight: Array,
    penalty: float = 1.0,
    start: Pool | None = None,
    typical: Array | None = None,
) -> Pool:
    r"""Return the pool of the greatest penalised conditional likelihood on rows that the members were not trained on.

    .. math:: \min_{w \ge 0,\, b} \; -\sum_i r_i \log p(y_i \mid x_i)
              + \frac{\lambda}{2} \Bigl(M \sum_m (w_m - t_m)^2 + \tfrac{1}{10} \sum_y b_y^2\Bigr)

    The penalty pulls towards a geometric mean of the members, with the shares t, so that few rows change little. Rows
    whose true class has probability 0 under every member are left out: the members were trained without any row of the
    class. Of many rows a stratified subsample is used: 250 rows per parameter, and 5,000 at least.

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
    typical : ndarray (M,), optional
        Numbers above 0 in proportion to t, the weights that members usually have; default: all equal.

    References
    ----------
    Genest & Zidek, Combining probability distributions: a critique and an annotated bibliography, Statistical Science
    1 (1986), on logarithmic opinion pools.
    """
    n, n_classes, n_members = log_posteriors.shape
    shares = np.full(n_members, 1.0 / n_members) if typical is None else typical / typical.sum()
    usual = LogLinear(np.zeros(n_classes), shares)
    usable = np.flatnonzero((weight > 0) & (log_posteriors[np.arange(n), y_true] > FLOOR).any(axis=1))
    if not len(usable):
        return Pool(usual.weight, usual.bias)
    most = max(_FEWEST_ROWS, ROWS_PER_PARAMETER * (n_members + n_classes))
    chosen = usable[stratified_subsample(y_true[usable], most)]
    of_rows = weight[chosen] * (weight[usable].sum() / weight[chosen].sum())  # so that λ is relative to all rows
    fitted = fit_log_linear(
        log_posteriors[chosen],
        y_true[chosen],
        of_rows,
        usual,
        max(penalty, 1e-9) * _BIAS_PENALTY,  # biases need a penalty: adding a constant to all changes no posterior
        penalty * n_members * np.eye(n_members),
        None if start is None else LogLinear(start.bias, start.weight),
        tolerance=1e-8,
    )
    return Pool(np.where(fitted.weight < _SMALLEST_WEIGHT, 0.0, fitted.weight), fitted.bias)


def fit_partial_weights(
    log_ratios: Array, offset: Array, y_true: Array, weight: Array, penalty: float, centre: Array
) -> tuple[Array, float]:
    r"""Return the weights of the members of a pool for rows of which cells are hidden, and the penalised loss per row.

    .. math:: \min_{v \ge 0} \; -\sum_i r_i \log p(y_i \mid x_i) + \frac{\lambda M}{2} \sum_m (v_m - w_m)^2, \quad
              p(y \mid x_i) \propto \exp\Bigl(o_{iy} + \sum_m v_m f_{imy}\Bigr)

    Parameters
    ----------
    log_ratios : ndarray (n, C, M)
        f, in nats.
    offset : ndarray (n, C)
        o, in nats.
    y_true : ndarray (n,)
        The class index of each row.
    weight : ndarray (n,)
        r, the weight of each row.
    penalty : float
        λ, in nats.
    centre : ndarray (M,)
        w, ≥ 0: the weights in whole rows, which stay where the rows do not speak against them.
    """
    n, _, n_members = log_ratios.shape
    own = np.arange(n), y_true
    share = weight / max(float(weight.sum()), np.finfo(np.float64).tiny)
    pull = penalty * n_members / max(float(weight.sum()), np.finfo(np.float64).tiny)

    def at(position: Array) -> tuple[float, Array]:
        score = offset + log_ratios @ position
        score -= score.max(axis=1, keepdims=True)
        score -= np.log(np.exp(score).sum(axis=1, keepdims=True))
        loss = -float(share @ score[own]) + 0.5 * pull * float(((position - centre) ** 2).sum())
        return loss, np.exp(score)

    found, (loss, posterior) = centre, at(centre)
    for _ in range(_MOST_STEPS):
        mean = np.einsum("nym,ny->nm", log_ratios, posterior)
        gradient = share @ (mean - log_ratios[own]) + pull * (found - centre)
        apart = (log_ratios - mean[:, np.newaxis]) * np.sqrt(posterior * share[:, np.newaxis])[:, :, np.newaxis]
        apart = apart.reshape(-1, n_members)
        hessian = apart.T @ apart + (pull + _RIDGE) * np.eye(n_members)
        step = bounded_step(gradient, hessian, found, np.ones(n_members, np.bool_))
        gain = -float(gradient @ step)  # about twice the expected decrease
        if gain <= _ENOUGH:
            break
        for halving in range(30):
            trial = np.maximum(found + step * 0.5**halving, 0.0)
            moved = at(trial)
            if moved[0] <= loss - 1e-4 * gain * 0.5**halving:  # Armijo's condition
                break
        else:
            break
        found, (loss, posterior) = trial, moved
    return found, loss


def prune_pool(log_posteriors: Array, y_true: Array, weight: Array, penalty: float, pool: Pool, typical: Array) -> Pool:
    """Return the pool without the members that hardly lower its log-loss, so that it predicts faster.

    The member whose absence raises the log-loss least is dropped first. The log-loss of all rows rises by at most
    0.0005 nats per row in total, compared with the pool of all members.

    Parameters
    ----------
    log_posteriors, y_true, weight, penalty, typical
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
            found = fit_pool(log_posteriors[:, :, others], y_true, weight, penalty, start, typical[others])
            loss = _mean_loss(found, log_posteriors[:, :, others], y_true, weight)
            trials.append((loss, int(m), _placed(found, others, len(pool.weight))))
        loss, dropped, found = min(trials, key=lambda trial: trial[0])
        if loss > most:
            break
        pool, kept = found, kept[kept != dropped]
    return pool


def fit_pool_of(
    members: Array, log_posteriors: Array, y_true: Array, weight: Array, penalty: float, start: Pool, typical: Array
) -> Pool:
    """Return the pool of some members, by a mask (M,); the others have the weight 0."""
    kept = np.flatnonzero(members)
    begin = Pool(start.weight[kept], start.bias)
    found = fit_pool(log_posteriors[:, :, kept], y_true, weight, penalty, begin, typical[kept])
    return _placed(found, kept, len(members))


def _placed(pool: Pool, kept: Array, n_members: int) -> Pool:
    """Return the pool of some members, by their positions, as a pool of all members."""
    weight = np.zeros(n_members)
    weight[kept] = pool.weight
    return Pool(weight, pool.bias)


def _mean_loss(pool: Pool, log_posteriors: Array, y_true: Array, weight: Array) -> float:
    log_posterior = pool.log_posterior(log_posteriors)
    return -float(weight @ log_posterior[np.arange(len(y_true)), y_true]) / float(weight.sum())
