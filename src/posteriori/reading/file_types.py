"""The types of the columns of files: those that are stored, or those that the cells of text files show."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from posteriori.reading.dialects import TableFile
from posteriori.reading.file_frames import SAMPLED_ROWS, Types, lazily, lazy_text, lines_of
from posteriori.reading.known_columns import NOTHING_KNOWN, KnownColumns
from posteriori.reading.marks import MARK, NUMBERS_SHARE, is_mark, marks_among
from posteriori.reading.text_lines import require_text, where_first
from posteriori.reading.written_numbers import (
    LEADING_ZERO,
    SeenCells,
    WrittenNumber,
    WrittenText,
    are_country_codes,
    beside,
    look_at,
    look_at_plain,
    type_of_cells,
    without_marker,
)
from posteriori.reading.written_times import marks_among_dates, type_of_strings
from posteriori.support.lazy_polars import pl
from posteriori.tables.polars import exactly


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
    marks = known.marks.get(name, ())
    where = partial(where_first, [file], name)
    found = type_of_cells(seen, name, file.dialect.decimal, known.role(name), marks, where)
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
    lines = lines_of(file).select(pl.col("line").str.contains(odd).any())
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
            plain = WrittenNumber(file.dialect.decimal, is_plain=True, is_whole=dtype == pl.Int64())
            old = dtype if isinstance(dtype, WrittenNumber) else plain
            found[name] = replace(old, marks=tuple(sorted({*old.marks, *recognised})))
    return found


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


@dataclass(frozen=True)
class WrittenDate:
    """How a text column of dates or times is written."""

    format: str
    marks: tuple[str, ...] = ()  # cells that are missing in this column
    is_unpadded: bool = False  # whether they are times of day, some of them with one digit of the hour, such as 1:20


def written_dates(
    frame: pl.LazyFrame, files: Sequence[TableFile], names: Sequence[str], whole: bool, unmarked: Collection[str] = ()
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
    for named in rows.iter_columns():
        name, column = named.name, named.alias("cells")  # polars reads some names as patterns
        marks = () if name in unmarked else marks_among_dates(column)
        where = partial(where_first, files, name)
        found, reason = type_of_strings(column.filter(~column.is_in(marks)) if marks else column, where)
        if found is not None:
            is_unpadded = found.kind == "time" and bool(column.str.contains(r"^\d:").any())
            dates[name] = WrittenDate(found.format, marks, is_unpadded)
        elif reason:
            advice = "so they stay strings; write all as 2024-12-31, or leave cells empty"
            remarks[name] = f"column {name!r} {reason}, {advice}"
    return dates, remarks


def marks_among_known_dates(frame: pl.LazyFrame, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the usual marks of missing cells in columns of strings that a model reads as dates, if there are some."""
    found = {}
    for name in names:
        marks = frame.select(exactly(name).filter(exactly(name).str.contains(f"^(?:{MARK})$")).unique())
        words = [word for word in marks.collect(engine="streaming")[name] if is_mark(word)]
        if words:
            found[name] = tuple(sorted(words))
    return found
