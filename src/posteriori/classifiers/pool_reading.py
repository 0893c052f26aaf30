"""Reading of the training rows of a pool, and its candidates for them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.candidates import (
    OF_COUNTS,
    MemberOptions,
    resolve_members,
    select_candidates,
    summarise_table,
)
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.naive_bayes import NaiveBayes
from posteriori.classifiers.parameter_groups import Columns, columns_of, labels_of
from posteriori.classifiers.pool_updates import log_prior_ratio
from posteriori.classifiers.validation import categorical_places, column_of
from posteriori.learning.training import Plan, TrainingRows
from posteriori.learning.work_bounds import affordable_folds, reasons_against_plans, total_work
from posteriori.learning.work_steps import READING
from posteriori.model_cost import TableSummary
from posteriori.model_selection.folded_data import FoldedData
from posteriori.tables import IgnoredColumnWarning, Schema
from posteriori.tables.progress import step
from posteriori.typing import Array

_USUAL_FOLDS = 5  # for which candidates are selected: more folds leave no candidate out


def read_pool_rows(
    pool: Any, X: Any, y: Any, sample_weight: Any, classes: Any
) -> tuple[TrainingRows, TableSummary, dict[str, Any]]:
    """Return the training rows, their summary, and the parameters of all members."""
    given = columns_of(pool)
    automatic = given.is_automatic or given.categorical_features is None
    stated = None if automatic else given.categorical_features
    reader = NaiveBayes(
        columns=clone(given).set_params(categorical_features=stated),
        distributions=pool.distributions,
        labels=pool.labels,
        n_jobs=pool.n_jobs,
    )
    rows = reader.read_training_rows(X, y, sample_weight, classes=classes)
    rows = _in_memory(rows)
    if rows.source.label_model is not None:
        raise ValueError(
            "y is a mask of possible classes, which takes EM over all rows: NaiveBayes, GaussianDiscriminant, "
            "TreeAugmentedNaiveBayes and ChowLiuClassifier learn from it by fit"
        )
    with step(READING):
        summary = summarise_table(rows.source, len(rows.target.categories))
    schema, names = rows.source.schema, rows.source.schema.given
    named = pool.distributions if isinstance(pool.distributions, Mapping) else ()
    stated = {schema.names[column_of(key, schema)] for key in named}
    binary = [column.name for column in summary.columns if column.n_values == 2] if automatic else []
    binary = [name for name in binary if name in names and name not in stated]
    if binary:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IgnoredColumnWarning)  # the first reading has warned
            reader.set_params(columns__categorical_features=binary)
            rows = _in_memory(reader.read_training_rows(X, y, sample_weight, classes=classes))
        with step(READING):
            summary = summarise_table(rows.source, len(rows.target.categories))
    coded = categorical_places(columns_of(reader).categorical_features, pool.distributions, names)
    categorical = [names[j] for j in sorted(coded)] if coded else "from_dtype"
    of_members = Columns(categorical_features=categorical, keep=given.keep, dates=given.dates)
    common = {"columns": of_members, "n_jobs": pool.n_jobs}
    return rows, summary, common


def priors_of_rows(pool: Any, rows: TrainingRows) -> tuple[Array, Array]:
    """Return p(y) of the training rows with a label, and the log ratio of `priors` to it, both (C,)."""
    y_true, weight = rows.y_true, rows.source.weight
    known = y_true >= 0
    n_classes = len(rows.target.categories)
    counts = np.bincount(y_true[known], None if weight is None else weight[known], n_classes)
    prior: Array = counts / max(counts.sum(), np.finfo(np.float64).tiny)
    return prior, log_prior_ratio(pool.priors, rows.target, prior)


def candidates_of(
    pool: Any, folded: FoldedData, summary: TableSummary, common: Mapping[str, Any]
) -> tuple[dict[str, GenerativeEstimator], dict[str, str]]:
    """Set `skipped_`; return the candidates, and the reasons of those that cost too much."""
    options = _options(pool, folded.source.schema, common)
    pool.skipped_ = {}
    if not isinstance(pool.members, str):
        return resolve_members(pool.members, options), {}
    selected = select_candidates(summary, options)
    if pool.time_budget is None:
        usual = replace(folded.work_counts, folds=min(folded.folds, _USUAL_FOLDS))
        plans = _plans_of(selected.estimators, folded)
        selected = selected.without(reasons_against_plans(plans, folded.source.schema, usual))
    pool.skipped_ = selected.declined | selected.too_costly
    if not selected.estimators:
        listed = "; ".join(f"{name}: {reason}" for name, reason in pool.skipped_.items())
        raise ValueError(f"no candidate suits this table: {listed}")
    return selected.estimators, selected.too_costly


def with_affordable_folds(
    pool: Any, folded: FoldedData, estimators: Mapping[str, GenerativeEstimator], seed: int
) -> FoldedData:
    """Return the rows in fewer folds, with a warning, if cross-validation would exceed the limits of `Work`."""
    if pool.time_budget is not None or folded.folds <= _USUAL_FOLDS:
        return folded
    plans = list(_plans_of(estimators, folded).values())
    fewer = affordable_folds(plans, folded.source.schema, folded.work_counts)
    if fewer in {0, folded.folds}:
        return folded  # with 0, `cross_fit` says why
    reason = total_work(plans, folded.source.schema, folded.work_counts).reason_too_much()
    warnings.warn(f"folds is reduced from {folded.folds:,} to {fewer:,}: {reason}", UserWarning, stacklevel=4)
    return folded.dealt(fewer, seed)


def _options(pool: Any, schema: Schema, common: Mapping[str, Any]) -> MemberOptions:
    """Return what members are asked for, with the densities of the columns of numbers and of counts by name."""
    names = schema.names
    numbers, counts = (tuple(names[j] for j in schema.of_kind(kind)) for kind in ("continuous", "counts"))
    stated = pool.distributions or {}
    if isinstance(stated, str):
        stated = dict.fromkeys(counts if counts and stated in OF_COUNTS else numbers, stated)
    of_name = {names[column_of(key, schema)]: density for key, density in stated.items()}
    densities = {name: density for name, density in of_name.items() if name in (*numbers, *counts)}
    has_others = bool(schema.dense)
    return MemberOptions(common, pool.missing, labels_of(pool), densities, numbers, counts, has_others)


def _in_memory(rows: TrainingRows) -> TrainingRows:
    """Return the same rows, kept in memory for the summary of the table and all later passes if they are few enough."""
    return replace(rows, source=rows.source.cached())


def _plans_of(estimators: Mapping[str, GenerativeEstimator], folded: FoldedData) -> dict[str, Plan]:
    return {name: one.training_plan(folded.source.schema, folded.target) for name, one in estimators.items()}
