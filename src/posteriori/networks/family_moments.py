"""Sufficient statistics of a network with continuous variables: counts, and moments of each family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.networks.cases import Cases
from posteriori.networks.dag import DAG
from posteriori.networks.family_counts import without_missing
from posteriori.statistics.joint_counts import CountTogether, JointCounts, Scope
from posteriori.tables import Assignment, Codes, Column
from posteriori.typing import Array


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter of some variables per configuration of discrete parents.

    Attributes
    ----------
    weight : ndarray (K of each parent…)
    mean : ndarray (K…, m)
    scatter : ndarray (K…, m, m)
        Σ weight · (z − mean)(z − mean)ᵀ.
    """

    weight: Array
    mean: Array
    scatter: Array

    @classmethod
    def of(cls, configuration: Array, shape: tuple[int, ...], z: Array, weight: Array) -> Moments:
        """Return the moments of rows z (n, m), each in a configuration (n,) of the parents."""
        size = int(np.prod(shape, dtype=np.int64))
        m = z.shape[1]
        total = np.bincount(configuration, weight, size).astype(np.float64)  # of no rows it would be integers
        mean = np.stack([np.bincount(configuration, weight * z[:, k], size) for k in range(m)], axis=1) + 0.0
        mean /= np.where(total > 0, total, 1.0)[:, np.newaxis]
        centred = z - mean[configuration]
        scatter = np.empty((size, m, m))
        for i in range(m):
            for j in range(i + 1):
                scatter[:, i, j] = scatter[:, j, i] = np.bincount(
                    configuration, weight * centred[:, i] * centred[:, j], size
                )
        return cls(total.reshape(shape), mean.reshape(*shape, m), scatter.reshape(*shape, m, m))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows (Chan, Golub & LeVeque 1983)."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        delta = other.mean - self.mean
        mean = self.mean + delta * share[..., np.newaxis]
        between = (self.weight * share)[..., None, None] * delta[..., :, None] * delta[..., None, :]
        return Moments(weight, mean, self.scatter + other.scatter + between)

    def pooled(self) -> Moments:
        """Return the moments of all configurations together, with shape ()."""
        weight, m = self.weight.ravel(), self.mean.shape[-1]
        total = weight.sum()
        mean = self.mean.reshape(-1, m)
        whole = weight @ mean / (total if total > 0 else 1.0)
        centred = mean - whole
        scatter = self.scatter.reshape(-1, m, m).sum(axis=0) + np.einsum("q,qi,qj->ij", weight, centred, centred)
        return Moments(np.asarray(total), whole, scatter)

    def placed(self, shape: tuple[int, ...], places: Sequence[Sequence[int]]) -> Moments:
        """Return the moments for parents with more states; places lists the new index of each old state."""
        m = self.mean.shape[-1]
        at = np.ix_(*places) if places else ()
        new = Moments(np.zeros(shape), np.zeros((*shape, m)), np.zeros((*shape, m, m)))
        new.weight[at], new.mean[at], new.scatter[at] = self.weight, self.mean, self.scatter
        return new


@dataclass(frozen=True)
class Families:
    """The families of a graph over discrete and continuous variables.

    Attributes
    ----------
    columns : tuple of Column (V,)
    discrete, continuous : tuple of int
        The indices of the variables of each kind.
    count_scopes : tuple of tuple of int
        Per discrete variable its parents and itself, as positions among the discrete variables.
    moment_scopes : tuple of pairs of tuple of int
        Per continuous variable its discrete parents, as positions among the discrete variables, and its continuous
        parents and itself, as positions among the continuous ones.
    """

    columns: tuple[Column, ...]
    discrete: tuple[int, ...]
    continuous: tuple[int, ...]
    count_scopes: tuple[Scope, ...]
    moment_scopes: tuple[tuple[Scope, Scope], ...]

    @classmethod
    def of(cls, dag: DAG, columns: tuple[Column, ...]) -> Families:
        """Return the families; ValueError if a discrete variable has a continuous parent."""
        discrete = tuple(v for v, column in enumerate(columns) if column.kind != "continuous")
        continuous = tuple(v for v, column in enumerate(columns) if column.kind == "continuous")
        place = {columns[v].name: k for group in (discrete, continuous) for k, v in enumerate(group)}
        is_number = {column.name: column.kind == "continuous" for column in columns}
        for u, v in dag.edges:
            if is_number[u] and not is_number[v]:
                raise ValueError(
                    f"column {u!r} holds measurements and its child {v!r} states; this has no exact inference: reverse "
                    f"the edge, cut {u!r} into intervals, or declare its states: states={{{u!r}: […]}}"
                )
        counts, moments = [], []
        for column in columns:
            parents = dag.parents[column.name]
            below = tuple(place[name] for name in parents if not is_number[name])
            if is_number[column.name]:
                numbers = tuple(place[name] for name in parents if is_number[name])
                moments.append((below, (*numbers, place[column.name])))
            else:
                counts.append((*below, place[column.name]))
        return cls(columns, discrete, continuous, tuple(counts), tuple(moments))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of states of each discrete variable."""
        return tuple(self.columns[v].cardinality for v in self.discrete)


@dataclass(frozen=True)
class HybridStatistics:
    """Counts and moments of the complete rows, and the incomplete rows themselves.

    Attributes
    ----------
    families : Families
    counts : JointCounts
        Of the discrete families, over the complete rows.
    moments : tuple of Moments
        Of the continuous families, over the complete rows.
    codes : ndarray (n, number of discrete variables)
        The incomplete rows; 0 is a missing cell.
    numbers : ndarray (n, number of continuous variables)
        NaN is a missing cell.
    weight : ndarray (n,)
    """

    families: Families
    counts: JointCounts
    moments: tuple[Moments, ...]
    codes: Array
    numbers: Array
    weight: Array

    def __add__(self, other: HybridStatistics) -> HybridStatistics:
        return HybridStatistics(
            self.families,
            self.counts + other.counts,
            tuple(mine + theirs for mine, theirs in zip(self.moments, other.moments, strict=True)),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.weight, other.weight]),
        )

    @property
    def tables(self) -> list[Array]:
        """The weight of the configurations of each discrete family, over the complete rows."""
        return without_missing(self.counts)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        weight = self.tables[0].sum() if self.families.discrete else self.moments[0].weight.sum()
        return float(weight + self.weight.sum())

    def with_columns(self, columns: tuple[Column, ...]) -> HybridStatistics:
        """Return the same statistics for variables with more states."""
        families = replace(self.families, columns=columns)
        old = [self.families.columns[v] for v in families.discrete]
        new = [columns[v] for v in families.discrete]
        if old == new:
            return replace(self, families=families)
        positions = [after.places_in(before) for after, before in zip(new, old, strict=True)]
        places = [
            [after.categories.index(state) for state in before.categories]
            for after, before in zip(new, old, strict=True)
        ]
        moments = tuple(
            one.placed(tuple(len(new[v].categories) for v in scope), [places[v] for v in scope])
            for one, (scope, _) in zip(self.moments, families.moment_scopes, strict=True)
        )
        codes = np.zeros(self.codes.shape, np.int64)
        for j, moved in enumerate(places):
            codes[:, j] = np.concatenate([[0], np.asarray(moved, np.int64) + 1])[self.codes[:, j].astype(np.int64)]
        return replace(
            self, families=families, counts=self.counts.reindexed([0], positions), moments=moments, codes=codes
        )


@dataclass(frozen=True)
class CountHybrid:
    """Factory of `HybridStatistics`."""

    families: Families

    def of(self, tile: Codes, numbers: Array, weight: Array) -> HybridStatistics:
        """Return the statistics of the rows of a tile; rows of weight 0 are left out."""
        families = self.families
        codes = tile.values
        complete = codes.all(axis=1) & ~np.isnan(numbers).any(axis=1)
        assignment = Assignment(np.zeros(len(codes), np.int32), np.where(complete, weight, 0.0), 1)
        counts = CountTogether(families.count_scopes).of(Codes(codes, families.cardinalities), assignment)
        used = complete & (weight > 0)
        moments = []
        for scope, members in families.moment_scopes:
            shape = tuple(families.cardinalities[v] for v in scope)
            configuration = np.zeros(int(used.sum()), np.int64)
            for v in scope:
                configuration = configuration * families.cardinalities[v] + codes[used, v].astype(np.int64) - 1
            moments.append(Moments.of(configuration, shape, numbers[used][:, members], weight[used]))
        left = ~complete & (weight > 0)
        return HybridStatistics(
            families, counts, tuple(moments), codes[left].astype(np.int64), numbers[left], weight[left]
        )


def count_hybrid(dag: DAG, cases: Cases) -> HybridStatistics:
    """Return the statistics of cases for a graph, in one pass."""
    statistics: HybridStatistics = cases.reduce(CountHybrid(Families.of(dag, cases.columns)))
    return statistics


def joined_hybrid(past: HybridStatistics, new: HybridStatistics) -> HybridStatistics:
    """Return the statistics of both, with the states that occur in either.

    Raises
    ------
    ValueError
        A column holds measurements in one table and states in the other.
    """
    for one, other in zip(past.families.columns, new.families.columns, strict=True):
        if (one.kind == "continuous") != (other.kind == "continuous"):
            raise ValueError(f"column {one.name!r} held measurements in one table and states in the other; convert one")
    columns: Any = tuple(
        one if one.kind == "continuous" else one.extended(other)
        for one, other in zip(past.families.columns, new.families.columns, strict=True)
    )
    return past.with_columns(columns) + new.with_columns(columns)
