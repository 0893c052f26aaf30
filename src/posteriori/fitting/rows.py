"""Training rows of tables, with labels and weights: those of a first fit, and further ones under a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from posteriori.fitting.fitted import Fitted
from posteriori.fitting.label_parameters import labels_to_learn, make_label_model, reject_quantity
from posteriori.fitting.named_columns import (
    categorical_places,
    kept_places,
    stated_columns,
    stated_places,
    text_places,
)
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.two_values import warn_of_third_values, with_two_values
from posteriori.learning.fit import TrainingRows
from posteriori.reading import (
    LabelColumn,
    PartialLabels,
    Scan,
    check_weights,
    infer_schema,
    read_labels,
    read_table,
    read_teaching_labels,
)
from posteriori.reading.known_columns import KnownColumns
from posteriori.reading.labels import warn_of_labels_among_features
from posteriori.reading.matching import matched_places
from posteriori.reading.texts import CountedText
from posteriori.sources import LabelledSource, source_of
from posteriori.support.checks import is_missing
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema, Table
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.pandas import PandasTable
from posteriori.tables.polars import LazyTable, PolarsTable
from posteriori.tables.rows import part_of
from posteriori.tables.schema import categorical_column
from posteriori.user_warnings import warn, warn_of_missing_targets


def read_first_rows(
    recipe: Recipe,
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
    recipe : Recipe
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
    recipe.check()
    table = read_stated(recipe, X, y)
    labels = _read_labels(recipe, y, table, complete)
    warn_of_labels_among_features(y, table)
    return first_rows(recipe, table, labels, sample_weight, classes=classes, complete=complete)


def read_stated(recipe: Recipe, X: Any, y: Any) -> Table:
    """Open a table whose columns of files are read as the parameters state them."""
    return read_table(X, stated_columns(X, recipe.columns.categorical_features, recipe.distributions, y))


def first_rows(
    recipe: Recipe,
    table: Table,
    labels: LabelColumn | PartialLabels,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    complete: bool = True,
) -> TrainingRows:
    """Return the rows of an opened table with these labels, and infer their schema and classes."""
    columns = _feature_positions(table, labels)
    names = [table.names[j] for j in columns]
    given, distributions = recipe.columns, recipe.distributions
    if not recipe.reads_counts:
        given.require_no_text(recipe.name)
    chosen = categorical_places(given.categorical_features, distributions, names)
    kept = kept_places(given.keep, given.categorical_features, distributions, names)
    keep = None if kept is None else [columns[j] for j in kept]
    declared = [columns[j] for j in chosen]
    counted: dict[int, CountedText] = {}
    weight = check_weights(sample_weight, table.n_rows)
    find_classes = partial(_declared_classes, classes, labels, recipe.labels.unlabelled == "learn")
    is_lazy = isinstance(table, LazyTable)  # one pass finds its categories and its classes
    target = None if is_lazy else find_classes()
    ignores = recipe.leaves_out_unlabelled(complete)
    if target is not None and ignores:
        weight = _weight_of_labelled(labels, target, weight)
    deciding = table if weight is None or weight.all() else part_of(table, np.flatnonzero(weight))
    if ignores and isinstance(table, Scan) and labels.name is not None:
        deciding = table.narrowed(table.names, labels.name)
    schema = infer_schema(
        table,
        columns,
        declared,
        labels.name,
        keep=keep,
        dates=given.dates,
        reads_counts=recipe.reads_counts,
        texts=text_places(given.text if recipe.reads_counts else None, given.keep, columns, names, chosen),
        counted=counted,
        deciding=deciding,
    )
    target = target or find_classes()
    if recipe.chooses_categories:
        named = {columns[j] for j in stated_places(distributions, names)}
        if is_lazy and ignores:
            weight = _weight_of_labelled(labels, target, weight)
        schema = with_two_values(schema, table, schema.spread(columns), distributions, named, weight)
    ordered = given.ordered_target(target, schema.names)
    unknown = [name for name in given.order or () if name not in (*schema.names, target.name)]
    if len(unknown) == 1 and ordered.order != target.order:  # labels without a name
        unknown = []
    schema, target = replace(schema, columns=given.ordered(schema.columns)), ordered
    if unknown:
        raise ValueError(f"order names {unknown[0]!r}, which is no column; {closest(unknown[0], schema.names)}")
    places = schema.spread(columns)
    rows = _assemble(recipe, table, schema, places, labels, target, sample_weight, complete, counted)
    return replace(rows, source=with_counted_categories(rows.source))


def _weight_of_labelled(labels: LabelColumn | PartialLabels, target: Column, weight: Array | None) -> Array | None:
    """Return the weights of rows, (n,), 0 of those without label."""
    if not isinstance(labels, LabelColumn):
        return weight
    is_known = replace(labels, may_miss=True).components(target, slice(0, labels.table.n_rows)) >= 0
    return np.where(is_known, 1.0 if weight is None else weight, 0.0)


def with_counted_categories(source: LabelledSource, known: Schema | None = None) -> LabelledSource:
    """Return rows under a schema without the inferred categories that only rows of weight 0 hold: these are unseen.

    Those of a known schema of the same columns stay. Takes a pass over the rows if some have weight 0, or may have:
    rows without label that are left out.
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
        before = () if known is None else known.columns[j].categories
        kept = [one for one, is_shown in zip(columns[j].categories, shown, strict=True) if is_shown or one in before]
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
    fitted: Fitted,
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
    fitted : Fitted
    X, y, sample_weight
        As in `partial_fit`.
    classes : array-like, optional
        All classes; they must be the same as on the first call.
    complete : bool, default True
        As in `read_first_rows`.

    Returns
    -------
    TrainingRows
        Its schema and target equal those of the model if the rows have no new category and no new class.

    Raises
    ------
    ValueError, TypeError
        As in `partial_fit`.
    """
    recipe = fitted.recipe
    recipe.check()
    stated = stated_columns(X, recipe.columns.categorical_features, recipe.distributions, y)
    table = read_table(X, KnownColumns.of_model(fitted.schema, fitted.target).joined(stated))
    labels = _read_labels(recipe, y, table, complete)
    _feature_positions(table, labels)  # raises an error if the target is the only column
    # Names given with parameters are optional: rows without names are taken by position, without a warning.
    named = fitted.statistics is not None
    positions = matched_places(table, fitted.schema, recipe.name, labels.name, warn_of_lost_names=named)
    counted: dict[int, CountedText] = {}
    schema = _extended_schema(recipe, fitted.schema, table, positions, counted)
    target = _extended_classes(fitted, classes, labels)
    rows = _assemble(recipe, table, schema, positions, labels, target, sample_weight, complete, counted)
    if schema == fitted.schema:
        return rows
    return replace(rows, source=with_counted_categories(rows.source, fitted.schema))


def _assemble(
    recipe: Recipe,
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
    options, of_class = recipe.labels, recipe.components(target)
    label_model = make_label_model(options.label_noise, of_class, isinstance(labels, PartialLabels), target)
    if label_model is not None and not complete:
        raise ValueError(
            "components_per_class and label_noise take EM over all rows, and partial_fit sees each once; use fit"
        )
    is_ignored = recipe.leaves_out_unlabelled(complete)
    if options.unlabelled is None and isinstance(labels, LabelColumn):
        labels = _with_known_gaps(labels, target, weight, learned=not is_ignored)
        is_ignored &= labels.may_miss
    is_chosen = options.unlabelled_weight == "held_out"  # once the rows are read
    share = 0.0 if is_ignored else 1.0 if is_chosen else float(options.unlabelled_weight)
    texts = {
        j: counted[position].bags(schema.columns[j]) for j, position in enumerate(positions) if position in counted
    }
    source = source_of(
        table, schema, positions, labels, target, weight, None, recipe.n_jobs, share, label_model, texts=texts
    )
    return TrainingRows(source, target)


def _with_known_gaps(labels: LabelColumn, target: Column, weight: Array | None, learned: bool) -> LabelColumn:
    """Return labels that may be missing only if some are, and say what becomes of these rows."""
    without = replace(labels, may_miss=True).components(target, slice(0, labels.table.n_rows)) < 0
    n_missing = int((without if weight is None else without & (weight > 0)).sum())
    warn_of_missing_targets(n_missing, len(without), labels.name, learned)
    return replace(labels, may_miss=bool(without.any()))


def _read_labels(recipe: Recipe, y: Any, table: Table, complete: bool) -> LabelColumn | PartialLabels:
    labels = read_teaching_labels(y, table)
    return labels_to_learn(labels, recipe.unlabelled(complete), recipe.has_labels, complete)


def _extended_schema(
    recipe: Recipe, schema: Schema, table: Table, positions: Sequence[int], counted: dict[int, CountedText]
) -> Schema:
    stated = categorical_places(recipe.columns.categorical_features, recipe.distributions, schema.given)
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
    reads_counts = recipe.reads_counts or bool(schema.of_kind("counts"))  # a member of a pool that leaves them out
    read = infer_schema(table, columns, categorical, known=known, reads_counts=reads_counts, counted=counted)
    extended = schema.extended(read, mixed=named)
    if recipe.chooses_categories:
        warn_of_third_values(schema, extended, named)
    return extended


def _extended_classes(fitted: Fitted, classes: Any, labels: LabelColumn | PartialLabels) -> Column:
    target = fitted.target
    if classes is not None:
        declared = _declared_classes(classes, labels)
        if declared.categories != target.categories:
            raise ValueError(
                f"classes={list(classes)!r} differs from that of the first call: {list(target.categories)}"
            )
    if fitted.classes_closed:
        return target
    stated, further = fitted.recipe.columns, labels.infer()
    plain = replace(target, order=()).extended(replace(further, order=()))
    ordered = stated.ordered_target(plain, fitted.schema.names)
    return ordered if ordered.order else target.extended(further)


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
