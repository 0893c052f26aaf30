"""A few parents a column: Sahami's k-dependence classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from posteriori.densities.conditional import BackOff, draw
from posteriori.densities.families import CountsOfFamilies, FamilyTables, Parents, check_parents, lost_cells
from posteriori.densities.spanning_tree import dependence_of_categories
from posteriori.invariants import check_equal, check_not_negative
from posteriori.statistics.counts import Counts
from posteriori.statistics.joint_counts import CountTogether, JointCounts
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import CellKind
from posteriori.typing import Array

MOST_CELLS = 1 << 20  # of the tables that the sums of one row take, in all components


@dataclass(frozen=True)
class KDependence:
    r"""p(x | z) = Π_j p(x_j | x_{parents(j)}, z), with at most k parents a column.

    Columns are taken in the order of their information about the component, I(x_j; z); the parents of one are those k
    before it that it shares most with, I(x_i; x_j | z). With k = 0 it is naive Bayes.

    Parameters
    ----------
    k : int
        Parents a column, ≥ 0.
    smoothing : BackOff
    parents : tuple of tuple of int, optional
        Of each column, the most important first, once they are known: what settles the density.

    Notes
    -----
    Missing columns are summed out exactly, by variable elimination within each row. A missing column without a present
    descendant sums to 1. A column that had no category in training has no values to sum over: its children are taken
    given their other parents.

    The tables of a row may have 2²⁰ cells in all, those of all components together. Where they would have more, the
    lower-order approximation is made: a missing column is dropped, so that its children are taken given their other
    parents, p(x_j | other parents, z), and then the next, until the rest fits. The first to go is the column whose
    table would be the largest. `approximated` returns which columns are dropped, and a model warns of them.

    Factors follow the chain rule. In the order of the parents, each column is taken given the present ones before it:
    that is p(x_j | parents, z) where its parents are present, and else the quotient of two sums, over the missing
    columns above. The factors of a row always add up to log p(x | z).

    References
    ----------
    Sahami, Learning limited dependence Bayesian classifiers, KDD 1996. Zhang & Poole, Exploiting causal independence in
    Bayesian network inference, JAIR 5 (1996), section 3 (variable elimination). Kjærulff, Triangulation of graphs:
    algorithms giving small total state space, Aalborg R-90-09 (the order: the smallest table first).
    """

    k: int
    smoothing: BackOff
    parents: Parents | None = None
    name = "k-dependence"
    kind: ClassVar[CellKind] = "categorical"
    support = "a category"
    has_full_support = True
    second_pass = ""
    fitted = FamilyTables

    def check(self) -> None:
        """Raise ValueError if k is negative, or the parents are none."""
        check_not_negative("k", self.k)
        if self.parents is not None:
            check_parents(self.parents, len(self.parents))

    def check_fitted(self, parameters: FamilyTables) -> None:
        """Raise ValueError unless the tables are of the parents of the density."""
        check_equal("the parents of the tables", parameters.parents, self.parents)

    @property
    def sufficient_statistics(self) -> CountTogether:
        """All pairs of columns until the parents are known, and then each column with its parents."""
        return CountTogether(None if self.parents is None else _scopes(self.parents))

    def carry_over_structure(self, earlier: KDependence) -> KDependence:
        """Return the density with the parents it had, if it is otherwise the same."""
        return earlier if replace(earlier, parents=self.parents) == self else self

    def refine(self, statistics: JointCounts, look: Callable[[Any], Any]) -> tuple[KDependence, JointCounts]:
        """Return the density with its parents chosen, and the counts of each column with them.

        With one parent at most these are among the counts of pairs; with more they take another look at the rows.
        """
        if self.parents is not None:
            return self, statistics
        settled = replace(self, parents=choose_parents(statistics, self.k))
        scopes = _scopes(settled.parents or ())
        if self.k <= 1:
            return settled, _among_pairs(statistics, scopes)
        return settled, look(CountTogether(scopes))

    def out_of_support(self, tile: Codes) -> Array:
        """Return which cells the density cannot produce: none, a stranger having become a missing cell."""
        return np.zeros(tile.values.shape, np.bool_)

    def estimate(self, statistics: JointCounts) -> FamilyTables:
        """Return the smoothed tables."""
        if self.parents is None:
            raise ValueError("the parents take a second look at the rows; `refine` the density first")
        tables = [
            self.smoothing.log_conditional(statistics.table((*parents, j))) for j, parents in enumerate(self.parents)
        ]
        return FamilyTables.of(self.parents, tables)

    def log_density(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells summed out."""
        return parameters.log_density(tile.values, MOST_CELLS)

    def log_factors(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return log p(x_j | the present ones of the columns before it, z) in nats, (n, Z, d), 0 where x_j is missing.

        That is log p(x_j | parents, z) wherever the parents are present.
        """
        codes = tile.values
        factors = parameters.log_factors(codes)
        summed = _Summed.of(parameters, codes)
        summed.write(factors, parameters.sum_out(codes, summed.rows, summed.upto, MOST_CELLS))
        return factors

    def approximated(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return which columns are not summed out exactly in some row of a tile, (d,)."""
        return parameters.dropped(tile.values, MOST_CELLS)

    def left_out(self, parameters: FamilyTables, statistics: JointCounts, tile: Codes, assignment: Assignment) -> Array:
        """Return what `log_factors` does of each row by the tables without it, (n, Z, d); the parents stay.

        NaN for a row of which it is not clear whether a parent is missing, or holds a category that no other row shows.
        """
        assert self.parents is not None
        tables = [statistics.table(scope) for scope in _scopes(self.parents)]
        known = CountsOfFamilies.of(self.parents, tables)
        factors = known.left_out(self.smoothing, tile, assignment)
        summed = _Summed.of(parameters, tile.values)
        sums = known.sums_left_out(self.smoothing, tile, assignment, summed.rows, summed.upto, MOST_CELLS)
        summed.write(factors, sums)
        factors[lost_cells(parameters.inner, statistics, tile, assignment)] = np.nan
        return factors

    def with_fixed_structure(self, parameters: FamilyTables) -> KDependence:
        """Return the density itself, whose parents are known."""
        del parameters
        return self

    def given(self, parameters: FamilyTables) -> Parents:
        """Return, for each column, the places of its parents."""
        return parameters.parents

    def sample(self, parameters: FamilyTables, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d), parents before their children."""
        codes = np.zeros((len(component), len(parameters.parents)), np.uint16)
        for j in parameters.families.order.tolist():
            given = tuple(codes[:, i] for i in parameters.parents[j])
            codes[:, j] = draw(parameters.table(j)[(component, *given)][:, 1:], rng)
        return codes

    def n_parameters(self, parameters: FamilyTables) -> int:
        """Return Z·Σ_j (K_j − 1)·Π_{i in parents} K_i."""
        return parameters.n_parameters


def choose_parents(statistics: JointCounts, k: int) -> Parents:
    """Return up to k parents of each column, the most important first, from the counts of all pairs."""
    relevance = information_about_component(statistics.singles())
    shared = dependence_of_categories(statistics).shared().information[0]
    order = np.argsort(-relevance, kind="stable")
    parents: list[tuple[int, ...]] = [()] * len(order)
    for rank, j in enumerate(order.tolist()):
        before = order[:rank]
        best = before[np.argsort(-shared[j, before], kind="stable")[:k]]
        parents[j] = tuple(best.tolist())
    return tuple(parents)


def information_about_component(counts: Counts) -> Array:
    """Return I(x_j; z) in nats, (d,), over the rows in which x_j is present."""
    information = np.zeros(len(counts.cardinalities))
    for j in range(len(information)):
        table = counts.column(j)
        n = table.sum()
        expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / (n if n > 0 else 1.0)
        seen = table > 0
        information[j] = (table[seen] * np.log(table[seen] / expected[seen])).sum() / (n if n > 0 else 1.0)
    return information


@dataclass(frozen=True)
class _Summed:
    """The present cells whose factors are sums, as some parent of theirs is missing.

    Attributes
    ----------
    rows, columns : ndarray (e,)
        The cells, row by row, and within a row in the order of the parents.
    upto : ndarray (e,)
        How many columns there are in that order up to a cell, itself included.
    """

    rows: Array
    columns: Array
    upto: Array

    @classmethod
    def of(cls, parameters: FamilyTables, codes: Array) -> _Summed:
        """Return those of some rows."""
        families, rows = parameters.families, parameters.rows_to_sum(codes)
        missing = (codes[rows] == 0) & (families.cardinalities > 0)
        above = np.logical_or.reduceat(missing[:, families.members], families.starts[:-1], axis=1)
        order = families.order
        row, position = np.nonzero((above & (codes[rows] > 0))[:, order])
        return cls(rows[row], order[position], position + 1)

    def write(self, factors: Array, sums: Array) -> None:
        """Write the factors of the cells to factors (n, Z, d): the differences of successive sums of a row, (e, Z)."""
        before = np.zeros_like(sums)
        again = self.rows[1:] == self.rows[:-1]
        before[1:][again] = sums[:-1][again]
        with np.errstate(invalid="ignore"):
            factors[self.rows, :, self.columns] = np.where(np.isneginf(before), 0.0, sums - before)


def _scopes(parents: Parents) -> Parents:
    return tuple((*of_j, j) for j, of_j in enumerate(parents))


def _among_pairs(statistics: JointCounts, scopes: Parents) -> JointCounts:
    """Return the counts of columns with one parent or none, out of those of all pairs."""
    tables = [
        statistics.single(scope[0]) if len(scope) == 1 else statistics.pair(scope[0], scope[1]) for scope in scopes
    ]
    cells = np.concatenate([np.ravel(table) for table in tables])
    return JointCounts(statistics.cardinalities, scopes, statistics.n_components, cells)
