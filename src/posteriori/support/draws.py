"""Random draws: generators from a random_state, and the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from posteriori.model_cost import Work

_PER_CELL = 1.5e-7  # seconds, measured at a million rows of 200 dependent columns within their ranges
_BYTES_PER_CELL = 24.0  # its draw, its place in the table, and a copy


def generator(random_state: Any) -> np.random.Generator:
    """Return a random generator.

    Parameters
    ----------
    random_state : None, int, Generator, SeedSequence, BitGenerator or RandomState
        A Generator is returned as it is. A RandomState, or the module ``numpy.random``, draws the seed.

    Raises
    ------
    ValueError
        It is of another type, or a negative number.
    """
    seeds = int | np.integer | np.random.Generator | np.random.SeedSequence | np.random.BitGenerator
    if random_state is None or isinstance(random_state, seeds):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def check_draw(n: Any, n_columns: int) -> int:
    """Return the number of rows to draw.

    Raises
    ------
    ValueError
        It is not a whole number, is below 1, or the draw would exceed the limits of `Work`.
    """
    if isinstance(n, bool | np.bool_) or not isinstance(n, int | np.integer):
        raise ValueError(f"n is {n!r}; give the number of rows to draw as a whole number")
    if n < 1:
        raise ValueError(f"n is {n}; draw at least one row")
    n_cells = float(min(int(n) * max(n_columns, 1), 1 << 60))  # a float holds it
    work = Work(n_cells * _PER_CELL, n_cells * _BYTES_PER_CELL)
    work.require_affordable(f"the draw of {n:,} rows of {n_columns:,} columns", "draw fewer rows at a time")
    return int(n)
