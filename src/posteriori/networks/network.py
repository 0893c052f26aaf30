"""The Bayesian network: built from edges and tables or learned from cases, and queried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from sklearn.base import ClassifierMixin

from posteriori.deprecation import Renamed
from posteriori.networks import queries
from posteriori.networks.arguments import given_properties, given_tables, table_size, text
from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG, Independence
from posteriori.networks.distributions import ConditionalDistribution, Distribution, MostProbable
from posteriori.networks.evidence import read_codes
from posteriori.networks.family_counts import FamilyCounts, count_cases, joined
from posteriori.networks.inference import Inference
from posteriori.networks.learning import LearningOptions, fit_tables
from posteriori.networks.naming import States, as_names, require_variable
from posteriori.networks.specification import NetworkSpec
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
        Variables without an edge, or all variables, to set their order.
    states : mapping from str to sequence of states, optional
        The states of variables whose tables are added as plain arrays; other tables name the states themselves.
    cpts : sequence of CPT
        The first tables; their parents need no edges of their own.
    name : str
    properties : mapping from str to sequence of str, optional
        Free text about a variable, and about the network under ``""``, as network files hold it.
    max_table_size : int, default 2**27
        The most cells that the clique tables of a compiled junction tree may have together. A cell takes 16 bytes, and
        4 more for each separator next to it; cells that cannot occur take none.

    Raises
    ------
    TypeError
        A name is no string, an edge no pair, a table no CPT, or an argument has another type.
    ValueError
        The edges form a cycle, one occurs twice, or a table does not fit them or the states of another table.

    Notes
    -----
    Evidence is a mapping from a variable to its state; to a set of states, one of which it has; or to a mapping from
    each state to its likelihood (soft evidence, such as a witness who may be wrong). The junction tree of exact
    inference is compiled at the first query and kept until a table changes.

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
        self._spec = NetworkSpec.of(edges, variables, states, tables)
        self.name = text("name", name)
        self.max_table_size = table_size(max_table_size)
        self.properties = given_properties(properties)
        for variable in filter(None, self.properties):
            require_variable(variable, self._spec.dag.parents)
        self._inferred_states: tuple[str, ...] = ()  # variables whose states come from data: the next fit drops them
        self._learning_options: LearningOptions | None = None
        self.statistics_: FamilyCounts | None = None
        self.log_likelihood_trace_: tuple[float, ...] = ()

    def _replace(self, spec: NetworkSpec) -> None:
        """Set other tables, and drop the junction trees that were compiled from the earlier ones."""
        self._spec = spec
        self.__dict__.pop("_inference", None)

    @cached_property
    def _inference(self) -> Inference:
        return self._spec.inference(self.max_table_size)

    def to_parameters(self) -> dict[str, Any]:
        """Return the constructor arguments of an equal network."""
        return {
            "edges": self.edges,
            "variables": self.variables,
            "states": self._spec.states,
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
        """Set p(variable | parents), in place of any earlier table of the variable.

        Parameters
        ----------
        variable : str or CPT
            A CPT is used as it is, without any other argument.
        probabilities : array-like, mapping or data frame
            An array has an axis for each parent and a last one for the variable. For a root, a mapping goes from state
            to probability; otherwise from the parent's state, or the tuple of the parents' states, to such a mapping
            or to a list. A pandas or polars frame has a column for each parent, and either a column for each state
            (wide) or two more, the variable and its probability (long).
        states : sequence of states, optional
            The states of the variable; by default the known ones, or the order in which the table names them.
        parents : sequence of str, optional
            The parents in the order of the axes, or of the states in a tuple; by default the order of the edges.

        Raises
        ------
        ValueError
            The table does not fit the graph or the states of other tables, one of its rows does not sum to 1, or the
            states of a parent are unknown.
        """
        cpt = variable if isinstance(variable, CPT) else self._spec.read_table(variable, probabilities, states, parents)
        self._replace(self._spec.with_tables([cpt]))
        self.statistics_ = None  # these counts do not lead to the tables any more

    @property
    def dag(self) -> DAG:
        """The graph."""
        return self._spec.dag

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self._spec.dag.nodes

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The edges, from parent to child."""
        return self._spec.dag.edges

    @property
    def cpts(self) -> tuple[CPT, ...]:
        """The tables, in the order of the variables."""
        return self._spec.cpts

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of all tables: Σ_v (K_v − 1) Π_{u ∈ parents(v)} K_u."""
        return sum(cpt.n_parameters for cpt in self._inference.cpts)

    def cpt(self, variable: str) -> CPT:
        """Return the table of a variable; ValueError if it has none."""
        return self._spec.table_of(variable)

    def states(self, variable: str) -> States:
        """Return the states of a variable, in their order; ValueError if they are unknown."""
        return self._spec.states_of(variable)

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, BayesianNetwork) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # its tables may change

    def __repr__(self) -> str:
        named = f" {self.name!r}" if self.name else ""
        tables = f"{self.n_parameters:,} parameters" if self._spec.is_complete else f"{len(self.cpts):,} tables so far"
        return f"<BayesianNetwork{named}: {len(self.variables):,} variables, {len(self.edges):,} edges, {tables}>"

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
        r"""Learn the tables of the graph from cases; they replace any earlier tables.

        .. math:: p(x_v = k \mid a) = \frac{n_{ak} + \alpha}{n_a + K \alpha}

        If cells are missing, the counts are expected counts, by EM over the junction tree: no row is dropped.

        Parameters
        ----------
        table : table (n, d)
            Any data frame whose columns have the names of the variables, in any order; or an array with one column
            per variable. Declared states stay. The states of other variables are the categories of their columns; up
            to 32 different integers count as categories too. A hidden variable needs no column, but declared states.
        alpha : float, or mapping from str to float or array, optional
            Pseudo-counts per cell, by default 1 (Laplace); 0 is maximum likelihood. A mapping gives them per variable,
            1 for variables that it leaves out; an array has an axis for each parent and a last one for the variable.
        equivalent_sample_size : float, optional
            Replaces alpha: this many pseudo-rows, spread evenly over the cells of each table (BDeu).
        sample_weight : array-like (n,), optional
            A row of weight 2 counts as two rows.
        max_iter : int, default 200
            The most steps of EM.
        tol : float, default 1e-5
            EM stops when a step gains at most this many nats per row.
        random_state : int, RandomState, Generator or None, default 0
            Seed of the tables from which EM starts for hidden variables.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        BayesianNetwork
            Itself, with ``statistics_``, the counts, and ``log_likelihood_trace_``, the log-likelihood of the known
            cells in nats before each step of EM (empty if no cell is missing). The trace never falls if alpha is 0;
            otherwise its sum with the log-density of the prior, Σ alpha·log p, never falls.

        Raises
        ------
        ValueError
            A column is no variable, holds measurements or a cell that is no state, or is absent; or EM needs more
            cells than max_table_size.

        Warns
        -----
        ConvergenceWarning
            EM reached max_iter; the message has the last gain.
        UserWarning
            alpha is 0 and a configuration of parents never occurs; its row of the table is uniform.

        Notes
        -----
        One pass over the rows, with one increment per row and variable. A step of EM costs as much as the marginals of
        the distinct incomplete rows.

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
        options = LearningOptions.of(self.variables, alpha, equivalent_sample_size, max_iter, tol, random_state)
        declared = self._declared_states()
        counts = count_cases(self.dag, table, declared, sample_weight, n_jobs)
        self._learn(counts, tuple(name for name in self.variables if name not in declared), options, n_jobs)
        return self

    def partial_fit(self, table: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> BayesianNetwork:
        """Learn from more cases: the tables become those of one `fit` to all rows so far, with the same options.

        Parameters
        ----------
        table : table (n, d)
            New states extend the tables, except those of variables with declared states.
        sample_weight : array-like (n,), optional
        n_jobs : int, optional

        Returns
        -------
        BayesianNetwork
            Itself.

        Raises
        ------
        ValueError
            As in `fit`; or the tables were given or loaded, so that there are no counts to add to.
        """
        if self.statistics_ is None or self._learning_options is None:
            if self.cpts:
                raise ValueError(
                    "the tables of this network were given, not learned here, so that there are no counts to add to; "
                    "use fit, or give the tables as pseudo-counts: fit(…, alpha={…})"
                )
            return self.fit(table, sample_weight=sample_weight, n_jobs=n_jobs)
        counts = count_cases(self.dag, table, self._declared_states(), sample_weight, n_jobs)
        self._learn(joined(self.statistics_, counts), self._inferred_states, self._learning_options, n_jobs)
        return self

    def _declared_states(self) -> dict[str, States]:
        """Return the known states, without those that an earlier fit took from its table."""
        return {name: states for name, states in self._spec.states.items() if name not in self._inferred_states}

    def _learn(
        self, counts: FamilyCounts, inferred: tuple[str, ...], options: LearningOptions, n_jobs: int | None
    ) -> None:
        learned = fit_tables(counts, options, self.max_table_size, n_jobs)
        self._replace(self._spec.with_learned(learned.cpts))
        self._inferred_states = inferred
        self._learning_options = options
        self.statistics_ = counts
        self.log_likelihood_trace_ = learned.trace

    # Queries about one case -------------------------------------------------------------------------------------

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
            By default every variable whose state the evidence leaves open.
        evidence : mapping, optional
            From variable to state, to a set of states, or to a mapping from each state to its likelihood.
        joint : bool, default True
            Whether to return one joint distribution instead of one distribution per variable.
        method : {"exact", "sampling"}, default "exact"
            By junction tree, or by likelihood weighting, which has no limit of size but a standard error.
        n_samples : int, default 10,000
        random_state : int, RandomState, Generator or None
            Seed of the samples.

        Returns
        -------
        Distribution or Marginals
            Marginals if joint is False or no variable is named.

        Raises
        ------
        ValueError
            There is no such variable or state, the evidence has probability 0, or exact inference needs more cells
            than max_table_size; the message has their number.
        """
        return queries.query(self._inference, variables, evidence, joint, method, n_samples, random_state)

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
            With a ``standard_error`` if it is sampled.

        Raises
        ------
        ValueError
            As in `query`.
        """
        return queries.probability(self._inference, event, given, method, n_samples, random_state)

    def most_probable(self, evidence: Evidence | None = None) -> MostProbable:
        """Return the most probable configuration of all variables given evidence (MPE).

        Parameters
        ----------
        evidence : mapping, optional
            As in `query`.

        Returns
        -------
        MostProbable
            It may differ from the most probable states of the single variables.

        Raises
        ------
        ValueError
            As in `query`.
        """
        return queries.most_probable(self._inference, evidence)

    def joint(self, *variables: str) -> Distribution:
        """Return the joint distribution of some variables, by default of all.

        Parameters
        ----------
        *variables : str
            By default all.

        Returns
        -------
        Distribution

        Raises
        ------
        ValueError
            It has more than max_table_size cells.
        """
        distribution: Distribution = self.query(*(variables or self.variables))
        return distribution

    def conditional(self, variables: str | Sequence[str], given: str | Sequence[str]) -> ConditionalDistribution:
        """Return p(variables | given) = p(variables, given) / p(given) for any split of variables.

        Parameters
        ----------
        variables, given : str or sequence of str

        Returns
        -------
        ConditionalDistribution
            NaN where the given configuration has probability 0.

        Raises
        ------
        ValueError
            There is no such variable, one is named twice, or the table has more than max_table_size cells.
        """
        self._spec.dag.require_apart(variables, given, ())
        return queries.conditional(self._inference, as_names(variables), as_names(given))

    def sample(self, n: int = 1, evidence: Evidence | None = None, random_state: Any = None) -> Any:
        """Draw configurations of all variables: ancestral sampling or, given evidence, exactly from the junction tree.

        Parameters
        ----------
        n : int, default 1
        evidence : mapping, optional
            As in `query`.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        polars.DataFrame (n, V)
            Columns of strings are an Enum of the states.

        Raises
        ------
        ValueError
            n is no whole number of at least 1, or is too large; or as in `query`.
        """
        return queries.sample(self._inference, evidence, n, random_state)

    # Queries about many cases -----------------------------------------------------------------------------------

    def log_likelihood(self, table: Any, *, n_jobs: int | None = None) -> Array:
        """Return log p(row) in nats, (n,), missing cells summed out.

        Parameters
        ----------
        table : table (n, d)
            Any data frame whose columns have the names of the variables, in any order; a variable may be absent.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray (n,)
            −inf in rows of probability 0; the sum is the log-likelihood of the table.

        Raises
        ------
        ValueError
            A column is no variable, a cell no state, or exact inference needs more cells than max_table_size.
        """
        return self._inference.log_likelihood(read_codes(table, self._inference.states), n_jobs)

    def predict_proba(self, table: Any, target: str, *, n_jobs: int | None = None) -> Array:
        """Return p(target | the other cells of the row), (n, K), missing cells summed out.

        Parameters
        ----------
        table : table (n, d)
            As in `log_likelihood`; a column of the target is ignored.
        target : str
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        ndarray (n, K)
            In the order of ``net.states(target)``; NaN, with a warning, in rows of probability 0.

        Raises
        ------
        ValueError
            As in `log_likelihood`; or there is no such variable.
        """
        return queries.target_marginal(self._inference, table, target, n_jobs)

    def as_classifier(self, target: str, *, n_jobs: int | None = None) -> ClassifierMixin:
        """Return a fitted scikit-learn classifier that predicts one variable from any of the others.

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
        # imported here, because the module of the classifier imports this one
        from posteriori.networks.classifier import NetworkClassifier

        return NetworkClassifier(self, target, n_jobs=n_jobs)._set_network(self)

    def marginals(
        self,
        table: Any,
        variables: str | Sequence[str] | None = None,
        *,
        soft: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> dict[str, Array]:
        """Return p(variable | the known cells of the row) per variable.

        Parameters
        ----------
        table : table (n, d)
            As in `log_likelihood`.
        variables : str or sequence of str, optional
            By default all.
        soft : mapping from str to array-like (K,) or (n, K), optional
            Likelihoods of the states of a variable (soft evidence), for all rows or per row.
        n_jobs : int, optional
            Threads; all cores by default.

        Returns
        -------
        dict from str to ndarray (n, K)
            1 at the state of a known cell; NaN, with a warning, in rows of probability 0.

        Raises
        ------
        ValueError
            As in `log_likelihood`; or a likelihood is negative or of another shape.
        """
        return queries.marginals(self._inference, table, variables, soft, n_jobs)

    # Independence -----------------------------------------------------------------------------------------------

    def d_separated(self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the given variables block every trail from x to y; see `DAG.d_separated`."""
        return self._spec.dag.d_separated(x, y, given)

    def markov_blanket(self, x: str) -> frozenset[str]:
        """Return the variables that make x independent of all others; see `DAG.markov_blanket`."""
        return self._spec.dag.markov_blanket(x)

    def independencies(self, max_given: int | None = None) -> tuple[Independence, ...]:
        """Return every independence of two variables that the graph implies; see `DAG.independencies`."""
        return self._spec.dag.independencies(max_given)

    why = Renamed("active_trails")

    def active_trails(self, x: str, y: str, given: str | Iterable[str] = (), limit: int = 20) -> DependenceExplanation:
        """Return the active trails between x and y, or the blocked ones if none is; see `networks.active_trails`."""
        return active_trails(self._spec.dag, x, y, given, limit)
