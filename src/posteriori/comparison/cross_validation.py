"""Cross-validation of several models: exact and in one pass for generative ones, by refits for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from posteriori.classifiers import GenerativeEstimator
from posteriori.comparison.discriminative import with_targets
from posteriori.comparison.models import (
    OF_COMPARISONS,
    Rows,
    chosen_models,
    predict_with,
    predicts_density,
    predicts_number,
    read_rows,
    rows_for,
    with_all_classes,
)
from posteriori.comparison.result import text_table
from posteriori.fitting.rows import read_first_rows
from posteriori.fitting.unlabelled_weight import with_held_out_weight
from posteriori.learning.equal_rows import group_copies
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.learning.folds import assign_folds
from posteriori.model_selection.held_out_predictions import HeldOut, Learner, results_of
from posteriori.model_selection.measures import MEASURES, OF_CLASSES, OF_NUMBERS
from posteriori.model_selection.metrics import area_under_curve, scores_of
from posteriori.reading import check_weights
from posteriori.registry import find_model
from posteriori.regression.held_out import HeldOutNumbers, mean_scores, scores_of_rows, standard_errors
from posteriori.support.checks import generator
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.markup import table as html_table
from posteriori.support.typing import Array
from posteriori.tables.schema import categorical_column
from posteriori.user_warnings import each_once

_FEWEST_FOLDS = 3  # of a regressor's own


@dataclass(frozen=True)
class CrossValidation:
    """Held-out predictions of several models, and their scores.

    Attributes
    ----------
    table : polars DataFrame
        One row per model: ``model``, then log_loss (nats), accuracy, brier (in [0, 2]), auc (one class against the
        others, averaged by the weights of the classes) and calibration_error. Each is followed by its standard error,
        as ``log_loss_se``: over rows, and for auc and calibration_error over folds. Of numbers crps, log_score (nats),
        rmse, mae, r2, and coverage and width of 90 % intervals; only rmse, mae and r2 of a model without a density.
    posteriors : dict
        For each title p(y | x) of each row, (n, C), by the model of the other folds. Of numbers for each fold the
        densities of its rows, a `PredictiveDensity`, or the predicted numbers.
    y_true, fold, weight : ndarray (n,)
        The class index or the number, the fold, and the weight of each row.
    classes : ndarray (C,)
        The classes, in the order of the columns of the posteriors; empty of numbers.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> found = po.cross_validate(["nb", "lda"], table, "species")
    >>> found.table["model"].to_list()
    ['naive Bayes', 'LDA']
    >>> found.posteriors["LDA"].shape
    (344, 3)
    """

    table: pl.DataFrame
    posteriors: dict[str, Any]
    y_true: Array
    fold: Array
    weight: Array
    classes: Array

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the scores."""
        names = (*OF_CLASSES, "ranked_score") if len(self.classes) else OF_NUMBERS
        return tuple([name for name in names if name in self.table.columns])

    def __str__(self) -> str:
        return text_table(*self._head_and_lines())

    def _repr_html_(self) -> str:
        title = f"cross-validation in {len(np.unique(self.fold))} folds, {len(self.fold):,} rows; ± standard error"
        return html_table(title, *self._head_and_lines())

    def _head_and_lines(self) -> tuple[list[str], list[list[str]]]:
        head = ["model", *(name.replace("_", "-") for name in self.measures)]
        lines = [
            [row["model"], *(MEASURES[name].text(row[name], row[f"{name}_se"], 4) for name in self.measures)]
            for row in self.table.iter_rows(named=True)
        ]
        return head, lines


@partial(explain_unknown_keywords, groups={}, wanted=OF_COMPARISONS)
@each_once()
def cross_validate(
    models: Any,
    X: Any,
    y: Any,
    *,
    folds: Any = 5,
    stratified: bool = True,
    groups: Any = None,
    sample_weight: Any = None,
    categorical_features: Any = "from_dtype",
    keep: Any = None,
    dates: Any = "parts",
    text: Any = "auto",
    order: Sequence[Any] | None = None,
    random_state: Any = 0,
    progress: Callable[[int], None] | None = None,
) -> CrossValidation:
    """Compare models by k-fold cross-validation.

    All generative classifiers of posteriori are learned in one pass over the rows, which adds up statistics per fold.
    The result equals that of a refit per fold, including the cut points of binned columns. It is approximate for bins
    of more than 50,000 rows (fewer with more than 167 columns), whose cut points come from a sample, and for models
    that need EM, within its tolerance: see Notes. Other classifiers, and `GenerativeClassifier`, are refitted.

    Parameters
    ----------
    models : name, classifier or regressor, sequence or mapping of these, or None
        As in `compare`. All predict classes, or all numbers.
    X, y, sample_weight : as in `NaiveBayes.fit`
    folds : int, array-like (n,) or splitter, default 5
        The number of folds, the fold of each row, or an object of scikit-learn whose test rows are disjoint and cover
        all rows, such as ``StratifiedKFold(3)``.
    stratified : bool, default True
        Whether to spread every class evenly over the folds.
    groups : array-like (n,), optional
        The group of each row, such as the patient. Rows of one group are in the same fold.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric, for models given by name and for those of
        scikit-learn.
    keep : list of names or indices, or "all", optional
        Columns to use even if they identify rows, as in `NaiveBayes`; for models given by name, and for all models
        that are refitted. Others that identify rows are ignored.
    dates : "parts", "ignore" or list of parts, default "parts"
        How dates are read, as in `NaiveBayes`; for models given by name, and for all models that are refitted.
    text : "auto", list of names or mapping, optional, default "auto"
        Columns of text, as in `NaiveBayes`; for models given by name that read text. Logistic regression reads text as
        tf-idf; other models that are refitted leave it out, with a warning.
    order : list of labels, optional
        The classes as levels, from the lowest to the highest; then the table has ranked_score, the ranked probability
        score in levels. Default: the order of an ordered categorical.
    random_state : int, Generator, RandomState or None, default 0
        Seed of the shuffle of the rows before they are assigned to folds.
    progress : callable, optional
        Called with numbers of finished rows. Their sum is at most twice the number of rows per model.

    Returns
    -------
    CrossValidation

    Raises
    ------
    ValueError
        There are fewer than two folds, or more folds than rows or groups; some models predict classes and others
        numbers; or for the reasons of `fit`.

    Notes
    -----
    EM (for example for missing numbers in a `GaussianDiscriminant`) starts in each fold as in a refit, so that it ends
    at the same model, and the held-out rows have no part in it.

    Regressors of posteriori alone, with three folds or more as a number, are fitted once to all rows. The result is
    their `out_of_fold_`, with `folds` and `random_state` in place of their own: at most 10,000 rows, of which copies
    count once. Otherwise they are refitted per fold, and each row is predicted. Folds are spread evenly over ten
    quantiles of the target.

    References
    ----------
    Arlot & Celisse, A survey of cross-validation procedures for model selection, Statistics Surveys 4 (2010).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> result = po.cross_validate(["nb", "lda"], load_penguins(), "species")
    >>> result.table["model"].to_list()
    ['naive Bayes', 'LDA']
    """
    common = {"categorical_features": categorical_features, "keep": keep, "dates": dates, "text": text}
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        del common["categorical_features"]  # the pool has another default
    titled = chosen_models(models, common, X, y)
    is_seed = isinstance(random_state, Integral)
    seed = int(random_state) if is_seed else int(generator(random_state).integers(2**31 - 1))
    if not all(isinstance(model, GenerativeEstimator) for model in titled.values()):
        X, y, sample_weight, groups, folds = with_targets(X, y, sample_weight, groups, folds)
    if predicts_number(next(iter(titled.values()))):
        own = isinstance(folds, int | np.integer) and folds >= _FEWEST_FOLDS and stratified
        if own and all(map(predicts_density, titled.values())):
            return _by_own_folds(
                titled, (X, y, sample_weight, groups), {"folds": int(folds), "random_state": seed}, progress
            )
        rows = read_rows(X, y, categorical_features, keep, dates, text, of_numbers=True)
        weight = check_weights(sample_weight, len(rows.y_true))
        copies = _copies_of(rows) if groups is None and isinstance(folds, Integral) else None
        fold = assign_folds(rows.strata, folds, stratified=stratified, groups=groups, copies=copies, seed=seed)
        predicted = {}
        for title, model in titled.items():
            of_model = rows_for(title, model, rows, text)
            refits = _refits(title, model, of_model, fold, weight, progress)
            predicted[title] = [predict_with(learner, of_model.features(part)) for part, _, learner in refits]
        return _of_numbers(predicted, rows.y_true, fold, np.ones(len(fold)) if weight is None else weight)
    exact = {title: clone(model) for title, model in titled.items() if isinstance(model, GenerativeEstimator)}
    refitted = {title: model for title, model in titled.items() if title not in exact}
    held_out: dict[str, HeldOut] = {}
    copies = _copies(exact, X, y) if groups is None and isinstance(folds, Integral) else None
    options = {"stratified": stratified, "groups": groups, "copies": copies, "random_state": seed}
    for folded, estimators in _by_schema(exact, X, y, sample_weight, folds, options):
        plans = [estimator.recipe.plan(folded.source.schema, folded.target) for estimator in estimators.values()]
        log_posterior, fitted, _ = judge_and_sample(plans, folded, progress)
        held_out |= {title: results_of(folded, log_posterior[:, :, m], fitted[m]) for m, title in enumerate(estimators)}
    if refitted:
        rows = read_rows(X, y, categorical_features, keep, dates, text, reads_counts=True)
        given = check_weights(sample_weight, len(rows.y_true))
        fold = assign_folds(rows.y_true, folds, stratified=stratified, groups=groups, copies=copies, seed=seed)
        for title, model in refitted.items():
            learner = clone(model)
            held_out[title] = _refitted(title, learner, rows_for(title, learner, rows, text), fold, given, progress)
    one = next(iter(held_out.values()))  # labels, folds and weights are the same for all models
    levels = positions_of(order, one.classes) if order is not None else one.order
    table = pl.DataFrame([{"model": title} | _scores(replace(held_out[title], order=levels)) for title in titled])
    assert one.fold is not None
    return CrossValidation(
        table, {title: held_out[title].filled for title in titled}, one.y_true, one.fold, one.weight, one.classes
    )


def _copies(estimators: Mapping[str, Learner], X: Any, y: Any) -> Array | None:
    """Return the group of equal rows of each row, (n,), as the first model reads them; None without copies."""
    first = next(iter(estimators.values()), None) or find_model("nb").make()
    return group_copies(read_first_rows(first.recipe, X, y))


def _copies_of(rows: Rows) -> Array | None:
    """Return the group of equal rows of each row with a number, (n,); None without copies."""
    recipe = find_model("nb").make(columns__keep="all").recipe
    return group_copies(read_first_rows(recipe, rows.features(np.arange(len(rows.y_true))), rows.strata), rows.y_true)


def _by_own_folds(
    models: Mapping[str, Any], data: tuple[Any, ...], options: Mapping[str, int], progress: Callable[[int], None] | None
) -> CrossValidation:
    """Return the held-out densities of regressors, from one fit of each to all rows."""
    each: dict[str, HeldOutNumbers] = {}
    for title, model in models.items():
        X, y, sample_weight, groups = data
        learner = clone(model).set_params(**options)
        each[title] = learner.fit(X, y, sample_weight, groups=groups).out_of_fold_
        if progress is not None:
            progress(2 * len(each[title].y))
    first = next(iter(each.values()))
    assert first.fold is not None
    for title, held in each.items():
        assert held.fold is not None
        if not (np.array_equal(held.rows, first.rows) and np.array_equal(held.fold, first.fold)):
            raise ValueError(
                f"{title!r} reads other columns than {next(iter(each))!r}, by which it has other folds; give folds as "
                "the fold of each row"
            )
    parts = [np.flatnonzero(first.fold == k) for k in range(int(first.fold.max()) + 1)]
    densities = {title: [held.density[part] for part in parts] for title, held in each.items()}
    return _of_numbers(densities, first.y, first.fold, first.weight)


def _of_numbers(predicted: Mapping[str, list[Any]], y: Array, fold: Array, weight: Array) -> CrossValidation:
    """Return the scores of models of numbers, by what they predict of the rows of each fold."""
    parts = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
    place = np.argsort(np.concatenate(parts))
    lines = []
    for title, of_folds in predicted.items():
        scored = [scores_of_rows(one, y[part]) for one, part in zip(of_folds, parts, strict=True)]
        of_rows = {name: np.concatenate([one[name] for one in scored])[place] for name in scored[0]}
        scores = mean_scores(of_rows, y, weight) | standard_errors(of_rows, y, weight)
        lines.append({"model": title} | {key: scores.get(key) for name in OF_NUMBERS for key in (name, f"{name}_se")})
    return CrossValidation(pl.DataFrame(lines, infer_schema_length=None), dict(predicted), y, fold, weight, np.empty(0))


def _by_schema(
    estimators: Mapping[str, Learner],
    X: Any,
    y: Any,
    sample_weight: Any,
    folds: Any,
    options: Mapping[str, Any],
) -> list[tuple[FoldedData, dict[str, Learner]]]:
    """Group the estimators that read equal rows, so that one pass serves each group."""
    groups: list[tuple[FoldedData, dict[str, Learner]]] = []
    for title, estimator in estimators.items():
        recipe = estimator.recipe
        rows = with_held_out_weight(recipe, read_first_rows(recipe, X, y, sample_weight))
        folded = FoldedData.of(rows, folds, **options)
        for known, members in groups:
            if _reads_equal_rows(known, folded):
                members[title] = estimator
                break
        else:
            groups.append((folded, {title: estimator}))
    if len({tuple(folded.evaluated.tolist()) for folded, _ in groups}) > 1:
        raise ValueError("some models learn from rows without label and others do not; cross-validate them separately")
    return groups


def _reads_equal_rows(first: FoldedData, second: FoldedData) -> bool:
    """Whether two estimators read the rows with equal schema, labels and weights."""
    # Label models are not compared: each estimator may have its own.
    without_label_model = first.source.label_model is None and second.source.label_model is None
    return (
        first.source.schema == second.source.schema
        and len(first.evaluated) == len(second.evaluated)
        and without_label_model
        and first.source.unlabelled_weight == second.source.unlabelled_weight
    )


def _refitted(
    title: str, model: Any, rows: Rows, fold: Array, weight: Array | None, progress: Callable[[int], None] | None
) -> HeldOut:
    """Return the predictions of each row by a model that is refitted to the rows of the other folds."""
    posterior, prior = np.empty((2, len(fold), len(rows.classes)))
    each = np.ones(len(fold)) if weight is None else weight
    for held_out, others, learner in _refits(title, model, rows, fold, weight, progress):
        found = predict_with(learner, rows.features(held_out))
        posterior[held_out] = with_all_classes(found, learner.classes_, rows.classes)
        prior[held_out] = np.bincount(rows.y_true[others], each[others], len(rows.classes)) / each[others].sum()
    with np.errstate(divide="ignore"):
        log_posterior = np.log(posterior)
    return HeldOut(log_posterior, prior, rows.y_true, each, rows.classes, "Refitted to the other folds.", fold)


def _refits(
    title: str, model: Any, rows: Rows, fold: Array, weight: Array | None, progress: Callable[[int], None] | None
) -> Iterator[tuple[Array, Array, Any]]:
    """Yield the positions of the rows of each fold and of the others, and the model fitted to the others."""
    for k in range(int(fold.max()) + 1):
        held_out, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        learner = clone(model)
        weights = {} if weight is None else {"sample_weight": weight[others]}
        try:
            learner.fit(rows.features(others), rows.labels[others], **weights)
        except TypeError as error:
            if weight is None:
                raise
            raise ValueError(
                f"{title!r} does not accept sample_weight ({error}); leave out the model or the weights"
            ) from error
        yield held_out, others, learner
        if progress is not None:
            progress(2 * len(held_out))


def _scores(held_out: HeldOut) -> dict[str, float]:
    """Return the scores of a model, and the standard error of each."""
    assert held_out.fold is not None
    y_true, posterior, weight = held_out.judged
    scores = scores_of(y_true, posterior, weight, None, held_out.fold)
    parts = [np.flatnonzero(held_out.fold == k) for k in range(held_out.folds)]
    areas = np.array([area_under_curve(y_true[part], posterior[part], weight[part]) for part in parts])
    areas = areas[~np.isnan(areas)]  # folds with one class only
    spread = float(np.std(areas, ddof=1) / np.sqrt(len(areas))) if len(areas) > 1 else float("nan")
    scores |= {"auc": area_under_curve(y_true, posterior, weight), "auc_se": spread}
    if held_out.levels is not None:
        ranked = held_out.answer.ranked_score(held_out.classes[y_true])
        scores |= {"ranked_score": held_out.levels.ranked_score, "ranked_score_se": held_out.standard_error(ranked)}
    names = (*OF_CLASSES, *(["ranked_score"] if held_out.levels is not None else ()))
    return {name: scores[name] for shown in names for name in (shown, f"{shown}_se")}


def positions_of(order: Sequence[Any], classes: Array) -> tuple[int, ...]:
    """Return the positions of the classes from the lowest level to the highest; ValueError if one is no level."""
    column = categorical_column("y", classes.tolist(), "object", declared=True)
    return column.ordered_as(list(order)).order
