"""Triangular systems in NumPy: prediction needs no SciPy, which takes longer to import than a row to score."""

from __future__ import annotations

import numpy as np

from posteriori.typing import Array


def solve_lower(lower: Array, right: Array) -> Array:
    """Return lower⁻¹·right, (d, n), by forward substitution; lower (d, d) is triangular and right is (d, n)."""
    solved = np.empty_like(right, np.float64)
    for i, line in enumerate(lower):
        solved[i] = (right[i] - line[:i] @ solved[:i]) / line[i]
    return solved
