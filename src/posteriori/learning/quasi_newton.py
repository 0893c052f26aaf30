"""The minimum of a convex function of many parameters, some of them at least 0: L-BFGS with a projection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from posteriori.support.typing import Array

_MEMORY = 10  # pairs of steps and changes of the gradient
_SUFFICIENT = 1e-4  # of Armijo's condition
_MOST_CUTS = 30  # of a step


def minimum(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    unit: Array,
    bounded: slice,
    tolerance: float,
    most_steps: int = 300,
) -> Array:
    """Return where a convex loss is least, if the parameters `bounded` are at least 0.

    A step is that of L-BFGS in the free parameters. A parameter at 0 whose gradient is positive is not free; with
    these set apart, the projected step descends (Bertsekas 1982).

    Parameters
    ----------
    loss : callable
        Returns the loss and its gradient, (P,).
    start : ndarray (P,)
        The first position.
    unit : ndarray (P,)
        The unit of each parameter, > 0, in which their curvatures are of one order of magnitude.
    bounded : slice
        The parameters that are at least 0.
    tolerance : float
        The search ends if a step lowers the loss by at most this, relative to the loss if that exceeds 1.
    most_steps : int
        The search ends after so many steps.

    References
    ----------
    Nocedal & Wright, Numerical Optimization, 2nd ed., algorithm 7.4. Bertsekas, Projected Newton methods for
    optimization problems with simple constraints, SIAM J. Control 20 (1982).
    """
    position = start / unit
    np.maximum(position[bounded], 0.0, out=position[bounded])
    value, gradient = loss(unit * position)
    gradient *= unit
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=_MEMORY)
    for _ in range(most_steps):
        held = (position[bounded] <= 0.0) & (gradient[bounded] > 0.0)
        step = -gradient
        step[bounded][held] = 0.0
        size = float(np.sqrt(step @ step))
        if size == 0.0:
            break
        step = _times_inverse_hessian(step, pairs) if pairs else step * min(1.0, 1.0 / size)
        step[bounded][held] = 0.0
        share = 1.0
        for _ in range(_MOST_CUTS):
            moved = position + share * step
            np.maximum(moved[bounded], 0.0, out=moved[bounded])
            new_value, new_gradient = loss(unit * moved)
            new_gradient *= unit
            change = moved - position
            slope = float(gradient @ change)
            if new_value <= value + _SUFFICIENT * slope:
                break
            least = -0.5 * slope / (new_value - value - slope)  # of the parabola through both values and the slope
            share *= min(max(least, 0.1), 0.5)
        else:
            break
        rise = new_gradient - gradient
        curvature = float(rise @ change)
        if curvature > np.finfo(float).eps * float(rise @ rise):
            pairs.append((change, rise, curvature))
        gain = value - new_value
        position, value, gradient = moved, new_value, new_gradient
        if gain <= tolerance * max(abs(value), 1.0):
            break
    return unit * position


def _times_inverse_hessian(vector: Array, pairs: Iterable[tuple[Array, Array, float]]) -> Array:
    """Return the product of the inverse Hessian that L-BFGS estimates with a vector (algorithm 7.4)."""
    pairs = list(pairs)
    out = vector.copy()
    shares = []
    for change, rise, curvature in reversed(pairs):
        shares.append(float(change @ out) / curvature)
        out -= shares[-1] * rise
    _, rise, curvature = pairs[-1]
    out *= curvature / float(rise @ rise)
    for (change, rise, curvature), share in zip(pairs, reversed(shares), strict=True):
        out += (share - float(rise @ out) / curvature) * change
    return out
