"""What every estimator does with the model it has, whatever it was learned for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.validation import categorical_places
from posteriori.densities import ungrouped
from posteriori.invariants import require
from posteriori.model import Block, GenerativeModel
from posteriori.sources import LabelledSource, source_of
from posteriori.statistics import ColumnRanges, JointStatistics
from posteriori.tables import Batch, Column, Schema, Table, read_table
from posteriori.tables.matching import matched_places
from posteriori.typing import Array

_NO_TRACE = "the trace of log-likelihoods is no list of numbers"


class ModelEstimator(BaseEstimator, ABC):
    """Reads rows under a `GenerativeModel`, and scores them."""

    distributions: Any
    categorical_features: Any
    n_jobs: int | None

    @supports_partitions("log_density")
    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,): lower for more unusual rows."""
        return self._map(X, lambda model: model.log_evidence)

    @property
    def schema_(self) -> Schema:
        """What the columns are."""
        return self._fitted.schema

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        return self._fitted.n_parameters

    @property
    def n_iter_(self) -> int:
        """Passes over the rows to learn from them: steps of EM, or 1 where nothing was hidden."""
        if not hasattr(self, "log_likelihood_trace_"):
            raise AttributeError(f"this {type(self).__name__} has not learned from rows")
        return max(1, len(self.log_likelihood_trace_))

    @property
    def _ranges(self) -> ColumnRanges | None:
        """The ranges of the columns in the rows that were learned from; None where they are not known."""
        statistics: JointStatistics | None = getattr(self, "statistics_", None)
        return None if statistics is None else statistics.ranges

    def _set_fitted_attributes(self, model: GenerativeModel, target: Column) -> None:
        """Set the model, and what the columns of its rows and its components are."""
        self.model_ = model
        self.target_ = target
        self.n_features_in_ = len(model.schema.columns)
        if model.schema.named:
            self.feature_names_in_ = np.array(model.schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_fitted(self) -> None:
        """Raise ValueError unless what was learned fits together; of an estimator that comes from a file."""
        check_is_fitted(self, "model_")
        target, model = self.target_, self.model_
        require(target.kind == "categorical", "the target is no column of classes")
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
        """Return which density makes which columns."""

    def _categorical(self, names: Sequence[str]) -> set[int]:
        """Return which of the features are categorical whatever their data type."""
        return categorical_places(self.categorical_features, self.distributions, names)

    def _places(self, table: Table, target: str | None = None) -> tuple[int, ...]:
        """Return where the columns of the model stand in a table."""
        learned = hasattr(self, "statistics_")
        return matched_places(table, self.model_.schema, type(self).__name__, target, warn_of_lost_names=learned)

    def _source(self, X: Any) -> LabelledSource:
        check_is_fitted(self, "model_")
        table = read_table(X)
        positions = self._places(table, self.model_.schema.target)
        return source_of(table, self.model_.schema, positions, n_jobs=self.n_jobs)

    def _map(self, X: Any, score: Callable[[GenerativeModel], Callable[[Batch], Array]]) -> Array:
        source = self._source(X)
        return source.map(score(self.model_))

    @property
    def _fitted(self) -> GenerativeModel:
        try:
            return self.__dict__["model_"]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first") from None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
