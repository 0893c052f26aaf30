"""Why two variables depend on each other, or do not: the trails between them, triple by triple."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.naming import as_names
from posteriori.networks.notebooks import trails_html

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


class _Paths:
    """Paths, found one after the other; given_up says that the search ended before all were."""

    def __init__(self) -> None:
        self.given_up = False
        self.found: Iterator[tuple[str, ...]] = iter(())


def _shortest_paths(dag: DAG, x: str, y: str, observed: tuple[str, ...], active: bool) -> _Paths:
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
    paths = _Paths()

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
