"""Every target by its name."""

from __future__ import annotations

from fuzz import command_lines, estimators, models, networks
from fuzz.target import Target

_ALL = (command_lines.TARGET, estimators.TARGET, models.TARGET, models.OF_POOLS, models.TARGET_NUMBERS, networks.TARGET)
TARGETS: dict[str, Target] = {target.name: target for target in _ALL}
