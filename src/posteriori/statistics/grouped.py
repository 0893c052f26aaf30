"""Statistics of a block whose columns with many categories are grouped: counts of categories, and sums over groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.statistics.counts import Counts
from posteriori.statistics.moments import Moments, less
from posteriori.statistics.sums import Sums, check_sums
from posteriori.support.checks import check_equal, require, require_kind
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes, Mixed
from posteriori.tables.schema import Column, smallest_code_type


@dataclass(frozen=True)
class Groups:
    """The group of each category of each column of codes.

    Attributes
    ----------
    of_categories : tuple of tuple of int
        Per column of codes: the group of each category, from 0 and without gaps; empty for a column without groups,
        whose codes stay as they are.
    """

    of_categories: tuple[tuple[int, ...], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash of the groups, kept because they are part of the key of many look-ups."""
        return hash(self.of_categories)

    def check(self) -> None:
        """Raise ValueError unless the groups of each column are numbered from 0 without gaps."""
        for groups in self.of_categories:
            distinct = set(groups)  # and no range of numbers, of which a file may name huge ones
            require(
                not groups or (min(distinct), max(distinct)) == (0, len(distinct) - 1),
                "a group of categories has no category",
            )

    def check_against(self, cardinalities: Sequence[int]) -> None:
        """Raise ValueError unless the groups are of columns with these numbers of categories."""
        check_equal("the number of columns with groups", len(self.of_categories), len(cardinalities))
        for groups, k in zip(self.of_categories, cardinalities, strict=True):
            require(len(groups) in (0, k), f"there are groups of {len(groups)} categories, but {k} categories")

    @cached_property
    def _code_of_code(self) -> tuple[Array, ...]:
        """Per column the code of the group of each code, 0 for a missing cell; empty without groups."""
        return tuple(
            np.array([0, *(g + 1 for g in groups)] if groups else [], smallest_code_type(len(groups)))
            for groups in self.of_categories
        )

    def n_groups(self, j: int, cardinality: int) -> int:
        """Return the number of groups of a column, or its cardinality if it has no groups."""
        return max(self.of_categories[j]) + 1 if self.of_categories[j] else cardinality

    def cardinalities(self, cardinalities: Sequence[int]) -> tuple[int, ...]:
        """Return the number of codes of each column after grouping."""
        return tuple(self.n_groups(j, k) for j, k in enumerate(cardinalities))

    def code_of_group(self, j: int, cardinality: int) -> Array:
        """Return the code of the group of each code of a column, (K + 1,)."""
        return self._code_of_code[j] if self.of_categories[j] else np.arange(cardinality + 1)

    def coarse(self, tile: Any) -> Any:
        """Return a tile (`Codes` or `Mixed`) with the codes of groups in place of those of categories."""
        codes = tile.codes if isinstance(tile, Mixed) else tile
        if not any(self.of_categories):
            return tile
        cardinalities = self.cardinalities(codes.cardinalities)
        # As in tables without large columns, codes take a byte if they can: kernels are compiled for each type.
        values = codes.values.astype(smallest_code_type(max(cardinalities)))
        for j, table in enumerate(self._code_of_code):
            if len(table):
                values[:, j] = table[codes.values[:, j]]
        coarse = Codes(values, cardinalities)
        return replace(tile, codes=coarse) if isinstance(tile, Mixed) else coarse

    def coarse_columns(self, columns: Sequence[Column], coded: Sequence[int]) -> list[Column]:
        """Return the columns of a block as its dependences see them: with one category per group."""
        result = list(columns)
        for groups, j in zip(self.of_categories, coded, strict=True):
            if groups:
                result[j] = replace(columns[j], categories=columns[j].categories[: max(groups) + 1])
        return result

    def reindexed(self, columns: Sequence[Sequence[int]]) -> tuple[Groups, list[list[int]]]:
        """Return the groups of other categories, by their indices here, and the indices of the remaining groups.

        A new category (−1) joins the group with the most categories. A group that loses all categories vanishes. For
        a column without groups the indices are those of its categories.
        """
        groups: list[tuple[int, ...]] = []
        moves: list[list[int]] = []
        for old, positions in zip(self.of_categories, columns, strict=True):
            if not old:
                groups.append(())
                moves.append(list(positions))
                continue
            largest = int(np.bincount(old).argmax())
            known = [old[position] if position >= 0 else largest for position in positions]
            kept = sorted(set(known))
            number = {group: index for index, group in enumerate(kept)}
            groups.append(tuple(number[group] for group in known))
            moves.append(kept)
        return Groups(tuple(groups)), moves


@dataclass(frozen=True)
class GroupedStatistics(Sums):
    """The counts of categories, and the statistics of a density over their groups.

    Attributes
    ----------
    coded : tuple of int
        The positions of the columns of codes in the block.
    categories : Counts
        Of these columns.
    groups : Groups or None
        None until they are chosen.
    coarse : Statistics or None
        The statistics over the groups. Until these are chosen: the moments of the columns of numbers, if there are any.
    """

    coded: tuple[int, ...]
    categories: Counts
    groups: Groups | None
    coarse: Any

    def would_go_negative(self, other: GroupedStatistics) -> Array:
        """Return where other holds more than these statistics, (Z, d)."""
        over: Array = self.coarse.would_go_negative(other.coarse).copy()
        over[:, self.coded] |= self.categories.would_go_negative(other.categories)
        return over

    def without(self, tile: Any, assignment: Assignment) -> GroupedStatistics:
        """Return the statistics without some of their rows."""
        assert self.groups is not None
        codes = tile.codes if isinstance(tile, Mixed) else tile
        table = less(self.categories.table, Counts.of(codes, assignment).table)
        coarse = self.coarse.without(self.groups.coarse(tile), assignment)
        return replace(self, categories=Counts(codes.cardinalities, table), coarse=coarse)

    def finite(self) -> Array:
        """Return which columns can be computed with, (d,)."""
        if self.groups is not None:
            return np.asarray(self.coarse.finite())
        result = np.ones(len(self.coded) + (0 if self.coarse is None else self.coarse.weight.shape[1]), np.bool_)
        if self.coarse is not None:
            result[np.delete(np.arange(len(result)), self.coded)] = self.coarse.finite()
        return result

    def is_exact(self) -> bool:
        """Return whether the sums are exact, without expectations of missing cells."""
        return self.groups is None or bool(self.coarse.is_exact())

    def independent(self) -> GroupedStatistics:
        """Return the sums over available cells, from which EM starts."""
        return replace(self, coarse=self.coarse.independent())

    def observed(self) -> Array:
        """Return the weight of the present cells, (Z, d)."""
        return np.asarray(self.categories.observed() if self.groups is None else self.coarse.observed())

    def column(self, j: int) -> Array:
        """Return the weight of each category of the j-th column of codes: (Z, K)."""
        return self.categories.column(j)

    def reindexed(self, components: Sequence[int], columns: Sequence[Sequence[int]] | None = None) -> GroupedStatistics:
        """Return the statistics of other components or categories, by their indices here, −1 for a new one.

        A new category joins the group with the most categories.
        """
        categories = self.categories.reindexed(components, columns)
        if self.groups is None:
            coarse = None if self.coarse is None else self.coarse.reindexed(components)
            return replace(self, categories=categories, coarse=coarse)
        if columns is None:
            return replace(self, categories=categories, coarse=self.coarse.reindexed(components))
        groups, moves = self.groups.reindexed(columns)
        unchanged = [list(range(k)) for k in self.groups.cardinalities(self.categories.cardinalities)]
        same = moves == unchanged and list(components) == list(range(len(self.categories.table)))
        coarse = self.coarse if same else self.coarse.reindexed(components, moves)
        return replace(self, categories=categories, groups=groups, coarse=coarse)


@dataclass(frozen=True)
class CountCategories:
    """The statistics factory of the first pass: it counts the categories from which groups are chosen."""

    def check_against(self, statistics: GroupedStatistics, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError: a fitted model has groups."""
        raise ValueError("the groups of the categories are missing")

    def of(self, tile: Any, assignment: Assignment) -> GroupedStatistics:
        """Return the counts of the rows of a tile, and the moments of its numbers."""
        coded, codes = _coded(tile)
        has_numbers = isinstance(tile, Mixed) and any(tile.continuous)
        numbers = Moments.of(tile.numbers, assignment) if has_numbers else None
        return GroupedStatistics(coded, Counts.of(codes, assignment), None, numbers)


@dataclass(frozen=True)
class CountGroups:
    """The statistics factory of the second pass: it computes the coarse statistics over groups alone.

    Attributes
    ----------
    coarse : StatisticsFactory
        Computes the statistics over groups.
    groups : Groups
    """

    coarse: Any
    groups: Groups

    def of(self, tile: Any, assignment: Assignment) -> Any:
        """Return the statistics of the rows of a tile."""
        return self.coarse.of(self.groups.coarse(tile), assignment)


@dataclass(frozen=True)
class CountGrouped:
    """The statistics factory once groups are known: it counts categories, and computes coarse statistics over groups.

    Attributes
    ----------
    coarse : StatisticsFactory
        Computes the statistics over groups.
    groups : Groups
    """

    coarse: Any
    groups: Groups = field(compare=False)  # the groups of later calls hold new categories too

    def check_against(self, statistics: GroupedStatistics, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the statistics fit these columns and this number of components."""
        require_kind(statistics, GroupedStatistics)
        require(set(statistics.coded) <= set(range(len(columns))), "there is no such column of codes")
        cardinalities = tuple(columns[j].cardinality for j in statistics.coded)
        statistics.categories.check_cardinalities(cardinalities, n_components)
        check_equal("the groups of the counts", statistics.groups, self.groups)
        self.groups.check_against(cardinalities)
        coarse = self.groups.coarse_columns(columns, statistics.coded)
        check_sums(self.coarse, statistics.coarse, coarse, n_components)

    def of(self, tile: Any, assignment: Assignment) -> GroupedStatistics:
        """Return the statistics of the rows of a tile."""
        coded, codes = _coded(tile)
        coarse = CountGroups(self.coarse, self.groups).of(tile, assignment)
        return GroupedStatistics(coded, Counts.of(codes, assignment), self.groups, coarse)


def _coded(tile: Any) -> tuple[tuple[int, ...], Codes]:
    """Return the positions of the columns of codes of a tile, and their cells."""
    if isinstance(tile, Mixed):
        return tuple(j for j, number in enumerate(tile.continuous) if not number), tile.codes
    return tuple(range(len(tile.cardinalities))), tile
