"""Dask DataFrames and arrays as tables: their partitions are folded on the workers that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import dask
import numpy as np

from posteriori.tables.arrays import ArrayTable, plain_array
from posteriori.tables.frames import pandas_table
from posteriori.tables.partitioned import PartitionedTable, Task, add
from posteriori.tables.table import Table, name_twice
from posteriori.typing import Array

T = TypeVar("T")


class DaskTable(PartitionedTable):
    """A Dask collection: what runs it (threads, or `distributed`'s workers) is Dask's affair.

    A worker that is lost takes no result with it: Dask does its partitions again, elsewhere.
    """

    collection: Any

    def run(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield task(tables, share) of every partition, in their order."""
        yield from dask.compute(*self._results(task, columns, shares))

    def fold(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None = None) -> T:
        """Return the sum of task(tables, share) over all partitions, added up in pairs where they are."""
        left = self._results(task, columns, shares)
        in_turn = dask.delayed(add, pure=False)
        while len(left) > 1:
            left = [in_turn(*left[k : k + 2]) if k + 1 < len(left) else left[k] for k in range(0, len(left), 2)]
        (total,) = dask.compute(left[0])
        if total is None:
            raise ValueError("Found array with 0 sample(s): no partition has a row; give at least one")
        return total

    def _results(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None) -> list[Any]:
        """Return what a task will return of each partition, computed by nobody yet."""
        sent = dask.delayed(_At(task, self._table), pure=False, traverse=False)
        parts = self._parts(columns)
        each = [None] * len(parts) if shares is None else shares
        return [sent(part, dask.delayed(share, traverse=False)) for part, share in zip(parts, each, strict=True)]

    @property
    def _table(self) -> Callable[[Any], Table]:
        """What opens a partition."""
        raise NotImplementedError

    def _parts(self, columns: Sequence[int]) -> list[Any]:
        """Return some columns of each partition as delayed tables."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class DaskFrame(DaskTable):
    """A Dask DataFrame."""

    collection: Any
    container = "pandas"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return pandas_table(self.collection._meta).names

    @cached_property
    def named(self) -> bool:  # type: ignore[override]
        """Whether the columns have names of their own."""
        return pandas_table(self.collection._meta).named

    @property
    def _table(self) -> Callable[[Any], Table]:
        return pandas_table

    @property
    def _narrowest(self) -> Sequence[int]:
        plain = [j for j, dtype in enumerate(self.collection.dtypes) if getattr(dtype, "kind", "O") in "iufb"]
        return plain[:1] or (0,)

    def _parts(self, columns: Sequence[int]) -> list[Any]:
        chosen = [self.collection.columns[j] for j in columns]
        return list(self.collection[chosen].to_delayed())

    def each(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return what a method says of every row as a Dask array; a partition of X makes a block."""
        del title
        nothing = example[:0]
        return self.collection.map_partitions(_say, method, nothing, meta=nothing, enforce_metadata=False)

    def _cells_tell(self, j: int, categorical: bool) -> bool:
        dtype = self.collection.dtypes.iloc[j]
        kind = getattr(dtype, "kind", "O")
        return categorical or kind not in "iufmM"

    def _table_of(self, j: int, cells: list[Any]) -> Table:
        import pandas as pd

        dtype = self.collection._meta.dtypes.iloc[j]
        if isinstance(dtype, pd.CategoricalDtype) and not _is_known(dtype):
            dtype = pd.CategoricalDtype(sorted(cells, key=lambda cell: (isinstance(cell, str), cell)))
        return pandas_table(pd.DataFrame({self.names[j]: pd.Series(cells, dtype=dtype)}))


@dataclass(frozen=True, eq=False)
class DaskArray(DaskTable):
    """A Dask array (n, d), each block of which has all columns."""

    collection: Any
    container = "numpy"
    named = False

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The data type of the array."""
        return np.dtype(self.collection.dtype).str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """x0, x1, …: scikit-learn's names for columns without one."""
        return tuple(f"x{j}" for j in range(self.collection.shape[1]))

    @property
    def _table(self) -> Callable[[Any], Table]:
        return _array_table

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The number of rows of every block."""
        known = self.collection.chunks[0]
        return super().lengths if np.isnan(known).any() else tuple(map(int, known))

    def each(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return what a method says of every row as a Dask array; a block of X makes a block."""
        del title
        nothing, width = example[:0], example.shape[1:]
        return self.collection.map_blocks(
            _say,
            method,
            nothing,
            meta=nothing,
            chunks=(self.collection.chunks[0], *((size,) for size in width)),
            drop_axis=None if width else 1,
        )

    def _parts(self, columns: Sequence[int]) -> list[Any]:
        chosen = self.collection
        if list(columns) != list(range(len(self.names))):
            chosen = chosen[:, list(columns)].rechunk({1: -1})
        return list(chosen.to_delayed().ravel())

    def _cells_tell(self, j: int, categorical: bool) -> bool:
        return categorical or self.collection.dtype.kind not in "iufb"

    def _table_of(self, j: int, cells: list[Any]) -> Table:
        values = np.array(cells, dtype=self.collection.dtype).reshape(-1, 1)
        return ArrayTable(values, self.names[j])


def dask_table(X: Any) -> DaskTable:
    """Open a Dask DataFrame or a Dask array (n, d).

    Raises
    ------
    TypeError
        X is another collection of Dask's.
    ValueError
        X is not two-dimensional, or two columns share a name.
    """
    if hasattr(X, "npartitions") and hasattr(X, "_meta") and getattr(X, "ndim", 0) == 2 and hasattr(X, "columns"):
        twice = name_twice(list(X.columns))
        if twice is not None:
            raise twice
        return DaskFrame(X)
    if hasattr(X, "chunks") and hasattr(X, "to_delayed"):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X is to be a Dask array (n, d)")
        plain_array(np.empty((0, 0), X.dtype), "X")
        return DaskArray(X.rechunk({1: -1}))
    raise TypeError(f"X is a Dask {type(X).__name__}; give a Dask DataFrame, or a Dask array (n, d)")


@dataclass(frozen=True)
class _At:
    """A task, and what opens a partition for it."""

    task: Task[Any]
    opened: Callable[[Any], Table]

    def __call__(self, part: Any, share: Any) -> Any:
        """Return what the task makes of a partition."""
        return self.task([self.opened(part)], share)


def _say(part: Any, method: Callable[[Any], Array], nothing: Array) -> Array:
    """Return what a method says of a partition, which may have no row."""
    return np.asarray(method(part)) if len(part) else nothing


def _array_table(part: Array) -> ArrayTable:
    return ArrayTable(plain_array(part, "X"))


def _is_known(dtype: Any) -> bool:
    """Return whether the categories of a column are known before it is computed."""
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    return UNKNOWN_CATEGORIES not in dtype.categories
