"""The way of a fit: from rows to their statistics, and from statistics to a fitted value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.fitting.estimate_warnings import (
    warn_of_contradicted_labels,
    warn_of_empty_columns,
    warn_of_few_rows,
    warn_of_undetermined,
)
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import read_first_rows
from posteriori.fitting.unlabelled_weight import with_held_out_weight
from posteriori.learning.cut_points import binned_schema
from posteriori.learning.equal_rows import count_rows
from posteriori.learning.fit import (
    Collect,
    CollectedRows,
    FitResult,
    TrainingRows,
    learn,
    needs_em,
    warn_not_converged,
    without_groups,
)
from posteriori.learning.work_bounds import WorkCounts, announce_em, announce_work, n_incomplete
from posteriori.model import bins_of
from posteriori.reading import Scan
from posteriori.sources import LabelledSource
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.polars import LazyTable


def fit(
    recipe: Recipe, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None, *, complete: bool = True
) -> Fitted:
    """Return the model of rows, and their sums.

    Parameters
    ----------
    recipe : Recipe
    X, y, sample_weight
        As the method `fit` of estimators takes them.
    classes : array-like, optional
        All classes; default: those among the labels.
    complete : bool
        Whether these are all rows, and none are added later.
    """
    first = _collect_first(recipe, X, y, sample_weight, classes, complete)
    return replace(learned(recipe, first), classes_closed=classes is not None)


def _collect_first(recipe: Recipe, X: Any, y: Any, sample_weight: Any, classes: Any, complete: bool) -> CollectedRows:
    head_sample = X.head_sample() if isinstance(X, Scan) else None
    if head_sample is not None:
        try:
            return _collected(recipe, head_sample, y, sample_weight, classes, complete)
        except UnseenCategoryError:  # later rows have categories that the first rows do not show
            pass
    return _collected(recipe, X, y, sample_weight, classes, complete)


def _collected(recipe: Recipe, X: Any, y: Any, sample_weight: Any, classes: Any, complete: bool) -> CollectedRows:
    """Read rows, choose the cut points of binned columns, and collect the statistics."""
    rows = read_first_rows(recipe, X, y, sample_weight, classes=classes, complete=complete)
    if recipe.counts_copies_once and rows.source.label_model is None:  # of two copies, one shows the model the other
        rows, _ = count_rows(replace(rows, source=rows.source.cached()), rows.y_true)
    return collected(recipe, rows, complete)


def collected(
    recipe: Recipe, rows: TrainingRows, complete: bool = True, binned: Callable[[LabelledSource], Schema] | None = None
) -> CollectedRows:
    """Return the statistics of rows that were read; `binned` chooses cut points, if these rows should not."""
    if recipe.chooses_weight:
        rows = with_held_out_weight(recipe, rows)
    source, target = rows.source, rows.target
    plan = recipe.plan_for(source, target, complete)
    announce_work([plan], source.schema, WorkCounts(source.table.n_rows, 0, target.cardinality))
    if source.label_model is not None:  # groups are chosen from counts of known components
        plan = replace(plan, blocks=without_groups(plan.blocks))
    bins = bins_of(plan.blocks)
    if binned is not None:
        source = source.with_schema(binned(source))
    elif bins:  # cut points are chosen by the recorded labels, as if these were the components
        source = source.with_schema(binned_schema(source.with_label_model(None), bins, recipe.n_jobs))
    recipe.check_size(source.schema, target)
    return CollectedRows(TrainingRows(source, target), plan, source.reduce(Collect(plan.blocks)))


def learned(recipe: Recipe, collected: CollectedRows) -> Fitted:
    """Return the model of the statistics of rows, and of earlier rows; warn of what the rows do not determine."""
    source, target, plan = collected.rows.source, collected.rows.target, collected.plan
    statistics, options = collected.statistics, plan.limits
    n_components = max(target.cardinality, len(plan.prior.of_class))
    if statistics.hidden > 0:
        announce_em(plan.blocks, source.table.n_rows, n_components, options.n_starts, options.max_steps, hidden=True)
    elif needs_em(plan.blocks, statistics):
        n_rows = n_incomplete(plan.blocks, statistics.blocks, source.table.n_rows)
        announce_em(plan.blocks, n_rows, n_components, 1, options.max_steps, hidden=False)
    found = learn(source, plan.blocks, plan.prior, collected.past, statistics, options)
    if plan.weighed is not None:
        found = replace(found, model=plan.weighed(found, source))
    fitted = checked_fit(recipe, found, target, source.unlabelled_weight)
    return replace(fitted, transduction=_inferred_labels(recipe, fitted, source.with_label_model(found.label_model)))


def checked_fit(recipe: Recipe, learned: FitResult, target: Column, unlabelled_weight: float | None) -> Fitted:
    """Return a learned model as a fitted value; warn of estimates that the rows do not determine."""
    fitted = fitted_of(recipe, learned, target, unlabelled_weight)
    warn_not_converged(learned, recipe.limits)
    if learned.model.of_class:
        warn_of_few_rows(learned.statistics.weight)
    warn_of_contradicted_labels(learned.label_model)
    warn_of_empty_columns(learned.model, learned.statistics)
    warn_of_undetermined(learned.model, learned.statistics, fitted.component_classes.tolist())
    return fitted


def fitted_of(recipe: Recipe, learned: FitResult, target: Column, unlabelled_weight: float | None) -> Fitted:
    """Return a learned model as a fitted value; a row without label had this weight."""
    confusion = None if learned.label_model is None else learned.label_model.confusion
    weight = unlabelled_weight if recipe.has_labels else None
    return Fitted(recipe, target, learned.model, learned.statistics, np.array(learned.trace), confusion, weight)


def _inferred_labels(recipe: Recipe, fitted: Fitted, source: LabelledSource) -> Array | None:
    """Return the labels of the training rows, (n,), if the model infers missing or noisy labels."""
    if isinstance(source.table, LazyTable):  # the labels of all rows might not fit into memory; use predict
        return None
    if recipe.leaves_out_unlabelled():
        return None
    if source.labels is None or not (source.labels.may_miss or recipe.labels.label_noise is not None):
        return None
    model = fitted.model
    source = source.with_schema(model.schema)

    def infer(batch: Batch) -> Array:
        with np.errstate(divide="ignore"):
            best: Array = model.by_class(np.log(model.responsibilities(batch)[0])).argmax(axis=1)
        return best

    inferred: Array = fitted.classes[source.map(infer)]
    return inferred
