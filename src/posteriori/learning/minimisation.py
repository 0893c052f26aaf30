"""The least value of a convex loss whose parameters may be bounded: by L-BFGS, and a step of Newton's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from posteriori import kernels
from posteriori.support.typing import Array

_MEMORY, _MEMORY_OF_MANY = 20, 6  # pairs of steps and changes of the gradient: of many, reading them takes longest
_MANY = 1 << 14  # parameters
_SMALL_STEPS = 2  # of L-BFGS one after the other that end a search
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
        The search ends if two steps each lower the loss by at most this, relative to the loss if that exceeds 1.
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
    changes, rises = np.empty((2, n_remembered(len(position)), len(position)))
    n_pairs = n_small = 0
    for _ in range(most_steps):
        held = (position[bounded] <= 0.0) & (gradient[bounded] > 0.0)
        step = -gradient
        step[bounded][held] = 0.0
        size = float(np.sqrt(step @ step))
        if size == 0.0:
            break
        if n_pairs:
            newest, count = (n_pairs - 1) % len(changes), min(n_pairs, len(changes))
            kernels.times_inverse_hessian(step, changes, rises, newest, count)
        else:
            step *= min(1.0, 1.0 / size)
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
            changes[n_pairs % len(changes)], rises[n_pairs % len(changes)] = change, rise
            n_pairs += 1
        n_small = n_small + 1 if value - new_value <= tolerance * max(abs(new_value), 1.0) else 0
        position, value, gradient = moved, new_value, new_gradient
        if n_small == _SMALL_STEPS:  # one may be a step that was cut
            break
    return unit * position


def n_remembered(n_parameters: int) -> int:
    """Return of how many steps `minimum` keeps the change of the position and of the gradient."""
    return _MEMORY if n_parameters < _MANY else _MEMORY_OF_MANY


def bounded_step(gradient: Array, hessian: Array, position: Array, bounded: Array) -> Array:
    """Return the step to the minimum of the quadratic model subject to bounded parameters ≥ 0 (active sets).

    Bertsekas (1982) projects a Newton step on the free parameters. Here the quadratic is minimised exactly: parameters
    that would become negative are fixed at 0, and freed again where the gradient of the quadratic is negative.
    """
    from scipy.linalg import cho_factor, cho_solve

    held = bounded & (position <= 0.0) & (gradient > 0.0)
    step = np.zeros(len(position))
    for _ in range(4 * len(position)):  # a guard against cycling; active sets usually settle in a few rounds
        free = ~held
        step[held] = -position[held]
        residual = gradient[free] + hessian[np.ix_(free, held)] @ step[held]
        step[free] = -cho_solve(cho_factor(hessian[np.ix_(free, free)]), residual)
        below = free & bounded & (position + step < 0.0)
        if below.any():
            held |= below
            continue
        slope = gradient + hessian @ step
        improvable = held & (slope < -1e-12)  # their multipliers have the wrong sign (Karush, Kuhn & Tucker)
        if not improvable.any():
            break
        held[np.argmin(np.where(improvable, slope, np.inf))] = False
    # Rounding, or an end of the loop without a solution, could leave a parameter below 0.
    step[bounded] = np.maximum(step[bounded], -position[bounded])
    return step
