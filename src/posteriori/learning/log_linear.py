"""Conditional likelihood of log-linear models, the weights of a pool that maximise it, and the search for a minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.learning.folds import stratified_subsample
from posteriori.model import FLOOR, Pool
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array

_MOST_NEWTON = 200  # parameters; with more, the Hessian costs more than it saves
_BLOCK = 1 << 16  # features whose deviations are held at a time
_MOST_STEPS = 60  # of Newton's method
_ROUNDING = 1e-9  # an expected decrease, relative to the mean loss, that rounding can hide
_MARGIN = 100.0  # of the bound on the next decrement of Newton's method
_TOLERANCE = 1e-10  # of `minimum`
_BIAS_PENALTY = 0.1  # relative to the penalty on the weights
_FEWEST_ROWS = 5000
# With so many rows, estimation raises the expected log-loss on new rows by 1/500 nat: by p / 2n for p parameters and n
# rows (Akaike 1974).
ROWS_PER_PARAMETER = 250
_RIDGE = 1e-12  # of a Hessian whose members agree in all rows
_ENOUGH = 1e-10  # nats per row by which a further step would lower the loss
_SMALLEST_WEIGHT = 1e-3  # a member of a smaller weight is dropped
_NEGLIGIBLE = 5e-4  # nats per row that members may be worth and still be dropped to predict faster (`prune_pool`)
_MEMORY = 20  # pairs of steps and changes of the gradient
_SMALL_STEPS = 2  # of L-BFGS one after the other that end a search
_SUFFICIENT = 1e-4  # of Armijo's condition
_MOST_CUTS = 30  # of a step


@dataclass(frozen=True)
class LogLinear:
    """The parameters: bias (C,) in nats, and weight (d,), ≥ 0."""

    bias: Array
    weight: Array


@dataclass(frozen=True)
class _Problem:
    """The mean loss per row as a function of one vector: the biases, then the weights."""

    features: Array
    y_true: Array
    row_weight: Array
    centre: Array
    penalty: Array
    # (n,): the share of its difference from the centre that the bias of a row has, 1 in the first rows; None for 1
    share: Array | None = None

    def __call__(self, position: Array) -> tuple[float, Array]:
        loss, gradient, _ = self.at(position, curved=False)
        return loss, gradient

    def at(self, position: Array, curved: bool) -> tuple[float, Array, Array]:
        """Return the loss, its gradient and, if `curved`, its Hessian."""
        from scipy.linalg.blas import dsyrk  # imported here, because prediction does not need it

        _, n_classes, d = self.features.shape
        n, size = self._n_whole, len(position)
        gradient, hessian = np.zeros(size), np.zeros((size, size) if curved else (1, 1))
        bias, weight = np.ascontiguousarray(position[:n_classes]), np.ascontiguousarray(position[n_classes:])
        # The deviations of a block of rows stay in the cache until their products are added up.
        step = max(1, _BLOCK // (n_classes * d)) if curved else max(1, n)
        apart = np.empty((step * n_classes if curved else 0, d))
        products = np.zeros((d, d) if curved else (1, 1), order="F")  # as BLAS overwrites it in place
        loss = 0.0
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            of_rows, n_written = kernels.log_linear_loss(
                self.features[rows], self.y_true[rows], self.row_weight[rows], bias, weight, gradient, hessian, apart
            )
            loss += of_rows
            if n_written:
                dsyrk(1.0, apart[:n_written].T, beta=1.0, c=products, overwrite_c=1)
        if n < len(self.features):
            loss += self._add_partial_rows(position, gradient, hessian if curved else None, products)
        pull = self.penalty @ (position - self.centre)
        total = self.row_weight.sum()
        loss += 0.5 * float((position - self.centre) @ pull)
        if curved:
            hessian[n_classes:, n_classes:] = products
            hessian = (np.triu(hessian) + np.triu(hessian, 1).T + self.penalty) / total  # only one triangle is filled
        return loss / total, (gradient + pull) / total, hessian

    @property
    def _n_whole(self) -> int:
        """The number of rows that have the whole bias; they come first."""
        return len(self.features) if self.share is None else int(np.count_nonzero(self.share == 1.0))

    def _biases(self, rows: slice, bias: Array) -> Array:
        """Return the biases that rows have, (n, C) or (C,)."""
        if self.share is None:
            return bias
        centre = self.centre[: len(bias)]
        return np.asarray(centre + self.share[rows, np.newaxis] * (bias - centre))

    def _add_partial_rows(self, position: Array, gradient: Array, hessian: Array | None, products: Array) -> float:
        """Return the loss of the rows that have a part of the bias, and add its derivatives as the kernel does."""
        assert self.share is not None
        n_rows, n_classes, d = self.features.shape
        step, loss = max(1, _BLOCK // (n_classes * d)), 0.0
        for start in range(self._n_whole, n_rows, step):
            rows = slice(start, start + step)
            features, r, s = self.features[rows], self.row_weight[rows], self.share[rows]
            score = features @ position[n_classes:] + self._biases(rows, position[:n_classes])
            score -= score.max(axis=1, keepdims=True)
            posterior = np.exp(score)
            evidence = posterior.sum(axis=1, keepdims=True)
            posterior /= evidence
            true = np.arange(len(score)), self.y_true[rows]
            loss += float(r @ (np.log(evidence[:, 0]) - score[true]))
            residual = posterior * r[:, np.newaxis]
            residual[true] -= r
            gradient[:n_classes] += s @ residual
            gradient[n_classes:] += residual.ravel() @ features.reshape(-1, d)
            if hessian is not None:
                apart = features - posterior[:, np.newaxis] @ features
                scaled = posterior * (r * s)[:, np.newaxis]
                hessian[:n_classes, :n_classes] += np.diag(s @ scaled) - (scaled * s[:, np.newaxis]).T @ posterior
                hessian[:n_classes, n_classes:] += np.einsum("ic,icj->cj", scaled, apart)
                apart *= np.sqrt(posterior * r[:, np.newaxis])[:, :, np.newaxis]
                products += apart.reshape(-1, d).T @ apart.reshape(-1, d)
        return loss

    def curvature(self, position: Array) -> Array:
        """Return the diagonal of the Hessian."""
        n, n_classes, d = self.features.shape
        found = self.penalty.diagonal().copy()
        step = max(1, _BLOCK // (n_classes * d))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            features = self.features[rows]
            score = features @ position[n_classes:] + self._biases(rows, position[:n_classes])
            posterior = np.exp(score - score.max(axis=1, keepdims=True))
            posterior /= posterior.sum(axis=1, keepdims=True)
            apart = features - np.einsum("ic,icj->ij", posterior, features)[:, np.newaxis]
            of_bias = self.row_weight[rows] if self.share is None else self.row_weight[rows] * self.share[rows] ** 2
            found[:n_classes] += of_bias @ (posterior * (1.0 - posterior))
            found[n_classes:] += np.einsum("i,ic,icj->j", self.row_weight[rows], posterior, apart**2)
        return np.asarray(found / self.row_weight.sum())


def fit_log_linear(
    features: Array,
    y_true: Array,
    row_weight: Array,
    centre: LogLinear,
    bias_penalty: float,
    weight_penalty: Array,
    start: LogLinear | None = None,
    tolerance: float = 1e-14,
    share: Array | None = None,
) -> LogLinear:
    r"""Return the biases and weights of the greatest penalised conditional likelihood.

    .. math:: \min_{b,\, w \ge 0} -\sum_i r_i \log p(y_i \mid x_i) + \tfrac{\beta}{2} \lVert b - b_0 \rVert^2
              + \tfrac{1}{2} (w - w_0)^\top Q\, (w - w_0), \quad
              p(c \mid x_i) \propto e^{b_{0c} + s_i (b_c - b_{0c}) + \sum_j w_j f_j(x_i, c)}

    It is maximised by a projected Newton method, or by L-BFGS if there are more than 200 parameters.

    Parameters
    ----------
    features : ndarray (n, C, d)
        f_j(x_i, c) in nats. Values more than 700 below that of another class are clipped (`clip_factors`).
    y_true : ndarray (n,)
        The class index of each row.
    row_weight : ndarray (n,)
        r, ≥ 0.
    centre : LogLinear
        b_0 and w_0, the centre of the penalty.
    bias_penalty : float
        β > 0.
    weight_penalty : ndarray (d, d)
        Q, positive semidefinite.
    start : LogLinear, optional
        A point near the optimum; default: the centre.
    tolerance : float
        Newton's method ends if the expected decrease, relative to the loss, is at most this.
    share : ndarray (n,), optional
        s, between 0 and 1; default: 1 in each row.

    References
    ----------
    Bertsekas, Projected Newton methods for optimization problems with simple constraints, SIAM J. Control 20 (1982).
    Nocedal & Wright, Numerical Optimization, 2nd ed., section 16.5, on active sets.
    """
    n_classes, d = features.shape[1:]
    penalty = np.zeros((n_classes + d, n_classes + d))
    penalty[:n_classes, :n_classes] = bias_penalty * np.eye(n_classes)
    penalty[n_classes:, n_classes:] = weight_penalty
    if share is not None and (share == 1.0).all():
        share = None
    if share is not None:
        order = np.argsort(share < 1.0, kind="stable")
        features, y_true, row_weight, share = features[order], y_true[order], row_weight[order], share[order]
    problem = _Problem(
        np.ascontiguousarray(clip_factors(features)),
        np.ascontiguousarray(y_true, np.int64),
        np.ascontiguousarray(row_weight, np.float64),
        np.concatenate([centre.bias, centre.weight]),
        penalty,
        share,
    )
    begin = centre if start is None else start
    position = np.concatenate([begin.bias, np.maximum(begin.weight, 0.0)])
    with one_blas_thread():  # on small matrices, threads of BLAS cost more than they save
        optimum = None if len(position) > _MOST_NEWTON else _newton(problem, position, n_classes, tolerance)
        if optimum is None:
            optimum = _quasi_newton(problem, position, n_classes)
    return LogLinear(optimum[:n_classes], optimum[n_classes:])


def clip_factors(log_factors: Array) -> Array:
    """Return log factors (n, C, d) in nats, none more than 700 below the largest of the classes.

    A log density depends on the unit of its column, and the difference between two classes does not. Where a factor is
    clipped, the largest is subtracted: what all classes share changes no posterior.
    """
    largest = log_factors.max(axis=1, keepdims=True)
    if (log_factors >= largest + FLOOR).all() and not np.isneginf(largest).any():
        return log_factors
    with np.errstate(invalid="ignore"):
        clipped: Array = np.where(np.isneginf(largest), 0.0, np.maximum(log_factors - largest, FLOOR))
    return clipped


def _quasi_newton(problem: _Problem, position: Array, n_classes: int) -> Array:
    """Return the minimum by L-BFGS, in units in which each parameter has curvature 1 at the start.

    A bias concerns the rows of its class, a weight all rows. On a pool of 300 classes, one unit for both took 67
    evaluations from a near start; these take 17, and end at a lower loss.
    """
    curvature = problem.curvature(position)
    unit = 1.0 / np.sqrt(np.maximum(curvature, 1e-9 * curvature.max()))
    return minimum(problem, position, unit, slice(n_classes, None), _TOLERANCE)


def _newton(problem: _Problem, position: Array, n_classes: int, tolerance: float) -> Array | None:
    """Return the minimum by Newton's method with backtracking; None if no step decreases the loss, or too many do.

    The caller then uses L-BFGS, which needs no Hessian.
    """
    bounded = np.arange(len(position)) >= n_classes
    loss, gradient, hessian = problem.at(position, curved=True)
    for _ in range(_MOST_STEPS):
        try:
            step = _bounded_step(gradient, hessian, position, bounded)
        except np.linalg.LinAlgError:  # the Hessian is not positive definite to rounding
            return None
        gain = -float(gradient @ step)  # the squared Newton decrement, about twice the expected decrease
        scale = max(loss, 1e-3)  # a separable problem has a loss near 0
        # Convergence is quadratic: the squared decrement of all rows, n·gain, is at most of the order of its square in
        # the next step (Boyd & Vandenberghe, Convex Optimization, section 9.5), so this step is the last one.
        if _MARGIN * len(problem.y_true) * gain**2 <= tolerance * scale:
            return np.where(bounded, np.maximum(position + step, 0.0), position + step)
        if gain <= tolerance * scale:
            return np.where(bounded, np.maximum(position, 0.0), position)
        for halving in range(30):
            trial = problem.at(position + step * 0.5**halving, curved=True)
            if trial[0] <= loss - 1e-4 * gain * 0.5**halving:  # Armijo's condition
                break
        else:
            return np.where(bounded, np.maximum(position, 0.0), position) if gain <= _ROUNDING * scale else None
        position = position + step * 0.5**halving
        loss, gradient, hessian = trial
    return None


def _bounded_step(gradient: Array, hessian: Array, position: Array, bounded: Array) -> Array:
    """Return the step to the minimum of the quadratic model subject to bounded parameters ≥ 0 (active sets).

    Bertsekas (1982) projects a Newton step on the free parameters. Here the quadratic is minimised exactly: parameters
    that would become negative are fixed at 0, and freed again where the gradient of the quadratic is negative.
    """
    from scipy.linalg import cho_factor, cho_solve

    held = bounded & (position <= 0.0) & (gradient > 0.0)
    step = np.zeros(len(position))
    for _ in range(4 * len(position)):  # a guard against cycling; active sets usually settle in a few rounds
        free = ~held
        step[held] = -position[held]
        residual = gradient[free] + hessian[np.ix_(free, held)] @ step[held]
        step[free] = -cho_solve(cho_factor(hessian[np.ix_(free, free)]), residual)
        below = free & bounded & (position + step < 0.0)
        if below.any():
            held |= below
            continue
        slope = gradient + hessian @ step
        improvable = held & (slope < -1e-12)  # their multipliers have the wrong sign (Karush, Kuhn & Tucker)
        if not improvable.any():
            break
        held[np.argmin(np.where(improvable, slope, np.inf))] = False
    # Rounding, or an end of the loop without a solution, could leave a parameter below 0.
    step[bounded] = np.maximum(step[bounded], -position[bounded])
    return step


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
        step = _bounded_step(gradient, hessian, found, np.ones(n_members, np.bool_))
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


def minimum(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    unit: Array,
    bounded: slice,
    tolerance: float,
    most_steps: int = 300,
) -> Array:
    """Return where a convex loss is least, if the parameters `bounded` are at least 0.

    A step is that of L-BFGS in the free parameters. A parameter at 0 whose gradient is positive is not free; with
    these set apart, the projected step descends (Bertsekas 1982).

    Parameters
    ----------
    loss : callable
        Returns the loss and its gradient, (P,).
    start : ndarray (P,)
        The first position.
    unit : ndarray (P,)
        The unit of each parameter, > 0, in which their curvatures are of one order of magnitude.
    bounded : slice
        The parameters that are at least 0.
    tolerance : float
        The search ends if two steps each lower the loss by at most this, relative to the loss if that exceeds 1.
    most_steps : int
        The search ends after so many steps.

    References
    ----------
    Nocedal & Wright, Numerical Optimization, 2nd ed., algorithm 7.4. Bertsekas, Projected Newton methods for
    optimization problems with simple constraints, SIAM J. Control 20 (1982).
    """
    position = start / unit
    np.maximum(position[bounded], 0.0, out=position[bounded])
    value, gradient = loss(unit * position)
    gradient *= unit
    changes, rises = np.empty((2, _MEMORY, len(position)))
    n_pairs = n_small = 0
    for _ in range(most_steps):
        held = (position[bounded] <= 0.0) & (gradient[bounded] > 0.0)
        step = -gradient
        step[bounded][held] = 0.0
        size = float(np.sqrt(step @ step))
        if size == 0.0:
            break
        if n_pairs:
            newest, count = (n_pairs - 1) % _MEMORY, min(n_pairs, _MEMORY)
            kernels.times_inverse_hessian(step, changes, rises, newest, count)
        else:
            step *= min(1.0, 1.0 / size)
        step[bounded][held] = 0.0
        share = 1.0
        for _ in range(_MOST_CUTS):
            moved = position + share * step
            np.maximum(moved[bounded], 0.0, out=moved[bounded])
            new_value, new_gradient = loss(unit * moved)
            new_gradient *= unit
            change = moved - position
            slope = float(gradient @ change)
            if new_value <= value + _SUFFICIENT * slope:
                break
            least = -0.5 * slope / (new_value - value - slope)  # of the parabola through both values and the slope
            share *= min(max(least, 0.1), 0.5)
        else:
            break
        rise = new_gradient - gradient
        curvature = float(rise @ change)
        if curvature > np.finfo(float).eps * float(rise @ rise):
            changes[n_pairs % _MEMORY], rises[n_pairs % _MEMORY] = change, rise
            n_pairs += 1
        n_small = n_small + 1 if value - new_value <= tolerance * max(abs(new_value), 1.0) else 0
        position, value, gradient = moved, new_value, new_gradient
        if n_small == _SMALL_STEPS:  # one may be a step that was cut
            break
    return unit * position
