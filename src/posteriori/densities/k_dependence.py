"""A few parents a column: Sahami's k-dependence classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.conditional import BackOff, CountsOfFamilies, FamilyTables, Parents, check_parents, draw
from posteriori.densities.spanning_tree import dependence_of_categories
from posteriori.invariants import check_equal, check_not_negative
from posteriori.statistics.counts import Counts
from posteriori.statistics.joint_counts import CountTogether, JointCounts
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.schema import View
from posteriori.typing import Array


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
    Where a parent is missing the column is taken given the others alone, p(x_j | other parents, z): exact if the
    missing column has no other part in the row, and else an approximation.

    References
    ----------
    Sahami, Learning limited dependence Bayesian classifiers, KDD 1996.
    """

    k: int
    smoothing: BackOff
    parents: Parents | None = None
    name = "k-dependence"
    kind: ClassVar[View] = "categorical"
    support = "a category"
    unbounded = True
    second_look = ""
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
    def needs(self) -> CountTogether:
        """All pairs of columns until the parents are known, and then each column with its parents."""
        return CountTogether(None if self.parents is None else _scopes(self.parents))

    def resumed(self, earlier: KDependence) -> KDependence:
        """Return the density with the parents it had, if it is otherwise the same."""
        return earlier if replace(earlier, parents=self.parents) == self else self

    def settle(self, statistics: JointCounts, look: Callable[[Any], Any]) -> tuple[KDependence, JointCounts]:
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

    def outside(self, tile: Codes) -> Array:
        """Return which cells the density cannot produce: none, a stranger having become a missing cell."""
        return np.zeros(tile.values.shape, np.bool_)

    def estimate(self, statistics: JointCounts) -> FamilyTables:
        """Return the smoothed tables."""
        if self.parents is None:
            raise ValueError("the parents take a second look at the rows; `settle` the density first")
        tables = [
            self.smoothing.log_conditional(statistics.table((*parents, j))) for j, parents in enumerate(self.parents)
        ]
        return FamilyTables.of(self.parents, tables)

    def log_density(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        out = np.zeros((len(tile.values), parameters.log_probability.shape[1]))
        kernels.add_families(tile.values, *parameters.layout, parameters.offsets, parameters.log_probability, out)
        return out

    def log_factors(self, parameters: FamilyTables, tile: Codes) -> Array:
        """Return log p(x_j | parents, z) in nats, (n, Z, d), 0 where x_j is missing."""
        members, starts, strides = parameters.layout
        cells = tile.values[:, members].astype(np.int64) * strides
        slots = np.add.reduceat(cells, starts[:-1], axis=1) + parameters.offsets
        return parameters.log_probability[slots].swapaxes(1, 2)

    def left_out(self, parameters: FamilyTables, statistics: JointCounts, tile: Codes, assignment: Assignment) -> Array:
        """Return log p(x_j | parents, z) in nats, (n, Z, d), of each row by the tables without it; the parents stay."""
        del parameters
        assert self.parents is not None
        tables = [statistics.table(scope) for scope in _scopes(self.parents)]
        return CountsOfFamilies.of(self.parents, tables).left_out(self.smoothing, tile, assignment)

    def keeping(self, parameters: FamilyTables) -> KDependence:
        """Return the density itself, whose parents are known."""
        del parameters
        return self

    def given(self, parameters: FamilyTables) -> Parents:
        """Return, for each column, the places of its parents."""
        return parameters.parents

    def sample(self, parameters: FamilyTables, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d), parents before their children."""
        codes = np.zeros((len(component), len(parameters.parents)), np.uint16)
        for j in parents_before_children(parameters.parents):
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


def parents_before_children(parents: Parents) -> list[int]:
    """Return the columns in an order in which parents come first."""
    order: list[int] = []
    waiting = list(range(len(parents)))
    while waiting:
        ready = [j for j in waiting if all(parent in order for parent in parents[j])]
        order += ready
        waiting = [j for j in waiting if j not in ready]
    return order


def _scopes(parents: Parents) -> Parents:
    return tuple((*of_j, j) for j, of_j in enumerate(parents))


def _among_pairs(statistics: JointCounts, scopes: Parents) -> JointCounts:
    """Return the counts of columns with one parent or none, out of those of all pairs."""
    tables = [
        statistics.single(scope[0]) if len(scope) == 1 else statistics.pair(scope[0], scope[1]) for scope in scopes
    ]
    cells = np.concatenate([np.ravel(table) for table in tables])
    return JointCounts(statistics.cardinalities, scopes, statistics.n_components, cells)
