"""The way of a fit of a pool: rows, candidates, their fits in folds, weights, and what is evaluated, each a value."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.fitting.estimate_warnings import warn_of_empty_columns
from posteriori.fitting.fitted import TrainingRecord
from posteriori.fitting.learn import fitted_of
from posteriori.fitting.recipe import Recipe
from posteriori.learning.fit import learn_from_all
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folded_data import MOST_EVALUATED_BY_ALL, FoldedData, held_out_rows, sample_of
from posteriori.learning.folds import rows_in_folds
from posteriori.learning.held_out_scores import score_batch
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.residual_trees import fit_residual
from posteriori.learning.work_bounds import POOLING, affordable_folds, fitting_steps, total_work
from posteriori.model import FLOOR, GenerativeModel, Pool, Posterior, clip_log_posteriors
from posteriori.model.class_priors import check_priors
from posteriori.model.pool import WHOLE
from posteriori.model_cost import ROWS_OF_RESIDUAL, Language
from posteriori.model_selection.held_out_predictions import HeldOut, results_of
from posteriori.model_selection.metrics import loss_difference, scores_of
from posteriori.pool.budget import TimeBudget, fit_within
from posteriori.pool.candidates import (
    RESIDUAL,
    USUAL_FOLDS,
    CandidateFits,
    CandidateFitter,
    Candidates,
    candidates_of,
    typical_weights,
    warn_of_left_out,
)
from posteriori.pool.held_out_sample import HeldOutSample
from posteriori.pool.parameters import FEW_ROWS, Data, PoolParameters
from posteriori.pool.partial_rows import CrossFittedMembers, fit_partial_rows
from posteriori.pool.rows import PoolRows, read_pool_rows
from posteriori.pool.trials import FEWEST_TRIED, cost_of_leaving_out, try_costly
from posteriori.pool.value import FittedPool
from posteriori.registry import MODELS, find_language
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.progress import plan_steps, start_progress, step, without_passes
from posteriori.user_warnings import warn

_POOL = "pool"
_MOST_REPEATS = 3
_JUDGED = (400, 5000)  # rows that judge the trees on what the members leave, at least and at most
_FEWEST_FOLDS, _SHARES = 3, (0.05, 0.4)  # of groups: how many, the least of any, and the greatest that is kept apart
_FIRST = 0.5  # of a time budget, for the members before all rows are learned from
_SUREST = np.log(1e-6)  # the least log p of a class that they start from


def fit(recipe: Recipe, data: Data, progress: Callable[[int], None] | None = None) -> FittedPool:
    """Return the pool of the candidates that suit a table, weighed by their held-out predictions.

    Parameters
    ----------
    recipe : Recipe
        Of a `GenerativeClassifier`.
    data : Data
    progress : callable, optional
        Called with the number of rows of each finished batch.
    """
    begun, asked = time.monotonic(), PoolParameters.of(recipe)
    read = read_pool_rows(recipe, data)
    folded = _in_folds(asked, read, data)
    candidates = candidates_of(asked, folded, read.summary, read.common)
    folded = _with_affordable_folds(asked, folded, candidates)
    shape = folded.source.table.n_rows, len(folded.source.schema.columns)
    plan_steps(fitting_steps(*shape, len(folded.evaluated), len(candidates.recipes), folded.folds))
    residual, candidates = candidates.apart() if asked.weighs else (None, candidates)
    if residual is not None and (reason := _reason_against_parts(asked, folded)) is not None:
        residual, candidates = None, replace(candidates, declined=candidates.declined | {RESIDUAL: reason})
    folded, whole = (folded, None) if residual is None else _apart(asked, folded)
    fitter = CandidateFitter(folded, _repeats(asked, folded), sample_of(folded), progress)
    grows_twice = whole is not None and asked.language is None
    judged = candidates.with_fewer_trees(folded.n_labelled) if grows_twice else candidates
    seconds = (asked.time_budget or 0.0) * (_FIRST if whole is not None else 1.0)
    chosen = _chosen(asked, fitter, judged, TimeBudget(seconds, begun))
    if grows_twice and asked.time_budget is None:
        chosen = replace(chosen, fits=chosen.fits.with_trees_of(candidates))
    warn_of_left_out(candidates.too_costly, chosen.fits.failed)
    # Many products of short rows, for which threads cost more than they save.
    with step(POOLING), one_blas_thread():
        start_progress(POOLING, 1)
        weights = _weigh(asked, chosen.fits, fitter)
        if residual is not None and whole is not None:
            apart = _Apart.of(whole, weights.fits)
            budget = TimeBudget(np.inf if asked.time_budget is None else asked.time_budget, begun)
            late = budget.left() <= 0
            found = None if late else _with_residual(weights, apart, residual, budget)
            chosen = _without_residual(asked, chosen, weights, apart, found, late=late)
            weights = _with_all_rows(weights, apart) if found is None or RESIDUAL in chosen.skipped else found
        weights = _with_partial(asked, weights, read)
        evaluated = _evaluate(asked, read, weights)
        pool = _value(recipe, read, weights, evaluated)
    first = chosen.fits.fitted[0].full
    warn_of_empty_columns(first.model, first.statistics)
    members = {name: replace(one, classes_closed=data.classes is not None) for name, one in pool.members.items()}
    skipped = candidates.skipped | chosen.skipped | chosen.fits.failed
    return replace(pool, members=members, skipped=skipped, language_note=chosen.note)


# Rows in folds -----------------------------------------------------------------------------------------------------


def _in_folds(asked: PoolParameters, read: PoolRows, data: Data) -> FoldedData:
    """Return the rows in folds, which depend on their cells and labels, and not on their order."""
    origin = read.rows.origin
    folded = FoldedData.of(
        read.rows,
        asked.folds,
        groups=data.groups if data.groups is None or origin is None else np.asarray(data.groups)[origin],
        random_state=asked.seed,
        at_most=True,
        most=MOST_EVALUATED_BY_ALL,
    )
    return folded.dealt_by_cells(asked.seed)


def _with_affordable_folds(asked: PoolParameters, folded: FoldedData, candidates: Candidates) -> FoldedData:
    """Return the rows in fewer folds, with a warning, if cross-validation exceeds the memory; announce what is long."""
    if asked.time_budget is not None:
        return folded
    by_name = candidates.plans(folded)
    plans, counts = list(by_name.values()), (folded.source.schema, folded.work_counts)
    work = total_work(plans, *counts)
    reason = work.reason_too_much()
    if reason is None:
        what = f"the fit of {len(plans)} candidates with {folded.folds:,} folds"
        costly = _costly(asked, candidates)
        if 0 < len(costly) < len(plans):
            share = 1.0 - total_work([by_name[name] for name in costly], *counts).seconds / work.seconds
            what += f" ({share:.0%} of it if a trial shows that forests are of no use)"
        work.announce(what, "name fewer members, ask for fewer folds or set time_budget")
        return folded
    few = folded.folds <= USUAL_FOLDS
    fewer = 0 if few else affordable_folds(plans, *counts)
    if fewer == 0:
        return folded  # `cross_fit` says why
    warn(f"folds is reduced from {folded.folds:,} to {fewer:,}: {reason}")
    return folded.dealt(fewer, asked.seed)


def _repeats(asked: PoolParameters, folded: FoldedData) -> list[FoldedData]:
    """Return other assignments of few rows to folds: the predictions of one assignment depend on chance."""
    n_repeats = min(-(-FEW_ROWS // folded.n_labelled), _MOST_REPEATS)
    return [folded.dealt(folded.folds, asked.seed + r) for r in range(1, n_repeats)]


# Candidates and their fits -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chosen:
    """The candidates of a pool, fitted."""

    fits: CandidateFits
    skipped: dict[str, str]  # why others are left out
    note: str = ""  # what is left out for the language of the pool, and what that costs


def _chosen(asked: PoolParameters, fitter: CandidateFitter, candidates: Candidates, budget: TimeBudget) -> _Chosen:
    """Fit the candidates that are of use, or those that time allows, and keep those that the language can hold."""
    language = None if asked.language is None else _readable_by(asked.language, fitter.folded.source.schema)
    if asked.time_budget is not None:
        chosen = _within_time(asked, fitter, candidates, budget)
    else:
        chosen = _useful(asked, fitter, candidates, language)
    return chosen if language is None else _written_in(asked, language, chosen, fitter.folded)


def _costly(asked: PoolParameters, candidates: Candidates) -> dict[str, Recipe]:
    """Return the candidates that are tried before they are fitted to all rows."""
    return {name: one for name, one in candidates.recipes.items() if asked.selects and MODELS[name].is_costly}


def _within_time(asked: PoolParameters, fitter: CandidateFitter, candidates: Candidates, budget: TimeBudget) -> _Chosen:
    """Fit the candidates for which there is time, the cheap ones first; of these, numbers per cell take longest."""
    costly = _costly(asked, candidates)
    plans = candidates.plans(fitter.folded)
    in_turn = sorted(candidates.recipes.items(), key=lambda pair: plans[pair[0]].learns_cells)
    cheap = {name: one for name, one in in_turn if name not in costly}
    fits, skipped = fit_within(budget, fitter, cheap | costly)
    return _Chosen(fits.in_order(candidates.recipes), skipped)


def _useful(
    asked: PoolParameters, fitter: CandidateFitter, candidates: Candidates, language: Language | None
) -> _Chosen:
    """Fit the cheap candidates, and those of the costly ones that are of use."""
    folded, recipes, costly = fitter.folded, candidates.recipes, _costly(asked, candidates)
    cheap = {name: one for name, one in recipes.items() if name not in costly}
    if not cheap or not costly or len(folded.y_true) < FEWEST_TRIED:
        return _Chosen(fitter.fit(recipes), {})
    fits, note = fitter.fit(cheap), ""
    trial = try_costly(costly, fits, folded, asked.penalty_on(folded))
    if language is not None:
        taken = candidates.reserved + sum(language.size(one.full.model) for one in fits.fitted)
        trial, note = trial.with_room(language, taken, folded.source.table.n_rows, folded.folds)
    if trial.kept:
        fits = fits.joined(fitter.fit(trial.kept)).in_order(recipes)
    return _Chosen(fits, trial.skipped, note)


def _readable_by(name: str, schema: Schema) -> Language:
    """Return the language of a pool; ValueError if it cannot read some column."""
    language = find_language(name)
    for column in schema.columns:
        reason = language.reason_against_column(column)
        if reason is not None:
            of_table = column.name if column.part is None else column.part.of
            raise ValueError(f"column {of_table!r} {reason}; leave it out (--ignore of posteriori fit)")
    return language


def _written_in(asked: PoolParameters, language: Language, chosen: _Chosen, folded: FoldedData) -> _Chosen:
    """Return the candidates that a language can hold; state what the others are worth."""
    fits = chosen.fits
    models = {name: one.full.model for name, one in zip(fits.recipes, fits.fitted, strict=True)}
    reasons = language.reasons_against(models)
    if not reasons:
        return chosen
    sentences = [f"{name!r} is left out: {reason}" for name, reason in reasons.items()]
    if len(reasons) == len(models):
        raise ValueError(f"no candidate can be written in {asked.language}: {'; '.join(sentences)}")
    loss, risen, error = cost_of_leaving_out(fits, reasons, folded, asked.penalty_on(folded))
    note = _noted(chosen.note, *sentences, _cost(loss, risen, error))
    kept = fits.in_order([name for name in fits.recipes if name not in reasons])
    return _Chosen(kept, chosen.skipped | reasons, note)


def _cost(loss: float, risen: float, error: float) -> str:
    """Return by how much the log-loss rises without a member, in a sentence."""
    return f"the log-loss of the pool, {loss:.4f}, is higher by {risen:.4f} ± {error:.4f} for it"


def _noted(*sentences: str) -> str:
    return "; ".join(filter(None, sentences))


# Weights -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Weights:
    """The weights of the candidates, fitted to their held-out predictions of all folds, and without each fold."""

    fits: CandidateFits
    fitter: CandidateFitter
    learned: HeldOutSample  # the predictions of all assignments to folds
    pool: Pool
    of_folds: list[Pool]

    @property
    def log_posterior(self) -> Array:
        """The predictions of the first assignment, (m, C, M)."""
        return self.learned.log_posterior[: len(self.fitter.folded.y_true)]


def _weigh(asked: PoolParameters, fits: CandidateFits, fitter: CandidateFitter) -> _Weights:
    """Fit the weights of the pool for whole rows, and those without each fold."""
    folded, typical = fitter.folded, typical_weights(fits.recipes.values())
    learned = _held_out_sample(fits.log_posterior, folded)
    fold = np.tile(folded.fold, 1 + len(fitter.repeats))
    pool = _pool_of(asked, learned, folded, typical)
    of_folds = [_pool_of(asked, learned.of_rows(fold != k), folded, typical, pool) for k in range(folded.folds)]
    return _Weights(fits, fitter, learned, pool, of_folds)


def _with_partial(asked: PoolParameters, weights: _Weights, read: PoolRows) -> _Weights:
    """Return the weights with those of partial rows, which are alike for all folds."""
    fits, fitter, pool = weights.fits, weights.fitter, weights.pool
    folded = fitter.folded
    with np.errstate(divide="ignore"):  # a class of partial_fit may have no row yet
        log_prior = np.log(read.prior)
    gaps_tell = asked.missing == "informative" and read.summary.has_gaps
    fades = asked.weighs and not gaps_tell  # where gaps are evidence, no row is partial
    members, penalty = CrossFittedMembers(fits.fitted, folded.source.n_jobs), asked.penalty_on(folded)
    partial = fit_partial_rows(members, fits.batch, folded, fitter.sampled, pool, penalty, log_prior, fades=fades)
    of_folds = [replace(one, partial=partial) for one in weights.of_folds]
    return replace(weights, pool=replace(pool, partial=partial), of_folds=of_folds)


def _pool_of(
    asked: PoolParameters, sample: HeldOutSample, folded: FoldedData, typical: Array, start: Pool | None = None
) -> Pool:
    """Return the pool that held-out predictions of the members determine."""
    if not asked.weighs:
        return sample.best()
    penalty = asked.penalty_on(folded)
    if start is not None and folded.most_are_in_no_fold:
        return sample.weighed_again(penalty, typical, start)
    pool = sample.weighed(penalty, typical, start)
    return sample.pruned(penalty, typical, pool) if folded.most_are_in_no_fold else pool


def _held_out_sample(log_posterior: Array, folded: FoldedData) -> HeldOutSample:
    """Return the predictions of all assignments to folds, in which each row has its weight in total."""
    n_repeats = len(log_posterior) // len(folded.y_true)
    return HeldOutSample(
        log_posterior, np.tile(folded.y_true, n_repeats), np.tile(folded.weight / n_repeats, n_repeats)
    )


# What the members leave ---------------------------------------------------------------------------------------------


def _reason_against_parts(asked: PoolParameters, folded: FoldedData) -> str | None:
    """Return why no rows can be kept from the members to judge trees; None if they can."""
    n = len(folded.y_true)
    if asked.selects and n < ROWS_OF_RESIDUAL:
        return f"what the others leave shows in rows kept from them, and {n:,} rows have a label and a weight"
    if folded.group is None:
        return None
    shares = np.bincount(folded.fold) / n
    if folded.folds >= _FEWEST_FOLDS and shares.min() >= _SHARES[0] and folded.share_apart(_share(n)) <= _SHARES[1]:
        return None
    listed = ", ".join(f"{share:.0%}" for share in shares.tolist())
    return f"a fold of groups would have to be kept from the others, and they have {listed} of the rows"


def _share(n: int) -> float:
    """Return the share of n rows that is kept from the members: a tenth, but 400 to 5,000 rows, a quarter at most."""
    return min(float(np.clip(n / 10, *_JUDGED)) / n, 0.25)


def _apart(asked: PoolParameters, folded: FoldedData) -> tuple[FoldedData, FoldedData]:
    """Return the rows without those that judge the trees on what the members leave, and all rows, these in a fold."""
    return folded.apart(_share(len(folded.y_true)), asked.seed)


@dataclass(frozen=True)
class _Apart:
    """Rows from which no member has learned, with what the members predict of them, and the members of all rows."""

    whole: FoldedData  # all rows; those apart are in its one fold
    fitted: list[CrossFitted]  # without the fold they are the members of the other rows
    batch: Batch  # the cells of the rows apart
    log_posterior: Array  # (m, C, M): of the rows apart, in nats, clipped

    @classmethod
    def of(cls, whole: FoldedData, fits: CandidateFits) -> _Apart:
        """Predict the rows apart, and learn from all rows."""
        plans = [one.plan(whole.source.schema, whole.target) for one in fits.recipes.values()]
        source, former = whole.source.cached(), [one.full for one in fits.fitted]
        fitted = [
            CrossFitted(full, (ObservedCategoriesModel(known.model.schema, known.model, (), known.statistics),))
            for full, known in zip(learn_from_all(source, plans, former), former, strict=True)
        ]
        batch = rows_in_folds(source.with_folds(whole.fold_of_rows))
        found = score_batch(batch, fitted, source.n_jobs, 0)
        return cls(whole, fitted, batch, clip_log_posteriors(found))


def _with_all_rows(weights: _Weights, apart: _Apart) -> _Weights:
    """Return the weights with members that have learned from all rows."""
    fitted = [replace(one, full=of_all.full) for one, of_all in zip(weights.fits.fitted, apart.fitted, strict=True)]
    return replace(weights, fits=replace(weights.fits, fitted=fitted))


def _with_residual(weights: _Weights, apart: _Apart, recipe: Recipe, budget: TimeBudget) -> _Weights | None:
    """Return the weights with trees on what the members leave as one more member, of weight 1; None if none is of use.

    The evaluated rows are those that were apart, from here on.
    """
    whole, folded = apart.whole, weights.fitter.folded
    rows = np.flatnonzero(whole.fold == 0)
    held_out, others = np.empty((len(whole.y_true), whole.target.cardinality)), np.flatnonzero(whole.fold < 0)
    held_out[rows] = weights.pool.log_posterior(apart.log_posterior)
    for k, pool in enumerate(weights.of_folds):
        mine = folded.fold == k
        held_out[others[mine]] = pool.log_posterior(weights.log_posterior[mine])
    plan = recipe.plan(whole.source.schema, whole.target)
    started = time.monotonic()

    def has_time() -> bool:
        return budget.left() > time.monotonic() - started

    fitted = fit_residual(whole, plan, np.maximum(held_out, _SUREST), has_time)
    if fitted is None:
        return None
    judged = whole.chosen(rows)
    of_trees = clip_log_posteriors(score_batch(apart.batch, [fitted], whole.source.n_jobs, 0))
    sampled = sample_of(judged)
    fits = CandidateFits(
        weights.fits.recipes | {RESIDUAL: recipe},
        np.concatenate([apart.log_posterior, of_trees], axis=2),
        [*apart.fitted, fitted],
        apart.batch.rows(sampled),
        weights.fits.failed,
    )
    pool, without = (_with_trees(weights.pool, one.model) for one in (fitted.full, fitted.without[0]))
    fitter = replace(weights.fitter, folded=judged, repeats=(), sampled=sampled)
    return _Weights(fits, fitter, _held_out_sample(fits.log_posterior, judged), pool, [without])


def _with_trees(pool: Pool, model: GenerativeModel) -> Pool:
    """Return the pool with one more member of weight 1, without its prior: the trees begin at the scores of the others.

    What their roots add is a bias.
    """
    bias = pool.bias - np.maximum(model.class_log_prior, FLOOR) + model.parameters[0].constant
    return replace(pool, weight=np.append(pool.weight, 1.0), bias=bias)


def _without_residual(
    asked: PoolParameters, chosen: _Chosen, weights: _Weights, apart: _Apart, joined: _Weights | None, *, late: bool
) -> _Chosen:
    """Return the candidates with the reason against trees on what the members leave, if there is one."""
    if joined is None:
        reason = "no tree predicts better the rows that it has not seen"
        if late:
            reason = f"too little time is left of the budget of {asked.time_budget:g} s"
        return replace(chosen, skipped=chosen.skipped | {RESIDUAL: reason})
    if asked.language is None:
        return chosen
    language, models = find_language(asked.language), [fitted.full.model for fitted in joined.fits.fitted]
    reasons = language.reasons_against({RESIDUAL: models[-1]}, sum(map(language.size, models[:-1])))
    if not reasons:
        return chosen
    judged = joined.fitter.folded
    without, together = (
        weights.pool.log_posterior(apart.log_posterior),
        joined.of_folds[0].log_posterior(joined.log_posterior),
    )
    risen, error = loss_difference(judged.y_true, np.exp(without), np.exp(together), judged.weight)
    loss = -float(judged.weight @ without[np.arange(len(without)), judged.y_true] / judged.weight.sum())
    note = _noted(chosen.note, f"{RESIDUAL!r} is left out: {reasons[RESIDUAL]}", _cost(loss, risen, error))
    return replace(chosen, skipped=chosen.skipped | reasons, note=note)


# What is evaluated, and the value -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Evaluated:
    """The out-of-fold predictions of the pool, and the scores of every candidate and of the pool."""

    out_of_fold: HeldOut
    results: dict[str, list[str | float | None]]


def _evaluate(asked: PoolParameters, read: PoolRows, weights: _Weights) -> _Evaluated:
    """Judge the candidates and the pool, each row by the weights without its fold."""
    folded, log_posteriors, ratio = weights.fitter.folded, weights.log_posterior, read.log_prior_ratio
    parts = _parts_of(folded, weights.pool) if read.summary.has_gaps else None
    pooled = np.empty(log_posteriors.shape[:2])
    for k, others in enumerate(weights.of_folds):
        held_out = folded.fold == k
        pooled[held_out] = others.moved(ratio).log_posterior(
            log_posteriors[held_out], None if parts is None else parts[held_out]
        )
    out_of_fold = results_of(folded, pooled, weights.fits.fitted[0])
    if asked.priors is not None:
        moved = Pool(np.ones(1), ratio)
        each = [moved.log_posterior(one[:, :, np.newaxis]) for one in np.moveaxis(log_posteriors, 2, 0)]
        log_posteriors = np.stack(each, axis=2)
        given = np.exp(np.log(check_priors(asked.priors, folded.target)))
        out_of_fold = replace(out_of_fold, prior=np.broadcast_to(given, pooled.shape))
    return _Evaluated(out_of_fold, _results(weights, log_posteriors, pooled, out_of_fold.prior))


def _results(
    weights: _Weights, log_posteriors: Array, pooled: Array, prior: Array
) -> dict[str, list[str | float | None]]:
    """Return the scores of every candidate and of the pool, as a table."""
    folded, weight = weights.fitter.folded, weights.pool.weight
    each = [*np.exp(np.moveaxis(log_posteriors, 2, 0)), np.exp(pooled)]
    found = [scores_of(folded.y_true, one, folded.weight, prior, folded.fold) for one in each]
    results: dict[str, list[str | float | None]] = {
        "member": [*weights.fits.recipes, _POOL],
        "weight": [*weight.tolist(), float(weight.sum())],
    } | {name: [one[name] for one in found] for name in found[0]}
    above = [loss_difference(folded.y_true, one, each[-1], folded.weight) for one in each]
    results["log_loss_above_pool"] = [difference for difference, _ in above]
    results["log_loss_above_pool_se"] = [error for _, error in above]
    return results


def _parts_of(folded: FoldedData, pool: Pool) -> Array | None:
    """Return the parts of the evaluated rows, (m, 4), by one pass over all; None if all are whole."""
    if pool.fading is None:
        return None

    def of_batch(batch: Batch) -> Array:
        parts = pool.parts(batch)
        return np.tile(WHOLE, (len(batch), 1)) if parts is None else parts

    with without_passes():
        return folded.source.map(of_batch)[folded.evaluated]


def _value(recipe: Recipe, read: PoolRows, weights: _Weights, evaluated: _Evaluated) -> FittedPool:
    """Return the pool of the members that have a weight, and what is known of the rows."""
    fits, pool, target, ratio = weights.fits, weights.pool, weights.fitter.folded.target, read.log_prior_ratio
    kept = np.flatnonzero(pool.used).tolist()
    names = list(fits.recipes)
    unlabelled = read.rows.source.unlabelled_weight
    assert pool.partial is not None
    # Figures of a copy, which does not keep the posteriors beside their logs.
    record = TrainingRecord(
        figures=replace(evaluated.out_of_fold).figures, posteriors=evaluated.out_of_fold.record()
    ).with_held_out(
        held_out_rows(
            weights.fitter.folded, weights.fitter.sampled, fits.batch, _posteriors(fits.fitted, weights.of_folds)
        )
    )
    return FittedPool(
        recipe,
        target,
        {names[m]: fitted_of(fits.recipes[names[m]], fits.fitted[m].full, target, unlabelled) for m in kept},
        {names[m]: float(pool.weight[m]) for m in kept},
        pool.bias + ratio,
        {names[m]: float(pool.partial.weight[m]) for m in kept},
        pool.partial.bias + ratio,
        {names[m]: float(pool.partial.nothing_weight[m]) for m in kept},
        pool.partial.nothing_bias + ratio,
        pool.partial.cells,
        read.prior,
        float(recipe.labels.unlabelled_weight),
        evaluated.results,
        out_of_fold=evaluated.out_of_fold,
        held_out_sample=weights.learned.of_members(kept).reduced(),
        record=record,
    )


def _posteriors(fitted: Sequence[CrossFitted], pools: Sequence[Pool]) -> list[Posterior]:
    """Return the posterior of each fold: members with positive weight and their pool, fitted without the fold."""
    posteriors = []
    for k, pool in enumerate(pools):
        kept = np.flatnonzero(pool.used)
        members = [fitted[m].without[k] for m in kept.tolist()]
        models, readers = zip(*[(one.model, one.to_observed_codes) for one in members], strict=True)
        posteriors.append(Posterior(models, pool.of_members(kept), readers=readers))
    return posteriors
