"""The Bayesian network: built from edges and tables or learned from cases, and queried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import ClassifierMixin

from posteriori.networks.case_queries import CaseQueries
from posteriori.networks.causal_queries import CausalQueries
from posteriori.networks.classifier import NetworkClassifier
from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG
from posteriori.networks.decision_queries import DecisionQueries
from posteriori.networks.graph_queries import GraphQueries
from posteriori.networks.linear_gaussian import LinearGaussian
from posteriori.networks.naming import States
from posteriori.networks.notebooks import network_html
from posteriori.networks.table_learning import TableLearning
from posteriori.networks.table_queries import TableQueries


class BayesianNetwork(TableLearning, CaseQueries, TableQueries, GraphQueries, CausalQueries, DecisionQueries):
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
        return NetworkClassifier(self, target, n_jobs=n_jobs)._set_network(self)

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
