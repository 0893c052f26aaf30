"""Predictions of a classifier with one generative model, and the model as a network and as SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.model_estimator import ModelEstimator
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.sql_export import WritesSQL
from posteriori.classifiers.table_classifier import ExplanationTerms, TableClassifier
from posteriori.explain.words import word_factors
from posteriori.model import GenerativeModel, draw_components, draw_rows, log_sum
from posteriori.scoring import ModelRows, Posterior, Scorer
from posteriori.scoring.fitted import most_probable, warn_of_impossible
from posteriori.tables import Batch
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


class PredictingEstimator(WritesSQL, TableClassifier, ModelEstimator):
    """Predicts with a fitted `GenerativeModel`."""

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        best = self._map(X, lambda model: lambda batch: most_probable(model.scores(batch)))
        best[self._warn_of_impossible(best < 0)] = self.model_.class_log_prior.argmax()
        labels: Array = self.classes_[best]
        return labels

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1.

        If no class can produce a row, it is NaN, with a warning: p(x) is 0, which needs ``alpha=0`` or a number so far
        from all others that log p(x | y) overflows.
        """
        posterior = self._map(X, lambda model: model.posterior)
        self._warn_of_impossible(np.isnan(posterior[:, 0]))
        return posterior

    @supports_partitions("log_probability")
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        scores = self._map(X, lambda model: model.scores)
        with np.errstate(invalid="ignore"):
            scores -= log_sum(scores)[:, np.newaxis]
        self._warn_of_impossible(np.isnan(scores[:, 0]))
        return scores

    @supports_partitions("joint_log_probability")
    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C), with missing cells integrated out."""
        return self._map(X, lambda model: model.log_joint)

    def _best(self) -> tuple[Callable[[Batch], Array], int]:
        model = self.model_
        return lambda batch: most_probable(model.scores(batch)), int(model.class_log_prior.argmax())

    def _terms(self) -> ExplanationTerms:
        model = self.model_

        words = partial(word_factors, model) if model.schema.of_kind("counts") else None
        return ExplanationTerms(model.bias, model.explaining_factors, model.given, not model.factors_are_joint, words)

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(y | x) of each class, a dict, for services."""
        return Scorer(tuple(self.classes_.tolist()), ModelRows(self._posterior, type(self).__name__))

    @property
    def _posterior(self) -> Posterior:
        return Posterior((self._fitted,))

    def _warn_of_impossible(self, impossible: Array) -> Array:
        if impossible.any():
            warn_of_impossible(int(impossible.argmax()), int(impossible.sum()), stacklevel=4)
        return impossible

    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        if y is None:
            component = rng.choice(len(self.classes_), size=n, p=np.exp(self.model_.class_log_prior))
        else:
            wanted = y.tolist()
            positions = [self.target_.lookup.get(label, 0) - 1 for label in wanted]
            if min(positions) < 0:
                unseen = wanted[positions.index(-1)]
                raise ValueError(f"{unseen!r} is not a class; the classes are {self.classes_.tolist()}")
            component = np.array(positions)
        ranges = self._ranges if respect_ranges else None
        columns = draw_rows(self.model_, draw_components(self.model_, component, rng), rng, ranges)
        return columns, self.classes_[component]

    def to_network(self) -> BayesianNetwork:
        """Return the joint distribution as a Bayesian network, in which the class is a parent of every feature.

        The states of a column of numbers that the model cuts into bins are these bins, such as "[39.2, 43.3)".

        Raises
        ------
        ValueError
            A column holds numbers that are not in bins and not normal given the class, or the model is not a network.
            Naive Bayes, trees that all classes share, `KDependenceBayes`, and discriminant analysis are networks.
        """
        from posteriori.networks.conversion import network_of

        check_is_fitted(self, "model_")
        return network_of(self.model_, self.target_)

    def _models_in_sql(self) -> tuple[Mapping[str, GenerativeModel], None]:
        return {f"this {type(self).__name__}": self.model_}, None
