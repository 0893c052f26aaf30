"""The full joint distribution: a probability for every combination of categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from posteriori.densities.capabilities import BaseDensity
from posteriori.densities.conditional import ROUNDING, draw
from posteriori.statistics.counts import CountTogether, JointCounts
from posteriori.support.checks import check_equal, check_numbers, check_pseudo_count
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import CellKind, Column

_MOST_STEPS = 1000
_TOLERANCE = 1e-10  # the largest change of a probability between two steps of EM at convergence


@dataclass(frozen=True)
class FullJointParameters:
    """log p(x | z) of every combination of categories, and all its marginals."""

    cardinalities: tuple[int, ...]  # K of each column
    log_probability: Array  # (Z, K_1 + 1, …, K_d + 1): in nats. Code 0 of a column is the sum over all its categories.

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in columns))
        shape = (n_components, *(k + 1 for k in self.cardinalities))
        check_numbers("the log-probabilities", self.log_probability, shape, -np.inf, ROUNDING)


@dataclass(frozen=True)
class FullJoint(BaseDensity):
    """p(x | z) = (n_zx + alpha) / (n_z + alpha·Π_j K_j), one cell per combination of categories.

    Rows with missing cells are distributed over the compatible combinations in proportion to the estimate: EM on the
    table of counts, without another pass over the rows. Predictions sum missing cells out exactly.

    Parameters
    ----------
    alpha : float, default 1.0
        Pseudo-count per cell, ≥ 0.
    """

    alpha: float = 1.0
    name = "full joint"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    fitted = FullJointParameters

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    @property
    def sufficient_statistics(self) -> EveryCombination:
        """The counts of all columns together."""
        return EveryCombination()

    def estimate(self, statistics: JointCounts) -> FullJointParameters:
        """Return the smoothed frequencies and their marginals."""
        counts = statistics.table(statistics.scopes[0])
        d = counts.ndim - 1
        inner = (slice(None), *_categories(counts))
        complete = counts[inner] + self.alpha
        incomplete = _incomplete(counts)
        shares = (
            _shares(complete + 1.0) if incomplete else _shares(complete)
        )  # EM never leaves a probability of 0, so it starts inside
        for _ in range(_MOST_STEPS if incomplete else 0):
            before, shares = shares, _shares(complete + _expected(incomplete, shares))
            if np.abs(shares - before).max() <= _TOLERANCE:
                break
        probability = np.zeros(counts.shape)
        probability[inner] = shares
        for axis in range(1, d + 1):
            first = (slice(None),) * axis + (0,)
            probability[first] = probability.sum(axis=axis)
        with np.errstate(divide="ignore"):
            return FullJointParameters(statistics.cardinalities, np.log(np.minimum(probability, 1.0)))

    def log_density(self, parameters: FullJointParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        return np.ascontiguousarray(parameters.log_probability[(slice(None), *tile.values.T)].T)

    def log_factors(self, parameters: FullJointParameters, tile: Codes) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d): the chain rule in the order of the columns."""
        columns = np.arange(len(parameters.cardinalities))
        upto = np.stack([self._of_shown(parameters, tile, columns < j) for j in range(len(columns) + 1)], axis=2)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(upto[:, :, :-1]), 0.0, np.diff(upto, axis=2))

    def _of_shown(self, parameters: FullJointParameters, tile: Codes, shown: Array) -> Array:
        codes = np.where(shown, tile.values, tile.values.dtype.type(0))
        return self.log_density(parameters, Codes(codes, tile.cardinalities))

    def given(self, parameters: FullJointParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of the columns before it."""
        return tuple(tuple(range(j)) for j in range(len(parameters.cardinalities)))

    def sample(self, parameters: FullJointParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d), each column given those before it."""
        d = len(parameters.cardinalities)
        codes = np.zeros((len(component), d), np.uint32)
        for j in range(d):
            given = (component, *codes[:, :j].T)
            codes[:, j] = draw(parameters.log_probability[(*given, slice(1, None), *[0] * (d - 1 - j))], rng)
        return codes

    def n_parameters(self, parameters: FullJointParameters) -> int:
        """Return Z·(Π_j K_j − 1)."""
        return len(parameters.log_probability) * max(math.prod(parameters.cardinalities) - 1, 0)


@dataclass(frozen=True)
class EveryCombination:
    """The statistics factory of the full joint: counts all columns of the block together."""

    def check_against(self, statistics: JointCounts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        CountTogether((tuple(range(len(columns))),)).check_against(statistics, columns, n_components)

    def of(self, tile: Codes, assignment: Assignment) -> JointCounts:
        """Return the counts of the rows of a tile."""
        return CountTogether((tuple(range(len(tile.cardinalities))),)).of(tile, assignment)


def _shares(counts: Array) -> Array:
    """Return the counts of each component divided by their sum, or uniform shares where the sum is 0."""
    axes = tuple(range(1, counts.ndim))
    total = counts.sum(axis=axes, keepdims=True)
    uniform = 1.0 / max(math.prod(counts.shape[1:]), 1)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), uniform)


def _categories(counts: Array) -> list[slice]:
    """Return the codes of each column that are categories: "missing" is the only one of a column without any."""
    return [slice(1 if n > 1 else 0, None) for n in counts.shape[1:]]


def _incomplete(counts: Array) -> list[tuple[tuple[int, ...], Array]]:
    """Return the weights of rows with missing cells: for each set of missing axes, the weights of the present codes."""
    cells = np.argwhere(counts > 0)
    patterns = np.unique((cells[:, 1:] == 0) & (np.array(counts.shape[1:]) > 1), axis=0)
    known = _categories(counts)
    result = []
    for pattern in patterns[patterns.any(axis=1)]:
        one = (slice(0, 1) if missing else codes for missing, codes in zip(pattern, known, strict=True))
        position = (slice(None), *one)
        result.append((tuple((np.flatnonzero(pattern) + 1).tolist()), counts[position]))
    return result


def _expected(incomplete: list[tuple[tuple[int, ...], Array]], shares: Array) -> Array:
    """Return the expected weight of every combination from the rows with missing cells."""
    expected = np.zeros(shares.shape)
    for axes, weight in incomplete:
        total = shares.sum(axis=axes, keepdims=True)
        n_values = math.prod(shares.shape[axis] for axis in axes)
        given = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / n_values)
        expected += weight * given
    return expected
