"""Find the columns of a table that identify its rows, and therefore predict nothing of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from posteriori.tables.columns import Column
from posteriori.tables.lazy import StreamedTable
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.partitioned import PartitionedTable, add
from posteriori.tables.polars import PolarsTable
from posteriori.tables.table import Table
from posteriori.typing import Array

FEWEST_CELLS = 20  # present cells; in fewer, values that do not repeat may be chance
UNSEEN_SHARE = 0.9  # of new rows, above which a column of categories is an identifier
_HEAD_ROWS = 1000  # rows after which most columns are no longer candidates
_MOST_VALUES = 1 << 16  # distinct values that are counted; of more, a random subset is


class Evidence(Protocol):
    """What some rows show of a column; + adds the rows that follow."""

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

    Attributes
    ----------
    hashes, counts : ndarray (K,)
        Each distinct value that is kept, in ascending order, and the number of cells that hold it.
    level : int

    References
    ----------
    Gibbons, Distinct sampling for highly-accurate answers to distinct values queries, VLDB 2001.
    """

    hashes: Array
    counts: Array
    level: int = 0

    @classmethod
    def of(cls, hashes: Array) -> Occurrences:
        """Return the occurrences in cells (n,), given as hashes."""
        distinct, counts = np.unique(hashes, return_counts=True)
        return cls(distinct, counts)._bounded()

    def __add__(self, other: Occurrences) -> Occurrences:
        level = max(self.level, other.level)
        one, two = self._at(level), other._at(level)
        both = np.concatenate([one.hashes, two.hashes])
        distinct, position = np.unique(both, return_inverse=True)
        counts = np.zeros(len(distinct), np.int64)
        np.add.at(counts, position, np.concatenate([one.counts, two.counts]))
        return Occurrences(distinct, counts, level)._bounded()

    def _at(self, level: int) -> Occurrences:
        if level == self.level:
            return self
        kept = self.hashes & np.uint64((1 << level) - 1) == 0
        return Occurrences(self.hashes[kept], self.counts[kept], level)

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
        n_values, n_cells = len(self.counts) << self.level, int(self.counts.sum()) << self.level
        about = "about " if self.level else ""
        return (
            f"its values hardly repeat ({about}{n_values:,} in {n_cells:,} cells), so that new rows hold values that "
            "training rows do not"
        )


@dataclass(frozen=True)
class RowNumbers:
    """Whether a column of whole numbers numbers the rows.

    Its numbers then ascend or descend strictly, and at most every second number of their range is absent.

    Attributes
    ----------
    n : int
        The number of present cells.
    first, last : int
        The first and the last of them.
    direction : int
        1 if they ascend strictly, −1 if they descend strictly, 0 if neither. Of a single cell it is 2.
    """

    n: int
    first: int = 0
    last: int = 0
    direction: int = 2

    @classmethod
    def of(cls, numbers: Array) -> RowNumbers:
        """Return what the present cells (n,) show, in the order of the rows."""
        if not len(numbers):
            return cls(0)
        first, last = int(numbers[0]), int(numbers[-1])
        if len(numbers) == 1:
            return cls(1, first, last)
        ascends = bool((numbers[1:] > numbers[:-1]).all())
        descends = not ascends and bool((numbers[1:] < numbers[:-1]).all())
        return cls(len(numbers), first, last, 1 if ascends else -1 if descends else 0)

    def __add__(self, other: RowNumbers) -> RowNumbers:
        if not self.n or not other.n:
            some = self if self.n else other
            return replace(some, direction=0) if 0 in (self.direction, other.direction) else some
        between = (other.first > self.last) - (other.first < self.last)
        parts = {one.direction for one in (self, other) if one.direction != 2} | {between}
        return RowNumbers(self.n + other.n, self.first, other.last, parts.pop() if len(parts) == 1 else 0)

    @property
    def reason(self) -> str:
        """Why the column is an identifier of these rows; empty if it is not."""
        width = abs(self.last - self.first) + 1
        if self.n < FEWEST_CELLS or self.direction not in (1, -1) or width > 2 * self.n:
            return ""
        return f"it numbers the rows, from {self.first} to {self.last}"


def find_identifiers(table: Table, columns: Sequence[int]) -> dict[int, Column]:
    """Return the columns that identify rows, as ignored columns, by their positions in the table.

    A column of strings or categories is an identifier if at least 90 % of new rows are expected to hold a value that no
    training row holds (`Occurrences`). A column of integers is one if it numbers the rows (`RowNumbers`). Columns with
    fewer than 20 present cells are none, and if all columns would be identifiers, none is.

    Parameters
    ----------
    table : Table
    columns : sequence of int
        The positions to judge.

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


def _evidence(table: Table, columns: Sequence[int]) -> Mapping[int, Evidence]:
    if isinstance(table, PartitionedTable):
        return _of_partitions(table, columns)
    if isinstance(table, StreamedTable):
        return _of_stream(table, columns)
    candidates = dict(_read(table, columns, _HEAD_ROWS))
    return dict(_read(table, _left(candidates), None)) if table.n_rows > _HEAD_ROWS else candidates


def _of_stream(table: StreamedTable, columns: Sequence[int]) -> dict[int, Evidence]:
    """Read the rows part by part, until no column is left that may identify them."""
    candidates = [j for j in columns if table.holds_identifiers(j)]
    head = next(_parts(table, candidates), None) if candidates else None
    if head is None:
        return {}
    in_head = dict(zip(candidates, _columns_of(head, _HEAD_ROWS), strict=True))
    found: dict[int, Evidence] = {j: evidence for j, evidence in in_head.items() if evidence is not None}
    left = _left(found)
    if left and getattr(table, "from_first_rows", False):
        raise UnseenCategoryError("a column that may identify rows takes a pass over all of them")
    total: list[Evidence | None] = [None] * len(left)
    for part in _parts(table, left) if left else ():
        total = [_joined(one, two) for one, two in zip(total, _columns_of(part, None), strict=True)]
        if not _left({j: evidence for j, evidence in zip(left, total, strict=True) if evidence is not None}):
            break
    return {j: evidence for j, evidence in zip(left, total, strict=True) if evidence is not None}


def _parts(table: StreamedTable, columns: Sequence[int]) -> Iterator[Table]:
    return (PolarsTable(frame) for frame in table.frames([table.names[j] for j in columns]))


def _of_partitions(table: PartitionedTable, columns: Sequence[int]) -> dict[int, Evidence]:
    """Read every partition once, where it is; only evidence comes back."""
    candidates = [j for j in columns if table.holds_identifiers(j)]
    total: list[Evidence | None] = [None] * len(candidates)
    for found in table.run(_evidence_in_partition, candidates) if candidates else ():
        if found is None:  # a partition without rows
            continue
        total = [_joined(one, two) for one, two in zip(total, found, strict=True)]
    return {j: evidence for j, evidence in zip(candidates, total, strict=True) if evidence is not None}


def _evidence_in_partition(tables: Iterable[Table], context: None) -> list[Evidence | None] | None:
    del context
    total: list[Evidence | None] | None = None
    for table in tables:
        found = _columns_of(table, None)
        total = found if total is None else [_joined(one, two) for one, two in zip(total, found, strict=True)]
    return total


def _joined(one: Evidence | None, two: Evidence | None) -> Evidence | None:
    """Return the evidence of both; a column whose type changes between partitions is no identifier."""
    if one is not None and two is not None and type(one) is not type(two):
        return RowNumbers(0, direction=0)
    return add(one, two)


def _columns_of(table: Table, n_rows: int | None) -> list[Evidence | None]:
    found = dict(_read(table, range(len(table.names)), n_rows))
    return [found.get(j) for j in range(len(table.names))]


def _left(found: Mapping[int, Evidence]) -> list[int]:
    """Return the columns that may still be identifiers when more rows follow."""
    return [j for j, evidence in found.items() if _may_identify(evidence)]


def _may_identify(evidence: Evidence) -> bool:
    if isinstance(evidence, RowNumbers):
        return evidence.direction != 0
    assert isinstance(evidence, Occurrences)
    return bool(evidence.counts.sum() < FEWEST_CELLS) or bool(evidence.reason)


def _read(table: Table, columns: Iterable[int], n_rows: int | None) -> Iterator[tuple[int, Evidence]]:
    """Yield the evidence of the first rows of a table in memory, for each column that has a suitable data type."""
    for j in columns:
        numbers = table.whole_numbers(j, n_rows)
        if numbers is not None:
            yield j, RowNumbers.of(numbers)
            continue
        hashes = table.hashes(j, n_rows)
        if hashes is not None:
            yield j, Occurrences.of(hashes)
