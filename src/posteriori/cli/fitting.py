"""Fits of the command fit: a table is opened, and a model of one column or of all is fitted, scored and saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from posteriori.cli.files import merge_spellings, open_and_summarise
from posteriori.cli.fit_options import FOLDS, FitOptions, HoldOutOptions, Opened, joint_model_of
from posteriori.cli.messages import UserError
from posteriori.cli.named_columns import (
    NOT_OF_DENSITIES,
    columns_named,
    columns_of_kinds,
    features_left,
    without_groups,
)
from posteriori.cli.report import report_at
from posteriori.cli.targets import (
    QuantityError,
    check_column,
    check_labels,
    check_numeric,
    check_whole,
    cuts_of,
    note_dates,
)
from posteriori.reading import Scan
from posteriori.statistics.description import ScannedTable, describe_scan
from posteriori.tables.progress import WITHOUT_HELD_OUT, Step, plan_steps, start_progress

if TYPE_CHECKING:
    from posteriori.facts.model import Facts


def run(options: FitOptions) -> Facts:
    """Fit, save and report as requested; return the facts that the command prints.

    Raises
    ------
    UserError
        Options contradict each other or do not suit the table.
    """
    target, report = options.target, options.output.report
    page = None if report is None else report_at(report, options.tables, options.path, options.output.force)
    spec = options.spec()
    _, data = open_and_summarise(
        options.tables,
        lambda scan: _open_columns(scan, options) if target is None else _open_target(scan, options, target),
    )

    from posteriori.cli import fits  # its imports take seconds, which a refusal does not wait for

    facts: Facts = {"command": "fit", "table": " ".join(options.tables)}
    if target is None:
        facts |= fits.fit_joint(options, data, page)
    elif data.is_number:
        facts |= fits.fit_number(options, data, target, page)
    else:
        facts |= fits.fit_classes(options, data, target, spec, page)
    return facts | {"output": str(options.path), "report": None if report is None else str(report)}


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

    Return None if the target holds a quantity, and no model of classes is named; raise UserError if it does not hold
    what the model predicts.
    """
    try:
        progress = _plan(scan.n_rows, len(features), options, hold_out)
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


def _plan(n_rows: int, n_columns: int, options: FitOptions, hold_out: HoldOutOptions | None) -> Any:
    """Plan the steps of the fit of a model of classes, and begin the first one: the description of the rows."""
    from posteriori.learning.folded_data import MOST_EVALUATED, MOST_EVALUATED_BY_ALL
    from posteriori.learning.work_bounds import DESCRIBING, first_steps, fitting_steps

    is_pool = options.model.model is None
    n_evaluated = min(n_rows, MOST_EVALUATED_BY_ALL if is_pool else MOST_EVALUATED)
    describing, *reading = first_steps(n_rows, n_columns)
    n_candidates, folds = 10 if is_pool else 1, options.model.folds or FOLDS
    steps = [*reading, *fitting_steps(n_rows, n_columns, n_evaluated, n_candidates, folds)]
    if hold_out is not None:
        cost, passes = sum(one.cost for one in steps), sum(one.passes for one in steps)
        steps.insert(0, Step(WITHOUT_HELD_OUT, (1.0 - hold_out.share) * cost, passes))
    plan_steps([describing, *steps])
    return start_progress(DESCRIBING, n_rows)
