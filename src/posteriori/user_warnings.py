"""Warnings that name the line of the user who called posteriori.

A user reads their own line in the message, not one of this package or of scikit-learn.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# A warning is of the user's call, although scikit-learn or a pool of threads may stand between.
_BETWEEN = frozenset(
    {"posteriori", "sklearn", "numba", "joblib", "polars", "threadpoolctl", "concurrent", "contextlib", "functools"}
)


class ApproximationWarning(UserWarning):
    """Missing cells of some rows are summed out approximately."""


class RepeatedRowsWarning(UserWarning):
    """Rows occur several times, and each group of equal rows is judged as one row."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line, from here up, that is not of this package or of what it runs in.

    A stacklevel that is counted by hand is wrong as soon as a function is moved, or is reached on another way.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def each_once() -> Iterator[None]:
    """Warn once, at the end, of what is warned of several times in between: many steps read the same table."""
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        finally:
            found = dict.fromkeys((str(one.message), one.category) for one in caught)
    for message, category in found:
        warn(message, category)
