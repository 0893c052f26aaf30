"""Categories, independent given the component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, LinearTerms
from posteriori.densities.conditional import ROUNDING
from posteriori.statistics.counts import Counts, slot_offsets
from posteriori.statistics.moments import less
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.support.checks import check_pseudo_count
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment, Codes
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column


@dataclass(frozen=True)
class CategoricalParameters(WithAxes):
    """log p(x_j = k | z).

    Attributes
    ----------
    cardinalities : tuple of int
        K of each column.
    log_probability : ndarray (Z, Σ (K + 1))
        In nats, the columns side by side. Slot 0 of each column is the missing cell and holds 0, because summing out
        gives probability 1.
    """

    cardinalities: tuple[int, ...]
    log_probability: Annotated[Array, Axes("the log-probabilities", "z", "slot", low=-np.inf, high=ROUNDING)]

    @cached_property
    def offsets(self) -> Array:
        """The first slot of each column, and the number of slots, (d + 1,)."""
        return slot_offsets(self.cardinalities)

    def column(self, j: int) -> Array:
        """Return log p(x_j = k | z) of column j: (Z, K)."""
        return self.log_probability[:, self.offsets[j] + 1 : self.offsets[j + 1]]


@dataclass(frozen=True)
class Categorical(BaseDensity):
    """p(x_j = k | z) = (n_zjk + alpha) / (n_zj + K·alpha), n_zj the weight of the rows of z in which x_j is present.

    Parameters
    ----------
    alpha : float, default 1.0
        Dirichlet pseudo-count per category, ≥ 0: 0 is maximum likelihood, 1 Laplace's rule. If alpha is 0 and a
        component has no row with x_j present, the pooled frequencies of all components are used.

    References
    ----------
    Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.4 (the Dirichlet posterior mean).

    Examples
    --------
    >>> import posteriori as po
    >>> X, y = [["u"], ["v"], ["u"]], ["a", "b", "a"]
    >>> model = po.NaiveBayes(distributions={"x0": po.Categorical(alpha=0.5)}).fit(X, y)
    >>> model.predict_proba([["u"]]).round(3)
    array([[0.87, 0.13]])
    """

    alpha: float = 1.0
    name = "categorical"
    kind: ClassVar[CellKind] = "categorical"
    sufficient_statistics = Counts
    fitted = CategoricalParameters
    support = "a category"

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def estimate(self, statistics: Counts) -> CategoricalParameters:
        """Return the smoothed frequencies."""
        starts, cardinalities = statistics.offsets[:-1], statistics.cardinalities
        counts = statistics.table.copy()
        counts[:, starts] = 0.0
        widths = np.asarray(cardinalities, np.int64) + 1
        probability = self._smoothed_shares(counts, starts, widths)
        empty = np.isnan(probability)
        if empty.any():
            # Without evidence and pseudo-counts: the pooled frequencies, and if there are none either, uniform ones.
            pooled = self._smoothed_shares(counts.sum(axis=0, keepdims=True), starts, widths)
            probability[empty] = np.broadcast_to(pooled, probability.shape)[empty]
            uniform = np.broadcast_to(1.0 / np.repeat(np.maximum(widths - 1, 1), widths), probability.shape)
            probability = np.where(np.isnan(probability), uniform, probability)
        with np.errstate(divide="ignore"):
            log_probability = np.log(probability)
        log_probability[:, starts] = 0.0
        return CategoricalParameters(cardinalities, log_probability)

    def _smoothed_shares(self, counts: Array, starts: Array, widths: Array) -> Array:
        totals = np.add.reduceat(counts, starts, axis=1) + (widths - 1) * float(self.alpha)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (counts + self.alpha) / np.repeat(totals, widths, axis=1)
        return np.where(np.repeat(totals, widths, axis=1) > 0, shares, np.nan)

    def log_density(self, parameters: CategoricalParameters, tile: Codes) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        out = np.zeros((len(tile.values), len(parameters.log_probability)))
        kernels.add_categorical(tile.values, parameters.offsets, parameters.log_probability, out)
        return out

    def log_likelihood(self, parameters: CategoricalParameters, statistics: Counts) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics."""
        occurring = statistics.table > 0  # 0·log 0 is 0
        return float(statistics.table[occurring] @ parameters.log_probability[occurring])

    def log_factors(self, parameters: CategoricalParameters, tile: Codes) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d)."""
        slots = parameters.offsets[:-1] + tile.values
        factors = np.empty((len(slots), len(parameters.log_probability), slots.shape[1]))
        for z, log_probability in enumerate(parameters.log_probability):  # each in one piece of memory, for later reads
            factors[:, z] = log_probability[slots]
        return factors

    def left_out(
        self, parameters: CategoricalParameters, statistics: Counts, tile: Codes, assignment: Assignment
    ) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), of each row under the frequencies without it."""
        cardinalities = np.asarray(statistics.cardinalities, np.float64)
        codes, observed = tile.values, (np.arange(len(tile.values)), assignment.component)
        totals = statistics.observed()
        removed = assignment.weight[:, np.newaxis] * (codes > 0)
        slots = statistics.offsets[:-1] + codes
        count = less(statistics.table[assignment.component[:, np.newaxis], slots], removed)
        total = less(totals[assignment.component], removed)
        smoothed_total = total + cardinalities * self.alpha
        if not ((smoothed_total > 0).all() and (totals + cardinalities * self.alpha > 0).all()):
            return self._left_out_of_pooled(statistics, codes, observed, count, total)
        # Only the component of the row has other frequencies than with the row.
        factors = self.log_factors(parameters, tile)
        with np.errstate(divide="ignore"):
            factors[observed] = np.where(codes > 0, np.log((count + self.alpha) / smoothed_total), 0.0)
        return factors

    def _left_out_of_pooled(
        self, statistics: Counts, codes: Array, observed: tuple[Array, Array], count_left: Array, total_left: Array
    ) -> Array:
        """Do the same where a component has no rows and no pseudo-counts, so that those of all components count."""
        count = statistics.table[:, statistics.offsets[:-1] + codes].transpose(1, 0, 2).copy()
        total = np.broadcast_to(statistics.observed(), count.shape).copy()
        count[observed], total[observed] = count_left, total_left
        cardinalities = np.asarray(statistics.cardinalities, np.float64)
        smoothed_total = total + cardinalities * self.alpha
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (count + self.alpha) / smoothed_total
            count, total = count.sum(axis=1, keepdims=True), total.sum(axis=1, keepdims=True)
            fallback = np.where(total > 0, count / total, 1.0 / np.maximum(cardinalities, 1.0))
            share = np.where(smoothed_total > 0, share, fallback)
            return np.where(codes[:, np.newaxis, :] > 0, np.log(share), 0.0)

    def sample(self, parameters: CategoricalParameters, component: Array, rng: np.random.Generator) -> Array:
        """Draw codes from 1, (n, d); 0 only in a column without categories."""
        codes = np.zeros((len(component), len(parameters.cardinalities)), np.uint32)
        for j, cardinality in enumerate(parameters.cardinalities):
            if not cardinality:
                continue
            cumulative = np.cumsum(np.exp(parameters.column(j)), axis=1)
            u = rng.random(len(component))
            for z in np.unique(component):
                rows = component == z
                position = np.searchsorted(cumulative[z], u[rows] * cumulative[z, -1], side="right")
                codes[rows, j] = np.minimum(position, cardinality - 1) + 1
        return codes

    def n_parameters(self, parameters: CategoricalParameters) -> int:
        """Return Z·Σ_j (K_j − 1)."""
        return len(parameters.log_probability) * sum([max(k - 1, 0) for k in parameters.cardinalities])

    def linear_terms(self, parameters: CategoricalParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return the log-probabilities relative to the first category, whose log-probability goes into the bias."""
        bias = np.zeros(len(parameters.log_probability))
        terms = []
        for position, column in enumerate(columns):
            if column.is_binned:
                raise ValueError(f"{quote([column.name])} is binned: its log-odds are steps, not a line")
            if not column.categories:
                continue
            log_probability = parameters.column(position)
            if not np.isfinite(log_probability).all():
                raise ValueError(f"{quote([column.name])} has a category of probability 0; set alpha > 0")
            bias += log_probability[:, 0]
            weights = log_probability - log_probability[:, :1]
            terms += [(position, category, weights[:, k]) for k, category in enumerate(column.categories) if k]
        return LinearTerms(bias, terms)

    def conditional_tables(self, parameters: CategoricalParameters) -> list[tuple[tuple[int, ...], Array]]:
        """Return log p(x_j | z) of each column, which has no parents within the block."""
        return [((), parameters.column(j)) for j in range(len(parameters.cardinalities))]
