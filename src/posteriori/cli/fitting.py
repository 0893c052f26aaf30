"""Fits of the command fit: a table is opened, and a model of one column or of all is fitted, scored and saved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import polars as pl

from posteriori.classifiers.training_record import record_rows
from posteriori.cli.class_fit import FOLDS, RECORDED, fit_classes
from posteriori.cli.files import merge_spellings, open_and_summarise
from posteriori.cli.fit_facts import facts_of_columns
from posteriori.cli.fit_options import FitOptions, HoldOutOptions, folds_of_number, joint_model_of, refuse_of_classes
from posteriori.cli.messages import UserError, as_user_errors, note
from posteriori.cli.named_columns import (
    NOT_OF_DENSITIES,
    columns_named,
    columns_of_kinds,
    features_left,
    group_numbers,
    without_groups,
)
from posteriori.cli.options import apply_settings
from posteriori.cli.outputs import Output
from posteriori.cli.report import report_at
from posteriori.cli.targets import (
    QuantityError,
    check_column,
    check_labels,
    check_numeric,
    check_whole,
    cuts_of,
    note_dates,
    without_number,
)
from posteriori.facts.joint import columns_of, explained, joint_facts
from posteriori.facts.model import Facts
from posteriori.facts.numbers import judged_numbers, number_importance, number_members
from posteriori.learning.folded_data import MOST_EVALUATED, MOST_EVALUATED_BY_ALL
from posteriori.learning.work_bounds import DESCRIBING, first_steps, fitting_steps
from posteriori.reading import Scan, TargetCuts
from posteriori.registry import REGRESSOR, REGRESSORS
from posteriori.statistics.description import ScannedTable, describe_scan
from posteriori.support.typing import Array
from posteriori.tables import IgnoredColumnWarning
from posteriori.tables.polars import exactly
from posteriori.tables.progress import WITHOUT_HELD_OUT, Step, plan_steps, start_progress


@dataclass(frozen=True)
class Opened:
    """A table that a model is fitted to: its rows, their description, and what the options ask of it.

    The target is described as a column if it is predicted as a number, and by its labels if it holds classes.
    """

    scan: Scan
    description: ScannedTable
    place: Output
    kinds: dict[str, list[str]] = field(default_factory=dict)  # columns of --column and --categorical
    cuts: TargetCuts | None = None
    groups: str | None = None
    hold_out: HoldOutOptions | None = None
    is_number: bool = False

    def group_of_rows(self, target: str, left_out: str | None) -> Array | None:
        """Return the group of each row, (n,); without the rows that have no cell in the column `left_out`."""
        if self.groups is None:
            return None
        column = self.scan.narrowed([self.groups, target], left_out).frame.select(exactly(self.groups))
        return group_numbers(column.collect(engine="streaming").to_series())


def run(options: FitOptions) -> Facts:
    """Fit, save and report as requested; return the facts that the command prints.

    Raises
    ------
    UserError
        Options contradict each other or do not suit the table.
    """
    target, report = options.target, options.output.report
    begun = {"command": "fit", "table": " ".join(options.tables)}
    ended: Facts = {"output": str(options.path)}
    if target is None:
        _, data = open_and_summarise(options.tables, lambda scan: _open_columns(scan, options))
        return {**begun, **_fit_joint(options, data), **ended}
    page = None if report is None else report_at(report, options.tables, options.path, options.output.force)
    spec = options.spec()
    _, data = open_and_summarise(options.tables, lambda scan: _open_target(scan, options, target))
    if data.is_number:
        return {**begun, **_fit_number(options, data, target), **ended}
    facts = fit_classes(options, data, target, spec, page)
    return {**begun, **facts, **ended, "report": None if report is None else str(report)}


def _open_columns(scan: Scan, options: FitOptions) -> Opened:
    """Check the options on columns of a joint model, and describe the columns in one pass."""
    _, names = joint_model_of(options.columns, list(scan.names), options.title)
    return Opened(scan, describe_scan(scan, names, None), options.place())


def _open_target(scan: Scan, options: FitOptions, target: str) -> Opened:
    """Check the target and the options on columns, and describe the columns in one pass."""
    check_column(target, scan.types, options.title)
    cuts = cuts_of(scan.frames([target]), target, options.labels)
    if cuts is not None and not options.model.is_regressor:
        scan = scan.with_target_cut(target, cuts)
    features, groups = features_left(scan.names, target, options.columns.ignore, options.title), options.model.groups
    if groups is not None:
        groups, features = without_groups(groups, scan.names, features, target, options.title)
    hold_out = options.hold_out.checked(scan.types, target)
    kinds = _columns_by_kind(options, features)
    place = options.place()  # after wrong names of columns, which are the more likely mistake
    classes = None if options.model.is_regressor else _describe_classes(scan, options, target, features, hold_out)
    if classes is None:
        check_numeric(target, scan.types, scan.remarks.get(target))
        description = describe_scan(scan, [*features, target], None)
        return Opened(scan, description, place, kinds, cuts, groups, hold_out, is_number=True)
    scan, description = classes
    for kind, names in kinds.items():
        for name in names:
            if kind not in (*NOT_OF_DENSITIES, "categorical") and not scan.types[name].is_numeric():
                raise UserError(f"--column reads {name!r} as {kind}, and it holds no numbers; remove it")
    return Opened(scan, description, place, kinds, cuts, groups, hold_out)


def _columns_by_kind(options: FitOptions, features: list[str]) -> dict[str, list[str]]:
    kinds = columns_of_kinds(options.columns.columns, features)
    categorical = columns_named(options.columns.categorical, features, "--categorical") + kinds.pop("categorical", [])
    for kind, names in kinds.items():
        both = next((name for name in names if name in categorical), None)
        if both is not None and kind != "keep":
            raise UserError(f"{both!r} is named as categorical and as {kind}; choose one")
    return kinds | {"categorical": categorical}


def _describe_classes(
    scan: Scan, options: FitOptions, target: str, features: list[str], hold_out: HoldOutOptions | None
) -> tuple[Scan, ScannedTable] | None:
    """Return the rows with classes in one spelling, and their description; plan the steps of the fit.

    Return None if the target holds a quantity, and no model of classes is named.

    Raises
    ------
    UserError
        The target does not hold what the model predicts.
    """
    _plan(scan.n_rows, len(features), options, hold_out)
    try:
        progress = start_progress(DESCRIBING, scan.n_rows)
        description = describe_scan(scan, features, target, progress, lambda labels: check_whole(target, labels))
        usual = merge_spellings(description.labels)
        if usual:
            scan = scan.with_labels_as(target, usual)
            description = describe_scan(scan, features, target)
        check_labels(target, description.labels, options.labels.target_is_class)
    except QuantityError:
        if options.model.model is not None:
            raise
        return None
    except UserError as error:
        raise UserError(scan.remarks.get(target, str(error))) from error
    note_dates(target, description.labels)
    return scan, description


def _plan(n_rows: int, n_columns: int, options: FitOptions, hold_out: HoldOutOptions | None) -> None:
    """Plan the steps of the fit of a model of classes, for the display of progress."""
    is_pool = options.model.model is None
    n_evaluated = min(n_rows, MOST_EVALUATED_BY_ALL if is_pool else MOST_EVALUATED)
    describing, *reading = first_steps(n_rows, n_columns)
    n_candidates, folds = 10 if is_pool else 1, options.model.folds or FOLDS
    steps = [*reading, *fitting_steps(n_rows, n_columns, n_evaluated, n_candidates, folds)]
    if hold_out is not None:
        cost, passes = sum(one.cost for one in steps), sum(one.passes for one in steps)
        steps.insert(0, Step(WITHOUT_HELD_OUT, (1.0 - hold_out.share) * cost, passes))
    plan_steps([describing, *steps])


def _fit_number(options: FitOptions, data: Opened, target: str) -> Facts:
    """Fit and save a regressor, and record its training rows in it; return the facts."""
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
        record_rows(estimator, rows.narrowed(features).frame.head(RECORDED).collect(engine="streaming"))
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
    return facts


def _fit_joint(options: FitOptions, data: Opened) -> Facts:
    """Fit and save a joint model of all columns; return the facts."""
    estimator, names = joint_model_of(options.columns, list(data.scan.names), options.title, options.columns.targets)
    rows = data.scan.narrowed(names)
    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)  # a hint on the page names the columns
        estimator.fit(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has printed those that matter
            explanation = explained(estimator, rows)
        data.place.save(estimator)
    return {
        **joint_facts(estimator),
        "target": None,
        "rows": data.description.n_rows,
        **facts_of_columns(estimator, data.scan, data.description, reads_text=False),
        "can_be_asked": columns_of(estimator),
        **explanation,
    }
