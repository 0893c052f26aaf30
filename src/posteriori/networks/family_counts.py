"""Sufficient statistics of a network: the counts of each family, and the rows with missing cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.networks.cases import Cases
from posteriori.networks.dag import DAG
from posteriori.statistics.distinct_rows import DistinctRows
from posteriori.statistics.joint_counts import CountTogether, JointCounts, Scope
from posteriori.tables import Assignment, Codes, Column
from posteriori.typing import Array


@dataclass(frozen=True)
class FamilyCounts:
    """Counts of the complete rows, and the incomplete rows themselves.

    Pseudo-counts and expected counts are never part of it, so that the sum of two equals one pass over both tables.

    Attributes
    ----------
    columns : tuple of Column (V,)
        The states of each variable.
    complete : JointCounts
        Counts of each family, its parents and then itself, over the rows without a missing cell.
    incomplete : DistinctRows
        The other rows.
    """

    columns: tuple[Column, ...]
    complete: JointCounts
    incomplete: DistinctRows

    def __add__(self, other: FamilyCounts) -> FamilyCounts:
        both = self.incomplete + other.incomplete
        return FamilyCounts(self.columns, self.complete + other.complete, both)

    def merged(self) -> FamilyCounts:
        """Return the same statistics with equal incomplete rows merged into one."""
        return replace(self, incomplete=self.incomplete.merged())

    def with_columns(self, columns: tuple[Column, ...]) -> FamilyCounts:
        """Return the same statistics for variables with more states."""
        if columns == self.columns:
            return self
        positions = [new.places_in(old) for new, old in zip(columns, self.columns, strict=True)]
        return FamilyCounts(columns, self.complete.reindexed([0], positions), self.incomplete.reindexed(positions))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of states of each variable."""
        return self.complete.cardinalities

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Each variable's parents and then itself, as indices."""
        return self.complete.scopes

    @cached_property
    def counts(self) -> list[Array]:
        """The weight of each family's configurations in the complete rows, (K of each parent…, K)."""
        return without_missing(self.complete)

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.counts[0].sum() + self.incomplete.weight.sum())


@dataclass(frozen=True)
class CountFamilies:
    """Factory of the `FamilyCounts` of a graph.

    Attributes
    ----------
    columns : tuple of Column (V,)
    scopes : tuple of tuple of int (V,)
        Each variable's parents and then itself, as indices.
    """

    columns: tuple[Column, ...]
    scopes: tuple[Scope, ...]

    def of(self, tile: Codes, assignment: Assignment) -> FamilyCounts:
        """Return the statistics of the rows of a tile."""
        count = CountTogether(self.scopes)
        if tile.values.min():  # code 0 is a missing cell; one minimum is cheaper than a test of every row
            return FamilyCounts(self.columns, count.of(tile, assignment), DistinctRows(tile.cardinalities))
        missing = ~tile.values.all(axis=1)
        complete = replace(assignment, weight=np.where(missing, 0.0, assignment.weight))
        incomplete = replace(assignment, weight=np.where(missing, assignment.weight, 0.0))
        return FamilyCounts(self.columns, count.of(tile, complete), DistinctRows.of(tile, incomplete))


def family_scopes(dag: DAG) -> tuple[Scope, ...]:
    """Return each variable's parents and then itself, as indices into the nodes of the graph."""
    position = {name: v for v, name in enumerate(dag.nodes)}
    return tuple((*(position[parent] for parent in dag.parents[name]), v) for v, name in enumerate(dag.nodes))


def count_cases(dag: DAG, cases: Cases) -> FamilyCounts:
    """Return the statistics of cases for a graph, in one pass."""
    counts: FamilyCounts = cases.reduce(CountFamilies(cases.columns, family_scopes(dag)))
    return counts.merged()


def joined(past: FamilyCounts, new: FamilyCounts) -> FamilyCounts:
    """Return the statistics of both, with the states that occur in either."""
    columns = tuple(old.extended(other) for old, other in zip(past.columns, new.columns, strict=True))
    return (past.with_columns(columns) + new.with_columns(columns)).merged()


def without_missing(counts: JointCounts) -> list[Array]:
    """Return the counts of each scope without those of missing cells."""
    return [counts.table(scope)[0][(slice(1, None),) * len(scope)] for scope in counts.scopes]
