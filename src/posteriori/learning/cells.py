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

from posteriori import kernels
from posteriori.densities import Binned, BinnedParameters, Categorical
from posteriori.densities.categorical import CategoricalParameters
from posteriori.kernels.cells import CellDesign, CellRows, Pull
from posteriori.learning.fit import reject_underflow
from posteriori.learning.log_linear import minimum
from posteriori.learning.weights import check_closed_form, left_out_factors, sampled_rows
from posteriori.model import FLOOR, Block, FactorWeights, GenerativeModel
from posteriori.sources import LabelledSource
from posteriori.sources.table_source import blas
from posteriori.statistics import Counts, JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Batch, Codes, Schema

MOST_ROWS = 20_000  # rows that cells are learned from
MOST_FACTORS = 1 << 20  # rows times classes times columns
PENALTIES = (100.0, 20.0, 5.0, 1.0, 0.2, 0.04)  # λ of `fit_cells`, from which held-out rows choose
_ROWS_OF_LAST = 5000  # for the last one: a third of fewer rows is too few to distinguish it
_FOLDS = 3  # one of which chooses λ
_ROWS_OF_ONE_SEARCH = 2000  # from which on folds take the λ of all rows: it no longer depends on a fold, and takes time
_SAME = 1e-9  # relative difference of numbers that counts as none
_OF_WEIGHTS = 10.0  # ω of `CellProblem`
MOST_DIRECTIONS = 48  # of a random walk over bins
_LEAST_INFORMATION = 0.5  # of rows about a direction, in units of its variance
_WEAK = 0.1  # β of `CellProblem`
_SEARCH, _FINAL = 1e-4, 1e-8  # L-BFGS ends if a step lowers the loss by less, relative to it


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
        return int(self.column[-1]) + 1 if len(self.column) else 0

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

    def minimum(self, start: Array | None = None, tolerance: float = _FINAL) -> Array:
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
    """The optimum: biases b (C,) in nats, weights (d,), δ (S, C) in nats, and the λ that held-out rows chose."""

    bias: Array
    weight: Array
    delta: Array
    penalty: float


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
        learned from the others, from the largest one down until the log-loss rises; without the log-probabilities of
        the cells if this is better, with the chosen λ, the next larger one, or one that is smaller. Fewer than six rows
        choose the largest λ.
    """
    start = None
    if penalty is None and len(rows.component) < 2 * _FOLDS:
        penalty = PENALTIES[0]
    if penalty is None:
        share = _held_out(rows, tables)
        split = _weighing(rows, rows.weight * (1.0 - share)), _weighing(rows, rows.weight * share)
        tried = PENALTIES if len(rows.component) >= _ROWS_OF_LAST else PENALTIES[:-1]
        found = _search(*split, tables, log_prior, tried)
        nearby = tried[max(tried.index(found[1]) - 1, 0) :]
        alone = replace(tables, weighed=False)
        other = _search(*split, alone, log_prior, nearby)
        tables, (_, penalty, start) = (alone, other) if other[0] < found[0] else (tables, found)
    problem = CellProblem(rows, tables, log_prior, penalty)
    bias, weight, eta = problem.parts(problem.minimum(start))
    return CellOptimum(bias, weight, tables.basis @ eta, penalty)


def _weighing(rows: CellRows, weight: Array) -> CellRows:
    """Return the rows of positive weight, with these weights."""
    kept = np.flatnonzero(weight)
    return CellRows(rows.slots[kept], rows.component[kept], weight[kept], rows.own[kept])


def _held_out(rows: CellRows, tables: CellTables) -> Array:
    """Return the share of each row that is held out, (n,), which depends on its cells and not on its place.

    The rows of a class are in the order of a number that is the same whatever names and orders are. Along the sums of
    their weights, every third unit is held out. Rows of one number share their units, so that a row of weight 2 counts
    as two equal rows.
    """
    n_classes = tables.log_probability.shape[1]
    of_table = tables.log_probability[rows.slots, rows.component[:, np.newaxis]]
    own, of_cells = of_table + rows.own, np.exp(tables.log_probability).sum(axis=1)[rows.slots]
    number = (own + of_cells - np.exp(of_table) + np.exp(own)).sum(axis=1)
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
        optimum = CellProblem(part, tables, log_prior, penalty).minimum(optimum, _SEARCH)
        loss = CellProblem(held_out, tables, log_prior, 0.0).log_loss(optimum)
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
    start: FactorWeights | None = None,
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
    start : FactorWeights, optional
        Tables of more rows, such as of all where these are those outside of a fold: with 2,000 rows or more, their λ is
        taken, not searched.
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
    factors = np.maximum(left_out_factors(model, statistics, seen)[:, present[:, np.newaxis], active], FLOOR)
    known = np.concatenate([model.parameters[b].log_probability[present] for b in places], axis=1).T
    y_true = np.searchsorted(present, labels.component)
    rows, of_cells = _rows_and_tables(
        codes, counts, varies, basis, np.maximum(known, FLOOR), factors, y_true, labels.weight
    )
    with blas().limit(limits=1, user_api="blas"):
        penalty = None
        if start is not None and len(rows.component) >= _ROWS_OF_ONE_SEARCH:
            of_cells, penalty = replace(of_cells, weighed=start.is_generative), start.penalty
        found = fit_cells(rows, of_cells, model.log_prior[present], penalty)
    return _as_weights(model, list(zip(places, counts, strict=True)), present, found)


def _as_weights(
    model: GenerativeModel, counts: Sequence[tuple[int, Counts]], present: Array, found: CellOptimum
) -> FactorWeights:
    """Return the learned numbers of the classes that are present as tables of blocks, by their places and counts."""
    varies = _varying([sums for _, sums in counts])
    active = np.concatenate([model.blocks[b].columns for b, _ in counts])[varies]
    weight = np.zeros(len(model.schema.columns))
    weight[active] = found.weight if len(found.weight) else 0.0
    delta = np.zeros((sum(sums.table.shape[1] for _, sums in counts), len(present)))
    delta[_of_columns([sums for _, sums in counts], varies)] = found.delta
    parameters, first = list(model.parameters), 0
    for b, sums in counts:
        widths = np.diff(sums.offsets)
        of_slots = np.repeat(weight[list(model.blocks[b].columns)], widths)
        tables = np.where(of_slots > 0, of_slots * np.maximum(model.parameters[b].log_probability, FLOOR), 0.0)
        tables[present] += delta[first : first + tables.shape[1]].T
        tables[present] += np.outer(found.bias / max(varies.sum(), 1), np.repeat(_varying([sums]), widths))
        first += tables.shape[1]
        parameters[b] = CategoricalParameters(sums.cardinalities, _as_log_probabilities(tables, sums))
    ones, learned = np.ones(len(weight)), bool(len(found.weight))
    return FactorWeights(model.log_prior, ones, tuple(parameters), found.penalty, is_generative=learned)


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


def _rows_and_tables(
    codes: Sequence[Array],
    counts: Sequence[Counts],
    varies: Array,
    basis: Any,
    known: Array,
    factors: Array,
    y_true: Array,
    weight: Array,
) -> tuple[CellRows, CellTables]:
    """Return rows and cells of the columns that vary, from the codes of each block.

    A row that is left out moves the factors (n, C, d) of its own class alone. Those of the other classes are the
    log-probabilities `known` (S, C) of its cells, or 0 if no other row shows the category: then no other row reads it.
    """
    sizes = np.concatenate([np.diff(sums.offsets) for sums in counts])[varies]
    starts = np.cumsum(sizes) - sizes
    slots = np.concatenate(codes, axis=1)[:, varies].astype(np.int32, order="C") + starts.astype(np.int32)
    column = np.repeat(np.arange(len(sizes)), sizes)
    is_missing = np.zeros(len(column), np.bool_)
    is_missing[starts] = True
    chosen = _of_columns(counts, varies)
    table = np.where(is_missing[:, np.newaxis], 0.0, np.maximum(known[chosen], FLOOR))
    for c in range(table.shape[1]):
        others = np.flatnonzero(y_true != c)
        table[slots[others], c] = factors[others, c]
    own = factors[np.arange(len(y_true)), y_true] - table[slots, y_true[:, np.newaxis]]
    rows = CellRows(slots, y_true.astype(np.int64), np.asarray(weight, np.float64), np.ascontiguousarray(own))
    return rows, CellTables(basis[chosen], column, is_missing, table)


def _of_columns(counts: Sequence[Counts], varies: Array) -> Array:
    """Return the positions of the cells of the columns that vary, among those of all columns."""
    sizes = np.concatenate([np.diff(sums.offsets) for sums in counts])
    return np.flatnonzero(np.repeat(varies, sizes))


def _varying(counts: Sequence[Counts]) -> Array:
    """Return which columns of some blocks show two cells or more; the others are independent of the class."""
    columns = [sums.column(j).any(axis=0) for sums in counts for j in range(len(sums.cardinalities))]
    return np.array([np.count_nonzero(shown) > 1 for shown in columns])


def _prior_roots(model: GenerativeModel, block: Block, counts: Counts) -> Iterator[Any]:
    r"""Yield a root of the prior covariance of the numbers of each column, with a row of zeros for a missing cell.

    Those of categories are independent, of variance 1. Those of m bins are a line in the standardised centres z of the
    bins, of variance 1 per unit, and a random walk W from bin to bin, of variance 1 from end to end:
    :math:`\operatorname{cov} = z z^\top + W W^\top`, where W is centred. At most 48 directions are kept, those of the
    greatest variance: they hold 99 % of that of the walk. Direction k has the variance 1/(πk)², and n rows tell a
    number of variance v from 0 if nv/4 is not small; the other directions are left out. The root of categories is
    sparse: a dense one of 10⁴ would take 0.8 GB.
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
        root = (directions * spreads)[:, : n_directions(float(weight.sum()))]
        yield np.vstack([np.zeros(root.shape[1]), root])


def n_directions(n_rows: float) -> int:
    """Return how many directions of the numbers of a binned column so many rows can tell from 0."""
    return int(min(2.0 + np.sqrt(n_rows / (4.0 * _LEAST_INFORMATION)) / np.pi, MOST_DIRECTIONS))


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
