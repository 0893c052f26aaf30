"""The command report and the option --report of fit: pages about a model and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import STDIN, names_table, page_beside, read_frame
from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.models import align, load, read_for, with_cut_target
from posteriori.cli.options import ColumnOfTruth, Force, ModelPath, PageTitle, Positive, TablePath
from posteriori.cli.outputs import Output, output_at
from posteriori.cli.records import CLASSES, JOINT, NUMBERS, ONE_COLUMN, refuse_unfit
from posteriori.cli.targets import check_column, labelled_rows
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers.estimator import Estimator
    from posteriori.model_selection import HeldOut


_SUFFIXES = (".html", ".htm")


def report_at(path: Path, inputs: Sequence[str | Path], model: Path, force: bool) -> Output:
    """Return the file of a report, before any work is done.

    Raises
    ------
    UserError
        The suffix is not .html, no file may be written there, or the file is that of the model.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"{str(path)!r} does not have the suffix of a web page; name it .html")
    if path.resolve() == model.resolve():
        raise UserError(f"the report would overwrite the model {str(path)!r}; name another file")
    return output_at(path, inputs, force)


def write_report(scored: HeldOut, frame: pl.DataFrame, target: str, path: Path, title: str) -> None:
    """Write the report on a model and its training rows, with scores from the out-of-fold predictions."""
    from posteriori.reporting import report

    report(scored.estimator, frame, target, path, out_of_fold=scored, title=title)


@dataclass(frozen=True)
class _Reported:
    """The options on the content of the page, and its file."""

    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Earlier rows: report the drift since then. Or another model.", show_default=False
        ),
        ONE_COLUMN,
        CLASSES,
    ] = None
    target: Annotated[ColumnOfTruth, ONE_COLUMN] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write. Default: MODEL.report.html.")
    ] = None
    explorer: Annotated[
        str | None,
        typer.Option(metavar="PAGE", help="Address of a page written by explore, to link to.", show_default=False),
        ONE_COLUMN,
        CLASSES,
    ] = None
    positive: Positive = None


def report(
    model: ModelPath, table: TablePath, *, asked: _Reported, title: PageTitle = None, force: Force = False
) -> None:
    """Write a report: how a model predicts a table, or how a table differs from earlier rows.

    Without --against the page is that of fit --report, with scores of the predictions for the labelled rows of TABLE.
    With --against it is about drift: which columns changed and by how much, log p(x), the class shares, and the
    scores if both tables have labels. Labels are not needed then. With another model as --against, both are compared
    on the labelled rows of TABLE. Of a joint model, the page shows what columns tell about each other, strange cells
    and rows, and equal rows; of clusters what tells them apart, and the rows between them.

    Example:

        posteriori report penguins.posteriori penguins.csv -o page.html
    """
    path = page_beside(model, ".report.html") if asked.output is None else asked.output
    place = report_at(path, [table, *([] if asked.against is None else [asked.against])], model, force)
    loaded = load(model, Subject.CLASS, Subject.NUMBER, Subject.COLUMNS, Subject.COMPONENT)
    kinds, write = {
        Subject.CLASS: ({ONE_COLUMN, CLASSES}, _report_on_classes),
        Subject.NUMBER: ({ONE_COLUMN, NUMBERS}, _report_on_numbers),
        Subject.COLUMNS: ({JOINT}, _report_on_all),
        Subject.COMPONENT: ({JOINT}, _report_on_all),
    }[loaded.subject]
    refuse_unfit([asked], kinds)
    write(loaded, table, asked, place, title)
    print(f"wrote {path}")


def _report_on_classes(estimator: Estimator, table: Path, asked: _Reported, place: Output, title: str | None) -> None:
    target, against, positive = asked.target, asked.against, asked.positive
    other = load(against, Subject.CLASS) if against is not None and _holds_model(against) else None
    models = [estimator] if other is None else [estimator, other]
    target = target or estimator.schema_.target
    frame = _read(models, table, target)
    compared: Any = _read(models, against, target) if against is not None and other is None else other
    drift = against is not None and other is None
    if not drift:
        if target is None:
            raise UserError("the model does not know the name of its target; name the column with --target")
        unlabelled = "if its rows have no labels, --against EARLIER_TABLE compares them with earlier ones"
        check_column(target, frame.schema, table.name, unlabelled)
        frame = labelled_rows(frame, target, table, consequence="; row numbers on the page count the others")

    if positive is not None and against is not None:
        raise UserError("--positive is not used with --against; remove one of them")

    from posteriori import reporting
    from posteriori.classifiers.training_record import chosen_class, share_of_seen_rows

    with as_user_errors(), place.writing():
        chosen_class(estimator, positive)  # an error before any work
        predictions: Any = None
        if against is None:
            frame, predictions = _judged(estimator, frame, target)
        elif not drift and any(share_of_seen_rows(one, _columns_of(one, frame)) for one in models):
            warn("rows of the table are among those that a model was trained on, so its scores are too optimistic")
        reporting.report(
            estimator,
            frame,
            target if target in frame.columns else None,
            place.path,
            out_of_fold=predictions,
            against=compared,
            explorer=asked.explorer,
            positive=positive,
            title=title or f"{target or 'classes'} in {table.name}" + (f" against {against.name}" if against else ""),
        )


def _report_on_numbers(model: Any, table: Path, asked: _Reported, place: Output, title: str | None) -> None:
    from posteriori import reporting

    name = asked.target or model.target_.name
    frame = read_for(model, table, name)
    check_column(name, frame.schema, table.name, "a report compares predictions with the true numbers")
    with as_user_errors(), place.writing():
        reporting.report(model, frame, name, place.path, title=title or f"{name} in {table.name}")


def _report_on_all(model: Any, table: Path, asked: _Reported, place: Output, title: str | None) -> None:
    del asked
    from posteriori import reporting

    what = "The clusters" if model.subject is Subject.COMPONENT else "The columns"
    frame = align(read_frame(table, model.schema_), model.schema_)
    with as_user_errors(), place.writing():
        reporting.report(model, frame, None, place.path, title=title or f"{what} of {table.name}")


def _judged(estimator: Estimator, frame: pl.DataFrame, target: Any) -> tuple[pl.DataFrame, Any]:
    """Return the rows that are judged, and their predictions: out-of-fold where fit has kept them."""
    import numpy as np

    from posteriori.classifiers.kept_predictions import judge_rows
    from posteriori.cli.evaluation import say_training_rows
    from posteriori.reporting.data import ReportData

    components = ReportData.of(estimator, frame, target).components
    labelled = components >= 0
    found = judge_rows(estimator, _columns_of(estimator, frame.filter(labelled)), components[labelled])
    say_training_rows(found)
    if not found.n_kept:
        return frame, estimator.predict_proba(frame)
    if found.judged.all():
        return frame, found.held_out
    return frame[np.flatnonzero(labelled)[found.judged]], found.held_out


def _holds_model(path: Path) -> bool:
    return str(path) != STDIN and not names_table(path)


def _columns_of(estimator: Estimator, frame: pl.DataFrame) -> pl.DataFrame:
    from posteriori.tables.polars import exactly

    if not estimator.schema_.named:
        return frame
    return frame.select(exactly(*(name for name in frame.columns if name in estimator.schema_.given)))


def _read(models: Sequence[Estimator], path: Path, target: str | None) -> pl.DataFrame:
    """Read the columns of the models and the target, if the table has it, with a numeric target cut as in training."""
    estimator = models[0]
    frame = with_cut_target(read_for(estimator, path, target), estimator, target)
    if not all(one.schema_.named for one in models):
        return frame
    others = {name for one in models[1:] for name in one.schema_.given} - set(estimator.schema_.given)
    beside = [name for name in frame.columns if name == target or name in others]
    return align(frame, estimator.schema_, beside)
