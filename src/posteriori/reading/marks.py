"""Marks of missing cells among numbers and dates, such as -, ? and none: which strings, and when they are read so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

NUMBERS_SHARE = 0.9  # of the present cells of a column, that are numbers if its marks are read as missing
DATES_SHARE = 0.5  # the same for dates: cells in one format of dates are hardly anything else
MOST_MARKS = 10  # distinct marks of a column
_LONGEST = 3  # characters of a mark without letters and digits, such as - or ???
_WORDS = """
    na, n/a, n.a., n.a, nan, null, nil, none, missing, unknown, unk, undefined, undef, unavailable, empty, blank, void,
    nd, n.d., n/d, tbd, #n/a, #na, #null!, #value!, #div/0!, #ref!, #name?, #num!, not available, not applicable,
    not known, no data, no value, k.a., k.a, ka, k/a, keine angabe, unbekannt, fehlt, leer, s/d, s.d., sin datos,
    desconocido, inconnu, nc, n.c., non disponible, desconhecido, sconosciuto, onbekend, nat, <na>, -nan, -nan(ind)
"""
_USUAL = frozenset(" ".join(word.split()) for word in _WORDS.split(","))
_IN_FILES = "na|Na|nA|n/a|N/a|n/A|NAN|Nan|NULL|Null"  # beside NA, N/A, NaN, nan and null, missing in any text file
_OTHERS = "|".join(sorted(map(re.escape, _USUAL - {"na", "n/a", "nan", "null"})))
# A pattern of all marks in text files, of usual blanks. Among others it finds what `is_mark` refuses.
MARK = rf" *(?:{_IN_FILES}|(?i:{_OTHERS})|[^\w\s]{{1,{_LONGEST}}}) *"


def is_mark(cell: str) -> bool:
    """Return whether a cell is a usual mark of a missing one: -, ?, none, N/A, k.A., … in any case, with outer blanks.

    Words that may be a value, such as low or free, are none.
    """
    text = " ".join(cell.casefold().split())
    if not any(character.isalnum() for character in text):
        return len(text) <= _LONGEST and "\u221e" not in text
    return text in _USUAL


def marks_among(
    words: Collection[str], n_words: int, n_values: int, least_share: float = NUMBERS_SHARE
) -> tuple[str, ...]:
    """Return the marks of missing cells in a column of numbers or dates, sorted; none if it is not one.

    Parameters
    ----------
    words : collection of str
        The distinct present cells that are no values, that is numbers or dates; some more than 10 if there are more.
    n_words, n_values : int
        The numbers of present cells that are none, and that are values.
    least_share : float
        The least share of values among the present cells.
    """
    if len(words) > MOST_MARKS or n_values < least_share * (n_values + n_words):
        return ()
    return tuple(sorted(words)) if all(map(is_mark, words)) else ()


def marks_in(cells: Iterable[str | None]) -> tuple[str, ...]:
    """Return the marks of missing cells among strings that are numbers, by the same rule; none if they are not."""
    n_numbers, words = 0, list[str]()
    for cell in cells:
        try:
            n_numbers += cell is not None and float(cell) == float(cell)
        except ValueError:
            words.append(str(cell))
    return marks_among(set(words), len(words), n_numbers) if n_numbers else ()
