"""The command explain: Bayes' rule written out for one row."""

from __future__ import annotations

from typing import Annotated

import typer

from posteriori.cli.checks import align, load_model, read_for
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.options import ModelPath, TablePath


def explain(
    model: ModelPath,
    table: TablePath,
    row: Annotated[int, typer.Option(metavar="N", help="The row to explain; the first is 0.")] = 0,
) -> None:
    """Explain one row: Bayes' rule written out, and the contribution of each feature to the log-odds.

    Example:

        posteriori explain penguins.posteriori penguins.csv --row 3
    """
    estimator = load_model(model)
    frame = align(read_for(estimator, table), estimator)
    if not 0 <= row < frame.height:
        raise UserError(f"there is no row {row}; {table.name!r} has the rows 0 to {frame.height - 1}")

    import numpy as np

    from posteriori.cli.explanation_page import print_explanation

    with as_user_errors():
        explanation = estimator.explain(frame.slice(row, 1))
    with np.errstate(invalid="ignore"):  # the posterior of a row that no class can produce
        print_explanation(explanation, row)
