"""How a text file spells its cells: separator, decimal mark and encoding, as given or as detected."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

CURRENCY = "[$€£¥₹]|USD|EUR|GBP|CHF|JPY"
SEPARATORS = {"csv": ",", "tsv": "\t"}
_CANDIDATES = (",", ";", "\t", "|")
_HEAD = 1 << 22  # bytes that are looked at
_ROWS = 200  # rows that separator and decimal mark are judged by
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_UNIT = re.compile(rf"{CURRENCY}|[%\s]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f]")  # characters that no table holds: the file is not text
_WITH_POINT, _WITH_COMMA = re.compile(r"[+-]?\d*\.\d+"), re.compile(r"[+-]?\d*,\d+")
_IN_THOUSANDS = {
    ".": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"),
}


@dataclass(frozen=True)
class Dialect:
    """The spelling of a text file.

    Attributes
    ----------
    separator : str
        The character between cells.
    decimal : {".", ","}
    encoding : str
        A name that Python knows.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def described(self, default: str) -> str:
        """Return what differs from UTF-8 text with decimal points and a default separator; empty if nothing does."""
        parts = []
        if self.separator != default:
            parts.append(f"separator {'tab' if self.separator == chr(9) else repr(self.separator)}")
        if self.decimal != ".":
            parts.append("decimal comma")
        if self.encoding != "utf-8":
            parts.append(f"encoding {self.encoding}")
        return ", ".join(parts)


UTF8_WITH_COMMAS = Dialect()


@dataclass(frozen=True)
class AskedDialect:
    """The spelling of text files as an option states it; None where it is to be detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def check(self) -> None:
        """Raise ValueError if an option has a value that no file can have.

        Raises
        ------
        ValueError
            The separator is not one ASCII character, the decimal mark is not a point or a comma, or Python does not
            know the encoding.
        """
        one = self.separator
        if one is not None and (len(one) != 1 or not one.isascii() or one in '"\r\n' or one.isalnum()):
            raise ValueError(f"the separator is {one!r}; give one character, such as ';', ',', '|' or a tab")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"the decimal mark is {self.decimal!r}; give '.' or ','")
        if self.encoding is not None:
            try:
                known = codecs.lookup(self.encoding)
            except LookupError:
                known = None
            if known is None or not known._is_text_encoding:
                raise ValueError(f"the encoding {self.encoding!r} is unknown; give utf-8, latin-1, cp1252 or utf-16")

    @property
    def states_something(self) -> bool:
        """Whether an option is given."""
        return self != AskedDialect()


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; of a file that is packed by zstd its first lines, read as UTF-8."""
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return _lines_of_zstd(path)
    opened: Any = gzip.open if suffix == ".gz" else open
    try:
        with cast(IO[bytes], opened(path, "rb")) as file:
            return file.read(_HEAD)
    except (EOFError, zlib.error):  # a later read says that the file is damaged
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


def rows_of(head: bytes, encoding: str, separator: str) -> list[list[str]]:
    """Return the first rows as lists of cells, without the last one if the bytes may end within it."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head).removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
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


def separator_of(head: bytes, encoding: str, usual: str) -> str:
    """Return the separator of a text file: the usual one, unless only another one gives rows of one length."""
    widths = {}
    for separator in (usual, *(one for one in _CANDIDATES if one != usual)):
        rows = rows_of(head, encoding, separator)
        widths[separator] = {len(row) for row in rows} if rows else set()
    if len(widths[usual]) == 1 and widths[usual] != {1}:
        return usual
    even = {one: found.copy().pop() for one, found in widths.items() if len(found) == 1 and found != {1}}
    return max(even, key=even.__getitem__, default=usual)


def decimal_of(rows: Sequence[Sequence[str]], separator: str) -> str | None:
    """Return the decimal mark that the numbers of some rows show; None if they show none.

    Numbers such as 1,234 have either a decimal comma or a comma between thousands. They have a decimal comma only in a
    file with the separator ";".
    """
    cells = [_UNIT.sub("", cell) for row in rows[1:] for cell in row]
    points = [cell for cell in cells if _WITH_POINT.fullmatch(cell) and not _IN_THOUSANDS[","].fullmatch(cell)]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    if points:
        return "."
    grouped = [cell for cell in cells if _IN_THOUSANDS[","].fullmatch(cell) and "," in cell]  # 1.234,50
    in_doubt = all(_IN_THOUSANDS["."].fullmatch(cell) for cell in commas)
    if grouped or (commas and (separator == ";" or not in_doubt)):
        return ","
    return None


def detect(path: Path, kind: str, asked: AskedDialect) -> tuple[Dialect, bool]:
    """Return the dialect of a file, and whether its decimal mark is known: stated, or seen in its numbers.

    Raises
    ------
    ValueError
        The file is not text.
    """
    head = head_of(path)
    encoding = asked.encoding or encoding_of(head)
    if encoding is None:
        raise ValueError(f"cannot read {str(path)!r}: it is not text in UTF-8, UTF-16 or Windows-1252")
    encoding = codecs.lookup(encoding).name
    separator = asked.separator or separator_of(head, encoding, SEPARATORS[kind])
    decimal = asked.decimal or decimal_of(rows_of(head, encoding, separator), separator)
    return Dialect(separator, decimal or ".", encoding), decimal is not None


def common_decimal(found: Sequence[tuple[Dialect, bool]]) -> list[Dialect]:
    """Return dialects of files of one table; a file whose numbers show no decimal mark has that of the others."""
    known = {dialect.decimal for dialect, is_known in found if is_known}
    shared = known.pop() if len(known) == 1 else "."
    return [dialect if is_known else replace(dialect, decimal=shared) for dialect, is_known in found]
