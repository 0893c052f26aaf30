"""Gaussian columns, independent given the component, with given or integrated parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, ConditionalNormal, LinearTerms
from posteriori.parameter_count import n_unrestricted_gaussian
from posteriori.statistics.moments import Moments, as_one_component, moments_left
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.support.checks import LARGEST_SQUARE, check_not_negative, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column

_SHIFT = 16  # the series of the gamma function is exact to rounding from here on
_SERIES = (-1 / 8, 1 / 192, -1 / 640, 17 / 14336, -31 / 18432)  # of log Γ(x + ½) − log Γ(x) − ½·log x in x⁻¹, x⁻³, …


def log_peaks(degrees: Array, n_columns: int) -> Array:
    """Return the log density of a standard t at 0 in nats, of 0, 1, …, n_columns columns: (n_columns + 1, …).

    Parameters
    ----------
    degrees : ndarray (…)
        ν > 0, possibly infinite.
    n_columns : int
        p.

    Notes
    -----
    Differences of log-gamma functions lose digits where ν is large. With x = ν/2, Γ(x + p/2) / (Γ(x)·x^{p/2}) is a
    product of p/2 factors 1 + k/x and, for odd p, Γ(x + ½) / (Γ(x)·√x).
    """
    x = np.asarray(degrees, np.float64) / 2.0
    found = np.zeros((n_columns + 1, *x.shape))
    if n_columns:
        found[1] = _log_half_step(x)
    for p in range(2, n_columns + 1):
        found[p] = found[p - 2] + np.log1p((p / 2.0 - 1.0) / x)
    log_root = 0.5 * math.log(2.0 * math.pi) * np.arange(n_columns + 1)
    return np.asarray(found - log_root.reshape(-1, *[1] * x.ndim))


def _log_half_step(x: Array) -> Array:
    """Return log Γ(x + ½) − log Γ(x) − ½·log x, 0 at infinity: by recurrence from a series at x + 16."""
    total = 0.5 * np.log1p(_SHIFT / x)
    for k in range(_SHIFT):
        total -= np.log1p(0.5 / (x + k))
    for power, coefficient in enumerate(_SERIES):
        total += coefficient * (x + _SHIFT) ** -(2.0 * power + 1.0)
    return np.asarray(total)


def log_tails(distance: Array, n_columns: Any, degrees: Array) -> Array:
    """Return −(ν + p)/2·log(1 + distance/ν) in nats, for squared distances in units of the scale."""
    with np.errstate(over="ignore"):
        return np.asarray(-0.5 * (degrees + n_columns) * np.log1p(distance / degrees))


def draw_stretch(degrees: Array, rng: np.random.Generator) -> Array:
    """Draw √(ν / χ²_ν): a Gaussian deviation times it is one of the t."""
    return np.asarray(np.sqrt(degrees / rng.chisquare(degrees)))


def truncated_t(degrees: Array, centre: Array, scale: Array, low: Any, high: Any, rng: np.random.Generator) -> Array:
    """Draw from a t truncated to [low, high], by inversion of its distribution function."""
    from scipy.special import stdtr, stdtrit  # imported here, because few predictions need it

    with np.errstate(invalid="ignore"):
        a, b = (low - centre) / scale, (high - centre) / scale
    upper = a > 0.0  # mirror the upper tail: near 1 the distribution function loses digits
    a, b = np.where(upper, -b, a), np.where(upper, -a, b)
    below, up_to = stdtr(degrees, a), stdtr(degrees, b)
    t = stdtrit(degrees, below + rng.random(len(centre)) * (up_to - below))
    t = np.clip(np.where(up_to > 0.0, t, b), a, b)
    return np.asarray(np.clip(centre + scale * np.where(upper, -t, t), low, high))


# The smallest variance, as a share of the variance of the column over all rows. A column that is constant within
# every class separates the classes perfectly and would otherwise have an infinite density.
_VARIANCE_FLOOR = 1e-9

SMALLEST_VARIANCE = 1e-300  # its inverse is finite
_FEWEST_DEGREES = 1e-3  # of freedom, in a file

_BLOCK_CELLS = 1 << 16  # leave-one-out moments per block, so that a block stays in the cache


@dataclass(frozen=True)
class GaussianParameters(WithAxes):
    """mean and variance, (Z, d), in data units and squared data units; shared: all components have one variance.

    With degrees of freedom, (Z, d), the density is a t with the mean as its centre and the variance as its squared
    scale.
    """

    mean: Annotated[Array, Axes("the means", "z", "column")]
    variance: Annotated[Array, Axes("the variances", "z", "column", low=SMALLEST_VARIANCE, high=LARGEST_SQUARE)]
    shared: bool = False
    degrees: Annotated[Array | None, Axes("the degrees of freedom", "z", "column", low=_FEWEST_DEGREES)] = None

    def plug_in(self) -> GaussianParameters:
        """Return a Gaussian with the same mean and variance."""
        return replace(self, degrees=None)

    @cached_property
    def precision(self) -> Array:
        """1 / variance."""
        return 1.0 / self.variance

    @cached_property
    def log_peak(self) -> Array:
        """The log density at the mean in nats: −log(2π·variance)/2 without degrees of freedom."""
        if self.degrees is not None:
            peaks: Array = log_peaks(self.degrees, 1)[1]
            return peaks - 0.5 * np.log(self.variance)
        return -0.5 * (math.log(2.0 * math.pi) + np.log(self.variance))


@dataclass(frozen=True)
class Gaussian(BaseDensity):
    """p(x_j | z) = N(x_j; mean_zj, variance_zj).

    The variance is shrunk by an inverse-gamma prior centred on the pooled within-class variance v_j,

        variance_zj = (scatter_zj + smoothing·v_j) / (n_zj − ddof + smoothing),

    so shifting a column or multiplying it by a constant changes no posterior.

    Parameters
    ----------
    smoothing : float, default 1.0
        Strength of the prior in pseudo-rows, in [0, inf]: 0 is each class's own variance, inf the pooled variance
        for all (a linear boundary).
    ddof : {0, 1}, default 0
        0 divides by n (maximum likelihood), 1 by n − 1 (unbiased).
    least_variance : tuple of float (d,), default ()
        Lower bound on the variance of each column, in squared data units; empty for no bound. It bounds the
        likelihood, which is then maximal at max(variance, least_variance).
    predictive : bool, default False
        Whether mean and variance are integrated out instead of estimated:

        p(x_j | z) = t_ν(x_j; mean_zj, (1 + 1/n_zj)·(scatter_zj + smoothing·v_j) / ν), ν = n_zj − 1 + smoothing,

        the posterior predictive density under the same prior of the variance and a flat one of the mean. If the
        smoothing is infinite, the variance is the pooled one with its ν = Σ_z (n_zj − 1). It tends to the estimate as
        n grows. A column that is constant in all rows has one density for all components.

    Notes
    -----
    A component with no present cell in a column takes the mean and variance of all rows. A variance of 0 is raised
    to 1e-9 of the variance of all rows; to 1 where that is 0 too, which changes no posterior.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6 (the scaled inverse-χ² prior). Murphy, Conjugate
    Bayesian analysis of the Gaussian distribution (2007), section 5.

    Examples
    --------
    >>> import posteriori as po
    >>> X, y = [[0.0], [2.0], [4.0], [8.0]], ["a", "a", "b", "b"]
    >>> model = po.NaiveBayes(distributions={"x0": po.Gaussian()}).fit(X, y)
    >>> model.theta_.ravel()
    array([1., 6.])
    """

    smoothing: float = 1.0
    ddof: int = 0
    least_variance: tuple[float, ...] = ()
    predictive: bool = False
    name = "gaussian"
    kind: ClassVar[CellKind] = "continuous"
    sufficient_statistics = Moments
    fitted = GaussianParameters
    support = "a finite number"

    def check(self) -> None:
        """Raise ValueError if the smoothing is negative, or ddof is not 0 or 1."""
        check_not_negative("smoothing", self.smoothing)
        require(self.ddof in (0, 1), f"ddof is {self.ddof}; it must be 0 or 1")

    def check_fitted(self, parameters: GaussianParameters) -> None:
        """Raise ValueError unless there is a least variance for each column, or none."""
        check_least_variance(self.least_variance, parameters.variance.shape[1])

    def estimate(self, statistics: Moments) -> GaussianParameters:
        """Return means and smoothed variances."""
        return self._of(statistics, statistics.pooled())

    def plug_in(self) -> Gaussian:
        """Return the density whose mean and variance are estimated, which EM maximises."""
        return replace(self, predictive=False)

    def _of(self, statistics: Moments, pooled: Moments) -> GaussianParameters:
        """Return means and variances from moments (…, Z, d) and pooled moments (…, 1, d)."""
        estimated = self._estimated(statistics, pooled)
        return self._integrated(estimated, statistics.weight, pooled) if self.predictive else estimated

    def _integrated(self, estimated: GaussianParameters, weight: Array, pooled: Moments) -> GaussianParameters:
        """Return the t density that integrates mean and variance out."""
        known = np.maximum(weight - 1.0, 0.0)
        if estimated.shared:  # the degrees of freedom of all rows
            rows, degrees = np.maximum(weight - self.ddof, 0.0).sum(axis=-2, keepdims=True), known.sum(axis=-2)
            degrees = np.broadcast_to(degrees[..., np.newaxis, :], weight.shape)
        else:
            rows, degrees = np.maximum(weight - self.ddof, 0.0) + self.smoothing, known + self.smoothing
        degrees = np.maximum(degrees, 1.0)  # a proper density, whatever the prior
        # The estimate divides by `rows`, and the t by its degrees of freedom. No row counts as one, at the mean of all.
        spread = (1.0 + 1.0 / np.where(weight > 0, weight, 1.0)) * np.where(rows > 0, rows, 1.0) / degrees
        variance = np.where(weight > 0, estimated.variance * spread, 2.0 * estimated.variance)
        constant = pooled.scatter <= 0.0  # no unit to measure its variance in: one density for all components
        degrees = np.where(constant, np.maximum(known.sum(axis=-2, keepdims=True), 1.0), degrees)
        variance = np.where(constant, estimated.variance, variance)
        return GaussianParameters(estimated.mean, variance, estimated.shared, degrees)

    def _estimated(self, statistics: Moments, pooled: Moments) -> GaussianParameters:
        weight = statistics.weight
        seen = pooled.weight > 0
        overall_mean = np.where(seen, pooled.mean, 0.0)
        overall = pooled.scatter / np.where(seen, pooled.weight, 1.0)
        floor = np.where(overall > 0, _VARIANCE_FLOOR * overall, 1.0)
        check_least_variance(self.least_variance, statistics.mean.shape[-1])
        if self.least_variance:
            floor = np.maximum(floor, np.array(self.least_variance))

        degrees = np.maximum(weight - self.ddof, 0.0)
        all_degrees = degrees.sum(axis=-2, keepdims=True)
        within = statistics.scatter.sum(axis=-2, keepdims=True) / np.where(all_degrees > 0, all_degrees, 1.0)
        within = np.where(all_degrees > 0, within, overall)
        prior = np.broadcast_to(np.maximum(within, floor), weight.shape)
        estimate = statistics.scatter / np.where(degrees > 0, degrees, 1.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # smoothing / (degrees + smoothing), written so that it also holds at 0 and at infinity.
            trust_in_prior = np.where(degrees > 0, 1.0 / (1.0 + degrees / self.smoothing), 1.0)
        variance = np.maximum(estimate + trust_in_prior * (prior - estimate), floor)

        present = weight > 0
        shared = math.isinf(self.smoothing)
        if not shared:
            variance = np.where(present, variance, np.maximum(overall, floor))
        return GaussianParameters(np.where(present, statistics.mean, overall_mean), variance, shared)

    def undetermined(self, statistics: Moments) -> list[int]:
        """Return the columns in which a component has no variance, except columns without any cell."""
        pooled = statistics.pooled()
        seen = pooled.weight[0] > 0
        overall = pooled.scatter[0] / np.where(seen, pooled.weight[0], 1.0)
        variance = replace(self, least_variance=()).estimate(statistics).variance
        raised = (variance <= 1.001 * _VARIANCE_FLOOR * overall) | (overall <= 0)
        return np.flatnonzero((raised & (statistics.weight > 0)).any(axis=0)).tolist()

    def log_density(self, parameters: GaussianParameters, tile: Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        out = np.zeros((len(tile.values), len(parameters.mean)))
        mean, precision, log_peak = parameters.mean, parameters.precision, parameters.log_peak
        if parameters.degrees is None:
            kernels.add_gaussian(tile.values, mean, precision, log_peak, out)
        else:
            kernels.add_student(tile.values, mean, precision, log_peak, parameters.degrees, out)
        return out

    def log_likelihood(self, parameters: GaussianParameters, statistics: Moments) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics."""
        apart = (parameters.mean - statistics.shift) - statistics.offset
        distance = parameters.precision * (statistics.scatter + statistics.weight * apart**2)
        return float((statistics.weight * parameters.log_peak - 0.5 * distance).sum())

    def log_factors(self, parameters: GaussianParameters, tile: Numbers) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d)."""
        deviation = tile.values[:, np.newaxis, :] - parameters.mean
        with np.errstate(over="ignore"):  # the factor of a number absurdly far away is −inf
            distance = deviation * deviation * parameters.precision
        if parameters.degrees is None:
            factors = parameters.log_peak - 0.5 * distance
        else:
            factors = parameters.log_peak + log_tails(distance, 1, parameters.degrees)
        return np.where(np.isnan(factors), 0.0, factors)

    def left_out(
        self, parameters: GaussianParameters, statistics: Moments, tile: Numbers, assignment: Assignment
    ) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), of each row by the parameters without it."""
        factors = np.empty((len(tile.values), *parameters.mean.shape))
        pooled = statistics.pooled()
        size = max(1, _BLOCK_CELLS // max(1, parameters.mean.size))
        for start in range(0, len(factors), size):
            rows = slice(start, start + size)
            block = Numbers(tile.values[rows])
            given = Assignment(assignment.component[rows], assignment.weight[rows], assignment.n_components)
            without = moments_left(statistics, block, given)
            pooled_without = moments_left(pooled, block, as_one_component(given))
            factors[rows] = self.log_factors(self._of(without, pooled_without), block)
        return factors

    def sample(self, parameters: GaussianParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw numbers, (n, d)."""
        scale = np.sqrt(parameters.variance[component])
        if parameters.degrees is not None:
            scale *= draw_stretch(parameters.degrees[component], rng)
        return rng.normal(parameters.mean[component], scale)

    def n_parameters(self, parameters: GaussianParameters) -> int:
        """Return Z·d means, and Z·d variances or d shared ones."""
        variances = parameters.variance.shape[1] if parameters.shared else parameters.variance.size
        return parameters.mean.size + variances

    def n_unrestricted(self, n_columns: int) -> int:
        """Return the size of a mean vector and of a full covariance."""
        return n_unrestricted_gaussian(n_columns)

    def conditional_normals(self, parameters: GaussianParameters) -> dict[int, ConditionalNormal]:
        """Return the normal density of each column, which has no parent except the class."""
        if parameters.degrees is not None:
            raise ValueError("the predictive density of a number is a t, not a normal density; fit without it first")
        none = np.zeros((len(parameters.mean), 0))
        return {
            j: ConditionalNormal((), (), parameters.mean[:, j], none, parameters.variance[:, j])
            for j in range(parameters.mean.shape[1])
        }

    def describe(self, parameters: GaussianParameters, position: int) -> dict[str, Array]:
        """Return the mean and the variance of a column, each (Z,); of a t, its scale and degrees of freedom."""
        mean, variance = parameters.mean[:, position], parameters.variance[:, position]
        if parameters.degrees is not None:
            return {"mean": mean, "scale": np.sqrt(variance), "degrees of freedom": parameters.degrees[:, position]}
        return {"mean": mean, "variance": variance}

    def linear_terms(self, parameters: GaussianParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return weights mean/variance and the bias −Σ mean²/(2·variance); x² cancels if the variance is shared."""
        if parameters.degrees is not None:
            raise ValueError(
                f"{quote(column.name for column in columns)} has t densities, whose log-odds are not linear; fit with "
                "predictive=False"
            )
        if not (parameters.variance == parameters.variance[0]).all():
            raise ValueError(
                f"{quote(column.name for column in columns)} has a variance for each class, which makes the log-odds "
                "quadratic; fit with po.Gaussian(smoothing=math.inf)"
            )
        weights = parameters.mean / parameters.variance
        bias = -0.5 * (parameters.mean * weights).sum(axis=1)
        return LinearTerms(bias, [(position, None, weights[:, position]) for position in range(len(columns))])

    def moments_of_numbers(self, statistics: Moments) -> tuple[tuple[int, ...], Moments]:
        """Return all positions and the statistics themselves."""
        return tuple(range(statistics.weight.shape[1])), statistics


def check_least_variance(least_variance: tuple[float, ...], n_columns: int) -> None:
    """Raise ValueError unless there is a least variance for each column, or none."""
    if least_variance:
        check_numbers("the least variances", np.array(least_variance, np.float64), (n_columns,), 0.0, LARGEST_SQUARE)
