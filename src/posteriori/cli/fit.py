"""The command fit: learn a model from a table, score it by cross-validation, and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posteriori.cli.fitting import FitRequest, Missing, Pooling, Weights, run
from posteriori.cli.label_options import Unlabelled
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
    model_help,
)
from posteriori.cli.progress import work_progress
from posteriori.cli.reading import stem_of

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
