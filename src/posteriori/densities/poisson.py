"""Poisson columns (counts of events), independent given the component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.base import BaseDensity
from posteriori.densities.capabilities import LinearTerms
from posteriori.invariants import check_not_negative
from posteriori.statistics.axes import Axes, WithAxes
from posteriori.statistics.left_out import as_one_component, moments_left
from posteriori.statistics.moments import Moments
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import CellKind, Column
from posteriori.tables.messages import quote
from posteriori.typing import Array

_ROUNDING = 1e-12
_LARGE_RATE = 1e15  # NumPy cannot draw rates near 2⁶³


@dataclass(frozen=True)
class PoissonParameters(WithAxes):
    """The expected number of events, (Z, d)."""

    rate: Annotated[Array, Axes("the rates", "z", "column", low=0.0)]

    @cached_property
    def log_rate(self) -> Array:
        """The log of the rate, −inf where the rate is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.rate)


@dataclass(frozen=True)
class Poisson(BaseDensity):
    """p(x_j | z) = rate_zj^x_j · exp(−rate_zj) / x_j!.

    The rate is the posterior mean under a gamma prior centred on the mean m_j of all rows,

        rate_zj = (Σ x_j + smoothing·m_j) / (n_zj + smoothing).

    Parameters
    ----------
    smoothing : float, default 1.0
        Strength of the prior in pseudo-rows, in [0, inf]: 0 is maximum likelihood, inf one rate for all.

    Notes
    -----
    A component with no present cell in a column takes the rate of all rows. If no row has an event, the prior is
    centred on half an event over all rows, so that an event in prediction is improbable but not impossible.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6 (the gamma prior of a Poisson rate).

    Examples
    --------
    >>> import posteriori as po
    >>> X, y = [[0], [2], [4], [8]], ["a", "a", "b", "b"]
    >>> model = po.NaiveBayes(distributions={"x0": po.Poisson()}).fit(X, y)
    >>> model.rate_.ravel()
    array([1.83333333, 5.16666667])
    """

    smoothing: float = 1.0
    name = "poisson"
    kind: ClassVar[CellKind] = "continuous"
    sufficient_statistics = Moments
    fitted = PoissonParameters
    support = "a whole number of events, 0 or more"
    has_full_support = False

    def check(self) -> None:
        """Raise ValueError if the smoothing is negative."""
        check_not_negative("smoothing", self.smoothing)

    def out_of_support(self, tile: Numbers) -> Array:
        """Return which cells the density cannot produce: negative, fractional and infinite ones."""
        x = tile.values
        return np.asarray((x < 0) | np.isinf(x) | (~np.isnan(x) & (x != np.floor(x))))

    def estimate(self, statistics: Moments) -> PoissonParameters:
        """Return the smoothed means."""
        return self._of(statistics, statistics.pooled())

    def _of(self, statistics: Moments, pooled: Moments) -> PoissonParameters:
        """Return the rates from moments (…, Z, d) and pooled moments (…, 1, d)."""
        weight = statistics.weight
        rows = np.where(pooled.weight > 0, pooled.weight, 1.0)
        prior = np.broadcast_to(np.maximum(pooled.mean, 0.5 / rows), weight.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # smoothing / (n + smoothing), written so that it also holds at 0 and at infinity.
            trust_in_prior = np.where(weight > 0, 1.0 / (1.0 + weight / self.smoothing), 1.0)
        mean = np.where(weight > 0, np.maximum(statistics.mean, 0.0), 0.0)  # rounding may make a mean of 0 negative
        return PoissonParameters(mean + trust_in_prior * (prior - mean))

    def log_density(self, parameters: PoissonParameters, tile: Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        out = np.zeros((len(tile.values), len(parameters.rate)))
        kernels.add_poisson(tile.values, parameters.log_rate, parameters.rate, out)
        return out

    def log_factors(self, parameters: PoissonParameters, tile: Numbers) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d)."""
        x = tile.values.astype(np.float64)[:, np.newaxis, :]
        log_factorial = np.empty(tile.values.shape)
        kernels.log_factorials(tile.values, log_factorial)
        with np.errstate(invalid="ignore"):  # 0·log 0 is 0: with rate 0 the count is 0 with probability 1
            events = np.where(x == 0.0, 0.0, x * parameters.log_rate)
        factors = events - parameters.rate - log_factorial[:, np.newaxis, :]
        return np.where(np.isnan(x), 0.0, factors)

    def left_out(
        self, parameters: PoissonParameters, statistics: Moments, tile: Numbers, assignment: Assignment
    ) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), of each row under the rates without it."""
        del parameters
        pooled = _left(statistics.pooled(), tile, as_one_component(assignment))
        return self.log_factors(self._of(_left(statistics, tile, assignment), pooled), tile)

    def sample(self, parameters: PoissonParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw numbers of events, (n, d); above a rate of 1e15 rounded draws from N(rate, rate)."""
        rate = parameters.rate[component]
        large = rate > _LARGE_RATE
        events = rng.poisson(np.where(large, 0.0, rate)).astype(np.float64)
        return np.where(large, np.rint(rng.normal(rate, np.sqrt(rate))), events) if large.any() else events

    def n_parameters(self, parameters: PoissonParameters) -> int:
        """Return Z·d rates."""
        return parameters.rate.size

    def n_unrestricted(self, n_columns: int) -> int:
        """Return one rate per column, because there is no unrestricted multivariate Poisson family."""
        return n_columns

    def describe(self, parameters: PoissonParameters, position: int) -> dict[str, Array]:
        """Return the rates of a column, (Z,)."""
        return {"rate": parameters.rate[:, position]}

    def linear_terms(self, parameters: PoissonParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return weights log rate and the bias −Σ rate; log x! is the same for all components."""
        if not np.isfinite(parameters.log_rate).all():
            raise ValueError(f"{quote(column.name for column in columns)} has a rate of 0; set smoothing > 0")
        terms = [(position, None, parameters.log_rate[:, position]) for position in range(len(columns))]
        return LinearTerms(-parameters.rate.sum(axis=1), terms)


def _left(statistics: Moments, tile: Numbers, assignment: Assignment) -> Moments:
    """Return the moments without each row; a mean that is only rounding error becomes 0."""
    left = moments_left(statistics, tile, assignment)
    return replace(left, offset=np.where(left.mean <= _ROUNDING * statistics.mean, -left.shift, left.offset))
