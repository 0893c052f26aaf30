"""The posterior predictive density of a multivariate Gaussian: mean and covariance integrated out."""

from __future__ import annotations

import numpy as np

from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.densities.pooling import Pooled, Pooling
from posteriori.densities.singular import least_eigenvalue, regularise_singular
from posteriori.densities.student import truncated_t
from posteriori.densities.within_ranges import Box
from posteriori.statistics.scatter import Scatter
from posteriori.typing import Array


def integrate_out_parameters(
    mean: Array, covariance: Array, statistics: Scatter, pooling: Pooling, ddof: int
) -> MultivariateGaussianParameters:
    r"""Return the t densities that integrate the means and the covariances out.

    The prior of a covariance is inverse Wishart with d + 1 degrees of freedom, as if d + 1 rows had shown the diagonal
    matrix D of the pooled within-class variances; that of the means is flat. With the covariance Σ of m rows that
    pooling and shrinkage give, of which r = m less the number of means are degrees of freedom,

    .. math:: p(x \mid z) = t_{r + 2}\Bigl(x;\ \mu_z,\ \bigl(1 + \tfrac{1}{n_z}\bigr)
              \frac{m \Sigma + (d + 1) D}{r + 2}\Bigr)

    D comes from the rows, so that multiplying a column by a constant changes no posterior. ν = r + 2 does not depend on
    d, because the marginal of an inverse Wishart loses a degree of freedom with each column.

    Parameters
    ----------
    mean : ndarray (Z, d)
    covariance : ndarray (G, d, d)
        Of all components, or of each; possibly singular.
    statistics : Scatter
    pooling : Pooling
    ddof : int
        As the covariances were estimated with.

    Notes
    -----
    If cells are missing, a component counts as many rows as its columns have present cells on average. A component
    without rows counts as one row at the mean of all.

    References
    ----------
    Geisser, Posterior odds for multivariate normal classifications, J. Royal Statistical Society B 26 (1964). Murphy,
    Conjugate Bayesian analysis of the Gaussian distribution (2007), section 9. Dawid, Some matrix-variate distribution
    theory, Biometrika 68 (1981), on the marginals.
    """
    known = np.minimum(statistics.weight, statistics.cells.weight.mean(axis=1))
    n_covariances, d = covariance.shape[:2]
    rows = pooling.mixed(np.maximum(known - ddof, 0.0))
    degrees = pooling.mixed(np.maximum(known - 1.0, 0.0)) + 2.0
    prior = regularise_singular(
        np.diag(within_variances(statistics, ddof)), statistics.variance_of_cells, least_eigenvalue(statistics)
    )
    group = slice(n_covariances)
    scale = rows[group, np.newaxis, np.newaxis] * covariance + (d + 1.0) * prior
    scale /= degrees[group, np.newaxis, np.newaxis]
    spread = 1.0 + 1.0 / np.where(known > 0, known, 1.0)
    return MultivariateGaussianParameters(mean, scale, degrees.copy(), spread)


def within_variances(statistics: Scatter, ddof: int) -> Array:
    """Return the pooled within-class variance of each column, (d,)."""
    variation = np.diagonal(statistics.scatter, axis1=1, axis2=2)
    return np.asarray(Pooled().covariances(np.maximum(statistics.weight - ddof, 0.0), variation)[0])


def sample_t_within(
    parameters: MultivariateGaussianParameters, component: Array, rng: np.random.Generator, box: Box
) -> Array:
    """Draw rows, (n, d), each column truncated to the edges of a box given the columns before it.

    Given p columns, the next one is a t with ν + p degrees of freedom, whose squared scale is that of a Gaussian times
    (ν + distance of the p columns) / (ν + p).
    """
    low, high = box.edges
    drawn = np.empty((len(component), parameters.mean.shape[1]))
    assert parameters.degrees is not None
    assert parameters.spread is not None
    for z in np.unique(component):
        rows, nu = np.flatnonzero(component == z), parameters.degrees[z]
        factor = np.linalg.cholesky(parameters.spread[z] * parameters.covariance[parameters.group(z)])
        white = np.zeros((len(rows), len(factor)))
        for j, mean in enumerate(parameters.mean[z]):
            expected = mean + white[:, :j] @ factor[j, :j]
            stretch = np.sqrt((nu + (white[:, :j] ** 2).sum(axis=1)) / (nu + j))
            cells = truncated_t(nu + j, expected, factor[j, j] * stretch, low[j], high[j], rng)
            white[:, j] = (cells - expected) / factor[j, j]
            drawn[rows, j] = cells
    return drawn
