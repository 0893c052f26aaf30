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


def warn_of_missing_targets(n_missing: int, n_rows: int, name: str | None, learned: bool = False) -> None:
    """Say what becomes of training rows without a target; nothing if there is none."""
    if not n_missing:
        return
    them = "it is" if n_missing == 1 else "they are"
    which = f"{n_missing:,} of {n_rows:,} rows {'has' if n_missing == 1 else 'have'} no {name or 'label'}"
    how = 'learned from by EM; labels=po.Labels(unlabelled="ignore") leaves such rows out' if learned else "left out"
    warn(f"{which}; {them} {how}")


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
