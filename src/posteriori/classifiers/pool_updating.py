"""Updates of a pool in place: more rows (`partial_fit`) and fewer (`unlearn`)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.pool_updates import (
    MOST_KEPT,
    HeldOutSample,
    class_shares,
    log_prior_ratio,
    moved_bias,
    places_of,
    rescaled,
    update_members,
    warn_of_unable,
)
from posteriori.classifiers.updating import reason_not_extendable, reason_not_mergeable
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.importance import HeldOutRows, most_rows
from posteriori.learning.pool import fit_pool
from posteriori.learning.training import TrainingRows
from posteriori.model import FLOOR, Pool, Posterior
from posteriori.sources.source import LabelledSource
from posteriori.tables.batch import joined


def add_rows(pool: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Add rows to the members of a fitted pool, and fit its weights to held-out predictions if there are enough."""
    pool._validate_params()
    new, held_out = _predicted_before(pool, X, y, classes, sample_weight)

    def learn(member: GenerativeEstimator) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            member.partial_fit(X, y, classes, sample_weight)

    members, unable = update_members(pool.members_, reason_not_extendable, learn)
    past, target = pool.target_, next(iter(members.values())).target_
    sample = getattr(pool, "_held_out_sample", None)
    if sample is None:
        sample = HeldOutSample.empty(len(past.categories), len(pool.members_))
    sample = sample.of_classes(past, target).joined(new)
    kept = [m for m, name in enumerate(pool.members_) if name in members]
    _replace_members(pool, members, unable, sample.of_members(kept))
    if held_out is not None:
        pool._keep_held_out(held_out)


def _predicted_before(
    pool: Any, X: Any, y: Any, classes: Any, sample_weight: Any
) -> tuple[HeldOutSample, HeldOutRows | None]:
    """Return the predictions of a sample of new rows by the members, which have not learned from them.

    Where a member is no density, so that no rows can be drawn, also return rows for the feature importance.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that the members are about to learn
        rows = pool._first.read_learned_rows(X, y, sample_weight, classes=classes, complete=False)
        source, one = pool._source(X), Pool(np.ones(1), np.zeros(len(pool.classes_)))
        models = pool._posterior.models
        found = [source.map(Posterior((model,), one).log_posterior) for model in models]
        held_out = None if all(model.is_density for model in models) else _held_out(pool, source, rows)
    chosen = stratified_subsample(rows.y_true, MOST_KEPT)
    known = places_of(pool.target_, rows.target)
    logs = np.full((len(chosen), len(rows.target.categories), len(found)), FLOOR)
    for m, log_posterior in enumerate(found):
        logs[:, known, m] = np.maximum(log_posterior[chosen], FLOOR)
    weight = np.ones(len(rows.y_true)) if rows.source.weight is None else rows.source.weight
    scale = weight.sum() / weight[chosen].sum() if weight[chosen].sum() > 0 else 1.0
    return HeldOutSample(logs, rows.y_true[chosen], weight[chosen] * scale), held_out


def _held_out(pool: Any, source: LabelledSource, rows: TrainingRows) -> HeldOutRows | None:
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


def remove_rows(pool: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Subtract rows from the members of a fitted pool; its weights stay."""
    check_is_fitted(pool, "members_")
    members, unable = update_members(
        pool.members_,
        lambda member: reason_not_mergeable(member, "unlearn", "fit the remaining rows"),
        lambda member: member.unlearn(X, y, sample_weight),
    )
    _replace_members(pool, members, unable, None)


def _replace_members(
    pool: Any, members: dict[str, GenerativeEstimator], unable: Mapping[str, str], sample: HeldOutSample | None
) -> None:
    """Take updated members, with weights from held-out predictions if there are enough of them."""
    past, target = pool.target_, next(iter(members.values())).target_
    bias = moved_bias(pool.class_bias_ - pool._log_prior_ratio, past, target)
    weights = rescaled(pool.member_weights_, list(members))
    prior = class_shares(members)
    ratio = log_prior_ratio(pool.priors, target, prior)  # raises its errors before anything changes
    if sample is not None and sample.determines_weights and pool.pool == "log_linear":
        fitted = fit_pool(sample.log_posterior, sample.y_true, sample.weight, pool.penalty)
        weights, bias = dict(zip(members, fitted.weight.tolist(), strict=True)), fitted.bias
    warn_of_unable(unable, stacklevel=4)
    pool._forget_importance()
    for name in ("out_of_fold_", "_held_out_sample"):
        vars(pool).pop(name, None)
    if sample is not None:
        pool._held_out_sample = sample
    pool.members_, pool.member_weights_ = members, weights
    pool.class_bias_, pool.training_prior_ = bias + ratio, prior
