"""Base of the drop-in classifiers: rows, validation, sufficient statistics, fit and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from posteriori import kernels
from posteriori.model import log_normalised
from posteriori.reading import LabelColumn
from posteriori.reading.labels import reject_extreme_weights
from posteriori.sources import Source, source_of
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Bags, Batch, Column, Schema, Table
from posteriori.tables.arrays import ArrayTable, distinct_numbers
from posteriori.tables.blocks import open_sparse
from posteriori.tables.schema import categorical_column


@dataclass(frozen=True)
class LabelledRows:
    """Training rows of a call of `fit` or `partial_fit`."""

    source: Source
    classes: Array  # (C,)
    weighted: bool  # whether the caller gave weights
    past: JointStatistics | None  # statistics of earlier rows
    complete: bool  # whether no more rows will follow, as in `fit`
    dtype: type[np.floating[Any]]  # precision of X

    def fold(self, sums: Callable[[Any, Assignment], tuple[Any, ...]]) -> JointStatistics:
        """Return the weight of each class, and the sum of `sums(values, assignment)` over all batches."""

        def accumulate(batch: Batch) -> JointStatistics:
            rows = batch.assignment
            assert rows is not None  # a source to learn from has labels
            weight = np.bincount(rows.component, rows.weight, rows.n_components)
            return JointStatistics(weight, sums(cells_of(batch), rows))

        return self.source.reduce(accumulate)

    def with_past(self, statistics: JointStatistics) -> JointStatistics:
        """Return the statistics of these rows plus those of the earlier rows."""
        return statistics if self.past is None else self.past + statistics


def cells_of(batch: Batch) -> Array | Bags:
    """Return the cells of a batch of dense rows as an array (n, d), of sparse rows as bags."""
    return batch.bags[0] if batch.bags else batch.numbers.values


def open_rows(X: Any) -> Source:
    """Return a source of validated rows."""
    table, schema = _open(X)
    return source_of(table, schema, range(len(schema.columns)), local=True)


def open_labelled(X: Any, y: Array, classes: Array, weight: Array | None) -> Source:
    """Return a source of validated rows with labels and weights."""
    labels = LabelColumn(ArrayTable(y.reshape(-1, 1)))
    target = categorical_column("y", classes.tolist(), classes.dtype.str, declared=True)
    table, schema = _open(X)
    return source_of(table, schema, range(len(schema.columns)), labels, target, weight, local=True)


def _open(X: Any) -> tuple[Table, Schema]:
    if issparse(X):
        table = open_sparse(X)
        return table, Schema((table.column(0, False),), table.container)
    return ArrayTable(X), Schema(tuple(Column(f"x{j}", "continuous") for j in range(X.shape[1])))


def require_finite(values: Any, name: str, allow_nan: bool = False) -> None:
    """Raise the ValueError of scikit-learn unless all cells of X are finite, or NaN if that is allowed."""
    with np.errstate(invalid="ignore"):  # ∞ − ∞ in its sum
        assert_all_finite(values, allow_nan=allow_nan, estimator_name=name, input_name="X")


@dataclass(frozen=True)
class RowScores:
    """Class scores of rows, from the fitted attributes."""

    # maps rows, an array (n, d) or `Bags`, to log p(x, y) + const(x) in nats, float64 (n, C)
    score: Callable[[Any], Array]
    # Precision of the fitted attributes. Results have the higher precision of the two, this and that of the rows.
    dtype: Any


class DropInClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Class prior times class-conditional density, with the attribute names of scikit-learn.

    A subclass defines the sufficient statistics (`_statistics`), the attributes that follow from them
    (`_set_fitted_attributes`), and the class scores of rows by these attributes (`_scores`). Users may also set the
    attributes themselves.
    """

    classes_: Array
    statistics_: JointStatistics

    @abstractmethod
    def _statistics(self, rows: LabelledRows) -> JointStatistics:
        """Return the sufficient statistics of these and all earlier rows."""

    @abstractmethod
    def _set_fitted_attributes(self, rows: LabelledRows) -> None:
        """Set the attributes that follow from `statistics_`; raise LinAlgError if they do not determine the model."""

    @abstractmethod
    def _scores(self, n_features: int) -> RowScores:
        """Return the class scores of rows with n_features cells."""

    # Learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled rows; a previous fit is discarded.

        Parameters
        ----------
        X : array-like (n, d)
            Only the discriminant analyses accept missing cells. `BernoulliNB`, `ComplementNB` and `MultinomialNB` also
            accept sparse matrices.
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
        X, y = self._validate(X, _plain_labels(y), reset=first)
        with np.errstate(invalid="ignore"):  # of numbers that no integer holds
            seen = unique_labels(_distinct(y))
        known = seen if refit else self._known_classes(_plain_labels(classes), first)
        unseen = np.setdiff1d(seen, known)
        if len(unseen):
            raise ValueError(f"The target label(s) {unseen} in y do not exist in the initial classes {known}")
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            reject_extreme_weights(weight)

        source = open_labelled(X, y, known, weight)
        past = None if first else self.statistics_
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        self._update(LabelledRows(source, known, weight is not None, past, refit, dtype))
        return self

    def _known_classes(self, classes: Any, first: bool) -> Array:
        if first:
            known: Array = unique_labels(classes)
            return known
        if classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        return self.classes_

    def _validate(self, X: Any, *y: Any, reset: bool) -> Any:
        # Cells are checked to be finite per batch, while they are in cache: another pass would double the cost.
        accept_sparse = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        try:
            return validate_data(self, X, *y, reset=reset, accept_sparse=accept_sparse, ensure_all_finite=False)
        except OverflowError:
            raise ValueError("X holds an integer too large for a float; rescale its column") from None

    def _update(self, rows: LabelledRows) -> None:
        statistics = self._statistics(rows)
        self.classes_, self.statistics_ = rows.classes, statistics
        self._clear()
        try:
            self._set_fitted_attributes(rows)
        except ValueError as error:
            self._undetermined = str(error)
            if rows.complete or not isinstance(error, np.linalg.LinAlgError):
                raise

    def _clear(self) -> None:
        # Attributes of an earlier fit with another solver or other parameters must not remain.
        kept = {"classes_", "statistics_", "n_features_in_", "feature_names_in_"}
        for name in list(vars(self)):
            if (name.endswith("_") and name not in kept) or name == "_undetermined":
                delattr(self, name)

    # Predicting ---------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        best = self._map(X, lambda scores: scores.argmax(axis=1))
        labels: Array = self.classes_[best]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that are predicted correctly."""
        return float(super().score(X, _plain_labels(y), sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), in the order of `classes_`; NaN if no class can produce the row."""
        return self._map(X, _normalise)

    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self._map(X, log_normalised)

    def _map(self, X: Any, finish: Callable[[Array], Array]) -> Array:
        """Return `finish(scores)` of the class scores of all rows; floats have the precision of rows and model."""
        self._require_fitted()
        X = self._validate(X, reset=False)
        scores = self._scores(X.shape[1])
        dtype = result_dtype(X, scores.dtype)

        def score(batch: Batch) -> Array:
            finished = finish(scores.score(cells_of(batch)))
            return finished.astype(dtype, copy=False) if finished.dtype.kind == "f" else finished

        return open_rows(X).map(score)

    def _require_fitted(self) -> None:
        if hasattr(self, "_undetermined"):
            raise NotFittedError(f"the rows so far do not determine the model: {self._undetermined}")
        check_is_fitted(self, "classes_")


class NaiveBayesClassifier(DropInClassifier, ABC):
    """Drop-in classifier whose scores are log p(x, y) = log p(y) + log p(x | y), without a constant.

    A subclass defines log p(y) (`_log_prior`) and log p(x | y) (`_log_density`) by the fitted attributes.
    """

    @abstractmethod
    def _log_prior(self) -> Array:
        """Return log p(y) in nats, (C,)."""

    @abstractmethod
    def _log_density(self, n_features: int) -> Callable[[Any], Array]:
        """Return the function that maps rows (n, n_features) to log p(x | y) in nats, float64 (n, C)."""

    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C)."""
        return self._map(X, lambda log_joint: log_joint)

    def _scores(self, n_features: int) -> RowScores:
        log_prior, log_density = self._log_prior(), self._log_density(n_features)

        def score(values: Any) -> Array:
            log_joint = log_density(values)
            log_joint += log_prior
            return log_joint

        return RowScores(score, log_prior.dtype)


def result_dtype(X: Any, dtype: Any) -> Any:
    """Return the data type of results for rows X by attributes of a data type; integers count as float64."""
    return np.result_type(X.dtype if X.dtype.kind == "f" else np.float64, dtype)


def class_prior(given: Any, weight: Array, name: str = "priors") -> Array:
    """Return p(y), (C,), as given or as the share of each class in the weight of the rows.

    Parameters
    ----------
    given : array-like (C,) or None
    weight : ndarray (C,)
        Weight of the rows of each class.
    name : str
        What the error calls the given probabilities.

    Raises
    ------
    ValueError
        Their number is not the number of classes, or one is negative.
    """
    if given is None:
        share: Array = weight / weight.sum()
        return share
    if np.shape(given) != weight.shape:
        raise ValueError(f"Number of priors must match number of classes: {np.size(given)} for {len(weight)} classes.")
    prior = np.array(given)
    if (prior < 0).any():
        raise ValueError(f"{name} must be non-negative: one is {prior.min():g}.")
    return prior


def _normalise(scores: Array) -> Array:
    kernels.normalise(scores)
    return scores


def _plain_labels(y: Any) -> Any:
    """Return labels of NumPy's StringDType, which scikit-learn does not read, as an array of objects."""
    return y.astype(object) if isinstance(y, np.ndarray) and y.dtype.kind == "T" else y


def _distinct(y: Array) -> Array:
    # For integers a single pass; np.unique would hash or sort them.
    return np.array(distinct_numbers(y), y.dtype) if y.dtype.kind in "iu" else np.unique(y)
