"""From factor scopes to cliques: an order in which to sum the variables out, and the tree of cliques it leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_SEED = 0
_SMALL = 1 << 12  # cells: below this a further try costs more than it could ever save
_MOST_TRIES = 16  # of every cost
_MOST_STEPS = 3000  # variables eliminated in all tries: some tenths of a second

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

    Finding the fewest is NP-hard. Variables whose neighbours are joined already are eliminated first, which is never
    wrong; the others greedily by several costs, ties broken at random from a
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
    order, neighbours, graph = remove_simplicial(join(len(cardinalities), scopes))
    rest = sorted(set(range(len(graph))).difference(order))
    weights = [math.log2(k) for k in cardinalities]
    rng = np.random.default_rng(_SEED)
    best = order, neighbours
    fewest = math.inf
    tries = max(1, min(_MOST_TRIES, _MOST_STEPS // max(1, len(rest) * len(COSTS)))) if rest else 0
    for attempt in range(tries):
        for cost in COSTS:
            luck = rng.permutation(len(graph)) if attempt else np.arange(len(graph))
            turns, around = eliminate(graph, rest, weights, cost, luck.tolist())
            size = _cells(turns, around, weights)
            if size < fewest:
                fewest, best = size, (order + turns, neighbours + around)
        if fewest < _SMALL:
            break
    return build_clique_tree(*best, cardinalities)


def remove_simplicial(graph: Graph) -> tuple[list[int], list[int], Graph]:
    """Eliminate variables whose neighbours are all joined, as long as there are any: that fills in nothing.

    Returns
    -------
    order : list of int
    neighbours : list of int
        Those that each of them has when its turn comes.
    graph : list of int
        What is left.
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
    """Return twice the sum of the products of the weights of neighbours that are not joined."""
    around = graph[v]
    total = sum(weights[u] for u in bits(around))
    return sum(
        weights[u] * (total - weights[u] - sum(weights[w] for w in bits(around & graph[u]))) for u in bits(around)
    )


def size_then_fill_of(graph: Graph, weights: list[float], v: int) -> float:
    """Return the size of the table that fill edges make, and nothing where no edge is to be filled in."""
    return weight_of(graph, weights, v) if fill_of(graph, weights, v) else 0.0


COSTS: tuple[Cost, ...] = (fill_of, weight_of, weighted_fill_of, size_then_fill_of, neighbours_of)


def bits(members: int) -> Iterator[int]:
    """Yield the places of the bits that are set."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def eliminate(
    graph: Graph, variables: Sequence[int], weights: list[float], cost: Cost, luck: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return variables in the greedy order of a cost, and the neighbours that each has when its turn comes.

    Parameters
    ----------
    graph : list of int
        Of these variables only.
    variables : sequence of int
    weights : list of float (V,)
    cost : callable
    luck : sequence of int (V,)
        Which of equally good variables goes first.
    """
    graph = list(graph)
    costs = {v: (cost(graph, weights, v), luck[v]) for v in variables}
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
            costs[u] = (cost(graph, weights, u), luck[u])
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


def build_clique_tree(order: list[int], neighbours: list[int], cardinalities: Sequence[int]) -> Triangulation:
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
