"""Pools that were fitted apart, merged member by member."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.pool_updates import (
    class_shares,
    log_prior_ratio,
    moved_bias,
    reason_of_cells,
    rescaled,
    warn_of_unable,
    with_common_backoff,
    with_feature_weights,
    without_feature_weights,
)


def merge_pools(pools: Sequence[Any], merge_members: Callable[[Sequence[Any]], Any]) -> Any:
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
    rows = np.array([next(iter(pool.members_.values())).class_count_.sum() for pool in pools])
    shares = (rows / rows.sum()).tolist()
    names = list(dict.fromkeys(name for pool in pools for name in pool.members_))
    members: dict[str, GenerativeEstimator] = {}
    unable: dict[str, str] = {}
    for name in names:
        if not all(name in pool.members_ for pool in pools):
            unable[name] = "not every pool has it"
            continue
        each = [pool.members_[name] for pool in pools]
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
    result.members_ = members
    target = next(iter(members.values())).target_
    pairs = list(zip(shares, pools, strict=True))
    weights = {name: sum(share * pool.member_weights_.get(name, 0.0) for share, pool in pairs) for name in names}
    result.member_weights_ = rescaled(weights, list(members))
    result.training_prior_ = class_shares(members)
    bias = sum(
        share * moved_bias(pool.class_bias_ - pool._log_prior_ratio, pool.target_, target) for share, pool in pairs
    )
    result.class_bias_ = bias + log_prior_ratio(result.priors, target, result.training_prior_)
    result.skipped_ = {}
    warn_of_unable(unable, stacklevel=4)
    return result
