"""Former paths of names that moved from `learning` to `model_selection`."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any


def forward(former: str, current: str, names: Sequence[str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose names are now in another module.

    Parameters
    ----------
    former, current : str
        The full names of the two modules.
    names : sequence of str
        The names that moved.
    """

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {former!r} has no attribute {name!r}")
        warnings.warn(
            f"{former}.{name} is now {current}.{name}; the old path will be removed in version 0.3",
            FutureWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(current), name)

    return __getattr__
