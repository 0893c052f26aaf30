"""Naive Bayes of counts under scikit-learn's names: multinomial and complement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags

from posteriori.densities.words import WordScores, complement_scores, log_shares
from posteriori.drop_in.base import LabelledRows, require_finite
from posteriori.drop_in.discrete import DiscreteClassifier
from posteriori.statistics import JointStatistics, WordCounts
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Bags, Numbers


class CountClassifier(DiscreteClassifier, ABC):
    """Naive Bayes whose class scores are linear in counts: log p(y) + Σ_j x_j·score_yj."""

    @abstractmethod
    def _scores_of_words(self, count: Array, alpha: Array) -> Array:
        """Return the score of each feature in each class, (C, d), from the sums of the counts and the pseudo-counts."""

    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        def count(values: Array | Bags, assignment: Assignment) -> tuple[WordCounts]:
            return (WordCounts.of(self._tile(values, checked=True), assignment),)

        return rows.with_past(rows.fold(count))

    def _tile(self, values: Array | Bags, checked: bool) -> Numbers | Bags:
        """Return rows as a tile; raise ValueError for a cell that is NaN, infinite or, if `checked`, negative."""
        if isinstance(values, Bags) and values.are_counts:
            return values
        cells = values.counts if isinstance(values, Bags) else values
        require_finite(cells, type(self).__name__)
        if checked and cells.size and cells.min() < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__} (input X)")
        return values if isinstance(values, Bags) else Numbers(values)

    def _set_fitted_attributes(self, rows: LabelledRows) -> None:
        del rows  # counts are float64 whatever X is
        (counts,) = self.statistics_.blocks
        if not counts.total.sum() < np.inf:
            raise ValueError("the sum of the counts in X overflows; rescale X")
        self.class_count_, self.feature_count_ = self.statistics_.weight, counts.count
        self.feature_log_prob_ = self._scores_of_words(counts.count, self._check_alpha())
        self.class_log_prior_ = self._class_log_prior()

    def _log_density(self, n_features: int) -> Callable[[Any], Array]:
        scores = np.asarray(self.feature_log_prob_, np.float64)
        if scores.shape != (len(self.classes_), n_features):
            raise ValueError(f"X has {n_features} features, but feature_log_prob_ is of shape {scores.shape}")
        of_words = WordScores(scores)
        return lambda values: of_words.sums(self._tile(values, checked=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


class MultinomialNB(CountClassifier):
    r"""Multinomial naive Bayes: counts that are drawn together given the class and their sum.

    .. math:: p(x, y) \propto p(y) \prod_j \theta_{yj}^{x_j}, \qquad
              \theta_{yj} = \frac{n_{yj} + \alpha_j}{\sum_j n_{yj} + \alpha_j}

    where :math:`n_{yj}` is the sum of feature j over the rows of class y. Counts may be fractions, such as tf-idf.

    Parameters
    ----------
    alpha : float or array-like (d,), default 1.0
        Dirichlet pseudo-count of each feature, ≥ 0; 0 gives maximum likelihood.
    force_alpha : bool, default True
        If False, an alpha below 1e-10 is set to 1e-10, with a warning.
    fit_prior : bool, default True
        Whether to learn p(y); if False, it is uniform.
    class_prior : array-like (C,), optional
        p(y), instead of learning it.

    Attributes
    ----------
    classes_ : ndarray (C,)
    class_count_, class_log_prior_ : ndarray (C,)
        Total weight of the rows of each class, and log p(y) in nats.
    feature_count_ : ndarray (C, d)
        Σ w·x over the rows of each class.
    feature_log_prob_ : ndarray (C, d)
        log θ in nats.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    Notes
    -----
    With ``alpha=0``, a class in which a feature never occurs is impossible for rows with it; a feature that is absent
    from a row adds 0 even then. The predictions of scikit-learn are NaN in both cases.

    Cost: O(stored cells) to fit and O(stored cells · C) to predict, in threads; a dense array stores all cells.

    References
    ----------
    Manning, Raghavan & Schütze, Introduction to Information Retrieval, 2008, section 13.2.

    Examples
    --------
    >>> from posteriori.drop_in import MultinomialNB
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]])
    >>> model = MultinomialNB().fit(X, ["spam", "spam", "ham", "ham"])
    >>> model.predict(csr_array([[1, 0, 0]]))
    array(['spam'], dtype='<U4')
    """

    def _scores_of_words(self, count: Array, alpha: Array) -> Array:
        return log_shares(count, alpha)


@dataclass(kw_only=True, eq=False, repr=False)
class ComplementNB(CountClassifier):
    r"""Complement naive Bayes: a class is scored by how little a row resembles the other classes.

    .. math:: \hat y = \arg\max_y \sum_j x_j w_{yj}, \qquad w_{yj} = -\log
              \frac{\alpha_j + \sum_{c \ne y} n_{cj}}{\sum_j \alpha_j + \sum_{c \ne y} n_{cj}}

    The scores are not log-probabilities of x, so that `predict_proba` ranks classes but is not calibrated.

    Parameters
    ----------
    alpha : float or array-like (d,), default 1.0
        Dirichlet pseudo-count of each feature, ≥ 0.
    force_alpha : bool, default True
        If False, an alpha below 1e-10 is set to 1e-10, with a warning.
    fit_prior : bool, default True
        Whether to learn p(y); the prior has an effect only if there is a single class.
    class_prior : array-like (C,), optional
        p(y), instead of learning it; without effect, as `fit_prior`.
    norm : bool, default False
        Whether the weights of each class are divided by their sum.

    Attributes
    ----------
    classes_ : ndarray (C,)
    class_count_, class_log_prior_ : ndarray (C,)
        Total weight of the rows of each class, and log p(y) in nats.
    feature_count_ : ndarray (C, d)
        Σ w·x over the rows of each class.
    feature_all_ : ndarray (d,)
        Σ w·x over all rows.
    feature_log_prob_ : ndarray (C, d)
        The weights w.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.
    statistics_ : JointStatistics
        Sufficient statistics from which the attributes follow.

    References
    ----------
    Rennie, Shih, Teevan & Karger, Tackling the poor assumptions of naive Bayes text classifiers, ICML 2003, table 4.

    Examples
    --------
    >>> from posteriori.drop_in import ComplementNB
    >>> X = [[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]]
    >>> ComplementNB().fit(X, ["spam", "spam", "ham", "ham"]).predict([[1, 0, 0]])
    array(['spam'], dtype='<U4')
    """

    norm: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DiscreteClassifier._parameter_constraints,
        "norm": ["boolean"],
    }

    def _scores_of_words(self, count: Array, alpha: Array) -> Array:
        self.feature_all_ = count.sum(axis=0)
        return complement_scores(count, alpha, self.norm)

    def _log_prior(self) -> Array:
        return self.class_log_prior_ if len(self.classes_) == 1 else np.zeros(len(self.classes_))
