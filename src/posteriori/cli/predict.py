"""The command predict: the class of each row of a table, by probability, threshold or costs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import csv_text_of, is_spreadsheet, open_as_written, write_out, writer_of, writes_text
from posteriori.cli.lists import COST, Order, Predicting, list_of, order_of, reasons_of_rows, row_column, with_reserved
from posteriori.cli.messages import UserError, as_user_errors, progress_bar
from posteriori.cli.models import holds_joint_model, load, load_posterior, scan_for
from posteriori.cli.options import (
    Force,
    Method,
    ModelPath,
    OutputTable,
    Quiet,
    TablePaths,
    Threshold,
    WithColumns,
    spellings,
    split_names,
)
from posteriori.cli.outputs import Output, output_at
from posteriori.cli.records import CLASSES, JOINT, NUMBERS, ONE_COLUMN, For, refuse_unfit
from posteriori.registry import Subject

if TYPE_CHECKING:
    from posteriori.reading import Scan
    from posteriori.scoring.decisions import Decision
    from posteriori.support.typing import Array
    from posteriori.tables import Column


def thresholds_in(given: Sequence[str] | None, classes: Sequence[Any]) -> Decision | None:
    """Return the rule of --threshold CLASS=P; None without it.

    Raises
    ------
    UserError
        A value is malformed, or names no class.
    """
    from posteriori.scoring.decisions import decision_of

    if not given:
        return None
    with as_user_errors():
        return decision_of(classes, thresholds=named_thresholds(given))


def named_thresholds(given: Sequence[str]) -> dict[Any, float]:
    """Return the thresholds of --threshold CLASS=P by class; UserError if a value is malformed."""
    thresholds = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            threshold = float(share)
        except ValueError:
            threshold = -1.0
        if not name or not 0 <= threshold <= 1:
            raise UserError(f"--threshold is {text!r}; write CLASS=P with a probability P from 0 to 1")
        thresholds[name] = threshold
    return thresholds


def costs_in(path: Path, classes: Sequence[Any]) -> Decision:
    """Return the rule of --costs.

    Raises
    ------
    UserError
        The file cannot be read, or is not a matrix of costs of the classes.
    """
    from posteriori.scoring.decisions import decision_of

    with as_user_errors():
        return decision_of(classes, costs=named_costs(path))


def named_costs(path: Path) -> dict[Any, dict[Any, float]]:
    """Return the costs of a file by class; UserError if it cannot be read."""
    return _json_costs(path) if path.suffix.lower() == ".json" else _table_costs(path)


def _json_costs(path: Path) -> dict[str, dict[str, float]]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        content = None
    rows = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(row, dict) and all(isinstance(cost, int | float) for cost in row.values()) for row in rows):
        raise UserError(f"{str(path)!r} is no JSON of costs; write {{true class: {{predicted class: cost}}}}")
    return dict(content)


def _table_costs(path: Path) -> dict[str, dict[str, float]]:
    from posteriori.cli.files import read_frame

    first, *others = read_frame(path).iter_columns()
    for column in others:
        if not column.dtype.is_numeric() or column.null_count():
            raise UserError(f"column {column.name!r} of {str(path)!r} must hold a cost in each row")
    names = [spellings(cell)[0] for cell in first]
    return {true: {column.name: float(column[row]) for column in others} for row, true in enumerate(names)}


def _levels(coverage: float | None, quantiles: str | None) -> dict[str, float]:
    """Return the quantiles beside a predicted number, by their columns: the ends of an interval, or those asked for.

    Raise UserError if both are asked for, or a share is not between 0 and 1.
    """
    if coverage is not None and quantiles is not None:
        raise UserError("--coverage asks for an interval, and --quantiles stand in its place; remove one of them")
    coverage = 0.9 if coverage is None else coverage
    if not 0.0 < coverage < 1.0:
        raise UserError(f"--coverage is {coverage:g}; give a share between 0 and 1, such as 0.9")
    if quantiles is None:
        return {"prediction_low": (1.0 - coverage) / 2.0, "prediction_high": (1.0 + coverage) / 2.0}
    try:
        shares = [float(part) for part in quantiles.split(",")]
    except ValueError:
        shares = []
    if not shares or not all(0.0 <= share <= 1.0 for share in shares) or len(set(shares)) < len(shares):
        raise UserError(f"--quantiles is {quantiles!r}; give different shares from 0 to 1, such as 0.1,0.5,0.9")
    return {f"quantile_{share:g}": share for share in shares}


_BY_POOL = For("models of one column (--method pool)", "is a joint model")
_SETS = For(NUMBERS.models, NUMBERS.otherwise)  # --coverage: intervals of numbers, and sets of classes by some models


@dataclass(frozen=True)
class _Predicted:
    """The options on predictions, and on the columns that are written."""

    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class, as p_CLASS."), CLASSES] = (
        False
    )
    with_columns: WithColumns = None
    append: Annotated[bool, typer.Option("--append", help="Write all columns of the table first.")] = False
    strangeness: Annotated[
        bool,
        typer.Option("--strangeness", help="Add log_density and strangeness: how unusual a row is."),
        _BY_POOL,
        CLASSES,
    ] = False
    outside: Annotated[bool, typer.Option("--outside", help="Add outside: cells beyond the training rows.")] = False
    threshold: Annotated[Threshold, CLASSES] = None
    costs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Predict the class of least expected cost: .json or table."),
        CLASSES,
    ] = None
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Add the set of classes that holds the true one with probability P; of a number its interval (0.9).",
            show_default=False,
        ),
        _SETS,
    ] = None
    priors: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES", help="Class shares of these rows: CLASS=0.3,OTHER=0.7, or estimate.", show_default=False
        ),
        ONE_COLUMN,
        CLASSES,
    ] = None
    quantiles: Annotated[
        str | None,
        typer.Option(metavar="Q,Q", help="Of a number: quantiles in place of an interval.", show_default=False),
        NUMBERS,
    ] = None
    column: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="NAME", help="Of a joint model: the column to predict.", show_default=False
        ),
        JOINT,
    ] = None
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="List rows by the probability of CLASS, highest first; or by cost, mean, or a result.",
            show_default=False,
        ),
    ] = None
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of a sorted list: the first N rows.", show_default=False)
    ] = None
    reasons: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="Add the K columns that count most in each row.", show_default=False),
        _BY_POOL,
    ] = None
    method: Annotated[
        Method | None,
        typer.Option(
            help="Of a joint model: by the joint model (default), or by a pool in its file.", show_default=False
        ),
        JOINT,
    ] = None

    def check(self) -> None:
        """Raise UserError if options need or exclude each other."""
        if self.threshold and self.costs is not None:
            raise UserError("--threshold and --costs are two rules for one prediction; remove one of them")
        if self.top is not None and self.sort is None:
            raise UserError("--top takes the first rows of a sorted list; add --sort, such as --sort CLASS")

    def decision(self, labels: Sequence[Any]) -> Decision | None:
        return costs_in(self.costs, labels) if self.costs is not None else thresholds_in(self.threshold, labels)


def _predictor_of(
    fitted: Any, asked: _Predicted, kind: For, limit: Array | None = None
) -> tuple[Predicting, Column | None]:
    """Return the predictor of a model of one column, or of a pool in a joint one, and the column of classes.

    Classes are predicted by the `FittedPosterior` of a model, and numbers by the model.
    """
    from posteriori.scoring.files import ResultColumns, RowPredictor

    if getattr(fitted, "subject", Subject.CLASS) is not Subject.NUMBER:
        refuse_unfit(
            [asked],
            {
                kind,
                _BY_POOL,
                CLASSES,
                *([] if limit is None else [_SETS]),
                *([NUMBERS] if fitted.meaning.is_ordered else []),
            },
        )
        labels = fitted.labels
        decision = asked.decision(labels)
        wanted = ResultColumns(
            asked.proba or asked.sort is not None, _levels(None, asked.quantiles), asked.strangeness, decision, limit
        )

        def of_classes(predictor: RowPredictor, n: int, label: Any) -> RowPredictor:
            from posteriori.facts.reasons import with_reasons_of_classes

            return with_reasons_of_classes(fitted, predictor, n, label)

        return Predicting(RowPredictor.of_classes(fitted, wanted), labels, decision, of_classes), fitted.target
    refuse_unfit([asked], {kind, _BY_POOL, NUMBERS, _SETS})

    def of_numbers(predictor: RowPredictor, n: int, label: Any) -> RowPredictor:
        from posteriori.facts.reasons import with_reasons_of_numbers

        return with_reasons_of_numbers(fitted.fitted_, predictor, n)

    # Odd cells of a target that is known do not matter.
    predictor = fitted.row_predictor(ResultColumns(levels=_levels(asked.coverage, asked.quantiles)))
    return Predicting(predictor, None, None, of_numbers), None


def _held_out_predictor(path: Path, tables: Sequence[str], asked: _Predicted) -> tuple[Predicting, Column | None]:
    """Return the predictor of a model whose held-out predictions or other class shares are asked for."""
    from posteriori.cli.unlabelled import with_priors

    model = load(path, Subject.CLASS, Subject.COMPONENT, Subject.NUMBER)
    if not hasattr(model, "with_priors"):
        return _predictor_of(load_posterior(path), asked, ONE_COLUMN)
    if asked.priors is not None:
        model = with_priors(model, asked.priors, tables)
    limit = None
    if asked.coverage is not None:
        with as_user_errors():
            limit, _ = model.limits_of_sets(asked.coverage)
    return _predictor_of(model.fitted_.predictor, asked, ONE_COLUMN, limit)


def _joint_predictor(model: Any, asked: _Predicted, path: Path) -> tuple[Predicting, Column | None]:
    """Return the predictor of one column by a joint model, or by a pool that its file holds.

    Raise UserError if no column is named, or one that the model does not have, or there is no pool of it.
    """
    from posteriori.classifiers.estimator import estimator_of
    from posteriori.facts.joint import columns_of, value_of
    from posteriori.scoring.files import ResultColumns
    from posteriori.support.formatting import listed
    from posteriori.support.suggestions import closest

    value, names, column = value_of(model), columns_of(model), asked.column
    if column is None:
        raise UserError(
            f"{str(path)!r} holds a joint model; name the column to predict: --target NAME; it has "
            f"{listed([repr(name) for name in names], len(names))}"
        )
    if column not in names:
        raise UserError(f"--target is {column!r}, which the model does not have; {closest(column, names, 'columns')}")
    if asked.method is Method.pool and value.law.sizes[value.law.place(column)] > 1:  # a column of one value needs none
        if column not in value.pools:
            raise UserError(
                f"{str(path)!r} holds no pool of {column!r}; leave out --method pool, or fit the model again with "
                f"--targets {shlex.quote(column)}"
            )
        pool = estimator_of(value.pools[column])
        return _predictor_of(pool if pool.subject is Subject.NUMBER else pool.fitted_.predictor, asked, JOINT)
    is_number = column in [value.schema.names[j] for j in value.law.grids]
    refuse_unfit([asked], {JOINT, NUMBERS, _SETS} if is_number else {JOINT, CLASSES})
    labels = None if is_number else model.categories(column)
    decision = None if labels is None else asked.decision(labels)
    levels = _levels(asked.coverage, asked.quantiles) if is_number else {}
    wanted = ResultColumns(asked.proba or asked.sort is not None, levels, decision=decision)
    predictor = model.row_predictor(wanted, column)
    return Predicting(predictor, labels, decision, None), None


def predict(
    model: ModelPath,
    table: TablePaths,
    output: OutputTable = None,
    *,
    asked: _Predicted,
    escape_formulas: Annotated[
        bool, typer.Option("--escape-formulas", help="Put ' before text that a spreadsheet would run (=…, @…).")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Predict the class, or the number, of each row of a table.

    The output has one row per row of the table, in the same order, with the column prediction. Of a number that is its
    mean, beside the ends of its interval, prediction_low and prediction_high. A model saved by cluster predicts the
    component, and a joint model the column of --target. A category unseen in training counts as missing. A list (of
    --sort, or as .xlsx) has all columns of the table or those of --with, and is rounded. The parts of --reasons add up
    to log_odds, or to the mean. log_density is log p(row) in nats; strangeness is the share of rows drawn from the
    model that are more probable. Details: docs/command_line.md.

    Example:

        posteriori predict penguins.posteriori penguins.csv --sort Gentoo --top 20
    """
    place = None
    if output is not None:
        writer_of(output)
        place = output_at(output, [model, *table, *([] if asked.costs is None else [asked.costs])], force)
    if asked.append and asked.with_columns:
        raise UserError("--append writes all columns, and --with some of them; remove one of the options")
    asked.check()
    if holds_joint_model(model):
        made, target = _joint_predictor(load(model, Subject.COLUMNS), asked, model)
    elif asked.priors is not None or asked.coverage is not None:
        made, target = _held_out_predictor(model, table, asked)
    else:
        made, target = _predictor_of(load_posterior(model), asked, ONE_COLUMN)
    if asked.outside:
        with as_user_errors():
            made = replace(made, predictor=made.predictor.with_outside())
    order = None if asked.sort is None else order_of(asked.sort, made)
    for_people = asked.sort is not None or (output is not None and is_spreadsheet(output))
    every = asked.append or (for_people and not asked.with_columns)
    written = open_as_written(table) if every or asked.with_columns else None
    names = [] if written is None else list(written.names) if every else split_names(asked.with_columns)
    from posteriori.scoring.files import columns_beside

    with as_user_errors():
        beside = columns_beside(written, names)
    scan = scan_for(made.predictor.schema, target, table, names)
    apart = output is not None or not sys.stdout.isatty()
    with as_user_errors(), progress_bar("predicting", scan.n_rows, wanted=apart and not quiet) as progress:
        if for_people:
            _write_list(made, order, asked, scan, beside, place, escape_formulas, progress)
        else:
            _write_rows(made, asked, scan, beside, place, escape_formulas, progress)


def _write_rows(
    made: Predicting,
    asked: _Predicted,
    scan: Scan,
    beside: Scan | None,
    place: Output | None,
    escape_formulas: bool,
    progress: Callable[[int], None] | None,
) -> None:
    """Write all rows in their order, a part at a time."""
    from posteriori.scoring.files import predictions, write_predictions
    from posteriori.tables.formulas import without_formulas
    from posteriori.tables.writing import csv_text

    predictor = made.predictor
    if asked.reasons is not None and made.add_reasons is not None:
        predictor = made.add_reasons(predictor, asked.reasons, None)
    if place is not None:
        with place.writing() as path:
            write_predictions(predictor, scan, path, beside, escape_formulas, progress)
        return
    frames = predictions(predictor, scan, beside, progress)
    for number, frame in enumerate(without_formulas(frames, escape_formulas)):
        write_out(csv_text(frame, header=not number))


def _write_list(
    made: Predicting,
    order: Order | None,
    asked: _Predicted,
    scan: Scan,
    beside: Scan | None,
    place: Output | None,
    escape_formulas: bool,
    progress: Callable[[int], None] | None,
) -> None:
    """Write a list for people. With --top the reasons of the listed rows alone are computed, in a second reading."""
    from posteriori.scoring.files import predictions
    from posteriori.support.atomic_write import atomic_write
    from posteriori.tables.formulas import without_formulas

    as_text = place is None or writes_text(place.path)
    if escape_formulas and not as_text:
        raise UserError("--escape-formulas is for CSV and TSV, and no other file runs text as a formula; leave it out")
    predictor, number, reasons_of = made.predictor, row_column(beside), None
    if asked.reasons is not None and made.add_reasons is not None:
        wider = made.add_reasons(predictor, asked.reasons, None if order is None else order.label)
        if asked.top is None:
            predictor = wider
        else:
            names = wider.columns[len(predictor.columns) :]
            reasons_of, predictor = reasons_of_rows(wider, scan, names), with_reserved(predictor, names)
    frames = predictions(with_reserved(predictor, [number, COST]), scan, beside, progress)
    found = list_of(frames, made, order, asked.top, reasons_of, number, asked.proba)
    if as_text:
        found = next(iter(without_formulas(iter([found]), escape_formulas)))
    if place is None:
        write_out(csv_text_of(found))
        return
    with place.writing() as path, atomic_write(path) as position:
        writer_of(path)(found, position)
