"""A law and the function that checks it, and how two arrays are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_CLOSE = 1e-9

Law = tuple[str, Callable[[], None]]


def checked(laws: Iterator[Law]) -> list[str]:
    """Return the laws; raise AssertionError that names the first that does not hold."""
    found = []
    for law, check in laws:
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"this law does not hold: {law}. {error}") from None
        found.append(law)
    return found


def require(holds: Any, what_if_not: str) -> None:
    """Raise AssertionError with this sentence unless it holds."""
    if not holds:  # not an assert, which python -O leaves out
        raise AssertionError(what_if_not)


def equal(found: Any, expected: Any, tolerance: float = _CLOSE) -> None:
    """Raise AssertionError unless two arrays differ by no more than a share of the expected number, or of 1."""
    found, expected = np.asarray(found), np.asarray(expected)
    require(found.shape == expected.shape, f"The shapes are {found.shape} and {expected.shape}")
    with np.errstate(invalid="ignore"):
        apart = np.where((found == expected) | (np.isnan(found) & np.isnan(expected)), 0.0, np.abs(found - expected))
    scale = np.maximum(np.where(np.isfinite(expected), np.abs(expected), 1.0), 1.0)
    worst = float(np.max(apart / scale, initial=0.0))
    require(worst <= tolerance, f"The largest difference is {worst:.2g}, and {tolerance:.2g} is allowed")
