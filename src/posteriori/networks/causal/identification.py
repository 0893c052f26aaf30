"""Identification of causal effects: the estimands that the graph allows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.naming import as_names, require_findings, require_variable, state_code
from posteriori.networks.graph.specification import NetworkSpec, without_edges
from posteriori.networks.inference.distributions import Distribution
from posteriori.networks.inference.inference import Inference
from posteriori.networks.inference.printing import heading
from posteriori.networks.inference.questions import joint_of_states
from posteriori.support.typing import Array

Names = tuple[str, ...]
Table = tuple[Names, Array]  # an axis for each name
Joint = Callable[[Names], Array]


class Estimand(Protocol):
    """A formula over conditional probabilities of observed variables."""

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""

    def evaluate(self, joint: Joint) -> Table:
        """Return its value for every configuration of the free variables; `joint` returns p(names)."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Conditional:
    """p(variables | given) of the observed distribution."""

    variables: Names
    given: Names = ()

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return frozenset(self.variables + self.given)

    def evaluate(self, joint: Joint) -> Table:
        """Return p(variables, given) / p(given), 0 where the given configuration cannot occur."""
        table = joint(self.given + self.variables)
        total = table.sum(axis=tuple(range(len(self.given), table.ndim)), keepdims=True)
        return self.given + self.variables, _divided(table, total)

    def __str__(self) -> str:
        return heading(self.variables, self.given)


@dataclass(frozen=True)
class Product:
    """The product of formulas."""

    parts: tuple[Estimand, ...]

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return frozenset().union(*(part.free for part in self.parts))

    def evaluate(self, joint: Joint) -> Table:
        """Return the product."""
        names = tuple(sorted(self.free))
        value: Array = np.ones(())
        for part in self.parts:
            value = value * _aligned(part.evaluate(joint), names)
        return names, value

    def __str__(self) -> str:
        return " · ".join(f"({part})" if isinstance(part, Quotient) else str(part) for part in self.parts) or "1"


@dataclass(frozen=True)
class SumOut:
    """The sum of a formula over all states of some variables."""

    over: Names
    body: Estimand

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return self.body.free - frozenset(self.over)

    def evaluate(self, joint: Joint) -> Table:
        """Return the sum."""
        names, value = self.body.evaluate(joint)
        kept = tuple(name for name in names if name not in self.over)
        return kept, value.sum(axis=tuple(k for k, name in enumerate(names) if name in self.over))

    def __str__(self) -> str:
        return f"Σ_{{{', '.join(self.over)}}} [{self.body}]"


@dataclass(frozen=True)
class Quotient:
    """The quotient of two formulas; 0/0 is 0."""

    numerator: Estimand
    denominator: Estimand

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return self.numerator.free | self.denominator.free

    def evaluate(self, joint: Joint) -> Table:
        """Return the quotient."""
        names = tuple(sorted(self.free))
        return names, _divided(*(_aligned(part.evaluate(joint), names) for part in (self.numerator, self.denominator)))

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


def summed(over: frozenset[str], body: Estimand) -> Estimand:
    """Return the sum over the variables of a formula that are among `over`."""
    names = tuple(sorted(over & body.free))
    if not names:
        return body
    if isinstance(body, Conditional) and not frozenset(names) & frozenset(body.given):
        left = tuple(name for name in body.variables if name not in names)
        return Conditional(left, body.given) if left else Product(())
    return SumOut(names, body)


def at(table: Table, order: Names, settings: Mapping[str, int]) -> Array:
    """Return the part of a table at the codes of the settings, with its axes in an order."""
    names, value = table
    kept = tuple(name for name in names if name not in settings)
    part: Array = value[tuple(settings.get(name, slice(None)) for name in names)]
    return part.transpose([kept.index(name) for name in order])


def _aligned(table: Table, names: Names) -> Array:
    """Return an array with an axis for each name, of length 1 where the table does not depend on it."""
    known, value = table
    order = sorted(range(len(known)), key=lambda k: names.index(known[k]))
    shape = [value.shape[known.index(name)] if name in known else 1 for name in names]
    return value.transpose(order).reshape(shape)


def _divided(numerator: Array, denominator: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient: Array = np.where(denominator > 0, numerator / denominator, 0.0)
    return quotient


@dataclass(frozen=True)
class Identification:
    """Identifiability of a causal effect from the distribution of the observed variables.

    Attributes
    ----------
    outcome, treatment, given, hidden : tuple of str
    formula : Estimand or None
        The effect in terms of observed probabilities; None if it is not identifiable.
    reason : str
        How the formula was found, or why there is none.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("age", "drug"), ("age", "cured"), ("drug", "cured")])
    >>> net.identify("cured", "drug")
    p(cured | do(drug)) = Σ_{age} [p(cured | age, drug) · p(age)]
    by the algorithm ID, from the c-components {age}, {cured}
    """

    outcome: Names
    treatment: Names
    given: Names
    hidden: Names
    formula: Estimand | None
    reason: str

    @property
    def is_identifiable(self) -> bool:
        """Whether there is a formula."""
        return self.formula is not None

    @property
    def effect(self) -> str:
        """The effect in the notation of Pearl: p(y | do(x), z)."""
        treatment = ", ".join(self.treatment)
        return f"p({', '.join(self.outcome)} | {', '.join([f'do({treatment})', *self.given])})"

    def __repr__(self) -> str:
        if self.formula is None:
            return f"{self.effect} is not identifiable: {self.reason}"
        return f"{self.effect} = {self.formula}\n{self.reason}"


@dataclass(frozen=True)
class MixedGraph:
    """The graph over the observed variables: edges, and pairs that share a hidden cause.

    Attributes
    ----------
    nodes : tuple of str
        Parents first.
    edges : frozenset of pairs of str
        u → v: a directed path leads from u to v, all of whose inner variables are hidden.
    confounded : frozenset of pairs of str
        u ↔ v, as a sorted pair: a hidden variable leads to both by directed paths with hidden inner variables.
    """

    nodes: Names
    edges: frozenset[tuple[str, str]]
    confounded: frozenset[tuple[str, str]]

    @classmethod
    def projected(cls, dag: DAG, hidden: frozenset[str]) -> MixedGraph:
        """Return the latent projection of a graph (Verma & Pearl 1990)."""

        def observed_below(node: str) -> set[str]:
            reached, waiting = set(), list(dag.children[node])
            seen = set(waiting)
            while waiting:
                child = waiting.pop()
                if child not in hidden:
                    reached.add(child)
                    continue
                fresh = [one for one in dag.children[child] if one not in seen]
                seen.update(fresh)
                waiting += fresh
            return reached

        nodes = tuple(name for name in dag.topological_order if name not in hidden)
        edges = frozenset((node, child) for node in nodes for child in observed_below(node))
        confounded = frozenset(
            pair for node in hidden for pair in itertools.combinations(sorted(observed_below(node)), 2)
        )
        return cls(nodes, edges, confounded)

    def restricted(self, kept: frozenset[str]) -> MixedGraph:
        """Return the graph of some of the nodes."""
        return MixedGraph(
            tuple(node for node in self.nodes if node in kept),
            frozenset(edge for edge in self.edges if kept.issuperset(edge)),
            frozenset(pair for pair in self.confounded if kept.issuperset(pair)),
        )

    def ancestors(self, nodes: Iterable[str], without_edges_into: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return nodes and their ancestors in the graph without the edges into some nodes."""
        reached = set(nodes)
        for node in reversed(self.nodes):  # children come before their parents
            for u, v in self.edges:
                if v == node and v in reached and v not in without_edges_into:
                    reached.add(u)
        return frozenset(reached)

    @cached_property
    def components(self) -> tuple[frozenset[str], ...]:
        """The sets of nodes that are connected by hidden causes (c-components)."""
        member = {node: {node} for node in self.nodes}
        for u, v in self.confounded:
            if member[u] is not member[v]:
                member[u] |= member[v]
                for node in member[v]:
                    member[node] = member[u]
        return tuple(dict.fromkeys(frozenset(member[node]) for node in self.nodes))


class NotIdentifiableError(ValueError):
    """The effect does not follow from the observed distribution: two networks agree on it and differ in the effect."""


def identify(
    dag: DAG,
    outcome: str | Iterable[str],
    treatment: str | Iterable[str],
    given: str | Iterable[str] = (),
    hidden: str | Iterable[str] = (),
) -> Identification:
    """Return whether p(outcome | do(treatment), given) follows from p(observed), and the formula.

    The algorithms ID and IDC, which are complete: if they find no formula, there is none.

    Parameters
    ----------
    dag : DAG
        All causes, also the hidden ones.
    outcome, treatment, given, hidden : str or collection of str

    Returns
    -------
    Identification

    Raises
    ------
    ValueError
        There is no such variable, one occurs in two of the lists, or there is no outcome or treatment.

    References
    ----------
    Shpitser & Pearl (2006), Identification of joint interventional distributions in recursive semi-Markovian causal
    models, AAAI 21; and Identification of conditional interventional distributions, UAI 22.

    Examples
    --------
    >>> from posteriori.networks import DAG, identify
    >>> identify(DAG.of([("z", "x"), ("z", "y"), ("x", "y")]), "y", "x")
    p(y | do(x)) = Σ_{z} [p(y | z, x) · p(z)]
    by the algorithm ID, from the c-components {z}, {y}
    >>> print(identify(DAG.of([("u", "x"), ("u", "y"), ("x", "y")]), "y", "x", hidden="u").is_identifiable)
    False
    """
    y, x, z, unseen = (as_names(names) for names in (outcome, treatment, given, hidden))
    for name in (*y, *x, *z, *unseen):
        require_variable(name, dag.parents)
    groups = {"outcome": y, "treatment": x, "given": z, "hidden": unseen}
    for (first, names), (second, others) in itertools.combinations(groups.items(), 2):
        for name in names:
            if name in others:
                raise ValueError(f"{name!r} is in {first} and in {second}; leave it out of one")
    for group in ("outcome", "treatment"):
        if not groups[group]:
            raise ValueError(f"{group} is empty; name at least one variable")
    graph = MixedGraph.projected(dag, frozenset(unseen))
    set_too, still_given = _exchanged(dag, frozenset(y), frozenset(x), frozenset(z))
    try:
        formula = _identified(frozenset(y) | still_given, frozenset(x) | set_too, Conditional(graph.nodes), graph)
    except NotIdentifiableError as error:
        return Identification(y, x, z, unseen, None, str(error))
    if still_given:
        formula = Quotient(formula, summed(frozenset(y), formula))
    left = graph.restricted(frozenset(graph.nodes) - frozenset(x))
    listed = ", ".join(_braces(one) for one in left.restricted(graph.ancestors(y) - frozenset(x)).components)
    return Identification(y, x, z, unseen, formula, f"by the algorithm ID, from the c-components {listed}")


def _exchanged(
    dag: DAG, y: frozenset[str], x: frozenset[str], z: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Split the given variables into those that may be set instead of seen (rule 2 of do-calculus), and the others."""
    moved: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name in sorted(z - moved):
            done = x | moved
            cut = without_edges(dag, into=done, out_of=frozenset({name}))
            if cut.d_separated(y, name, given=done | (z - moved - {name})):
                moved.add(name)
                changed = True
    return frozenset(moved), z - frozenset(moved)


def _identified(y: frozenset[str], x: frozenset[str], p: Estimand, graph: MixedGraph) -> Estimand:
    """Return p_x(y): the lines 1 to 7 of the algorithm ID (Shpitser & Pearl 2006, figure 3).

    p is the distribution of the nodes of the graph. The order of the nodes is topological in every part of the graph.
    """
    nodes = frozenset(graph.nodes)
    if not x:  # line 1
        return summed(nodes - y, p)
    above = graph.ancestors(y)
    if above != nodes:  # line 2
        return _identified(y, x & above, summed(nodes - above, p), graph.restricted(above))
    ineffective = nodes - x - graph.ancestors(y, without_edges_into=x)
    if ineffective:  # line 3
        return _identified(y, x | ineffective, p, graph)
    parts = graph.restricted(nodes - x).components
    if len(parts) > 1:  # line 4
        product = Product(tuple(_identified(part, nodes - part, p, graph) for part in reversed(parts)))
        return summed(nodes - y - x, product)
    (part,) = parts
    whole = graph.components
    if len(whole) == 1:  # line 5
        raise NotIdentifiableError(
            f"the hidden causes connect {_braces(nodes)} ({_shared(graph)}), and without {_braces(x)} still "
            f"{_braces(part)}; such a pair of sets is a hedge, and then two networks with the same observed "
            "distribution differ in this effect; observe a hidden cause, or a variable between treatment and outcome"
        )
    if part in whole:  # line 6
        return summed(part - y, _chain(part, p, graph))
    (around,) = [component for component in whole if part < component]  # line 7
    return _identified(y, x & around, _chain(around, p, graph), graph.restricted(around))


def _chain(part: frozenset[str], p: Estimand, graph: MixedGraph) -> Estimand:
    """Return Π p(v | all nodes before v) over the variables of a c-component."""
    factors: list[Estimand] = []
    for k, node in enumerate(graph.nodes):
        if node not in part:
            continue
        later = frozenset(graph.nodes[k + 1 :])
        if isinstance(p, Conditional) and not p.given:
            factors.append(Conditional((node,), _needed(node, graph.nodes[:k], graph)))
        else:
            upper = summed(later, p)
            factors.append(Quotient(upper, summed(frozenset({node}), upper)))
    return factors[0] if len(factors) == 1 else Product(tuple(reversed(factors)))


def _needed(node: str, before: Names, graph: MixedGraph) -> Names:
    """Return the predecessors on which a variable depends: its Markov blanket among them.

    Given the c-component of the variable within the graph of its predecessors, and the parents of that component, it is
    independent of the other predecessors (Tian & Pearl 2002, A general identification condition, lemma 1).
    """
    within = graph.restricted(frozenset({node, *before}))
    (component,) = [one for one in within.components if node in one]
    parents = {u for u, v in within.edges if v in component}
    return tuple(name for name in before if name in component | parents)


def _shared(graph: MixedGraph) -> str:
    pairs = sorted(graph.confounded)
    listed = ", ".join(f"{u} ↔ {v}" for u, v in pairs[:4])
    return listed + (", …" if len(pairs) > 4 else "")


def _braces(names: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"


def causal_effect(
    spec: NetworkSpec,
    inference: Inference,
    outcome: str | Iterable[str],
    settings: Mapping[str, Any],
    evidence: Mapping[str, Any] | None,
    hidden: str | Iterable[str],
) -> Distribution:
    """Return p(outcome | do(settings), evidence) by its formula; see `BayesianNetwork.causal_effect`."""

    def joint(names: Names) -> Array:
        return joint_of_states(inference, names)

    evidence = {} if evidence is None else evidence
    for what, findings in (("settings", settings), ("evidence", evidence)):
        require_findings(what, findings)
    known = dict(evidence)
    names = as_names(outcome)
    found = identify(spec.dag, names, tuple(settings), tuple(known), hidden)
    if found.formula is None:
        raise ValueError(f"{found.effect} is not identifiable: {found.reason}; net.do(…) uses the hidden tables too")
    codes = {name: state_code(name, state, spec.states_of(name)) for name, state in settings.items()}
    codes |= {name: state_code(name, state, spec.states_of(name)) for name, state in known.items()}
    for name in found.formula.free - set(names) - set(codes):
        codes[name] = int(joint((name,)).argmax())  # the effect is the same for each of its states
    value = at(found.formula.evaluate(joint), names, codes)
    total = float(value.sum())
    if not total > 0:
        raise ValueError(
            f"{found.effect} has no value: a configuration that its formula needs has probability 0; set or give "
            "states that occur"
        )
    shown = {f"do({name})": state for name, state in settings.items()} | known
    return Distribution({name: spec.states_of(name) for name in names}, value / total, shown)
