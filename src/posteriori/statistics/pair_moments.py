"""Second moments of pairs of numbers, each over the rows in which both are present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from posteriori import kernels
from posteriori.invariants import LARGEST_SQUARE
from posteriori.statistics.axes import Axes
from posteriori.statistics.differences import (
    difference,
    exceeds,
    ratio,
    slack_of,
    squares_exceed,
    squares_left,
    variance_of_all,
)
from posteriori.statistics.left_out import less
from posteriori.statistics.sums import Sums
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array


@dataclass(frozen=True)
class PairMoments(Sums):
    """Per component and pair (i, j) of columns, over the rows in which both cells are present.

    As with `Moments`, sums are taken about a shift and merged by the update of Chan, Golub & LeVeque (1979).

    Attributes
    ----------
    weight : ndarray (Z, d, d)
        In rows.
    shift : ndarray (Z, d)
        In data units.
    offset : ndarray (Z, d, d)
        The mean of x_i over the rows of the pair is shift[i] + offset[i, j].
    scatter : ndarray (Z, d, d)
        Σ w·(x_i − mean_ij)².
    cross : ndarray (Z, d, d)
        Σ w·(x_i − mean_ij)(x_j − mean_ji).
    """

    weight: Annotated[Array, Axes("the weight of pairs", "z", "number", "number", low=0.0)]
    shift: Annotated[Array, Axes("the shift of pairs", "z", "number")]
    offset: Annotated[Array, Axes("the offset of pairs", "z", "number", "number")]
    scatter: Annotated[Array, Axes("the scatter of pairs", "z", "number", "number", low=0.0, high=LARGEST_SQUARE)]
    cross: Annotated[
        Array, Axes("the products of pairs", "z", "number", "number", low=-LARGEST_SQUARE, high=LARGEST_SQUARE)
    ]

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> PairMoments:
        """Return the moments of the rows of a tile. O(n·d²) in BLAS: one product, or four if cells are missing."""
        n_components, d = assignment.n_components, tile.values.shape[1]
        shift = np.zeros((n_components, d))
        kernels.first_numbers(tile.values, assignment.component, assignment.weight, shift)
        weight, first, second, cross = np.zeros((4, n_components, d, d))
        for z in np.unique(assignment.component).tolist() if d else ():
            rows = assignment.component == z
            w = assignment.weight[rows, np.newaxis]
            with np.errstate(invalid="ignore", over="ignore"):
                deviation = tile.values[rows] - shift[z]
                absent = np.isnan(deviation)
                deviation[absent] = 0.0
                weighted = w * deviation
                cross[z] = weighted.T @ deviation
                if absent.any():
                    present = (~absent).astype(np.float64)
                    weight[z] = (w * present).T @ present
                    first[z] = weighted.T @ present
                    second[z] = (weighted * deviation).T @ present
                else:
                    weight[z] = w.sum()
                    first[z] = weighted.sum(axis=0)[:, np.newaxis]
                    second[z] = np.diagonal(cross[z])[:, np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):
            offset = first / np.where(weight > 0, weight, 1.0)
            scatter = np.maximum(second - first * offset, 0.0)
            return cls(weight, shift, offset, scatter, cross - first * offset.swapaxes(1, 2))

    def __add__(self, other: PairMoments) -> PairMoments:
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        seen = np.diagonal(self.weight, axis1=1, axis2=2) > 0
        shift = np.where(seen, self.shift, other.shift)
        mine, theirs = (
            part.offset + (part.shift - shift)[:, :, np.newaxis] * (part.weight > 0) for part in (self, other)
        )
        delta = np.where((self.weight > 0) & (other.weight > 0), theirs - mine, 0.0)
        offset = np.where(self.weight > 0, mine + delta * share, theirs)
        with np.errstate(over="ignore", invalid="ignore"):
            between = self.weight * share
            scatter = self.scatter + other.scatter + delta**2 * between
            cross = self.cross + other.cross + delta * delta.swapaxes(1, 2) * between
        return PairMoments(weight, shift, offset, scatter, cross)

    def __sub__(self, other: PairMoments) -> PairMoments:
        weight, delta, share = self._downdate_terms(other)
        left, between = weight > 0, self.weight * share
        scatter = np.where(left, squares_left(self.scatter, other.scatter + between * delta**2), 0.0)
        cross = (self.cross - other.cross) - between * delta * delta.swapaxes(1, 2)
        varying = (scatter > 0) & (scatter.swapaxes(1, 2) > 0)
        seen = np.diagonal(weight, axis1=1, axis2=2) > 0
        offset = np.where(left, self.offset - share * delta, 0.0)
        return PairMoments(weight, np.where(seen, self.shift, 0.0), offset, scatter, np.where(varying, cross, 0.0))

    def would_go_negative(self, other: PairMoments) -> Array:
        """Return where other holds more than these moments, (Z, d): weight, deviations, or their products."""
        weight, delta, share = self._downdate_terms(other)
        with np.errstate(over="ignore"):
            removed = other.scatter + self.weight * np.where(weight > 0, share, 1.0) * delta**2
        mean = self.shift[:, :, np.newaxis] + self.offset
        single = (np.diagonal(part, axis1=1, axis2=2) for part in (self.weight, mean, self.scatter))
        slack = slack_of(self.weight, mean, variance_of_all(*single)[:, np.newaxis])
        over = exceeds(other.weight, self.weight) | squares_exceed(removed, self.scatter, slack)
        rest = self - other
        largest, before, rounding = (  # bounds on the magnitude of a cross product, by Cauchy–Schwarz
            np.sqrt(part * part.swapaxes(1, 2)) for part in (rest.scatter, self.scatter, slack)
        )
        beyond = squares_exceed(np.abs(rest.cross) - largest + before, before, rounding)
        return np.asarray((over | beyond).any(axis=2))

    def _downdate_terms(self, other: PairMoments) -> tuple[Array, Array, Array]:
        """Return the remaining weight, δ = other's means − these means, and other's weight / the remaining weight."""
        weight = difference(self.weight, other.weight)
        shift, others = self.shift[:, :, np.newaxis], other.shift[:, :, np.newaxis]
        delta = np.where(other.weight > 0, (others - shift) + (other.offset - self.offset), 0.0)
        return weight, delta, ratio(other.weight, weight)

    def without(self, tile: Numbers, assignment: Assignment) -> PairMoments:
        """Return the moments without one of their rows."""
        z, w = int(assignment.component[0]), float(assignment.weight[0])
        parts = [part.copy() for part in (self.weight, self.offset, self.scatter, self.cross)]
        deviation = (tile.values[0] - self.shift[z])[:, np.newaxis] - self.offset[z]
        present = ~np.isnan(deviation) & ~np.isnan(deviation.T)
        deviation = np.where(present, deviation, 0.0)
        before = self.weight[z]
        rest = less(before, w * present)
        step = w * deviation / np.where(rest > 0, rest, 1.0)
        parts[0][z] = rest
        parts[1][z] -= step
        parts[2][z] = np.where(rest > 0, less(self.scatter[z], before * step * deviation), 0.0)
        parts[3][z] = np.where(rest > 0, self.cross[z] - before * step * deviation.T, 0.0)
        return PairMoments(parts[0], self.shift, *parts[1:])
