"""The command watch: whether a model still holds for batches of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posteriori.cli.files import page_beside
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import load, read_for, with_cut_target
from posteriori.cli.options import AsJson, ModelPath
from posteriori.cli.outputs import check_place
from posteriori.cli.report import report_at
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers.estimator import Estimator
    from posteriori.watching import Monitor

ALARM = 3  # exit code
_FALSE_ALARMS = 0.01


def watch(
    model: ModelPath,
    batch: Annotated[
        Path, typer.Argument(metavar="BATCH", help="New rows, with labels or without; - for stdin.", show_default=False)
    ],
    reference: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="The first time: rows from when the model held, which it has not learned from.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What was counted so far; updated. Default: MODEL.watch."),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(help=f"The first time: probability of any alarm ever without a change. Default: {_FALSE_ALARMS}."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="NAME", help="The column of the labels. Default: that of fit."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the history as a page; it is replaced each time."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take a batch of new rows, and say whether the model still holds.

    Batches are compared with reference rows and with each other: log p(x), the log-loss where there are labels, and
    each column. The state file remembers them. The exit code is 3 from the first alarm on.
    Details: docs/guide/tasks/watch.md.

    Example:

        posteriori watch penguins.posteriori penguins.csv --reference penguins.csv
    """
    place = page_beside(model, ".watch") if state is None else state
    inputs = [batch, model, *([] if reference is None else [reference])]
    check_place(place, inputs, [output])
    if output is not None:
        report_at(output, inputs, model, True)
    estimator = load(model, Subject.CLASS, Subject.COMPONENT, Subject.NUMBER, Subject.COLUMNS)
    target = target or estimator.schema_.target
    if place.exists():
        monitor = _continued(place, estimator, reference, false_alarms)
    else:
        monitor = _started(place, estimator, reference, target, false_alarms)
    frame = _read(estimator, batch, target)
    with as_user_errors():
        found = monitor.update(frame, target if target in frame.columns else None)
        monitor.save(place)
        if output is not None:
            monitor.page(f"{model.name}, watched").save(output)

    from posteriori.cli import tables

    if as_json:
        tables.print_json(
            {
                "command": "watch",
                "batch": found.batch,
                "rows": found.n_rows,
                "labelled": found.n_labelled,
                "new_alarms": found.alarms,
                "alarms": monitor.alarms,
                "columns": found.columns,
                "log_evidence": found.evidence,
                "sentences": found.sentences,
                "state": str(place),
            }
        )
    else:
        tables.print_sentences(tables.console(), found.sentences)
    if found.standing:
        raise typer.Exit(ALARM)


def _read(estimator: Estimator, path: Path, target: str | None) -> pl.DataFrame:
    """Read the columns of the model and the target, as far as the table has them."""
    frame = with_cut_target(read_for(estimator, path, target), estimator, target)
    if not estimator.schema_.named:
        return frame
    from posteriori.tables.polars import exactly

    return frame.select(exactly(*(name for name in frame.columns if name in (*estimator.schema_.given, target))))


def _continued(place: Path, estimator: Estimator, reference: Path | None, false_alarms: float | None) -> Monitor:
    for option, given in (("--reference", reference), ("--false-alarms", false_alarms)):
        if given is not None:
            raise UserError(
                f"the state {str(place)!r} exists, and {option} is for a new one; leave it out to continue, or name "
                "another file with --state to start again"
            )
    from posteriori.watching import Monitor

    with as_user_errors():
        return Monitor.load(place, estimator)


def _started(
    place: Path, estimator: Estimator, reference: Path | None, target: str | None, false_alarms: float | None
) -> Monitor:
    if reference is None:
        raise UserError(
            f"there is no state {str(place)!r} to continue from; to start, name rows from when the model held, which "
            "it has not learned from, with --reference"
        )
    from posteriori.watching import Monitor

    frame = _read(estimator, reference, target)
    labels = target if target in frame.columns else None
    with as_user_errors():
        return Monitor(estimator, frame, labels, false_alarms=_FALSE_ALARMS if false_alarms is None else false_alarms)
