"""Leave-one-out statistics: sums over rows without each row in turn."""

from __future__ import annotations

import numpy as np

from posteriori.statistics.moments import Moments
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array

_ROUNDING = 1e-12  # a difference below this share of the total is rounding error


def less(total: Array, part: Array) -> Array:
    """Return total − part, and 0 where the difference is rounding error."""
    rest = total - part
    return np.where(rest > _ROUNDING * total, rest, 0.0)


def weights_left(weight: Array, assignment: Assignment) -> Array:
    """Return the weight of each component without each row, (n, Z), from the weights of all rows, (Z,)."""
    left = np.tile(weight, (len(assignment.component), 1))
    observed = np.arange(len(left)), assignment.component
    left[observed] = less(left[observed], assignment.weight)
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
    removed = assignment.weight[:, np.newaxis] * present
    rest = less(weight, removed)
    step = removed * deviation / np.where(rest > 0, rest, 1.0)
    parts = [np.broadcast_to(part, shape).copy() for part in (statistics.weight, statistics.offset, statistics.scatter)]
    parts[0][rows, z] = rest
    parts[1][rows, z] -= step
    parts[2][rows, z] = np.where(rest > 0, less(scatter, weight * step * deviation), 0.0)
    return Moments(parts[0], np.broadcast_to(statistics.shift, shape), parts[1], parts[2])


def moments_without(statistics: Moments, tile: Numbers, assignment: Assignment) -> Moments:
    """Return the moments without the one row of a tile.

    If all remaining cells of a column are equal, the means of all components are exactly equal too.
    """
    left = moments_left(statistics, tile, assignment)
    constant, value = constant_left(statistics, tile, assignment)
    shift, offset = np.where(constant, value, left.shift[0]), np.where(constant, 0.0, left.offset[0])
    return Moments(left.weight[0], shift, offset, np.where(constant, 0.0, left.scatter[0]))


def constant_left(statistics: Moments, tile: Numbers, assignment: Assignment) -> tuple[Array, Array]:
    """Return which columns are constant without the one row of a tile, (d,), and their value."""
    left = moments_left(statistics.pooled(), tile, as_one_component(assignment))
    return (left.scatter[0, 0] <= 0) & (left.weight[0, 0] > 0), left.mean[0, 0]


def as_one_component(assignment: Assignment) -> Assignment:
    """Return the rows assigned to a single component."""
    return Assignment(np.zeros_like(assignment.component), assignment.weight, 1)
