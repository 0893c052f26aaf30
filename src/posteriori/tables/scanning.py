"""Scans of text files part by part: their columns, types and errors."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
import reprlib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, TypeAlias, cast
from urllib.parse import unquote

from posteriori.support.lazy_polars import pl
from posteriori.tables.dialects import (
    AskedDialect,
    TableFile,
    TextDialect,
    opened_files,
)
from posteriori.tables.marks import MARK, NUMBERS_SHARE, is_mark, marks_among
from posteriori.tables.polars import exactly
from posteriori.tables.schema import Column, Schema
from posteriori.tables.times import marks_among_dates, type_of_strings
from posteriori.tables.written_numbers import (
    LEADING_ZERO,
    Role,
    SeenCells,
    WrittenNumber,
    WrittenText,
    are_country_codes,
    as_number,
    beside,
    look_at,
    look_at_plain,
    type_of_cells,
    without_marker,
    without_marks,
)
from posteriori.user_warnings import warn

# Marks of a missing cell. "None", "?" and "-" are not among them, because they may be categories.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null")
SAMPLED_ROWS = 10_000  # rows of each file that column types are inferred from
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

Types: TypeAlias = "dict[str, pl.DataType]"


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
    old = {given: name for name, given in new.items()}
    stated = types or {}
    overrides: Any = {
        old.get(name, name): pl.String() if isinstance(dtype, WrittenNumber | WrittenText) else dtype
        for name, dtype in stated.items()
    }
    frame = pl.scan_csv(source, infer_schema_length=sampled, schema_overrides=overrides, **read)
    written = [
        as_number(exactly(name), dtype).alias(name)
        for name, dtype in stated.items()
        if isinstance(dtype, WrittenNumber)
    ]
    frame = frame.rename(new) if new else frame
    return frame.with_columns(written) if written else frame


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
            where = _in_line(file, start)
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
            yield line + file.skipped, cells
            line = rows.line_num + 1


def _in_row(file: TableFile, is_bad: Callable[[list[str]], bool]) -> str:
    """Return "in line 7 " for the first row with bad cells; an empty string where the line is not known."""
    return next((f"in line {line} " for line, cells in _records(file) if line > 1 + file.skipped and is_bad(cells)), "")


def _in_line(file: TableFile, text: str) -> str:
    """Return "in line 7 " for the first line that holds a text; an empty string where the line is not known."""
    with suppress(OSError, EOFError, zlib.error), _opened(file) as lines:
        return next((f"in line {number} " for number, line in enumerate(lines, 1 + file.skipped) if text in line), "")
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
    lines = _lines_of(file).with_row_index("number", offset=1)
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


FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".xlsx": "excel",
    ".xls": "excel",
    ".ods": "excel",
}
_PACKED = (".gz", ".zst")
_MISSING_KEY = "__HIVE_DEFAULT_PARTITION__"  # the folder name that Hive writes for a missing value
_KEY_AND_VALUE = re.compile(r"([^=]+)=(.*)")


def format_of(path: Path) -> str:
    """Return the format of a file, by its suffixes; ValueError if the suffixes name no known format."""
    packed = path.suffix.lower() in _PACKED
    kind = FORMATS.get(Path(path.stem).suffix.lower() if packed else path.suffix.lower())
    if kind is None or (packed and kind not in ("csv", "tsv", "ndjson")):
        raise ValueError(
            f"{str(path)!r} has no suffix that names a table ({', '.join(FORMATS)}; text also .gz or .zst)"
        )
    return kind


def paths_of(paths: Any) -> tuple[Path, ...]:
    """Return the files of a path, a glob, a folder or a list of these, sorted within each.

    Raises FileNotFoundError if a path, glob or folder matches no file, and ValueError if the files are of several
    formats, or of an unknown one.
    """
    if hasattr(type(paths), "columns"):  # of a lazy frame itself they are computed
        raise TypeError(
            f"scan reads files, and was given a {type(paths).__name__}; give it to fit itself, which takes lazy tables"
        )
    names = [os.fspath(paths)] if isinstance(paths, str | os.PathLike) else [os.fspath(path) for path in paths]
    files: list[Path] = []
    for name in names:
        if os.path.isdir(name):
            folder = Path(name)
            matches = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder))
        elif os.path.exists(name):
            matches = [Path(name)]
        else:
            matches = [Path(path) for path in sorted(glob.glob(name, recursive=True)) if os.path.isfile(path)]
        if not matches:
            is_folder = os.path.isdir(name)
            raise FileNotFoundError(
                f"{name!r} is a folder without a file" if is_folder else f"there is no file {name!r}"
            )
        files += matches
    if not files:
        raise FileNotFoundError("paths is empty; name at least one file")
    kinds = {format_of(path): path for path in reversed(files)}
    if len(kinds) > 1:
        (a, first), (b, second) = list(kinds.items())[:2]
        raise ValueError(f"{str(first)!r} is {a} and {str(second)!r} is {b}; scan files of one format")
    return tuple(files)


def _is_hidden(path: Path, folder: Path) -> bool:
    """Return whether a file only keeps the books of the program that wrote the folder: _SUCCESS, .crc."""
    return any(name[0] in "._" and "=" not in name for name in path.relative_to(folder).parts)


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


@dataclass(frozen=True)
class KnownColumns:
    """What is known of columns of text files before their cells are looked at.

    Attributes
    ----------
    types : dict
        Stated types. Strings among them stay strings even if all are dates.
    categories, labels : collection of str
        Columns of categories and labels, which keep their spelling.
    texts : collection of str
        Columns of strings of a model.
    numbers : collection of str
        Columns that are numbers, whatever they look like.
    dates : collection of str
        Columns of strings that a model reads as dates.
    marks : mapping of str to sequence of str
        The marks of missing cells in columns of a model.
    with_na : collection of str
        Columns of a model in which NA is a category.
    """

    types: Types = field(default_factory=dict)
    categories: Collection[str] = ()
    labels: Collection[str] = ()
    texts: Collection[str] = ()
    numbers: Collection[str] = ()
    dates: Collection[str] = ()
    marks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    with_na: Collection[str] = ()

    @classmethod
    def of_model(cls, schema: Schema, target: Column | None = None) -> KnownColumns:
        """Return what a model knows of the columns that it was trained on."""
        columns, name = schema.columns, schema.target if target is None else target.name
        known = (*columns, *([target] if target else []))
        return cls(
            labels=[] if name is None else [name],
            texts={column.name for column in known if column.holds_strings},
            numbers={
                one.name for one in columns if one.kind == "continuous" and one.part is None and not one.valueless
            },
            # They are read in the format of the training rows.
            dates={column.part.of for column in known if column.part is not None and column.part.type.format},
            marks={column.source: column.marks for column in known if column.marks},
            with_na={column.name for column in known if column.part is None and "NA" in column.categories},
        )

    def joined(self, other: KnownColumns) -> KnownColumns:
        """Return what both know."""
        return KnownColumns(
            dict(self.types) | dict(other.types),
            {*self.categories, *other.categories},
            {*self.labels, *other.labels},
            {*self.texts, *other.texts},
            {*self.numbers, *other.numbers},
            {*self.dates, *other.dates},
            dict(self.marks) | dict(other.marks),
            {*self.with_na, *other.with_na},
        )

    def role(self, name: str) -> Role:
        """Return what a column is read for."""
        places = {"label": self.labels, "category": self.categories, "number": self.numbers}
        roles: dict[Role, Collection[str]] = cast(Any, places)
        return next((role for role, names in roles.items() if name in names), "feature")

    def is_fixed(self, name: str) -> bool:
        """Return whether the type of a column is known."""
        return name in self.types or name in self.texts


NOTHING_KNOWN = KnownColumns()


def types_of(file: TableFile, whole: bool = False, known: KnownColumns = NOTHING_KNOWN) -> Types:
    """Return the type of each column of a file; Null for a text column without any cell.

    Types of text columns are inferred from the first rows, or from all rows if `whole`, except known ones.
    Raises ValueError if the file is empty or is not UTF-8 text, or a column that is to be read as numbers holds others.
    """
    if not file.readable.stat().st_size:
        raise ValueError(f"{str(file.path)!r} is empty: it has not even the names of columns; leave it out")
    frame = lazily(file, known.types, None if whole else SAMPLED_ROWS)
    types = dict(frame.collect_schema())
    if file.kind in ("parquet", "arrow"):
        return types
    require_text(file, list(types))
    if file.kind == "ndjson":
        rows = frame if whole else frame.head(SAMPLED_ROWS)
        counts = rows.select(pl.all().count()).collect(engine="streaming").row(0, named=True)
        return {name: dtype if counts[name] else pl.Null() for name, dtype in types.items()}
    # polars parses more rows than it is asked for, and later cells may be of another type: they are read as strings.
    cells = lazily(file, dict.fromkeys(types, pl.String()))
    parts = cells.collect_batches(lazy=True, engine="streaming") if whole else [cells.head(SAMPLED_ROWS).collect()]
    n_cells, n_rows, seen = dict.fromkeys(types, 0), 0, dict.fromkeys(types, SeenCells())
    for part in parts:
        n_rows += part.height
        open_names = [n for n, t in types.items() if (t == pl.String or t.is_numeric()) and not known.is_fixed(n)]
        plain = look_at_plain(
            part, [name for name in open_names if known.role(name) == "feature"], file.dialect.decimal
        )
        for column in part.iter_columns():
            n_cells[column.name] += len(column) - column.null_count()
        for name in open_names:
            seen[name] += plain[name] if name in plain else look_at(part[name], file.dialect.decimal)
    is_long = not whole and n_rows >= SAMPLED_ROWS
    with_gaps = [name for name in types if (is_long or n_cells[name] < n_rows) and name not in known.types]
    may_hold_na = [name for name in with_gaps if name in known.with_na or are_country_codes(seen[name].values)]
    for name, dtype in types.items():
        types[name] = _type_as_written(name, dtype, seen[name], file, known) if n_cells[name] else pl.Null()
    types |= _beside_na(file, may_hold_na, known)
    numbers = [name for name in types if without_marker(types[name]).is_numeric() and not known.is_fixed(name)]
    return types | _by_late_cells(file, cells, {name: types[name] for name in numbers}, known) if is_long else types


def _type_as_written(
    name: str, dtype: pl.DataType, seen: SeenCells, file: TableFile, known: KnownColumns
) -> pl.DataType:
    """Return the type of a column of a text file with some cells, given that which polars infers."""
    if name in known.texts:
        return pl.String()
    if known.is_fixed(name) or not (seen.n_numbers or seen.n_words):
        return dtype
    found = type_of_cells(seen, name, file.dialect.decimal, known.role(name), known.marks.get(name, ()))
    if found is None and seen.n_numbers and not seen.n_words:
        return WrittenNumber(file.dialect.decimal) if dtype == pl.String else _usual(dtype)
    if found is None and seen.n_words and dtype.is_numeric():
        return pl.String()  # digits of other scripts, which polars takes for numbers and does not read
    return dtype if found is None else found


def _beside_na(file: TableFile, names: Sequence[str], known: KnownColumns) -> Types:
    """Return the types of columns of codes of countries that hold NA, which is one of them if they are categories."""
    if not names:
        return {}
    strings: Types = dict.fromkeys(names, pl.String())
    cells = lazy_text(file.readable, file.dialect, strings, without=("NA",))
    n_marks = cells.select((exactly(*names) == "NA").sum()).collect(engine="streaming").row(0, named=True)
    types: Types = {}
    for name, n in n_marks.items():
        is_code = name in known.with_na or name in known.categories
        remark = (
            f"column {name!r} holds codes of two letters, and 'NA' ({n:,} cell{'s' if n > 1 else ''}) is read as "
            "missing; if it is one of the codes, state that the column is categorical"
        )
        if n:
            types[name] = WrittenText(False, "" if is_code else remark, keeps_na=is_code)
    return types


def _usual(dtype: pl.DataType) -> pl.DataType:
    """Return the type of numbers; floats for integers of more than 64 bits."""
    return dtype if dtype in (pl.Int64, pl.Float64) else pl.Float64()


@lru_cache(64)
def _has_odd_cell(file: TableFile, _size: int, _time: int) -> bool:
    """Return whether any cell has a leading zero, or is a mark of a missing one.

    It takes a fraction of the time of a look at each column. A file is opened several times until a model is fitted.
    """
    mark = re.escape(file.dialect.separator)
    odd = f'(?:^|{mark})"?(?:[+-]?0[0-9]|(?:{MARK})"?(?:{mark}|$))'
    lines = _lines_of(file).select(pl.col("line").str.contains(odd).any())
    return bool(lines.collect(engine="streaming").item())


def _by_late_cells(file: TableFile, cells: pl.LazyFrame, types: Types, known: KnownColumns) -> Types:
    """Return the types of those columns of numbers that rows below the first ones show to have another type.

    Codes have a leading zero there, and are text; other columns hold marks of missing cells.
    """
    if not types:
        return {}
    status = file.readable.stat()
    if not _has_odd_cell(replace(file, _folder=None), status.st_size, status.st_mtime_ns):
        return {}  # as nearly always
    names = [name for name in types if known.role(name) != "number"]
    found: Types = {}
    if names:
        late = cells.select(exactly(*names).str.contains(LEADING_ZERO).any()).collect(engine="streaming")
        found = dict.fromkeys([name for name in names if late[name].item()], WrittenText(True))
    return _with_late_marks(file, cells, types, known) | found


def _with_late_marks(file: TableFile, cells: pl.LazyFrame, types: Types, known: KnownColumns) -> Types:
    """Return the types of columns of numbers with the marks of all rows, as far as these are read as missing."""
    is_gap = exactly(*types).str.contains(f"^(?:{MARK})$")
    counts = cells.select(exactly(*types).count()).collect(engine="streaming").row(0, named=True)
    n_gaps = cells.select(is_gap.sum()).collect(engine="streaming").row(0, named=True)
    found: Types = {}
    for name, dtype in types.items():
        if not n_gaps[name]:
            continue
        marks = cells.select(exactly(name).filter(exactly(name).str.contains(f"^(?:{MARK})$")).unique())
        words = set(marks.collect(engine="streaming")[name])
        share = 0.0 if known.role(name) == "number" else NUMBERS_SHARE
        if recognised := marks_among(words, n_gaps[name], counts[name] - n_gaps[name], share):
            old = dtype if isinstance(dtype, WrittenNumber) else WrittenNumber(file.dialect.decimal, is_plain=True)
            found[name] = replace(old, marks=tuple(sorted({*old.marks, *recognised})))
    return found


def marks_among_known_dates(frame: pl.LazyFrame, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the usual marks of missing cells in columns of strings that a model reads as dates, if there are some."""
    found = {}
    for name in names:
        marks = frame.select(exactly(name).filter(exactly(name).str.contains(f"^(?:{MARK})$")).unique())
        words = [word for word in marks.collect(engine="streaming")[name] if is_mark(word)]
        if words:
            found[name] = tuple(sorted(words))
    return found


def _lines_of(file: TableFile) -> pl.LazyFrame:
    """Return the lines of a text file as a column of strings."""
    return pl.scan_csv(
        file.readable, has_header=False, separator="\x01", quote_char=None, schema={"line": pl.String}, glob=False
    )


def common_types(types: Mapping[Path, Types], kind: str, empty: Any = None) -> Types:
    """Return the type of each column in all files.

    Raises ValueError if files have different columns, or a column is of different types: the message names both
    files.
    """
    (first, common), *others = ((path, dict(of_file)) for path, of_file in types.items())
    origin = dict.fromkeys(common, first)  # the file that the type of each column comes from
    for path, of_file in others:
        unshared = [name for name in (*common, *of_file) if (name in common) != (name in of_file)]
        if unshared:
            has, lacks = (first, path) if unshared[0] in common else (path, first)
            raise ValueError(
                f"column {unshared[0]!r} is in {str(has)!r} but not in {str(lacks)!r}; "
                "give all files the same columns, or name those to read in columns"
            )
        for name, dtype in of_file.items():
            known = common[name]
            if dtype == known or dtype == pl.Null:
                continue
            if known == pl.Null:
                common[name], origin[name] = dtype, path
            elif kind in ("csv", "tsv", "ndjson") and {known, dtype} == {pl.Int64(), pl.Float64()}:
                common[name] = pl.Float64()
            elif (both := beside(name, known, dtype)) is not None:
                common[name], origin[name] = both, path
            else:
                raise ValueError(
                    f"column {name!r} is {without_marker(known)} in {str(origin[name])!r} but "
                    f"{without_marker(dtype)} in {str(path)!r}; "
                    "convert it, or state its type in dtypes where the files are text"
                )
    if kind in ("csv", "tsv"):  # polars reads a column without cells as strings, in memory too
        empty = pl.String() if empty is None else empty
    return common if empty is None else {n: empty if dtype == pl.Null else dtype for n, dtype in common.items()}


def partitions_of(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Return the values of Hive partitions, one per file, by key: the folders key=value in the path of each file.

    Raises ValueError if the files lie in folders of different keys.
    """
    pairs: list[dict[str, str]] = []
    for path in paths:
        folders = [match for folder in path.parts[:-1] if (match := _KEY_AND_VALUE.fullmatch(folder))]
        pairs.append({match[1]: match[2] for match in folders})
    keys = list(pairs[0])
    for path, of_file in zip(paths, pairs, strict=True):
        if list(of_file) != keys:
            raise ValueError(f"{str(path)!r} lies in the partitions {list(of_file)}, but {str(paths[0])!r} in {keys}")
    return {key: _numbers_if_all([of_file[key] for of_file in pairs]) for key in keys}


def _numbers_if_all(written: list[str]) -> list[Any]:
    cells = [None if cell == _MISSING_KEY else unquote(cell) for cell in written]
    if all(cell is None or re.fullmatch(r"-?(0|[1-9]\d{0,17})", cell) for cell in cells):
        return [None if cell is None else int(cell) for cell in cells]
    return cells


@dataclass(frozen=True)
class FileSet:
    """Files of one format that are read as one table."""

    files: tuple[TableFile, ...]
    partitions: Mapping[str, list[Any]]  # the values of Hive partitions, one per file, by key

    @property
    def paths(self) -> tuple[Path, ...]:
        """The names of the files in messages."""
        return tuple(one.path for one in self.files)

    @property
    def kind(self) -> str:
        """Their format: a value of `FORMATS`; copies of spreadsheets are CSV."""
        return self.files[0].kind

    @property
    def is_text(self) -> bool:
        """Whether types are inferred from the cells, and not stored in the files."""
        return self.kind not in ("parquet", "arrow")


def resolve_files(paths: Any, asked: AskedDialect, shown: Mapping[Path, Path]) -> FileSet:
    """Return the files of a path, a glob, a folder or a list of these; `shown` gives names in messages.

    Raises the errors of `paths_of`, `partitions_of` and `opened_files`.
    """
    found = paths_of(paths)
    files = opened_files(found, format_of(found[0]), asked)
    named = tuple(replace(one, path=shown.get(one.path, one.path)) for one in files)
    return FileSet(named, partitions_of(found))


def resolve_types(
    files: FileSet,
    known: KnownColumns,
    columns: Collection[str] | None,
    whole: bool = False,
) -> dict[Path, Types]:
    """Return the type of each column in each file: the stated one, or the one that the file gives.

    Parameters
    ----------
    files : FileSet
    known : KnownColumns
    columns : collection of str or None
        The columns to keep; None for all.
    whole : bool, default False
        Whether types are inferred from all rows of text files, and not from the first ones.

    Raises
    ------
    ValueError
        A file cannot be read, or is empty.
    """
    types = {}
    for file in files.files:
        try:
            types[file.path] = types_of(file, whole, known) | known.types
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            if getattr(error, "errno", None):  # of the system, which names the file
                raise
            raise ValueError(f"cannot read {str(file.path)!r}: {reason_of(error, file)}") from None
    if columns is None:
        return types
    return {path: {n: dtype for n, dtype in of_file.items() if n in columns} for path, of_file in types.items()}


def joined_frame(files: FileSet, types: Types, of_file: Mapping[Path, Types]) -> pl.LazyFrame:
    """Return all files as one lazy frame with a column per partition key; warn of empty lines at the end of a file.

    Parameters
    ----------
    files : FileSet
    types : dict
        The type of each column in the result.
    of_file : mapping
        The type of each column in each file.
    """
    n_rows = _rows_above_empty_lines(files)
    stated = types if files.is_text else None
    has_one_schema = files.is_text or all(list(t.items()) == list(types.items()) for t in of_file.values())
    has_one_dialect = len({one.dialect for one in files.files}) == 1
    if has_one_schema and has_one_dialect and not (files.partitions or n_rows) and _has_one_header(files):
        return lazily(files.files, stated).select(exactly(*types))
    keys = {key: pl.Series(key, values) for key, values in files.partitions.items()}
    frames = []
    for position, file in enumerate(files.files):
        frame = lazily(file, stated)
        frame = frame.head(n_rows[file.path]) if file.path in n_rows else frame
        cells = [exactly(name).cast(without_marker(dtype)) for name, dtype in types.items() if name not in keys]
        values = [pl.lit(series[position], dtype=series.dtype).alias(key) for key, series in keys.items()]
        frames.append(frame.select(*cells).with_columns(*values))
    return pl.concat(frames)


def _has_one_header(files: FileSet) -> bool:
    """Return whether files name the same columns in the same order, those that are not read as well.

    polars takes no other files as one table, except those of JSON.
    """
    if files.kind == "ndjson" or len(files.files) == 1:
        return True
    return len({tuple(lazily(one, sampled=0).collect_schema()) for one in files.files}) == 1


def _rows_above_empty_lines(files: FileSet) -> dict[Path, int]:
    """Return the number of rows of each text file that ends in lines without any value, and warn of these lines."""
    n_rows = {}
    for file in files.files if files.kind in ("csv", "tsv") else ():
        empty, rows_above = empty_lines_at_the_end(file)
        if empty:
            n_rows[file.path] = rows_above
            lines = f"{empty} line{'s' if empty > 1 else ''}"
            warn(f"{file.path.name} ends in {lines} without any value, left out")
    return n_rows


@dataclass(frozen=True)
class WrittenDate:
    """How a text column of dates or times is written."""

    format: str
    marks: tuple[str, ...] = ()  # cells that are missing in this column
    is_unpadded: bool = False  # whether they are times of day, some of them with one digit of the hour, such as 1:20


def written_dates(
    frame: pl.LazyFrame, names: Sequence[str], whole: bool, unmarked: Collection[str] = ()
) -> tuple[dict[str, WrittenDate], dict[str, str]]:
    """Return how the columns of strings that are dates or times are written, and why others stay text.

    The first rows decide, or all rows if `whole`. All cells are in one format, or marks of missing ones, except in the
    columns `unmarked`.
    """
    if not names:
        return {}, {}
    cells = frame.select(exactly(*names))
    try:
        rows = (cells if whole else cells.head(SAMPLED_ROWS)).collect(engine="streaming")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return {}, {}  # the first pass over the rows names the damaged file
    dates, remarks = {}, {}
    for column in rows.iter_columns():
        marks = () if column.name in unmarked else marks_among_dates(column)
        found, reason = type_of_strings(column.filter(~column.is_in(marks)) if marks else column)
        if found is not None:
            is_unpadded = found.kind == "time" and bool(column.str.contains(r"^\d:").any())
            dates[column.name] = WrittenDate(found.format, marks, is_unpadded)
        elif reason:
            advice = "so they stay strings; write all as 2024-12-31, or leave cells empty"
            remarks[column.name] = f"column {column.name!r} {reason}, {advice}"
    return dates, remarks
