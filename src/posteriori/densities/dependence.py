"""Dependence between categories: at most k parents per column (Sahami), and averaged one-dependence (AODE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity
from posteriori.densities.conditional import ROUNDING, BackOff, Family, draw, log_of, without_missing
from posteriori.densities.families import CountsOfFamilies, FamilyTables, Parents, check_parents, check_rank
from posteriori.densities.refinement import FurtherPass, Refined, Refinement
from posteriori.statistics.counts import CountTogether, JointCounts, slot_offsets
from posteriori.statistics.pairs import (
    as_compared,
    contents_of,
    dependence_of_categories,
    information_about_component,
    order_of_columns,
)
from posteriori.support.checks import check_equal, check_not_negative, require
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import CellKind, Column

_MOST_LEARNED = 1 << 17  # cells of the tables that pseudo-rows are learned from
MOST_CELLS = 1 << 17  # the limit on the tables that eliminate the missing columns of one row, over all components


@dataclass(frozen=True)
class SmoothedFamilies:
    """p(x_j | x_parents(j), z) of every column: a function of counts, which model files hold."""

    parents: tuple[tuple[int, ...], ...]  # the parents of each column, the most important first
    order: tuple[int, ...]  # the columns, parents before their children
    smoothing: BackOff
    counts: JointCounts  # of each column with its parents

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """K of each column."""
        return self.counts.cardinalities

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without what follows from them

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        check_parents(self.parents, len(columns), self.order)
        self.smoothing.check_columns(len(columns))
        CountTogether(_scopes(self.parents)).check_against(self.counts, columns, n_components)
        self.tables.check_against(columns, n_components)

    @cached_property
    def tables(self) -> FamilyTables:
        """The smoothed tables."""
        log_conditional, counts = self.smoothing.log_conditional, self.counts
        tables = [log_conditional(counts.table(scope), scope[-1]) for scope in _scopes(self.parents)]
        return FamilyTables.of(self.parents, tables, self.order)


@dataclass(frozen=True)
class KDependence(BaseDensity):
    r"""p(x | z) = Π_j p(x_j | x_{parents(j)}, z), with at most k parents per column.

    Columns are ordered by their mutual information with the component, I(x_j; z). The parents of a column are the k
    earlier columns with the largest I(x_i; x_j | z). With k = 0 it is naive Bayes.

    Parameters
    ----------
    k : int
        Parents per column, ≥ 0.
    smoothing : BackOff
    parents : tuple of tuple of int, optional
        The parents of each column, the most important first. None until `refine` has selected them.
    order : tuple of int
        The columns in the order of the chain rule, parents before their children; empty without parents.
    rank : tuple of int
        The place of each column in the order of their names, by which the last ties are broken; empty for their own
        order.

    Notes
    -----
    Missing columns are summed out exactly: by variable elimination, or, for all factors of a row at once, by sums along
    the chain rule where these have fewer cells. A missing column without a present
    descendant sums to 1. A column that had no category in training has no values to sum over: its children are
    conditioned on their other parents.

    The tables of a row may have 2¹⁷ cells in total over all components. Beyond this limit the lower-order
    approximation applies: the missing column with the largest table is dropped, and its children are conditioned on
    their other parents, p(x_j | other parents, z). This repeats until the rest fits. `approximated` returns which
    columns are dropped, and a model warns about them.

    Factors follow the chain rule in the order in which parents were chosen: each column is conditioned on the present
    columns before it. The factor is p(x_j | parents, z) if the parents are present, and otherwise a quotient of two
    sums over the missing ancestors. The factors of a row always add up to log p(x | z).

    References
    ----------
    Sahami, Learning limited dependence Bayesian classifiers, KDD 1996. Zhang & Poole, Exploiting causal independence in
    Bayesian network inference, JAIR 5 (1996), section 3 (variable elimination). Kjærulff, Triangulation of graphs:
    algorithms giving small total state space, Aalborg R-90-09 (the order: the smallest table first).
    """

    k: int
    smoothing: BackOff
    parents: Parents | None = None
    order: tuple[int, ...] = field(default=(), compare=False)  # densities of the same parents have the same sums
    rank: tuple[int, ...] = ()
    name = "k-dependence"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    second_pass = ""
    chosen_once = "the parents of the columns"
    fitted = SmoothedFamilies

    def check(self) -> None:
        """Raise ValueError if k is negative or the parents form no acyclic graph."""
        check_not_negative("k", self.k)
        if self.parents is not None:
            check_parents(self.parents, len(self.parents), self.order)

    def check_fitted(self, parameters: SmoothedFamilies) -> None:
        """Raise ValueError unless the tables have the parents of the density."""
        check_equal("the parents of the tables", parameters.parents, self.parents)
        check_equal("the order of the tables", parameters.order, self.order)
        check_equal("the smoothing of the tables", parameters.smoothing, self.smoothing)
        check_rank(self.rank, len(parameters.parents))

    @property
    def sufficient_statistics(self) -> CountTogether:
        """The counts of all pairs of columns until the parents are known, then of each column with its parents."""
        return CountTogether(None if self.parents is None else _scopes(self.parents))

    def carry_over_structure(self, earlier: KDependence) -> KDependence:
        """Return the earlier density with its parents, if the two are otherwise equal."""
        return earlier if replace(earlier, parents=self.parents) == self else self

    def refine(self, statistics: JointCounts) -> Refinement:
        """Return the density with its parents selected, and the counts of each column with its parents.

        For k ≤ 1 the counts of pairs contain these counts; for k > 1 they require a second pass over the rows.
        """
        if self.parents is not None:
            return Refined(self, statistics)
        parents, order = choose_parents(statistics, self.k, self.rank)
        refined, scopes = replace(self, parents=parents, order=order), _scopes(parents)
        if self.k <= 1:
            return Refined(refined, _among_pairs(statistics, scopes))
        return FurtherPass(CountTogether(scopes), partial(Refined, refined))

    def estimate(self, statistics: JointCounts) -> SmoothedFamilies:
        """Return the smoothed tables, which are made when they are first read."""
        if self.parents is None:
            raise ValueError("the parents are not known yet; call `refine` on the density first")
        return SmoothedFamilies(self.parents, self.order, self.smoothing, statistics)

    def log_density(self, parameters: SmoothedFamilies, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        return parameters.tables.log_density(tile.values, MOST_CELLS)

    def log_factors(self, parameters: SmoothedFamilies, tile: Codes) -> Array:
        """Return log p(x_j | the present ones of the columns before it, z) in nats, (n, Z, d), 0 where x_j is missing.

        This is log p(x_j | parents, z) if the parents are present.
        """
        codes = tile.values
        factors = parameters.tables.log_factors(codes)
        summed = _SummedCells.of(parameters.tables, codes)
        if len(summed.rows):
            summed.write(factors, parameters.tables.sum_out(codes, summed.rows, summed.upto, MOST_CELLS))
        return factors

    def approximated(self, parameters: SmoothedFamilies, tile: Codes) -> Array:
        """Return which columns are not summed out exactly in some row of a tile, (d,)."""
        return parameters.tables.dropped(tile.values, MOST_CELLS)

    def left_out(
        self, parameters: SmoothedFamilies, statistics: JointCounts, tile: Codes, assignment: Assignment
    ) -> Array:
        """Return `log_factors` of each row under the tables without it, (n, Z, d), with the same parents."""
        assert self.parents is not None
        tables = [statistics.table(scope) for scope in _scopes(self.parents)]
        known = CountsOfFamilies.of(self.parents, tables, self.order)
        factors = known.left_out(self.smoothing, tile, assignment)
        summed = _SummedCells.of(parameters.tables, tile.values)
        sums = known.sums_left_out(self.smoothing, tile, assignment, summed.rows, summed.upto, MOST_CELLS)
        summed.write(factors, sums)
        return factors

    def summed_columns(self, parameters: SmoothedFamilies) -> Array:
        """Return the columns that are parents."""
        return parameters.tables.inner

    @property
    def most_parents(self) -> int:
        """The most parents that a column may have."""
        return self.k

    def counted_families(self, parameters: SmoothedFamilies, statistics: JointCounts) -> Iterator[Family]:
        """Return the counts of each column with its parents."""
        for j, parents in enumerate(parameters.parents):
            yield Family(j, statistics.table((*parents, j)), range(statistics.n_components))

    def given(self, parameters: SmoothedFamilies) -> Parents:
        """Return, for each column, the indices of its parents."""
        return parameters.parents

    def sample(self, parameters: SmoothedFamilies, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d), parents before children (ancestral sampling)."""
        codes = np.zeros((len(component), len(parameters.parents)), np.uint32)
        for j in parameters.tables.families.order.tolist():
            given = tuple(codes[:, i] for i in parameters.parents[j])
            codes[:, j] = draw(parameters.tables.table(j)[(component, *given)][:, 1:], rng)
        return codes

    def n_parameters(self, parameters: SmoothedFamilies) -> int:
        """Return Z·Σ_j (K_j − 1)·Π_{i in parents} K_i."""
        return parameters.tables.n_parameters

    def conditional_tables(self, parameters: SmoothedFamilies) -> list[tuple[tuple[int, ...], Array]]:
        """Return the parents of each column and log p(x_j | z, parents)."""
        return [(of_j, without_missing(parameters.tables.table(j))) for j, of_j in enumerate(parameters.parents)]


def choose_parents(statistics: JointCounts, k: int, rank: tuple[int, ...] = ()) -> tuple[Parents, tuple[int, ...]]:
    """Return up to k parents of each column, the most important first, and the order of the columns."""
    singles = statistics.singles
    shared = as_compared(dependence_of_categories(statistics).shared().information[0])
    order = order_of_columns(information_about_component(singles), shared, contents_of(singles), rank)
    parents: list[tuple[int, ...]] = [()] * len(order)
    for place, j in enumerate(order.tolist()):
        before = order[:place]
        best = before[np.argsort(-shared[j, before], kind="stable")[:k]]
        parents[j] = tuple(best.tolist())
    return tuple(parents), tuple(order.tolist())


@dataclass(frozen=True)
class _SummedCells:
    """The present cells with a missing parent: their factors are differences of log sums."""

    # rows, columns (e,): the cells, row by row, and within a row in topological order
    rows: Array
    columns: Array
    upto: Array  # (e,): the number of columns in that order up to and including the cell

    @classmethod
    def of(cls, parameters: FamilyTables, codes: Array) -> _SummedCells:
        families, rows = parameters.families, parameters.rows_to_sum(codes)
        if not len(rows):
            return cls(rows, rows, rows)
        missing = (codes[rows] == 0) & (families.cardinalities > 0)
        parent_missing = np.logical_or.reduceat(missing[:, families.members], families.starts[:-1], axis=1)
        order = families.order
        row, position = np.nonzero((parent_missing & (codes[rows] > 0))[:, order])
        return cls(rows[row], order[position], position + 1)

    def write(self, factors: Array, sums: Array) -> None:
        """Write the factors of the cells into factors (n, Z, d): differences of successive sums (e, Z) of a row."""
        before = np.zeros_like(sums)
        same_row = self.rows[1:] == self.rows[:-1]
        before[1:][same_row] = sums[:-1][same_row]
        with np.errstate(invalid="ignore"):
            factors[self.rows, :, self.columns] = np.where(np.isneginf(before), 0.0, sums - before)


def _scopes(parents: Parents) -> Parents:
    return tuple([(*of_j, j) for j, of_j in enumerate(parents)])


def _among_pairs(statistics: JointCounts, scopes: Parents) -> JointCounts:
    """Return the counts of columns with at most one parent, taken from the counts of all pairs."""
    tables = [
        statistics.single(scope[0]) if len(scope) == 1 else statistics.pair(scope[0], scope[1]) for scope in scopes
    ]
    cells = np.concatenate([np.ravel(table) for table in tables])
    return JointCounts(statistics.cardinalities, scopes, statistics.n_components, cells)


@dataclass(frozen=True)
class AveragedParameters:
    """p(x_j | x_i, z) of every pair of columns that vary, which have two categories or more: a function of counts.

    Model files hold the counts, which are whole numbers for the most part and take a fraction of the space.
    """

    smoothing: BackOff
    counts: JointCounts  # of all pairs of columns

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """K of each column."""
        return self.counts.cardinalities

    @property
    def n_components(self) -> int:
        """Z."""
        return self.counts.n_components

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # without what follows from them

    def check_against(self, columns: Sequence[Column], n_components: int) -> None:
        """Raise ValueError unless the parameters fit these columns and this number of components."""
        self.smoothing.check_columns(len(columns))
        CountTogether().check_against(self.counts, columns, n_components)
        require(bool((self.by_pair <= ROUNDING).all()), "the counts of pairs have no probabilities")

    @cached_property
    def varying(self) -> list[int]:
        """The columns with two categories or more. The others have the factor 1 in every component."""
        return _varying(self.cardinalities)

    @cached_property
    def starts(self) -> Array:
        """The first slot of each column that varies, (d,)."""
        return slot_offsets([self.cardinalities[j] for j in self.varying])[:-1]

    @cached_property
    def by_pair(self) -> Array:
        """The log-probabilities in nats, (Σ (K + 1), Σ (K + 1), Z); the sums are over the columns that vary.

        There is one line for each code of each parent i; in it the codes of all children j are side by side. Where
        i = j it holds log p(x_i | z). For code 0 of the parent it is log p(x_j | z), for code 0 of a child 0.
        """
        smoothing, counts, columns = self.smoothing, self.counts, self.varying
        if not columns:
            return np.empty((0, 0, self.n_components))
        kept, starts = set(columns), self.starts
        of_pairs = [kept.issuperset(scope) for scope in counts.scopes]
        log_single = np.concatenate([smoothing.log_conditional(counts.single(j), j) for j in columns], axis=1).T
        table = np.ones((len(log_single), len(log_single), self.n_components))
        kernels.averaged_tables(
            counts.cells,
            counts.offsets[: len(of_pairs)][np.array(of_pairs, np.bool_)],
            np.asarray([self.cardinalities[j] + 1 for j in columns], np.int64),
            starts,
            np.exp(log_single, order="C"),
            np.array([smoothing.pseudo_rows(j, 1)[1] for j in columns]),
            float(smoothing.alpha),
            smoothing.strength is not None,
            table,
        )
        table[:, starts] = 1.0
        log_of(table)
        for i in range(len(columns)):
            slots = self._slots(i)
            table[slots, slots] = log_single[slots]
            table[slots.start] = log_single
        return table

    @property
    def log_probability(self) -> Array:
        """The same with the component between parent and child, (Σ (K + 1), Z, Σ (K + 1))."""
        return self.by_pair.swapaxes(1, 2)

    def single(self, j: int) -> Array:
        """Return log p(x_j | z) of the jth column that varies, (Z, K_j + 1)."""
        return self.log_probability[self.starts[j], :, self._slots(j)]

    def pair(self, i: int, j: int) -> Array:
        """Return log p(x_j | x_i, z) of the ith and the jth column that vary, i ≠ j, (K_i + 1, Z, K_j + 1)."""
        return self.log_probability[self._slots(i), :, self._slots(j)]

    def _slots(self, j: int) -> slice:
        start = int(self.starts[j])
        return slice(start, start + self.cardinalities[self.varying[j]] + 1)


@dataclass(frozen=True)
class AveragedOneDependence(BaseDensity):
    r"""p(x | z) = 1/d · Σ_i p(x_i | z)·Π_{j≠i} p(x_j | x_i, z): the mean of d trees.

    In each tree one column is the parent of all others. A column with fewer than two categories is no parent: given a
    constant, the others are independent, so its tree would be one more vote for naive Bayes. d counts the columns that
    vary.

    No structure is selected, so the variance between samples is low.

    Parameters
    ----------
    smoothing : BackOff

    Notes
    -----
    Missing columns are summed out exactly. A missing child is omitted from the product. A missing parent x_i is summed
    over, Σ_a p(x_i = a | z)·Π_j p(x_j | x_i = a, z).

    Cost: O(n·d²), in training and in prediction; in prediction a missing column costs a factor of its number of values.

    References
    ----------
    Webb, Boughton & Wang, Not so naive Bayes: aggregating one-dependence estimators, Machine Learning 58 (2005).
    """

    smoothing: BackOff
    name = "averaged one-dependence"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    fitted = AveragedParameters

    def check_fitted(self, parameters: AveragedParameters) -> None:
        """Raise ValueError unless the parameters have the smoothing of the density."""
        check_equal("the smoothing of the tables", parameters.smoothing, self.smoothing)

    @property
    def sufficient_statistics(self) -> CountTogether:
        """The counts of all pairs of columns."""
        return CountTogether()

    def estimate(self, statistics: JointCounts) -> AveragedParameters:
        """Return the smoothed tables of every ordered pair, which are made when they are first read."""
        return AveragedParameters(self.smoothing, statistics)

    def log_density(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        out = np.zeros((len(tile.values), parameters.n_components))
        if parameters.varying:
            codes = _of_columns(tile.values, parameters.varying)
            kernels.add_averaged(codes, parameters.starts, parameters.by_pair, out)
        return out

    def log_factors(self, parameters: AveragedParameters, tile: Codes) -> Array:
        """Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d): the chain rule in the order of the columns.

        Missing columns are summed out of the condition, and their own factor is 0.
        """
        codes = _of_columns(tile.values, parameters.varying)
        n_components = parameters.n_components
        varying = np.empty((len(codes), n_components, codes.shape[1]))
        if parameters.varying:
            kernels.chain_averaged(codes, parameters.starts, parameters.by_pair, varying)
        factors = np.zeros((len(codes), n_components, tile.values.shape[1]))
        factors[:, :, parameters.varying] = varying
        return factors

    most_parents: ClassVar[int] = 1

    def counted_families(self, parameters: AveragedParameters, statistics: JointCounts) -> Iterator[Family]:
        """Return the counts of each column alone, and with each other column as its parent.

        If these tables have more than 2¹⁷ cells, only every second, third, … column is a parent.
        """
        columns, components = parameters.varying, range(statistics.n_components)
        cells = len(components) * len(parameters.by_pair) ** 2
        for j in columns:
            yield Family(j, statistics.single(j), components)
            for i in columns[:: -(-cells // _MOST_LEARNED)]:
                if i != j:
                    yield Family(j, statistics.pair(i, j), components)

    def left_out_density(
        self, statistics: JointCounts, tile: Codes, assignment: Assignment
    ) -> Callable[[BackOff], Array]:
        """Return the function from a smoothing to log p(x | z) in nats, (n, Z), of rows under the tables without them.

        Cost: O(n·d²·Z) each, and the memory of the parameters.
        """
        columns, n_components = _varying(statistics.cardinalities), statistics.n_components
        starts = slot_offsets([statistics.cardinalities[j] for j in columns])
        codes = _of_columns(tile.values, columns)
        singles, pairs = np.zeros((starts[-1], n_components)), np.zeros((starts[-1], starts[-1], n_components))
        slots = {j: slice(first, last) for j, first, last in zip(columns, starts[:-1], starts[1:], strict=True)}
        for j in columns:
            singles[slots[j]] = _with_totals(statistics.single(j)).T
            for i in columns:
                if i != j:
                    pairs[slots[i], slots[j]] = _with_totals(statistics.pair(i, j)).transpose(1, 2, 0)

        def log_density(smoothing: BackOff) -> Array:
            pseudo_rows = np.array([smoothing.pseudo_rows(j, 1) for j in columns]).reshape(-1, 2)
            out = np.zeros((len(codes), n_components))
            if not columns:
                return out
            kernels.averaged_left_out(
                codes,
                assignment.component,
                assignment.weight,
                pairs,
                singles,
                starts,
                pseudo_rows,
                float(smoothing.alpha),
                out,
            )
            return out

        return log_density

    def given(self, parameters: AveragedParameters) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of the columns before it."""
        return tuple(tuple(range(j)) for j in range(len(parameters.cardinalities)))

    def sample(self, parameters: AveragedParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d): first a uniform parent, then its value, then the other columns given it."""
        d = len(parameters.varying)
        drawn = np.array([min(k, 1) for k in parameters.cardinalities], np.uint32)
        drawn = np.tile(drawn, (len(component), 1))
        if not d:
            return drawn
        codes = np.zeros((len(component), d), np.uint32)
        parent = rng.integers(0, d, len(component))
        for i in range(d):
            rows = np.flatnonzero(parent == i)
            z = component[rows]
            codes[rows, i] = draw(parameters.single(i)[z, 1:], rng)
            for j in range(d):
                if j != i:
                    codes[rows, j] = draw(parameters.pair(i, j)[codes[rows, i], z, 1:], rng)
        drawn[:, parameters.varying] = codes
        return drawn

    def n_parameters(self, parameters: AveragedParameters) -> int:
        """Return Z·(Σ_i (K_i − 1) + Σ_{i≠j} K_i·(K_j − 1)): the parameters of all d trees."""
        cardinalities = np.array([parameters.cardinalities[j] for j in parameters.varying], np.int64)
        free = cardinalities - 1
        pairs = np.outer(cardinalities, free).sum() - (cardinalities * free).sum()
        return int(parameters.n_components * (free.sum() + pairs))


def _varying(cardinalities: Sequence[int]) -> list[int]:
    return [j for j, k in enumerate(cardinalities) if k > 1]


def _of_columns(codes: Array, columns: list[int]) -> Array:
    """Return the codes of some columns; the same array if these are all."""
    return codes if len(columns) == codes.shape[1] else np.ascontiguousarray(codes[:, columns])


def _with_totals(counts: Array) -> Array:
    """Return weights (Z, …, K + 1) with the sum over the present codes of the child in place of code 0."""
    totals = counts.copy()
    totals[..., 0] = counts[..., 1:].sum(axis=-1)
    return totals
