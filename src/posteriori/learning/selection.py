"""Former name of `posteriori.learning.out_of_fold`."""

from __future__ import annotations

import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    from posteriori.learning import out_of_fold

    if name.startswith("__") or not hasattr(out_of_fold, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "posteriori.learning.selection is now posteriori.learning.out_of_fold; the old name goes in version 0.3",
        FutureWarning,
        stacklevel=2,
    )
    return getattr(out_of_fold, name)
