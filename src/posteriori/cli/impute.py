"""The command impute: a table whose missing cells are filled by a joint model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import open_as_written, read_frame, title_of, writes_text
from posteriori.cli.fit_options import joint_model_of
from posteriori.cli.messages import UserError, as_user_errors, note, work_progress
from posteriori.cli.models import align, holds_joint_model, load
from posteriori.cli.options import (
    ColumnOptions,
    DrawSeed,
    Force,
    Kept,
    Method,
    OutputTable,
    Quiet,
    TablePath,
)
from posteriori.cli.outputs import table_at
from posteriori.cli.records import stated_options
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.joint.imputation import Filled


@dataclass(frozen=True)
class _ColumnOptions(ColumnOptions):
    columns: Kept = None


def impute(
    table: TablePath,
    output: OutputTable = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A joint model saved by fit. Default: one is fitted to the table.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="joint: by the joint model. pool: by a pool of each column, which takes longer.")
    ] = Method.joint,
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw the cells, in place of the most probable category and the mean.")
    ] = False,
    seed: DrawSeed = None,
    sure: Annotated[
        bool,
        typer.Option(
            "--sure",
            help="Write how sure each filled cell is into a column beside its own: NAME_probability of categories, "
            "NAME_sd (standard deviation) of numbers.",
        ),
    ] = False,
    *,
    columns: _ColumnOptions,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fill the missing cells of a table by a joint model of all its columns.

    A category is the most probable one, a number its mean, given the known cells of the row; whole numbers stay whole.
    All other cells and the header stay as they are written. With --sure, a column beside each filled one has the
    probability of the category, or the standard deviation of the number, and is empty where the cell was known. With
    --draw, cells are drawn together from their distribution: several files with different seeds show how uncertain a
    result is. Dates and text are not filled, which a line on stderr says.

    Example:

        posteriori impute penguins.csv --output filled.csv

        posteriori impute penguins.csv --sure --output sure.csv
    """
    import polars as pl

    from posteriori.reading.text_lines import header_of

    write = table_at(output, [table, *([] if model is None else [model])], force)
    if seed is not None and not draw:
        raise UserError("--seed is of the draws; add --draw, or leave it out")
    if sure and draw:
        raise UserError("--sure is of the most probable categories and of means; leave out --draw, or --sure")
    if holds_joint_model(table):
        raise UserError(
            f"{str(table)!r} is a model, and the table comes first: posteriori impute TABLE --model {table}"
        )
    if model is None:
        frame = read_frame(table)
        estimator, names = joint_model_of(columns, frame.columns, title_of([str(table)]))
    else:
        for option, _ in stated_options(columns):
            raise UserError(f"{option} is for the fit of a model, and --model has one; leave it out")
        estimator = _loaded(model)
        frame, names = read_frame(table, estimator.schema_), []
    missing = {name: rows for name in frame.columns if (rows := _missing(frame[name])).any()}
    if not missing:
        note("no cell is missing; the table is written as it is")
    with work_progress(not quiet):
        filled, sureness = _filled(estimator, frame, names, method, draw, seed) if missing else (frame, {})
    added = {name: rows & ~_missing(filled[name]) for name, rows in missing.items()}
    beside = _beside(frame, estimator, sureness) if sure else {}
    _say_what(added, {name: rows & ~added[name] for name, rows in missing.items()}, estimator)
    written, header = frame, None
    if writes_text(output):
        scanned = open_as_written([str(table)])
        written, header = scanned.frame.collect(), header_of(scanned.files[0])
    of_columns = header if header is not None and len(header) == written.width else written.columns
    result, header = [], []
    for column, one in zip(_with_cells(written, frame, filled, added), of_columns, strict=True):
        result.append(column)
        header.append(one)
        if column.name in beside:
            result.append(beside[column.name])
            header.append(beside[column.name].name)
    write(pl.DataFrame(result), header)


def _loaded(path: Path) -> Any:
    if not path.is_file():
        raise UserError(f"there is no file {str(path)!r}")
    if not holds_joint_model(path):
        raise UserError(f"{str(path)!r} holds no joint model; fit one without --target, or leave out --model")
    return load(path, Subject.COLUMNS)


def _filled(
    model: Any, frame: pl.DataFrame, names: list[str], method: Method, draw: bool, seed: int | None
) -> tuple[pl.DataFrame, dict[str, Filled]]:
    """Return a table with filled cells, and what fills them by column.

    A model that is not fitted learns from columns of the table first.
    """
    from posteriori.joint.imputation import filled_table
    from posteriori.support.checks import generator
    from posteriori.tables import IgnoredColumnWarning

    with as_user_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)
        warnings.filterwarnings("ignore", "the missing cells of")  # notes name these columns, with the reason
        if names:
            model.fit(frame.select(names))
        known = frame.select(names) if names else align(frame, model.schema_)
        try:
            found = model._fillings(known, model._source(known), method.value, draw, generator(seed))
        except ValueError as error:
            if names or method is not Method.pool:
                raise
            raise UserError(
                "the file of the model holds no pools of these columns, and no rows to fit them to; leave out --method "
                "pool or --model, or fit the model again with --targets all"
            ) from error
    whole = filled_table(known, known.columns, found)
    table = frame.with_columns(whole[name] for name in whole.columns if name in frame.columns)
    return table, {name: one for name, one in found.items() if name in frame.columns}


def _beside(frame: pl.DataFrame, model: Any, filled: Mapping[str, Filled]) -> dict[str, pl.Series]:
    """Return for each filled column one that holds how sure its filled cells are; UserError if a name exists."""
    import polars as pl

    from posteriori.facts.joint import value_of

    law, found = value_of(model).law, {}
    for name, one in filled.items():
        new = f"{name}_{'sd' if law.place(name) in law.grids else 'probability'}"
        if new in frame.columns:
            raise UserError(f"--sure adds the column {new!r}, which the table has; rename it, or leave out --sure")
        cells: list[float | None] = [None] * len(frame)
        for row, certainty in zip(one.rows.tolist(), one.certainty.tolist(), strict=True):
            cells[row] = certainty
        found[name] = pl.Series(new, cells, pl.Float64)
    return found


def _missing(cells: pl.Series) -> pl.Series:
    return cells.is_null() | (cells.is_nan().fill_null(False) if cells.dtype.is_float() else cells.is_null())


def _say_what(added: Mapping[str, pl.Series], left: Mapping[str, pl.Series], model: Any) -> None:
    """Say on stderr how many cells were filled, and which columns were not, with the reason."""
    from posteriori.support.formatting import plural
    from posteriori.tables import quote

    counts = {name: int(rows.sum()) for name, rows in added.items() if rows.any()}
    if counts:
        each = ", ".join(f"{name} {n:,}" for name, n in counts.items())
        note(f"filled {plural(sum(counts.values()), 'missing cell')}: {each}")
    for name, rows in left.items():
        if rows.any():
            n_left = int(rows.sum())
            note(f"{quote([name])} keeps {plural(n_left, 'missing cell')}: {_why_not(name, model)}")


def _why_not(name: str, model: Any) -> str:
    """Return the reason for which a column is not filled."""
    columns = [column for column in model.schema_.columns if column.source == name]
    if not columns:
        return "the model does not have this column"
    if columns[0].part is not None:
        return "dates are not filled"
    if columns[0].is_ignored:
        return f"the model ignores it: {columns[0].reason}"
    return "text is not filled" if columns[0].kind == "counts" else "no row has a value"


def _with_cells(
    written: pl.DataFrame, frame: pl.DataFrame, filled: pl.DataFrame, added: Mapping[str, pl.Series]
) -> pl.DataFrame:
    """Return a table as it is written, with the cells that were added.

    A column of numbers whose known cells are written with units or decimal commas is written as plain numbers.
    """
    import polars as pl

    columns = []
    for name, rows in added.items():
        as_text, known, cells = written[name], frame[name], filled[name]
        is_text = as_text.dtype == pl.String and known.dtype != pl.String
        if is_text and known.dtype.is_numeric() and not _are_plain(as_text, known):
            columns.append(pl.Series(name, [None if cell is None else _text(cell) for cell in cells], pl.String))
        elif as_text.dtype == pl.String:
            spelled = {} if known.dtype.is_numeric() else dict(zip(known.to_list(), as_text.to_list(), strict=True))
            values = zip(rows.to_list(), as_text.to_list(), cells.to_list(), strict=True)
            texts = [spelled.get(cell, _text(cell)) if is_new else before for is_new, before, cell in values]
            columns.append(pl.Series(name, texts, pl.String))
        else:
            columns.append(cells.alias(name))
    return written.with_columns(columns)


def _are_plain(written: pl.Series, known: pl.Series) -> bool:
    """Return whether the known cells of a column of numbers are written as numbers alone."""
    import polars as pl

    numbers = written.str.strip_chars().cast(pl.Float64, strict=False)
    return bool((numbers.is_not_null() | known.is_null()).all())


def _text(cell: Any) -> str:
    """Return a cell as text; a whole number without a decimal point."""
    if isinstance(cell, bool):
        return str(cell).lower()
    return repr(cell).removesuffix(".0") if isinstance(cell, float) else str(cell)
