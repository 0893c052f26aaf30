"""Weighted counts of events, and the exposure in which they occurred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.invariants import check_numbers, require_kind
from posteriori.statistics.differences import difference, exceeds
from posteriori.statistics.moments import gather
from posteriori.statistics.word_counts import WordCounts, bags_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
from posteriori.typing import Array

_LARGEST = 1e300


def exposure_of(tile: Bags | Numbers) -> Array:
    """Return the exposure of each row, (n,): that of the tile, or the sum of the counts of the row."""
    return bags_of(tile).totals if tile.exposure is None else tile.exposure


@dataclass(frozen=True)
class ExposedCounts:
    """Per component: the counts of words, and the sum of the exposures of the rows.

    Attributes
    ----------
    words : WordCounts
    exposure : ndarray (Z,)
        Σ w·ℓ.
    """

    words: WordCounts
    exposure: Array

    def __add__(self, other: ExposedCounts) -> ExposedCounts:
        return ExposedCounts(self.words + other.words, self.exposure + other.exposure)

    def __sub__(self, other: ExposedCounts) -> ExposedCounts:
        return ExposedCounts(self.words - other.words, difference(self.exposure, other.exposure))

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

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): all, because exposures and counts are bounded."""
        return self.words.finite()

    def is_exact(self) -> bool:
        """Return True: nothing in the sums is an expectation."""
        return True

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, columns): that of all rows, which are complete."""
        return self.words.observed()

    def without(self, tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
        """Return the sums without the rows of a tile."""
        return self - _sums_of(tile, assignment)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> ExposedCounts:
        """Return the sums of other components or words, by their indices here, −1 for a new one."""
        return ExposedCounts(self.words.reindexed(components, columns), gather(self.exposure, components))


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
        check_numbers("the exposures", statistics.exposure, (n_components,), 0.0, _LARGEST)

    @staticmethod
    def of(tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
        """Return the sums of the rows of a tile, whose exposures are known. O(stored cells)."""
        return _sums_of(tile, assignment)


def _sums_of(tile: Bags | Numbers, assignment: Assignment) -> ExposedCounts:
    words = WordCounts.of(replace(tile, exposure=None), assignment)
    of_rows = assignment.weight * exposure_of(tile)
    return ExposedCounts(words, np.bincount(assignment.component, of_rows, assignment.n_components))
