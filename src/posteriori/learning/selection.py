"""Former place of `out_of_fold`, which is now in `posteriori.model_selection`."""

from __future__ import annotations

import warnings
from typing import Any

_MOVED = ("OutOfFold", "out_of_fold")


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from posteriori import model_selection

    warnings.warn(
        f"{__name__}.{name} is now posteriori.model_selection.{name}; the old path goes in version 0.3",
        FutureWarning,
        stacklevel=2,
    )
    return getattr(model_selection, name)
