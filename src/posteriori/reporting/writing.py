"""Formatting of numbers, names and lists for display."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LONGEST = 40  # characters of a cell
_NARROW = "\N{NARROW NO-BREAK SPACE}"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with the given significant digits, without an exponent if it is not too long.

    Examples
    --------
    >>> number(3.14159), number(1234567.0), number(1e-9), number(-2.5), number(None)
    ('3.142', '1,234,567', '1e-09', '−2.5', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if -4 < magnitude < max(9, digits):
        text = f"{value:,.{max(digits - 1 - magnitude, 0)}f}"
        if magnitude < 4:  # a year has no comma
            text = text.replace(",", "")
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−", 1) if value < 0 else text


def count(value: float) -> str:
    """Format a number of rows, which may be a sum of weights.

    Examples
    --------
    >>> count(12345), count(2.5)
    ('12,345', '2.5')
    """
    return f"{round(value):,}" if abs(value - round(value)) < 1e-9 else number(value)


def percent(share: float | None) -> str:
    """Format a share of 1 as a percentage; only exactly 0 and 1 are shown as 0 % and 100 %.

    Examples
    --------
    >>> [percent(share).replace(_NARROW, " ") for share in (0.123, 0.9999, 1e-5, 1.0, 0.04321)]
    ['12 %', '> 99.9 %', '< 0.1 %', '100 %', '4.3 %']
    """
    if share is None or not math.isfinite(share):
        return "–"
    if share in (0.0, 1.0) or 0.0995 <= share < 0.985:
        return f"{100.0 * share:.0f}{_NARROW}%"
    if share < 0.0005:
        return f"<{_NARROW}0.1{_NARROW}%"
    return f"{100.0 * share:.1f}{_NARROW}%" if share < 0.9995 else f">{_NARROW}99.9{_NARROW}%"


def times(factor_in_nats: float) -> str:
    """Format a factor of at least 1, given its natural logarithm.

    Examples
    --------
    >>> times(0.0), times(1.0), times(8.0), times(100.0), times(float("inf"))
    ('× 1.0', '× 2.7', '× 3,000', '× over a million', 'excludes the other')
    """
    if math.isinf(factor_in_nats):
        return "excludes the other"
    if factor_in_nats > math.log(1e6):
        return "× over a million"
    factor = math.exp(factor_in_nats)
    if factor < 9.95:
        return f"× {factor:.1f}"
    return f"× {float(f'{factor:.2g}'):,.0f}"


def cell_text(cell: Any) -> str:
    """Format a cell or a label as in a file, cut to 40 characters.

    Examples
    --------
    >>> cell_text(True), cell_text(1.0), cell_text(None), cell_text("a" * 50)
    ('true', '1', 'missing', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…')
    """
    if cell is None:
        return "missing"
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    text = f"{cell:.6g}" if isinstance(cell, float) else str(cell)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def listed(words: list[str], most: int = 8) -> str:
    """Join words with commas, and the last one with "and".

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a', 'a, b and c', 'a, b and 1 more')
    """
    shown = words if len(words) <= most else [*words[:most], f"{len(words) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def plural(amount: float, noun: str) -> str:
    """Format an amount with its noun in singular or plural.

    Examples
    --------
    >>> plural(1, "row"), plural(1200, "row"), plural(2, "class")
    ('1 row', '1,200 rows', '2 classes')
    """
    ending = "" if amount == 1 else "es" if noun.endswith("s") else "s"
    return f"{count(amount)} {noun}{ending}"
