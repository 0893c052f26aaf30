"""Counts of events, independent given the component."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, xlogy

from posteriori import kernels
from posteriori.statistics.moments import Moments
from posteriori.tables.batch import Numbers
from posteriori.tables.schema import View
from posteriori.typing import Array


@dataclass(frozen=True)
class PoissonParameters:
    """The expected number of events, (Z, d)."""

    rate: Array

    @cached_property
    def log_rate(self) -> Array:
        """Log of the rate, −inf where it is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.rate)


@dataclass(frozen=True)
class Poisson:
    """p(x_j | z) = rate_zj^x_j · exp(−rate_zj) / x_j!.

    The rate is the posterior mean under a gamma prior centred on the mean m_j of all rows,

        rate_zj = (Σ x_j + smoothing·m_j) / (n_zj + smoothing).

    Parameters
    ----------
    smoothing : float, default 1.0
        Strength of the prior in pseudo-rows, in [0, inf]: 0 is maximum likelihood, inf one rate for all.

    Notes
    -----
    A component with no present cell in a column takes the rate of all rows. Where no row counted any event, the
    prior is centred on half an event in all rows, so that an event at prediction is improbable, not impossible.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6 (the gamma prior of a Poisson rate).
    """

    smoothing: float = 1.0
    name = "poisson"
    kind: ClassVar[View] = "continuous"
    needs = Moments
    support = "a whole number of events, 0 or more"
    unbounded = False

    def outside(self, tile: Numbers) -> Array:
        """Return which cells the density cannot produce: negative, fractional and infinite ones."""
        x = tile.values
        return (x < 0) | np.isinf(x) | (~np.isnan(x) & (x != np.floor(x)))

    def estimate(self, statistics: Moments) -> PoissonParameters:
        """Return the smoothed means."""
        weight, everyone = statistics.weight, statistics.pooled()
        rows = np.where(everyone.weight > 0, everyone.weight, 1.0)
        prior = np.broadcast_to(np.maximum(everyone.mean, 0.5 / rows), weight.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # smoothing / (n + smoothing), written so that it also holds at 0 and at infinity.
            trust_in_prior = np.where(weight > 0, 1.0 / (1.0 + weight / self.smoothing), 1.0)
        own = np.where(weight > 0, statistics.mean, 0.0)
        return PoissonParameters(own + trust_in_prior * (prior - own))

    def log_density(self, parameters: PoissonParameters, tile: Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        out = np.zeros((len(tile.values), len(parameters.rate)))
        kernels.add_poisson(tile.values, parameters.log_rate, parameters.rate, out)
        return out

    def log_factors(self, parameters: PoissonParameters, tile: Numbers) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d)."""
        x = tile.values.astype(np.float64)[:, np.newaxis, :]
        factors = xlogy(x, parameters.rate) - parameters.rate - gammaln(x + 1.0)
        return np.where(np.isnan(x), 0.0, factors)

    def sample(self, parameters: PoissonParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw numbers of events, (n, d)."""
        return rng.poisson(parameters.rate[component]).astype(np.float64)

    def n_parameters(self, parameters: PoissonParameters) -> int:
        """Return Z·d rates."""
        return parameters.rate.size
