"""The parameters of multivariate Gaussians, and the Mahalanobis distances of rows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.densities.student import log_peaks, log_tails
from posteriori.densities.triangular import solve_lower
from posteriori.invariants import LARGEST_SQUARE, check_numbers, require
from posteriori.tables.columns import Column
from posteriori.typing import Array

_BLOCK_CELLS = 1 << 18  # whitened cells per block, so that a block stays in the cache


@dataclass(frozen=True)
class MultivariateGaussianParameters:
    """Means (Z, d) and covariances (G, d, d), with G = Z, or G = 1 if all components share one covariance.

    In data units and squared data units.

    With degrees of freedom ν (Z,) the density is a t of the scale matrix spread_z·covariance, spread (Z,). Components
    whose means are known from different numbers of rows then still share one covariance. The t is that of the columns
    that are not in `constant`; a cell of these has the factor 1, as if it were missing.
    """

    mean: Array
    covariance: Array
    degrees: Array | None = None
    spread: Array | None = None
    constant: tuple[int, ...] = ()

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        d = len(columns)
        check_numbers("the means", self.mean, (n_components, d))
        require(
            len(self.covariance.shape) == 3 and len(self.covariance) in (1, n_components),
            "the number of covariances is not 1 and not the number of components",
        )
        check_numbers("the covariances", self.covariance, (len(self.covariance), d, d), -LARGEST_SQUARE, LARGEST_SQUARE)
        require(bool(np.isfinite(self.whitener).all()), "a covariance is singular")
        require((self.degrees is None) == (self.spread is None), "degrees of freedom and spread do not come together")
        if self.degrees is not None and self.spread is not None:
            check_numbers("the degrees of freedom", self.degrees, (n_components,), 1e-3)
            check_numbers("the spread", self.spread, (n_components,), 1e-3)
        require(not self.constant or self.degrees is not None, "columns are left out of a density that is not a t")
        require(all(0 <= j < d for j in self.constant), "a column that is left out of a t is not one of its columns")

    def plug_in(self) -> MultivariateGaussianParameters:
        """Return a Gaussian with the same mean and covariance."""
        return MultivariateGaussianParameters(self.mean, self.covariance)

    @cached_property
    def varying(self) -> list[int]:
        """The columns of the density: those that are not constant."""
        return [j for j in range(self.mean.shape[1]) if j not in self.constant]

    @cached_property
    def of_varying(self) -> MultivariateGaussianParameters:
        """The parameters of the columns that vary."""
        if not self.constant:
            return self
        mean, covariance = self.mean[:, self.varying], self.covariance[:, self.varying][:, :, self.varying]
        return MultivariateGaussianParameters(mean, covariance, self.degrees, self.spread)

    @property
    def shared(self) -> bool:
        """Whether all components share one covariance."""
        return len(self.covariance) < len(self.mean) or len(self.mean) == 1

    @cached_property
    def log_peak(self) -> Array:
        """The log density at the mean in nats of p = 0 … d columns of unit covariance, (d + 1, Z)."""
        d = self.mean.shape[1]
        if self.degrees is None or self.spread is None:
            return np.tile(-0.5 * math.log(2.0 * math.pi) * np.arange(d + 1.0)[:, np.newaxis], len(self.mean))
        return log_peaks(self.degrees, d) - 0.5 * np.outer(np.arange(d + 1.0), np.log(self.spread))

    def log_density_at(self, distance: Array, n_present: Any, z: Any = slice(None)) -> Array:
        """Return log p(x | z) + ½·log |covariance| in nats, for squared distances (n, Z) or (n,) of one component.

        n_present holds the number of columns that the distances are over, (n,) or one number.
        """
        peak = self.log_peak[n_present][..., z]
        if self.degrees is None or self.spread is None:
            return np.asarray(peak - 0.5 * distance)
        counts = np.asarray(n_present, np.float64)
        counts = counts[:, np.newaxis] if counts.ndim and distance.ndim > 1 else counts
        return np.asarray(peak + log_tails(distance / self.spread[z], counts, self.degrees[z]))

    @cached_property
    def whitener(self) -> Array:
        """W = L⁻ᵀ for covariance = L·Lᵀ, (G, d, d): (x − mean)ᵀW has unit covariance. Upper triangular."""
        identity = np.eye(self.mean.shape[1])
        return np.stack(
            [
                np.ascontiguousarray(solve_lower(np.linalg.cholesky(covariance), identity).T)
                for covariance in self.covariance
            ]
        )

    @cached_property
    def precision(self) -> Array:
        """The inverse covariances W·Wᵀ, (G, d, d)."""
        return self.whitener @ self.whitener.transpose(0, 2, 1)

    @cached_property
    def log_volume(self) -> Array:
        """The log determinants log |covariance|, (G,)."""
        return np.asarray(-2.0 * np.log(np.diagonal(self.whitener, axis1=1, axis2=2)).sum(axis=1))

    @cached_property
    def middle(self) -> Array:
        """The mean of the means, (d,). Rows are centred on it before whitening, so that an offset costs no digits."""
        return np.asarray(self.mean.mean(axis=0))

    @cached_property
    def whiteners(self) -> Array:
        """The whiteners side by side, (d, G·d), so that one matrix product whitens a row for every covariance."""
        return np.ascontiguousarray(np.concatenate(list(self.whitener), axis=1))

    @cached_property
    def whitened_means(self) -> Array:
        """(mean_z − middle)ᵀ·W_z, (Z, d)."""
        pairs = zip(self.mean, (self.group(z) for z in range(len(self.mean))), strict=True)
        return np.stack([(mean - self.middle) @ self.whitener[g] for mean, g in pairs])

    @cached_property
    def groups(self) -> Array:
        """The index of the covariance of each component, (Z,)."""
        return np.array([self.group(z) for z in range(len(self.mean))])

    def group(self, z: int) -> int:
        """Return the index of the covariance of component z."""
        return 0 if len(self.covariance) == 1 else z


def squared_distances(parameters: MultivariateGaussianParameters, values: Array) -> tuple[Array, Array, Array]:
    """Return squared Mahalanobis distances (n, Z), log |Σ_oo| (n, Z) or (Z,), and the number of present cells (n,)."""
    n, d = values.shape
    distance = np.empty((n, len(parameters.mean)))
    group = parameters.groups
    width = parameters.whiteners.shape[1]
    size = max(1, min(n, _BLOCK_CELLS // max(1, width)))
    # All blocks reuse the same buffers, which stay in the cache.
    deviation, whitened = np.empty((size, d)), np.empty((size, width))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        centred, white = deviation[: rows.stop - start], whitened[: rows.stop - start]
        with np.errstate(invalid="ignore", over="ignore"):  # infinite cells are reported by `out_of_support`
            np.subtract(values[rows], parameters.middle, out=centred)
            np.matmul(centred, parameters.whiteners, out=white)
        kernels.whitened_distance(white, parameters.whitened_means, group, distance[rows])
    log_volume, present = parameters.log_volume[group], np.full(n, d)
    incomplete = np.flatnonzero(np.isnan(distance[:, 0])) if n else np.empty(0, np.int64)
    if len(incomplete):
        missing = np.isnan(values[incomplete])
        log_volume = np.tile(log_volume, (n, 1))
        present[incomplete] -= missing.sum(axis=1)
        for z in range(len(parameters.mean)):
            deviation = np.where(missing, 0.0, values[incomplete] - parameters.mean[z])
            with np.errstate(invalid="ignore", over="ignore"):
                whitened = deviation @ parameters.whitener[group[z]]
            parts = distance_from_component(parameters, group[z], missing, whitened)
            distance[incomplete, z], log_volume[incomplete, z] = parts
    return distance, log_volume, present


def distance_from_component(
    parameters: MultivariateGaussianParameters, g: int, missing: Array, whitened: Array
) -> tuple[Array, Array]:
    """Return each row's squared Mahalanobis distance and log |Σ_oo| over its present cells, by covariance g.

    whitened (n, d) are the deviations from the mean, 0 where a cell is missing, times the whitener of g.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.einsum("ij,ij->i", whitened, whitened)
    log_volume = np.full(len(whitened), parameters.log_volume[g])
    kernels.integrate_out(missing, whitened, parameters.whitener[g], parameters.precision[g], distance, log_volume)
    return distance, log_volume
