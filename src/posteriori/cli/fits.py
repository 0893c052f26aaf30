"""The three ways of the command fit: a model of classes, of a number, and of all columns, each scored and saved."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from posteriori.classifiers.kept_predictions import keep_predictions
from posteriori.classifiers.training_record import record_rows
from posteriori.cli.fit_facts import facts_of_columns, find_alerts, fit_facts
from posteriori.cli.fit_options import FOLDS, folds_of_number, joint_model_of, refuse_of_classes
from posteriori.cli.hold_out import HoldOut, Judged, choose_rows, judge_held_out
from posteriori.cli.messages import UserError, as_user_errors, note, warn
from posteriori.cli.options import apply_settings, unlabelled_facts
from posteriori.cli.report import write_report
from posteriori.cli.targets import without_number
from posteriori.facts.joint import columns_of, explained, joint_facts
from posteriori.facts.numbers import judged_numbers, number_importance, number_members
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.equal_rows import group_copies
from posteriori.learning.folded_data import MOST_EVALUATED
from posteriori.model_selection import HeldOut, out_of_fold
from posteriori.reading import Scan
from posteriori.reading.target_cuts import numbers_as_classes
from posteriori.registry import REGRESSOR, REGRESSORS, ModelSpec
from posteriori.statistics.description import ScannedTable, describe_scan
from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array
from posteriori.tables import IgnoredColumnWarning
from posteriori.tables.progress import WITHOUT_HELD_OUT, as_one_step

if TYPE_CHECKING:
    from posteriori.classifiers.classifier import Classifier
    from posteriori.classifiers.estimator import Estimator
    from posteriori.cli.fit_options import FitOptions, Opened
    from posteriori.cli.outputs import Output
    from posteriori.facts.model import Facts

_RECORDED = 1 << 18  # first rows that evaluate recognises


def fit_classes(options: FitOptions, data: Opened, target: str, spec: ModelSpec, page: Output | None) -> Facts:
    """Fit, save and report; return the facts."""
    description, positive = data.description, options.output.positive
    if positive is not None:
        with as_user_errors():
            class_index(positive, sorted(description.labels, key=str))  # an error before the fit
    labels = pl.Series(target, list(description.labels), dtype=data.scan.types[target])
    folds = _folds(options, description)
    estimator, use = apply_settings(_estimator(options, data, target, spec), spec, options.settings, labels)
    features, n_unlabelled = list(description.columns), description.n_rows - description.n_labelled
    left_out = target if n_unlabelled and use == "ignore" else None
    rows = data.scan.narrowed([*features, target], left_out)
    if left_out is not None:
        with as_user_errors():
            description = describe_scan(rows, features, target)
    groups = data.group_of_rows(target, left_out)
    held, scorer = None, None
    with _columns_to_bin(data, features):
        if data.hold_out is not None:
            seed = estimator.get_params().get("random_state") or 0
            copies = _copies(estimator, rows, target)
            held = choose_rows(data.scan, target, data.hold_out, data.groups, left_out, seed, copies)
            scorer = _fit_to_others(spec, estimator, rows, target, folds, groups, held)
        scored = _with_positive(_cross_validate(spec, estimator, rows, target, folds, groups), positive)
    _say_unused_bins(options, spec, scored.estimator)
    judged = Judged(scored, held, numbered=not n_unlabelled)
    if held is not None:
        with as_user_errors():
            predictions = judge_held_out(scorer, scored.estimator, rows, features, target, held)
        judged = judged._replace(predictions=replace(predictions, positive=scored.positive))
    if data.cuts is not None:
        _set_record(scored.estimator, target_cuts=data.cuts)
    with _saved_in_any_case(scored.estimator, data.place):
        facts = {
            "model": spec.name,
            **_facts(scored, rows, target, description, judged),
            "unlabelled": unlabelled_facts(scored.estimator, n_unlabelled, use),
        }
    with as_user_errors():
        _record_rows(scored, rows.narrowed(features), judged)
        data.place.save(scored.estimator)
    if page is not None:
        with as_user_errors(), page.writing() as path:
            # Figures of the report show single rows, with their predictions.
            shown = rows if held is None else rows.at(held.judged)
            write_report(judged.predictions, shown.frame.collect(), target, path, f"{target} in {options.title}")
    return facts


def _estimator(options: FitOptions, data: Opened, target: str, spec: ModelSpec) -> Any:
    """Return the estimator that reads the columns, and orders the classes, as the options ask."""
    order = options.labels.levels(target, data.description.labels)
    return options.make_estimator(spec, data.kinds, order)


def _folds(options: FitOptions, description: ScannedTable) -> int:
    """Return the number of folds, at most the number of labelled rows."""
    n_labelled = description.n_labelled
    if n_labelled < 2:
        kind = "row" if description.n_rows < 2 else "row with a label"
        raise UserError(f"{options.title!r} has only one {kind}; cross-validation needs at least two")
    folds = options.model.folds or FOLDS
    if folds > n_labelled:
        rows = "rows" if n_labelled == description.n_rows else "rows with a label"
        warn(f"there are only {n_labelled} {rows}, so each of them is a fold")
    return min(folds, n_labelled)


def _say_unused_bins(options: FitOptions, spec: ModelSpec, fitted: Any) -> None:
    """Say on stderr that --set bins has no effect if the model has no column in bins, and how a column gets some."""
    columns = fitted.schema_.columns
    if "bins" not in options.settings or any(column.cuts is not None for column in columns):
        return
    numbers = list(dict.fromkeys(column.source for column in columns if column.kind == "continuous"))
    how = f"; add --column {shlex.quote(','.join(numbers) + '=binned')}" if "binned" in spec.options and numbers else ""
    note(f"--set bins={options.settings['bins']} has no effect, because {spec.name} cuts no column into bins here{how}")


@contextmanager
def _columns_to_bin(data: Opened, features: list[str]) -> Iterator[None]:
    """Name the option, and the columns, in errors that advise distributions="binned", which --set does not have."""
    try:
        yield
    except UserError as error:
        stated = {name for names in data.kinds.values() for name in names}
        numbers = [name for name in features if name not in stated and data.scan.types[name].is_numeric()]
        option = f"add --column {shlex.quote(','.join(numbers) + '=binned')}"
        raise UserError(str(error).replace('set distributions="binned"', option)) from error


@contextmanager
def _saved_in_any_case(estimator: Estimator, place: Output) -> Iterator[None]:
    """Save a fitted model, without its feature importance, if a fact about it cannot be computed."""
    try:
        yield
    except Exception:
        estimator.fitted_ = estimator.fitted_.with_record(importance=None, held_out=None, drawn=None)
        place.save(estimator)
        note(f"the model is saved to {str(place.path)!r} without its feature importance")
        raise


def _with_positive(scored: HeldOut, positive: str | None) -> HeldOut:
    """Return the predictions with the class of interest: that of --positive, else the rarer of two."""
    if positive is None:
        return replace(scored, positive=scored.figures.of_interest)
    return replace(scored, positive=class_index(positive, scored.classes.tolist()))


def _facts(scored: HeldOut, rows: Scan, target: str, description: ScannedTable, judged: Judged) -> dict[str, Any]:
    """Return the facts about a fit, and set the alerts of the model."""
    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fit, which has printed them
        alerts = find_alerts(scored.estimator, rows, target, description)
        _set_record(scored.estimator, alerts=alerts)
    return {**fit_facts(rows, description, scored, judged), "alerts": alerts}


def _set_record(estimator: Estimator, **changed: Any) -> None:
    """Change what a fitted estimator knows of its training rows."""
    estimator.fitted_ = estimator.fitted_.with_record(**changed)


def _record_rows(scored: HeldOut, rows: Scan, judged: Judged) -> None:
    """Record in the model the first rows and out-of-fold predictions, by which commands recognise training rows.

    The figures behind the printed sentences are recorded, too.
    """
    _set_record(scored.estimator, figures=judged.predictions.figures)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fit, which has printed them
        record_rows(scored.estimator, rows.frame.head(_RECORDED).collect(engine="streaming"))
        keep_predictions(scored.estimator, scored, lambda places: rows.at(places).frame.collect(engine="streaming"))


def _copies(estimator: Classifier, rows: Scan, target: str) -> Array | None:
    """Return the group of equal rows of each row, (n,), if rows are copies."""
    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit repeats them
        return group_copies(read_first_rows(estimator.recipe, rows, target))


def _fit_to_others(
    spec: ModelSpec, estimator: Classifier, rows: Scan, target: str, folds: int, groups: Array | None, held: HoldOut
) -> Any:
    """Return a copy of the estimator that learned from the rows that are not held out."""
    from sklearn.base import clone

    others, scorer = rows.at(held.trained), clone(estimator)
    with as_user_errors(), numbers_as_classes(), as_one_step(WITHOUT_HELD_OUT), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit to all rows repeats those that matter
        if spec.name != "pool":
            return scorer.fit(others, target)
        if groups is not None:
            groups = groups[held.trained]
            folds = min(folds, held.groups_left(groups))
        return scorer.set_params(folds=folds).fit(others, target, groups=groups)


def _cross_validate(
    spec: ModelSpec, estimator: Classifier, rows: Scan, target: str, folds: int, groups: Array | None
) -> HeldOut:
    """Return a copy that learned from all rows, with its out-of-fold predictions."""
    # `check_labels` has refused targets that look like a quantity, so that numbers are classes here.
    with as_user_errors(), numbers_as_classes(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)  # a hint on the page names the columns
        if spec.name == "pool":
            pooled: HeldOut = estimator.set_params(folds=folds).fit(rows, target, groups=groups).out_of_fold_
            return pooled
        return out_of_fold(estimator, rows, target, folds=folds, groups=groups, most=MOST_EVALUATED)


def fit_number(options: FitOptions, data: Opened, target: str, page: Output | None) -> Facts:
    """Fit, save and report a regressor, and record its training rows in it; return the facts."""
    refuse_of_classes((options.output, options.hold_out, options.labels), target)
    spec = REGRESSORS[options.model.model or REGRESSOR.name]
    if options.output.without_rows and spec.name != "additive":
        raise UserError(
            f"a model of {target!r} by {spec.name} predicts from training rows; add --model additive, which does not, "
            "or leave out --without-rows"
        )
    made = options.make_estimator(spec, data.kinds)
    estimator, _ = apply_settings(made, spec, options.settings, pl.Series([], dtype=pl.String))
    if spec is REGRESSOR and isinstance(estimator.members, str) and estimator.members != "auto":
        estimator.set_params(members=[estimator.members])  # one name
    estimator.set_params(folds=folds_of_number(options.model.folds))
    if options.model.model is None:
        note(f"{target!r} holds numbers, so the model predicts a number; --classes 4 cuts it into classes")
    of_target, n_rows = data.description.columns[target].cells, data.description.n_rows
    features = [name for name in data.description.columns if name != target]
    left_out = target if of_target.missing else None
    groups = data.group_of_rows(target, left_out)
    if not of_target.present:
        raise UserError(f"every cell of the target {target!r} is missing; choose another target")
    if of_target.missing:
        note(f"{without_number(of_target.missing, target)}, of {n_rows:,}")
    rows = data.scan.narrowed([*features, target], left_out)
    with as_user_errors():
        estimator.fit(rows, target, groups=groups)
        record_rows(estimator, rows.narrowed(features).frame.head(_RECORDED).collect(engine="streaming"))
    held = estimator.out_of_fold_
    facts = {
        "model": spec.name,
        "rows": n_rows,
        "rows_without_target": of_target.missing,
        "target_range": {"min": of_target.lowest, "mean": of_target.mean, "max": of_target.highest},
        **facts_of_columns(estimator, data.scan, data.description, reads_text=False),
        "folds": estimator.folds,
        "members": number_members(estimator),
        **{name: value for name, value in judged_numbers(held.density, held.y, target).items() if name != "rows"},
        "held_out_rows": len(held.y),
        **number_importance(estimator),
    }
    with as_user_errors():
        data.place.save(estimator)
    _write_page(page, estimator, rows, target, f"{target} in {options.title}")
    return facts


def _write_page(page: Output | None, estimator: Estimator, rows: Scan, target: str | None, title: str) -> None:
    """Write the report of a regressor or a joint model that was just fitted to rows, if it is asked for."""
    if page is None:
        return
    from posteriori import reporting

    with as_user_errors(), page.writing() as path, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit has printed those that matter
        reporting.report(estimator, rows.frame.collect(), target, path, title=title)


def fit_joint(options: FitOptions, data: Opened, page: Output | None) -> Facts:
    """Fit, save and report a joint model of all columns; return the facts."""
    estimator, names = joint_model_of(options.columns, list(data.scan.names), options.title, options.columns.targets)
    rows = data.scan.narrowed(names)
    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)  # a hint on the page names the columns
        estimator.fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has printed those that matter
            explanation = explained(estimator, rows)
        data.place.save(estimator)
    _write_page(page, estimator, rows, None, f"The columns of {options.title}")
    return {
        **joint_facts(estimator),
        "target": None,
        "rows": data.description.n_rows,
        **facts_of_columns(estimator, data.scan, data.description, reads_text=False),
        "can_be_asked": columns_of(estimator),
        **explanation,
    }
