"""Lines of text files: where an error is, rows with too few cells, and empty lines at the end."""

from __future__ import annotations

import csv
import gzip
import os
import re
import reprlib
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any, cast

from posteriori.reading.dialects import TableFile
from posteriori.reading.file_frames import MISSING, lazily, lazy_text, lines_of
from posteriori.support.lazy_polars import pl

_TAIL = 1 << 16  # bytes at the end of a file that are searched for its last line

_UNPARSED = re.compile(r"could not parse `(.*)` as dtype `(\w+)` at column '(.*)' \(column number (\d+)\)", re.DOTALL)

_NO_DATE = re.compile(
    r"""conversion from `str` to `(?:date|time)[^`]*` failed in column '(.*)' for .*? values?: \["(.*?)[",]""",
    re.DOTALL,
)

_UNCONVERTED = re.compile(
    r"conversion from `str` to `f64` failed in column '(.*?)' for .* values: \[\"(.*?)\"", re.DOTALL
)

_KINDS = {
    "i": "is not a whole number of 64 bits",
    "u": "is not a whole number",
    "f": "is not a number",
    "bool": "is not true or false",
}


def require_text(file: TableFile, names: list[str]) -> None:
    """Raise ValueError if the names of columns show that a file is not UTF-8 text."""
    if any("\x00" in name or "\ufffd" in name for name in names):
        raise ValueError(f"cannot read {str(file.path)!r}: it is not UTF-8 text")


def reason_of(error: BaseException, file: TableFile) -> str:
    """Return the reason of a polars error about a file: with the line if it is known, without advice for Python."""
    text = str(error)
    if isinstance(error, pl.exceptions.PanicException):
        return "it is damaged"
    unparsed = _UNPARSED.search(text)
    if unparsed is not None:
        cell, kind, name, position = unparsed[1], unparsed[2], unparsed[3], int(unparsed[4]) - 1
        if kind == "str" or cell.count('"') % 2 or "\n" in cell:
            start = cell.partition("\n")[0].rstrip("\r")
            shown = reprlib.repr(start)
            where = _in_line(file, lambda line: start in line)
            return f"{where}column {name!r} holds {shown}, where quotes do not pair; close them, or double one inside"
        where = _in_row(file, lambda cells: len(cells) > position and cells[position] == cell)
        reason = _KINDS.get(kind.rstrip("0123456789"), f"is not of type {kind}")
        return f"{where}column {name!r} holds {reprlib.repr(cell)}, which {reason}; correct the cell, or leave it empty"
    no_date = _NO_DATE.search(text)
    if no_date is not None:
        return (
            f"column {no_date[1]!r} holds {reprlib.repr(no_date[2])}, which is not written as the dates above it; "
            "correct the cell, or state that the column is a string"
        )
    if "more fields than defined" in text:
        width = len(next(_records(file), (1, []))[1])
        where = _in_row(file, lambda cells: len(cells) > width)
        return f"{where}there are more cells than in the header; does a cell hold the separator without quotes?"
    if "CSV malformed" in text:
        where = _in_line(file, lambda line: line.count('"') % 2 == 1)
        return f"{where}quotes do not pair; put a cell that holds one in quotes, and double it there"
    if "invalid utf-8" in text:
        return "it is not UTF-8 text; state its encoding, such as latin-1"
    unconverted = _UNCONVERTED.search(text)
    if unconverted is not None:
        name, cell = unconverted[1], unconverted[2]
        position = lazily(file, sampled=0).collect_schema().names().index(name)
        where = _in_row(file, lambda cells: len(cells) > position and cells[position].strip() == cell.strip())
        return (
            f"{where}column {name!r} holds {reprlib.repr(cell.strip())}, which is not a number as the first rows of "
            "the column have them; correct the cell, state it as missing, or state that the column is a string"
        )
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return " ".join(re.split(r"\n\s*\n|You might want", text)[0].split())[:200] or type(error).__name__


def _opened(file: TableFile) -> IO[str]:
    open_file: Any = gzip.open if file.packing == ".gz" else open
    return cast(IO[str], open_file(file.readable, "rt", encoding="utf8", errors="replace", newline=""))


def _records(file: TableFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each row of a CSV or TSV file, and its cells; the header comes first."""
    if file.kind not in ("csv", "tsv") or file.packing == ".zst":
        return
    with suppress(OSError, EOFError, zlib.error, csv.Error), _opened(file) as text:
        rows, line = csv.reader(text, delimiter=file.dialect.separator), 1
        for cells in rows:
            yield file.line(line), cells
            line = rows.line_num + 1


def header_of(file: TableFile) -> list[str] | None:
    """Return the names in the header of a CSV or TSV file as they are written; None if they are not known."""
    first = next((cells for _, cells in _records(file) if cells), None)
    return None if first is None else [first[0].removeprefix("\ufeff"), *first[1:]]


def where_first(files: Sequence[TableFile], name: str, cells: Collection[str]) -> str:
    """Return "; the first in line 7" for the first of some cells of a column; empty where the line is not known."""
    for file in files:
        header = header_of(file) or []
        if name not in header:
            continue
        where = _in_row(file, partial(_holds, header.index(name), cells)).strip()
        if where:
            return f"; the first {where}" + (f" of {file.path.name!r}" if len(files) > 1 else "")
    return ""


def _holds(position: int, cells: Collection[str], row: list[str]) -> bool:
    return len(row) > position and row[position] in cells


def _in_row(file: TableFile, is_bad: Callable[[list[str]], bool]) -> str:
    """Return "in line 7 " for the first row with bad cells; an empty string where the line is not known."""
    return next((f"in line {line} " for line, cells in _records(file) if line > 1 + file.skipped and is_bad(cells)), "")


def _in_line(file: TableFile, is_bad: Callable[[str], bool]) -> str:
    """Return "in line 7 " for the first bad line; an empty string where the line is not known."""
    with suppress(OSError, EOFError, zlib.error), _opened(file) as lines:
        return next((f"in line {file.line(number)} " for number, line in enumerate(lines, 1) if is_bad(line)), "")
    return ""


def empty_lines_at_the_end(file: TableFile) -> tuple[int, int]:
    """Return the number of lines without any value at the end of a CSV or TSV file, and of the rows above them.

    A file of one column has none: there an empty line is a missing cell.
    """
    if file.packing in (".gz", ".zst"):
        last = lazy_text(file.readable, file.dialect, None, 0).tail(1).collect(engine="streaming")
        if last.width == 1 or not last.height or any(cells.null_count() == 0 for cells in last.iter_columns()):
            return 0, 0
    elif not _ends_without_value(file):
        return 0, 0
    rows = lazy_text(file.readable, file.dialect, None, 0).with_row_index("\x00row")
    cells = pl.exclude("\x00row")
    filled = pl.col("\x00row").filter(pl.any_horizontal(cells.is_not_null()))
    last_row, n_rows = rows.select(filled.max(), pl.len().alias("n")).collect(engine="streaming").row(0)
    kept = 0 if last_row is None else last_row + 1
    return n_rows - kept, kept


def _ends_without_value(file: TableFile) -> bool:
    with file.readable.open("rb") as handle:
        header = handle.readline()
        handle.seek(max(handle.tell(), os.fstat(handle.fileno()).st_size - _TAIL))
        lines = handle.read().splitlines()
    separator = file.dialect.separator.encode()
    if separator not in header or not lines:
        return False
    return all(cell.strip(b'"').decode("utf8", "replace") in MISSING for cell in lines[-1].split(separator))


def short_row(file: TableFile, n_columns: int) -> int | None:
    """Return the number of the first line of a text file that has fewer cells than the header; None if none has.

    Empty lines at the end of the file do not count. Where there are quotes the csv module decides, because a cell in
    quotes may continue in the next line.
    """
    separator = file.dialect.separator
    lines = lines_of(file).with_row_index("number", offset=1)
    text, number = pl.col("line").fill_null(""), pl.col("number")
    bare = text.str.replace_all('"[^"]*"', "")
    few = bare.str.count_matches(separator, literal=True) < n_columns - 1
    seen = lines.select(
        number.filter(few & (text != "")).min().alias("short"),
        number.filter(few & (text == "")).min().alias("empty"),
        number.filter(text != "").max().alias("last"),
        text.str.contains('"', literal=True).any().alias("quoted"),
    ).collect(engine="streaming")
    short, empty, last, quoted = seen.row(0)
    lines_found = [
        line for line in (short, empty) if line is not None and last is not None and line < last + (line == short)
    ]
    if not lines_found or not quoted:
        return min(lines_found, default=None)
    if file.packing == ".zst":
        return None
    with _opened(file) as handle:
        return _short_record(csv.reader(handle, delimiter=separator), n_columns)


def _short_record(reader: Any, n_columns: int) -> int | None:
    empty: int | None = None
    for cells in reader:
        if cells and empty is not None:
            return empty
        if cells and len(cells) < n_columns:
            return int(reader.line_num)
        if not cells and empty is None:
            empty = reader.line_num
    return None
