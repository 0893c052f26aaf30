"""Every target by its name."""

from __future__ import annotations

from fuzz import models, options, tables
from fuzz.networks import NETWORKS, QUERIES
from fuzz.target import Target

_ALL = (models.TARGET, NETWORKS, options.TARGET, QUERIES, tables.TARGET)
TARGETS: dict[str, Target] = {target.name: target for target in _ALL}
