"""Weighted counts of categories."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_equal, require_kind
from posteriori.statistics.axes import Axes, check_axes
from posteriori.statistics.differences import exceeds
from posteriori.statistics.sums import Sums, gather
from posteriori.tables.batch import Assignment, Codes, Mixed
from posteriori.tables.columns import Column
from posteriori.typing import Array


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


class Presence:
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
