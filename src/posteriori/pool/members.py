"""Members of a pool as sums: which can be updated, and what stays as it was learned from all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from posteriori.densities import BackOff
from posteriori.fitting.fitted import Fitted
from posteriori.learning.backoff import smoothing_in, with_smoothing
from posteriori.model import FactorWeights, GenerativeModel
from posteriori.pool.held_out_sample import places_of
from posteriori.support.typing import Array


def updated(
    members: Mapping[str, Fitted],
    reason_against: Callable[[Fitted], str | None],
    update: Callable[[Fitted], Fitted],
) -> tuple[dict[str, Fitted], dict[str, str]]:
    """Return the members that can be updated, with other rows, and why the others cannot.

    Feature weights stay those of the first fit: they are exponents that need all rows at once.

    Parameters
    ----------
    members : mapping
    reason_against : callable
        Returns why a member cannot be updated; None if it can. It is called without feature weights.
    update : callable
        Returns the member of other rows.

    Raises
    ------
    ValueError
        No member can be updated; or `update` raises it.
    """
    found: dict[str, Fitted] = {}
    unable: dict[str, str] = {}
    for name, member in members.items():
        plain = without_feature_weights(member)
        reason = reason_of_cells(member) or reason_against(plain)
        if reason is not None:
            unable[name] = reason
            continue
        found[name] = with_feature_weights(update(plain), [member], [1.0])
    if not found:
        listed = "; ".join(f"{name}: {reason}" for name, reason in unable.items())
        raise ValueError(f"no member of the pool can be updated: {listed}")
    return found, unable


def reason_of_cells(member: Fitted) -> str | None:
    """Return why the learned tables of a member cannot be updated; None if it has none."""
    learns = member.recipe.feature_weights == "cells"
    return 'feature_weights="cells" learns its tables from all rows at once' if learns else None


def without_feature_weights(member: Fitted) -> Fitted:
    """Return a member whose features have no weights, with the strength of its back-off as it was learned."""
    recipe, model = member.recipe, member.model
    if recipe.learns_backoff:
        recipe = recipe.with_(backoff=smoothing_in(model.blocks))
    if recipe.feature_weights is not None:
        recipe, model = recipe.with_(feature_weights=None), replace(model, weights=None)
    return replace(member, recipe=recipe, model=model)


def with_common_backoff(members: Sequence[Fitted]) -> list[Fitted]:
    """Return members with the geometric mean of the pseudo-rows that they learned."""
    given = [one.recipe.parameters.get("backoff") for one in members]
    learned = [one for one in given if isinstance(one, BackOff)]
    if len(learned) < len(members) or len({tuple(map(len, one.of_columns)) for one in learned}) > 1:
        return list(members)
    of_columns = zip(*(one.of_columns for one in learned), strict=True)
    common = replace(learned[0], of_columns=tuple(map(_geometric_mean, of_columns)))
    return [_with_smoothing(one, common) for one in members]


def _with_smoothing(member: Fitted, common: BackOff) -> Fitted:
    blocks = tuple(with_smoothing(block, lambda _: common) for block in member.model.blocks)
    return replace(member, recipe=member.recipe.with_(backoff=common), model=replace(member.model, blocks=blocks))


def _geometric_mean(of_column: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(np.exp(np.log(np.array(of_column)).mean(axis=0)).tolist())


def with_feature_weights(plain: Fitted, members: Sequence[Fitted], shares: Sequence[float]) -> Fitted:
    """Return a member with the mean feature weights of those that it comes from."""
    kind = members[0].recipe.feature_weights
    if kind is None:
        return plain
    weights = [one.model.weights for one in members if one.model.weights is not None]
    if len(weights) < len(members):
        raise ValueError("a member has no feature weights, although its parameters ask for them; fit the pool again")
    weight = sum(share * one.weight for share, one in zip(shares, weights, strict=True))
    n_classes = len(plain.target.categories)
    offset, known = np.zeros(n_classes), np.zeros(n_classes)
    for share, one in zip(shares, members, strict=True):
        places = places_of(one.target, plain.target)
        offset[places] += share * _offset(one.model)
        known[places] += share
    offset = np.divide(offset, known, out=np.zeros(n_classes), where=known > 0)
    varies = np.logical_or.reduce([one.model.sharing for one in members])
    found = FactorWeights(plain.model.log_prior + offset, np.asarray(weight), varies=varies)
    recipe, model = plain.recipe.with_(feature_weights=kind), replace(plain.model, weights=found)
    return replace(plain, recipe=recipe, model=model)


def _offset(model: GenerativeModel) -> Array:
    """Return the biases of a model with feature weights relative to its log prior, (C,)."""
    assert model.weights is not None
    with np.errstate(invalid="ignore"):
        offset = model.weights.bias - model.log_prior
    return np.where(np.isfinite(offset), offset, 0.0)
