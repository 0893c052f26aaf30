"""A multivariate Gaussian over all columns of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from posteriori.densities.capabilities import BaseDensity, ConditionalNormal, LinearTerms
from posteriori.densities.covariances import (
    Chain,
    Covariances,
    LedoitWolf,
    PerClass,
    Pooling,
    Shrinkage,
    dependent_columns,
    least_eigenvalue,
    raised_to,
    regularise_singular,
)
from posteriori.densities.gaussian import check_least_variance, draw_stretch
from posteriori.densities.multivariate_parameters import (
    MultivariateGaussianParameters,
    chain_left_out,
    expect,
    expect_from_patterns,
    expect_from_responsibilities,
    integrate_out_parameters,
    log_factors_given_others,
    sample_t_within,
    solve_lower,
    squared_distances,
    within_variances,
)
from posteriori.densities.refinement import FurtherPass, Refined, Refinement
from posteriori.densities.within_ranges import Box, truncated_normal
from posteriori.statistics.moments import Moments, OfComplete, QuarticNorms
from posteriori.statistics.scatter import MissingPatterns, Scatter
from posteriori.support.checks import LARGEST
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column


@dataclass(frozen=True)
class MultivariateGaussian(BaseDensity):
    """p(x | z) = N(x; mean_z, covariance_z).

    Parameters
    ----------
    pooling : Pooling
        How the components share covariances.
    shrinkage : Shrinkage
        The shrinkage of the pooled covariances.
    least_variance : tuple of float (d,), default ()
        Every covariance is at least the diagonal matrix of these values in the Loewner order, in squared data units
        (`raised_to`). So no variance is smaller, conditional variances included. Empty for no bound.
    predictive : bool, default False
        Whether mean and covariance are integrated out instead of estimated, so that p(x | z) is a multivariate t
        (`integrate_out_parameters`).

    References
    ----------
    Anderson, An Introduction to Multivariate Statistical Analysis, 3rd ed., sections 2.5 and 3.2; for missing cells,
    Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.
    """

    pooling: Pooling = field(default_factory=PerClass)
    shrinkage: Shrinkage = field(default_factory=Chain)
    least_variance: tuple[float, ...] = ()
    predictive: bool = False
    name = "multivariate gaussian"
    kind: ClassVar[CellKind] = "continuous"
    sufficient_statistics = Scatter
    fitted = MultivariateGaussianParameters
    support = "a finite number"

    def check_fitted(self, parameters: MultivariateGaussianParameters) -> None:
        """Raise ValueError unless there is a least variance for each column, or none."""
        check_least_variance(self.least_variance, parameters.mean.shape[1])

    def estimate(self, statistics: Scatter) -> MultivariateGaussianParameters:
        """Return the means and the pooled, shrunk covariances, regularised if singular (`regularise_singular`)."""
        seen, mean = statistics.weight > 0, statistics.mean
        total = statistics.weight.sum()
        share = statistics.weight / (total if total > 0 else 1.0)
        origin = mean[np.argmax(share)]  # the overall mean is summed about it, to avoid cancellation
        overall = origin + share @ (mean - origin)
        mean = np.where(seen[:, np.newaxis], mean, overall)
        if self.predictive:
            return integrate_out_parameters(mean, self._pooled(statistics), self.shrinkage, self.pooling, statistics)
        return MultivariateGaussianParameters(mean, self._regularised(self._raw(statistics), statistics))

    def plug_in(self) -> MultivariateGaussian:
        """Return the density whose mean and covariance are estimated, which EM maximises."""
        return replace(self, predictive=False)

    def undetermined(self, statistics: Scatter) -> list[int]:
        """Return the columns for which `estimate` had to regularise a covariance, except columns without any cell."""
        scale, least = statistics.variance_of_cells, least_eigenvalue(statistics)
        if self.predictive:  # the prior is singular in columns that are constant within every class, and nowhere else
            prior = np.diag(within_variances(statistics, self.pooling.ddof))
            return sorted(set(dependent_columns(prior, scale, least)) & _with_cells(statistics))
        columns = {j for one in self._raw(statistics) for j in dependent_columns(one, scale, least)}
        return sorted(columns & _with_cells(statistics))

    @property
    def second_pass(self) -> str:
        """The parameter that requires a second pass, for messages; empty if none does."""
        return 'shrinkage="ledoit_wolf"' if self.shrinkage == LedoitWolf() else ""

    def carry_over_structure(self, earlier: MultivariateGaussian) -> MultivariateGaussian:
        """Return the density itself: a share for fewer rows is not optimal for more rows."""
        del earlier
        return self

    def refine(self, statistics: Scatter) -> Refinement:
        """Return this density with the Ledoit–Wolf share, which needs a second pass over the rows.

        If the pooling mixes covariances between classes, it mixes the fourth powers in the same way. If cells are
        missing, the share is optimal for the complete rows alone, and so rather too large: fewer rows need more
        shrinkage.

        Raises
        ------
        ValueError
            Cells are missing, and a class has fewer than two complete rows. Give shrinkage="oas" or a number.
        """
        if not self.second_pass:
            return Refined(self, statistics)
        if statistics.is_exact():
            return self._ask_fourth_powers(statistics, statistics)
        return FurtherPass(OfComplete(Scatter), partial(self._ask_fourth_powers, statistics))

    def _ask_fourth_powers(self, statistics: Scatter, complete: Scatter) -> FurtherPass:
        """Return the request for the fourth powers about the means of the complete rows, which give the share."""
        if complete is not statistics and (complete.weight[statistics.weight > 0] < 2).any():
            raise ValueError(
                f"{self.second_pass} learns from rows without missing cells, and a class has fewer than two of them; "
                'give shrinkage="oas", which needs none, or a number'
            )
        estimated = self._pooled(complete)
        scale = np.broadcast_to(estimated.unit, complete.mean.shape)

        def with_share(quartic: Array) -> Refined:
            mean_quartic = self.pooling.covariances(estimated.degrees, quartic)[: len(estimated.covariance)]
            return Refined(replace(self, shrinkage=LedoitWolf().found(estimated, mean_quartic)), statistics)

        return FurtherPass(OfComplete(QuarticNorms(complete.mean, scale)), with_share)

    def _regularised(self, covariance: Array, statistics: Scatter) -> Array:
        scale, least = statistics.variance_of_cells, least_eigenvalue(statistics)
        check_least_variance(self.least_variance, covariance.shape[-1])
        if self.least_variance:
            covariance = raised_to(covariance, np.array(self.least_variance))
        return regularise_singular(covariance, scale, least)

    def _raw(self, statistics: Scatter) -> Array:
        """Return the pooled and shrunk covariances before regularisation, (G, d, d)."""
        return self.shrinkage.shrink(self._pooled(statistics))

    def _pooled(self, statistics: Scatter) -> Covariances:
        """Return the pooled covariances with their degrees of freedom and units."""
        degrees = np.maximum(statistics.weight - self.pooling.ddof, 0.0)
        covariance = self.pooling.covariances(degrees, statistics.scatter)
        within, scale = within_variances(statistics, self.pooling.ddof), statistics.variance_of_cells
        # The variance of a column without cells is that of an E-step, which only regularisation keeps above 0.
        varies = (within > least_eigenvalue(statistics) * scale) & (scale > 0.0)
        unit = np.sqrt(np.where(varies, within, 0.0))
        return Covariances(covariance[:1] if self.pooling.shared else covariance, degrees, unit)

    def log_density(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells integrated out."""
        parameters, values = _of_varying(parameters, tile.values)
        if not values.shape[1]:
            return np.zeros((len(values), len(parameters.mean)))
        result, log_volume, present = squared_distances(parameters, values)
        if parameters.degrees is not None:
            return np.asarray(parameters.log_density_at(result, present) - 0.5 * log_volume)
        result += log_volume
        result += (present * math.log(2.0 * math.pi))[:, np.newaxis]
        result *= -0.5
        return result

    def log_likelihood(self, parameters: MultivariateGaussianParameters, statistics: Scatter) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics, which have no missing cell."""
        total = 0.0  # Σ w·(x − μ)ᵀΣ⁻¹(x − μ) = tr(Wᵀ·scatter·W) + weight·‖(μ − mean)ᵀW‖², W the whitener
        for z, weight in enumerate(statistics.weight):
            whitener = parameters.whitener[parameters.groups[z]]
            apart = ((parameters.mean[z] - statistics.shift[z]) - statistics.offset[z]) @ whitener
            distance = float(np.sum(whitener * (statistics.scatter[z] @ whitener))) + weight * float(apart @ apart)
            constant = parameters.log_volume[parameters.groups[z]] + len(apart) * math.log(2.0 * math.pi)
            total -= 0.5 * (distance + weight * float(constant))
        return total

    def mahalanobis(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return √((x − mean)ᵀ·covariance⁻¹·(x − mean)) over the present cells, (n, Z)."""
        parameters, values = _of_varying(parameters, tile.values)
        return np.sqrt(np.maximum(squared_distances(parameters, values)[0], 0.0))

    def log_factors(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d), over the present cells, in column order."""
        n, d = tile.values.shape
        factors = np.zeros((n, len(parameters.mean), d))
        if parameters.constant:
            part = self.log_factors(parameters.of_varying, tile.take(parameters.varying))
            factors[:, :, parameters.varying] = part
            return factors
        patterns, pattern = np.unique(~np.isnan(tile.values), axis=0, return_inverse=True)
        for number, present in enumerate(patterns):
            o, rows = np.flatnonzero(present), np.flatnonzero(pattern.ravel() == number)
            if not len(o):
                continue
            values = tile.values[np.ix_(rows, o)]
            for z in range(len(parameters.mean)):
                lower = np.linalg.cholesky(parameters.covariance[parameters.groups[z]][np.ix_(o, o)])
                u = solve_lower(lower, (values - parameters.mean[z, o]).T, LARGEST).T  # squares of others overflow
                if parameters.degrees is None:
                    chain = -0.5 * (u**2 + math.log(2.0 * math.pi)) - np.log(np.diagonal(lower))
                else:
                    chain = _chain_of_t(parameters, z, u) - np.log(np.diagonal(lower))
                factors[np.ix_(rows, np.array([z]), o)] = chain[:, np.newaxis]
        return factors

    def without_each(self, parameters: MultivariateGaussianParameters, tile: Numbers) -> Array:
        """Return log p(x₋ⱼ | z) in nats, (d, n, Z): with each column missing in turn."""
        whole = self.log_density(parameters, tile)
        given_others = np.zeros((tile.values.shape[1], *whole.shape))
        given_others[parameters.varying] = log_factors_given_others(*_of_varying(parameters, tile.values))
        return whole - given_others

    def left_out(
        self,
        parameters: MultivariateGaussianParameters,
        statistics: Scatter,
        tile: Numbers,
        assignment: Assignment,
    ) -> Array:
        """Return `log_factors` of each row under the parameters estimated without it.

        NaN if a covariance is shrunk, by a prior too: then there is no closed form; see `LeaveOneOutDensity`.
        """
        if self.shrinkage != Chain() or self.predictive:
            return np.full((len(tile.values), *parameters.mean.shape), np.nan)
        return chain_left_out(self.pooling, self.pooling.ddof, statistics, tile.values, assignment)

    def given(self, parameters: MultivariateGaussianParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of all columns before it; none if the covariance is diagonal."""
        related = (parameters.covariance != 0.0).any(axis=0)
        independent = not (related & ~np.eye(len(related), dtype=bool)).any()  # a diagonal covariance
        if independent and parameters.degrees is None:  # the columns of a t share its unknown scale
            return ((),) * len(related)
        return tuple(tuple(range(j)) for j in range(len(related)))

    def expect(
        self, parameters: MultivariateGaussianParameters, tile: Numbers, assignment: Assignment
    ) -> tuple[Scatter, float]:
        """Return the expected second moments of the rows and the log-likelihood of their present cells, in nats."""
        return expect(parameters, tile, assignment)

    def expect_from_patterns(
        self, parameters: MultivariateGaussianParameters, patterns: MissingPatterns, statistics: Scatter
    ) -> tuple[Scatter, float]:
        """Return the result of `expect`, from the moments of the patterns of missing cells."""
        return expect_from_patterns(parameters, patterns, statistics.cells)

    def expect_from_responsibilities(
        self, parameters: MultivariateGaussianParameters, tile: Numbers, responsibilities: Array
    ) -> Scatter:
        """Return the expected second moments of rows weighted by their responsibilities, (n, Z)."""
        return expect_from_responsibilities(parameters, tile, responsibilities)

    def to_unconstrained(
        self, parameters: MultivariateGaussianParameters, reference: MultivariateGaussianParameters
    ) -> Array:
        """Return the means and the Cholesky factors of the covariances, with logarithms on their diagonals.

        Diagonal and spherical covariances stay so along any line in these coordinates (Pinheiro & Bates,
        Unconstrained parametrizations for variance-covariance matrices, Statistics and Computing 6, 1996).
        """
        unit, order = _units_and_order(reference)
        factor = np.linalg.cholesky((parameters.covariance / np.outer(unit, unit))[:, order[:, np.newaxis], order])
        position = np.arange(len(unit))
        factor[:, position, position] = np.log(factor[:, position, position])
        return np.concatenate([((parameters.mean - reference.mean) / unit).ravel(), factor.ravel()])

    def from_unconstrained(
        self, vector: Array, reference: MultivariateGaussianParameters, statistics: Scatter
    ) -> MultivariateGaussianParameters:
        """Return the parameters at these coordinates, regularised if singular."""
        unit, order = _units_and_order(reference)
        factor = vector[reference.mean.size :].reshape(reference.covariance.shape).copy()
        position = np.arange(len(unit))
        factor[:, position, position] = np.exp(factor[:, position, position])
        mean = reference.mean + vector[: reference.mean.size].reshape(reference.mean.shape) * unit
        place = np.argsort(order)
        covariance = (factor @ factor.transpose(0, 2, 1))[:, place[:, np.newaxis], place] * np.outer(unit, unit)
        return MultivariateGaussianParameters(mean, self._regularised(covariance, statistics))

    def sample(self, parameters: MultivariateGaussianParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw rows, (n, d)."""
        drawn = rng.standard_normal((len(component), parameters.mean.shape[1]))
        for z in np.unique(component):
            rows = component == z
            drawn[rows] = drawn[rows] @ np.linalg.cholesky(parameters.covariance[parameters.groups[z]]).T
        if parameters.degrees is not None and parameters.spread is not None:
            stretch = draw_stretch(parameters.degrees[component], rng) * np.sqrt(parameters.spread[component])
            drawn *= stretch[:, np.newaxis]
        return drawn + parameters.mean[component]

    def sample_within(
        self, parameters: MultivariateGaussianParameters, component: Array, rng: np.random.Generator, box: Box
    ) -> Array:
        """Draw rows, (n, d), each column truncated to the edges of a box given the columns before it."""
        if parameters.degrees is not None:
            return sample_t_within(parameters, component, rng, box)
        low, high = box.edges
        drawn = np.empty((len(component), parameters.mean.shape[1]))
        for z in np.unique(component):
            rows = np.flatnonzero(component == z)
            mean, factor = parameters.mean[z], np.linalg.cholesky(parameters.covariance[parameters.groups[z]])
            white = np.zeros((len(rows), len(mean)))
            for j in range(len(mean)):
                expected = mean[j] + white[:, :j] @ factor[j, :j]
                cells = truncated_normal(expected, factor[j, j], low[j], high[j], rng)
                white[:, j] = (cells - expected) / factor[j, j]
                drawn[rows, j] = cells
        return drawn

    def n_parameters(self, parameters: MultivariateGaussianParameters) -> int:
        """Return Z·d means plus d·(d + 1)/2 per covariance, or fewer if the shrinkage leaves fewer free."""
        d = parameters.mean.shape[1]
        return parameters.mean.size + self.shrinkage.n_free(d, len(parameters.covariance))

    def conditional_normals(self, parameters: MultivariateGaussianParameters) -> dict[int, ConditionalNormal]:
        """Return the regression of each column on all earlier ones: p(x | z) = Π_j p(x_j | x_1 … x_{j−1}, z)."""
        if parameters.degrees is not None:
            raise ValueError("the predictive density of a number is a t, not a normal density; fit without it first")
        mean = parameters.mean
        covariance = np.broadcast_to(parameters.covariance, (len(mean), *parameters.covariance.shape[1:]))
        normals = {}
        for j in range(mean.shape[1]):
            slopes = np.linalg.solve(covariance[:, :j, :j], covariance[:, :j, j, np.newaxis])[..., 0]
            left = covariance[:, j, j] - np.einsum("zi,zi->z", slopes, covariance[:, :j, j])
            intercept = mean[:, j] - np.einsum("zi,zi->z", slopes, mean[:, :j])
            normals[j] = ConditionalNormal((), tuple(range(j)), intercept, slopes, np.maximum(left, 0.0))
        return normals

    def describe(self, parameters: MultivariateGaussianParameters, position: int) -> dict[str, Array]:
        """Return the mean and the variance of a column, each (Z,); of a t, its scale and degrees of freedom."""
        mean = parameters.mean[:, position]
        if parameters.degrees is not None:
            scale = np.sqrt(parameters.spread * parameters.covariance[:, position, position])
            return {"mean": mean, "scale": scale, "degrees of freedom": parameters.degrees}
        return {"mean": mean, "variance": np.broadcast_to(parameters.covariance[:, position, position], mean.shape)}

    def log_density_of_column(self, parameters: MultivariateGaussianParameters, position: int, values: Array) -> Array:
        """Return log p(x_j | z) in nats, (n, Z): a Gaussian (or t) with the mean and the variance of the column."""
        if position in parameters.constant:
            return np.zeros((len(values), len(parameters.mean)))
        variance = parameters.covariance[:, position, position]
        with np.errstate(over="ignore"):  # a cell so far away is clipped
            deviation = (values[:, np.newaxis].astype(np.float64) - parameters.mean[:, position]) / np.sqrt(variance)
        standardised = np.clip(deviation, -LARGEST, LARGEST)
        log_density = parameters.log_density_at(standardised**2, 1) - 0.5 * np.log(variance)
        return np.where(np.isnan(log_density), 0.0, log_density)

    def covariances(self, parameters: MultivariateGaussianParameters) -> Array:
        """Return the covariances, (G, d, d), in squared data units."""
        return parameters.covariance

    def linear_terms(self, parameters: MultivariateGaussianParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return Σ⁻¹·mean and −meanᵀ·Σ⁻¹·mean/2 for a shared covariance (Bishop, PRML, equations 4.69 and 4.70)."""
        if parameters.degrees is not None:
            raise ValueError(
                f"{quote(column.name for column in columns)} has a t density for each class, whose log-odds are not "
                "linear; fit with predictive=False"
            )
        if not parameters.shared:
            raise ValueError(
                f"{quote(column.name for column in columns)} has a covariance for each class, which makes the log-odds "
                'quadratic; fit with pooling="pooled", or use quadratic_form'
            )
        weights = parameters.mean @ parameters.precision[0]
        bias = -0.5 * (parameters.mean * weights).sum(axis=1)
        return LinearTerms(bias, [(position, None, weights[:, position]) for position in range(len(columns))])

    def moments_of_numbers(self, statistics: Scatter) -> tuple[tuple[int, ...], Moments]:
        """Return all positions and the moments of the present cells."""
        return tuple(range(statistics.cells.weight.shape[1])), statistics.cells


def _of_varying(
    parameters: MultivariateGaussianParameters, values: Array
) -> tuple[MultivariateGaussianParameters, Array]:
    """Return the parameters and the cells (n, d') of the columns that vary."""
    return (parameters.of_varying, values[:, parameters.varying]) if parameters.constant else (parameters, values)


def _with_cells(statistics: Scatter) -> set[int]:
    """Return the columns with a present cell."""
    return set(np.flatnonzero(statistics.cells.weight.any(axis=0)).tolist())


def _chain_of_t(parameters: MultivariateGaussianParameters, z: int, whitened: Array) -> Array:
    """Return log p(u_j | u_1 … u_{j−1}, z) in nats, (n, d), of whitened deviations u, up to log determinants."""
    distance = np.cumsum(np.column_stack([np.zeros(len(whitened)), whitened**2]), axis=1)
    upto = [parameters.log_density_at(distance[:, j], j, z) for j in range(distance.shape[1])]
    return np.diff(np.column_stack(upto), axis=1)


def _units_and_order(reference: MultivariateGaussianParameters) -> tuple[Array, Array]:
    """Return a standard deviation of each column, (d,), and an order of columns by how far apart their means are.

    A Cholesky factor depends on the order of the columns. This one does not depend on places and units.
    """
    variance = np.diagonal(reference.covariance, axis1=1, axis2=2).mean(axis=0)
    return np.sqrt(variance), np.argsort(reference.mean.var(axis=0) / variance, kind="stable")
