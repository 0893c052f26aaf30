"""Tests of conditional independence from counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaincc

from posteriori.statistics.distinct_rows import DistinctRows
from posteriori.suggestions import closest
from posteriori.typing import Array

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
        return table[table.any(axis=(1, 2))] if z else table


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
