"""The command predict: the class of each row of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from posteriori.cli.checks import load_posterior, scan_for
from posteriori.cli.decisions import costs_in, thresholds_in
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.options import ModelPath, OutputTable, Quiet, TablePaths, WithColumns, split_names
from posteriori.cli.progress import progress_bar
from posteriori.cli.reading import open_as_written
from posteriori.cli.writing import check_output, write_out


def predict(
    model: ModelPath,
    table: TablePaths,
    output: OutputTable = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class, as p_CLASS.")] = False,
    with_columns: WithColumns = None,
    append: Annotated[bool, typer.Option("--append", help="Write all columns of the table first.")] = False,
    strangeness: Annotated[
        bool,
        typer.Option(
            "--strangeness",
            help="Add log_density and strangeness: how unusual a row is.",
        ),
    ] = False,
    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="CLASS=P", help="Predict CLASS where its probability is P or more."),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Predict the class of least expected cost: .json or table.",
        ),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="Put ' before text that a spreadsheet would run (=…, @…)."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Predict the class of each row of a table.

    The output has one row per row of the table, in the same order, with the column prediction. A model saved by cluster
    predicts the component. A category unseen in training counts as missing. log_density is log p(row) in nats;
    strangeness is the share of rows drawn from the model that are more probable: 0.999 is strange. Details:
    docs/command_line.md.

    Example:

        posteriori predict penguins.posteriori penguins.csv --proba --with sex
    """
    if output is not None:
        check_output(output, model, *map(Path, table))
    if threshold and costs is not None:
        raise UserError("--threshold and --costs are two rules for one prediction; remove one of them")
    if append and with_columns:
        raise UserError("--append writes all columns, and --with some of them; remove one of the options")
    fitted = load_posterior(model)
    written = open_as_written(table) if append or with_columns else None
    names = [] if written is None else list(written.names) if append else split_names(with_columns)
    scan = scan_for(fitted.schema, fitted.target, table, names)

    from posteriori.scoring.files import Wanted, columns_beside, predictions, write_predictions
    from posteriori.scoring.formulas import without_formulas
    from posteriori.tables.writing import csv_text

    with as_user_errors():
        beside = columns_beside(written, names)
    decision = costs_in(costs, fitted.labels) if costs is not None else thresholds_in(threshold, fitted.labels)
    wanted = Wanted(proba, strangeness, beside, decision, escape_formulas)
    apart = output is not None or not sys.stdout.isatty()
    with as_user_errors(), progress_bar("predicting", scan.n_rows, wanted=apart and not quiet) as progress:
        if output is not None:
            write_predictions(fitted, scan, output, wanted, progress)
            return
        for number, frame in enumerate(without_formulas(predictions(fitted, scan, wanted, progress), escape_formulas)):
            write_out(csv_text(frame, header=not number))
