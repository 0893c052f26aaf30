"""Rows of tables for estimators: training rows with labels and weights, and rows to predict."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.fitted import record_of, set_record
from posteriori.classifiers.interfaces import FittedClassifier, FittedEstimator, ModelEstimator
from posteriori.classifiers.two_values import takes_two_values, warn_of_third_values, with_two_values
from posteriori.classifiers.validation import (
    categorical_places,
    columns_of,
    components_of,
    em_of,
    kept_places,
    labels_of,
    labels_to_learn,
    make_label_model,
    reject_quantity,
    stated_places,
    text_places,
)
from posteriori.engines import engine_of
from posteriori.learning.fit import TrainingRows
from posteriori.model_selection import in_words
from posteriori.model_selection.held_out import held_out_weight
from posteriori.model_selection.held_out_figures import HeldOutFigures, class_index
from posteriori.sources import LabelledSource, source_of
from posteriori.statistics.row_records import RowFingerprints, hash_rows
from posteriori.support.checks import is_missing
from posteriori.support.typing import Array
from posteriori.tables import (
    Batch,
    Column,
    LabelColumn,
    PartialLabels,
    Schema,
    Table,
    check_weights,
    infer_schema,
    read_labels,
    read_rows,
    read_table,
    read_teaching_labels,
)
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.labels import warn_of_labels_among_features
from posteriori.tables.matching import matched_places
from posteriori.tables.pandas import PandasTable
from posteriori.tables.polars import PolarsTable, is_polars_frame
from posteriori.tables.schema import categorical_column
from posteriori.tables.texts import CountedText
from posteriori.user_warnings import warn

Method = TypeVar("Method", bound=Callable[..., Any])
_Fitted = TypeVar("_Fitted", bound=FittedEstimator)


def places_in(
    estimator: FittedEstimator, table: Table, target: str | None = None, *, may_lack: bool = False
) -> tuple[int, ...]:
    """Return the position in a table of each column of the schema of a fitted estimator, as `matched_places` does."""
    # Names given with parameters are optional: rows without names are taken by position, without a warning.
    named = estimator._trained
    return matched_places(
        table, estimator.schema_, type(estimator).__name__, target, warn_of_lost_names=named, may_lack=may_lack
    )


def rows_to_predict(estimator: FittedEstimator, X: Any) -> LabelledSource:
    """Return rows under the schema of a fitted estimator."""
    if "fitted_" not in vars(estimator):  # the check of scikit-learn takes longer than one row
        check_is_fitted(estimator)
    schema = estimator.schema_
    table = read_rows(X, schema, type(estimator).__name__)
    places = places_in(estimator, table, schema.target, may_lack=True)
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
            places_in(self, table, self.schema_.target, may_lack=True)
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


def read_first_rows(
    estimator: ModelEstimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    complete: bool = True,
) -> TrainingRows:
    """Read training rows, and infer the schema and the classes from them.

    Parameters
    ----------
    X, y, sample_weight
        As in `fit`.
    classes : array-like, optional
        All classes; default: those among the labels.
    complete : bool, default True
        Whether these are all training rows. EM needs all of them: if more follow, hidden labels are an error.

    Returns
    -------
    TrainingRows
        The rows with their schema, labels and weights, and the classes.

    Raises
    ------
    ValueError, TypeError
        As in `fit`.
    """
    estimator._validate_params()
    table = read_table(X)
    labels = _read_labels(estimator, y, table, complete)
    warn_of_labels_among_features(y, table)
    columns = _feature_positions(table, labels)
    names = [table.names[j] for j in columns]
    given = columns_of(estimator)
    if not estimator.reads_counts:
        given.require_no_text(estimator)
    chosen = categorical_places(given.categorical_features, estimator.distributions, names)
    kept = kept_places(given.keep, given.categorical_features, estimator.distributions, names)
    keep = None if kept is None else [columns[j] for j in kept]
    declared = [columns[j] for j in chosen]
    counted: dict[int, CountedText] = {}
    schema = infer_schema(
        table,
        columns,
        declared,
        labels.name,
        keep=keep,
        dates=given.dates,
        reads_counts=estimator.reads_counts,
        texts=text_places(given.text if estimator.reads_counts else None, given.keep, columns, names, chosen),
        counted=counted,
    )
    if takes_two_values(estimator):
        stated_columns = {columns[j] for j in stated_places(estimator.distributions, names)}
        weight = check_weights(sample_weight, table.n_rows)
        schema = with_two_values(schema, table, schema.spread(columns), estimator.distributions, stated_columns, weight)
    target = _declared_classes(classes, labels, labels_of(estimator).unlabelled == "learn")
    places = schema.spread(columns)
    rows = _assemble(estimator, table, schema, places, labels, target, sample_weight, complete, counted)
    return replace(rows, source=with_counted_categories(rows.source))


def with_counted_categories(source: LabelledSource) -> LabelledSource:
    """Return rows under a schema without the inferred categories that only rows of weight 0 hold: these are unseen.

    Takes a pass over the rows if some have weight 0, or may have: rows without label that are left out.
    """
    schema = source.schema
    inferred = [j for j in schema.of_kind("categorical") if not schema.columns[j].declared]
    of_weight_0 = source.unlabelled_weight == 0 or not (source.weight is None or source.weight.all())
    if not (of_weight_0 and inferred):
        return source
    seen: _SeenCategories = source.reduce(_SeenCategories.of)
    columns = list(schema.columns)
    for j in inferred:
        shown = seen.of_columns[schema.coded.index(j)][1:]
        kept = [category for category, is_shown in zip(columns[j].categories, shown, strict=True) if is_shown]
        columns[j] = replace(columns[j], categories=tuple(kept))
    return source.with_schema(replace(schema, columns=tuple(columns)))


@dataclass(frozen=True)
class _SeenCategories:
    """Which codes of each coded column rows of positive weight hold, (K + 1,) booleans each; + unites parts."""

    of_columns: tuple[Array, ...]

    @classmethod
    def of(cls, batch: Batch) -> _SeenCategories:
        assert batch.assignment is not None
        codes = batch.codes.values[batch.assignment.weight > 0]
        widths = [k + 1 for k in batch.codes.cardinalities]
        return cls(tuple([np.bincount(column, minlength=k) > 0 for column, k in zip(codes.T, widths, strict=True)]))

    def __add__(self, other: _SeenCategories) -> _SeenCategories:
        return _SeenCategories(tuple(map(np.logical_or, self.of_columns, other.of_columns)))


def read_further_rows(
    estimator: ModelEstimator,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    complete: bool = True,
) -> TrainingRows:
    """Read rows under the schema and the classes of the fitted model, extended by new categories and classes.

    Parameters
    ----------
    X, y, sample_weight
        As in `partial_fit`.
    classes : array-like, optional
        All classes; they must be the same as on the first call.
    complete : bool, default True
        As in `read_training_rows`.

    Returns
    -------
    TrainingRows
        Its schema and target equal those of the model if the rows have no new category and no new class.

    Raises
    ------
    ValueError, TypeError
        As in `partial_fit`.
    """
    estimator._validate_params()
    table = read_table(X)
    labels = _read_labels(estimator, y, table, complete)
    _feature_positions(table, labels)  # raises an error if the target is the only column
    positions = places_in(estimator, table, target=labels.name)
    counted: dict[int, CountedText] = {}
    schema = _extended_schema(estimator, table, positions, counted)
    target = _extended_classes(estimator, classes, labels)
    return _assemble(estimator, table, schema, positions, labels, target, sample_weight, complete, counted)


def _assemble(
    estimator: ModelEstimator,
    table: Table,
    schema: Schema,
    positions: Sequence[int],
    labels: LabelColumn | PartialLabels,
    target: Column,
    sample_weight: Any,
    complete: bool,
    counted: Mapping[int, CountedText],
) -> TrainingRows:
    weight = check_weights(sample_weight, table.n_rows)
    of_class = components_of(em_of(estimator).components_per_class, target)
    label_model = make_label_model(
        labels_of(estimator).label_noise, of_class, isinstance(labels, PartialLabels), target
    )
    if label_model is not None and not complete:
        raise ValueError(
            "components_per_class and label_noise take EM over all rows, and partial_fit sees each once; use fit"
        )
    options = labels_of(estimator)
    held_out = options.unlabelled_weight == "held_out"
    share = 0.0 if options.ignores_unlabelled else 1.0 if held_out else float(options.unlabelled_weight)
    texts = {
        j: counted[position].bags(schema.columns[j]) for j, position in enumerate(positions) if position in counted
    }
    source = source_of(
        table, schema, positions, labels, target, weight, None, estimator.n_jobs, share, label_model, texts=texts
    )
    rows = TrainingRows(source, target)
    if not (held_out and labels.may_miss):
        return rows
    # A clone plans, so that a generator given as random_state is not advanced.
    return rows.with_unlabelled_weight(held_out_weight(rows, clone(estimator).training_plan(schema, target)))


def _read_labels(estimator: ModelEstimator, y: Any, table: Table, complete: bool) -> LabelColumn | PartialLabels:
    return labels_to_learn(
        read_teaching_labels(y, table),
        labels_of(estimator).unlabelled,
        "labels" in estimator._parameter_constraints,
        complete,
    )


def _extended_schema(
    estimator: ModelEstimator,
    table: Table,
    positions: Sequence[int],
    counted: dict[int, CountedText] | None = None,
) -> Schema:
    schema: Schema = estimator.model_.schema
    stated = categorical_places(columns_of(estimator).categorical_features, estimator.distributions, schema.given)
    named = {j for j, place in enumerate(schema.places) if place in stated}
    categorical = [
        position
        for j, (position, column) in enumerate(zip(positions, schema.columns, strict=True))
        if (j in named if column.has_no_kind else column.kind == "categorical")
    ]
    known: dict[int, tuple[Column, ...]] = {}
    for position, column in zip(positions, schema.columns, strict=True):
        if column.is_ignored or column.part is not None or column.text is not None:
            known[position] = (*known.get(position, ()), column)
    columns = list(dict.fromkeys(positions))
    reads_counts = estimator.reads_counts or bool(schema.of_kind("counts"))  # a member of a pool that leaves them out
    read = infer_schema(table, columns, categorical, known=known, reads_counts=reads_counts, counted=counted)
    extended = schema.extended(read, mixed=named)
    if takes_two_values(estimator):
        warn_of_third_values(schema, extended, named)
    return extended


def _extended_classes(estimator: ModelEstimator, classes: Any, labels: LabelColumn | PartialLabels) -> Column:
    if classes is not None:
        declared = _declared_classes(classes, labels)
        if declared.categories != estimator.target_.categories:
            raise ValueError(
                f"classes={list(classes)!r} differs from that of the first call: {list(estimator.target_.categories)}"
            )
    target: Column = estimator.target_
    return target if estimator.fitted_.classes_closed else target.extended(labels.infer())


def _feature_positions(table: Table, labels: LabelColumn | PartialLabels) -> list[int]:
    columns = [j for j in range(len(table.names)) if not isinstance(labels, LabelColumn) or j != labels.target_place]
    if not columns:
        raise ValueError(f"X has no column except the target {labels.name!r}; give at least one feature")
    return columns


def _warn_of_negative_class(classes: Column, labels: LabelColumn) -> None:
    """Warn if a class −1 stands beside 0 to K − 1 and no label is missing: scikit-learn marks a missing one so."""
    found = list(classes.categories)
    if len(found) < 3 or classes.kinds == {"booleans"} or found != list(range(-1, len(found) - 1)):
        return
    table = labels.table
    in_memory = isinstance(table, ArrayTable | PandasTable | PolarsTable)
    if in_memory and (labels.components(classes, slice(0, table.n_rows)) < 0).any():
        return
    warn(
        f'y holds -1 beside 0 to {found[-1]:g}, and unlabelled="learn" learns it as a class; if it marks missing '
        "labels, as in scikit-learn, use labels=po.Labels(unlabelled=-1)"
    )


def _declared_classes(classes: Any, labels: LabelColumn | PartialLabels, learns_unlabelled: bool = False) -> Column:
    if classes is None:
        if isinstance(labels, PartialLabels):
            return labels.infer()
        found = labels.infer(holds_code=labels.may_miss)
        reject_quantity(found, labels)
        if learns_unlabelled:
            _warn_of_negative_class(found, labels)
        return found
    if isinstance(classes, str) or not len(classes):
        raise ValueError(f"classes is {classes!r}; list the labels")
    if any(map(is_missing, classes)):
        raise ValueError("classes holds a missing label; leave it out")
    column = read_labels(classes, read_table(np.zeros((len(classes), 1)))).infer()
    return categorical_column(column.name, column.categories, column.dtype)
