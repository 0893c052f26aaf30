"""The specification of a Bayesian network: graph, states and tables, also after interventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from posteriori.networks.graph.cpt import CPT, check_states, cpt_from
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.linear_gaussian import LinearGaussian, gaussian_from
from posteriori.networks.graph.naming import (
    States,
    as_names,
    first_repeated,
    require_findings,
    require_variable,
    state_code,
)
from posteriori.networks.inference.inference import Inference
from posteriori.support.typing import Array


@dataclass(frozen=True, eq=False)
class NetworkSpec:
    """Graph, states and conditional probability tables of a network; some tables may still be missing.

    Attributes
    ----------
    dag : DAG
    states : dict from str to tuple of states
        Of the variables whose states are known.
    tables : dict from str to CPT or LinearGaussian
        The tables and densities so far. Each fits the graph, and they agree on the states.
    """

    dag: DAG
    states: dict[str, States] = field(default_factory=dict)
    tables: dict[str, CPT | LinearGaussian] = field(default_factory=dict)

    @classmethod
    def of(cls, edges: Any, variables: Any, states: Any, tables: Sequence[CPT | LinearGaussian]) -> NetworkSpec:
        """Check the arguments of `BayesianNetwork` and return the specification that they give.

        Raises
        ------
        TypeError
            A name is no string, or an edge no pair.
        ValueError
            The edges form a cycle, one occurs twice, or a table does not fit them or the states of another.
        """
        dag = _graph(edges, variables, tables)
        declared: dict[str, States] = {}
        for variable, listed in mapping("states", states).items():
            declared[variable] = check_states(variable, listed)
        for name in declared:
            require_variable(name, dag.parents)
        return cls(dag, declared).with_tables(tables)

    def with_tables(self, tables: Iterable[CPT | LinearGaussian]) -> NetworkSpec:
        """Return the specification with more tables; a table replaces the earlier one of its variable.

        Raises
        ------
        ValueError
            A table does not fit the graph, or its states differ from the known ones.
        """
        states, known_tables = dict(self.states), dict(self.tables)
        for cpt in tables:
            require_variable(cpt.variable, self.dag.parents)
            self._require_parents(cpt.variable, cpt.all_parents)
            self._require_same_states(cpt, states, known_tables)
            if isinstance(cpt, CPT):
                states[cpt.variable] = cpt.states
            states.update(cpt.parents)
            known_tables[cpt.variable] = cpt
        _require_kinds(states, known_tables)
        return replace(self, states=states, tables=known_tables)

    def with_learned(self, cpts: Iterable[CPT | LinearGaussian]) -> NetworkSpec:
        """Return the same graph with the states and tables that were learned for all of its variables."""
        learned = {cpt.variable: cpt for cpt in cpts}
        states = {name: cpt.states for name, cpt in learned.items() if isinstance(cpt, CPT)}
        return NetworkSpec(self.dag, states, learned)

    def read_table(
        self, variable: str, probabilities: Any, states: Sequence[Any] | None, parents: Sequence[str] | None
    ) -> CPT:
        """Return the CPT that the arguments of `BayesianNetwork.add_cpt` describe.

        Raises
        ------
        ValueError
            The table does not fit the graph, or the states of a parent are unknown.
        """
        require_variable(variable, self.dag.parents)
        if probabilities is None:
            raise ValueError(f"the table of {variable!r} is missing; give its probabilities, or a CPT alone")
        order = self.dag.parents[variable] if parents is None else as_names(parents)
        self._require_parents(variable, order)
        for parent in order:
            if isinstance(self.tables.get(parent), LinearGaussian):
                raise continuous_parent(variable, parent)
            if parent not in self.states:
                raise ValueError(
                    f"the states of {parent!r}, a parent of {variable!r}, are not known; add its table first, "
                    "or name them in BayesianNetwork(…, states={…})"
                )
        # The known states of the variable itself give way to those in the call.
        known = {name: listed for name, listed in self.states.items() if name in order or states is None}
        return cpt_from(variable, probabilities, states, order, known)

    def read_gaussian(self, variable: str, intercept: Any, coefficients: Any, variance: Any) -> LinearGaussian:
        """Return the density that the arguments of `BayesianNetwork.add_gaussian` describe."""
        require_variable(variable, self.dag.parents)
        return gaussian_from(variable, self.dag.parents[variable], self.states, intercept, coefficients, variance)

    def _require_parents(self, variable: str, given: Iterable[str]) -> None:
        expected = self.dag.parents[variable]
        if sorted(given) != sorted(expected):
            raise ValueError(
                f"the table of {variable!r} has the parents {', '.join(map(repr, given)) or 'none'}, but in the graph "
                f"they are {', '.join(map(repr, expected)) or 'none'}; change the table or the edges"
            )

    def _require_same_states(
        self, cpt: CPT | LinearGaussian, states: Mapping[str, States], tables: Mapping[str, CPT | LinearGaussian]
    ) -> None:
        own = {cpt.variable: cpt.states} if isinstance(cpt, CPT) else {}
        for name, listed in {**own, **cpt.parents}.items():
            known = states.get(name)
            if known is None or known == listed:
                continue
            # A new table may change the states of its own variable, as long as no table of a child lists them.
            if name != cpt.variable or any(child in tables for child in self.dag.children[name]):
                raise ValueError(
                    f"the table of {cpt.variable!r} gives {name!r} the states {', '.join(map(repr, listed))}; "
                    f"elsewhere they are {', '.join(map(repr, known))}, and must be the same in the same order"
                )

    @property
    def cpts(self) -> tuple[CPT, ...]:
        """The tables so far of discrete variables, in the order of the variables."""
        return tuple(table for table in self._ordered if isinstance(table, CPT))

    @property
    def gaussians(self) -> tuple[LinearGaussian, ...]:
        """The densities so far of continuous variables, in the order of the variables."""
        return tuple(table for table in self._ordered if isinstance(table, LinearGaussian))

    @property
    def _ordered(self) -> list[CPT | LinearGaussian]:
        return [self.tables[name] for name in self.dag.nodes if name in self.tables]

    @property
    def is_complete(self) -> bool:
        """Whether every variable has a table."""
        return len(self.tables) == len(self.dag.nodes)

    def table_of(self, variable: str) -> Any:
        """Return the CPT or LinearGaussian of a variable; ValueError if it has none."""
        require_variable(variable, self.dag.parents)
        if variable not in self.tables:
            raise ValueError(f"{variable!r} has no table yet; add it: net.add_cpt({variable!r}, …)")
        return self.tables[variable]

    def states_of(self, variable: str) -> States:
        """Return the states of a variable in their order; ValueError if they are unknown."""
        require_variable(variable, self.dag.parents)
        if isinstance(self.tables.get(variable), LinearGaussian):
            raise ValueError(f"{variable!r} is continuous, so that it has no states")
        if variable not in self.states:
            raise ValueError(f"the states of {variable!r} are not known yet; add its table")
        return self.states[variable]

    def inference(self, max_table_size: int) -> Inference:
        """Return inference with these tables; ValueError if a variable has none."""
        for name in self.dag.nodes:
            self.table_of(name)
        order = {name: place for place, name in enumerate(self.dag.topological_order)} if self.gaussians else {}
        gaussians = tuple(sorted(self.gaussians, key=lambda one: order[one.variable]))
        return Inference(self.dag, self.cpts, gaussians, max_table_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NetworkSpec):
            return NotImplemented
        return (
            self.dag.nodes == other.dag.nodes
            and self.states == other.states
            and self._ordered == other._ordered
            and _parent_sets(self.dag) == _parent_sets(other.dag)
        )


def _graph(edges: Any, variables: Any, tables: Sequence[CPT | LinearGaussian]) -> DAG:
    """Return the graph of the edges, and of the parents that tables have without an edge of their own."""
    given = [given_edge(edge) for edge in items("edges", edges)]
    names = as_names(variables) if isinstance(variables, str) else items("variables", variables)
    for name in names:
        text("the name of a variable", name)
    known = set(given)
    implied = [(parent, cpt.variable) for cpt in tables for parent in cpt.all_parents]
    # Without edges the tables give the order of the variables; with edges the edges do.
    order = names or () if given else (*names, *(cpt.variable for cpt in tables))
    return DAG.of([*given, *(edge for edge in implied if edge not in known)], order)


def _require_kinds(states: Mapping[str, States], tables: Mapping[str, CPT | LinearGaussian]) -> None:
    """Raise ValueError if a variable is taken for discrete and for continuous, or a discrete one depends on the other.

    Without discrete children of continuous variables, all densities are normal given the discrete variables.
    """
    for table in tables.values():
        if isinstance(table, CPT):
            for parent in table.parents:
                if isinstance(tables.get(parent), LinearGaussian):
                    raise continuous_parent(table.variable, parent)
            continue
        for name in (table.variable, *table.continuous):
            if name in states:
                raise ValueError(
                    f"{name!r} has states, but the density of {table.variable!r} takes it for continuous; change one"
                )


def continuous_parent(variable: str, parent: str) -> ValueError:
    """Return the error about a discrete child of a continuous variable."""
    return ValueError(
        f"{variable!r} is discrete and its parent {parent!r} continuous; this has no exact inference: reverse the "
        f"edge, or cut {parent!r} into intervals"
    )


def _parent_sets(dag: DAG) -> dict[str, set[str]]:
    return {name: set(parents) for name, parents in dag.parents.items()}


def table_size(value: Any) -> int:
    """Return max_table_size as an integer; ValueError unless it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"max_table_size is {value!r}; it must be a whole number of at least 1")
    return int(value)


def given_tables(cpts: Any) -> tuple[CPT | LinearGaussian, ...]:
    """Return the tables and densities, at most one per variable.

    Raises
    ------
    TypeError
        An item is no CPT and no LinearGaussian.
    ValueError
        A variable has two tables.
    """
    tables = items("cpts", cpts)
    for cpt in tables:
        if not isinstance(cpt, CPT | LinearGaussian):
            raise TypeError(f"cpts holds {cpt!r}, a {type(cpt).__name__}; give a CPT or LinearGaussian")
    names = [cpt.variable for cpt in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"the variable {first_repeated(names)!r} has two tables; leave one out")
    return tables


def given_edge(edge: Any) -> Any:
    """Return an edge as a tuple of names; TypeError for other types. `DAG` checks its length."""
    pair = tuple(edge) if isinstance(edge, list) else edge
    if isinstance(pair, tuple):
        for name in pair:
            text("the name of a variable", name)
        return pair
    raise TypeError(f"{edge!r} is no edge; an edge is a pair (parent, child)")


def given_properties(properties: Any) -> dict[str, tuple[str, ...]]:
    """Return the properties of the network and of its variables; TypeError unless all are strings."""
    checked = {}
    for key, words in mapping("properties", properties).items():
        listed = (words,) if isinstance(words, str) else items(f"the list of properties of {key!r}", words)
        if listed:
            checked[text("a key of properties", key)] = tuple(text(f"a property of {key!r}", word) for word in listed)
    return checked


def text(what: str, value: Any) -> str:
    """Return a string; TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, a {type(value).__name__}; it must be a string")
    return value


def mapping(what: str, value: Any) -> Mapping[Any, Any]:
    """Return a mapping, or an empty one for None; TypeError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} is {value!r}; give a mapping from the name of a variable")
    return value


def items(what: str, value: Any) -> tuple[Any, ...]:
    """Return the items of an iterable; TypeError for a string or anything that is not iterable."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"{what} is {value!r}; give a list")
    return tuple(value)


def mutilated(spec: NetworkSpec, settings: Mapping[str, Any]) -> NetworkSpec:
    r"""Return the specification after an intervention.

    .. math:: p(x \mid \mathrm{do}(x_S = s)) = [x_S = s] \prod_{v \notin S} p(x_v \mid x_{\mathrm{parents}(v)})

    Parameters
    ----------
    spec : NetworkSpec
    settings : mapping from str to state, or to a mapping from every state to its probability
        A mapping draws the state at random, whatever its causes are. A continuous variable is set to a number.

    Raises
    ------
    TypeError
        The settings are no mapping.
    ValueError
        There is no such variable or state, or the probabilities do not sum to 1.

    References
    ----------
    Pearl (2009), Causality, second edition, definition 3.2.1 and equation 3.10.
    """
    require_findings("an intervention", settings)
    tables = dict(spec.tables)
    for name, setting in settings.items():
        if isinstance(spec.tables.get(name), LinearGaussian):
            tables[name] = _constant(name, setting)
            continue
        states = spec.states_of(name)
        tables[name] = CPT(name, states, {}, _distribution(name, setting, states))
    edges = tuple((parent, child) for parent, child in spec.dag.edges if child not in settings)
    return NetworkSpec(DAG(spec.dag.nodes, edges), dict(spec.states), tables)


def _constant(name: str, setting: Any) -> LinearGaussian:
    """Return a continuous variable that is set to a number."""
    if isinstance(setting, bool) or not isinstance(setting, int | float | np.number):
        raise ValueError(f"the intervention on {name!r} is {setting!r}, but it is continuous; give a number")
    return LinearGaussian(name, (), {}, np.array(float(setting)), np.zeros(0), np.array(0.0))


def _distribution(name: str, setting: Any, states: States) -> Array:
    table = np.zeros(len(states))
    if not isinstance(setting, Mapping):
        if isinstance(setting, set | frozenset | list | tuple):
            raise ValueError(
                f"the intervention on {name!r} is {setting!r}; set one state, or give the probability of each"
            )
        table[state_code(name, setting, states)] = 1.0
        return table
    for state, probability in setting.items():
        table[state_code(name, state, states)] = probability
    return table


def without_edges(dag: DAG, into: frozenset[str] = frozenset(), out_of: frozenset[str] = frozenset()) -> DAG:
    """Return the graph without the edges into some variables and out of others."""
    return DAG(dag.nodes, tuple((u, v) for u, v in dag.edges if v not in into and u not in out_of))
