"""Weighted counts of events, and the exposure in which they occurred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from posteriori.invariants import require_kind
from posteriori.statistics.axes import Axes
from posteriori.statistics.differences import exceeds
from posteriori.statistics.word_counts import SumsOfRows, WordCounts, bags_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
from posteriori.typing import Array

_LARGEST = 1e300


def exposure_of(tile: Bags | Numbers) -> Array:
    """Return the exposure of each row, (n,): that of the tile, or the sum of the counts of the row."""
    return bags_of(tile).totals if tile.exposure is None else tile.exposure


@dataclass(frozen=True)
class ExposedCounts(SumsOfRows):
    """Per component: the counts of words, and the sum of the exposures of the rows.

    Attributes
    ----------
    words : WordCounts
    exposure : ndarray (Z,)
        Σ w·ℓ.
    """

    words: WordCounts
    exposure: Annotated[Array, Axes("the exposures", "z", low=0.0, high=_LARGEST)]

    @property
    def n_columns(self) -> int:
        """The number of columns of the table."""
        return self.words.n_columns

    @property
    def weight(self) -> Array:
        """The weight of the rows, (Z,)."""
        return self.words.weight

    @property
    def count(self) -> Array:
        """Σ w·x, (Z, V)."""
        return self.words.count

    def would_go_negative(self, other: ExposedCounts) -> Array:
        """Return where other holds more than these sums, (Z, columns)."""
        over = exceeds(other.exposure, self.exposure)
        return np.asarray(self.words.would_go_negative(other.words) | over[:, np.newaxis])

    @classmethod
    def of(cls, tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
        """Return the sums of the rows of a tile, whose exposures are known. O(stored cells)."""
        words = WordCounts.of(replace(tile, exposure=None), assignment)
        of_rows = assignment.weight * exposure_of(tile)
        return cls(words, np.bincount(assignment.component, of_rows, assignment.n_components))


@dataclass(frozen=True)
class CountExposed:
    """The statistics factory of `ExposedCounts`, by the name of the column of exposures; None is the row's total.

    The name takes part in equality, so that fits with different exposures share no statistics.
    """

    exposure: str | int | None = None

    @staticmethod
    def check_against(statistics: ExposedCounts, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, ExposedCounts)
        statistics.words.check_against(columns, n_components)
        statistics.check_against(columns, n_components)

    @staticmethod
    def of(tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
        """Return the sums of the rows of a tile, whose exposures are known. O(stored cells)."""
        return ExposedCounts.of(tile, assignment)
