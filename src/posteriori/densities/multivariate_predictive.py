"""Predictive multivariate densities: parameters integrated out, or estimated without a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from posteriori import kernels
from posteriori.densities.covariances import (
    Covariances,
    Pooled,
    Pooling,
    Shrinkage,
    least_eigenvalue,
    regularise_singular,
)
from posteriori.densities.gaussian import truncated_t
from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters, solve_lower
from posteriori.densities.within_ranges import Box
from posteriori.statistics.moments import less
from posteriori.statistics.scatter import Scatter
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment

# A pivot of a correlation matrix below _WEAK, or a variance below _LEAST times that of its column, may require
# regularisation, which has no closed form.
_WEAK = 1e-6
_LEAST = 2e-10


@dataclass(frozen=True)
class _Downdated:
    """Covariances of one component, each without one row: (D − share·δδᵀ)·scale, δ the row minus its class mean.

    Attributes
    ----------
    z : int
    rows, scale, share : ndarray (m,)
        The rows and their factors. D is a mixture of the class scatter matrices, the same for all rows.
    """

    z: int
    rows: Array
    scale: Array
    share: Array


def chain_left_out(pooling: Pooling, ddof: int, statistics: Scatter, values: Array, assignment: Assignment) -> Array:
    r"""Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d), of each row under the Gaussians without it.

    A pooled covariance is linear in the scatter matrices. Removing a row of weight w subtracts c·δδᵀ,
    c = w·n / (n − w), from the scatter matrix of its class. With Σ = LLᵀ before, u = L⁻¹(x − mean) and v = L⁻¹δ, the
    first j columns have

    .. math::
        |\Sigma'| = |\Sigma| s_j, \quad (x - m)^\top \Sigma'^{-1} (x - m) = \sum_{k \le j} u_k^2 + g
        \Bigl(\sum_{k \le j} u_k v_k\Bigr)^2 / s_j, \quad s_j = 1 - g \sum_{k \le j} v_k^2

    for Σ' = Σ − g·δδᵀ (Sherman & Morrison), so running sums give every factor: O(n·d·(d + Z)) in total.

    The result is NaN for a row with a missing cell, and for a component whose covariance without the row may be
    singular or that has no other row.

    References
    ----------
    Sherman & Morrison, Adjustment of an inverse matrix, Annals of Mathematical Statistics 21 (1950). Ripley, Pattern
    Recognition and Neural Networks, section 2.4 (leave-one-out of discriminant analysis).
    """
    n, d = values.shape
    values = np.asarray(values, np.float64)
    n_components = len(statistics.weight)
    out = np.full((n, n_components, d), np.nan)
    middle = statistics.mean.mean(axis=0)
    centred, means = values - middle, statistics.mean - middle
    total = statistics.cells.pooled()
    spread = total.scatter[0] / np.where(total.weight[0] > 0, total.weight[0], 1.0)
    component = assignment.component
    before = statistics.weight[component]
    rest = less(before, assignment.weight)
    away = before / np.where(rest > 0, rest, 1.0)
    for mixture, parts in _mixtures(pooling, ddof, statistics, assignment).items():
        covariance = np.tensordot(np.array(mixture), statistics.scatter, axes=1)
        try:
            lower = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            continue
        whitener = solve_lower(lower, np.eye(d)).T
        whitened, whitened_means = centred @ whitener, means @ whitener
        weak = np.stack([_WEAK * np.diagonal(covariance), _LEAST * spread])
        for part in parts:
            kernels.chain_left_out(
                whitened,
                whitened_means,
                component,
                away,
                part.z,
                part.rows,
                part.scale,
                part.share,
                np.diagonal(lower) ** 2,
                weak,
                out,
            )
    return out


def _mixtures(
    pooling: Pooling, ddof: int, statistics: Scatter, assignment: Assignment
) -> dict[tuple[float, ...], list[_Downdated]]:
    """Group the downdated covariances by the mixture of class scatter matrices from which they are computed."""
    n_components = len(statistics.weight)
    groups: dict[tuple[float, ...], dict[int, list[tuple[Array, float, float]]]] = {}
    for y, w, rows in _rows_by_class_and_weight(assignment):
        weight = statistics.weight.copy()
        rest = float(less(weight[y : y + 1], np.array([w]))[0])
        if rest <= 0:
            continue
        taken = w * weight[y] / rest
        weight[y] = rest
        part_of = pooling.covariances(np.maximum(weight - ddof, 0.0), np.eye(n_components))
        for z, mixture in enumerate(part_of):
            scale = float(mixture.sum())
            if scale > 0:
                key = tuple(np.round(mixture / scale, 12).tolist())
                groups.setdefault(key, {}).setdefault(z, []).append((rows, scale, taken * mixture[y] / scale))
    return {
        key: [
            _Downdated(
                z,
                np.concatenate([rows for rows, _, _ in parts]),
                np.concatenate([np.full(len(rows), scale) for rows, scale, _ in parts]),
                np.concatenate([np.full(len(rows), share) for rows, _, share in parts]),
            )
            for z, parts in of_z.items()
        ]
        for key, of_z in groups.items()
    }


def _rows_by_class_and_weight(assignment: Assignment) -> Iterator[tuple[int, float, Array]]:
    """Yield class, weight and row indices for each combination of class and weight."""
    order = np.lexsort((assignment.weight, assignment.component))
    z, w = assignment.component[order], assignment.weight[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(z) != 0) | (np.diff(w) != 0)]))
    for start, rows in zip(starts.tolist(), np.split(order, starts[1:]), strict=True):
        yield int(z[start]), float(w[start]), rows


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
    prior = regularise_singular(shrinkage.shrink(alike), scale, least)
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
        factor = np.linalg.cholesky(parameters.spread[z] * parameters.covariance[parameters.groups[z]])
        white = np.zeros((len(rows), len(factor)))
        for j, mean in enumerate(parameters.mean[z]):
            expected = mean + white[:, :j] @ factor[j, :j]
            stretch = np.sqrt((nu + (white[:, :j] ** 2).sum(axis=1)) / (nu + j))
            cells = truncated_t(nu + j, expected, factor[j, j] * stretch, low[j], high[j], rng)
            white[:, j] = (cells - expected) / factor[j, j]
            drawn[rows, j] = cells
    return drawn
