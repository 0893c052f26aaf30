"""The posterior predictive density of a multivariate Gaussian: mean and covariance integrated out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.densities.pooling import Pooled, Pooling
from posteriori.densities.shrinkage import Covariances, Shrinkage
from posteriori.densities.singular import least_eigenvalue, regularise_singular
from posteriori.densities.student import truncated_t
from posteriori.densities.within_ranges import Box
from posteriori.statistics.scatter import Scatter
from posteriori.typing import Array


def integrate_out_parameters(
    mean: Array, estimated: Covariances, shrinkage: Shrinkage, pooling: Pooling, statistics: Scatter
) -> MultivariateGaussianParameters:
    r"""Return the t densities that integrate the means and the covariances out.

    The prior of a covariance is inverse Wishart, as if d + 1 rows had shown a matrix Ψ; that of the means is flat. With
    the covariance Σ of m rows that pooling and shrinkage give, of which r = m less the number of means are degrees of
    freedom,

    .. math:: p(x \mid z) = t_{r + 2}\Bigl(x;\ \mu_z,\ \bigl(1 + \tfrac{1}{n_z}\bigr)
              \frac{m \Sigma + (d + 1) \Psi}{r + 2}\Bigr)

    The prior of a covariance that all components share is the diagonal matrix Ψ = D of the pooled within-class
    variances. That of a component's own covariance is centred on the shared one: Ψ is the scale matrix that the formula
    gives for it. Both come from the rows, so that multiplying a column by a constant changes no posterior. ν = r + 2
    does not depend on d, because the marginal of an inverse Wishart loses a degree of freedom with each column.

    Parameters
    ----------
    mean : ndarray (Z, d)
    estimated : Covariances
        Pooled, not shrunk; possibly singular.
    shrinkage : Shrinkage
        Of the covariances and of Ψ, so that Ψ has their shape.
    pooling : Pooling
    statistics : Scatter

    Notes
    -----
    If cells are missing, a component counts as many rows as its columns have present cells on average. A component
    without rows counts as one row at the mean of all.

    A column that is constant or empty in all rows has no unit, and its density would differ between components by their
    numbers of rows alone. So it is left out of d, of this average, and of the density (`constant` of the parameters).

    References
    ----------
    Geisser, Posterior odds for multivariate normal classifications, J. Royal Statistical Society B 26 (1964). Murphy,
    Conjugate Bayesian analysis of the Gaussian distribution (2007), section 9. Dawid, Some matrix-variate distribution
    theory, Biometrika 68 (1981), on the marginals.
    """
    varies = statistics.variance_of_cells > 0.0
    cells = statistics.cells.weight[:, varies]
    known = np.minimum(statistics.weight, cells.mean(axis=1) if cells.size else np.inf)
    share = np.where(statistics.weight > 0, known / np.where(statistics.weight > 0, statistics.weight, 1.0), 0.0)
    rows, free = estimated.degrees * share, np.maximum(known - 1.0, 0.0)
    degrees = pooling.mixed(free) + 2.0
    pseudo_rows = varies.sum() + 1.0
    scale, least = statistics.variance_of_cells, least_eigenvalue(statistics)
    psi = regularise_singular(np.diag(estimated.unit**2), scale, least)
    if not pooling.shared:
        shared = Pooled().covariances(estimated.degrees, statistics.scatter)[0]
        psi = (rows.sum() * shared + pseudo_rows * psi) / (free.sum() + 2.0)
    alike = replace(estimated, covariance=np.tile(psi, (len(estimated.covariance), 1, 1)))
    prior = np.stack([regularise_singular(one, scale, least) for one in shrinkage.shrink(alike)])
    of_rows = pooling.mixed(rows)[: len(prior), np.newaxis, np.newaxis] * shrinkage.shrink(estimated)
    covariance = (of_rows + pseudo_rows * prior) / degrees[: len(prior), np.newaxis, np.newaxis]
    spread = 1.0 + 1.0 / np.where(known > 0, known, 1.0)
    constant = tuple(np.flatnonzero(~varies).tolist())
    return MultivariateGaussianParameters(mean, covariance, np.array(degrees), spread, constant)


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
