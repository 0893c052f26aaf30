"""Search for the structure of a network, with structural EM for missing cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from posteriori.model_cost import Work
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.equivalence import PartialDAG, any_extension, consistent_extension
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import require_variable
from posteriori.networks.inference.inference import Inference
from posteriori.networks.inference.questions import root_of
from posteriori.networks.learning.constraint_based import (
    CategoricalTests,
    EdgeConstraints,
    IndependenceTests,
    PartialCorrelationTests,
    as_statistic,
    max_min_candidates,
    pc_stable,
)
from posteriori.networks.learning.family_scores import AIC, BIC, FamilyScores, Score, as_score, require_kinds
from posteriori.networks.learning.family_statistics import CaseRows, CountFamilies, FamilyStatistics, GraphFamilies
from posteriori.networks.learning.hill_climbing import HillClimbResult, climb
from posteriori.networks.learning.parameters import LearningOptions, fit_tables
from posteriori.statistics import CountTogether
from posteriori.statistics.pairs import Penalty, dependence_of_categories, spanning_forest
from posteriori.statistics.row_records import DistinctRows
from posteriori.support.checks import generator
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Codes, Column
from posteriori.user_warnings import warn

_MOST_COMPLETIONS = 4096  # of one row; rows with more are completed by draws
_DRAWS = 64
_MOST_ROWS = 1 << 23  # of all completions together

Part = tuple[Array, Array, Array]  # codes from 0, numbers and weights of rows


@dataclass(frozen=True)
class Completion:
    """Complete rows whose weights are expected counts.

    Attributes
    ----------
    rows : CaseRows
    n_drawn : int
        The number of rows that were completed by draws, because they have too many completions to list.
    """

    rows: CaseRows
    n_drawn: int


def complete_rows(rows: CaseRows, inference: Inference, rng: np.random.Generator) -> Completion:
    """Replace each incomplete row by its completions x, with the weight of the row times p(x | its known cells).

    Any sum over the result is then an expected count under the network (Friedman 1998, equation 3), whatever the
    family. Missing states are listed; a row with more than 4096 completions is replaced by 64 draws. Given the states,
    missing numbers are normal, and 2h points with their mean and covariance stand for h of them: scores depend on no
    other moments.

    Parameters
    ----------
    rows : CaseRows
    inference : Inference
        The current network.
    rng : Generator

    References
    ----------
    Friedman (1998), The Bayesian structural EM algorithm, UAI 14. Julier & Uhlmann (1997), A new extension of the
    Kalman filter to nonlinear systems, SPIE 3068: the points.
    """
    codes, numbers, weight = rows.codes.astype(np.int64) - 1, rows.numbers, rows.weight
    missing = np.concatenate([codes < 0, np.isnan(numbers)], axis=1)
    complete: Array = np.asarray(~missing.any(axis=1))
    parts: list[Part] = [(codes[complete], numbers[complete], weight[complete])] if complete.any() else []
    n_drawn = 0
    for pattern, members in _by_pattern(missing, complete):
        absent = np.flatnonzero(pattern[: codes.shape[1]])
        n_completions = math.prod(rows.cardinalities[v] for v in absent.tolist())
        n_points = max(1, 2 * int(pattern[codes.shape[1] :].sum()))
        if n_completions <= _MOST_COMPLETIONS and n_completions * n_points * len(members) <= _MOST_ROWS:
            listed = _listed(codes[members], numbers[members], weight[members], absent, n_completions, inference)
            parts += [_with_points(*part, inference) for part in listed]
        else:
            n_drawn += len(members)
            parts += [
                _with_points(*_drawn(codes[[i]], numbers[[i]], float(weight[i]), inference, rng), inference)
                for i in members.tolist()
            ]
    dtype = rows.codes.dtype
    kept = tuple(((c + 1).astype(dtype), x, w) for c, x, w in parts if len(w))
    return Completion(CaseRows(rows.cardinalities, kept), n_drawn)


def _by_pattern(missing: Any, complete: Array) -> Iterator[tuple[Array, Array]]:
    """Yield each pattern of missing cells with the rows that have it."""
    incomplete = np.flatnonzero(~complete)
    if not len(incomplete):
        return
    patterns, number = np.unique(missing[incomplete], axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield pattern, incomplete[number.ravel() == k]


def _listed(
    codes: Array, numbers: Array, weight: Array, absent: Array, n_completions: int, inference: Inference
) -> Iterator[Part]:
    """Yield all completions of the states of rows with one pattern, some rows at a time."""
    cardinalities = inference.tables.cardinalities
    digits = np.zeros((1, 0), np.int64)
    if len(absent):
        places = np.unravel_index(np.arange(n_completions), [cardinalities[v] for v in absent])
        digits = np.stack(places, axis=1)
    step = max(1, (1 << 18) // n_completions)
    for start in range(0, len(codes), step):
        some = slice(start, start + step)
        n = len(weight[some])
        full, known = (np.repeat(cells[some], n_completions, axis=0) for cells in (codes, numbers))
        full[:, absent] = np.tile(digits, (n, 1))
        log_joint = inference.log_likelihood(full, known, n_jobs=1).reshape(n, n_completions)
        share = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        share *= (weight[some] / share.sum(axis=1))[:, np.newaxis]
        each = share.ravel()
        kept = each > 1e-12 * each.max()
        yield full[kept], known[kept], each[kept]


def _drawn(codes: Array, numbers: Array, weight: float, inference: Inference, rng: np.random.Generator) -> Part:
    """Return draws of the states of a row."""
    compiled, _, values = next(iter(inference.batches(numbers, everything=True)))
    soft, _ = compiled.likelihoods(values, 1)
    alone = {v: likelihood[0] for v, likelihood in soft.items()}
    draws = compiled.tables.everything().sample(compiled.padded(codes)[0], _DRAWS, rng, alone)
    return draws[:, : codes.shape[1]], np.repeat(numbers, _DRAWS, axis=0), np.full(_DRAWS, weight / _DRAWS)


def _with_points(codes: Array, numbers: Array, weight: Array, inference: Inference) -> Part:
    """Return complete rows: points in place of the numbers that all these rows lack."""
    hidden = np.flatnonzero(np.isnan(numbers).any(axis=0)) if len(numbers) else np.zeros(0, np.int64)
    if not len(hidden):
        return codes, numbers, weight
    place = {name: k for k, name in enumerate(inference.continuous)}
    values = {name: numbers[:, k] for name, k in place.items() if k not in hidden}
    compiled, n = inference.compiled(values, everything=True), len(weight)
    mean, spreads = numbers.copy(), []
    for component in compiled.components:
        if not component.hidden:
            continue
        configuration = np.zeros(n, np.int64)
        for name, states in component.discrete.items():
            configuration = configuration * len(states) + codes[:, inference.tables.position[name]]
        own = np.array([place[name] for name in component.hidden], np.int64)
        for q in np.unique(configuration).tolist():
            rows = np.flatnonzero(configuration == q)
            some = {name: cells[rows] for name, cells in values.items()}
            mean[np.ix_(rows, own)] = component.hidden_mean(some)[:, q] if some else component.hidden_mean(some)[0, q]
        roots = np.stack([root_of(one) for one in component.hidden_covariance])[configuration]
        for j in range(len(own)):
            shift = np.zeros_like(numbers)
            shift[:, own] = np.sqrt(len(hidden)) * roots[:, :, j]
            spreads += [shift, -shift]
    points = np.concatenate([mean + shift for shift in spreads])
    return np.tile(codes, (len(spreads), 1)), points, np.tile(weight / len(spreads), len(spreads))


def fitted(
    dag: DAG, columns: tuple[Column, ...], rows: CaseRows, options: LearningOptions, n_jobs: int | None
) -> tuple[Inference, float, int]:
    """Return the network of a graph by EM, the log-likelihood of the known cells in nats, and its free parameters."""
    count = CountFamilies(GraphFamilies.of(dag, columns))
    statistics: FamilyStatistics = count.of(Codes(rows.codes, rows.cardinalities), rows.numbers, rows.weight)
    learned = fit_tables(dag, statistics, options, 2**27, n_jobs)
    by_name = {table.variable: table for table in learned.cpts}
    cpts = tuple(table for table in learned.cpts if isinstance(table, CPT))
    ordered = (by_name[name] for name in dag.topological_order)
    gaussians = tuple(table for table in ordered if isinstance(table, LinearGaussian))
    inference = Inference(dag, cpts, gaussians, 2**27)
    log_likelihood = inference.log_likelihood(rows.codes.astype(np.int64) - 1, rows.numbers, n_jobs)
    return inference, float(rows.weight @ log_likelihood), sum(table.n_parameters for table in learned.cpts)


METHODS = ("hill_climbing", "chow_liu", "pc", "mmhc")
_ABBREVIATED = {"hc": "hill_climbing", "tabu": "hill_climbing", "greedy": "hill_climbing", "tree": "chow_liu"}
_MOST_STEPS = 20  # of structural EM
# Seconds on one core, as `python -m benchmarks.costs` measures them.
_PER_VISIT = 1e-8  # of a distinct row and pair of variables with states
_PER_TEST = 2e-8  # the same, of a test of independence
_PER_FAMILY = 4e-3  # of a pair with a continuous variable
_PER_MARGINAL = 3e-4  # the same, of the score BGe, which reads no rows
_PER_REGRESSION = 2e-6  # of a row and a pair with a continuous variable
_OF_GAPS = 5  # steps of structural EM: it rarely takes fewer


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
            meant = _ABBREVIATED.get(self.method, self.method)
            raise ValueError(f"method is {self.method!r}; {closest(meant, METHODS)}")
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

    def run(self, columns: tuple[Column, ...], rows: CaseRows) -> LearnedStructure:
        """Return the graph that the method finds on rows.

        Raises
        ------
        ValueError
            The method or the score takes columns of one kind only, or complete rows only.
        """
        names = tuple(column.name for column in columns)
        numeric = np.array([column.kind == "continuous" for column in columns])
        if numeric.any():
            self._require_numeric(names, numeric, rows)
        require_kinds(self.score or BIC(), columns)
        if self.method == "chow_liu":
            return self._tree(columns, rows)
        permitted = self.constraints.permitted & ~(numeric[:, np.newaxis] & ~numeric)
        search = replace(self, constraints=replace(self.constraints, permitted=permitted))
        if self.method == "pc":
            return search._by_tests(columns, rows)
        constraints, n_tests = search.constraints, 0
        if self.method == "mmhc":
            tests = self._tests(columns, rows)
            candidates = max_min_candidates(tests, self.significance, 3 if self.max_given is None else self.max_given)
            constraints = replace(constraints, permitted=permitted & (candidates | constraints.required))
            n_tests = tests.n_tests
        if rows.has_gaps:
            return replace(self._structural_em(columns, names, rows, constraints), n_tests=n_tests)
        best, scores = self._climb(columns, rows, constraints, None)
        return LearnedStructure(_dag(names, best.edges), best.score, best.trace, scores.n_counted, n_tests)

    def announce_work(self, columns: Sequence[Column], rows: CaseRows, times: int = 1) -> None:
        """Announce a search of few moves, by `Work`: dense graphs take longer.

        `times` is the number of searches on like rows.
        """
        d, n_rows = len(columns), len(rows.weight)
        n_states = sum(column.kind != "continuous" for column in columns)
        per_visit = _PER_TEST if self.method in ("pc", "mmhc") else _PER_VISIT
        seconds = n_states**2 * n_rows * per_visit
        if self.method == "hill_climbing":
            is_normal = getattr(self.score, "is_normal", False)
            per_pair = _PER_MARGINAL if is_normal else _PER_FAMILY + n_rows * _PER_REGRESSION
            seconds += (d * d - n_states**2) * per_pair
        work = Work(times * seconds * (_OF_GAPS if rows.has_gaps and self.method == "hill_climbing" else 1))
        searches = "the search" if times == 1 else f"the {times:,} searches"
        what = f"{searches} for a graph of {d:,} variables on {n_rows:,} distinct rows"
        work.announce(what, "leave out columns, or take a sample of the rows")

    def _require_numeric(self, names: tuple[str, ...], numeric: Array, rows: CaseRows) -> None:
        """Raise ValueError unless the method takes these columns, of which some are continuous."""
        if self.method == "chow_liu" or (self.method != "hill_climbing" and not numeric.all()):
            raise ValueError(
                f"column {names[int(np.argmax(numeric))]!r} holds numbers, and method={self.method!r} takes "
                f"{'categories only' if self.method == 'chow_liu' else 'columns of one kind'}; use "
                "method='hill_climbing', or cut numbers into intervals"
            )
        if self.method != "hill_climbing" and rows.has_gaps:
            raise ValueError(
                f"cells are missing, and method={self.method!r} takes partial correlations of complete rows; use "
                "method='hill_climbing', or drop such rows"
            )
        impossible = np.argwhere(self.constraints.required & numeric[:, np.newaxis] & ~numeric)
        if len(impossible):
            u, v = impossible[0]
            raise ValueError(f"the edge {names[u]!r} → {names[v]!r} leads from measurements to states; leave it out")

    def _tests(self, columns: tuple[Column, ...], rows: CaseRows) -> IndependenceTests:
        if columns[0].kind == "continuous":
            return PartialCorrelationTests(*rows.covariance())
        return CategoricalTests.of(rows.categories, self.test)

    def _climb(
        self, columns: tuple[Column, ...], rows: CaseRows, constraints: EdgeConstraints, start: Array | None
    ) -> tuple[HillClimbResult, FamilyScores]:
        scores = FamilyScores(columns, rows, self.score or BIC(), self.n_jobs)
        rng = generator(self.random_state)
        return climb(scores, constraints, int(self.tabu), int(self.restarts), rng, start), scores

    def _tree(self, columns: tuple[Column, ...], rows: CaseRows) -> LearnedStructure:
        names = tuple(column.name for column in columns)
        if self.root is not None:
            require_variable(self.root, names)
        parents = tree_parents(rows.categories, self.score, 0 if self.root is None else names.index(self.root))
        dag = DAG(names, tuple((names[u], names[v]) for v, u in enumerate(parents) if u >= 0))
        if rows.has_gaps:
            return LearnedStructure(dag, None)
        scores = FamilyScores(columns, rows, self.score or BIC(), self.n_jobs)
        return LearnedStructure(dag, scores.graph([[u] if u >= 0 else [] for u in parents]))

    def _by_tests(self, columns: tuple[Column, ...], rows: CaseRows) -> LearnedStructure:
        scores = None if rows.has_gaps else FamilyScores(columns, rows, self.score or BIC(), self.n_jobs)
        return self._directed(tuple(column.name for column in columns), self._tests(columns, rows), scores)

    def _directed(
        self, names: tuple[str, ...], tests: IndependenceTests, scores: FamilyScores | None
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
        self, columns: tuple[Column, ...], names: tuple[str, ...], rows: CaseRows, constraints: EdgeConstraints
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
                inference, log_likelihood, n_parameters = fitted(dag, columns, rows, options, self.n_jobs)
            value = log_likelihood - penalty * n_parameters
            trace.append(value)
            if value <= best[0] + 1e-6 * abs(best[0]):
                break
            best = value, dag
            completion = complete_rows(rows, inference, rng)
            n_drawn = completion.n_drawn
            found, scores = self._climb(columns, completion.rows, constraints, edges)
            n_families += scores.n_counted
            if (found.edges == edges).all():
                break
            edges = found.edges
        else:
            warn(f"structural EM stopped after {_MOST_STEPS} steps; the graph still changed", ConvergenceWarning)
        if n_drawn:
            warn(
                f"{n_drawn:,} distinct rows lack so many cells that structural EM completed each by 64 draws; "
                "another random_state may give another graph"
            )
        return LearnedStructure(best[1], best[0], tuple(trace), n_families)


def as_search(names: tuple[str, ...], method: str, score: Any, constraints: dict[str, Any], **options: Any) -> Search:
    """Return the search of these options; ValueError for one that is out of its range."""
    chosen = None if score is None else as_score(score)
    return Search(method, chosen, EdgeConstraints.of(names, **constraints), **options)


def _dag(names: tuple[str, ...], edges: Array) -> DAG:
    return DAG(names, tuple((names[u], names[v]) for u, v in np.argwhere(edges).tolist()))


def tree_parents(rows: DistinctRows, score: Score | None, root: int) -> Sequence[int]:
    """Return the parent of each variable in the tree, −1 for a root.

    A maximum spanning tree whose edges weigh I(x_u; x_v), each pair on the rows that have both, less the penalty of BIC
    or AIC (Chow & Liu 1968, equation 9; Koller & Friedman 2009, section 18.4.1).

    Raises
    ------
    ValueError
        The score is no BIC or AIC.
    """
    if score is not None and not isinstance(score, AIC | BIC):
        raise ValueError(f"score is {score!r}; a Chow-Liu tree takes 'bic', 'aic' or, for the likelihood alone, None")
    penalty: Penalty = None if score is None else "bic" if isinstance(score, BIC) else "aic"
    pairs = CountTogether().of(rows.codes, rows.assignment)
    return spanning_forest(dependence_of_categories(pairs).edge_weights(penalty)[0], root)
