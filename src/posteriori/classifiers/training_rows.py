"""Reading of training rows: the schema of the features, the classes, the labels and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.parameter_groups import columns_of, em_of, labels_of
from posteriori.classifiers.rows import places_in
from posteriori.classifiers.validation import (
    categorical_places,
    components_of,
    kept_places,
    labels_to_learn,
    make_label_model,
    reject_quantity,
    text_places,
)
from posteriori.learning.training import TrainingRows
from posteriori.model_selection.held_out import held_out_weight
from posteriori.sources import source_of
from posteriori.tables import (
    Column,
    Labels,
    PartialLabels,
    Schema,
    Table,
    check_weights,
    infer_schema,
    read_labels,
    read_table,
    read_teaching_labels,
)
from posteriori.tables.columns import categorical_column
from posteriori.tables.missing import is_missing
from posteriori.tables.texts import CountedText


def read_first_rows(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
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
    target = _declared_classes(classes, labels)
    places = schema.spread(columns)
    return _assemble(estimator, table, schema, places, labels, target, sample_weight, complete, counted)


def read_further_rows(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
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
    estimator: Any,
    table: Table,
    schema: Schema,
    positions: Sequence[int],
    labels: Labels | PartialLabels,
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
    of_unlabelled = labels_of(estimator).unlabelled_weight
    held_out = of_unlabelled == "held_out"
    share = 1.0 if held_out else float(of_unlabelled)
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


def _read_labels(estimator: Any, y: Any, table: Table, complete: bool) -> Labels | PartialLabels:
    return labels_to_learn(
        read_teaching_labels(y, table), labels_of(estimator).unlabelled, hasattr(estimator, "labels"), complete
    )


def _extended_schema(
    estimator: Any, table: Table, positions: Sequence[int], counted: dict[int, CountedText] | None = None
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
    return schema.extended(read, mixed=named)


def _extended_classes(estimator: Any, classes: Any, labels: Labels | PartialLabels) -> Column:
    if classes is not None:
        declared = _declared_classes(classes, labels)
        if declared.categories != estimator.target_.categories:
            raise ValueError(
                f"classes={list(classes)!r} differs from that of the first call: {list(estimator.target_.categories)}"
            )
    target: Column = estimator.target_
    return target if estimator._classes_closed else target.extended(labels.infer())


def _feature_positions(table: Table, labels: Labels | PartialLabels) -> list[int]:
    columns = [j for j in range(len(table.names)) if not isinstance(labels, Labels) or j != labels.target_place]
    if not columns:
        raise ValueError(f"X has no column except the target {labels.name!r}; give at least one feature")
    return columns


def _declared_classes(classes: Any, labels: Labels | PartialLabels) -> Column:
    if classes is None:
        found = labels.infer()
        if not isinstance(labels, PartialLabels):
            reject_quantity(found, labels)
        return found
    if isinstance(classes, str) or not len(classes):
        raise ValueError(f"classes is {classes!r}; list the labels")
    if any(map(is_missing, classes)):
        raise ValueError("classes holds a missing label; leave it out")
    column = read_labels(classes, read_table(np.zeros((len(classes), 1)))).infer()
    return categorical_column(column.name, column.categories, column.dtype)
