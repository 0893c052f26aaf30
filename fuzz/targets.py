"""Every target by its name."""

from __future__ import annotations

from fuzz import models, options, tables
from fuzz.target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (models.TARGET, options.TARGET, tables.TARGET)}
