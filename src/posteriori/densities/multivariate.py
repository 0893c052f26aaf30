"""One Gaussian over all continuous columns, dependent on each other given the component."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from posteriori import kernels
from posteriori.densities.pooling import PerClass, Pooling
from posteriori.densities.shrinkage import Covariances, InTurn, Shrinkage
from posteriori.statistics.scatter import Scatter
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.schema import Kind
from posteriori.typing import Array


@dataclass(frozen=True)
class MultivariateGaussianParameters:
    """Means (Z, d) and covariances (G, d, d), G = Z, or 1 where all components share one.

    In data units and squared data units.
    """

    mean: Array
    covariance: Array

    @property
    def shared(self) -> bool:
        """Whether all components share one covariance."""
        return len(self.covariance) < len(self.mean) or len(self.mean) == 1

    @cached_property
    def whitener(self) -> Array:
        """W = L⁻ᵀ for covariance = L·Lᵀ, (G, d, d): (x − mean)ᵀW has unit covariance. Upper triangular."""
        identity = np.eye(self.mean.shape[1])
        return np.stack(
            [
                np.ascontiguousarray(solve_triangular(np.linalg.cholesky(one), identity, lower=True).T)
                for one in self.covariance
            ]
        )

    @cached_property
    def precision(self) -> Array:
        """W·Wᵀ, (G, d, d)."""
        return self.whitener @ self.whitener.transpose(0, 2, 1)

    @cached_property
    def log_volume(self) -> Array:
        """log |covariance|, (G,)."""
        return -2.0 * np.log(np.diagonal(self.whitener, axis1=1, axis2=2)).sum(axis=1)

    def group(self, z: int) -> int:
        """Return which covariance is that of component z."""
        return 0 if len(self.covariance) == 1 else z


@dataclass(frozen=True)
class MultivariateGaussian:
    """p(x | z) = N(x; mean_z, covariance_z).

    Parameters
    ----------
    pooling : Pooling
        Which components share what of the covariance.
    shrinkage : Shrinkage
        Towards what each covariance is drawn afterwards.
    ddof : {0, 1}
        0 divides by n_z (maximum likelihood), 1 by n_z − 1 (unbiased).

    References
    ----------
    Anderson, An Introduction to Multivariate Statistical Analysis, 3rd ed., sections 2.5 and 3.2; for missing cells,
    Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.
    """

    pooling: Pooling = field(default_factory=PerClass)
    shrinkage: Shrinkage = field(default_factory=InTurn)
    ddof: int = 0
    name = "multivariate gaussian"
    kind: ClassVar[Kind] = "continuous"
    needs = Scatter
    support = "a finite number"
    unbounded = True

    def outside(self, tile: Numbers) -> Array:
        """Return which cells the density cannot produce: infinities."""
        return np.isinf(tile.values)

    def estimate(self, statistics: Scatter) -> MultivariateGaussianParameters:
        """Return means, and pooled and shrunk covariances; those that are singular are mended (`mend`)."""
        seen = statistics.weight > 0
        total = statistics.weight.sum()
        overall = statistics.weight @ statistics.mean / (total if total > 0 else 1.0)
        mean = np.where(seen[:, np.newaxis], statistics.mean, overall)
        return MultivariateGaussianParameters(mean, np.stack([mend(one) for one in self.unmended(statistics)]))

    def unmended(self, statistics: Scatter) -> Array:
        """Return the pooled and shrunk covariances as the rows determine them, singular or not, (G, d, d)."""
        degrees = np.maximum(statistics.weight - self.ddof, 0.0)
        covariance = self.pooling.covariances(degrees, statistics.scatter)
        return self.shrinkage.shrink(Covariances(covariance[:1] if self.pooling.shared else covariance, degrees))

    def log_density(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells integrated out."""
        values = tile.values
        missing = np.isnan(values)
        gaps = bool(missing.any())
        present = values.shape[1] - missing.sum(axis=1) if gaps else values.shape[1]
        out = np.empty((len(values), len(parameters.mean)))
        for z in range(len(parameters.mean)):
            distance, log_volume = _distance(parameters, values, missing if gaps else None, z)
            out[:, z] = -0.5 * (distance + log_volume + present * math.log(2.0 * math.pi))
        return out

    def mahalanobis(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return √((x − mean)ᵀ·covariance⁻¹·(x − mean)) over the present cells, (n, Z)."""
        missing = np.isnan(tile.values)
        gaps = missing if missing.any() else None
        squared = [_distance(parameters, tile.values, gaps, z)[0] for z in range(len(parameters.mean))]
        return np.sqrt(np.maximum(np.column_stack(squared), 0.0))

    def log_factors(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d), over the present cells: a chain, in this order."""
        n, d = tile.values.shape
        factors = np.zeros((n, len(parameters.mean), d))
        for i in range(n):
            o = np.flatnonzero(~np.isnan(tile.values[i]))
            for z in range(len(parameters.mean)):
                lower = np.linalg.cholesky(parameters.covariance[parameters.group(z)][np.ix_(o, o)])
                u = solve_triangular(lower, tile.values[i, o] - parameters.mean[z, o], lower=True)
                factors[i, z, o] = -0.5 * (u**2 + math.log(2.0 * math.pi)) - np.log(np.diagonal(lower))
        return factors

    def expect(
        self, parameters: MultivariateGaussianParameters, tile: Numbers, assignment: Assignment
    ) -> tuple[Scatter, float]:
        """Return the expected second moments of the rows, and the log-likelihood of what is present of them."""
        n_components, d = parameters.mean.shape
        weight = np.bincount(assignment.component, assignment.weight, n_components)
        offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
        present = np.zeros((n_components, d))
        log_likelihood = 0.0
        for z in range(n_components):
            chosen = assignment.component == z
            w, values = assignment.weight[chosen], tile.values[chosen]
            missing = np.isnan(values)
            g = parameters.group(z)
            deviation = np.where(missing, 0.0, values - parameters.mean[z])
            whitened = deviation @ parameters.whitener[g]
            distance, log_volume = _distance(parameters, values, missing, z)
            seen = (~missing).sum(axis=1)
            log_likelihood -= 0.5 * float(w @ (distance + log_volume + seen * math.log(2.0 * math.pi)))
            kernels.expect_missing(
                missing, w, whitened, parameters.whitener[g], parameters.precision[g], deviation, scatter[z]
            )
            offset[z] = w @ deviation / (weight[z] if weight[z] > 0 else 1.0)
            apart = (deviation - offset[z]) * np.sqrt(w)[:, np.newaxis]
            scatter[z] += apart.T @ apart
            present[z] = w @ ~missing
        return Scatter(weight, parameters.mean.copy(), offset, scatter, present), log_likelihood

    def expected_rows(self, parameters: MultivariateGaussianParameters, values: Array, z: int) -> Array:
        """Return the rows with each missing cell at its expectation given the others and component z, (n, d)."""
        missing = np.isnan(values)
        g = parameters.group(z)
        deviation = np.where(missing, 0.0, values - parameters.mean[z])
        whitened = deviation @ parameters.whitener[g]
        unknown = np.zeros_like(parameters.covariance[g])
        kernels.expect_missing(
            missing, np.ones(len(values)), whitened, parameters.whitener[g], parameters.precision[g], deviation, unknown
        )
        return parameters.mean[z] + deviation

    def sample(
        self, parameters: MultivariateGaussianParameters, component: Array, rng: np.random.Generator
    ) -> Array:
        """Draw rows, (n, d)."""
        drawn = rng.standard_normal((len(component), parameters.mean.shape[1]))
        for z in np.unique(component):
            rows = component == z
            drawn[rows] = drawn[rows] @ np.linalg.cholesky(parameters.covariance[parameters.group(z)]).T
        return drawn + parameters.mean[component]

    def n_parameters(self, parameters: MultivariateGaussianParameters) -> int:
        """Return Z·d means and d·(d + 1)/2 a covariance."""
        d = parameters.mean.shape[1]
        return parameters.mean.size + len(parameters.covariance) * d * (d + 1) // 2


def _distance(
    parameters: MultivariateGaussianParameters, values: Array, missing: Array | None, z: int
) -> tuple[Array, Array]:
    """Return each row's squared Mahalanobis distance from component z and log |Σ_oo|, over its present cells."""
    g = parameters.group(z)
    deviation = values - parameters.mean[z]
    if missing is not None:
        deviation[missing] = 0.0
    whitened = deviation @ parameters.whitener[g]
    distance = np.einsum("ij,ij->i", whitened, whitened)
    log_volume = np.full(len(values), parameters.log_volume[g])
    if missing is not None:
        kernels.integrate_out(
            missing, whitened, parameters.whitener[g], parameters.precision[g], distance, log_volume
        )
    return distance, log_volume


# A pivot of the correlation matrix below this says that a column is, to rounding, a linear combination of others.
_LEAST_PIVOT = 1e-10
_RIDGE = 1e-6


def mend(covariance: Array) -> Array:
    """Return a covariance that can be factorised: as it is, or with 1e-6 of each variance added to it.

    A column without variance gets 1e-6 of the mean of the others' variances (1 where there is none).
    """
    variance = np.diagonal(covariance).copy()
    if (variance > 0).all():
        sd = np.sqrt(variance)
        try:
            pivots = np.diagonal(np.linalg.cholesky(covariance / np.outer(sd, sd))) ** 2
        except np.linalg.LinAlgError:
            pivots = np.zeros(1)
        if pivots.min() > _LEAST_PIVOT:
            return covariance
    positive = variance[variance > 0]
    stand_in = _RIDGE * positive.mean() if len(positive) else 1.0
    return covariance + np.diag(np.where(variance > 0, _RIDGE * variance, stand_in))


def dependent_columns(covariance: Array) -> list[int]:
    """Return the columns that have no variance, or take part in a linear combination of no variance."""
    variance = np.diagonal(covariance)
    constant = variance <= 0
    sd = np.sqrt(np.where(constant, 1.0, variance))
    correlation = covariance / np.outer(sd, sd)
    varying = np.flatnonzero(~constant)
    values, vectors = np.linalg.eigh(correlation[np.ix_(varying, varying)])
    null = vectors[:, values < _LEAST_PIVOT]
    involved = varying[(null**2).sum(axis=1) > 1e-6] if null.size else varying[:0]
    return sorted({*np.flatnonzero(constant).tolist(), *involved.tolist()})
