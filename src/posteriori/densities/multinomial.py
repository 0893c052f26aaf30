"""Counts of words that are drawn together, given their sum: a multinomial distribution per component, or its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori.densities.capabilities import LinearTerms
from posteriori.densities.word_scores import (
    LinearWordDensity,
    WordScores,
    by_column,
    draw_bags,
    has_missing,
    sum_of_present,
)
from posteriori.statistics.axes import Axes, WithAxes
from posteriori.statistics.left_out import less
from posteriori.statistics.word_counts import ScaledWordCounts, WordCounts, bags_of, scaled_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import Column
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


class _SmoothedShares(LinearWordDensity):
    """Scores that are the logs of the smoothed shares of the words."""

    fitted = MultinomialParameters

    def estimate(self, statistics: WordCounts) -> MultinomialParameters:
        """Return the smoothed shares of the words."""
        return MultinomialParameters(log_shares(statistics.count, self.alpha), statistics.mean_total)

    def _log_present(self, parameters: MultinomialParameters, bags: Bags) -> Array | None:
        if not has_missing(bags):
            return None
        with np.errstate(divide="ignore"):
            shares = np.exp(parameters.log_probability)
            return np.log(sum_of_present(shares, np.ones(len(shares)), bags))

    def left_out(
        self, parameters: MultinomialParameters, statistics: WordCounts, tile: Bags | Numbers, assignment: Assignment
    ) -> Array:
        """Return the log factors in nats, (n, Z, d), of each row under the shares without it. O(stored cells · Z)."""
        bags = bags_of(self._read(tile))
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

    def describe(self, parameters: MultinomialParameters, position: int) -> dict[str, Array]:
        """Return the shares of a word, (Z,)."""
        return {"share": np.exp(parameters.log_probability[:, position])}


@dataclass(frozen=True)
class Multinomial(_SmoothedShares):
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
    sufficient_statistics = WordCounts
    is_normalised = True

    def log_likelihood(self, parameters: MultinomialParameters, statistics: WordCounts) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of the statistics."""
        occurring = statistics.count > 0  # 0·log 0 is 0
        return float(statistics.count[occurring] @ parameters.log_probability[occurring])

    def sample(self, parameters: MultinomialParameters, component: Array, rng: np.random.Generator) -> Bags:
        """Draw bags of words. Their sums are not part of the model: they are Poisson around the mean of all rows."""
        return draw_bags(np.exp(parameters.log_probability), parameters.mean_total, component, rng)

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


@dataclass(frozen=True)
class ScaledMultinomial(_SmoothedShares):
    """score(x | z) = Σ_j t_j·log θ_zj, t_j = log(1 + x_j) / √(Σ_k log²(1 + x_k)).

    θ_zj = (Σ w·t_j + alpha) / (Σ_j Σ w·t_j + alpha·V), as in `Multinomial`, of t instead of x. A repeated word counts
    less than twice, and a long row has no more weight than a short one, as with tf weights of text retrieval (sublinear
    and normalised, without idf). The score stands in Bayes' rule where other distributions have log p(x | z). It is not
    the logarithm of a density of the counts. Therefore `score_samples` and `sample` refuse a model with such a block.

    Parameters
    ----------
    alpha : float, default 1.0
        Pseudo-count per word, ≥ 0. The t_j of a row sum to √(number of its words) at most, so that smaller values than
        for `Multinomial` suit: 0.1 instead of 1.

    References
    ----------
    Rennie, Shih, Teevan & Karger, Tackling the poor assumptions of naive Bayes text classifiers, ICML 2003, sections
    4.1 and 4.3.

    Examples
    --------
    >>> import posteriori as po
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]])
    >>> model = po.NaiveBayes(distributions=po.ScaledMultinomial(0.1)).fit(X, ["a", "a", "b", "b"])
    >>> model.predict(csr_array([[1, 0, 0]]))
    array(['a'], dtype='<U1')
    """

    alpha: float = 1.0
    name = "scaled"
    sufficient_statistics = ScaledWordCounts

    def _read(self, tile: Bags | Numbers) -> Bags | Numbers:
        return scaled_of(tile)
