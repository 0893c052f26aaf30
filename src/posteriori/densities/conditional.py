"""p(x | parents, z) of a category from counts, smoothed by backing off to fewer parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_equal, check_numbers, check_pseudo_count, require
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import Column
from posteriori.typing import Array

Parents = tuple[tuple[int, ...], ...]

ROUNDING = 1e-9  # by so much a log-probability may be above 0


@dataclass(frozen=True)
class BackOff:
    r"""Conditional tables that shrink towards what is known without the last parent, and without the component.

    .. math::
        p(x \mid a_1 \ldots a_t, z) = \frac{n_{a_1 \ldots a_t z x} + \tfrac{s}{2}\, p(x \mid a_1 \ldots a_{t-1}, z)
        + \tfrac{s}{2}\, p(x \mid a_1 \ldots a_t)}{n_{a_1 \ldots a_t z} + s}

    with, free of the component, and at the roots,

    .. math::
        p(x \mid a_1 \ldots a_t) = \frac{n_{a_1 \ldots a_t x} + s\, p(x \mid a_1 \ldots a_{t-1})}
        {n_{a_1 \ldots a_t} + s}, \qquad
        p(x \mid z) = \frac{n_{zx} + \alpha\, p(x)}{n_z + \alpha}, \qquad
        p(x) = \frac{n_x + \alpha}{n + K \alpha}

    Each is the posterior mean under a Dirichlet prior of pseudo-rows that are drawn from the tables before it. Half of
    them keep the parents and forget the component: a combination of parents that few rows show then says little of the
    component, whereas p(x | z) alone would bring back the naive factor, which counts evidence twice.

    Parameters
    ----------
    strength : float or None
        s in pseudo-rows, ≥ 0. None: each table by itself, with alpha pseudo-counts a category,
        p(x | a, z) = (n + alpha) / (n_a + K·alpha).
    alpha : float
        Where tables back off, the pseudo-count a category of p(x), and the pseudo-rows that draw p(x | z) to it.

    References
    ----------
    Friedman, Geiger & Goldszmidt, Bayesian network classifiers, Machine Learning 29 (1997), section 4.1 (smoothing by
    one step back). MacKay & Peto, A hierarchical Dirichlet language model, Natural Language Engineering 1 (1995).
    """

    strength: float | None = 10.0
    alpha: float = 1.0

    def check(self) -> None:
        """Raise ValueError if the strength or alpha is negative."""
        check_pseudo_count("strength", self.strength or 0.0)
        check_pseudo_count("alpha", self.alpha)

    def log_conditional(self, counts: Array) -> Array:
        """Return log p(x | parents, z) in nats, of the shape of the counts.

        Parameters
        ----------
        counts : ndarray (Z, K_1 + 1, …, K_m + 1, K + 1)
            Weights by the codes of the parents, the most important first, and of the child last; code 0 is missing.

        Returns
        -------
        ndarray
            Where a parent is missing (code 0): given the others alone. Where the child is missing: 0.
        """
        observed = _with_sums(counts[..., 1:])
        everyone = observed.sum(axis=0, keepdims=True)
        n_parents = observed.ndim - 2
        root: tuple[slice | int, ...] = (slice(None), *[0] * n_parents)
        probability, pooled = np.empty(observed.shape), np.empty(everyone.shape)
        pooled[root] = self._of_everyone(everyone[root])
        probability[root] = self._shrunk(observed[root], pooled[root], self.alpha)
        for t in range(1, n_parents + 1):
            before: tuple[slice | int, ...] = (slice(None),) * t
            rest = (0,) * (n_parents - t)
            given, lower = (*before, slice(1, None), *rest), (*before, 0, *rest)
            pooled[given] = self._shrunk(everyone[given], np.expand_dims(pooled[lower], t), self.strength)
            halfway = (np.expand_dims(probability[lower], t) + pooled[given]) / 2.0
            probability[given] = self._shrunk(observed[given], halfway, self.strength)
        result = np.zeros(counts.shape)
        with np.errstate(divide="ignore"):
            np.log(probability, out=result[..., 1:])
        return result

    def log_given_parent(self, counts: Array, log_single: Array, starts: Array) -> Array:
        """Return log p(x_j | a, z) in nats of many columns side by side, given one parent, (Z, K + 1, slots).

        Parameters
        ----------
        counts : ndarray (Z, K + 1, slots)
            By the code of the parent and, side by side, those of the columns; code 0 is missing.
        log_single : ndarray (Z, slots)
            log p(x_j | z), 0 where x_j is missing.
        starts : ndarray (d,)
            Where the slots of each column start.
        """
        widths = np.diff(np.append(starts, counts.shape[2]))
        observed = counts.copy()
        observed[:, :, starts] = 0.0
        single = np.exp(log_single)[:, np.newaxis]
        single[:, :, starts] = 0.0

        def summed(weights: Array) -> Array:
            return np.repeat(np.add.reduceat(weights, starts, axis=-1), widths, axis=-1)

        if self.strength is None:
            added: Array | float = self.alpha
            in_all: Array | float = np.repeat(float(self.alpha) * (widths - 1), widths)
        else:
            everyone = observed.sum(axis=0)
            alone = everyone.sum(axis=0) + self.alpha
            alone[starts] = 0.0
            alone = _ratio(alone, summed(alone), 0.0)
            pooled = _ratio(everyone + self.strength * alone, summed(everyone) + self.strength, alone)
            single = (single + pooled) / 2.0
            added, in_all = self.strength * single, self.strength
        with np.errstate(divide="ignore"):
            result = np.log(_ratio(observed + added, summed(observed) + in_all, single))
        result[:, 0] = log_single
        result[:, :, starts] = 0.0
        return result

    def _of_everyone(self, counts: Array) -> Array:
        """Return p(x), (1, K), from counts (1, K)."""
        return _shares(counts + self.alpha, np.full(counts.shape, 1.0 / max(counts.shape[1], 1)))

    def _shrunk(self, counts: Array, lower: Array, pseudo_rows: float | None) -> Array:
        """Return the posterior mean under pseudo-rows of a lower table, or without strength under pseudo-counts."""
        added = self.alpha if self.strength is None or pseudo_rows is None else pseudo_rows * lower
        return _shares(counts + added, lower)


@dataclass(frozen=True)
class CountsOfFamilies:
    """What each column was seen with, side by side, to look a row up in what the others leave of it.

    Attributes
    ----------
    layout : tuple of ndarray
        As of `FamilyTables`, with the offsets last.
    cardinalities : ndarray (d,)
    counts : ndarray (slots, Z)
        Weights: where a parent's code is 0 those of all its codes, and where the child's is of all its present cells.
    """

    layout: tuple[Array, Array, Array, Array]
    cardinalities: Array
    counts: Array

    @classmethod
    def of(cls, parents: Parents, tables: list[Array]) -> CountsOfFamilies:
        """Return the counts from the weights of codes, (Z, K_1 + 1, …, K + 1) of each column."""
        summed = []
        for table in tables:
            seen = _with_sums(table[..., 1:])
            summed.append(np.concatenate([seen.sum(axis=-1, keepdims=True), seen], axis=-1))
        side_by_side = FamilyTables.of(parents, summed)
        layout = (*side_by_side.layout, side_by_side.offsets)
        return cls(layout, np.array(side_by_side.cardinalities), side_by_side.log_probability)

    def left_out(
        self, smoothing: BackOff, tile: Codes, assignment: Assignment, components: range | None = None
    ) -> Array:
        """Return log p(x_j | parents, z) in nats, (n, Z, d), of each row by the tables without it; for some z."""
        components = range(self.counts.shape[1]) if components is None else components
        out = np.empty((len(tile.values), len(components), len(self.cardinalities)))
        kernels.families_left_out(
            tile.values,
            assignment.component,
            assignment.weight,
            self.layout[0],
            self.layout[1],
            self.layout[2],
            self.layout[3],
            self.cardinalities,
            self.counts,
            self.pooled,
            0.0 if smoothing.strength is None else float(smoothing.strength),
            float(smoothing.alpha),
            smoothing.strength is not None,
            components.start,
            out,
        )
        return out

    def write_tree(
        self,
        smoothing: BackOff,
        row: Array,
        given: Assignment,
        parents: Array,
        start: Array,
        components: range,
        table: Array,
    ) -> None:
        """Write the tables of a tree without one row, codes (d,), to where start says, for some components."""
        kernels.tree_left_out(
            row,
            int(given.component[0]),
            float(given.weight[0]),
            parents,
            self.cardinalities + 1,
            start[components.start : components.stop],
            self.layout[3],
            self.counts,
            self.pooled,
            0.0 if smoothing.strength is None else float(smoothing.strength),
            float(smoothing.alpha),
            smoothing.strength is not None,
            components.start,
            table,
        )

    @cached_property
    def pooled(self) -> Array:
        """The counts of all components together, (slots,)."""
        return self.counts.sum(axis=1)


@dataclass(frozen=True)
class FamilyTables:
    """Tables p(x_j | parents, z) side by side, for components that share the parents.

    Attributes
    ----------
    parents : tuple of tuple of int
        Of each column, the most important first.
    cardinalities : tuple of int
        K of each column.
    offsets : ndarray (d,)
        Where the table of each column starts.
    log_probability : ndarray (slots, Z)
        In nats; each table in C order, parents' codes before the child's, code 0 missing.
    """

    parents: tuple[tuple[int, ...], ...]
    cardinalities: tuple[int, ...]
    offsets: Array
    log_probability: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters are of these columns and so many components."""
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in columns))
        check_parents(self.parents, len(columns))
        sizes = [math.prod(self.cardinalities[i] + 1 for i in (*parents, j)) for j, parents in enumerate(self.parents)]
        shape = (sum(sizes), n_components)
        check_numbers("the log-probabilities", self.log_probability, shape, -np.inf, ROUNDING)
        check_equal("where tables begin", self.offsets, np.cumsum([0, *sizes], dtype=np.int64)[:-1])

    @classmethod
    def of(cls, parents: tuple[tuple[int, ...], ...], tables: list[Array]) -> FamilyTables:
        """Return the tables (Z, K_1 + 1, …, K + 1) of each column side by side."""
        offsets = np.cumsum([0, *(table[0].size for table in tables)])
        slots = np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)
        cardinalities = tuple(table.shape[-1] - 1 for table in tables)
        return cls(parents, cardinalities, offsets[:-1], np.ascontiguousarray(slots.T))

    def table(self, j: int) -> Array:
        """Return log p(x_j | parents, z), (Z, K_1 + 1, …, K_j + 1)."""
        widths = [self.cardinalities[i] + 1 for i in (*self.parents[j], j)]
        size = int(np.prod(widths))
        return self.log_probability[self.offsets[j] : self.offsets[j] + size].T.reshape(-1, *widths)

    @cached_property
    def layout(self) -> tuple[Array, Array, Array]:
        """The columns that each family reads, where each family starts among them, and the stride of each."""
        members, strides, starts = [], [], [0]
        for j, parents in enumerate(self.parents):
            widths = [self.cardinalities[i] + 1 for i in (*parents, j)]
            members += [*parents, j]
            strides += [int(np.prod(widths[place + 1 :])) for place in range(len(widths))]
            starts.append(len(members))
        return np.array(members), np.array(starts), np.array(strides)

    @property
    def n_parameters(self) -> int:
        """Z·Σ_j (K_j − 1)·Π_{i in parents} K_i."""
        n_components = self.log_probability.shape[1]
        total = 0
        for j, parents in enumerate(self.parents):
            configurations = int(np.prod([self.cardinalities[i] for i in parents]))
            total += max(self.cardinalities[j] - 1, 0) * configurations
        return n_components * total


def check_parents(parents: Parents, n_columns: int) -> None:
    """Raise ValueError unless the parents of so many columns are other columns, each once, and there is no cycle."""
    require(len(parents) == n_columns, f"there are parents of {len(parents)} columns, and {n_columns} columns")
    for j, of_j in enumerate(parents):
        require(len(set(of_j)) == len(of_j), f"a parent of column {j} occurs twice")
        require(not of_j or (min(of_j) >= 0 and max(of_j) < n_columns), f"a parent of column {j} is no column")
    TopologicalSorter(dict(enumerate(parents))).prepare()  # raises CycleError, a ValueError


def draw(log_probability: Array, rng: np.random.Generator) -> Array:
    """Draw a code from 1 for each row of log-probabilities (n, K); 0 where K is 0."""
    n, k = log_probability.shape
    if not k:
        return np.zeros(n, np.uint16)
    cumulative = np.cumsum(np.exp(log_probability), axis=1)
    u = rng.random(n) * cumulative[:, -1]
    place = (cumulative <= u[:, np.newaxis]).sum(axis=1)
    return (np.minimum(place, k - 1) + 1).astype(np.uint16)


def _with_sums(counts: Array) -> Array:
    """Return the counts with slot 0 of each parent holding the sum over all its codes, the missing one included."""
    summed = counts.copy()
    for axis in range(1, counts.ndim - 1):
        first = (slice(None),) * axis + (0,)
        summed[first] = summed.sum(axis=axis)
    return summed


def _shares(counts: Array, otherwise: Array) -> Array:
    """Return the counts as shares of their sum along the last axis; otherwise where there are none."""
    return _ratio(counts, counts.sum(axis=-1, keepdims=True), otherwise)


def _ratio(part: Array, whole: Array, otherwise: Array | float) -> Array:
    """Return part / whole; otherwise where there is nothing."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), otherwise)
