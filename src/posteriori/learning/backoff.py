"""The strength of back-off, learned from leave-one-out posteriors of the training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.densities import BackOff, Grouped, ungrouped
from posteriori.learning.em import FitResult
from posteriori.learning.leave_one_out import check_closed_form, left_out_factors, left_out_prior
from posteriori.learning.log_linear import FLOOR
from posteriori.learning.weights import sampled_rows
from posteriori.model import Block, GenerativeModel, Prior, log_sum
from posteriori.sources import LabelledSource
from posteriori.tables import Batch
from posteriori.typing import Array

STRENGTHS = tuple(2.5 * 2.0**power for power in range(-2, 7))  # pseudo-rows: 0.6, 1.25, 2.5, … 160
_MOST_ROWS = 2000
_MOST_FACTORS = 1 << 18  # rows times components times columns


def learn_backoff(
    source: LabelledSource,
    learned: FitResult,
    prior: Prior,
    to_observed_codes: Callable[[Batch], Batch] | None = None,
    sample: Batch | None = None,
) -> GenerativeModel:
    r"""Return the model whose back-off has the greatest conditional leave-one-out likelihood.

    .. math:: \hat s = \operatorname*{argmax}_s \sum_i w_i \log p_{-i}(y_i \mid x_i; s) + \log s - s / 10

    p₋ᵢ is the model without row i, in closed form: 1 is subtracted from the counts of the row. The last two terms are
    the logarithm of a Gamma(2, 10) prior, whose mode is the default of 10 pseudo-rows. The likelihood is that of the
    class, because the strength that predicts the features best leaves the class over-confident. The sum is evaluated at
    nine strengths, each the double of the last, and its maximum is that of the parabola through the best three.

    Parameters
    ----------
    source : LabelledSource
        The training rows, with labels. A stratified subsample of at most 2,000 of them is used.
    learned : FitResult
        A fit whose blocks back off with any strength.
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
    check_closed_form(model, statistics)
    most = min(_MOST_ROWS, max(1, _MOST_FACTORS // (model.n_components * len(model.schema.columns))))
    rows, n_counted = sampled_rows(source, sample, most)
    rows = _with_few_gaps(rows)
    labels = rows.assignment
    if labels is None or not len(rows):
        return model
    seen = rows if to_observed_codes is None else replace(to_observed_codes(rows), assignment=labels)
    own = np.arange(len(rows)), labels.component
    weight = labels.weight * (n_counted / max(len(rows), 1))
    log_prior = left_out_prior(prior, statistics, labels)
    scores = []
    for strength in STRENGTHS:
        trial = replace(model, blocks=tuple(with_strength(block, strength) for block in model.blocks))
        factors = left_out_factors(trial, statistics, seen, refit=False)
        known = ~np.isnan(factors.sum(axis=(1, 2)))
        log_joint = np.maximum(factors, FLOOR).sum(axis=2) + log_prior
        gain = log_joint[own] - log_sum(log_joint)
        scores.append(float(weight[known] @ gain[known]) + np.log(strength) - strength / 10.0)
    strength = _at_maximum(np.array(scores))
    blocks = tuple(with_strength(block, strength) for block in model.blocks)
    parameters = tuple(
        block.density.estimate(sums) if block != before else fitted
        for block, before, sums, fitted in zip(blocks, model.blocks, statistics.blocks, model.parameters, strict=True)
    )
    return replace(model, blocks=blocks, parameters=parameters)


def with_strength(block: Block, strength: float) -> Block:
    """Return the block with another strength of its back-off, if it backs off."""
    return replace(block, density=_density_with_strength(block.density, strength))


def strength_of(block: Block) -> float | None:
    """Return the strength of the back-off of a block; None if it does not back off."""
    smoothing = getattr(ungrouped(block.density), "smoothing", None)
    return smoothing.strength if isinstance(smoothing, BackOff) else None


def _density_with_strength(density: Any, strength: float) -> Any:
    if isinstance(density, Grouped):
        return replace(density, coarse=_density_with_strength(density.coarse, strength))
    smoothing = getattr(density, "smoothing", None)
    if not isinstance(smoothing, BackOff):
        return density
    return replace(density, smoothing=replace(smoothing, strength=strength))


def _with_few_gaps(rows: Batch) -> Batch:
    """Return the complete rows if they are half of all, for which leaving out is fastest; otherwise a tenth of all."""
    complete = (rows.codes.values > 0).all(axis=1) if rows.codes.values.size else np.ones(len(rows), np.bool_)
    labels = rows.assignment
    assert labels is not None
    chosen = np.flatnonzero(complete) if 2 * complete.sum() >= len(rows) else np.arange(0, len(rows), 10)
    return replace(rows.rows(chosen), assignment=labels.rows(chosen))


def _at_maximum(scores: Array) -> float:
    """Return the strength at the maximum of the parabola through the best of `STRENGTHS` and its neighbours."""
    best = int(scores.argmax())
    steps = np.log(np.array(STRENGTHS))
    if not 0 < best < len(scores) - 1:
        return float(STRENGTHS[best])
    before, here, after = scores[best - 1 : best + 2]
    curvature = before - 2.0 * here + after
    shift = 0.5 * (before - after) / curvature if curvature < 0 else 0.0
    return float(np.exp(steps[best] + shift * (steps[1] - steps[0])))
