"""At most k parents per column: Sahami's k-dependence classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from posteriori.densities.capabilities import BaseDensity
from posteriori.densities.conditional import BackOff, Family, draw, without_missing
from posteriori.densities.families import CountsOfFamilies, FamilyTables, Parents, check_parents, lost_cells
from posteriori.densities.spanning_tree import (
    as_compared,
    contents_of,
    dependence_of_categories,
    information_about_component,
    order_of_columns,
)
from posteriori.statistics.counts import CountTogether, JointCounts
from posteriori.support.checks import check_equal, check_not_negative
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import CellKind

MOST_CELLS = 1 << 20  # the limit on the tables that eliminate the missing columns of one row, over all components


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

    Notes
    -----
    Missing columns are summed out exactly, by variable elimination per row. A missing column without a present
    descendant sums to 1. A column that had no category in training has no values to sum over: its children are
    conditioned on their other parents.

    The tables of a row may have 2²⁰ cells in total over all components. Beyond this limit the lower-order
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
    name = "k-dependence"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    second_pass = ""
    fitted = FamilyTables

    def check(self) -> None:
        """Raise ValueError if k is negative or the parents form no acyclic graph."""
        check_not_negative("k", self.k)
        if self.parents is not None:
            check_parents(self.parents, len(self.parents), self.order)

    def check_fitted(self, parameters: FamilyTables) -> None:
        """Raise ValueError unless the tables have the parents of the density."""
        check_equal("the parents of the tables", parameters.parents, self.parents)
        check_equal("the order of the tables", parameters.order, self.order)
        self.smoothing.check_columns(len(parameters.parents))

    @property
    def sufficient_statistics(self) -> CountTogether:
        """The counts of all pairs of columns until the parents are known, then of each column with its parents."""
        return CountTogether(None if self.parents is None else _scopes(self.parents))

    def carry_over_structure(self, earlier: KDependence) -> KDependence:
        """Return the earlier density with its parents, if the two are otherwise equal."""
        return earlier if replace(earlier, parents=self.parents) == self else self

    def refine(self, statistics: JointCounts, look: Callable[[Any], Any]) -> tuple[KDependence, JointCounts]:
        """Return the density with its parents selected, and the counts of each column with its parents.

        For k ≤ 1 the counts of pairs contain these counts; for k > 1 they require a second pass over the rows.
        """
        if self.parents is not None:
            return self, statistics
        parents, order = choose_parents(statistics, self.k)
        refined, scopes = replace(self, parents=parents, order=order), _scopes(parents)
        if self.k <= 1:
            return refined, _among_pairs(statistics, scopes)
        return refined, look(CountTogether(scopes))

    def estimate(self, statistics: JointCounts) -> FamilyTables:
        """Return the smoothed tables."""
        if self.parents is None:
            raise ValueError("the parents are not known yet; call `refine` on the density first")
        tables = [
            self.smoothing.log_conditional(statistics.table((*parents, j)), j) for j, parents in enumerate(self.parents)
        ]
        return FamilyTables.of(self.parents, tables, self.order)

    def log_density(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        return parameters.log_density(tile.values, MOST_CELLS)

    def log_factors(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return log p(x_j | the present ones of the columns before it, z) in nats, (n, Z, d), 0 where x_j is missing.

        This is log p(x_j | parents, z) if the parents are present.
        """
        codes = tile.values
        factors = parameters.log_factors(codes)
        summed = _SummedCells.of(parameters, codes)
        if len(summed.rows):
            summed.write(factors, parameters.sum_out(codes, summed.rows, summed.upto, MOST_CELLS))
        return factors

    def approximated(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return which columns are not summed out exactly in some row of a tile, (d,)."""
        return parameters.dropped(tile.values, MOST_CELLS)

    def left_out(self, parameters: FamilyTables, statistics: JointCounts, tile: Codes, assignment: Assignment) -> Array:
        """Return `log_factors` of each row under the tables without it, (n, Z, d), with the same parents.

        NaN for a row in which a missing parent cannot be distinguished from a category that occurs in no other row.
        """
        assert self.parents is not None
        tables = [statistics.table(scope) for scope in _scopes(self.parents)]
        known = CountsOfFamilies.of(self.parents, tables, self.order)
        factors = known.left_out(self.smoothing, tile, assignment)
        summed = _SummedCells.of(parameters, tile.values)
        sums = known.sums_left_out(self.smoothing, tile, assignment, summed.rows, summed.upto, MOST_CELLS)
        summed.write(factors, sums)
        factors[lost_cells(parameters.inner, statistics, tile, assignment)] = np.nan
        return factors

    @property
    def most_parents(self) -> int:
        """The most parents that a column may have."""
        return self.k

    def counted_families(self, parameters: FamilyTables, statistics: JointCounts) -> Iterator[Family]:
        """Return the counts of each column with its parents."""
        for j, parents in enumerate(parameters.parents):
            yield Family(j, statistics.table((*parents, j)), range(statistics.n_components))

    def given(self, parameters: FamilyTables) -> Parents:
        """Return, for each column, the indices of its parents."""
        return parameters.parents

    def sample(self, parameters: FamilyTables, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d), parents before children (ancestral sampling)."""
        codes = np.zeros((len(component), len(parameters.parents)), np.uint32)
        for j in parameters.families.order.tolist():
            given = tuple(codes[:, i] for i in parameters.parents[j])
            codes[:, j] = draw(parameters.table(j)[(component, *given)][:, 1:], rng)
        return codes

    def n_parameters(self, parameters: FamilyTables) -> int:
        """Return Z·Σ_j (K_j − 1)·Π_{i in parents} K_i."""
        return parameters.n_parameters

    def conditional_tables(self, parameters: FamilyTables) -> list[tuple[tuple[int, ...], Array]]:
        """Return the parents of each column and log p(x_j | z, parents)."""
        return [(of_j, without_missing(parameters.table(j))) for j, of_j in enumerate(parameters.parents)]


def choose_parents(statistics: JointCounts, k: int) -> tuple[Parents, tuple[int, ...]]:
    """Return up to k parents of each column, the most important first, and the order of the columns."""
    singles = statistics.singles
    shared = as_compared(dependence_of_categories(statistics).shared().information[0])
    order = order_of_columns(information_about_component(singles), shared, contents_of(singles))
    parents: list[tuple[int, ...]] = [()] * len(order)
    for rank, j in enumerate(order.tolist()):
        before = order[:rank]
        best = before[np.argsort(-shared[j, before], kind="stable")[:k]]
        parents[j] = tuple(best.tolist())
    return tuple(parents), tuple(order.tolist())


@dataclass(frozen=True)
class _SummedCells:
    """The present cells with a missing parent: their factors are differences of log sums.

    Attributes
    ----------
    rows, columns : ndarray (e,)
        The cells, row by row, and within a row in topological order.
    upto : ndarray (e,)
        The number of columns in that order up to and including the cell.
    """

    rows: Array
    columns: Array
    upto: Array

    @classmethod
    def of(cls, parameters: FamilyTables, codes: Array) -> _SummedCells:
        """Return the cells of these rows."""
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
