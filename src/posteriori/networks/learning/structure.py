"""Structure learning: the graph of a network from cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from posteriori.networks.graph.cpt import check_states
from posteriori.networks.graph.dag import DAG
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.family_scores import as_score, complete_scores
from posteriori.networks.learning.family_statistics import CaseRows
from posteriori.networks.learning.structure_search import (
    OF_LEARNING,
    SETTINGS,
    BoundSearch,
    LearnedStructure,
    Method,
    StructureSearch,
)
from posteriori.networks.network import BayesianNetwork
from posteriori.support.keywords import explain_unknown_keywords


@partial(explain_unknown_keywords, groups=SETTINGS, wanted=OF_LEARNING)
def learn_network(
    table: Any,
    search: Method | StructureSearch = "hill_climbing",
    *,
    states: Mapping[str, Sequence[Any]] | None = None,
    alpha: Any = None,
    equivalent_sample_size: float | None = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> BayesianNetwork:
    """Learn a network from cases: first its graph, then its tables.

    Parameters
    ----------
    table : table (n, d)
        Any data frame, or an array; every column becomes a variable.
    search : {"hill_climbing", "chow_liu", "pc", "mmhc"} or StructureSearch, default "hill_climbing"
        How to search for the graph: a method with its defaults, or a `StructureSearch`, which has the score, the test
        and the constraints, too: ``po.StructureSearch("pc", significance=0.01)``.
    states : mapping from str to sequence of states, optional
        The states of variables whose column does not show all of them, or in another order.
    alpha, equivalent_sample_size : optional
        The smoothing of the tables; see `BayesianNetwork.fit`.
    sample_weight : array-like (n,), optional
    random_state : int, RandomState, Generator or None, default 0
        Seed of the restarts, and of draws that complete rows in structural EM.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.

    Returns
    -------
    BayesianNetwork

    Raises
    ------
    ValueError
        The constraints contradict each other; or the method or the score takes columns of another kind.

    Warns
    -----
    ConvergenceWarning
        Structural EM reached 20 steps.
    UserWarning
        Rows lack so many cells that structural EM completed them by draws, not by all their completions.

    Notes
    -----
    The edges encode independences that fit the data. Most edges can be reversed without changing these, so that their
    direction is not causal. Hill climbing counts each family once, with one increment per distinct row: first
    d·(d − 1) families, then about 2·d per move.

    Examples
    --------
    >>> import polars as pl
    >>> import posteriori as po
    >>> days = pl.DataFrame({"rain": ["yes", "no"] * 20, "wet": ["yes", "no"] * 18 + ["no", "yes"] * 2})
    >>> po.learn_network(days)
    <BayesianNetwork: 2 variables, 1 edges, 3 parameters>
    >>> po.learn_network(days, po.StructureSearch(required=[("wet", "rain")])).edges
    (('wet', 'rain'),)
    """
    how = {"sample_weight": sample_weight, "random_state": random_state, "n_jobs": n_jobs}
    learned = learn_structure(table, search, states=states, **how)
    net = BayesianNetwork(learned.dag.edges, variables=learned.dag.nodes, states=states)
    return net.fit(table, alpha=alpha, equivalent_sample_size=equivalent_sample_size, **how)


@partial(explain_unknown_keywords, groups=SETTINGS, wanted=OF_LEARNING)
def learn_structure(
    table: Any,
    search: Method | StructureSearch = "hill_climbing",
    *,
    states: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> LearnedStructure:
    """Learn the graph without tables; return it with its score and the progress of the search.

    Parameters
    ----------
    table, search, states, sample_weight, n_jobs : as in `learn_network`
    random_state : int, RandomState, Generator or None, default 0
        Seed of the restarts, and of draws that complete rows in structural EM.

    Returns
    -------
    LearnedStructure

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> found = po.networks.learn_structure(load_penguins().select("species", "island", "sex"))
    >>> found.dag.edges
    (('species', 'island'),)
    """
    cases = open_cases(table, None, _as_states(states), sample_weight, n_jobs, continuous=())
    names = tuple(column.name for column in cases.columns)
    bound = BoundSearch.of(search, names, random_state, n_jobs)
    rows: CaseRows = cases.reduce(CaseRows)
    bound.announce_work(cases.columns, rows)
    return bound.run(cases.columns, rows)


def score_structure(
    structure: DAG | BayesianNetwork,
    table: Any,
    score: Any = "bic",
    *,
    states: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Return the score of a graph on cases, in nats; higher is better.

    Parameters
    ----------
    structure : DAG or BayesianNetwork
        Only the graph and the states of a network matter, not its tables.
    table : table (n, d)
        Without missing cells, one column per variable.
    score : {"bic", "aic", "bdeu", "k2", "bge"} or Score, default "bic"
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
    known, continuous = _as_states(states), set[str]()
    if isinstance(structure, BayesianNetwork):
        dag, known = structure.dag, structure.to_parameters()["states"] | known
        continuous = {one.variable for one in structure.gaussians}
    else:
        dag = structure
    cases = open_cases(table, dag.nodes, known, sample_weight, n_jobs, continuous)
    position = {name: v for v, name in enumerate(dag.nodes)}
    families = [[position[parent] for parent in dag.parents[name]] for name in dag.nodes]
    rows: CaseRows = cases.reduce(CaseRows)
    return complete_scores(cases.columns, rows, as_score(score), n_jobs, "a score").graph(families)


def _as_states(states: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
    return {name: check_states(name, listed) for name, listed in (states or {}).items()}
