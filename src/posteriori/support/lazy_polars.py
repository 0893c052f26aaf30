"""Polars as `pl`, imported when it is first used: scoring a row needs no data frames, and may run without polars."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["pl"]


if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module("polars"), name)
            setattr(self, name, value)
            return value

    pl = _Polars()
