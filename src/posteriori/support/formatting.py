"""Numbers, counts, cells and labels as text, for the terminal, reports, figures and notebooks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

UNDEFINED = "–"
_LONGEST_NAME = 24  # characters in a figure
_LARGEST_EXACT_COUNT = 10**15  # a count with more digits is shown as a power of ten
_LARGEST_EXACT_LOG = 1e12  # four digits of exp(x) are known up to it


def number(value: float | None, digits: int = 4, separator: str = "") -> str:
    """Format a number with the given significant digits, without an exponent if it is not too long.

    Parameters
    ----------
    value : float or None
        None, NaN and infinite values are shown as a dash.
    digits : int, default 4
    separator : str, default ""
        Character between thousands. Numbers below 10,000 have none, because they may be years.

    Examples
    --------
    >>> number(3.14159), number(1234567.0), number(1e-9), number(-2.5), number(None)
    ('3.142', '1234567', '1e-09', '-2.5', '–')
    >>> number(2026.0, separator=","), number(1234567.0, separator=",")
    ('2026', '1,234,567')
    """
    if value is None or not math.isfinite(value):
        return UNDEFINED
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 < magnitude < max(9, digits):
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(digits - 1 - magnitude, 0)}f}"
    text = text.replace(",", separator if magnitude >= 4 else "")
    return text.rstrip("0").rstrip(".") if "." in text else text


def probability(value: float, decimals: int = 4, smallest: float = 5e-5, small: str = ".2g") -> str:
    """Format a probability with fixed decimals; a positive one below `smallest` with the format `small`.

    Examples
    --------
    >>> probability(0.25), probability(0.0), probability(1.234e-9), probability(float("nan"))
    ('0.2500', '0.0000', '1.2e-09', '–')
    """
    if math.isnan(value):
        return UNDEFINED
    return f"{value:{small}}" if 0 < value < smallest else f"{value:.{decimals}f}"


def percent(share: float) -> str:
    """Format a share or a probability in percent, with a decimal if it is small.

    Examples
    --------
    >>> percent(0.25), percent(0.0123), percent(0.0)
    ('25%', '1.2%', '0%')
    """
    return f"{share:.0%}" if share >= 0.0995 or share in (0, 1) else f"{share:.1%}"


def exponential(log_value: float, digits: int = 6) -> str:
    """Format exp(log_value) to significant digits, also if a float cannot hold it.

    Examples
    --------
    >>> exponential(0.0), exponential(-2.5), exponential(-1e4), exponential(-1e20), exponential(float("-inf"))
    ('1', '0.082085', '1.135e-4343', 'exp(-1e+20)', '0')
    >>> exponential(-2.5, 2), exponential(2000.0, 2)
    ('0.082', '3.9e+868')
    """
    if not math.isfinite(log_value):
        return UNDEFINED if math.isnan(log_value) else "∞" if log_value > 0 else "0"
    if -600 < log_value < 600:  # within the range of a float
        return f"{np.exp(log_value):.{digits}g}"
    if abs(log_value) > _LARGEST_EXACT_LOG:
        return f"exp({log_value:.4g})"
    exponent = int(np.floor(log_value / np.log(10)))
    return f"{np.exp(log_value - exponent * np.log(10)):.{min(digits, 4)}g}e{exponent:+d}"


def count(value: float | None) -> str:
    """Format a count, which may be a sum of weights; one of more than 15 digits as a power of ten.

    Examples
    --------
    >>> count(12345), count(2.5), count(None), count(3 * 10**400)
    ('12,345', '2.5', '–', 'about 3.0e400')
    """
    if value is None or value != value:
        return UNDEFINED
    if value < _LARGEST_EXACT_COUNT:
        return f"{round(value):,}" if abs(value - round(value)) < 1e-9 else number(value, separator=",")
    # An integer may be too large for a float: take the mantissa from the logarithm.
    power = int(math.log10(value))
    return f"about {math.exp((math.log10(value) - power) * math.log(10)):.1f}e{power}"


def plural(amount: float, noun: str) -> str:
    """Format an amount with its noun in singular or plural.

    Examples
    --------
    >>> plural(1, "row"), plural(1200, "row"), plural(2, "class")
    ('1 row', '1,200 rows', '2 classes')
    """
    return f"{count(amount)} {noun if amount == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of an English noun.

    Examples
    --------
    >>> plural_of("row"), plural_of("batch"), plural_of("category"), plural_of("day"), plural_of("leaf")
    ('rows', 'batches', 'categories', 'days', 'leaves')
    """
    if noun.endswith("leaf"):
        return f"{noun[:-1]}ves"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def listed(words: Sequence[str], most: int = 8, conjunction: str = "and") -> str:
    """Join words with commas, and the last one with "and" or another conjunction.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a', 'a, b and c', 'a, b and 1 more')
    """
    shown = list(words) if len(words) <= most else [*words[:most], f"{len(words) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"


def cell_text(cell: Any, longest: int | None = 40) -> str:
    """Format a cell or a label as a table file spells it.

    Parameters
    ----------
    cell : object
        None is a missing cell. Floats are shown with six significant digits, counts by word as the number of words.
    longest : int or None, default 40
        Number of characters after which the text is cut; None for no limit.

    Examples
    --------
    >>> cell_text(True), cell_text(1.0), cell_text(None), cell_text("a" * 50)
    ('true', '1', 'missing', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…')
    """
    if cell is None:
        return "missing"
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    if isinstance(cell, Mapping):
        return plural(sum(cell.values()), "word")
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text if longest is None else shortened(text, longest)


def escaped(text: str) -> str:
    r"""Replace characters that a terminal would not print, such as line ends, by their escape sequences.

    Examples
    --------
    >>> print(escaped("two\nlines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, longest: int) -> str:
    """Cut a text to a number of characters, the last one an ellipsis.

    Examples
    --------
    >>> shortened("penguin", 7), shortened("penguins", 7)
    ('penguin', 'pengui…')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shorten(value: Any) -> str:
    """Return a name, a cell or a label as text that is short enough for a figure."""
    return cell_text(value, longest=_LONGEST_NAME)
