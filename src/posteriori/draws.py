"""How many rows can be drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST_CELLS = 1 << 40  # 8 TB of numbers


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
