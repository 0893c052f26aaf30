"""Dates and times that are written as strings: in which format, and what prevents that they are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from posteriori.reading.marks import DATES_SHARE, MOST_MARKS, NUMBERS_SHARE, marks_among
from posteriori.tables.times import KINDS_OF_FORMATS, RIVALS, TimeType, parsed

if TYPE_CHECKING:
    import polars as pl

# Minutes have two digits: 1:2 is a ratio.
_LIKE_A_TIME = re.compile(r"^([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}|[0-9]{1,2}:[0-9]{2})([^0-9]|$)")
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_IN_WORDS = rf"^[0-9]{{1,2}}\.?[ -]{_MONTH}[ -,]+[0-9]{{2,4}}|^{_MONTH} [0-9]{{1,2}},? [0-9]{{4}}"
_TWO_DIGITS = r"^\d{1,2}[/.]\d{1,2}[/.]\d\d( |$)"
_TRIED_CELLS = 20  # of a column of strings, before all its cells are
_FEWEST_CELLS = 10  # that show that a column of a frame holds dates


def type_of_strings(cells: pl.Series) -> tuple[TimeType | None, str]:
    """Return the type of times that all strings of a column are, or what prevents that dates are read as such.

    Parameters
    ----------
    cells : polars Series
        Strings; null where missing.

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
    counts = cells.value_counts(name="n")
    is_like = counts["cells"].str.contains(_LIKE_A_TIME.pattern)
    like, words = counts["cells"].filter(is_like), counts["cells"].filter(~is_like)
    written = _format_of(like)
    if written and not len(words):
        date = written.partition(" ")[0]
        if date in RIVALS and _all_read(like, written.replace(date, RIVALS[date])):
            return None, f"holds dates whose day and month cannot be distinguished ({cells[0]!r})"
        return TimeType(KINDS_OF_FORMATS[written], "UTC" if written.endswith("z") else "", written), ""
    n_words = int(counts["n"].filter(~is_like).sum())
    if written and n_words <= (1 - NUMBERS_SHARE) * len(cells) and len(words) <= MOST_MARKS:
        listed = ", ".join(map(repr, words.sort().head(3).to_list()))
        return None, f"holds dates except {listed} ({n_words:,} of {len(cells):,} cells)"
    return None, _several_formats(counts["cells"].sort())


def _looks_like_a_time(cell: str) -> bool:
    return _LIKE_A_TIME.match(cell) is not None or re.match(_IN_WORDS, cell) is not None


def _format_of(cells: pl.Series) -> str:
    """Return the first format in which all distinct cells are times; empty if there is none."""
    head = cells.head(_TRIED_CELLS)
    formats = KINDS_OF_FORMATS if len(cells) else ()
    return next((one for one in formats if _all_read(head, one) and _all_read(cells, one)), "")


def _several_formats(cells: pl.Series) -> str:
    """Return that cells are dates in several formats, or have the month as a word; empty if they do not."""
    is_in_words = cells.str.contains(_IN_WORDS)
    in_words, in_digits = cells.filter(is_in_words), cells.filter(~is_in_words)
    examples: dict[str, str] = {}  # a cell of each format
    for cell in in_digits.head(_TRIED_CELLS).to_list():
        examples.setdefault(_format_of(in_digits.filter(in_digits == cell)), cell)
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


def _all_read(cells: pl.Series, written: str) -> bool:
    """Return whether all strings are times in a format, with as many digits of the year as it has."""
    if "%y" in written and not cells.str.contains(_TWO_DIGITS).all():
        return False
    found = parsed(cells, written)
    if found.null_count():
        return False
    if KINDS_OF_FORMATS[written] == "time":
        return True
    first, last = found.dt.year().min(), found.dt.year().max()
    return isinstance(first, int) and isinstance(last, int) and first >= 1000 and last <= 9999
