"""Structure learning: the graph of a network from cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from posteriori.networks.graph.cpt import check_states
from posteriori.networks.graph.dag import DAG
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.constraint_based import Edges
from posteriori.networks.learning.family_scores import as_score, complete_scores
from posteriori.networks.learning.family_statistics import CaseRows
from posteriori.networks.learning.structure_search import LearnedStructure, as_search
from posteriori.networks.network import BayesianNetwork

Method = Literal["hill_climbing", "chow_liu", "pc", "mmhc"]


def learn_network(
    table: Any,
    method: Method = "hill_climbing",
    *,
    score: Any = None,
    required: Edges = (),
    forbidden: Edges = (),
    allowed: Edges | None = None,
    tiers: Iterable[Iterable[str]] | None = None,
    max_parents: int | None = None,
    tabu: int = 15,
    restarts: int = 0,
    root: str | None = None,
    test: str = "g2",
    significance: float = 0.05,
    max_given: int | None = None,
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
    states : mapping from str to sequence of states, optional
        The states of variables whose column does not show all of them, or in another order.
    alpha, equivalent_sample_size : optional
        The smoothing of the tables; see `BayesianNetwork.fit`.
    sample_weight : array-like (n,), optional
    random_state : int, RandomState, Generator or None, default 0
        Seed of the restarts.
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
        tiers=tiers,
        max_parents=max_parents,
        tabu=tabu,
        restarts=restarts,
        root=root,
        test=test,
        significance=significance,
        max_given=max_given,
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
    tiers: Iterable[Iterable[str]] | None = None,
    max_parents: int | None = None,
    tabu: int = 15,
    restarts: int = 0,
    root: str | None = None,
    test: str = "g2",
    significance: float = 0.05,
    max_given: int | None = None,
    states: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> LearnedStructure:
    """Learn the graph without tables; return it with its score and the progress of the search.

    Parameters
    ----------
    table, method, score, required, forbidden, allowed, tiers, max_parents, tabu, restarts, root :
        As in `learn_network`.
    test, significance, max_given, states :
        As in `learn_network`.
    sample_weight, random_state, n_jobs :
        As in `learn_network`.

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
    constraints = {
        "allowed": allowed,
        "forbidden": forbidden,
        "required": required,
        "max_parents": max_parents,
        "tiers": tiers,
    }
    search = as_search(
        names,
        method,
        score,
        constraints,
        tabu=tabu,
        restarts=restarts,
        root=root,
        test=test,
        significance=significance,
        max_given=max_given,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    rows: CaseRows = cases.reduce(CaseRows)
    search.announce_work(cases.columns, rows)
    return search.run(cases.columns, rows)


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
    dag = structure.dag if isinstance(structure, BayesianNetwork) else structure
    known = _as_states(states)
    if isinstance(structure, BayesianNetwork):
        known = structure.to_parameters()["states"] | known
    continuous = {one.variable for one in structure.gaussians} if isinstance(structure, BayesianNetwork) else ()
    cases = open_cases(table, dag.nodes, known, sample_weight, n_jobs, continuous)
    position = {name: v for v, name in enumerate(dag.nodes)}
    families = [[position[parent] for parent in dag.parents[name]] for name in dag.nodes]
    rows: CaseRows = cases.reduce(CaseRows)
    return complete_scores(cases.columns, rows, as_score(score), n_jobs, "a score").graph(families)


def _as_states(states: Mapping[str, Sequence[Any]] | None) -> dict[str, Any]:
    return {name: check_states(name, listed) for name, listed in (states or {}).items()}
