"""Moments of the distances of cells beyond the outermost cut points of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_equal
from posteriori.statistics.moments import Moments
from posteriori.statistics.sums import Sums
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
from posteriori.typing import Array


@dataclass(frozen=True)
class TailMoments(Sums):
    """Per component and binned column: the moments of the distances below the first cut and above the last.

    Attributes
    ----------
    cuts : tuple of tuple of float
        The cut points of each column.
    excess : Moments of (Z, 2·d)
        First, for each column, the moments of first cut − x where positive; then of x − last cut where not negative.
        For a column without cuts the first are the moments of x, and the second are empty.
    """

    cuts: tuple[tuple[float, ...], ...]
    excess: Moments

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        check_equal("the cut points of the sums", self.cuts, tuple(column.cuts for column in columns))
        self.excess.check_shape(n_components, 2 * len(columns))

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> TailMoments:
        """Return the sums of the rows of a tile. O(n·d), one read."""
        cuts, excess = _excess(tile)
        return cls(cuts, Moments.of(excess, assignment))

    @classmethod
    def from_responsibilities(cls, tile: Numbers, responsibilities: Array) -> TailMoments:
        """Return the sums of rows weighted by their responsibilities, (n, Z). O(n·Z·d)."""
        cuts, excess = _excess(tile)
        return cls(cuts, Moments.from_responsibilities(excess, responsibilities))

    def would_go_negative(self, other: TailMoments) -> Array:
        """Return where other holds more than these sums, (Z, d)."""
        below, above = np.split(self.excess.would_go_negative(other.excess), 2, axis=1)
        return np.asarray(below | above)

    def finite(self) -> Array:
        """Return which columns had no infinite cell, and none whose square overflows, (d,)."""
        return np.asarray(self.excess.finite().reshape(2, -1).all(axis=0))

    def observed(self) -> Array:
        """Return the weight of the cells in outer bins, (Z, d)."""
        below, above = np.split(self.excess.observed(), 2, axis=1)
        return np.asarray(below + above)

    def placed(self, positions: Sequence[int], cuts: tuple[tuple[float, ...], ...]) -> TailMoments:
        """Return the sums of other columns with these cuts, by their indices here, −1 for one without present cells."""
        d = len(self.cuts)
        above = [position + d if position >= 0 else -1 for position in positions]
        return TailMoments(cuts, self.excess.placed([*positions, *above]))


def _excess(tile: Numbers) -> tuple[tuple[tuple[float, ...], ...], Numbers]:
    """Return the cut points, and the distances of each cell below the first and above the last."""
    cuts = tuple(points or () for points in tile.cuts)
    first, last = (np.array([points[end] if points else np.nan for points in cuts]) for end in (0, -1))
    excess = np.empty((len(tile.values), 2 * len(cuts)))
    kernels.add_tail_moments(tile.values, first, last, excess)
    return cuts, Numbers(excess)
