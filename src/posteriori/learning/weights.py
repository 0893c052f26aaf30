"""Leave-one-out log factors in closed form, and one weight for each, learned by conditional likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.densities import ApproximatingDensity, CategorySummingDensity, Grouped, LeaveOneOutDensity, implements
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.log_linear import LogLinear, clip_log_factors, fit_log_linear
from posteriori.model import Block, FactorWeights, GenerativeModel, Prior, warn_of_approximation
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.statistics.moments import less, weights_left
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Codes, Schema, quote
from posteriori.tables.batch import Mixed, Tile, joined

__all__ = ["PENALTY", "FactorWeights", "fit_weights", "learn_weights"]


def left_out_prior(prior: Prior, statistics: JointStatistics, assignment: Assignment) -> Array:
    """Return log p(z) in nats, (n, Z), per row by the model without it."""
    return prior.estimate(weights_left(statistics.weight, assignment))


def left_out_factors(
    model: GenerativeModel, statistics: JointStatistics, batch: Batch, *, refit: bool = True, skip: int | None = None
) -> Array:
    """Return log p(x_j | z) in nats, (n, Z, d), of each row by the model without it; 0 for a missing cell.

    Blocks that do not depend on the component are 0, because they do not change the posterior.

    Parameters
    ----------
    model : GenerativeModel
    statistics : JointStatistics
        The statistics that the model was estimated from. They include these rows.
    batch : Batch
        Rows whose components are known.
    refit : bool
        Whether to estimate the parameters again without a row that has no closed form; if not, its factors are NaN.
    skip : int, optional
        A block whose factors are 0.
    """
    seen = unseen_as_missing(model, statistics, batch)
    positions = [i for i, block in enumerate(model.blocks) if not block.shared and i != skip]
    of_blocks = [_block_factors(model, statistics, position, batch, seen, refit) for position in positions]
    if len(positions) == 1 and model.blocks[positions[0]].columns == tuple(range(len(model.schema.columns))):
        return of_blocks[0]
    factors = np.zeros((len(batch), model.n_components, len(model.schema.columns)))
    for position, of_block in zip(positions, of_blocks, strict=True):  # a column has two if its gaps have a factor
        factors[:, :, model.blocks[position].columns] += of_block
    return factors


def unseen_as_missing(model: GenerativeModel, statistics: JointStatistics, batch: Batch) -> Batch:
    """Return the rows without the categories that no other row shows: the model without the row does not know them."""
    unseen = _unseen(model, statistics, batch)
    if not unseen.any():
        return batch
    codes = np.where(unseen, batch.codes.values.dtype.type(0), batch.codes.values)
    return replace(batch, codes=replace(batch.codes, values=codes))


def check_closed_form(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Raise an error if a row cannot be subtracted from the statistics of a model, or a density has no `left_out`."""
    check_exact(model, statistics)
    for block in model.blocks:
        if not block.shared and not implements(block.density, LeaveOneOutDensity):
            raise TypeError(f"the density {block.density.name!r} has no leave-one-out (`left_out`); choose another")


def check_exact(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Raise ValueError if the statistics of a model are expectations, from which no row can be subtracted."""
    if statistics.hidden > 0:
        raise ValueError(
            "this model was fitted by EM to rows without label, so that no row can be left out of it in closed form; "
            "remove these rows"
        )
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        if not block.shared and not sums.is_exact():
            names = quote(model.schema.columns[j].name for j in block.columns)
            raise ValueError(
                f"this model was fitted by EM because of missing cells in {names}, so that no row can be left out of "
                "it in closed form; remove rows with missing cells, or choose a model that needs no EM (NaiveBayes)"
            )


def _block_factors(
    model: GenerativeModel, statistics: JointStatistics, position: int, batch: Batch, seen: Batch, refit: bool
) -> Array:
    """Return the log factors of a block: in closed form or, for rows without one, by an estimate per row."""
    block, sums, labels = model.blocks[position], statistics.blocks[position], batch.assignment
    assert labels is not None
    density: Any = block.density
    if implements(density, ApproximatingDensity):
        warn_of_approximation(block, model.parameters[position], seen)
    factors: Array = density.left_out(model.parameters[position], sums, block.tile(seen), labels)
    if block.models_missingness:  # the category of no other row is present in this row, and missing without it
        unseen = (cast(Mixed, block.tile(batch)).present != cast(Mixed, block.tile(seen)).present).any(axis=1)
        factors[unseen] = np.nan
    summed = density.summed_columns(model.parameters[position]) if implements(density, CategorySummingDensity) else ()
    if len(summed):
        codes, known = (_codes_of(block.tile(rows)) for rows in (batch, seen))
        factors[(codes.values != known.values)[:, summed].any(axis=1)] = np.nan
    without_closed_form = np.flatnonzero(np.isnan(factors).any(axis=(1, 2)))
    if len(without_closed_form) and refit:
        density = density.with_fixed_structure(model.parameters[position])
        for i in without_closed_form.tolist():
            row = np.array([i])
            given = Assignment(labels.component[row], labels.weight[row], labels.n_components)
            tile, rest = block.tile(seen.rows(row)), sums
            if given.weight[0] > 0:
                learned = block.tile(batch.rows(row))
                if block.models_missingness:  # no other row has the category, so that its loss changes no sum
                    rest = sums - density.sufficient_statistics.of(learned, given)
                else:
                    rest, tile = _without_lost_categories(
                        sums.without(learned, given), learned, tile, block, model.schema
                    )
            factors[i] = density.log_factors(density.estimate(rest), tile)[0]
    return factors


def _without_lost_categories(rest: Any, learned: Tile, seen: Tile, block: Block, schema: Schema) -> tuple[Any, Tile]:
    """Return the statistics without a row, and its tile, without the categories that only this row showed."""
    coded = block.coded(schema)
    if not coded:
        return rest, seen
    codes, known = _codes_of(learned), _codes_of(seen)
    if (codes.values == known.values).all():
        return rest, seen
    lost = np.where(known.values[0] == 0, codes.values[0].astype(np.int64) - 1, -1)
    kept = [[k for k in range(size) if k != gone] for size, gone in zip(codes.cardinalities, lost, strict=True)]
    cells = Codes(known.values, tuple(map(len, kept)))
    rest = rest.reindexed(range(len(rest.observed())), kept)
    return rest, replace(seen, codes=cells) if isinstance(seen, Mixed) else cells


def _codes_of(tile: Tile) -> Codes:
    codes = tile.codes if isinstance(tile, Mixed) else tile
    assert isinstance(codes, Codes)
    return codes


def _has_group(block: Block, position: int) -> bool:
    """Return whether a column of codes is grouped: a category without rows then still has the factor of its group."""
    return isinstance(block.density, Grouped) and block.density.keeps_category(position)


def _unseen(model: GenerativeModel, statistics: JointStatistics, batch: Batch) -> Array:
    """Return which cells hold a category that no other row of positive weight shows, (n, number of coded columns)."""
    schema, codes = model.schema, batch.codes.values
    result = np.zeros(codes.shape, np.bool_)
    assert batch.assignment is not None
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        for position, j in enumerate(block.coded(schema)):
            if schema.columns[j].declared or schema.columns[j].is_binned or _has_group(block, position):
                continue
            column = schema.coded.index(j)
            shown = np.concatenate([[np.inf], sums.column(position).sum(axis=0)])[codes[:, column]]
            result[:, column] = less(shown, batch.assignment.weight) <= 0
    return result


PENALTY = 10.0  # λ of `fit_weights`, in rows
_ROUNDING = 1e-9  # nats by which rounding makes equal factors differ, at most
MOST_ROWS = 5000  # rows that weights are learned from
MOST_FACTORS = 1 << 20  # rows times components times columns
_MOST_ESTIMATED = 250  # rows for which the parameters are estimated again


def fit_weights(
    log_factors: Array,
    log_prior: Array,
    y_true: Array,
    weight: Array,
    penalty: float = PENALTY,
    start: FactorWeights | None = None,
    known: Array | None = None,
) -> FactorWeights:
    r"""Return the weights and biases of the greatest penalised conditional likelihood. The problem is convex.

    .. math::
        \min_{b,\, w \ge 0} -\sum_i \omega_i \log p(y_i \mid x_i)
        + \frac{\lambda}{2} \sum_j (w_j - \bar w)^2 + \frac{1}{2} (\bar w - 1)^2
        + \frac{1}{2} \sum_c (b_c - \log \pi_c)^2, \quad
        p(y \mid x_i) \propto e^{\log \pi_y + s_i (b_y - \log \pi_y) + \sum_j w_j \log p(x_{ij} \mid y)}

    The penalty pulls the weights towards a common weight w̄, which is a variable too, w̄ weakly towards 1, and the
    biases towards the log prior.

    Parameters
    ----------
    log_factors : ndarray (n, C, d)
        log p(x_j | y) in nats, by densities that were not estimated from the row. A factor that is lower by more than
        700 than that of another class, such as −inf, counts as lower by 700.
    log_prior : ndarray (C,)
        In nats. A class of −inf keeps −inf as its bias.
    y_true : ndarray (n,)
        The class index of each row.
    weight : ndarray (n,)
        ω, the weight of each row.
    penalty : float
        λ ≥ 0. It does not depend on the units of the columns, because the conditional log-likelihood of a row is in
        nats. 0 leaves the weights independent; inf gives one weight for all factors.
    start : FactorWeights, optional
        A point near the optimum.
    known : ndarray (n, d), optional
        Which cells are known: s is their share in each row, of the columns whose factors differ between classes in any
        row. Default: s = 1.

    Returns
    -------
    FactorWeights

    References
    ----------
    Zaidi, Cerquides, Carman & Webb, Alleviating naive Bayes attribute independence assumption by attribute weighting,
    JMLR 14 (2013), section 4 (weights of conditional likelihood, learned from the training rows).
    """
    present = np.flatnonzero(np.isfinite(log_prior))  # a class of prior 0 has no finite bias
    factors = log_factors
    if len(present) < len(log_prior):
        kept = np.flatnonzero(np.isin(y_true, present))
        factors, y_true, weight = log_factors[kept][:, present], y_true[kept], weight[kept]
        known = None if known is None else known[kept]
    varies = _varies(factors)
    share = None if known is None else (known & varies).sum(axis=1) / max(int(varies.sum()), 1)
    class_index = np.searchsorted(present, y_true)
    if np.isinf(penalty):
        factors = clip_log_factors(factors).sum(axis=2, keepdims=True)  # w_j = w̄: one feature, their sum
    # A factor that never differs between classes changes no posterior, so its optimum is w_j = w̄.
    active = np.flatnonzero((factors != factors[:, :1]).any(axis=0).any(axis=0))
    active = active if len(active) else np.arange(min(1, factors.shape[2]))  # their number is positive in what follows
    d = len(active)
    if d < factors.shape[2]:
        factors = factors[:, :, active]
    # Minimising over w̄ gives w̄ − 1 = λ Σ_j (w_j − 1) / (λd + 1). Substituting leaves ½ (w − 1)ᵀ Q (w − 1) with
    # Q = λI − λ²/(λd + 1) 11ᵀ; for λ = ∞, Q = 1 on the one common weight.
    curvature = np.ones((1, 1)) if np.isinf(penalty) else penalty * np.eye(d) - penalty**2 / (penalty * d + 1.0)
    begin = None
    if start is not None and np.isfinite(start.bias[present]).all():
        begin = LogLinear(start.bias[present], start.weight[active])
    fitted = fit_log_linear(
        factors, class_index, weight, LogLinear(log_prior[present], np.ones(d)), 1.0, curvature, begin, share=share
    )
    bias = np.full(len(log_prior), -np.inf)
    bias[present] = fitted.bias
    if np.isinf(penalty):
        return FactorWeights(bias, np.full(log_factors.shape[2], fitted.weight[0] if d else 1.0), varies=varies)
    weights = np.full(log_factors.shape[2], 1.0 + penalty * (fitted.weight - 1.0).sum() / (penalty * d + 1.0))
    weights[active] = fitted.weight
    return FactorWeights(bias, weights, varies=varies)


def _varies(log_factors: Array) -> Array:
    """Return which columns have factors that differ between classes in any row by more than rounding, (d,)."""
    with np.errstate(invalid="ignore"):  # −inf − −inf is NaN, and not above
        return np.asarray((np.abs(log_factors - log_factors[:, :1]) > _ROUNDING).any(axis=(0, 1)))


def learn_weights(
    source: LabelledSource,
    model: GenerativeModel,
    statistics: JointStatistics,
    to_observed_codes: Callable[[Batch], Batch] | None = None,
    start: FactorWeights | None = None,
    sample: Batch | None = None,
) -> FactorWeights:
    """Return weights of a model's factors, learned from leave-one-out log factors of its training rows.

    A stratified subsample of at most 5,000 rows is used, and of at most 2²⁰ factors, because only d + C numbers are
    learned. Rows whose leave-one-out factors have no closed form (`LeaveOneOutDensity`) are skipped if at least half of
    the rows have one. Otherwise the weights are learned from a subsample of 250 rows, and the parameters are estimated
    again without each such row.

    Parameters
    ----------
    source : LabelledSource
        The training rows, with labels. Rows of weight 0 are skipped.
    model : GenerativeModel
    statistics : JointStatistics
        The statistics that the model was estimated from.
    to_observed_codes : callable, optional
        Converts a batch of the source to the codes of the model, if these differ.
    start : FactorWeights, optional
        A point near the optimum.
    sample : Batch, optional
        A sample of the training rows, with labels, from which rows are taken without a pass over the source.

    Raises
    ------
    ValueError
        The model was learned by EM, because labels or cells were hidden; leave these rows out.
    TypeError
        A density has no leave-one-out (`left_out`); choose another density.
    """
    check_closed_form(model, statistics)
    most = min(MOST_ROWS, max(1, MOST_FACTORS // (model.n_components * len(model.schema.columns))))
    rows, n_counted = sampled_rows(source, sample, most)
    given = rows.assignment
    assert given is not None
    seen = rows if to_observed_codes is None else replace(to_observed_codes(rows), assignment=given)
    factors = left_out_factors(model, statistics, seen, refit=False)
    known_cells = model.known(unseen_as_missing(model, statistics, seen))
    known = np.flatnonzero(~np.isnan(factors.sum(axis=(1, 2))))  # of rows with a closed form; no factor is +inf
    if 2 * len(known) < len(rows):
        known = stratified_subsample(given.component, _MOST_ESTIMATED)
        factors = left_out_factors(model, statistics, _with_labels(seen, known), refit=True)
    elif len(known) < len(rows):
        factors = factors[known]
    given, known_cells = given.rows(known), known_cells[known]
    component, weight = given.component, given.weight
    if sample is not None:
        weight = weight * (statistics.weight.sum() / weight.sum())  # so that the penalty is relative to all rows
    elif n_counted > len(weight):
        weight = weight * (n_counted / len(weight))
    return fit_weights(factors, model.log_prior, component, weight, start=start, known=known_cells)


def sampled_rows(source: LabelledSource, sample: Batch | None, most: int) -> tuple[Batch, int]:
    """Return a stratified subsample of the labelled rows of a source, or of a sample of it, and the number of these."""
    return _sampled(source, most) if sample is None else _sampled_batch(sample, most)


def _sampled(source: LabelledSource, most: int) -> tuple[Batch, int]:
    """Return a stratified subsample of the labelled rows of positive weight, from one pass, and the number of these."""
    assert source.labels is not None
    assert source.classes is not None
    y_true = source.labels.components(source.classes, slice(0, source.table.n_rows))
    counted = np.flatnonzero(y_true >= 0 if source.weight is None else (y_true >= 0) & (source.weight > 0))
    chosen = np.zeros(len(y_true), np.bool_)
    chosen[counted[stratified_subsample(y_true[counted], most)]] = True
    parts = source.stream(lambda batch: _with_labels(batch, chosen[batch.start : batch.start + len(batch)]), "reading")
    return joined(list(parts)), len(counted)


def _sampled_batch(batch: Batch, most: int) -> tuple[Batch, int]:
    """Return a stratified subsample of the labelled rows of positive weight of a batch, and the number of these."""
    labels = batch.assignment
    assert labels is not None
    counted = np.flatnonzero((labels.component >= 0) & (labels.weight > 0))
    return _with_labels(batch, counted[stratified_subsample(labels.component[counted], most)]), len(counted)


def _with_labels(batch: Batch, chosen: Array) -> Batch:
    """Return some rows with their components and weights, by a mask or by their positions."""
    labels = batch.assignment
    assert labels is not None
    given = Assignment(labels.component[chosen], labels.weight[chosen], labels.n_components)
    return replace(batch.rows(chosen), assignment=given)
