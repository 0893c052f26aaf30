r"""The few parameters that are fitted discriminatively: one weight a log density, one bias a class.

.. math:: p(y \mid x) \propto \exp\Big(b_y + \sum_j w_j f_j(x, y)\Big), \qquad w_j \ge 0

The f_j are log factors of one model (`weights`), or log posteriors of several (`pool`). The problem is convex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from posteriori import kernels
from posteriori.sources.threads import blas
from posteriori.typing import Array

FLOOR = -700.0  # in nats: what a log density of −inf counts as, so that no part decides alone
_MOST_CURVED = 200  # parameters: of more, second derivatives cost more than they save
_STEPS = 60
_ROUNDING = 1e-9  # an expected gain, as a share of the loss a row, that rounding may hide
_LIMITS = {"maxiter": 500, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-7}


@dataclass(frozen=True)
class LogLinear:
    """bias (C,) in nats and weight (d,), ≥ 0."""

    bias: Array
    weight: Array


@dataclass(frozen=True)
class _Problem:
    """The mean loss a row, over the biases and then the weights."""

    features: Array
    y_true: Array
    row_weight: Array
    centre: Array
    penalty: Array

    def __call__(self, position: Array) -> tuple[float, Array]:
        loss, gradient, _ = self.at(position, curved=False)
        return loss, gradient

    def at(self, position: Array, curved: bool) -> tuple[float, Array, Array]:
        """Return the loss, its gradient and, where `curved`, its Hessian."""
        n_classes, size = self.features.shape[1], len(position)
        gradient, hessian = np.zeros(size), np.zeros((size, size) if curved else (1, 1))
        bias, weight = np.ascontiguousarray(position[:n_classes]), np.ascontiguousarray(position[n_classes:])
        loss = kernels.log_linear_loss(
            self.features, self.y_true, self.row_weight, bias, weight, gradient, hessian, curved
        )
        pull = self.penalty @ (position - self.centre)
        total = self.row_weight.sum()
        loss += 0.5 * float((position - self.centre) @ pull)
        if curved:
            hessian = (np.triu(hessian) + np.triu(hessian, 1).T + self.penalty) / total
        return loss / total, (gradient + pull) / total, hessian


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
    r"""Return the biases and weights of greatest penalised conditional likelihood.

    .. math:: \min_{b,\, w \ge 0} -\sum_i r_i \log p(y_i \mid x_i) + \tfrac{\beta}{2} \lVert b - b_0 \rVert^2
              + \tfrac{1}{2} (w - w_0)^\top Q\, (w - w_0)

    By Newton's method on the weights that are not held at 0, or by L-BFGS-B where there are many parameters.

    Parameters
    ----------
    features : ndarray (n, C, d)
        f_j(x_i, c) in nats; less than −700 counts as that.
    y_true : ndarray (n,)
        The true class of each row.
    row_weight : ndarray (n,)
        r, ≥ 0.
    centre : LogLinear
        b_0 and w_0, which the penalty draws to.
    bias_penalty : float
        β > 0.
    weight_penalty : ndarray (d, d)
        Q, positive semidefinite.
    start : LogLinear, optional
        Near which the optimum lies; default the centre.
    tolerance : float
        Newton's method ends at an expected gain of at most this share of the loss.

    References
    ----------
    Bertsekas, Projected Newton methods for optimization problems with simple constraints, SIAM J. Control 20 (1982).
    """
    n_classes, d = features.shape[1:]
    penalty = np.zeros((n_classes + d, n_classes + d))
    penalty[:n_classes, :n_classes] = bias_penalty * np.eye(n_classes)
    penalty[n_classes:, n_classes:] = weight_penalty
    problem = _Problem(
        np.ascontiguousarray(np.maximum(features, FLOOR)),
        np.ascontiguousarray(y_true, np.int64),
        np.ascontiguousarray(row_weight, np.float64),
        np.concatenate([centre.bias, centre.weight]),
        penalty,
    )
    begin = centre if start is None else start
    position = np.concatenate([begin.bias, np.maximum(begin.weight, 0.0)])
    with blas().limit(limits=1, user_api="blas"):  # its threads would wait for each other over a few numbers
        found = None if len(position) > _MOST_CURVED else _newton(problem, position, n_classes, tolerance)
        if found is None:
            bounds = [(None, None)] * n_classes + [(0.0, None)] * d
            found = minimize(problem, position, jac=True, method="L-BFGS-B", bounds=bounds, options=_LIMITS).x
    return LogLinear(found[:n_classes], found[n_classes:])


def _newton(problem: _Problem, position: Array, n_classes: int, tolerance: float) -> Array | None:
    """Return the minimum; None where rounding hides a way down before the end."""
    bounded = np.arange(len(position)) >= n_classes
    loss, gradient, hessian = problem.at(position, curved=True)
    for _ in range(_STEPS):
        try:
            step = _bounded_step(gradient, hessian, position, bounded)
        except np.linalg.LinAlgError:
            return None
        gain = -float(gradient @ step)  # expected
        scale = max(loss, 1e-3)
        if gain <= tolerance * scale:
            return np.where(bounded, np.maximum(position, 0.0), position)
        for halving in range(30):
            found = problem.at(position + step * 0.5**halving, curved=True)
            if found[0] <= loss - 1e-4 * gain * 0.5**halving:
                break
        else:
            return np.where(bounded, np.maximum(position, 0.0), position) if gain <= _ROUNDING * scale else None
        position = position + step * 0.5**halving
        loss, gradient, hessian = found
    return None


def _bounded_step(gradient: Array, hessian: Array, position: Array, bounded: Array) -> Array:
    """Return the step to the minimum of the quadratic with these derivatives at which nothing bounded is below 0."""
    held = bounded & (position <= 0.0) & (gradient > 0.0)
    step = np.zeros(len(position))
    for _ in range(4 * len(position)):
        free = ~held
        step[held] = -position[held]
        against = gradient[free] + hessian[np.ix_(free, held)] @ step[held]
        step[free] = -cho_solve(cho_factor(hessian[np.ix_(free, free)]), against)
        below = free & bounded & (position + step < 0.0)
        if below.any():
            held |= below
            continue
        pull = gradient + hessian @ step
        wanting = held & (pull < -1e-12)
        if not wanting.any():
            break
        held[np.argmin(np.where(wanting, pull, np.inf))] = False
    step[bounded] = np.maximum(step[bounded], -position[bounded])
    return step
