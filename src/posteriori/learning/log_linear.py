"""The biases and weights of a log-linear model that maximise its conditional likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.learning.minimisation import bounded_step, minimum
from posteriori.model import FLOOR
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array

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
        f_j(x_i, c) in nats. Values more than 700 below that of another class are clipped (`clip_log_factors`).
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
        np.ascontiguousarray(clip_log_factors(features)),
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


def clip_log_factors(log_factors: Array) -> Array:
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
            step = bounded_step(gradient, hessian, position, bounded)
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
