"""The command sample: rows drawn from a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import read_frame
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import align, holds_joint_model, load
from posteriori.cli.options import DrawSeed, Force, ModelPath, OutputTable, RowCount
from posteriori.cli.outputs import table_at
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.tables import Schema


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
    no_copies: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Of a joint model: draw rows that equal a row of this table again.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Print on stderr how the drawn rows differ from this table.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Draw new rows, with their classes, from a model.

    Numbers stay within the range of their column in the training rows. They are whole if all training rows held whole
    numbers, and of a joint model also tenths or hundredths, if all were. A joint model draws rows with given values,
    sets ("c in (a, b)") and ranges (b < 3), also beyond the range of the training rows. --compare measures
    columns, pairs of columns, copied rows, and how well a classifier tells drawn rows from those of a table.

    Example:

        posteriori sample penguins.posteriori -n 5 --seed 1
    """
    write = table_at(output, [model, *(one for one in (no_copies, compare) if one is not None)], force)
    is_joint = holds_joint_model(model)
    for option, is_stated in {"--no-copies": no_copies is not None, "--given": bool(given)}.items():
        if is_stated and not is_joint:
            raise UserError(f"{option} is for joint models, which fit makes without --target; leave it out, or fit one")
    loaded = load(model, Subject.CLASS, Subject.COMPONENT, Subject.COLUMNS)
    schema, options = loaded.schema_, {"random_state": seed, "respect_ranges": not ignore_ranges}
    if is_joint:
        from posteriori.joint.questions import read_findings

        with as_user_errors():
            findings = read_findings(given, loaded.fitted_.law) if given.strip() else {}
            known = False if no_copies is None else align(read_frame(no_copies, schema), schema)
            drawn = _as_frame(loaded.sample(rows, findings, no_copies=known, **options), schema.given)
    else:
        import polars as pl

        with as_user_errors():
            X, y = loaded.sample(rows, **options)
        target = loaded.subject.value if schema.target is None else schema.target
        drawn = _as_frame(X, schema.given).with_columns(pl.Series(target, y.tolist()))
    write(drawn)
    _compare(drawn, compare, schema)


def _compare(drawn: pl.DataFrame, path: Path | None, schema: Schema) -> None:
    """Print on stderr how drawn rows differ from a table, if one is given."""
    if path is None:
        return
    real = read_frame(path, schema)
    from posteriori.comparison import compare_tables

    with as_user_errors():
        found = compare_tables(real, drawn)
    print(found, file=sys.stderr)


def _as_frame(X: Any, names: tuple[str, ...]) -> pl.DataFrame:
    import narwhals as nw
    import numpy as np
    import polars as pl

    if isinstance(X, pl.DataFrame):
        return X
    if isinstance(X, np.ndarray):
        return pl.DataFrame([pl.Series(name, X[:, j].tolist()) for j, name in enumerate(names)])
    columns = nw.from_native(X, eager_only=True).iter_columns()
    return pl.DataFrame([pl.Series(name, column.to_list()) for name, column in zip(names, columns, strict=True)])
