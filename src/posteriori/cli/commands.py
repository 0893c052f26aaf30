"""The commands of ``posteriori``."""

from __future__ import annotations

import inspect
import itertools
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from posteriori.cli import clusters, cv, label_options, merging, sql
from posteriori.cli import comparison as comparisons
from posteriori.cli import network as networks

# Nothing here imports polars, NumPy or the rest of the library: `posteriori --help` must not wait for them.
from posteriori.cli.checks import (
    Classes,
    TargetIsClass,
    align,
    as_frame,
    check_column,
    check_labels,
    check_target,
    columns_named,
    cuts_of,
    load_model,
    read_for,
    scan_for,
)
from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.overwriting import Force, check_overwrite
from posteriori.cli.progress import pass_bars, progress_bar
from posteriori.cli.reading import check_place, names_table, open_and_summarise, stem_of, title_of
from posteriori.cli.reports import check_report, write_report
from posteriori.cli.writing import check_output, open_output, write_out

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator
    from posteriori.cli.summary import Summary
    from posteriori.tables import Scan, TargetCuts

app = typer.Typer(
    name="posteriori",
    help="Generative classification: class priors times class-conditional densities.",
    epilog="A first look: posteriori fit penguins.csv --target species",
    add_completion=False,
    rich_markup_mode="rich",
)

_FORMATS = ".csv, .tsv (also .gz, .zst), .parquet, .arrow, .feather, .ipc, .ndjson or .jsonl"

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=f"A table: {_FORMATS}.", show_default=False)]
TablePaths = Annotated[
    list[str],
    typer.Argument(metavar="TABLE...", help=f"Files, globs or folders of one table: {_FORMATS}.", show_default=False),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that fit has saved.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the same facts as one JSON document.")]


def _help(command: Callable[..., None]) -> str:
    """Return a command's docstring with each paragraph on one line, to be wrapped at the terminal's width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else part.replace("\n", " ") for part in paragraphs)


def _command(command: Callable[..., None]) -> Callable[..., None]:
    return app.command(help=_help(command))(command)


class Model(StrEnum):
    """The models that can be fitted."""

    auto = "auto"
    nb = "nb"
    lda = "lda"
    qda = "qda"
    rda = "rda"
    tan = "tan"
    chow_liu = "chow-liu"
    kdb = "kdb"
    aode = "aode"


class Missing(StrEnum):
    """What a missing cell tells."""

    at_random = "at-random"
    informative = "informative"


class Weights(StrEnum):
    """How the factors of a model can be weighted."""

    conditional = "conditional"


def _pooled(chosen: dict[str, list[str]]) -> Any:
    from posteriori.classifiers import GenerativeClassifier

    for kind in ("poisson", "binned"):
        if chosen[kind]:
            raise UserError(
                f"--{kind} needs --model nb: auto tries bells and bins by itself; name the model, or leave it out"
            )
    return GenerativeClassifier(categorical_features=chosen["categorical"] or "from_dtype")


def _naive_bayes(chosen: dict[str, list[str]]) -> GenerativeEstimator:
    from posteriori.classifiers import NaiveBayes

    distributions = {name: kind for kind, names in chosen.items() for name in names}
    return NaiveBayes(distributions=distributions or None)


def _discriminant(chosen: dict[str, list[str]], pooling: str | float) -> GenerativeEstimator:
    from posteriori.classifiers import GaussianDiscriminant

    for kind in ("poisson", "binned"):
        if chosen[kind]:
            raise UserError(f"--{kind} needs --model nb: the numbers of lda, qda and rda are Gaussian; leave it out")
    return GaussianDiscriminant(pooling=pooling, categorical_features=chosen["categorical"] or "from_dtype")


def _dependence(chosen: dict[str, list[str]], name: str, **parameters: int) -> GenerativeEstimator:
    from posteriori import classifiers

    if chosen["poisson"]:
        raise UserError("--poisson needs --model nb: this model cuts numbers into bins; leave it out")
    kind = getattr(classifiers, name)
    return kind(categorical_features=chosen["categorical"] or "from_dtype", **parameters)


_FACTORIES: dict[Model, Callable[[dict[str, list[str]]], Any]] = {
    Model.auto: _pooled,
    Model.nb: _naive_bayes,
    Model.lda: partial(_discriminant, pooling="pooled"),
    Model.qda: partial(_discriminant, pooling="per_class"),
    # Half of each: a pull towards a sphere as well would depend on the units of the columns.
    Model.rda: partial(_discriminant, pooling=0.5),
    Model.tan: partial(_dependence, name="TreeAugmentedNaiveBayes"),
    Model.chow_liu: partial(_dependence, name="ChowLiuClassifier"),
    Model.kdb: partial(_dependence, name="KDependenceBayes", k=2),
    Model.aode: partial(_dependence, name="AveragedOneDependence"),
}


class _Looked(NamedTuple):
    """The rows with their target as classes, what they are like, the columns of each option, and the target's cuts."""

    scan: Scan
    summary: Summary
    chosen: dict[str, list[str]]
    cuts: TargetCuts | None


def _open_table(
    scan: Scan,
    title: str,
    target: str,
    ignore: list[str] | None,
    named: dict[str, list[str] | None],
    classes: int | None,
    target_is_class: bool,
) -> _Looked:
    """Return what the features and the labels are like, and the features that each option names."""
    from posteriori.cli.summary import summarise

    check_column(target, scan.types, title)
    cuts = cuts_of(scan.frame, target, classes, target_is_class)
    if cuts is not None:
        scan = scan.with_target_cut(target, cuts)
    features = [name for name in scan.names if name != target]
    ignored = columns_named(ignore, features, "--ignore")
    features = [name for name in features if name not in ignored]
    if not features:
        raise UserError(f"{title!r} has no column left beside the target {target!r}; a model needs a feature")
    chosen = {kind: columns_named(names, features, f"--{kind}") for kind, names in named.items()}
    for first, second in itertools.combinations(chosen, 2):
        for name in chosen[first]:
            if name in chosen[second]:
                raise UserError(f"{name!r} is named by both --{first} and --{second}; choose one")
    with progress_bar("looking", scan.n_rows) as progress:
        summary = summarise(scan, features, target, progress)
    check_labels(target, summary.labels, target_is_class)
    for kind, held in (("poisson", "numbers of events"), ("binned", "numbers")):
        for name in chosen[kind]:
            if not scan.types[name].is_numeric():
                raise UserError(f"--{kind} names {name!r}, which holds no {held}; leave it categorical")
    return _Looked(scan, summary, chosen, cuts)


def _labels(summary: Summary, dtype: pl.DataType, target: str) -> pl.Series:
    import polars as pl

    return pl.Series(target, list(summary.labels), dtype=dtype)


def _version(wanted: bool) -> None:
    if wanted:
        from posteriori import __version__

        print(f"posteriori {__version__}")
        raise typer.Exit


@app.callback()
def _posteriori(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@_command
def fit(
    table: TablePaths,
    target: Annotated[str, typer.Option(metavar="NAME", help="The column that holds the classes.")],
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns that are categorical although they hold numbers."),
    ] = None,
    poisson: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Columns that count events: 0, 1, 2, …")
    ] = None,
    binned: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Columns of numbers whose shape is no bell: cut into bins that tell the classes apart."
        ),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out.")] = None,
    model: Annotated[
        Model | None,
        typer.Option(
            help="auto: all of these that the table is worth, pooled by how they do on rows not seen; nb: naive Bayes; "
            "lda, qda: numbers are a Gaussian with one covariance for all classes, or one each; "
            "rda: half-way between; tan, chow-liu: features form a tree, one for all classes or one each; kdb: each "
            "depends on two others; aode: on every other in turn. Default: auto; nb where another option asks for "
            "what auto has not.",
            show_default=False,
        ),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="What a missing cell tells of the class: at-random, nothing; informative, that it is missing, by a "
            "factor beside the others."
        ),
    ] = Missing.at_random,
    weights: Annotated[
        Weights | None,
        typer.Option(
            help="Give each feature's factor a weight, learned on rows as if each had been left out: it mends the "
            "over-confidence of features that say the same."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to save the model; default: the table's name with .posteriori, here."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page to read in a browser, .html: scores, calibration, mistakes, densities, rows explained.",
            show_default=False,
        ),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    unlabelled: Annotated[
        label_options.Unlabelled | None,
        typer.Option(
            help="Rows whose target is empty: learned from by EM (the default), or left out, as kdb and aode do.",
            show_default=False,
        ),
    ] = None,
    unlabelled_weight: Annotated[
        str | None,
        typer.Option(metavar="W", help="The weight of a row without label, 0 to 1, or held-out to have it chosen."),
    ] = None,
    components: Annotated[
        str | None,
        typer.Option(metavar="K", help="Make classes mixtures: of 2 components each, or CLASS=2,OTHER=3."),
    ] = None,
    label_noise: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Labels may be wrong: a share of them, or learn to estimate which."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the starts of EM, with --components.")] = 0,
    force: Force = False,
    classes: Classes = None,
    target_is_class: TargetIsClass = False,
    as_json: AsJson = False,
) -> None:
    """Learn a model from a table, say how good it is, and save it.

    Strings and true/false make categorical columns, numbers continuous ones. In CSV and TSV files an empty
    cell, NA, N/A, NaN, nan and null are missing; everything else, "None" and "?" among it, is a value.
    Files are read part by part, so that a table may be larger than memory; --report holds all of its rows. Several
    files, a glob in quotes or a folder are one table.

    Missing cells are integrated out, unless --missing says that they tell of the class; rows with a missing label teach
    without one, where the model can.

    Accuracy, log-loss and Brier score are those of cross-validation, beside those of guessing by the class
    prior alone.

    A target of numbers that looks like a quantity is refused: --classes cuts it, and evaluate cuts new rows at the same
    numbers. It looks so where it holds more than 20 different whole numbers with fewer than 100 rows each in the mean,
    which are not numbered through from 0 or 1.

    A model of the same target is overwritten; a file that holds anything else is not, unless --force says so.

    Example:

        posteriori fit penguins.csv --target species --categorical year
    """
    destination = output or Path(f"{stem_of(table)}.posteriori")
    if names_table(destination):
        raise UserError(f"{str(destination)!r} has the suffix of a table; name the model NAME.posteriori")
    check_place(destination, *map(Path, table))
    check_overwrite(destination, "classifier", target, force)
    if report is not None:
        check_report(report, [Path(one) for one in table], destination)
    _, (scan, summary, chosen, cuts) = open_and_summarise(
        table,
        partial(
            _open_table,
            title=title_of(table),
            target=target,
            ignore=ignore,
            named={"categorical": categorical, "poisson": poisson, "binned": binned},
            classes=classes,
            target_is_class=target_is_class,
        ),
    )
    features = list(summary.columns)
    labels = _labels(summary, scan.types[target], target)
    n_labelled = summary.n_labelled
    if n_labelled < 2:
        few = "row" if summary.n_rows < 2 else "row with a label"
        raise UserError(f"{title_of(table)!r} has one {few} only; cross-validation needs two at least")
    if len(labels) == 1:
        warn(f"the target {target!r} has one class only, {labels[0]!r}: every prediction will be that")
    if folds > n_labelled:
        rows = "rows" if n_labelled == summary.n_rows else "rows with a label"
        warn(f"there are only {n_labelled} {rows}, so there are as many folds")

    from posteriori.cli import facts, pages, tables
    from posteriori.cli.summary import summarise
    from posteriori.learning.folded_data import MOST_EVALUATED
    from posteriori.model_selection import out_of_fold
    from posteriori.persistence import save
    from posteriori.tables.targets import numbers_as_classes

    if model is None:
        beyond = (poisson, binned, weights, components, label_noise, unlabelled_weight)
        teaches = unlabelled is label_options.Unlabelled.learn or missing is Missing.informative
        model = Model.nb if teaches or any(option is not None for option in beyond) else Model.auto
    learner = _FACTORIES[model](chosen)
    if missing is Missing.informative:
        if "missing" not in learner.get_params():
            raise UserError(
                f"--missing informative needs --model nb, lda, qda, rda, tan or chow-liu, not {model.value}"
            )
        learner.set_params(missing=missing.value)
    if weights is not None:
        if "weights" not in learner.get_params():
            raise UserError(f"--weights does not go with --model {model.value}, which is no product of factors")
        learner.set_params(weights=weights.value)
    estimator, use = label_options.apply_label_options(
        learner,
        model.value,
        labels,
        unlabelled=unlabelled,
        weight=unlabelled_weight,
        components=components,
        noise=label_noise,
        seed=seed,
    )
    n_unlabelled = summary.n_rows - n_labelled
    left_out = target if n_unlabelled and use is label_options.Unlabelled.ignore else None
    learned_from = scan.narrowed([*features, target], left_out)
    with as_user_errors(), pass_bars(), numbers_as_classes():  # those that look like a quantity have been refused
        if left_out is not None:
            summary = summarise(learned_from, features, target, None)
        folds = min(folds, n_labelled)
        if model is Model.auto:
            scored = estimator.set_params(folds=folds).fit(learned_from, target).out_of_fold_
        else:
            scored = out_of_fold(estimator, learned_from, target, folds=folds, most=MOST_EVALUATED)
    found = {
        "command": "fit",
        "table": " ".join(table),
        "model": model.value,
        **facts.fit_facts(learned_from, summary, scored),
        "unlabelled": label_options.unlabelled_facts(scored.estimator, n_unlabelled, use),
        "output": str(destination),
        "report": None if report is None else str(report),
    }
    if cuts is not None:
        scored.estimator.target_cuts_ = cuts
    with as_user_errors():
        save(scored.estimator, destination)
        if report is not None:
            frame = learned_from.frame.collect()  # its figures are of rows
            write_report(scored, frame, target, report, f"{target} in {title_of(table)}")
    (tables.print_json if as_json else pages.print_fit)(found)


@_command
def predict(
    model: ModelPath,
    table: TablePaths,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Where to write: {_FORMATS}. Default: CSV on stdout.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add p(class | row) of every class, as p_CLASS.")] = False,
) -> None:
    """Predict the class of every row of a table, in its order, as a column called prediction.

    Of a model that cluster has saved it is the component. The target may be in the table, and is not looked at. A
    category unseen in training counts as missing.

    Example:

        posteriori predict penguins.posteriori penguins.csv --proba
    """
    if output is not None:
        check_output(output, model, *map(Path, table))
    estimator = load_model(model, mixtures=True)
    scan = scan_for(estimator, table)

    from posteriori.classifiers.prediction_files import predict_to, predictions

    apart = output is not None or not sys.stdout.isatty()
    with as_user_errors(), progress_bar("predicting", scan.n_rows, wanted=apart) as progress:
        if output is not None:
            predict_to(estimator, scan, output, proba, progress)
            return
        for number, frame in enumerate(predictions(estimator, scan, proba, progress)):
            write_out(frame.write_csv(include_header=not number))


@_command
def evaluate(
    model: ModelPath,
    table: TablePath,
    target: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column that holds the classes; default: as in training."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how good the predictions for a labelled table are, and how well calibrated.

    Give it rows that the model has not been trained on: on its own rows every model looks better than it is.

    Example:

        posteriori evaluate penguins.posteriori penguins.csv
    """
    estimator = load_model(model)
    frame = read_for(estimator, table, target)
    target = target or estimator.schema_.target
    if target is None:
        raise UserError("the model does not know the name of its target; say which column holds it with --target")
    check_column(target, frame.schema, table.name)
    cuts = getattr(estimator, "target_cuts_", None)
    if cuts is not None and frame.schema[target].is_numeric():
        frame = frame.with_columns(cuts.expression(target))
    check_target(frame, target, table)

    from posteriori.cli import facts, pages, tables
    from posteriori.tables import read_labels, read_table
    from posteriori.tables.names import exactly

    with as_user_errors():
        labels = read_labels(target, read_table(frame))
        unseen = [label for label in labels.infer().categories if label not in estimator.target_.lookup]
    if unseen:
        known = ", ".join(map(repr, facts.labels_of(estimator)[:8]))
        raise UserError(f"the target {target!r} holds {unseen[0]!r}, which is no class of the model ({known})")
    features = align(frame.select(exactly(*(name for name in frame.columns if name != target))), estimator)
    with as_user_errors():
        components = labels.components(estimator.target_, slice(0, frame.height))
        posterior = estimator.predict_proba(features)
    found = {
        "command": "evaluate",
        "table": str(table),
        "target": target,
        **facts.evaluation_facts(estimator, components, posterior),
    }
    (tables.print_json if as_json else pages.print_evaluation)(found)


@_command
def explain(
    model: ModelPath,
    table: TablePath,
    row: Annotated[int, typer.Option(metavar="N", help="The row to explain; the first is 0.")] = 0,
) -> None:
    """Write Bayes' rule out for one row, and what each feature adds to the log-odds.

    Example:

        posteriori explain penguins.posteriori penguins.csv --row 3
    """
    estimator = load_model(model)
    frame = align(read_for(estimator, table), estimator)
    if not 0 <= row < frame.height:
        raise UserError(f"there is no row {row}; {table.name!r} has the rows 0 to {frame.height - 1}")

    import numpy as np

    from posteriori.cli.pages import print_explanation

    with as_user_errors():
        explanation = estimator.explain(frame.slice(row, 1))
    with np.errstate(invalid="ignore"):  # the posterior of a row that no class can produce
        print_explanation(explanation, row)


@_command
def sample(
    model: ModelPath,
    rows: Annotated[int, typer.Option("--rows", "-n", metavar="N", min=1, help="How many rows to draw.")] = 10,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Where to write: {_FORMATS}. Default: CSV on stdout.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the draw repeatable.", show_default=False)] = None,
    ignore_ranges: Annotated[
        bool,
        typer.Option(
            "--ignore-ranges",
            help="Draw numbers from the densities themselves, also beyond those of the training rows.",
        ),
    ] = False,
) -> None:
    """Draw new rows from a model, the class of each in the target's column.

    Numbers stay between the lowest and the highest of their column in the training rows, and are whole where all of
    these were.

    Example:

        posteriori sample penguins.posteriori -n 5 --seed 1
    """
    write = open_output(output, model)
    estimator = load_model(model, mixtures=True)

    import polars as pl

    with as_user_errors():
        X, y = estimator.sample(rows, random_state=seed, respect_ranges=not ignore_ranges)
    schema = estimator.schema_
    unnamed = "class" if hasattr(estimator, "classes_") else "component"
    target = schema.target if schema.target is not None else unnamed
    write(as_frame(X, schema.names).with_columns(pl.Series(target, y.tolist())))


@_command
def show(model: ModelPath, as_json: AsJson = False) -> None:
    """Show the parameters of a model: each column's distribution given each class.

    Example:

        posteriori show penguins.posteriori
    """
    estimator = load_model(model, mixtures=True)

    from posteriori.cli import facts, pages, tables

    found = {"command": "show", **facts.model_facts(estimator)}
    page = pages.print_pool if "members" in found else pages.print_model
    (tables.print_json if as_json else page)(found)


_command(comparisons.compare)
_command(clusters.cluster)
_command(cv.cv)
_command(merging.merge)
_command(sql.sql)
_command(networks.query)
_networks = typer.Typer(help="Bayesian networks: show one, draw from one, learn one.", rich_markup_mode="rich")
for _one in (networks.show, networks.sample, networks.learn):
    _networks.command(help=_help(_one))(_one)
app.add_typer(_networks, name="network")
