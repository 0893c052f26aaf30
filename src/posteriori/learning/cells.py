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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from posteriori.densities import Binned, BinnedParameters, Categorical
from posteriori.densities.categorical import CategoricalParameters
from posteriori.learning.fit import reject_underflow
from posteriori.learning.log_linear import minimum
from posteriori.learning.weights import check_closed_form, left_out_factors, sampled_rows
from posteriori.model import FLOOR, Block, FactorWeights, GenerativeModel, log_sum
from posteriori.sources import LabelledSource
from posteriori.sources.table_source import blas
from posteriori.statistics import Counts, JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Batch, Codes, Schema

MOST_ROWS = 20_000  # rows that cells are learned from
MOST_FACTORS = 1 << 20  # rows times classes times columns
PENALTIES = (100.0, 20.0, 5.0, 1.0, 0.2)  # λ of `fit_cells`, from which held-out rows choose
_FOLDS = 3  # one of which chooses λ
_SAME = 1e-9  # relative difference of numbers that counts as none
_OF_WEIGHTS = 10.0  # ω of `CellProblem`
MOST_DIRECTIONS = 16  # of a random walk over bins
_WEAK = 0.1  # β of `CellProblem`
_DENSE = 3  # of `CellProblem._maps`
_SEARCH, _FINAL = 1e-4, 1e-8  # L-BFGS ends if a step lowers the loss by less, relative to it


@dataclass(frozen=True)
class CellRows:
    """Rows to learn cells from.

    Attributes
    ----------
    cells : scipy.sparse.csr_array (n, S)
        1 where a row shows a cell; nothing for a missing cell.
    factors : ndarray (n, C, d)
        Log factors of the generative model, not estimated from the row; d is 0 if t does not include them.
    y_true : ndarray (n,)
        The class index of each row.
    weight : ndarray (n,)
        The weight of each row, ≥ 0.
    share : ndarray (n,)
        Of each row, the share of its cells that are present among the columns that vary: its part of the bias.
    """

    cells: Any
    factors: Array
    y_true: Array
    weight: Array
    share: Array

    def weighing(self, weight: Array) -> CellRows:
        """Return the rows of positive weight, with these weights."""
        kept = np.flatnonzero(weight)
        return CellRows(self.cells[kept], self.factors[kept], self.y_true[kept], weight[kept], self.share[kept])

    def without_factors(self) -> CellRows:
        """Return the rows without log factors of the generative model."""
        return replace(self, factors=self.factors[:, :, :0])


@dataclass(frozen=True)
class CellProblem:
    r"""The mean loss per row as a function of the biases, the weights and η, where δ = Bη. It is convex.

    .. math:: -\sum_i r_i \log p(y_i \mid x_i) + \frac{\lambda}{2} \lVert \eta \rVert^2
              + \frac{\omega}{2} \sum_j (w_j - \bar w)^2 + \frac{\beta}{2} (\bar w - 1)^2
              + \frac{\beta}{2} \lVert b \rVert^2

    w̄ is the common weight at which the penalty is least.

    Attributes
    ----------
    rows : CellRows
    basis : scipy.sparse.csr_array (S, P)
        B.
    log_prior : ndarray (C,)
        log π in nats.
    penalty : float
        λ.
    """

    rows: CellRows
    basis: Any
    log_prior: Array
    penalty: float

    @cached_property
    def _maps(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the matrices that take η to scores, the first one first, and those that take scores to η.

        Their product alone, if it is small: BLAS is as fast on a few numbers as a sparse product on one.
        """
        cells, basis = self.rows.cells, self.basis
        if cells.shape[0] * basis.shape[1] <= _DENSE * (cells.nnz + basis.nnz):
            product = (cells @ basis).toarray()
            return (product,), (product.T,)
        return (basis, cells), (cells.T, basis.T)

    @cached_property
    def _truths(self) -> tuple[Array, Array]:
        """The position of each row, and its class."""
        return np.arange(len(self.rows.y_true)), self.rows.y_true

    @cached_property
    def _flat_factors(self) -> Array:
        n, n_classes, d = self.rows.factors.shape
        return self.rows.factors.reshape(n * n_classes, d)

    def __call__(self, position: Array) -> tuple[float, Array]:
        """Return the loss and its gradient."""
        scores, bias, weight, eta = self.scores(position)
        rows, of_row = self.rows, self.rows.weight
        scores -= scores.max(axis=1, keepdims=True)
        of_truth = scores[self._truths]
        np.exp(scores, out=scores)
        total = scores.sum(axis=1)
        loss = float(of_row @ (np.log(total) - of_truth))
        scores /= total[:, np.newaxis]
        scores[self._truths] -= 1.0
        scores *= of_row[:, np.newaxis]
        of_eta = scores
        for one in self._maps[1]:
            of_eta = one @ of_eta
        of_eta = self.penalty * eta + of_eta
        common = (_WEAK + _OF_WEIGHTS * weight.sum()) / (_WEAK + _OF_WEIGHTS * len(weight))
        apart = weight - common
        of_weight = scores.ravel() @ self._flat_factors + _OF_WEIGHTS * apart
        loss += 0.5 * self.penalty * float((eta**2).sum()) + 0.5 * _WEAK * (float(bias @ bias) + (common - 1.0) ** 2)
        loss += 0.5 * _OF_WEIGHTS * float(apart @ apart)
        gradient = np.concatenate([rows.share @ scores + _WEAK * bias, of_weight, of_eta.ravel()])
        scale = 1.0 / of_row.sum()
        return loss * scale, gradient * scale

    def log_loss(self, position: Array) -> float:
        """Return the sum of −r_i·log p(y_i | x_i) in nats."""
        scores = self.scores(position)[0]
        return float(self.rows.weight @ (log_sum(scores) - scores[self._truths]))

    def scores(self, position: Array) -> tuple[Array, Array, Array, Array]:
        """Return log p(y | x) + constant in nats, (n, C), and the biases (C,), the weights (d,) and η, (P, C)."""
        n_classes, d = self.rows.factors.shape[1:]
        bias, weight, eta = position[:n_classes], position[n_classes : n_classes + d], position[n_classes + d :]
        scores = eta = eta.reshape(-1, n_classes)
        for one in self._maps[0]:
            scores = one @ scores
        scores = scores + (self.rows.share[:, np.newaxis] * bias + self.log_prior)
        if d:
            scores += (self._flat_factors @ weight).reshape(scores.shape)
        return scores, bias, weight, eta

    def minimum(self, start: Array | None = None, tolerance: float = _FINAL) -> Array:
        """Return the optimum, by L-BFGS from a point near it, or from the generative solution."""
        n_classes, d = self.rows.factors.shape[1:]
        if start is None:
            start = np.concatenate([np.zeros(n_classes), np.ones(d), np.zeros(self.basis.shape[1] * n_classes)])
        return minimum(self, start, 1.0 / np.sqrt(self._curvature()), slice(n_classes, n_classes + d), tolerance)

    def _curvature(self) -> Array:
        """Return the diagonal of the Hessian where all rows have the posterior of the prior: the units of the steps."""
        rows, prior = self.rows, np.exp(self.log_prior)
        spread = prior * (1.0 - prior)
        total = rows.weight.sum()
        apart = rows.factors - np.einsum("icj,c->ij", rows.factors, prior)[:, np.newaxis]
        of_weight = np.einsum("icj,c,i->j", apart**2, prior, rows.weight)
        of_slots = rows.cells.T @ rows.weight
        of_eta = self.basis.multiply(self.basis).T @ of_slots  # a row shows one cell of each column
        parts = [
            (rows.weight @ rows.share**2) * spread + _WEAK,
            of_weight + _OF_WEIGHTS,
            (of_eta[:, np.newaxis] * spread + self.penalty).ravel(),
        ]
        return np.asarray(np.concatenate(parts) / total + 1e-12)


@dataclass(frozen=True)
class Cells:
    """The optimum: biases b (C,) in nats, weights (d,), δ (S, C) in nats, and the λ that held-out rows chose."""

    bias: Array
    weight: Array
    delta: Array
    penalty: float


def fit_cells(rows: CellRows, basis: Any, log_prior: Array, penalty: float | None = None) -> Cells:
    """Return the biases, weights and δ of the greatest penalised conditional likelihood.

    Parameters
    ----------
    rows : CellRows
        Of positive weight.
    basis : scipy.sparse.csr_array (S, P)
        B: the prior of the δ of a class is a Gaussian of mean 0 and of covariance BBᵀ/λ.
    log_prior : ndarray (C,)
        log π in nats, finite.
    penalty : float, optional
        λ. Default: the one of `PENALTIES` with the least log-loss of a third of the rows, learned from the others, from
        the largest one down until the log-loss rises; without the factors of the rows if this is better. Fewer
        than six rows choose the largest λ.
    """
    start = None
    if penalty is None and len(rows.y_true) < 2 * _FOLDS:
        penalty = PENALTIES[0]
    if penalty is None:
        share = _held_out(rows)
        split = [rows, rows.weighing(rows.weight * (1.0 - share)), rows.weighing(rows.weight * share)]
        searched = [
            (every, *_search(part, held_out, basis, log_prior))
            for every, part, held_out in (split, [one.without_factors() for one in split])
        ]
        rows, _, penalty, start = min(searched, key=lambda found: found[1])
    problem = CellProblem(rows, basis, log_prior, penalty)
    _, bias, weight, eta = problem.scores(problem.minimum(start))
    return Cells(bias, weight, basis @ eta, penalty)


def _held_out(rows: CellRows) -> Array:
    """Return the share of each row that is held out, (n,), which depends on its cells and not on its place.

    The rows of a class are in the order of a number that is the same whatever names and orders are. Along the sums of
    their weights, every third unit is held out. Rows of one number share their units, so that a row of weight 2 counts
    as two equal rows.
    """
    n_classes = rows.factors.shape[1]
    own = rows.factors[np.arange(len(rows.y_true)), rows.y_true]
    number = own.sum(axis=1) + np.exp(rows.factors).sum(axis=(1, 2))
    of_class = [np.bincount(rows.y_true, values, n_classes) for values in (rows.weight * number, rows.weight)]
    place = np.argsort(np.lexsort(of_class))[rows.y_true]
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


def _search(part: CellRows, held_out: CellRows, basis: Any, log_prior: Array) -> tuple[float, float, Array | None]:
    """Return the least log-loss of held-out rows in nats, the λ that attains it, and a point near its optimum."""
    best: tuple[float, float, Array | None] = np.inf, PENALTIES[0], None
    optimum = None
    for penalty in PENALTIES:
        optimum = CellProblem(part, basis, log_prior, penalty).minimum(optimum, _SEARCH)
        loss = CellProblem(held_out, basis, log_prior, 0.0).log_loss(optimum)
        if loss >= best[0]:
            break
        best = loss, penalty, optimum
    return best


def learn_cells(
    source: LabelledSource,
    model: GenerativeModel,
    statistics: JointStatistics,
    to_observed_codes: Callable[[Batch], Batch] | None = None,
    sample: Batch | None = None,
) -> FactorWeights:
    """Return tables of learned numbers, one per cell and class, for a naive Bayes of categories and bins.

    Parameters
    ----------
    source : LabelledSource
        The training rows, with labels. At most 20,000 are used, a stratified subsample, and 2²⁰ factors.
    model : GenerativeModel
        `check_cells` accepts its blocks.
    statistics : JointStatistics
        The statistics that the model was estimated from.
    to_observed_codes : callable, optional
        Converts a batch of the source to the codes of the model, if these differ.
    sample : Batch, optional
        A sample of the training rows, with labels, from which rows are taken without a pass over the source.
    """
    check_closed_form(model, statistics)
    n_classes, d = model.n_components, len(model.schema.columns)
    reject_underflow(model.schema, range(d), statistics.ranges)  # bins have a least scale, and these learn from it
    most = min(MOST_ROWS, max(1, MOST_FACTORS // (n_classes * d)))
    batch, _ = sampled_rows(source, sample, most)
    labels = batch.assignment
    assert labels is not None
    present = np.flatnonzero(np.isfinite(model.log_prior))  # a class of prior 0 has no finite bias
    if len(present) < n_classes:
        kept = np.flatnonzero(np.isin(labels.component, present))
        labels = labels.rows(kept)
        batch = replace(batch.rows(kept), assignment=labels)
    seen = batch if to_observed_codes is None else replace(to_observed_codes(batch), assignment=labels)
    places = [b for b, block in enumerate(model.blocks) if isinstance(block.density, Categorical)]
    counts = [statistics.blocks[b] for b in places]
    codes = [cast(Codes, model.blocks[b].tile(seen)).values for b in places]
    blocks = [(model.blocks[b], sums) for b, sums in zip(places, counts, strict=True)]
    with blas().limit(limits=1, user_api="blas"):  # on small matrices, threads of BLAS cost more than they save
        basis = _block_diagonal([root for block, sums in blocks for root in _prior_roots(model, block, sums)])
    varies = _varying(counts)
    active = np.concatenate([block.columns for block, _ in blocks])[varies]
    observed = np.concatenate(codes, axis=1) > 0
    rows = CellRows(
        _indicators(codes, counts),
        np.maximum(left_out_factors(model, statistics, seen)[:, present[:, np.newaxis], active], FLOOR, order="C"),
        np.searchsorted(present, labels.component),
        labels.weight,
        observed @ (varies / max(varies.sum(), 1)),
    )
    with blas().limit(limits=1, user_api="blas"):
        found = fit_cells(rows, basis, model.log_prior[present])
    weight = np.zeros(d)
    weight[active] = found.weight if len(found.weight) else 0.0
    parameters, first = list(model.parameters), 0
    for b, (block, sums) in zip(places, blocks, strict=True):
        widths = np.diff(sums.offsets)
        of_slots = np.repeat(weight[list(block.columns)], widths)
        tables = np.where(of_slots > 0, of_slots * np.maximum(model.parameters[b].log_probability, FLOOR), 0.0)
        tables[present] += found.delta[first : first + tables.shape[1]].T
        tables[present] += np.outer(found.bias / max(varies.sum(), 1), np.repeat(_varying([sums]), widths))
        first += tables.shape[1]
        parameters[b] = CategoricalParameters(sums.cardinalities, _as_log_probabilities(tables, sums))
    return FactorWeights(model.log_prior, np.ones(d), tuple(parameters), found.penalty)


def check_cells(blocks: Sequence[Block], schema: Schema) -> None:
    """Raise ValueError unless every column is independent of the others given the class, and has categories or bins."""
    for block in blocks:
        if isinstance(block.density, Categorical | Binned):
            continue
        name = schema.columns[block.columns[0]].name
        if block.models_missingness:
            raise ValueError(
                'feature_weights="cells" has no number for a missing cell; leave missing="informative" out, or use '
                'feature_weights="conditional"'
            )
        raise ValueError(
            f'feature_weights="cells" learns one number per category or bin, and column {name!r} has the distribution '
            f'{block.density.name!r}; set distributions="binned", or use feature_weights="conditional"'
        )


def _indicators(codes: Sequence[Array], counts: Sequence[Counts]) -> Any:
    """Return the cells that each row shows as a sparse matrix, from the codes of each block."""
    from scipy.sparse import csr_array

    starts = np.cumsum([0] + [int(sums.offsets[-1]) for sums in counts])
    slots = [
        of_block + (sums.offsets[:-1] + start) for of_block, sums, start in zip(codes, counts, starts, strict=False)
    ]
    columns, observed = np.concatenate(slots, axis=1), np.concatenate(codes, axis=1) > 0
    ends = np.concatenate([[0], np.cumsum(observed.sum(axis=1))])
    return csr_array((np.ones(int(ends[-1])), columns[observed], ends), shape=(len(ends) - 1, int(starts[-1])))


def _varying(counts: Sequence[Counts]) -> Array:
    """Return which columns of some blocks show two cells or more; the others are independent of the class."""
    columns = [sums.column(j).any(axis=0) for sums in counts for j in range(len(sums.cardinalities))]
    return np.array([np.count_nonzero(shown) > 1 for shown in columns])


def _prior_roots(model: GenerativeModel, block: Block, counts: Counts) -> Iterator[Any]:
    r"""Yield a root of the prior covariance of the numbers of each column, with a row of zeros for a missing cell.

    Those of categories are independent, of variance 1. Those of m bins are a line in the standardised centres z of the
    bins, of variance 1 per unit, and a random walk W from bin to bin, of variance 1 from end to end:
    :math:`\operatorname{cov} = z z^\top + W W^\top`, where W is centred. The 16 directions of the greatest variance are
    kept: they hold 96 % of that of the walk. The root of categories is sparse: a dense one of 10⁴ would take 0.8 GB.
    """
    from scipy.sparse import eye_array

    for position, j in enumerate(block.columns):
        size = counts.cardinalities[position]
        weight = counts.column(position).sum(axis=0)
        if not model.schema.columns[j].is_binned:
            varies = np.count_nonzero(weight) > 1
            yield eye_array(size + 1, size, k=-1) if varies else np.zeros((size + 1, 1))
            continue
        steps = np.arange(1, size) / size
        walk = ((np.arange(size)[:, np.newaxis] >= np.arange(1, size)) - (1.0 - steps)) / np.sqrt(size)
        root = np.column_stack([_standardised(_bin_centres(model, j), weight), walk])
        directions, spreads, _ = np.linalg.svd(root, full_matrices=False)
        root = (directions * spreads)[:, :MOST_DIRECTIONS]
        yield np.vstack([np.zeros(root.shape[1]), root])


def _bin_centres(model: GenerativeModel, column: int) -> Array:
    """Return the middle of each bin, and of an outer bin its mean, in data units."""
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if isinstance(parameters, BinnedParameters) and column in block.columns:
            position = block.columns.index(column)
            cuts, (below, above) = np.array(parameters.cuts[position]), parameters.scale[:, position]
            if len(cuts):
                return np.concatenate([[cuts[0] - below], (cuts[:-1] + cuts[1:]) / 2.0, [cuts[-1] + above]])
            return parameters.mean[[position]]
    raise AssertionError("a binned column has no density within its bins")


def _standardised(values: Array, weight: Array) -> Array:
    if not weight.sum() > 0:
        return np.zeros(len(values))
    share = weight / weight.sum()
    centred = values - share @ values
    spread = float(np.sqrt(share @ centred**2))
    return centred / spread if spread > 0 else np.zeros(len(values))


def _block_diagonal(parts: list[Any]) -> Any:
    from scipy.sparse import block_diag

    joined = block_diag(parts, format="csr")
    joined.eliminate_zeros()
    return joined


def _as_log_probabilities(tables: Array, counts: Counts) -> Array:
    """Return tables (C, Σ (K + 1)) that have the same posteriors, and whose exponentials sum to at most 1 per column.

    The share of a cell among all rows, and a constant per column, multiply the factors of all classes alike.
    """
    out = tables.copy()
    for first, last in zip(counts.offsets[:-1], counts.offsets[1:], strict=True):
        cells = slice(first + 1, last)
        if last - first > 1:
            weight = counts.table[:, cells].sum(axis=0) + 1.0
            out[:, cells] += np.log(weight / weight.sum())
            peak = out[:, cells].max()
            out[:, cells] -= peak + np.log(np.exp(out[:, cells] - peak).sum(axis=1).max())
        out[:, first] = 0.0
    return out
