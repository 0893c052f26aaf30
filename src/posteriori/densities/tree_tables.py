"""Gaussians of a number given its parent in a tree: a category, another number, or none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.densities.conditional import BackOff
from posteriori.densities.gaussian import Gaussian
from posteriori.statistics.pairs import Pairs
from posteriori.typing import Array

_FLOOR = 1e-9  # the smallest conditional variance given the parent, as a share of the variance of the column


@dataclass(frozen=True)
class Normals:
    """p(x_j | z) of each column of numbers, to which the Gaussian given a parent backs off.

    Attributes
    ----------
    centre : ndarray (m,)
        The mean of all rows, in data units.
    mean, variance : ndarray (Z, m)
        The mean minus the centre, and the variance.
    """

    centre: Array
    mean: Array
    variance: Array

    @classmethod
    def of(cls, statistics: Pairs, strength: float) -> Normals:
        """Return the Gaussians of the columns, with variances shrunk to the pooled ones by `strength` pseudo-rows."""
        pooled = statistics.numbers.pooled()
        centre = np.where(pooled.weight[0] > 0, pooled.mean[0], 0.0)
        fitted = Gaussian(smoothing=strength).estimate(statistics.numbers)
        return cls(centre, fitted.mean - centre, fitted.variance)


def normals_given(
    normals: Normals, statistics: Pairs, i: int, parent: int, position: Array, smoothing: BackOff
) -> Array:
    """Return intercept, slope and variance of number i, (Z, lines, 3), about the centre.

    The estimates use the rows and s pseudo-rows. In the pseudo-rows x_i has the mean and variance of p(x_i | z) and is
    independent of the parent.

    Parameters
    ----------
    i : int
        The index of the number among the columns of numbers.
    parent : int
        The column of its parent, −1 for none. A categorical parent has K + 1 lines, the first for a missing code.
    position : ndarray (d,)
        The index of each column among the columns of its kind.
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
    code_mean = (across.shift[:, i] - normals.centre[i] + across.offset[:, i]).reshape(shape)
    total = weight + strength
    seen = total > 0
    share = np.divide(weight, total, out=np.zeros_like(total), where=seen)
    apart = code_mean - mean[:, np.newaxis]
    # Merging n rows and s pseudo-rows adds n·s / (n + s)·apart² = s·share·apart² (Chan et al. 1979).
    spread = scatter + strength * variance[:, np.newaxis] + strength * share * apart**2
    given_variance = np.divide(
        spread, total, out=np.broadcast_to(variance[:, np.newaxis], total.shape).copy(), where=seen
    )
    given_mean = mean[:, np.newaxis] + share * apart
    lines = np.stack(
        [given_mean, np.zeros_like(given_mean), np.maximum(given_variance, _FLOOR * variance[:, np.newaxis])], axis=2
    )
    lines[:, 0] = alone[:, 0]  # a missing parent: the Gaussian without it
    return lines


def _regression(normals: Normals, statistics: Pairs, i: int, p: int, strength: float) -> Array:
    """Return intercept, slope and variance of number i given number p, (Z, 3).

    The least-squares line of the rows and s pseudo-rows, in which the two numbers are uncorrelated: slope
    S_ip / (S_pp + s·v_p), and variance (S_ii + s·v_i − slope·S_ip) / (n + s). The sums are over rows with both present.
    """
    both = statistics.together
    mean_i, mean_p = normals.mean[:, i], normals.mean[:, p]
    variance_i, variance_p = normals.variance[:, i], normals.variance[:, p]
    weight = both.weight[:, i, p]
    total = weight + strength
    spread_i = both.scatter[:, i, p] + strength * variance_i
    spread_p = both.scatter[:, p, i] + strength * variance_p
    slope = np.divide(both.cross[:, i, p], spread_p, out=np.zeros_like(spread_p), where=spread_p > 0)
    left = np.maximum(spread_i - slope * both.cross[:, i, p], 0.0)  # rounding may make a perfect fit negative
    variance = np.divide(left, total, out=variance_i.copy(), where=total > 0)
    return np.stack([mean_i - slope * mean_p, slope, np.maximum(variance, _FLOOR * variance_i)], axis=1)
