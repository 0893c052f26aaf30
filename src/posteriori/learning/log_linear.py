r"""Conditional likelihood of a log-linear model: one weight ≥ 0 per feature, one bias per class.

.. math:: p(y \mid x) \propto \exp\Bigl(b_y + \sum_j w_j f_j(x, y)\Bigr), \qquad w_j \ge 0

The features f_j are log factors of one model (`weights`), or log posteriors of several models (`pool`). The problem is
convex. These are the only parameters that are learned discriminatively.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.learning.quasi_newton import minimum
from posteriori.model import FLOOR
from posteriori.sources.threads import blas
from posteriori.typing import Array

_MOST_NEWTON = 200  # parameters; with more, the Hessian costs more than it saves
_BLOCK = 1 << 16  # features whose deviations are held at a time
_MOST_STEPS = 60  # of Newton's method
_ROUNDING = 1e-9  # an expected decrease, relative to the mean loss, that rounding can hide
_MARGIN = 100.0  # of the bound on the next decrement of Newton's method
_TOLERANCE = 1e-10  # of `minimum`


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

    def __call__(self, position: Array) -> tuple[float, Array]:
        loss, gradient, _ = self.at(position, curved=False)
        return loss, gradient

    def at(self, position: Array, curved: bool) -> tuple[float, Array, Array]:
        """Return the loss, its gradient and, if `curved`, its Hessian."""
        from scipy.linalg.blas import dsyrk  # imported here, because prediction does not need it

        n, n_classes, d = self.features.shape
        size = len(position)
        gradient, hessian = np.zeros(size), np.zeros((size, size) if curved else (1, 1))
        bias, weight = np.ascontiguousarray(position[:n_classes]), np.ascontiguousarray(position[n_classes:])
        # The deviations of a block of rows stay in the cache until their products are added up.
        step = max(1, _BLOCK // (n_classes * d)) if curved else n
        apart = np.empty((step * n_classes if curved else 0, d))
        products = np.zeros((d, d) if curved else (1, 1), order="F")  # as BLAS overwrites it in place
        loss = 0.0
        for start in range(0, n, step):
            rows = slice(start, start + step)
            of_rows, n_written = kernels.log_linear_loss(
                self.features[rows], self.y_true[rows], self.row_weight[rows], bias, weight, gradient, hessian, apart
            )
            loss += of_rows
            if n_written:
                dsyrk(1.0, apart[:n_written].T, beta=1.0, c=products, overwrite_c=1)
        pull = self.penalty @ (position - self.centre)
        total = self.row_weight.sum()
        loss += 0.5 * float((position - self.centre) @ pull)
        if curved:
            hessian[n_classes:, n_classes:] = products
            hessian = (np.triu(hessian) + np.triu(hessian, 1).T + self.penalty) / total  # only one triangle is filled
        return loss / total, (gradient + pull) / total, hessian

    def curvature(self, position: Array) -> Array:
        """Return the diagonal of the Hessian."""
        n, n_classes, d = self.features.shape
        found = self.penalty.diagonal().copy()
        step = max(1, _BLOCK // (n_classes * d))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            features = self.features[rows]
            score = features @ position[n_classes:] + position[:n_classes]
            posterior = np.exp(score - score.max(axis=1, keepdims=True))
            posterior /= posterior.sum(axis=1, keepdims=True)
            apart = features - np.einsum("ic,icj->ij", posterior, features)[:, np.newaxis]
            found[:n_classes] += self.row_weight[rows] @ (posterior * (1.0 - posterior))
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
) -> LogLinear:
    r"""Return the biases and weights of the greatest penalised conditional likelihood.

    .. math:: \min_{b,\, w \ge 0} -\sum_i r_i \log p(y_i \mid x_i) + \tfrac{\beta}{2} \lVert b - b_0 \rVert^2
              + \tfrac{1}{2} (w - w_0)^\top Q\, (w - w_0)

    It is maximised by a projected Newton method, or by L-BFGS if there are more than 200 parameters.

    Parameters
    ----------
    features : ndarray (n, C, d)
        f_j(x_i, c) in nats. Values below −700 are clipped.
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

    References
    ----------
    Bertsekas, Projected Newton methods for optimization problems with simple constraints, SIAM J. Control 20 (1982).
    Nocedal & Wright, Numerical Optimization, 2nd ed., section 16.5, on active sets.
    """
    n_classes, d = features.shape[1:]
    penalty = np.zeros((n_classes + d, n_classes + d))
    penalty[:n_classes, :n_classes] = bias_penalty * np.eye(n_classes)
    penalty[n_classes:, n_classes:] = weight_penalty
    problem = _Problem(
        np.ascontiguousarray(np.maximum(features, FLOOR) if features.min(initial=0.0) < FLOOR else features),
        np.ascontiguousarray(y_true, np.int64),
        np.ascontiguousarray(row_weight, np.float64),
        np.concatenate([centre.bias, centre.weight]),
        penalty,
    )
    begin = centre if start is None else start
    position = np.concatenate([begin.bias, np.maximum(begin.weight, 0.0)])
    with blas().limit(limits=1, user_api="blas"):  # on small matrices, threads of BLAS cost more than they save
        optimum = None if len(position) > _MOST_NEWTON else _newton(problem, position, n_classes, tolerance)
        if optimum is None:
            optimum = _quasi_newton(problem, position, n_classes)
    return LogLinear(optimum[:n_classes], optimum[n_classes:])


def _quasi_newton(problem: _Problem, position: Array, n_classes: int) -> Array:
    """Return the minimum by L-BFGS, in units in which each parameter has curvature 1 at the start.

    A bias concerns the rows of its class, a weight all rows. On a pool of 300 classes, one unit for both took 67
    evaluations from a near start; these take 17, and end at a lower loss.
    """
    curvature = problem.curvature(position)
    unit = 1.0 / np.sqrt(np.maximum(curvature, 1e-9 * curvature.max()))

    def scaled(moved: Array) -> tuple[float, Array]:
        loss, gradient = problem(moved * unit)
        return loss, gradient * unit

    return np.asarray(unit * minimum(scaled, position / unit, slice(n_classes, None), _TOLERANCE))


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
