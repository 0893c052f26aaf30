"""The log factors of each density, as functions of arrays.

A program yields log p(x_j | z) of its columns up to a term that is the same for all components, 0 where the cell is
missing. Law (tests/program): their sum is the score of the kernels, up to a constant of the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori import densities
from posteriori.densities import (
    AveragedParameters,
    CategoricalParameters,
    ComplementParameters,
    CompoundParameters,
    FamilyTables,
    FullJointParameters,
    GaussianParameters,
    GroupedParameters,
    MissingnessParameters,
    MultinomialParameters,
    MultivariateGaussianParameters,
    PoissonParameters,
    PoissonRateParameters,
    PresenceParameters,
    ProgrammedDensity,
    RandomTreesParameters,
    SmoothedFamilies,
    SummedTreesParameters,
    TreeParameters,
    implements,
)
from posteriori.program.arrays import as_code, log_sum_exp, where_rows
from posteriori.program.cells import RowCells
from posteriori.program.families import of_families
from posteriori.program.forests import of_forest
from posteriori.program.trees import of_tree
from posteriori.support.arrays import Arrays, taken
from posteriori.tables.bags import LARGEST_COUNT

_SMALLEST = 1e-300  # of a sum of shares whose logarithm is taken
_SHIFT = 8  # Stirling's series is used above it
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # Abramowitz & Stegun 6.1.41


@dataclass(frozen=True)
class BlockCells:
    """The cells that a density reads, and where its factors go."""

    cells: RowCells
    columns: Sequence[int]
    model: str  # its name in messages
    is_weighted: bool  # whether the factor of each column has a weight of its own, so that factors cannot be merged
    exposure: int | None = None  # the column of exposures
    # the code of the group of each code of a column, (K + 1,), by the position of the column
    groups: Mapping[int, Any] = field(default_factory=dict)

    @property
    def xp(self) -> Any:
        """The functions of the arrays."""
        return self.cells.xp

    def code(self, position: int) -> Arrays:
        """Return the codes of a column, (n,)."""
        code = self.cells.code(self.columns[position])
        return taken(self.groups[position], code) if position in self.groups else code

    @cached_property
    def codes(self) -> Arrays:
        """The codes of the columns, (n, d)."""
        return self.xp.stack([self.code(position) for position in range(len(self.columns))], axis=1)


Factors = tuple[Sequence[int], Arrays]  # columns, and their log factors in nats, (n, Z, columns)


def gaussian(block: BlockCells, parameters: GaussianParameters) -> Factors:
    """Return log N(x_j; mean_zj, variance_zj), or the log of a t."""
    xp, x = block.xp, block.cells.numbers_of(block.columns)[:, None, :]
    squared = (x - parameters.mean) ** 2 * parameters.precision
    if parameters.degrees is None:
        factors = parameters.log_peak - 0.5 * squared
    else:
        nu = parameters.degrees
        factors = parameters.log_peak - 0.5 * (nu + 1.0) * xp.log1p(squared / nu)
    return block.columns, xp.where(xp.isnan(x), 0.0, factors)


def categorical(block: BlockCells, parameters: CategoricalParameters) -> Factors:
    """Return log p(x_j = k | z)."""
    slots = block.codes + parameters.offsets[:-1]
    return block.columns, block.xp.permute_dims(taken(parameters.log_probability.T, slots), (0, 2, 1))


def missingness(block: BlockCells, parameters: MissingnessParameters) -> Factors:
    """Return log p(m_j | z): of a cell that is missing, or of one that is not."""
    schema = block.cells.schema
    known = [
        block.cells.code(j) > 0 if j in schema.coded else ~block.xp.isnan(block.cells.number(j)) for j in block.columns
    ]
    present = block.xp.stack(known, axis=1)[:, None, :]
    of_missing, of_present = (block.xp.asarray(log_p) for log_p in (parameters.log_missing, parameters.log_present))
    return block.columns, block.xp.where(present, of_present, of_missing)


# Counts, each in a column of numbers --------------------------------------------------------------------------------


def _counts(block: BlockCells, is_whole: bool = False, most: float = LARGEST_COUNT) -> Arrays:
    """Return the counts, (n, d), after refusing rows with a negative, too large or fractional one."""
    xp, x = block.xp, block.cells.numbers_of(block.columns)
    wrong = x < 0.0
    if is_whole:
        wrong = wrong | (xp.floor(x) < x)
    if most < np.inf:  # infinite cells are refused already
        wrong = wrong | (x > most)
    block.cells.refuse(xp.any(wrong, axis=1))
    return x


def _linear(x: Arrays, weight: Any) -> Arrays:
    """Return x_j·w_zj, (n, Z, d), 0 where x_j is 0 or missing, whatever the weight."""
    xp = x.__array_namespace__()
    known = xp.where(xp.isnan(x), 0.0, x)[:, None, :]
    if np.isfinite(weight).all():
        return known * weight
    with np.errstate(invalid="ignore"):  # 0·∞
        return xp.where(known == 0.0, 0.0, known * weight)


def _log_totals(x: Arrays, share: Any, log_whole: Any) -> Arrays:
    """Return log Σ_j share_zj over the counts that are not missing, (n, Z); log_whole if none is missing."""
    xp = x.__array_namespace__()
    gap = xp.isnan(x)
    present = xp.astype(~gap, xp.float64) @ xp.asarray(share.T)
    log_present = xp.log(xp.maximum(present, xp.asarray(_SMALLEST)))
    return xp.where(xp.any(gap, axis=1, keepdims=True), log_present, xp.asarray(log_whole)[None, :])


def poisson(block: BlockCells, parameters: PoissonParameters) -> Factors:
    """Return x_j·log rate_zj − rate_zj."""
    x = _counts(block, is_whole=True, most=np.inf)
    missing = block.xp.isnan(x)[:, None, :]
    return block.columns, block.xp.where(missing, 0.0, _linear(x, parameters.log_rate) - parameters.rate)


def poisson_rate(block: BlockCells, parameters: PoissonRateParameters) -> Factors:
    """Return x_j·log λ_zj − λ_zj·ℓ of an exposure ℓ; of its shares of the counts present where ℓ is missing."""
    xp, x = block.xp, _counts(block, is_whole=True)
    events = _linear(x, parameters.of_words.scores)
    totals = _log_totals(x, parameters.rate, np.log(np.maximum(parameters.whole, _SMALLEST)))
    known = xp.where(xp.isnan(x), 0.0, x)[:, None, :]
    without = events - known * totals[:, :, None]
    if block.exposure is None:
        return block.columns, without
    block.cells.refuse(block.cells.number(block.exposure) <= 0.0)
    exposure = block.cells.number(block.exposure)[:, None, None]
    expected = xp.where(xp.isnan(x)[:, None, :], 0.0, exposure * parameters.rate)
    return block.columns, xp.where(xp.isnan(exposure), without, events - expected)


def multinomial(block: BlockCells, parameters: MultinomialParameters) -> Factors:
    """Return x_j·log θ_zj, with the shares θ of the counts that are present."""
    return block.columns, _shares(_counts(block), parameters)


def scaled_multinomial(block: BlockCells, parameters: MultinomialParameters) -> Factors:
    """Return t_j·log θ_zj of t_j = log(1 + x_j), divided by their Euclidean length."""
    xp, t = block.xp, block.xp.log1p(_counts(block))
    length = xp.sqrt(xp.sum(xp.where(xp.isnan(t), 0.0, t * t), axis=1, keepdims=True))
    return block.columns, _shares(xp.where(length > 0.0, t / xp.where(length > 0.0, length, 1.0), t), parameters)


def _shares(x: Arrays, parameters: MultinomialParameters) -> Arrays:
    xp, log_share = x.__array_namespace__(), parameters.log_probability
    totals = _log_totals(x, np.exp(log_share), np.zeros(len(log_share)))
    return _linear(x, log_share) - xp.where(xp.isnan(x), 0.0, x)[:, None, :] * totals[:, :, None]


def complement(block: BlockCells, parameters: ComplementParameters) -> Factors:
    """Return x_j·w_zj."""
    return block.columns, _linear(_counts(block), parameters.score)


def presence(block: BlockCells, parameters: PresenceParameters) -> Factors:
    """Return log p that word j is present, or that it is absent."""
    xp, x = block.xp, _counts(block)[:, None, :]
    seen = xp.where(x > 0.0, xp.asarray(parameters.present), xp.asarray(parameters.absent))
    return block.columns, xp.where(xp.isnan(x), 0.0, seen)


def compound(block: BlockCells, parameters: CompoundParameters) -> Factors:
    """Return log Γ(a_zj + x_j) − log Γ(a_zj), and x_j/N of log Γ(A_z) − log Γ(A_z + N)."""
    xp, x, a = block.xp, _counts(block, is_whole=True), parameters.concentration
    gap = xp.isnan(x)
    known = xp.where(gap, 0.0, x)
    n = xp.sum(known, axis=1, keepdims=True)
    total = xp.maximum(xp.astype(~gap, xp.float64) @ xp.asarray(a.T), xp.asarray(_SMALLEST))
    share = known / xp.where(n > 0.0, n, 1.0)
    own = _log_rising(xp.asarray(a)[None, :, :], known[:, None, :])
    factors = own - share[:, None, :] * _log_rising(total, n)[:, :, None]
    return block.columns, xp.where((known > 0.0)[:, None, :], factors, 0.0)


def _log_rising(a: Arrays, x: Arrays) -> Arrays:
    """Return log Γ(a + x) − log Γ(a) as the difference of Stirling's series at y = a + 8 and at y + x.

    It is (y + x − ½)·log(1 + x/y) + x·log y − x + c(y + x) − c(y) + log Π_i (a + i) − log Π_i (a + x + i) of i < 8,
    which loses no digit where a is large.
    """
    xp, y = x.__array_namespace__(), a + float(_SHIFT)
    grown = (y + x - 0.5) * xp.log1p(x / y) + x * xp.log(y) - x + _correction(y + x) - _correction(y)
    for i in range(_SHIFT):
        grown = grown - xp.log1p(x / (a + float(i)))
    return grown


def _correction(y: Arrays) -> Arrays:
    """Return c(y) = 1/(12·y) − 1/(360·y³) + …, by Horner's rule in 1/y²."""
    total = _STIRLING[-1]
    for term in reversed(_STIRLING[:-1]):
        total = term + total / (y * y)
    return total / y


# Dependent columns --------------------------------------------------------------------------------------------------


def multivariate_gaussian(block: BlockCells, parameters: MultivariateGaussianParameters) -> Factors:
    """Return log p(x | z) of complete rows by whitening, and of others by sweeping the present columns out.

    Each present column is swept out of the covariance of the later ones (Little & Rubin, Statistical Analysis with
    Missing Data, 3rd ed., section 7.4): r_i ← r_i − S_ij·r_j / S_jj, S_ik ← S_ik − S_ij·S_jk / S_jj; a missing one is
    skipped, which integrates it out. Of factors with weights it is log p(x_j | the present columns before j, z).
    """
    xp, columns = block.xp, [block.columns[j] for j in parameters.varying]
    if not columns:
        return (), xp.zeros((1, 1, 0), dtype=xp.float64)
    parameters = parameters.of_varying
    x = block.cells.numbers_of(columns) - parameters.middle
    if block.is_weighted:
        squares, log_variances, _ = _swept(x, parameters)
        if parameters.degrees is not None:
            raise ValueError(
                f"{block.model} has factor weights on t densities, which run in Python only; fit with predictive=False"
            )
        return columns, -0.5 * (xp.stack(squares, axis=2) + xp.stack(log_variances, axis=2))
    gap = xp.any(xp.isnan(x), axis=1)

    def of_rows(rows: Arrays) -> Arrays:
        parts = _swept(xp.take(x, rows, axis=0), parameters)
        distance, log_volume, n_seen = map(_total, parts)
        return _at_distance(parameters, distance, n_seen[:, None], n_seen, log_volume)

    return columns[:1], where_rows(gap, of_rows, _of_complete(x, parameters))[:, :, None]


def _of_complete(x: Arrays, parameters: MultivariateGaussianParameters) -> Arrays:
    """Return log p(x | z) of complete rows about the middle of the means, (n, Z), up to a constant of the row."""
    xp, d, groups = x.__array_namespace__(), x.shape[1], parameters.groups
    if parameters.shared and parameters.degrees is None:  # the quadratic form of x is the same for all components
        apart = parameters.mean - parameters.middle
        slope = apart @ parameters.precision[0]
        return x @ xp.asarray(slope.T) - 0.5 * (slope * apart).sum(axis=1)
    white = xp.reshape(x @ xp.asarray(parameters.whiteners), (-1, len(parameters.covariance), d))
    white = xp.take(white, xp.asarray(groups), axis=1) - parameters.whitened_means
    return _at_distance(parameters, xp.sum(white * white, axis=2), float(d), d, parameters.log_volume[groups])


def _total(parts: Sequence[Arrays]) -> Arrays:
    """Return the sum of some arrays of one shape."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _at_distance(
    parameters: MultivariateGaussianParameters, distance: Arrays, counts: Any, place: Any, log_volume: Any
) -> Arrays:
    """Return log p(x | z), up to a term of the number of present columns, from squared distances (n, Z)."""
    xp = distance.__array_namespace__()
    if parameters.degrees is None or parameters.spread is None:
        return -0.5 * (distance + log_volume)
    nu = parameters.degrees
    if isinstance(place, int):
        peak = parameters.log_peak[place]
    else:
        peak = taken(parameters.log_peak, as_code(place, len(parameters.log_peak) - 1))
    return peak - 0.5 * log_volume - 0.5 * (nu + counts) * xp.log1p(distance / (nu * parameters.spread))


def _swept(x: Arrays, parameters: MultivariateGaussianParameters) -> tuple[list[Arrays], list[Arrays], list[Arrays]]:
    """Return for each column its squared distance given those before it, the log of its variance, and whether present.

    The first two are (n, Z) and 0 where the cell is missing.
    """
    xp, groups = x.__array_namespace__(), parameters.groups
    d, present = x.shape[1], ~xp.isnan(x)
    zero = xp.zeros_like(x[:, :1])[:, :, None, None]
    left = zero + parameters.covariance  # (n, G, d, d)
    apart = xp.where(present, x, 0.0)[:, None, :] - (parameters.mean - parameters.middle)  # (n, Z, d)
    squares, log_variances, seen = [], [], []
    for j in range(d):
        here = present[:, j, None]
        variance, r = left[:, :, 0, 0], apart[:, :, 0]
        of_z = xp.take(variance, xp.asarray(groups), axis=1)
        squares.append(xp.where(here, r * r / of_z, 0.0))
        log_variances.append(xp.where(here, xp.log(of_z), 0.0))
        seen.append(xp.astype(present[:, j], xp.float64))
        slope = left[:, :, 1:, 0] / variance[:, :, None]
        moved = apart[:, :, 1:] - xp.take(slope, xp.asarray(groups), axis=1) * r[:, :, None]
        apart = xp.where(here[:, :, None], moved, apart[:, :, 1:])
        less = left[:, :, 1:, 1:] - slope[:, :, :, None] * left[:, :, 0, None, 1:]
        left = xp.where(here[:, :, None, None], less, left[:, :, 1:, 1:])
    return squares, log_variances, seen


def families(block: BlockCells, parameters: SmoothedFamilies) -> Factors:
    """Return log p(x_j | the present ones of the columns before it, z)."""
    return block.columns, of_families(block.codes, parameters.tables)


def full_joint(block: BlockCells, parameters: FullJointParameters) -> Factors:
    """Return log p(x_j | x_1 … x_{j−1}, z)."""
    if block.is_weighted:
        return block.columns, of_families(block.codes, FamilyTables.of_joint(parameters.log_probability))
    xp, table = block.xp, parameters.log_probability
    slot = xp.zeros_like(block.codes[:, 0])
    for j, width in enumerate(table.shape[1:]):
        slot = slot * width + block.codes[:, j]
    return block.columns[:1], taken(table.reshape(len(table), -1).T, slot)[:, :, None]


def averaged(block: BlockCells, parameters: AveragedParameters) -> Factors:
    """Return log 1/d·Σ_i Σ_a p(x_i = a | z)·Π_{j≠i} p(x_j | x_i = a, z), over all a where x_i is missing."""
    xp, varying = block.xp, parameters.varying
    if not varying:
        return (), xp.zeros((1, 1, 0), dtype=xp.float64)
    if block.is_weighted:
        raise ValueError(
            f"{block.model} has factor weights on an average of trees, which run in Python only; fit without them"
        )
    codes = xp.take(block.codes, xp.asarray(np.array(varying)), axis=1)
    n_slots = len(parameters.by_pair)
    table = parameters.by_pair.reshape(n_slots * n_slots, -1)
    slots, known = codes + parameters.starts, codes > 0
    stops = np.append(parameters.starts[1:], n_slots)
    terms = []
    for i, (start, stop) in enumerate(zip(parameters.starts.tolist(), stops.tolist(), strict=True)):
        of_known = _of_parent(table, slots[:, i], slots, known, n_slots)
        values = np.arange(start + 1, stop)

        def of_rows(rows: Arrays, values: Any = values) -> Arrays:
            own = table[values * n_slots + values]  # log p(x_i | z) of each value
            pairs = values[np.newaxis, :, np.newaxis] * n_slots + xp.take(slots, rows, axis=0)[:, None, :]
            present = xp.take(known, rows, axis=0)[:, None, :, None]
            return log_sum_exp(xp.sum(xp.where(present, taken(table, pairs), 0.0), axis=2) + own, axis=1)

        terms.append(where_rows(codes[:, i] == 0, of_rows, of_known))
    log_sum = log_sum_exp(xp.stack(terms, axis=2)) - math.log(len(varying))
    return [block.columns[varying[0]]], log_sum[:, :, None]


def _of_parent(table: Any, parent: Arrays, slots: Arrays, known: Arrays, n_slots: int) -> Arrays:
    """Return Σ log p(x_j | x_i, z) over the known cells of rows, (n, Z), with parents in these slots, (n,)."""
    xp = slots.__array_namespace__()
    return xp.sum(xp.where(known[:, :, None], taken(table, parent[:, None] * n_slots + slots), 0.0), axis=1)


def forest(block: BlockCells, parameters: RandomTreesParameters | SummedTreesParameters) -> Factors:
    """Return the mean over the trees of log p(y | x) − log p(y), or what a sum of trees adds to log p(y | x)."""
    if block.is_weighted:
        raise ValueError(
            f"{block.model} has factor weights on trees, which run in Python only; leave out feature_weights"
        )
    return block.columns[:1], of_forest(block.codes, parameters)[:, :, None]


def tree(block: BlockCells, parameters: TreeParameters) -> Factors:
    """Return the term of each column in log p(x | z); 0 where its parent is missing, whose term includes it."""
    if block.is_weighted:
        raise ValueError(
            f"{block.model} has factor weights on a tree, which run in Python only; leave out feature_weights"
        )
    codes = {j: block.code(j) for j, is_number in enumerate(parameters.continuous) if not is_number}
    return block.columns, of_tree(block.cells, block.columns, parameters, codes)


def grouped(block: BlockCells, parameters: GroupedParameters) -> Factors:
    """Return the log factors of the groups; p(x_j | g_j) is the same for all components."""
    groups = {
        position: parameters.groups.code_of_group(j, parameters.cardinalities[j]).astype(np.int64)
        for j, position in enumerate(parameters.coded)
        if parameters.groups.of_categories[j]
    }
    coarse = next(density for density in PROGRAMS if density.fitted is type(parameters.coarse))
    program: Program = block.cells.own_program(coarse) or PROGRAMS[coarse]
    return program(replace(block, groups=groups), parameters.coarse)


Program = Callable[[BlockCells, Any], Factors]

# By class; densities of which all components share the parameters, such as `Binned`, have none.
PROGRAMS: dict[type[Any], Program] = {
    densities.AveragedOneDependence: averaged,
    densities.Categorical: categorical,
    densities.Complement: complement,
    densities.Compound: compound,
    densities.FullJoint: full_joint,
    densities.Gaussian: gaussian,
    densities.Grouped: grouped,
    densities.KDependence: families,
    densities.Missingness: missingness,
    densities.Multinomial: multinomial,
    densities.MultivariateGaussian: multivariate_gaussian,
    densities.Poisson: poisson,
    densities.PoissonRate: poisson_rate,
    densities.Presence: presence,
    densities.RandomTrees: forest,
    densities.ScaledMultinomial: scaled_multinomial,
    densities.SummedTrees: forest,
    densities.Tree: tree,
}


def factors_of(density: Any, block: BlockCells, parameters: Any) -> Factors:
    """Return the log factors of a density, by its own program or by that of the library; ValueError if it has none."""
    if implements(density, ProgrammedDensity):
        return density.program(block, parameters)
    program: Program | None = block.cells.own_program(type(density)) or PROGRAMS.get(type(density))
    if program is None:
        raise ValueError(
            f"the density {density.name!r} has no program, so that it runs in Python only; write its method `program`"
        )
    return program(block, parameters)
