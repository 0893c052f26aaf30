"""The way of a fit: from rows to their statistics, and from statistics to a fitted value."""

from __future__ import annotations

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
from posteriori.fitting.further_dates import warn_of_further_dates
from posteriori.fitting.recipe import ModelRequest
from posteriori.fitting.rows import read_first_rows, read_further_rows
from posteriori.learning.cut_points import binned_schema, retyped, with_missing_cuts
from posteriori.learning.fit import (
    Collect,
    CollectedRows,
    FitResult,
    TrainingRows,
    carry_over_structure,
    learn,
    needs_em,
    warn_not_converged,
    with_categories_of,
    without_groups,
)
from posteriori.learning.work_bounds import WorkCounts, announce_em, announce_work, n_incomplete
from posteriori.model import Block, bins_of
from posteriori.reading import Scan
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema, quote
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.polars import LazyTable
from posteriori.user_warnings import warn

NO_SUMS = "this model was built from parameters, which do not contain the number of rows"


def learn_rows(request: ModelRequest, X: Any, y: Any, sample_weight: Any) -> Fitted:
    """Return the model of rows that are all there are, and their sums."""
    return _learned(request, _collect_first(request, X, y, sample_weight, None, complete=True))


def add_rows(
    request: ModelRequest, fitted: Fitted | None, X: Any, y: Any, sample_weight: Any, classes: Any = None
) -> Fitted:
    """Return the model of rows and of those that were learned from before, if there were some, and the sums of all."""
    if fitted is None:
        first = _collect_first(request, X, y, sample_weight, classes, complete=False)
        return replace(_learned(request, first), classes_closed=classes is not None)
    collected = _collect_further(request, fitted, X, y, sample_weight, classes)
    learned = _learned(request, collected)
    _warn_of_expected_sums(request.name, collected)
    return replace(learned, classes_closed=fitted.classes_closed, record=fitted.record.of_other_model())


def _collect_first(
    request: ModelRequest, X: Any, y: Any, sample_weight: Any, classes: Any, complete: bool
) -> CollectedRows:
    head_sample = X.head_sample() if isinstance(X, Scan) else None
    if head_sample is not None:
        try:
            return _collected(request, head_sample, y, sample_weight, classes, complete)
        except UnseenCategoryError:  # later rows have categories that the first rows do not show
            pass
    return _collected(request, X, y, sample_weight, classes, complete)


def _collected(
    request: ModelRequest, X: Any, y: Any, sample_weight: Any, classes: Any, complete: bool
) -> CollectedRows:
    """Read rows, choose the cut points of binned columns, and collect the statistics."""
    rows = read_first_rows(request, X, y, sample_weight, classes=classes, complete=complete)
    source, target = rows.source, rows.target
    plan = request.plan_for(source, target, complete)
    announce_work([plan], source.schema, WorkCounts(source.table.n_rows, 0, target.cardinality))
    if source.label_model is not None:  # groups are chosen from counts of known components
        plan = replace(plan, blocks=without_groups(plan.blocks))
    bins = bins_of(plan.blocks)
    if bins:  # cut points are chosen by the recorded labels, as if these were the components
        source = source.with_schema(binned_schema(source.with_label_model(None), bins, request.n_jobs))
    request.check_size(source.schema, target)
    return CollectedRows(TrainingRows(source, target), plan, source.reduce(Collect(plan.blocks)))


def _collect_further(
    request: ModelRequest, fitted: Fitted, X: Any, y: Any, sample_weight: Any, classes: Any
) -> CollectedRows:
    """Read rows under a fitted model, and collect their statistics beside those of the earlier rows."""
    sums_of(fitted)  # raises its error before the rows are read
    rows = read_further_rows(request, fitted, X, y, sample_weight, classes=classes, complete=False)
    warn_of_further_dates([fitted], rows, request.columns.dates)
    target, before = rows.target, fitted.model
    plan = request.plan_for(rows.source, target, complete=False)
    source = rows.source.with_schema(with_missing_cuts(rows.source.schema, plan.blocks))
    blocks = carry_over_structure(plan.blocks, before.blocks)
    blocks = with_categories_of(blocks, before.schema, source.schema, target.places_in(fitted.target))
    past = past_statistics(fitted, source.schema, target, blocks)  # raises its errors before the rows are read
    request.check_size(source.schema, target)
    sums = source.reduce(Collect(blocks))
    return CollectedRows(TrainingRows(source, target), replace(plan, blocks=blocks), sums, past)


def _learned(request: ModelRequest, collected: CollectedRows) -> Fitted:
    """Return the model of the statistics of rows, and of earlier rows; warn of what the rows do not determine."""
    source, target, plan = collected.rows.source, collected.rows.target, collected.plan
    statistics, options = collected.statistics, plan.limits
    n_components = max(target.cardinality, len(plan.prior.of_class))
    if statistics.hidden > 0:
        announce_em(plan.blocks, source.table.n_rows, n_components, options.n_starts, options.max_steps, hidden=True)
    elif needs_em(plan.blocks, statistics):
        n_rows = n_incomplete(plan.blocks, statistics.blocks, source.table.n_rows)
        announce_em(plan.blocks, n_rows, n_components, 1, options.max_steps, hidden=False)
    fit = learn(source, plan.blocks, plan.prior, collected.past, statistics, options)
    learned = fit if plan.weighed is None else replace(fit, model=plan.weighed(fit, source))
    fitted = checked_fit(request, learned, target, source.unlabelled_weight)
    return replace(fitted, transduction=_inferred_labels(request, fitted, source.with_label_model(fit.label_model)))


def checked_fit(request: ModelRequest, learned: FitResult, target: Column, unlabelled_weight: float | None) -> Fitted:
    """Return a learned model as a fitted value; warn of estimates that the rows do not determine."""
    fitted = fitted_of(request, learned, target, unlabelled_weight)
    warn_not_converged(learned, request.limits)
    if learned.model.of_class:
        warn_of_few_rows(learned.statistics.weight)
    warn_of_contradicted_labels(learned.label_model)
    warn_of_empty_columns(learned.model, learned.statistics)
    warn_of_undetermined(learned.model, learned.statistics, fitted.component_classes.tolist())
    return fitted


def fitted_of(request: ModelRequest, learned: FitResult, target: Column, unlabelled_weight: float | None) -> Fitted:
    """Return a learned model as a fitted value; a row without label had this weight."""
    confusion = None if learned.label_model is None else learned.label_model.confusion
    weight = unlabelled_weight if request.has_labels else None
    return Fitted(learned.model, target, learned.statistics, np.array(learned.trace), confusion, weight)


def _inferred_labels(request: ModelRequest, fitted: Fitted, source: LabelledSource) -> Array | None:
    """Return the labels of the training rows, (n,), if the model infers missing or noisy labels."""
    if isinstance(source.table, LazyTable):  # the labels of all rows might not fit into memory; use predict
        return None
    if request.labels.ignores_unlabelled:
        return None
    if source.labels is None or not (source.labels.may_miss or request.labels.label_noise is not None):
        return None
    model = fitted.model
    source = source.with_schema(model.schema)

    def infer(batch: Batch) -> Array:
        with np.errstate(divide="ignore"):
            best: Array = model.by_class(np.log(model.responsibilities(batch)[0])).argmax(axis=1)
        return best

    inferred: Array = fitted.classes[source.map(infer)]
    return inferred


def past_statistics(fitted: Fitted, schema: Schema, target: Column, blocks: tuple[Block, ...]) -> JointStatistics:
    """Return the sums of a fitted model with the columns, categories and classes of another schema."""
    old = fitted.schema
    statistics = retyped(sums_of(fitted), old, fitted.model.blocks, schema, blocks)
    if schema is old and target is fitted.target:
        return statistics
    moves = [[schema.columns[j].places_in(old.columns[j]) for j in block.indexed(schema)] or None for block in blocks]
    return statistics.reindexed(target.places_in(fitted.target), moves)


def sums_of(fitted: Fitted) -> JointStatistics:
    """Return the sums of a fitted model; ValueError if it was built from parameters."""
    if fitted.statistics is None:
        raise ValueError(f"{NO_SUMS}; use fit")
    return fitted.statistics


def _warn_of_expected_sums(name: str, collected: CollectedRows) -> None:
    """Warn if earlier or further rows lack cells that a density needs, so that `partial_fit` is not one fit.

    `name` is that of the estimator.
    """
    past = collected.past
    schema = collected.rows.source.schema
    lacking: list[str] = []
    for position, (block, sums) in enumerate(zip(collected.plan.blocks, collected.statistics.blocks, strict=True)):
        if not (sums.is_exact() and (past is None or past.blocks[position].is_exact())):
            lacking += [schema.columns[j].name for j in block.columns]
    if lacking:
        warn(
            f"rows with missing cells in {quote(lacking)} make {name}.partial_fit differ from one fit: each call fills "
            "them in under the model of that call, and fit under the model of all rows; "
            "fit all rows together, leave such rows out, or choose NaiveBayes, which needs no such cells"
        )
