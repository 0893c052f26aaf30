"""Conditional probability tables p(x | parents, z) from counts, smoothed by backing off to fewer parents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from posteriori import kernels
from posteriori.kernels.loops.back_off import halfway
from posteriori.support.checks import check_pseudo_count, require
from posteriori.support.typing import Array

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
        table[..., 0] = 1.0
        return log_of(table).reshape(counts.shape)

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
            lower_order = halfway(np.expand_dims(probability[lower], t), pooled[given])
            probability[given] = self._shrunk(observed[given], lower_order, pseudo_rows[t])
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


def log_of(probability: Array) -> Array:
    """Return the array with its logarithms in place of its numbers.

    It is NumPy that takes them, whether kernels run compiled or not, so that both give the same bits.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability, out=probability))


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


_STEPS = 50  # with three EM steps each
_LONGEST = 64.0  # of a step, in EM steps


def maximise(
    sweep: Callable[[Array], tuple[float, Array, Array]],
    shape: tuple[int, int],
    mode: float,
    tolerance: float = 1e-3,
) -> Array:
    r"""Return the pseudo-rows of the greatest likelihood under a Gamma(2, m) prior of each, of a shape (d, L).

    .. math:: \hat s = \operatorname*{argmax}_s L(s) + \sum_{j,t} (\log s_{jt} - s_{jt} / m)

    An EM step sets s to (E + 1) / (D + 1/m), where E is the expected number of draws from pseudo-rows and D the sum of
    1 / (N + s) over the expected draws. The gradient in log s is E − s·D + 1 − s/m, and a step never lowers the sum
    (Minka, *Estimating a Dirichlet distribution*, 2000, for a table without back-off). SQUAREM (Varadhan & Roland 2008)
    makes the steps longer, for each line by itself. Where nothing is drawn, s is the mode.

    Parameters
    ----------
    sweep : callable
        Takes pseudo-rows to L in nats, E and D.
    mode : float
        m > 0, in rows; also the start.
    tolerance : float, default 1e-3
        The change of log s in an EM step at which to stop.
    """

    def step(logs: Array) -> tuple[float, Array]:
        pseudo_rows = np.exp(logs)
        log_likelihood, by_prior, exposure = sweep(pseudo_rows)
        score = log_likelihood + float((logs - pseudo_rows / mode).sum())
        return score, np.asarray(np.log((by_prior + 1.0) / (exposure + 1.0 / mode)))

    logs = np.full(shape, np.log(mode))
    for _ in range(_STEPS):
        _, once = step(logs)
        if np.abs(once - logs).max(initial=0.0) < tolerance:
            break
        least, twice = step(once)
        extrapolated, _ = squarem(logs, once, twice, _LONGEST)
        reached, beyond = step(extrapolated)
        logs = beyond if reached >= least else twice
    return np.asarray(np.exp(logs))


def squarem(start: Array, once: Array, twice: Array, longest: float) -> tuple[Array, Array]:
    r"""Return an extrapolation of two EM steps, and its length before the limits 1 and `longest`, by lines (…, L).

    .. math:: \theta_0 + 2 a r + a^2 v, \quad r = \theta_1 - \theta_0, \quad v = \theta_2 - \theta_1 - r, \quad
        a = \lVert r \rVert / \lVert v \rVert

    With a = 1 this is the second step. v is 0 if the three are collinear at equal distances: a is then the limit.

    References
    ----------
    Varadhan & Roland, Simple and globally convergent methods for accelerating the convergence of any EM algorithm,
    Scandinavian Journal of Statistics 35 (2008), scheme S3.
    """
    r = once - start
    v = (twice - once) - r
    size, bend = np.linalg.norm(np.stack([r, v]), axis=-1, keepdims=True)
    length = size / np.maximum(bend, 1e-300)
    a = np.clip(length, 1.0, longest)
    return start + 2.0 * a * r + a**2 * v, length


@dataclass(frozen=True)
class Family:
    """The counts of a column with its parents."""

    column: int
    # (Z, K_1 + 1, …, K + 1): weights by the codes of the parents, the most important first, and of the column last;
    # code 0 is missing
    counts: Array
    components: range  # those that have this table. The table that all components share counts all.


@dataclass(frozen=True)
class LeftOutCells:
    r"""The non-empty cells of families, with the counts on their path of back-off without one of their rows.

    A row of weight w counts as w rows of weight 1, of which one is left out.
    """

    # column, weight, root (m,): the column, the weight, and p(x) of each cell
    column: Array
    weight: Array
    root: Array
    # own, pooled (m, 1 + T, 2): n_x and N for each number of parents, given the component and of all components; N is
    # −1 where the parent is missing
    own: Array
    pooled: Array
    n_columns: int

    @classmethod
    def of(cls, families: Iterable[Family], alpha: float, n_columns: int, n_parents: int) -> LeftOutCells:
        """Return the cells of some families.

        Parameters
        ----------
        families : iterable of Family
        alpha : float
            The pseudo-count per category of p(x).
        n_columns : int
            d.
        n_parents : int
            T, the most parents of a column.
        """
        parts = [_cells_of(family, alpha, n_parents) for family in families]
        nothing = np.empty(0), np.empty(0), *[np.empty((0, 1 + n_parents, 2))] * 2
        column = [np.full(len(weight), family, np.int64) for family, (weight, *_) in parts]
        weight, root, own, pooled = (
            np.concatenate([nothing[k], *(arrays[k] for _, arrays in parts)]) for k in range(4)
        )
        return cls(np.concatenate([np.empty(0, np.int64), *column]), weight, root, own, pooled, n_columns)

    def sweep(self, pseudo_rows: Array) -> tuple[float, Array, Array]:
        """Return the leave-one-out log-likelihood in nats, and the two sums of an EM step; see the kernel."""
        by_prior, exposure = np.zeros(pseudo_rows.shape), np.zeros(pseudo_rows.shape)
        log_likelihood = kernels.sweep_cells(
            self.column, self.weight, self.root, self.own, self.pooled, pseudo_rows, by_prior, exposure
        )
        return float(log_likelihood), by_prior, exposure

    def learned_pseudo_rows(self, mode: float) -> Array:
        """Return the pseudo-rows of the greatest leave-one-out likelihood, (d, 1 + T); see `maximise`."""
        return maximise(self.sweep, (self.n_columns, self.own.shape[1]), mode)


def _cells_of(family: Family, alpha: float, n_parents: int) -> tuple[int, tuple[Array, Array, Array, Array]]:
    """Return the column of a family; and weight, root, own and pooled counts of its cells."""
    first, last = family.components.start, family.components.stop
    summed = with_sums(family.counts[..., 1:])
    of_all = summed.sum(axis=0)
    z, *parents, x = np.nonzero(family.counts[first:last, ..., 1:])
    z += first
    weight = family.counts[(z, *parents, x + 1)]
    k, none = summed.shape[-1], (0,) * len(parents)
    left = np.minimum(weight, 1.0)
    of_value = of_all[none][x] - left
    shown = of_value > 0  # a category that no other row shows is a missing cell
    z, x, weight, left, of_value = (values[shown] for values in (z, x, weight, left, of_value))
    parents = [codes[shown] for codes in parents]
    root = (of_value + alpha) / (of_all[none].sum() - left + k * alpha)
    own, pooled = np.full((len(x), 1 + n_parents, 2), -1.0), np.full((len(x), 1 + n_parents, 2), -1.0)
    totals, total_of_all = summed.sum(axis=-1), of_all.sum(axis=-1)
    for t in range(1 + len(parents)):
        given = (*parents[:t], *(np.zeros_like(x),) * (len(parents) - t))
        met = parents[t - 1] > 0 if t else np.ones(len(x), np.bool_)
        for out, counts, sums, line in ((own, summed, totals, (z, *given)), (pooled, of_all, total_of_all, given)):
            out[met, t, 0] = np.maximum(counts[(*line, x)] - left, 0.0)[met]
            out[met, t, 1] = np.maximum(sums[line] - left, 0.0)[met]
    return family.column, (weight, root, own, pooled)
