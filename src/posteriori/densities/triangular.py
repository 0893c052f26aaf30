"""Triangular systems in NumPy: prediction needs no SciPy, which takes longer to import than a row to score."""

from __future__ import annotations

import numpy as np

from posteriori.typing import Array


def solve_lower(lower: Array, right: Array, most: float = np.inf) -> Array:
    """Return lower⁻¹·right, (d, n), by forward substitution; lower (d, d) is triangular and right is (d, n).

    Results beyond ±`most` are that.
    """
    solved = np.empty_like(right, np.float64)
    with np.errstate(over="ignore"):
        for i, line in enumerate(lower):
            np.clip((right[i] - line[:i] @ solved[:i]) / line[i], -most, most, out=solved[i])
    return solved
