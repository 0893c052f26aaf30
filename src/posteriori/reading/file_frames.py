"""Files as lazy frames of polars, whose text columns are read as their types say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from posteriori.reading.dialects import TableFile, TextDialect
from posteriori.reading.written_numbers import (
    LEADING_ZERO,
    WrittenNumber,
    WrittenText,
    as_number,
    to_numbers,
    with_point,
    without_marks,
)
from posteriori.support.lazy_polars import pl
from posteriori.tables.polars import exactly

# Marks of a missing cell. "None", "?" and "-" are not among them, because they may be categories.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null")

SAMPLED_ROWS = 10_000  # rows of each file that column types are inferred from

Types: TypeAlias = "dict[str, pl.DataType]"


def lazily(
    files: TableFile | Sequence[TableFile], types: Types | None = None, sampled: int | None = SAMPLED_ROWS
) -> pl.LazyFrame:
    """Return files of one format, dialect and schema as a lazy frame.

    The types of text columns are inferred from the first `sampled` rows of each file, or from all rows if it is None.
    """
    first = files if isinstance(files, TableFile) else files[0]
    source: Any = first.readable if isinstance(files, TableFile) else [one.readable for one in files]
    if first.kind == "parquet":
        return pl.scan_parquet(source, glob=False, hive_partitioning=False)
    if first.kind == "arrow":
        return pl.scan_ipc(source, glob=False, hive_partitioning=False)
    if first.kind == "ndjson":
        return pl.scan_ndjson(source, infer_schema_length=sampled, schema_overrides=types)
    return lazy_text(source, first.dialect, types, sampled)


def lazy_text(
    source: Any,
    dialect: TextDialect,
    types: Types | None,
    sampled: int | None = SAMPLED_ROWS,
    without: Collection[str] = (),
) -> pl.LazyFrame:
    """Return text files as a lazy frame; column k without a name is called column_k, written numbers are floats.

    Usual marks of missing cells `without` which the file is read are strings.
    """
    read: dict[str, Any] = {
        "glob": False,
        "separator": dialect.separator,
        "decimal_comma": dialect.decimal == ",",
        "null_values": [*(mark for mark in MISSING if mark not in without), *dialect.missing],
    }
    keeping = [name for name, dtype in (types or {}).items() if isinstance(dtype, WrittenText) and dtype.keeps_na]
    if keeping:
        return _text_with_na(source, dialect, types or {}, keeping)
    names = pl.scan_csv(source, infer_schema=False, **read).collect_schema().names()
    new: dict[str, str] = {name: f"column_{position}" for position, name in enumerate(names, start=1) if not name}
    # polars leaves the quotes of "a ""b""" doubled.
    new |= {name: single for name in names if (single := name.replace('""', '"')) not in names}
    old = {given: name for name, given in new.items()}
    stated = types or {}
    overrides: Any = {
        old.get(name, name): pl.String() if isinstance(dtype, WrittenNumber | WrittenText) else dtype
        for name, dtype in stated.items()
    }
    frame = pl.scan_csv(source, infer_schema_length=sampled, schema_overrides=overrides, **read)
    frame = _without_numbers(frame, dialect)
    written = [
        as_number(exactly(name), dtype).alias(name)
        for name, dtype in stated.items()
        if isinstance(dtype, WrittenNumber)
    ]
    frame = frame.rename(new) if new else frame
    return frame.with_columns(written) if written else frame


def _without_numbers(frame: pl.LazyFrame, dialect: TextDialect) -> pl.LazyFrame:
    """Return cells as missing that are a stated number in another spelling, such as -999.0 for -999; 099 is not 99."""
    stated = to_numbers(pl.Series(dialect.missing, dtype=pl.String), dialect.decimal).drop_nulls().drop_nans()
    if not len(stated):
        return frame
    numbers, texts = pl.selectors.numeric(), pl.selectors.string()
    written = with_point(texts, dialect.decimal).cast(pl.Float64, strict=False)
    is_stated = written.is_in(stated.to_list()) & ~texts.str.contains(LEADING_ZERO)
    return frame.with_columns(
        pl.when(~numbers.cast(pl.Float64).is_in(stated.to_list())).then(numbers),
        pl.when(~is_stated.fill_null(value=False)).then(texts),
    )


def _text_with_na(source: Any, dialect: TextDialect, types: Types, keeping: Sequence[str]) -> pl.LazyFrame:
    """Return text files in which NA is a code in some columns: all cells are read as strings, and then converted."""
    marks = [mark for mark in (*MISSING, *dialect.missing) if mark != "NA"]
    strings: Types = dict.fromkeys(types, WrittenText(False))
    frame = lazy_text(source, replace(dialect, missing=tuple(marks)), strings, without=("NA",))
    cells = []
    for name, dtype in types.items():
        column = exactly(name) if name in keeping else without_marks(exactly(name), ["NA"])
        if isinstance(dtype, WrittenNumber):
            column = as_number(column, dtype)
        elif dtype == pl.Boolean:
            column = column.str.to_lowercase() == "true"
        elif not isinstance(dtype, WrittenText):
            column = column.cast(dtype)
        cells.append(column.alias(name))
    return frame.with_columns(cells)


def lines_of(file: TableFile) -> pl.LazyFrame:
    """Return the lines of a text file as a column of strings."""
    return pl.scan_csv(
        file.readable, has_header=False, separator="\x01", quote_char=None, schema={"line": pl.String}, glob=False
    )
