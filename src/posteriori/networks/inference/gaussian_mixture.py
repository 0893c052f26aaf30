"""Answers about continuous variables: mixtures of normal densities."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from posteriori.networks.graph.naming import States, require_variable
from posteriori.networks.inference.distributions import Distribution, evidence_words
from posteriori.networks.inference.printing import aligned, heading, number
from posteriori.typing import Array

_STEPS = 200  # of bisection: more than the digits of a float


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    r"""p(variables | evidence) of continuous variables: exactly a mixture of normal densities.

    .. math:: p(x) = \sum_m w_m \, \mathcal{N}(x;\; \mu_m, \Sigma_m)

    Its components are the configurations of the discrete variables. `mean` and `covariance` are exact. A normal density
    with these two, which many programs return (the weak marginal), has the right moments and another shape.

    Attributes
    ----------
    variables : tuple of str
    weights : ndarray (M,)
    means : ndarray (M, d)
    covariances : ndarray (M, d, d)
    evidence : dict
    """

    variables: tuple[str, ...]
    weights: Array
    means: Array
    covariances: Array
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> Any:
        """The mean: a float for one variable, else an array (d,)."""
        mean = self.weights @ self.means
        return float(mean[0]) if len(self.variables) == 1 else mean

    @property
    def covariance(self) -> Array:
        """The covariance of the mixture, (d, d): within and between its components."""
        centred = self.means - self.weights @ self.means
        within = np.einsum("m,mij->ij", self.weights, self.covariances)
        covariance: Array = within + np.einsum("m,mi,mj->ij", self.weights, centred, centred)
        return covariance

    @property
    def variance(self) -> Any:
        """The variance: a float for one variable, else an array (d,)."""
        variance = np.diag(self.covariance)
        return float(variance[0]) if len(self.variables) == 1 else variance.copy()

    @property
    def standard_deviation(self) -> Any:
        """The square root of `variance`."""
        return math.sqrt(self.variance) if len(self.variables) == 1 else np.sqrt(self.variance)

    def marginal(self, *variables: str) -> GaussianMixture:
        """Return the density of some of the variables, in this order; ValueError for others."""
        for name in variables:
            require_variable(name, self.variables)
        kept = [self.variables.index(name) for name in variables]
        return GaussianMixture(
            variables, self.weights, self.means[:, kept], self.covariances[:, kept][:, :, kept], self.evidence
        )

    def pdf(self, x: Any) -> Array:
        """Return the density at points (n,) of one variable or (n, d); inf at a point mass."""
        points = np.asarray(x, np.float64)
        points = points.reshape(-1, 1) if len(self.variables) == 1 else np.atleast_2d(points)
        out = np.zeros(len(points))
        for weight, mean, covariance in zip(self.weights, self.means, self.covariances, strict=True):
            if weight > 0:
                out += weight * np.exp(_log_normal(points - mean, covariance))
        return out

    def cdf(self, x: Any) -> Any:
        """Return p(variable ≤ x) of a single variable; ValueError if there are several."""
        points = np.asarray(x, np.float64)
        below = self._below(points, at=np.inf)
        return float(below) if points.ndim == 0 else below

    def interval(self, low: float | None, high: float | None) -> float:
        """Return p(low ≤ variable ≤ high) of a single variable, None for no end; ValueError if there are several."""
        above = 1.0 if high is None else float(self._below(np.asarray(high, np.float64), at=np.inf))
        below = 0.0 if low is None else float(self._below(np.asarray(low, np.float64), at=-np.inf))
        return max(above - below, 0.0)

    def _below(self, points: Array, at: float) -> Array:
        """Return p(variable < point), with the mass at the point itself if at is ∞ and without it if at is −∞."""
        mean, deviation = self._single()
        centred = points[..., np.newaxis] - mean
        beyond = np.where(centred == 0, at, np.copysign(np.inf, centred))
        z = np.divide(centred, deviation, out=beyond, where=deviation > 0)
        below: Array = ndtr(z) @ self.weights
        return below

    def quantile(self, q: float) -> float:
        """Return x with p(variable ≤ x) = q, by bisection; ValueError unless q is between 0 and 1."""
        if not 0 < q < 1:
            raise ValueError(f"q is {q!r}; it must be between 0 and 1")
        mean, deviation = self._single()
        used = self.weights > 0
        low = float((mean - 40 * deviation)[used].min())
        high = float((mean + 40 * deviation)[used].max())
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.cdf(middle) < q else (low, middle)
        return high

    def _single(self) -> tuple[Array, Array]:
        if len(self.variables) != 1:
            raise ValueError(f"{heading(self.variables)} has several variables; take the marginal of one first")
        return self.means[:, 0], np.sqrt(self.covariances[:, 0, 0])

    def to_dict(self) -> dict[str, float]:
        """Return the mean and the standard deviation of a single variable."""
        self._single()
        return {"mean": self.mean, "standard deviation": self.standard_deviation}

    def row(self) -> list[list[str]]:
        """Return a line of text for each variable: mean, standard deviation and the central 95 %."""
        lines = []
        for name in self.variables:
            one = self.marginal(name)
            cells = (one.mean, one.standard_deviation, one.quantile(0.025), one.quantile(0.975))
            lines.append([name, *(f"{cell:.6g}" for cell in cells)])
        return lines

    def __repr__(self) -> str:
        title = heading(self.variables, evidence_words(self.evidence))
        rows = [["variable", "mean", "sd", "2.5 %", "97.5 %"], *self.row()]
        n = int((self.weights > 0).sum())
        of = "a normal density" if n == 1 else f"a mixture of {n:,} normal densities"
        return "\n".join([title, *aligned(rows, 1), of])


@dataclass(frozen=True, eq=False)
class MixedDistribution:
    """p(discrete, continuous | evidence): a density of the continuous variables for each configuration of the others.

    An index is a state, or a tuple of states in the order of the discrete variables; it gives the density
    p(continuous | these states, evidence).

    Attributes
    ----------
    discrete : Distribution
        p(discrete variables | evidence).
    densities : dict from tuple of int to GaussianMixture
        By the codes of the states.
    """

    discrete: Distribution
    densities: dict[tuple[int, ...], GaussianMixture]

    def __getitem__(self, key: Any) -> GaussianMixture:
        place = self.discrete._index(key)
        return self.densities[tuple(int(k) for k in place)]

    def _rows(self) -> Iterator[list[str]]:
        for place, density in self.densities.items():
            states = [str(known[k]) for known, k in zip(self.discrete.states.values(), place, strict=True)]
            for line in density.row():
                yield [*states, number(float(self.discrete.probabilities[place])), *line]

    def __repr__(self) -> str:
        names = tuple(self.discrete.states)
        continuous = next(iter(self.densities.values())).variables
        title = heading((*names, *continuous), evidence_words(self.discrete.evidence))
        rows = [[*names, "probability", "variable", "mean", "sd", "2.5 %", "97.5 %"], *self._rows()]
        return "\n".join([title, *aligned(rows, len(names))])


def mixed(
    states: Mapping[str, States], weights: Array, mixture: GaussianMixture, evidence: dict[str, Any]
) -> MixedDistribution:
    """Return p(discrete, continuous) of weights (K of each…, M) over shared or own components (K…·M of them)."""
    shape = tuple(map(len, states.values()))
    total = weights.sum(axis=-1)
    components = np.arange(weights.size).reshape(weights.shape)
    densities = {}
    for place in np.ndindex(shape):
        share = weights[place]
        own = components[place][share > 0] if share.any() else components[place]
        scaled = weights.ravel()[own]
        scaled = scaled / scaled.sum() if scaled.sum() > 0 else np.full(len(own), 1 / len(own))
        densities[place] = GaussianMixture(
            mixture.variables, scaled, mixture.means[own], mixture.covariances[own], evidence
        )
    return MixedDistribution(Distribution(dict(states), total, evidence), densities)


def _log_normal(centred: Array, covariance: Array) -> Array:
    """Return log N(centred; 0, covariance) of rows (n, d)."""
    d = covariance.shape[0]
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # a point mass in some direction
        at = np.abs(centred).max(axis=1) == 0
        return np.where(at, np.inf, -np.inf)
    z = np.linalg.solve(root, centred.T)
    log_determinant = 2.0 * np.log(np.diag(root)).sum()
    density: Array = -0.5 * ((z**2).sum(axis=0) + log_determinant + d * math.log(2.0 * math.pi))
    return density
