"""Counts of words on a logarithmic scale, divided by the length of their row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from posteriori.densities.multinomial import Multinomial, MultinomialParameters
from posteriori.densities.word_scores import invalid_counts
from posteriori.invariants import check_pseudo_count
from posteriori.statistics.word_counts import ScaledWordCounts, WordCounts, scaled_of
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Numbers
from posteriori.tables.columns import CellKind
from posteriori.typing import Array


@dataclass(frozen=True)
class ScaledMultinomial:
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
    kind: ClassVar[CellKind] = "counts"
    sufficient_statistics = ScaledWordCounts
    fitted = MultinomialParameters
    support = "a count or a weight of a word, 0 or more"
    has_full_support = False
    learns_from_complete_rows = True
    is_normalised = False

    @property
    def _of_scaled(self) -> Multinomial:
        """The distribution of the scaled counts."""
        return Multinomial(self.alpha)

    def check(self) -> None:
        """Raise ValueError if alpha is negative."""
        check_pseudo_count("alpha", self.alpha)

    def out_of_support(self, tile: Bags | Numbers) -> Array:
        """Return which cells the scores do not cover, (n, d): negative and infinite counts."""
        return invalid_counts(tile)

    def estimate(self, statistics: WordCounts) -> MultinomialParameters:
        """Return the smoothed shares of the words."""
        return self._of_scaled.estimate(statistics)

    def log_density(self, parameters: MultinomialParameters, tile: Bags | Numbers) -> Array:
        """Return the scores, (n, Z)."""
        return self._of_scaled.log_density(parameters, scaled_of(tile))

    def word_factors(self, parameters: MultinomialParameters, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the scores of the stored cells, (m, Z), and the rest, which is 0, (n, Z)."""
        return self._of_scaled.word_factors(parameters, scaled_of(tile))

    def log_factors(self, parameters: MultinomialParameters, tile: Bags | Numbers) -> Array:
        """Return the scores, (n, Z, d), of each column of numbers, or of all words of a bag."""
        return self._of_scaled.log_factors(parameters, scaled_of(tile))

    def left_out(
        self, parameters: MultinomialParameters, statistics: WordCounts, tile: Bags | Numbers, assignment: Assignment
    ) -> Array:
        """Return the scores, (n, Z, d), of each row under the shares without it. O(stored cells · Z)."""
        return self._of_scaled.left_out(parameters, statistics, scaled_of(tile), assignment)

    def with_fixed_structure(self, parameters: MultinomialParameters) -> ScaledMultinomial:
        """Return the density itself: it learns no structure."""
        del parameters
        return self

    def sample(self, parameters: MultinomialParameters, component: Array, rng: np.random.Generator) -> NoReturn:
        """Raise ValueError: the scores are not a density."""
        raise ValueError("scores of scaled counts are not a density, so that no rows can be drawn; use multinomial")

    def n_parameters(self, parameters: MultinomialParameters) -> int:
        """Return Z·(V − 1) shares."""
        return self._of_scaled.n_parameters(parameters)

    def describe(self, parameters: MultinomialParameters, position: int) -> dict[str, Array]:
        """Return the shares of a word in the scaled counts, (Z,)."""
        return self._of_scaled.describe(parameters, position)
