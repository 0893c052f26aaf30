"""Gaussians of a number given its parent in a tree: a category, another number, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.densities.conditional import BackOff
from posteriori.densities.gaussian import Gaussian
from posteriori.statistics.pairs import Pairs
from posteriori.typing import Array

_FLOOR = 1e-9  # of the variance of a column, the least that is left of it once its parent is known


@dataclass(frozen=True)
class Normals:
    """p(x_j | z) of each column of numbers: what a Gaussian given a parent backs off to.

    Attributes
    ----------
    centre : ndarray (m,)
        Of all rows, in data units.
    mean, variance : ndarray (Z, m)
        The mean about the centre.
    """

    centre: Array
    mean: Array
    variance: Array

    @classmethod
    def of(cls, statistics: Pairs, strength: float) -> Normals:
        """Return the Gaussians of the columns, their variances drawn to the pooled ones by some pseudo-rows."""
        everyone = statistics.numbers.pooled()
        centre = np.where(everyone.weight[0] > 0, everyone.mean[0], 0.0)
        fitted = Gaussian(smoothing=strength).estimate(statistics.numbers)
        return cls(centre, fitted.mean - centre, fitted.variance)


def normals_given(
    normals: Normals, statistics: Pairs, i: int, parent: int, position: Array, smoothing: BackOff
) -> Array:
    """Return intercept, slope and variance of number i, (Z, lines, 3), about the centre.

    Estimates are those of the rows and s pseudo-rows in which x_i is as it is without the parent: of mean and variance
    of p(x_i | z), and independent of the parent.

    Parameters
    ----------
    i : int
        Its place among the numbers.
    parent : int
        The column of its parent, −1 for none. Of a category there are K + 1 lines, the first for a missing one.
    position : ndarray (d,)
        Where each column stands among those of its kind.
    """
    strength = smoothing.strength or 0.0
    mean, variance = normals.mean[:, i], normals.variance[:, i]
    alone = np.stack([mean, np.zeros_like(mean), variance], axis=1)[:, np.newaxis]
    if parent < 0:
        return alone
    if statistics.continuous[parent]:
        return _regression(normals, statistics, i, int(position[parent]), strength)[:, np.newaxis]
    across = statistics.across[position[parent]]
    shape = (len(mean), -1)
    weight, scatter = across.weight[:, i].reshape(shape), across.scatter[:, i].reshape(shape)
    own = (across.shift[:, i] - normals.centre[i] + across.offset[:, i]).reshape(shape)
    total = weight + strength
    seen = total > 0
    share = np.divide(weight, total, out=np.zeros_like(total), where=seen)
    apart = own - mean[:, np.newaxis]
    spread = scatter + strength * variance[:, np.newaxis] + strength * share * apart**2
    given_variance = np.divide(
        spread, total, out=np.broadcast_to(variance[:, np.newaxis], total.shape).copy(), where=seen
    )
    given_mean = mean[:, np.newaxis] + share * apart
    lines = np.stack(
        [given_mean, np.zeros_like(given_mean), np.maximum(given_variance, _FLOOR * variance[:, np.newaxis])], axis=2
    )
    lines[:, 0] = alone[:, 0]
    return lines


def _regression(normals: Normals, statistics: Pairs, i: int, p: int, strength: float) -> Array:
    """Return intercept, slope and variance of number i given number p, (Z, 3)."""
    both = statistics.together
    mean_i, mean_p = normals.mean[:, i], normals.mean[:, p]
    variance_i, variance_p = normals.variance[:, i], normals.variance[:, p]
    weight = both.weight[:, i, p]
    total = weight + strength
    spread_i = both.scatter[:, i, p] + strength * variance_i
    spread_p = both.scatter[:, p, i] + strength * variance_p
    slope = np.divide(both.cross[:, i, p], spread_p, out=np.zeros_like(spread_p), where=spread_p > 0)
    left = np.maximum(spread_i - slope * both.cross[:, i, p], 0.0)
    variance = np.divide(left, total, out=variance_i.copy(), where=total > 0)
    return np.stack([mean_i - slope * mean_p, slope, np.maximum(variance, _FLOOR * variance_i)], axis=1)
