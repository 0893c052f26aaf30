"""Every target by its name."""

from __future__ import annotations

from fuzz.networks import NETWORKS, QUERIES
from fuzz.target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (NETWORKS, QUERIES)}
