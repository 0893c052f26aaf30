"""Structure by tests of conditional independence, under constraints on the edges."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaincc

from posteriori.model_cost import Work
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.equivalence import direct_implied
from posteriori.statistics.row_records import DistinctRows
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array

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
        """Check constraints against the variables and return them as matrices.

        Raises
        ------
        ValueError
            They name no variable or contradict each other: an edge is required and not allowed, the required edges
            form a cycle, or a variable has more required parents than max_parents.
        """
        needed = _among(required, names, "required")
        banned = _among(forbidden, names, "forbidden")
        for u, v in needed:
            if (u, v) in banned:
                raise ValueError(f"the edge {u!r} → {v!r} is required and forbidden; leave it out of one")
        permitted = np.ones((len(names), len(names)), np.bool_)
        if allowed is not None:
            listed = _among(allowed, names, "allowed")
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
        for name, parents in dag.parents.items():
            if len(parents) > most:
                raise ValueError(
                    f"{name!r} has {len(parents)} required parents, more than max_parents = {most}; raise it, or "
                    "require fewer"
                )
        return cls(_matrix(needed, names), permitted, most)


def as_edges(edges: Any, parameter: str) -> tuple[tuple[str, str], ...]:
    """Return each edge once, as a pair; TypeError for what is no pair, and ValueError for an edge to itself."""
    pairs = tuple(dict.fromkeys(tuple(edge) if not isinstance(edge, str) else (edge,) for edge in edges))
    for pair in pairs:
        if len(pair) != 2:
            raise TypeError(f"{parameter} holds {pair!r}, which is no edge; an edge is a pair (parent, child)")
        if pair[0] == pair[1]:
            raise ValueError(f"{parameter} has an edge from {pair[0]!r} to itself; leave it out")
    return pairs


def as_tiers(tiers: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the variables of each tier; TypeError for a tier that is a string, ValueError for a variable in two."""
    listed = []
    for tier in tiers:
        if isinstance(tier, str):
            raise TypeError(f"the tier {tier!r} is a string; give each tier as a list of variables")
        listed.append(tuple(tier))
    seen: set[str] = set()
    for name in itertools.chain.from_iterable(listed):
        if name in seen:
            raise ValueError(f"{name!r} is in two tiers; leave it out of one")
        seen.add(name)
    return tuple(listed)


def _among(edges: Edges, names: Sequence[str], parameter: str) -> Sequence[tuple[str, str]]:
    """Return the edges; ValueError if one names no variable."""
    pairs = tuple(edges)
    for name in itertools.chain.from_iterable(pairs):
        if name not in names:
            raise ValueError(f"{parameter} names {name!r}, which is no variable; {closest(name, names)}")
    return pairs


def _against(tiers: Iterable[Iterable[str]], names: Sequence[str]) -> Array:
    """Return the edges from a later tier to an earlier one; variables in no tier are free."""
    tier = {name: k for k, listed in enumerate(tiers) for name in listed}
    for name in tier:
        if name not in names:
            raise ValueError(f"tiers names {name!r}, which is no variable; {closest(name, names)}")
    level = np.array([tier.get(name, -1) for name in names])
    known = level >= 0
    return (level[:, np.newaxis] > level) & known[:, np.newaxis] & known


def _matrix(edges: Iterable[tuple[str, str]], names: Sequence[str]) -> Array:
    position = {name: v for v, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), np.bool_)
    for u, v in edges:
        matrix[position[u], position[v]] = True
    return matrix


Statistic = Callable[[Array, Array], float]


def chi_squared(observed: Array, expected: Array) -> float:
    """Return Pearson's Σ (o − e)² / e over the cells with e > 0."""
    possible = expected > 0
    return float(((observed - expected)[possible] ** 2 / expected[possible]).sum())


def g_squared(observed: Array, expected: Array) -> float:
    """Return G² = 2 Σ o·log(o / e) = 2 n times the mutual information of the shares, in nats."""
    seen = observed > 0
    return float(2.0 * (observed[seen] * np.log(observed[seen] / expected[seen])).sum())


TESTS: dict[str, Statistic] = {"chi2": chi_squared, "g2": g_squared, "mutual_information": g_squared}


def as_statistic(test: str) -> Statistic:
    """Return the statistic of a test by its name; ValueError for others."""
    if test not in TESTS:
        raise ValueError(f"test is {test!r}; {closest(test, TESTS)}")
    return TESTS[test]


@dataclass(frozen=True)
class CategoricalTests:
    """Tests of x ⟂ y | z on rows of categories, each on the rows in which x, y and z are known.

    Attributes
    ----------
    codes : ndarray (m, d)
        The distinct rows; 0 is a missing cell.
    weight : ndarray (m,)
    cardinalities : tuple of int (d,)
    statistic : callable
    """

    codes: Array
    weight: Array
    cardinalities: tuple[int, ...]
    statistic: Statistic
    _known: dict[tuple[int, int, tuple[int, ...]], float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, rows: DistinctRows, test: str) -> CategoricalTests:
        """Return the tests on rows, by name: "chi2", "g2" or "mutual_information"."""
        codes = np.ascontiguousarray(rows.codes.values.T).astype(np.int64)
        return cls(codes, rows.weight, tuple(rows.cardinalities), as_statistic(test))

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.cardinalities)

    @property
    def n_tests(self) -> int:
        """The number of tests so far."""
        return len(self._known)

    def p_value(self, x: int, y: int, z: Sequence[int]) -> float:
        """Return the probability of at least this dependence between x and y given z if they are independent.

        The degrees of freedom are Σ_z (r_z − 1)(c_z − 1), with the states of x and y that occur in stratum z; where
        there are none, nothing speaks against independence, and the result is 1.
        """
        key = (min(x, y), max(x, y), tuple(sorted(z)))
        if key not in self._known:
            self._known[key] = self._tested(*key)
        return self._known[key]

    def _tested(self, x: int, y: int, z: tuple[int, ...]) -> float:
        table = self._counts(x, y, z)
        rows, columns = table.sum(axis=2), table.sum(axis=1)
        total = rows.sum(axis=1)
        expected = rows[:, :, np.newaxis] * columns[:, np.newaxis, :] / total[:, np.newaxis, np.newaxis]
        freedom = int((((rows > 0).sum(axis=1) - 1) * ((columns > 0).sum(axis=1) - 1)).sum())
        if freedom <= 0:
            return 1.0
        return float(gammaincc(freedom / 2.0, max(self.statistic(table, expected), 0.0) / 2.0))

    def _counts(self, x: int, y: int, z: tuple[int, ...]) -> Array:
        """Return the weights (strata that occur, K_x, K_y)."""
        k_x, k_y = self.cardinalities[x], self.cardinalities[y]
        known = (self.codes[x] > 0) & (self.codes[y] > 0)
        for v in z:
            known &= self.codes[v] > 0
        chosen: slice | Array = slice(None) if known.all() else known
        cell = (self.codes[x, chosen] - 1) * k_y + self.codes[y, chosen] - 1
        if z:
            stratum = np.zeros(len(cell), np.int64)
            size = 1
            for v in z:
                size *= self.cardinalities[v]
                stratum = stratum * self.cardinalities[v] + self.codes[v, chosen] - 1
                if size > 1 << 20:  # few of so many strata occur
                    stratum = np.unique(stratum, return_inverse=True)[1]
                    size = int(stratum.max(initial=0)) + 1
            cell += stratum * (k_x * k_y)
        else:
            size = 1
        table = np.bincount(cell, self.weight[chosen], size * k_x * k_y).reshape(size, k_x, k_y)
        return table[table.any(axis=(1, 2))]  # none if no row has x and y


@dataclass(frozen=True)
class PartialCorrelationTests:
    """Fisher's z test of zero partial correlation, from a covariance matrix.

    Attributes
    ----------
    covariance : ndarray (d, d)
    n : float
        The number of rows.

    References
    ----------
    Fisher (1924), The distribution of the partial correlation coefficient, Metron 3.
    """

    covariance: Array
    n: float
    _known: dict[tuple[int, int, tuple[int, ...]], float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.covariance)

    @property
    def n_tests(self) -> int:
        """The number of tests so far."""
        return len(self._known)

    def p_value(self, x: int, y: int, z: Sequence[int]) -> float:
        """Return the probability of at least this partial correlation if there is none."""
        key = (min(x, y), max(x, y), tuple(sorted(z)))
        if key not in self._known:
            places = [x, y, *z]
            part = self.covariance[np.ix_(places, places)]
            scale = np.sqrt(np.diag(part))
            scale[scale == 0] = 1.0
            inverse = np.linalg.pinv(part / np.outer(scale, scale), hermitian=True)
            product = inverse[0, 0] * inverse[1, 1]
            r = -inverse[0, 1] / math.sqrt(product) if product > 0 else 0.0
            freedom = self.n - len(z) - 3
            if freedom <= 0:
                self._known[key] = 1.0
            else:
                r = min(max(r, -1 + 1e-15), 1 - 1e-15)
                self._known[key] = math.erfc(math.sqrt(freedom) * abs(math.atanh(r)) / math.sqrt(2.0))
        return self._known[key]


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
    size, began = 0, time.perf_counter()
    while max_given is None or size <= max_given:
        neighbours = [np.flatnonzero(line).tolist() for line in joined]  # fixed for this round
        if all(len(around) - 1 < size for around in neighbours):
            break
        if size > 0:  # then earlier rounds show what a test takes
            most = sum(len(around) * math.comb(len(around) - 1, size) for around in neighbours if around)
            seconds = most * (time.perf_counter() - began) / max(tests.n_tests, 1)
            what = f"a round of up to {most:,} tests of independence given {size} variables"
            Work(seconds).announce(what, f"set max_given to {size - 1}, or leave out columns")
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
