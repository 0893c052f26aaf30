"""The spelling of text files: separators, quotes, encodings and numbers."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import shutil
import weakref
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, cast

from posteriori.reading.marks import is_mark
from posteriori.reading.odd_rows import lines_above_header, remark_on_header, remarks_on_rows
from posteriori.reading.tidying import Untidy, copy_tidied, untidiness_of
from posteriori.reading.workbooks import CellsWithoutValue, cells_without_value, copy_without_errors
from posteriori.reading.written_numbers import CURRENCY, UNIT, tidied
from posteriori.support.formatting import plural
from posteriori.support.lazy_polars import pl
from posteriori.support.leftovers import remove_leftover, temporary_folder
from posteriori.user_warnings import warn

SEPARATORS = {"csv": ",", "tsv": "\t"}
_CANDIDATES = ",|;\t"  # the first is the likeliest within cells
_HEAD = 1 << 22  # bytes that are looked at
_MOST_COLUMNS = 100_000  # each takes some 20 kB of memory, however short its cells are
_ROWS = 200  # rows that separator and decimal mark are judged by
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)  # what reading a damaged file packed by gzip raises
# What is beside the digits of a number: units, blanks, parentheses, and a minus behind it.
_BESIDE = re.compile(rf"(?<=\d) *(?:{UNIT})$|{CURRENCY}|[%\s()]|(?<=\d)-$")
_ENDS = re.compile("\r+\n|\r")
_OTHER_ENDS = re.compile("\x85|\u2028|\u2029")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f]")  # characters that no table holds: the file is not text
_WITH_POINT, _WITH_COMMA = re.compile(r"[+-]?\d*\.\d+"), re.compile(r"[+-]?\d*,\d+")
_WITH_MARK = {".": _WITH_POINT, ",": _WITH_COMMA}
_OTHER_MARK = {".": ",", ",": "."}
_MILLIONS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3}){2,}")
_BELOW_1000 = re.compile(r"[+-]?(0|[1-9]\d{0,2})")
_IN_THOUSANDS = {
    ".": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"),
}


@dataclass(frozen=True)
class TextDialect:
    """The spelling of a text file."""

    separator: str = ","  # the character between cells
    decimal: str = "."
    encoding: str = "utf-8"  # a name that Python knows
    missing: tuple[str, ...] = ()  # cells that are missing, besides the usual ones
    # a number whose decimal mark may separate thousands, such as 2.301
    doubtful: str = field(default="", compare=False)
    # the pattern of line ends that polars does not read
    line_ends: re.Pattern[str] | None = field(default=None, compare=False)
    untidy: Untidy | None = field(default=None, compare=False)  # what polars does not read, where there is something

    @property
    def is_readable(self) -> bool:
        """Whether polars reads such a file as it is."""
        return self.encoding in ("utf-8", "ascii") and self.line_ends is None

    def described(self, default: str) -> str:
        """Return the differences from UTF-8 text with decimal points and a default separator; empty if there are none.

        Cells that are stated as missing are left out.
        """
        parts = []
        if self.separator != default:
            parts.append(f"separator {'tab' if self.separator == chr(9) else repr(self.separator)}")
        if self.decimal != ".":
            parts.append("decimal comma")
        if self.encoding != "utf-8":
            parts.append(f"encoding {self.encoding}")
        return ", ".join(parts)


UTF8_WITH_COMMAS = TextDialect()


@dataclass(frozen=True)
class AskedDialect:
    """The spelling of text files and spreadsheets as options state it; None where it is to be detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()  # cells that are missing, besides the usual ones
    skip_rows: int = 0  # lines above the header
    sheet: str | int | None = None  # the name of a sheet, or its number from 1
    is_strict: bool = False  # whether rows that look like none of the table are refused

    def check(self) -> None:
        """Raise ValueError if an option has a value that no file can have.

        Raises ValueError if the separator is not one ASCII character, the decimal mark is not a point or a
        comma, Python does not know the encoding, or the number of lines to skip is negative.
        """
        if isinstance(self.skip_rows, bool) or not isinstance(self.skip_rows, int) or self.skip_rows < 0:
            raise ValueError(f"skip_rows is {self.skip_rows!r}; give the number of lines above the header, from 0")
        one = self.separator
        if one is not None and (len(one) != 1 or not one.isascii() or one in '"\r\n' or one.isalnum()):
            raise ValueError(f"the separator is {one!r}; give one character, such as ';', ',', '|' or a tab")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"the decimal mark is {self.decimal!r}; give '.' or ','")
        if self.encoding is not None:
            try:
                known = codecs.lookup(self.encoding)
            except (LookupError, ValueError):  # the latter for "\0"
                known = None
            if known is None or not known._is_text_encoding:
                raise ValueError(f"the encoding {self.encoding!r} is unknown; give utf-8, latin-1, cp1252 or utf-16")

    @property
    def states_something(self) -> bool:
        """Whether an option on separators, decimal marks or encodings is given."""
        return any(one is not None for one in (self.separator, self.decimal, self.encoding))


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; of a file that is packed by zstd its first lines, read as UTF-8."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return _lines_of_zstd(path)
    opened: Any = gzip.open if suffix == ".gz" else open
    try:
        with cast(IO[bytes], opened(path, "rb")) as file:
            return file.read(_HEAD)
    except _DAMAGED:  # a later read says that the file is damaged
        return b""


def _lines_of_zstd(path: Path) -> bytes:
    import polars as pl

    try:
        lines = pl.scan_csv(
            path, has_header=False, separator="\x01", quote_char=None, schema={"line": pl.String}, glob=False
        )
        return "\n".join(lines.head(_ROWS).collect()["line"].fill_null("").to_list()).encode()
    except (pl.exceptions.PolarsError, OSError):
        return b""


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of the first bytes of a text file; None if they are not text.

    A mark at the beginning names UTF-8 or UTF-16. Bytes that are UTF-8 are read as such, and others as Windows-1252, of
    which Latin-1 is a part except for control characters.
    """
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):
            if not _CONTROL.search(head.decode("cp1252")):
                return "cp1252"
        return None
    return "utf-8"


def rows_of(head: bytes, encoding: str, separator: str, skip: int = 0) -> list[list[str]]:
    """Return the first rows below `skip` lines as lists of cells, without the last one if the bytes may end in it."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).removeprefix("\ufeff")
    lines = lines_of(usual_line_ends(text))[skip:]
    if len(head) >= _HEAD:
        lines = lines[:-1]
    rows: list[list[str]] = []
    with suppress(csv.Error):
        for row in csv.reader(lines, delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) > _ROWS:
                break
    return rows


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends: those of Unix, Windows or old Macs. `splitlines` knows others too."""
    return list(io.StringIO(text, newline=""))


def usual_line_ends(text: str) -> str:
    """Return a text with line ends that polars reads, also where rows end as on old Macs or mainframes."""
    ends = _odd_line_ends(text)
    return text if ends is None else _with_usual_ends(text, ends)[0]


def _odd_line_ends(text: str) -> re.Pattern[str] | None:
    """Return the pattern of line ends that polars does not read; None if there are none outside of quotes."""
    if "\n" not in text and "\r" not in text:
        return _OTHER_ENDS if _OTHER_ENDS.search(text) else None
    if text.count("\r") == text.count("\r\n") and "\r\r" not in text:
        return None
    return _ENDS if _with_usual_ends(text, _ENDS)[0] != text.replace("\r\n", "\n") else None


def _with_usual_ends(text: str, ends: re.Pattern[str], is_quoted: bool = False) -> tuple[str, bool]:
    """Return a part of a text with usual line ends outside of quotes, and whether its end is in quotes."""
    parts = text.split('"')
    usual = [part if (k % 2 == 1) != is_quoted else ends.sub("\n", part) for k, part in enumerate(parts)]
    return '"'.join(usual), is_quoted != (len(parts) % 2 == 0)


def _copy_with_usual_ends(text: IO[str], out: IO[str], ends: re.Pattern[str]) -> None:
    held, is_quoted = "", False
    while part := text.read(1 << 20):
        part = held + part
        kept = part.rstrip("\r")  # the rest may belong to a line end that goes on in the next part
        held = part[len(kept) :]
        kept, is_quoted = _with_usual_ends(kept, ends, is_quoted)
        out.write(kept)
    out.write(_with_usual_ends(held, ends, is_quoted)[0])


def separator_of(head: bytes, encoding: str, usual: str, skip: int = 0) -> str:
    """Return the separator of a text file: that which gives most columns in rows of one length."""
    widths, n_numbers = {}, {}
    for separator in dict.fromkeys([usual, *_CANDIDATES]):
        rows = rows_of(head, encoding, separator, skip)
        # A separator may end each row below a header that has none at its end.
        ends = {len(rows[0]), len(rows[0]) + 1} if rows else set()
        are_ended = {len(row) for row in rows} == ends and all(len(row) in ends and not row[-1] for row in rows[1:])
        of_rows = {len(row) for row in rows[are_ended:]}
        if len(of_rows) == 1 and of_rows != {1}:
            widths[separator] = of_rows.pop()
            n_numbers[separator] = sum(_is_plain(cell) for row in rows[1:] for cell in row)
    # Of two, one is within the names and cells of columns, such as a decimal comma: it gives fewer columns or numbers.
    return max(widths, key=lambda mark: (widths[mark], n_numbers[mark], _CANDIDATES.find(mark)), default=usual)


def _is_plain(cell: str) -> bool:
    cell = _without_unit(cell)
    return cell.isdecimal() or any(mark.fullmatch(cell) for mark in _WITH_MARK.values())


def decimal_of(rows: Sequence[Sequence[str]], separator: str) -> str | None:
    """Return the decimal mark that the numbers of some rows show; None if they show none.

    Numbers such as 1,234 have either a decimal comma or a comma between thousands. They have a decimal comma only in a
    file with the separator ";".
    """
    cells = [_without_unit(cell) for row in rows[1:] for cell in row]
    points = [cell for cell in cells if _WITH_POINT.fullmatch(cell) and not _IN_THOUSANDS[","].fullmatch(cell)]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    if points:
        return "."
    grouped = [cell for cell in cells if _IN_THOUSANDS[","].fullmatch(cell) and "," in cell]  # 1.234,50
    grouped += [cell for cell in cells if _MILLIONS.fullmatch(cell) and separator != ","]  # 1.234.500
    in_doubt = all(_IN_THOUSANDS["."].fullmatch(cell) for cell in commas)
    if grouped or (commas and (separator == ";" or not in_doubt)):
        return ","
    return None


def _without_unit(cell: str) -> str:
    return cell if cell.replace(".", "", 1).isdigit() else _BESIDE.sub("", tidied(cell))


def doubtful_number(rows: Sequence[Sequence[str]], decimal: str, separator: str = ",") -> str:
    """Return a number of some rows whose decimal mark may separate thousands, such as 2.301; empty if none may.

    It may if each number that has the mark has three digits behind it, and each number of the same column that has none
    is below 1000, as numbers with separators of thousands are written. In a file with the separator ";", of countries
    with a decimal comma, there may be no number without the mark.
    """
    in_thousands = _IN_THOUSANDS[_OTHER_MARK[decimal]]
    found: dict[str, None] = {}
    for column in zip_longest(*rows[1:], fillvalue=""):
        cells = {_without_unit(cell) for cell in column if not is_mark(cell)}
        marked = sorted(cell for cell in cells if decimal in cell)
        others = [cell for cell in cells if decimal not in cell]
        if any(_WITH_MARK[decimal].fullmatch(cell) and not in_thousands.fullmatch(cell) for cell in marked):
            return ""
        is_small = all(_BELOW_1000.fullmatch(cell) for cell in others)
        if len(marked) > 1 and (others or separator == ";") and is_small and all(map(in_thousands.fullmatch, marked)):
            found[marked[0]] = None
    return next(iter(found), "")


def detect(path: Path, kind: str, asked: AskedDialect) -> tuple[TextDialect, bool]:
    """Return the dialect of a file, and whether its decimal mark is known: stated, or seen in its numbers.

    Raises ValueError if the file is not text, or not in the encoding that was asked for.
    """
    head = head_of(path)
    encoding = asked.encoding or encoding_of(head)
    if encoding is None:
        raise ValueError(f"cannot read {str(path)!r}: it is not text in UTF-8, UTF-16 or Windows-1252")
    encoding = codecs.lookup(encoding).name
    try:
        ends = _odd_line_ends(codecs.getincrementaldecoder(encoding)("replace").decode(head))
        separator = asked.separator or separator_of(head, encoding, SEPARATORS[kind], asked.skip_rows)
        rows = rows_of(head, encoding, separator, asked.skip_rows)
        untidy = None if path.suffix.lower() == ".zst" else _untidiness(head, encoding, separator, asked.skip_rows)
    except UnicodeError:  # UTF-16 or UTF-32 without the mark at the beginning
        raise _not_in(encoding, path) from None
    n_columns = len(rows[0]) if rows else _first_line(head, encoding).count(separator)
    if n_columns > _MOST_COLUMNS:
        raise ValueError(f"the first line of {str(path)!r} has {n_columns:,} cells or more; is it a table?")
    decimal = asked.decimal or decimal_of(rows, separator)
    doubtful = "" if asked.decimal else doubtful_number(rows, decimal or ".", separator)
    dialect = TextDialect(separator, decimal or ".", encoding, asked.missing, doubtful, ends, untidy)
    return dialect, decimal is not None


def _untidiness(head: bytes, encoding: str, separator: str, skip: int) -> Untidy | None:
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).removeprefix("\ufeff")
    lines = lines_of(usual_line_ends(text))[skip:]
    return untidiness_of(lines[:-1] if len(head) >= _HEAD else lines, separator)


def _first_line(head: bytes, encoding: str) -> str:
    return usual_line_ends(codecs.getincrementaldecoder(encoding)("replace").decode(head)).partition("\n")[0]


def _not_in(encoding: str, path: Path) -> ValueError:
    return ValueError(f"cannot read {str(path)!r}: it is not {encoding} text; state its encoding")


def common_decimal(found: Sequence[tuple[TextDialect, bool]]) -> list[TextDialect]:
    """Return dialects of files of one table; a file whose numbers show no decimal mark has that of the others."""
    known = {dialect.decimal for dialect, is_known in found if is_known}
    if len(known) != 1:
        return [dialect for dialect, _ in found]
    shared = known.pop()
    return [dialect if is_known else replace(dialect, decimal=shared, doubtful="") for dialect, is_known in found]


_MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\x03\x04": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"{": ".ndjson",
}


class _TemporaryFolder:
    """A folder for copies, which is removed with the last reference to this object, or when the process ends."""

    def __init__(self) -> None:
        self.path = temporary_folder()
        self._removal = weakref.finalize(self, remove_leftover, self.path)


@dataclass(frozen=True)
class TableFile:
    """A file of a table."""

    path: Path  # its name in messages
    kind: str  # of the file that is read: "csv", "tsv", "ndjson", "parquet" or "arrow"
    readable: Path  # the file that polars reads: the file itself, or a temporary copy of it
    dialect: TextDialect = UTF8_WITH_COMMAS  # how the file spells its cells, if it is CSV or TSV
    skipped: int = 0  # lines of the file above those of the copy
    left_out: tuple[int, ...] = ()  # blank lines that the copy lacks, by their numbers below those that are skipped
    _folder: Any = field(default=None, repr=False, compare=False)  # of the copy; removed with its last reference

    @property
    def packing(self) -> str:
        """The suffix of the compression, in lower case: .gz, .zst, or another one where there is none."""
        return self.readable.suffix.lower()

    def line(self, number: int) -> int:
        """Return the number in the file of a line of the copy."""
        for blank in self.left_out:
            number += blank <= number
        return number + self.skipped


def opened_files(paths: Sequence[Path], kind: str, asked: AskedDialect) -> tuple[TableFile, ...]:
    """Return files as polars can read them.

    Raises ValueError if a file is not text, or not a spreadsheet, or an option on text is given for files that are
    none.
    """
    asked.check()
    if kind != "excel" and asked.sheet is not None:
        raise ValueError(f"a sheet is named, and {str(paths[0])!r} is no spreadsheet; leave it out")
    if kind == "excel" and not (asked.separator or asked.encoding):
        return tuple(_copy_of_spreadsheet(path, asked) for path in paths)
    if kind not in SEPARATORS and asked.states_something:
        raise ValueError(
            f"separator, decimal and encoding are options for CSV and TSV files, which {str(paths[0])!r} is not; "
            f"leave {'separator and encoding' if kind == 'excel' else 'them'} out"
        )
    if kind not in SEPARATORS and (asked.missing or asked.skip_rows):
        stated = "missing values are" if asked.missing else "lines to skip are"
        raise ValueError(
            f"{stated} stated for CSV, TSV and spreadsheets, which {str(paths[0])!r} is not; leave them out"
        )
    if kind not in SEPARATORS:
        return tuple(TableFile(path, kind, path) for path in paths)
    dialects = common_decimal([detect(path, kind, asked) for path in paths])
    files = [TableFile(path, kind, path, dialect) for path, dialect in zip(paths, dialects, strict=True)]
    found = tuple(
        one if one.dialect.is_readable and not asked.skip_rows else _copy_in_utf8(one, asked.skip_rows) for one in files
    )
    tidy = tuple(_tidied(file, asked.is_strict) for file in found)
    for file in tidy:
        _name_odd_rows(file, asked.is_strict)
    return tidy


def _tidied(file: TableFile, is_strict: bool) -> TableFile:
    """Return a copy in which polars reads each row, and name what the copy lacks; the file itself if it reads all."""
    untidy = file.dialect.untidy
    if untidy is None:
        return file
    folder = _TemporaryFolder()
    copy = folder.path / f"copy.{file.kind}"
    opened: Any = gzip.open if file.packing == ".gz" else open
    try:
        with (
            opened(file.readable, "rt", encoding="utf-8-sig", newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            left_out = copy_tidied(text, out, file.dialect.separator, untidy)
    except UnicodeError:
        raise _not_in(file.dialect.encoding, file.path) from None
    except ValueError as error:
        raise ValueError(f"cannot read {str(file.path)!r}: {error}") from None
    except _DAMAGED as error:
        raise ValueError(f"cannot read {str(file.path)!r}: it is damaged ({error})") from None
    if left_out:
        first = f"line {left_out[0] + file.skipped}"
        several = len(left_out) > 1
        lines, where = (
            (f"{len(left_out)} blank lines are", f"the first is {first}") if several else ("a blank line is", first)
        )
        _name(f"{file.path.name}: {lines} skipped ({where}); delete such lines", is_strict)
    if untidy.has_ends:
        _name(f"{file.path.name}: a separator ends each line, and is left out; delete it", is_strict)
    return replace(file, readable=copy, left_out=left_out, _folder=folder)


def _name_odd_rows(file: TableFile, is_strict: bool) -> None:
    for remark in remarks_on_rows(file.readable, file.dialect.separator, () if file.skipped else _CANDIDATES):
        _name(f"{file.path.name}: {remark}", is_strict)


def _name(remark: str, is_strict: bool) -> None:
    """Warn of rows that look like none of the table, or refuse them."""
    if is_strict:
        raise ValueError(f"{remark}; or read it as it is, without --strict")
    warn(remark)


def _copy_in_utf8(file: TableFile, skip: int) -> TableFile:
    """Return a copy in UTF-8 with usual line ends, without the first `skip` lines."""
    if file.packing == ".zst":
        reason = "has lines to skip, and is" if skip else f"is {file.dialect.encoding}, or has odd line ends, and is"
        raise ValueError(f"{str(file.path)!r} {reason} packed by zstd; unpack it first")
    folder = _TemporaryFolder()
    copy = folder.path / f"copy.{file.kind}"
    encoding = file.dialect.encoding
    opened: Any = gzip.open if file.packing == ".gz" else open
    try:
        with (
            opened(file.readable, "rt", encoding=encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            for above in range(skip):
                if not text.readline():
                    raise ValueError(
                        f"{str(file.path)!r} has only {above} lines, and {skip} are to be skipped; skip fewer"
                    )
            if file.dialect.line_ends is None:
                shutil.copyfileobj(text, out, 1 << 20)
            else:
                _copy_with_usual_ends(text, out, file.dialect.line_ends)
    except UnicodeError:
        raise _not_in(encoding, file.path) from None
    except _DAMAGED as error:
        raise ValueError(f"cannot read {str(file.path)!r}: it is damaged ({error})") from None
    return replace(file, readable=copy, skipped=skip, _folder=folder)


def _copy_of_spreadsheet(path: Path, asked: AskedDialect) -> TableFile:
    """Return a sheet of a spreadsheet as CSV, so that its cells are read as those of other text files are."""
    try:
        import fastexcel
    except ImportError:
        raise ValueError(
            f"{str(path)!r} is a spreadsheet, which fastexcel reads: pip install fastexcel, or write the sheet as CSV"
        ) from None
    folder = _TemporaryFolder()
    try:
        sheets = fastexcel.read_excel(path).sheet_names
        sheet = _sheet(path, sheets, asked.sheet)
        odd = cells_without_value(path, sheet)
        source = path
        if odd is not None and odd.errors:
            source = folder.path / "copy.xlsx"
            copy_without_errors(path, source, [odd.part])
        frame = _read_sheet(source, sheet, asked.skip_rows)
        has_unnamed = any(name.startswith(_UNNAMED) for name in frame.columns)
        above = lines_above_header(_rows_of_sheet(frame)) if has_unnamed else 0
        frame, remarks = _without_blank_rows(frame, above)
        remarks += [] if odd is None else _remarks_on_cells(source, sheet, odd, above + asked.skip_rows)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(f"cannot read {str(path)!r}: it is not a spreadsheet ({reason})") from None
    if asked.skip_rows and not frame.width:
        raise ValueError(f"{str(path)!r} has no row below the {asked.skip_rows} that are skipped; skip fewer")
    if not frame.width:
        filled = f"; name another (--sheet {sheets[1]!r})" if len(sheets) > 1 else ""
        raise ValueError(f"the sheet {sheet!r} of {str(path)!r} is empty{filled}")
    if len(sheets) > 1 and asked.sheet is None:
        warn(f"{path.name} has {len(sheets)} sheets; the first, {sheets[0]!r}, is read (--sheet names another)")
    for remark in remarks:
        _name(f"{path.name}: {remark}", asked.is_strict)
    copy = folder.path / "copy.csv"
    texts = frame.select(pl.col(pl.String).fill_null("")).head(_ROWS).rows()
    decimal = asked.decimal or decimal_of([(), *texts], ",") or "."
    frame.write_csv(copy, decimal_comma=decimal == ",")
    dialect = TextDialect(decimal=decimal, missing=asked.missing)
    file = TableFile(path, "csv", copy, dialect, skipped=asked.skip_rows, _folder=folder)
    if above:
        _name(f"{path.name}: {remark_on_header(above + asked.skip_rows)}", asked.is_strict)
    else:
        _name_odd_rows(file, asked.is_strict)
    return file


def _remarks_on_cells(path: Path, sheet: str, odd: CellsWithoutValue, above: int) -> list[str]:
    """Return sentences on cells of a sheet that hold no value; `above` rows stand above its header."""
    import fastexcel

    if not (odd.errors or odd.merged):
        return []
    columns = fastexcel.read_excel(path).load_sheet(sheet, header_row=above, n_rows=0, dtypes="string")
    names = {column.absolute_index: column.name for column in columns.available_columns()}
    return [remark for remark in (odd.errors_in_words(names), odd.merged_in_words(above + 1)) if remark]


_UNNAMED = "__UNNAMED__"  # how polars begins the names of columns of a sheet that have none


def _without_blank_rows(frame: pl.DataFrame, above: int) -> tuple[pl.DataFrame, list[str]]:
    """Return the rows of a sheet that have a cell, and a sentence on the others between those of the table."""
    if not frame.height:
        return frame, []
    is_blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    filled = frame.filter(~is_blank)
    last = frame.height - int(is_blank.reverse().arg_min() or 0)
    places = [row for row in is_blank.arg_true() if above <= row < last]
    if not places:
        return filled, []
    rows, first = ("a blank row is", "it is") if len(places) == 1 else (f"{len(places)} blank rows are", "the first is")
    place = plural(places[0] - above, "row")
    return filled, [f"{rows} skipped ({first} below {place} of the table); delete such rows"]


def _read_sheet(path: Path, sheet: str, skip: int) -> pl.DataFrame:
    return pl.read_excel(
        path,
        sheet_name=sheet,
        engine="calamine",
        infer_schema_length=None,  # a cell of another type than the rows that are looked at would be missing
        raise_if_empty=False,
        drop_empty_rows=False,
        read_options={"header_row": skip} if skip else None,
    )


def _rows_of_sheet(frame: pl.DataFrame) -> list[tuple[int, list[str]]]:
    """Return the header of a sheet and its first rows, with the number of rows above each."""
    header = ["" if name.startswith(_UNNAMED) else name for name in frame.columns]
    rows = (["" if cell is None else str(cell) for cell in row] for row in frame.head(_ROWS).rows())
    return list(enumerate([header, *rows]))


def _sheet(path: Path, sheets: Sequence[str], asked: str | int | None) -> str:
    """Return the name of the sheet that was asked for, by its name or its number from 1; of the first by default."""
    if asked is None or asked in sheets:
        return sheets[0] if asked is None else str(asked)
    number = str(asked)
    if number.isdecimal() and 0 < int(number) <= len(sheets):
        return sheets[int(number) - 1]
    raise ValueError(f"{str(path)!r} has no sheet {asked!r}; it has {', '.join(map(repr, sheets[:20]))}")


def spooled(stream: Any) -> tuple[Path, Any]:
    """Copy a binary stream to a temporary file; return the file, and an object that keeps it.

    The first bytes give the format: Parquet, Arrow, Excel, packed or newline-delimited JSON, and else CSV.
    """
    folder = _TemporaryFolder()
    copy = folder.path / "stdin"
    with copy.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
    with copy.open("rb") as file:
        head = file.read(1 << 10)
    suffix = next((suffix for magic, suffix in _MAGIC.items() if head.lstrip().startswith(magic)), ".csv")
    with suppress(FileNotFoundError):
        copy = copy.rename(copy.with_name(copy.name + suffix))
    return copy, folder
