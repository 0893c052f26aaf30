"""Kinds of columns that only their cells show: dates, and identifiers of rows."""

from __future__ import annotations

import functools
import operator
from abc import ABC
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.messages import IgnoredColumnWarning, UnseenCategoryError, quote
from posteriori.tables.partitioned import PartitionedTable, add
from posteriori.tables.polars import LazyTable, PolarsTable, StreamedTable
from posteriori.tables.schema import Column, categorical_column
from posteriori.tables.table import Table
from posteriori.tables.times import CATEGORIES, PARTS, DatePart, TimesSeen, TimeType, parts_of
from posteriori.user_warnings import warn

T = TypeVar("T")

_ROWS = 1 << 16  # that are read at a time


class Look(ABC, Generic[T]):
    """A search of some columns, as a task of a partition, whose result is None if it has no rows.

    A subclass defines `of_rows`, or `at` if it does not look at all rows. Results have +.
    """

    def of_rows(self, table: Table, columns: Sequence[int], rows: slice) -> T:
        """Return the result for some rows of a table in memory."""
        raise NotImplementedError

    def at(self, table: Table, columns: Sequence[int]) -> T:
        """Return the result for a table in memory."""
        starts = range(0, table.n_rows, _ROWS) or (0,)
        slices = (slice(start, min(start + _ROWS, table.n_rows)) for start in starts)
        total: T = functools.reduce(operator.add, (self.of_rows(table, columns, rows) for rows in slices))
        return total

    def __call__(self, tables: Iterable[Table], context: None) -> T | None:
        """Return the result for the tables of a partition."""
        del context
        total: T | None = None
        for table in tables:
            total = add(total, self.at(table, range(len(table.names))))
        return total


def fold_rows(table: Table, look: Look[T], columns: Sequence[int]) -> T:
    """Search all rows of some columns of a table, in one pass, wherever its rows are."""
    if isinstance(table, PartitionedTable):
        return cast(T, table.fold(look, columns))  # an error if no partition has a row
    if isinstance(table, StreamedTable):
        parts: Any = table.frames([table.names[j] for j in columns])
        total: T = functools.reduce(operator.add, (look.at(PolarsTable(part), range(len(columns))) for part in parts))
        return total
    return look.at(table, columns)


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
        warn(f"{quote(ignored)} {verb} ignored ({reasons})", IgnoredColumnWarning)
    return columns


def _columns_of(table: Table, j: int, type_: TimeType, seen: TimesSeen | None, dates: Parts) -> tuple[Column, ...]:
    name, label = table.names[j], table.data_type(j)
    whole = DatePart(name, "", type_)
    if seen is None:
        return (Column(name, "ignored", dtype=label, reason=f'it holds {type_.title}, and dates="ignore"', part=whole),)
    parts = parts_of(name, type_, seen, None if isinstance(dates, str) else dates)
    if parts:
        marks = table.marks(name) if isinstance(table, LazyTable) else ()
        return tuple(replace(_column(part, label, seen), marks=marks) for part in parts)
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
    """Summarise columns of times, by their positions, in one pass.

    Raises UnseenCategoryError if the table is a scan of which only the first rows are to be read.
    """
    if not types:
        return {}
    if getattr(table, "from_first_rows", False):
        raise UnseenCategoryError("the range of dates takes a pass over all rows")
    total = fold_rows(table, _LookAtTimes(tuple(types.values())), list(types))
    return dict(zip(types, total.columns, strict=True))


@dataclass(frozen=True)
class _SeenInColumns:
    """Summary of several columns in some rows; + adds the rows of both."""

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


FEWEST_CELLS = 20  # present cells; in fewer, values that do not repeat may be chance
UNSEEN_SHARE = 0.9  # of new rows, above which a column of categories is an identifier
_HEAD_ROWS = 1000  # rows after which most columns are no longer candidates
_MOST_VALUES = 1 << 16  # distinct values that are counted; of more, a random subset is


class IdentifierEvidence(Protocol):
    """Evidence of some rows that a column is an identifier; + adds the rows that follow."""

    def __add__(self, other: Any) -> Any: ...

    @property
    def reason(self) -> str:
        """Why the column is an identifier of these rows; empty if it is not."""


@dataclass(frozen=True)
class Occurrences:
    """How often each value of a categorical column occurs.

    Values are represented by hashes of 64 bits. If there are very many, only those are kept whose hash ends in `level`
    zeros: a random subset of the values, with exact counts (Gibbons 2001, distinct sampling), so that memory is
    bounded. The subset depends only on the values, so + is exact, associative and commutative.

    References
    ----------
    Gibbons, Distinct sampling for highly-accurate answers to distinct values queries, VLDB 2001.
    """

    # (K,): each distinct value that is kept, in ascending order, and the number of cells that hold it
    hashes: Array
    counts: Array
    n_cells: int  # of all values
    level: int = 0

    @classmethod
    def of(cls, hashes: Array) -> Occurrences:
        """Return the occurrences in cells (n,), given as hashes."""
        distinct, counts = np.unique(hashes, return_counts=True)
        return cls(distinct, counts, len(hashes))._bounded()

    def __add__(self, other: Occurrences) -> Occurrences:
        level = max(self.level, other.level)
        one, two = self._at(level), other._at(level)
        both = np.concatenate([one.hashes, two.hashes])
        distinct, position = np.unique(both, return_inverse=True)
        counts = np.zeros(len(distinct), np.int64)
        np.add.at(counts, position, np.concatenate([one.counts, two.counts]))
        return Occurrences(distinct, counts, self.n_cells + other.n_cells, level)._bounded()

    def _at(self, level: int) -> Occurrences:
        if level == self.level:
            return self
        kept = self.hashes & np.uint64((1 << level) - 1) == 0
        return Occurrences(self.hashes[kept], self.counts[kept], self.n_cells, level)

    def _bounded(self) -> Occurrences:
        found = self
        while len(found.hashes) > _MOST_VALUES:
            found = found._at(found.level + 1)
        return found

    @property
    def unseen_share(self) -> float:
        """N₁ / n: the share of cells whose value occurs once, which estimates p(a new cell has an unseen value).

        This is the estimate of Good and Turing. Its expectation is the probability that the last of n exchangeable
        cells has a value that the other n − 1 do not have.

        References
        ----------
        Good, The population frequencies of species and the estimation of population parameters, Biometrika 40 (1953).
        """
        return float((self.counts == 1).sum()) / max(1, int(self.counts.sum()))

    @property
    def reason(self) -> str:
        """Why the column is an identifier of these rows; empty if it is not."""
        if self.counts.sum() < FEWEST_CELLS or self.unseen_share < UNSEEN_SHARE:
            return ""
        n_cells, about = self.n_cells, "about " if self.level else ""
        n_values = min(len(self.counts) << self.level, n_cells)  # the first is an estimate, and may be more
        return (
            f"its values hardly repeat ({about}{n_values:,} in {n_cells:,} cells), so that new rows hold values that "
            "training rows do not"
        )


@dataclass(frozen=True)
class RowNumbers:
    """Whether a column of whole numbers numbers the rows.

    Its numbers then ascend or descend strictly. Either at most every second number of their range is absent, or all
    steps are equal, as of a counter that is shared among servers.
    """

    n: int  # the number of present cells
    first: int = 0  # the first of them
    last: int = 0  # the last of them
    # 1 if they ascend strictly, −1 if they descend strictly, 0 if neither. Of a single cell it is 2.
    direction: int = 2
    step: int | None = None  # from each cell to the next one; 0 if it changes, None if there is none

    @classmethod
    def of(cls, numbers: Array) -> RowNumbers:
        """Summarise the present cells (n,), in the order of the rows."""
        if not len(numbers):
            return cls(0)
        first, last = int(numbers[0]), int(numbers[-1])
        if len(numbers) == 1:
            return cls(1, first, last)
        ascends = bool((numbers[1:] > numbers[:-1]).all())
        descends = not ascends and bool((numbers[1:] < numbers[:-1]).all())
        step = int(numbers[1]) - first
        # Whether the ends fit costs nothing, and then no difference overflows.
        is_equal = last - first == step * (len(numbers) - 1) and bool((np.diff(numbers) == step).all())
        return cls(len(numbers), first, last, 1 if ascends else -1 if descends else 0, step if is_equal else 0)

    def __add__(self, other: RowNumbers) -> RowNumbers:
        if not self.n or not other.n:
            some = self if self.n else other
            return replace(some, direction=0) if 0 in (self.direction, other.direction) else some
        between = (other.first > self.last) - (other.first < self.last)
        parts = {one.direction for one in (self, other) if one.direction != 2} | {between}
        steps = {one.step for one in (self, other) if one.step is not None} | {other.first - self.last}
        return RowNumbers(
            self.n + other.n,
            self.first,
            other.last,
            parts.pop() if len(parts) == 1 else 0,
            steps.pop() if len(steps) == 1 else 0,
        )

    @property
    def reason(self) -> str:
        """Why the column is an identifier of these rows; empty if it is not."""
        width = abs(self.last - self.first) + 1
        if self.n < FEWEST_CELLS or self.direction not in (1, -1) or not (self.step or width <= 2 * self.n):
            return ""
        steps = f" in steps of {abs(self.step)}" if self.step and abs(self.step) > 1 else ""
        return f"it numbers the rows, from {self.first} to {self.last}{steps}"


def find_identifiers(table: Table, columns: Sequence[int]) -> dict[int, Column]:
    """Return the columns that identify rows, as ignored columns, by their positions in the table.

    A column of strings or categories is an identifier if at least 90 % of new rows are expected to hold a value that no
    training row holds (`Occurrences`). A column of integers is one if it numbers the rows (`RowNumbers`). Columns with
    fewer than 20 present cells are none, and if all columns would be identifiers, none is.

    Raises
    ------
    UnseenCategoryError
        The table is a scan of which only the first rows are read, and these do not rule out an identifier.

    Notes
    -----
    A column of categories whose first 1,000 rows repeat values more often than that is not read further. Rows of files
    and queries are read up to the first one after which no column can be an identifier; partitions are read once.
    """
    reasons = {j: evidence.reason for j, evidence in _evidence(table, columns).items()}
    return {
        j: Column(table.names[j], "ignored", dtype=table.data_type(j), reason=reason)
        for j, reason in reasons.items()
        if reason
    }


def _evidence(table: Table, columns: Sequence[int]) -> Mapping[int, IdentifierEvidence]:
    if isinstance(table, PartitionedTable):
        return _of_partitions(table, columns)
    if isinstance(table, StreamedTable):
        return _of_stream(table, columns)
    candidates = dict(_read(table, columns, _HEAD_ROWS))
    return dict(_read(table, _left(candidates), None)) if table.n_rows > _HEAD_ROWS else candidates


def _of_stream(table: StreamedTable, columns: Sequence[int]) -> dict[int, IdentifierEvidence]:
    """Read the rows part by part, until no column is left that may identify them."""
    candidates = [j for j in columns if table.holds_identifiers(j)]
    head = next(_parts(table, candidates), None) if candidates else None
    if head is None:
        return {}
    in_head = dict(zip(candidates, _evidence_columns(head, _HEAD_ROWS), strict=True))
    found: dict[int, IdentifierEvidence] = {j: evidence for j, evidence in in_head.items() if evidence is not None}
    left = _left(found)
    if left and getattr(table, "from_first_rows", False):
        raise UnseenCategoryError("a column that may identify rows takes a pass over all of them")
    total: list[IdentifierEvidence | None] = [None] * len(left)
    for part in _parts(table, left) if left else ():
        total = [_joined(one, two) for one, two in zip(total, _evidence_columns(part, None), strict=True)]
        if not _left({j: evidence for j, evidence in zip(left, total, strict=True) if evidence is not None}):
            break
    return {j: evidence for j, evidence in zip(left, total, strict=True) if evidence is not None}


def _parts(table: StreamedTable, columns: Sequence[int]) -> Iterator[Table]:
    return (PolarsTable(frame) for frame in table.frames([table.names[j] for j in columns]))


def _of_partitions(table: PartitionedTable, columns: Sequence[int]) -> dict[int, IdentifierEvidence]:
    """Read every partition once, where it is; only evidence comes back."""
    candidates = [j for j in columns if table.holds_identifiers(j)]
    total: list[IdentifierEvidence | None] = [None] * len(candidates)
    for found in table.run(_evidence_in_partition, candidates) if candidates else ():
        if found is None:  # a partition without rows
            continue
        total = [_joined(one, two) for one, two in zip(total, found, strict=True)]
    return {j: evidence for j, evidence in zip(candidates, total, strict=True) if evidence is not None}


def _evidence_in_partition(tables: Iterable[Table], context: None) -> list[IdentifierEvidence | None] | None:
    del context
    total: list[IdentifierEvidence | None] | None = None
    for table in tables:
        found = _evidence_columns(table, None)
        total = found if total is None else [_joined(one, two) for one, two in zip(total, found, strict=True)]
    return total


def _joined(one: IdentifierEvidence | None, two: IdentifierEvidence | None) -> IdentifierEvidence | None:
    """Return the evidence of both; a column whose type changes between partitions is no identifier."""
    if one is not None and two is not None and type(one) is not type(two):
        return RowNumbers(0, direction=0)
    return add(one, two)


def _evidence_columns(table: Table, n_rows: int | None) -> list[IdentifierEvidence | None]:
    found = dict(_read(table, range(len(table.names)), n_rows))
    return [found.get(j) for j in range(len(table.names))]


def _left(found: Mapping[int, IdentifierEvidence]) -> list[int]:
    """Return the columns that may still be identifiers when more rows follow."""
    return [j for j, evidence in found.items() if _may_identify(evidence)]


def _may_identify(evidence: IdentifierEvidence) -> bool:
    if isinstance(evidence, RowNumbers):
        return evidence.direction != 0
    assert isinstance(evidence, Occurrences)
    return bool(evidence.counts.sum() < FEWEST_CELLS) or bool(evidence.reason)


def _read(table: Table, columns: Iterable[int], n_rows: int | None) -> Iterator[tuple[int, IdentifierEvidence]]:
    """Yield the evidence of the first rows of a table in memory, for each column that has a suitable data type."""
    for j in columns:
        numbers = table.whole_numbers(j, n_rows)
        if numbers is not None:
            yield j, RowNumbers.of(numbers)
            continue
        hashes = table.hashes(j, n_rows)
        if hashes is not None:
            yield j, Occurrences.of(hashes)
