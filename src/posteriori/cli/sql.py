"""The command sql: a model as one SELECT, which scores rows inside a database."""

from __future__ import annotations

from typing import Annotated

import typer

from posteriori.cli.checks import load_model
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.options import ModelPath, split_names


def sql(
    model: ModelPath,
    table: Annotated[
        str, typer.Option(metavar="TABLE", help="Table to score: its name, or a SELECT in parentheses.")
    ] = "rows",
    dialect: Annotated[
        str, typer.Option(metavar="NAME", help="duckdb, sqlite, postgres, mysql, bigquery, snowflake, spark, tsql, …")
    ] = "duckdb",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            "--columns",
            metavar="A,B",
            help="Columns of the table in the result, such as its key. Default: the features.",
        ),
    ] = None,
) -> None:
    """Print a model as one SELECT, which scores rows in a database.

    The result has the columns of --with, prediction, and p_CLASS and log_p_CLASS of each class. Missing cells are
    integrated out. The probabilities are those of predict --proba. The rows are in no order: name their key with
    --with. For the pool, nb, lda, qda, rda, tan, chow-liu, kdb and aode.

    Example:

        posteriori sql penguins.posteriori --dialect sqlite --table penguins --with id
    """
    estimator = load_model(model)
    if not hasattr(estimator, "to_sql"):
        raise UserError(
            f"{str(model)!r} holds a {type(estimator).__name__}, which cannot be written as a SELECT; fit --model "
            "pool, nb, lda, qda, rda, tan, chow-liu, kdb or aode"
        )
    kept = None if columns is None else split_names(columns)
    with as_user_errors():
        try:
            select = estimator.to_sql(table, dialect, kept)
        except ImportError as error:
            raise UserError(str(error)) from error
    print(select)
