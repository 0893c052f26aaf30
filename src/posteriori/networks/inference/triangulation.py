"""From factor scopes to cliques: an elimination order, and the clique tree that it induces."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_SEED = 0
_SMALL = 1 << 12  # cells: below this another try costs more than it can save
_MOST_TRIES = 16  # per cost
_MOST_STEPS = 3000  # variables eliminated in all tries: some tenths of a second

# A graph is a list of the neighbours of each node, as the set bits of one integer: set operations are single ones.
Graph = list[int]
Cost = Callable[[Graph, list[float], int], float]


@dataclass(frozen=True)
class Clique:
    """A maximal clique of the triangulated graph.

    Attributes
    ----------
    scope : frozenset of int
        Its variables.
    parent : int
        The next clique on the path to the root, which precedes it in the order; −1 for a root.
    separator : frozenset of int
        The variables that it shares with its parent.
    """

    scope: frozenset[int]
    parent: int
    separator: frozenset[int]


@dataclass(frozen=True)
class Triangulation:
    """A forest of maximal cliques with the running intersection property (Koller & Friedman 2009, definition 10.2).

    Attributes
    ----------
    cliques : tuple of Clique
        Parents first.
    owner : tuple of int (V,)
        Per variable, the clique nearest to the root that contains it.
    total_size : int
        The number of cells of all clique tables.
    largest : int
        The index of the largest clique.
    """

    cliques: tuple[Clique, ...]
    owner: tuple[int, ...]
    total_size: int
    largest: int

    def home(self, scope: Sequence[int]) -> int:
        """Return a clique that contains a scope of pairwise adjacent variables: the lowest of their owners."""
        return max((self.owner[v] for v in scope), default=0)


def triangulate(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> Triangulation:
    """Triangulate the graph of factor scopes: return cliques with few cells that contain every scope.

    To find the fewest cells is NP-hard. Simplicial variables, whose neighbours are pairwise adjacent, are eliminated
    first, which is always optimal. The others are eliminated greedily by several costs (Koller & Friedman 2009,
    section 9.4.3.2), with ties broken at random from a fixed seed. The order with the fewest cells wins.

    Parameters
    ----------
    cardinalities : sequence of int (V,)
        The number of states of each variable.
    scopes : sequence of sequences of int
        The variables of each factor.

    Notes
    -----
    An order takes O(V·k²) set operations; k is the size of the largest clique.

    References
    ----------
    Kjærulff (1990), Triangulation of graphs: algorithms giving small total state space, Aalborg R-90-09.
    """
    order, neighbours, graph = remove_simplicial(join(len(cardinalities), scopes))
    rest = sorted(set(range(len(graph))).difference(order))
    weights = [math.log2(k) for k in cardinalities]
    rng = np.random.default_rng(_SEED)
    best = order, neighbours
    fewest = math.inf
    tries = max(1, min(_MOST_TRIES, _MOST_STEPS // max(1, len(rest) * len(COSTS)))) if rest else 0
    for attempt in range(tries):
        for cost in COSTS:
            # The first try breaks ties by index, so that small networks do not depend on the random numbers.
            priority = rng.permutation(len(graph)) if attempt else np.arange(len(graph))
            rest_order, rest_neighbours = eliminate(graph, rest, weights, cost, priority.tolist())
            size = _cells(rest_order, rest_neighbours, weights)
            if size < fewest:
                fewest, best = size, (order + rest_order, neighbours + rest_neighbours)
        if fewest < _SMALL:
            break
    return build_clique_tree(*best, cardinalities)


def remove_simplicial(graph: Graph) -> tuple[list[int], list[int], Graph]:
    """Eliminate simplicial variables, whose neighbours are pairwise adjacent, until none is left: no fill edges.

    Returns
    -------
    order : list of int
    neighbours : list of int
        The neighbours of each eliminated variable at its turn.
    graph : list of int
        The graph that is left.
    """
    graph = list(graph)
    order: list[int] = []
    neighbours: list[int] = []
    gone = [False] * len(graph)
    waiting = list(reversed(range(len(graph))))
    while waiting:
        v = waiting.pop()
        around = graph[v]
        if gone[v] or any(around & ~graph[u] & ~(1 << u) for u in bits(around)):
            continue
        gone[v] = True
        order.append(v)
        neighbours.append(around)
        graph[v] = 0
        for u in bits(around):
            graph[u] &= ~(1 << v)
            waiting.append(u)
    return order, neighbours, graph


def join(n_variables: int, scopes: Sequence[Sequence[int]]) -> Graph:
    """Return the graph in which the variables of every scope are pairwise adjacent (of CPTs: the moral graph)."""
    graph = [0] * n_variables
    for scope in scopes:
        members = sum(1 << v for v in set(scope))
        for v in scope:
            graph[v] |= members
    return [around & ~(1 << v) for v, around in enumerate(graph)]


def neighbours_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the number of neighbours (min-neighbours)."""
    return graph[v].bit_count()


def weight_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return log2 of the size of the table of a variable and its neighbours (min-weight)."""
    return weights[v] + sum(weights[u] for u in bits(graph[v]))


def fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return twice the number of fill edges: the pairs of neighbours that are not adjacent (min-fill)."""
    around = graph[v]
    return sum((around & ~graph[u]).bit_count() - 1 for u in bits(around))


def weighted_fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return twice the sum over the fill edges of the product of their weights (weighted min-fill)."""
    around = graph[v]
    total = sum(weights[u] for u in bits(around))
    return sum(
        weights[u] * (total - weights[u] - sum(weights[w] for w in bits(around & graph[u]))) for u in bits(around)
    )


def size_then_fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the cost of `weight_of` if elimination needs fill edges, and 0 otherwise."""
    return weight_of(graph, weights, v) if fill_of(graph, weights, v) else 0.0


COSTS: tuple[Cost, ...] = (fill_of, weight_of, weighted_fill_of, size_then_fill_of, neighbours_of)


def bits(members: int) -> Iterator[int]:
    """Yield the indices of the set bits."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def eliminate(
    graph: Graph, variables: Sequence[int], weights: list[float], cost: Cost, priority: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Eliminate variables greedily by a cost; return their order and the neighbours of each at its turn.

    Greedy variable elimination, Koller & Friedman (2009), algorithm 9.4.

    Parameters
    ----------
    graph : list of int
        The graph of these variables only.
    variables : sequence of int
    weights : list of float (V,)
    cost : callable
    priority : sequence of int (V,)
        Among variables of equal cost, the one with the lowest priority number goes first.
    """
    graph = list(graph)
    costs = {v: (cost(graph, weights, v), priority[v]) for v in variables}
    order, neighbours = [], []
    while costs:
        v = min(costs, key=costs.__getitem__)
        around = graph[v]
        order.append(v)
        neighbours.append(around)
        del costs[v]
        touched = around
        for u in bits(around):
            fresh = around & ~graph[u] & ~(1 << u)
            if fresh:
                touched |= graph[u]  # a new edge at u also changes the fill of the common neighbours of its ends
            graph[u] = (graph[u] | fresh) & ~(1 << v)
        for u in bits(touched & ~(1 << v)):
            costs[u] = (cost(graph, weights, u), priority[u])
    return order, neighbours


def _cells(order: list[int], neighbours: list[int], weights: list[float]) -> float:
    """Return about how many cells the maximal cliques have; a clique within an earlier one is not counted."""
    total, absorbed = 0.0, set()
    for v, around in zip(order, neighbours, strict=True):
        clique = around | 1 << v
        if clique not in absorbed:
            total += 2 ** sum(weights[u] for u in bits(clique))
        absorbed.add(around)
    return total


def build_clique_tree(order: list[int], neighbours: list[int], cardinalities: Sequence[int]) -> Triangulation:
    """Return the maximal cliques of an elimination order as a clique tree.

    A variable and its neighbours at its turn form a clique. The neighbours are its separator, and its parent is the
    clique of the neighbour that is eliminated next. The loop goes from the last variable to the first. A clique that
    equals the neighbours is not maximal: the variable joins it.

    References
    ----------
    Koller & Friedman (2009), Probabilistic Graphical Models, sections 9.4.2 and 10.4.1.
    """
    turn = {v: i for i, v in enumerate(order)}
    scopes: list[int] = []
    parents: list[int] = []
    separators: list[int] = []
    owner = [0] * len(order)
    for v, around in zip(reversed(order), reversed(neighbours), strict=True):
        parent = owner[min(bits(around), key=turn.__getitem__)] if around else -1
        if around and scopes[parent] == around:
            scopes[parent] |= 1 << v
            owner[v] = parent
            continue
        owner[v] = len(scopes)
        scopes.append(around | 1 << v)
        parents.append(parent)
        separators.append(around)
    sizes = [math.prod(cardinalities[u] for u in bits(scope)) for scope in scopes]
    cliques = tuple(
        Clique(frozenset(bits(scope)), parent, frozenset(bits(separator)))
        for scope, parent, separator in zip(scopes, parents, separators, strict=True)
    )
    largest = max(range(len(sizes)), key=sizes.__getitem__, default=-1)
    return Triangulation(cliques, tuple(owner), sum(sizes), largest)
