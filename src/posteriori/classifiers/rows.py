"""Rows of tables for fitted estimators, the methods that partitions compute in place, and the fitted attributes."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.densities import ungrouped
from posteriori.engines import engine_of
from posteriori.invariants import require
from posteriori.model import GenerativeModel
from posteriori.sources import LabelledSource, source_of
from posteriori.statistics.row_fingerprints import RowFingerprints, hash_rows
from posteriori.tables import Column, Table, read_rows
from posteriori.tables.matching import matched_places
from posteriori.typing import Array

Method = TypeVar("Method", bound=Callable[..., Any])
FINGERPRINTS = "row_fingerprints_"
_NO_TRACE = "the trace of log-likelihoods is not a list of numbers"
_ALERTS = "alerts_"  # on the columns of the training rows, recorded by the command line


def places_in(estimator: Any, table: Table, target: str | None = None) -> tuple[int, ...]:
    """Return the position in a table of each column of the schema of a fitted estimator."""
    # Names given with parameters are optional: rows without names are taken by position, without a warning.
    named = estimator._trained
    return matched_places(table, estimator.schema_, type(estimator).__name__, target, warn_of_lost_names=named)


def rows_to_predict(estimator: Any, X: Any) -> LabelledSource:
    """Return rows under the schema of a fitted estimator."""
    if estimator._fitted_attribute not in vars(estimator):
        check_is_fitted(estimator, estimator._fitted_attribute)
    schema = estimator.schema_
    table = read_rows(X, schema, type(estimator).__name__)
    source = source_of(table, schema, places_in(estimator, table, schema.target), n_jobs=estimator.n_jobs)
    return source.with_width(estimator._posterior.n_scores)


def supports_partitions(title: str) -> Callable[[Method], Method]:
    """Return a decorator with which a method of an estimator also takes tables in partitions, and computes lazily.

    For a Dask table the method returns a Dask array. For a Spark DataFrame it returns the DataFrame with one more
    column, of this title.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def evaluate(self: Any, X: Any) -> Any:
            engine = engine_of(X)
            if engine is None or not engine.predicts_lazily:
                return method(self, X)
            check_is_fitted(self)
            table = engine.open(X)
            places_in(self, table, self.schema_.target)  # raises errors now instead of later, on the workers
            with warnings.catch_warnings():  # about the example row, which is not the user's
                warnings.simplefilter("ignore")
                example: Array = np.asarray(method(self, self.sample(1, random_state=0)[0]))
            return table.map_rows(functools.partial(method, _for_workers(self)), title, example)

        return cast(Method, evaluate)

    return decorate


def _for_workers(estimator: Any) -> Any:
    """Return an estimator with the same predictions, without its statistics, which may be large."""
    light = copy.copy(estimator)
    light.n_jobs = 1
    for name in ("statistics_", "transduction_", "out_of_fold_", "_held_out_sample", "log_likelihood_trace_"):
        vars(light).pop(name, None)
    if hasattr(light, "members_"):
        light.members_ = {name: _for_workers(one) for name, one in light.members_.items()}
    return light


def record_rows(estimator: Any, X: Any) -> None:
    """Record the training rows X in a fitted classifier and its model file, as `RowFingerprints`.

    `fit`, `unlearn` and `merge` drop the record, and `partial_fit` keeps it.
    """
    setattr(estimator, FINGERPRINTS, RowFingerprints.of(estimator._source(X).map(hash_rows)))


def share_of_seen_rows(estimator: Any, X: Any) -> float:
    """Return the share of the rows X that the classifier was trained on, as far as its record shows; else 0."""
    record: RowFingerprints | None = getattr(estimator, FINGERPRINTS, None)
    return 0.0 if record is None else record.overlap(estimator._source(X).map(hash_rows))


def forget_rows(estimator: Any) -> None:
    """Drop the record of training rows and the alerts on them, which are no longer those of the classifier."""
    for name in (FINGERPRINTS, _ALERTS):
        vars(estimator).pop(name, None)


def set_model(estimator: Any, model: GenerativeModel, target: Column) -> None:
    """Set the model of an estimator, its classes or components, and its features."""
    estimator.model_ = model
    estimator.target_ = target
    estimator.n_features_in_ = model.schema.n_features
    if model.schema.named:
        estimator.feature_names_in_ = np.array(model.schema.given, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def check_model_of(estimator: Any) -> None:
    """Raise ValueError unless the model, the classes and the statistics of an estimator agree with each other."""
    check_is_fitted(estimator, "model_")
    target, model = estimator.target_, estimator.model_
    require(target.kind == "categorical", "the target is not a column of classes")
    require(len(target.categories) == model.n_classes, "the model has not one component or more for each class")
    require(len(target.kinds) <= 1, "the classes are of several kinds")
    if hasattr(estimator, "log_likelihood_trace_"):
        require(
            estimator.log_likelihood_trace_.shape[1:] == () and estimator.log_likelihood_trace_.ndim == 1, _NO_TRACE
        )
        require(estimator.log_likelihood_trace_.dtype.kind in "fi", _NO_TRACE)
    if hasattr(estimator, "statistics_"):
        model.check_statistics(estimator.statistics_)
        # Files of earlier versions hold densities without groups of categories.
        wanted, found = (
            [(type(ungrouped(block.density)), block.columns) for block in blocks]
            for blocks in (estimator._blocks(model.schema), model.blocks)
        )
        require(found == wanted, f"a {type(estimator).__name__} with these parameters has other densities")
