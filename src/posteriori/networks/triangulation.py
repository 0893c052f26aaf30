"""From factor scopes to cliques: an order in which to sum the variables out, and the tree of cliques it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

_SEED = 0
_SMALL = 1 << 13  # cells: below this a further try costs more than it could ever save
_PATIENCE = 24  # tries of a small network; large ones get fewer, as each takes longer

# A graph is a list of neighbours, each a set of variables written as the bits of one integer.
Graph = list[int]
Cost = Callable[[Graph, list[float], int], float]


@dataclass(frozen=True)
class Clique:
    """Variables that are summed over together.

    Attributes
    ----------
    scope : frozenset of int
        Its variables.
    parent : int
        The clique next to it on the way to its root, which comes before it; −1 for a root.
    separator : frozenset of int
        The variables that it shares with its parent.
    """

    scope: frozenset[int]
    parent: int
    separator: frozenset[int]


@dataclass(frozen=True)
class Triangulation:
    """A forest of maximal cliques with the running intersection property.

    Attributes
    ----------
    cliques : tuple of Clique
        Parents first.
    owner : tuple of int (V,)
        The clique of each variable that lies nearest to the root.
    total_size : int
        The number of cells of all clique tables.
    largest : int
        The place of the largest clique.
    """

    cliques: tuple[Clique, ...]
    owner: tuple[int, ...]
    total_size: int
    largest: int

    def home(self, scope: Sequence[int]) -> int:
        """Return a clique that holds a scope whose variables are joined pairwise: the lowest of their owners."""
        return max((self.owner[v] for v in scope), default=0)


def triangulate(cardinalities: Sequence[int], scopes: Sequence[Sequence[int]]) -> Triangulation:
    """Return cliques of few cells that hold every scope.

    Finding the fewest is NP-hard. Variables are eliminated greedily by several costs, ties broken at random from a
    fixed seed, and the order whose cliques have the fewest cells together is kept.

    Parameters
    ----------
    cardinalities : sequence of int (V,)
        The number of states of each variable.
    scopes : sequence of sequences of int
        The variables that a table joins.

    Notes
    -----
    An order takes O(V·k²) set operations, k being the size of the largest clique.

    References
    ----------
    Kjærulff (1990), Triangulation of graphs: algorithms giving small total state space, Aalborg R-90-09.
    """
    graph = join(len(cardinalities), scopes)
    weights = [math.log2(k) for k in cardinalities]
    rng = np.random.default_rng(_SEED)
    best: tuple[float, list[int], list[int]] | None = None
    tries = max(1, min(_PATIENCE, 20_000 // max(1, len(graph))) // len(COSTS))
    for attempt in range(tries):
        for cost in COSTS:
            order, neighbours = eliminate(graph, weights, cost, rng.permutation(len(graph)) if attempt else None)
            size = _cells(order, neighbours, weights)
            if best is None or size < best[0]:
                best = size, order, neighbours
        if best is not None and best[0] < _SMALL:
            break
    assert best is not None
    return grow_tree(best[1], best[2], cardinalities)


def join(n_variables: int, scopes: Sequence[Sequence[int]]) -> Graph:
    """Return the graph in which the variables of every scope are joined pairwise (of CPTs: the moral graph)."""
    graph = [0] * n_variables
    for scope in scopes:
        together = sum(1 << v for v in set(scope))
        for v in scope:
            graph[v] |= together
    return [around & ~(1 << v) for v, around in enumerate(graph)]


def neighbours_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the number of neighbours."""
    return graph[v].bit_count()


def weight_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the logarithm of the size of the table of a variable and its neighbours."""
    return weights[v] + sum(weights[u] for u in bits(graph[v]))


def fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return twice the number of pairs of neighbours that are not joined."""
    around = graph[v]
    return sum((around & ~graph[u]).bit_count() - 1 for u in bits(around))


def weighted_fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the sum of the products of the weights of neighbours that are not joined."""
    around = graph[v]
    return sum(weights[u] * sum(weights[w] for w in bits(around & ~graph[u] & ~(1 << u))) for u in bits(around))


def size_then_fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the size of the table that fill edges make, and nothing where no edge is to be filled in."""
    return weight_of(graph, weights, v) if fill_of(graph, weights, v) else 0.0


COSTS: tuple[Cost, ...] = (fill_of, weight_of, weighted_fill_of, size_then_fill_of, neighbours_of)


def bits(members: int) -> list[int]:
    """Return the places of the bits that are set."""
    places = []
    while members:
        low = members & -members
        places.append(low.bit_length() - 1)
        members ^= low
    return places


def eliminate(graph: Graph, weights: list[float], cost: Cost, luck: np.ndarray | None) -> tuple[list[int], list[int]]:
    """Return the variables in the greedy order of a cost, and the neighbours that each has when its turn comes.

    Parameters
    ----------
    graph : list of int
    weights : list of float (V,)
    cost : callable
    luck : ndarray (V,), optional
        Which of equally good variables goes first; by default the first.
    """
    graph = list(graph)
    ties = range(len(graph)) if luck is None else luck.tolist()
    costs = {v: (cost(graph, weights, v), ties[v]) for v in range(len(graph))}
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
                touched |= graph[u]  # the fill of a common neighbour of u and what it is joined to changes too
            graph[u] = (graph[u] | fresh) & ~(1 << v)
        for u in bits(touched & ~(1 << v)):
            costs[u] = (cost(graph, weights, u), ties[u])
    return order, neighbours


def _cells(order: list[int], neighbours: list[int], weights: list[float]) -> float:
    """Return about how many cells the maximal cliques have."""
    total, absorbed = 0.0, set()
    for v, around in zip(order, neighbours, strict=True):
        clique = around | 1 << v
        if clique not in absorbed:
            total += 2 ** sum(weights[u] for u in bits(clique))
        absorbed.add(around)
    return total


def grow_tree(order: list[int], neighbours: list[int], cardinalities: Sequence[int]) -> Triangulation:
    """Return the maximal cliques of an elimination order, joined where their variables were eliminated.

    A variable and its neighbours at its turn are a clique; its separator is the neighbours, and its parent the clique
    of the one of them that is eliminated next. From the last to the first, a clique that holds exactly the neighbours
    is not maximal and takes the variable in.
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
