"""Numbers with a currency, a percent sign or separators of thousands, such as $1,000, 1.234,50 € and 12 %."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from posteriori.lazy_polars import pl
from posteriori.tables.dialects import CURRENCY

_SPACE = "[  \u202f]"
_GROUP = {".": "[,'’  \u202f]", ",": "[.'’  \u202f]"}  # between thousands, by decimal mark


# For type checkers a data type of polars. At run time it is none, because polars is imported when it is first used.
_DataType: Any = pl.String if TYPE_CHECKING else object


@dataclass(frozen=True)
class WrittenNumber(_DataType):
    """The type of a text column of written numbers: it is read as strings, which `as_number` converts."""

    decimal: str


def _pattern(decimal: str, parts: tuple[str, str, str] = ("", "", "")) -> str:
    """Return the pattern of a written number, with groups around the signs before, the number and the unit behind."""
    number = rf"(?:\d{{1,3}}(?:{_GROUP[decimal]}\d{{3}})+|\d+)(?:[{decimal}]\d+)?"
    before, behind = rf"(?:{CURRENCY})?", rf"(?:{CURRENCY}|%)?"
    open_group = [f"(?P<{name}>" if name else "(?:" for name in parts]
    return (
        rf"^{_SPACE}*[+-]?{_SPACE}*{open_group[0]}{before}){_SPACE}*[+-]?{open_group[1]}{number}){_SPACE}*"
        rf"{open_group[2]}{behind}){_SPACE}*$"
    )


def is_written_number(cells: pl.Expr, decimal: str) -> pl.Expr:
    """Return whether each string is a number, possibly with a unit and separators of thousands."""
    return cells.str.contains(_pattern(decimal))


def holds_written_numbers(cells: pl.Expr, decimal: str) -> pl.Expr:
    """Return whether all present strings of a column are numbers with one unit, or with separators of thousands."""
    units = [
        cells.str.extract(_pattern(decimal, (*([""] * place), "unit", *([""] * (2 - place)))))  # type: ignore[arg-type]
        for place in (0, 2)
    ]
    unit = pl.concat_str([part.fill_null("") for part in units])
    stated = unit.filter(cells.is_not_null() & (unit != ""))
    return is_written_number(cells, decimal).all() & (cells.count() > 0) & (stated.n_unique() <= 1)


def as_number(cells: pl.Expr, decimal: str) -> pl.Expr:
    """Return written numbers as floats; another string is an error of polars that names it."""
    digits = cells.str.replace_all(rf"[^0-9{decimal}+-]", "").str.replace(",", ".", literal=True)
    return pl.when(is_written_number(cells, decimal)).then(digits).otherwise(cells).cast(pl.Float64)


def without_marker(dtype: Any) -> Any:
    """Return the type of the cells that are read: Float64 for written numbers."""
    return pl.Float64() if isinstance(dtype, WrittenNumber) else dtype
