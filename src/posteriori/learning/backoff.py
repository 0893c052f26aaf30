"""The pseudo-rows of back-off, learned by leaving out rows of the training set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.densities import AveragedDensity, BackingOffDensity, BackOff, Grouped, implements, ungrouped
from posteriori.densities.conditional import LeftOutCells
from posteriori.densities.grouped import coarse_parameters
from posteriori.learning.fit import FitResult
from posteriori.learning.log_linear import clip_log_factors
from posteriori.learning.weights import check_exact, left_out_factors, left_out_prior, sampled_rows, unseen_as_missing
from posteriori.model import Block, GenerativeModel, Prior, log_sum
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Batch

MODE = 20.0  # of the prior of pseudo-rows
POWERS = range(-3, 6)  # of 2, the multipliers that are tried first
FARTHEST = 60  # power of 2, far beyond where the prior of the multiplier ends the search
_MOST_ROWS = 2000
_FEW_ROWS = 200  # with gaps
_MOST_FACTORS = 1 << 18  # rows times components times columns
_MOST_PRODUCTS = 1 << 21  # rows times components times pairs of columns


def learn_backoff(
    source: LabelledSource,
    learned: FitResult,
    prior: Prior,
    to_observed_codes: Callable[[Batch], Batch] | None = None,
    sample: Batch | None = None,
) -> GenerativeModel:
    r"""Return the model with learned pseudo-rows: one number per column and number of parents.

    First each column learns from its own cells, under a Gamma(2, 20) prior, by the leave-one-out likelihood of the
    features in closed form (`LeftOutCells.learned_pseudo_rows`). These predict the features best, but leave the class
    over-confident. So all are multiplied by one number m, that of the greatest conditional leave-one-out likelihood,

    .. math:: \hat m = \operatorname*{argmax}_m \sum_i w_i \log p_{-i}(y_i \mid x_i; m s) + \log m - m

    p₋ᵢ is the model without row i, in closed form: the weight of the row, or 1 of more, is subtracted from the counts,
    so that a row of weight 2 counts as two rows. The sum is
    evaluated at powers of 2 from ⅛ to 32, first at every second, then beyond these for as long as it rises, which the
    prior log m − m ends. Its maximum is that of the parabola through the best and its neighbours.

    Parameters
    ----------
    source : LabelledSource
        The training rows, with labels. For the multiplier a stratified subsample of at most 2,000 of them is used.
    learned : FitResult
        A fit whose blocks back off.
    prior : Prior
    to_observed_codes : callable, optional
        Converts a batch of the source to the codes of the model, if these differ.
    sample : Batch, optional
        A sample of the training rows, with labels, from which rows are taken without a pass over the source.

    Raises
    ------
    ValueError
        The model was learned by EM, because labels or cells were hidden; give a number.

    References
    ----------
    Petitjean, Buntine, Webb & Zaidi, Accurate parameter estimation for Bayesian network classifiers using hierarchical
    Dirichlet processes, Machine Learning 107 (2018), on learned concentrations.
    """
    model, statistics = learned.model, learned.statistics
    check_exact(model, statistics)
    blocks = tuple(
        _with_own_pseudo_rows(*of_block)
        for of_block in zip(model.blocks, model.parameters, statistics.blocks, strict=True)
    )
    multiplier = _best_multiplier(replace(model, blocks=blocks), source, statistics, prior, to_observed_codes, sample)
    blocks = tuple(with_smoothing(block, lambda smoothing: smoothing.scaled(multiplier)) for block in blocks)
    parameters = tuple(
        block.density.estimate(sums) if block != before else fitted
        for block, before, sums, fitted in zip(blocks, model.blocks, statistics.blocks, model.parameters, strict=True)
    )
    return replace(model, blocks=blocks, parameters=parameters)


def with_smoothing(block: Block, change: Callable[[BackOff], BackOff]) -> Block:
    """Return the block with another smoothing, if it backs off."""
    return replace(block, density=_density_with_smoothing(block.density, change))


def smoothing_in(blocks: Sequence[Block]) -> BackOff | None:
    """Return the smoothing of the first block that has one."""
    densities = (ungrouped(block.density) for block in blocks)
    return next((density.smoothing for density in densities if implements(density, BackingOffDensity)), None)


def _density_with_smoothing(density: Any, change: Callable[[BackOff], BackOff]) -> Any:
    if isinstance(density, Grouped):
        return replace(density, coarse=_density_with_smoothing(density.coarse, change))
    if not implements(density, BackingOffDensity):
        return density
    return replace(cast(Any, density), smoothing=change(density.smoothing))


def _with_own_pseudo_rows(block: Block, parameters: Any, sums: Any) -> Block:
    """Return the block with the pseudo-rows of the greatest leave-one-out likelihood of its cells."""
    density, parameters = ungrouped(block.density), coarse_parameters(parameters)
    if smoothing_in((block,)) is None:
        return block
    sums = sums.coarse if isinstance(block.density, Grouped) else sums
    families = density.counted_families(parameters, sums)
    cells = LeftOutCells.of(families, density.smoothing.alpha, len(block.columns), density.most_parents)
    learned = tuple(map(tuple, cells.learned_pseudo_rows(MODE).tolist()))
    return with_smoothing(block, lambda smoothing: replace(smoothing, of_columns=learned))


def _best_multiplier(
    model: GenerativeModel,
    source: LabelledSource,
    statistics: JointStatistics,
    prior: Prior,
    to_observed_codes: Callable[[Batch], Batch] | None,
    sample: Batch | None,
) -> float:
    """Return the multiplier of all pseudo-rows with the greatest conditional leave-one-out likelihood."""
    n_columns = len(model.schema.columns)
    most = _MOST_FACTORS // (model.n_components * n_columns)
    if _averaged(model) is not None:
        most = _MOST_PRODUCTS // (model.n_components * n_columns**2)
    rows, n_counted = sampled_rows(source, sample, min(_MOST_ROWS, max(1, most)))
    rows = _with_few_gaps(rows)
    labels = rows.assignment
    if labels is None or not len(rows):
        return 1.0
    weight = labels.weight * (n_counted / len(rows))
    labels = replace(labels, weight=np.minimum(labels.weight, 1.0))  # of a row of weight 2 one half is left out
    rows = replace(rows, assignment=labels)
    seen = rows if to_observed_codes is None else replace(to_observed_codes(rows), assignment=labels)
    own = np.arange(len(rows)), labels.component
    log_prior = left_out_prior(prior, statistics, labels)
    log_density = _left_out_densities(model, statistics, seen)
    scores: dict[int, float] = {}

    def score(power: int) -> float:
        if power not in scores:
            multiplier = 2.0**power
            log_joint = log_density(multiplier) + log_prior
            known = ~np.isnan(log_joint).any(axis=1)
            gain = log_joint[own] - log_sum(log_joint)
            scores[power] = float(weight[known] @ gain[known]) + np.log(multiplier) - multiplier
        return scores[power]

    return float(2.0 ** _at_maximum(score))


def _averaged(model: GenerativeModel) -> int | None:
    """Return the block whose density has leave-one-out log densities for a smoothing, but no factors."""
    has = [implements(ungrouped(block.density), AveragedDensity) for block in model.blocks]
    return has.index(True) if any(has) else None


def _left_out_densities(model: GenerativeModel, statistics: JointStatistics, rows: Batch) -> Callable[[float], Array]:
    """Return the function from a multiplier to log p(x | z) in nats, (n, Z), of each row under the model without it."""
    averaged = _averaged(model)
    if averaged is None:

        def sum_of_factors(multiplier: float) -> Array:
            blocks = tuple(with_smoothing(block, lambda one: one.scaled(multiplier)) for block in model.blocks)
            factors = left_out_factors(replace(model, blocks=blocks), statistics, rows, refit=False)
            return np.asarray(clip_log_factors(factors).sum(axis=2))

        return sum_of_factors
    block, sums = model.blocks[averaged], statistics.blocks[averaged]
    others = left_out_factors(model, statistics, rows, refit=False, skip=averaged).sum(axis=2)
    tile = block.tile(unseen_as_missing(model, statistics, rows))
    if isinstance(block.density, Grouped):
        sums, tile = sums.coarse, model.parameters[averaged].groups.coarse(tile)
    density: Any = ungrouped(block.density)
    log_density = density.left_out_density(sums, tile, rows.assignment)
    return lambda multiplier: log_density(density.smoothing.scaled(multiplier)) + others


def _with_few_gaps(rows: Batch) -> Batch:
    """Return the complete rows if they are half of all, for which leaving out is fastest; otherwise about 200 rows.

    A row is complete if it has a cell in every column in which any row has one.
    """
    present = rows.codes.values > 0
    complete = (present | ~present.any(axis=0)).all(axis=1)
    labels = rows.assignment
    assert labels is not None
    chosen = (
        np.flatnonzero(complete)
        if 2 * complete.sum() >= len(rows)
        else np.arange(0, len(rows), max(1, len(rows) // _FEW_ROWS))
    )
    return replace(rows.rows(chosen), assignment=labels.rows(chosen))


def _at_maximum(score: Callable[[int], float]) -> float:
    """Return where the parabola through the best of `POWERS` and its neighbours is greatest.

    The neighbours of the best of every second power are tried, then their neighbours while the score rises.
    """
    best = max(POWERS[1::2], key=score)
    while abs(best) < FARTHEST and (higher := max(best, best - 1, best + 1, key=score)) != best:
        best = higher
    before, here, after = score(best - 1), score(best), score(best + 1)
    if not np.isfinite([before, here, after]).all():  # no row is possible without itself
        return best
    curvature = before - 2.0 * here + after
    return best + (0.5 * (before - after) / curvature if curvature < 0 else 0.0)
