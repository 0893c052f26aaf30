"""p(x | parents, z) of a category from counts, smoothed by backing off to fewer parents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.invariants import check_pseudo_count
from posteriori.typing import Array

ROUNDING = 1e-9  # by so much a log-probability may be above 0


@dataclass(frozen=True)
class BackOff:
    r"""Conditional tables that shrink towards what is known without the last parent, and without the component.

    .. math::
        p(x \mid a_1 \ldots a_t, z) = \frac{n_{a_1 \ldots a_t z x} + \tfrac{s}{2}\, p(x \mid a_1 \ldots a_{t-1}, z)
        + \tfrac{s}{2}\, p(x \mid a_1 \ldots a_t)}{n_{a_1 \ldots a_t z} + s}

    with, free of the component, and at the roots,

    .. math::
        p(x \mid a_1 \ldots a_t) = \frac{n_{a_1 \ldots a_t x} + s\, p(x \mid a_1 \ldots a_{t-1})}
        {n_{a_1 \ldots a_t} + s}, \qquad
        p(x \mid z) = \frac{n_{zx} + \alpha\, p(x)}{n_z + \alpha}, \qquad
        p(x) = \frac{n_x + \alpha}{n + K \alpha}

    Each is the posterior mean under a Dirichlet prior of pseudo-rows that are drawn from the tables before it. Half of
    them keep the parents and forget the component: a combination of parents that few rows show then says little of the
    component, whereas p(x | z) alone would bring back the naive factor, which counts evidence twice.

    Parameters
    ----------
    strength : float or None
        s in pseudo-rows, ≥ 0. None: each table by itself, with alpha pseudo-counts a category,
        p(x | a, z) = (n + alpha) / (n_a + K·alpha).
    alpha : float
        Where tables back off, the pseudo-count a category of p(x), and the pseudo-rows that draw p(x | z) to it.

    References
    ----------
    Friedman, Geiger & Goldszmidt, Bayesian network classifiers, Machine Learning 29 (1997), section 4.1 (smoothing by
    one step back). MacKay & Peto, A hierarchical Dirichlet language model, Natural Language Engineering 1 (1995).
    """

    strength: float | None = 10.0
    alpha: float = 1.0

    def check(self) -> None:
        """Raise ValueError if the strength or alpha is negative."""
        check_pseudo_count("strength", self.strength or 0.0)
        check_pseudo_count("alpha", self.alpha)

    def log_conditional(self, counts: Array) -> Array:
        """Return log p(x | parents, z) in nats, of the shape of the counts.

        Parameters
        ----------
        counts : ndarray (Z, K_1 + 1, …, K_m + 1, K + 1)
            Weights by the codes of the parents, the most important first, and of the child last; code 0 is missing.

        Returns
        -------
        ndarray
            Where a parent is missing (code 0): given the others alone. Where the child is missing: 0.
        """
        observed = with_sums(counts[..., 1:])
        everyone = observed.sum(axis=0, keepdims=True)
        n_parents = observed.ndim - 2
        root: tuple[slice | int, ...] = (slice(None), *[0] * n_parents)
        probability, pooled = np.empty(observed.shape), np.empty(everyone.shape)
        pooled[root] = self._marginal(everyone[root])
        probability[root] = self._shrunk(observed[root], pooled[root], self.alpha)
        for t in range(1, n_parents + 1):
            before: tuple[slice | int, ...] = (slice(None),) * t
            rest = (0,) * (n_parents - t)
            given, lower = (*before, slice(1, None), *rest), (*before, 0, *rest)
            pooled[given] = self._shrunk(everyone[given], np.expand_dims(pooled[lower], t), self.strength)
            halfway = (np.expand_dims(probability[lower], t) + pooled[given]) / 2.0
            probability[given] = self._shrunk(observed[given], halfway, self.strength)
        result = np.zeros(counts.shape)
        with np.errstate(divide="ignore"):
            np.log(probability, out=result[..., 1:])
        return result

    def log_given_parent(self, counts: Array, log_single: Array, starts: Array) -> Array:
        """Return log p(x_j | a, z) in nats of many columns side by side, given one parent, (Z, K + 1, slots).

        Parameters
        ----------
        counts : ndarray (Z, K + 1, slots)
            By the code of the parent and, side by side, those of the columns; code 0 is missing.
        log_single : ndarray (Z, slots)
            log p(x_j | z), 0 where x_j is missing.
        starts : ndarray (d,)
            Where the slots of each column start.
        """
        widths = np.diff(np.append(starts, counts.shape[2]))
        observed = counts.copy()
        observed[:, :, starts] = 0.0
        single = np.exp(log_single)[:, np.newaxis]
        single[:, :, starts] = 0.0

        def summed(weights: Array) -> Array:
            return np.repeat(np.add.reduceat(weights, starts, axis=-1), widths, axis=-1)

        if self.strength is None:
            added: Array | float = self.alpha
            in_all: Array | float = np.repeat(float(self.alpha) * (widths - 1), widths)
        else:
            everyone = observed.sum(axis=0)
            alone = everyone.sum(axis=0) + self.alpha
            alone[starts] = 0.0
            alone = _ratio(alone, summed(alone), 0.0)
            pooled = _ratio(everyone + self.strength * alone, summed(everyone) + self.strength, alone)
            single = (single + pooled) / 2.0
            added, in_all = self.strength * single, self.strength
        with np.errstate(divide="ignore"):
            result = np.log(_ratio(observed + added, summed(observed) + in_all, single))
        result[:, 0] = log_single
        result[:, :, starts] = 0.0
        return result

    def _marginal(self, counts: Array) -> Array:
        """Return p(x), (1, K), from counts (1, K)."""
        return _shares(counts + self.alpha, np.full(counts.shape, 1.0 / max(counts.shape[1], 1)))

    def _shrunk(self, counts: Array, lower: Array, pseudo_rows: float | None) -> Array:
        """Return the posterior mean under pseudo-rows of a lower table, or without strength under pseudo-counts."""
        added = self.alpha if self.strength is None or pseudo_rows is None else pseudo_rows * lower
        return _shares(counts + added, lower)


def draw(log_probability: Array, rng: np.random.Generator) -> Array:
    """Draw a code from 1 for each row of log-probabilities (n, K); 0 where K is 0."""
    n, k = log_probability.shape
    if not k:
        return np.zeros(n, np.uint16)
    cumulative = np.cumsum(np.exp(log_probability), axis=1)
    u = rng.random(n) * cumulative[:, -1]
    position = (cumulative <= u[:, np.newaxis]).sum(axis=1)
    return (np.minimum(position, k - 1) + 1).astype(np.uint16)


def with_sums(counts: Array) -> Array:
    """Return the counts with slot 0 of each parent holding the sum over all its codes, the missing one included."""
    summed = counts.copy()
    for axis in range(1, counts.ndim - 1):
        first = (slice(None),) * axis + (0,)
        summed[first] = summed.sum(axis=axis)
    return summed


def _shares(counts: Array, otherwise: Array) -> Array:
    """Return the counts as shares of their sum along the last axis; otherwise where there are none."""
    return _ratio(counts, counts.sum(axis=-1, keepdims=True), otherwise)


def _ratio(part: Array, whole: Array, otherwise: Array | float) -> Array:
    """Return part / whole; otherwise where there is nothing."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), otherwise)
