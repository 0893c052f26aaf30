"""The command report: a page about a model and a table, or about the drift between two tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from posteriori.cli.checks import check_column, check_target, known_columns, load_model, read_for
from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.options import ModelPath, TablePath
from posteriori.cli.reports import check_report

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator


def report(
    model: ModelPath,
    table: TablePath,
    against: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Earlier rows: report the drift since then.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="NAME", help="The column that holds the classes. Default: that of fit."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write. Default: MODEL.report.html."),
    ] = None,
    explorer: Annotated[
        str | None,
        typer.Option(metavar="PAGE", help="Address of a page written by explore, to link to.", show_default=False),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The title of the page.")] = None,
) -> None:
    """Write a report: how a model predicts a table, or how a table differs from earlier rows.

    Without --against the page is that of fit --report, with scores of the predictions for the labelled rows of TABLE.
    With --against it is about drift: which columns changed and by how much, log p(x), the class shares, and the
    scores if both tables have labels. Labels are not needed then.

    Example:

        posteriori report penguins.posteriori new.csv --against penguins.csv
    """
    path = model.with_suffix(".report.html") if output is None else output
    check_report(path, [table, *([] if against is None else [against])], model)
    estimator = load_model(model)
    target = target or estimator.schema_.target
    frame = _read(estimator, table, target)
    labels = target if target in frame.columns else None
    earlier = None if against is None else _read(estimator, against, target)
    if earlier is None:
        if target is None:
            raise UserError("the model does not know the name of its target; name the column with --target")
        check_column(target, frame.schema, table.name)
        check_target(frame, target, table)

    from posteriori import reporting
    from posteriori.classifiers.seen_rows import share_of_seen_rows

    with as_user_errors():
        predicted = None
        if earlier is None:
            predicted = estimator.predict_proba(frame)
            if share_of_seen_rows(estimator, frame):
                warn(
                    "rows of the table are among those that the model was trained on, so its scores are too optimistic"
                )
        default = f"{target or 'classes'} in {table.name}" + (f" against {against.name}" if against else "")
        reporting.report(
            estimator,
            frame,
            labels,
            path,
            out_of_fold=predicted,
            against=earlier,
            explorer=explorer,
            title=title or default,
        )
    print(f"wrote {path}")


def _read(estimator: GenerativeEstimator, path: Path, target: str | None) -> pl.DataFrame:
    """Read the columns of the model and the target, if the table has it, with a numeric target cut as in training."""
    from posteriori.tables.names import exactly

    frame = read_for(estimator, path, target)
    cuts = getattr(estimator, "target_cuts_", None)
    if cuts is not None and target in frame.columns and frame.schema[target].is_numeric():
        frame = frame.with_columns(cuts.expression(target))
    if not estimator.schema_.named:
        return frame
    features = known_columns([name for name in frame.columns if name != target], estimator.schema_)
    return frame.select(exactly(*features, *([target] if target in frame.columns else [])))
