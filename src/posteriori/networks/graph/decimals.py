"""Decimal numbers in network files: reading them, their rounding error, and numbers in errors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from posteriori.typing import Array

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_IN_NUMBERS = re.compile(r"[^0-9.eE+-]")


def as_number(word: str) -> float:
    """Return a decimal number; ValueError for anything else, also for what `float` reads: ``0.2_5``, ``nan``, ``٣``."""
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word!r} is no number")
    return float(word)


def as_numbers(words: Sequence[str], fail: Callable[[str], Exception]) -> list[float]:
    """Return decimal numbers.

    Parameters
    ----------
    words : sequence of str
    fail : callable
        Returns the error to raise, from the first word that is no number.
    """
    if _NOT_IN_NUMBERS.search("".join(words)) is None:
        try:
            return list(map(float, words))
        except ValueError:
            pass  # such as a lone sign; the line below names it
    raise fail(next(word for word in words if not _NUMBER.fullmatch(word)))


def rounding_error(row: Array) -> float:
    """Return the largest change of the sum of a row that the rounding of its numbers can explain.

    The numbers may be rounded to a fixed number of decimals, those of the longest number, or to a fixed number of
    significant digits. Each may be off by one unit in its last place, because some programs truncate.
    """
    written = [Decimal(repr(p)).normalize().as_tuple() for p in row.tolist() if p]
    decimals = max(-int(number.exponent) for number in written)
    significant = max(len(number.digits) for number in written)
    leading = [len(number.digits) + int(number.exponent) - 1 for number in written]
    return max(len(row) * 10.0**-decimals, sum(10.0 ** (first - significant + 1) for first in leading))


def how_to_set(parameter: str, value: float) -> str:
    """Return the advice to set a limit, in the library and on the command line."""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"read the file with {parameter}={shown} (--{parameter.replace('_', '-')} {shown} on the command line)"


def cell_count(size: int) -> str:
    """Format a number of cells; a very large one as a power of ten."""
    return f"{size:,} cells" if size < 10**15 else f"about 1e{math.floor(math.log10(size))} cells"
