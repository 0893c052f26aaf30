"""Weighted counts of categories and of their combinations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori import kernels
from posteriori.statistics.moments import less
from posteriori.statistics.sums import Axes, Sums, check_axes, exceeds, gather
from posteriori.support.checks import check_equal, require, require_kind
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Mixed
from posteriori.tables.schema import Column


def slot_offsets(cardinalities: Sequence[int]) -> Array:
    """Return the first slot of each column in a flat table: K + 1 slots per column, the first for missing cells."""
    return np.concatenate([[0], np.cumsum(np.asarray(cardinalities, np.int64) + 1)]).astype(np.int64)


@dataclass(frozen=True)
class Counts(Sums):
    """Per component and column: the weight of each category, and of the missing cells.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column.
    table : ndarray (Z, Σ (K + 1))
        The columns side by side. In each, slot 0 counts missing cells and slot k + 1 category k.
    """

    cardinalities: tuple[int, ...]
    table: Annotated[Array, Axes("the table of counts", "z", "slot", low=0.0)]

    def check_cardinalities(self, cardinalities: tuple[int, ...], n_components: int) -> None:
        """Raise ValueError unless the counts have these numbers of categories per column."""
        check_equal("the number of categories of the counts", self.cardinalities, cardinalities)
        check_axes(self, {"z": n_components, "slot": int(self.offsets[-1])})

    @cached_property
    def offsets(self) -> Array:
        """The first slot of each column, and the number of slots, (d + 1,)."""
        return slot_offsets(self.cardinalities)

    @classmethod
    def of(cls, tile: Codes, assignment: Assignment) -> Counts:
        """Return the counts of the rows of a tile. O(n·d), one table increment per cell."""
        offsets = slot_offsets(tile.cardinalities)
        table = np.zeros((assignment.n_components, offsets[-1]))
        kernels.add_counts(tile.values, assignment.component, assignment.weight, offsets, table)
        return cls(tile.cardinalities, table)

    @classmethod
    def from_responsibilities(cls, tile: Codes, responsibilities: Array) -> Counts:
        """Return the counts of rows weighted by their responsibilities, (n, Z). O(n·Z·d)."""
        offsets = slot_offsets(tile.cardinalities)
        table = np.zeros((offsets[-1], responsibilities.shape[1]))
        kernels.add_weighted_counts(tile.values, responsibilities, offsets, table)
        return cls(tile.cardinalities, np.ascontiguousarray(table.T))

    def would_go_negative(self, other: Counts) -> Array:
        """Return where other holds more than these counts, (Z, d)."""
        over = exceeds(other.table, self.table).astype(np.int64)
        return np.asarray(np.add.reduceat(over, self.offsets[:-1], axis=1) > 0)

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because codes are finite."""
        return np.ones(len(self.cardinalities), np.bool_)

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        starts = self.offsets[:-1]
        return np.add.reduceat(self.table, starts, axis=1) - self.table[:, starts]

    def column(self, j: int) -> Array:
        """Return the weight of each category of column j: (Z, K)."""
        return self.table[:, self.offsets[j] + 1 : self.offsets[j + 1]]

    def missing(self, j: int) -> Array:
        """Return the weight of the missing cells of column j: (Z,)."""
        return self.table[:, self.offsets[j]]

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Counts:
        """Return the counts of other components or categories, by their indices here, −1 for a new one."""
        table = gather(self.table, components)
        if columns is None:
            return Counts(self.cardinalities, table)
        sizes = tuple(len(positions) for positions in columns)
        offsets = slot_offsets(sizes)
        wanted = np.full(offsets[-1], -1, np.int64)  # in a column's own numbers of slots; −1 for a new category
        wanted[offsets[:-1]] = 0
        is_category = np.ones(offsets[-1], np.bool_)
        is_category[offsets[:-1]] = False
        wanted[is_category] = np.fromiter(itertools.chain.from_iterable(columns), np.int64, sum(sizes))
        wanted[is_category & (wanted >= 0)] += 1
        slots = np.where(wanted >= 0, wanted + np.repeat(self.offsets[:-1], np.diff(offsets)), -1)
        return Counts(sizes, gather(table, slots, axis=1))

    def placed(self, positions: Sequence[int], weight: Array) -> Counts:
        """Return the counts of other columns, by their indices here, −1 for one without categories or present cells.

        weight (Z,) is that of all rows of each component.
        """
        parts = [
            self.table[:, self.offsets[j] : self.offsets[j + 1]] if j >= 0 else weight[:, np.newaxis] for j in positions
        ]
        cardinalities = tuple(self.cardinalities[j] if j >= 0 else 0 for j in positions)
        return Counts(cardinalities, np.concatenate([np.empty((len(weight), 0)), *parts], axis=1))


class PresenceCounts:
    """The statistics factory that counts present and missing cells: `Counts` with one category, for present cells."""

    @staticmethod
    def check_against(statistics: Counts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, Counts)
        statistics.check_cardinalities((1,) * len(columns), n_components)

    @staticmethod
    def of(tile: Mixed, assignment: Assignment) -> Counts:
        """Return the weight of the missing and of the present cells of each component and column. O(n·d)."""
        present = tile.present
        return Counts.of(Codes(present.astype(np.uint8), (1,) * present.shape[1]), assignment)


MAX_CELLS = 1 << 28  # 2 GB: larger tables are more likely a mistake than intended

Scope = tuple[int, ...]


@dataclass(frozen=True)
class JointCounts(Sums):
    """Per component and scope (a set of columns): the weight of each combination of their codes, 0 for missing.

    The counts of all pairs contain those of the single columns, and so are sufficient for naive Bayes too.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column.
    scopes : tuple of tuple of int
        The columns that are counted together, by their positions.
    n_components : int
    cells : ndarray (Σ_s Z·Π_{j in s} (K_j + 1))
        The tables of the scopes, one after the other; see `table`.
    """

    cardinalities: tuple[int, ...]
    scopes: tuple[Scope, ...]
    n_components: int
    cells: Annotated[Array, Axes("the table of counts", "cell", low=0.0)]

    @classmethod
    def empty(cls, cardinalities: tuple[int, ...], scopes: tuple[Scope, ...], n_components: int) -> JointCounts:
        """Return the counts of no row."""
        return cls(cardinalities, scopes, n_components, np.zeros(_layout(cardinalities, scopes, n_components)[2][-1]))

    def check_scopes(self, scopes: tuple[Scope, ...], columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless these are the counts of these scopes, columns and number of components."""
        cardinalities = tuple(column.cardinality for column in columns)
        check_equal("the number of categories of the counts", self.cardinalities, cardinalities)
        check_equal("the columns that are counted together", self.scopes, scopes)
        check_equal("the number of components of the counts", self.n_components, n_components)
        positions = set(range(len(columns)))
        require(all(scope and positions.issuperset(scope) for scope in scopes), "there is no such column to count")
        check_axes(self, {"cell": int(self.offsets[-1])})

    @cached_property
    def positions(self) -> dict[Scope, int]:
        """The position of each scope."""
        return {scope: number for number, scope in enumerate(self.scopes)}

    @cached_property
    def offsets(self) -> Array:
        """The start of the table of each scope, and the end of the last table."""
        return _layout(self.cardinalities, self.scopes, self.n_components)[2]

    @cached_property
    def _widths(self) -> list[int]:
        """The number of codes of each column."""
        return [k + 1 for k in self.cardinalities]

    def table(self, scope: Scope) -> Array:
        """Return the weights of a scope, (Z, K_a + 1, K_b + 1, …), a view; code 0 is a missing cell."""
        number = self.positions[scope]
        shape = map(self._widths.__getitem__, scope)
        return self.cells[self.offsets[number] : self.offsets[number + 1]].reshape(self.n_components, *shape)

    def pair(self, i: int, j: int) -> Array:
        """Return the weights of two columns, (Z, K_i + 1, K_j + 1), if all pairs were counted."""
        return self.table((i, j)) if i < j else self.table((j, i)).swapaxes(1, 2)

    def single(self, j: int) -> Array:
        """Return the weights of one column, (Z, K_j + 1)."""
        singles = self.singles
        return singles.table[:, singles.offsets[j] : singles.offsets[j + 1]]

    def column(self, j: int) -> Array:
        """Return the weight of each category of column j: (Z, K)."""
        return self.singles.column(j)

    @cached_property
    def singles(self) -> Counts:
        """The counts of the single columns, each by summing the other columns of a scope out."""
        scope_of = {j: scope for scope in reversed(self.scopes) for j in scope}
        parts = [np.empty((self.n_components, 0))]
        for j in range(len(self.cardinalities)):
            scope = scope_of[j]
            others = tuple([axis for axis, member in enumerate(scope, start=1) if member != j])
            parts.append(self.table(scope).sum(axis=others))
        return Counts(self.cardinalities, np.concatenate(parts, axis=1))

    def would_go_negative(self, other: JointCounts) -> Array:
        """Return where other holds more than these counts, (Z, d): single columns, or else the first such scope."""
        alone = self.singles.would_go_negative(other.singles)
        if alone.any():
            return alone
        for scope in self.scopes:
            over = exceeds(other.table(scope), self.table(scope)).reshape(self.n_components, -1).any(axis=1)
            if over.any():
                alone[np.ix_(over, np.array(scope))] = True
                break
        return alone

    def without(self, tile: Codes, assignment: Assignment) -> JointCounts:
        """Return the counts without some of their rows."""
        gone = CountTogether(self.scopes).of(tile, assignment)
        return replace(self, cells=less(self.cells, gone.cells))

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because codes are finite."""
        return np.ones(len(self.cardinalities), np.bool_)

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self.singles.observed()

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> JointCounts:
        """Return the counts of other components or categories, by their indices here, −1 for a new one."""
        if columns is None:
            columns = [range(k) for k in self.cardinalities]
        codes = [[0, *(position + 1 if position >= 0 else -1 for position in positions)] for positions in columns]
        cardinalities = tuple(len(positions) for positions in columns)
        members, starts, offsets = _layout(self.cardinalities, self.scopes, self.n_components)
        new_offsets = _layout(cardinalities, self.scopes, len(components))[2]
        cells = np.zeros(new_offsets[-1])
        kernels.gather_joint_counts(
            self.cells,
            offsets,
            np.asarray(self.cardinalities, np.int64) + 1,
            members,
            starts,
            np.asarray(components, np.int64),
            np.fromiter(itertools.chain.from_iterable(codes), np.int64),
            np.cumsum([0, *map(len, codes)]),
            new_offsets,
            cells,
        )
        return JointCounts(cardinalities, self.scopes, len(components), cells)

    def narrowed(self, scopes: tuple[Scope, ...] | None) -> JointCounts:
        """Return the counts of some of the scopes; None keeps all."""
        if scopes is None or scopes == self.scopes:
            return self
        cells = np.concatenate([np.ravel(self.table(scope)) for scope in scopes])
        return JointCounts(self.cardinalities, scopes, self.n_components, cells)

    def has_missing(self) -> bool:
        """Whether any row had a missing cell."""
        return bool(self.singles.table[:, self.singles.offsets[:-1]].any())


@dataclass(frozen=True)
class CountTogether:
    """The statistics factory that counts the combinations of codes of some scopes, or of all pairs of columns.

    Attributes
    ----------
    scopes : tuple of tuple of int, optional
        Default: all pairs. Scopes that differ only in their last column are counted faster if they are neighbours.
    """

    scopes: tuple[Scope, ...] | None = None

    def check_against(self, statistics: JointCounts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, JointCounts)
        scopes = all_pairs(len(columns)) if self.scopes is None else self.scopes
        statistics.check_scopes(scopes, columns, n_components)

    def of(self, tile: Codes, assignment: Assignment) -> JointCounts:
        """Return the counts of the rows of a tile.

        Cost: one table increment per row and scope; memory 8·Σ_s Z·Π_{j in s} (K_j + 1) bytes.

        Raises
        ------
        ValueError
            The tables would have more than MAX_CELLS cells.
        """
        cardinalities = tile.cardinalities
        scopes = all_pairs(len(cardinalities)) if self.scopes is None else self.scopes
        size = int(_layout(cardinalities, scopes, assignment.n_components)[2][-1])
        if size > MAX_CELLS:
            raise ValueError(
                f"the joint counts would take {size * 8 / 1e9:,.1f} GB, more than {MAX_CELLS * 8 / 1e9:.1f}; "
                "leave out columns, group rare categories, or use fewer bins or parents"
            )
        members, starts, offsets = _layout(cardinalities, scopes, assignment.n_components)
        cells = np.zeros(offsets[-1])
        widths = np.asarray(cardinalities, np.int64) + 1
        kernels.add_joint_counts(
            tile.values, assignment.component, assignment.weight, widths, members, starts, offsets, cells
        )
        return JointCounts(cardinalities, scopes, assignment.n_components, cells)


def all_pairs(d: int) -> tuple[Scope, ...]:
    """Return all pairs of d columns in lexicographic order; for one column, the scope of that column."""
    return ((0,),) if d == 1 else tuple(itertools.combinations(range(d), 2))


@functools.lru_cache(maxsize=64)
def _layout(cardinalities: tuple[int, ...], scopes: tuple[Scope, ...], n_components: int) -> tuple[Array, Array, Array]:
    """Return the concatenated columns of the scopes, where each scope starts among them, and where its table starts."""
    starts = np.cumsum([0, *map(len, scopes)])
    members = np.fromiter(itertools.chain.from_iterable(scopes), np.int64, starts[-1])
    widths = (np.asarray(cardinalities, np.int64) + 1)[members]
    # Floats do not wrap around, so that a size beyond any memory still exceeds MAX_CELLS.
    sizes = np.multiply.reduceat(widths.astype(np.float64), starts[:-1]) if len(scopes) else np.empty(0)
    offsets = np.concatenate([[0.0], np.cumsum(n_components * sizes)])
    return members, starts, np.minimum(offsets, 2.0**62).astype(np.int64)
