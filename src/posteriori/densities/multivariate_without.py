"""Full conditionals of a multivariate Gaussian or t, from one inverse per pattern of missing cells."""

from __future__ import annotations

import math

import numpy as np

from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.typing import Array


def log_factors_given_others(parameters: MultivariateGaussianParameters, values: Array) -> Array:
    r"""Return log p(x_j | all other present cells, z) in nats, (d, n, Z), 0 for a missing cell.

    With Q the precision of the present cells and v = Q(x − mean),

    .. math:: \log p(x_j \mid x_{-j}, z) = \tfrac12 \log \frac{Q_{jj}}{2 \pi} - \frac{v_j^2}{2 Q_{jj}}

    for a Gaussian. In general, without x_j the squared distance is smaller by v_j²/Q_jj, and the log determinant of
    the covariance by −log Q_jj.

    Parameters
    ----------
    parameters : MultivariateGaussianParameters
    values : ndarray (n, d)
        NaN where missing.

    References
    ----------
    Rue & Held, Gaussian Markov Random Fields, theorem 2.3.
    """
    n, d = values.shape
    factors = np.zeros((d, n, len(parameters.mean)))
    patterns, pattern = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    for number, present in enumerate(patterns):
        shown, rows = np.flatnonzero(present), np.flatnonzero(pattern.ravel() == number)
        precisions = [_precision_of(precision, present) for precision in parameters.precision]
        for z, mean in enumerate(parameters.mean):
            precision = precisions[parameters.group(z)]
            diagonal = np.diagonal(precision)
            deviation = values[np.ix_(rows, shown)] - mean[shown]
            pulled = deviation @ precision
            nearer = pulled**2 / diagonal
            if parameters.degrees is None:
                given = 0.5 * (np.log(diagonal / (2.0 * math.pi)) - nearer)
            else:
                distance, p = (pulled * deviation).sum(axis=1)[:, np.newaxis], len(shown)
                without = parameters.log_density_at(np.maximum(distance - nearer, 0.0), max(p - 1, 0), z)
                given = 0.5 * np.log(diagonal) + parameters.log_density_at(distance, p, z) - without
            factors[np.ix_(shown, rows, np.array([z]))] = given.T[:, :, np.newaxis]
    return factors


def _precision_of(precision: Array, present: Array) -> Array:
    """Return the precision of the present columns with the others integrated out: a Schur complement."""
    if present.all():
        return precision
    kept = precision[np.ix_(present, present)]
    across = precision[np.ix_(~present, present)]
    return np.asarray(kept - across.T @ np.linalg.solve(precision[np.ix_(~present, ~present)], across))
