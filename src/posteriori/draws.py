"""Random draws: generators from a random_state, and the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_MOST_CELLS = 1 << 40  # 8 TB of numbers


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
        It is not a whole number, is below 1, or the rows would have more than 2⁴⁰ cells.
    """
    if isinstance(n, bool | np.bool_) or not isinstance(n, int | np.integer):
        raise ValueError(f"n is {n!r}; give the number of rows to draw as a whole number")
    if n < 1:
        raise ValueError(f"n is {n}; draw at least one row")
    most = _MOST_CELLS // max(n_columns, 1)
    if n > most:
        raise ValueError(
            f"n is {n}, and {n_columns} columns of as many rows do not fit into memory; draw at most {most:,} rows at "
            "a time"
        )
    return int(n)
