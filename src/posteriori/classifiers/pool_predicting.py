"""Predictions of a pool: posteriors, densities, explanations, drawn rows, SQL, and the fitted values of its members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.from_parameters import check_priors
from posteriori.classifiers.importance import MeasuresImportance
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.sql_export import WritesSQL
from posteriori.classifiers.table_classifier import ExplanationTerms, TableClassifier
from posteriori.explain.words import pooled_word_factors
from posteriori.invariants import check_not_negative, check_numbers, require
from posteriori.learning.importance import Predictor
from posteriori.learning.pool import Pool
from posteriori.model import GenerativeModel
from posteriori.scoring import ModelRows, Posterior, Scorer
from posteriori.tables import Batch, Column, Schema, quote
from posteriori.typing import Array


class PredictingPool(WritesSQL, MeasuresImportance, TableClassifier):
    """Predicts with the weighted members of a pool."""

    priors: Any
    members_: dict[str, GenerativeEstimator]
    member_weights_: dict[str, float]
    class_bias_: Array
    training_prior_: Array
    _fitted_attribute = "members_"
    _trained = True

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        labels: Array = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return labels

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1."""
        return np.exp(self.predict_log_proba(X))

    @supports_partitions("log_probability")
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self._source(X).map(self._posterior.log_posterior)

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(y | x) of each class, a dict, for services."""
        return Scorer(tuple(self.classes_.tolist()), ModelRows(self._posterior, type(self).__name__))

    @property
    def _posterior(self) -> Posterior:
        return Posterior(tuple(self._models()), self._pool)

    def _best(self) -> tuple[Callable[[Batch], Array], int]:
        return lambda batch: self._posterior.log_posterior(batch).argmax(
            axis=1
        ), 0  # posteriors are clipped, so all classes can

    @supports_partitions("log_density")
    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,), of the mixture of the members: lower for more unusual rows."""
        self._check_one_law("log p(x)")
        models = self._models()
        with np.errstate(divide="ignore"):  # partial_fit may give a member the weight 0
            log_share = np.log(self._shares)
        if self.priors is not None:
            models = [model.with_class_prior(self.class_log_prior_) for model in models]

        def score(batch: Batch) -> Array:
            each = [model.log_evidence(batch.with_schema(model.schema)) for model in models]
            mixed: Array = np.logaddexp.reduce(np.stack(each) + log_share[:, np.newaxis], axis=0)
            return mixed

        return self._source(X).map(score)

    def _terms(self) -> ExplanationTerms:
        models, weights = self._models(), list(self.member_weights_.values())

        def factors(batch: Batch) -> Array:
            total = np.zeros((len(batch), len(self.classes_), len(self.schema_.columns)))
            for model, weight in zip(models, weights, strict=True):
                total += weight * model.posterior_factors(batch.with_schema(model.schema))
            return total

        bias = self.class_bias_ + sum(weight * model.bias for model, weight in zip(models, weights, strict=True))
        words = partial(pooled_word_factors, models, weights) if self.schema_.of_kind("counts") else None
        return ExplanationTerms(bias, factors, weighted=True, words=words)

    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        self._check_one_law("distribution to draw from")
        member = rng.choice(len(self.members_), size=n, p=self._shares)
        if y is None and self.priors is not None:
            y = rng.choice(self.classes_, size=n, p=self.class_prior_)
        drawn: list[Array] = [np.empty(n, np.float64) for _ in self.schema_.columns]
        labels = np.empty(n, self.classes_.dtype)
        for m, estimator in enumerate(self.members_.values()):
            rows = np.flatnonzero(member == m)
            if len(rows):
                of_class = None if y is None else y[rows]
                columns, labels[rows] = estimator._draw(len(rows), of_class, rng, respect_ranges)
                for position, column in enumerate(columns):
                    drawn[position][rows] = column
        for j in self.schema_.of_kind("categorical"):
            drawn[j] = drawn[j].astype(self.schema_.columns[j].code_type)
        return drawn, labels

    def _check_one_law(self, what: str) -> None:
        """Raise ValueError if the members may be distributions of different things."""
        names = [self.schema_.names[j] for j in self.schema_.of_kind("counts")]
        if names:
            raise ValueError(
                f"the members of a pool take the counts of words in {quote(names)} as occurrences, as presence, as "
                f'scores or not at all, so that the pool has no {what}; use NaiveBayes(distributions="multinomial")'
            )

    def _models_in_sql(self) -> tuple[Mapping[str, GenerativeModel], Pool]:
        return {f"the member {name!r}": one.model_ for name, one in self.members_.items()}, self._pool

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> Array:  # type: ignore[override]  # an attribute of its members
        """Classes, (C,)."""
        return self._first.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._first.n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if the columns had names."""
        return self._first.feature_names_in_

    @property
    def schema_(self) -> Schema:
        """Names, kinds and categories of the columns."""
        return self._first.schema_.uncut()

    @property
    def target_(self) -> Column:  # type: ignore[override]  # an attribute of its members
        """The classes, as a column."""
        return self._first.target_

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: those of the members, one weight per member, and C − 1 biases."""
        members = sum(estimator.n_parameters_ for estimator in self.members_.values())
        return members + len(self.members_) + len(self.classes_) - 1

    @property
    def class_count_(self) -> Array:
        """Weight of the rows of each class, (C,), as the first member counts them."""
        return self._first.class_count_

    @property
    def class_log_prior_(self) -> Array:
        """Log p(y) in nats, (C,): of the training rows, or that of the parameter `priors`."""
        return self._first.class_log_prior_ if self.priors is None else np.log(check_priors(self.priors, self.target_))

    @property
    def class_prior_(self) -> Array:
        """p(y), (C,): of the training rows, or the parameter `priors`."""
        return np.exp(self.class_log_prior_)

    @property
    def _log_prior_ratio(self) -> Array:
        """Log of p(y) under `priors` over p(y) of the training rows, (C,), in nats; part of `class_bias_`."""
        return log_prior_ratio(self.priors, self.target_, getattr(self, "training_prior_", None))

    def _check_fitted(self) -> None:
        """Raise ValueError unless the fitted attributes, which may come from a file, agree with each other."""
        check_is_fitted(self, "members_")
        require(
            len(self.members_) > 0 and self.members_.keys() == self.member_weights_.keys(),
            "members or weights are missing",
        )
        schema, target = self.schema_, self.target_
        for member in self.members_.values():
            member._check_fitted()
            require(member.schema_.uncut() == schema, "the members are of different columns")
            require(member.target_ == target, "the members have different classes")
        for weight in self.member_weights_.values():
            check_not_negative("the weight of a member", weight)
        check_numbers("the biases of classes", self.class_bias_, (len(self.classes_),))
        if hasattr(self, "training_prior_"):
            check_numbers("the class prior of the training rows", self.training_prior_, (len(self.classes_),), 0.0, 1.0)
            _ = self._log_prior_ratio  # raises an error if the priors do not fit the classes
        self._check_importance(len(self.schema_.columns))

    @property
    def _first(self) -> GenerativeEstimator:
        check_is_fitted(self, "members_")
        return next(iter(self.members_.values()))

    @property
    def _pool(self) -> Pool:
        return Pool(np.array(list(self.member_weights_.values())), self.class_bias_)

    @property
    def _shares(self) -> Array:
        """Share of each member in the mixture."""
        weight = np.array(list(self.member_weights_.values()))
        return weight / weight.sum() if weight.sum() > 0 else np.full(len(weight), 1.0 / len(weight))

    def _predictor(self) -> tuple[Predictor, Array]:
        pool = self._pool
        return Predictor(tuple(self._models()), Pool(pool.weight, pool.bias - self._log_prior_ratio)), self._shares

    def _models(self) -> list[GenerativeModel]:
        check_is_fitted(self, "members_")
        return [estimator.model_ for estimator in self.members_.values()]


def log_prior_ratio(priors: Any, target: Column, training_prior: Array | None) -> Array:
    """Return log (priors / training_prior) in nats, (C,); 0 without priors.

    Added to the log posterior under the class frequencies of the training rows, it gives the log posterior under
    `priors` up to a constant per row (Saerens et al. 2002).

    Raises
    ------
    ValueError
        The priors do not fit the classes; one is 0, or its class has no training row of positive weight.
    """
    if priors is None:
        return np.zeros(len(target.categories))
    wanted = np.array(check_priors(priors, target))
    require(training_prior is not None, "the class prior of the training rows is missing")
    assert training_prior is not None
    for label, p, known in zip(target.categories, wanted, training_prior, strict=True):
        if not p > 0:
            raise ValueError(f"priors gives class {label!r} the probability 0; leave the rows of this class out")
        if not known > 0:
            raise ValueError(f"priors names class {label!r}, which no training row with a weight has; leave it out")
    ratio: Array = np.log(wanted) - np.log(training_prior)
    return ratio
