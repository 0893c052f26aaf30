"""The command fit: learn a model from a table, score it by cross-validation, and save it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from posteriori.cli import label_options

# Nothing here imports polars, NumPy or the rest of the library: `posteriori --help` must not wait for them.
from posteriori.cli.checks import Classes, TargetIsClass, check_column, check_labels, columns_named, cuts_of
from posteriori.cli.label_options import Unlabelled
from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.options import AsJson, Categorical, Ignore, TablePaths, Target, model_help, model_named
from posteriori.cli.overwriting import Force, check_overwrite
from posteriori.cli.progress import pass_bars, progress_bar
from posteriori.cli.reading import check_place, names_table, open_and_summarise, stem_of, title_of
from posteriori.cli.reports import check_report, write_report
from posteriori.registry import ModelSpec, names_with

if TYPE_CHECKING:
    import polars as pl

    from posteriori.cli.summary import Summary
    from posteriori.model_selection import OutOfFold
    from posteriori.tables import Scan, TargetCuts


class Missing(StrEnum):
    """What a missing cell says about the class."""

    at_random = "at-random"
    informative = "informative"


class Weights(StrEnum):
    """How the factors of a model can be weighted."""

    conditional = "conditional"


Poisson = Annotated[list[str] | None, typer.Option(metavar="A,B", help="Columns that count events: 0, 1, 2, …")]
Binned = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B",
        help="Columns of numbers that are not bell-shaped: cut into bins, at points that separate the classes.",
    ),
]
ModelName = Annotated[str | None, typer.Option("--model", metavar="NAME", help=model_help(), show_default=False)]
MissingCells = Annotated[
    Missing,
    typer.Option(
        help="at-random: a missing cell carries no information about the class. informative: whether a cell is missing "
        "is one more factor."
    ),
]
FactorWeighting = Annotated[
    Weights | None,
    typer.Option(
        help="conditional: give each feature's factor a weight, learned on leave-one-out predictions. This reduces the "
        "over-confidence that redundant features cause."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where to save the model; default: the table's name with .posteriori, here."),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write an .html report: scores, calibration, confusion matrix, densities, rows explained.",
        show_default=False,
    ),
]
Folds = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
UnlabelledRows = Annotated[
    Unlabelled | None,
    typer.Option(
        help="Rows without label. learn: use them by EM (default where the model can). ignore: leave them out.",
        show_default=False,
    ),
]
UnlabelledWeight = Annotated[
    str | None,
    typer.Option(metavar="W", help="Weight of a row without label: 0 to 1, or held-out to choose it on held-out rows."),
]
Components = Annotated[
    str | None,
    typer.Option(metavar="K", help="Make classes mixtures: of 2 components each, or CLASS=2,OTHER=3."),
]
LabelNoise = Annotated[
    str | None,
    typer.Option(metavar="SHARE", help="Share of labels that may be wrong; learn estimates which are."),
]
EMSeed = Annotated[int, typer.Option(min=0, help="Seed of the starts of EM, with --components.")]


@dataclass(frozen=True)
class FitRequest:
    """What the command line asks for; the fields are its options."""

    tables: list[str]
    target: str
    column_options: dict[str, list[str] | None]  # categorical, poisson, binned: columns as given
    ignore: list[str] | None
    model: str | None
    missing: Missing
    weights: Weights | None
    output: Path
    report: Path | None
    folds: int
    unlabelled: Unlabelled | None
    unlabelled_weight: str | None
    components: str | None
    label_noise: str | None
    seed: int
    force: bool
    classes: int | None
    target_is_class: bool

    @property
    def title(self) -> str:
        """The table in messages."""
        return title_of(self.tables)


class _TrainingTable(NamedTuple):
    """The rows with their target as classes, their summary, the columns of each option, and the target's cuts."""

    scan: Scan
    summary: Summary
    chosen: dict[str, list[str]]
    cuts: TargetCuts | None


def fit(
    table: TablePaths,
    target: Target,
    categorical: Categorical = None,
    poisson: Poisson = None,
    binned: Binned = None,
    ignore: Ignore = None,
    model: ModelName = None,
    missing: MissingCells = Missing.at_random,
    weights: FactorWeighting = None,
    output: Output = None,
    report: ReportFile = None,
    folds: Folds = 5,
    unlabelled: UnlabelledRows = None,
    unlabelled_weight: UnlabelledWeight = None,
    components: Components = None,
    label_noise: LabelNoise = None,
    seed: EMSeed = 0,
    force: Force = False,
    classes: Classes = None,
    target_is_class: TargetIsClass = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table, score it by cross-validation, and save it.

    Strings and true/false make categorical columns, numbers continuous ones. In CSV and TSV files an empty cell, NA,
    N/A, NaN, nan and null are missing; everything else, including "None" and "?", is a value. Files are read part by
    part, so a table may be larger than memory; --report keeps all of its rows in memory. Several files, a glob in
    quotes or a folder are one table.

    Missing cells are integrated out, unless --missing informative is given. Rows with a missing label are learned from
    by EM, where the model can.

    Accuracy, log-loss and Brier score come from cross-validation and are shown beside those of the class prior alone.

    A numeric target that looks like a quantity is refused: --classes cuts it into classes, and evaluate cuts new rows
    at the same numbers. It looks like a quantity if it holds more than 20 different whole numbers with fewer than 100
    rows each on average, unless they are numbered consecutively from 0 or 1.

    A model of the same target is overwritten. Any other file is overwritten only with --force.

    Example:

        posteriori fit penguins.csv --target species --categorical year
    """
    request = FitRequest(
        tables=table,
        target=target,
        column_options={"categorical": categorical, "poisson": poisson, "binned": binned},
        ignore=ignore,
        model=model,
        missing=missing,
        weights=weights,
        output=output or Path(f"{stem_of(table)}.posteriori"),
        report=report,
        folds=folds,
        unlabelled=unlabelled,
        unlabelled_weight=unlabelled_weight,
        components=components,
        label_noise=label_noise,
        seed=seed,
        force=force,
        classes=classes,
        target_is_class=target_is_class,
    )
    facts = run(request)

    from posteriori.cli import pages, tables

    (tables.print_json if as_json else pages.print_fit)(facts)


def run(request: FitRequest) -> dict[str, Any]:
    """Fit, save and report as requested; return the facts that the command prints.

    Raises
    ------
    UserError
        The request contradicts itself or does not suit the table.
    """
    _check_outputs(request)
    spec = resolve_model(request)
    _, data = open_and_summarise(request.tables, lambda scan: _open_table(scan, request))

    import polars as pl

    labels = pl.Series(request.target, list(data.summary.labels), dtype=data.scan.types[request.target])
    folds = _check_rows(request, data.summary, labels)
    learner = _make_estimator(spec, request, data.chosen)
    estimator, use = label_options.apply_label_options(
        learner,
        spec.name,
        labels,
        unlabelled=request.unlabelled,
        weight=request.unlabelled_weight,
        components=request.components,
        noise=request.label_noise,
        seed=request.seed,
    )
    return _fit_and_save(request, spec, data, estimator, use, folds)


def _check_outputs(request: FitRequest) -> None:
    destination, paths = request.output, [Path(one) for one in request.tables]
    if names_table(destination):
        raise UserError(f"{str(destination)!r} has the suffix of a table; name the model NAME.posteriori")
    check_place(destination, *paths)
    check_overwrite(destination, "classifier", request.target, request.force)
    if request.report is not None:
        check_report(request.report, paths, destination)


def resolve_model(request: FitRequest) -> ModelSpec:
    """Return the model that is asked for; without --model the pool, or nb if an option needs what the pool lacks."""
    if request.model is not None:
        return model_named("--model", request.model)
    beyond_pool = (
        request.column_options["poisson"],
        request.column_options["binned"],
        request.weights,
        request.components,
        request.label_noise,
        request.unlabelled_weight,
    )
    learns = request.unlabelled is Unlabelled.learn or request.missing is Missing.informative
    needs_nb = learns or any(option is not None for option in beyond_pool)
    return model_named("--model", "nb" if needs_nb else "pool")


def _open_table(scan: Scan, request: FitRequest) -> _TrainingTable:
    """Return the features and labels with their summary, and the features that each option names."""
    from posteriori.cli.summary import summarise

    target = request.target
    check_column(target, scan.types, request.title)
    cuts = cuts_of(scan.frame, target, request.classes, request.target_is_class)
    if cuts is not None:
        scan = scan.with_target_cut(target, cuts)
    features = [name for name in scan.names if name != target]
    ignored = columns_named(request.ignore, features, "--ignore")
    features = [name for name in features if name not in ignored]
    if not features:
        raise UserError(f"{request.title!r} has no column left beside the target {target!r}; a model needs a feature")
    chosen = _columns_of_options(request, features)
    with progress_bar("looking", scan.n_rows) as progress:
        summary = summarise(scan, features, target, progress)
    check_labels(target, summary.labels, request.target_is_class)
    for option, held in (("poisson", "numbers of events"), ("binned", "numbers")):
        for name in chosen[option]:
            if not scan.types[name].is_numeric():
                raise UserError(f"--{option} names {name!r}, which holds no {held}; leave it categorical")
    return _TrainingTable(scan, summary, chosen, cuts)


def _columns_of_options(request: FitRequest, features: list[str]) -> dict[str, list[str]]:
    chosen = {kind: columns_named(names, features, f"--{kind}") for kind, names in request.column_options.items()}
    for first, second in itertools.combinations(chosen, 2):
        for name in chosen[first]:
            if name in chosen[second]:
                raise UserError(f"{name!r} is named by both --{first} and --{second}; choose one")
    return chosen


def _check_rows(request: FitRequest, summary: Summary, labels: pl.Series) -> int:
    """Return the number of folds that the labelled rows allow."""
    n_labelled = summary.n_labelled
    if n_labelled < 2:
        few = "row" if summary.n_rows < 2 else "row with a label"
        raise UserError(f"{request.title!r} has one {few} only; cross-validation needs two at least")
    if len(labels) == 1:
        warn(f"the target {request.target!r} has one class only, {labels[0]!r}: every prediction will be that")
    if request.folds > n_labelled:
        rows = "rows" if n_labelled == summary.n_rows else "rows with a label"
        warn(f"there are only {n_labelled} {rows}, so there are as many folds")
    return min(request.folds, n_labelled)


def _make_estimator(spec: ModelSpec, request: FitRequest, chosen: dict[str, list[str]]) -> Any:
    """Return the estimator with the densities, missing cells and weights that the options ask for."""
    for option, needed in (("poisson", "distributions"), ("binned", "binned")):
        if chosen[option] and needed not in spec.options:
            raise UserError(f"--{option} needs --model {names_with(needed)}, not {spec.name}; leave it out")
    if "distributions" in spec.options:
        distributions = {name: kind for kind, names in chosen.items() for name in names}
        estimator = spec.make(distributions=distributions or None)
    else:
        estimator = spec.make(categorical_features=chosen["categorical"] or "from_dtype")
    if request.missing is Missing.informative:
        if "missing" not in spec.options:
            raise UserError(f"--missing informative needs --model {names_with('missing')}, not {spec.name}")
        estimator.set_params(missing=request.missing.value)
    if request.weights is not None:
        if "weights" not in spec.options:
            raise UserError(f"--weights does not go with --model {spec.name}; it needs {names_with('weights')}")
        estimator.set_params(weights=request.weights.value)
    return estimator


def _fit_and_save(
    request: FitRequest, spec: ModelSpec, data: _TrainingTable, estimator: Any, use: Unlabelled, folds: int
) -> dict[str, Any]:
    """Fit, save and write the report; return the facts."""
    from posteriori.cli import facts
    from posteriori.cli.summary import summarise
    from posteriori.persistence import save

    target, summary = request.target, data.summary
    features, n_unlabelled = list(summary.columns), summary.n_rows - summary.n_labelled
    left_out = target if n_unlabelled and use is Unlabelled.ignore else None
    rows = data.scan.narrowed([*features, target], left_out)
    if left_out is not None:
        with as_user_errors():
            summary = summarise(rows, features, target, None)
    scored = _cross_validate(spec, estimator, rows, target, folds)
    found = {
        "command": "fit",
        "table": " ".join(request.tables),
        "model": spec.name,
        **facts.fit_facts(rows, summary, scored),
        "unlabelled": label_options.unlabelled_facts(scored.estimator, n_unlabelled, use),
        "output": str(request.output),
        "report": None if request.report is None else str(request.report),
    }
    if data.cuts is not None:
        scored.estimator.target_cuts_ = data.cuts
    with as_user_errors():
        save(scored.estimator, request.output)
        if request.report is not None:
            frame = rows.frame.collect()  # the figures of the report show rows
            write_report(scored, frame, target, request.report, f"{target} in {request.title}")
    return found


def _cross_validate(spec: ModelSpec, estimator: Any, rows: Scan, target: str, folds: int) -> OutOfFold:
    from posteriori.model_selection import out_of_fold
    from posteriori.model_selection.folded_data import MOST_EVALUATED
    from posteriori.tables.targets import numbers_as_classes

    # The command has refused targets that look like a quantity; what is left are classes.
    with as_user_errors(), pass_bars(), numbers_as_classes():
        if spec.name == "pool":
            return estimator.set_params(folds=folds).fit(rows, target).out_of_fold_
        return out_of_fold(estimator, rows, target, folds=folds, most=MOST_EVALUATED)
