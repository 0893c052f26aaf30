"""The members of a pool by their weight."""

from __future__ import annotations

from typing import Any

from posteriori.classifiers.estimator import estimator_of
from posteriori.pool.value import FittedPool


def main_member(estimator: Any) -> tuple[str | None, Any]:
    """Return the name and the model of the member of a pool with the greatest weight; None and itself for a model."""
    ranked = members_by_weight(estimator)
    return next(iter(ranked.items())) if ranked else (None, estimator)


def members_by_weight(estimator: object) -> dict[str, Any]:
    """Return the members of a pool by name, as estimators, those of the greatest weight first; none of a model."""
    value = getattr(estimator, "fitted_", None)
    if not isinstance(value, FittedPool):
        return {}
    ranked = sorted(value.members, key=lambda name: -value.weights[name])
    return {name: estimator_of(value.members[name]) for name in ranked}
