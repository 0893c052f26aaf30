"""The command predict: the class of each row of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from posteriori.cli.checks import load_posterior, scan_for
from posteriori.cli.messages import as_user_errors
from posteriori.cli.options import ModelPath, OutputTable, Quiet, TablePaths
from posteriori.cli.progress import progress_bar
from posteriori.cli.writing import check_output, write_out


def predict(
    model: ModelPath,
    table: TablePaths,
    output: OutputTable = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add p(class | row) of each class, as p_CLASS.")] = False,
    quiet: Quiet = False,
) -> None:
    """Predict the class of each row of a table.

    The output has one row per row of the table, in the same order, with the column prediction. A model saved by cluster
    predicts the component. The table may contain the target; it is not used. A category unseen in training counts as
    missing.

    Example:

        posteriori predict penguins.posteriori penguins.csv --proba
    """
    if output is not None:
        check_output(output, model, *map(Path, table))
    fitted = load_posterior(model)
    scan = scan_for(fitted.schema, fitted.target, table)

    from posteriori.scoring.files import predictions, write_predictions

    apart = output is not None or not sys.stdout.isatty()
    with as_user_errors(), progress_bar("predicting", scan.n_rows, wanted=apart and not quiet) as progress:
        if output is not None:
            write_predictions(fitted, scan, output, proba, progress)
            return
        for number, frame in enumerate(predictions(fitted, scan, proba, progress)):
            write_out(frame.write_csv(include_header=not number))
