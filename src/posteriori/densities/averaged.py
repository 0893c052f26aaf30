"""Every column in turn the parent of all others, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.conditional import BackOff, draw
from posteriori.statistics.counts import slot_offsets
from posteriori.statistics.joint_counts import CountTogether, JointCounts
from posteriori.tables.batch import Codes
from posteriori.tables.schema import View
from posteriori.typing import Array


@dataclass(frozen=True)
class AveragedParameters:
    """p(x_j | z), and p(x_j | x_i, z) of every pair of columns.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column.
    log_single : ndarray (Σ (K + 1), Z)
        In nats, the columns one after another; code 0, the missing cell, holds 0.
    log_pair : ndarray (slots, Z)
        In nats; the table of (i, j) holds p(x_j | x_i, z), (K_i + 1, K_j + 1), from `offsets[i, j]` on. Where x_i is
        missing it is p(x_j | z), and where x_j is, 0.
    """

    cardinalities: tuple[int, ...]
    log_single: Array
    log_pair: Array

    @cached_property
    def offsets(self) -> Array:
        """Where the table of each pair starts, (d, d)."""
        widths = np.array(self.cardinalities, np.int64) + 1
        sizes = np.outer(widths, widths)
        np.fill_diagonal(sizes, 0)
        return (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)

    @cached_property
    def widths(self) -> Array:
        """K + 1 of each column."""
        return np.array(self.cardinalities, np.int64) + 1

    @cached_property
    def starts(self) -> Array:
        """Where each column starts in `log_single`."""
        return slot_offsets(self.cardinalities)[:-1]

    def pair(self, i: int, j: int) -> Array:
        """Return log p(x_j | x_i, z), (K_i + 1, K_j + 1, Z)."""
        shape = (int(self.widths[i]), int(self.widths[j]), -1)
        return self.log_pair[self.offsets[i, j] : self.offsets[i, j] + shape[0] * shape[1]].reshape(shape)


@dataclass(frozen=True)
class AveragedOneDependence:
    r"""p(x | z) = 1/d · Σ_i p(x_i | z)·Π_{j≠i} p(x_j | x_i, z): the mean of d trees, each with one parent of all.

    Nothing is chosen, so that nothing of the structure is learned, and the average varies little from one sample to the
    next.

    Parameters
    ----------
    smoothing : BackOff

    Notes
    -----
    A missing column is left out of every product, and as a parent replaced by none: its model is then the naive one.

    Cost: O(n·d²), in training and in prediction.

    References
    ----------
    Webb, Boughton & Wang, Not so naive Bayes: aggregating one-dependence estimators, Machine Learning 58 (2005).
    """

    smoothing: BackOff
    name = "averaged one-dependence"
    kind: ClassVar[View] = "categorical"
    support = "a category"
    unbounded = True

    @property
    def needs(self) -> CountTogether:
        """All pairs of columns."""
        return CountTogether()

    def outside(self, tile: Codes) -> Array:
        """Return which cells the density cannot produce: none, a stranger having become a missing cell."""
        return np.zeros(tile.values.shape, np.bool_)

    def estimate(self, statistics: JointCounts) -> AveragedParameters:
        """Return the smoothed tables of every pair, each way."""
        d = len(statistics.cardinalities)
        singles = [self.smoothing.log_conditional(statistics.single(j)) for j in range(d)]
        pairs = [
            self.smoothing.log_conditional(statistics.pair(i, j)).reshape(statistics.n_components, -1)
            for i in range(d)
            for j in range(d)
            if i != j
        ]
        nothing = np.empty((statistics.n_components, 0))
        return AveragedParameters(
            statistics.cardinalities,
            np.ascontiguousarray(np.concatenate(singles, axis=1).T),
            np.ascontiguousarray(np.concatenate([nothing, *pairs], axis=1).T),
        )

    def log_density(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        n_components, d = parameters.log_single.shape[1], len(parameters.cardinalities)
        out = np.zeros((len(tile.values), n_components))
        kernels.add_averaged(
            tile.values,
            parameters.offsets,
            parameters.widths,
            parameters.log_single,
            parameters.starts,
            parameters.log_pair,
            np.full(d, -np.log(d)),
            np.empty((d, n_components)),
            out,
        )
        return out

    def log_factors(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d): the chain of the columns as they stand."""
        codes = tile.values
        factors = np.empty((len(codes), parameters.log_single.shape[1], codes.shape[1]))
        before = np.zeros(factors.shape[:2])
        for j in range(codes.shape[1]):
            shown = np.where(np.arange(codes.shape[1]) <= j, codes, codes.dtype.type(0))
            upto = self.log_density(parameters, Codes(shown, tile.cardinalities))
            with np.errstate(invalid="ignore"):
                factors[:, :, j] = np.where(np.isneginf(before), 0.0, upto - before)
            before = upto
        return factors

    def given(self, parameters: AveragedParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the places of those before it."""
        return tuple(tuple(range(j)) for j in range(len(parameters.cardinalities)))

    def sample(self, parameters: AveragedParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d): a parent, its value, and the others given it."""
        d = len(parameters.cardinalities)
        codes = np.zeros((len(component), d), np.uint16)
        parent = rng.integers(0, d, len(component))
        for i in range(d):
            rows = np.flatnonzero(parent == i)
            z = component[rows]
            start = parameters.starts[i] + 1
            own = parameters.log_single[start : start + parameters.cardinalities[i]]
            codes[rows, i] = draw(own[:, z].T, rng)
            for j in range(d):
                if j != i:
                    codes[rows, j] = draw(parameters.pair(i, j)[codes[rows, i], 1:, z], rng)
        return codes

    def n_parameters(self, parameters: AveragedParameters) -> int:
        """Return Z·(Σ_i (K_i − 1) + Σ_{i≠j} K_i·(K_j − 1)): those of all the d models."""
        cardinalities = np.array(parameters.cardinalities)
        free = np.maximum(cardinalities - 1, 0)
        pairs = np.outer(cardinalities, free).sum() - (cardinalities * free).sum()
        return int(parameters.log_single.shape[1] * (free.sum() + pairs))
