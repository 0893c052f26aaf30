"""The resolution at which numbers were recorded."""

from __future__ import annotations

import numpy as np

from posteriori.support.typing import Array

MOST_WHOLE_NUMBERS = 10  # most distinct values of an integer column that is a code, a grade or a small count
_ROUNDING = 1e-9  # share of the range of a column: values closer than this count as equal


def resolution(values: Array) -> Array:
    r"""Return the resolution δ of each column: the median gap between its distinct values, (d,), in data units.

    A recorded number stands for an interval of width δ. The gap of a value is its distance from the nearest other
    value, and the median runs over the distinct values, so repeated rows and a few odd values have no influence.
    Whole numbers have δ = 1, and δ → 0 as continuous values become dense. It commutes with shifts and changes of unit.

    Parameters
    ----------
    values : ndarray (n, d)
        NaN where missing.

    Returns
    -------
    ndarray (d,)
        0 where a column has fewer than two distinct values.
    """
    return np.array([_median_gap(_distinct(column)) for column in values.T])


def rounding_variance(values: Array) -> Array:
    """Return δ²/12, the variance of the error of rounding to the resolution δ, (d,), in squared data units.

    References
    ----------
    Sheppard, On the calculation of the most probable values of frequency-constants for data arranged according to
    equidistant divisions of a scale, Proceedings of the London Mathematical Society 29 (1898).
    """
    with np.errstate(over="ignore"):  # densities refuse numbers whose squares overflow, and name the column
        return np.asarray(resolution(values) ** 2 / 12.0)


def few_whole_numbers(values: Array) -> Array:
    """Return which columns hold from 2 to 10 distinct values, all of them whole numbers, (d,) booleans."""
    distinct = [_distinct(column) for column in values.T]
    return np.array(
        [2 <= len(values) <= MOST_WHOLE_NUMBERS and bool((values == np.floor(values)).all()) for values in distinct]
    )


def _distinct(column: Array) -> Array:
    """Return the distinct values, ascending; values that differ only by rounding count as one."""
    values = np.unique(column[np.isfinite(column)]).astype(np.float64)
    if len(values) < 2:
        return values
    is_first = np.concatenate([[True], np.diff(values) > _ROUNDING * (values[-1] - values[0])])
    return np.asarray(values[is_first])


def _median_gap(distinct: Array) -> float:
    if len(distinct) < 2:
        return 0.0
    gap = np.diff(distinct)
    return float(np.median(np.minimum(np.append(gap, np.inf), np.insert(gap, 0, np.inf))))
