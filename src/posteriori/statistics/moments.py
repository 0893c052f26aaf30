"""Weights, means and scatters (unnormalised variances) of numbers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from posteriori import kernels
from posteriori.invariants import LARGEST_SQUARE, check_numbers
from posteriori.statistics.axes import Axes, check_axes
from posteriori.statistics.differences import (
    difference,
    exceeds,
    no_more_than_rounding,
    ratio,
    slack_of,
    squares_exceed,
    squares_left,
    variance_of_all,
)
from posteriori.statistics.sums import Sums, gather
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
from posteriori.typing import Array

_LARGEST = 1e150  # largest magnitude of a mean, so that squared differences between means are finite


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
        shift, weight, first, second = (np.zeros(shape) for _ in range(4))
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
        return np.asarray(((np.abs(self.mean) < _LARGEST) & np.isfinite(self.scatter)).all(axis=0))

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self.weight

    def pooled(self) -> Moments:
        """Return the moments of all components together: (1, d)."""
        components = (self.reindexed([z]) for z in range(len(self.weight)))
        return functools.reduce(operator.add, components)

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
