"""Tables in files: read part by part or into memory, in any spelling, and written."""

from __future__ import annotations

import functools
import gzip
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from posteriori.cli.messages import UserError, as_user_errors, note
from posteriori.cli.records import gathered, parameters_of, with_parameters
from posteriori.user_warnings import warn

if TYPE_CHECKING:
    import polars as pl

    from posteriori.reading import Scan
    from posteriori.reading.dialects import AskedDialect
    from posteriori.reading.known_columns import KnownColumns
    from posteriori.tables import Column, Schema


STDIN = "-"  # the table that a command reads from its standard input
_TABS = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True)
class TextOptions:
    """How the tables of a command are read."""

    sep: Annotated[
        str | None, typer.Option("--sep", metavar="CHAR", help="Separator: , ; | or tab. Default: detected.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal mark. Default: detected.")
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", metavar="NAME", help="utf-8, latin-1, cp1252, utf-16, … Default: detected."),
    ] = None
    missing_values: Annotated[
        str | None,
        typer.Option("--missing-values", metavar="A,B", help="Further cells that are missing, such as -,?"),
    ] = None
    skip_rows: Annotated[
        int | None,
        typer.Option("--skip-rows", metavar="N", min=0, help="Skip N lines above the header.", show_default=False),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", metavar="NAME", help="Sheet of a spreadsheet, or its number. Default: 1."),
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Refuse tables with repairs or odd rows.")] = False

    def dialect(self) -> AskedDialect:
        """Return the options on text files."""
        from posteriori.reading.dialects import AskedDialect

        marks = tuple(mark for mark in (self.missing_values or "").split(",") if mark)
        separator = _TABS.get(self.sep or "", self.sep)
        rest = self.skip_rows or 0, self.sheet, self.strict
        return AskedDialect(separator, self.decimal, self.encoding, marks, *rest)


@dataclass(frozen=True)
class LabelTextOptions(TextOptions):
    """How tables with labels are read."""

    keep_spelling: Annotated[
        bool, typer.Option("--keep-spelling", help="Keep labels apart that differ only in case or blanks.")
    ] = False


class _TableReading:
    """The options of a command on its tables, its copy of stdin, and the notes that it has printed."""

    def __init__(self, options: TextOptions) -> None:
        self.asked = options.dialect()
        self.strict = options.strict
        self.keeps_spelling = isinstance(options, LabelTextOptions) and options.keep_spelling
        self.known: KnownColumns | None = None  # what the options state of columns (`KnownColumns`)
        self.labels: dict[str, str] = {}  # those that are read in another spelling
        self.stdin: Path | None = None
        self.kept: Any = None  # keeps the copy
        self.notes: set[str] = set()


_MOST_COLUMNS = 12  # in the error for a command without a target
_CURRENT: ContextVar[_TableReading | None] = ContextVar("reading", default=None)


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with options on how all its tables are read, such as --sep, --missing-values and --strict.

    One that makes classes of a target also has --keep-spelling.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    record = LabelTextOptions if "target_is_class" in parameters else TextOptions

    @functools.wraps(command)
    def run_command(*arguments: Any, **options: Any) -> None:
        from posteriori.reading.spellings import spellings_kept

        reading = _TableReading(gathered(record, options))
        with as_user_errors():
            reading.asked.check()
        target = options.get("target")
        reading.known = _stated(target, options.get("categorical"), options.get("columns"))
        token = _CURRENT.set(reading)
        try:
            if target == "":
                raise _without_target(options["table"])
            with spellings_kept():  # `merge_spellings` gives them one, or a hint names them
                command(*arguments, **options)
        finally:
            _CURRENT.reset(token)

    return with_parameters(run_command, [*parameters.values(), *parameters_of(record)])


def _stated(target: str | None, categorical: list[str] | None, kinds: list[str] | None) -> Any:
    """Return the roles that the options give to columns of text files; their names are checked later."""
    from posteriori.cli.named_columns import kind_of_density
    from posteriori.reading.known_columns import KnownColumns

    def names(values: Iterable[str]) -> set[str]:
        return {part.strip() for value in values for part in (value, *value.split(","))}

    of_densities = [(name, kind_of_density(kind)) for name, _, kind in (one.rpartition("=") for one in kinds or ())]
    return KnownColumns(
        labels=[target] if target else (),
        categories=names([*(categorical or ()), *(name for name, kind in of_densities if kind == "categorical")]),
        numbers=names(name for name, kind in of_densities if kind == "continuous"),
    )


def _without_target(table: Any) -> UserError:
    """Return the error for a command without its --target, which lists the columns to choose from."""
    from posteriori.support.formatting import listed

    tables = table if isinstance(table, list) else [str(table)]
    with as_user_errors():
        names = open_as_written(tables).names
    columns = listed([repr(name) for name in names], _MOST_COLUMNS)
    return UserError(f"name the column that holds the classes: --target NAME; {title_of(tables)!r} has {columns}")


def asked_dialect() -> AskedDialect:
    """Return the options of the running command on text files."""
    from posteriori.reading.dialects import AskedDialect

    current = _CURRENT.get()
    return AskedDialect() if current is None else current.asked


def stdin_copy() -> Path:
    """Return a temporary file with the standard input of the running command, which is read once."""
    from posteriori.reading.dialects import spooled

    current = _CURRENT.get()
    assert current is not None, "a command that reads stdin is made by with_text_options"
    if current.stdin is None:
        current.stdin, current.kept = spooled(sys.stdin.buffer)
    return current.stdin


def shown_names() -> dict[Path, Path]:
    """Return the names in messages of files that are temporary copies."""
    current = _CURRENT.get()
    return {} if current is None or current.stdin is None else {current.stdin: Path("stdin")}


def note_on_reading(title: str, scan: Scan) -> None:
    """Print how text files are read if it is not as comma-separated UTF-8 text with decimal points."""
    current = _CURRENT.get()
    sentences = []
    if scan.dialect:
        sentences.append(f"{title} is read with {scan.dialect} (--sep, --decimal and --encoding change that)")
    sentences += [f"{title} {doubt}" for doubt in scan.doubts]
    sentences += [f"{title}: {remark}" for remark in scan.remarks.values()]
    found = _repairs(scan, {} if current is None else current.labels)
    if found:
        repaired = f"{title} is read with repairs: {'; '.join(found)}"
        if current is not None and current.strict:
            raise UserError(f"{repaired}; correct the table, or remove --strict")
        sentences.append(repaired)
    for sentence in sentences:
        if current is None or sentence not in current.notes:
            note(sentence)
        if current is not None:
            current.notes.add(sentence)


def _repairs(scan: Scan, labels: Mapping[str, str]) -> list[str]:
    """Return the changes to the cells of a table and to its labels, in words."""
    from posteriori.reading.spellings import described
    from posteriori.support.formatting import plural
    from posteriori.tables import quote

    found = []
    with as_user_errors():
        marked = scan.marked_cells()
    if marked:
        marks = sorted({mark for of_column in marked.values() for mark in of_column})
        n_cells = sum(sum(of_column.values()) for of_column in marked.values())
        found.append(f"{plural(n_cells, 'cell')} {', '.join(map(repr, marks))} in {quote(marked)} as missing")
    found += scan.repairs
    return [*found, described(labels)] if labels else found


def merge_spellings(rows: Mapping[Any, float], classes: Iterable[Any] | None = None) -> dict[str, str]:
    """Return the labels to read in another spelling, which the line on repairs names.

    Parameters
    ----------
    rows : mapping
        The number of rows of each label.
    classes : iterable, optional
        The classes of a model, whose spelling is taken; default: the most frequent spelling is.
    """
    from posteriori.reading.spellings import spellings_of_classes, usual_spellings

    current = _CURRENT.get()
    if current is not None and current.keeps_spelling:
        return {}
    found = usual_spellings(rows) if classes is None else spellings_of_classes(rows, classes)
    if current is not None:
        current.labels = found
    return found


_SHIPPED = ("penguins.csv",)
_TEXT = ("csv", "tsv", "ndjson", "excel")

T = TypeVar("T")


def names_table(path: Path) -> bool:
    """Return whether a path has the suffix of a table format."""
    from posteriori.reading.scanning import format_of

    try:
        format_of(path)
    except ValueError:
        return False
    return True


def writes_text(path: Path | None) -> bool:
    """Return whether an output is CSV or TSV, whose cells are text as they are written."""
    from posteriori.reading.dialects import SEPARATORS
    from posteriori.reading.scanning import format_of

    return path is None or format_of(path) in SEPARATORS


def is_spreadsheet(path: Path) -> bool:
    """Return whether an output is a spreadsheet that can be written."""
    return path.suffix.lower() == ".xlsx"


def stem_of(tables: Sequence[str]) -> str:
    """Return the name of a table's file without its suffixes, or that of the common folder of several files."""
    from posteriori.reading.scanning import format_of

    if list(tables) == [STDIN]:
        return "stdin"
    if len(tables) == 1 and not os.path.isdir(tables[0]) and (os.path.exists(tables[0]) or not has_magic(tables[0])):
        path = Path(tables[0])
        with as_user_errors():
            format_of(path)
        return Path(path.stem).stem if path.suffix.lower() in (".gz", ".zst") else path.stem
    with as_user_errors():
        folders = [path if path.is_dir() else path.parent for path in map(Path, files_of(tables))]
    return Path(os.path.commonpath([folder.resolve() for folder in folders])).name or "table"


def title_of(tables: Sequence[str]) -> str:
    """Return the name of a table in messages: that of its file, or of the first one and the number of the others."""
    if list(tables) == [STDIN]:
        return "stdin"
    return Path(tables[0]).name if len(tables) == 1 else f"{tables[0]} and {len(tables) - 1} more"


def read_frame(
    path: Path, schema: Schema | None = None, target: Column | None = None, labels: str | None = None
) -> pl.DataFrame:
    """Read a table into memory.

    Parameters
    ----------
    path : Path
        A file, or the name of a table that the library ships.
    schema, target : Schema and Column, optional
        Columns of a model. Columns of text files that were strings in training are read as strings.
    labels : str, optional
        The column of labels, which are read in the spelling of `target`, or without one in their most frequent one.

    Raises
    ------
    UserError
        The file cannot be read, or has no rows, or is refused by --strict.
    """
    import polars as pl

    from posteriori.tables.polars import exactly

    with as_user_errors():
        text = _are_text([str(path)])

    def collect(scan: Scan) -> pl.DataFrame:
        frame = _collected(scan)
        if labels is None or frame.schema.get(labels) not in (pl.String, pl.Categorical, pl.Enum):
            return frame
        counts = frame[labels].cast(pl.String).drop_nulls().alias("label").value_counts(name="rows")
        classes = None if target is None else target.categories
        usual = merge_spellings(dict(zip(counts["label"], counts["rows"], strict=True)), classes)
        return frame.with_columns(exactly(labels).cast(pl.String).replace(usual)) if usual else frame

    _, frame = open_and_summarise([str(path)], collect, schema, target)
    nothing = [name for name in frame.columns if text and frame[name].null_count() == frame.height]
    return frame.with_columns(exactly(name).cast(pl.Null) for name in nothing)


def _collected(scan: Scan) -> pl.DataFrame:
    return next(scan.parts([slice(0, scan.n_rows)], range(len(scan.names)))).frame.rechunk()


def open_and_summarise(
    tables: Sequence[str], look: Callable[[Scan], T], schema: Schema | None = None, target: Column | None = None
) -> tuple[Scan, T]:
    """Open files and apply a function to them; return the opened files and its result.

    The types of the columns of text files are inferred from the first rows. If a later row contradicts them, they are
    inferred from all rows, and the function is applied again.

    Raises
    ------
    UserError
        The files cannot be read, or have no rows.
    """
    with as_user_errors():
        try:
            scan = open_table(tables, schema, target)
            found = look(scan)
        except ValueError:
            if not _are_text(tables):
                raise
            scan = open_table(tables, schema, target, whole=True)
            found = look(scan)
    note_on_reading(title_of(tables), scan)
    return scan, found


def _are_text(tables: Sequence[str]) -> bool:
    """Return whether the types of columns are inferred from the cells of the files."""
    from posteriori.reading.scanning import format_of, paths_of

    return any(format_of(path) in _TEXT for path in paths_of(files_of(tables)))


def open_table(
    tables: Sequence[str], schema: Schema | None = None, target: Column | None = None, whole: bool = False
) -> Scan:
    """Open files that are read part by part; with `whole`, infer the types of text files from all rows.

    Raises
    ------
    ValueError, OSError
        As `posteriori.scan`, or there are no rows.
    """
    import polars as pl

    from posteriori.reading.files import open_scan
    from posteriori.reading.known_columns import NOTHING_KNOWN, KnownColumns

    current = _CURRENT.get()
    known = NOTHING_KNOWN if schema is None else KnownColumns.of_model(schema, target)
    scanned = open_scan(
        files_of(tables),
        asked_dialect(),
        known=known if current is None or current.known is None else known.joined(current.known),
        whole=whole,
        shown=shown_names(),
        empty=pl.Float64(),
    )
    for path in scanned.paths:
        _warn_of_doubles(path.name, scanned.names)
    if not scanned.n_rows:
        raise ValueError(f"{title_of(tables)!r} has no rows")
    return scanned


def open_as_written(tables: Sequence[str]) -> Scan:
    """Open files with the cells of CSV and TSV files as strings, as they are written there: 007 stays 007."""
    from posteriori.reading.files import open_scan
    from posteriori.reading.known_columns import KnownColumns

    with as_user_errors():
        scanned = open_scan(files_of(tables), asked_dialect(), shown=shown_names())
        is_csv = scanned.files[0].kind in ("csv", "tsv")
        return scanned.knowing(KnownColumns(texts=scanned.names)) if is_csv else scanned


def files_of(tables: Sequence[str]) -> list[str]:
    """Return the paths of the files; for a name without a file, that of the table that the library ships."""
    from importlib.resources import files

    shipped = {name: str(files("posteriori").joinpath("datasets", name)) for name in _SHIPPED}
    return [
        str(stdin_copy()) if name == STDIN else shipped.get(name, name) if not os.path.exists(name) else name
        for name in tables
    ]


def _warn_of_doubles(name: str, columns: Iterable[str]) -> None:
    known = set(columns)
    for column in [match[1] for one in columns if (match := re.fullmatch(r"(.+)_duplicated_\d+", one))]:
        if column in known:
            warn(f"{name} has the column {column!r} twice; the second is called {column + '_duplicated_0'!r}")


def page_beside(model: Path, suffix: str) -> Path:
    """Return the path of a page about a model: its own, with another suffix; UserError if it names a folder."""
    if not model.name or model.is_dir():
        raise UserError(f"{str(model)!r} is a folder; name the file of a model")
    return model.with_suffix(suffix)


def csv_text_of(frame: pl.DataFrame, separator: str = ",", names: Sequence[str] | None = None) -> str:
    """Return a frame as CSV, with the names of its columns or others in the header."""
    from posteriori.tables.writing import csv_text

    with as_user_errors():
        return csv_text(frame, separator, names=names)


def write_out(text: str) -> None:
    """Write data to stdout; an OSError names it. UserError if what reads stdout would get other letters."""
    if not sys.stdout.isatty():
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError as error:
            raise UserError(
                f"stdout is {error.encoding} text, which has no {text[error.start]!r}; set PYTHONIOENCODING=utf-8, or "
                "write to a file with --output"
            ) from None
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from None


def writer_of(path: Path) -> Callable[..., None]:
    """Return the function that writes a frame in the format of a path's suffix.

    It takes the frame, a path, and optionally the names that stand in the header of a text file.

    Raises
    ------
    UserError
        The suffix is unknown, or the format cannot be written.
    """
    from posteriori.reading.dialects import SEPARATORS
    from posteriori.reading.scanning import format_of
    from posteriori.tables.spreadsheets import write_excel

    with as_user_errors():
        kind = format_of(path)
    if kind == "excel" and not is_spreadsheet(path):
        raise UserError(f"{str(path)!r} is a spreadsheet of a kind that is not written; write .xlsx or .csv")
    packed = path.suffix.lower()
    if packed == ".zst":
        raise UserError(
            f"{str(path)!r} asks for compression by zstd, which is not supported; write .csv, .csv.gz or .parquet"
        )

    def write(frame: pl.DataFrame, position: Path, names: Sequence[str] | None = None) -> None:
        if kind == "excel":
            with as_user_errors():
                write_excel(frame, position)
        elif kind == "parquet":
            frame.write_parquet(position)
        elif kind == "arrow":
            frame.write_ipc(position)
        else:
            text = csv_text_of(frame, SEPARATORS[kind], names) if kind in SEPARATORS else frame.write_ndjson()
            position.write_bytes(gzip.compress(text.encode()) if packed == ".gz" else text.encode())

    return write
