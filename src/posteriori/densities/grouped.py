"""Dependences between columns with many categories: through groups of categories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from posteriori.densities.capabilities import (
    ApproximatingDensity,
    BaseDensity,
    CategorySummingDensity,
    LeaveOneOutDensity,
    TwoPassDensity,
    VarianceDensity,
    implements,
)
from posteriori.densities.conditional import ROUNDING
from posteriori.densities.refinement import FurtherPass, Refined, Refinement
from posteriori.densities.within_ranges import Box, draw_within
from posteriori.model_cost import MANY_CATEGORIES
from posteriori.statistics.counts import Counts, slot_offsets
from posteriori.statistics.grouped import CountCategories, CountGrouped, CountGroups, GroupedStatistics, Groups
from posteriori.statistics.moments import Moments
from posteriori.statistics.value_grouping import group_values
from posteriori.support.checks import check_equal, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Mixed
from posteriori.tables.schema import Column

_MOST_TABLE_CELLS = 1 << 24  # of one conditional table over categories


@dataclass(frozen=True)
class GroupedParameters:
    """The parameters of the density of the groups, and log p(x_j | g_j)."""

    groups: Groups
    coded: tuple[int, ...]  # the positions of the columns of codes in the block
    cardinalities: tuple[int, ...]  # the number of categories of these columns
    coarse: Any  # the parameters of the density of the groups
    # (Σ (K + 1),): log p(x_j | g_j) in nats, the columns of codes side by side; 0 for a missing cell, and for every
    # category of a column without groups
    log_within: Array

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        require(set(self.coded) <= set(range(len(columns))), "there is no such column of codes")
        check_equal("the number of categories", self.cardinalities, tuple(columns[j].cardinality for j in self.coded))
        self.groups.check_against(self.cardinalities)
        check_numbers("the log-probabilities", self.log_within, (int(self.offsets[-1]),), -np.inf, ROUNDING)
        self.coarse.check_against(self.groups.coarse_columns(columns, self.coded), n_components)

    @cached_property
    def offsets(self) -> Array:
        """The first slot of each column of codes, and the number of slots."""
        return slot_offsets(self.cardinalities)

    def within(self, j: int) -> Array:
        """Return log p(x | g) of each code of the j-th column of codes, (K + 1,)."""
        return self.log_within[self.offsets[j] : self.offsets[j + 1]]


@dataclass(frozen=True)
class Grouped(BaseDensity):
    r"""p(x | z) = p(g(x) | z) · Π_j p(x_j | g_j), where g_j is the group of category x_j.

    The density `coarse` models the groups g, so that its tables do not grow with the number of categories. The second
    factor is the distribution of a category within its group, p(x_j | g_j) = (n_x + 1) / (n_g + K_g). All components
    share it, so the posterior depends on the groups alone.

    Columns with at most 30 categories have no groups. The categories of other columns are grouped by class
    distribution (`group_values`), into at most 64 groups.

    Parameters
    ----------
    coarse : Density
        The density of the groups: of categories, or mixed.
    groups : Groups, optional
        None until `refine` has chosen them.
    columns : tuple of int
        The columns to group, by their positions among the columns of codes.

    References
    ----------
    Boullé, A Bayes optimal approach for partitioning the values of categorical attributes, JMLR 6 (2005).
    """

    coarse: Any
    columns: tuple[int, ...]
    groups: Groups | None = None
    name = "grouped"
    fitted: ClassVar[type] = GroupedParameters

    def check(self) -> None:
        """Raise ValueError if a column is negative, or the groups have no density."""
        require(isinstance(self.coarse, BaseDensity), f"coarse is {self.coarse!r}; give the density of the groups")
        require(all(j >= 0 for j in self.columns), "there is no such column to group")

    def check_fitted(self, parameters: GroupedParameters) -> None:
        """Raise ValueError unless the parameters have the groups of the density."""
        check_equal("the groups of the categories", parameters.groups, self.groups)
        require(type(parameters.coarse) is self.coarse.fitted, "the parameters of the groups are of another density")
        self.coarse.check_fitted(parameters.coarse)

    @property
    def kind(self) -> Any:
        """The kind of its columns: that of the coarse density."""
        return self.coarse.kind

    @property
    def support(self) -> str:
        """A description of the cells it can produce."""
        return str(self.coarse.support)

    @property
    def has_full_support(self) -> bool:  # type: ignore[override]
        """Whether every finite number is in the support."""
        return bool(self.coarse.has_full_support)

    @property
    def sufficient_statistics(self) -> CountCategories | CountGrouped:
        """The counts of categories until the groups are known, then also the statistics over groups."""
        if self.groups is None:
            return CountCategories()
        return CountGrouped(self.coarse.sufficient_statistics, self.groups)

    @property
    def second_pass(self) -> str:
        """The parameter of the density of the groups that requires a second pass over all rows."""
        return self.coarse.second_pass if implements(self.coarse, TwoPassDensity) else ""

    @property
    def chosen_once(self) -> str:  # type: ignore[override]
        """The groups of categories, and the structure that their density takes from the first rows."""
        return " and ".join(filter(None, (self.coarse.chosen_once, "the groups of categories")))

    def carry_over_structure(self, earlier: Any) -> Any:
        """Return the earlier density with its groups, or the density of the groups alone if the earlier has none."""
        coarse = earlier.coarse if isinstance(earlier, Grouped) else earlier
        carries = implements(self.coarse, TwoPassDensity) and type(coarse) is type(self.coarse)
        carried = self.coarse.carry_over_structure(coarse) if carries else self.coarse
        return replace(earlier, coarse=carried) if isinstance(earlier, Grouped) else carried

    def reindexed(self, columns: Sequence[Sequence[int]]) -> Grouped:
        """Return the density for other categories, by their indices here, −1 for a new one."""
        if self.groups is None:
            return self
        return replace(self, groups=self.groups.reindexed(columns)[0])

    def refine(self, statistics: GroupedStatistics) -> Refinement:
        """Return the density with its groups, and the statistics over them, from a second pass over the rows."""
        grouped = self.grouped_by(statistics)
        groups = grouped.groups
        assert groups is not None
        if statistics.groups is not None:
            return grouped._refine_coarse(statistics)
        # The categories are counted already: only the groups are left.
        return FurtherPass(
            CountGroups(self.coarse.sufficient_statistics, groups),
            lambda sums: grouped._refine_coarse(replace(statistics, groups=groups, coarse=sums)),
        )

    def _refine_coarse(self, statistics: GroupedStatistics) -> Refinement:
        """Return the density and its statistics with the density of the groups refined, which asks for groups."""
        groups = self.groups
        assert groups is not None

        def over_groups(step: Refinement) -> Refinement:
            if isinstance(step, FurtherPass):
                return FurtherPass(CountGroups(step.factory, groups), lambda sums: over_groups(step.then(sums)))
            return Refined(replace(self, coarse=step.density), replace(statistics, coarse=step.statistics))

        if implements(self.coarse, TwoPassDensity):
            return over_groups(self.coarse.refine(statistics.coarse))
        return Refined(self, statistics)

    def grouped_by(self, statistics: GroupedStatistics) -> Grouped:
        """Return the density with groups that are chosen by counts of categories, unless it has groups."""
        return self if self.groups is not None else replace(self, groups=self._choose_groups(statistics))

    def _choose_groups(self, statistics: GroupedStatistics) -> Groups:
        chosen = []
        for j in range(len(statistics.coded)):
            counts = statistics.column(j)
            many = j in self.columns and np.count_nonzero(counts.sum(axis=0)) > MANY_CATEGORIES
            chosen.append(tuple(group_values(counts).tolist()) if many else ())
        return Groups(tuple(chosen))

    def out_of_support(self, tile: Any) -> Array:
        """Return which cells the density cannot produce, (n, d) booleans."""
        return np.asarray(self.coarse.out_of_support(tile))

    def estimate(self, statistics: GroupedStatistics) -> GroupedParameters:
        """Return the parameters of the density of the groups, and the frequencies within them."""
        groups = statistics.groups
        if groups is None:
            raise ValueError("the groups are not known yet; call `refine` on the density first")
        cardinalities = statistics.categories.cardinalities
        within = np.zeros(int(statistics.categories.offsets[-1]))
        for j, group in enumerate(groups.of_categories):
            if group:
                start = int(statistics.categories.offsets[j]) + 1
                smoothed = statistics.column(j).sum(axis=0) + 1.0
                within[start : start + len(group)] = np.log(smoothed / np.bincount(group, smoothed)[list(group)])
        coarse = self.coarse.estimate(statistics.coarse)
        return GroupedParameters(groups, statistics.coded, cardinalities, coarse, within)

    def log_density(self, parameters: GroupedParameters, tile: Any) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        log_density: Array = self.coarse.log_density(parameters.coarse, parameters.groups.coarse(tile))
        for _, within in _within(parameters, tile):
            log_density += within[:, np.newaxis]
        return log_density

    def log_factors(self, parameters: GroupedParameters, tile: Any) -> Array:
        """Return log p(g_j | its condition, z) + log p(x_j | g_j) in nats, (n, Z, d), 0 for a missing cell."""
        factors: Array = self.coarse.log_factors(parameters.coarse, parameters.groups.coarse(tile))
        for j, within in _within(parameters, tile):
            factors[:, :, parameters.coded[j]] += within[:, np.newaxis]
        return factors

    def given(self, parameters: GroupedParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of the columns on which its factor is conditional."""
        given: tuple[tuple[int, ...], ...] = self.coarse.given(parameters.coarse)
        return given

    def approximated(self, parameters: GroupedParameters, tile: Any) -> Array:
        """Return which columns are missing in some row and not summed out exactly there, (d,) booleans."""
        if not implements(self.coarse, ApproximatingDensity):
            return np.zeros(len(parameters.coded), np.bool_)
        return np.asarray(self.coarse.approximated(parameters.coarse, parameters.groups.coarse(tile)))

    def left_out(
        self, parameters: GroupedParameters, statistics: GroupedStatistics, tile: Any, assignment: Assignment
    ) -> Array:
        """Return `log_factors` of each row under the parameters without it, (n, Z, d), with the same groups.

        The factors are those of the groups: p(x_j | g_j) is the same for all components. A category that occurs in no
        other row stays in its group.
        """
        if not implements(self.coarse, LeaveOneOutDensity):
            raise TypeError(f"the density {self.coarse.name!r} has no leave-one-out (`left_out`); choose another")
        coarse = parameters.groups.coarse(tile)
        factors: Array = self.coarse.left_out(parameters.coarse, statistics.coarse, coarse, assignment)
        return factors

    def summed_columns(self, parameters: GroupedParameters) -> Array:
        """Return the columns that the density of the groups sums over."""
        summed = implements(self.coarse, CategorySummingDensity)
        return self.coarse.summed_columns(parameters.coarse) if summed else np.empty(0, np.int64)

    def keeps_category(self, position: int) -> bool:
        """Return whether a category of this column of codes has a group also if no row shows it."""
        return self.groups is not None and bool(self.groups.of_categories[position])

    def with_fixed_structure(self, parameters: GroupedParameters) -> Grouped:
        """Return the density that keeps the structure of these parameters."""
        return replace(self, coarse=self.coarse.with_fixed_structure(parameters.coarse))

    def sample(self, parameters: GroupedParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw one row per component, (n, d): first the groups, then a category within each."""
        return _categories_of(parameters, self.coarse.sample(parameters.coarse, component, rng), rng)

    def sample_within(
        self, parameters: GroupedParameters, component: Array, rng: np.random.Generator, box: Box
    ) -> Array:
        """Draw one row per component, (n, d), with numbers within a box."""
        return _categories_of(parameters, draw_within(self.coarse, parameters.coarse, component, rng, box), rng)

    def n_parameters(self, parameters: GroupedParameters) -> int:
        """Return the number of parameters of the groups, and K − G per column for p(x | g)."""
        within = sum(len(groups) - max(groups) - 1 for groups in parameters.groups.of_categories if groups)
        return int(self.coarse.n_parameters(parameters.coarse)) + within

    def describe(self, parameters: GroupedParameters, position: int) -> dict[str, Array]:
        """Return the parameters of a column of numbers."""
        described: dict[str, Array] = self.coarse.describe(parameters.coarse, position)
        return described

    def moments_of_numbers(self, statistics: GroupedStatistics) -> Any:
        """Return the positions of the columns of numbers and their moments."""
        if implements(self.coarse, VarianceDensity):
            return self.coarse.moments_of_numbers(statistics.coarse)
        nothing = np.empty((len(statistics.categories.table), 0))
        return (), Moments(nothing, nothing, nothing, nothing)

    def conditional_tables(self, parameters: GroupedParameters) -> list[tuple[tuple[int, ...], Array]]:
        """Return the parents of each column and log p(x_j | z, parents) over categories; all columns hold codes."""
        tables = []
        for j, (parents, table) in enumerate(self.coarse.conditional_tables(parameters.coarse)):
            sizes = [parameters.cardinalities[i] for i in (*parents, j)]
            cells = len(table) * np.prod(sizes, dtype=np.float64)
            if cells > _MOST_TABLE_CELLS:
                raise ValueError(
                    f"a table of {' × '.join(map(str, sizes))} categories would hold {cells:,.0f} numbers, because the "
                    "network has a table over categories where the model has one over their groups; leave out the "
                    "columns with many categories"
                )
            groups = [parameters.groups.code_of_group(i, k)[1:] - 1 for i, k in zip((*parents, j), sizes, strict=True)]
            tables.append((parents, table[np.ix_(np.arange(len(table)), *groups)] + parameters.within(j)[1:]))
        return tables

    def to_unconstrained(self, parameters: GroupedParameters, reference: GroupedParameters) -> Array:
        """Return the parameters of the groups as an unconstrained vector."""
        return np.asarray(self.coarse.to_unconstrained(parameters.coarse, reference.coarse))

    def from_unconstrained(
        self, vector: Array, reference: GroupedParameters, statistics: GroupedStatistics
    ) -> GroupedParameters:
        """Return the parameters with this unconstrained vector."""
        return replace(reference, coarse=self.coarse.from_unconstrained(vector, reference.coarse, statistics.coarse))

    def expect(
        self, parameters: GroupedParameters, tile: Any, assignment: Assignment
    ) -> tuple[GroupedStatistics, float]:
        """Return the expected statistics of the rows and the log-likelihood of their present cells, in nats."""
        coarse_tile = parameters.groups.coarse(tile)
        sums, log_likelihood = self.coarse.expect(parameters.coarse, coarse_tile, assignment)
        counts = CountCategories().of(tile, assignment)
        of_categories = sum(float(assignment.weight @ within) for _, within in _within(parameters, tile))
        return replace(counts, groups=parameters.groups, coarse=sums), log_likelihood + of_categories

    def expect_from_responsibilities(
        self, parameters: GroupedParameters, tile: Any, responsibilities: Array
    ) -> GroupedStatistics:
        """Return the expected statistics of rows weighted by their responsibilities, (n, Z)."""
        coarse_tile = parameters.groups.coarse(tile)
        sums = self.coarse.expect_from_responsibilities(parameters.coarse, coarse_tile, responsibilities)
        codes = tile.codes if isinstance(tile, Mixed) else tile
        counts = Counts.from_responsibilities(codes, responsibilities)
        return GroupedStatistics(parameters.coded, counts, parameters.groups, sums)


def ungrouped(density: Any) -> Any:
    """Return the density over categories itself, without groups."""
    return density.coarse if isinstance(density, Grouped) else density


def coarse_parameters(parameters: Any) -> Any:
    """Return the parameters of the density of the groups, or the parameters themselves if there are no groups."""
    return parameters.coarse if isinstance(parameters, GroupedParameters) else parameters


def _within(parameters: GroupedParameters, tile: Any) -> Iterator[tuple[int, Array]]:
    """Yield each column of codes that has groups, with log p(x_j | g_j) in nats, (n,), 0 where missing."""
    codes = tile.codes if isinstance(tile, Mixed) else tile
    for j, groups in enumerate(parameters.groups.of_categories):
        if groups:
            yield j, parameters.within(j)[codes.values[:, j]]


def _categories_of(parameters: GroupedParameters, drawn: Array, rng: np.random.Generator) -> Array:
    """Return drawn rows (n, d) with a category in place of each group, drawn from p(x_j | g_j)."""
    rows = drawn.copy()
    for j, groups in enumerate(parameters.groups.of_categories):
        if not groups:
            continue
        position, of_group = parameters.coded[j], np.array(groups)
        probability = np.exp(parameters.within(j)[1:])
        for g in range(int(of_group.max()) + 1):
            cells = np.flatnonzero(drawn[:, position] == g + 1)
            members = np.flatnonzero(of_group == g)
            share = probability[members] / probability[members].sum()
            rows[cells, position] = rng.choice(members, size=len(cells), p=share) + 1
    return rows
