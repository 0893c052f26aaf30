"""A Bayesian network: built from edges and tables, asked for any variable given any others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin

from posteriori.deprecation import Renamed
from posteriori.learning.em import EMOptions
from posteriori.networks import queries
from posteriori.networks.arguments import (
    given_edge,
    given_properties,
    given_tables,
    items,
    mapping,
    table_size,
    text,
)
from posteriori.networks.cpt import CPT, check_states
from posteriori.networks.cpt_input import cpt_from
from posteriori.networks.dag import DAG, Independence
from posteriori.networks.distributions import ConditionalDistribution, Distribution, MostProbable
from posteriori.networks.evidence import read_codes, read_findings
from posteriori.networks.inference import Inference
from posteriori.networks.learning import FamilyCounts, Smoothing, count_cases, fit_tables, joined
from posteriori.networks.naming import States, as_names, require_variable
from posteriori.networks.trails import DependenceExplanation, active_trails
from posteriori.typing import Array

Method = Literal["exact", "sampling"]
Evidence = Mapping[str, Any]


class BayesianNetwork:
    r"""A joint distribution that factorises along a directed acyclic graph.

    .. math:: p(x) = \prod_v p(x_v \mid x_{\mathrm{parents}(v)})

    Parameters
    ----------
    edges : sequence of pairs of str
        From parent to child.
    variables : sequence of str
        Variables without an edge, or all of them, to put them in an order.
    states : mapping from str to sequence of states, optional
        Of variables whose tables are added as plain arrays; elsewhere the tables name the states.
    cpts : sequence of CPT
        Tables to start with; their parents need no edges of their own.
    name : str
    properties : mapping from str to sequence of str, optional
        Free words about a variable, and about the network under ``""``, as the files hold them.
    max_table_size : int, default 2**27
        The most cells that the clique tables of a compiled tree may have together. A cell takes 16 bytes and 4 more for
        each separator next to it; cells that cannot occur take none.

    Raises
    ------
    TypeError
        A name is no string, an edge no pair, a table no CPT, or an argument of another kind.
    ValueError
        The edges form a cycle, one is stated twice, or a table does not fit them or the states of another.

    Notes
    -----
    What is known is stated as a mapping from variable to state; to a set of states, one of which it has; or to a
    mapping from each state to its likelihood (soft evidence, of a witness who may be wrong). The tree that answers
    exactly is compiled at the first question and kept until a table changes.

    References
    ----------
    Koller & Friedman (2009), Probabilistic Graphical Models, chapters 3, 9 and 10.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("burglary", "alarm"), ("earthquake", "alarm")])
    >>> net.add_cpt("burglary", {"yes": 0.01, "no": 0.99})
    >>> net.add_cpt("earthquake", {"yes": 0.02, "no": 0.98})
    >>> net.add_cpt("alarm", {
    ...     ("yes", "yes"): {"rings": 0.95, "silent": 0.05},
    ...     ("yes", "no"): {"rings": 0.94, "silent": 0.06},
    ...     ("no", "yes"): {"rings": 0.29, "silent": 0.71},
    ...     ("no", "no"): {"rings": 0.001, "silent": 0.999},
    ... })
    >>> net.query("burglary", evidence={"alarm": "rings"})
    p(burglary | alarm = rings)
    burglary  probability
    yes          0.583461
    no           0.416539
    >>> round(net.probability({"burglary": "yes"}, given={"alarm": "rings", "earthquake": "yes"}), 4)
    0.032
    """

    def __init__(
        self,
        edges: Iterable[Any] = (),
        *,
        variables: Iterable[str] = (),
        states: Mapping[str, Sequence[Any]] | None = None,
        cpts: Iterable[CPT] = (),
        name: str = "",
        properties: Mapping[str, Sequence[str]] | None = None,
        max_table_size: int = 2**27,
    ) -> None:
        tables = given_tables(cpts)
        stated = [given_edge(edge) for edge in items("edges", edges)]
        of_tables = [(parent, cpt.variable) for cpt in tables for parent in cpt.parents]
        named = as_names(variables) if isinstance(variables, str) else items("variables", variables)
        for one in named:
            text("the name of a variable", one)
        first = named or () if stated else (*named, *(cpt.variable for cpt in tables))
        known = set(stated)
        self._dag = DAG.of([*stated, *(edge for edge in of_tables if edge not in known)], first)
        self.name = text("name", name)
        self.max_table_size = table_size(max_table_size)
        self.properties = given_properties(properties)
        self._states: dict[str, States] = {}
        for variable, listed in mapping("states", states).items():
            self._states[variable] = check_states(variable, listed)
        for key in (*filter(None, self.properties), *self._states):
            require_variable(key, self._dag.parents)
        self._states_of_rows: tuple[str, ...] = ()  # learned, and so forgotten by another fit
        self.statistics_: FamilyCounts | None = None
        self.log_likelihood_trace_: tuple[float, ...] = ()
        self._cpts: dict[str, CPT] = {}
        for cpt in tables:
            self._add(cpt)

    def to_parameters(self) -> dict[str, Any]:
        """Return the arguments that make an equal network."""
        return {
            "edges": self.edges,
            "variables": self.variables,
            "states": self._states,
            "cpts": self.cpts,
            "name": self.name,
            "properties": self.properties,
            "max_table_size": self.max_table_size,
        }

    # Tables -----------------------------------------------------------------------------------------------------

    def add_cpt(
        self,
        variable: str | CPT,
        probabilities: Any = None,
        *,
        states: Sequence[Any] | None = None,
        parents: Sequence[str] | None = None,
    ) -> None:
        """State p(variable | parents), or state it anew: what was compiled is dropped.

        Parameters
        ----------
        variable : str or CPT
            A CPT is taken as it is, and nothing else is to be given.
        probabilities : array-like, mapping or data frame
            An array has an axis for each parent and a last one for the variable. A mapping leads, for a root, from
            state to probability; else from the parent's state, or the tuple of the parents' states, to such a mapping
            or to a list. A pandas or polars frame has a column for each parent and either a column for each state or
            two more, the variable and its probability.
        states : sequence of states, optional
            Of the variable. By default those given before, or the order in which the table names them.
        parents : sequence of str, optional
            The parents in the order of the axes, or of the states in a tuple. By default the order of the edges.

        Raises
        ------
        ValueError
            The table does not fit the graph or the states of other tables, a row of it does not sum to 1, or the
            states of a parent are not known yet.
        """
        if isinstance(variable, CPT):
            self._add(variable)
            return
        require_variable(variable, self._dag.parents)
        if probabilities is None:
            raise ValueError(f"the table of {variable!r} is missing; give its probabilities, or a CPT alone")
        known_parents = self._dag.parents[variable]
        order = known_parents if parents is None else as_names(parents)
        self._require_parents(variable, order)
        for parent in order:
            if parent not in self._states:
                raise ValueError(
                    f"the states of {parent!r}, a parent of {variable!r}, are not known; add its table first, "
                    "or name them in BayesianNetwork(…, states={…})"
                )
        own = {name: known for name, known in self._states.items() if name in order or states is None}
        self._add(cpt_from(variable, probabilities, states, order, own))

    def _require_parents(self, variable: str, stated: Iterable[str]) -> None:
        edges = self._dag.parents[variable]
        if sorted(stated) != sorted(edges):
            raise ValueError(
                f"the table of {variable!r} is given {', '.join(map(repr, stated)) or 'nothing'}, but by the edges its "
                f"parents are {', '.join(map(repr, edges)) or 'none'}"
            )

    def _add(self, cpt: CPT) -> None:
        require_variable(cpt.variable, self._dag.parents)
        self._require_parents(cpt.variable, cpt.parents)
        for name, listed in {cpt.variable: cpt.states, **cpt.parents}.items():
            known = self._states.get(name)
            if known is None or known == listed:
                continue
            # The states may change with the table as long as no other table has named them.
            if name != cpt.variable or any(child in self._cpts for child in self._dag.children[name]):
                raise ValueError(
                    f"the table of {cpt.variable!r} says that {name!r} has the states {', '.join(map(repr, listed))}; "
                    f"elsewhere they are {', '.join(map(repr, known))}, and must be the same in the same order"
                )
        self._states.update({cpt.variable: cpt.states, **cpt.parents})
        self._cpts[cpt.variable] = cpt
        self.statistics_ = None  # the tables are no longer those of the counts
        self.__dict__.pop("_inference", None)

    @cached_property
    def _inference(self) -> Inference:
        for name in self._dag.nodes:
            if name not in self._cpts:
                raise ValueError(f"{name!r} has no table yet; add it: net.add_cpt({name!r}, …)")
        return Inference(self._dag, tuple(self._cpts[name] for name in self._dag.nodes), self.max_table_size)

    @property
    def dag(self) -> DAG:
        """The graph."""
        return self._dag

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self._dag.nodes

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The edges, from parent to child."""
        return self._dag.edges

    @property
    def cpts(self) -> tuple[CPT, ...]:
        """The tables, in the order of the variables."""
        return tuple(self._cpts[name] for name in self._dag.nodes if name in self._cpts)

    @property
    def n_parameters(self) -> int:
        """The free parameters of all tables: Σ_v (K_v − 1) Π K of its parents."""
        return sum(cpt.n_parameters for cpt in self._inference.cpts)

    def cpt(self, variable: str) -> CPT:
        """Return the table of a variable; ValueError if there is none."""
        require_variable(variable, self._dag.parents)
        if variable not in self._cpts:
            raise ValueError(f"{variable!r} has no table yet; add it: net.add_cpt({variable!r}, …)")
        return self._cpts[variable]

    def states(self, variable: str) -> States:
        """Return the states of a variable, in their order; ValueError if they are not known yet."""
        require_variable(variable, self._dag.parents)
        if variable not in self._states:
            raise ValueError(f"the states of {variable!r} are not known yet; add its table")
        return self._states[variable]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BayesianNetwork):
            return NotImplemented
        return (
            self.variables == other.variables
            and self._states == other._states
            and self.cpts == other.cpts
            and (
                {name: set(parents) for name, parents in self._dag.parents.items()}
                == {name: set(parents) for name, parents in other._dag.parents.items()}
            )
        )

    __hash__ = None  # type: ignore[assignment]  # its tables may change

    def __repr__(self) -> str:
        named = f" {self.name!r}" if self.name else ""
        tables = len(self._cpts)
        counted = f"{self.n_parameters:,} parameters" if tables == len(self.variables) else f"{tables:,} tables so far"
        return f"<BayesianNetwork{named}: {len(self.variables):,} variables, {len(self.edges):,} edges, {counted}>"

    # Learning ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        table: Any,
        *,
        alpha: Any = None,
        equivalent_sample_size: float | None = None,
        sample_weight: Any = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> BayesianNetwork:
        r"""Learn the tables of the graph from cases; tables that there were are replaced.

        .. math:: p(x_v = k \mid a) = \frac{n_{ak} + \alpha}{n_a + K \alpha}

        Where cells are missing the counts are expected ones, by EM over the junction tree: no row is dropped.

        Parameters
        ----------
        table : table (n, d)
            Any data frame, its columns named as the variables, in any order; or an array with a column a variable.
            States that were stated stay; those of the other variables are the categories of their columns, where up
            to 32 different integers are categories too. A variable that is never seen needs no column, but states.
        alpha : float, or mapping from str to float or array, optional
            Pseudo-counts a cell, 1 (Laplace) by default: 0 is maximum likelihood. A mapping states them by variable,
            1 for those left out; an array has an axis for each parent and a last one for the variable.
        equivalent_sample_size : float, optional
            In place of alpha: that many pseudo-rows, spread evenly over the cells of each table (BDeu).
        sample_weight : array-like (n,), optional
            A row of weight 2 counts as two rows.
        max_iter : int, default 200
            The most steps of EM.
        tol : float, default 1e-5
            EM ends at a gain of at most so many nats a row.
        random_state : int, RandomState, Generator or None, default 0
            Of where EM starts for variables that are never seen.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        BayesianNetwork
            Itself, with ``statistics_``, the evidence, and ``log_likelihood_trace_``, the log-likelihood of the known
            cells in nats before each step of EM (empty where no cell is missing). It never falls where alpha is 0;
            elsewhere it never does so together with the log-density of the prior, Σ alpha·log p.

        Raises
        ------
        ValueError
            A column is no variable, holds measurements or a cell that is no state, or is absent; or EM would need
            larger tables than max_table_size.

        Warns
        -----
        ConvergenceWarning
            EM ran out of steps; the last gain is stated.
        UserWarning
            At alpha = 0 no row shows a configuration of parents; its row of the table is uniform.

        Notes
        -----
        One pass over the rows: an increment a row and variable. A step of EM takes as long as the marginals of the
        distinct incomplete rows.

        Examples
        --------
        >>> import polars as pl
        >>> import posteriori as po
        >>> days = pl.DataFrame({"rain": ["yes", "no", "no", "no"], "wet": ["yes", "yes", "no", "no"]})
        >>> po.BayesianNetwork([("rain", "wet")]).fit(days).cpt("wet")
        p(wet | rain)
        rain        no       yes
        no    0.600000  0.400000
        yes   0.333333  0.666667
        """
        if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
            raise ValueError(f"max_iter is {max_iter!r}; it must be a whole number of at least 1")
        if not tol >= 0:
            raise ValueError(f"tol is {tol!r}; it must be at least 0 nats a row")
        self._smoothing = Smoothing.of(alpha, equivalent_sample_size, self.variables)
        self._em_options = EMOptions(tol, max_iter)
        self._random_state = random_state
        stated = {name: states for name, states in self._states.items() if name not in self._states_of_rows}
        evidence = count_cases(self._dag, table, stated, sample_weight, n_jobs)
        self._learn(evidence, tuple(name for name in self.variables if name not in stated), n_jobs)
        return self

    def partial_fit(self, table: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> BayesianNetwork:
        """Learn from more cases: the tables become those of `fit` on all rows so far, smoothed as it was told to.

        Parameters
        ----------
        table : table (n, d)
            States seen for the first time extend the tables, unless the states were stated.
        sample_weight : array-like (n,), optional
        n_jobs : int, optional

        Returns
        -------
        BayesianNetwork
            Itself.

        Raises
        ------
        ValueError
            As `fit`, or the tables were stated or loaded: there are no counts to add to.
        """
        if self.statistics_ is None:
            if self._cpts:
                raise ValueError(
                    "the tables of this network were stated, not learned from rows at hand, so that there are no "
                    "counts to add to; use fit, or state the tables as pseudo-counts: fit(…, alpha={…})"
                )
            return self.fit(table, sample_weight=sample_weight, n_jobs=n_jobs)
        stated = {name: states for name, states in self._states.items() if name not in self._states_of_rows}
        evidence = count_cases(self._dag, table, stated, sample_weight, n_jobs)
        self._learn(joined(self.statistics_, evidence), self._states_of_rows, n_jobs)
        return self

    def _learn(self, evidence: FamilyCounts, of_rows: tuple[str, ...], n_jobs: int | None) -> None:
        rng = queries.generator(self._random_state)
        fitted = fit_tables(evidence, self._smoothing, self._em_options, rng, self.max_table_size, n_jobs)
        self._cpts = {cpt.variable: cpt for cpt in fitted.cpts}
        self._states = {cpt.variable: cpt.states for cpt in fitted.cpts}
        self._states_of_rows = of_rows
        self.statistics_ = evidence
        self.log_likelihood_trace_ = fitted.trace
        self.__dict__.pop("_inference", None)

    # Questions about one case -----------------------------------------------------------------------------------

    def query(
        self,
        *variables: str,
        evidence: Evidence | None = None,
        joint: bool = True,
        method: Method = "exact",
        n_samples: int = 10_000,
        random_state: Any = None,
    ) -> Any:
        """Return p(variables | evidence).

        Parameters
        ----------
        *variables : str
            None for each of those that the evidence does not settle.
        evidence : mapping, optional
            From variable to state, to a set of states, or to a mapping from each state to its likelihood.
        joint : bool, default True
            One distribution of all of them together, rather than one of each.
        method : {"exact", "sampling"}, default "exact"
            By a junction tree, or by likelihood weighting, which has no limit of size but a standard error.
        n_samples : int, default 10,000
        random_state : int, RandomState, Generator or None
            Of the samples.

        Returns
        -------
        Distribution or Marginals
            Marginals if joint is False or no variable is named.

        Raises
        ------
        ValueError
            There is no such variable or state, the evidence has probability 0, or the exact answer needs tables
            larger than max_table_size: the size is stated.
        """
        findings = read_findings(evidence, self._known_states)
        asked = queries.asked_variables(variables, findings)
        ask = queries.exact_or_sampled(self._inference, method, n_samples, random_state)
        if variables and joint:
            return ask.joint(asked, findings, dict(evidence or {}))
        return ask.each(asked, findings, dict(evidence or {}))

    @property
    def _known_states(self) -> dict[str, States]:
        return self._inference.states

    def probability(
        self,
        event: Evidence,
        given: Evidence | None = None,
        *,
        method: Method = "exact",
        n_samples: int = 10_000,
        random_state: Any = None,
    ) -> float:
        """Return p(event | given) as a number.

        Parameters
        ----------
        event, given : mapping
            From variable to state, or to a set of states, one of which it has; see also `query`.
        method : {"exact", "sampling"}, default "exact"
        n_samples : int, default 10,000
        random_state : int, RandomState, Generator or None

        Returns
        -------
        float
            With a ``standard_error`` where it is sampled.

        Raises
        ------
        ValueError
            As `query`.
        """
        happens = read_findings(event, self._known_states)
        known = read_findings(given, self._known_states)
        return queries.exact_or_sampled(self._inference, method, n_samples, random_state).probability(happens, known)

    def most_probable(self, evidence: Evidence | None = None) -> MostProbable:
        """Return the most probable configuration of all variables given evidence (MPE).

        Parameters
        ----------
        evidence : mapping, optional
            As in `query`.

        Returns
        -------
        MostProbable
            The most probable configuration need not be made of the most probable states of each variable.

        Raises
        ------
        ValueError
            As `query`.
        """
        findings = read_findings(evidence, self._known_states)
        return queries.most_probable(self._inference, findings)

    def joint(self, *variables: str) -> Distribution:
        """Return the full joint distribution, of all variables or of some.

        Parameters
        ----------
        *variables : str
            Default: all.

        Returns
        -------
        Distribution

        Raises
        ------
        ValueError
            It has more than max_table_size cells.
        """
        answer: Distribution = self.query(*(variables or self.variables))
        return answer

    def conditional(self, variables: str | Sequence[str], given: str | Sequence[str]) -> ConditionalDistribution:
        """Return p(variables | given) = p(variables, given) / p(given) for any split of variables.

        Parameters
        ----------
        variables, given : str or sequence of str

        Returns
        -------
        ConditionalDistribution
            NaN where what is given cannot happen.

        Raises
        ------
        ValueError
            There is no such variable, one is named twice, or the table has more than max_table_size cells.
        """
        self._dag.require_apart(variables, given, ())
        return queries.conditional(self._inference, as_names(variables), as_names(given))

    def sample(self, n: int = 1, evidence: Evidence | None = None, random_state: Any = None) -> Any:
        """Draw configurations of all variables: by the arrows, or, given evidence, exactly from the junction tree.

        Parameters
        ----------
        n : int, default 1
        evidence : mapping, optional
            As in `query`.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        polars.DataFrame (n, V)
            Strings come as an Enum of the states.

        Raises
        ------
        ValueError
            n is no whole number from 1 on, or is too large; or as `query`.
        """
        findings = read_findings(evidence, self._known_states)
        return queries.sample(self._inference, findings, n, random_state)

    # Questions about many cases ---------------------------------------------------------------------------------

    def log_likelihood(self, table: Any, *, n_jobs: int | None = None) -> Array:
        """Return log p(row) in nats, (n,), missing cells summed out.

        Parameters
        ----------
        table : table (n, d)
            Any data frame, its columns named as the variables, in any order; a variable may be absent.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray (n,)
            −inf where the network rules a row out; the sum is the log-likelihood of the table.

        Raises
        ------
        ValueError
            A column is no variable, a cell no state, or the tree would be larger than max_table_size.
        """
        return self._inference.log_likelihood(read_codes(table, self._known_states), n_jobs)

    def predict_proba(self, table: Any, target: str, *, n_jobs: int | None = None) -> Array:
        """Return p(target | the other cells of the row), (n, K), missing cells summed out.

        Parameters
        ----------
        table : table (n, d)
            As in `log_likelihood`; a column of the target is not looked at.
        target : str
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray (n, K)
            In the order of ``net.states(target)``; NaN, with a warning, in rows that the network rules out.

        Raises
        ------
        ValueError
            As `log_likelihood`, or there is no such variable.
        """
        require_variable(target, self.variables)
        codes = read_codes(table, self._known_states, ignored=target)
        return self._inference.marginals(codes, [self.variables.index(target)], n_jobs=n_jobs)[0]

    def as_classifier(self, target: str, *, n_jobs: int | None = None) -> ClassifierMixin:
        """Return a scikit-learn classifier, ready to predict one variable from any of the others.

        Parameters
        ----------
        target : str
        n_jobs : int, optional
            Threads; all cores by default.

        Raises
        ------
        ValueError
            There is no such variable.
        """
        # imported here: the classifier module imports this one
        from posteriori.networks.classifier import NetworkClassifier

        return NetworkClassifier(self, target, n_jobs=n_jobs)._set(self)

    def marginals(
        self,
        table: Any,
        variables: str | Sequence[str] | None = None,
        *,
        soft: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> dict[str, Array]:
        """Return p(variable | the known cells of the row) of each variable.

        Parameters
        ----------
        table : table (n, d)
            As in `log_likelihood`.
        variables : str or sequence of str, optional
            Default: all.
        soft : mapping from str to array-like (K,) or (n, K), optional
            Likelihoods of the states of a variable, for all rows or for each.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        dict from str to ndarray (n, K)
            1 at the state of a known cell; NaN, with a warning, in rows that the network rules out.

        Raises
        ------
        ValueError
            As `log_likelihood`, or a likelihood is negative or of another shape.
        """
        codes = read_codes(table, self._known_states)
        names = self.variables if variables is None else as_names(variables)
        for name in names:
            require_variable(name, self._dag.parents)
        likelihoods = queries.read_likelihoods(soft or {}, self._known_states, len(codes))
        found = self._inference.marginals(
            codes, [self._inference.position[name] for name in names], likelihoods, n_jobs
        )
        return dict(zip(names, found, strict=True))

    # Independence -----------------------------------------------------------------------------------------------

    def d_separated(self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether every trail from x to y is blocked by what is given; see `DAG.d_separated`."""
        return self._dag.d_separated(x, y, given)

    def markov_blanket(self, x: str) -> frozenset[str]:
        """Return the variables given which x depends on no other; see `DAG.markov_blanket`."""
        return self._dag.markov_blanket(x)

    def independencies(self, max_given: int | None = None) -> tuple[Independence, ...]:
        """Return every independence of two variables that the graph states; see `DAG.independencies`."""
        return self._dag.independencies(max_given)

    why = Renamed("active_trails")

    def active_trails(self, x: str, y: str, given: str | Iterable[str] = (), limit: int = 20) -> DependenceExplanation:
        """Return the active trails between x and y, or the blocked ones if none is; see `networks.active_trails`."""
        return active_trails(self._dag, x, y, given, limit)
