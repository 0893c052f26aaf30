"""The tables of a given graph from cases: by counting, and by EM where cells are missing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from posteriori.learning.em import EMOptions
from posteriori.networks.cases import open_cases
from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG
from posteriori.networks.junction_tree import Factor, compile_tree
from posteriori.networks.naming import States, require_variable, state_by_state
from posteriori.networks.scores import require_sample_size
from posteriori.statistics.distinct_rows import DistinctRows
from posteriori.statistics.joint_counts import CountTogether, JointCounts, Scope
from posteriori.tables import Assignment, Codes, Column
from posteriori.typing import Array

_AT_A_TIME = 1 << 16  # incomplete rows, which the tree reads as 8-byte numbers


@dataclass(frozen=True)
class FamilyCounts:
    """What the tables of a graph are learned from: counts of the complete rows, and the incomplete rows themselves.

    Evidence only: smoothing and expectations never enter it, so that the sum of two is that of one pass over both.

    Attributes
    ----------
    columns : tuple of Column (V,)
        The states of each variable.
    complete : JointCounts
        Of each family, its parents and then itself, over the rows in which no cell is missing.
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
        """Return the same evidence, every incomplete row once."""
        return replace(self, incomplete=self.incomplete.merged())

    def with_columns(self, columns: tuple[Column, ...]) -> FamilyCounts:
        """Return the same evidence about variables with more states."""
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
        """Each variable's parents and then itself, by their places."""
        return self.complete.scopes

    @cached_property
    def counts(self) -> list[Array]:
        """The weight of each family's configurations in the complete rows, (K of each parent…, K)."""
        return _present(self.complete)

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.counts[0].sum() + self.incomplete.weight.sum())


@dataclass(frozen=True)
class CountFamilies:
    """What to count for a graph.

    Attributes
    ----------
    columns : tuple of Column (V,)
    scopes : tuple of tuple of int (V,)
        Each variable's parents and then itself, by their places.
    """

    columns: tuple[Column, ...]
    scopes: tuple[Scope, ...]

    def of(self, tile: Codes, assignment: Assignment) -> FamilyCounts:
        """Return the evidence of the rows of a tile."""
        count = CountTogether(self.scopes)
        if tile.values.min():  # much sooner found than which rows have gaps
            return FamilyCounts(self.columns, count.of(tile, assignment), DistinctRows(tile.cardinalities))
        missing = ~tile.values.all(axis=1)
        complete = replace(assignment, weight=np.where(missing, 0.0, assignment.weight))
        incomplete = replace(assignment, weight=np.where(missing, assignment.weight, 0.0))
        return FamilyCounts(self.columns, count.of(tile, complete), DistinctRows.of(tile, incomplete))


@dataclass(frozen=True)
class Smoothing:
    r"""A Dirichlet prior of each row of a table, in pseudo-counts.

    .. math:: p(x_v = k \mid a) = \frac{n_{ak} + \alpha_{ak}}{\sum_k (n_{ak} + \alpha_{ak})}

    Attributes
    ----------
    alpha : float, or mapping from str to float or array
        A cell; by variable, 1 for those left out; an array has the shape of the table.
    equivalent_sample_size : float, optional
        s in place of alpha: s / (K · configurations of the parents) a cell (BDeu).

    References
    ----------
    Heckerman, Geiger & Chickering (1995), Learning Bayesian networks: the combination of knowledge and statistical
    data, Machine Learning 20, sections 5 and 8.
    """

    alpha: Any = 1.0
    equivalent_sample_size: float | None = None

    @classmethod
    def of(cls, alpha: Any, equivalent_sample_size: float | None, names: Iterable[str]) -> Smoothing:
        """Return the smoothing that a user states by one of the two; 1 a cell if neither is stated."""
        if alpha is not None and equivalent_sample_size is not None:
            raise ValueError("alpha and equivalent_sample_size are two ways to smooth; state one of them")
        if equivalent_sample_size is not None:
            require_sample_size(equivalent_sample_size)
        if isinstance(alpha, Mapping):
            known = tuple(names)
            for name in alpha:
                require_variable(name, known)
        return cls(1.0 if alpha is None else alpha, equivalent_sample_size)

    def pseudo_counts(self, variable: str, shape: tuple[int, ...]) -> Array:
        """Return the pseudo-counts of a table, (K of each parent…, K)."""
        if self.equivalent_sample_size is not None:
            return np.full(shape, self.equivalent_sample_size / math.prod(shape))
        stated = self.alpha.get(variable, 1.0) if isinstance(self.alpha, Mapping) else self.alpha
        try:
            alpha = np.asarray(stated, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"alpha of {variable!r} is {stated!r}; give a number, or one for each cell") from None
        if alpha.shape not in ((), shape):
            raise ValueError(
                f"alpha of {variable!r} has shape {alpha.shape}; give one number, or one for each cell of its table, "
                f"which has shape {shape}"
            )
        if not (np.isfinite(alpha) & (alpha >= 0)).all():
            raise ValueError(f"alpha of {variable!r} is {stated!r}; pseudo-counts are finite and at least 0")
        return np.broadcast_to(alpha, shape)


@dataclass(frozen=True)
class Fitted:
    """The tables of a graph, and how EM came to them.

    Attributes
    ----------
    cpts : tuple of CPT (V,)
    trace : tuple of float
        The log-likelihood in nats of the known cells before each step of EM; empty where no cell is missing.
    """

    cpts: tuple[CPT, ...]
    trace: tuple[float, ...] = ()


def family_scopes(dag: DAG) -> tuple[Scope, ...]:
    """Return each variable's parents and then itself, by their places in the graph."""
    position = {name: v for v, name in enumerate(dag.nodes)}
    return tuple((*(position[parent] for parent in dag.parents[name]), v) for v, name in enumerate(dag.nodes))


def count_cases(
    dag: DAG, table: Any, states: Mapping[str, States], sample_weight: Any = None, n_jobs: int | None = None
) -> FamilyCounts:
    """Return the evidence of a table about the tables of a graph, in one pass; see `open_cases`."""
    cases = open_cases(table, dag.nodes, states, sample_weight, n_jobs)
    evidence: FamilyCounts = cases.reduce(CountFamilies(cases.columns, family_scopes(dag)))
    return evidence.merged()


def joined(past: FamilyCounts, evidence: FamilyCounts) -> FamilyCounts:
    """Return the evidence of both, with the states that either has seen."""
    columns = tuple(old.extended(new) for old, new in zip(past.columns, evidence.columns, strict=True))
    return (past.with_columns(columns) + evidence.with_columns(columns)).merged()


def fit_tables(
    evidence: FamilyCounts,
    smoothing: Smoothing,
    limits: EMOptions,
    rng: np.random.Generator,
    max_table_size: int = 2**27,
    n_jobs: int | None = None,
) -> Fitted:
    """Return the tables that the evidence gives: in closed form, or by EM where cells are missing.

    Parameters
    ----------
    evidence : FamilyCounts
    smoothing : Smoothing
    limits : EMOptions
        Of EM.
    rng : Generator
        Of where EM starts for families of which no row shows all.
    max_table_size : int
        The most cells of the junction tree that EM needs.
    n_jobs : int, optional
    """
    shapes = [counts.shape for counts in evidence.counts]
    pseudo = [
        smoothing.pseudo_counts(column.name, shape) for column, shape in zip(evidence.columns, shapes, strict=True)
    ]
    if not len(evidence.incomplete.weight):
        return Fitted(_tables(evidence, [n + a for n, a in zip(evidence.counts, pseudo, strict=True)]))
    counts, trace = _expectation_maximisation(evidence, pseudo, limits, rng, max_table_size, n_jobs)
    return Fitted(_tables(evidence, counts), trace)


def _expectation_maximisation(
    evidence: FamilyCounts,
    pseudo: list[Array],
    limits: EMOptions,
    rng: np.random.Generator,
    max_table_size: int,
    n_jobs: int | None,
) -> tuple[list[Array], tuple[float, ...]]:
    """Return the expected counts, smoothed, and the log-likelihood before each step.

    Each step raises log p(known cells) + Σ alpha·log p, the log-likelihood itself where alpha is 0.

    References
    ----------
    Lauritzen (1995), The EM algorithm for graphical association models with missing data, Computational Statistics &
    Data Analysis 19.
    """
    probabilities = _start(evidence, pseudo, rng)
    tree = compile_tree(evidence.cardinalities, _factors(evidence, probabilities), max_table_size=max_table_size)
    tolerance = limits.tolerance * evidence.weight
    trace: list[float] = []
    before = -math.inf
    for _ in range(limits.max_steps):
        counts, log_likelihood = _expected(tree, evidence, n_jobs)
        log_likelihood += _weighted_log(evidence.counts, probabilities)
        objective = log_likelihood + _weighted_log(pseudo, probabilities)
        trace.append(log_likelihood)
        counts = [n + m + a for n, m, a in zip(evidence.counts, counts, pseudo, strict=True)]
        gain, before = objective - before, objective
        if gain <= tolerance:
            break
        probabilities = [_normalised(table) for table in counts]
        tree = tree.with_factors(_factors(evidence, probabilities))
    else:
        warnings.warn(
            f"EM stopped after {limits.max_steps} steps with a last gain of {gain:.3g} nats; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=5,
        )
    return counts, tuple(trace)


def _expected(tree: Any, evidence: FamilyCounts, n_jobs: int | None) -> tuple[list[Array], float]:
    """Return the expected counts of the incomplete rows, and the log-likelihood of their known cells."""
    codes, weight = evidence.incomplete.codes.values, evidence.incomplete.weight
    total = [np.zeros(counts.shape) for counts in evidence.counts]
    log_likelihood = 0.0
    for start in range(0, len(codes), _AT_A_TIME):
        rows = slice(start, start + _AT_A_TIME)
        part, gained = tree.expected_counts(
            codes[rows].astype(np.int64) - 1, weight[rows], evidence.scopes, n_jobs=n_jobs
        )
        log_likelihood += gained
        for whole, counts in zip(total, part, strict=True):
            whole += counts
    return total, log_likelihood


def _start(evidence: FamilyCounts, pseudo: list[Array], rng: np.random.Generator) -> list[Array]:
    """Return tables from the rows that show a whole family, each; drawn ones where no row does, to break symmetry."""
    rows = evidence.incomplete
    shown = _present(CountTogether(evidence.scopes).of(rows.codes, rows.assignment))
    tables = []
    for n, m, a in zip(evidence.counts, shown, pseudo, strict=True):
        counts = n + m
        if not counts.any():
            counts = rng.gamma(1.0, size=counts.shape)
        tables.append(_normalised(counts + np.where(a > 0, a, 1.0)))
    return tables


def _present(counts: JointCounts) -> list[Array]:
    """Return the counts of each scope without the missing cells."""
    return [counts.table(scope)[0][(slice(1, None),) * len(scope)] for scope in counts.scopes]


def _factors(evidence: FamilyCounts, tables: Sequence[Array]) -> list[Factor]:
    return [Factor(scope, table) for scope, table in zip(evidence.scopes, tables, strict=True)]


def _weighted_log(weights: Sequence[Array], tables: Sequence[Array]) -> float:
    """Return Σ weight·log p over the cells of some weight."""
    total = 0.0
    for weight, table in zip(weights, tables, strict=True):
        counted = weight > 0
        with np.errstate(divide="ignore"):
            total += float(weight[counted] @ np.log(table[counted]))
    return total


def _normalised(counts: Array) -> Array:
    """Return the counts as shares of their row; alike where there are none."""
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, counts / total, 1.0 / counts.shape[-1])


def _tables(evidence: FamilyCounts, counts: Sequence[Array]) -> tuple[CPT, ...]:
    columns = evidence.columns
    cpts, unseen = [], []
    for column, scope, table in zip(columns, evidence.scopes, counts, strict=True):
        parents = {columns[v].name: columns[v].categories for v in scope[:-1]}
        empty = np.argwhere(~table.any(axis=-1))
        where = f" where {state_by_state(parents, empty[0])}" if len(empty) and parents else ""
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        unseen += [f"{column.name!r}{where}{more}"] if len(empty) else []
        cpts.append(CPT(column.name, column.categories, parents, _normalised(table)))
    if unseen:
        listed = "; ".join(unseen[:5]) + (f"; and of {len(unseen) - 5} other variables" if len(unseen) > 5 else "")
        warnings.warn(
            f"no row shows what decides on these rows of tables, which are left uniform: {listed}; "
            "smooth with alpha > 0 to say so",
            UserWarning,
            stacklevel=5,
        )
    return tuple(cpts)
