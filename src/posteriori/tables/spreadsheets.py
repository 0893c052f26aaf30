"""Frames written as spreadsheets of Excel, by openpyxl."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 1_048_575  # of a sheet, below its header
_MOST_DIGITS = 15  # of a number in Excel
_LONGEST = 32_767  # characters of a cell
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # in XML
_PLAIN = rf"^-?(?:0|[1-9]\d{{0,{_MOST_DIGITS - 1}}})(?:\.\d+)?$"  # 007 is a key and not a number


def write_excel(frame: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a frame as a sheet with a header that stays in sight; no text becomes a formula.

    Columns of text in which every cell is a plain number of at most 15 digits become numbers, so that they can be
    sorted and added.

    Raises
    ------
    ValueError
        openpyxl is not installed, there are more rows than a sheet has, or a text has a character that no sheet holds.
    """
    try:
        from openpyxl import Workbook
    except ImportError:
        raise ValueError(
            "a spreadsheet is written by openpyxl, which is not installed: pip install openpyxl, or write .csv"
        ) from None
    if frame.height > MOST_ROWS:
        raise ValueError(f"a sheet of Excel holds {MOST_ROWS:,} rows, and there are {frame.height:,}; write .csv")
    for column in frame.iter_columns():
        _check_text(column)
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")
    sheet.freeze_panes = "A2"
    columns = [_numbers_of(column) for column in frame.iter_columns()]
    sheet.append(list(_cells(sheet, frame.columns)))
    for row in zip(*columns, strict=True):
        sheet.append(list(_cells(sheet, row)))
    book.save(path)


def _check_text(column: pl.Series) -> None:
    """Raise ValueError if a sheet cannot hold a text, or would cut it."""
    import polars as pl

    texts = column.cast(pl.String) if column.dtype in (pl.String, pl.Categorical, pl.Enum) else column.head(0)
    for text in (column.name, *texts.drop_nulls().unique()):
        if _NO_XML.search(text):
            raise ValueError(f"column {column.name!r} has a control character, which Excel cannot hold; write .csv")
        if len(text) > _LONGEST:
            raise ValueError(f"column {column.name!r} has a text of more letters than a cell of Excel; write .csv")


def _numbers_of(column: pl.Series) -> pl.Series:
    """Return a column of text as numbers if every cell is a plain one; other columns as they are."""
    import polars as pl

    if column.dtype != pl.String or column.null_count() == column.len():
        return column
    digits = column.str.replace_all(r"\D", "").str.len_chars().max()
    if not column.str.contains(_PLAIN).all() or int(str(digits)) > _MOST_DIGITS:
        return column
    return column.cast(pl.Float64 if column.str.contains(".", literal=True).any() else pl.Int64)


def _cells(sheet: Any, values: Any) -> Iterator[Any]:
    """Yield cells that Excel takes: text is never a formula, and a number of more digits than it keeps is text."""
    import datetime
    import math

    from openpyxl.cell import WriteOnlyCell

    timed = (datetime.date, datetime.time, datetime.timedelta)
    for value in values:
        if value is None or value != value:
            yield None
        elif isinstance(value, timed) and getattr(value, "tzinfo", None) is None:
            yield value
        elif isinstance(value, int | float) and (abs(value) < 10**_MOST_DIGITS or isinstance(value, float)):
            yield value if math.isfinite(value) else str(value)
        else:
            cell = WriteOnlyCell(sheet, value=str(value))
            cell.data_type = "s"
            yield cell
