r"""One number per cell and class, learned by conditional likelihood, in the place of log p(x_j | y).

.. math:: p(y \mid x) \propto p(y) \exp\Bigl(\sum_{j \text{ observed}} t_{jy}(x_j)\Bigr), \qquad
          t_{jy}(k) = b_y / d + w_j \log p(x_j = k \mid y) + \delta_{jy}(k), \quad w_j \ge 0

A cell is a category of a column, or a bin of a column of numbers; d counts the columns that vary. This is logistic
regression on cells, which starts at naive Bayes and, with few rows, stays near it. A row without cells has the prior,
because the bias b is part of the cells. Nothing depends on the order of rows or on names.

References
----------
Zaidi, Webb, Carman, Petitjean & Cerquides, ALRn: accelerated higher-order logistic regression, Machine Learning 104
(2016). Greiner, Su, Shen & Zhou, Structural extension to logistic regression: discriminative parameter learning of
belief net classifiers, Machine Learning 59 (2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.kernels.loops.cells import CellDesign, CellRows, Pull
from posteriori.learning.minimisation import minimum
from posteriori.support.typing import Array

PENALTIES = (100.0, 20.0, 5.0, 1.0, 0.2, 0.04)  # λ of `fit_cells`, from which held-out rows choose
_ROWS_OF_LAST = 5000  # for the last one: a third of fewer rows is too few to distinguish it
_FOLDS = 3  # one of which chooses λ
_SAME = 1e-9  # relative difference of numbers that counts as none
_OF_WEIGHTS = 10.0  # ω of `CellProblem`
_WEAK = 0.1  # β of `CellProblem`
_LOWER = 0.999  # of the log-loss, for a smaller λ
_CLEARLY = 0.995  # of the log-loss, without the log-probabilities of the cells: rows with missing cells need these
# L-BFGS ends if a step lowers the loss by less, relative to it. Searches that ended at 1e-4 took too large a λ.
SEARCH, FINAL = 1e-5, 1e-6


@dataclass(frozen=True)
class CellTables:
    """The cells of all columns that vary, side by side, with what is known of each; one cell per column is missing.

    Attributes
    ----------
    basis : scipy.sparse.csr_array (S, P)
        B: the prior of the δ of a class is a Gaussian of mean 0 and of covariance BBᵀ/λ. 0 for missing cells.
    column : ndarray (S,)
        The column of each cell, 0 … d − 1.
    is_missing : ndarray of bool (S,)
        Whether a cell is the missing one, which has no share of the bias.
    log_probability : ndarray (S, C)
        log p(x_j = k | y) in nats, 0 for missing cells.
    weighed : bool
        Whether t includes them, times w.
    """

    basis: Any
    column: Array
    is_missing: Array
    log_probability: Array
    weighed: bool = True

    @cached_property
    def n_columns(self) -> int:
        """d, the number of columns."""
        return int(self.column.max(initial=-1)) + 1

    @cached_property
    def n_weights(self) -> int:
        """The number of weights w."""
        return self.n_columns if self.weighed else 0

    @cached_property
    def for_kernel(self) -> CellDesign:
        """The same, as `cell_objective` takes it. A cell that is shown has 1/d of the bias."""
        share = np.where(self.is_missing, 0.0, 1.0 / max(self.n_columns, 1))
        basis = self.basis
        entries = basis.indptr.astype(np.int32), basis.indices.astype(np.int32), basis.data.astype(np.float64)
        return CellDesign(self.column, share, self.log_probability, *entries)


@dataclass(frozen=True)
class CellProblem:
    r"""The mean loss per row as a function of the biases, the weights and η, where δ = Bη. It is convex.

    .. math:: -\sum_i r_i \log p(y_i \mid x_i) + \frac{\lambda}{2} \lVert \eta \rVert^2
              + \frac{\omega}{2} \sum_j (w_j - \bar w)^2 + \frac{\beta}{2} (\bar w - 1)^2
              + \frac{\beta}{2} \lVert b \rVert^2

    w̄ is the common weight at which the penalty is least. A score is a sum of one number per cell, and a row that is
    left out moves the factors of its class alone: so a pass over the rows reads only their cells, and its gradient with
    respect to the numbers gives that with respect to all parameters.

    Attributes
    ----------
    rows : CellRows
    tables : CellTables
    log_prior : ndarray (C,)
        log π in nats.
    penalty : float
        λ.
    """

    rows: CellRows
    tables: CellTables
    log_prior: Array
    penalty: float

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return the loss and its gradient."""
        gradient = np.empty(len(position))
        loss = self._objective(position, gradient, np.empty(0))
        scale = 1.0 / self.rows.weight.sum()
        return loss * scale, gradient * scale

    def log_loss(self, position: Array) -> float:
        """Return the sum of −r_i·log p(y_i | x_i) in nats."""
        return self._objective(position, np.empty(len(position)), np.empty(0), Pull(0.0, 0.0, 0.0))

    def parts(self, position: Array) -> tuple[Array, Array, Array]:
        """Return the biases (C,), the weights (d,) or (0,), and η, (P, C)."""
        n_classes, d = len(self.log_prior), self.tables.n_weights
        eta = position[n_classes + d :].reshape(-1, n_classes)
        return position[:n_classes], position[n_classes : n_classes + d], eta

    def minimum(self, start: Array | None = None, tolerance: float = FINAL) -> Array:
        """Return the optimum, by L-BFGS from a point near it, or from the generative solution.

        The units of the steps are those of the curvature at the start, or where all rows have the prior.
        """
        n_classes, d = len(self.log_prior), self.tables.n_weights
        at = np.zeros(n_classes + d + self.tables.basis.shape[1] * n_classes) if start is None else start
        curvature = np.empty(len(at))
        self._objective(at, np.empty(len(at)), curvature)
        begin = at.copy()
        if start is None:
            begin[n_classes : n_classes + d] = 1.0
        unit = np.sqrt(self.rows.weight.sum() / np.maximum(curvature, 1e-12))
        return minimum(self, begin, unit, slice(n_classes, n_classes + d), tolerance)

    def _objective(self, position: Array, gradient: Array, curvature: Array, pull: Pull | None = None) -> float:
        pull = Pull(self.penalty, _OF_WEIGHTS, _WEAK) if pull is None else pull
        position = np.ascontiguousarray(position)
        tables = self.tables.for_kernel
        loss: float = kernels.cell_objective(
            self.rows, tables, self.log_prior, pull, position, self.tables.n_weights, gradient, curvature
        )
        return loss


@dataclass(frozen=True)
class CellOptimum:
    """Where the penalised conditional likelihood is greatest, with the λ that held-out rows chose."""

    problem: CellProblem
    position: Array

    @property
    def bias(self) -> Array:
        """B in nats, (C,)."""
        return self.problem.parts(self.position)[0]

    @property
    def weight(self) -> Array:
        """w, (d,); (0,) if the log-probabilities of the cells are left out."""
        return self.problem.parts(self.position)[1]

    @property
    def delta(self) -> Array:
        """δ in nats, (S, C)."""
        return np.asarray(self.problem.tables.basis @ self.problem.parts(self.position)[2])

    @property
    def penalty(self) -> float:
        """λ."""
        return self.problem.penalty


def fit_cells(rows: CellRows, tables: CellTables, log_prior: Array, penalty: float | None = None) -> CellOptimum:
    """Return the biases, weights and δ of the greatest penalised conditional likelihood.

    Parameters
    ----------
    rows : CellRows
        Of positive weight.
    tables : CellTables
    log_prior : ndarray (C,)
        log π in nats, finite.
    penalty : float, optional
        λ. Default: the one of `PENALTIES` (the last from 5,000 rows on) with the least log-loss of a third of the rows,
        learned from the others, from the largest one down until one does not lower it by 0.1 %; without the
        log-probabilities of the cells if this is better by 0.5 %, with the chosen λ, the next larger one, or one that
        is smaller. Fewer than six rows, or rows of less weight, choose the largest λ.
    """
    start = None
    if penalty is None and _has_few_rows(rows):
        penalty = PENALTIES[0]
    if penalty is None:
        share = held_out_share(rows, tables)
        split = _weighing(rows, rows.weight * (1.0 - share)), _weighing(rows, rows.weight * share)
        tried = PENALTIES if len(rows.component) >= _ROWS_OF_LAST else PENALTIES[:-1]
        found = _search(*split, tables, log_prior, tried)
        nearby = tried[max(tried.index(found[1]) - 1, 0) :]
        alone = replace(tables, weighed=False)
        other = _search(*split, alone, log_prior, nearby)
        tables, (_, penalty, start) = (alone, other) if other[0] < _CLEARLY * found[0] else (tables, found)
    problem = CellProblem(rows, tables, log_prior, penalty)
    return CellOptimum(problem, problem.minimum(start))


def _has_few_rows(rows: CellRows) -> bool:
    """Return whether rows are too few, or weigh too little, for a third of them to be held out."""
    return len(rows.component) < 2 * _FOLDS or float(rows.weight.sum()) < 2 * _FOLDS


def _weighing(rows: CellRows, weight: Array) -> CellRows:
    """Return the rows of positive weight, with these weights."""
    kept = np.flatnonzero(weight)
    return CellRows(rows.slots[kept], rows.component[kept], weight[kept], rows.own[kept])


def held_out_share(rows: CellRows, tables: CellTables) -> Array:
    """Return the share of each row that is held out, (n,), which depends on its cells and not on its place.

    The rows of a class are in the order of a number that is the same whatever names and orders are. Along the sums of
    their weights, every third unit is held out. Rows of one number share their units, so that a row of weight 2 counts
    as two equal rows.
    """
    n_classes = tables.log_probability.shape[1]
    of_table = tables.log_probability[rows.slots, rows.component[:, np.newaxis]]
    own, of_cells = of_table + rows.own, np.exp(tables.log_probability).sum(axis=1)[rows.slots]
    # Bins of equal counts differ in the variance of their numbers. Rows that are not alike would otherwise be one.
    spread = np.asarray(tables.basis.power(2).sum(axis=1)).reshape(-1)[rows.slots]
    number = ((own + of_cells - np.exp(of_table) + np.exp(own)) * (1.0 + spread)).sum(axis=1)
    of_class = [np.bincount(rows.component, values, n_classes) for values in (rows.weight * number, rows.weight)]
    place = np.argsort(np.lexsort(of_class))[rows.component]
    order = np.lexsort((number, place))
    is_new = (np.diff(number[order]) > _SAME * (1.0 + np.abs(number[order][1:]))) | (np.diff(place[order]) > 0)
    group = np.empty(len(order), np.int64)
    group[order] = np.concatenate([[0], np.cumsum(is_new)])
    size = np.bincount(group, rows.weight)
    ends = np.cumsum(size)
    bounds = np.stack([ends - size, ends])
    upto = np.floor(bounds / _FOLDS) + np.clip(bounds % _FOLDS, 0.0, 1.0)
    share = (upto[1] - upto[0]) / size
    return np.where(share > _SAME, share, 0.0)[group]


def _search(
    part: CellRows, held_out: CellRows, tables: CellTables, log_prior: Array, penalties: Sequence[float]
) -> tuple[float, float, Array | None]:
    """Return the least log-loss of held-out rows in nats, the λ that attains it, and a point near its optimum."""
    best: tuple[float, float, Array | None] = np.inf, penalties[0], None
    optimum = None
    for penalty in penalties:
        optimum = CellProblem(part, tables, log_prior, penalty).minimum(optimum, SEARCH)
        loss = CellProblem(held_out, tables, log_prior, 0.0).log_loss(optimum)
        if loss >= _LOWER * best[0]:
            break
        best = loss, penalty, optimum
    return best
