"""Constraint-based structure learning: PC-stable, and the candidate parents of MMHC."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.networks.graph.equivalence import direct_implied
from posteriori.networks.learning.constraints import EdgeConstraints
from posteriori.typing import Array

_LARGEST_TRIED = 3  # variables of a separator that is tried beside the first one found


class IndependenceTests(Protocol):
    """Tests of conditional independence."""

    @property
    def n_variables(self) -> int:
        """The number of variables."""

    @property
    def n_tests(self) -> int:
        """The number of tests so far."""

    def p_value(self, x: int, y: int, z: tuple[int, ...]) -> float:
        """Return the p-value of x ⟂ y | z."""


@dataclass(frozen=True)
class Skeleton:
    """An undirected graph, and what separates the pairs that it does not join.

    Attributes
    ----------
    joined : ndarray of bool (d, d)
        Symmetric.
    separators : dict from pair of int to tuple of int
    p_values : dict from pair of int to float
        Of the test that separated the pair.
    """

    joined: Array
    separators: dict[tuple[int, int], tuple[int, ...]]
    p_values: dict[tuple[int, int], float]


def pc_stable(
    tests: IndependenceTests, constraints: EdgeConstraints, significance: float, max_given: int | None
) -> Array:
    """Return the partially directed graph of PC-stable.

    An edge is deleted if some subset of the neighbours of one of its ends makes the ends independent. The neighbours
    are those at the start of a round, so that the skeleton does not depend on the order of the variables. Then
    unshielded triples a — c — b become a → c ← b if the set that separates a and b with the largest p-value lacks c
    (PC-Max), and Meek's rules direct what follows. Of contradicting triples, the largest p-value wins.

    Parameters
    ----------
    tests : IndependenceTests
    constraints : EdgeConstraints
        Required edges stay and have their direction; an edge that is permitted in one direction only has this one.
    significance : float
        Pairs whose p-value is above it count as independent.
    max_given : int, optional
        The most variables to condition on.

    References
    ----------
    Spirtes, Glymour & Scheines (2000), Causation, prediction, and search, section 5.4.2; Colombo & Maathuis (2014),
    Order-independent constraint-based causal structure learning, JMLR 15; Ramsey (2016), Improving accuracy and
    scalability of the PC algorithm by maximizing p-value, arXiv:1610.00378.
    """
    skeleton = find_skeleton(tests, constraints, significance, max_given)
    matrix = skeleton.joined & (constraints.permitted | constraints.required)
    matrix &= ~constraints.required.T
    fixed = matrix & ~matrix.T
    effects = []
    for a, b in itertools.combinations(range(tests.n_variables), 2):
        common = np.flatnonzero(skeleton.joined[a] & skeleton.joined[b]).tolist()
        if skeleton.joined[a, b] or (a, b) not in skeleton.separators or not common:
            continue
        separator, p = _best_separator(tests, skeleton, a, b, max_given)
        effects += [(-p, a, b, c) for c in common if c not in separator]
    for _, a, b, c in sorted(effects):
        if matrix[a, c] and matrix[b, c] and not fixed[c, a] and not fixed[c, b]:
            matrix[c, a] = matrix[c, b] = False
    return direct_implied(matrix)


def _best_separator(
    tests: IndependenceTests, skeleton: Skeleton, a: int, b: int, max_given: int | None
) -> tuple[tuple[int, ...], float]:
    """Return the set that separates two variables with the largest p-value, and this p-value.

    Of the subsets of the neighbours of either, with at most as many variables as the first set found, or three.
    """
    best, p = skeleton.separators[a, b], skeleton.p_values[a, b]
    neighbours = [np.flatnonzero(line).tolist() for line in skeleton.joined]
    most = max(len(best), _LARGEST_TRIED if max_given is None else min(_LARGEST_TRIED, max_given))
    for size in range(most + 1):
        for z in _subsets(a, b, neighbours, size):
            found = tests.p_value(a, b, z)
            if found > p:
                best, p = z, found
    return best, p


def find_skeleton(
    tests: IndependenceTests, constraints: EdgeConstraints, significance: float, max_given: int | None
) -> Skeleton:
    """Return the skeleton of PC-stable."""
    permitted = constraints.permitted | constraints.permitted.T
    required = constraints.required | constraints.required.T
    joined = permitted | required
    separators: dict[tuple[int, int], tuple[int, ...]] = {}
    p_values: dict[tuple[int, int], float] = {}
    size = 0
    while max_given is None or size <= max_given:
        neighbours = [np.flatnonzero(line).tolist() for line in joined]  # fixed for this round
        if all(len(around) - 1 < size for around in neighbours):
            break
        for x, y in np.argwhere(np.triu(joined & ~required)).tolist():
            for z in _subsets(x, y, neighbours, size):
                p = tests.p_value(x, y, z)
                if p > significance:
                    joined[x, y] = joined[y, x] = False
                    separators[x, y], p_values[x, y] = z, p
                    break
        size += 1
    return Skeleton(joined, separators, p_values)


def _subsets(x: int, y: int, neighbours: list[list[int]], size: int) -> list[tuple[int, ...]]:
    """Return the sets of a size among the neighbours of either end, each once."""
    found: dict[tuple[int, ...], None] = {}
    for a, b in ((x, y), (y, x)):
        others = [v for v in neighbours[a] if v != b]
        found.update(dict.fromkeys(itertools.combinations(others, size)))
    return list(found)


def max_min_candidates(tests: IndependenceTests, significance: float, max_given: int) -> Array:
    """Return which pairs may be joined, (d, d): each is a candidate parent or child of the other by MMPC.

    Candidates enter by the smallest association that a subset of the earlier ones leaves, largest first, and leave if
    some subset makes them independent. Associations are compared by p-value.

    Parameters
    ----------
    tests : IndependenceTests
    significance : float
    max_given : int
        The most variables to condition on.

    References
    ----------
    Tsamardinos, Brown & Aliferis (2006), The max-min hill-climbing Bayesian network structure learning algorithm,
    Machine Learning 65, algorithms 1 and 2.
    """
    d = tests.n_variables
    chosen = np.zeros((d, d), np.bool_)
    for t in range(d):
        chosen[t, _candidates_of(tests, t, significance, max_given)] = True
    return chosen & chosen.T


def _candidates_of(tests: IndependenceTests, t: int, significance: float, max_given: int) -> list[int]:
    chosen: list[int] = []
    # The largest p-value so far of each outsider: it grows as candidates join, so that only new subsets are tested.
    worst = {x: tests.p_value(t, x, ()) for x in range(tests.n_variables) if x != t}
    worst = {x: p for x, p in worst.items() if p <= significance}
    while worst:
        best = min(worst, key=lambda x: (worst[x], x))
        del worst[best]
        before = tuple(chosen)
        chosen.append(best)
        for x in list(worst):
            for size in range(min(max_given, len(chosen))):
                for z in itertools.combinations(before, size):
                    worst[x] = max(worst[x], tests.p_value(t, x, (*z, best)))
                    if worst[x] > significance:
                        break
                if worst[x] > significance:
                    del worst[x]  # some subset makes it independent of the target
                    break
    for x in list(chosen):
        others = [v for v in chosen if v != x]
        subsets = (z for k in range(min(max_given, len(others)) + 1) for z in itertools.combinations(others, k))
        if any(tests.p_value(t, x, z) > significance for z in subsets):
            chosen.remove(x)
    return chosen
