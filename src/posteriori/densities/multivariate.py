"""One Gaussian over all continuous columns, dependent on each other given the component."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from posteriori import kernels
from posteriori.densities.gaussian import check_least_variance
from posteriori.densities.multivariate_left_out import chain_left_out
from posteriori.densities.multivariate_without import log_factors_given_others
from posteriori.densities.pooling import PerClass, Pooled, Pooling
from posteriori.densities.shrinkage import Chain, Covariances, LedoitWolf, Shrinkage
from posteriori.densities.within_ranges import Box, truncated_normal
from posteriori.invariants import LARGEST_SQUARE, check_numbers, require
from posteriori.statistics.moments import Moments, sums_from_responsibilities
from posteriori.statistics.quartic import OfComplete, QuarticNorms
from posteriori.statistics.scatter import Scatter
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.schema import CellKind, Column
from posteriori.typing import Array


@dataclass(frozen=True)
class MultivariateGaussianParameters:
    """Means (Z, d) and covariances (G, d, d), G = Z, or 1 where all components share one.

    In data units and squared data units.
    """

    mean: Array
    covariance: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters are of these columns and so many components."""
        d = len(columns)
        check_numbers("the means", self.mean, (n_components, d))
        require(
            len(self.covariance.shape) == 3 and len(self.covariance) in (1, n_components), "covariances are missing"
        )
        check_numbers("the covariances", self.covariance, (len(self.covariance), d, d), -LARGEST_SQUARE, LARGEST_SQUARE)
        require(bool(np.isfinite(self.whitener).all()), "a covariance is singular")

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
        """The log of |covariance|, (G,)."""
        return -2.0 * np.log(np.diagonal(self.whitener, axis1=1, axis2=2)).sum(axis=1)

    @cached_property
    def middle(self) -> Array:
        """The mean of the means, (d,): rows are whitened about it, that an offset may cost no digits."""
        return self.mean.mean(axis=0)

    @cached_property
    def whiteners(self) -> Array:
        """The whiteners side by side, (d, G·d), so that one product whitens a row for every covariance."""
        return np.ascontiguousarray(np.concatenate(list(self.whitener), axis=1))

    @cached_property
    def whitened_means(self) -> Array:
        """(mean_z − middle)ᵀ·W_z, (Z, d)."""
        pairs = zip(self.mean, (self.group(z) for z in range(len(self.mean))), strict=True)
        return np.stack([(mean - self.middle) @ self.whitener[g] for mean, g in pairs])

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
    least_variance : tuple of float (d,), default ()
        Every covariance is at least the diagonal matrix of these, in squared data units (`raised_to`), so that no
        variance is smaller, conditional ones included; empty for no such bound.

    References
    ----------
    Anderson, An Introduction to Multivariate Statistical Analysis, 3rd ed., sections 2.5 and 3.2; for missing cells,
    Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.
    """

    pooling: Pooling = field(default_factory=PerClass)
    shrinkage: Shrinkage = field(default_factory=Chain)
    ddof: int = 0
    least_variance: tuple[float, ...] = ()
    name = "multivariate gaussian"
    kind: ClassVar[CellKind] = "continuous"
    sufficient_statistics = Scatter
    fitted = MultivariateGaussianParameters
    support = "a finite number"
    has_full_support = True

    def check(self) -> None:
        """Raise ValueError if ddof is neither 0 nor 1."""
        require(self.ddof in (0, 1), f"ddof is {self.ddof}, and neither 0 nor 1")

    def check_fitted(self, parameters: MultivariateGaussianParameters) -> None:
        """Raise ValueError unless there is a least variance for each column, or none at all."""
        check_least_variance(self.least_variance, parameters.mean.shape[1])

    def out_of_support(self, tile: Numbers) -> Array:
        """Return which cells the density cannot produce: infinities."""
        return np.isinf(tile.values)

    def estimate(self, statistics: Scatter) -> MultivariateGaussianParameters:
        """Return means, and pooled and shrunk covariances; singular ones are made regular (`regularise_singular`)."""
        seen = statistics.weight > 0
        total = statistics.weight.sum()
        share = statistics.weight / (total if total > 0 else 1.0)
        origin = statistics.mean[np.argmax(share)]  # about which the mean of all is taken, to save its digits
        overall = origin + share @ (statistics.mean - origin)
        mean = np.where(seen[:, np.newaxis], statistics.mean, overall)
        return MultivariateGaussianParameters(mean, self._regularised(self._raw(statistics), statistics))

    def undetermined(self, statistics: Scatter) -> list[int]:
        """Return the columns for which `estimate` had to mend a covariance, save those without any cell."""
        scale, least = statistics.variance_of_cells, _least(statistics)
        columns = {j for one in self._raw(statistics) for j in dependent_columns(one, scale, least)}
        return sorted(columns & set(np.flatnonzero(statistics.cells.weight.any(axis=0)).tolist()))

    @property
    def second_pass(self) -> str:
        """What takes a second look at the rows, for messages; empty where one is enough."""
        return 'shrinkage="ledoit_wolf"' if self.shrinkage == LedoitWolf() else ""

    def carry_over_structure(self, earlier: MultivariateGaussian) -> MultivariateGaussian:
        """Return the density itself: what it settled for fewer rows does not hold for more."""
        del earlier
        return self

    def refine(self, statistics: Scatter, look: Callable[[Any], Any]) -> tuple[MultivariateGaussian, Scatter]:
        """Return this density with the share of Ledoit and Wolf, if it is wanted: it takes the rows once more.

        Where covariances are mixed between classes, so are the fourth powers. Where cells are missing the share is that
        which is best for the complete rows alone, and so if anything too large: fewer rows need more shrinkage.

        Raises
        ------
        ValueError
            Cells are missing, and a class has not two complete rows.
        """
        if not (self.second_pass and isinstance(self.shrinkage, LedoitWolf)):
            return self, statistics
        complete = statistics if statistics.is_exact() else look(OfComplete(Scatter))
        if complete is not statistics and (complete.weight[statistics.weight > 0] < 2).any():
            raise ValueError(
                f"{self.second_pass} learns from rows without missing cells, and a class has fewer than two of them; "
                'give shrinkage="oas", which needs none, or a number'
            )
        estimated = self._pooled(complete)
        scale = np.broadcast_to(estimated.unit, complete.mean.shape)
        quartic = look(OfComplete(QuarticNorms(complete.mean, scale)))
        mean_quartic = self.pooling.covariances(estimated.degrees, quartic)[: len(estimated.covariance)]
        return replace(self, shrinkage=self.shrinkage.found(estimated, mean_quartic)), statistics

    def _regularised(self, covariance: Array, statistics: Scatter) -> Array:
        scale, least = statistics.variance_of_cells, _least(statistics)
        if self.least_variance:
            covariance = raised_to(covariance, np.array(self.least_variance))
        return np.stack([regularise_singular(one, scale, least) for one in covariance])

    def _raw(self, statistics: Scatter) -> Array:
        """Return the pooled and shrunk covariances as the rows determine them, singular or not, (G, d, d)."""
        return self.shrinkage.shrink(self._pooled(statistics))

    def _pooled(self, statistics: Scatter) -> Covariances:
        """Return the pooled covariances, and in what units to judge them."""
        degrees = np.maximum(statistics.weight - self.ddof, 0.0)
        covariance = self.pooling.covariances(degrees, statistics.scatter)
        variation = np.diagonal(statistics.scatter, axis1=1, axis2=2)
        within = Pooled().covariances(degrees, variation)[0]
        varies = within > _least(statistics) * statistics.variance_of_cells
        unit = np.sqrt(np.where(varies, within, 0.0))
        return Covariances(covariance[:1] if self.pooling.shared else covariance, degrees, unit)

    def log_density(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells integrated out."""
        result, log_volume, present = _distances(parameters, tile.values)
        result += log_volume
        result += (present * math.log(2.0 * math.pi))[:, np.newaxis]
        result *= -0.5
        return result

    def log_likelihood(self, parameters: MultivariateGaussianParameters, statistics: Scatter) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics, which lack no cell."""
        total = 0.0
        for z, weight in enumerate(statistics.weight):
            whitener = parameters.whitener[parameters.group(z)]
            apart = ((parameters.mean[z] - statistics.shift[z]) - statistics.offset[z]) @ whitener
            distance = float(np.sum(whitener * (statistics.scatter[z] @ whitener))) + weight * float(apart @ apart)
            constant = parameters.log_volume[parameters.group(z)] + len(apart) * math.log(2.0 * math.pi)
            total -= 0.5 * (distance + weight * float(constant))
        return total

    def mahalanobis(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return √((x − mean)ᵀ·covariance⁻¹·(x − mean)) over the present cells, (n, Z)."""
        return np.sqrt(np.maximum(_distances(parameters, tile.values)[0], 0.0))

    def log_factors(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d), over the present cells: a chain, in this order."""
        n, d = tile.values.shape
        factors = np.zeros((n, len(parameters.mean), d))
        patterns, pattern = np.unique(~np.isnan(tile.values), axis=0, return_inverse=True)
        for number, present in enumerate(patterns):
            o, rows = np.flatnonzero(present), np.flatnonzero(pattern.ravel() == number)
            if not len(o):
                continue
            values = tile.values[np.ix_(rows, o)]
            for z in range(len(parameters.mean)):
                lower = np.linalg.cholesky(parameters.covariance[parameters.group(z)][np.ix_(o, o)])
                u = solve_triangular(lower, (values - parameters.mean[z, o]).T, lower=True).T
                chain = -0.5 * (u**2 + math.log(2.0 * math.pi)) - np.log(np.diagonal(lower))
                factors[np.ix_(rows, np.array([z]), o)] = chain[:, np.newaxis]
        return factors

    def without_each(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x₋ⱼ | z) in nats, (d, n, Z): with each column unknown in turn."""
        whole = self.log_density(parameters, tile)
        group = [parameters.group(z) for z in range(len(parameters.mean))]
        return whole - log_factors_given_others(parameters.mean, parameters.precision, group, tile.values)

    def left_out(
        self,
        parameters: MultivariateGaussianParameters,
        statistics: Scatter,
        tile: Numbers,
        assignment: Assignment,
    ) -> Array:
        """Return what `log_factors` does of each row by the parameters without it.

        In closed form where no covariance is shrunk, and NaN elsewhere; see `LeaveOneOutDensity`.
        """
        if self.shrinkage != Chain():
            return np.full((len(tile.values), *parameters.mean.shape), np.nan)
        return chain_left_out(self.pooling, self.ddof, statistics, tile.values, assignment)

    def with_fixed_structure(self, parameters: MultivariateGaussianParameters) -> MultivariateGaussian:
        """Return the density itself; a share of Ledoit and Wolf that was found stays what it is."""
        del parameters
        return self

    def given(self, parameters: MultivariateGaussianParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, all above it; none where the covariance is diagonal."""
        related = (parameters.covariance != 0.0).any(axis=0)
        if not (related & ~np.eye(len(related), dtype=bool)).any():  # a diagonal covariance
            return ((),) * len(related)
        return tuple(tuple(range(j)) for j in range(len(related)))

    def expect(
        self, parameters: MultivariateGaussianParameters, tile: Numbers, assignment: Assignment
    ) -> tuple[Scatter, float]:
        """Return the expected second moments of the rows, and the log-likelihood of what is present of them."""
        n_components, d = parameters.mean.shape
        weight = np.bincount(assignment.component, assignment.weight, n_components)
        offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
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
        cells = Moments.of(tile, assignment)
        return Scatter(weight, parameters.mean.copy(), offset, scatter, cells), log_likelihood

    def expect_shares(self, parameters: MultivariateGaussianParameters, tile: Numbers, shares: Array) -> Scatter:
        """Return the expected second moments of rows of which every component has a share, (n, Z)."""
        n_components, d = parameters.mean.shape
        offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
        weight = sums_from_responsibilities(shares)
        absent = np.isnan(tile.values)
        for z in range(n_components):
            rows = np.flatnonzero(shares[:, z])
            w, missing, g = shares[rows, z], absent[rows], parameters.group(z)
            deviation = np.where(missing, 0.0, tile.values[rows] - parameters.mean[z])
            whitened = deviation @ parameters.whitener[g]
            kernels.expect_missing(
                missing, w, whitened, parameters.whitener[g], parameters.precision[g], deviation, scatter[z]
            )
            offset[z] = w @ deviation / (weight[z] if weight[z] > 0 else 1.0)
            apart = (deviation - offset[z]) * np.sqrt(w)[:, np.newaxis]
            scatter[z] += apart.T @ apart
        return Scatter(weight, parameters.mean.copy(), offset, scatter, Moments.from_responsibilities(tile, shares))

    def to_unconstrained(
        self, parameters: MultivariateGaussianParameters, reference: MultivariateGaussianParameters
    ) -> Array:
        """Return the means, and the covariances' Cholesky factors with their diagonals in logarithms.

        Diagonal and spherical covariances keep their shape on any line in these coordinates (Pinheiro & Bates,
        Unconstrained parametrizations for variance-covariance matrices, Statistics and Computing 6, 1996).
        """
        unit = np.sqrt(np.diagonal(reference.covariance[0]))
        factor = np.linalg.cholesky(parameters.covariance / np.outer(unit, unit))
        position = np.arange(len(unit))
        factor[:, position, position] = np.log(factor[:, position, position])
        return np.concatenate([((parameters.mean - reference.mean) / unit).ravel(), factor.ravel()])

    def from_unconstrained(
        self, to_unconstrained: Array, reference: MultivariateGaussianParameters, statistics: Scatter
    ) -> MultivariateGaussianParameters:
        """Return the parameters that have these coordinates, mended where they are singular."""
        unit = np.sqrt(np.diagonal(reference.covariance[0]))
        factor = to_unconstrained[reference.mean.size :].reshape(reference.covariance.shape).copy()
        position = np.arange(len(unit))
        factor[:, position, position] = np.exp(factor[:, position, position])
        mean = reference.mean + to_unconstrained[: reference.mean.size].reshape(reference.mean.shape) * unit
        covariance = factor @ factor.transpose(0, 2, 1) * np.outer(unit, unit)
        return MultivariateGaussianParameters(mean, self._regularised(covariance, statistics))

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

    def sample(self, parameters: MultivariateGaussianParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw rows, (n, d)."""
        drawn = rng.standard_normal((len(component), parameters.mean.shape[1]))
        for z in np.unique(component):
            rows = component == z
            drawn[rows] = drawn[rows] @ np.linalg.cholesky(parameters.covariance[parameters.group(z)]).T
        return drawn + parameters.mean[component]

    def sample_within(
        self, parameters: MultivariateGaussianParameters, component: Array, rng: np.random.Generator, box: Box
    ) -> Array:
        """Draw rows, (n, d), each column truncated to the edges of a box given the columns before it."""
        low, high = box.edges
        drawn = np.empty((len(component), parameters.mean.shape[1]))
        for z in np.unique(component):
            rows = np.flatnonzero(component == z)
            mean, factor = parameters.mean[z], np.linalg.cholesky(parameters.covariance[parameters.group(z)])
            white = np.zeros((len(rows), len(mean)))
            for j in range(len(mean)):
                expected = mean[j] + white[:, :j] @ factor[j, :j]
                cells = truncated_normal(expected, factor[j, j], low[j], high[j], rng)
                white[:, j] = (cells - expected) / factor[j, j]
                drawn[rows, j] = cells
        return drawn

    def n_parameters(self, parameters: MultivariateGaussianParameters) -> int:
        """Return Z·d means and, a covariance, d·(d + 1)/2, or fewer where the shrinkage leaves fewer free."""
        d = parameters.mean.shape[1]
        return parameters.mean.size + self.shrinkage.n_free(d, len(parameters.covariance))


def _distances(parameters: MultivariateGaussianParameters, values: Array) -> tuple[Array, Array, Array]:
    """Return squared Mahalanobis distances (n, Z), log |Σ_oo| (n, Z) or (Z,), and how many cells are present (n,)."""
    n, d = values.shape
    distance = np.empty((n, len(parameters.mean)))
    group = np.array([parameters.group(z) for z in range(len(parameters.mean))])
    width = parameters.whiteners.shape[1]
    size = max(1, min(n, _BLOCK_CELLS // width))
    # Memory that every block uses again stays in the cache.
    deviation, whitened = np.empty((size, d)), np.empty((size, width))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        mine, white = deviation[: rows.stop - start], whitened[: rows.stop - start]
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite cells, which `out_of_support` tells
            np.subtract(values[rows], parameters.middle, out=mine)
            np.matmul(mine, parameters.whiteners, out=white)
        kernels.whitened_distance(white, parameters.whitened_means, group, distance[rows])
    log_volume, present = parameters.log_volume[group], np.full(n, d)
    incomplete = np.flatnonzero(np.isnan(distance[:, 0])) if n else np.empty(0, np.int64)
    if len(incomplete):
        missing = np.isnan(values[incomplete])
        log_volume = np.tile(log_volume, (n, 1))
        present[incomplete] -= missing.sum(axis=1)
        for z in range(len(parameters.mean)):
            parts = _distance(parameters, values[incomplete], missing, z)
            distance[incomplete, z], log_volume[incomplete, z] = parts
    return distance, log_volume, present


def _distance(parameters: MultivariateGaussianParameters, values: Array, missing: Array, z: int) -> tuple[Array, Array]:
    """Return each row's squared Mahalanobis distance from component z and log |Σ_oo|, over its present cells."""
    g = parameters.group(z)
    deviation = np.where(missing, 0.0, values - parameters.mean[z])
    with np.errstate(invalid="ignore", over="ignore"):
        whitened = deviation @ parameters.whitener[g]
        distance = np.einsum("ij,ij->i", whitened, whitened)
    log_volume = np.full(len(values), parameters.log_volume[g])
    kernels.integrate_out(missing, whitened, parameters.whitener[g], parameters.precision[g], distance, log_volume)
    return distance, log_volume


_BLOCK_CELLS = 1 << 18  # of whitened rows, so that they stay in the cache

# A variance, as a share of the column's own over all rows, or an eigenvalue of a correlation matrix, is taken for 0
# below _LEAST, and raised to _RAISED. Where cells are missing EM would shrink it without end, so there what is below
# _RAISED is raised: a fixed point, since what EM makes of it is never above.
_LEAST = 1e-10
_RAISED = 1e-6


def _least(statistics: Scatter) -> float:
    return _LEAST if statistics.is_exact() else _RAISED


def raised_to(covariance: Array, least: Array) -> Array:
    r"""Return the covariances of largest likelihood among those that are at least a diagonal matrix F.

    .. math:: \operatorname{argmax}_{\Sigma \succeq F} -\log|\Sigma| - \operatorname{tr}(\Sigma^{-1} S)
        = F^{1/2} V \max(\Lambda, 1) V^\top F^{1/2}, \quad F^{-1/2} S F^{-1/2} = V \Lambda V^\top

    It is a constrained M-step, so EM with it never lowers the likelihood. Among spherical F a sphere stays one.

    Parameters
    ----------
    covariance : ndarray (G, d, d)
        S, singular or not.
    least : ndarray (d,)
        The diagonal of F, in squared data units; columns where it is 0 are left as they are.

    References
    ----------
    The trace inequality of von Neumann: Mirsky, A trace inequality of John von Neumann, Monatshefte für Mathematik 79
    (1975), by which the best Σ has the eigenvectors of S.
    """
    bounded = np.flatnonzero(least > 0)
    if not len(bounded):
        return covariance
    unit = np.sqrt(np.outer(least[bounded], least[bounded]))
    block = np.ix_(np.arange(len(covariance)), bounded, bounded)
    values, vectors = np.linalg.eigh(covariance[block] / unit)
    low = np.flatnonzero(values[:, 0] < 1.0)
    if not len(low):
        return covariance
    raised = np.array(covariance)
    block = np.ix_(low, bounded, bounded)
    gain = (vectors[low] * np.maximum(1.0 - values[low], 0.0)[:, np.newaxis, :]) @ vectors[low].transpose(0, 2, 1)
    raised[block] += gain * unit
    return raised


def regularise_singular(covariance: Array, scale: Array, least: float = _LEAST) -> Array:
    """Return a covariance that can be factorised: as it is, or with what is nearly 0 of it raised.

    Parameters
    ----------
    covariance : ndarray (d, d)
    scale : ndarray (d,)
        The variance of each column over all rows. A variance of less than `least` of it is raised to 1e-6 of it, and
        where it is 0 too to 1, which changes no posterior.
    least : float
        Eigenvalues of the correlation matrix below this are raised to 1e-6.
    """
    flat, correlation, spectrum = _weak_places(covariance, scale, least)
    if not flat.any() and spectrum is None:
        return covariance
    if spectrum is not None:
        values, vectors = spectrum
        correlation = vectors * np.maximum(values, _RAISED) @ vectors.T
    raised = np.where(scale > 0, _RAISED * scale, 1.0)
    sd = np.sqrt(np.where(flat, raised, np.diagonal(covariance)))
    mended = correlation * np.outer(sd, sd)
    return (mended + mended.T) / 2.0


def dependent_columns(covariance: Array, scale: Array, least: float = _LEAST) -> list[int]:
    """Return the columns that have no variance, or take part in a linear combination of no variance."""
    flat, _, spectrum = _weak_places(covariance, scale, least)
    if spectrum is not None:
        values, vectors = spectrum
        flat = flat | ((vectors[:, values < least] ** 2).sum(axis=1) > 1e-6)
    return np.flatnonzero(flat).tolist()


def _weak_places(covariance: Array, scale: Array, least: float) -> tuple[Array, Array, tuple[Array, Array] | None]:
    """Return which columns have no variance, the correlations of the others, and their spectrum if it touches 0."""
    variance = np.diagonal(covariance)
    flat = variance <= least * scale
    if least == _RAISED:
        flat = flat | ((scale <= 0) & (variance < 1.0))
    sd = np.sqrt(np.where(flat, 1.0, variance))
    both = np.logical_or.outer(flat, flat)
    correlation = np.where(both, np.eye(len(sd)), covariance / np.outer(sd, sd))
    try:
        pivots = np.diagonal(np.linalg.cholesky(correlation)) ** 2
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if pivots.min() > 1e3 * least:  # no eigenvalue can be far below the least pivot
        return flat, correlation, None
    values, vectors = np.linalg.eigh(correlation)
    return flat, correlation, (values, vectors) if values[0] < least else None
