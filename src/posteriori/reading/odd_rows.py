"""Rows of text files that are none of the table: lines above the header, a second header, and a row of totals."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

from posteriori.reading.marks import is_mark

_HEAD = 1 << 16  # bytes at the beginning and at the end of a file that are looked at
_MOST_ABOVE = 20  # lines above a header
_FEWEST_BELOW = 5  # rows that show what a column holds
_BESIDE_DIGITS = re.compile(r"[$€£¥₹%\s()]")
_NUMBER = re.compile(r"[+-]?(\d{1,3}([.,'’]\d{3})+|\d*)([.,]?\d+)?([eE][+-]?\d+)?-?")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ]\d\d?:\d\d.*)?")
_WORDS = """
    total, totals, grand total, subtotal, sum, summe, gesamt, gesamtsumme, insgesamt, somme, suma, totale, totaal,
    average, mean, mittelwert, durchschnitt, moyenne, promedio, media
"""
_TOTALS = frozenset(" ".join(word.split()) for word in _WORDS.split(","))

Rows = Sequence[tuple[int, list[str]]]  # the number of the line before each row, and its cells


def remarks_on_rows(path: Path, separator: str, separators: Sequence[str]) -> list[str]:
    """Return sentences on rows of a text file in UTF-8 that look like none of the table.

    Parameters
    ----------
    path : Path
    separator : str
        The separator of the file.
    separators : sequence of str
        Others, which it may have below lines that are none of the table, unless its own gives rows of one length.
    """
    if path.suffix.lower() == ".zst":
        return []
    head = _text(path)
    rows = _rows(head, separator)
    is_even = len({len(cells) for _, cells in rows}) == 1 and len(rows[0][1]) > 1
    others = () if is_even else separators
    # Of the separators below titles, the one in the header: another one, in cells, puts the header among the titles.
    found_above = [lines_above_header(_rows(head, mark)) for mark in dict.fromkeys((separator, *others))]
    above = min(filter(None, found_above), default=0)
    if above:
        return [remark_on_header(above)]
    found = []
    value = value_in_header([of_row for _, of_row in rows])
    if value:
        found.append(
            f"the first line looks like a row and is read as the header ({value!r} is the name of a column of such "
            "values); add a line with the names of the columns above it"
        )
    cells = second_header([of_row for _, of_row in rows])
    if cells:
        listed = ", ".join(map(repr, cells[:3]))
        found.append(
            f"line {rows[1][0] + 1} looks like a second header ({listed} above numbers); delete it, or take it as the "
            "header (--skip-rows 1)"
        )
    last = [] if path.suffix.lower() == ".gz" else _rows(_text(path, at_end=True), separator, at_end=True)
    word = total_in(last[-1][1], [of_row for _, of_row in rows]) if last else ""
    if word:
        found.append(f"the last row holds {word!r} and looks like a sum of the others, not like one of them; delete it")
    return found


def remark_on_header(above: int) -> str:
    """Return the sentence on a number of lines that may stand above the header."""
    lines = "the line above it" if above == 1 else f"the {above} lines above it"
    return f"the header may be in line {above + 1}; then skip {lines} (--skip-rows {above})"


def lines_above_header(rows: Rows) -> int:
    """Return the number of lines above the header: those of rows with at most one cell, above rows of several cells.

    Rows of another length with less than half of the cells of the last row are above it, too.
    """
    width = len(rows[-1][1]) if rows else 0

    def is_above(cells: list[str]) -> bool:
        n_filled = sum(cell.strip() != "" for cell in cells)
        return n_filled <= 1 or (len(cells) != width and 2 * n_filled < width)

    first = next((k for k, (_, cells) in enumerate(rows) if not is_above(cells)), 0)
    below = rows[first:]
    has_one_width = len({len(cells) for _, cells in below}) == 1
    if not first or first > _MOST_ABOVE or len(below) < _FEWEST_BELOW or not has_one_width:
        return 0
    return below[0][0]


def value_in_header(rows: Sequence[Sequence[str]]) -> str:
    """Return a number or date in the first row that stands above such cells, if the row is no header; else nothing.

    A header may hold numbers, such as years, but then they count up, or other cells of it are words. In a row, each
    number or date stands above such ones, and each word occurs below, in its column.
    """
    if len(rows) <= _FEWEST_BELOW or len(rows[0]) < 2:
        return ""
    values: list[str] = []
    for cell, *others in zip(*rows, strict=False):
        kinds = {_kind_of_value(other) for other in others if other.strip() and not is_mark(other)}
        kind = _kind_of_value(cell)
        if kind != (kinds.pop() if len(kinds) == 1 else "") or (not kind and cell not in others):
            return ""
        values += [cell] if kind else []
    steps = {int(two) - int(one) for one, two in pairwise(values)} if all(map(str.isdecimal, values)) else set()
    return values[0] if values and len(steps) != 1 else ""


def _kind_of_value(cell: str) -> str:
    return "number" if _is_number(cell) else "date" if _DATE.fullmatch(cell.strip()) else ""


def second_header(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the words of the first row below the header that stand above numbers, if the row is a second header.

    In such a row no cell is a number where the cells below are, two cells or more are filled, and none of them occurs
    below.
    """
    below = rows[2:]
    if len(below) < _FEWEST_BELOW:
        return []
    words, n_filled = [], 0
    for cell, *others in zip(*rows[1:], strict=False):
        values = [one for one in others if one.strip() and not is_mark(one)]
        is_filled = bool(cell.strip()) and not is_mark(cell)
        n_filled += is_filled
        if is_filled and (_is_number(cell) or cell in values):
            return []
        if is_filled and len(values) >= _FEWEST_BELOW and all(map(_is_number, values)):
            words.append(cell)
    return words if n_filled > 1 else []


def total_in(last: list[str], rows: Sequence[list[str]]) -> str:
    """Return the word by which the last row of a table is one of totals; empty if it is none."""
    for j, cell in enumerate(last):
        is_total = cell.strip().rstrip(":").casefold() in _TOTALS
        if is_total and any(map(_is_number, last)) and not any(row[j : j + 1] == [cell] for row in rows if row != last):
            return cell
    return ""


def _is_number(cell: str) -> bool:
    digits = _BESIDE_DIGITS.sub("", cell)
    return any(map(str.isdigit, digits)) and _NUMBER.fullmatch(digits) is not None


def _text(path: Path, at_end: bool = False) -> str:
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with suppress(OSError, EOFError, zlib.error), cast(IO[bytes], opened(path, "rb")) as file:
        if at_end:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _HEAD))
        return file.read(_HEAD).decode("utf-8", "replace").removeprefix("\ufeff")
    return ""  # a later read says that the file is damaged


def _rows(text: str, separator: str, at_end: bool = False) -> list[tuple[int, list[str]]]:
    """Return the rows of a part of a file: without the last one if the part may end in it, or the last one alone."""
    lines = list(io.StringIO(text, newline=""))  # `splitlines` knows other ends
    if at_end:
        lines = [line for line in lines if line.strip(f"{separator}\r\n ")][-1:]
    elif len(text) >= _HEAD // 2:
        lines = lines[:-1]
    rows = []
    with suppress(csv.Error):
        reader = csv.reader(lines, delimiter=separator)
        before = 0
        for cells in reader:
            if cells:
                rows.append((before, cells))
            before = reader.line_num
    return rows
