"""What has to hold of values that come from a file, which somebody may have crafted, and would index out of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori.typing import Array

LARGEST = 1e150  # in magnitude, so that squares of differences are finite
LARGEST_SQUARE = 1e305  # so that sums of a few are finite


def require(holds: bool | np.bool_, sentence: str) -> None:
    """Raise ValueError with this sentence unless it holds."""
    if not holds:
        raise ValueError(sentence)


def require_kind(value: Any, kind: type[Any]) -> None:
    """Raise ValueError unless a value is of this class."""
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} stands where a {kind.__name__} is expected")


def check_numbers(
    name: str,
    values: Array,
    shape: Sequence[int],
    low: float = -LARGEST,
    high: float = LARGEST,
) -> None:
    """Raise ValueError unless an array of float64 has this shape, and all its numbers are in range and no NaN.

    Parameters
    ----------
    name : str
        For the message.
    values : ndarray
    shape : sequence of int
    low, high : float
        The range, both ends included.
    """
    _check_shape(name, values, shape, np.dtype(np.float64))
    if not values.size:
        return
    least, most = float(values.min()), float(values.max())  # NaN if any is
    if not (low <= least and most <= high):
        raise ValueError(f"{name} holds numbers from {least:g} to {most:g}, which cannot be")


def check_places(name: str, values: Array, shape: Sequence[int], low: int, high: int) -> None:
    """Raise ValueError unless an array of int64 has this shape and its numbers are at least low and below high."""
    _check_shape(name, values, shape, np.dtype(np.int64))
    if values.size and not (low <= values.min() and values.max() < high):
        raise ValueError(f"{name} holds {values.min()} to {values.max()}, and the range is {low} to {high - 1}")


def check_equal(name: str, found: Any, expected: Any) -> None:
    """Raise ValueError unless two values, or two arrays of one type and shape, are equal."""
    if isinstance(expected, np.ndarray):
        _check_shape(name, found, expected.shape, expected.dtype)
        same = bool(np.array_equal(found, expected))
    else:
        same = found == expected
    if not same:
        raise ValueError(f"{name} does not agree with the columns of the model")


def check_share(name: str, share: float) -> None:
    """Raise ValueError unless a number is from 0 to 1."""
    require(0 <= share <= 1, f"{name} is {share}, and not from 0 to 1")


def check_not_negative(name: str, number: float) -> None:
    """Raise ValueError if a number is negative or NaN."""
    require(number >= 0, f"{name} is {number}, and not 0 or more")


def check_pseudo_count(name: str, number: float) -> None:
    """Raise ValueError if a number is negative, NaN, or so large that sums of it would overflow."""
    require(0 <= number <= LARGEST, f"{name} is {number}, and not from 0 to {LARGEST}")


def _check_shape(name: str, values: Array, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    if values.shape != tuple(shape) or values.dtype != dtype:
        raise ValueError(
            f"{name} is of shape {values.shape} and type {values.dtype}, and has to be of {tuple(shape)} and {dtype}"
        )
