"""The command sample: rows drawn from a model."""

from __future__ import annotations

from typing import Annotated

import typer

from posteriori.cli.checks import as_frame, load_model
from posteriori.cli.messages import as_user_errors
from posteriori.cli.options import DrawSeed, Force, ModelPath, OutputTable, RowCount
from posteriori.cli.outputs import table_at


def sample(
    model: ModelPath,
    rows: RowCount = 10,
    output: OutputTable = None,
    seed: DrawSeed = None,
    ignore_ranges: Annotated[
        bool,
        typer.Option(
            "--ignore-ranges",
            help="Draw numbers also outside the range of the training rows.",
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Draw new rows, with their classes, from a model.

    Numbers stay within the range of their column in the training rows. They are whole if all training rows held whole
    numbers.

    Example:

        posteriori sample penguins.posteriori -n 5 --seed 1
    """
    write = table_at(output, [model], force)
    estimator = load_model(model, mixtures=True)

    import polars as pl

    with as_user_errors():
        X, y = estimator.sample(rows, random_state=seed, respect_ranges=not ignore_ranges)
    schema = estimator.schema_
    unnamed = "class" if hasattr(estimator, "classes_") else "component"
    target = schema.target if schema.target is not None else unnamed
    write(as_frame(X, schema.given).with_columns(pl.Series(target, y.tolist())))
