"""Counts of events: Poisson distributions, with or without an exposure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, LinearTerms
from posteriori.densities.words import BaseWordDensity, WordScores, by_column, draw_bags, sum_of_present
from posteriori.statistics.moments import Moments, as_one_component, less, moments_left
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.statistics.word_counts import CountExposed, ExposedCounts, bags_of, exposure_of
from posteriori.support.checks import check_not_negative
from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column

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


_LARGEST = 1e300
_FEWEST = 0.5  # events of a word in all rows that the prior assumes


@dataclass(frozen=True)
class PoissonRateParameters(WithAxes):
    """The expected number of events of each word per unit of exposure, (Z, V), and the mean exposure of a row."""

    rate: Annotated[Array, Axes("the rates of words", "z", "word", low=0.0, high=_LARGEST)]
    mean_exposure: Annotated[float, Axes("the mean exposure", low=0.0, high=_LARGEST)]

    @cached_property
    def of_words(self) -> WordScores:
        """The sums of the log rates over the words of a bag; −inf where a rate is 0."""
        with np.errstate(divide="ignore"):
            return WordScores(np.log(self.rate))

    @cached_property
    def whole(self) -> Array:
        """Σ_j λ_zj, the rate of all words, (Z,)."""
        return np.asarray(self.rate.sum(axis=1))


@dataclass(frozen=True)
class PoissonRate(BaseWordDensity):
    """log p(x | z, ℓ) = Σ_j [x_j·log(λ_zj·ℓ) − λ_zj·ℓ − log x_j!], counts x_1 … x_V of a row of exposure ℓ.

    ℓ is how much of a row could hold events: hours, kilometres, policy years, or the number of words of a document.
    λ_zj is the rate of word j per unit of it. The maximum of the likelihood is Σ w·x_j / Σ w·ℓ over the rows of
    component z; the gamma prior adds `smoothing` rows of the mean exposure and of the mean counts of all rows,

        λ_zj = (Σ w·x_j + smoothing·x̄_j) / (Σ w·ℓ + smoothing·ℓ̄).

    Parameters
    ----------
    exposure : str or int, optional
        The column of numbers that holds ℓ > 0, by its name or its index in the table. It is a column of the model like
        others, with a distribution of its own, and its value is evidence as well; p(x, ℓ | z) = p(ℓ | z)·p(x | ℓ, z).
        By default ℓ is the sum of the counts of the row.
    smoothing : float, default 1.0
        Strength of the prior in pseudo-rows, in [0, inf]: 0 is maximum likelihood, inf one rate for all components.

    Notes
    -----
    A row whose exposure is missing in prediction is judged by the shares of its words: integrated over ℓ with the
    scale-invariant prior p(ℓ) ∝ 1/ℓ, the product of the Poisson distributions is multinomial, with the shares
    λ_zj / Σ_j λ_zj, given the sum of the counts. The same holds for every row if ℓ is the sum itself: the model then is
    `Multinomial`, smoothed towards the shares of all rows instead of towards uniform ones. As there, the number of
    orders of the words is left out in these cases. Training rows have no missing count and no missing exposure.

    If no row has an event, the prior assumes half an event in all rows. Counts must be whole numbers.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6 (Poisson model with exposure, and its gamma prior).
    McCullagh & Nelder, Generalized Linear Models, 2nd ed., section 6.4.2 (multinomial as conditional Poisson).

    Examples
    --------
    >>> import polars as pl
    >>> import posteriori as po
    >>> shop = pl.DataFrame({"hours": [1.0, 8.0, 2.0, 9.0], "visits": [9, 81, 5, 20]})
    >>> places = ["city", "city", "town", "town"]
    >>> model = po.NaiveBayes(distributions={"visits": po.PoissonRate("hours")}).fit(shop, places)
    >>> model.predict([{"hours": 4.0, "visits": 38}, {"hours": 4.0, "visits": 9}])
    array(['city', 'town'], dtype='<U4')
    """

    exposure: str | int | None = None
    smoothing: float = 1.0
    name = "poisson_rate"
    fitted = PoissonRateParameters
    support = "a whole number of events, 0 or more"
    has_whole_counts = True

    @property
    def sufficient_statistics(self) -> CountExposed:
        """Counts and exposures."""
        return CountExposed(self.exposure)

    def check(self) -> None:
        """Raise ValueError if the smoothing is negative."""
        check_not_negative("smoothing", self.smoothing)

    def estimate(self, statistics: ExposedCounts) -> PoissonRateParameters:
        """Return the smoothed rates."""
        sums, exposure = statistics.count, statistics.exposure
        weight, whole = float(statistics.weight.sum()), float(exposure.sum())
        rate = self._rates(sums, exposure[:, np.newaxis], np.maximum(sums.sum(axis=0), _FEWEST), whole, weight)
        return PoissonRateParameters(rate, whole / weight if weight > 0 else 0.0)

    def _rates(self, events: Any, exposure: Any, all_events: Any, all_exposure: Any, weight: Any) -> Array:
        """Return smoothed rates from the events and the exposure of components, and those of all rows."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            prior = np.where(all_exposure > 0, all_events / all_exposure, 1.0)
            # smoothing·ℓ̄ / (Σ w·ℓ + smoothing·ℓ̄), written so that it also holds at 0 and at infinity.
            mean_exposure = np.where(weight > 0, all_exposure / weight, 0.0)
            trust = np.where(exposure > 0, 1.0 / (1.0 + exposure / (self.smoothing * mean_exposure)), 1.0)
            own = np.where(exposure > 0, events / exposure, 0.0)
        return np.asarray(own + trust * (prior - own))

    def log_density(self, parameters: PoissonRateParameters, tile: Bags | Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        bags = bags_of(tile)
        total = sum_of_present(parameters.rate, parameters.whole, bags)
        out = parameters.of_words.sums(bags)
        known, exposure = _known(tile)
        out[known] += _per_row(bags, _orders(bags, exposure))[known, np.newaxis]
        out[known] -= exposure[known, np.newaxis] * total[known]
        events = bags.totals[~known, np.newaxis]
        with np.errstate(invalid="ignore"):  # 0·log 0 is 0: all words of the row are missing
            out[~known] -= np.where(events > 0, events * _log(total[~known]), 0.0)
        return out

    def word_factors(self, parameters: PoissonRateParameters, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density per row, (n, Z)."""
        bags = bags_of(tile)
        return self._factors(
            tile, parameters.of_words.of_cells(bags), sum_of_present(parameters.rate, parameters.whole, bags)
        )

    @staticmethod
    def _factors(tile: Bags | Numbers, of_cells: Array, total: Array) -> tuple[Array, Array]:
        """Return the factors of the cells and the rest from x·log λ (m, Z) and Σ_j λ_j (n, Z)."""
        bags = bags_of(tile)
        known, exposure = _known(tile)
        row = bags.row_of_cell
        counts = np.nan_to_num(bags.counts)[:, np.newaxis]
        shares = np.where(counts > 0, counts * _log(total)[row], 0.0)
        factors = of_cells + np.where(known[row][:, np.newaxis], _orders(bags, exposure)[:, np.newaxis], -shares)
        return factors, np.where(known[:, np.newaxis], -exposure[:, np.newaxis] * total, 0.0)

    def log_factors(self, parameters: PoissonRateParameters, tile: Bags | Numbers) -> Array:
        """Return the log factors in nats, (n, Z, d): of each column of numbers, or of all words of a bag."""
        factors, rest = self.word_factors(parameters, tile)
        return _by_column(tile, factors, rest, parameters.rate.T[bags_of(tile).words])

    def left_out(
        self, parameters: PoissonRateParameters, statistics: ExposedCounts, tile: Bags | Numbers, assignment: Assignment
    ) -> Array:
        """Return the log factors in nats, (n, Z, d), of each row under the rates without it. O(stored cells · Z)."""
        del parameters
        bags = bags_of(tile)
        row, z, w = bags.row_of_cell, assignment.component, assignment.weight
        own = z[:, np.newaxis] == np.arange(assignment.n_components)
        removed = (w[row] * bags.counts)[:, np.newaxis]
        lost = (w * exposure_of(tile))[:, np.newaxis]
        exposure = np.where(own, less(np.tile(statistics.exposure, (len(bags), 1)), lost), statistics.exposure)
        whole = less(np.full((len(bags), 1), statistics.exposure.sum()), lost)
        weight = less(np.full((len(bags), 1), statistics.weight.sum()), w[:, np.newaxis])
        of_word = statistics.count.T[bags.words]
        events = np.where(own[row], less(of_word, removed), of_word)
        sums = statistics.count.sum(axis=0)
        smoothed = np.maximum(sums, _FEWEST)
        all_events = np.maximum(less(sums[bags.words][:, np.newaxis], removed), _FEWEST)
        rate = self._rates(events, exposure[row], all_events, whole[row], weight[row])
        # The rates of all words have the form of a rate, of the sums over the words.
        total = np.tile(statistics.count.sum(axis=1), (len(bags), 1))
        total = np.where(own, less(total, (w * bags.totals)[:, np.newaxis]), total)
        change = np.bincount(row, (all_events[:, 0] - smoothed[bags.words]), len(bags))[:, np.newaxis]
        of_all = self._rates(total, exposure, smoothed.sum() + change, whole, weight)
        counts = bags.counts[:, np.newaxis]
        of_cells = np.where(counts > 0, counts * _log(rate), 0.0)
        return _by_column(tile, *self._factors(tile, of_cells, of_all), rate)

    def sample(
        self,
        parameters: PoissonRateParameters,
        component: Array,
        rng: np.random.Generator,
        exposure: Array | None = None,
    ) -> Bags:
        """Draw bags of words for rows of these exposures, (n,); by default and where NaN the mean exposure."""
        mean = parameters.mean_exposure
        given = np.full(len(component), mean) if exposure is None else np.where(np.isnan(exposure), mean, exposure)
        total = np.maximum(given, 0.0) * parameters.whole[component]
        shares = parameters.rate / np.where(parameters.whole > 0, parameters.whole, 1.0)[:, np.newaxis]
        return draw_bags(shares, total, component, rng)

    def n_parameters(self, parameters: PoissonRateParameters) -> int:
        """Return Z·V rates; one less per component if they are shares of the sum of the counts."""
        n_components, n_words = parameters.rate.shape
        return int(n_components * (n_words - (self.exposure is None)))

    def describe(self, parameters: PoissonRateParameters, position: int) -> dict[str, Array]:
        """Return the rates of a word per unit of exposure, (Z,)."""
        return {"rate": parameters.rate[:, position]}


def _known(tile: Bags | Numbers) -> tuple[Array, Array]:
    """Return which rows have an exposure of their own, (n,), and the exposures, 1 where they have none, (n,)."""
    n = len(bags_of(tile))
    if tile.exposure is None:
        return np.zeros(n, np.bool_), np.ones(n)
    known = ~np.isnan(tile.exposure)
    return known, np.where(known, tile.exposure, 1.0)


def _orders(bags: Bags, exposure: Array) -> Array:
    """Return x·log ℓ − log x! of each stored cell, (m,)."""
    x = np.nan_to_num(bags.counts)
    many = x > 1.0
    out = np.asarray(x * np.log(exposure)[bags.row_of_cell])
    log_factorial = np.empty((int(many.sum()), 1))
    kernels.log_factorials(x[many][:, np.newaxis], log_factorial)
    out[many] -= log_factorial[:, 0]
    return out


def _per_row(bags: Bags, of_cells: Array) -> Array:
    """Return the sum of a value per stored cell over each row, (n,)."""
    return np.asarray(np.bincount(bags.row_of_cell, of_cells, len(bags)))


def _log(rate: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(rate))


def _by_column(tile: Bags | Numbers, of_cells: Array, rest: Array, rate: Array) -> Array:
    """Return the factors of each column, (n, Z, d): the rest belongs to a bag as a whole, or to each word."""
    if isinstance(tile, Bags):
        return by_column(tile, of_cells) + rest[:, :, np.newaxis]
    bags = bags_of(tile)
    known, exposure = _known(tile)
    row = bags.row_of_cell
    absent = ~known[row] | np.isnan(bags.counts)
    return by_column(tile, of_cells - np.where(absent[:, np.newaxis], 0.0, exposure[row][:, np.newaxis] * rate))
