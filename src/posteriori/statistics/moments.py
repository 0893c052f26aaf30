"""Sums over numbers of single columns: moments, ranges and tails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from posteriori import kernels
from posteriori.statistics.sums import (
    Axes,
    Sums,
    check_axes,
    difference,
    exceeds,
    gather,
    no_more_than_rounding,
    ratio,
    slack_of,
    squares_exceed,
    squares_left,
    variance_of_all,
)
from posteriori.support.checks import LARGEST, LARGEST_SQUARE, check_equal, check_numbers
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.schema import Column


@dataclass(frozen=True)
class Moments(Sums):
    """Per component and column: the weight of the present cells, their mean, and their scatter Σ w·(x − mean)².

    Each batch is summed about a shift, which is a value of the component itself. Batches are merged by the update of
    Chan, Golub & LeVeque (1979). The mean is stored as shift + offset, so that the difference of two means far from 0
    keeps all its digits.

    Attributes
    ----------
    weight, shift, offset, scatter : ndarray (Z, d)
        In rows, data units, data units, and squared data units times rows.
    """

    weight: Annotated[Array, Axes("the weight of moments", "z", "column", low=0.0)]
    shift: Annotated[Array, Axes("the shift of moments", "z", "column")]
    offset: Annotated[Array, Axes("the offset of moments", "z", "column")]
    scatter: Annotated[Array, Axes("the scatter of moments", "z", "column", low=0.0, high=LARGEST_SQUARE)]

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the moments fit these columns and this number of components."""
        self.check_shape(n_components, len(columns))

    def check_shape(self, n_components: int, n_columns: int) -> None:
        """Raise ValueError unless there are moments of this number of components and columns."""
        check_axes(self, {"z": n_components, "column": n_columns})
        with np.errstate(over="ignore"):
            variance = self.scatter / np.where(self.weight > 0, self.weight, 1.0)
        check_numbers("the variance of moments", variance, variance.shape, 0.0, LARGEST_SQUARE)

    @property
    def mean(self) -> Array:
        """The mean, (Z, d), in data units."""
        return self.shift + self.offset

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> Moments:
        """Return the moments of the rows of a tile. O(n·d), one read."""
        shape = (assignment.n_components, tile.values.shape[1])
        shift, weight, first, second = np.zeros((4, *shape))
        kernels.first_numbers(tile.values, assignment.component, assignment.weight, shift)
        kernels.add_moments(tile.values, assignment.component, assignment.weight, shift, weight, first, second)
        return cls._about(shift, weight, first, second)

    @classmethod
    def from_responsibilities(cls, tile: Numbers, responsibilities: Array) -> Moments:
        """Return the moments of rows weighted by their responsibilities, (n, Z). O(n·Z·d), one read."""
        shape = (responsibilities.shape[1], tile.values.shape[1])
        shift, total, first, second = (np.zeros(shape) for _ in range(4))
        weight = np.zeros(len(total))
        kernels.weightiest_numbers(tile.values, responsibilities, shift)
        done = kernels.add_complete_moments(tile.values, responsibilities, shift, weight, first, second)
        kernels.add_weighted_moments(tile.values[done:], responsibilities[done:], shift, total, first, second)
        return cls._about(shift, total + weight[:, np.newaxis], first, second)

    @classmethod
    def _about(cls, shift: Array, weight: Array, first: Array, second: Array) -> Moments:
        """Return the moments from the sums about a shift."""
        with np.errstate(invalid="ignore", over="ignore"):
            offset = first / np.where(weight > 0, weight, 1.0)
            return cls(weight, shift, offset, np.maximum(second - first * offset, 0.0))

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        known = self.weight > 0
        delta = np.where(known, (other.shift - self.shift) + (other.offset - self.offset), 0.0)
        shift = np.where(known, self.shift, other.shift)
        # If one side has no weight, the offset of the other is kept exactly.
        offset = np.where(known, self.offset + delta * share, other.offset)
        with np.errstate(over="ignore", invalid="ignore"):
            scatter = self.scatter + other.scatter + delta**2 * self.weight * share
        return Moments(weight, shift, offset, scatter)

    def __sub__(self, other: Moments) -> Moments:
        weight, delta, share = self._downdate_terms(other)
        scatter = squares_left(self.scatter, other.scatter + self.weight * share * delta**2)
        offset = self.offset - share * delta
        # If only zeros remain, as in counts, the mean is exactly 0 and not rounding error of either sign.
        size = self.weight * np.abs(self.mean) + np.sqrt(self.weight * self.scatter)
        only_zeros = (other.weight > 0) & no_more_than_rounding(weight * (self.shift + offset), size)
        kept, left = (weight > 0) & ~only_zeros, weight > 0
        return Moments(
            weight, np.where(kept, self.shift, 0.0), np.where(kept, offset, 0.0), np.where(left, scatter, 0.0)
        )

    def would_go_negative(self, other: Moments) -> Array:
        """Return where other holds more than these moments, (Z, d): weight, or deviations from the mean."""
        weight, delta, share = self._downdate_terms(other)
        with np.errstate(over="ignore"):
            removed = other.scatter + self.weight * np.where(weight > 0, share, 1.0) * delta**2
        slack = slack_of(self.weight, self.mean, variance_of_all(self.weight, self.mean, self.scatter))
        everything = (weight <= 0) & (other.weight > 0)  # then the scatter must be 0 too
        remains = everything & squares_exceed(self.scatter, removed, slack)
        return exceeds(other.weight, self.weight) | squares_exceed(removed, self.scatter, slack) | remains

    def _downdate_terms(self, other: Moments) -> tuple[Array, Array, Array]:
        """Return the remaining weight, δ = other's mean − this mean, and other's weight / the remaining weight.

        Chan's update backwards: the mean moves by −share·δ, and the scatter falls by other's scatter + n·share·δ².
        """
        weight = difference(self.weight, other.weight)
        delta = np.where(other.weight > 0, (other.shift - self.shift) + (other.offset - self.offset), 0.0)
        return weight, delta, ratio(other.weight, weight)

    def finite(self) -> Array:
        """Return which columns had no infinite cell and none so large that squared differences overflow."""
        sizes = np.maximum(np.abs(self.shift), np.abs(self.offset))  # NaN is not below any bound
        return np.asarray(((sizes <= LARGEST) & (self.scatter <= LARGEST_SQUARE)).all(axis=0))

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self.weight

    def pooled(self) -> Moments:
        """Return the moments of all components together, (1, d), about the shift of the first with present cells."""
        known = self.weight > 0
        first = known.argmax(axis=0), np.arange(known.shape[1])
        shift, offset = self.shift[first], self.offset[first]
        weight = self.weight.sum(axis=0)
        delta = np.where(known, (self.shift - shift) + (self.offset - offset), 0.0)
        moved = (self.weight * delta).sum(axis=0) / np.where(weight > 0, weight, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            between = np.where(known, self.weight * (delta - moved) ** 2, 0.0)
            scatter = self.scatter.sum(axis=0) + between.sum(axis=0)
        return Moments(*np.stack([weight, shift, offset + moved, scatter])[:, np.newaxis])

    def placed(self, positions: Sequence[int]) -> Moments:
        """Return the moments of other columns, by their indices here, −1 for a column without present cells."""
        parts = (self.weight, self.shift, self.offset, self.scatter)
        return Moments(*(gather(_with_column(part), positions, axis=1) for part in parts))


def _with_column(sums: Array) -> Array:
    """Return sums (Z, d), with a column of zeros if d is 0, so that indices are valid."""
    return sums if sums.shape[1] else np.zeros((len(sums), 1))


def sums_from_responsibilities(responsibilities: Array) -> Array:
    """Return the weight of each component, (Z,): the column sums, faster than NumPy for a narrow matrix."""
    total = np.zeros(responsibilities.shape[1])
    kernels.add_responsibilities(responsibilities, total)
    return total


@dataclass(frozen=True)
class TailMoments(Sums):
    """Per component and binned column: the moments of the distances below the first cut and above the last.

    Attributes
    ----------
    cuts : tuple of tuple of float
        The cut points of each column.
    excess : Moments of (Z, 2·d)
        First, for each column, the moments of first cut − x where positive; then of x − last cut where not negative.
        For a column without cuts the first are the moments of x, and the second are empty.
    """

    cuts: tuple[tuple[float, ...], ...]
    excess: Moments

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        check_equal("the cut points of the sums", self.cuts, tuple(column.cuts for column in columns))
        self.excess.check_shape(n_components, 2 * len(columns))

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> TailMoments:
        """Return the sums of the rows of a tile. O(n·d), one read."""
        cuts, excess = _excess(tile)
        return cls(cuts, Moments.of(excess, assignment))

    @classmethod
    def from_responsibilities(cls, tile: Numbers, responsibilities: Array) -> TailMoments:
        """Return the sums of rows weighted by their responsibilities, (n, Z). O(n·Z·d)."""
        cuts, excess = _excess(tile)
        return cls(cuts, Moments.from_responsibilities(excess, responsibilities))

    def would_go_negative(self, other: TailMoments) -> Array:
        """Return where other holds more than these sums, (Z, d)."""
        below, above = np.split(self.excess.would_go_negative(other.excess), 2, axis=1)
        return np.asarray(below | above)

    def finite(self) -> Array:
        """Return which columns had no infinite cell, and none whose square overflows, (d,)."""
        return np.asarray(self.excess.finite().reshape(2, -1).all(axis=0))

    def observed(self) -> Array:
        """Return the weight of the cells in outer bins, (Z, d)."""
        below, above = np.split(self.excess.observed(), 2, axis=1)
        return np.asarray(below + above)

    def placed(self, positions: Sequence[int], cuts: tuple[tuple[float, ...], ...]) -> TailMoments:
        """Return the sums of other columns with these cuts, by their indices here, −1 for one without present cells."""
        d = len(self.cuts)
        above = [position + d if position >= 0 else -1 for position in positions]
        return TailMoments(cuts, self.excess.placed([*positions, *above]))


def _excess(tile: Numbers) -> tuple[tuple[tuple[float, ...], ...], Numbers]:
    """Return the cut points, and the distances of each cell below the first and above the last."""
    cuts = tuple([points or () for points in tile.cuts])
    first = np.array([points[0] if points else np.nan for points in cuts])
    last = np.array([points[-1] if points else np.nan for points in cuts])
    excess = np.empty((len(tile.values), 2 * len(cuts)))
    kernels.add_tail_moments(tile.values, first, last, excess)
    return cuts, Numbers(excess)


@dataclass(frozen=True)
class QuarticNorms:
    """The sums of a second pass over the rows: Σ w·‖(x − centre_z) / scale_z‖⁴ of each component, (Z,).

    Parameters
    ----------
    centre, scale : ndarray (Z, d)
        In data units; a column of scale 0 is omitted.
    """

    centre: Array
    scale: Array

    def of(self, tile: Numbers, assignment: Assignment) -> Array:
        """Return the sums of the rows of a tile, where rows of positive weight have no missing cell."""
        total = np.zeros(len(self.centre))
        factor = np.where(self.scale > 0, 1.0 / np.where(self.scale > 0, self.scale, 1.0), 0.0)
        kernels.add_quartic_norms(tile.values, assignment.component, assignment.weight, self.centre, factor, total)
        return total


@dataclass(frozen=True)
class OfComplete:
    """A statistics factory restricted to complete rows: rows with a missing cell get weight 0.

    Parameters
    ----------
    sufficient_statistics : object with a method ``of(tile, assignment)``
    """

    sufficient_statistics: Any

    def of(self, tile: Numbers, assignment: Assignment) -> Any:
        """Return the statistics of the complete rows of a tile."""
        complete = ~np.isnan(tile.values).any(axis=1)
        return self.sufficient_statistics.of(tile, replace(assignment, weight=assignment.weight * complete))


_ROUNDING = 1e-12  # a difference below this share of the total is rounding error


def less(total: Array, part: Array) -> Array:
    """Return total − part, and 0 where the difference is rounding error."""
    rest = total - part
    return np.where(rest > _ROUNDING * total, rest, 0.0)


def weights_left(weight: Array, assignment: Assignment) -> Array:
    """Return the weight of each component without each row, (n, Z), from the weights of all rows, (Z,)."""
    left = np.tile(weight, (len(assignment.component), 1))
    observed = np.arange(len(left)), assignment.component
    left[observed] = less(left[observed], assignment.weight)
    return left


def moments_left(statistics: Moments, tile: Numbers, assignment: Assignment) -> Moments:
    """Return the moments without each row of a tile, with arrays (n, Z, d): Chan's update, backwards."""
    n = len(tile.values)
    shape = (n, *statistics.weight.shape)
    rows, z = np.arange(n), assignment.component
    weight, shift, scatter = statistics.weight[z], statistics.shift[z], statistics.scatter[z]
    deviation = (tile.values - shift) - statistics.offset[z]
    present = ~np.isnan(deviation)
    deviation[~present] = 0.0
    removed = assignment.weight[:, np.newaxis] * present
    rest = less(weight, removed)
    step = removed * deviation / np.where(rest > 0, rest, 1.0)
    parts = [np.broadcast_to(part, shape).copy() for part in (statistics.weight, statistics.offset, statistics.scatter)]
    parts[0][rows, z] = rest
    parts[1][rows, z] -= step
    parts[2][rows, z] = np.where(rest > 0, less(scatter, weight * step * deviation), 0.0)
    return Moments(parts[0], np.broadcast_to(statistics.shift, shape), parts[1], parts[2])


def moments_without(statistics: Moments, tile: Numbers, assignment: Assignment) -> Moments:
    """Return the moments without the one row of a tile.

    If all remaining cells of a column are equal, the means of all components are exactly equal too.
    """
    left = moments_left(statistics, tile, assignment)
    constant, value = constant_left(statistics, tile, assignment)
    shift, offset = np.where(constant, value, left.shift[0]), np.where(constant, 0.0, left.offset[0])
    return Moments(left.weight[0], shift, offset, np.where(constant, 0.0, left.scatter[0]))


def constant_left(statistics: Moments, tile: Numbers, assignment: Assignment) -> tuple[Array, Array]:
    """Return which columns are constant without the one row of a tile, (d,), and their value."""
    left = moments_left(statistics.pooled(), tile, as_one_component(assignment))
    return (left.scatter[0, 0] <= 0) & (left.weight[0, 0] > 0), left.mean[0, 0]


def as_one_component(assignment: Assignment) -> Assignment:
    """Return the rows assigned to a single component."""
    return Assignment(np.zeros_like(assignment.component), assignment.weight, 1)
