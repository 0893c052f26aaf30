"""Complement naive Bayes: a class is scored by how little a row resembles the other classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori.densities.word_scores import LinearWordDensity, WordScores, by_column
from posteriori.statistics.axes import Axes, WithAxes
from posteriori.statistics.left_out import less
from posteriori.statistics.word_counts import WordCounts, bags_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array


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
