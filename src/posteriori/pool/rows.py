"""Training rows of a pool, with what is known of the table before any model is fitted."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.fitting.named_columns import categorical_places, column_of
from posteriori.fitting.parameter_groups import Columns
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.equal_rows import count_rows
from posteriori.learning.fit import TrainingRows
from posteriori.learning.work_bounds import READING
from posteriori.model.class_priors import log_prior_ratio
from posteriori.model_cost import TableSummary
from posteriori.pool.parameters import Data, PoolParameters
from posteriori.pool.summary import summarise_table
from posteriori.support.typing import Array
from posteriori.tables import IgnoredColumnWarning
from posteriori.tables.progress import step
from posteriori.user_warnings import RepeatedRowsWarning


@dataclass(frozen=True)
class PoolRows:
    """The training rows of a pool, their summary, and what follows for every member."""

    rows: TrainingRows
    summary: TableSummary
    common: Mapping[str, Any]  # the parameters of all members
    prior: Array  # (C,): p(y) of the training rows with a label
    log_prior_ratio: Array  # (C,): of `priors` to it, in nats


def read_pool_rows(recipe: Recipe, data: Data) -> PoolRows:
    """Read the training rows of a pool. Columns of two whole numbers are categories, in any number of cells."""
    asked, given = PoolParameters.of(recipe), recipe.columns
    automatic = given.is_automatic or given.categorical_features is None
    recipe = recipe.with_(
        columns=replace(given, categorical_features=None if automatic else given.categorical_features)
    )
    rows = _read(recipe, data)
    rows, _ = count_rows(rows, rows.y_true)
    summary = _summarised(rows)
    schema, names = rows.source.schema, rows.source.schema.given
    stated = {schema.names[column_of(key, schema)] for key in asked.stated_densities}
    binary = [column.name for column in summary.columns if column.n_values == 2] if automatic else []
    binary = [name for name in binary if name in names and name not in stated]
    if binary:
        recipe = recipe.with_(columns=replace(given, categorical_features=binary))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IgnoredColumnWarning)  # the first reading has warned
            warnings.simplefilter("ignore", RepeatedRowsWarning)
            rows, _ = count_rows(rows := _read(recipe, data), rows.y_true)
            summary = _summarised(rows)
    coded = categorical_places(recipe.columns.categorical_features, asked.distributions, names)
    categorical = [names[j] for j in sorted(coded)] if coded else "from_dtype"
    of_members = Columns(categorical_features=categorical, keep=given.keep, dates=given.dates)
    prior = _prior(rows)
    ratio = log_prior_ratio(asked.priors, rows.target, prior)
    return PoolRows(rows, summary, {"columns": of_members, "n_jobs": asked.n_jobs}, prior, ratio)


def _read(recipe: Recipe, data: Data) -> TrainingRows:
    """Read rows, which stay in memory for all later passes if they are few enough."""
    rows = read_first_rows(recipe, data.X, data.y, data.sample_weight, classes=data.classes)
    rows = replace(rows, source=rows.source.cached())
    if rows.source.label_model is not None:
        raise ValueError(
            "y is a mask of possible classes, which takes EM over all rows: NaiveBayes, GaussianDiscriminant, "
            "TreeAugmentedNaiveBayes and ChowLiuClassifier learn from it by fit"
        )
    return rows


def _summarised(rows: TrainingRows) -> TableSummary:
    with step(READING):
        return summarise_table(rows.source, len(rows.target.categories))


def _prior(rows: TrainingRows) -> Array:
    """Return p(y) of the training rows with a label, (C,)."""
    known, weight = rows.y_true >= 0, rows.source.weight
    counts = np.bincount(rows.y_true[known], None if weight is None else weight[known], len(rows.target.categories))
    prior: Array = counts / max(counts.sum(), np.finfo(np.float64).tiny)
    return prior
