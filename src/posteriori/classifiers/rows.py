"""Rows to predict, under the schema of a fitted estimator, and what it knows of the rows that it was trained on."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.interfaces import FittedClassifier, FittedEstimator
from posteriori.engines import engine_of
from posteriori.fitting.fitted import record_of, set_record
from posteriori.fitting.held_out_figures import HeldOutFigures, class_index
from posteriori.model_selection import in_words
from posteriori.reading import read_rows
from posteriori.reading.matching import matched_places
from posteriori.sources import LabelledSource, source_of
from posteriori.statistics.row_records import RowFingerprints, hash_rows
from posteriori.support.typing import Array
from posteriori.tables import Table
from posteriori.tables.partitioned import PartitionedTable
from posteriori.tables.polars import is_polars_frame

Method = TypeVar("Method", bound=Callable[..., Any])
_Fitted = TypeVar("_Fitted", bound=FittedEstimator)


def places_in(estimator: FittedEstimator, table: Table) -> tuple[int, ...]:
    """Return the position in a table of each column of the schema of a fitted estimator, as `matched_places` does."""
    # Names given with parameters are optional: rows without names are taken by position, without a warning.
    schema, name, named = estimator.schema_, type(estimator).__name__, estimator._trained
    return matched_places(table, schema, name, schema.target, warn_of_lost_names=named, may_lack=True)


def rows_to_predict(estimator: FittedEstimator, X: Any) -> LabelledSource:
    """Return rows under the schema of a fitted estimator."""
    if "fitted_" not in vars(estimator):  # the check of scikit-learn takes longer than one row
        check_is_fitted(estimator)
    schema = estimator.schema_
    table = read_rows(X, schema, type(estimator).__name__)
    places = places_in(estimator, table)
    source = source_of(table, schema, places, n_jobs=estimator.n_jobs)
    return source.with_width(estimator._posterior.n_scores)


def supports_partitions(title: str) -> Callable[[Method], Method]:
    """Return a decorator with which a method of an estimator also takes tables in partitions, and computes lazily.

    For a Dask table the method returns a Dask array. For a Spark DataFrame it returns the DataFrame with one more
    column, of this title.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def evaluate(self: Any, X: Any) -> Any:
            engine = None if isinstance(X, np.ndarray) or is_polars_frame(X) else engine_of(X)
            if engine is None or not engine.predicts_lazily:
                return method(self, X)
            check_is_fitted(self)
            table = engine.open(X)
            # Raises errors now instead of later, on the workers.
            places_in(self, table)
            with warnings.catch_warnings():  # about the example row, which is not the user's
                warnings.simplefilter("ignore")
                example: Array = np.asarray(method(self, self.sample(1, random_state=0)[0]))
            return table.map_rows(functools.partial(method, _for_workers(self)), title, example)

        return cast(Method, evaluate)

    return decorate


def _for_workers(estimator: _Fitted) -> _Fitted:
    """Return an estimator with the same predictions, without its statistics, which may be large."""
    light = copy.copy(estimator)
    light.n_jobs = 1
    light.fitted_ = light.fitted_.without_rows()
    return light


def record_rows(estimator: FittedClassifier, X: Any) -> None:
    """Record the training rows X in a fitted classifier and its model file, as `RowFingerprints`.

    `fit`, `unlearn` and `merge` drop the record, and `partial_fit` keeps it.
    """
    set_record(estimator, fingerprints=RowFingerprints.of(estimator._source(X).map(hash_rows)))


def share_of_seen_rows(estimator: FittedClassifier, X: Any) -> float:
    """Return the share of the rows X that the classifier was trained on, as far as its record shows; else 0."""
    record = record_of(estimator).fingerprints
    return 0.0 if record is None else record.overlap(estimator._source(X).map(hash_rows))


def kept_figures(estimator: FittedClassifier, positive: Any = None) -> HeldOutFigures | None:
    """Return the figures of held-out predictions that a classifier keeps, with the class of interest; None without.

    Raises
    ------
    ValueError
        `positive` is not a class.
    """
    found = record_of(estimator).figures
    chosen = chosen_class(estimator, positive)
    return None if found is None else replace(found, positive=chosen)


def kept_sentences(estimator: FittedClassifier, positive: Any = None) -> list[str]:
    """Return the sentences on held-out predictions that a classifier keeps; none if it keeps none.

    Where rows were held out by another way than folds, the first sentence says which.
    """
    found = kept_figures(estimator, positive)
    if found is None:
        return []
    phrases = in_words.class_phrases(estimator.classes_.tolist(), estimator.schema_.target)
    return [*([] if found.by_folds else [found.how]), *in_words.sentences(found, phrases)]


def chosen_class(estimator: FittedClassifier, positive: Any = None) -> int | None:
    """Return the index of the class of interest: the given one, else that of the fit; None without.

    Raises
    ------
    ValueError
        `positive` is not a class.
    """
    if positive is not None:
        return class_index(positive, estimator.classes_.tolist())
    found = record_of(estimator).figures
    return None if found is None else found.of_interest


def require_in_memory(table: Table, what: str) -> None:
    """Raise ValueError if a table is in partitions, because the result may not fit into this process."""
    if isinstance(table, PartitionedTable):
        raise ValueError(f"{what} is for some rows; take them out of the cluster's table first")
