"""What is known of the edges before any row is seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.dag import DAG
from posteriori.suggestions import closest
from posteriori.typing import Array

Edges = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class EdgeConstraints:
    """Which edges a graph must have and which it may have.

    Attributes
    ----------
    required : ndarray of bool (d, d)
        [u, v]: the graph must have u → v.
    permitted : ndarray of bool (d, d)
        [u, v]: the graph may have u → v.
    max_parents : int
    """

    required: Array
    permitted: Array
    max_parents: int

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        allowed: Edges | None = None,
        forbidden: Edges = (),
        required: Edges = (),
        max_parents: int | None = None,
    ) -> EdgeConstraints:
        """Return the constraints that a user states by name.

        Raises
        ------
        ValueError
            They name no variable or contradict each other: an edge is required and not allowed, the required ones
            form a cycle, or a variable needs more parents than it may have.
        """
        needed = _edges(required, names, "required")
        banned = _edges(forbidden, names, "forbidden")
        for u, v in needed:
            if (u, v) in banned:
                raise ValueError(f"the edge {u!r} → {v!r} is required and forbidden; leave it out of one")
        permitted = np.ones((len(names), len(names)), np.bool_)
        if allowed is not None:
            listed = _edges(allowed, names, "allowed")
            for u, v in needed:
                if (u, v) not in listed:
                    raise ValueError(f"the edge {u!r} → {v!r} is required but not among the allowed ones; add it there")
            permitted = _matrix(listed, names)
        permitted &= ~_matrix(banned, names)
        np.fill_diagonal(permitted, False)
        try:
            dag = DAG.of(needed, names)
        except ValueError as error:
            raise ValueError(f"of the required edges: {error}") from None
        most = len(names) if max_parents is None else max_parents
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
            raise ValueError(f"max_parents is {max_parents!r}; it must be a whole number of at least 0")
        for name, parents in dag.parents.items():
            if len(parents) > most:
                raise ValueError(
                    f"{name!r} has {len(parents)} required parents, more than max_parents = {most}; raise it, or "
                    "require fewer"
                )
        return cls(_matrix(needed, names), permitted, int(most))


def _edges(edges: Any, names: Sequence[str], parameter: str) -> tuple[tuple[str, str], ...]:
    pairs = tuple(dict.fromkeys(tuple(edge) if not isinstance(edge, str) else (edge,) for edge in edges))
    for pair in pairs:
        if len(pair) != 2:
            raise TypeError(f"{parameter} holds {pair!r}, which is no edge; an edge is a pair (parent, child)")
        for name in pair:
            if name not in names:
                raise ValueError(f"{parameter} names {name!r}, which is no variable; {closest(name, names)}")
        if pair[0] == pair[1]:
            raise ValueError(f"{parameter} has an edge from {pair[0]!r} to itself; leave it out")
    return pairs


def _matrix(edges: Iterable[tuple[str, str]], names: Sequence[str]) -> Array:
    position = {name: v for v, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), np.bool_)
    for u, v in edges:
        matrix[position[u], position[v]] = True
    return matrix
