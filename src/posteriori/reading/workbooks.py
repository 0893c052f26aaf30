"""Cells of Excel workbooks (.xlsx) that hold no value: errors of formulas, and those that others are merged with."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from posixpath import join, normpath
from xml.etree import ElementTree

_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*\bt="e"[^>]*>.*?</(?:\w+:)?c>', re.DOTALL)
_VALUE = re.compile(rb"(<(?:\w+:)?v>)([^<]*)")
_PLACE = re.compile(rb'\br="([A-Z]+)(\d+)"')
_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\b[^>]*\bref="([A-Z]+\d+:[A-Z]+(\d+))"')
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_BOOK = "xl/workbook.xml"


@dataclass(frozen=True)
class CellsWithoutValue:
    """The cells of a sheet that hold no value, as its file states them."""

    part: str  # the name of the sheet within the file
    errors: tuple[tuple[int, int, str], ...]  # the column from 0, the row from 1, and the error of each cell
    merged: tuple[tuple[str, int], ...]  # ranges of merged cells, such as A2:A7, and the last row of each

    def errors_in_words(self, names: dict[int, str]) -> str:
        """Return a sentence on the errors, given the names of the columns by position; empty if there are none."""
        by_name: dict[str, list[tuple[int, str]]] = {}
        for column, row, error in self.errors:
            if column in names:
                by_name.setdefault(names[column], []).append((row, error))
        listed = [
            f"{len(cells)} in {name!r} ({', '.join(sorted({error for _, error in cells}))}; the first in row "
            f"{min(cells)[0]})"
            for name, cells in by_name.items()
        ]
        return f"cells with errors of formulas are missing: {', '.join(listed)}" if listed else ""

    def merged_in_words(self, header: int) -> str:
        """Return a sentence on the merged cells below the row of the header; empty if there are none."""
        below = [cells for cells, last in sorted(self.merged, key=itemgetter(1)) if last > header]
        if not below:
            return ""
        more = (
            "" if len(below) == 1 else " and another range" if len(below) == 2 else f" and {len(below) - 1} more ranges"
        )
        return f"cells {below[0]}{more} are merged, and missing except the first of each; split them, and fill all"


def cells_without_value(path: Path, sheet: str) -> CellsWithoutValue | None:
    """Return the cells of a sheet that hold no value; None if the file is no workbook of this format."""
    try:
        with zipfile.ZipFile(path) as book:
            part = _part_of(book, sheet)
            text = book.read(part)
    except (OSError, KeyError, zipfile.BadZipFile, ElementTree.ParseError):
        return None
    errors = []
    for cell in _CELL.findall(text) if b't="e"' in text else ():
        place, value = _PLACE.search(cell), _VALUE.search(cell)
        if place and value:
            errors.append((_column(place[1]), int(place[2]), value[2].decode("utf-8", "replace")))
    merged = tuple((match[1].decode(), int(match[2])) for match in _MERGED.finditer(text))
    return CellsWithoutValue(part, tuple(errors), merged)


def copy_without_errors(path: Path, copy: Path, parts: Sequence[str]) -> None:
    """Write a workbook in which all errors in some of its parts are #N/A, which any reader takes as missing."""
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        for part in book.infolist():
            text = book.read(part)
            out.writestr(part, _CELL.sub(_as_missing, text) if part.filename in parts else text)


def _as_missing(cell: re.Match[bytes]) -> bytes:
    return _VALUE.sub(rb"\g<1>#N/A", cell[0])


def _part_of(book: zipfile.ZipFile, sheet: str) -> str:
    """Return the name of a sheet within the file; KeyError if the file does not state it."""
    sheets = (tag for tag in ElementTree.fromstring(book.read(_BOOK)).iter() if tag.get("name") == sheet)
    wanted = next((tag.get(_RELATION) for tag in sheets if tag.get(_RELATION)), None)
    relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    target = next((tag.get("Target") for tag in relations if tag.get("Id") == wanted), None)
    if target is None:
        raise KeyError(sheet)
    return target.lstrip("/") if target.startswith("/") else normpath(join("xl", target))


def _column(letters: bytes) -> int:
    """Return the position of a column, from 0 for A."""
    place = 0
    for letter in letters:
        place = 26 * place + letter - ord("A") + 1
    return place - 1
