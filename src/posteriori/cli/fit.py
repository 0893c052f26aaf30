"""The command fit: learn a model from a table, score it by cross-validation, and write it."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from posteriori.cli import options as label_options
from posteriori.cli.files import merge_spellings, open_and_summarise, stem_of, title_of
from posteriori.cli.joint_fit import JointColumns, fit_joint
from posteriori.cli.messages import UserError, as_user_errors, note, warn, work_progress
from posteriori.cli.named_columns import (
    NOT_OF_DENSITIES,
    columns_named,
    columns_of_kinds,
    features_left,
    group_numbers,
    parts_of_dates,
    without_groups,
)
from posteriori.cli.options import (
    AsJson,
    Categorical,
    Classes,
    Column,
    Dates,
    Force,
    Groups,
    Ignore,
    OptionalTarget,
    Positive,
    Quiet,
    TablePaths,
    TargetIsClass,
    Targets,
    apply_settings,
    model_help,
    model_named,
    settings_help,
    settings_of,
)
from posteriori.cli.outputs import Origin, Output, check_model_name, check_place, output_at
from posteriori.cli.report import report_at, write_report
from posteriori.cli.targets import (
    QuantityError,
    check_column,
    check_labels,
    check_numeric,
    check_whole,
    cuts_of,
    note_dates,
)
from posteriori.registry import REGRESSOR, REGRESSORS, ModelSpec, names_with

if TYPE_CHECKING:
    from posteriori.classifiers.classifier import Classifier
    from posteriori.classifiers.estimator import Estimator
    from posteriori.cli.hold_out import HoldOut, HoldOutOptions, Judged
    from posteriori.model_selection import HeldOut
    from posteriori.reading import Scan, TargetCuts
    from posteriori.statistics.description import ScannedTable
    from posteriori.support.typing import Array


_FOLDS = 5  # of classes; a regressor has its own default
_BEYOND_POOL = {"feature_weights", "components_per_class", "label_noise"}  # parameters of nb that the pool has not
_RECORDED = 1 << 18  # first rows that evaluate recognises
_NOT_OF_MODEL = {
    "tables",
    "output",
    "report",
    "force",
    "hold_out",
    "positive",
}  # arguments that do not change the model


@dataclass(frozen=True)
class FitArguments:
    """The arguments and options of the command."""

    tables: list[str]
    target: str
    categorical: list[str] | None
    columns: list[str] | None
    ignore: list[str] | None
    dates: list[str] | None
    model: str | None
    settings: dict[str, str]
    output: Path
    report: Path | None
    folds: int | None
    groups: str | None
    hold_out: HoldOutOptions | None
    positive: str | None
    force: bool
    classes: int | None
    target_is_class: bool
    language: str | None
    without_rows: bool

    @property
    def title(self) -> str:
        """Name of the table in messages."""
        return title_of(self.tables)

    @property
    def origin(self) -> Origin:
        """The origin of the model: the tables, and the options except those on output files."""
        options = {name: value for name, value in vars(self).items() if name not in _NOT_OF_MODEL}
        return Origin("fit", options, self.tables)


class _TrainingTable(NamedTuple):
    """The rows with their target as classes, a description, options on columns and rows, the cuts, the model file.

    Of a target that is predicted as a number, the description is one of the target, too.
    """

    scan: Scan
    description: ScannedTable
    chosen: dict[str, list[str]]
    cuts: TargetCuts | None
    groups: str | None
    hold_out: HoldOutOptions | None
    place: Output
    is_number: bool = False


def run(arguments: FitArguments) -> dict[str, Any]:
    """Fit, save and report as requested; return the facts that the command prints.

    Raises
    ------
    UserError
        Options contradict each other or do not suit the table.
    """
    page = _check_outputs(arguments)
    spec = resolve_model(arguments)
    _, data = open_and_summarise(arguments.tables, lambda scan: _open_table(scan, arguments))
    if data.is_number:
        return _fit_number(arguments, data)

    import polars as pl

    if arguments.positive is not None:
        from posteriori.support.suggestions import class_index

        with as_user_errors():
            class_index(arguments.positive, sorted(data.description.labels, key=str))  # an error before the fit
    labels = pl.Series(arguments.target, list(data.description.labels), dtype=data.scan.types[arguments.target])
    folds = _check_rows(arguments, data.description)
    estimator, use = apply_settings(_make_estimator(spec, arguments, data.chosen), spec, arguments.settings, labels)
    return _fit_and_save(arguments, spec, data, estimator, use, folds, page)


def _check_outputs(arguments: FitArguments) -> Output | None:
    """Check the place of the model, and return that of the report."""
    destination = arguments.output
    check_model_name(destination)
    check_place(destination, arguments.tables)
    return (
        None
        if arguments.report is None
        else report_at(arguments.report, arguments.tables, destination, arguments.force)
    )


def resolve_model(arguments: FitArguments) -> ModelSpec:
    """Return the requested model; without --model the pool, or nb if the pool does not support an option."""
    if arguments.model is not None:
        spec = model_named("--model", arguments.model)
        if arguments.language is not None and spec.name != "pool":
            raise UserError(f"--for chooses the candidates of the pool; leave out --for or --model {spec.name}")
        return spec
    held_out = arguments.settings.get("unlabelled_weight", "").startswith("held")
    needs_nb = held_out or not arguments.settings.keys().isdisjoint(_BEYOND_POOL)
    if needs_nb and arguments.language is not None:
        raise UserError("--for chooses the candidates of the pool, and --set names a parameter of nb; leave one out")
    return model_named("--model", "nb" if needs_nb else "pool")


def _open_table(scan: Scan, arguments: FitArguments) -> _TrainingTable:
    """Check the target and the options on columns, and describe the columns in one pass."""
    from posteriori.statistics.description import describe_scan

    target = arguments.target
    check_column(target, scan.types, arguments.title)
    cuts = cuts_of(scan.frames([target]), target, arguments.classes, arguments.target_is_class)
    if cuts is not None and arguments.model not in REGRESSORS:
        scan = scan.with_target_cut(target, cuts)
    features, groups = features_left(scan.names, target, arguments.ignore, arguments.title), arguments.groups
    if groups is not None:
        groups, features = without_groups(groups, scan.names, features, target, arguments.title)
    hold_out = None if arguments.hold_out is None else arguments.hold_out.checked(scan.types, target)
    chosen = _columns_by_kind(arguments, features)
    # After wrong names of columns, which are the more likely mistake.
    place = output_at(arguments.output, arguments.tables, arguments.force, origin=arguments.origin)
    place = replace(place, without_rows=arguments.without_rows)
    try:
        if arguments.model in REGRESSORS:
            check_numeric(target, scan.types, scan.remarks.get(target))
            raise QuantityError("")
        scan, description = _describe(scan, arguments, features, hold_out)
    except QuantityError:
        if arguments.model is not None and arguments.model not in REGRESSORS:
            raise
        described = describe_scan(scan, [*features, target], None)
        return _TrainingTable(scan, described, chosen, cuts, groups, hold_out, place, is_number=True)
    _check_kinds(scan, chosen)
    return _TrainingTable(scan, description, chosen, cuts, groups, hold_out, place)


def _describe(
    scan: Scan, arguments: FitArguments, features: list[str], hold_out: HoldOutOptions | None
) -> tuple[Scan, ScannedTable]:
    """Return the rows with classes in one spelling, and their description; plan the steps of the fit.

    Raises
    ------
    UserError
        The target does not hold classes; QuantityError if it holds a quantity.
    """
    from posteriori.learning.folded_data import MOST_EVALUATED, MOST_EVALUATED_BY_ALL
    from posteriori.learning.work_bounds import DESCRIBING, first_steps, fitting_steps
    from posteriori.statistics.description import describe_scan
    from posteriori.tables.progress import WITHOUT_HELD_OUT, Step, plan_steps, start_progress

    target, n_rows, n_columns = arguments.target, scan.n_rows, len(features)
    n_candidates = 10 if arguments.model is None else 1
    n_evaluated = min(n_rows, MOST_EVALUATED_BY_ALL if arguments.model is None else MOST_EVALUATED)
    describing, *reading = first_steps(n_rows, n_columns)
    steps = [*reading, *fitting_steps(n_rows, n_columns, n_evaluated, n_candidates, arguments.folds or _FOLDS)]
    if hold_out is not None:
        cost, passes = sum(one.cost for one in steps), sum(one.passes for one in steps)
        steps.insert(0, Step(WITHOUT_HELD_OUT, (1.0 - hold_out.share) * cost, passes))
    plan_steps([describing, *steps])
    progress = start_progress(DESCRIBING, n_rows)
    description = describe_scan(scan, features, target, progress, lambda labels: check_whole(target, labels))
    usual = merge_spellings(description.labels)
    if usual:
        scan = scan.with_labels_as(target, usual)
        description = describe_scan(scan, features, target)
    try:
        check_labels(target, description.labels, arguments.target_is_class)
    except QuantityError:
        raise
    except UserError as error:
        raise UserError(scan.remarks.get(target, str(error))) from error
    note_dates(target, description.labels)
    return scan, description


def _check_kinds(scan: Scan, chosen: dict[str, list[str]]) -> None:
    """Raise UserError if --column reads a column without numbers as a density of numbers."""
    for kind, names in chosen.items():
        for name in names:
            if kind not in (*NOT_OF_DENSITIES, "categorical") and not scan.types[name].is_numeric():
                raise UserError(f"--column reads {name!r} as {kind}, and it holds no numbers; remove it")


def _fit_number(arguments: FitArguments, data: _TrainingTable) -> dict[str, Any]:
    """Fit and save a regressor; return the facts."""
    import polars as pl

    from posteriori.cli.number_fit import fit_number, folds_of_number, refuse_of_classes

    target, seen = arguments.target, arguments.hold_out
    of_classes = {
        "--positive": arguments.positive is not None,
        "--report": arguments.report is not None,
        "--for": arguments.language is not None,
        "--holdout": seen is not None and seen.by is None,
        "--holdout-by": seen is not None and seen.by is not None,
        "--target-is-class": arguments.target_is_class,
        "--classes": data.cuts is not None,
    }
    refuse_of_classes(of_classes, target)
    spec = REGRESSORS[arguments.model or REGRESSOR.name]
    if arguments.without_rows and spec.name != "additive":
        raise UserError(
            f"a model of {target!r} by {spec.name} predicts from training rows; add --model additive, which does not, "
            "or leave out --without-rows"
        )
    made = _make_estimator(spec, arguments, data.chosen)
    estimator, _ = apply_settings(made, spec, arguments.settings, pl.Series([], dtype=pl.String))
    if spec is REGRESSOR and isinstance(estimator.members, str) and estimator.members != "auto":
        estimator.set_params(members=[estimator.members])  # one name
    estimator.set_params(folds=folds_of_number(arguments.folds))
    if arguments.model is None:
        note(f"{target!r} holds numbers, so the model predicts a number; --classes 4 cuts it into classes")
    groups = None
    if data.groups is not None:
        from posteriori.tables.polars import exactly

        column = data.scan.narrowed([data.groups, target], target).frame.select(exactly(data.groups))
        groups = group_numbers(column.collect(engine="streaming").to_series())
    found = fit_number(estimator, data.scan, target, data.description, groups, _RECORDED)
    with as_user_errors():
        data.place.save(estimator)
    about = {"command": "fit", "table": " ".join(arguments.tables), "model": spec.name}
    return {**about, **found, "output": str(arguments.output)}


def _columns_by_kind(arguments: FitArguments, features: list[str]) -> dict[str, list[str]]:
    chosen = columns_of_kinds(arguments.columns, features)
    categorical = columns_named(arguments.categorical, features, "--categorical") + chosen.pop("categorical", [])
    for kind, names in chosen.items():
        both = next((name for name in names if name in categorical), None)
        if both is not None and kind != "keep":
            raise UserError(f"{both!r} is named as categorical and as {kind}; choose one")
    return chosen | {"categorical": categorical}


def _check_rows(arguments: FitArguments, description: ScannedTable) -> int:
    """Return the number of folds, at most the number of labelled rows."""
    n_labelled = description.n_labelled
    if n_labelled < 2:
        kind = "row" if description.n_rows < 2 else "row with a label"
        raise UserError(f"{arguments.title!r} has only one {kind}; cross-validation needs at least two")
    folds = arguments.folds or _FOLDS
    if folds > n_labelled:
        rows = "rows" if n_labelled == description.n_rows else "rows with a label"
        warn(f"there are only {n_labelled} {rows}, so each of them is a fold")
    return min(folds, n_labelled)


def _make_estimator(spec: ModelSpec, arguments: FitArguments, chosen: dict[str, list[str]]) -> Any:
    """Return the estimator that reads the columns as the options say."""
    kinds = dict(chosen)
    categorical, keep, text = (kinds.pop(kind, []) for kind in ("categorical", "keep", "text"))
    for kind in kinds:
        option = "binned" if kind == "binned" else "distributions"
        if option not in spec.options:
            raise UserError(f"--column: {kind} needs --model {names_with(option)}, not {spec.name}; remove it")
    if text and "text" not in spec.options:
        raise UserError(f"--column: text needs --model {names_with('text')}, not {spec.name}; remove it")
    columns: dict[str, Any] = {"columns__dates": parts_of_dates(arguments.dates)}
    if arguments.language is not None:
        columns["language"] = arguments.language
    if keep:
        columns["columns__keep"] = "all" if keep == ["all"] else keep
    if text:
        columns["columns__text"] = text
    if "distributions" in spec.options:
        distributions = {name: kind for kind, names in {**kinds, "categorical": categorical}.items() for name in names}
        return spec.make(distributions=distributions or None, **columns)
    return spec.make(columns__categorical_features=categorical or None, **columns)


def _fit_and_save(
    arguments: FitArguments,
    spec: ModelSpec,
    data: _TrainingTable,
    estimator: Any,
    use: str,
    folds: int,
    page: Output | None,
) -> dict[str, Any]:
    """Fit, save and report; return the facts."""
    from posteriori.cli.hold_out import Judged, choose_rows, judge_held_out
    from posteriori.statistics.description import describe_scan
    from posteriori.tables.polars import exactly

    target, description = arguments.target, data.description
    features, n_unlabelled = list(description.columns), description.n_rows - description.n_labelled
    left_out = target if n_unlabelled and use == "ignore" else None
    rows = data.scan.narrowed([*features, target], left_out)
    if left_out is not None:
        with as_user_errors():
            description = describe_scan(rows, features, target)
    groups = None
    if data.groups is not None:
        column = data.scan.narrowed([data.groups, target], left_out).frame.select(exactly(data.groups))
        groups = group_numbers(column.collect(engine="streaming").to_series())
    held, scorer = None, None
    with _columns_to_bin(data, features):
        if data.hold_out is not None:
            seed = estimator.get_params().get("random_state") or 0
            copies = _copies(estimator, rows, target)
            held = choose_rows(data.scan, target, data.hold_out, data.groups, left_out, seed, copies)
            scorer = _fit_to_others(spec, estimator, rows, target, folds, groups, held)
        scored = _asked_for(_cross_validate(spec, estimator, rows, target, folds, groups), arguments.positive)
    _say_unused_bins(arguments, spec, scored.estimator)
    judged = Judged(scored, held, numbered=not n_unlabelled)
    if held is not None:
        with as_user_errors():
            predictions = judge_held_out(scorer, scored.estimator, rows, features, target, held)
        judged = judged._replace(predictions=replace(predictions, positive=scored.positive))
    if data.cuts is not None:
        _set_record(scored.estimator, target_cuts=data.cuts)
    with _saved_in_any_case(scored.estimator, data.place):
        found = {
            "command": "fit",
            "table": " ".join(arguments.tables),
            "model": spec.name,
            **_facts(scored, rows, target, description, judged),
            "unlabelled": label_options.unlabelled_facts(scored.estimator, n_unlabelled, use),
            "output": str(arguments.output),
            "report": None if arguments.report is None else str(arguments.report),
        }
    with as_user_errors():
        _record_rows(scored, rows.narrowed(features), judged)
        data.place.save(scored.estimator)
    if page is not None:
        with as_user_errors(), page.writing() as path:
            # Figures of the report show single rows, with their predictions.
            shown = rows if held is None else rows.at(held.judged)
            write_report(judged.predictions, shown.frame.collect(), target, path, f"{target} in {arguments.title}")
    return found


def _say_unused_bins(arguments: FitArguments, spec: ModelSpec, fitted: Any) -> None:
    """Say on stderr that --set bins has no effect if the model has no column in bins, and how a column gets some."""
    columns = fitted.schema_.columns
    if "bins" not in arguments.settings or any(column.cuts is not None for column in columns):
        return
    numbers = list(dict.fromkeys(column.source for column in columns if column.kind == "continuous"))
    how = f"; add --column {shlex.quote(','.join(numbers) + '=binned')}" if "binned" in spec.options and numbers else ""
    note(
        f"--set bins={arguments.settings['bins']} has no effect, because {spec.name} cuts no column into bins here{how}"
    )


@contextmanager
def _columns_to_bin(data: _TrainingTable, features: list[str]) -> Iterator[None]:
    """Name the option, and the columns, in errors that advise distributions="binned", which --set does not have."""
    try:
        yield
    except UserError as error:
        chosen = {name for names in data.chosen.values() for name in names}
        numbers = [name for name in features if name not in chosen and data.scan.types[name].is_numeric()]
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


def _asked_for(scored: HeldOut, positive: str | None) -> HeldOut:
    """Return the predictions with the class of interest: the given one, else the rarer of two."""
    if positive is None:
        return replace(scored, positive=scored.figures.of_interest)
    from posteriori.support.suggestions import class_index

    return replace(scored, positive=class_index(positive, scored.classes.tolist()))


def _facts(scored: HeldOut, rows: Scan, target: str, description: ScannedTable, judged: Judged) -> dict[str, Any]:
    """Return the facts about a fit, and set the alerts of the model."""
    from posteriori.cli.fit_facts import find_alerts, fit_facts

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
    from posteriori.classifiers.kept_predictions import keep_predictions
    from posteriori.classifiers.training_record import record_rows

    _set_record(scored.estimator, figures=judged.predictions.figures)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fit, which has printed them
        record_rows(scored.estimator, rows.frame.head(_RECORDED).collect(engine="streaming"))
        keep_predictions(scored.estimator, scored, lambda places: rows.at(places).frame.collect(engine="streaming"))


def _copies(estimator: Classifier, rows: Scan, target: str) -> Array | None:
    """Return the group of equal rows of each row, (n,), if rows are copies."""
    from posteriori.fitting.rows import read_first_rows
    from posteriori.learning.equal_rows import group_copies

    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit repeats them
        return group_copies(read_first_rows(estimator.recipe, rows, target))


def _fit_to_others(
    spec: ModelSpec, estimator: Classifier, rows: Scan, target: str, folds: int, groups: Array | None, held: HoldOut
) -> Any:
    """Return a copy of the estimator that learned from the rows that are not held out."""
    from sklearn.base import clone

    from posteriori.reading.target_cuts import numbers_as_classes
    from posteriori.tables.progress import WITHOUT_HELD_OUT, as_one_step

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
    from posteriori.learning.folded_data import MOST_EVALUATED
    from posteriori.model_selection import out_of_fold
    from posteriori.reading.target_cuts import numbers_as_classes
    from posteriori.tables import IgnoredColumnWarning

    # `check_labels` has refused targets that look like a quantity, so that numbers are classes here.
    with as_user_errors(), numbers_as_classes(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)  # a hint on the page names the columns
        if spec.name == "pool":
            pooled: HeldOut = estimator.set_params(folds=folds).fit(rows, target, groups=groups).out_of_fold_
            return pooled
        return out_of_fold(estimator, rows, target, folds=folds, groups=groups, most=MOST_EVALUATED)


def _list_parameters(context: typer.Context, values: list[str] | None) -> list[str] | None:
    """Print the parameters of the model and stop, for --set help."""
    if values and "help" in values:
        with as_user_errors():
            typer.echo(settings_help(context.params.get("model") or "pool"))
        raise typer.Exit
    return values


ModelName = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help=model_help(), show_default=False, is_eager=True),  # before --set help
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter: missing=informative; --set help lists all.",
        is_eager=True,
        callback=_list_parameters,
    ),
]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to save. Default: TABLE[.joint].posteriori.",
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write a report: an .html page.",
        show_default=False,
    ),
]


class Translation(StrEnum):
    """Languages that a pool can be written in."""

    sql = "sql"
    javascript = "javascript"


For = Annotated[
    Translation | None,
    typer.Option("--for", help="Fit a pool that sql or export can write.", show_default=False),
]
WithoutRows = Annotated[bool, typer.Option("--without-rows", help="Save sums, and nothing of single rows.")]
Details = Annotated[bool, typer.Option("--details", help="Print columns, scores, candidates and importance.")]
Folds = Annotated[
    int | None, typer.Option(metavar="N", min=2, help="Folds of the cross-validation. Default: 5; of a number 9.")
]
Share = Annotated[
    float | None,
    typer.Option(
        "--holdout",
        metavar="SHARE",
        help="Score this share of the rows by a model of the others.",
        show_default=False,
    ),
]
HoldOutBy = Annotated[
    str | None,
    typer.Option(
        "--holdout-by",
        metavar="NAME",
        help="Hold out the last values of a column, such as dates.",
        show_default=False,
    ),
]


def _hold_out_options(share: float | None, by: str | None) -> HoldOutOptions | None:
    """Import NumPy only where the options are given: help is quick without."""
    if share is None and by is None:
        return None
    from posteriori.cli.hold_out import HoldOutOptions

    return HoldOutOptions.of(share, by)


def fit(
    table: TablePaths,
    target: OptionalTarget = None,
    targets: Targets = None,
    categorical: Categorical = None,
    columns: Column = None,
    ignore: Ignore = None,
    dates: Dates = None,
    model: ModelName = None,
    settings: Set = None,
    output: ModelFile = None,
    report: ReportFile = None,
    folds: Folds = None,
    groups: Groups = None,
    holdout: Share = None,
    holdout_by: HoldOutBy = None,
    positive: Positive = None,
    force: Force = False,
    classes: Classes = None,
    target_is_class: TargetIsClass = False,
    language: For = None,
    without_rows: WithoutRows = False,
    details: Details = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table, score it by cross-validation, save it.

    Empty cells, NA, N/A, NaN, nan and null are missing, and among numbers marks such as - and ?. Columns that
    identify rows are ignored. Files may be larger than memory, except with --report.
    Details: docs/command_line.md.

    Example:

        posteriori fit penguins.csv --target species --categorical year -o years.posteriori
    """
    if target is None:
        refused = {
            "--model": model is not None,
            "--set": settings is not None,
            "--report": report is not None,
            "--folds": folds is not None,
            "--groups": groups is not None,
            "--holdout": holdout is not None,
            "--holdout-by": holdout_by is not None,
            "--positive": positive is not None,
            "--classes": classes is not None,
            "--target-is-class": target_is_class,
            "--for": language is not None,
        }
        _fit_all(
            table,
            JointColumns(ignore, categorical, columns, dates, targets),
            output,
            force,
            without_rows,
            refused,
            details,
            quiet,
            as_json,
        )
        return
    if targets is not None:
        raise UserError("--targets is for a joint model of all columns; leave out --target, or --targets")
    arguments = FitArguments(
        tables=table,
        target=target,
        categorical=categorical,
        columns=columns,
        ignore=ignore,
        dates=dates,
        model=model,
        settings=settings_of(settings),
        output=output or Path(f"{stem_of(table)}.posteriori"),
        report=report,
        folds=folds,
        groups=groups,
        hold_out=_hold_out_options(holdout, holdout_by),
        positive=positive,
        force=force,
        classes=classes,
        target_is_class=target_is_class,
        language=None if language is None else language.value,
        without_rows=without_rows,
    )
    with work_progress(not quiet):
        facts = run(arguments)

    from posteriori.cli import first_page, fit_facts, number_pages, tables

    if as_json:
        tables.print_json(facts)
    elif facts["model"] in REGRESSORS:
        number_pages.print_number_fit(facts, details)
    else:
        (fit_facts.print_fit if details else first_page.print_first_page)(facts)


def _fit_all(
    tables: list[str],
    columns: JointColumns,
    output: Path | None,
    force: bool,
    without_rows: bool,
    refused: Mapping[str, bool],
    details: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit a joint model of all columns, and print its page."""
    destination = output or Path(f"{stem_of(tables)}.joint.posteriori")
    with work_progress(not quiet):
        facts = fit_joint(tables, columns, destination, force, refused, without_rows)

    from posteriori.cli import joint_pages
    from posteriori.cli import tables as printed

    if as_json:
        printed.print_json(facts)
    else:
        joint_pages.print_joint_fit(facts, details)
