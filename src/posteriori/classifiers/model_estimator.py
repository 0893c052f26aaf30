"""Base of the estimators with one `GenerativeModel`: scores of rows, fitted attributes and their checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.row_reading import RowReadingEstimator
from posteriori.classifiers.validation import categorical_places, kept_places
from posteriori.densities import ungrouped
from posteriori.invariants import require
from posteriori.model import Block, GenerativeModel
from posteriori.statistics import ColumnRanges, JointStatistics
from posteriori.tables import Batch, Column, Schema
from posteriori.typing import Array

_NO_TRACE = "the trace of log-likelihoods is not a list of numbers"


class ModelEstimator(RowReadingEstimator, ABC):
    """Scores rows by a `GenerativeModel`."""

    distributions: Any
    categorical_features: Any
    keep: Any
    dates: Any = "parts"
    model_: GenerativeModel
    target_: Column
    _fitted_attribute = "model_"

    @supports_partitions("log_density")
    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,): lower for more unusual rows."""
        return self._map(X, lambda model: model.log_evidence)

    @property
    def schema_(self) -> Schema:
        """The columns: names, kinds and categories."""
        return self._fitted.schema

    @property
    def _trained(self) -> bool:
        return hasattr(self, "statistics_")

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        return self._fitted.n_parameters

    @property
    def n_iter_(self) -> int:
        """Number of passes over the rows in training: EM steps, or 1."""
        if not hasattr(self, "log_likelihood_trace_"):
            raise AttributeError(f"this {type(self).__name__} has not learned from rows")
        return max(1, len(self.log_likelihood_trace_))

    @property
    def _ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        statistics: JointStatistics | None = getattr(self, "statistics_", None)
        return None if statistics is None else statistics.ranges

    def _set_fitted_attributes(self, model: GenerativeModel, target: Column) -> None:
        """Set the model, the classes or components, and the features."""
        self.model_ = model
        self.target_ = target
        self.n_features_in_ = model.schema.n_features
        if model.schema.named:
            self.feature_names_in_ = np.array(model.schema.given, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_fitted(self) -> None:
        """Raise ValueError unless the fitted attributes, which may come from a file, agree with each other."""
        check_is_fitted(self, "model_")
        target, model = self.target_, self.model_
        require(target.kind == "categorical", "the target is not a column of classes")
        require(len(target.categories) == model.n_classes, "the model has not one component or more for each class")
        require(len(target.kinds) <= 1, "the classes are of several kinds")
        if hasattr(self, "log_likelihood_trace_"):
            require(self.log_likelihood_trace_.shape[1:] == () and self.log_likelihood_trace_.ndim == 1, _NO_TRACE)
            require(self.log_likelihood_trace_.dtype.kind in "fi", _NO_TRACE)
        if hasattr(self, "statistics_"):
            model.check_statistics(self.statistics_)
            # Files of earlier versions hold densities without groups of categories.
            wanted, found = (
                [(type(ungrouped(block.density)), block.columns) for block in blocks]
                for blocks in (self._blocks(model.schema), model.blocks)
            )
            require(found == wanted, f"a {type(self).__name__} with these parameters has other densities")

    @abstractmethod
    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return the densities and their columns."""

    def _categorical(self, names: Sequence[str]) -> set[int]:
        """Return the features that are categorical whatever their data type."""
        return categorical_places(self.categorical_features, self.distributions, names)

    def _kept(self, names: Sequence[str]) -> set[int] | None:
        """Return which of the features are modelled even if they identify rows; None for all."""
        return kept_places(self.keep, self.categorical_features, self.distributions, names)

    def _map(self, X: Any, score: Callable[[GenerativeModel], Callable[[Batch], Array]]) -> Array:
        return self._source(X).map(score(self.model_))

    @property
    def _fitted(self) -> GenerativeModel:
        if "model_" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self.model_
