"""Search for the structure of a network, with structural EM for missing cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from posteriori.model_cost import Work
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.equivalence import PartialDAG, any_extension, consistent_extension
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import require_variable
from posteriori.networks.inference.inference import Inference
from posteriori.networks.learning.completion import complete_rows
from posteriori.networks.learning.constraint_based import (
    CategoricalTests,
    EdgeConstraints,
    Edges,
    IndependenceTests,
    PartialCorrelationTests,
    as_edges,
    as_statistic,
    as_tiers,
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
from posteriori.support.keywords import Wanted, explain_unknown_keywords
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Codes, Column
from posteriori.user_warnings import warn

Method = Literal["hill_climbing", "chow_liu", "pc", "mmhc"]


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


@dataclass(frozen=True, repr=False)
class StructureSearch:
    """How the graph of a network is searched for: the method, its score or test, and constraints on the edges.

    Parameters
    ----------
    method : {"hill_climbing", "chow_liu", "pc", "mmhc"}, default "hill_climbing"
        Hill climbing adds, deletes or reverses the edge that raises the score most, until none does; with missing cells
        it alternates with EM (structural EM). Chow-Liu is the tree of largest total mutual information, which is the
        tree of maximum likelihood. PC-stable deletes the edges between variables that tests find independent given
        others, and directs what the tests determine (by PC-Max). MMHC is hill climbing among the pairs that tests
        leave.
    score : {"bic", "aic", "bdeu", "k2", "bge"} or Score, optional
        The score to maximise: by default BIC, and for trees the likelihood alone. With "bic" or "aic" a tree loses the
        edges that are not worth their parameters. ``BDeu(equivalent_sample_size=…)`` sets the prior. Columns of
        measurements are continuous variables, by "bic" or "aic", or "bge" if all columns are.
    required, forbidden, allowed : sequence of pairs (parent, child), optional
        Edges that must be present, that must be absent, and the only ones that may be present. Not for trees.
    tiers : sequence of sequences of str, optional
        Groups of variables in the order of time: no edge leads from a later group to an earlier one.
    max_parents : int, optional
        For hill climbing and MMHC: the most parents of a variable.
    tabu : int, default 15
        After a move of hill climbing the edge between its two variables stays fixed for this many moves (at most half
        the number of pairs of variables), unless its change gives the best graph so far. The search continues after a
        local optimum, stops after 3·tabu moves without a better graph, and returns the best graph. 0 stops at the
        first local optimum.
    restarts : int, default 0
        How often random moves perturb the best graph, to climb again from there.
    root : str, optional
        The root of the tree; by default the first column.
    test : {"g2", "chi2", "mutual_information"}, default "g2"
        For PC and MMHC: the test of conditional independence. The mutual information is G²/2n, so that both give the
        same graph. Missing cells: each test takes the rows that have its variables.
    significance : float, default 0.05
        For PC and MMHC: pairs with a larger p-value count as independent.
    max_given : int, optional
        For PC and MMHC: the most variables to condition on; by default all neighbours, and 3 in MMHC.

    Raises
    ------
    ValueError
        A parameter is out of its range, or the method does not take it. Names of variables and contradictions of
        constraints are checked when there is a table.

    References
    ----------
    Friedman (1998), The Bayesian structural EM algorithm, UAI 14.
    Colombo & Maathuis (2014), Order-independent constraint-based causal structure learning, JMLR 15.
    Tsamardinos, Brown & Aliferis (2006), The max-min hill-climbing structure learning algorithm, Machine Learning 65.
    Chow & Liu (1968), Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14.
    Glover (1989), Tabu search, part I, ORSA Journal on Computing 1.
    Koller & Friedman (2009), Probabilistic Graphical Models, section 18.4.

    Examples
    --------
    >>> import posteriori as po
    >>> search = po.StructureSearch("pc", significance=0.01)
    >>> search
    StructureSearch(method='pc', significance=0.01)
    >>> from posteriori.datasets import load_penguins
    >>> po.networks.learn_structure(load_penguins().select("species", "island"), search).partial
    species — island
    """

    method: Method = "hill_climbing"
    _: KW_ONLY
    score: Any = None
    required: Edges = ()
    forbidden: Edges = ()
    allowed: Edges | None = None
    tiers: Iterable[Iterable[str]] | None = None
    max_parents: int | None = None
    tabu: int = 15
    restarts: int = 0
    root: str | None = None
    test: str = "g2"
    significance: float = 0.05
    max_given: int | None = None

    def __post_init__(self) -> None:
        methods = get_args(Method)
        if self.method not in methods:
            meant = _ABBREVIATED.get(str(self.method), str(self.method))
            raise ValueError(f"method is {self.method!r}; {closest(meant, methods)}")
        counts = {"max_parents": self.max_parents, "max_given": self.max_given}
        given = {name: count for name, count in counts.items() if count is not None}
        for name, count in {"tabu": self.tabu, "restarts": self.restarts, **given}.items():
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
                raise ValueError(f"{name} is {count!r}; it must be a whole number of at least 0")
        if not 0 < self.significance < 1:
            raise ValueError(f"significance is {self.significance!r}; it must be between 0 and 1")
        as_statistic(self.test)
        if self.score is not None:
            as_score(self.score)
        # A search may serve several tables, and iterators are read once.
        for name in ("required", "forbidden", "allowed"):
            if (listed := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_edges(listed, name))
        if self.tiers is not None:
            object.__setattr__(self, "tiers", as_tiers(self.tiers))
        if self.method != "chow_liu":
            if self.root is not None:
                raise ValueError("root is given, but only a tree has one; use method='chow_liu', or leave it out")
        elif self.required or self.forbidden or self.allowed is not None or self.tiers:
            raise ValueError("a Chow-Liu tree takes no constraints on its edges; use method='hill_climbing'")
        elif self.max_parents == 0:
            raise ValueError("max_parents is 0, but every node of a tree has one parent; use method='hill_climbing'")

    def __repr__(self) -> str:
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        changed = ", ".join(f"{name}={value!r}" for name, (value, default) in values.items() if value != default)
        return f"StructureSearch({changed})"


# An error about an unknown keyword of a function names the parameter that takes it.
SETTINGS = {"search": StructureSearch}
StructureSearch.__init__ = explain_unknown_keywords(StructureSearch.__init__, {}, {})  # type: ignore[method-assign]
_STATES = "use states={variable: [state, …]} for integers that are categories, or cast the column to strings"
OF_LEARNING: Wanted = {
    "categorical": (("states", _STATES),),
    "categorical_features": (("states", _STATES),),
    "columns": (("table", "keep the columns that are variables: table[names]"),),
    "ignore": (("table", "drop the columns from the table"),),
    "seed": (("random_state", "use random_state=…"),),
}


@dataclass(frozen=True)
class BoundSearch:
    """A search that is bound to the variables of a table; see `StructureSearch` for what `asked` means."""

    asked: StructureSearch
    score: Score | None
    constraints: EdgeConstraints
    random_state: Any
    n_jobs: int | None

    @classmethod
    def of(
        cls, search: Method | StructureSearch, names: tuple[str, ...], random_state: Any, n_jobs: int | None
    ) -> BoundSearch:
        """Return the search among variables of these names; ValueError for an edge among others."""
        asked = search if isinstance(search, StructureSearch) else StructureSearch(search)
        score = None if asked.score is None else as_score(asked.score)
        constraints = EdgeConstraints.of(
            names, asked.allowed, asked.forbidden, asked.required, asked.max_parents, asked.tiers
        )
        return cls(asked, score, constraints, random_state, n_jobs)

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
        if self.asked.method == "chow_liu":
            return self._tree(columns, rows)
        permitted = self.constraints.permitted & ~(numeric[:, np.newaxis] & ~numeric)
        search = replace(self, constraints=replace(self.constraints, permitted=permitted))
        if self.asked.method == "pc":
            return search._by_tests(columns, rows)
        constraints, n_tests = search.constraints, 0
        if self.asked.method == "mmhc":
            tests = self._tests(columns, rows)
            candidates = max_min_candidates(
                tests, self.asked.significance, 3 if self.asked.max_given is None else self.asked.max_given
            )
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
        per_visit = _PER_TEST if self.asked.method in ("pc", "mmhc") else _PER_VISIT
        seconds = n_states**2 * n_rows * per_visit
        if self.asked.method == "hill_climbing":
            is_normal = getattr(self.score, "is_normal", False)
            per_pair = _PER_MARGINAL if is_normal else _PER_FAMILY + n_rows * _PER_REGRESSION
            seconds += (d * d - n_states**2) * per_pair
        work = Work(times * seconds * (_OF_GAPS if rows.has_gaps and self.asked.method == "hill_climbing" else 1))
        searches = "the search" if times == 1 else f"the {times:,} searches"
        what = f"{searches} for a graph of {d:,} variables on {n_rows:,} distinct rows"
        work.announce(what, "leave out columns, or take a sample of the rows")

    def _require_numeric(self, names: tuple[str, ...], numeric: Array, rows: CaseRows) -> None:
        """Raise ValueError unless the method takes these columns, of which some are continuous."""
        if self.asked.method == "chow_liu" or (self.asked.method != "hill_climbing" and not numeric.all()):
            raise ValueError(
                f"column {names[int(np.argmax(numeric))]!r} holds numbers, and method={self.asked.method!r} takes "
                f"{'categories only' if self.asked.method == 'chow_liu' else 'columns of one kind'}; use "
                "method='hill_climbing', or cut numbers into intervals"
            )
        if self.asked.method != "hill_climbing" and rows.has_gaps:
            raise ValueError(
                f"cells are missing, and method={self.asked.method!r} takes partial correlations of complete rows; use "
                "method='hill_climbing', or drop such rows"
            )
        impossible = np.argwhere(self.constraints.required & numeric[:, np.newaxis] & ~numeric)
        if len(impossible):
            u, v = impossible[0]
            raise ValueError(f"the edge {names[u]!r} → {names[v]!r} leads from measurements to states; leave it out")

    def _tests(self, columns: tuple[Column, ...], rows: CaseRows) -> IndependenceTests:
        if columns[0].kind == "continuous":
            return PartialCorrelationTests(*rows.covariance())
        return CategoricalTests.of(rows.categories, self.asked.test)

    def _climb(
        self, columns: tuple[Column, ...], rows: CaseRows, constraints: EdgeConstraints, start: Array | None
    ) -> tuple[HillClimbResult, FamilyScores]:
        scores = FamilyScores(columns, rows, self.score or BIC(), self.n_jobs)
        rng = generator(self.random_state)
        return climb(scores, constraints, int(self.asked.tabu), int(self.asked.restarts), rng, start), scores

    def _tree(self, columns: tuple[Column, ...], rows: CaseRows) -> LearnedStructure:
        names = tuple(column.name for column in columns)
        if self.asked.root is not None:
            require_variable(self.asked.root, names)
        parents = tree_parents(
            rows.categories, self.score, 0 if self.asked.root is None else names.index(self.asked.root)
        )
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
        matrix = pc_stable(tests, self.constraints, self.asked.significance, self.asked.max_given)
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
        the known cells less the penalty (Friedman 1998, The Bayesian structural EM algorithm, UAI 14, theorem 3.1);
        steps end when this no longer rises.
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
