"""Find the columns of dates, times of day and durations of a table, and the parts that a model reads of them."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from posteriori.tables.columns import Column, categorical_column
from posteriori.tables.folding import Look, fold_rows
from posteriori.tables.messages import IgnoredColumnWarning, UnseenCategoryError, quote
from posteriori.tables.parts import CATEGORIES, PARTS, DatePart, TimesSeen, parts_of
from posteriori.tables.table import Table
from posteriori.tables.times import TimeType

Parts = str | Sequence[str]  # "parts", "ignore", or the names of parts


def check_dates(dates: Parts) -> None:
    """Raise ValueError unless a parameter `dates` is "parts", "ignore" or a list of parts."""
    if isinstance(dates, str):
        if dates not in ("parts", "ignore"):
            raise ValueError(f'dates is {dates!r}; give "parts", "ignore" or a list of {", ".join(PARTS)}')
        return
    unknown = [part for part in dates if part not in PARTS]
    if unknown or not dates:
        found = f"dates names {unknown[0]!r}" if unknown else "dates is empty"
        raise ValueError(f"{found}; name some of {', '.join(PARTS)}")


def find_dates(
    table: Table, positions: Sequence[int], dates: Parts, categorical: Collection[int] = ()
) -> dict[int, tuple[Column, ...]]:
    """Return the columns that a model has instead of each column of times of a table, by their positions in the table.

    Parameters
    ----------
    table : Table
    positions : sequence of int
        The columns to look at.
    dates : "parts", "ignore" or sequence of str
        "parts" chooses the parts that have several values; a sequence names the parts, whatever their values.
    categorical : collection of int
        The columns that the user declared as categorical.

    Raises
    ------
    ValueError
        A column of times is declared as categorical, or a column of the table has the name of a part.

    Warns
    -----
    IgnoredColumnWarning
        A column of times has no part to read.
    """
    check_dates(dates)
    found = {j: type_ for j in positions if (type_ := table.time_type(j)) is not None}
    declared = next((j for j in found if j in categorical), None)
    if declared is not None:
        name, title = table.names[declared], found[declared].title
        raise ValueError(
            f"column {name!r} holds {title}, which are read as parts (dates=…), and is named as categorical; leave it "
            "out there, or convert it to strings"
        )
    seen = {} if dates == "ignore" else see_times(table, found)
    columns = {j: _columns_of(table, j, type_, seen.get(j), dates) for j, type_ in found.items()}
    names = {table.names[j] for j in positions}
    twice = next(
        (one.name for parts in columns.values() for one in parts if one.name in names and not one.is_ignored), None
    )
    if twice is not None:
        raise ValueError(f"column {twice!r} has the name of a part of a column of dates; rename one of the two")
    ignored = {column.name: column.reason for of_one in columns.values() for column in of_one if column.is_ignored}
    if ignored and dates != "ignore":
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in ignored.items())
        verb = "are" if len(ignored) > 1 else "is"
        warnings.warn(f"{quote(ignored)} {verb} ignored ({reasons})", IgnoredColumnWarning, stacklevel=7)
    return columns


def _columns_of(table: Table, j: int, type_: TimeType, seen: TimesSeen | None, dates: Parts) -> tuple[Column, ...]:
    name, label = table.names[j], table.data_type(j)
    whole = DatePart(name, "", type_)
    if seen is None:
        return (Column(name, "ignored", dtype=label, reason=f'it holds {type_.title}, and dates="ignore"', part=whole),)
    parts = parts_of(name, type_, seen, None if isinstance(dates, str) else dates)
    if parts:
        return tuple(_column(part, label, seen) for part in parts)
    if seen.lowest is None:
        reason = f"none of its {type_.title} is present"
    elif isinstance(dates, str):
        reason = f"its {type_.title} do not differ in what is read of them"
    else:
        reason = f"{type_.title} have none of the parts {', '.join(dates)}"
    return (Column(name, "ignored", dtype=label, reason=reason, part=whole),)


def _column(part: DatePart, label: str, seen: TimesSeen) -> Column:
    name = f"{part.of}.{part.name}"
    if part.is_number:
        return Column(name, "continuous", dtype=label, part=part)
    known = CATEGORIES.get(part.name)
    categories = sorted(seen.of_part[part.name]) if known is None else known
    return replace(categorical_column(name, categories, label, declared=known is not None), part=part)


def extended_dates(table: Table, known: Mapping[int, tuple[Column, ...]]) -> dict[int, tuple[Column, ...]]:
    """Return the columns of a model for the rows of another table: the same ones, with the years of that table."""
    with_years = {
        j: column.part.type
        for j, columns in known.items()
        for column in columns
        if column.part is not None and column.part.name == "year"
    }
    seen = see_times(table, with_years)

    def of_table(j: int, column: Column) -> Column:
        if column.part is None or column.part.name != "year":
            return column
        found = categorical_column(column.name, sorted(seen[j].of_part["year"]), column.dtype)
        return replace(found, part=column.part)

    return {j: tuple(of_table(j, column) for column in columns) for j, columns in known.items()}


def see_times(table: Table, types: Mapping[int, TimeType]) -> dict[int, TimesSeen]:
    """Return what the rows show of columns of times, by their positions, in one pass.

    Raises
    ------
    UnseenCategoryError
        The table is a scan of which only the first rows are to be read.
    """
    if not types:
        return {}
    if getattr(table, "from_first_rows", False):
        raise UnseenCategoryError("the range of dates takes a pass over all rows")
    total = fold_rows(table, _LookAtTimes(tuple(types.values())), list(types))
    return dict(zip(types, total.columns, strict=True))


@dataclass(frozen=True)
class _SeenInColumns:
    """What some rows show of several columns; + adds the rows of both."""

    columns: tuple[TimesSeen, ...]

    def __add__(self, other: _SeenInColumns) -> _SeenInColumns:
        return _SeenInColumns(tuple(map(operator.add, self.columns, other.columns)))


@dataclass(frozen=True)
class _LookAtTimes(Look[_SeenInColumns]):
    """A task that looks at columns of times."""

    types: tuple[TimeType, ...]

    def of_rows(self, table: Table, columns: Sequence[int], rows: slice) -> _SeenInColumns:
        pairs = zip(columns, self.types, strict=True)
        return _SeenInColumns(tuple(TimesSeen.of(table.times(j, type_, rows), type_) for j, type_ in pairs))
