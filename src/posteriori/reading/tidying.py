"""Text files that polars reads only from a tidied copy: quotes within cells, blank lines, separators at line ends."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

_SEPARATORS = ",|;\t"
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")


@dataclass(frozen=True)
class Untidy:
    """That polars does not read a text file as it is, and the shape of its rows."""

    width: int  # cells of a row
    has_ends: bool  # whether a separator ends each line, with nothing behind it
    has_blanks: bool  # whether there are blank lines between rows


def untidiness_of(lines: Sequence[str], separator: str) -> Untidy | None:
    """Return the shape of a text file whose first lines polars does not read as they are; None if it does."""
    text = "".join(lines)
    ends = [line.rstrip("\r\n").endswith(separator) for line in lines[1:3]]
    if not ('"' in text or _BLANK_LINE.search(text) or all(ends)):
        return None
    rows = list(_rows(lines, separator))
    filled = [cells for _, _, cells in rows if not _is_blank(cells)]
    widths = {len(cells) for cells in filled}
    width = max(widths, default=0)
    has_ends = _have_ends(filled, width)
    is_alone = width == 1 and any(mark in text for mark in _SEPARATORS)
    if is_alone or (len(widths) > 1 and not has_ends):
        return None  # it may have another separator, below a title
    has_blanks = width > 1 and bool(_blank_lines(rows, width))
    has_quotes = any(_has_quote_within(cells, lines[start:stop]) for start, stop, cells in rows)
    if has_ends or has_blanks or has_quotes or _ends_quotes_early(lines, separator):
        return Untidy(width, has_ends, has_blanks)
    return None


def copy_tidied(text: Iterable[str], out: IO[str], separator: str, untidy: Untidy) -> tuple[int, ...]:
    """Write the rows of a text file as polars reads them; return the numbers of the blank lines that are left out.

    Raises ValueError if quotes do not pair.
    """
    reader = csv.reader(text, delimiter=separator, strict=True)
    write = csv.writer(out, delimiter=separator, lineterminator="\n").writerow
    left_out: list[int] = []
    line, is_below = 1, False
    try:
        for cells in reader:
            is_below = is_below or len(cells) == untidy.width
            if untidy.width > 1 and is_below and _is_blank(cells):
                left_out.append(line)
            else:
                ends = untidy.has_ends and len(cells) == untidy.width and not cells[-1]
                write(cells[:-1] if ends else cells)
            line = reader.line_num + 1
    except csv.Error:
        raise ValueError(
            f"in line {line} quotes do not pair; close them, or double one inside of a cell in quotes"
        ) from None
    return tuple(left_out)


def _rows(lines: Sequence[str], separator: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the positions of the first line of each row and of the one behind it, and the cells of the row."""
    with suppress(csv.Error):
        reader, start = csv.reader(lines, delimiter=separator), 0
        for cells in reader:
            yield start, reader.line_num, cells
            start = reader.line_num


def _ends_quotes_early(lines: Sequence[str], separator: str) -> bool:
    """Return whether text follows the quote that ends a cell: polars drops such quotes, and may join rows."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        deque(reader, maxlen=0)
    except csv.Error:
        return reader.line_num < len(lines)  # the lines may end within a cell
    return False


def _is_blank(cells: Sequence[str]) -> bool:
    return not cells or (len(cells) == 1 and not cells[0].strip())


def _blank_lines(rows: Sequence[tuple[int, int, list[str]]], width: int) -> list[int]:
    """Return the positions of blank lines between rows; those above the header and behind the last row are none."""
    whole = [start for start, _, cells in rows if len(cells) == width]
    return [start for start, _, cells in rows if _is_blank(cells) and whole[0] < start < whole[-1]]


def _have_ends(rows: Sequence[list[str]], width: int) -> bool:
    """Return whether each row ends in an empty cell, for which the header has no name."""
    if len(rows) < 2 or width < 2 or len(rows[0]) not in (width - 1, width):
        return False
    is_named = len(rows[0]) == width and rows[0][-1] != ""
    return not is_named and all(len(cells) == width and not cells[-1] for cells in rows[1:])


def _has_quote_within(cells: Sequence[str], lines: Sequence[str]) -> bool:
    """Return whether a cell that is not in quotes holds one: then its text stands in the line as it is."""
    text = "".join(lines)
    return any('"' in cell and re.search(rf'(?<!"){re.escape(cell)}(?!")', text) for cell in cells)
