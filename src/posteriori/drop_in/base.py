"""Base of the drop-in classifiers: validation, sufficient statistics, fitted attributes, and Bayes' rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from posteriori import kernels
from posteriori.model import log_sum
from posteriori.sources import Source, local_source
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Batch, Codes, Column, Labels, Numbers, Schema
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.encoding import distinct_numbers
from posteriori.tables.schema import categorical_column
from posteriori.typing import Array

T = TypeVar("T")


@dataclass(frozen=True)
class LabelledRows:
    """Training rows of a call of `fit` or `partial_fit`.

    Attributes
    ----------
    source : Source
    classes : ndarray (C,)
    weighted : bool
        Whether the caller gave weights.
    past : JointStatistics or None
        Statistics of earlier rows.
    complete : bool
        Whether no more rows will follow, as in `fit`.
    dtype : type
        Precision of X.
    """

    source: Source
    classes: Array
    weighted: bool
    past: JointStatistics | None
    complete: bool
    dtype: type[np.floating[Any]]


class SummingClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Classifier that adds up statistics of the rows and derives its attributes from them: `fit` and `partial_fit`.

    A subclass implements `_update`.
    """

    classes_: Array
    statistics_: JointStatistics

    @abstractmethod
    def _update(self, rows: LabelledRows) -> None:
        """Set classes_, statistics_ and the fitted attributes."""

    # Learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled rows; a previous fit is discarded.

        Parameters
        ----------
        X : array-like (n, d)
            Only the discriminant analyses accept missing cells. `BernoulliNB` also accepts sparse matrices.
        y : array-like (n,)
            Label of each row.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0; a row of weight k counts as k rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A cell is NaN or infinite, labels are continuous, priors do not fit the classes, or a weight is
            negative.
        """
        return self._learn(X, y, None, sample_weight, refit=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; after the last call the model equals one fit of all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like (C,), optional
            All classes; required on the first call.

        Returns
        -------
        self
        """
        return self._learn(X, y, classes, sample_weight, refit=False)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, refit: bool) -> Self:
        self._validate_params()
        first = refit or not hasattr(self, "statistics_")
        if first and not refit and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y = self._validate(X, y, reset=first)
        seen = unique_labels(_distinct(y))
        known = seen if refit else self._known_classes(classes, first)
        unseen = np.setdiff1d(seen, known)
        if len(unseen):
            raise ValueError(f"The target label(s) {unseen} in y do not exist in the initial classes {known}")
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

        source = _open_labelled(X, y, known, weight)
        past = None if first else self.statistics_
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        self._update(LabelledRows(source, known, weight is not None, past, refit, dtype))
        return self

    def _known_classes(self, classes: Any, first: bool) -> Array:
        if first:
            return unique_labels(classes)
        if classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        return self.classes_

    def _validate(self, X: Any, *y: Any, reset: bool) -> Any:
        # Cells are checked to be finite per batch, while they are in cache: another pass would double the cost.
        accept_sparse = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        return validate_data(self, X, *y, reset=reset, accept_sparse=accept_sparse, ensure_all_finite=False)


class DropInClassifier(SummingClassifier, ABC):
    """Class prior times class-conditional density, with the attribute names of scikit-learn.

    A subclass defines the statistics (`_sum`), the attributes that follow from them (`_set_fitted_attributes`), and
    p(y) and p(x | y) from these attributes (`_log_prior`, `_log_density`). Users may also set the attributes
    themselves.
    """

    @abstractmethod
    def _sum(self, source: Source, weighted: bool) -> JointStatistics:
        """Return the sufficient statistics of the rows."""

    @abstractmethod
    def _set_fitted_attributes(self, statistics: JointStatistics, dtype: type[np.floating[Any]]) -> None:
        """Set the fitted attributes; dtype is the precision of X."""

    @abstractmethod
    def _log_prior(self) -> Array:
        """Return log p(y) in nats, (C,)."""

    @abstractmethod
    def _log_density(self, n_features: int) -> Callable[[Any], Array]:
        """Return the function that maps rows (n, n_features) to log p(x | y) in nats, float64 (n, C)."""

    def _update(self, rows: LabelledRows) -> None:
        statistics = self._sum(rows.source, rows.weighted)
        self.classes_ = rows.classes
        self.statistics_ = statistics if rows.past is None else rows.past + statistics
        self._set_fitted_attributes(self.statistics_, rows.dtype)

    # Predicting ---------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), in the order of `classes_`; NaN if no class can produce the row."""
        return self._map(X, _normalise)

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self._map(X, _log_normalise)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C)."""
        return self._map(X, lambda log_joint: log_joint)

    def _map(self, X: Any, finish: Callable[[Array], Array]) -> Array:
        check_is_fitted(self, "classes_")
        X = self._validate(X, reset=False)
        log_prior, log_density = self._log_prior(), self._log_density(X.shape[1])
        dtype = np.result_type(X.dtype, log_prior.dtype)

        def score(batch: Batch) -> Array:
            log_joint = log_density(batch.numbers.values)
            log_joint += log_prior
            return finish(log_joint).astype(dtype, copy=False)

        return open_rows(X).map(score)


def check_n_priors(priors: Any, n_classes: int) -> None:
    """Raise ValueError if the number of priors is not the number of classes."""
    if np.shape(priors) != (n_classes,):
        raise ValueError(f"Number of priors must match number of classes: {np.size(priors)} for {n_classes} classes.")


def fold(source: Source, sums: Callable[[Any, Assignment], tuple[Any, ...]]) -> JointStatistics:
    """Return the weight of each class, and the sum of `sums(values, assignment)` over all batches."""

    def accumulate(batch: Batch) -> JointStatistics:
        rows = batch.assignment
        assert rows is not None  # a source to learn from has labels
        weight = np.bincount(rows.component, rows.weight, rows.n_components)
        return JointStatistics(weight, sums(batch.numbers.values, rows))

    return source.reduce(accumulate)


def _normalise(log_joint: Array) -> Array:
    kernels.normalise(log_joint)
    return log_joint


def _log_normalise(log_joint: Array) -> Array:
    with np.errstate(invalid="ignore"):
        log_joint -= log_sum(log_joint)[:, np.newaxis]
    return log_joint


def _distinct(y: Array) -> Array:
    # For integers a single pass; np.unique would hash or sort them.
    return np.array(distinct_numbers(y), y.dtype) if y.dtype.kind in "iu" else np.unique(y)


# Where the rows live --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OneBatch:
    """Sparse matrix as a source with a single batch, because a sparse product already sums over rows."""

    batch: Batch

    @property
    def schema(self) -> Schema:
        """Empty schema: columns of a sparse matrix are never read one by one."""
        return self.batch.schema

    def numeric_columns(self) -> _OneBatch:
        """Return self: the rows are already in memory."""
        return self

    def with_schema(self, schema: Schema) -> _OneBatch:
        """Return the same rows with the cut points of another schema of the same columns."""
        return _OneBatch(self.batch.with_schema(schema))

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Return accumulate(batch)."""
        return accumulate(self.batch)

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch)."""
        return score(self.batch)


def open_rows(X: Any) -> Source:
    """Return a source of validated rows."""
    if issparse(X):
        return _one_batch(X)
    schema = _numeric_schema(X.shape[1])
    return local_source(ArrayTable(X), schema, range(X.shape[1]))


def _open_labelled(X: Any, y: Array, classes: Array, weight: Array | None) -> Source:
    labels = Labels(ArrayTable(y.reshape(-1, 1)))
    target = categorical_column("y", classes.tolist(), classes.dtype.str, declared=True)
    if issparse(X):
        n = X.shape[0]
        component = labels.components(target, slice(0, n))
        weight = np.ones(n) if weight is None else weight
        return _one_batch(X, Assignment(component, weight, len(classes)))
    schema = _numeric_schema(X.shape[1])
    return local_source(ArrayTable(X), schema, range(X.shape[1]), labels, target, weight)


def _numeric_schema(n_features: int) -> Schema:
    return Schema(tuple(Column(f"x{j}", "continuous") for j in range(n_features)))


def _one_batch(X: Any, assignment: Assignment | None = None) -> _OneBatch:
    no_codes = Codes(np.empty((X.shape[0], 0), np.uint8), ())
    return _OneBatch(Batch(Schema(()), 0, Numbers(X), no_codes, {}, assignment))
