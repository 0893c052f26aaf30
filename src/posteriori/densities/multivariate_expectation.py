"""The E-step of multivariate Gaussians: moments of rows, expected over their missing cells."""

from __future__ import annotations

import math

import numpy as np

from posteriori import kernels
from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters, distance_from_component
from posteriori.statistics.moments import Moments, sums_from_responsibilities
from posteriori.statistics.scatter import Scatter
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array


def expect(parameters: MultivariateGaussianParameters, tile: Numbers, assignment: Assignment) -> tuple[Scatter, float]:
    """Return the expected second moments of the rows and the log-likelihood of their present cells, in nats."""
    n_components, d = parameters.mean.shape
    weight = np.bincount(assignment.component, assignment.weight, n_components)
    offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
    log_likelihood = 0.0
    for z in range(n_components):
        chosen = assignment.component == z
        w = assignment.weight[chosen]
        missing, deviation, whitened = _about_mean(parameters, z, tile.values[chosen])
        distance, log_volume = distance_from_component(parameters, parameters.group(z), missing, whitened)
        seen = (~missing).sum(axis=1)
        log_likelihood -= 0.5 * float(w @ (distance + log_volume + seen * math.log(2.0 * math.pi)))
        _fill(parameters, z, missing, w, deviation, whitened, scatter[z])
        offset[z] = _add_moments(deviation, w, weight[z], scatter[z])
    cells = Moments.of(tile, assignment)
    return Scatter(weight, parameters.mean.copy(), offset, scatter, cells), log_likelihood


def expect_from_responsibilities(
    parameters: MultivariateGaussianParameters, tile: Numbers, responsibilities: Array
) -> Scatter:
    """Return the expected second moments of rows weighted by their responsibilities, (n, Z)."""
    n_components, d = parameters.mean.shape
    weight = sums_from_responsibilities(responsibilities)
    offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
    for z in range(n_components):
        rows = np.flatnonzero(responsibilities[:, z])
        w = responsibilities[rows, z]
        missing, deviation, whitened = _about_mean(parameters, z, tile.values[rows])
        _fill(parameters, z, missing, w, deviation, whitened, scatter[z])
        offset[z] = _add_moments(deviation, w, weight[z], scatter[z])
    cells = Moments.from_responsibilities(tile, responsibilities)
    return Scatter(weight, parameters.mean.copy(), offset, scatter, cells)


def expected_rows(parameters: MultivariateGaussianParameters, values: Array, posterior: Array) -> Array:
    """Return rows (n, d) with missing cells replaced by their expectations given the present ones.

    The expectations given the component are averaged over p(z | x), posterior (n, Z).
    """
    filled = np.zeros(values.shape)
    for z in range(len(parameters.mean)):
        missing, deviation, whitened = _about_mean(parameters, z, values)
        unused = np.zeros_like(parameters.covariance[0])
        _fill(parameters, z, missing, np.ones(len(values)), deviation, whitened, unused)
        filled += posterior[:, z : z + 1] * (parameters.mean[z] + deviation)
    return np.where(np.isnan(values), filled, values)


def _about_mean(parameters: MultivariateGaussianParameters, z: int, values: Array) -> tuple[Array, Array, Array]:
    """Return which cells are missing, the deviations from the mean of z, 0 for those, and the whitened deviations."""
    missing = np.isnan(values)
    deviation = np.where(missing, 0.0, values - parameters.mean[z])
    return missing, deviation, deviation @ parameters.whitener[parameters.group(z)]


def _fill(
    parameters: MultivariateGaussianParameters,
    z: int,
    missing: Array,
    weight: Array,
    deviation: Array,
    whitened: Array,
    scatter: Array,
) -> None:
    """Replace the deviations of missing cells by their expectations; add their covariances to the scatter (d, d)."""
    g = parameters.group(z)
    whitener, precision = parameters.whitener[g], parameters.precision[g]
    kernels.expect_missing(missing, weight, whitened, whitener, precision, deviation, scatter)


def _add_moments(deviation: Array, weight: Array, total: float, scatter: Array) -> Array:
    """Add the scatter of deviations (n, d) about their mean, and return this mean."""
    offset = weight @ deviation / (total if total > 0 else 1.0)
    apart = (deviation - offset) * np.sqrt(weight)[:, np.newaxis]
    scatter += apart.T @ apart
    return np.asarray(offset)
