"""What text files hold that polars has to be told: what is missing, columns without a name, lines without cells."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path
from typing import Any

import polars as pl

# What stands for a missing cell; "None", "?" and "-" do not: elsewhere they are categories.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null")
SAMPLED_ROWS = 10_000  # of each file, which say what its columns are
SEPARATORS = {"csv": ",", "tsv": "\t"}
_TAIL = 1 << 16  # bytes

Types = dict[str, pl.DataType]


def lazy_text(source: Any, kind: str, types: Types | None, sampled: int | None = SAMPLED_ROWS) -> pl.LazyFrame:
    """Return CSV or TSV files as a table that polars has not read yet; a column without a name is called column_1."""
    read: dict[str, Any] = {"glob": False, "separator": SEPARATORS[kind], "null_values": list(MISSING)}
    names = pl.scan_csv(source, infer_schema=False, **read).collect_schema().names()
    new: dict[str, str] = {name: f"column_{place}" for place, name in enumerate(names, start=1) if not name}
    old = {given: name for name, given in new.items()}
    overrides: Any = None if types is None else {old.get(name, name): dtype for name, dtype in types.items()}
    frame = pl.scan_csv(source, infer_schema_length=sampled, schema_overrides=overrides, **read)
    return frame.rename(new) if new else frame


def require_text(path: Path, names: list[str]) -> None:
    """Raise ValueError if the names of columns show that a file is not UTF-8 text."""
    if any("\x00" in name or "\ufffd" in name for name in names):
        raise ValueError(f"cannot read {str(path)!r}: it is not UTF-8 text")


def reason_of(error: BaseException) -> str:
    """Return what polars says is wrong with a file, without its advice on how to call it from Python."""
    text = str(error)
    if isinstance(error, pl.exceptions.PanicException):
        return "it is damaged"
    if "more fields than defined" in text:
        return "a line has more cells than the header"
    if "invalid utf-8" in text:
        return "it is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return " ".join(re.split(r"\n\s*\n|You might want", text)[0].split())[:200] or type(error).__name__


def empty_lines_at_the_end(path: Path, kind: str) -> tuple[int, int]:
    """Return how many lines without any value a CSV or TSV file of several columns ends in, and its rows above them."""
    if path.suffix.lower() in (".gz", ".zst"):
        last = lazy_text(path, kind, None).tail(1).collect(engine="streaming")
        if last.width == 1 or not last.height or any(one.null_count() == 0 for one in last.iter_columns()):
            return 0, 0
    elif not _ends_without_value(path, kind):
        return 0, 0
    rows = lazy_text(path, kind, None, 0).with_row_index("\x00row")
    cells = pl.exclude("\x00row")
    filled = pl.col("\x00row").filter(pl.any_horizontal(cells.is_not_null()))
    last_row, n_rows = rows.select(filled.max(), pl.len().alias("n")).collect(engine="streaming").row(0)
    kept = 0 if last_row is None else last_row + 1
    return n_rows - kept, kept


def _ends_without_value(path: Path, kind: str) -> bool:
    with path.open("rb") as handle:
        header = handle.readline()
        handle.seek(max(handle.tell(), os.fstat(handle.fileno()).st_size - _TAIL))
        lines = handle.read().splitlines()
    separator = SEPARATORS[kind].encode()
    if separator not in header or not lines:
        return False
    return all(cell.strip(b'"').decode("utf8", "replace") in MISSING for cell in lines[-1].split(separator))


def short_row(path: Path, kind: str, n_columns: int) -> int | None:
    """Return the number of the first line of a text file that has fewer cells than the header; None if none has.

    Empty lines at the end of the file are none. A cell in quotes may go on in the next line, so the csv module has the
    last word where there are quotes.
    """
    separator = SEPARATORS[kind]
    lines = pl.scan_csv(
        path, has_header=False, separator="\x01", quote_char=None, schema={"line": pl.String}, glob=False
    ).with_row_index("number", offset=1)
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
    found = [line for line in (short, empty) if line is not None and last is not None and line < last + (line == short)]
    if not found or not quoted:
        return min(found, default=None)
    if path.suffix.lower() == ".zst":
        return None
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf8", newline="") as handle:
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
