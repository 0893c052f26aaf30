"""Tables whose rows are not in memory: each pass reads them where they are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.lazy_polars import pl
from posteriori.tables.columns import Column
from posteriori.tables.polars import PolarsTable, needs_cells
from posteriori.tables.schema import Schema
from posteriori.tables.table import Table
from posteriori.tables.times import TimeType
from posteriori.typing import Array

_CODED_ROWS = 1 << 17  # rows that are encoded at a time


class LazyTable(ABC):
    """A table whose columns are known and whose rows are read in passes.

    The data type of a column gives its kind. Where it does not give the categories, one pass finds those of all
    columns (`find_categories`).
    """

    container: str = "polars"
    named: bool = True
    dtype: str = ""
    target: str | None = None

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The column names."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""

    @abstractmethod
    def find_distinct(self, names: Sequence[str]) -> Mapping[str, Table]:
        """Return the distinct cells of some columns from one pass, per column as a table in memory of that column."""

    @abstractmethod
    def empty_column(self, j: int) -> Table:
        """Return column j without rows, as a table in memory of one column."""

    @abstractmethod
    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return columns of some rows as codes (`Schema.code_dtype`), and the number of unseen cells per column."""

    @cached_property
    def _distinct(self) -> dict[str, Table]:
        return {}

    def find_categories(
        self, positions: Iterable[int], categorical: Collection[int] = (), target: str | None = None
    ) -> None:
        """Find the categories of some columns, and of the target, in one pass, except those that data types give."""
        names = [self.names[j] for j in positions if self.needs_cells(j, j in categorical)]
        self._find_cells([*names, target] if target in self.names and target not in names else names)

    def cells(self, j: int) -> Table:
        """Return the distinct cells of column j as a table of one column."""
        self._find_cells([self.names[j]])
        return self._distinct[self.names[j]]

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        return self.cells(j).distinct(0)

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""
        if self.needs_cells(j, categorical):
            return self.cells(j).column(0, categorical or self._is_stated(j))
        return self.empty_column(j).column(0, categorical)

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""
        return self.empty_column(j).data_type(0)

    def holds_identifiers(self, j: int) -> bool:
        """Return whether column j is of strings, integers or Python objects, and not declared as categorical."""
        empty = self.empty_column(j)
        if self._is_stated(j):
            return False
        if empty.data_type(0).lower() == "object":
            return True
        return empty.whole_numbers(0, None) is not None or empty.hashes(0, None) is not None

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Raise ValueError, as `numbers`."""
        return self.numbers([j], [], slice(0, n_rows))

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Raise ValueError, as `numbers`."""
        return self.numbers([j], [], slice(0, n_rows))

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations of column j, from its data type."""
        return self.empty_column(j).time_type(0)

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Raise ValueError, as `numbers`."""
        del wanted
        return self.numbers([j], [], rows)

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Raise ValueError, as `numbers`."""
        self.numbers([j], [], rows)
        return []

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Raise ValueError: only `StreamedTable.parts` and partitions give numbers."""
        del columns, schema_columns, rows
        raise ValueError(f"this takes all rows of {self._listed} at once; read them into memory")

    def target_or(self, y: Any) -> Any:
        """Return y, or the target of the scan where y is None.

        Raises
        ------
        ValueError
            Both name a column, and the names differ.
        """
        if y is None:
            return self.target
        if isinstance(y, str) and self.target is not None and y != self.target:
            raise ValueError(f"y names {y!r} but the target of the scan is {self.target!r}; leave one of them out")
        return y

    @property
    def _listed(self) -> str:
        """The name of the rows in messages."""
        return "X"

    def _is_stated(self, j: int) -> bool:
        """Return whether the user declared column j as categorical."""
        del j
        return False

    def _find_cells(self, names: Sequence[str | None]) -> None:
        unread = [name for name in names if name is not None and name not in self._distinct]
        if unread:
            self._distinct.update(self.find_distinct(unread))


class StreamedTable(LazyTable):
    """A lazy table whose rows come to this process, part by part, as polars frames.

    Attributes
    ----------
    types : dict
        The polars data type of each column.
    categorical : frozenset of str
        The columns of numbers that hold categories.
    """

    types: dict[str, pl.DataType]
    categorical: frozenset[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.types)

    @abstractmethod
    def frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield some columns of all rows, in their order."""

    @abstractmethod
    def changed(self) -> ValueError:
        """Return the error for rows that have changed since they were scanned."""

    def parts(self, slices: Sequence[slice], columns: Sequence[int]) -> Iterator[PolarsTable]:
        """Yield some columns of consecutive slices of rows, from the first row to the last.

        A part knows the number of its first row, so that the slice of the whole table also names its rows in the part.

        Raises
        ------
        OSError, ValueError
            The data is gone, is damaged, or has changed since it was scanned.
        """
        frames = self.frames([self.names[j] for j in columns])
        pending: list[pl.DataFrame] = []  # frames that were read but not yet yielded
        for rows in slices:
            n_rows = rows.stop - rows.start
            n_pending = sum(frame.height for frame in pending)
            while n_pending < n_rows:
                frame = next(frames, None)
                if frame is None:
                    raise self.changed()
                pending.append(frame)
                n_pending += frame.height
            joined = pending[0] if len(pending) == 1 else pl.concat(pending, rechunk=False)  # without copying
            yield PolarsTable(joined[:n_rows], first=rows.start)
            pending = [joined[n_rows:]]
        if any(frame.height for frame in (*pending, *frames)):
            raise self.changed()

    def _is_stated(self, j: int) -> bool:
        return self.names[j] in self.categorical

    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""
        return needs_cells(self.types[self.names[j]], categorical or self._is_stated(j))

    def empty_column(self, j: int) -> PolarsTable:
        """Return column j without rows, as a table in memory of one column."""
        return PolarsTable(pl.DataFrame(schema={self.names[j]: self.types[self.names[j]]}))

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return columns of some rows as codes (`Schema.code_dtype`), and the number of unseen cells per column."""
        positions = list(range(len(columns)))
        starts = range(0, self.n_rows, _CODED_ROWS)
        slices = [slice(start, min(start + _CODED_ROWS, self.n_rows)) for start in starts]
        blocks, unseen = [], Counter[str]()
        for part, part_rows in zip(self.parts(slices, columns), slices, strict=True):
            codes, counts = part.codes(positions, schema, schema_columns, part_rows)
            blocks.append(codes)
            unseen.update(counts)
        return np.concatenate(blocks)[rows], dict(unseen)


def too_many_categories(name: str, most: int) -> ValueError:
    """Return the error for a column that has more categories than codes."""
    return ValueError(
        f"column {name!r} has more than {most:,} categories; "
        "leave it out (is it an identifier?) or group its rare values"
    )
