"""Training rows of a pool, and the candidates that are fitted to them within a time budget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.candidates import (
    CANNOT_FIT,
    OF_COUNTS,
    CandidateFits,
    CandidateFitter,
    MemberOptions,
    reason_of,
    resolve_members,
    select_candidates,
    summarise_table,
)
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.generative_forest import GenerativeForest
from posteriori.classifiers.naive_bayes import NaiveBayes
from posteriori.classifiers.pool_updates import log_prior_ratio
from posteriori.densities.tree_growing import trees_for
from posteriori.fitting.named_columns import categorical_places, column_of
from posteriori.fitting.parameter_groups import Columns, Labels, columns_of
from posteriori.learning.fit import Plan, TrainingRows
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.learning.work_bounds import READING, affordable_folds, reasons_against_plans, total_work
from posteriori.model_cost import TableSummary
from posteriori.support import compilation
from posteriori.support.typing import Array
from posteriori.tables import IgnoredColumnWarning, Schema
from posteriori.tables.progress import step, without_passes
from posteriori.user_warnings import warn

_USUAL_FOLDS = 5  # for which candidates are selected: more folds leave no candidate out


@dataclass(frozen=True, eq=False)
class PoolRequest:
    """What the parameters of a pool ask of its rows and candidates, read once at the door of its fit."""

    members: Any
    columns: Columns
    labels: Labels
    distributions: Any
    missing: str
    priors: Any
    time_budget: float | None
    n_jobs: int | None

    def __post_init__(self) -> None:
        """Raise ValueError if a pool cannot do what its labels ask for."""
        if self.labels.label_noise is not None or isinstance(self.labels.unlabelled_weight, str):
            raise ValueError(
                f"a pool has no label_noise, and a number as unlabelled_weight, but labels is {self.labels}; leave it "
                "out, or choose NaiveBayes, GaussianDiscriminant or TreeAugmentedNaiveBayes"
            )


def read_pool_rows(
    request: PoolRequest, X: Any, y: Any, sample_weight: Any, classes: Any
) -> tuple[TrainingRows, TableSummary, dict[str, Any]]:
    """Return the training rows, their summary, and the parameters of all members."""
    given = request.columns
    automatic = given.is_automatic or given.categorical_features is None
    stated = None if automatic else given.categorical_features
    reader = NaiveBayes(
        columns=clone(given).set_params(categorical_features=stated),
        distributions=request.distributions,
        labels=request.labels,
        n_jobs=request.n_jobs,
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
    named = request.distributions if isinstance(request.distributions, Mapping) else ()
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
    coded = categorical_places(columns_of(reader).categorical_features, request.distributions, names)
    categorical = [names[j] for j in sorted(coded)] if coded else "from_dtype"
    of_members = Columns(categorical_features=categorical, keep=given.keep, dates=given.dates)
    common = {"columns": of_members, "n_jobs": request.n_jobs}
    return rows, summary, common


def priors_of_rows(request: PoolRequest, rows: TrainingRows) -> tuple[Array, Array]:
    """Return p(y) of the training rows with a label, and the log ratio of `priors` to it, both (C,)."""
    y_true, weight = rows.y_true, rows.source.weight
    known = y_true >= 0
    n_classes = len(rows.target.categories)
    counts = np.bincount(y_true[known], None if weight is None else weight[known], n_classes)
    prior: Array = counts / max(counts.sum(), np.finfo(np.float64).tiny)
    return prior, log_prior_ratio(request.priors, rows.target, prior)


def candidates_of(
    request: PoolRequest, folded: FoldedData, summary: TableSummary, common: Mapping[str, Any]
) -> tuple[dict[str, GenerativeEstimator], dict[str, str], dict[str, str]]:
    """Return the candidates, why others are left out, and which of these cost too much."""
    options = _options(request, folded.source.schema, common)
    if not isinstance(request.members, str):
        return resolve_members(request.members, options), {}, {}
    selected = select_candidates(summary, options)
    if request.time_budget is None:
        usual = replace(folded.work_counts, folds=min(folded.folds, _USUAL_FOLDS))
        plans = _plans_of(selected.estimators, folded)
        selected = selected.without(reasons_against_plans(plans, folded.source.schema, usual))
    skipped = selected.declined | selected.too_costly
    if not selected.estimators:
        listed = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise ValueError(f"no candidate suits this table: {listed}")
    return selected.estimators, skipped, selected.too_costly


def with_affordable_folds(
    request: PoolRequest, folded: FoldedData, estimators: Mapping[str, GenerativeEstimator], seed: int
) -> FoldedData:
    """Return the rows in fewer folds, with a warning, if cross-validation exceeds the memory; announce what is long."""
    if request.time_budget is not None:
        return folded
    plans = list(_plans_of(estimators, folded).values())
    work = total_work(plans, folded.source.schema, folded.work_counts)
    reason = work.reason_too_much()
    if reason is None:
        what = f"the fit of {len(plans)} candidates with {folded.folds:,} folds"
        work.announce(what, "name fewer members, ask for fewer folds or set time_budget")
        return folded
    few = folded.folds <= _USUAL_FOLDS
    fewer = 0 if few else affordable_folds(plans, folded.source.schema, folded.work_counts)
    if fewer == 0:
        return folded  # `cross_fit` says why
    warn(f"folds is reduced from {folded.folds:,} to {fewer:,}: {reason}")
    return folded.dealt(fewer, seed)


def _options(request: PoolRequest, schema: Schema, common: Mapping[str, Any]) -> MemberOptions:
    """Return what members are asked for, with the densities of the columns of numbers and of counts by name."""
    names = schema.names
    numbers, counts = (tuple(names[j] for j in schema.of_kind(kind)) for kind in ("continuous", "counts"))
    stated = request.distributions or {}
    if isinstance(stated, str):
        stated = dict.fromkeys(counts if counts and stated in OF_COUNTS else numbers, stated)
    of_name = {names[column_of(key, schema)]: density for key, density in stated.items()}
    densities = {name: density for name, density in of_name.items() if name in (*numbers, *counts)}
    has_others = bool(schema.dense)
    return MemberOptions(common, request.missing, request.labels, densities, numbers, counts, has_others)


def _in_memory(rows: TrainingRows) -> TrainingRows:
    """Return the same rows, kept in memory for the summary of the table and all later passes if they are few enough."""
    return replace(rows, source=rows.source.cached())


def _plans_of(estimators: Mapping[str, GenerativeEstimator], folded: FoldedData) -> dict[str, Plan]:
    return {name: one.training_plan(folded.source.schema, folded.target) for name, one in estimators.items()}


_RESERVE = 0.2  # of the budget, for the weights and the scores of the pool
_SAMPLED = 1000  # rows on which a candidate is timed
_MOST_REFUSED = 3  # candidates that are timed and take too long; the others are not even timed
_FEWEST_TREES = 10
_TIMED_TREES = 10


def clock() -> float:
    """Return seconds without those of compilation, which happens once per machine."""
    return time.monotonic() - compilation.seconds()


@dataclass(frozen=True)
class TimeBudget:
    """Seconds for a fit."""

    seconds: float
    begun: float  # when the fit began, by `clock`

    def left(self) -> float:
        """Return the seconds that candidates may still take."""
        return self.seconds * (1.0 - _RESERVE) - (clock() - self.begun)


def fit_within(
    budget: TimeBudget, fitter: CandidateFitter, estimators: Mapping[str, GenerativeEstimator]
) -> tuple[CandidateFits, dict[str, str]]:
    """Fit the candidates one by one while there is time; return them, and why the others are left out.

    A candidate is timed on 1,000 rows, if the table has four times as many, and its time on all rows is predicted to be
    in proportion to the rows, corrected by what the earlier candidates took. Without a sample it is expected to take as
    long as the longest so far. A forest gets as many trees as fit into the time that is left. Candidates are tried in
    the order given, and the first that can be fitted is fitted in any case.

    Raises
    ------
    ValueError
        All candidates fail.
    """
    folded = fitter.folded
    fits: CandidateFits | None = None
    skipped: dict[str, str] = {}
    errors: dict[str, Exception] = {}
    refused = 0
    forecast = _Forecast(folded)
    for name, one in estimators.items():
        candidate, expected = one, 0.0
        if fits is not None:
            if budget.left() <= 0 or refused == _MOST_REFUSED:
                skipped[name] = f"too little time is left of the budget of {budget.seconds:g} s"
                continue
            try:
                suited, expected = forecast.affordable(one, budget)
            except CANNOT_FIT as error:
                errors[name] = error
                continue
            if suited is None:
                refused += 1
                skipped[name] = (
                    f"it would take about {expected:.2g} s, and {max(budget.left(), 0.0):.2g} s are left of the budget "
                    f"of {budget.seconds:g} s"
                )
                continue
            candidate = suited
        begun = clock()
        try:
            found = fitter.fit({name: candidate})
        except CANNOT_FIT as error:
            errors[name] = error
            continue
        seconds = clock() - begun
        if fits is None and budget.left() > 0:
            expected = forecast.seconds(one)
        forecast.learn(expected, seconds)
        fits = found if fits is None else fits.joined(found)
    if fits is None:
        raise next(iter(errors.values()))
    failed = {name: reason_of(error) for name, error in errors.items()}
    return replace(fits, failed=fits.failed | failed), skipped


class _Forecast:
    """Expected seconds of candidates, from a sample of the rows and from the candidates so far."""

    def __init__(self, folded: FoldedData) -> None:
        self._folded = folded
        self._sample: FoldedData | None = None
        self._longest = 0.0
        self._ratio = 1.0  # of the time that the last candidate took to that expected from the sample

    def affordable(self, one: GenerativeEstimator, budget: TimeBudget) -> tuple[GenerativeEstimator | None, float]:
        """Return the candidate, with as many trees as fit into the budget, or None; and its expected seconds."""
        if not isinstance(one, GenerativeForest):
            expected = self.seconds(one)
            return (one if expected <= budget.left() else None), expected
        wanted = trees_for(self._folded.n_labelled, one.splits) if isinstance(one.n_trees, str) else int(one.n_trees)
        per_tree = self.seconds(clone(one).set_params(n_trees=_TIMED_TREES)) / _TIMED_TREES
        fewest = min(wanted, max(_FEWEST_TREES, self._folded.folds))
        n_trees = wanted if per_tree * wanted <= budget.left() else int(budget.left() / per_tree)
        if n_trees < fewest:
            return None, per_tree * fewest
        return clone(one).set_params(n_trees=n_trees), per_tree * n_trees

    def learn(self, expected: float, seconds: float) -> None:
        """Correct the following forecasts by what a candidate took."""
        self._longest = max(self._longest, seconds)
        if expected > 0 and self._sample is not None:
            self._ratio = min(max(self._ratio * seconds / expected, 0.1), 10.0)

    def seconds(self, one: GenerativeEstimator) -> float:
        """Return how long a candidate is expected to take on all rows, from a sample of them."""
        folded = self._folded
        if folded.n_labelled < 4 * _SAMPLED:
            return self._longest
        if self._sample is None:
            self._sample = folded.sample(_SAMPLED)
        begun = clock()
        with warnings.catch_warnings(), without_passes():
            warnings.simplefilter("ignore")
            plan = clone(one).training_plan(self._sample.source.schema, self._sample.target)
            judge_and_sample([plan], self._sample, leave_trees_out=True)
        return self._ratio * (clock() - begun) * folded.n_labelled / len(self._sample.y_true)
