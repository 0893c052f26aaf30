"""The graph of a network from cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from posteriori.densities.spanning_tree import Penalty, dependence_of_categories, spanning_forest
from posteriori.draws import generator
from posteriori.networks.cases import Cases, open_cases
from posteriori.networks.constraints import EdgeConstraints, Edges
from posteriori.networks.cpt import check_states
from posteriori.networks.dag import DAG
from posteriori.networks.hill_climbing import climb
from posteriori.networks.naming import require_variable
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.scores import AIC, BIC, FamilyScores, as_score, read_rows
from posteriori.statistics import CountTogether
from posteriori.statistics.distinct_rows import DistinctRows

Method = Literal["hill_climbing", "chow_liu"]


@dataclass(frozen=True)
class LearnedStructure:
    """A graph, and how the search came to it.

    Attributes
    ----------
    dag : DAG
    score : float or None
        Of the graph in nats; None for Chow-Liu where cells are missing.
    trace : tuple of float
        The score after every move of hill climbing.
    n_families : int
        How many families were counted.
    """

    dag: DAG
    score: float | None
    trace: tuple[float, ...] = ()
    n_families: int = 0


def learn_network(
    table: Any,
    method: Method = "hill_climbing",
    *,
    score: Any = None,
    required: Edges = (),
    forbidden: Edges = (),
    allowed: Edges | None = None,
    max_parents: int | None = None,
    tabu: int = 15,
    restarts: int = 0,
    root: str | None = None,
    states: Mapping[str, Sequence[Any]] | None = None,
    alpha: Any = None,
    equivalent_sample_size: float | None = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> BayesianNetwork:
    """Learn a network from cases: its graph, and then its tables.

    Parameters
    ----------
    table : table (n, d)
        Any data frame, or an array; every column becomes a variable.
    method : {"hill_climbing", "chow_liu"}, default "hill_climbing"
        The first adds, deletes or turns the edge that raises the score most, until none does. The second is the tree
        that holds most mutual information, of all trees the one of greatest likelihood.
    score : {"bic", "aic", "bdeu"} or Score, optional
        What is maximised: by default BIC, and for trees the likelihood alone. With "bic" or "aic" a tree loses the
        edges that are not worth their parameters. ``BDeu(equivalent_sample_size=…)`` states the prior.
    required, forbidden, allowed : sequence of pairs (parent, child), optional
        Edges that the graph must have, must not have, and the only ones that it may have; for hill climbing.
    max_parents : int, optional
        Of hill climbing.
    tabu : int, default 15
        After a move of hill climbing the edge between its two variables stays as it is for so many moves, unless
        changing it gives the best graph so far (at most as many moves as half of the pairs of variables). The search
        goes on past a local optimum, stops after 3·tabu moves without a better graph, and returns the best graph
        seen. 0 stops at the first local optimum.
    restarts : int, default 0
        How often the best graph is shaken by random moves, to climb again.
    root : str, optional
        The root of the tree; by default the first column.
    states : mapping from str to sequence of states, optional
        Of variables, where the table does not show all of them or their order matters.
    alpha, equivalent_sample_size : optional
        How the tables are smoothed; see `BayesianNetwork.fit`.
    sample_weight : array-like (n,), optional
    random_state : int, RandomState, Generator or None, default 0
        Of the restarts.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.

    Returns
    -------
    BayesianNetwork

    Raises
    ------
    ValueError
        Cells are missing (hill climbing alone minds), a column holds measurements, or the constraints contradict each
        other.

    Notes
    -----
    Edges say which independences fit; most can be turned without changing these, so they are no arrows of cause. Hill
    climbing counts each family once, an increment a distinct row: first d·(d − 1) families, then about 2·d a move.

    References
    ----------
    Chow & Liu (1968), Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14.
    Glover (1989), Tabu search, part I, ORSA Journal on Computing 1.
    Koller & Friedman (2009), Probabilistic Graphical Models, section 18.4.

    Examples
    --------
    >>> import polars as pl
    >>> import posteriori as po
    >>> days = pl.DataFrame({"rain": ["yes", "no"] * 20, "wet": ["yes", "no"] * 18 + ["no", "yes"] * 2})
    >>> po.learn_network(days)
    <BayesianNetwork: 2 variables, 1 edges, 3 parameters>
    """
    learned = learn_structure(
        table,
        method,
        score=score,
        required=required,
        forbidden=forbidden,
        allowed=allowed,
        max_parents=max_parents,
        tabu=tabu,
        restarts=restarts,
        root=root,
        states=states,
        sample_weight=sample_weight,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    net = BayesianNetwork(learned.dag.edges, variables=learned.dag.nodes, states=states)
    return net.fit(
        table,
        alpha=alpha,
        equivalent_sample_size=equivalent_sample_size,
        sample_weight=sample_weight,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def learn_structure(
    table: Any,
    method: Method = "hill_climbing",
    *,
    score: Any = None,
    required: Edges = (),
    forbidden: Edges = (),
    allowed: Edges | None = None,
    max_parents: int | None = None,
    tabu: int = 15,
    restarts: int = 0,
    root: str | None = None,
    states: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> LearnedStructure:
    """Learn the graph alone, with its score and the way there; the parameters are those of `learn_network`.

    Parameters
    ----------
    table, method, score, required, forbidden, allowed, max_parents, tabu, restarts, root, states :
        As in `learn_network`.
    sample_weight, random_state, n_jobs :
        As in `learn_network`.

    Returns
    -------
    LearnedStructure
    """
    if method not in ("hill_climbing", "chow_liu"):
        raise ValueError(f"method is {method!r}; it must be 'hill_climbing' or 'chow_liu'")
    for name, value in (("tabu", tabu), ("restarts", restarts)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 0")
    cases = open_cases(table, None, _as_states(states), sample_weight, n_jobs)
    names = tuple(column.name for column in cases.columns)
    constraints = EdgeConstraints.of(names, allowed, forbidden, required, max_parents)
    if method == "chow_liu":
        if constraints.required.any() or not constraints.permitted.sum() == len(names) * (len(names) - 1):
            raise ValueError("a Chow-Liu tree takes no constraints on its edges; use method='hill_climbing' for these")
        if constraints.max_parents < 1:
            raise ValueError("max_parents is 0, but every node of a tree has one parent; use method='hill_climbing'")
        return _chow_liu(cases, names, score, root, n_jobs)
    if root is not None:
        raise ValueError("root is stated, but only a tree has one; use method='chow_liu', or leave it out")
    scores = FamilyScores.of(read_rows(cases, "hill climbing"), as_score("bic" if score is None else score), n_jobs)
    found = climb(scores, constraints, int(tabu), int(restarts), generator(random_state))
    edges = tuple((names[u], names[v]) for u, v in np.argwhere(found.edges).tolist())
    return LearnedStructure(DAG(names, edges), found.score, found.trace, scores.n_counted)


def score_structure(
    structure: DAG | BayesianNetwork,
    table: Any,
    score: Any = "bic",
    *,
    states: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Return how well a graph explains cases, in nats: the higher, the better.

    Parameters
    ----------
    structure : DAG or BayesianNetwork
        Of the network only the graph and its states count.
    table : table (n, d)
        Without missing cells; one column per variable.
    score : {"bic", "aic", "bdeu"} or Score, default "bic"
    states : mapping from str to sequence of states, optional
        By default those of the network, or of the columns.
    sample_weight : array-like (n,), optional
    n_jobs : int, optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Cells are missing, or a variable has no column.

    Examples
    --------
    >>> import polars as pl
    >>> from posteriori.networks import DAG, score_structure
    >>> days = pl.DataFrame({"rain": ["yes", "no"] * 20, "wet": ["yes", "no"] * 18 + ["no", "yes"] * 2})
    >>> apart, joined = DAG(("rain", "wet"), ()), DAG.of([("rain", "wet")])
    >>> round(score_structure(apart, days), 3), round(score_structure(joined, days), 3)
    (-59.141, -46.263)
    """
    dag = structure.dag if isinstance(structure, BayesianNetwork) else structure
    known = _as_states(states)
    if isinstance(structure, BayesianNetwork):
        known = structure.to_parameters()["states"] | known
    cases = open_cases(table, dag.nodes, known, sample_weight, n_jobs)
    scores = FamilyScores.of(read_rows(cases, "a score"), as_score(score), n_jobs)
    position = {name: v for v, name in enumerate(dag.nodes)}
    return scores.graph([[position[parent] for parent in dag.parents[name]] for name in dag.nodes])


def _as_states(states: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
    return {name: check_states(name, listed) for name, listed in (states or {}).items()}


def _chow_liu(
    cases: Cases, names: tuple[str, ...], score: Any, root: str | None, n_jobs: int | None
) -> LearnedStructure:
    """Return the tree of most mutual information, each pair on the rows that have both cells."""
    kind = None if score is None else as_score(score)
    if kind is not None and not isinstance(kind, AIC | BIC):
        raise ValueError(f"score is {score!r}; a Chow-Liu tree takes 'bic', 'aic' or, for the likelihood alone, None")
    penalty: Penalty = None if kind is None else "bic" if isinstance(kind, BIC) else "aic"
    if root is not None:
        require_variable(root, names)
    rows: DistinctRows = cases.reduce(DistinctRows)
    pairs = CountTogether().of(rows.codes, rows.assignment)
    weight = dependence_of_categories(pairs).edge_weights(penalty)[0]
    parents = spanning_forest(weight, 0 if root is None else names.index(root))
    dag = DAG(names, tuple((names[u], names[v]) for v, u in enumerate(parents) if u >= 0))
    if not rows.codes.values.all():
        return LearnedStructure(dag, None)
    scores = FamilyScores.of(rows, BIC() if kind is None else kind, n_jobs)
    return LearnedStructure(dag, scores.graph([[u] if u >= 0 else [] for u in parents]))
