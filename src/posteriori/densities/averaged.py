"""Averaged one-dependence estimators (AODE): each column in turn is the parent of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.conditional import ROUNDING, BackOff, draw
from posteriori.densities.left_out_cells import Family
from posteriori.statistics.axes import Axes, WithAxes
from posteriori.statistics.counts import slot_offsets
from posteriori.statistics.joint_counts import CountTogether, JointCounts
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.columns import CellKind
from posteriori.typing import Array

_MOST_CELLS = 1 << 17  # of the tables that pseudo-rows are learned from


@dataclass(frozen=True)
class AveragedParameters(WithAxes):
    """p(x_j | x_i, z) of every pair of columns.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column.
    log_probability : ndarray (Σ (K + 1), Z, Σ (K + 1))
        In nats. There is one line for each code of each parent i; in it the codes of all children j are side by side.
        Where i = j it holds log p(x_i | z). For code 0 of the parent it is log p(x_j | z), for code 0 of a child 0.
    """

    cardinalities: tuple[int, ...]
    log_probability: Annotated[Array, Axes("the log-probabilities", "slot", "z", "slot", low=-np.inf, high=ROUNDING)]

    @cached_property
    def starts(self) -> Array:
        """The first slot of each column, (d,)."""
        return slot_offsets(self.cardinalities)[:-1]

    @cached_property
    def by_pair(self) -> Array:
        """The log-probabilities with the component last, as kernels read them; a view if they were just estimated."""
        return np.ascontiguousarray(self.log_probability.swapaxes(1, 2))

    def single(self, j: int) -> Array:
        """Return log p(x_j | z), (Z, K_j + 1)."""
        start = int(self.starts[j])
        return self.log_probability[start, :, start : start + self.cardinalities[j] + 1]

    def pair(self, i: int, j: int) -> Array:
        """Return log p(x_j | x_i, z) for i ≠ j, (K_i + 1, Z, K_j + 1)."""
        rows, columns = (slice(int(self.starts[k]), int(self.starts[k]) + self.cardinalities[k] + 1) for k in (i, j))
        return self.log_probability[rows, :, columns]


@dataclass(frozen=True)
class AveragedOneDependence:
    r"""p(x | z) = 1/d · Σ_i p(x_i | z)·Π_{j≠i} p(x_j | x_i, z): the mean of d trees.

    In each tree one column is the parent of all others.

    No structure is selected, so the variance between samples is low.

    Parameters
    ----------
    smoothing : BackOff

    Notes
    -----
    Missing columns are summed out exactly. A missing child is omitted from the product. A missing parent x_i is summed
    over, Σ_a p(x_i = a | z)·Π_j p(x_j | x_i = a, z). A column that had no category in training has no
    values to sum over: the tree with it as the parent is Π_j p(x_j | z).

    Cost: O(n·d²), in training and in prediction; in prediction a missing column costs a factor of its number of values.

    References
    ----------
    Webb, Boughton & Wang, Not so naive Bayes: aggregating one-dependence estimators, Machine Learning 58 (2005).
    """

    smoothing: BackOff
    name = "averaged one-dependence"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    has_full_support = True
    fitted = AveragedParameters

    def check_fitted(self, parameters: AveragedParameters) -> None:
        """Raise ValueError unless the smoothing is that of these columns."""
        self.smoothing.check_columns(len(parameters.cardinalities))

    @property
    def sufficient_statistics(self) -> CountTogether:
        """The counts of all pairs of columns."""
        return CountTogether()

    def out_of_support(self, tile: Codes) -> Array:
        """Return which cells the density cannot produce: none, because an unseen category is a missing cell."""
        return np.zeros(tile.values.shape, np.bool_)

    def estimate(self, statistics: JointCounts) -> AveragedParameters:
        """Return the smoothed tables of every ordered pair."""
        cardinalities = statistics.cardinalities
        columns, n_components = range(len(cardinalities)), statistics.n_components
        single = np.concatenate([self.smoothing.log_conditional(statistics.single(j), j) for j in columns], axis=1)
        table = np.empty((single.shape[1], single.shape[1], n_components))
        kernels.averaged_tables(
            statistics.cells,
            statistics.offsets,
            np.asarray(cardinalities, np.int64) + 1,
            slot_offsets(cardinalities),
            np.ascontiguousarray(single.T),
            np.array([self.smoothing.pseudo_rows(j, 1)[1] for j in columns]),
            float(self.smoothing.alpha),
            self.smoothing.strength is not None,
            table,
        )
        return AveragedParameters(cardinalities, table.swapaxes(1, 2))

    def log_density(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        out = np.zeros((len(tile.values), parameters.log_probability.shape[1]))
        kernels.add_averaged(tile.values, parameters.starts, parameters.by_pair, out)
        return out

    def log_factors(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d): the chain rule in the order of the columns.

        Missing columns are summed out of the condition, and their own factor is 0.
        """
        codes = tile.values
        factors = np.empty((len(codes), parameters.log_probability.shape[1], codes.shape[1]))
        kernels.chain_averaged(codes, parameters.starts, parameters.by_pair, factors)
        return factors

    most_parents: ClassVar[int] = 1

    def counted_families(self, parameters: AveragedParameters, statistics: JointCounts) -> Iterator[Family]:
        """Return the counts of each column alone, and with each other column as its parent.

        If these tables have more than 2¹⁷ cells, only every second, third, … column is a parent.
        """
        columns, components = range(len(parameters.cardinalities)), range(statistics.n_components)
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
        starts, n_components = slot_offsets(statistics.cardinalities), statistics.n_components
        columns = range(len(statistics.cardinalities))
        singles, pairs = np.zeros((starts[-1], n_components)), np.zeros((starts[-1], starts[-1], n_components))
        for j in columns:
            lines = slice(starts[j], starts[j + 1])
            singles[lines] = _with_totals(statistics.single(j)).T
            for i in columns:
                if i != j:
                    pairs[starts[i] : starts[i + 1], lines] = _with_totals(statistics.pair(i, j)).transpose(1, 2, 0)

        def log_density(smoothing: BackOff) -> Array:
            pseudo_rows = np.array([smoothing.pseudo_rows(j, 1) for j in columns]).reshape(-1, 2)
            out = np.zeros((len(tile.values), n_components))
            kernels.averaged_left_out(
                tile.values,
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
        d = len(parameters.cardinalities)
        codes = np.zeros((len(component), d), np.uint32)
        parent = rng.integers(0, d, len(component))
        for i in range(d):
            rows = np.flatnonzero(parent == i)
            z = component[rows]
            codes[rows, i] = draw(parameters.single(i)[z, 1:], rng)
            for j in range(d):
                if j != i:
                    codes[rows, j] = draw(parameters.pair(i, j)[codes[rows, i], z, 1:], rng)
        return codes

    def n_parameters(self, parameters: AveragedParameters) -> int:
        """Return Z·(Σ_i (K_i − 1) + Σ_{i≠j} K_i·(K_j − 1)): the parameters of all d trees."""
        cardinalities = np.array(parameters.cardinalities)
        free = np.maximum(cardinalities - 1, 0)
        pairs = np.outer(cardinalities, free).sum() - (cardinalities * free).sum()
        return int(parameters.log_probability.shape[1] * (free.sum() + pairs))


def _with_totals(counts: Array) -> Array:
    """Return weights (Z, …, K + 1) with the sum over the present codes of the child in place of code 0."""
    totals = counts.copy()
    totals[..., 0] = counts[..., 1:].sum(axis=-1)
    return totals
