"""Sufficient statistics of a network: counts and moments of each family, and the rows with missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.networks.graph.dag import DAG
from posteriori.networks.learning.cases import Cases
from posteriori.statistics.counts import CountTogether, JointCounts, Scope
from posteriori.statistics.row_records import DistinctRows
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Codes, Column


@dataclass(frozen=True)
class FamilyMoments:
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
    def of(cls, configuration: Array, shape: tuple[int, ...], z: Array, weight: Array) -> FamilyMoments:
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

    def __add__(self, other: FamilyMoments) -> FamilyMoments:
        """Return the moments of both sets of rows (Chan, Golub & LeVeque 1983)."""
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        delta = other.mean - self.mean
        mean = self.mean + delta * share[..., np.newaxis]
        between = (self.weight * share)[..., None, None] * delta[..., :, None] * delta[..., None, :]
        return FamilyMoments(weight, mean, self.scatter + other.scatter + between)

    def pooled(self) -> FamilyMoments:
        """Return the moments of all configurations together, with shape ()."""
        weight, m = self.weight.ravel(), self.mean.shape[-1]
        total = weight.sum()
        mean = self.mean.reshape(-1, m)
        whole = weight @ mean / (total if total > 0 else 1.0)
        centred = mean - whole
        scatter = self.scatter.reshape(-1, m, m).sum(axis=0) + np.einsum("q,qi,qj->ij", weight, centred, centred)
        return FamilyMoments(np.asarray(total), whole, scatter)

    def placed(self, shape: tuple[int, ...], places: Sequence[Sequence[int]]) -> FamilyMoments:
        """Return the moments for parents with more states; places lists the new index of each old state."""
        m = self.mean.shape[-1]
        at = np.ix_(*places) if places else ()
        new = FamilyMoments(np.zeros(shape), np.zeros((*shape, m)), np.zeros((*shape, m, m)))
        new.weight[at], new.mean[at], new.scatter[at] = self.weight, self.mean, self.scatter
        return new


@dataclass(frozen=True)
class GraphFamilies:
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
    def of(cls, dag: DAG, columns: tuple[Column, ...]) -> GraphFamilies:
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
class CaseRows:
    """Rows of codes and numbers with their weights.

    Attributes
    ----------
    cardinalities : tuple of int
        Of the discrete variables.
    parts : tuple of triples of ndarray
        Codes (m, number of discrete variables), numbers (m, number of continuous variables) and weights (m,), batch by
        batch. Code 0 and NaN are missing cells. Without numbers the rows of a part are distinct.
    """

    cardinalities: tuple[int, ...]
    parts: tuple[tuple[Array, Array, Array], ...] = ()

    @classmethod
    def of(cls, tile: Codes, numbers: Array, weight: Array) -> CaseRows:
        """Return the rows of a tile; rows of weight 0 are left out."""
        kept = weight > 0
        if not kept.any():
            return cls(tile.cardinalities)
        if numbers.shape[1]:
            return cls(tile.cardinalities, ((tile.values[kept], numbers[kept], weight[kept]),))
        assignment = Assignment(np.zeros(len(weight), np.int32), weight, 1)
        return cls.of_categories(DistinctRows.of(tile, assignment))

    @classmethod
    def of_categories(cls, rows: DistinctRows) -> CaseRows:
        """Return rows without numbers."""
        return cls(
            rows.cardinalities, tuple((codes, np.empty((len(codes), 0)), weight) for codes, weight in rows.parts)
        )

    def __add__(self, other: CaseRows) -> CaseRows:
        return CaseRows(self.cardinalities, self.parts + other.parts)

    @cached_property
    def _whole(self) -> tuple[Array, Array, Array]:
        if len(self.parts) == 1:
            return self.parts[0]
        if not self.parts:
            return np.empty((0, len(self.cardinalities)), np.uint8), np.empty((0, 0)), np.empty(0)
        if self.parts[0][1].shape[1]:
            codes, numbers, weight = (np.concatenate([part[k] for part in self.parts]) for k in range(3))
            return codes, numbers, weight
        rows = self.categories
        return rows.codes.values, np.empty((len(rows.weight), 0)), rows.weight

    @property
    def codes(self) -> Array:
        """The codes of the discrete variables, 0 where missing."""
        return self._whole[0]

    @property
    def numbers(self) -> Array:
        """The numbers of the continuous variables, NaN where missing."""
        return self._whole[1]

    @property
    def weight(self) -> Array:
        """The weights, (n,)."""
        return self._whole[2]

    @property
    def has_gaps(self) -> bool:
        """Whether a cell is missing."""
        return bool((self.codes == 0).any() or np.isnan(self.numbers).any())

    @cached_property
    def categories(self) -> DistinctRows:
        """The distinct rows of the discrete variables."""
        parts = [(codes, weight) for codes, _, weight in self.parts]
        if self.parts and self.parts[0][1].shape[1]:  # equal codes were not merged
            codes, _, weight = self._whole
            assignment = Assignment(np.zeros(len(codes), np.int32), weight, 1)
            return DistinctRows.of(Codes(codes, self.cardinalities), assignment)
        return DistinctRows(self.cardinalities, tuple(parts))

    def covariance(self) -> tuple[Array, float]:
        """Return the covariance of the continuous variables, and the weight of all rows."""
        moments = FamilyMoments.of(np.zeros(len(self.numbers), np.int64), (), self.numbers, self.weight)
        return moments.scatter / float(moments.weight), float(moments.weight)

    def merged(self) -> CaseRows:
        """Return the same rows in one part."""
        return CaseRows(self.cardinalities, (self._whole,) if len(self.weight) else ())

    def reindexed(self, positions: Sequence[Sequence[int]]) -> CaseRows:
        """Return the rows in other codes; positions lists the current index of each category of the result, or −1."""
        codes, numbers, weight = self._whole
        moved = DistinctRows(self.cardinalities, ((codes, weight),) if len(weight) else ()).reindexed(positions)
        return CaseRows(moved.cardinalities, ((moved.codes.values, numbers, weight),) if len(weight) else ())


@dataclass(frozen=True)
class FamilyStatistics:
    """Counts and moments of the complete rows, and the incomplete rows themselves.

    Pseudo-counts and expected counts are never part of it, so that the sum of two equals one pass over both tables.

    Attributes
    ----------
    families : GraphFamilies
    complete : JointCounts
        Counts of the discrete families over the rows without a missing cell.
    moments : tuple of FamilyMoments
        Of the continuous families, over these rows.
    incomplete : CaseRows
        The other rows.
    """

    families: GraphFamilies
    complete: JointCounts
    moments: tuple[FamilyMoments, ...]
    incomplete: CaseRows

    def __add__(self, other: FamilyStatistics) -> FamilyStatistics:
        return FamilyStatistics(
            self.families,
            self.complete + other.complete,
            tuple(mine + theirs for mine, theirs in zip(self.moments, other.moments, strict=True)),
            self.incomplete + other.incomplete,
        )

    def merged(self) -> FamilyStatistics:
        """Return the same statistics with the incomplete rows in one part."""
        return replace(self, incomplete=self.incomplete.merged())

    @cached_property
    def counts(self) -> list[Array]:
        """The weight of each discrete family's configurations in the complete rows, (K of each parent…, K)."""
        return without_missing(self.complete)

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        complete = self.counts[0].sum() if self.counts else self.moments[0].weight.sum() if self.moments else 0.0
        return float(complete + self.incomplete.weight.sum())

    def with_columns(self, columns: tuple[Column, ...]) -> FamilyStatistics:
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
        return FamilyStatistics(
            families, self.complete.reindexed([0], positions), moments, self.incomplete.reindexed(positions)
        )


@dataclass(frozen=True)
class CountFamilies:
    """Factory of `FamilyStatistics`."""

    families: GraphFamilies

    def of(self, tile: Codes, numbers: Array, weight: Array) -> FamilyStatistics:
        """Return the statistics of the rows of a tile."""
        families, codes = self.families, tile.values
        missing = np.zeros(len(codes), np.bool_)
        if codes.size and not codes.min():  # code 0 is a missing cell; one minimum is cheaper than a test of every row
            missing |= (codes == 0).any(axis=1)
        if numbers.shape[1]:
            missing |= np.isnan(numbers).any(axis=1)
        gaps = bool(missing.any())
        known = np.where(missing, 0.0, weight) if gaps else weight
        counts = CountTogether(families.count_scopes).of(tile, Assignment(np.zeros(len(codes), np.int32), known, 1))
        used = known > 0
        moments = []
        for scope, members in families.moment_scopes:
            shape = tuple(families.cardinalities[v] for v in scope)
            configuration = np.zeros(int(used.sum()), np.int64)
            for v in scope:
                configuration = configuration * families.cardinalities[v] + codes[used, v].astype(np.int64) - 1
            moments.append(FamilyMoments.of(configuration, shape, numbers[used][:, members], weight[used]))
        rest = np.where(missing, weight, 0.0)
        incomplete = CaseRows.of(tile, numbers, rest) if gaps else CaseRows(tile.cardinalities)
        return FamilyStatistics(families, counts, tuple(moments), incomplete)


def count_cases(dag: DAG, cases: Cases) -> FamilyStatistics:
    """Return the statistics of cases for a graph, in one pass."""
    statistics: FamilyStatistics = cases.reduce(CountFamilies(GraphFamilies.of(dag, cases.columns)))
    return statistics.merged()


def joined(past: FamilyStatistics, new: FamilyStatistics) -> FamilyStatistics:
    """Return the statistics of both, with the states that occur in either.

    Raises
    ------
    ValueError
        A column holds measurements in one table and states in the other.
    """
    columns = []
    for one, other in zip(past.families.columns, new.families.columns, strict=True):
        if (one.kind == "continuous") != (other.kind == "continuous"):
            raise ValueError(f"column {one.name!r} held measurements in one table and states in the other; convert one")
        columns.append(one if one.kind == "continuous" else one.extended(other))
    return (past.with_columns(tuple(columns)) + new.with_columns(tuple(columns))).merged()


def without_missing(counts: JointCounts) -> list[Array]:
    """Return the counts of each scope without those of missing cells."""
    return [counts.table(scope)[0][(slice(1, None),) * len(scope)] for scope in counts.scopes]


_LEAST_VARIANCE = 1e-9  # of that of the column: a constant column must not give a point mass


def regression(moments: FamilyMoments) -> tuple[Array, Array, Array]:
    """Return intercept (K…), coefficients (K…, m − 1) and variance (K…) of the last variable given the others."""
    whole = moments.pooled()
    shape, m = moments.weight.shape, moments.mean.shape[-1]
    few = moments.weight.ravel() <= m
    mean = np.where(few[:, None], whole.mean, moments.mean.reshape(-1, m))
    scatter = np.where(few[:, None, None], whole.scatter, moments.scatter.reshape(-1, m, m))
    weight = np.where(few, float(whole.weight), moments.weight.ravel())
    scale = np.sqrt(np.diag(whole.scatter)[: m - 1])
    scale = np.where(scale > 0, scale, 1.0)
    s_pp = scatter[:, :-1, :-1] / scale[:, None] / scale
    s_pv = scatter[:, :-1, -1] / scale
    coefficients = np.einsum("qij,qj->qi", np.linalg.pinv(s_pp, rcond=1e-12, hermitian=True), s_pv)
    left = scatter[:, -1, -1] - np.einsum("qi,qi->q", coefficients, s_pv)
    coefficients = coefficients / scale
    total = max(float(whole.weight), 1e-300)
    spread = float(whole.scatter[-1, -1]) / total
    floor = _LEAST_VARIANCE * spread if spread > 0 else _LEAST_VARIANCE
    variance = np.maximum(left / np.maximum(weight, 1e-300), floor)
    intercept = mean[:, -1] - np.einsum("qi,qi->q", coefficients, mean[:, :-1])
    return intercept.reshape(shape), coefficients.reshape(*shape, m - 1), variance.reshape(shape)
