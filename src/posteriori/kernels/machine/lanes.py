"""Arithmetic of rows of arrays (·, LANES), in plain Python; Numba compiles vector instructions for it."""

import numpy as np

from posteriori.support.typing import Array

LANES = 8  # rows whose numbers stand side by side


def add_row(out: Array, j: int, other: Array, k: int) -> None:
    """Do out[j] += other[k]."""
    out[j] += other[k]


def multiply_row(out: Array, j: int, other: Array, k: int) -> None:
    """Do out[j] *= other[k]."""
    out[j] *= other[k]


def raise_row(out: Array, j: int, other: Array, k: int) -> None:
    """Do out[j] = max(out[j], other[k])."""
    out[j] = np.where(out[j] > other[k], out[j], other[k])


def divide_row(out: Array, j: int, other: Array, k: int) -> None:
    """Do out[j] = other[k] / out[j], with 0 where the divisor is 0."""
    out[j] = np.where(out[j] > 0.0, other[k] / out[j], 0.0)


def scale_row(out: Array, j: int, number: float, other: Array, k: int) -> None:
    """Do out[j] = number · other[k]."""
    out[j] = number * other[k]


def add_scaled_row(out: Array, j: int, number: float, other: Array, k: int) -> None:
    """Do out[j] += number · other[k]."""
    out[j] += number * other[k]
