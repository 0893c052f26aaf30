"""Every target by its name."""

from __future__ import annotations

from fuzz import calls, command_lines, estimators, models, networks, spellings
from fuzz.target import Target

_OF_MODELS = (models.TARGET, models.OF_POOLS, models.TARGET_NUMBERS)
_ALL = (command_lines.TARGET, estimators.TARGET, *_OF_MODELS, networks.TARGET, spellings.TARGET, calls.TARGET)
TARGETS: dict[str, Target] = {target.name: target for target in _ALL}
