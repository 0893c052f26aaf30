"""The command sample: rows drawn from a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.messages import UserError, as_user_errors, refuse_given
from posteriori.cli.models import joint_model_in, load_model
from posteriori.cli.options import DrawSeed, Force, ModelPath, OutputTable, RowCount
from posteriori.cli.outputs import table_at

if TYPE_CHECKING:
    import polars as pl


def sample(
    model: ModelPath,
    rows: RowCount = 10,
    output: OutputTable = None,
    seed: DrawSeed = None,
    given: Annotated[
        str,
        typer.Option(
            metavar="FINDINGS",
            help='Of a joint model: what is known of each row, such as "age=30..40, sex=F".',
            show_default=False,
        ),
    ] = "",
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
    numbers. A joint model draws rows with given values, sets ("c in (a, b)") and ranges (b < 3).

    Example:

        posteriori sample penguins.posteriori -n 5 --seed 1
    """
    write = table_at(output, [model], force)
    joint = joint_model_in(model)
    if joint is not None:
        refuse_given({"--ignore-ranges": ignore_ranges}, "models of one column", "is a joint model")
        from posteriori.facts.joint import value_of
        from posteriori.joint.questions import read_findings

        with as_user_errors():
            findings = read_findings(given, value_of(joint).law) if given.strip() else {}
            drawn = joint.sample(rows, findings, random_state=seed)
        write(_as_frame(drawn, value_of(joint).schema.given))
        return
    if given:
        raise UserError("--given is for joint models, which fit makes without --target; leave it out, or fit one")
    estimator = load_model(model, mixtures=True)

    import polars as pl

    from posteriori.classifiers.classifier import Classifier

    with as_user_errors():
        X, y = estimator.sample(rows, random_state=seed, respect_ranges=not ignore_ranges)
    schema = estimator.schema_
    unnamed = "class" if isinstance(estimator, Classifier) else "component"
    target = schema.target if schema.target is not None else unnamed
    write(_as_frame(X, schema.given).with_columns(pl.Series(target, y.tolist())))


def _as_frame(X: Any, names: tuple[str, ...]) -> pl.DataFrame:
    """Return a table of any supported kind as a polars frame."""
    import narwhals as nw
    import numpy as np
    import polars as pl

    if isinstance(X, pl.DataFrame):
        return X
    if isinstance(X, np.ndarray):
        return pl.DataFrame([pl.Series(name, X[:, j].tolist()) for j, name in enumerate(names)])
    columns = nw.from_native(X, eager_only=True).iter_columns()
    return pl.DataFrame([pl.Series(name, column.to_list()) for name, column in zip(names, columns, strict=True)])
