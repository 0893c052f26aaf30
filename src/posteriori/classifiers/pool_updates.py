"""Updates of a fitted pool: rows added and removed, pools merged, and weights for the members."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.candidates import typical_weights
from posteriori.classifiers.fitted_pool import FittedPool
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.held_out_sample import MOST_KEPT, HeldOutSample, places_of
from posteriori.classifiers.interfaces import FittedClassifier
from posteriori.densities import BackOff
from posteriori.fitting.further_dates import warn_of_further_dates
from posteriori.fitting.label_parameters import check_priors
from posteriori.fitting.recipe import LEARNED_TABLES
from posteriori.fitting.update import reason_not_extendable, reason_not_mergeable
from posteriori.learning.backoff import smoothing_in, with_smoothing
from posteriori.learning.fit import TrainingRows
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.importance import HeldOutRows, most_rows
from posteriori.learning.log_linear import fit_pool
from posteriori.model import FLOOR, FactorWeights, GenerativeModel, Pool, Posterior, log_posteriors_alone
from posteriori.model_selection.partial_rows import bias_of_nothing, merged_cells
from posteriori.sources.source import LabelledSource
from posteriori.support.checks import require
from posteriori.support.typing import Array
from posteriori.tables import Column
from posteriori.tables.batch import joined
from posteriori.user_warnings import warn


class UpdatablePool(FittedClassifier, Protocol):
    """A fitted pool, as its updates read it."""

    fitted_: FittedPool
    pool: str
    penalty: float
    priors: Any

    @property
    def _log_prior_ratio(self) -> Array: ...
    @property
    def _training_posterior(self) -> Posterior: ...
    def _validate_params(self) -> None: ...


def update_members(
    members: Mapping[str, GenerativeEstimator],
    reason_against: Callable[[GenerativeEstimator], str | None],
    update: Callable[[GenerativeEstimator], Any],
) -> tuple[dict[str, GenerativeEstimator], dict[str, str]]:
    """Return updated copies of the members that can be updated, and why the others cannot.

    Feature weights stay those of the first fit: they are exponents that need all rows at once.

    Parameters
    ----------
    members : mapping
    reason_against : callable
        Returns why an estimator cannot be updated; None if it can. It is called without feature weights.
    update : callable
        Updates an estimator in place.

    Raises
    ------
    ValueError
        No member can be updated; or `update` raises it.
    """
    updated: dict[str, GenerativeEstimator] = {}
    unable: dict[str, str] = {}
    for name, member in members.items():
        plain = without_feature_weights(member)
        reason = reason_of_cells(member) or reason_against(plain)
        if reason is not None:
            unable[name] = reason
            continue
        update(plain)
        updated[name] = with_feature_weights(plain, [member], [1.0])
    if not updated:
        listed = "; ".join(f"{name}: {reason}" for name, reason in unable.items())
        raise ValueError(f"no member of the pool can be updated: {listed}")
    return updated, unable


def reason_of_cells(member: GenerativeEstimator) -> str | None:
    """Return why the learned tables of a member cannot be updated; None if it has none."""
    if member.feature_weights not in LEARNED_TABLES:
        return None
    return f'feature_weights="{member.feature_weights}" learns its tables from all rows at once'


def without_feature_weights(member: GenerativeEstimator) -> Any:
    """Return a shallow copy of an estimator whose features have no weights, with a fixed strength of its back-off."""
    plain: Any = copy.copy(member)
    if isinstance(getattr(plain, "backoff", None), str):
        plain.backoff = smoothing_in(plain.model_.blocks)
    if member.feature_weights is not None:
        plain.feature_weights = None
        plain.fitted_ = plain.fitted_.with_model(replace(plain.model_, weights=None))
    return plain


def with_common_backoff(members: Sequence[Any]) -> Sequence[Any]:
    """Give copies of estimators the geometric mean of the pseudo-rows that they learned; return them."""
    given = [getattr(one, "backoff", None) for one in members]
    learned = [one for one in given if isinstance(one, BackOff)]
    if len(learned) == len(members) and len({tuple(map(len, one.of_columns)) for one in learned}) == 1:
        of_columns = zip(*(one.of_columns for one in learned), strict=True)
        common = replace(learned[0], of_columns=tuple(map(_geometric_mean, of_columns)))
        for one in members:
            one.backoff = common
            blocks = tuple(with_smoothing(block, lambda _: common) for block in one.model_.blocks)
            one.fitted_ = one.fitted_.with_model(replace(one.model_, blocks=blocks))
    return members


def _geometric_mean(of_column: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(np.exp(np.log(np.array(of_column)).mean(axis=0)).tolist())


def with_feature_weights(plain: Any, members: Sequence[Any], shares: Sequence[float]) -> Any:
    """Give an estimator the mean feature weights of the members that it comes from; return it."""
    if members[0].feature_weights is None:
        return plain
    if any(one.model_.weights is None for one in members):
        raise ValueError("a member has no feature weights, although its parameters ask for them; fit the pool again")
    weight = sum(share * one.model_.weights.weight for share, one in zip(shares, members, strict=True))
    n_classes = len(plain.target_.categories)
    offset, known = np.zeros(n_classes), np.zeros(n_classes)
    for share, one in zip(shares, members, strict=True):
        places = places_of(one.target_, plain.target_)
        offset[places] += share * _offset(one.model_)
        known[places] += share
    offset = np.divide(offset, known, out=np.zeros(n_classes), where=known > 0)
    plain.feature_weights = members[0].feature_weights
    varies = np.logical_or.reduce([one.model_.sharing for one in members])
    weights = FactorWeights(plain.model_.log_prior + offset, np.asarray(weight), varies=varies)
    plain.fitted_ = plain.fitted_.with_model(replace(plain.model_, weights=weights))
    return plain


def _offset(model: GenerativeModel) -> Array:
    """Return the biases of a model with feature weights relative to its log prior, (C,)."""
    assert model.weights is not None
    with np.errstate(invalid="ignore"):
        offset = model.weights.bias - model.log_prior
    return np.where(np.isfinite(offset), offset, 0.0)


def rescaled(weights: Mapping[str, float], kept: Sequence[str]) -> dict[str, float]:
    """Return the weights of the members that stay, in proportion and with the sum of all."""
    total, left = sum(weights.values()), sum(weights[name] for name in kept)
    return {name: weights[name] * total / left if left > 0 else total / len(kept) for name in kept}


def warn_of_unable(unable: Mapping[str, str]) -> None:
    """Warn of members that leave the pool."""
    for name, reason in unable.items():
        warn(f"the member {name!r} leaves the pool: {reason}")


def class_shares(members: Mapping[str, GenerativeEstimator]) -> Array:
    """Return the share of each class among the labelled rows, (C,): of a member without rows learned by EM."""
    counted = min(members.values(), key=lambda one: one.statistics_.hidden > 0).class_count_
    shares: Array = counted / max(counted.sum(), np.finfo(np.float64).tiny)
    return shares


def moved_bias(bias: Array, past: Column, target: Column) -> Array:
    """Return the biases of the classes of another column, 0 for new ones."""
    moved = np.zeros(len(target.categories))
    moved[places_of(past, target)] = bias
    return moved


def log_prior_ratio(priors: Any, target: Column, training_prior: Array | None) -> Array:
    """Return log (priors / training_prior) in nats, (C,); 0 without priors.

    Added to the log posterior under the class frequencies of the training rows, it gives the log posterior under
    `priors` up to a constant per row (Saerens et al. 2002).
    Raises ValueError if the priors do not fit the classes; one is 0, or its class has no training row of positive
    weight.
    """
    if priors is None:
        return np.zeros(len(target.categories))
    wanted = np.array(check_priors(priors, target))
    require(training_prior is not None, "the class prior of the training rows is missing")
    assert training_prior is not None
    for label, p, known in zip(target.categories, wanted, training_prior, strict=True):
        if not p > 0:
            raise ValueError(f"priors gives class {label!r} the probability 0; leave the rows of this class out")
        if not known > 0:
            raise ValueError(f"priors names class {label!r}, which no training row with a weight has; leave it out")
    ratio: Array = np.log(wanted) - np.log(training_prior)
    return ratio


def with_rows(pool: UpdatablePool, X: Any, y: Any, classes: Any, sample_weight: Any) -> FittedPool:
    """Return a pool whose members have learned from more rows, with weights of held-out predictions if they suffice."""
    pool._validate_params()
    new, held_out = _predicted_before(pool, X, y, classes, sample_weight)

    def learn(member: GenerativeEstimator) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            member.partial_fit(X, y, classes, sample_weight)

    members, unable = update_members(
        pool.fitted_.members, lambda member: reason_not_extendable(member.model_request(), member.fitted_), learn
    )
    past, target = pool.target_, next(iter(members.values())).target_
    sample = pool.fitted_.held_out_sample
    if sample is None:
        sample = HeldOutSample.empty(len(past.categories), len(pool.fitted_.members))
    sample = sample.of_classes(past, target).joined(new)
    kept = [m for m, name in enumerate(pool.fitted_.members) if name in members]
    updated = _with_members(pool, members, unable, sample.of_members(kept))
    record = pool.fitted_.record.of_other_model()
    return replace(updated, record=record if held_out is None else record.with_held_out(held_out))


def _predicted_before(
    pool: UpdatablePool, X: Any, y: Any, classes: Any, sample_weight: Any
) -> tuple[HeldOutSample, HeldOutRows | None]:
    """Return the predictions of a sample of new rows by the members, which have not learned from them.

    Where a member is no density, so that no rows can be drawn, also return rows for the feature importance.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that the members are about to learn
        rows = pool.fitted_.first.read_learned_rows(X, y, sample_weight, classes=classes, complete=False)
        source, one = pool._source(X), Pool(np.ones(1), np.zeros(len(pool.classes_)))
        models = pool._posterior.models
        found = [source.map(Posterior((model,), one).log_posterior) for model in models]
        held_out = None if all(model.is_density for model in models) else _held_out(pool, source, rows)
    members = list(pool.fitted_.members.values())
    warn_of_further_dates([one.fitted_ for one in members], rows, members[0].model_request().columns.dates)
    chosen = stratified_subsample(rows.y_true, MOST_KEPT)
    known = places_of(pool.target_, rows.target)
    logs = np.full((len(chosen), len(rows.target.categories), len(found)), FLOOR)
    for m, log_posterior in enumerate(found):
        logs[:, known, m] = np.maximum(log_posterior[chosen], FLOOR)
    weight = np.ones(len(rows.y_true)) if rows.source.weight is None else rows.source.weight
    scale = weight.sum() / weight[chosen].sum() if weight[chosen].sum() > 0 else 1.0
    return HeldOutSample(logs, rows.y_true[chosen], weight[chosen] * scale), held_out


def _held_out(pool: UpdatablePool, source: LabelledSource, rows: TrainingRows) -> HeldOutRows | None:
    """Return a sample of the new rows of known classes with the pool that has not learned from them; None if none.

    source has the new rows as the pool reads them, rows has their labels.
    """
    index = np.full(len(rows.target.categories), -1)
    index[places_of(pool.target_, rows.target)] = np.arange(len(pool.classes_))
    known = np.flatnonzero(index[rows.y_true] >= 0)
    if not len(known):
        return None
    of_known = index[rows.y_true[known]]
    chosen = known[np.sort(stratified_subsample(of_known, most_rows(len(source.schema.columns))))]
    marked = np.zeros(len(rows.y_true), np.bool_)
    marked[chosen] = True
    parts = source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]))
    weight = np.ones(len(marked)) if rows.source.weight is None else rows.source.weight
    everything = np.arange(len(chosen)), pool._training_posterior
    return HeldOutRows(joined(list(parts)), index[rows.y_true[chosen]], weight[chosen], (everything,))


def without_rows(pool: UpdatablePool, X: Any, y: Any, sample_weight: Any) -> FittedPool:
    """Return a pool whose members have not learned from some rows; its weights stay."""
    check_is_fitted(pool)
    members, unable = update_members(
        pool.fitted_.members,
        lambda member: reason_not_mergeable(
            member.model_request(), member.fitted_, "unlearn", "fit the remaining rows"
        ),
        lambda member: member.unlearn(X, y, sample_weight),
    )
    return replace(_with_members(pool, members, unable, None), record=pool.fitted_.record.of_other_rows())


def _with_members(
    pool: UpdatablePool,
    members: dict[str, GenerativeEstimator],
    unable: Mapping[str, str],
    sample: HeldOutSample | None,
) -> FittedPool:
    """Return a pool with updated members, with weights from held-out predictions if there are enough of them."""
    before = pool.fitted_
    past, target = pool.target_, next(iter(members.values())).target_
    bias = moved_bias(before.bias - pool._log_prior_ratio, past, target)
    weights = rescaled(before.weights, list(members))
    prior = class_shares(members)
    ratio = log_prior_ratio(pool.priors, target, prior)
    if sample is not None and sample.determines_weights and pool.pool == "log_linear":
        typical = typical_weights(members.values())
        fitted = fit_pool(sample.log_posterior, sample.y_true, sample.weight, pool.penalty, typical=typical)
        weights, bias = dict(zip(members, fitted.weight.tolist(), strict=True)), fitted.bias
    warn_of_unable(unable)
    partial = rescaled(before.partial_weights, list(members))
    nothing = _of_nothing(before.nothing_weights, members, partial)
    return replace(
        before,
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


def merge_pools(pools: Sequence[UpdatablePool], merge_members: Callable[[Sequence[Any]], Any]) -> Any:
    """Return the pool of the merged members; weights and biases are means over the pools, weighted by their rows.

    Members that are not in every pool, or that cannot be merged, leave the pool with a warning, and the weights of the
    others are multiplied so that their sum stays.

    Parameters
    ----------
    pools : sequence of GenerativeClassifier
        Fitted, with equal parameters.
    merge_members : callable
        Merges estimators of one class.

    Raises
    ------
    ValueError
        No member can be merged; the message lists the reasons.
    """
    rows = np.array([next(iter(pool.fitted_.members.values())).class_count_.sum() for pool in pools])
    shares = (rows / rows.sum() if rows.any() else np.full(len(rows), 1.0 / len(rows))).tolist()
    names = list(dict.fromkeys(name for pool in pools for name in pool.fitted_.members))
    members: dict[str, GenerativeEstimator] = {}
    unable: dict[str, str] = {}
    for name in names:
        if not all(name in pool.fitted_.members for pool in pools):
            unable[name] = "not every pool has it"
            continue
        each = [pool.fitted_.members[name] for pool in pools]
        reason = reason_of_cells(each[0])
        if reason is not None:
            unable[name] = reason
            continue
        try:
            merged = merge_members(with_common_backoff([without_feature_weights(one) for one in each]))
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
    result = clone(pools[0])
    target = next(iter(members.values())).target_
    pairs = [(share, pool.fitted_) for share, pool in zip(shares, pools, strict=True)]
    weights = {name: sum(share * one.weights.get(name, 0.0) for share, one in pairs) for name in names}
    prior = class_shares(members)
    ratio = log_prior_ratio(result.priors, target, prior)
    bias = sum(
        share * moved_bias(pool.fitted_.bias - pool._log_prior_ratio, pool.target_, target)
        for share, pool in zip(shares, pools, strict=True)
    )
    of_partial = {name: sum(share * one.partial_weights.get(name, 0.0) for share, one in pairs) for name in names}
    of_nothing = {name: sum(share * one.nothing_weights.get(name, 0.0) for share, one in pairs) for name in names}
    partial = rescaled(of_partial, list(members))
    nothing = _of_nothing(of_nothing, members, partial)
    result.fitted_ = FittedPool(
        members,
        rescaled(weights, list(members)),
        bias + ratio,
        partial,
        _bias_of_nothing(members, partial, prior, ratio),
        nothing,
        _bias_of_nothing(members, nothing, prior, ratio),
        merged_cells([pool.fitted_.known_cells for pool in pools], shares),
        prior,
    )
    warn_of_unable(unable)
    return result


def _of_nothing(
    weights: Mapping[str, float], members: Mapping[str, GenerativeEstimator], partial: Mapping[str, float]
) -> dict[str, float]:
    """Return the weights where hardly anything is known: those of joint members that stay, else of others, else v."""
    joint = [name for name, member in members.items() if member.model_.is_joint]
    if not joint:
        return dict(partial)
    left = {name: weights[name] if name in joint else 0.0 for name in members}
    if not any(left.values()):
        left = {name: float(name in joint) for name in members}
    total = sum(left.values())
    return {name: weight / total for name, weight in left.items()}


def _bias_of_nothing(
    members: Mapping[str, GenerativeEstimator], partial_weights: Mapping[str, float], prior: Array, log_ratio: Array
) -> Array:
    """Return the biases with which a row without cells gets the prior of a pool, (C,), from its members and weights."""
    alone = log_posteriors_alone([member.model_ for member in members.values()])
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    weight = np.array([partial_weights[name] for name in members])
    return bias_of_nothing(alone, weight, log_prior) + log_ratio
