"""Cliques of a triangulated graph, and their tables p(clique | separator above it)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.kernels.loops.junction_tree import Layout
from posteriori.support.typing import Array

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


@dataclass(frozen=True)
class Factor:
    """A non-negative function of some variables; the distribution is proportional to the product of all factors.

    Attributes
    ----------
    scope : tuple of int
        The variables, one for each axis.
    table : ndarray
        One axis per variable, of its number of states.
    """

    scope: tuple[int, ...]
    table: Array


@dataclass(frozen=True)
class Node:
    """A clique or a separator: a clique adds variables to the separator above it, a separator drops some.

    Attributes
    ----------
    scope : tuple of int
        The variables in the order of the axes; the axes of a clique begin with those of its parent.
    parent : int
        The index of the node above; −1 for the root.
    is_clique : bool
    """

    scope: tuple[int, ...]
    parent: int
    is_clique: bool


@dataclass(frozen=True)
class TreeSkeleton:
    """The nodes of a junction tree, parents first; the root is the empty separator.

    A separator is the child of the smallest table that contains it, so that small tables are sums of small tables.
    Each variable has a separator of its own, where its evidence enters and from which its marginal is read.

    Attributes
    ----------
    cardinalities : tuple of int (V,)
    nodes : tuple of Node
    home : tuple of int (V,)
        The separator that holds each variable alone.
    position : tuple of int
        The node of each clique of the triangulation.
    """

    cardinalities: tuple[int, ...]
    nodes: tuple[Node, ...]
    home: tuple[int, ...]
    position: tuple[int, ...]

    def shape(self, node: int) -> tuple[int, ...]:
        """Return the number of states along each axis of a node's table."""
        return tuple(self.cardinalities[v] for v in self.nodes[node].scope)

    def children(self) -> list[list[int]]:
        """Return the nodes below each node."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for position, node in enumerate(self.nodes[1:], start=1):
            children[node.parent].append(position)
        return children


def build_skeleton(triangulation: Triangulation, cardinalities: tuple[int, ...]) -> TreeSkeleton:
    """Return the cliques of a triangulation with the separators between them.

    A separator becomes the child of the smallest separator that contains it, not of its clique: the sum from a large
    clique table is then made once, and further sums start from its small result.
    """
    nodes = [Node((), -1, False)]
    below: list[list[int]] = [[]]

    def size(scope: Sequence[int] | frozenset[int]) -> int:
        return math.prod(cardinalities[v] for v in scope)

    def add(node: Node) -> int:
        nodes.append(node)
        below.append([])
        below[node.parent].append(len(nodes) - 1)
        return len(nodes) - 1

    def separator(scope: frozenset[int], host: int) -> int:
        """Return the node of a scope within a host: an existing separator, or a new one as low as possible."""
        while True:
            if not nodes[host].is_clique and len(nodes[host].scope) == len(scope):
                return host
            smaller = [n for n in below[host] if not nodes[n].is_clique and scope.issubset(nodes[n].scope)]
            if not smaller:
                return add(Node(tuple(v for v in nodes[host].scope if v in scope), host, False))
            host = min(smaller, key=lambda n: size(nodes[n].scope))

    cliques = triangulation.cliques
    position = [0] * len(cliques)
    next_to: dict[int, list[int]] = {}
    for c, clique in enumerate(cliques):
        next_to.setdefault(clique.parent, []).append(c)
    for parent in range(-1, len(cliques)):
        # The largest separators first, so that the smaller ones within them become their children.
        for c in sorted(next_to.get(parent, ()), key=lambda c: -size(cliques[c].separator)):
            above = separator(cliques[c].separator, 0 if parent < 0 else position[parent])
            rest = sorted(cliques[c].scope - cliques[c].separator)
            position[c] = add(Node((*nodes[above].scope, *rest), above, True))
    smallest: dict[int, int] = {}  # the node with the fewest cells that contains each variable
    for n in sorted(range(len(nodes)), key=lambda n: size(nodes[n].scope)):
        for v in nodes[n].scope:
            smallest.setdefault(v, n)
    home = tuple(separator(frozenset([v]), smallest[v]) for v in range(len(cardinalities)))
    return TreeSkeleton(cardinalities, tuple(nodes), home, tuple(position))


@dataclass(frozen=True)
class CliqueTables:
    """The numbers of a junction tree.

    Attributes
    ----------
    layout : Layout
        The arrays that the kernels read.
    log_total : float
        log Σ_x Π factors, in nats; −inf if no configuration is possible.
    kept : tuple of ndarray of int
        Per node, the indices of the cells of its full table that are kept.
    """

    layout: Layout
    log_total: float
    kept: tuple[Array, ...]


def fill_tables(skeleton: TreeSkeleton, assigned: dict[int, list[Factor]]) -> CliqueTables:
    """Multiply factors into cliques and divide each by its message to the separator above it.

    Let φ_C be the product of a clique's factors and of the messages from below. Then the message upwards is
    m(S) = Σ_{C∖S} φ_C (Koller & Friedman 2009, section 10.2.1), and p(C | S) = φ_C / m(S). The message m(∅) at the root
    is the sum of the whole product. A cell with p(C | S) = 0 or p(S) = 0 is left out of the table: evidence multiplies,
    so that it can never gain probability.

    Parameters
    ----------
    skeleton : TreeSkeleton
    assigned : dict from int to list of Factor
        The factors of each clique, by the index of its node.

    References
    ----------
    Jensen & Andersen (1990), Approximations in Bayesian belief universes for knowledge-based systems, UAI 6 (section
    3, on leaving out zeros).
    """
    children = skeleton.children()
    messages: dict[int, Array] = {}
    conditionals: dict[int, tuple[Array, Array]] = {}
    log_total = 0.0  # collects the scales that keep the tables within the range of floats
    for n in range(len(skeleton.nodes) - 1, -1, -1):  # parents come first, so that this order is leaves to root
        node = skeleton.nodes[n]
        table = np.ones(skeleton.shape(n))
        for factor in assigned.get(n, ()):
            log_total += _multiply(table, factor.table, factor.scope, node.scope, skeleton.cardinalities)
        for child in children[n]:
            scope = node.scope if skeleton.nodes[child].is_clique else skeleton.nodes[child].scope
            log_total += _multiply(table, messages.pop(child), scope, node.scope, skeleton.cardinalities)
        if node.is_clique:
            above = skeleton.shape(node.parent)
            table = table.reshape(math.prod(above), -1)
            message = table.sum(axis=1, keepdims=True)
            np.divide(table, message, out=table, where=message > 0)  # 0/0 stays 0
            messages[n] = message.reshape(above)
            table = table.reshape(-1)
            occurring = np.flatnonzero(table).astype(np.int32)
            conditionals[n] = occurring, table[occurring]
        else:
            messages[n] = table
    with np.errstate(divide="ignore"):
        log_total += float(np.log(messages[0]))
    return _lay_out(skeleton, children, conditionals, log_total)


def most_bytes(skeleton: TreeSkeleton, assigned: dict[int, list[Factor]]) -> int:
    """Return an upper bound of the bytes that `fill_tables` takes, without allocating a table.

    A cell of a clique takes 16 bytes, and 4 more per child separator. The fraction of impossible cells is at least that
    of the clique's factor with the most zeros; messages may exclude more. While a table is filled it takes another 40
    bytes per cell, possible or not.
    """
    total = largest = 0.0
    for n, below in enumerate(skeleton.children()):
        if skeleton.nodes[n].is_clique:
            size = math.prod(skeleton.shape(n))
            possible = (np.count_nonzero(factor.table) / factor.table.size for factor in assigned.get(n, ()))
            total += size * min(possible, default=1.0) * (16 + 4 * len(below))
            largest = max(largest, size)
    return int(total + 40 * largest)


def _multiply(
    table: Array, other: Array, scope: Sequence[int], axes: Sequence[int], cardinalities: Sequence[int]
) -> float:
    """Multiply a table by a smaller one in place and scale its largest cell to 1; return the log of the scale."""
    table *= _aligned(other, scope, axes, cardinalities)
    largest = float(table.max())
    if largest in (0.0, 1.0):  # all cells impossible, or nothing to scale
        return 0.0
    table /= largest
    return math.log(largest)


def _aligned(table: Array, scope: Sequence[int], axes: Sequence[int], cardinalities: Sequence[int]) -> Array:
    """Return a table with one axis for each of `axes`, of length 1 for variables outside its scope."""
    order = sorted(range(len(scope)), key=lambda i: axes.index(scope[i]))
    members = set(scope)
    return table.transpose(order).reshape([cardinalities[v] if v in members else 1 for v in axes])


def _lay_out(
    skeleton: TreeSkeleton, children: list[list[int]], conditionals: dict[int, tuple[Array, Array]], log_total: float
) -> CliqueTables:
    """Drop the cells whose separator configuration is impossible, and renumber the others.

    From the root downwards: which cells of a node can occur depends on those of its parent. `maps` then gives, per cell
    of a clique, its cell in the separator above; and per cell of a parent, its cell in the separator below.
    """
    nodes = skeleton.nodes
    homes = set(skeleton.home)
    kept: list[Array] = [np.zeros(1, np.int32)]
    occurs = [len(conditionals[n][0]) if n in conditionals else math.prod(skeleton.shape(n)) for n in range(len(nodes))]
    table = _Buffer(sum(len(cells) for cells, _ in conditionals.values()), np.float64)
    maps = _Buffer(sum(occurs[n if node.is_clique else node.parent] for n, node in enumerate(nodes) if n), np.int32)
    for n, node in enumerate(nodes[1:], start=1):
        size = math.prod(skeleton.shape(n))
        above = kept[node.parent]
        if node.is_clique:
            occurring, values = conditionals.pop(n)
            n_above = math.prod(skeleton.shape(node.parent))
            extended = _numbering(above, n_above)[occurring // (size // n_above)]
            possible = extended >= 0
            kept.append(occurring[possible])
            table.append(values[possible])
            maps.append(extended[possible])
        else:
            parent = nodes[node.parent].scope
            cells = _aligned(
                np.arange(size, dtype=np.int32).reshape(skeleton.shape(n)), node.scope, parent, skeleton.cardinalities
            )
            summed = np.broadcast_to(cells, skeleton.shape(node.parent)).reshape(-1)[above]
            occurring = np.zeros(size, np.bool_)
            occurring[summed] = True
            # The separator of one variable keeps all states: evidence and marginals need each of them.
            kept.append(np.arange(size, dtype=np.int32) if n in homes else np.flatnonzero(occurring).astype(np.int32))
            maps.append(_numbering(kept[n], size)[summed])
    sizes = np.array([len(cells) for cells in kept])
    is_clique = np.array([node.is_clique for node in nodes])
    parent_of = np.array([node.parent for node in nodes])
    layout = Layout(
        is_clique=is_clique,
        parent=parent_of,
        size=sizes,
        lane=_starts(np.where(is_clique, 0, sizes)),
        message=_starts(np.where(is_clique, sizes[parent_of], 0)),
        cell=_starts(np.where(is_clique, sizes, 0)),
        map_at=np.append(0, maps.stops[:-1]).astype(np.int64),
        child_at=np.append(0, np.cumsum([len(below) for below in children])),
        children=np.array([n for below in children for n in below], np.int64),
        home=np.array(skeleton.home, np.int64),
        state=np.append(0, np.cumsum(skeleton.cardinalities)).astype(np.int64),
        table=table.array(),
        maps=maps.array(),
    )
    return CliqueTables(layout, log_total, tuple(kept))


class _Buffer:
    """An array that grows up to a known length: nothing is copied twice, and pages never written take no memory."""

    def __init__(self, length: int, dtype: Any) -> None:
        self._whole = np.empty(length, dtype)
        self.stops = [0]

    def append(self, values: Array) -> None:
        stop = self.stops[-1] + len(values)
        self._whole[self.stops[-1] : stop] = values
        self.stops.append(stop)

    def array(self) -> Array:
        return self._whole[: self.stops[-1]]


def _numbering(kept: Array, size: int) -> Array:
    """Return the index of each cell among the kept cells, −1 for dropped cells."""
    numbers = np.full(size, -1, np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    return numbers


def _starts(lengths: Array) -> Array:
    starts: Array = np.cumsum(lengths) - lengths
    return starts.astype(np.int64)
