"""Counts of words: multinomial distributions, and scores by the complement of a class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from posteriori import kernels
from posteriori.densities.capabilities import BaseDensity, LinearTerms
from posteriori.kernels.loops.word_scores import add_word_scores
from posteriori.kernels.machine.lanes import LANES
from posteriori.statistics.moments import less
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.statistics.word_counts import ScaledWordCounts, WordCounts, bags_of, n_columns_of, scaled_of
from posteriori.support.checks import check_pseudo_count
from posteriori.support.typing import Array
from posteriori.tables.bags import LARGEST_COUNT, Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.messages import quote
from posteriori.tables.schema import CellKind, Column


def invalid_counts(tile: Bags | Numbers, *, whole: bool = False) -> Array:
    """Return which columns of each row hold a negative or infinite count, or a fraction if counts are whole: (n, d)."""
    if isinstance(tile, Bags) and tile.are_counts and not whole:
        return np.zeros((len(tile), 1), np.bool_)
    counts = tile.counts if isinstance(tile, Bags) else tile.values
    invalid = (counts < 0) | (counts > LARGEST_COUNT)
    if whole:
        invalid |= ~np.isnan(counts) & (counts != np.floor(counts))
    if isinstance(tile, Numbers):
        return np.asarray(invalid)
    rows = np.zeros((len(tile), 1), np.bool_)
    if invalid.any():
        rows[tile.row_of_cell[invalid]] = True
    return rows


@dataclass(frozen=True)
class WordScores:
    """Scores of words, (Z, V), which bags of words add up."""

    scores: Array  # (Z, V)

    @cached_property
    def by_word(self) -> Array:
        """The scores with those of a word side by side, padded as `add_word_scores` reads them."""
        n_components, n_words = self.scores.shape
        if n_components <= 2:
            return np.ascontiguousarray(self.scores.T)
        padded = np.zeros((n_words, -(-n_components // LANES) * LANES))
        padded[:, :n_components] = self.scores.T
        return padded.reshape(-1, LANES)

    def sums(self, tile: Bags | Numbers) -> Array:
        """Return Σ_j x_j·score_j per row, (n, Z). O(stored cells · Z)."""
        bags = bags_of(tile)
        out = np.zeros((len(bags), len(self.scores)))
        add_word_scores(bags.starts, bags.words, bags.counts, self.by_word, out)
        return out

    def of_cells(self, bags: Bags) -> Array:
        """Return x·score of the word of each stored cell, (m, Z)."""
        out = np.empty((len(bags.words), len(self.scores)))
        kernels.write_word_scores(bags.words, bags.counts, self.scores, out)
        return out


def by_column(tile: Bags | Numbers, of_cells: Array) -> Array:
    """Return values of the stored cells, (m, Z), summed over each column of the table, (n, Z, d)."""
    if isinstance(tile, Bags):
        return tile.sums_per_row(of_cells)[:, :, np.newaxis]
    n, d = tile.values.shape
    return np.ascontiguousarray(of_cells.reshape(n, d, -1).transpose(0, 2, 1))


def sum_of_present(of_words: Array, whole: Array, bags: Bags) -> Array:
    """Return the sum of values of words, (Z, V), over those whose count is not missing, (n, Z); whole is over all."""
    total = np.tile(whole, (len(bags), 1))
    if has_missing(bags):
        missing = np.zeros_like(total)
        kernels.add_missing_words(bags.starts, bags.words, bags.counts, np.ascontiguousarray(of_words.T), missing)
        total = np.maximum(total - missing, 0.0)
    return total


def has_missing(bags: Bags) -> bool:
    """Return whether the count of a word is missing."""
    return not bags.are_counts and bool(np.isnan(bags.counts).any())


def draw_bags(probability: Array, mean_total: Array | float, component: Array, rng: np.random.Generator) -> Bags:
    """Draw bags of words from a multinomial per row, with Poisson totals of this mean, or of one mean per row.

    probability (Z, V) sums to 1 over the words.
    """
    n_words, total = probability.shape[1], rng.poisson(mean_total, len(component))
    row = np.repeat(np.arange(len(component)), total)
    word, u = np.empty(len(row), np.int64), rng.random(len(row))
    for z in np.unique(component):
        of_z = component[row] == z
        cumulative = np.cumsum(probability[z])
        word[of_z] = np.searchsorted(cumulative, u[of_z] * cumulative[-1], side="right")
    cells, counts = np.unique(row * n_words + np.minimum(word, n_words - 1), return_counts=True)
    starts = np.searchsorted(cells, np.arange(len(component) + 1) * n_words)
    return Bags(starts, (cells % n_words).astype(np.int32), counts.astype(np.float64), n_words)


class BaseWordDensity(BaseDensity):
    """Base of the densities of counts: of bags, or of columns of numbers that are one word each."""

    kind: ClassVar[CellKind] = "counts"
    support = "a count or a weight of a word, 0 or more"
    has_full_support = False
    learns_from_complete_rows = True
    has_whole_counts = False

    def out_of_support(self, tile: Bags | Numbers) -> Array:
        """Return which cells the density cannot produce, (n, d): counts that are negative, infinite, fractional."""
        return invalid_counts(tile, whole=self.has_whole_counts)

    @abstractmethod
    def word_factors(self, parameters: Any, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density per row, (n, Z)."""

    def log_factors(self, parameters: Any, tile: Bags | Numbers) -> Array:
        """Return the log factors in nats, (n, Z, d): of each column of numbers, or of all words of a bag."""
        return by_column(tile, self.word_factors(parameters, tile)[0])

    def left_out(self, parameters: Any, statistics: Any, tile: Bags | Numbers, assignment: Assignment) -> Array:
        """Return NaN, (n, Z, d): there is no closed form, and the parameters are estimated again without each row."""
        del parameters, statistics
        return np.full((len(bags_of(tile)), assignment.n_components, n_columns_of(tile)), np.nan)


class LinearWordDensity(BaseWordDensity):
    """score(x | z) = Σ_j x_j·s_zj − N·log p_z of the words whose count is not missing, of counts x with the sum N.

    The scores s are `parameters.of_words`. They are no density unless a subclass says so and draws rows.
    """

    alpha: float
    name: str
    is_normalised = False

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def _read(self, tile: Bags | Numbers) -> Bags | Numbers:
        """Return the counts x as the scores take them."""
        return tile

    def _log_present(self, parameters: Any, bags: Bags) -> Array | None:
        """Return log p_z per row, (n, Z); None for 0, as where no count is missing."""
        del parameters, bags
        return None

    def log_density(self, parameters: Any, tile: Bags | Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), or the scores."""
        bags = bags_of(self._read(tile))
        out: Array = parameters.of_words.sums(bags)
        present = self._log_present(parameters, bags)
        if present is not None:
            total = bags.totals[:, np.newaxis]
            with np.errstate(invalid="ignore"):  # all present words have probability 0
                out -= np.where(total > 0, total * present, 0.0)
        return out

    def word_factors(self, parameters: Any, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density, which is 0, (n, Z)."""
        bags = bags_of(self._read(tile))
        factors: Array = parameters.of_words.of_cells(bags)
        present = self._log_present(parameters, bags)
        if present is not None:
            counts = bags.counts[:, np.newaxis]
            with np.errstate(invalid="ignore"):
                factors -= np.where(counts > 0, counts * present[bags.row_of_cell], 0.0)
        return factors, np.zeros((len(bags), factors.shape[1]))

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Bags:
        """Raise ValueError: the scores are not a density."""
        raise ValueError(f"{self.name} scores are not a density, so that no rows can be drawn; use multinomial")

    def n_parameters(self, parameters: Any) -> int:
        """Return Z·(V − 1): the scores of a component follow from those of all words but one."""
        n_components, n_words = parameters.of_words.scores.shape
        return int(n_components * (n_words - 1))


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


def complement_scores(count: Array, alpha: Array | float, norm: bool) -> Array:
    """Return the weight of each word in each class, (Z, V), from the sums of its counts, (Z, V).

    w_zj = −log((alpha_j + Σ_{c≠z} n_cj) / Σ_j (alpha_j + Σ_{c≠z} n_cj)), divided by Σ_j w_zj if `norm`.
    """
    # Rounding may make the difference negative.
    others = np.maximum(count.sum(axis=0) - count, 0.0) + alpha
    total = others.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = -np.log(np.where(total > 0, others / total, 1.0 / count.shape[1]))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True) if norm else scores)


@dataclass(frozen=True)
class ComplementParameters(WithAxes):
    """The weight of each word in each component, (Z, V), ≥ 0."""

    score: Annotated[Array, Axes("the weights of words", "z", "word", low=-1e-9, high=np.inf)]

    @cached_property
    def of_words(self) -> WordScores:
        """Their sums over the words of a bag."""
        return WordScores(self.score)


@dataclass(frozen=True)
class Complement(LinearWordDensity):
    """score(x | z) = Σ_j x_j·w_zj, w_zj = −log((Σ_{c≠z} n_cj + alpha) / (Σ_j Σ_{c≠z} n_cj + alpha·V)).

    n_cj is the sum of the counts of word j in the rows of component c. The score stands in Bayes' rule where other
    distributions have log p(x | z). It is not the logarithm of a density: it is estimated from all rows except those of
    the class. Therefore `score_samples` and `sample` refuse a model with such a block, and probabilities rank the
    classes but are not calibrated.

    Parameters
    ----------
    alpha : float, default 1.0
        Pseudo-count per word, ≥ 0.
    norm : bool, default False
        Whether the weights of each class are divided by their sum, so that a class whose rows are longer does not
        dominate (weight-normalised complement naive Bayes).

    Notes
    -----
    The prior counts, as in equation 6 of the reference. `posteriori.drop_in.ComplementNB` leaves it out, as
    scikit-learn does; with ``priors`` uniform both predict the same.

    References
    ----------
    Rennie, Shih, Teevan & Karger, Tackling the poor assumptions of naive Bayes text classifiers, ICML 2003.
    """

    alpha: float = 1.0
    norm: bool = False
    name = "complement"
    sufficient_statistics = WordCounts
    fitted = ComplementParameters

    def estimate(self, statistics: WordCounts) -> ComplementParameters:
        """Return the weights of the words."""
        return ComplementParameters(complement_scores(statistics.count, self.alpha, self.norm))

    def left_out(
        self, parameters: ComplementParameters, statistics: WordCounts, tile: Bags | Numbers, assignment: Assignment
    ) -> Array:
        """Return the scores, (n, Z, d), of each row under the weights without it; NaN if the weights are normalised.

        The row leaves the complements of the other components. O(stored cells · Z).
        """
        if self.norm:
            return super().left_out(parameters, statistics, tile, assignment)
        bags = bags_of(tile)
        factors = parameters.of_words.of_cells(bags)
        row = bags.row_of_cell
        other = assignment.component[:, np.newaxis] != np.arange(assignment.n_components)
        removed = (assignment.weight[row] * bags.counts)[:, np.newaxis]
        count = statistics.count.sum(axis=0)[bags.words][:, np.newaxis] - statistics.count.T[bags.words]
        total = statistics.total.sum() - statistics.total
        total = less(np.tile(total, (len(bags), 1)), (assignment.weight * bags.totals)[:, np.newaxis])[row]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (less(count, removed) + self.alpha) / (total + self.alpha * bags.n_words)
            left = np.where(bags.counts[:, np.newaxis] > 0, -bags.counts[:, np.newaxis] * np.log(share), 0.0)
        return by_column(tile, np.where(other[row], left, factors))

    def describe(self, parameters: ComplementParameters, position: int) -> dict[str, Array]:
        """Return the weights of a word, (Z,)."""
        return {"weight": parameters.score[:, position]}
