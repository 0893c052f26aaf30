"""Subtraction of sums, with guards against rounding."""

from __future__ import annotations

import numpy as np

from posteriori.typing import Array

_OF_WEIGHTS = 1e-10  # relative to the sum: the order in which fractions are added changes it by less
_OF_SUMS = 1e-12  # a sum of numbers or squares that falls below this share of its former value is 0
_BEYOND = 1e-9  # a sum of squares that falls further below 0 than this share never contained the removed rows
_LAST_DIGITS = 4 * np.finfo(np.float64).eps  # of a number
_COARSE = 1e-3  # share of a column's variance: rounding within a narrow component is no contradiction


def difference(total: Array, part: Array) -> Array:
    """Return the weight total − part, and 0 where the difference is rounding error; exact for whole numbers.

    Parameters
    ----------
    total, part : ndarray
        ≥ 0, of the same shape.
    """
    rest = total - part
    return np.where(rest > np.where(_whole(total) & _whole(part), 0.0, _OF_WEIGHTS * total), rest, 0.0)


def exceeds(part: Array, total: Array) -> Array:
    """Return where a weight exceeds the total from which it is subtracted, by more than rounding."""
    return np.asarray(part - total > np.where(_whole(total) & _whole(part), 0.0, _OF_WEIGHTS * total))


def squares_left(total: Array, part: Array) -> Array:
    """Return the sum of squares total − part, and 0 where the difference is rounding error."""
    rest = total - part
    return np.where(rest > _OF_SUMS * total, rest, 0.0)


def squares_exceed(part: Array, total: Array, slack: Array) -> Array:
    """Return where a sum of squares exceeds the total from which it is subtracted, by more than rounding.

    Parameters
    ----------
    part, total : ndarray
    slack : ndarray
        The absolute rounding error, independent of the total (`slack_of`).
    """
    return np.asarray(part > total * (1.0 + _BEYOND) + slack)


def no_more_than_rounding(rest: Array, size: Array) -> Array:
    """Return which sums, of either sign, are rounding error relative to their former size."""
    return np.asarray(np.abs(rest) <= _OF_SUMS * size)


def slack_of(weight: Array, mean: Array, variance: Array) -> Array:
    """Return how much of a sum of squares may be rounding error from earlier subtractions.

    Parameters
    ----------
    weight, mean : ndarray
        Weight and mean of the rows of a component.
    variance : ndarray
        The variance of the columns over all components (`variance_of_all`).
    """
    return weight * (_OF_SUMS * variance + (_LAST_DIGITS * mean) ** 2)


def variance_of_all(weight: Array, mean: Array, scatter: Array) -> Array:
    """Return the variance of columns over all components, (d,): within plus between components."""
    total = weight.sum(axis=0)
    share = weight / np.where(total > 0, total, 1.0)
    centre = (share * mean).sum(axis=0)
    within = scatter.sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.asarray(within + (share * (mean - centre) ** 2).sum(axis=0))


def ratio(part: Array, rest: Array) -> Array:
    """Return part / rest, and 0 where rest is 0."""
    return np.where(rest > 0, part / np.where(rest > 0, rest, 1.0), 0.0)


def indefinite(rest: Array, squares: Array, weight: float, variance: Array) -> Array:
    """Return which column (d,) makes a symmetric matrix (d, d) indefinite; none if it is a scatter matrix.

    Parameters
    ----------
    rest : ndarray (d, d)
    squares : ndarray (d,)
        The sum of squares of each column before the subtraction, over rows of this weight.
    weight : float
    variance : ndarray (d,)
        The variance of each column over all components.
    """
    scale = np.sqrt(np.maximum(squares, 0.0) + _COARSE * weight * variance)
    is_culprit = np.zeros(len(scale), np.bool_)
    varies = np.flatnonzero(scale > 0)
    if len(varies):
        values, vectors = np.linalg.eigh(rest[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies]))
        if values[0] < -_BEYOND * len(varies):
            is_culprit[varies[np.argmax(np.abs(vectors[:, 0]))]] = True
    return is_culprit


def _whole(weight: Array) -> Array:
    return np.asarray(weight == np.floor(weight))
