"""Numbers within bins: the part of a binned column that tells nothing of the component."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_equal, check_numbers
from posteriori.statistics.outer_bins import OuterBins
from posteriori.tables.batch import Numbers, flat_cuts
from posteriori.tables.schema import Column, Kind
from posteriori.typing import Array

Bins = int | Literal["mdlp"] | tuple[float, ...]

# The smallest scale of an outer bin, as a share of what its column spans: rows at the cut itself have none.
_SCALE_FLOOR = 1e-9

SMALLEST_SCALE = 1e-150  # whose inverse square is finite


@dataclass(frozen=True)
class BinnedParameters:
    """The cuts of each column, and the scale of its outer bins.

    Attributes
    ----------
    cuts : tuple of tuple of float
    mean : ndarray (d,)
        Of a column without cuts, in data units; 0 elsewhere.
    scale : ndarray (2, d)
        The mean distance to the first cut of the cells below it, and to the last of those above, in data units; in a
        column without cuts, the standard deviation, in both places.
    """

    cuts: tuple[tuple[float, ...], ...]
    mean: Array
    scale: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters are of these columns; the components share them."""
        del n_components
        check_equal("the cut points", self.cuts, tuple(column.cuts for column in columns))
        check_numbers("the means", self.mean, (len(columns),))
        check_numbers("the scales of outer bins", self.scale, (2, len(columns)), SMALLEST_SCALE)

    @cached_property
    def slots(self) -> _Slots:
        """The bins of all columns side by side, as the kernel reads them."""
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
class Binned:
    r"""A continuous column as bins: p(x | z) = P(b(x) | z) · q(x | b(x)).

    This density is the second factor, the distribution of x within its bin b, which all components share: of greatest
    entropy given what the rows of all of them say of it. It is uniform between two cuts; falls off exponentially
    beyond an outer cut, at a rate of 1 over the mean distance to it; and is Gaussian where there is only one bin. The
    first factor is a `Categorical` over the bins, beside this one. So log p(x) is that of a density, and the posterior
    depends on the bin alone.

    Parameters
    ----------
    bins : int, "mdlp" or sequence of float, default "mdlp"
        That many bins of equal weight, fewer where values are repeated; bins chosen by how well they tell the classes
        apart, by the minimum-description-length rule of Fayyad & Irani; or the cut points themselves, strictly
        increasing. A cell equal to a cut is above it.

    Notes
    -----
    The scale of an outer bin without rows is that of the inner ones; one whose rows all lie at the cut has 1e-9 of
    what its column spans. Neither changes a posterior.

    References
    ----------
    Cover & Thomas, Elements of Information Theory, 2nd ed., section 12.1 (distributions of maximum entropy).
    Fayyad & Irani, Multi-interval discretization of continuous-valued attributes, IJCAI 1993.
    """

    bins: Bins = "mdlp"
    name = "binned"
    kind: ClassVar[Kind] = "continuous"
    needs = OuterBins
    fitted = BinnedParameters
    support = "a finite number"
    unbounded = True
    shared = True

    def __post_init__(self) -> None:
        """Check the bins; a sequence becomes a tuple."""
        object.__setattr__(self, "bins", check_bins(self.bins))

    def outside(self, tile: Numbers) -> Array:
        """Return which cells the density cannot produce: infinities."""
        return np.isinf(tile.values)

    def estimate(self, statistics: OuterBins) -> BinnedParameters:
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
        return BinnedParameters(cuts, np.where(single, mean[0], 0.0), np.where(scale > 0, scale, 1.0))

    def log_density(self, parameters: BinnedParameters, tile: Numbers) -> Array:
        """Return log q(x | b(x)) in nats, (n, 1)."""
        return self._log_within(parameters, tile).sum(axis=1, keepdims=True)

    def log_factors(self, parameters: BinnedParameters, tile: Numbers) -> Array:
        """Return log q(x_j | b(x_j)) in nats, (n, 1, d)."""
        return self._log_within(parameters, tile)[:, np.newaxis, :]

    def _log_within(self, parameters: BinnedParameters, tile: Numbers) -> Array:
        out = np.empty(tile.values.shape)
        kernels.within_bins(tile.values, *parameters.slots, out)
        return out

    def sample(self, parameters: BinnedParameters, codes: Array, rng: np.random.Generator) -> Array:
        """Draw a number within each bin, (n, d), from the codes of the bins, from 1 on."""
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
            # Rounding must not carry a number into the next bin, to which its upper cut belongs.
            drawn[:, j] = np.where(bins < len(points), np.minimum(x, np.nextafter(high, -np.inf)), x)
        return drawn

    def n_parameters(self, parameters: BinnedParameters) -> int:
        """Return 2·d: two scales, or a mean and a variance; where the cuts are is not counted."""
        return 2 * len(parameters.cuts)


def check_bins(bins: Any) -> Bins:
    """Return a number of bins, "mdlp" or cut points as a tuple.

    Raises
    ------
    ValueError
        It is neither a number ≥ 2, nor "mdlp", nor strictly increasing finite numbers.
    """
    if isinstance(bins, str) and bins == "mdlp":
        return "mdlp"
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins >= 2:
            return int(bins)
    elif isinstance(bins, list | tuple | np.ndarray):
        points = np.asarray(bins, dtype=np.float64)
        if points.ndim == 1 and np.isfinite(points).all() and (np.diff(points) > 0).all():
            return tuple(points.tolist())
    raise ValueError(f"bins is {bins!r}; give a number of at least 2, 'mdlp', or cut points in increasing order")
