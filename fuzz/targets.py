"""Every target by its name."""

from __future__ import annotations

from fuzz import options, tables
from fuzz.target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (options.TARGET, tables.TARGET)}
