"""Categories, independent given the component, and the distribution of numbers within bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast, get_args

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, LinearTerms
from posteriori.densities.conditional import ROUNDING
from posteriori.densities.within_ranges import Box, truncated_normal
from posteriori.statistics.counts import Counts, slot_offsets
from posteriori.statistics.moments import TailMoments, less
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.support.checks import LARGEST, check_equal, check_numbers, check_pseudo_count
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Numbers
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column, flat_cuts

BinRule = Literal["mdlp", "auto", "coarse", "fine"]
Bins = int | BinRule | tuple[float, ...]

# The smallest scale of an outer bin, as a share of the span of its column: rows exactly at the cut have distance 0.
_SCALE_FLOOR = 1e-9

SMALLEST_SCALE = 1e-150  # its inverse square is finite


@dataclass(frozen=True)
class CategoricalParameters(WithAxes):
    """log p(x_j = k | z)."""

    cardinalities: tuple[int, ...]  # K of each column
    # (Z, Σ (K + 1)): in nats, the columns side by side. Slot 0 of each column is the missing cell and holds 0, because
    # summing out gives probability 1.
    log_probability: Annotated[Array, Axes("the log-probabilities", "z", "slot", low=-np.inf, high=ROUNDING)]

    @cached_property
    def offsets(self) -> Array:
        """The first slot of each column, and the number of slots, (d + 1,)."""
        return slot_offsets(self.cardinalities)

    def column(self, j: int) -> Array:
        """Return log p(x_j = k | z) of column j: (Z, K)."""
        return self.log_probability[:, self.offsets[j] + 1 : self.offsets[j + 1]]


@dataclass(frozen=True)
class Categorical(BaseDensity):
    """p(x_j = k | z) = (n_zjk + alpha) / (n_zj + K·alpha), n_zj the weight of the rows of z in which x_j is present.

    Parameters
    ----------
    alpha : float, default 1.0
        Dirichlet pseudo-count per category, ≥ 0: 0 is maximum likelihood, 1 Laplace's rule. If alpha is 0 and a
        component has no row with x_j present, the pooled frequencies of all components are used.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.4 (the Dirichlet posterior mean).

    Examples
    --------
    >>> import posteriori as po
    >>> X, y = [["u"], ["v"], ["u"]], ["a", "b", "a"]
    >>> model = po.NaiveBayes(distributions={"x0": po.Categorical(alpha=0.5)}).fit(X, y)
    >>> model.predict_proba([["u"]]).round(3)
    array([[0.87, 0.13]])
    """

    alpha: float = 1.0
    name = "categorical"
    kind: ClassVar[CellKind] = "categorical"
    sufficient_statistics = Counts
    fitted = CategoricalParameters
    support = "a category"

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def estimate(self, statistics: Counts) -> CategoricalParameters:
        """Return the smoothed frequencies."""
        starts, cardinalities = statistics.offsets[:-1], statistics.cardinalities
        counts = statistics.table.copy()
        counts[:, starts] = 0.0
        widths = np.asarray(cardinalities, np.int64) + 1
        probability = self._smoothed_shares(counts, starts, widths)
        empty = np.isnan(probability)
        if empty.any():
            # Without evidence and pseudo-counts: the pooled frequencies, and if there are none either, uniform ones.
            pooled = self._smoothed_shares(counts.sum(axis=0, keepdims=True), starts, widths)
            probability[empty] = np.broadcast_to(pooled, probability.shape)[empty]
            uniform = np.broadcast_to(1.0 / np.repeat(np.maximum(widths - 1, 1), widths), probability.shape)
            probability = np.where(np.isnan(probability), uniform, probability)
        with np.errstate(divide="ignore"):
            log_probability = np.log(probability)
        log_probability[:, starts] = 0.0
        return CategoricalParameters(cardinalities, log_probability)

    def _smoothed_shares(self, counts: Array, starts: Array, widths: Array) -> Array:
        totals = np.add.reduceat(counts, starts, axis=1) + (widths - 1) * float(self.alpha)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (counts + self.alpha) / np.repeat(totals, widths, axis=1)
        return np.where(np.repeat(totals, widths, axis=1) > 0, shares, np.nan)

    def log_density(self, parameters: CategoricalParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        out = np.zeros((len(tile.values), len(parameters.log_probability)))
        kernels.add_categorical(tile.values, parameters.offsets, parameters.log_probability, out)
        return out

    def log_likelihood(self, parameters: CategoricalParameters, statistics: Counts) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics."""
        occurring = statistics.table > 0  # 0·log 0 is 0
        return float(statistics.table[occurring] @ parameters.log_probability[occurring])

    def log_factors(self, parameters: CategoricalParameters, tile: Codes) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d)."""
        slots = parameters.offsets[:-1] + tile.values
        factors = np.empty((len(slots), len(parameters.log_probability), slots.shape[1]))
        for z, log_probability in enumerate(parameters.log_probability):  # each in one piece of memory, for later reads
            factors[:, z] = log_probability[slots]
        return factors

    def left_out(
        self, parameters: CategoricalParameters, statistics: Counts, tile: Codes, assignment: Assignment
    ) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), of each row under the frequencies without it."""
        cardinalities = np.asarray(statistics.cardinalities, np.float64)
        codes, observed = tile.values, (np.arange(len(tile.values)), assignment.component)
        totals = statistics.observed()
        removed = assignment.weight[:, np.newaxis] * (codes > 0)
        slots = statistics.offsets[:-1] + codes
        count = less(statistics.table[assignment.component[:, np.newaxis], slots], removed)
        total = less(totals[assignment.component], removed)
        smoothed_total = total + cardinalities * self.alpha
        if not ((smoothed_total > 0).all() and (totals + cardinalities * self.alpha > 0).all()):
            return self._left_out_of_pooled(statistics, codes, observed, count, total)
        # Only the component of the row has other frequencies than with the row.
        factors = self.log_factors(parameters, tile)
        with np.errstate(divide="ignore"):
            factors[observed] = np.where(codes > 0, np.log((count + self.alpha) / smoothed_total), 0.0)
        return factors

    def _left_out_of_pooled(
        self, statistics: Counts, codes: Array, observed: tuple[Array, Array], count_left: Array, total_left: Array
    ) -> Array:
        """Do the same where a component has no rows and no pseudo-counts, so that those of all components count."""
        count = statistics.table[:, statistics.offsets[:-1] + codes].transpose(1, 0, 2).copy()
        total = np.broadcast_to(statistics.observed(), count.shape).copy()
        count[observed], total[observed] = count_left, total_left
        cardinalities = np.asarray(statistics.cardinalities, np.float64)
        smoothed_total = total + cardinalities * self.alpha
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (count + self.alpha) / smoothed_total
            count, total = count.sum(axis=1, keepdims=True), total.sum(axis=1, keepdims=True)
            fallback = np.where(total > 0, count / total, 1.0 / np.maximum(cardinalities, 1.0))
            share = np.where(smoothed_total > 0, share, fallback)
            return np.where(codes[:, np.newaxis, :] > 0, np.log(share), 0.0)

    def sample(self, parameters: CategoricalParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d); 0 only in a column without categories."""
        codes = np.zeros((len(component), len(parameters.cardinalities)), np.uint32)
        for j, cardinality in enumerate(parameters.cardinalities):
            if not cardinality:
                continue
            cumulative = np.cumsum(np.exp(parameters.column(j)), axis=1)
            u = rng.random(len(component))
            for z in np.unique(component):
                rows = component == z
                position = np.searchsorted(cumulative[z], u[rows] * cumulative[z, -1], side="right")
                codes[rows, j] = np.minimum(position, cardinality - 1) + 1
        return codes

    def n_parameters(self, parameters: CategoricalParameters) -> int:
        """Return Z·Σ_j (K_j − 1)."""
        return len(parameters.log_probability) * sum([max(k - 1, 0) for k in parameters.cardinalities])

    def linear_terms(self, parameters: CategoricalParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return the log-probabilities relative to the first category, whose log-probability goes into the bias."""
        bias = np.zeros(len(parameters.log_probability))
        terms = []
        for position, column in enumerate(columns):
            if column.is_binned:
                raise ValueError(f"{quote([column.name])} is binned: its log-odds are steps, not a line")
            if not column.categories:
                continue
            log_probability = parameters.column(position)
            if not np.isfinite(log_probability).all():
                raise ValueError(f"{quote([column.name])} has a category of probability 0; set alpha > 0")
            bias += log_probability[:, 0]
            weights = log_probability - log_probability[:, :1]
            terms += [(position, category, weights[:, k]) for k, category in enumerate(column.categories) if k]
        return LinearTerms(bias, terms)

    def conditional_tables(self, parameters: CategoricalParameters) -> list[tuple[tuple[int, ...], Array]]:
        """Return log p(x_j | z) of each column, which has no parents within the block."""
        return [((), parameters.column(j)) for j in range(len(parameters.cardinalities))]


@dataclass(frozen=True)
class BinnedParameters:
    """The cuts of each column, and the scale of its outer bins."""

    cuts: tuple[tuple[float, ...], ...]
    mean: Array  # (d,): mean of a column without cuts, in data units; 0 for other columns
    # (2, d): row 0: mean distance to the first cut of the cells below it. Row 1: mean distance to the last cut of the
    # cells above it. In data units. For a column without cuts both rows hold the standard deviation.
    scale: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns; all components share them."""
        del n_components
        check_equal("the cut points", self.cuts, tuple(column.cuts for column in columns))
        check_numbers("the means", self.mean, (len(columns),))
        check_numbers("the scales of outer bins", self.scale, (2, len(columns)), SMALLEST_SCALE)

    @cached_property
    def slots(self) -> _Slots:
        """The bins of all columns side by side, in the layout of the kernel."""
        bins: list[tuple[float, float, float, float]] = []
        for points, mean, (below, above) in zip(self.cuts, self.mean, self.scale.T, strict=True):
            if not points:
                bins.append((-0.5 * math.log(2.0 * math.pi) - math.log(below), mean, 0.0, below**-2))
                continue
            bins.append((-math.log(below), points[0], 1.0 / below, 0.0))
            bins += [(-math.log(high - low), low, 0.0, 0.0) for low, high in pairwise(points)]
            bins.append((-math.log(above), points[-1], 1.0 / above, 0.0))
        return _Slots(*flat_cuts(self.cuts), *np.array(bins).reshape(-1, 4).T.copy())


class _Slots(NamedTuple):
    """log q(x) = log_height − rate·|x − anchor| − precision·(x − anchor)²/2 in each bin."""

    starts: Array
    cuts: Array
    log_height: Array
    anchor: Array
    rate: Array
    precision: Array


@dataclass(frozen=True)
class Binned(BaseDensity):
    r"""A continuous column as bins: p(x | z) = P(b(x) | z) · q(x | b(x)).

    This density is the second factor, the distribution of x within its bin b. All components share it. It is the
    maximum-entropy distribution given the pooled statistics: uniform between two cuts, exponential beyond an outer cut
    with the mean distance to it, and Gaussian if there is only one bin. The first factor is a separate `Categorical`
    over the bins. So log p(x) is a proper density, and the posterior depends on the bin alone.

    Parameters
    ----------
    bins : int, "mdlp", "auto", "coarse", "fine" or sequence of float, default "mdlp"
        int: that many bins of equal weight, fewer where values repeat. "mdlp": the minimum-description-length rule of
        Fayyad & Irani, which separates the classes. "auto": this rule, except that from 2,000 rows on a column of at
        most 16 values keeps them. "coarse": 8 bins of equal weight, with the same exception. "fine": 64 bins of equal
        weight, and 255 from 5,000 rows on. A strictly increasing sequence: the cut points. A cell equal to a
        cut belongs to the bin above it.

    Notes
    -----
    Up to 50,000 rows (fewer with more than 167 columns) cuts are exact: every distinct value is tried, and a cut lies
    midway between two of them. Beyond, quantiles are those of a uniform sample of that many rows; for "mdlp" all rows
    are counted between 1000 quantiles of a uniform sample of that many rows, and the cuts are some of these quantiles.
    `MDLPDiscretizer` cuts by the same rule, at the same points.

    An outer bin without rows takes the mean width of the inner bins as its scale. An outer bin whose rows all lie at
    the cut has a scale of 1e-9 times the span of the column. A scale is at least 1e-150. None of these changes a
    posterior.

    References
    ----------
    Cover & Thomas, Elements of Information Theory, 2nd ed., section 12.1 (distributions of maximum entropy).
    Fayyad & Irani, Multi-interval discretization of continuous-valued attributes, IJCAI 1993.

    Examples
    --------
    >>> import posteriori as po
    >>> X, y = [[0.0], [1.0], [4.0], [8.0]], ["a", "a", "b", "b"]
    >>> model = po.NaiveBayes(distributions={"x0": po.Binned(2)}).fit(X, y)
    >>> model.cuts_
    {'x0': array([2.5])}
    """

    bins: Bins = "mdlp"
    name = "binned"
    kind: ClassVar[CellKind] = "continuous"
    sufficient_statistics = TailMoments
    fitted = BinnedParameters
    support = "a finite number"
    shared = True

    def __post_init__(self) -> None:
        """Check the bins; a sequence becomes a tuple."""
        object.__setattr__(self, "bins", check_bins(self.bins))

    def estimate(self, statistics: TailMoments) -> BinnedParameters:
        """Return the scales of the outer bins."""
        pooled, cuts = statistics.excess.pooled(), statistics.cuts
        single = np.array([not points for points in cuts])
        weight = pooled.weight.reshape(2, -1)
        mean = np.where(weight > 0, pooled.mean.reshape(2, -1), 0.0)
        sd = np.sqrt(pooled.scatter[0, : len(cuts)] / np.where(weight[0] > 0, weight[0], 1.0))

        distance = np.where(single, sd, mean)
        span = np.array([points[-1] - points[0] if points else 0.0 for points in cuts])
        inner = span / np.maximum([len(points) - 1 for points in cuts], 1)
        empty = weight == 0
        stand_in = np.where(inner > 0, inner, np.where(single, 0.0, distance[::-1]))
        floor = _SCALE_FLOOR * (span + distance.max(axis=0))
        scale = np.maximum(np.where(empty & ~single, stand_in, distance), floor)
        scale = np.where(scale > 0, np.maximum(scale, SMALLEST_SCALE), 1.0)
        return BinnedParameters(cuts, np.where(single, mean[0], 0.0), scale)

    def log_density(self, parameters: BinnedParameters, tile: Numbers) -> Array:
        """Return log q(x | b(x)) in nats, (n, 1)."""
        return np.asarray(self._log_within(parameters, tile).sum(axis=1, keepdims=True))

    def log_factors(self, parameters: BinnedParameters, tile: Numbers) -> Array:
        """Return log q(x_j | b(x_j)) in nats, (n, 1, d)."""
        return self._log_within(parameters, tile)[:, np.newaxis, :]

    def _log_within(self, parameters: BinnedParameters, tile: Numbers) -> Array:
        out = np.empty(tile.values.shape)
        kernels.within_bins(tile.values, *parameters.slots, out)
        return out

    def sample(self, parameters: BinnedParameters, codes: Array, rng: np.random.Generator) -> Array:
        """Draw a number within each bin, (n, d), given the codes of the bins, from 1."""
        drawn = np.empty(codes.shape)
        for j, points in enumerate(parameters.cuts):
            below, above = parameters.scale[:, j]
            if not points:
                drawn[:, j] = rng.normal(parameters.mean[j], below, len(codes))
                continue
            bins = codes[:, j].astype(np.int64) - 1
            low, high = np.append(points[0], points)[bins], np.append(points, points[-1])[bins]
            x = low + rng.random(len(codes)) * (high - low)
            tail = rng.exponential(size=len(codes))
            x = np.where(bins == 0, points[0] - below * tail, np.where(bins == len(points), low + above * tail, x))
            # Rounding must not move a number to the upper cut: that cut belongs to the next bin.
            drawn[:, j] = np.where(bins < len(points), np.minimum(x, np.nextafter(high, -np.inf)), x)
        return drawn

    def sample_within(self, parameters: BinnedParameters, codes: Array, rng: np.random.Generator, box: Box) -> Array:
        """Draw a number within each bin and within a box, (n, d), given the codes of the bins.

        Columns that the box marks as whole get integers.

        If a bin and the box do not overlap, the number is the point of the box that is nearest to the bin.
        """
        drawn = np.empty(codes.shape)
        for j, points in enumerate(parameters.cuts):
            bins = codes[:, j].astype(np.int64) - 1
            edges = np.array([-np.inf, *points, np.inf])
            low, high = np.maximum(edges[bins], box.lowest[j]), np.minimum(edges[bins + 1], box.highest[j])
            below_next = np.where(bins < len(points), np.nextafter(edges[bins + 1], -np.inf), np.inf)
            if box.whole[j]:
                first, last = np.ceil(low), np.floor(np.minimum(high, below_next))
                x = self._whole_within(parameters, j, bins, first, np.maximum(first, last), rng)
            else:
                x = self._number_within(parameters, j, bins, low, np.maximum(low, high), rng)
                x = np.minimum(x, below_next)
            drawn[:, j] = np.clip(x, box.lowest[j], box.highest[j])
        return drawn

    def _number_within(
        self, parameters: BinnedParameters, j: int, bins: Array, low: Array, high: Array, rng: np.random.Generator
    ) -> Array:
        """Draw from q(x | b) truncated to [low, high], (n,)."""
        points, (below, above) = parameters.cuts[j], parameters.scale[:, j]
        if not points:
            return truncated_normal(np.full(len(bins), parameters.mean[j]), below, low, high, rng)
        share = rng.random(len(bins))
        outer = (bins == 0) | (bins == len(points))
        rate = np.where(outer, 1.0 / np.where(bins == 0, below, above), 0.0)
        with np.errstate(invalid="ignore"):
            width = high - low
            # Inverse CDF of a truncated exponential, measured from the end of the interval nearest to the cut.
            tail = -np.log1p(share * np.expm1(-rate * width)) / np.where(outer, rate, 1.0)
            inner = low + share * width
        return np.asarray(np.where(outer, np.where(bins == 0, high - tail, low + tail), inner))

    def _whole_within(
        self, parameters: BinnedParameters, j: int, bins: Array, first: Array, last: Array, rng: np.random.Generator
    ) -> Array:
        """Draw integers from first to last, (n,): uniformly in an inner bin, from the rounded q(x | b) elsewhere."""
        points = parameters.cuts[j]
        inner = (bins > 0) & (bins < len(points))
        edges = np.array([-np.inf, *points, np.inf])
        low, high = np.maximum(first - 0.5, edges[bins]), np.minimum(last + 0.5, edges[bins + 1])
        x = np.rint(self._number_within(parameters, j, bins, low, np.maximum(low, high), rng))
        if inner.any():
            x[inner] = first[inner] + np.floor(rng.random(int(inner.sum())) * (last[inner] - first[inner] + 1.0))
        return np.clip(x, first, last)

    def n_parameters(self, parameters: BinnedParameters) -> int:
        """Return 2·d: two scales, or a mean and a variance, per column. Cut points are not counted."""
        return 2 * len(parameters.cuts)


def check_bins(bins: Any) -> Bins:
    """Return a number of bins, the name of a rule or cut points as a tuple.

    Raises
    ------
    ValueError
        It is not a number ≥ 2, not a rule, and not a sequence of strictly increasing finite numbers.
    """
    if isinstance(bins, str) and bins in get_args(BinRule):
        return cast(BinRule, bins)
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins >= 2:
            return int(bins)
    elif isinstance(bins, list | tuple | np.ndarray):
        points = bins.tolist() if isinstance(bins, np.ndarray) else bins
        if isinstance(points, list | tuple) and all(map(_is_number, points)):
            cuts = np.array(points, dtype=np.float64)
            if (np.diff(cuts) > 0).all():
                return tuple(cuts.tolist())
    rules = ", ".join(map(repr, get_args(BinRule)))
    raise ValueError(
        f"bins is {bins!r}; give a number of at least 2, one of {rules}, or cut points in increasing order"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(-LARGEST <= value <= LARGEST)
