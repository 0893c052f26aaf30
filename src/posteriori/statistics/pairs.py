"""Statistics of all pairs of columns, categorical and continuous: sufficient for naive Bayes and for any tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.invariants import check_equal, require
from posteriori.statistics.axes import check_axes
from posteriori.statistics.joint_counts import CountTogether, JointCounts, all_pairs
from posteriori.statistics.left_out import moments_without
from posteriori.statistics.moments import Moments
from posteriori.statistics.pair_moments import PairMoments
from posteriori.statistics.sums import Sums
from posteriori.tables.batch import Assignment, Mixed
from posteriori.tables.columns import Column
from posteriori.typing import Array


@dataclass(frozen=True)
class Pairs(Sums):
    """The statistics of all pairs of columns, which include those of single columns.

    Attributes
    ----------
    continuous : tuple of bool
        Whether each column holds numbers; the others hold codes.
    codes : JointCounts
        The counts of every pair of columns of codes.
    numbers : Moments
        The moments of the single columns of numbers.
    across : tuple of Moments
        Per column of codes: the moments of the numbers given each code, as K + 1 components per component.
    together : PairMoments
        The moments of every pair of columns of numbers.
    exact : bool
        True: missing cells are omitted from their pairs. False: EM takes the expectation over them.
    """

    continuous: tuple[bool, ...]
    codes: JointCounts
    numbers: Moments
    across: tuple[Moments, ...]
    together: PairMoments
    exact: bool = True

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        continuous, coded = numbers_and_codes(columns)
        check_equal("which columns are numbers in the counts of pairs", self.continuous, continuous)
        pairs = all_pairs(len(coded))
        edges = tuple(scope for scope in self.codes.scopes if len(scope) == 2)
        known = set(edges) <= set(pairs) and len(set(edges)) == len(edges)
        require(self.exact or known, "expected counts are of pairs that the columns do not have")
        # EM computes expected counts only of single columns and along the edges of trees.
        expected = (*((j,) for j in range(len(coded))), *edges)
        kept = expected if not self.exact and self.codes.scopes != pairs else pairs
        self.codes.check_scopes(kept, coded, n_components)
        n_numbers = sum(continuous)
        self.numbers.check_shape(n_components, n_numbers)
        check_axes(self.together, {"z": n_components, "number": n_numbers})
        check_equal("the number of tables of numbers", len(self.across), len(coded) if n_numbers else 0)
        for moments, column in zip(self.across, coded, strict=False):
            moments.check_shape(n_components * (column.cardinality + 1), n_numbers)

    @classmethod
    def of(cls, tile: Mixed, assignment: Assignment) -> Pairs:
        """Return the statistics of the rows of a tile. O(n·d²)."""
        across = []
        for j, k in enumerate(tile.codes.cardinalities if any(tile.continuous) else ()):
            component = assignment.component * np.int32(k + 1) + tile.codes.values[:, j]
            split = replace(assignment, component=component, n_components=assignment.n_components * (k + 1))
            across.append(Moments.of(tile.numbers, split))
        return cls(
            tile.continuous,
            CountTogether().of(tile.codes, assignment),
            Moments.of(tile.numbers, assignment),
            tuple(across),
            PairMoments.of(tile.numbers, assignment),
        )

    def would_go_negative(self, other: Pairs) -> Array:
        """Return where other holds more than these statistics, (Z, d)."""
        numbers = self.numbers.would_go_negative(other.numbers) | self.together.would_go_negative(other.together)
        for mine, theirs, k in zip(self.across, other.across, self.codes.cardinalities, strict=False):
            numbers |= mine.would_go_negative(theirs).reshape(len(numbers), k + 1, -1).any(axis=1)
        return self._interleaved(numbers, self.codes.would_go_negative(other.codes))

    def without(self, tile: Mixed, assignment: Assignment) -> Pairs:
        """Return the statistics without one of their rows."""
        across = []
        for j, (sums, k) in enumerate(zip(self.across, self.codes.cardinalities, strict=False)):
            component = assignment.component * np.int32(k + 1) + tile.codes.values[:, j]
            across.append(moments_without(sums, tile.numbers, replace(assignment, component=component)))
        return replace(
            self,
            codes=self.codes.without(tile.codes, assignment),
            numbers=moments_without(self.numbers, tile.numbers, assignment),
            across=tuple(across),
            together=self.together.without(tile.numbers, assignment),
        )

    def _interleaved(self, numbers: Array, codes: Array) -> Array:
        """Return arrays of numbers and of codes interleaved in the order of the columns (last axis)."""
        result = np.empty((*numbers.shape[:-1], len(self.continuous)), np.result_type(numbers, codes))
        mask = np.array(self.continuous)
        result[..., mask], result[..., ~mask] = numbers, codes
        return result

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,): no cell is infinite or has a square that overflows."""
        usable = self.numbers.finite() & np.isfinite(self.together.cross).all(axis=(0, 1))
        return self._interleaved(usable, self.codes.finite())

    def is_exact(self) -> bool:
        """Return whether the sums are exact, with missing cells omitted from their pairs."""
        return self.exact

    def independent(self) -> Pairs:
        """Return the sums over available pairs, from which EM starts."""
        return self

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return self._interleaved(self.numbers.observed(), self.codes.observed())

    def column(self, j: int) -> Array:
        """Return the weight of each category of the j-th column of codes: (Z, K)."""
        return self.codes.column(j)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> Pairs:
        """Return the statistics of other components or categories, by their indices here, −1 for a new one."""
        cardinalities = self.codes.cardinalities
        coded = [range(k) for k in cardinalities] if columns is None else columns
        across = []
        for sums, k, positions in zip(self.across, cardinalities, coded if self.across else (), strict=False):
            slots = [-1 if position < 0 else position + 1 for position in positions]
            across.append(
                sums.reindexed(
                    [z * (k + 1) + slot if z >= 0 and slot >= 0 else -1 for z in components for slot in (0, *slots)]
                )
            )
        return replace(super().reindexed(components, columns), across=tuple(across))


def numbers_and_codes(columns: Sequence[Column]) -> tuple[tuple[bool, ...], list[Column]]:
    """Return whether each column is read as numbers, and the columns that are read as codes."""
    continuous = tuple(column.kind == "continuous" and not column.is_binned for column in columns)
    return continuous, [column for column, number in zip(columns, continuous, strict=True) if not number]
