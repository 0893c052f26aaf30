"""A directed acyclic graph over names, the independences that it implies, and the trails that explain them."""

from __future__ import annotations

import graphlib
import heapq
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from posteriori.networks.graph.naming import as_names, first_repeated, require_variable
from posteriori.networks.notebooks import trails_html

_MOST_LISTED = 10  # n variables have n(n − 1)/2 · 2^(n − 2) statements to test


@dataclass(frozen=True)
class Independence:
    """The statement that x and y are independent given other variables: p(x, y | given) = p(x | given) p(y | given).

    Attributes
    ----------
    x, y : str
    given : tuple of str
    """

    x: str
    y: str
    given: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.x} ⟂ {self.y}" + (f" | {', '.join(self.given)}" if self.given else "")

    __repr__ = __str__


@dataclass(frozen=True)
class DAG:
    """A directed acyclic graph: p(x) = Π_v p(x_v | x_parents(v)) for every network with this graph.

    Parameters
    ----------
    nodes : sequence of str
    edges : sequence of pairs of str
        From parent to child; the parents of a node have the order of its edges.

    Raises
    ------
    TypeError
        A name is no string, or an edge no pair.
    ValueError
        A node or an edge occurs twice, an edge names no node, or the edges form a cycle; the message shows the cycle.

    Examples
    --------
    >>> from posteriori.networks import DAG
    >>> dag = DAG(("rain", "sprinkler", "grass"), (("rain", "grass"), ("sprinkler", "grass")))
    >>> dag.parents["grass"]
    ('rain', 'sprinkler')
    >>> dag.d_separated("rain", "sprinkler"), dag.d_separated("rain", "sprinkler", given="grass")
    (True, False)
    """

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "edges", tuple(map(_pair, self.edges)))
        for name in (*self.nodes, *itertools.chain(*self.edges)):
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is a {type(name).__name__}; the names of variables are strings")
        for what, listed in (("variable", self.nodes), ("edge", self.edges)):
            if len(set(listed)) < len(listed):
                raise ValueError(f"the {what} {_shown(first_repeated(listed))} occurs twice; leave one out")
        known = dict.fromkeys(self.nodes)
        for name in itertools.chain(*self.edges):
            require_variable(name, known)
        _ = self.topological_order  # raises if there is a cycle

    @classmethod
    def of(cls, edges: Iterable[Any], nodes: Iterable[str] = ()) -> DAG:
        """Return the graph of these edges, with its nodes in the order of `nodes` and then of the edges."""
        pairs = tuple(map(_pair, edges))
        return cls(tuple(dict.fromkeys([*as_names(nodes), *itertools.chain(*pairs)])), pairs)

    @cached_property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of each node."""
        return self._neighbours(0)

    @cached_property
    def children(self) -> dict[str, tuple[str, ...]]:
        """The children of each node."""
        return self._neighbours(1)

    def _neighbours(self, end: int) -> dict[str, tuple[str, ...]]:
        """Return the nodes at one end of the edges, 0 for parents or 1 for children, by the node at the other end."""
        neighbours: dict[str, list[str]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            neighbours[edge[1 - end]].append(edge[end])
        return {node: tuple(others) for node, others in neighbours.items()}

    @cached_property
    def topological_order(self) -> tuple[str, ...]:
        """The nodes in an order with every parent before its children."""
        try:
            return tuple(graphlib.TopologicalSorter(self._neighbours(0)).static_order())
        except graphlib.CycleError as error:
            cycle = " → ".join(error.args[1])
            raise ValueError(f"the edges form a cycle, {cycle}; remove or reverse one of them") from None

    def ancestors(self, nodes: str | Iterable[str]) -> frozenset[str]:
        """Return the nodes and all their ancestors."""
        return self._reached(nodes, self.parents)

    def descendants(self, nodes: str | Iterable[str]) -> frozenset[str]:
        """Return the nodes and all their descendants."""
        return self._reached(nodes, self.children)

    def _reached(self, nodes: str | Iterable[str], step: dict[str, tuple[str, ...]]) -> frozenset[str]:
        waiting = list(self._known(nodes))
        reached = set(waiting)
        while waiting:
            for node in step[waiting.pop()]:
                if node not in reached:
                    reached.add(node)
                    waiting.append(node)
        return frozenset(reached)

    def _known(self, nodes: str | Iterable[str]) -> tuple[str, ...]:
        names = as_names(nodes)
        for name in names:
            require_variable(name, self.parents)
        return names

    def markov_blanket(self, x: str) -> frozenset[str]:
        """Return the parents, the children and the children's other parents of x.

        Given these, x is independent of all other variables.

        Parameters
        ----------
        x : str

        Returns
        -------
        frozenset of str

        Raises
        ------
        ValueError
            There is no such variable.

        References
        ----------
        Pearl (1988), Probabilistic Reasoning in Intelligent Systems, corollary 6 of section 3.3.
        """
        require_variable(x, self.parents)
        family = {*self.parents[x], *self.children[x]}
        return frozenset(family.union(*(self.parents[child] for child in self.children[x])) - {x})

    def reachable(self, x: str | Iterable[str], given: str | Iterable[str] = ()) -> frozenset[str]:
        """Return the nodes outside `given` that an active trail connects with x.

        Cost: each edge is visited at most once per direction.

        References
        ----------
        Koller & Friedman (2009), Probabilistic Graphical Models, algorithm 3.1.
        """
        observed = frozenset(self._known(given))
        opened = self.ancestors(observed)  # an observed descendant opens a common effect
        waiting = [(name, "up") for name in self._known(x)]
        seen = set(waiting)
        while waiting:
            for step in self.steps(*waiting.pop(), observed, opened):
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
        return frozenset(name for name, _ in seen) - observed

    def steps(
        self, node: str, heading: str, observed: Collection[str], opened: Collection[str]
    ) -> Iterable[tuple[str, str]]:
        """Yield the next nodes of an active trail from a node that it entered up or down the arrows.

        Parameters
        ----------
        node : str
        heading : {"up", "down"}
            "up" if the trail came from a child or starts here; "down" if it came from a parent.
        observed, opened : collections of str
            The given variables, and these with their ancestors, which are the common effects that they open.
        """
        unobserved = node not in observed
        if unobserved:
            for child in self.children[node]:
                yield child, "down"
        # A chain upwards passes an unobserved node; a common effect passes if it or a descendant is observed.
        if unobserved if heading == "up" else node in opened:
            for parent in self.parents[node]:
                yield parent, "up"

    def d_separated(self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the given variables block every trail from x to y.

        If so, x and y are independent given these in every network of this graph; if not, they depend on each other in
        almost every one.

        Parameters
        ----------
        x, y, given : str or collection of str
            No variable may occur in two of them.

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            There is no such variable, or one is named twice.

        References
        ----------
        Geiger, Verma & Pearl (1990), Identifying independence in Bayesian networks, Networks 20.
        """
        self.require_apart(x, y, given)
        return self.reachable(x, given).isdisjoint(as_names(y))

    def require_apart(self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str]) -> None:
        """Raise ValueError unless x and y name at least one variable each, and no variable is in two of the three."""
        groups = {"x": self._known(x), "y": self._known(y), "given": self._known(given)}
        for name in ("x", "y"):
            if not groups[name]:
                raise ValueError(f"{name} is empty; name at least one variable")
        for (first, first_names), (second, second_names) in itertools.combinations(groups.items(), 2):
            for name in first_names:
                if name in second_names:
                    raise ValueError(f"{name!r} is in {first} and in {second}; leave it out of one")

    def independencies(self, max_given: int | None = None) -> tuple[Independence, ...]:
        """Return every independence "x ⟂ y | given" of two variables that the graph implies, smallest `given` first.

        Parameters
        ----------
        max_given : int, optional
            The most given variables; by default all others.

        Returns
        -------
        tuple of Independence

        Raises
        ------
        ValueError
            The graph has more than ten variables and max_given is None: there are too many statements.

        Examples
        --------
        >>> from posteriori.networks import DAG
        >>> DAG.of([("a", "b"), ("b", "c")]).independencies()
        (a ⟂ c | b,)
        """
        if max_given is None and len(self.nodes) > _MOST_LISTED:
            raise ValueError(
                f"{len(self.nodes)} variables make too many statements to list; set max_given, the most given variables"
            )
        most = len(self.nodes) if max_given is None else max_given
        joined = {frozenset(edge) for edge in self.edges}
        pairs = [pair for pair in itertools.combinations(self.nodes, 2) if frozenset(pair) not in joined]
        return tuple(
            Independence(x, y, given)
            for size in range(min(most, len(self.nodes) - 2) + 1)
            for x, y in pairs
            for given in itertools.combinations([node for node in self.nodes if node not in (x, y)], size)
            if y not in self.reachable(x, given)
        )


def _pair(edge: Any) -> tuple[str, str]:
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise TypeError(f"{edge!r} is no edge; an edge is a pair (parent, child)")
    return edge[0], edge[1]


def _shown(thing: Any) -> str:
    return " → ".join(map(repr, thing)) if isinstance(thing, tuple) else repr(thing)


Kind = Literal["chain", "common cause", "common effect"]
_MOST_STEPS = 100_000  # partial trails to look at before giving up on finding further ones


@dataclass(frozen=True)
class Triple:
    """Three neighbours on a trail, and whether dependence flows through the middle one.

    Attributes
    ----------
    first, middle, last : str
    kind : {"chain", "common cause", "common effect"}
        first → middle → last or its reverse; first ← middle → last; first → middle ← last.
    active : bool
        A chain and a common cause are, unless the middle is given; a common effect is if it, or an effect of it, is.
    reason : str
        Why, in words.
    """

    first: str
    middle: str
    last: str
    kind: Kind
    active: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.middle}: {self.kind}, {'open' if self.active else 'blocked'}: {self.reason}"


@dataclass(frozen=True)
class Trail:
    """A path between two variables, along or against the arrows, that visits no variable twice.

    Attributes
    ----------
    nodes : tuple of str
    arrows : tuple of str
        "→" or "←" between each node and the next.
    triples : tuple of Triple
    """

    nodes: tuple[str, ...]
    arrows: tuple[str, ...]
    triples: tuple[Triple, ...]

    @property
    def active(self) -> bool:
        """Whether dependence flows along the whole of it."""
        return all(triple.active for triple in self.triples)

    def __str__(self) -> str:
        path = self.nodes[0] + "".join(
            f" {arrow} {node}" for arrow, node in zip(self.arrows, self.nodes[1:], strict=True)
        )
        triples = [f"  {triple}" for triple in self.triples] or ["  an edge: nothing lies between to block it"]
        return "\n".join([f"{path}  ({'active' if self.active else 'blocked'})", *triples])


@dataclass(frozen=True)
class DependenceExplanation:
    """Why x and y are d-separated, or are not.

    Attributes
    ----------
    x, y : str
    given : tuple of str
    d_separated : bool
    trails : tuple of Trail
        The active ones, shortest first; the blocked ones if none is active.
    complete : bool
        Whether these are all of them.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> found = net.active_trails("rain", "wet")
    >>> found
    rain and wet may depend on each other: a trail is active
    rain → wet  (active)
      an edge: nothing lies between to block it
    """

    x: str
    y: str
    given: tuple[str, ...]
    d_separated: bool
    trails: tuple[Trail, ...]
    complete: bool

    def __str__(self) -> str:
        given = f" given {', '.join(self.given)}" if self.given else ""
        if self.d_separated:
            blocked = "every trail is blocked" if self.trails else "no trail joins them"
            said = f"{self.x} and {self.y} are independent{given}: {blocked}"
        else:
            said = f"{self.x} and {self.y} may depend on each other{given}: a trail is active"
        more = [] if self.complete else ["… and further trails"]
        return "\n".join([said, *map(str, self.trails), *more])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return trails_html(self)


def active_trails(dag: DAG, x: str, y: str, given: str | Iterable[str] = (), limit: int = 20) -> DependenceExplanation:
    """List the active trails between two variables, or the blocked ones where none is active.

    Parameters
    ----------
    dag : DAG
    x, y : str
    given : str or collection of str
    limit : int, default 20
        The most trails to list, the shortest first.

    Returns
    -------
    DependenceExplanation
        Prints as the trails with each triple named: chain, common cause or common effect.

    Raises
    ------
    ValueError
        There is no such variable, one is named twice, or limit is less than 1.

    References
    ----------
    Pearl (1988), Probabilistic Reasoning in Intelligent Systems, section 3.3.

    Examples
    --------
    >>> from posteriori.networks import DAG, active_trails
    >>> active_trails(DAG.of([("burglary", "alarm"), ("earthquake", "alarm")]), "burglary", "earthquake", given="alarm")
    burglary and earthquake may depend on each other given alarm: a trail is active
    burglary → alarm ← earthquake  (active)
      alarm: common effect, open: it is given
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}; list at least one trail")
    if not isinstance(x, str) or not isinstance(y, str):
        raise ValueError("trails join two single variables; name one as x and one as y")
    dag.require_apart(x, y, given)
    observed = as_names(given)
    separated = dag.d_separated(x, y, given)
    paths = _shortest_paths(dag, x, y, observed, active=not separated)
    trails = tuple(_trail(dag, nodes, observed) for nodes in itertools.islice(paths.found, limit))
    complete = next(paths.found, None) is None and not paths.given_up
    return DependenceExplanation(x, y, observed, separated, trails, complete)


class _PathSearch:
    """Paths, found one after the other; given_up says that the search ended before all were."""

    def __init__(self) -> None:
        self.given_up = False
        self.found: Iterator[tuple[str, ...]] = iter(())


def _shortest_paths(dag: DAG, x: str, y: str, observed: tuple[str, ...], active: bool) -> _PathSearch:
    """Find the simple paths from x to y, shortest first, by A*: the length left is at least that of a walk.

    active says that only paths along which dependence flows are wanted.
    """
    opened = dag.ancestors(observed)

    def steps(node: str, heading: str) -> Iterable[tuple[str, str]]:
        if active:
            return dag.steps(node, heading, observed, opened)
        return [*((child, "down") for child in dag.children[node]), *((parent, "up") for parent in dag.parents[node])]

    states = [(node, heading) for node in dag.nodes for heading in ("up", "down")]
    left = _walk_lengths({state: list(steps(*state)) for state in states}, y)
    paths = _PathSearch()

    def search() -> Iterator[tuple[str, ...]]:
        order = itertools.count()
        waiting: list[tuple[int, int, tuple[str, ...], str]] = []
        if (x, "up") in left:
            waiting.append((left[x, "up"], next(order), (x,), "up"))
        for _ in range(_MOST_STEPS):
            if not waiting:
                return
            _, _, nodes, heading = heapq.heappop(waiting)
            if nodes[-1] == y:
                yield nodes
                continue
            for node, onward in steps(nodes[-1], heading):
                if node not in nodes and (node, onward) in left:
                    bound = len(nodes) + left[node, onward]
                    heapq.heappush(waiting, (bound, next(order), (*nodes, node), onward))
        paths.given_up = bool(waiting)

    paths.found = search()
    return paths


def _walk_lengths(steps: dict[tuple[str, str], list[tuple[str, str]]], y: str) -> dict[tuple[str, str], int]:
    """Return the number of steps from each state to y, of those that lead there."""
    back: dict[tuple[str, str], list[tuple[str, str]]] = {state: [] for state in steps}
    for state, onward in steps.items():
        for after in onward:
            back[after].append(state)
    front = [(y, "up"), (y, "down")]
    length = dict.fromkeys(front, 0)
    for state in front:  # grows while it is walked: breadth first
        for before in back[state]:
            if before not in length:
                length[before] = length[state] + 1
                front.append(before)
    return length


def _trail(dag: DAG, nodes: tuple[str, ...], observed: tuple[str, ...]) -> Trail:
    arrows = tuple("→" if a in dag.parents[b] else "←" for a, b in itertools.pairwise(nodes))
    triples = (_triple(dag, nodes[k : k + 3], arrows[k] + arrows[k + 1], observed) for k in range(len(nodes) - 2))
    return Trail(nodes, arrows, tuple(triples))


def _triple(dag: DAG, nodes: tuple[str, ...], arrows: str, observed: tuple[str, ...]) -> Triple:
    first, middle, last = nodes
    if arrows == "→←":
        effects = [name for name in observed if name in dag.descendants(middle)]
        if middle in effects:
            reason = "it is given"
        elif effects:
            reason = f"its effect {effects[0]} is given"
        else:
            reason = "it is not given, and no effect of it is given"
        return Triple(first, middle, last, "common effect", bool(effects), reason)
    kind: Kind = "common cause" if arrows == "←→" else "chain"
    active = middle not in observed
    return Triple(first, middle, last, kind, active, "it is not given" if active else "it is given")
