"""A multivariate Gaussian with each column left out in turn, from one inverse for each pattern of missing cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from posteriori.typing import Array


def log_factors_given_others(mean: Array, precision: Array, group: Sequence[int], values: Array) -> Array:
    r"""Return log p(x_j | all other present cells, z) in nats, (d, n, Z), 0 for a missing cell.

    With Q the precision of the present cells and v = Q(x − mean),

    .. math:: \log p(x_j \mid x_{-j}, z) = \tfrac12 \log \frac{Q_{jj}}{2 \pi} - \frac{v_j^2}{2 Q_{jj}}

    Parameters
    ----------
    mean : ndarray (Z, d)
        In data units.
    precision : ndarray (G, d, d)
        The inverse covariance of each group of components.
    group : sequence of int, (Z,)
        The group of each component.
    values : ndarray (n, d)
        NaN where missing.

    References
    ----------
    Rue & Held, Gaussian Markov Random Fields, theorem 2.3.
    """
    n, d = values.shape
    factors = np.zeros((d, n, len(mean)))
    patterns, pattern = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    for number, present in enumerate(patterns):
        shown, rows = np.flatnonzero(present), np.flatnonzero(pattern.ravel() == number)
        precisions = [_precision_of(one, present) for one in precision]
        for z, centre in enumerate(mean):
            given_shown = precisions[group[z]]
            own = np.diagonal(given_shown)
            pulled = (values[np.ix_(rows, shown)] - centre[shown]) @ given_shown
            given = 0.5 * (np.log(own / (2.0 * math.pi)) - pulled**2 / own)
            factors[np.ix_(shown, rows, np.array([z]))] = given.T[:, :, np.newaxis]
    return factors


def _precision_of(precision: Array, present: Array) -> Array:
    """Return the precision of some columns when the others are integrated out: a Schur complement."""
    if present.all():
        return precision
    kept = precision[np.ix_(present, present)]
    across = precision[np.ix_(~present, present)]
    return kept - across.T @ np.linalg.solve(precision[np.ix_(~present, ~present)], across)
