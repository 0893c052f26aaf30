"""Equivalence classes of graphs: partially directed graphs, the rules that direct their edges, and distances."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from posteriori.networks.graph.dag import DAG
from posteriori.support.typing import Array

# A partially directed graph as a matrix: [u, v] is set for u → v, and [u, v] and [v, u] for u — v.


@dataclass(frozen=True)
class PartialDAG:
    """A partially directed graph: u → v where the direction is determined, u — v where either direction is possible.

    Attributes
    ----------
    nodes : tuple of str
    directed : tuple of pairs of str
        From parent to child.
    undirected : tuple of pairs of str
    """

    nodes: tuple[str, ...]
    directed: tuple[tuple[str, str], ...]
    undirected: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, nodes: tuple[str, ...], matrix: Array) -> PartialDAG:
        """Return the graph of a matrix."""
        directed = tuple((nodes[u], nodes[v]) for u, v in np.argwhere(matrix & ~matrix.T).tolist())
        undirected = tuple((nodes[u], nodes[v]) for u, v in np.argwhere(np.triu(matrix & matrix.T)).tolist())
        return cls(nodes, directed, undirected)

    def matrix(self) -> Array:
        """Return the graph as a matrix: [u, v] for u → v, both ways for u — v."""
        position = {name: k for k, name in enumerate(self.nodes)}
        matrix = np.zeros((len(self.nodes),) * 2, np.bool_)
        for u, v in itertools.chain(self.directed, self.undirected, ((v, u) for u, v in self.undirected)):
            matrix[position[u], position[v]] = True
        return matrix

    def __repr__(self) -> str:
        lines = [*(f"{u} → {v}" for u, v in self.directed), *(f"{u} — {v}" for u, v in self.undirected)]
        return "\n".join(lines) or "no edge"


def cpdag(dag: DAG) -> PartialDAG:
    """Return the equivalence class of a graph: all graphs that imply the same independences (CPDAG, essential graph).

    Parameters
    ----------
    dag : DAG

    Returns
    -------
    PartialDAG
        An edge is directed if it has this direction in all equivalent graphs.

    References
    ----------
    Chickering (1995), A transformational characterization of equivalent Bayesian network structures, UAI 11;
    Meek (1995), Causal inference and causal explanation with background knowledge, UAI 11.

    Examples
    --------
    >>> from posteriori.networks import DAG, cpdag
    >>> cpdag(DAG.of([("burglary", "alarm"), ("earthquake", "alarm"), ("alarm", "call")]))
    burglary → alarm
    alarm → call
    earthquake → alarm
    >>> cpdag(DAG.of([("rain", "wet"), ("wet", "slippery")]))
    rain — wet
    wet — slippery
    """
    edges = PartialDAG(dag.nodes, dag.edges, ()).matrix()
    joined = edges | edges.T
    matrix = joined.copy()
    for v in range(len(edges)):
        for a, b in itertools.combinations(np.flatnonzero(edges[:, v]).tolist(), 2):
            if not joined[a, b]:
                matrix[v, a] = matrix[v, b] = False
    return PartialDAG.of(dag.nodes, direct_implied(matrix))


def structural_hamming_distance(a: DAG | PartialDAG, b: DAG | PartialDAG) -> int:
    """Return the number of pairs of variables that are joined differently in two equivalence classes.

    Parameters
    ----------
    a, b : DAG or PartialDAG
        Of the same variables. A DAG stands for its equivalence class, because data cannot tell its members apart.

    Returns
    -------
    int
        Edges to add, to delete, or to direct otherwise.

    Raises
    ------
    ValueError
        The variables differ.

    References
    ----------
    Tsamardinos, Brown & Aliferis (2006), The max-min hill-climbing Bayesian network structure learning algorithm,
    Machine Learning 65, section 6.1.3.

    Examples
    --------
    >>> from posteriori.networks import DAG, structural_hamming_distance
    >>> chain = DAG.of([("a", "b"), ("b", "c")])
    >>> structural_hamming_distance(chain, DAG.of([("b", "a"), ("b", "c")]))
    0
    >>> structural_hamming_distance(chain, DAG.of([("a", "b"), ("c", "b")]))
    2
    """
    if set(a.nodes) != set(b.nodes):
        strange = sorted(set(a.nodes) ^ set(b.nodes))
        raise ValueError(f"{strange[0]!r} is in one graph only; compare graphs of the same variables")
    first, second = (cpdag(one) if isinstance(one, DAG) else one for one in (a, b))
    order = [second.nodes.index(name) for name in first.nodes]
    one, other = first.matrix(), second.matrix()[np.ix_(order, order)]
    differs = one != other
    return int(np.triu(differs | differs.T).sum())


def direct_implied(matrix: Array) -> Array:
    """Direct the edges whose other direction would close a cycle or make a new common effect (rules R1 to R4 of Meek).

    Parameters
    ----------
    matrix : ndarray of bool (d, d)
    """
    matrix = matrix.copy()
    changed = True
    while changed:
        changed = False
        for u, v in np.argwhere(matrix & matrix.T).tolist():
            if matrix[u, v] and matrix[v, u] and _implied(matrix, u, v):
                matrix[v, u] = False
                changed = True
    return matrix


def _implied(matrix: Array, u: int, v: int) -> bool:
    """Whether the undirected edge u — v must be u → v."""
    joined = matrix | matrix.T
    directed = matrix & ~matrix.T
    undirected = matrix & matrix.T
    if (directed[:, u] & ~joined[:, v]).any():  # R1: w → u — v, and w and v are not joined
        return True
    if (directed[u] & directed[:, v]).any():  # R2: u → w → v
        return True
    between = np.flatnonzero(undirected[u] & directed[:, v]).tolist()  # R3: u — w → v for two w that are not joined
    if any(not joined[a, b] for a, b in itertools.combinations(between, 2)):
        return True
    for w in np.flatnonzero(undirected[u] & ~joined[v]).tolist():  # R4: u — w → x → v, with u and x joined, w and v not
        if (directed[w] & directed[:, v] & joined[u]).any():
            return True
    return False


def consistent_extension(matrix: Array) -> Array | None:
    """Return a graph of the equivalence class, directed and without a new common effect; None if there is none.

    References
    ----------
    Dor & Tarsi (1992), A simple algorithm to construct a consistent extension of a partially oriented graph.
    """
    left, result = matrix.copy(), matrix & ~matrix.T
    alive = list(range(len(matrix)))
    while alive:
        for v in alive:
            undirected = left[v] & left[:, v]
            joined = left[v] | left[:, v]
            is_sink = not (left[v] & ~left[:, v]).any()
            around = np.flatnonzero(undirected).tolist()
            if is_sink and all(not (joined & ~(left[u] | left[:, u]))[np.arange(len(left)) != u].any() for u in around):
                result[around, v] = True
                left[v] = left[:, v] = False
                alive.remove(v)
                break
        else:
            return None
    return result


def any_extension(matrix: Array, allowed: Array) -> Array:
    """Return a directed graph without a cycle: the directed edges, and the others in an allowed direction.

    For graphs without a consistent extension, which tests on few rows lead to: an edge that closes a cycle is
    reversed, or left out if its reversal is not allowed.
    """
    result = np.zeros_like(matrix)
    directed = np.argwhere(matrix & ~matrix.T).tolist()
    undirected = np.argwhere(np.triu(matrix & matrix.T)).tolist()
    for u, v in [*directed, *undirected]:
        for a, b in ((u, v), (v, u)):
            if allowed[a, b] and not _reaches(result, b, a):
                result[a, b] = True
                break
    return result


def _reaches(edges: Array, start: int, goal: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        if node == goal:
            return True
        fresh: Iterable[int] = (w for w in np.flatnonzero(edges[node]).tolist() if w not in seen)
        for w in fresh:
            seen.add(w)
            waiting.append(w)
    return False
