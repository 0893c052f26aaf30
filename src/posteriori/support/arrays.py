"""Functions of arrays of any namespace of the array API standard: entries of tables, and the error function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Arrays = Any  # an array of NumPy, or one that ndonnx records

# Coefficients of the rational functions, from the least power on, each of its numerator and denominator.
_NEAR = (
    (3.20937758913846947e3, 3.77485237685302021e2, 1.13864154151050156e2, 3.16112374387056560, 1.85777706184603153e-1),
    (2.84423683343917062e3, 1.28261652607737228e3, 2.44024637934444173e2, 2.36012909523441209e1, 1.0),
)
_MIDDLE = (
    (
        1.23033935479799725e3,
        2.05107837782607147e3,
        1.71204761263407058e3,
        8.81952221241769090e2,
        2.98635138197400131e2,
        6.61191906371416295e1,
        8.88314979438837594,
        5.64188496988670089e-1,
        2.15311535474403846e-8,
    ),
    (
        1.23033935480374942e3,
        3.43936767414372164e3,
        4.36261909014324716e3,
        3.29079923573345963e3,
        1.62138957456669019e3,
        5.37181101862009858e2,
        1.17693950891312499e2,
        1.57449261107098347e1,
        1.0,
    ),
)
_FAR = (
    (
        6.58749161529837803e-4,
        1.60837851487422766e-2,
        1.25781726111229246e-1,
        3.60344899949804439e-1,
        3.05326634961232344e-1,
        1.63153871373020978e-2,
    ),
    (
        2.33520497626869185e-3,
        6.05183413124413191e-2,
        5.27905102951428412e-1,
        1.87295284992346725,
        2.56852019228982242,
        1.0,
    ),
)
_ROOT_PI = 1.7724538509055160273
_FARTHEST = 30.0  # where erfc is 0 in double precision


def taken(table: Arrays, index: Arrays) -> Arrays:
    """Return the entries of a table, (K, …), at an array of positions of any shape."""
    if isinstance(index, np.ndarray):
        return np.asarray(table)[index]
    xp = index.__array_namespace__()
    flat = xp.take(xp.asarray(table), xp.reshape(index, (-1,)), axis=0)
    return xp.reshape(flat, (-1, *index.shape[1:], *table.shape[1:]))


def erfc(x: Arrays) -> Arrays:
    """Return the complementary error function 1 − erf(x), to 1e-15 of itself in both tails.

    References
    ----------
    Cody, Rational Chebyshev approximations for the error function, Mathematics of Computation 23 (1969).
    """
    xp = x.__array_namespace__()
    size = xp.minimum(xp.abs(x), xp.asarray(_FARTHEST))
    near = 1.0 - x * _ratio(_NEAR, xp.where(size <= 0.5, x * x, xp.zeros_like(x)))
    inverse = 1.0 / xp.where(size > 4.0, size * size, 1.0 + xp.zeros_like(x))
    far = (1.0 / _ROOT_PI - inverse * _ratio(_FAR, inverse)) / xp.where(size > 4.0, size, 1.0 + xp.zeros_like(x))
    rounded = xp.floor(size * 16.0) / 16.0  # whose square is exact
    tail = xp.exp(-rounded * rounded) * xp.exp((rounded - size) * (size + rounded))
    tail = tail * xp.where(size <= 4.0, _ratio(_MIDDLE, xp.minimum(size, xp.asarray(4.0))), far)
    return xp.where(size <= 0.46875, near, xp.where(x < 0.0, 2.0 - tail, tail))


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Arrays) -> Arrays:
    """Return a rational function by Horner's rule."""
    above, below = (_polynomial(of, x) for of in coefficients)
    return above / below


def _polynomial(coefficients: Sequence[float], x: Arrays) -> Arrays:
    total: Arrays = coefficients[-1]
    for one in reversed(coefficients[:-1]):
        total = total * x + one
    return total
