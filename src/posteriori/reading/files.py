"""Files as tables: polars reads them part by part, so that their rows need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from posteriori.reading.dialects import SEPARATORS, AskedDialect, TableFile
from posteriori.reading.file_frames import Types, lazily
from posteriori.reading.file_types import WrittenDate, common_types, marks_among_known_dates, written_dates
from posteriori.reading.known_columns import NOTHING_KNOWN, KnownColumns
from posteriori.reading.scanning import joined_frame, resolve_files, resolve_types
from posteriori.reading.target_cuts import TargetCuts
from posteriori.reading.text_lines import reason_of, short_row
from posteriori.reading.written_numbers import WrittenNumber, WrittenText, repairs_of, without_marker, without_marks
from posteriori.support.keywords import Wanted, explain_unknown_keywords
from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables.messages import ReadingWarning, quote
from posteriori.tables.polars import PolarsTable, StreamedTable, exactly, require_threads, too_many_categories
from posteriori.tables.progress import start_progress
from posteriori.tables.schema import MAX_CATEGORIES, Column
from posteriori.tables.times import TimeType, dtype_of_format, parsed
from posteriori.user_warnings import warn

_READ_AHEAD = 1 << 17  # rows that polars is asked for at a time
_HEAD_ROWS = 1 << 18  # rows that `head_sample` takes the categories from
_MANY_ROWS = 1 << 20  # a longer table is worth the attempt to avoid a pass for the categories alone


@dataclass(frozen=True, eq=False)
class Scan(StreamedTable):
    """Files that estimators learn from and predict without holding all rows in memory; made by `scan`.

    Attributes
    ----------
    paths : tuple of Path
    target : str or None
        The column that holds the labels.
    types : dict
        The polars data type of each column.
    categorical : frozenset of str
        The columns of numbers that hold categories.
    from_first_rows : bool
        Whether the categories are those of the first rows, in the hope that later rows have no others.
    files : tuple of TableFile
        The files with their dialects.
    written : mapping of str to WrittenNumber
        The columns of numbers that the files write with a unit, with separators of thousands, such as $1,000, or with
        marks of missing cells, such as -.
    dates : mapping of str to WrittenDate
        The columns of text files whose strings are dates: their formats, and marks of missing cells.
    remarks : mapping of str to str
        Why columns of text files stay text although nearly all of their cells are numbers or dates: a sentence each.

    Examples
    --------
    >>> import os, tempfile, posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> path = os.path.join(tempfile.mkdtemp(), "penguins.parquet")
    >>> load_penguins().write_parquet(path)
    >>> rows = po.scan(path, target="species")
    >>> rows.n_rows, rows.types["body_mass_g"]
    (344, Int64)
    """

    paths: tuple[Path, ...]
    types: Types
    frame: pl.LazyFrame
    target: str | None = None
    categorical: frozenset[str] = frozenset()
    _stamps: tuple[tuple[int, int], ...] = ()
    from_first_rows: bool = False
    files: tuple[TableFile, ...] = ()
    written: Mapping[str, WrittenNumber] = field(default_factory=dict)
    marks_of_model: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of columns of strings of a model
    marks_of_dates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # that a model reads from strings
    dates: Mapping[str, WrittenDate] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    # how these files are opened when more is known of their columns; None if this is no longer the table of the files
    _opened: Callable[[KnownColumns], Scan] | None = None

    @cached_property
    def n_rows(self) -> int:
        """The number of rows. Text files do not store it, so their rows are counted."""
        with self._explained():
            if self.files[0].kind in ("csv", "tsv"):
                self._require_full_rows()
            return int(self.frame.select(pl.len()).collect(engine="streaming").item())

    @property
    def size(self) -> int:
        """The size of the files in bytes."""
        return sum(file.readable.stat().st_size for file in self.files)

    def __repr__(self) -> str:
        files = f"{len(self.paths)} files, {self.paths[0]} …" if len(self.paths) > 1 else str(self.paths[0])
        listed = ", ".join(f"{name}: {dtype}" for name, dtype in list(self.types.items())[:12])
        more = f" and {len(self.types) - 12} more" if len(self.types) > 12 else ""
        target = "" if self.target is None else f"\n  target: {self.target}"
        read = f"\n  read with {self.dialect}" if self.dialect else ""
        return (
            f"Scan of {files}\n  {self.n_rows:,} rows × {len(self.types)} columns, {self.size / 1e6:,.1f} MB"
            f"\n  {listed}{more}{target}{read}"
        )

    @property
    def repairs(self) -> list[str]:
        """Changes to cells that are read as numbers or dates, in words, apart from marks of missing cells."""
        found = [f"{quote(sorted(names))} as numbers, {how}" for how, names in repairs_of(self.written).items()]
        dates = {name: written for name, written in self.dates.items() if name in self.types}
        two_digits = [name for name, written in dates.items() if "%y" in written.format]
        times = [name for name, written in dates.items() if written.is_unpadded]
        found += [f"two-digit years of {quote(two_digits)} as 1970 to 2069"] if two_digits else []
        return found + ([f"{quote(times)} as times of day"] if times else [])

    def warn_of_repairs(self, before: Scan | None = None) -> None:
        """Warn of what was changed in cells to read them, and of columns that stay text for a few of their cells.

        A warning that was given when the same files were read `before` is not repeated.
        """
        said, remarks = (set(), {}) if before is None else ({*before._changes}, before.remarks)
        found = [change for change in self._changes if change not in said]
        if found:
            warn(f"{self._title} is read with repairs: {'; '.join(found)}", ReadingWarning)
        for doubt in self.doubts if before is None else ():
            warn(f"{self._title} {doubt}", ReadingWarning)
        for name, remark in self.remarks.items():
            if remark != remarks.get(name):
                warn(f"{self._title}: {remark}", ReadingWarning)

    @property
    def _changes(self) -> list[str]:
        """Changes to cells as they are read, in words."""
        found, marked = self.repairs, self._recognised_marks
        if marked:
            marks = sorted({mark for marks in marked.values() for mark in marks})
            found.insert(0, f"{', '.join(map(repr, marks))} in {quote(marked)} as missing")
        return found

    @property
    def _title(self) -> str:
        return self.paths[0].name if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    def knowing(self, known: KnownColumns) -> Scan:
        """Return the rows of the same files, read with what is known of some columns; itself where none is text."""
        return self if self._opened is None else self._opened(known)

    def marks(self, name: str) -> tuple[str, ...]:
        """Return the cells of a column that are read as missing, besides those that are in any file."""
        stated = (mark for file in self.files for mark in file.dialect.missing)
        found = self._recognised_marks.get(name) or self.marks_of_model.get(name, ())
        return tuple(sorted({*stated, *found}))

    @property
    def _recognised_marks(self) -> dict[str, tuple[str, ...]]:
        """The marks of missing cells that were recognised among numbers or dates, by column."""
        written: Mapping[str, WrittenNumber | WrittenDate] = {**self.written, **self.dates}
        found = {name: one.marks for name, one in written.items() if one.marks} | dict(self.marks_of_dates)
        return {name: marks for name, marks in found.items() if name in self.types}

    def marked_cells(self) -> dict[str, dict[str, int]]:
        """Return how often each mark that was recognised in a column of numbers or dates occurs, in one pass."""
        columns = self._recognised_marks
        if not columns:
            return {}
        counts: dict[str, dict[str, int]] = {name: {} for name in columns}
        for file in self.files:
            cells = lazily(file, dict.fromkeys(columns, pl.String()))
            with self._explained():
                found = cells.select(
                    exactly(name).filter(exactly(name).is_in(list(marks))).value_counts(name="n").implode()
                    for name, marks in columns.items()
                ).collect(engine="streaming")
            for name in columns:
                for row in found[name][0].to_list():
                    counts[name][row[name]] = counts[name].get(row[name], 0) + row["n"]
        return {name: dict(sorted(of_column.items())) for name, of_column in counts.items() if of_column}

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`, with its marks."""
        return replace(super().column(j, categorical), marks=self.marks(self.names[j]))

    def head_sample(self) -> Scan | None:
        """Return the same rows with the categories of the first rows; None where that saves little.

        A later row with another category raises `UnseenCategoryError`, and the estimator starts again.
        """
        saves_a_pass = not self._distinct and any(self.needs_cells(j, False) for j in range(len(self.names)))
        return replace(self, _opened=None, from_first_rows=True) if saves_a_pass and self.n_rows >= _MANY_ROWS else None

    def narrowed(self, names: Sequence[str], labels: str | None = None) -> Scan:
        """Return some of the columns; if `labels` names one of them, only the rows in which it is present."""
        frame = self.frame.select(exactly(*names))
        if labels is not None:
            present = exactly(labels).is_not_null()
            is_float = self.types[labels].is_float()
            frame = frame.filter(present & exactly(labels).is_not_nan() if is_float else present)
        narrow = replace(self, _opened=None, types={name: self.types[name] for name in names}, frame=frame)
        if labels is None:
            vars(narrow)["n_rows"] = self.n_rows  # so that text files are not counted again
            vars(narrow)["_distinct"] = self._distinct
        return narrow

    def at(self, places: Array) -> Scan:
        """Return the rows at some positions, in the order of the table."""
        number = "row"
        while number in self.types:
            number += "_"
        wanted = pl.Series(number, places, pl.UInt32)
        numbered = self.frame.with_row_index(number).filter(pl.col(number).is_in(wanted.implode()))
        found = replace(self, _opened=None, frame=numbered.drop(number))
        vars(found)["n_rows"] = len(places)
        return found

    def with_unknown(self, types: Types) -> Scan:
        """Return the same rows with further columns, by name and data type, in which every cell is missing."""
        if not types:
            return self
        unknown = (pl.lit(None, dtype).alias(name) for name, dtype in types.items())
        wider = replace(self, _opened=None, types={**self.types, **types}, frame=self.frame.with_columns(*unknown))
        vars(wider)["n_rows"] = self.n_rows
        return wider

    def with_target_cut(self, target: str, cuts: TargetCuts) -> Scan:
        """Return the same rows, with the numbers of the target replaced by the names of their classes."""
        frame = self.frame.with_columns(cuts.expression(target))
        cut = replace(self, _opened=None, types={**self.types, target: pl.Enum(cuts.names)}, frame=frame)
        vars(cut)["n_rows"] = self.n_rows
        return cut

    def with_labels_as(self, target: str, spellings: Mapping[str, str]) -> Scan:
        """Return the same rows, with some labels replaced by others."""
        frame = self.frame.with_columns(exactly(target).cast(pl.String).replace(dict(spellings)))
        found = replace(self, _opened=None, types={**self.types, target: pl.String()}, frame=frame)
        vars(found)["n_rows"] = self.n_rows
        return found

    def frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield some columns of all rows, in their order."""
        self._require_unchanged()
        with self._explained():
            batches = self.frame.select(exactly(*names)).collect_batches(
                chunk_size=_READ_AHEAD, maintain_order=True, lazy=True, engine="streaming"
            )
            yield from batches
        self._require_unchanged()

    def find_distinct(self, names: Sequence[str]) -> dict[str, PolarsTable]:
        """Return the distinct cells of some columns from one pass, per column as a table in memory of that column."""
        types = {name: self.types[name] for name in names}
        if self.from_first_rows:
            with self._explained():
                return distinct_of(
                    [self.frame.select(exactly(*names)).head(_HEAD_ROWS).collect()], types, lambda _: None
                )
        return distinct_of(self.frames(names), types, start_progress("categories", self.n_rows))

    @property
    def doubtful_numbers(self) -> dict[str, str]:
        """A number whose decimal mark may separate thousands, such as 2.301, by the decimal mark of its file."""
        return {one.dialect.decimal: one.dialect.doubtful for one in self.files if one.dialect.doubtful}

    @property
    def doubts(self) -> list[str]:
        """Sentences on numbers whose decimal mark may separate thousands, without the name of the table."""
        marks = {",": ("comma", "."), ".": ("point", ",")}
        doubtful = [(cell, *marks[decimal]) for decimal, cell in self.doubtful_numbers.items()]
        return [
            f"has numbers such as {cell}, read with a decimal {mark}, and each has three digits behind it; if it "
            f"separates thousands, add --decimal {other} (in Python, decimal={other!r})"
            for cell, mark, other in doubtful
        ]

    def _require_full_rows(self) -> None:
        """Raise ValueError if a row of a text file has fewer cells than the header, which polars accepts."""
        for file in self.files:
            names = lazily(file).collect_schema().names()
            if len(names) == 1:
                continue
            last: Types = {names[-1]: pl.String()}
            if not lazily(file, last).select(exactly(names[-1]).null_count()).collect(engine="streaming").item():
                continue
            line = short_row(file, len(names))
            if line is not None:
                where = f"line {file.line(line)} of {str(file.path)!r}"
                raise ValueError(f"{where} has fewer cells than the {len(names)} of its header")

    def _require_unchanged(self) -> None:
        """Raise an error if a file has changed since it was scanned: polars would read it by its former schema."""
        for file, stamp in zip(self.files, self._stamps, strict=True):
            path = str(file.path)
            if not file.readable.exists():
                raise FileNotFoundError(f"{path!r} is gone since it was scanned; scan the files again")
            if _stamp(file.readable) != stamp:
                raise ValueError(f"{path!r} has changed since it was scanned; scan the files again")

    def changed(self) -> ValueError:
        """Return the error for rows that have changed since they were scanned."""
        return ValueError(
            f"the rows of {self._listed} are no longer the {self.n_rows:,} that were counted; scan the files again"
        )

    @property
    def _listed(self) -> str:
        first = repr(str(self.paths[0]))
        return first if len(self.paths) == 1 else f"the {len(self.paths)} files from {first} on"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Replace an error of polars by one sentence that names the file."""
        require_threads("reading files")
        try:
            yield
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise self._explanation(error) from None

    def _explanation(self, error: BaseException) -> Exception:
        self._require_unchanged()
        culprit, damaged = self._listed, self.files[0]
        for file in self.files:
            try:
                lazily(file, self._file_types(file)).select(pl.all().count()).collect(engine="streaming")
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
                culprit, damaged = repr(str(file.path)), file
                break
        return ValueError(f"cannot read {culprit}: {reason_of(error, damaged)}")

    def _file_types(self, file: TableFile) -> Types | None:
        if file.kind in ("parquet", "arrow"):
            return None
        dates = dict.fromkeys(self.dates, pl.String())
        return self.types | dict(self.written) | dates

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations of column j; None if it holds others."""
        found = self.empty_column(j).time_type(0)
        written = self.dates.get(self.names[j])
        return found if found is None or written is None else replace(found, format=written.format)

    @property
    def dialect(self) -> str:
        """Differences from comma-separated UTF-8 text with decimal points, in words; empty if there are none."""
        described = (one.dialect.described(SEPARATORS.get(one.kind, ",")) for one in self.files)
        return "; ".join(dict.fromkeys(text for text in described if text))


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def distinct_of(
    frames: Iterable[pl.DataFrame], types: Types, progress: Callable[[int], None]
) -> dict[str, PolarsTable]:
    """Return the distinct cells of each column of a table that comes in parts; report the rows of each part as done."""
    distinct = {name: pl.Series(name, [], dtype) for name, dtype in types.items()}
    with ThreadPoolExecutor(pl.thread_pool_size()) as threads:
        for frame in frames:
            progress(frame.height)
            for new in threads.map(_distinct, frame.iter_columns()):
                name, seen = new.name, distinct[new.name].alias("cells")
                new = new.alias("cells")
                if len(new) > len(seen) or not new.is_in(seen.implode()).all():
                    seen = pl.concat([seen, new]).unique()
                    distinct[name] = seen.alias(name)
                if len(seen) > MAX_CATEGORIES:
                    raise too_many_categories(name, MAX_CATEGORIES)
    return {name: PolarsTable(cells.to_frame()) for name, cells in distinct.items()}


def _distinct(series: pl.Series) -> pl.Series:
    return series.alias("cells").drop_nulls().unique().alias(series.name)


OF_FILES: Wanted = {
    "categorical_features": (("categorical", "use categorical=…"),),
    "cat_features": (("categorical", "use categorical=…"),),
    "usecols": (("columns", "use columns=…"),),
    "ignore": (("columns", "use columns=…, the columns to read"),),
    "keep": (("target", "use columns=po.Columns(keep=…) of the model"),),
    "sep": (("separator", "use separator=…"),),
    "delimiter": (("separator", "use separator=…"),),
    "na_values": (("missing_values", "use missing_values=…"),),
    "null_values": (("missing_values", "use missing_values=…"),),
    "sheet_name": (("sheet", "use sheet=…"),),
    "dtype": (("dtypes", "use dtypes=…"),),
}


@partial(explain_unknown_keywords, groups={}, wanted=OF_FILES)
def scan(
    paths: Any,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    dtypes: Mapping[str, Any] | None = None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing_values: Sequence[str] = (),
    skip_rows: int = 0,
    sheet: str | int | None = None,
) -> Scan:
    """Open files to learn from or to predict, part by part: memory does not grow with the number of rows.

    An estimator makes two passes: one for the categories of strings, unless all are declared or stored in the files,
    and one for the statistics. The model is the one that `fit` learns from the same rows in memory.

    Parameters
    ----------
    paths : path, or list of paths
        Files, globs (``"data/*.parquet"``, ``"data/**/*.csv"``) or folders: Parquet, Arrow IPC, CSV, TSV or newline-
        delimited JSON, text also compressed (``.gz``, ``.zst``), or a sheet of ``.xlsx``, ``.xls`` or ``.ods``
        (with fastexcel). Folders ``key=value`` in a path become columns. In CSV
        and TSV an empty cell, NA, N/A, NaN, nan and null are missing; lines without any value at the end are left out.
        Strings of text files that are all dates or times (``2024-12-31``, ``2024-12-31T08:30``, ``31.12.2024``,
        ``12/31/2024``, ``12/31/24``, ``08:30``) are read as such; a warning names columns of which day and month are
        ambiguous.
    target : str, optional
        The column of labels: ``fit(scan)`` then needs no y.
    columns : list of str, optional
        The features to read, in addition to the target; default all.
    categorical : list of str, optional
        Columns of numbers that hold categories.
    categories : mapping of str to list of str, optional
        The categories of columns of strings. Another category is an error. These columns need no pass of their own.
    dtypes : mapping of str to polars data type, optional
        The types of columns of text files, where the first 10,000 rows of a file would give another one. Dates in a
        column that is named as a string stay strings.
    separator : str, optional
        The character between the cells of CSV and TSV files. Default: detected in each file, among ``, ; | tab``.
    decimal : {".", ","}, optional
        The decimal mark of CSV and TSV files, and of texts of spreadsheets. Default: detected.
    encoding : str, optional
        The encoding of CSV and TSV files, such as ``"latin-1"``. Default: UTF-16 or UTF-8 if the file says so by its
        first bytes, UTF-8 if its first 4 MB are, else Windows-1252. Text that is not UTF-8 is read from a temporary
        copy in UTF-8, and so is a spreadsheet.
    missing_values : list of str, optional
        Further cells of CSV, TSV and spreadsheets that are missing, in all columns, such as ``["-", "?"]``.
    skip_rows : int, default 0
        The number of lines above the header of CSV, TSV and spreadsheets. CSV and TSV are then read from a copy.
    sheet : str or int, optional
        The sheet of a spreadsheet, by its name or its number from 1. Default: the first.

    Returns
    -------
    Scan
        Printing it shows files, rows, columns, size, and the detected separator, decimal mark and encoding.

    Notes
    -----
    A text column of which the first 10,000 rows are all written numbers, such as $1,000, 1.234,50 €, 12 % or 3 kg, is
    read as numbers, without their unit: 1000, 1234.5, 12 and 3; (1,200) and 1,200- are -1200. So is one of which at
    least 90 % are numbers and the others are at most 10 usual marks of a missing cell, such as -, ? or k.A.: these
    are missing, and so they are among dates, of which half of the cells suffice. ``scan.marks("price")`` names them.
    ``dtypes={"price": polars.String}`` keeps the strings. A warning names what was changed.

    Codes stay text: numbers with leading zeros (00123), with an exponent where nothing has a fraction (1E2), with a
    plus sign on all of them (+49), with a minus behind digits that also occur without it (the grades 2 and 2-), with
    12 % beside 0.12, or with more digits than 64 bits hold. Labels, and columns that are stated as categorical, keep
    the spelling of their cells. ``dtypes={"size": polars.Float64}`` reads codes as numbers.

    Raises
    ------
    FileNotFoundError
        A path, glob or folder matches no file.
    ValueError
        A column is absent from a file or has another type there, or a file is empty or not a table. The message names
        the column and the file.
    RuntimeError
        The process was forked after polars had started its threads.

    Warns
    -----
    ReadingWarning
        Cells were changed to read them, or a column stays text because of a few of its cells.
    UserWarning
        There may be lines above the header of CSV, TSV or a spreadsheet, a second header, or a last row of totals.

    Examples
    --------
    >>> import os, tempfile, polars as pl, posteriori as po
    >>> folder = tempfile.mkdtemp()
    >>> for month in (1, 2):
    ...     rows = pl.DataFrame({"height": [1.0, 2.0, 8.0, 9.0], "y": ["low", "low", "high", "high"]})
    ...     rows.write_parquet(os.path.join(folder, f"{month}.parquet"))
    >>> rows = po.scan(folder, target="y")
    >>> rows.n_rows
    8
    >>> po.NaiveBayes().fit(rows).predict(rows).tolist()[:4]
    ['low', 'low', 'high', 'high']
    """
    if hasattr(paths, "read"):
        raise TypeError(
            f"paths is a {type(paths).__name__}; give the path of a file, or a table that polars reads from it"
        )
    if isinstance(missing_values, str):
        raise ValueError(f"missing_values is {missing_values!r}; give a list of strings")
    asked = AskedDialect(separator, decimal, encoding, tuple(missing_values), skip_rows, sheet)
    declared = categories or {}
    known = KnownColumns(
        types=dict(dtypes or {}),
        categories=categorical or (),
        texts=declared.keys(),
        with_na={name for name, cells in declared.items() if "NA" in cells},
    )
    found = open_scan(paths, asked, target, columns, categorical, categories, known)
    found.warn_of_repairs()
    return found


def open_files(paths: Any) -> Scan:
    """Open files as `scan` does, with no option and without warnings of repairs."""
    return open_scan(paths, AskedDialect())


def open_scan(
    paths: Any,
    asked: AskedDialect,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    known: KnownColumns = NOTHING_KNOWN,
    *,
    whole: bool = False,
    shown: Mapping[Path, Path] | None = None,
    empty: Any = None,
) -> Scan:
    """Open files as `scan` does, without warnings of repairs.

    Parameters
    ----------
    paths, target, columns, categorical, categories
        As in `scan`.
    asked : AskedDialect
    known : KnownColumns
    whole : bool, default False
        Whether all rows decide on the types of text columns, and on dates, and not the first ones only.
    shown : mapping, optional
        The names of files in messages, where they are not their paths.
    empty : polars data type, optional
        That of columns of text files without any cell. Default: strings, as polars reads them.
    """
    require_threads("reading files")
    files = resolve_files(paths, asked, shown or {})
    stamps = tuple(_stamp(one.readable) for one in files.files)
    if target is not None:
        known = replace(known, labels={*known.labels, target})
    kept = None if columns is None else _with_target(columns, target)
    of_file = resolve_types(files, known, kept, whole)
    as_stored = common_types(of_file, files.kind, empty)
    if files.is_text:
        numbers = [name for name, dtype in as_stored.items() if name in known.numbers and dtype == pl.Int64]
        as_stored |= dict.fromkeys(numbers, pl.Float64())
    frame = joined_frame(files, as_stored, of_file)
    types = {name: without_marker(dtype) for name, dtype in as_stored.items()}
    keys = {key: pl.Series(values).dtype for key, values in files.partitions.items()}
    types |= {key: dtype for key, dtype in keys.items() if kept is None or key in kept}
    _require_columns(types, [*(columns or ()), *(categorical or ()), *(categories or ()), *_with_target((), target)])
    if kept is not None:
        types = {name: types[name] for name in kept}
    types, frame = _apply_categories(types, frame, categories or {})
    strings_of_model = {name: found for name, found in known.marks.items() if found and types.get(name) == pl.String}
    strings_of_dates = [name for name in types if name in known.dates and types[name] == pl.String]
    marks_of_dates = marks_among_known_dates(frame, strings_of_dates) if files.is_text else {}
    strings_of_model |= marks_of_dates
    frame = frame.with_columns(
        without_marks(exactly(name), found).alias(name) for name, found in strings_of_model.items()
    )
    strings = [name for name, dtype in types.items() if dtype == pl.String and (files.is_text or name in keys)]
    excluded = {*known.types, *known.texts, *known.dates, *known.labels, *known.categories, *(categories or ())}
    open_strings = [name for name in strings if name not in excluded]
    dates, remarks = written_dates(frame, files.files, open_strings, whole, keys)
    types, frame = _apply_dates(types, frame, dates)
    texts = {name: dtype.remark for name in types if isinstance(dtype := as_stored.get(name), WrittenText)}
    remarks |= {name: remark for name, remark in texts.items() if remark and name not in dates}
    again = partial(
        _open_again,
        paths,
        asked,
        target,
        columns,
        categorical,
        categories,
        known,
        whole=whole,
        shown=shown,
        empty=empty,
    )
    return Scan(
        files.paths,
        types,
        frame,
        target,
        frozenset(categorical or ()),
        _stamps=stamps,
        files=files.files,
        written={name: dtype for name in types if isinstance(dtype := as_stored.get(name), WrittenNumber)},
        marks_of_model={name: tuple(found) for name, found in strings_of_model.items()},
        marks_of_dates=marks_of_dates,
        dates=dates,
        remarks=remarks,
        _opened=again if files.is_text else None,
    )


def _open_again(
    paths: Any,
    asked: AskedDialect,
    target: str | None,
    columns: Sequence[str] | None,
    categorical: Sequence[str] | None,
    categories: Mapping[str, Sequence[str]] | None,
    before: KnownColumns,
    known: KnownColumns,
    **options: Any,
) -> Scan:
    """Open files again, with more that is known of their columns; what was stated holds."""
    return open_scan(paths, asked, target, columns, categorical, categories, before.joined(known), **options)


def _apply_dates(types: Types, frame: pl.LazyFrame, dates: Mapping[str, WrittenDate]) -> tuple[Types, pl.LazyFrame]:
    """Return the types and rows with strings as dates, so that a later cell that is none is an error."""
    for name, written in dates.items():
        cells = without_marks(exactly(name), written.marks)
        frame = frame.with_columns(parsed(cells, written.format, strict=True).alias(name))
        types = {**types, name: dtype_of_format(written.format)}
    return types, frame


def _with_target(columns: Sequence[str], target: str | None) -> list[str]:
    """Return the columns to read, the target last unless it is among them."""
    return [*columns, *([target] if target is not None and target not in columns else [])]


def _require_columns(types: Types, names: Sequence[str]) -> None:
    absent = [name for name in dict.fromkeys(names) if name not in types]
    if absent:
        raise ValueError(f"the files lack {quote(absent)}; they have {quote(types, most=20)}")


def _apply_categories(
    types: Types, frame: pl.LazyFrame, categories: Mapping[str, Sequence[str]]
) -> tuple[Types, pl.LazyFrame]:
    """Return the types and rows with the declared categories as polars Enums, so that another category is an error."""
    for name, cells in categories.items():
        if types[name] not in (pl.String, pl.Categorical):
            raise ValueError(f"categories declares {name!r}, which holds no strings but {types[name]}; leave it out")
        types = {**types, name: pl.Enum(cells)}
        frame = frame.with_columns(exactly(name).cast(types[name]))
    return types, frame
