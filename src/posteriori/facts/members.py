"""The members of a pool by their weight."""

from __future__ import annotations

from collections.abc import Mapping

from posteriori.fitting.fitted import Fitted, FittedClasses


def models_by_weight(value: FittedClasses) -> Mapping[str | None, Fitted]:
    """Return the members of a pool by name, those of the greatest weight first; a model itself under the name None."""
    if not value.members:
        return {None: value.first}
    return {name: value.members[name] for name in sorted(value.members, key=lambda name: -value.weights[name])}


def main_member(value: FittedClasses) -> tuple[str | None, Fitted]:
    """Return the name and the value of the member of a pool with the greatest weight; None and itself for a model.

    It is no sum of trees, which only corrects the others.
    """
    by_weight = list(models_by_weight(value).items())
    return next((pair for pair in by_weight if not pair[1].model.is_sum_of_trees), by_weight[0])
