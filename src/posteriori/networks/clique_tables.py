"""From cliques and factors to one flat buffer of p(clique | separator above it), without what cannot occur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.kernels import Layout
from posteriori.networks.triangulation import Triangulation
from posteriori.typing import Array


@dataclass(frozen=True)
class Factor:
    """A non-negative function of some variables; the distribution is proportional to the product of all.

    Attributes
    ----------
    scope : tuple of int
        The variables, one for each axis.
    table : ndarray
        The number of states of each variable by axes.
    """

    scope: tuple[int, ...]
    table: Array


@dataclass(frozen=True)
class Node:
    """A clique, which grows out of the separator that is its parent, or a separator, which shrinks its parent.

    Attributes
    ----------
    scope : tuple of int
        The variables in the order of the axes; those of a clique begin with its parent's.
    parent : int
        The place of the node above; −1 for the root.
    is_clique : bool
    """

    scope: tuple[int, ...]
    parent: int
    is_clique: bool


@dataclass(frozen=True)
class Skeleton:
    """The nodes of a junction tree, parents first; the root is the empty separator.

    A separator hangs from the smallest table that holds it, so that what is small is summed out of what is small; each
    variable has a separator of its own, where evidence enters and from which its marginal is read.

    Attributes
    ----------
    cardinalities : tuple of int (V,)
    nodes : tuple of Node
    home : tuple of int (V,)
        The separator of each variable alone.
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


def build_skeleton(triangulation: Triangulation, cardinalities: tuple[int, ...]) -> Skeleton:
    """Return the nodes of the tree of cliques."""
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
        # The largest separators first: those that they hold hang from them.
        for c in sorted(next_to.get(parent, ()), key=lambda c: -size(cliques[c].separator)):
            above = separator(cliques[c].separator, 0 if parent < 0 else position[parent])
            rest = sorted(cliques[c].scope - cliques[c].separator)
            position[c] = add(Node((*nodes[above].scope, *rest), above, True))
    smallest: dict[int, int] = {}
    for n in sorted(range(len(nodes)), key=lambda n: size(nodes[n].scope)):
        for v in nodes[n].scope:
            smallest.setdefault(v, n)
    home = tuple(separator(frozenset([v]), smallest[v]) for v in range(len(cardinalities)))
    return Skeleton(cardinalities, tuple(nodes), home, tuple(position))


@dataclass(frozen=True)
class CliqueTables:
    """The numbers of a junction tree.

    Attributes
    ----------
    layout : Layout
        What the kernels read.
    log_total : float
        log Σ_x Π factors, in nats: −inf where no configuration is possible.
    kept : tuple of ndarray of int
        For each node, which cells of its full table are kept.
    """

    layout: Layout
    log_total: float
    kept: tuple[Array, ...]


def fill_tables(skeleton: Skeleton, assigned: dict[int, list[Factor]]) -> CliqueTables:
    """Multiply factors into cliques and divide each by its message to the separator above it.

    With φ_C the product of a clique's factors and of the messages from below, the message upwards is
    m(S) = Σ_{C∖S} φ_C, and p(C | S) = φ_C / m(S). What m(∅) is at the root is the sum of the whole product. A cell of
    which p(C | S) or p(S) is 0 is left out of the table: it can never gain probability.

    Parameters
    ----------
    skeleton : Skeleton
    assigned : dict from int to list of Factor
        The factors that each clique, by its node, takes in.

    References
    ----------
    Jensen & Andersen (1990), Approximations in Bayesian belief universes for knowledge-based systems, UAI 6 (section
    3, on leaving out zeros).
    """
    children = skeleton.children()
    messages: dict[int, Array] = {}
    conditionals: dict[int, tuple[Array, Array]] = {}
    log_total = 0.0
    for n in range(len(skeleton.nodes) - 1, -1, -1):
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
            np.divide(table, message, out=table, where=message > 0)
            messages[n] = message.reshape(above)
            table = table.reshape(-1)
            occurring = np.flatnonzero(table).astype(np.int32)
            conditionals[n] = occurring, table[occurring]
        else:
            messages[n] = table
    with np.errstate(divide="ignore"):
        log_total += float(np.log(messages[0]))
    return _lay_out(skeleton, children, conditionals, log_total)


def most_bytes(skeleton: Skeleton, assigned: dict[int, list[Factor]]) -> int:
    """Return how many bytes `fill_tables` takes at most, without making a table.

    A cell of a clique takes 16 bytes and 4 more for each separator that hangs from it. The share of cells that cannot
    occur is at least that of the clique's factor with most zeros; the messages may rule out more. Computing a table
    takes about 40 more bytes per cell, including the cells that cannot occur.
    """
    total = largest = 0.0
    for n, below in enumerate(skeleton.children()):
        if skeleton.nodes[n].is_clique:
            size = math.prod(skeleton.shape(n))
            shares = (np.count_nonzero(factor.table) / factor.table.size for factor in assigned.get(n, ()))
            total += size * min(shares, default=1.0) * (16 + 4 * len(below))
            largest = max(largest, size)
    return int(total + 40 * largest)


def _multiply(
    table: Array, other: Array, scope: Sequence[int], axes: Sequence[int], cardinalities: Sequence[int]
) -> float:
    """Multiply a table by a smaller one in place and scale the largest cell to 1; return the logarithm of the scale."""
    table *= _aligned(other, scope, axes, cardinalities)
    largest = float(table.max())
    if largest in (0.0, 1.0):
        return 0.0
    table /= largest
    return math.log(largest)


def _aligned(table: Array, scope: Sequence[int], axes: Sequence[int], cardinalities: Sequence[int]) -> Array:
    """Return a table with an axis for each of axes, of length 1 where its scope lacks it."""
    order = sorted(range(len(scope)), key=lambda i: axes.index(scope[i]))
    held = set(scope)
    return table.transpose(order).reshape([cardinalities[v] if v in held else 1 for v in axes])


def _lay_out(
    skeleton: Skeleton, children: list[list[int]], conditionals: dict[int, tuple[Array, Array]], log_total: float
) -> CliqueTables:
    """Drop the cells that the separator above rules out, and number what is left."""
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
            # A variable keeps all its states: they are what evidence and marginals are about.
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
    """An array that grows up to a known length: no part of it is ever copied, and memory never written is not taken."""

    def __init__(self, length: int, dtype: Any) -> None:
        self._whole = np.empty(length, dtype)
        self.stops = [0]

    def append(self, part: Array) -> None:
        """Copy a part to the end."""
        stop = self.stops[-1] + len(part)
        self._whole[self.stops[-1] : stop] = part
        self.stops.append(stop)

    def array(self) -> Array:
        """Return what has been appended."""
        return self._whole[: self.stops[-1]]


def _numbering(kept: Array, size: int) -> Array:
    """Return the number of each cell among those kept, −1 where it is not."""
    numbers = np.full(size, -1, np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    return numbers


def _starts(lengths: Array) -> Array:
    starts: Array = np.cumsum(lengths) - lengths
    return starts.astype(np.int64)
