"""The command fit: learn a model from a table, score it by cross-validation, and write it."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from posteriori.cli import options as label_options
from posteriori.cli.checks import (
    check_column,
    check_labels,
    check_overwrite,
    check_whole,
    columns_named,
    cuts_of,
    features_left,
    kept_columns,
    parts_of_dates,
)
from posteriori.cli.files import check_place, names_table, open_and_summarise, stem_of, title_of
from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.options import (
    AsJson,
    Categorical,
    Classes,
    Dates,
    Force,
    Ignore,
    Keep,
    Quiet,
    TablePaths,
    Target,
    TargetIsClass,
    Text,
    Unlabelled,
    model_help,
    model_named,
)
from posteriori.cli.progress import work_progress
from posteriori.cli.report import check_report, write_report
from posteriori.registry import ModelSpec, names_with

if TYPE_CHECKING:
    import polars as pl

    from posteriori.model_selection import HeldOut
    from posteriori.statistics.description import ScannedTable
    from posteriori.tables import Scan, TargetCuts


_RECORDED = 1 << 18  # first rows that evaluate recognises


class Missing(StrEnum):
    """Whether missing cells are informative about the class."""

    at_random = "at-random"
    informative = "informative"


class Weights(StrEnum):
    """Weighting of the factors of a model."""

    conditional = "conditional"
    cells = "cells"


class Pooling(StrEnum):
    """What becomes of the candidates of a pool."""

    log_linear = "log-linear"
    best = "best"


@dataclass(frozen=True)
class FitRequest:
    """The arguments and options of the command."""

    tables: list[str]
    target: str
    column_options: dict[str, list[str] | None]  # categorical, poisson, binned: columns as given
    ignore: list[str] | None
    keep: list[str] | None
    dates: list[str] | None
    text: list[str] | None
    model: str | None
    pool: Pooling | None
    time_budget: float | None
    missing: Missing
    weights: Weights | None
    output: Path
    report: Path | None
    folds: int
    unlabelled: Unlabelled | None
    unlabelled_weight: str | None
    components_per_class: str | None
    label_noise: str | None
    seed: int
    force: bool
    classes: int | None
    target_is_class: bool

    @property
    def title(self) -> str:
        """Name of the table in messages."""
        return title_of(self.tables)


class _TrainingTable(NamedTuple):
    """The rows with their target as classes, a description, the columns of each option, and the cuts of the target."""

    scan: Scan
    description: ScannedTable
    chosen: dict[str, list[str]]
    keep: Any
    text: list[str]
    cuts: TargetCuts | None


def run(request: FitRequest) -> dict[str, Any]:
    """Fit, save and report as requested; return the facts that the command prints.

    Raises
    ------
    UserError
        Options contradict each other or do not suit the table.
    """
    _check_outputs(request)
    spec = resolve_model(request)
    _, data = open_and_summarise(request.tables, lambda scan: _open_table(scan, request))

    import polars as pl

    labels = pl.Series(request.target, list(data.description.labels), dtype=data.scan.types[request.target])
    folds = _check_rows(request, data.description)
    learner = _make_estimator(spec, request, data.chosen).set_params(
        columns__keep=data.keep, columns__dates=parts_of_dates(request.dates)
    )
    if data.text:
        if "text" not in spec.options:
            raise UserError(f"--text needs --model {names_with('text')}, not {spec.name}; remove it")
        learner.set_params(columns__text=data.text)
    estimator, use = label_options.apply_label_options(
        learner,
        spec.name,
        labels,
        unlabelled=request.unlabelled,
        weight=request.unlabelled_weight,
        components_per_class=request.components_per_class,
        noise=request.label_noise,
        seed=request.seed,
    )
    return _fit_and_save(request, spec, data, estimator, use, folds)


def _check_outputs(request: FitRequest) -> None:
    destination, paths = request.output, [Path(one) for one in request.tables]
    if names_table(destination):
        raise UserError(f"{str(destination)!r} has the suffix of a table; name the model NAME.posteriori")
    check_place(destination, *paths)
    if request.report is not None:
        check_report(request.report, paths, destination)


def resolve_model(request: FitRequest) -> ModelSpec:
    """Return the requested model; without --model the pool, or nb if the pool does not support an option."""
    if request.model is not None:
        return model_named("--model", request.model)
    beyond_pool = (request.weights, request.components_per_class, request.label_noise)
    needs_nb = any(option is not None for option in beyond_pool) or label_options.is_held_out(request.unlabelled_weight)
    return model_named("--model", "nb" if needs_nb else "pool")


def _open_table(scan: Scan, request: FitRequest) -> _TrainingTable:
    """Check the target and the options on columns, and describe the columns in one pass."""
    from posteriori.statistics.description import describe_scan

    target = request.target
    check_column(target, scan.types, request.title)
    check_overwrite(request.output, "classifier", target, request.force)  # after a wrong name of the target
    cuts = cuts_of(scan.frames([target]), target, request.classes, request.target_is_class)
    if cuts is not None:
        scan = scan.with_target_cut(target, cuts)
    features = features_left(scan.names, target, request.ignore, request.title)
    chosen, text = _columns_of_options(request, features), columns_named(request.text, features, "--text")
    from posteriori.learning.work_bounds import DESCRIBING, first_steps, fitting_steps
    from posteriori.model_selection.folded_data import MOST_EVALUATED, MOST_EVALUATED_BY_ALL
    from posteriori.tables.progress import plan_steps, start_progress

    n_rows, n_columns = scan.n_rows, len(features)
    n_candidates = 10 if request.model is None else 1
    n_evaluated = min(n_rows, MOST_EVALUATED_BY_ALL if request.model is None else MOST_EVALUATED)
    plan_steps(
        [
            *first_steps(n_rows, n_columns),
            *fitting_steps(n_rows, n_columns, n_evaluated, n_candidates, request.folds),
        ]
    )
    progress = start_progress(DESCRIBING, n_rows)
    description = describe_scan(scan, features, target, progress, lambda labels: check_whole(target, labels))
    check_labels(target, description.labels, request.target_is_class)
    for option, held in (("poisson", "counts"), ("binned", "numbers")):
        for name in chosen[option]:
            if not scan.types[name].is_numeric():
                raise UserError(f"--{option} names {name!r}, which holds no {held}; remove it from the option")
    return _TrainingTable(scan, description, chosen, kept_columns(request.keep, features), text, cuts)


def _columns_of_options(request: FitRequest, features: list[str]) -> dict[str, list[str]]:
    chosen = {kind: columns_named(names, features, f"--{kind}") for kind, names in request.column_options.items()}
    for first, second in itertools.combinations(chosen, 2):
        for name in chosen[first]:
            if name in chosen[second]:
                raise UserError(f"{name!r} is named by both --{first} and --{second}; choose one")
    return chosen


def _check_rows(request: FitRequest, description: ScannedTable) -> int:
    """Return the number of folds, at most the number of labelled rows."""
    n_labelled = description.n_labelled
    if n_labelled < 2:
        kind = "row" if description.n_rows < 2 else "row with a label"
        raise UserError(f"{request.title!r} has only one {kind}; cross-validation needs at least two")
    if request.folds > n_labelled:
        rows = "rows" if n_labelled == description.n_rows else "rows with a label"
        warn(f"there are only {n_labelled} {rows}, so each of them is a fold")
    return min(request.folds, n_labelled)


def _make_estimator(spec: ModelSpec, request: FitRequest, chosen: dict[str, list[str]]) -> Any:
    """Return the estimator with the densities, the treatment of missing cells and the weights of the options."""
    for option, needed in (("poisson", "distributions"), ("binned", "binned")):
        if chosen[option] and needed not in spec.options:
            raise UserError(f"--{option} needs --model {names_with(needed)}, not {spec.name}; remove it")
    if "distributions" in spec.options:
        distributions = {name: kind for kind, names in chosen.items() for name in names}
        estimator = spec.make(distributions=distributions or None)
    else:
        estimator = spec.make(columns__categorical_features=chosen["categorical"] or "from_dtype")
    if request.pool is not None:
        if spec.name != "pool":
            raise UserError(f"--pool goes with --model pool, not {spec.name}; remove it")
        estimator.set_params(pool=request.pool.value.replace("-", "_"))
    if request.time_budget is not None:
        if spec.name != "pool":
            raise UserError(f"--time-budget goes with --model pool, not {spec.name}; remove it")
        if not request.time_budget > 0:
            raise UserError(f"--time-budget is {request.time_budget:g} seconds; give more than 0")
        estimator.set_params(time_budget=request.time_budget)
    if request.missing is Missing.informative:
        if "missing" not in spec.options:
            raise UserError(f"--missing informative needs --model {names_with('missing')}, not {spec.name}")
        estimator.set_params(missing=request.missing.value)
    if request.weights is not None:
        if "feature_weights" not in spec.options:
            raise UserError(f"--weights does not go with --model {spec.name}; it needs {names_with('feature_weights')}")
        estimator.set_params(feature_weights=request.weights.value)
    return estimator


def _fit_and_save(
    request: FitRequest, spec: ModelSpec, data: _TrainingTable, estimator: Any, use: Unlabelled, folds: int
) -> dict[str, Any]:
    """Fit, save and report; return the facts."""
    from posteriori.cli.alerts import find_alerts
    from posteriori.cli.fit_facts import fit_facts
    from posteriori.persistence import save
    from posteriori.statistics.description import describe_scan
    from posteriori.tables.polars import exactly

    target, description = request.target, data.description
    features, n_unlabelled = list(description.columns), description.n_rows - description.n_labelled
    left_out = target if n_unlabelled and use is Unlabelled.ignore else None
    rows = data.scan.narrowed([*features, target], left_out)
    if left_out is not None:
        with as_user_errors():
            description = describe_scan(rows, features, target)
    scored = _cross_validate(spec, estimator, rows, target, folds)
    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fit, which has printed them
        scored.estimator.alerts_ = find_alerts(scored.estimator, rows, target, description)
    found = {
        "command": "fit",
        "table": " ".join(request.tables),
        "model": spec.name,
        **fit_facts(rows, description, scored),
        "alerts": scored.estimator.alerts_,
        "unlabelled": label_options.unlabelled_facts(scored.estimator, n_unlabelled, use),
        "output": str(request.output),
        "report": None if request.report is None else str(request.report),
    }
    if data.cuts is not None:
        scored.estimator.target_cuts_ = data.cuts
    with as_user_errors():
        _record_rows(scored.estimator, rows.frame.select(exactly(*features)))
        save(scored.estimator, request.output)
        if request.report is not None:
            frame = rows.frame.collect()  # figures of the report show single rows
            write_report(scored, frame, target, request.report, f"{target} in {request.title}")
    return found


def _record_rows(estimator: Any, rows: pl.LazyFrame) -> None:
    """Record the first rows in the model, so that evaluate recognises them."""
    from posteriori.classifiers.rows import record_rows

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the fit, which has printed them
        record_rows(estimator, rows.head(_RECORDED).collect(engine="streaming"))


def _cross_validate(spec: ModelSpec, estimator: Any, rows: Scan, target: str, folds: int) -> HeldOut:
    from posteriori.model_selection import out_of_fold
    from posteriori.model_selection.folded_data import MOST_EVALUATED
    from posteriori.tables import IgnoredColumnWarning
    from posteriori.tables.labels import numbers_as_classes

    # `check_labels` has refused targets that look like a quantity, so that numbers are classes here.
    with as_user_errors(), numbers_as_classes(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)  # a hint on the page names the columns
        if spec.name == "pool":
            pooled: HeldOut = estimator.set_params(folds=folds).fit(rows, target).out_of_fold_
            return pooled
        return out_of_fold(estimator, rows, target, folds=folds, most=MOST_EVALUATED)


Poisson = Annotated[list[str] | None, typer.Option(metavar="A,B", help="Columns of counts: Poisson distributions.")]
Binned = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B",
        help="Columns of numbers to cut into bins.",
    ),
]
ModelName = Annotated[str | None, typer.Option("--model", metavar="NAME", help=model_help(), show_default=False)]
PoolKind = Annotated[
    Pooling | None,
    typer.Option(
        "--pool",
        help="Weigh the models of the pool, or keep the best.",
        show_default=False,
    ),
]
TimeBudget = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="Time for the models of the pool.",
        show_default=False,
    ),
]
MissingCells = Annotated[
    Missing,
    typer.Option(help="Whether it matters that a cell is missing.", show_default=False),
]
FactorWeighting = Annotated[
    Weights | None,
    typer.Option(metavar="KIND", help="Learned: conditional, one per column; or cells."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to save the model. Default: TABLE.posteriori."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also write a report: an .html page.",
        show_default=False,
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
UnlabelledRows = Annotated[
    Unlabelled | None,
    typer.Option(
        help="Rows without a label. Default: learn if possible.",
        show_default=False,
    ),
]
UnlabelledWeight = Annotated[
    str | None,
    typer.Option(metavar="W", help="Weight of these rows, 0 to 1; or held-out."),
]
ComponentsPerClass = Annotated[
    str | None,
    typer.Option(metavar="K", help="Classes as mixtures: 2, or CLASS=2,OTHER=3."),
]
LabelNoise = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="Share of labels that may be wrong; or learn."),
]
EMSeed = Annotated[int, typer.Option(min=0, help="Seed of --components-per-class.")]


def fit(
    table: TablePaths,
    target: Target,
    categorical: Categorical = None,
    poisson: Poisson = None,
    binned: Binned = None,
    ignore: Ignore = None,
    keep: Keep = None,
    dates: Dates = None,
    text: Text = None,
    model: ModelName = None,
    pool: PoolKind = None,
    time_budget: TimeBudget = None,
    missing: MissingCells = Missing.at_random,
    weights: FactorWeighting = None,
    output: Output = None,
    report: ReportFile = None,
    folds: Folds = 5,
    unlabelled: UnlabelledRows = None,
    unlabelled_weight: UnlabelledWeight = None,
    components_per_class: ComponentsPerClass = None,
    label_noise: LabelNoise = None,
    seed: EMSeed = 0,
    force: Force = False,
    classes: Classes = None,
    target_is_class: TargetIsClass = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table, score it by cross-validation, save it.

    Strings and true/false become categories; numbers and dates are read as such. Empty cells, NA, N/A, NaN, nan and
    null are missing. Columns that identify rows are ignored. Files may be larger than memory, except with --report.
    Details: docs/command_line.md.

    Example:

        posteriori fit penguins.csv --target species --categorical year
    """
    request = FitRequest(
        tables=table,
        target=target,
        column_options={"categorical": categorical, "poisson": poisson, "binned": binned},
        ignore=ignore,
        keep=keep,
        dates=dates,
        text=text,
        model=model,
        pool=pool,
        time_budget=time_budget,
        missing=missing,
        weights=weights,
        output=output or Path(f"{stem_of(table)}.posteriori"),
        report=report,
        folds=folds,
        unlabelled=unlabelled,
        unlabelled_weight=unlabelled_weight,
        components_per_class=components_per_class,
        label_noise=label_noise,
        seed=seed,
        force=force,
        classes=classes,
        target_is_class=target_is_class,
    )
    with work_progress(not quiet):
        facts = run(request)

    from posteriori.cli import fit_page, tables

    (tables.print_json if as_json else fit_page.print_fit)(facts)
