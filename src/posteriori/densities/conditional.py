"""Conditional probability tables p(x | parents, z) from counts, smoothed by backing off to fewer parents."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori import kernels
from posteriori.invariants import check_pseudo_count, require
from posteriori.typing import Array

_MOST_PARENTS = 2  # of the kernel
ROUNDING = 1e-9  # by how much rounding may raise a log-probability above 0


@dataclass(frozen=True)
class BackOff:
    r"""Conditional tables, shrunk towards the tables without the last parent and without the component.

    .. math::
        p(x \mid a_1 \ldots a_t, z) = \frac{n_{a_1 \ldots a_t z x} + \tfrac{s}{2}\, p(x \mid a_1 \ldots a_{t-1}, z)
        + \tfrac{s}{2}\, p(x \mid a_1 \ldots a_t)}{n_{a_1 \ldots a_t z} + s}

    with the tables that do not depend on the component, and the tables without parents,

    .. math::
        p(x \mid a_1 \ldots a_t) = \frac{n_{a_1 \ldots a_t x} + s\, p(x \mid a_1 \ldots a_{t-1})}
        {n_{a_1 \ldots a_t} + s}, \qquad
        p(x \mid z) = \frac{n_{zx} + \alpha\, p(x)}{n_z + \alpha}, \qquad
        p(x) = \frac{n_x + \alpha}{n + K \alpha}

    Each table is the posterior mean under a Dirichlet prior whose pseudo-rows are distributed as the lower-order
    tables. Half of the pseudo-rows condition on the parents but not on the component. A rare combination of parents
    then carries little information about the component. Backing off to p(x | z) alone would restore the naive factor,
    which counts evidence twice.

    Parameters
    ----------
    strength : float or None
        s in pseudo-rows, ≥ 0. None: no back-off; each table has alpha pseudo-counts per category,
        p(x | a, z) = (n + alpha) / (n_a + K·alpha).
    alpha : float
        With back-off: the pseudo-count per category of p(x), and the pseudo-rows that shrink p(x | z) towards p(x).
    of_columns : tuple of tuple of float
        For each column the pseudo-rows of its own tables, > 0: those of p(x | z) in place of alpha, then those of the
        tables with 1, 2, … parents in place of s. Empty: all columns have alpha and s.

    References
    ----------
    Friedman, Geiger & Goldszmidt, Bayesian network classifiers, Machine Learning 29 (1997), section 4.1 (smoothing by
    one step back). MacKay & Peto, A hierarchical Dirichlet language model, Natural Language Engineering 1 (1995).
    """

    strength: float | None = 10.0
    alpha: float = 1.0
    of_columns: tuple[tuple[float, ...], ...] = ()

    def check(self) -> None:
        """Raise ValueError if the strength or alpha is negative."""
        check_pseudo_count("strength", self.strength or 0.0)
        check_pseudo_count("alpha", self.alpha)
        for of_column in self.of_columns:
            require(len(of_column) > 0, "a column has no pseudo-rows")
            for each in of_column:
                check_pseudo_count("pseudo-rows", each)

    def check_columns(self, n_columns: int) -> None:
        """Raise ValueError unless all columns or none have pseudo-rows of their own."""
        require(
            len(self.of_columns) in {0, n_columns},
            f"there are pseudo-rows of {len(self.of_columns)} columns, and {n_columns} columns",
        )

    def pseudo_rows(self, j: int, n_parents: int) -> Array:
        """Return the pseudo-rows of column j, (1 + n_parents,): of p(x | z), and of the tables with more parents.

        Beyond those of `of_columns`, the last one applies.
        """
        if not self.of_columns:
            return np.array([self.alpha, *[self.strength or 0.0] * n_parents], np.float64)
        known = self.of_columns[j][: 1 + n_parents]
        return np.array([*known, *[known[-1]] * (1 + n_parents - len(known))], np.float64)

    def scaled(self, factor: float) -> BackOff:
        """Return the smoothing with all pseudo-rows of columns multiplied by a factor."""
        scaled = tuple(tuple(factor * each for each in of_column) for of_column in self.of_columns)
        return replace(self, of_columns=scaled)

    def log_conditional(self, counts: Array, j: int = 0) -> Array:
        """Return log p(x | parents, z) in nats, of the shape of the counts.

        Parameters
        ----------
        counts : ndarray (Z, K_1 + 1, …, K_m + 1, K + 1)
            Weights indexed by the codes of the parents, the most important first, and of the child last; code 0 is
            missing.
        j : int
            The column, for its own pseudo-rows.

        Returns
        -------
        ndarray
            For code 0 (missing) of a parent: the table given the other parents. For code 0 of the child: 0.
        """
        n_parents = counts.ndim - 2
        if n_parents > _MOST_PARENTS:
            return self._of_many_parents(counts, j)
        table = np.array(counts, np.float64, order="C").reshape(
            *counts.shape[:-1], *[1] * (_MOST_PARENTS - n_parents), -1
        )
        pseudo_rows = self.pseudo_rows(j, _MOST_PARENTS)
        kernels.smoothed_tables(table, pseudo_rows, float(self.alpha), self.strength is not None)
        return table.reshape(counts.shape)

    def _of_many_parents(self, counts: Array, j: int = 0) -> Array:
        """Do the same for any number of parents."""
        observed = with_sums(counts[..., 1:])
        over_components = observed.sum(axis=0, keepdims=True)
        n_parents = observed.ndim - 2
        pseudo_rows = self.pseudo_rows(j, n_parents)
        root: tuple[slice | int, ...] = (slice(None), *[0] * n_parents)
        probability, pooled = np.empty(observed.shape), np.empty(over_components.shape)
        pooled[root] = self._marginal(over_components[root])
        probability[root] = self._shrunk(observed[root], pooled[root], pseudo_rows[0])
        # From few parents to many: the table with t parents backs off to the one with t − 1.
        for t in range(1, n_parents + 1):
            before: tuple[slice | int, ...] = (slice(None),) * t
            rest = (0,) * (n_parents - t)
            given, lower = (*before, slice(1, None), *rest), (*before, 0, *rest)
            pooled[given] = self._shrunk(over_components[given], np.expand_dims(pooled[lower], t), pseudo_rows[t])
            halfway = (np.expand_dims(probability[lower], t) + pooled[given]) / 2.0
            probability[given] = self._shrunk(observed[given], halfway, pseudo_rows[t])
        result = np.zeros(counts.shape)
        with np.errstate(divide="ignore"):
            np.log(probability, out=result[..., 1:])
        return result

    def _marginal(self, counts: Array) -> Array:
        """Return p(x), (1, K), from counts (1, K)."""
        return _shares(counts + self.alpha, np.full(counts.shape, 1.0 / max(counts.shape[1], 1)))

    def _shrunk(self, counts: Array, lower: Array, pseudo_rows: float) -> Array:
        """Return the posterior mean with pseudo-rows from a lower-order table, or pseudo-counts without strength."""
        added = self.alpha if self.strength is None else pseudo_rows * lower
        return _shares(counts + added, lower)


def draw(log_probability: Array, rng: np.random.Generator) -> Array:
    """Draw one code from 1 for each row of log-probabilities (n, K); 0 if K is 0."""
    n, k = log_probability.shape
    if not k:
        return np.zeros(n, np.uint32)
    cumulative = np.cumsum(np.exp(log_probability), axis=1)
    u = rng.random(n) * cumulative[:, -1]
    position = (cumulative <= u[:, np.newaxis]).sum(axis=1)
    return np.asarray(np.minimum(position, k - 1) + 1).astype(np.uint32)


def with_sums(counts: Array) -> Array:
    """Return the counts with slot 0 of each parent replaced by the sum over all its codes, missing included."""
    summed = counts.copy()
    for axis in range(1, counts.ndim - 1):
        first = (slice(None),) * axis + (0,)
        summed[first] = summed.sum(axis=axis)
    return summed


def _shares(counts: Array, otherwise: Array) -> Array:
    """Return counts divided by their sum along the last axis, or `otherwise` where the sum is 0."""
    return _ratio(counts, counts.sum(axis=-1, keepdims=True), otherwise)


def _ratio(part: Array, whole: Array, otherwise: Array | float) -> Array:
    """Return part / whole, or `otherwise` where whole is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), otherwise)


def without_missing(table: Array) -> Array:
    """Return a table (Z, K of each parent + 1, …, K_j + 1) without slot 0 of each axis, for missing cells."""
    return table[(slice(None), *[slice(1, None)] * (table.ndim - 1))]
