"""Tables whose rows are not in memory: each pass reads them where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from posteriori.tables.frames import PolarsTable, cells_tell
from posteriori.tables.schema import Column, Schema
from posteriori.tables.table import Table
from posteriori.typing import Array

_CODED_ROWS = 1 << 17  # at a time


class LazyTable(ABC):
    """A table whose columns are known and whose rows are read in passes.

    What a column is follows from its data type, except for categories that only the cells tell: one pass finds those
    of all columns that need it (`look`).
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
    def _cells_tell(self, j: int, categorical: bool) -> bool:
        """Return whether the cells of column j have to be seen to know its categories."""

    @abstractmethod
    def _find_distinct(self, names: Sequence[str]) -> Mapping[str, Table]:
        """Return the distinct cells of some columns, each as a table in memory of one column, from one pass."""

    @abstractmethod
    def _without_rows(self, j: int) -> Table:
        """Return column j without its rows, as a table in memory of one column."""

    @abstractmethod
    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return columns of some rows as codes, two bytes or one a cell, and how many cells no category matches."""

    @cached_property
    def _distinct(self) -> dict[str, Table]:
        return {}

    def look(self, positions: Iterable[int], categorical: Collection[int] = (), target: str | None = None) -> None:
        """Find the categories of some columns in one pass, those that their data type does not say."""
        wanted = [self.names[j] for j in positions if self._cells_tell(j, j in categorical)]
        self._look([*wanted, target] if target in self.names and target not in wanted else wanted)

    def cells(self, j: int) -> Table:
        """Return the distinct cells of column j as a table of one column."""
        self._look([self.names[j]])
        return self._distinct[self.names[j]]

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        return self.cells(j).distinct(0)

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j; categorical says that it is to be so whatever its data type."""
        if self._cells_tell(j, categorical):
            return self.cells(j).column(0, categorical or self._is_stated(j))
        return self._without_rows(j).column(0, categorical)

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Raise ValueError: numbers are read part by part."""
        del columns, schema_columns, rows
        raise ValueError(f"this takes all rows of {self._listed} at once; read them into memory")

    def target_or(self, y: Any) -> Any:
        """Return the labels that were asked for, or the target where none were.

        Raises
        ------
        ValueError
            Both name a column, and not the same.
        """
        if y is None:
            return self.target
        if isinstance(y, str) and self.target is not None and y != self.target:
            raise ValueError(f"y names {y!r} but the target of the scan is {self.target!r}; leave one of them out")
        return y

    @property
    def _listed(self) -> str:
        """What the rows are called in a message."""
        return "X"

    def _is_stated(self, j: int) -> bool:
        """Return whether column j is categorical because a person said so."""
        del j
        return False

    def _look(self, names: Sequence[str | None]) -> None:
        wanted = [name for name in names if name is not None and name not in self._distinct]
        if wanted:
            self._distinct.update(self._find_distinct(wanted))


class StreamedTable(LazyTable):
    """A lazy table whose rows come to this process, part after part, as polars frames.

    Attributes
    ----------
    types : dict
        The polars data type of each column.
    categorical : frozenset of str
        The columns of numbers that are categories all the same.
    """

    types: dict[str, pl.DataType]
    categorical: frozenset[str]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.types)

    @abstractmethod
    def _frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield some columns of all rows, in their order."""

    @abstractmethod
    def changed(self) -> ValueError:
        """Return the error that the rows are not those that were scanned."""

    def parts(self, slices: Sequence[slice], columns: Sequence[int]) -> Iterator[PolarsTable]:
        """Yield some columns of some rows, slices that follow one another from the first row to the last.

        Each part counts its rows from where it begins, so that it is asked for them by the same slice.

        Raises
        ------
        OSError, ValueError
            What is read is gone, is damaged, or has changed since it was scanned.
        """
        frames = self._frames([self.names[j] for j in columns])
        held: list[pl.DataFrame] = []
        for rows in slices:
            wanted = rows.stop - rows.start
            have = sum(frame.height for frame in held)
            while have < wanted:
                frame = next(frames, None)
                if frame is None:
                    raise self.changed()
                held.append(frame)
                have += frame.height
            joined = held[0] if len(held) == 1 else pl.concat(held, rechunk=False)
            yield PolarsTable(joined[:wanted], first=rows.start)  # in one piece or several
            held = [joined[wanted:]]
        if any(frame.height for frame in (*held, *frames)):
            raise self.changed()

    def _is_stated(self, j: int) -> bool:
        return self.names[j] in self.categorical

    def _cells_tell(self, j: int, categorical: bool) -> bool:
        return cells_tell(self.types[self.names[j]], categorical or self._is_stated(j))

    def _without_rows(self, j: int) -> PolarsTable:
        return PolarsTable(pl.DataFrame(schema={self.names[j]: self.types[self.names[j]]}))

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return columns of some rows as codes, two bytes or one a cell, and how many cells no category matches."""
        positions = list(range(len(columns)))
        starts = range(0, self.n_rows, _CODED_ROWS)
        slices = [slice(start, min(start + _CODED_ROWS, self.n_rows)) for start in starts]
        tiles, unseen = [], dict[str, int]()
        for part, one in zip(self.parts(slices, columns), slices, strict=True):
            tile, strange = part.codes(positions, schema, schema_columns, one)
            tiles.append(tile)
            for name, count in strange.items():
                unseen[name] = unseen.get(name, 0) + count
        return np.concatenate(tiles)[rows], unseen


def too_many_categories(name: str, most: int) -> ValueError:
    """Return the error that a column has more categories than codes."""
    return ValueError(
        f"column {name!r} has more than {most:,} categories; "
        "leave it out (is it an identifier?) or group its rare values"
    )
