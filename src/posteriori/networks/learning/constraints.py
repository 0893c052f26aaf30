"""Constraints on the edges of a learned graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.graph.dag import DAG
from posteriori.suggestions import closest
from posteriori.typing import Array

Edges = Iterable[tuple[str, str]]


@dataclass(frozen=True)
class EdgeConstraints:
    """Which edges a graph must have and which it may have.

    Attributes
    ----------
    required : ndarray of bool (d, d)
        [u, v]: the edge u → v must be present.
    permitted : ndarray of bool (d, d)
        [u, v]: the edge u → v may be present.
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
        tiers: Iterable[Iterable[str]] | None = None,
    ) -> EdgeConstraints:
        """Check constraints by name and return them as matrices.

        Raises
        ------
        ValueError
            They name no variable or contradict each other: an edge is required and not allowed, the required edges
            form a cycle, or a variable has more required parents than max_parents.
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
        if tiers is not None:
            backwards = _against(tiers, names)
            for u, v in needed:
                if backwards[names.index(u), names.index(v)]:
                    raise ValueError(f"the edge {u!r} → {v!r} is required, but {u!r} is in a later tier; change one")
            permitted &= ~backwards
        np.fill_diagonal(permitted, False)
        try:
            dag = DAG.of(needed, names)
        except ValueError as error:
            raise ValueError(f"in the required edges: {error}") from None
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


def _against(tiers: Iterable[Iterable[str]], names: Sequence[str]) -> Array:
    """Return the edges from a later tier to an earlier one; variables in no tier are free."""
    tier: dict[str, int] = {}
    for k, listed in enumerate(tiers):
        if isinstance(listed, str):
            raise TypeError(f"the tier {listed!r} is a string; give each tier as a list of variables")
        for name in listed:
            if name not in names:
                raise ValueError(f"tiers names {name!r}, which is no variable; {closest(name, names)}")
            if name in tier:
                raise ValueError(f"{name!r} is in two tiers; leave it out of one")
            tier[name] = k
    level = np.array([tier.get(name, -1) for name in names])
    known = level >= 0
    return (level[:, np.newaxis] > level) & known[:, np.newaxis] & known


def _matrix(edges: Iterable[tuple[str, str]], names: Sequence[str]) -> Array:
    position = {name: v for v, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), np.bool_)
    for u, v in edges:
        matrix[position[u], position[v]] = True
    return matrix
