"""What is left of sums over rows when each row in turn is taken out of them."""

from __future__ import annotations

import numpy as np

from posteriori.statistics.moments import Moments
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array

_ROUNDING = 1e-12  # a weight that subtraction leaves below this share of what it was is one of no row


def less(total: Array, part: Array) -> Array:
    """Return total − part, and 0 where that is no more than rounding."""
    rest = total - part
    return np.where(rest > _ROUNDING * total, rest, 0.0)


def weights_left(weight: Array, assignment: Assignment) -> Array:
    """Return the weight of each component without each row, (n, Z), from those of all rows, (Z,)."""
    left = np.tile(weight, (len(assignment.component), 1))
    own = np.arange(len(left)), assignment.component
    left[own] = less(left[own], assignment.weight)
    return left


def moments_left(statistics: Moments, tile: Numbers, assignment: Assignment) -> Moments:
    """Return the moments without each row of a tile, with arrays (n, Z, d): Chan's update, backwards."""
    n = len(tile.values)
    shape = (n, *statistics.weight.shape)
    rows, z = np.arange(n), assignment.component
    weight, shift, scatter = statistics.weight[z], statistics.shift[z], statistics.scatter[z]
    deviation = (tile.values - shift) - statistics.offset[z]
    present = ~np.isnan(deviation)
    deviation[~present] = 0.0
    gone = assignment.weight[:, np.newaxis] * present
    rest = less(weight, gone)
    step = gone * deviation / np.where(rest > 0, rest, 1.0)
    parts = [np.broadcast_to(part, shape).copy() for part in (statistics.weight, statistics.offset, statistics.scatter)]
    parts[0][rows, z] = rest
    parts[1][rows, z] -= step
    parts[2][rows, z] = np.where(rest > 0, less(scatter, weight * step * deviation), 0.0)
    return Moments(parts[0], np.broadcast_to(statistics.shift, shape), parts[1], parts[2])


def moments_without(statistics: Moments, tile: Numbers, assignment: Assignment) -> Moments:
    """Return the moments without the one row of a tile.

    Where all cells that are left are alike, so are the means of all components, to the last digit.
    """
    left = moments_left(statistics, tile, assignment)
    constant, value = constant_left(statistics, tile, assignment)
    shift, offset = np.where(constant, value, left.shift[0]), np.where(constant, 0.0, left.offset[0])
    return Moments(left.weight[0], shift, offset, np.where(constant, 0.0, left.scatter[0]))


def constant_left(statistics: Moments, tile: Numbers, assignment: Assignment) -> tuple[Array, Array]:
    """Return which columns have no scatter at all without the one row of a tile, (d,), and their value there."""
    left = moments_left(statistics.pooled(), tile, as_one_component(assignment))
    return (left.scatter[0, 0] <= 0) & (left.weight[0, 0] > 0), left.mean[0, 0]


def as_one_component(assignment: Assignment) -> Assignment:
    """Return the rows as those of one component."""
    return Assignment(np.zeros_like(assignment.component), assignment.weight, 1)
