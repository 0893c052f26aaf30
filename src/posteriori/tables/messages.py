"""Warnings and errors about the columns of a table, and how sentences name columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable


class IgnoredColumnWarning(UserWarning):
    """A column of the training table is ignored, because it identifies rows or holds no information."""


class ReadingWarning(UserWarning):
    """Cells of a text file were changed to read them, or a column stays text because of a few of its cells."""


class UnseenCategoryError(ValueError):
    """A category occurs that the schema does not hold."""


def quote(names: Iterable[str], most: int = 5) -> str:
    """Write column names for a sentence: column 'a'; columns 'a', 'b' and 3 more."""
    listed = list(names)
    shown = ", ".join(repr(name) for name in itertools.islice(listed, most))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"column{'s' if len(listed) > 1 else ''} {shown}{more}"


def infinite_cell(name: str, value: float, row: int) -> ValueError:
    """Return the error for an infinite cell."""
    return ValueError(
        f"Input X contains infinity: column {name!r} holds {value} in row {row}; "
        "replace it by a number, or by NaN if it is unknown"
    )


def unusable(name: str, dtype: str) -> TypeError:
    """Return the error for a column that holds no numbers and no categories."""
    if dtype.startswith("interval["):
        return holds_intervals(name, dtype)
    return TypeError(
        f"column {name!r} is {dtype}; turn it into a number or a category (a date into its year, say) or drop it"
    )


def holds_intervals(name: str, found: str) -> TypeError:
    """Return the error for intervals of pandas, as `pd.cut` and `pd.qcut` make them."""
    return TypeError(
        f"column {name!r} holds intervals ({found}); make categories of their text: in order by "
        '.cat.rename_categories(str) if pandas.cut or qcut made them, otherwise by .astype("string")'
    )


def not_numeric(name: str, dtype: str) -> ValueError:
    """Return the error for a column of numbers that holds something else after the fit."""
    return ValueError(f"column {name!r} was numeric in training but is {dtype} now; convert it")
