"""Averaged one-dependence estimators (AODE): each column in turn is the parent of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity
from posteriori.densities.conditional import ROUNDING, BackOff, Family, draw
from posteriori.statistics.counts import CountTogether, JointCounts, slot_offsets
from posteriori.statistics.sums import Axes, check_axes
from posteriori.support.checks import check_equal
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import CellKind, Column

_MOST_CELLS = 1 << 17  # of the tables that pseudo-rows are learned from


@dataclass(frozen=True)
class AveragedParameters:
    """p(x_j | x_i, z) of every pair of columns that vary: that have two categories or more.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column.
    log_probability : ndarray (Σ (K + 1), Z, Σ (K + 1))
        In nats; the sums are over the columns that vary. There is one line for each code of each parent i; in it the
        codes of all children j are side by side.
        Where i = j it holds log p(x_i | z). For code 0 of the parent it is log p(x_j | z), for code 0 of a child 0.
    """

    cardinalities: tuple[int, ...]
    log_probability: Annotated[Array, Axes("the log-probabilities", "slot", "z", "slot", low=-np.inf, high=ROUNDING)]

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in columns))
        check_axes(self, {"z": n_components, "slot": sum(self.cardinalities[j] + 1 for j in self.varying)})

    @cached_property
    def varying(self) -> list[int]:
        """The columns with two categories or more. The others have the factor 1 in every component."""
        return _varying(self.cardinalities)

    @cached_property
    def starts(self) -> Array:
        """The first slot of each column that varies, (d,)."""
        return slot_offsets([self.cardinalities[j] for j in self.varying])[:-1]

    @cached_property
    def by_pair(self) -> Array:
        """The log-probabilities with the component last, as kernels read them; a view if they were just estimated."""
        return np.ascontiguousarray(self.log_probability.swapaxes(1, 2))

    def single(self, j: int) -> Array:
        """Return log p(x_j | z) of the jth column that varies, (Z, K_j + 1)."""
        return self.log_probability[self.starts[j], :, self._slots(j)]

    def pair(self, i: int, j: int) -> Array:
        """Return log p(x_j | x_i, z) of the ith and the jth column that vary, i ≠ j, (K_i + 1, Z, K_j + 1)."""
        return self.log_probability[self._slots(i), :, self._slots(j)]

    def _slots(self, j: int) -> slice:
        start = int(self.starts[j])
        return slice(start, start + self.cardinalities[self.varying[j]] + 1)


@dataclass(frozen=True)
class AveragedOneDependence(BaseDensity):
    r"""p(x | z) = 1/d · Σ_i p(x_i | z)·Π_{j≠i} p(x_j | x_i, z): the mean of d trees.

    In each tree one column is the parent of all others. A column with fewer than two categories is no parent: given a
    constant, the others are independent, so its tree would be one more vote for naive Bayes. d counts the columns that
    vary.

    No structure is selected, so the variance between samples is low.

    Parameters
    ----------
    smoothing : BackOff

    Notes
    -----
    Missing columns are summed out exactly. A missing child is omitted from the product. A missing parent x_i is summed
    over, Σ_a p(x_i = a | z)·Π_j p(x_j | x_i = a, z).

    Cost: O(n·d²), in training and in prediction; in prediction a missing column costs a factor of its number of values.

    References
    ----------
    Webb, Boughton & Wang, Not so naive Bayes: aggregating one-dependence estimators, Machine Learning 58 (2005).
    """

    smoothing: BackOff
    name = "averaged one-dependence"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    fitted = AveragedParameters

    def check_fitted(self, parameters: AveragedParameters) -> None:
        """Raise ValueError unless the smoothing is that of these columns."""
        self.smoothing.check_columns(len(parameters.cardinalities))

    @property
    def sufficient_statistics(self) -> CountTogether:
        """The counts of all pairs of columns."""
        return CountTogether()

    def estimate(self, statistics: JointCounts) -> AveragedParameters:
        """Return the smoothed tables of every ordered pair."""
        columns, n_components = _varying(statistics.cardinalities), statistics.n_components
        if not columns:
            return AveragedParameters(statistics.cardinalities, np.empty((0, n_components, 0)))
        cardinalities = [statistics.cardinalities[j] for j in columns]
        single = np.concatenate([self.smoothing.log_conditional(statistics.single(j), j) for j in columns], axis=1)
        kept = set(columns)
        of_pairs = [kept.issuperset(scope) for scope in statistics.scopes]
        table = np.empty((single.shape[1], single.shape[1], n_components))
        kernels.averaged_tables(
            statistics.cells,
            statistics.offsets[: len(of_pairs)][np.array(of_pairs, np.bool_)],
            np.asarray(cardinalities, np.int64) + 1,
            slot_offsets(cardinalities),
            np.ascontiguousarray(single.T),
            np.array([self.smoothing.pseudo_rows(j, 1)[1] for j in columns]),
            float(self.smoothing.alpha),
            self.smoothing.strength is not None,
            table,
        )
        return AveragedParameters(statistics.cardinalities, table.swapaxes(1, 2))

    def log_density(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        out = np.zeros((len(tile.values), parameters.log_probability.shape[1]))
        if parameters.varying:
            codes = _of_columns(tile.values, parameters.varying)
            kernels.add_averaged(codes, parameters.starts, parameters.by_pair, out)
        return out

    def log_factors(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d): the chain rule in the order of the columns.

        Missing columns are summed out of the condition, and their own factor is 0.
        """
        codes = _of_columns(tile.values, parameters.varying)
        n_components = parameters.log_probability.shape[1]
        varying = np.empty((len(codes), n_components, codes.shape[1]))
        if parameters.varying:
            kernels.chain_averaged(codes, parameters.starts, parameters.by_pair, varying)
        factors = np.zeros((len(codes), n_components, tile.values.shape[1]))
        factors[:, :, parameters.varying] = varying
        return factors

    most_parents: ClassVar[int] = 1

    def counted_families(self, parameters: AveragedParameters, statistics: JointCounts) -> Iterator[Family]:
        """Return the counts of each column alone, and with each other column as its parent.

        If these tables have more than 2¹⁷ cells, only every second, third, … column is a parent.
        """
        columns, components = parameters.varying, range(statistics.n_components)
        cells = len(components) * len(parameters.log_probability) ** 2
        for j in columns:
            yield Family(j, statistics.single(j), components)
            for i in columns[:: -(-cells // _MOST_CELLS)]:
                if i != j:
                    yield Family(j, statistics.pair(i, j), components)

    def left_out_density(
        self, statistics: JointCounts, tile: Codes, assignment: Assignment
    ) -> Callable[[BackOff], Array]:
        """Return the function from a smoothing to log p(x | z) in nats, (n, Z), of rows under the tables without them.

        Cost: O(n·d²·Z) each, and the memory of the parameters.
        """
        columns, n_components = _varying(statistics.cardinalities), statistics.n_components
        starts = slot_offsets([statistics.cardinalities[j] for j in columns])
        codes = _of_columns(tile.values, columns)
        singles, pairs = np.zeros((starts[-1], n_components)), np.zeros((starts[-1], starts[-1], n_components))
        slots = {j: slice(first, last) for j, first, last in zip(columns, starts[:-1], starts[1:], strict=True)}
        for j in columns:
            singles[slots[j]] = _with_totals(statistics.single(j)).T
            for i in columns:
                if i != j:
                    pairs[slots[i], slots[j]] = _with_totals(statistics.pair(i, j)).transpose(1, 2, 0)

        def log_density(smoothing: BackOff) -> Array:
            pseudo_rows = np.array([smoothing.pseudo_rows(j, 1) for j in columns]).reshape(-1, 2)
            out = np.zeros((len(codes), n_components))
            if not columns:
                return out
            kernels.averaged_left_out(
                codes,
                assignment.component,
                assignment.weight,
                pairs,
                singles,
                starts,
                pseudo_rows,
                float(smoothing.alpha),
                out,
            )
            return out

        return log_density

    def given(self, parameters: AveragedParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of the columns before it."""
        return tuple(tuple(range(j)) for j in range(len(parameters.cardinalities)))

    def sample(self, parameters: AveragedParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d): first a uniform parent, then its value, then the other columns given it."""
        d = len(parameters.varying)
        drawn = np.array([min(k, 1) for k in parameters.cardinalities], np.uint32)
        drawn = np.tile(drawn, (len(component), 1))
        if not d:
            return drawn
        codes = np.zeros((len(component), d), np.uint32)
        parent = rng.integers(0, d, len(component))
        for i in range(d):
            rows = np.flatnonzero(parent == i)
            z = component[rows]
            codes[rows, i] = draw(parameters.single(i)[z, 1:], rng)
            for j in range(d):
                if j != i:
                    codes[rows, j] = draw(parameters.pair(i, j)[codes[rows, i], z, 1:], rng)
        drawn[:, parameters.varying] = codes
        return drawn

    def n_parameters(self, parameters: AveragedParameters) -> int:
        """Return Z·(Σ_i (K_i − 1) + Σ_{i≠j} K_i·(K_j − 1)): the parameters of all d trees."""
        cardinalities = np.array([parameters.cardinalities[j] for j in parameters.varying], np.int64)
        free = cardinalities - 1
        pairs = np.outer(cardinalities, free).sum() - (cardinalities * free).sum()
        return int(parameters.log_probability.shape[1] * (free.sum() + pairs))


def _varying(cardinalities: Sequence[int]) -> list[int]:
    return [j for j, k in enumerate(cardinalities) if k > 1]


def _of_columns(codes: Array, columns: list[int]) -> Array:
    """Return the codes of some columns; the same array if these are all."""
    return codes if len(columns) == codes.shape[1] else np.ascontiguousarray(codes[:, columns])


def _with_totals(counts: Array) -> Array:
    """Return weights (Z, …, K + 1) with the sum over the present codes of the child in place of code 0."""
    totals = counts.copy()
    totals[..., 0] = counts[..., 1:].sum(axis=-1)
    return totals
