"""Conditional probability tables of families (a column and its parents), and sums over missing parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np

from posteriori import kernels
from posteriori.densities.conditional import ROUNDING, BackOff, with_sums
from posteriori.support.checks import check_equal, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import Column

Parents = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CountsOfFamilies:
    """Counts of families side by side, for leave-one-out tables."""

    families: kernels.Families  # the layout, as in `FamilyTables`
    # (slots, Z): weights. Code 0 of a parent holds the sum over all its codes, code 0 of the child the sum over its
    # present cells.
    counts: Array

    @classmethod
    def of(cls, parents: Parents, tables: list[Array], order: tuple[int, ...] | None = None) -> CountsOfFamilies:
        """Return the counts from one table of weights per column, (Z, K_1 + 1, …, K + 1); see `FamilyTables.of`."""
        summed = []
        for table in tables:
            seen = with_sums(table[..., 1:])
            summed.append(np.concatenate([seen.sum(axis=-1, keepdims=True), seen], axis=-1))
        side_by_side = FamilyTables.of(parents, summed, order)
        return cls(side_by_side.families, side_by_side.log_probability)

    def left_out(
        self, smoothing: BackOff, tile: Codes, assignment: Assignment, components: range | None = None
    ) -> Array:
        """Return log p(x_j | parents, z) in nats, (n, Z, d), of each row under the tables without it.

        A missing parent is omitted from the condition.
        """
        components = range(self.counts.shape[1]) if components is None else components
        out = np.empty((len(tile.values), len(components), len(self.families.cardinalities)))
        kernels.families_left_out(
            tile.values,
            assignment.component,
            assignment.weight,
            self.families,
            self._smoothed(smoothing),
            components.start,
            out,
        )
        return out

    def sums_left_out(
        self, smoothing: BackOff, tile: Codes, assignment: Assignment, rows: Array, upto: Array, most_cells: int
    ) -> Array:
        """Return the sums of `FamilyTables.sum_out`, (e, Z), under the tables without the row."""
        summed = np.zeros((len(rows), self.counts.shape[1]))
        kernels.sum_out_left_out(
            tile.values,
            assignment.component,
            assignment.weight,
            rows,
            upto,
            self.families,
            self._smoothed(smoothing),
            max(1, most_cells // self.counts.shape[1]),
            summed,
        )
        return summed

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
        """Write the tables of a tree without one row of codes (d,) into table, at the positions start."""
        kernels.tree_left_out(
            row,
            int(given.component[0]),
            float(given.weight[0]),
            parents,
            self.families.cardinalities + 1,
            start[components.start : components.stop],
            self.families.offsets,
            *self._smoothed(smoothing),
            components.start,
            table,
        )

    def _smoothed(self, smoothing: BackOff) -> kernels.SmoothedCounts:
        starts = self.families.starts
        most = int(np.diff(starts).max(initial=1)) - 1
        pseudo_rows = np.array([smoothing.pseudo_rows(j, most) for j in range(len(starts) - 1)]).reshape(-1, 1 + most)
        stepwise = smoothing.strength is not None
        return kernels.SmoothedCounts(self.counts, self.pooled, pseudo_rows, float(smoothing.alpha), stepwise)

    @cached_property
    def pooled(self) -> Array:
        """The counts summed over components, (slots,)."""
        return np.asarray(self.counts.sum(axis=1))


@dataclass(frozen=True)
class FamilyTables:
    """Tables p(x_j | parents, z) side by side, for components that share the parents."""

    parents: tuple[tuple[int, ...], ...]  # the parents of each column, the most important first
    cardinalities: tuple[int, ...]  # K of each column
    order: tuple[int, ...]  # the columns, parents before their children: that of the factors of the chain rule
    offsets: Array  # (d,): the first slot of the table of each column
    # (slots, Z): in nats. Each table is in C order, with the codes of the parents before that of the child. Code 0
    # (missing) of a parent holds the lower-order conditional given the other parents; code 0 of the child holds 0.
    log_probability: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        check_equal("the number of categories", self.cardinalities, tuple(column.cardinality for column in columns))
        check_parents(self.parents, len(columns), self.order)
        sizes = [math.prod(self.cardinalities[i] + 1 for i in (*parents, j)) for j, parents in enumerate(self.parents)]
        shape = (sum(sizes), n_components)
        check_numbers("the log-probabilities", self.log_probability, shape, -np.inf, ROUNDING)
        check_equal("the offsets of the tables", self.offsets, np.cumsum([0, *sizes], dtype=np.int64)[:-1])

    @classmethod
    def of(cls, parents: Parents, tables: list[Array], order: tuple[int, ...] | None = None) -> FamilyTables:
        """Return the tables (Z, K_1 + 1, …, K + 1) of each column side by side.

        By default the order is that of the longest paths to a root.
        """
        order = parents_before_children(parents) if order is None else order
        flat = [table.reshape(len(table), -1) for table in tables]
        offsets = np.cumsum([0, *[table.shape[1] for table in flat]])
        cardinalities = tuple([table.shape[-1] - 1 for table in tables])
        return cls(parents, cardinalities, order, offsets[:-1], np.ascontiguousarray(np.concatenate(flat, axis=1).T))

    @classmethod
    def of_joint(cls, log_joint: Array) -> FamilyTables:
        """Return p(x_j | x_1 … x_{j−1}, z) from log p(x | z), (Z, K_1 + 1, …, K_d + 1), whose code 0 is the sum."""
        tables, d = [], log_joint.ndim - 1
        for j in range(1, d + 1):
            shown: tuple[slice | int, ...] = (*[slice(None)] * (j + 1), *[0] * (d - j))
            upto = log_joint[shown]
            table, before = upto.copy(), upto[..., :1]
            np.subtract(upto, before, out=table, where=before > -np.inf)
            table[..., 0] = 0.0
            tables.append(table)
        return cls.of(tuple(tuple(range(j)) for j in range(d)), tables)

    def table(self, j: int) -> Array:
        """Return log p(x_j | parents, z), (Z, K_1 + 1, …, K_j + 1)."""
        widths = [self.cardinalities[i] + 1 for i in (*self.parents[j], j)]
        size = int(np.prod(widths))
        return self.log_probability[self.offsets[j] : self.offsets[j] + size].T.reshape(-1, *widths)

    def log_density(self, codes: Array, most_cells: int) -> Array:
        """Return log p(x | z) in nats, (n, Z), missing cells summed out.

        Parameters
        ----------
        codes : ndarray (n, d)
        most_cells : int
            The limit on the cells of all tables of a row, over all components. Columns are dropped beyond it (see the
            kernel).
        """
        out = np.zeros((len(codes), self.log_probability.shape[1]))
        kernels.add_families(codes, self.families, self.log_probability, out)
        rows = self.rows_to_sum(codes)
        if len(rows):
            known, summed = np.zeros_like(out[rows]), np.zeros_like(out[rows])
            self._sum_out(codes, rows, np.full(len(rows), codes.shape[1]), most_cells, known, summed)
            out[rows] = known + summed
        return out

    def tree_log_density(self, codes: Array) -> tuple[Array, Array]:
        """Return log p(x | z) in nats, (n, Z), of columns with at most one parent, and the rows that need logarithms.

        In these rows products of probabilities are too small.
        """
        out = np.zeros((len(codes), self.log_probability.shape[1]))
        kernels.add_families(codes, self.families, self.log_probability, out)
        rows = self.rows_to_sum(codes)
        is_lost = np.zeros(len(rows), np.bool_)
        if len(rows):
            kernels.sum_out_tree(codes, rows, self.families, self.log_probability, self.probability, out, is_lost)
        return out, rows[is_lost]

    def log_factors(self, codes: Array) -> Array:
        """Return log p(x_j | parents, z) in nats, (n, Z, d); a missing parent is omitted from the condition."""
        families = self.families
        cells = codes[:, families.members].astype(np.int64) * families.strides
        slots = np.add.reduceat(cells, families.starts[:-1], axis=1) + families.offsets
        return np.asarray(self.log_probability[slots].swapaxes(1, 2))

    def rows_to_sum(self, codes: Array) -> Array:
        """Return the indices of the rows with a missing parent, whose values must be summed over."""
        return np.flatnonzero(kernels.rows_lacking(codes, self.inner)) if len(self.inner) else np.empty(0, np.int64)

    def sum_out(self, codes: Array, rows: Array, upto: Array, most_cells: int) -> Array:
        """Return the part of log p of some rows that involves sums over missing parents, (e, Z).

        Entry e uses the first upto[e] columns in the order of `families`.
        """
        summed = np.zeros((len(rows), self.log_probability.shape[1]))
        self._sum_out(codes, rows, upto, most_cells, summed[:0], summed)
        return summed

    def _sum_out(self, codes: Array, rows: Array, upto: Array, most_cells: int, known: Array, summed: Array) -> None:
        kernels.sum_out_families(
            codes,
            rows,
            upto,
            self.families,
            self.log_probability,
            self.probability,
            self._most_each(most_cells),
            known,
            summed,
        )

    def dropped(self, codes: Array, most_cells: int) -> Array:
        """Return which columns `sum_out` drops in some row, (d,), because its tables would be too large."""
        bits = self._bits
        # The tables that eliminate columns of b bits together have fewer than 2^(b + 1) cells in all.
        most_each = self._most_each(most_cells)
        small = math.log2(most_each) - 1.0
        if bits.sum() <= small:
            return np.zeros(codes.shape[1], np.bool_)
        rows = self.rows_to_sum(codes)
        rows = rows[(codes[np.ix_(rows, self.inner)] == 0) @ bits > small]
        return np.asarray(kernels.columns_dropped(codes, rows, self.families, most_each))

    @cached_property
    def probability(self) -> Array:
        """p(x_j | parents, z), as `log_probability`; NaN where it is too small for products."""
        probability = np.exp(self.log_probability)
        probability[(probability < kernels.LEAST) & (self.log_probability > -np.inf)] = np.nan
        return np.asarray(probability)

    @cached_property
    def _bits(self) -> Array:
        """The binary logarithm of the number of categories of each inner column."""
        return np.asarray(np.log2(np.maximum(self.families.cardinalities[self.inner], 2)))

    def _most_each(self, most_cells: int) -> int:
        """Return the number of cells that the tables of a row may have per component."""
        return max(1, most_cells // int(self.log_probability.shape[1]))

    @cached_property
    def families(self) -> kernels.Families:
        """The layout for the kernels."""
        members: list[int] = []
        strides: list[int] = []
        starts = [0]
        for j, parents in enumerate(self.parents):
            stride = 1
            of_family = []
            for i in (j, *reversed(parents)):
                of_family.append(stride)
                stride *= self.cardinalities[i] + 1
            members += [*parents, j]
            strides += reversed(of_family)
            starts.append(len(members))
        return kernels.Families(
            np.array(self.order, np.int64),
            np.array(members, np.int64),
            np.array(starts, np.int64),
            np.array(strides, np.int64),
            np.asarray(self.offsets, np.int64),
            np.array(self.cardinalities, np.int64),
        )

    @cached_property
    def inner(self) -> Array:
        """The columns that are parents of other columns."""
        return np.array(sorted({parent for of_j in self.parents for parent in of_j}), np.int64)

    @property
    def n_parameters(self) -> int:
        """Z·Σ_j (K_j − 1)·Π_{i in parents} K_i."""
        n_components = int(self.log_probability.shape[1])
        total = 0
        for j, parents in enumerate(self.parents):
            configurations = int(np.prod([self.cardinalities[i] for i in parents]))
            total += max(self.cardinalities[j] - 1, 0) * configurations
        return n_components * total


def parents_before_children(parents: Parents) -> tuple[int, ...]:
    """Return the columns in a topological order: by the length of the longest path to a root."""
    depth = [0] * len(parents)
    for j in TopologicalSorter(dict(enumerate(parents))).static_order():
        depth[j] = max([depth[parent] + 1 for parent in parents[j]], default=0)
    return tuple(sorted(range(len(parents)), key=depth.__getitem__))


def check_parents(parents: Parents, n_columns: int, order: tuple[int, ...]) -> None:
    """Raise ValueError unless each column has distinct parents, all before it in the order."""
    require(len(parents) == n_columns, f"there are parents of {len(parents)} columns, and {n_columns} columns")
    require(sorted(order) == list(range(n_columns)), f"the order of columns does not hold each of {n_columns} once")
    place = {j: at for at, j in enumerate(order)}
    for j, of_j in enumerate(parents):
        require(len(set(of_j)) == len(of_j), f"a parent of column {j} occurs twice")
        require(not of_j or (min(of_j) >= 0 and max(of_j) < n_columns), f"a parent of column {j} is no column")
        require(all(place[parent] < place[j] for parent in of_j), f"a parent of column {j} is not before it")


def check_rank(rank: tuple[int, ...], n_columns: int) -> None:
    """Raise ValueError unless the places of columns by name are absent, or hold each place once."""
    require(not rank or sorted(rank) == list(range(n_columns)), f"the places do not hold each of {n_columns} once")
