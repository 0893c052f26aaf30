"""Weights, means and scatter matrices: second moments of numbers that depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk

from posteriori.statistics.moments import Moments, gather
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array


@dataclass(frozen=True)
class Scatter:
    """Per component: the weight of the rows, their mean, and their scatter matrix Σ w·(x − mean)(x − mean)ᵀ.

    As with `Moments`, sums are taken about a shift and merged by the update of Chan, Golub & LeVeque (1979).
    Missing cells have been replaced by expectations, with the covariance of what is unknown added to the scatter:
    under an independent Gaussian of the batch by `of`, under a model by the E-step. `unknown` counts them, so that a
    reader knows whether the sums are those of complete rows.

    Attributes
    ----------
    weight : ndarray (Z,)
        In rows.
    shift, offset : ndarray (Z, d)
        In data units; the mean is shift + offset.
    scatter : ndarray (Z, d, d)
        In squared data units times rows.
    present : ndarray (Z, d)
        The weight of the cells that are not missing.
    """

    weight: Array
    shift: Array
    offset: Array
    scatter: Array
    present: Array

    @property
    def mean(self) -> Array:
        """The mean, (Z, d), in data units."""
        return self.shift + self.offset

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> Scatter:
        """Return the second moments of the rows of a tile. O(n·d²) in BLAS."""
        moments = Moments.of(tile, assignment)
        complete = np.bincount(assignment.component, assignment.weight, assignment.n_components)
        with np.errstate(invalid="ignore"):
            variance = moments.scatter / np.where(moments.weight > 0, moments.weight, 1.0)
        unknown = complete[:, np.newaxis] - moments.weight
        gaps = bool(np.isnan(tile.values).any()) if (unknown > 0).any() else False
        scatter = np.zeros((*variance.shape, variance.shape[1]))
        mean = moments.mean
        for z in np.unique(assignment.component):
            rows = assignment.component == z
            scatter[z] = _scatter_about(tile.values[rows], mean[z], assignment.weight[rows], gaps)
            scatter[z][np.diag_indices(len(mean[z]))] += unknown[z] * variance[z]
        return cls(complete, moments.shift, moments.offset, scatter, moments.weight)

    def __add__(self, other: Scatter) -> Scatter:
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0, weight, 1.0)
        known = (self.weight > 0)[:, np.newaxis]
        delta = np.where(known, (other.shift - self.shift) + (other.offset - self.offset), 0.0)
        offset = np.where(known, self.offset + delta * share[:, np.newaxis], other.offset)
        apart = (self.weight * share)[:, np.newaxis, np.newaxis] * delta[:, :, np.newaxis] * delta[:, np.newaxis, :]
        scatter = self.scatter + other.scatter + apart
        return Scatter(
            weight, np.where(known, self.shift, other.shift), offset, scatter, self.present + other.present
        )

    def is_finite(self) -> bool:
        """Whether no cell was infinite, nor so large that its square overflows."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self.scatter).all())

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self.present

    def is_exact(self) -> bool:
        """Whether no row of any weight had a missing cell."""
        return bool((self.present == self.weight[:, np.newaxis]).all())

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Scatter:
        """Return the second moments of other components: components[z] is the place of z here, −1 where it is new."""
        del columns  # numbers have no categories
        parts = (self.weight, self.shift, self.offset, self.scatter, self.present)
        return Scatter(*(gather(part, components) for part in parts))


def _scatter_about(values: Array, mean: Array, weight: Array, gaps: bool) -> Array:
    """Return Σ w·(x − mean)(x − mean)ᵀ, a missing cell standing at the mean."""
    deviation = values - mean
    if gaps:
        deviation[np.isnan(deviation)] = 0.0
    if not (weight == 1.0).all():
        deviation *= np.sqrt(weight)[:, np.newaxis]
    product = dsyrk(1.0, deviation.T, lower=0)
    return product + np.triu(product, 1).T
