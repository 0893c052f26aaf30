"""Formatting that only reports need: typographic numbers, percentages and factors."""

from __future__ import annotations

import math

from posteriori import formatting

_NARROW = "\N{NARROW NO-BREAK SPACE}"


def number(value: float | None, digits: int = 4, grouped: bool = False) -> str:
    """Format a number with commas between thousands and a typographic minus sign.

    Numbers below 10,000 have commas only if `grouped`: alone they may be years, beside a larger number they are not.

    Examples
    --------
    >>> number(3.14159), number(1234567.0), number(1e-9), number(-2.5), number(None)
    ('3.142', '1,234,567', '1e-09', '−2.5', '–')
    >>> number(2026.0), number(-5404.0, grouped=True)
    ('2026', '−5,404')
    """
    text = formatting.number(value, digits, separator=",")
    if grouped and value is not None and 1000.0 <= abs(value) < 10_000.0 and "," not in text:
        start = 1 if value < 0 else 0
        text = f"{text[: start + 1]},{text[start + 1 :]}"
    return f"\N{MINUS SIGN}{text[1:]}" if text.startswith("-") else text


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


def signed(value: float) -> str:
    """Format a difference with its sign.

    Examples
    --------
    >>> signed(0.25), signed(-0.25), signed(0.0)
    ('+0.25', '−0.25', '0')
    """
    return f"+{number(value, 3)}" if value > 0 else number(value, 3)


def points(share: float) -> str:
    """Format a difference of shares in percentage points.

    Examples
    --------
    >>> points(0.125), points(-0.02)
    ('+12.5', '−2.0')
    """
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def p_text(p: float, phrase: bool = False) -> str:
    """Format a p-value, in a phrase with its relation.

    Examples
    --------
    >>> p_text(0.5), p_text(0.001), p_text(1e-9), p_text(0.5, phrase=True), p_text(1e-9, phrase=True)
    ('0.50', '0.001', '< 10⁻⁶', '= 0.50', '< 10⁻⁶')
    """
    if p < 1e-6:
        return "< 10⁻⁶"
    text = f"{p:.1g}" if p < 0.01 else f"{p:.2f}"
    return f"= {text}" if phrase else text
