"""What is left of sums when those of some of their rows are taken out of them again."""

from __future__ import annotations

import numpy as np

from posteriori.typing import Array

_OF_WEIGHTS = 1e-10  # relative to the sum: adding up fractions in another order moves it by no more
_OF_SQUARES = 1e-12  # a sum of squares that falls below this share of what it was is one of no deviation at all
_BEYOND = 1e-9  # a sum of squares that would fall by more than this share below 0 never had those rows in it
_OF_MEANS = 1e-12


def difference(total: Array, part: Array) -> Array:
    """Return the weight total − part, and 0 where that is no more than rounding; of whole numbers every digit is right.

    Parameters
    ----------
    total, part : ndarray
        ≥ 0, of like shape.
    """
    rest = total - part
    return np.where(rest > np.where(_whole(total) & _whole(part), 0.0, _OF_WEIGHTS * total), rest, 0.0)


def exceeds(part: Array, total: Array) -> Array:
    """Return where a weight is more than the one it is to be taken out of, by more than rounding."""
    return np.asarray(part - total > np.where(_whole(total) & _whole(part), 0.0, _OF_WEIGHTS * total))


def squares_left(total: Array, part: Array) -> Array:
    """Return the sum of squares total − part, and 0 where that is no more than rounding."""
    rest = total - part
    return np.where(rest > _OF_SQUARES * total, rest, 0.0)


def squares_exceed(part: Array, total: Array) -> Array:
    """Return where a sum of squares is more than the one it is to be taken out of, by more than rounding."""
    return np.asarray(part > total * (1.0 + _BEYOND))


def apart(shift: Array, offset: Array, other_shift: Array, other_offset: Array) -> Array:
    """Return how far the mean other_shift + other_offset lies above shift + offset, and 0 where that is rounding."""
    delta = (other_shift - shift) + (other_offset - offset)
    size = np.abs(other_shift - shift) + np.abs(other_offset) + np.abs(offset)
    return np.where(np.abs(delta) > _OF_MEANS * size, delta, 0.0)


def ratio(part: Array, rest: Array) -> Array:
    """Return part / rest, and 0 where nothing is left."""
    return np.where(rest > 0, part / np.where(rest > 0, rest, 1.0), 0.0)


def indefinite(rest: Array, scale: Array) -> Array:
    """Return which column (d,) makes a symmetric matrix (d, d) no scatter matrix of anything; none where it is one.

    Parameters
    ----------
    rest : ndarray (d, d)
    scale : ndarray (d,)
        What rounding is measured in: the root of the sum of squares of each column, 0 of one that does not vary.
    """
    found = np.zeros(len(scale), np.bool_)
    varies = np.flatnonzero(scale > 0)
    if len(varies):
        values, vectors = np.linalg.eigh(rest[np.ix_(varies, varies)] / np.outer(scale[varies], scale[varies]))
        if values[0] < -_BEYOND * len(varies):
            found[varies[np.argmax(np.abs(vectors[:, 0]))]] = True
    return found


def _whole(weight: Array) -> Array:
    return weight == np.floor(weight)
