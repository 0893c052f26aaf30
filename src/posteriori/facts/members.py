"""The members of a pool by their weight."""

from __future__ import annotations

from typing import Any


def main_member(estimator: Any) -> tuple[str | None, Any]:
    """Return the name and the model of the member of a pool with the greatest weight; None and itself for a model."""
    members = dict(getattr(estimator, "members_", {}))
    if not members:
        return None, estimator
    name = max(members, key=lambda one: float(estimator.member_weights_[one]))
    return name, members[name]
