"""The Bayesian network: built from edges and tables or learned from cases, and queried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Self

from posteriori.model.answer import Answer, Categories
from posteriori.networks.causal.adjustment import AdjustmentSets, adjustment_sets
from posteriori.networks.causal.identification import Identification, causal_effect, identify
from posteriori.networks.classifier import NetworkClassifier
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG, DependenceExplanation, Independence, active_trails
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import States, as_names, require_variable
from posteriori.networks.graph.specification import (
    NetworkSpec,
    given_properties,
    given_tables,
    mutilated,
    table_size,
    text,
)
from posteriori.networks.inference import decision_support, questions
from posteriori.networks.inference.decision_support import InformationValues, Sensitivity
from posteriori.networks.inference.distributions import ConditionalDistribution, Distribution, MostProbable
from posteriori.networks.inference.inference import Inference
from posteriori.networks.inference.table_inference import TableInference
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.family_statistics import FamilyStatistics, count_cases, joined
from posteriori.networks.learning.parameters import LearningOptions, fit_tables
from posteriori.networks.notebooks import network_html
from posteriori.registry import Subject
from posteriori.support.keywords import Elsewhere, explain_unknown_keywords
from posteriori.support.typing import Array

Method = Literal["exact", "conditioning", "sampling"]
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
    cpts : sequence of CPT and LinearGaussian
        The first tables, and densities of continuous variables; their parents need no edges of their own.
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

    A continuous variable has a normal density whose mean is linear in its continuous parents, for each configuration of
    its discrete parents (`add_gaussian`; CLG). Evidence about it is a number, or a `networks.Measurement`; answers are
    exact mixtures (`networks.GaussianMixture`).

    References
    ----------
    Koller & Friedman (2009), Probabilistic Graphical Models, chapters 3, 9, 10 and 14.
    Lauritzen & Jensen (2001), Stable local computation with conditional Gaussian distributions, Statistics and
    Computing 11.

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

    subject = Subject.VARIABLES

    save = Elsewhere("use po.save(net, path), or po.write_network(net, path) for other formats")
    impute = Elsewhere("net.marginals(table) has p(variable | the known cells) of every row")

    def __init__(
        self,
        edges: Iterable[Any] = (),
        *,
        variables: Iterable[str] = (),
        states: Mapping[str, Sequence[Any]] | None = None,
        cpts: Iterable[CPT | LinearGaussian] = (),
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
        self.statistics_: FamilyStatistics | None = None
        self.log_likelihood_trace_: tuple[float, ...] = ()

    def to_parameters(self) -> dict[str, Any]:
        """Return the constructor arguments of an equal network."""
        return {
            "edges": self.edges,
            "variables": self.variables,
            "states": self._spec.states,
            "cpts": (*self.cpts, *self.gaussians),
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

    def add_gaussian(
        self,
        variable: str | LinearGaussian,
        intercept: Any = 0.0,
        coefficients: Any = None,
        variance: Any = 1.0,
    ) -> None:
        r"""Make a variable continuous: p(x | d, u) = N(intercept_d + Σ coefficient_d·u, variance_d).

        Parameters
        ----------
        variable : str or LinearGaussian
            A LinearGaussian is used as it is, without any other argument.
        intercept, variance : number, array-like, or mapping
            A mapping goes from the state of the discrete parent, or the tuple of states, to a number; an array has an
            axis for each discrete parent.
        coefficients : mapping, optional
            From each continuous parent to a number, or to one per configuration as above.

        Raises
        ------
        ValueError
            A parameter is missing or no number; a variance is negative; the variable has states; or a child of it is
            discrete, for which there is no exact inference.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("machine", "length"), ("length", "weight")])
        >>> net.add_cpt("machine", {"old": 0.3, "new": 0.7})
        >>> net.add_gaussian("length", {"old": 10.2, "new": 10.0}, variance={"old": 0.04, "new": 0.01})
        >>> net.add_gaussian("weight", 1.0, {"length": 2.0}, 0.25)
        >>> net.query("length", evidence={"weight": 22.0})
        p(length | weight = 22.0)
        variable     mean        sd    2.5 %   97.5 %
        length    10.2093  0.180737  9.91696  10.5832
        a mixture of 2 normal densities
        >>> round(net.probability({"machine": "old"}, given={"weight": 22.0}), 4)
        0.5658
        """
        if not isinstance(variable, LinearGaussian):
            variable = self._spec.read_gaussian(variable, intercept, coefficients, variance)
        self._replace(self._spec.with_tables([variable]))
        self.statistics_ = None

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
    def gaussians(self) -> tuple[LinearGaussian, ...]:
        """The densities of the continuous variables, in the order of the variables."""
        return self._spec.gaussians

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of all tables, Σ_v (K_v − 1) Π_{u ∈ parents(v)} K_u, and of all densities."""
        return sum(self._spec.table_of(name).n_parameters for name in self.variables)

    def cpt(self, variable: str) -> Any:
        """Return the table of a variable, or its LinearGaussian if it is continuous; ValueError if it has none."""
        return self._spec.table_of(variable)

    def states(self, variable: str) -> States:
        """Return the states of a variable, in their order; ValueError if they are unknown."""
        return self._spec.states_of(variable)

    def as_classifier(self, target: str, *, n_jobs: int | None = None) -> NetworkClassifier:
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
        return NetworkClassifier(self, target, n_jobs=n_jobs)._set_network(self)

    def answer(self, X: Any, column: str) -> Answer:
        """Return the probabilities of the states of a variable in each row, given its other cells.

        Parameters
        ----------
        X : table
            Cells that are missing, and columns that are absent, are summed out; those of the variable are not read.
        column : str
            A variable with states.

        Raises
        ------
        ValueError
            There is no such variable, or it is continuous.
        """
        model = self.as_classifier(column)
        return Answer(column, Categories(tuple(model.classes_.tolist())), model.predict_proba(X))

    # Learning ---------------------------------------------------------------------------------------------------------

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
    ) -> Self:
        r"""Learn the tables of the graph from cases; they replace any earlier tables.

        .. math:: p(x_v = k \mid a) = \frac{n_{ak} + \alpha}{n_a + K \alpha}

        If cells are missing, the counts are expected counts, by EM over the junction tree: no row is dropped.

        Parameters
        ----------
        table : table (n, d)
            Any data frame whose columns have the names of the variables, in any order; or an array with one column
            per variable. Declared states stay. The states of other variables are the categories of their columns; up
            to 32 different integers count as categories too. A column of other numbers is a continuous variable, whose
            density is estimated by maximum likelihood. A hidden variable needs no column, but declared states.
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
            A column is no variable, holds a cell that is no state, or is absent; a column of measurements has a child
            of states; or EM needs more cells than max_table_size.

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
        options = LearningOptions.of(self._spec.dag.nodes, alpha, equivalent_sample_size, max_iter, tol, random_state)
        declared = self._declared_states()
        counts = self._statistics(table, declared, sample_weight, n_jobs)
        self._learn(counts, tuple(name for name in self._spec.dag.nodes if name not in declared), options, n_jobs)
        return self

    def partial_fit(self, table: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> Self:
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
            if self._spec.tables:
                raise ValueError(
                    "the tables of this network were given, not learned here, so that there are no counts to add to; "
                    "use fit, or give the tables as pseudo-counts: fit(…, alpha={…})"
                )
            return self.fit(table, sample_weight=sample_weight, n_jobs=n_jobs)
        counts = self._statistics(table, self._declared_states(), sample_weight, n_jobs)
        self._learn(joined(self.statistics_, counts), self._inferred_states, self._learning_options, n_jobs)
        return self

    def _statistics(
        self, table: Any, declared: dict[str, States], sample_weight: Any, n_jobs: int | None
    ) -> FamilyStatistics:
        continuous = {one.variable for one in self._spec.gaussians}
        cases = open_cases(table, self._spec.dag.nodes, declared, sample_weight, n_jobs, continuous)
        return count_cases(self._spec.dag, cases)

    def _declared_states(self) -> dict[str, States]:
        """Return the known states, without those that an earlier fit took from its table."""
        return {name: states for name, states in self._spec.states.items() if name not in self._inferred_states}

    def _learn(
        self, counts: FamilyStatistics, inferred: tuple[str, ...], options: LearningOptions, n_jobs: int | None
    ) -> None:
        learned = fit_tables(self._spec.dag, counts, options, self.max_table_size, n_jobs)
        self._replace(self._spec.with_learned(learned.cpts))
        self._inferred_states = inferred
        self._learning_options = options
        self.statistics_ = counts
        self.log_likelihood_trace_ = learned.trace

    # One case ---------------------------------------------------------------------------------------------------------

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
        method : {"exact", "conditioning", "sampling"}, default "exact"
            By junction tree; exactly by conditioning, one small junction tree after the other, where a single tree
            needs more than max_table_size; or by likelihood weighting, which has no limit of size but a standard error.
        n_samples : int, default 10,000
        random_state : int, RandomState, Generator or None
            Seed of the samples.

        Returns
        -------
        Distribution or Marginals
            Marginals if joint is False or no variable is named. Of continuous variables a GaussianMixture; of both
            kinds together a MixedDistribution.

        Raises
        ------
        ValueError
            There is no such variable or state, the evidence has probability 0, or exact inference needs more cells
            than max_table_size; the message has their number.
        """
        return questions.query(self._inference, variables, evidence, joint, method, n_samples, random_state)

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
            From variable to state, or to a set of states, one of which it has; see also `query`. The event of a
            continuous variable is an interval (low, high).
        method : {"exact", "conditioning", "sampling"}, default "exact"
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
        return questions.probability(self._inference, event, given, method, n_samples, random_state)

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
        return questions.most_probable(self._inference, evidence)

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
        distribution: Distribution = self.query(*(variables or self._spec.dag.nodes))
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
        return questions.conditional(self._inference, as_names(variables), as_names(given))

    @partial(explain_unknown_keywords, groups={}, wanted={"given": (("evidence", "use evidence={variable: state}"),)})
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
        return questions.sample(self._inference, evidence, n, random_state)

    # The rows of a table ----------------------------------------------------------------------------------------------

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
        return questions.log_likelihood(self._inference, table, n_jobs)

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
        return questions.target_marginal(self._inference, table, target, n_jobs)

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
            1 at the state of a known cell; NaN, with a warning, in rows of probability 0. Of a continuous variable the
            mean and the variance, (n, 2).

        Raises
        ------
        ValueError
            As in `log_likelihood`; or a likelihood is negative or of another shape.
        """
        return questions.marginals(self._inference, table, variables, soft, n_jobs)

    # The graph --------------------------------------------------------------------------------------------------------

    def d_separated(self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the given variables block every trail from x to y; see `DAG.d_separated`."""
        return self._spec.dag.d_separated(x, y, given)

    def markov_blanket(self, x: str) -> frozenset[str]:
        """Return the variables that make x independent of all others; see `DAG.markov_blanket`."""
        return self._spec.dag.markov_blanket(x)

    def independencies(self, max_given: int | None = None) -> tuple[Independence, ...]:
        """Return every independence of two variables that the graph implies; see `DAG.independencies`."""
        return self._spec.dag.independencies(max_given)

    def active_trails(self, x: str, y: str, given: str | Iterable[str] = (), limit: int = 20) -> DependenceExplanation:
        """Return the active trails between x and y, or the blocked ones if none is; see `networks.active_trails`."""
        return active_trails(self._spec.dag, x, y, given, limit)

    # Causes -----------------------------------------------------------------------------------------------------------

    def do(self, settings: Mapping[str, Any]) -> Self:
        r"""Return the network after an intervention: the variables are set from outside, whatever their causes are.

        .. math:: p(x \mid \mathrm{do}(x_S = s)) = [x_S = s] \prod_{v \notin S} p(x_v \mid x_{\mathrm{parents}(v)})

        Parameters
        ----------
        settings : mapping
            From variable to the state it is set to, or to a mapping from state to probability, by which it is drawn.

        Returns
        -------
        BayesianNetwork
            Without the edges into these variables; every query can be put to it.

        Raises
        ------
        ValueError
            There is no such variable or state, or probabilities do not sum to 1.

        References
        ----------
        Pearl (2009), Causality, second edition, section 3.2.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("rain", "wet")])
        >>> net.add_cpt("rain", {"yes": 0.2, "no": 0.8})
        >>> net.add_cpt("wet", {"yes": {"yes": 0.9, "no": 0.1}, "no": {"yes": 0.1, "no": 0.9}})
        >>> round(net.probability({"rain": "yes"}, given={"wet": "yes"}), 4)  # wet grass is a sign of rain
        0.6923
        >>> net.do({"wet": "yes"}).probability({"rain": "yes"})  # to pour water on it brings no rain
        0.2
        """
        after = type(self)(name=self.name, properties=self.properties, max_table_size=self.max_table_size)
        return after._with_spec(mutilated(self._spec, settings))

    def adjustment_sets(self, x: str, y: str, hidden: str | Iterable[str] = ()) -> AdjustmentSets:
        """Return the variables to adjust for to estimate the effect of x on y; see `networks.adjustment_sets`."""
        return adjustment_sets(self._spec.dag, x, y, hidden)

    def identify(
        self,
        outcome: str | Iterable[str],
        treatment: str | Iterable[str],
        given: str | Iterable[str] = (),
        hidden: str | Iterable[str] = (),
    ) -> Identification:
        """Return the formula of an effect in observed probabilities, or why there is none; see `networks.identify`."""
        return identify(self._spec.dag, outcome, treatment, given, hidden)

    def causal_effect(
        self,
        outcome: str | Iterable[str],
        settings: Mapping[str, Any],
        evidence: Mapping[str, Any] | None = None,
        hidden: str | Iterable[str] = (),
    ) -> Distribution:
        """Return p(outcome | do(settings), evidence) by its formula in probabilities of the observed variables.

        It equals ``net.do(settings).query(outcome, evidence=evidence)``, but uses no probability of a hidden variable:
        a network whose hidden variables have other tables, and the same observed distribution, gives the same answer.

        Parameters
        ----------
        outcome : str or collection of str
        settings : mapping
            From each treatment to its state.
        evidence : mapping, optional
            From variable to state.
        hidden : str or collection of str

        Returns
        -------
        Distribution

        Raises
        ------
        TypeError
            The settings are no mapping.
        ValueError
            The effect is not identifiable from the observed variables; the message has the reason. Or there is no such
            variable or state, or the evidence is impossible.
        """
        return causal_effect(self._spec, self._inference, outcome, settings, evidence, hidden)

    # Decisions --------------------------------------------------------------------------------------------------------

    def value_of_information(
        self,
        target: str,
        evidence: Mapping[str, Any] | None = None,
        *,
        costs: Mapping[Any, Mapping[Any, float]] | None = None,
        test_costs: Mapping[str, float] | None = None,
        candidates: Iterable[str] | None = None,
    ) -> InformationValues:
        r"""Return the value of observing each variable before a decision about the target.

        .. math::
            \min_a \sum_t c(a, t)\, p(t \mid e) - \sum_x \min_a \sum_t c(a, t)\, p(t, x \mid e)

        Parameters
        ----------
        target : str
        evidence : mapping, optional
            As in `query`.
        costs : mapping from action to mapping from state to number, optional
            The cost of each action in each state of the target. Without it, variables are ordered by their mutual
            information with the target.
        test_costs : mapping from str to number, optional
            What the observation of a variable costs, in the same unit.
        candidates : sequence of str, optional
            The variables that can be observed; by default all whose state is open.

        Returns
        -------
        InformationValues
            Best first: by what an observation saves less what it costs, or by information.

        Raises
        ------
        ValueError
            The target is known, a cost is missing, or a variable is continuous; or as in `query`.

        References
        ----------
        Howard (1966), Information value theory, IEEE Transactions on Systems Science and Cybernetics 2.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("ill", "test"), ("ill", "cough")])
        >>> net.add_cpt("ill", {"yes": 0.1, "no": 0.9})
        >>> net.add_cpt("test", {"yes": {"+": 0.9, "-": 0.1}, "no": {"+": 0.05, "-": 0.95}})
        >>> net.add_cpt("cough", {"yes": {"yes": 0.5, "no": 0.5}, "no": {"yes": 0.2, "no": 0.8}})
        >>> costs = {"treat": {"yes": 1, "no": 4}, "wait": {"yes": 20, "no": 0}}
        >>> net.value_of_information("ill", costs=costs, test_costs={"test": 0.5})
        what to observe about ill; now 'wait' is best, with an expected cost of 2
        variable  information (nats)  saves  costs   net
        test                0.184610   1.53    0.5  1.03
        cough               0.019599   0.23      0  0.23
        """
        inference = self._discrete("the value of information")
        return decision_support.value_of_information(inference, target, evidence, costs, test_costs, candidates)

    def sensitivity(
        self, event: Mapping[str, Any], evidence: Mapping[str, Any] | None = None, *, change: float = 0.1
    ) -> Sensitivity:
        """Return how far p(event | evidence) depends on each parameter and on each finding.

        Parameters
        ----------
        event : mapping
            As in `probability`.
        evidence : mapping, optional
        change : float, default 0.1
            The range of each parameter: this share less and more, within 0 and 1.

        Returns
        -------
        Sensitivity
            Of each parameter the function (αθ + β)/(γθ + δ), exact, and its range; largest range first.

        Raises
        ------
        TypeError
            The event is no mapping.
        ValueError
            The event contradicts the evidence, which is impossible, or a variable is continuous.

        Notes
        -----
        Two passes over the junction tree give the functions of all parameters, from p(family | evidence).

        References
        ----------
        Castillo, Gutiérrez & Hadi (1997), Sensitivity analysis in discrete Bayesian networks, IEEE Transactions on
        Systems, Man, and Cybernetics 27. Kjærulff & van der Gaag (2000), Making sensitivity analysis computationally
        efficient, UAI 16.

        Examples
        --------
        >>> import posteriori as po
        >>> net = po.BayesianNetwork([("ill", "test")])
        >>> net.add_cpt("ill", {"yes": 0.1, "no": 0.9})
        >>> net.add_cpt("test", {"yes": {"+": 0.9, "-": 0.1}, "no": {"+": 0.05, "-": 0.95}})
        >>> found = net.sensitivity({"ill": "yes"}, {"test": "+"})
        >>> print(found.parameters[0], round(found.parameters[0](0.2), 4))
        p(ill = no) 0.9863
        """
        return decision_support.sensitivity(self._discrete("sensitivity"), event, evidence, change)

    def arc_strengths(self) -> dict[tuple[str, str], float]:
        """Return the strength of each edge: I(parent; child | other parents of the child), in nats.

        It is what the network loses in expected log-likelihood per row if the edge is removed and the table of the
        child learned again from the network.

        Returns
        -------
        dict from pair (parent, child) to float

        Raises
        ------
        ValueError
            A variable is continuous, or exact inference needs more cells than max_table_size.
        """
        return decision_support.arc_strengths(self._discrete("the strength of an edge"))

    def _discrete(self, what: str) -> TableInference:
        """Return exact inference; ValueError if a variable is continuous."""
        if self._spec.gaussians:
            raise ValueError(
                f"{self._spec.gaussians[0].variable!r} is continuous, and {what} is computed of discrete variables only"
            )
        return self._inference.tables

    # The state --------------------------------------------------------------------------------------------------------

    def _replace(self, spec: NetworkSpec) -> None:
        """Set other tables, and drop the junction trees that were compiled from the earlier ones."""
        self._spec = spec
        self.__dict__.pop("_inference", None)

    def _with_spec(self, spec: NetworkSpec) -> Self:
        """Set the specification of a network that was just made, and return the network."""
        self._replace(spec)
        return self

    @cached_property
    def _inference(self) -> Inference:
        """Inference with the tables; it keeps the junction trees that it compiles."""
        return self._spec.inference(self.max_table_size)

    def __eq__(self, other: object) -> bool:
        return self._spec == other._spec if isinstance(other, BayesianNetwork) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # its tables may change

    def __repr__(self) -> str:
        named = f" {self.name!r}" if self.name else ""
        n_tables = len(self._spec.tables)
        tables = f"{self.n_parameters:,} parameters" if self._spec.is_complete else f"{n_tables:,} tables so far"
        return f"<BayesianNetwork{named}: {len(self.variables):,} variables, {len(self.edges):,} edges, {tables}>"

    def _repr_html_(self) -> str:
        return network_html(self)
