"""Counts of words that are drawn together, given their sum: a multinomial distribution per component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from posteriori.densities.capabilities import LinearTerms
from posteriori.densities.word_scores import (
    WordScores,
    by_column,
    draw_bags,
    invalid_counts,
    log_present,
)
from posteriori.invariants import check_pseudo_count
from posteriori.statistics.axes import Axes, WithAxes
from posteriori.statistics.left_out import less
from posteriori.statistics.word_counts import WordCounts, bags_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import CellKind, Column
from posteriori.tables.messages import quote
from posteriori.typing import Array

_LARGEST = 1e15  # of a mean total


@dataclass(frozen=True)
class MultinomialParameters(WithAxes):
    """Log-probabilities of the words in nats, (Z, V), and the mean sum of the counts of a row, for drawing rows."""

    log_probability: Annotated[Array, Axes("the log-probabilities of words", "z", "word", low=-np.inf, high=1e-9)]
    mean_total: Annotated[float, Axes("the mean total", low=0.0, high=_LARGEST)]

    @cached_property
    def of_words(self) -> WordScores:
        """Their sums over the words of a bag."""
        return WordScores(self.log_probability)


def log_shares(count: Array, alpha: Array | float) -> Array:
    """Return the log of the smoothed share of each word, (Z, V), from the sums of its counts, (Z, V).

    Without counts and pseudo-counts it is the limit of alpha going to 0, which is uniform.
    """
    shares = count + alpha
    total = shares.sum(axis=1)
    shares[total <= 0] = 1.0
    total[total <= 0] = count.shape[1]
    shares /= total[:, np.newaxis]
    with np.errstate(divide="ignore"):
        return np.log(shares, out=shares)


@dataclass(frozen=True)
class Multinomial:
    """log p(x | z) = Σ_j x_j·log θ_zj, for a block of counts x_1 … x_V with a given sum.

    This is the probability of the words in one given order. The multinomial coefficient (Σ x_j)! / Π x_j!, the number
    of orders, is left out: it is the same for all components, so that no posterior depends on it. The sum of the
    counts is given, and carries no information; a row without any word has the posterior of the other columns.

        θ_zj = (Σ w·x_j + alpha) / (Σ_j Σ w·x_j + alpha·V).

    Parameters
    ----------
    alpha : float, default 1.0
        Dirichlet pseudo-count per word, ≥ 0: 0 is maximum likelihood, 1 Laplace's rule.

    Notes
    -----
    Counts may be fractions, such as tf-idf weights: a word of weight 0.5 counts half. In prediction, a missing count
    (NaN, in dense columns) is left out, and the probabilities of the other words are divided by their sum; this is the
    multinomial distribution of the other words, given their sum. Training rows have no missing counts.

    References
    ----------
    McCallum & Nigam, A comparison of event models for naive Bayes text classification, AAAI-98 workshop. Manning,
    Raghavan & Schütze, Introduction to Information Retrieval, 2008, section 13.2.

    Examples
    --------
    >>> import posteriori as po
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]])
    >>> model = po.NaiveBayes(distributions=po.Multinomial(alpha=0.5)).fit(X, ["a", "a", "b", "b"])
    >>> model.predict(csr_array([[1, 0, 0]]))
    array(['a'], dtype='<U1')
    """

    alpha: float = 1.0
    name = "multinomial"
    kind: ClassVar[CellKind] = "counts"
    sufficient_statistics = WordCounts
    fitted = MultinomialParameters
    support = "a count or a weight of a word, 0 or more"
    has_full_support = False
    learns_from_complete_rows = True

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def out_of_support(self, tile: Bags | Numbers) -> Array:
        """Return which cells the density cannot produce, (n, d): negative and infinite counts."""
        return invalid_counts(tile)

    def estimate(self, statistics: WordCounts) -> MultinomialParameters:
        """Return the smoothed shares of the words."""
        return MultinomialParameters(log_shares(statistics.count, self.alpha), statistics.mean_total)

    def log_density(self, parameters: MultinomialParameters, tile: Bags | Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), without the multinomial coefficient."""
        out = parameters.of_words.sums(tile)
        present = log_present(parameters.log_probability, tile)
        if present is not None:
            total = bags_of(tile).totals[:, np.newaxis]
            with np.errstate(invalid="ignore"):  # all present words have probability 0
                out -= np.where(total > 0, total * present, 0.0)
        return out

    def word_factors(self, parameters: MultinomialParameters, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density, which is 0, (n, Z)."""
        bags = bags_of(tile)
        factors = parameters.of_words.of_cells(bags)
        present = log_present(parameters.log_probability, tile)
        if present is not None:
            counts = bags.counts[:, np.newaxis]
            with np.errstate(invalid="ignore"):
                factors -= np.where(counts > 0, counts * present[bags.row_of_cell], 0.0)
        return factors, np.zeros((len(bags), factors.shape[1]))

    def log_factors(self, parameters: MultinomialParameters, tile: Bags | Numbers) -> Array:
        """Return the log factors in nats, (n, Z, d): of each column of numbers, or of all words of a bag."""
        return by_column(tile, self.word_factors(parameters, tile)[0])

    def left_out(
        self, parameters: MultinomialParameters, statistics: WordCounts, tile: Bags | Numbers, assignment: Assignment
    ) -> Array:
        """Return the log factors in nats, (n, Z, d), of each row under the shares without it. O(stored cells · Z)."""
        bags = bags_of(tile)
        factors = parameters.of_words.of_cells(bags)
        row = bags.row_of_cell
        component, weight = assignment.component[row], assignment.weight[row]
        count = less(statistics.count[component, bags.words], weight * bags.counts) + self.alpha
        total = less(statistics.total[assignment.component], assignment.weight * bags.totals)[row]
        total = total + self.alpha * bags.n_words
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.log(np.where(total > 0, count / total, 1.0 / bags.n_words))
            factors[np.arange(len(row)), component] = np.where(bags.counts > 0, bags.counts * own, 0.0)
        return by_column(tile, factors)

    def with_fixed_structure(self, parameters: MultinomialParameters) -> Multinomial:
        """Return the density itself: it learns no structure."""
        del parameters
        return self

    def log_likelihood(self, parameters: MultinomialParameters, statistics: WordCounts) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics."""
        occurring = statistics.count > 0  # 0·log 0 is 0
        return float(statistics.count[occurring] @ parameters.log_probability[occurring])

    def sample(self, parameters: MultinomialParameters, component: Array, rng: np.random.Generator) -> Bags:
        """Draw bags of words. Their sums are not part of the model: they are Poisson around the mean of all rows."""
        return draw_bags(np.exp(parameters.log_probability), parameters.mean_total, component, rng)

    def n_parameters(self, parameters: MultinomialParameters) -> int:
        """Return Z·(V − 1) shares."""
        n_components, n_words = parameters.log_probability.shape
        return int(n_components * (n_words - 1))

    def describe(self, parameters: MultinomialParameters, position: int) -> dict[str, Array]:
        """Return the shares of a word, (Z,)."""
        return {"share": np.exp(parameters.log_probability[:, position])}

    def linear_terms(self, parameters: MultinomialParameters, columns: Sequence[Column]) -> LinearTerms:
        """Return the log shares as weights, and a bias of 0."""
        if columns[0].kind == "counts":
            raise ValueError(
                f"{quote([columns[0].name])} is a block of words, and a linear form has one weight per column; see "
                "explain(X).words for the weights of its words"
            )
        if not np.isfinite(parameters.log_probability).all():
            raise ValueError(f"{quote(column.name for column in columns)} has a share of 0; set alpha > 0")
        terms = [(position, None, parameters.log_probability[:, position]) for position in range(len(columns))]
        return LinearTerms(np.zeros(len(parameters.log_probability)), terms)
