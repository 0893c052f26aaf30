"""Dates and times that are written as strings: in which format, and what prevents that they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from posteriori.reading.marks import DATES_SHARE, MOST_MARKS, NUMBERS_SHARE, marks_among
from posteriori.tables.times import KINDS_OF_FORMATS, RIVALS, TimeType, parsed

if TYPE_CHECKING:
    import polars as pl

# Minutes have two digits: 1:2 is a ratio.
_LIKE_A_TIME = re.compile(r"^([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}|[0-9]{1,2}:[0-9]{2})([^0-9]|$)")
_MONTH = "(?i:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[A-Za-z]*"
_IN_WORDS = rf"^[0-9]{{1,2}}\.?[ -]{_MONTH}[ ,-]+[0-9]{{2,4}}|^{_MONTH} [0-9]{{1,2}},? [0-9]{{4}}"
_TWO_DIGITS = r"^\d{1,2}[/.]\d{1,2}[/.]\d\d( |$)"
_TRIED_CELLS = 20  # of a column of strings, before all its cells are
_FEWEST_CELLS = 10  # that show that a column of a frame holds dates


def type_of_strings(
    cells: pl.Series, where: Callable[[Collection[str]], str] = lambda cells: ""
) -> tuple[TimeType | None, str]:
    """Return the type of times that all strings of a column are, or what prevents that dates are read as such.

    Parameters
    ----------
    cells : polars Series
        Strings; null where missing.
    where : callable, optional
        Returns where the first of some cells is, for the reason.

    Returns
    -------
    type : TimeType or None
        None if some cells are no times, or if day and month cannot be distinguished.
    reason : str
        What is wrong with a column of dates: "holds …"; empty if nothing is, or the cells are hardly dates.
    """
    cells = cells.alias("cells").drop_nulls()
    head = cells.head(_TRIED_CELLS).to_list()
    if not head or 2 * sum(map(_looks_like_a_time, head)) < len(head):
        return None, ""
    counts = cells.value_counts(name="n").sort("cells")
    distinct, n = counts["cells"], counts["n"]
    written = _usual_format(cells)
    is_read = _read(distinct, written) if written else distinct.is_null()
    if is_read.all():
        date = written.partition(" ")[0]
        if date in RIVALS and _read(distinct, written.replace(date, RIVALS[date])).all():
            return None, f"holds dates whose day and month cannot be distinguished ({cells[0]!r})"
        return TimeType(KINDS_OF_FORMATS[written], "UTC" if written.endswith("z") else "", written), ""
    others, n_others = distinct.filter(~is_read), int(n.filter(~is_read).sum())
    if n_others > (1 - NUMBERS_SHARE) * len(cells):
        several = _several_formats(distinct)
        if several or n_others > (1 - DATES_SHARE) * len(cells):
            return None, several
    if len(others) > MOST_MARKS:
        return None, f"holds dates and {others[0]!r}, which is none ({n_others:,} such of {len(cells):,} cells)"
    listed = ", ".join(map(repr, others.head(3).to_list()))
    return None, f"holds dates except {listed} ({n_others:,} of {len(cells):,} cells{where(others.to_list())})"


def _looks_like_a_time(cell: str) -> bool:
    return _LIKE_A_TIME.match(cell) is not None or re.match(_IN_WORDS, cell) is not None


def _usual_format(cells: pl.Series) -> str:
    """Return the format in which most of the first cells are times; of several ones that of most cells."""
    head, best, most = cells.head(_TRIED_CELLS), "", 0
    for written in KINDS_OF_FORMATS:
        if 2 * int(_read(head, written).sum()) >= len(head):
            n_read = int(_read(cells, written).sum())
            best, most = (written, n_read) if n_read > most else (best, most)
            if n_read == len(cells):
                break
    return best


def _several_formats(cells: pl.Series) -> str:
    """Return that cells are dates in several formats, or have the month as a word; empty if they do not."""
    is_in_words = cells.str.contains(_IN_WORDS)
    in_words, in_digits = cells.filter(is_in_words), cells.filter(~is_in_words)
    examples: dict[str, str] = {}  # a cell of each format
    for cell in in_digits.head(_TRIED_CELLS).to_list():
        examples.setdefault(_usual_format(in_digits.filter(in_digits == cell)), cell)
    if "" in examples or "time" in map(KINDS_OF_FORMATS.__getitem__, examples):
        return ""
    shown = [*list(examples.values())[:2], *in_words.head(1).to_list()]
    how = "several formats" if len(shown) > 1 else "words"
    return f"holds dates in {how} ({', '.join(map(repr, shown))})" if shown else ""


def looks_like_times(cells: Sequence[str | None]) -> bool:
    """Return whether all present cells of a column in memory are dates or times in one format, at least ten."""
    present = [cell for cell in cells if cell is not None]
    if len(present) < _FEWEST_CELLS or not all(map(_LIKE_A_TIME.match, present[:_TRIED_CELLS])):
        return False
    import polars as pl

    found, reason = type_of_strings(pl.Series(present, dtype=pl.String))
    return found is not None or reason.startswith("holds dates whose")


def marks_among_dates(cells: pl.Series) -> tuple[str, ...]:
    """Return the marks of missing cells in a column of strings of which half or more look like dates or times."""
    present = cells.alias("cells").drop_nulls()
    head = present.head(_TRIED_CELLS).to_list()
    if sum(_LIKE_A_TIME.match(cell) is not None for cell in head) * 2 < len(head) or not head:
        return ()
    words = present.filter(~present.str.contains(_LIKE_A_TIME.pattern))
    distinct = words.unique().head(MOST_MARKS + 1).to_list()
    return marks_among(distinct, len(words), len(present) - len(words), DATES_SHARE)


def _read(cells: pl.Series, written: str) -> pl.Series:
    """Return which strings are times in a format, with as many digits of the year as it has."""
    found = parsed(cells, written)
    is_read: pl.Series = found.is_not_null()
    if "%y" in written:
        is_read &= cells.str.contains(_TWO_DIGITS)
    if KINDS_OF_FORMATS[written] != "time":
        is_read &= found.dt.year().is_between(1000, 9999).fill_null(value=False)
    return is_read
