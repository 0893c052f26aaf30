"""Distinct rows with their total weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori import kernels
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.columns import smallest_code_type
from posteriori.typing import Array


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of codes with their weights: a table of categories without the order of its rows.

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column; code 0 is a missing cell.
    parts : tuple of pairs of ndarray
        Codes (m, d) and weights (m,), batch by batch; the rows of one part are distinct.
    """

    cardinalities: tuple[int, ...]
    parts: tuple[tuple[Array, Array], ...] = ()

    @classmethod
    def of(cls, tile: Codes, assignment: Assignment) -> DistinctRows:
        """Return the distinct rows of a tile; rows of weight 0 are omitted."""
        counted = assignment.weight > 0
        codes, weight = tile.values, assignment.weight
        if not counted.all():
            codes, weight = codes[counted], weight[counted]
        return cls(tile.cardinalities, (_merged(codes, weight),) if len(codes) else ())

    def __add__(self, other: DistinctRows) -> DistinctRows:
        return DistinctRows(self.cardinalities, self.parts + other.parts)

    @cached_property
    def _whole(self) -> tuple[Array, Array]:
        if not self.parts:
            return np.empty((0, len(self.cardinalities)), np.uint8), np.empty(0)
        if len(self.parts) == 1:
            return self.parts[0]
        return _merged(np.concatenate([codes for codes, _ in self.parts]), np.concatenate([w for _, w in self.parts]))

    @property
    def codes(self) -> Codes:
        """The distinct rows, (m, d), in the order of their first occurrence."""
        return Codes(self._whole[0], self.cardinalities)

    @property
    def weight(self) -> Array:
        """Their weights, (m,)."""
        return self._whole[1]

    @property
    def assignment(self) -> Assignment:
        """The rows assigned to a single component."""
        return Assignment(np.zeros(len(self.weight), np.int32), self.weight, 1)

    def merged(self) -> DistinctRows:
        """Return the same rows in one part."""
        return DistinctRows(self.cardinalities, (self._whole,) if len(self.weight) else ())

    def reindexed(self, columns: Sequence[Sequence[int]]) -> DistinctRows:
        """Return the rows in other codes; columns lists the current index of each category of the result, or −1."""
        cardinalities = tuple(len(positions) for positions in columns)
        dtype = smallest_code_type(max(cardinalities, default=0))
        codes = np.empty(self._whole[0].shape, dtype)
        for j, positions in enumerate(columns):
            moved = np.zeros(self.cardinalities[j] + 1, dtype)
            for new, old in enumerate(positions, start=1):
                if old >= 0:
                    moved[old + 1] = new
            codes[:, j] = moved[self._whole[0][:, j]]
        return DistinctRows(cardinalities, ((codes, self.weight),) if len(codes) else ())


def _merged(codes: Array, weight: Array) -> tuple[Array, Array]:
    codes = np.require(codes, requirements=["C", "A", "W"])
    number, first = np.empty((2, len(codes)), np.int64)
    n_distinct = kernels.index_distinct_rows(codes, number, first)
    if n_distinct == len(codes):
        return codes, weight
    return codes[first[:n_distinct]], np.bincount(number, weight, n_distinct)
