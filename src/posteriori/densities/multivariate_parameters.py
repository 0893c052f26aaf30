"""Parameters of multivariate Gaussians: estimated, or integrated out, so that the density is a multivariate t."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
from posteriori.densities.gaussian import log_peaks, log_tails, truncated_t
from posteriori.densities.within_ranges import Box
from posteriori.statistics.moments import Moments, less, sums_from_responsibilities
from posteriori.statistics.scatter import ComponentPatterns, MissingPatterns, Scatter
from posteriori.support.checks import LARGEST_SQUARE, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.schema import Column


def solve_lower(lower: Array, right: Array, most: float = np.inf) -> Array:
    """Return lower⁻¹·right, (d, n), by forward substitution; lower (d, d) is triangular and right is (d, n).

    Results beyond ±`most` are that.
    """
    solved = np.empty_like(right, np.float64)
    with np.errstate(over="ignore"):
        for i, line in enumerate(lower):
            np.clip((right[i] - line[:i] @ solved[:i]) / line[i], -most, most, out=solved[i])
    return solved


# A pivot of a correlation matrix below _WEAK, or a variance below _LEAST times that of its column, may require
# regularisation, which has no closed form.
_LARGEST_WHITENER = 1e150
_WEAK = 1e-6
_LEAST = 2e-10
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
        # Squares of whitened distances must be numbers.
        require(bool((np.abs(self.whitener) <= _LARGEST_WHITENER).all()), "a covariance is singular")
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
        return np.stack([solve_lower(lower, identity).T for lower in np.linalg.cholesky(self.covariance)])

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
        pairs = zip(self.mean - self.middle, self.groups, strict=True)
        return np.stack([mean @ self.whitener[g] for mean, g in pairs])

    @cached_property
    def groups(self) -> Array:
        """The index of the covariance of each component, (Z,)."""
        n_components = len(self.mean)
        return np.zeros(n_components, np.int64) if len(self.covariance) == 1 else np.arange(n_components)


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
        distance, log_volume = distance_from_component(parameters, parameters.groups[z], missing, whitened)
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
    return missing, deviation, deviation @ parameters.whitener[parameters.groups[z]]


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
    g = parameters.groups[z]
    whitener, precision = parameters.whitener[g], parameters.precision[g]
    kernels.expect_missing(missing, weight, whitened, whitener, precision, deviation, scatter)


def _add_moments(deviation: Array, weight: Array, total: float, scatter: Array) -> Array:
    """Add the scatter of deviations (n, d) about their mean, and return this mean."""
    offset = weight @ deviation / (total if total > 0 else 1.0)
    apart = (deviation - offset) * np.sqrt(weight)[:, np.newaxis]
    scatter += apart.T @ apart
    return np.asarray(offset)


def expect_from_patterns(
    parameters: MultivariateGaussianParameters, patterns: MissingPatterns, cells: Moments
) -> tuple[Scatter, float]:
    r"""Return the expected second moments of the rows and the log-likelihood of their present cells, in nats.

    With the precision K, the missing cells m of a row have the conditional covariance :math:`C = K_{mm}^{-1}` and the
    conditional deviation :math:`-C K_{mo} (x_o - \mu_o)` from their mean. The squared distance of the present cells is
    that of the row with these expectations filled in, because they minimise it.

    Parameters
    ----------
    cells : Moments
        Of the present cells of all rows.

    References
    ----------
    Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.1.
    """
    n_components, d = parameters.mean.shape
    weight = np.zeros(n_components)
    offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
    log_likelihood = 0.0
    for z, patterns_of_z in enumerate(patterns.components):
        if not len(patterns_of_z.weight):
            continue
        g = parameters.groups[z]
        precision, log_volume = parameters.precision[g], float(parameters.log_volume[g])
        filled, deviation, uncertain, log_volumes = _filled(precision, parameters.mean[z], patterns_of_z)
        w = patterns_of_z.weight
        weight[z] = w.sum()
        offset[z] = w @ deviation / weight[z]
        between = (deviation - offset[z]) * np.sqrt(w)[:, np.newaxis]
        filled += between.T @ between
        # tr(K·(scatter about the mean of the component)), before the conditional covariances are added.
        distance = float(np.vdot(precision, filled)) + weight[z] * float(offset[z] @ precision @ offset[z])
        log_likelihood -= 0.5 * (distance + float(w @ (log_volumes + log_volume)))
        scatter[z] = filled + uncertain
    return Scatter(weight, parameters.mean.copy(), offset, scatter, cells), log_likelihood


def _filled(precision: Array, mean: Array, patterns: ComponentPatterns) -> tuple[Array, Array, Array, Array]:
    """Replace the missing cells of the rows of one component by their expectations.

    Returns the sum of the scatter matrices of the patterns (d, d), the deviation of the mean of each pattern from that
    of the component (p, d), the sum of the conditional covariances (d, d), and |o|·log 2π + log |K_mm| of each pattern
    (p,).
    """
    d = len(mean)
    filled, uncertain = patterns.scatter.copy(), np.zeros((d, d))
    deviation = patterns.mean - mean
    log_volumes = np.full(len(patterns.weight), d * math.log(2.0 * math.pi))
    of_patterns = patterns.is_missing, patterns.place, patterns.weight, patterns.scatters
    kernels.fill_patterns(*of_patterns, np.ascontiguousarray(precision), filled, uncertain, deviation, log_volumes)
    return filled, deviation, uncertain, log_volumes


def log_factors_given_others(parameters: MultivariateGaussianParameters, values: Array) -> Array:
    r"""Return log p(x_j | all other present cells, z) in nats, (d, n, Z), 0 for a missing cell.

    With Q the precision of the present cells and v = Q(x − mean),

    .. math:: \log p(x_j \mid x_{-j}, z) = \tfrac12 \log \frac{Q_{jj}}{2 \pi} - \frac{v_j^2}{2 Q_{jj}}

    for a Gaussian. In general, without x_j the squared distance is smaller by v_j²/Q_jj, and the log determinant of
    the covariance by −log Q_jj.

    Parameters
    ----------
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
            precision = precisions[parameters.groups[z]]
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


@dataclass(frozen=True)
class _Downdated:
    """Covariances of one component, each without one row: (D − share·δδᵀ)·scale, δ the row minus its class mean."""

    z: int
    # rows, scale, share (m,): the rows and their factors. D is a mixture of the class scatter matrices, the same for
    # all rows.
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
