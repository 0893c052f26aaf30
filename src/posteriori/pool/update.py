"""Updates of a fitted pool: rows added and removed, and pools merged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from posteriori.fitting import merge as fitted_models
from posteriori.fitting import update as fitted_model
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.further_dates import warn_of_further_dates
from posteriori.fitting.rows import read_further_rows
from posteriori.fitting.update import reason_not_extendable, reason_not_mergeable
from posteriori.learning.fit import TrainingRows
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.importance import HeldOutRows, most_rows
from posteriori.model import FLOOR, Pool, Posterior, log_posteriors_alone
from posteriori.model.class_priors import log_prior_ratio
from posteriori.pool.candidates import RESIDUAL, typical_weights
from posteriori.pool.held_out_sample import MOST_KEPT, HeldOutSample, places_of
from posteriori.pool.members import (
    reason_of_cells,
    updated,
    with_common_backoff,
    with_feature_weights,
    without_feature_weights,
)
from posteriori.pool.parameters import Data, PoolParameters
from posteriori.pool.partial_rows import bias_of_nothing, merged_cells
from posteriori.pool.value import FittedPool
from posteriori.sources.source import LabelledSource
from posteriori.support.typing import Array
from posteriori.tables import Column
from posteriori.tables.batch import joined
from posteriori.user_warnings import each_once, warn, warn_of_missing_targets


def add(pool: FittedPool, data: Data) -> FittedPool:
    """Return a pool whose members have learned from more rows, with weights of held-out predictions if they suffice."""
    pool.recipe.check()
    pool = _with_order(pool)
    new, held_out = _predicted_before(pool, data)

    def learn(member: Fitted) -> Fitted:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return fitted_model.add(member, data.X, data.y, data.sample_weight, data.classes)

    members, unable = updated(pool.members, reason_not_extendable, learn)
    past, target = pool.target, next(iter(members.values())).target
    sample = pool.held_out_sample
    if sample is None:
        sample = HeldOutSample.empty(len(past.categories), len(pool.members))
    sample = sample.of_classes(past, target).joined(new)
    kept = [m for m, name in enumerate(pool.members) if name in members]
    found = _with_members(pool, members, unable, sample.of_members(kept))
    record = pool.record.of_other_model()
    return replace(found, record=record if held_out is None else record.with_held_out(held_out))


def remove(pool: FittedPool, data: Data) -> FittedPool:
    """Return a pool whose members have not learned from some rows; its weights stay."""
    with each_once():
        members, unable = updated(
            pool.members,
            lambda member: reason_not_mergeable(member, "unlearn", "fit the remaining rows"),
            lambda member: fitted_model.remove(member, data.X, data.y, data.sample_weight),
        )
    return replace(_with_members(pool, members, unable, None), record=pool.record.of_other_rows())


def merge(pools: Sequence[FittedPool]) -> FittedPool:
    """Return the pool of the merged members; weights and biases are means over the pools, weighted by their rows.

    Members that are not in every pool, or that cannot be merged, leave the pool with a warning, and the weights of the
    others are multiplied so that their sum stays.

    Parameters
    ----------
    pools : sequence of FittedPool
        Of equal parameters.

    Raises
    ------
    ValueError
        No member can be merged; the message lists the reasons.
    """
    rows = np.array([pool.first.class_count.sum() for pool in pools])
    shares = (rows / rows.sum() if rows.any() else np.full(len(rows), 1.0 / len(rows))).tolist()
    members, unable = _merged_members(pools, shares)
    recipe, target = pools[0].recipe, next(iter(members.values())).target
    prior = class_shares(members)
    ratio = log_prior_ratio(recipe.parameters["priors"], target, prior)
    bias = -_taken_away(members) + sum(
        share * moved_bias(pool.bias - pool.log_prior_ratio + _taken_away(pool.members), pool.target, target)
        for share, pool in zip(shares, pools, strict=True)
    )
    partial = rescaled(_mean_weights([pool.partial_weights for pool in pools], shares), list(members))
    nothing = _of_nothing(_mean_weights([pool.nothing_weights for pool in pools], shares), members, partial)
    warn_of_unable(unable)
    merged = FittedPool(
        recipe,
        target,
        members,
        rescaled(_mean_weights([pool.weights for pool in pools], shares), list(members)),
        bias + ratio,
        partial,
        _bias_of_nothing(members, partial, prior, ratio),
        nothing,
        _bias_of_nothing(members, nothing, prior, ratio),
        merged_cells([pool.known_cells for pool in pools], shares),
        prior,
    )
    return merged.with_record(target_cuts=fitted_models.common_cuts(pools))


def _merged_members(pools: Sequence[FittedPool], shares: Sequence[float]) -> tuple[dict[str, Fitted], dict[str, str]]:
    """Return the members of all pools, merged, and why others leave; ValueError if none stays."""
    members: dict[str, Fitted] = {}
    unable: dict[str, str] = {}
    for name in dict.fromkeys(name for pool in pools for name in pool.members):
        if not all(name in pool.members for pool in pools):
            unable[name] = "not every pool has it"
            continue
        each = [pool.members[name] for pool in pools]
        reason = reason_of_cells(each[0])
        if reason is not None:
            unable[name] = reason
            continue
        try:
            merged = fitted_models.merge(with_common_backoff([without_feature_weights(one) for one in each]))
        except (TypeError, ValueError) as error:
            unable[name] = str(error)
            continue
        members[name] = with_feature_weights(merged, each, shares)
    if not members:
        listed = "; ".join(f"{name}: {reason}" for name, reason in unable.items())
        raise ValueError(
            f"no member of these pools can be merged ({listed}); fit all rows together, or fit pools of members whose "
            "structure does not depend on the rows, such as GaussianDiscriminant, or NaiveBayes with bins=[…]"
        )
    return members, unable


def _mean_weights(each: Sequence[Mapping[str, float]], shares: Sequence[float]) -> dict[str, float]:
    """Return the mean weight of each member over pools; a pool that lacks it gives it 0."""
    names = dict.fromkeys(name for weights in each for name in weights)
    return {name: sum(s * one.get(name, 0.0) for s, one in zip(shares, each, strict=True)) for name in names}


def _with_order(pool: FittedPool) -> FittedPool:
    """Return a pool whose members know the order of levels that its parameters state, for levels that come later."""
    order = pool.recipe.columns.order
    if order is None:
        return pool
    members = {
        name: replace(one, recipe=one.recipe.with_(columns=replace(one.recipe.columns, order=order)))
        for name, one in pool.members.items()
    }
    return replace(pool, members=members)


def _predicted_before(pool: FittedPool, data: Data) -> tuple[HeldOutSample, HeldOutRows | None]:
    """Return the predictions of a sample of new rows by the members, which have not learned from them.

    Where a member is no density, so that no rows can be drawn, also return rows for the feature importance.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that the members are about to learn
        rows = read_further_rows(pool.first, data.X, data.y, data.sample_weight, classes=data.classes, complete=False)
        source, one = pool.rows.source(data.X, pool.recipe.n_jobs), Pool(np.ones(1), np.zeros(len(pool.classes)))
        models = pool.posterior.models
        found = [source.map(Posterior((model,), one).log_posterior) for model in models]
        draws = all(models[m].is_density for m in np.flatnonzero(pool.posterior.shares))
        held_out = None if draws else _held_out(pool, source, rows)
    warn_of_further_dates(list(pool.members.values()), rows)
    labelled = np.flatnonzero(rows.y_true >= 0)
    chosen = labelled[stratified_subsample(rows.y_true[labelled], MOST_KEPT)]
    known = places_of(pool.target, rows.target)
    logs = np.full((len(chosen), len(rows.target.categories), len(found)), FLOOR)
    for m, log_posterior in enumerate(found):
        logs[:, known, m] = np.maximum(log_posterior[chosen], FLOOR)
    weight = np.ones(len(rows.y_true)) if rows.source.weight is None else rows.source.weight
    name = data.y if isinstance(data.y, str) else None
    warn_of_missing_targets(int((weight[rows.y_true < 0] > 0).sum()), len(weight), name)
    scale = weight[labelled].sum() / weight[chosen].sum() if weight[chosen].sum() > 0 else 1.0
    return HeldOutSample(logs, rows.y_true[chosen], weight[chosen] * scale), held_out


def _held_out(pool: FittedPool, source: LabelledSource, rows: TrainingRows) -> HeldOutRows | None:
    """Return a sample of the new rows of known classes with the pool that has not learned from them; None if none.

    source has the new rows as the pool reads them, rows has their labels.
    """
    index = np.full(len(rows.target.categories), -1)
    index[places_of(pool.target, rows.target)] = np.arange(len(pool.classes))
    known = np.flatnonzero((rows.y_true >= 0) & (index[rows.y_true] >= 0))
    if not len(known):
        return None
    of_known = index[rows.y_true[known]]
    chosen = known[np.sort(stratified_subsample(of_known, most_rows(len(source.schema.columns))))]
    marked = np.zeros(len(rows.y_true), np.bool_)
    marked[chosen] = True
    parts = source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]))
    weight = np.ones(len(marked)) if rows.source.weight is None else rows.source.weight
    everything = np.arange(len(chosen)), pool.training_posterior
    return HeldOutRows(joined(list(parts)), index[rows.y_true[chosen]], weight[chosen], (everything,))


def _with_members(
    before: FittedPool, members: dict[str, Fitted], unable: Mapping[str, str], sample: HeldOutSample | None
) -> FittedPool:
    """Return a pool with updated members, with weights from held-out predictions if there are enough of them."""
    asked = PoolParameters.of(before.recipe)
    target = next(iter(members.values())).target
    bias = moved_bias(before.bias - before.log_prior_ratio + _taken_away(before.members), before.target, target)
    bias -= _taken_away(members)
    weights = rescaled(before.weights, list(members))
    prior = class_shares(members)
    ratio = log_prior_ratio(asked.priors, target, prior)
    if sample is not None and sample.determines_weights and asked.weighs and RESIDUAL not in members:
        typical = typical_weights(one.recipe for one in members.values())
        fitted = sample.weighed(asked.penalty, typical)
        weights, bias = dict(zip(members, fitted.weight.tolist(), strict=True)), fitted.bias
    warn_of_unable(unable)
    partial = rescaled(before.partial_weights, list(members))
    nothing = _of_nothing(before.nothing_weights, members, partial)
    return replace(
        before,
        target=target,
        members=members,
        weights=weights,
        bias=bias + ratio,
        partial_weights=partial,
        partial_bias=_bias_of_nothing(members, partial, prior, ratio),
        nothing_weights=nothing,
        nothing_bias=_bias_of_nothing(members, nothing, prior, ratio),
        training_prior=prior,
        held_out_sample=sample,
        out_of_fold=None,
    )


def rescaled(weights: Mapping[str, float], kept: Sequence[str]) -> dict[str, float]:
    """Return the weights of the members that stay, in proportion and with the sum of all.

    Trees on what the others leave keep theirs, beside this sum.
    """
    shared = [name for name in kept if name != RESIDUAL]
    total = sum(weight for name, weight in weights.items() if name != RESIDUAL)
    left = sum(weights[name] for name in shared)
    moved = {name: weights[name] * total / left if left > 0 else total / len(shared) for name in shared}
    return {name: moved.get(name, weights[name]) for name in kept}


def _taken_away(members: Mapping[str, Fitted]) -> Array:
    """Return the bias that belongs to the trees on what the others leave, (C,): log p(y) less the sum of the roots."""
    if RESIDUAL not in members:
        return np.zeros(next(iter(members.values())).model.n_classes)
    model = members[RESIDUAL].model
    taken: Array = np.maximum(model.class_log_prior, FLOOR) - model.parameters[0].constant
    return taken


def warn_of_unable(unable: Mapping[str, str]) -> None:
    """Warn of members that leave the pool."""
    for name, reason in unable.items():
        warn(f"the member {name!r} leaves the pool: {reason}")


def class_shares(members: Mapping[str, Fitted]) -> Array:
    """Return the share of each class among the labelled rows, (C,): of a member without rows learned by EM."""
    counted = min(members.values(), key=_hidden).class_count
    shares: Array = counted / max(counted.sum(), np.finfo(np.float64).tiny)
    return shares


def _hidden(member: Fitted) -> bool:
    """Whether a member has learned from rows without label."""
    return member.statistics is not None and member.statistics.hidden > 0


def moved_bias(bias: Array, past: Column, target: Column) -> Array:
    """Return the biases of the classes of another column, 0 for new ones."""
    moved = np.zeros(len(target.categories))
    moved[places_of(past, target)] = bias
    return moved


def _of_nothing(
    weights: Mapping[str, float], members: Mapping[str, Fitted], partial: Mapping[str, float]
) -> dict[str, float]:
    """Return the weights where hardly anything is known: those of joint members that stay, else of others, else v."""
    joint = [name for name, member in members.items() if member.model.is_joint]
    if not joint:
        return dict(partial)
    left = {name: weights[name] if name in joint else 0.0 for name in members}
    if not any(left.values()):
        left = {name: float(name in joint) for name in members}
    total = sum(left.values())
    return {name: weight / total for name, weight in left.items()}


def _bias_of_nothing(
    members: Mapping[str, Fitted], partial_weights: Mapping[str, float], prior: Array, log_ratio: Array
) -> Array:
    """Return the biases with which a row without cells gets the prior of a pool, (C,), from its members and weights."""
    alone = log_posteriors_alone([member.model for member in members.values()])
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    weight = np.array([partial_weights[name] for name in members])
    return bias_of_nothing(alone, weight, log_prior) + log_ratio
