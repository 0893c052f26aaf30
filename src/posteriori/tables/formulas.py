"""Text in CSV files that a spreadsheet would run as a formula."""

from __future__ import annotations

from collections.abc import Iterator

from posteriori.support.lazy_polars import pl
from posteriori.user_warnings import warn

_FORMULA = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?[0-9.,]+([eE][+-]?[0-9]+)?$"


def without_formulas(frames: Iterator[pl.DataFrame], escape: bool) -> Iterator[pl.DataFrame]:
    """Yield frames with an apostrophe before text that spreadsheets run; without `escape`, warn of such text instead.

    Such text starts with =, +, -, @, a tab or a carriage return, and is not a number. Column names are text, too.

    References
    ----------
    OWASP, CSV Injection. https://owasp.org/www-community/attacks/CSV_Injection
    """
    example: str | None = None
    for frame in frames:
        escaped = frame
        for position, cells in enumerate([pl.Series(frame.columns), *frame.get_columns()]):
            if cells.dtype not in (pl.String, pl.Categorical, pl.Enum):
                continue
            text = cells.cast(pl.String)
            distinct = text.unique().drop_nulls()
            risky = distinct.filter(distinct.str.contains(_FORMULA) & ~distinct.str.contains(_NUMBER))
            if not len(risky):
                continue
            example = example or risky[0]
            safe = text.replace(risky, "'" + risky)
            if position:
                escaped = escaped.with_columns(safe.alias(escaped.columns[position - 1]))
            else:
                escaped = escaped.rename(dict(zip(frame.columns, safe, strict=True)))
        yield escaped if escape else frame
    if example is not None and not escape:
        warn(
            f"the predictions hold text that a spreadsheet runs as a formula, such as {example[:60]!r}; to write it "
            "with an apostrophe in front, pass escape_formulas=True (--escape-formulas on the command line)"
        )
