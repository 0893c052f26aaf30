"""The search for a graph on rows of categories, by any of the methods."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from posteriori.draws import generator
from posteriori.networks.chow_liu import tree_parents
from posteriori.networks.ci_tests import CategoricalTests, PartialCorrelationTests, as_statistic
from posteriori.networks.constraint_based import IndependenceTests, max_min_candidates, pc_stable
from posteriori.networks.constraints import EdgeConstraints
from posteriori.networks.dag import DAG
from posteriori.networks.equivalence import PartialDAG, any_extension, consistent_extension
from posteriori.networks.hill_climbing import HillClimbResult, climb
from posteriori.networks.hybrid_scores import BGe, HybridRows, HybridScores
from posteriori.networks.learning import LearningOptions
from posteriori.networks.naming import require_variable
from posteriori.networks.scores import BIC, FamilyScores, Score, as_score
from posteriori.networks.structural_em import complete_rows, fitted
from posteriori.statistics.distinct_rows import DistinctRows
from posteriori.suggestions import closest
from posteriori.tables import Column
from posteriori.typing import Array

METHODS = ("hill_climbing", "chow_liu", "pc", "mmhc")
_MOST_STEPS = 20  # of structural EM


@dataclass(frozen=True)
class LearnedStructure:
    """A learned graph, and the progress of the search.

    Attributes
    ----------
    dag : DAG
    score : float or None
        The score of the graph in nats. With missing cells: of structural EM, the log-likelihood of the known cells
        less the penalty of the score; of other methods None.
    trace : tuple of float
        The score after every move of hill climbing, or after every step of structural EM.
    n_families : int
        The number of families that were counted.
    n_tests : int
        The number of tests of conditional independence.
    partial : PartialDAG or None
        The graph that the tests of "pc" determine; `dag` directs its other edges.
    """

    dag: DAG
    score: float | None
    trace: tuple[float, ...] = ()
    n_families: int = 0
    n_tests: int = 0
    partial: PartialDAG | None = None


@dataclass(frozen=True)
class Search:
    """A method of structure learning with its options; see `learn_network` for their meaning."""

    method: str
    score: Score | None
    constraints: EdgeConstraints
    tabu: int = 15
    restarts: int = 0
    root: str | None = None
    test: str = "g2"
    significance: float = 0.05
    max_given: int | None = None
    random_state: Any = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method is {self.method!r}; {closest(self.method, METHODS)}")
        for name, value in (("tabu", self.tabu), ("restarts", self.restarts), ("max_given", self.max_given)):
            if value is None and name == "max_given":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 0")
        if not 0 < self.significance < 1:
            raise ValueError(f"significance is {self.significance!r}; it must be between 0 and 1")
        as_statistic(self.test)
        if self.root is not None and self.method != "chow_liu":
            raise ValueError("root is given, but only a tree has one; use method='chow_liu', or leave it out")
        if self.method == "chow_liu":
            d = len(self.constraints.permitted)
            if self.constraints.required.any() or not self.constraints.permitted.sum() == d * (d - 1):
                raise ValueError("a Chow-Liu tree takes no constraints on its edges; use method='hill_climbing'")
            if self.constraints.max_parents < 1:
                raise ValueError(
                    "max_parents is 0, but every node of a tree has one parent; use method='hill_climbing'"
                )

    def run(self, columns: tuple[Column, ...], rows: DistinctRows) -> LearnedStructure:
        """Return the graph that the method finds on rows."""
        names = tuple(column.name for column in columns)
        if self.method == "chow_liu":
            return self._tree(names, rows)
        if self.method == "pc":
            return self._by_tests(names, rows)
        constraints, n_tests = self.constraints, 0
        if self.method == "mmhc":
            tests = CategoricalTests.of(rows, self.test)
            candidates = max_min_candidates(tests, self.significance, 3 if self.max_given is None else self.max_given)
            permitted = constraints.permitted & (candidates | constraints.required)
            constraints, n_tests = replace(constraints, permitted=permitted), tests.n_tests
        if (rows.codes.values == 0).any():
            return replace(self._structural_em(columns, names, rows, constraints), n_tests=n_tests)
        best, scores = self._climb(rows, constraints, None)
        return LearnedStructure(_dag(names, best.edges), best.score, best.trace, scores.n_counted, n_tests)

    def run_hybrid(self, columns: tuple[Column, ...], rows: HybridRows) -> LearnedStructure:
        """Return the graph that the method finds on rows of which columns are continuous.

        Raises
        ------
        ValueError
            A cell is missing, or the method or the score takes columns of one kind only.
        """
        names = tuple(column.name for column in columns)
        numeric = np.array([column.kind == "continuous" for column in columns])
        if rows.has_gaps:
            raise ValueError(
                "cells are missing, and a graph over measurements is learned from complete rows; drop such rows, or "
                "give the graph: BayesianNetwork(edges).fit learns its densities by EM"
            )
        score = self.score or BIC()
        is_normal = getattr(score, "is_normal", False)
        if self.method == "chow_liu" or (self.method != "hill_climbing" and not numeric.all()):
            raise ValueError(
                f"column {names[int(np.argmax(numeric))]!r} holds numbers, and method={self.method!r} takes "
                f"{'categories only' if self.method == 'chow_liu' else 'columns of one kind'}; use "
                "method='hill_climbing', or cut numbers into intervals"
            )
        if is_normal and not numeric.all():
            raise ValueError("the score BGe takes measurements only; use 'bic' for columns of both kinds")
        if not is_normal and score.penalty(3.0) == 0:
            raise ValueError(f"score is {self.score!r}, which takes categories only; use 'bic', 'aic' or 'bge'")
        constraints = replace(
            self.constraints, permitted=self.constraints.permitted & ~(numeric[:, np.newaxis] & ~numeric)
        )
        impossible = np.argwhere(constraints.required & numeric[:, np.newaxis] & ~numeric)
        if len(impossible):
            u, v = impossible[0]
            raise ValueError(f"the edge {names[u]!r} → {names[v]!r} leads from measurements to states; leave it out")
        n_tests = 0
        if self.method != "hill_climbing":
            tests = PartialCorrelationTests(*rows.covariance())
            if self.method == "pc":
                scores = HybridScores(columns, rows, score, self.n_jobs)
                return self._directed(names, tests, scores)
            candidates = max_min_candidates(tests, self.significance, 3 if self.max_given is None else self.max_given)
            constraints = replace(constraints, permitted=constraints.permitted & (candidates | constraints.required))
            n_tests = tests.n_tests
        scores = HybridScores(columns, rows, score, self.n_jobs)
        rng = generator(self.random_state)
        best = climb(scores, constraints, int(self.tabu), int(self.restarts), rng)
        return LearnedStructure(_dag(names, best.edges), best.score, best.trace, scores.n_counted, n_tests)

    def _climb(
        self, rows: DistinctRows, constraints: EdgeConstraints, start: Array | None
    ) -> tuple[HillClimbResult, FamilyScores]:
        scores = FamilyScores.of(rows, self.score or BIC(), self.n_jobs)
        rng = generator(self.random_state)
        return climb(scores, constraints, int(self.tabu), int(self.restarts), rng, start), scores

    def _tree(self, names: tuple[str, ...], rows: DistinctRows) -> LearnedStructure:
        if self.root is not None:
            require_variable(self.root, names)
        parents = tree_parents(rows, self.score, 0 if self.root is None else names.index(self.root))
        dag = DAG(names, tuple((names[u], names[v]) for v, u in enumerate(parents) if u >= 0))
        if not rows.codes.values.all():
            return LearnedStructure(dag, None)
        scores = FamilyScores.of(rows, self.score or BIC(), self.n_jobs)
        return LearnedStructure(dag, scores.graph([[u] if u >= 0 else [] for u in parents]))

    def _by_tests(self, names: tuple[str, ...], rows: DistinctRows) -> LearnedStructure:
        scores = FamilyScores.of(rows, self.score or BIC(), self.n_jobs) if rows.codes.values.all() else None
        return self._directed(names, CategoricalTests.of(rows, self.test), scores)

    def _directed(
        self, names: tuple[str, ...], tests: IndependenceTests, scores: FamilyScores | HybridScores | None
    ) -> LearnedStructure:
        """Return the graph of PC, and a directed graph of its class."""
        matrix = pc_stable(tests, self.constraints, self.significance, self.max_given)
        edges = consistent_extension(matrix)
        if edges is None or (edges & ~(self.constraints.permitted | self.constraints.required)).any():
            edges = any_extension(matrix, self.constraints.permitted | self.constraints.required)
        score = None
        if scores is not None:
            score = scores.graph([np.flatnonzero(edges[:, v]).tolist() for v in range(len(names))])
        return LearnedStructure(_dag(names, edges), score, n_tests=tests.n_tests, partial=PartialDAG.of(names, matrix))

    def _structural_em(
        self, columns: tuple[Column, ...], names: tuple[str, ...], rows: DistinctRows, constraints: EdgeConstraints
    ) -> LearnedStructure:
        """Alternate between tables by EM, and hill climbing on expected counts.

        Each step maximises the expected score of complete rows. With BIC or AIC, it never lowers the log-likelihood of
        the known cells less the penalty (Friedman 1998, theorem 3.1); steps end when this no longer rises.

        References
        ----------
        Friedman (1998), The Bayesian structural EM algorithm, UAI 14.
        """
        options = LearningOptions.of(names, None, None, 50, 1e-4, self.random_state)
        rng = generator(self.random_state)
        score = self.score or BIC()
        # BDeu and K2 have no score of incomplete rows in closed form; BIC stands in to compare steps.
        penalty = (score if score.penalty(2.0) else BIC()).penalty(float(rows.weight.sum()))
        edges = constraints.required.copy()
        best: tuple[float, DAG] = (-math.inf, _dag(names, edges))
        trace: list[float] = []
        n_families = n_drawn = 0
        for _ in range(_MOST_STEPS):
            dag = _dag(names, edges)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the next step continues from better tables
                inference, log_likelihood = fitted(dag, columns, rows, options, self.n_jobs)
            value = log_likelihood - penalty * sum(cpt.n_parameters for cpt in inference.cpts)
            trace.append(value)
            if value <= best[0] + 1e-6 * abs(best[0]):
                break
            best = value, dag
            completion = complete_rows(rows, inference, rng)
            n_drawn = completion.n_drawn
            found, scores = self._climb(completion.rows, constraints, edges)
            n_families += scores.n_counted
            if (found.edges == edges).all():
                break
            edges = found.edges
        else:
            warnings.warn(
                f"structural EM stopped after {_MOST_STEPS} steps; the graph still changed",
                ConvergenceWarning,
                stacklevel=4,
            )
        if n_drawn:
            warnings.warn(
                f"{n_drawn:,} distinct rows lack so many cells that structural EM completed each by 64 draws; "
                "another random_state may give another graph",
                UserWarning,
                stacklevel=4,
            )
        return LearnedStructure(best[1], best[0], tuple(trace), n_families)


def as_search(names: tuple[str, ...], method: str, score: Any, constraints: dict[str, Any], **options: Any) -> Search:
    """Return the search of these options; ValueError for one that is out of its range."""
    chosen = BGe() if isinstance(score, str) and score.lower() == "bge" else None if score is None else as_score(score)
    return Search(method, chosen, EdgeConstraints.of(names, **constraints), **options)


def _dag(names: tuple[str, ...], edges: Array) -> DAG:
    return DAG(names, tuple((names[u], names[v]) for u, v in np.argwhere(edges).tolist()))
