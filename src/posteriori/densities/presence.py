"""Presence of words, independent given the component: a Bernoulli distribution per word."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori.densities.words import BaseWordDensity, WordScores, by_column
from posteriori.statistics.moments import less, weights_left
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.statistics.word_counts import WordCounts, WordPresence, bags_of, presence_of
from posteriori.support.checks import LARGEST, require
from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers


@dataclass(frozen=True)
class PresenceParameters(WithAxes):
    """Log-probabilities in nats that each word is present, and that it is absent, both (Z, V)."""

    present: Annotated[Array, Axes("the log-probabilities of present words", "z", "word", high=0.0)]
    absent: Annotated[Array, Axes("the log-probabilities of absent words", "z", "word", high=0.0)]

    @cached_property
    def log_odds(self) -> Array:
        """The log-odds of presence, (Z, V)."""
        return self.present - self.absent

    @cached_property
    def of_words(self) -> WordScores:
        """Their sums over the words of a bag."""
        return WordScores(self.log_odds)

    @cached_property
    def of_none(self) -> Array:
        """The log-probability that no word is present, (Z,)."""
        return np.asarray(self.absent.sum(axis=1))


@dataclass(frozen=True)
class Presence(BaseWordDensity):
    """log p(x | z) = Σ_j log q_zj if x_j > 0, and log(1 − q_zj) if not, with q_zj = (n_zj + alpha) / (n_z + 2·alpha).

    n_zj is the weight of the rows of component z in which word j occurs. How often it occurs is ignored, and its
    absence counts. log p is computed as Σ_j log(1 − q_zj), which is the same for all rows, plus the log-odds of the
    words that occur, so that the cost follows the stored cells.

    Parameters
    ----------
    alpha : float, default 1.0
        Dirichlet pseudo-count of presence and of absence, > 0.

    References
    ----------
    McCallum & Nigam, A comparison of event models for naive Bayes text classification, AAAI-98 workshop. Manning,
    Raghavan & Schütze, Introduction to Information Retrieval, 2008, section 13.3.

    Examples
    --------
    >>> import posteriori as po
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]])
    >>> po.NaiveBayes(distributions=po.Presence()).fit(X, ["a", "a", "b", "b"]).predict(csr_array([[0, 1, 0]]))
    array(['b'], dtype='<U1')
    """

    alpha: float = 1.0
    name = "presence"
    sufficient_statistics = WordPresence
    fitted = PresenceParameters

    def check(self) -> None:
        """Raise ValueError unless alpha is a positive number."""
        require(0 < self.alpha <= LARGEST, f"alpha is {self.alpha}; presence of words needs a pseudo-count above 0")

    def estimate(self, statistics: WordCounts) -> PresenceParameters:
        """Return the smoothed shares of the rows in which each word occurs."""
        return PresenceParameters(*self._log_shares(statistics.count, statistics.weight[:, np.newaxis]))

    def _log_shares(self, present: Array, weight: Array) -> tuple[Array, Array]:
        absent = np.maximum(weight - present, 0.0)  # rounding may make the difference negative
        log_total = np.log(weight + 2.0 * self.alpha)  # the quotient of a tiny alpha would be 0
        return np.log(present + self.alpha) - log_total, np.log(absent + self.alpha) - log_total

    def log_density(self, parameters: PresenceParameters, tile: Bags | Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z)."""
        present = presence_of(tile)
        total = parameters.of_words.sums(present) + parameters.of_none
        missing = np.flatnonzero(np.isnan(present.counts))
        if len(missing):
            np.subtract.at(total, present.row_of_cell[missing], parameters.absent.T[present.words[missing]])
        return total

    def word_factors(self, parameters: PresenceParameters, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the log-odds of the stored cells in nats, (m, Z), and the rest, as if no word occurred, (n, Z)."""
        present = presence_of(tile)
        factors = parameters.of_words.of_cells(present)
        missing = np.isnan(present.counts)
        factors[missing] = -parameters.absent.T[present.words[missing]]
        return factors, np.tile(parameters.of_none, (len(present), 1))

    def log_factors(self, parameters: PresenceParameters, tile: Bags | Numbers) -> Array:
        """Return the log factors in nats, (n, Z, d): of each column of numbers, or of all words of a bag."""
        factors, rest = self.word_factors(parameters, tile)
        if isinstance(tile, Bags):
            return by_column(tile, factors) + rest[:, :, np.newaxis]
        return by_column(tile, factors + parameters.absent.T[bags_of(tile).words])

    def left_out(
        self, parameters: PresenceParameters, statistics: WordCounts, tile: Bags | Numbers, assignment: Assignment
    ) -> Array:
        """Return the log factors in nats, (n, Z, d), of each row under the shares without it.

        O(stored cells · Z), and O(V) for each distinct pair of component and weight.
        """
        present = presence_of(tile)
        factors = self.log_factors(parameters, tile)
        z, row = assignment.component, present.row_of_cell
        rest = weights_left(statistics.weight, assignment)[np.arange(len(z)), z]
        occurs = present.counts > 0
        count = statistics.count[z[row], present.words]
        shares = self._log_shares(less(count, assignment.weight[row] * occurs), rest[row])
        if isinstance(tile, Numbers):
            factors[np.arange(len(z)), z] = np.where(occurs, *shares).reshape(tile.values.shape)
            return factors
        # As if no word occurred, and a word that occurs had its count of all rows; then the words that occur.
        none = np.empty(len(z))
        pairs, which = np.unique(np.column_stack([z, rest]), axis=0, return_inverse=True)
        for k, (component, weight) in enumerate(pairs):
            none[which.reshape(-1) == k] = self._log_shares(statistics.count[int(component)], weight)[1].sum()
        gain = shares[0] - self._log_shares(count, rest[row])[1]
        factors[np.arange(len(z)), z, 0] = none + tile.sums_per_row(np.where(occurs, gain, 0.0))
        return factors

    def sample(self, parameters: PresenceParameters, component: Array, rng: np.random.Generator) -> Bags:
        """Draw which words occur, each with a count of 1."""
        chance = np.exp(parameters.present)[component]
        return Bags.of_array(rng.random(chance.shape) < chance)

    def n_parameters(self, parameters: PresenceParameters) -> int:
        """Return Z·V shares."""
        return parameters.present.size

    def describe(self, parameters: PresenceParameters, position: int) -> dict[str, Array]:
        """Return the share of rows in which a word occurs, (Z,)."""
        return {"present": np.exp(parameters.present[:, position])}
