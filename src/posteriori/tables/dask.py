"""Dask DataFrames and arrays as tables: their partitions are folded on the workers that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import dask.base
import numpy as np
from dask.delayed import delayed

from posteriori.support.typing import Array
from posteriori.tables.arrays import ArrayTable, plain_array
from posteriori.tables.pandas import pandas_table
from posteriori.tables.partitioned import PartitionedTable, Task, add
from posteriori.tables.table import Table, name_twice

T = TypeVar("T")

_compute: Callable[..., tuple[Any, ...]] = dask.base.compute  # it has no annotations


class DaskTable(PartitionedTable):
    """A Dask collection, which Dask computes in threads or on the workers of `distributed`.

    If a worker is lost, Dask computes its partitions again on another one.
    """

    collection: Any

    def run(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield task(tables, context) of every partition, in their order."""
        yield from _compute(*self._results(task, columns, contexts))

    def fold(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> T:
        """Return the sum of task(tables, context) over all partitions, added up in pairs where they are."""
        left = self._results(task, columns, contexts)
        add_later = delayed(add, pure=False)
        while len(left) > 1:
            left = [add_later(*left[k : k + 2]) if k + 1 < len(left) else left[k] for k in range(0, len(left), 2)]
        total: T | None
        (total,) = _compute(left[0])
        if total is None:
            raise ValueError("Found array with 0 sample(s): no partition has a row; give at least one")
        return total

    def _results(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None) -> list[Any]:
        """Return the delayed result of a task for each partition."""
        # A task is impure, because the rows of a partition may change; its context has no Dask graph inside.
        run_later = delayed(_TaskOnPartition(task, self._table), pure=False, traverse=False)
        parts = self._parts(columns)
        known = [None] * len(parts) if contexts is None else contexts
        return [run_later(part, delayed(context, traverse=False)) for part, context in zip(parts, known, strict=True)]

    @property
    def _table(self) -> Callable[[Any], Table]:
        """The function that opens a partition."""
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

    def map_rows(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return the result of a method for every row as a Dask array, with one block per partition of X."""
        del title
        empty = example[:0]
        return self.collection.map_partitions(_apply, method, empty, meta=empty, enforce_metadata=False)

    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""
        dtype = self.collection.dtypes.iloc[j]
        kind = getattr(dtype, "kind", "O")
        return categorical or kind not in "iufmM"

    def column_from_cells(self, j: int, cells: list[Any]) -> Table:
        """Return distinct cells of column j as a table in memory of one column, of the type of column j."""
        import pandas as pd

        dtype = self.collection._meta.dtypes.iloc[j]
        if isinstance(dtype, pd.CategoricalDtype) and not _is_known(dtype):
            dtype = pd.CategoricalDtype(sorted(cells, key=lambda cell: (isinstance(cell, str), cell)))
        return pandas_table(pd.DataFrame({self.names[j]: pd.Series(cells, dtype=dtype)}))


@dataclass(frozen=True, eq=False)
class DaskArray(DaskTable):
    """A Dask array (n, d) whose blocks have all columns."""

    collection: Any
    container = "numpy"
    named = False

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The data type of the array."""
        return str(np.dtype(self.collection.dtype).str)

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

    def map_rows(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return the result of a method for every row as a Dask array, with one block per block of X."""
        del title
        empty, width = example[:0], example.shape[1:]
        return self.collection.map_blocks(
            _apply,
            method,
            empty,
            meta=empty,
            chunks=(self.collection.chunks[0], *((size,) for size in width)),
            drop_axis=None if width else 1,
        )

    def _parts(self, columns: Sequence[int]) -> list[Any]:
        chosen = self.collection
        if list(columns) != list(range(len(self.names))):
            chosen = chosen[:, list(columns)].rechunk({1: -1})
        return list(chosen.to_delayed().ravel())

    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""
        return categorical or self.collection.dtype.kind not in "iufb"

    def column_from_cells(self, j: int, cells: list[Any]) -> Table:
        """Return distinct cells of column j as a table in memory of one column, of the type of column j."""
        values = np.array(cells, dtype=self.collection.dtype).reshape(-1, 1)
        return ArrayTable(values, self.names[j])


def dask_table(X: Any) -> DaskTable:
    """Open a Dask DataFrame or a Dask array (n, d).

    Raises TypeError if X is another Dask collection, and ValueError if X is not two-dimensional, or two columns
    share a name.
    """
    if hasattr(X, "npartitions") and hasattr(X, "_meta") and getattr(X, "ndim", 0) == 2 and hasattr(X, "columns"):
        twice = name_twice(list(X.columns))
        if twice is not None:
            raise twice
        return DaskFrame(X)
    if hasattr(X, "chunks") and hasattr(X, "to_delayed"):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X must be a Dask array (n, d)")
        plain_array(np.empty((0, 0), X.dtype), "X")
        return DaskArray(X.rechunk({1: -1}))
    raise TypeError(f"X is a Dask {type(X).__name__}; give a Dask DataFrame, or a Dask array (n, d)")


@dataclass(frozen=True)
class _TaskOnPartition:
    """A task, with the function that opens a partition for it."""

    task: Task[Any]
    open: Callable[[Any], Table]

    def __call__(self, part: Any, context: Any) -> Any:
        return self.task([self.open(part)], context)


def _apply(part: Any, method: Callable[[Any], Array], empty: Array) -> Array:
    """Return the result of a method for a partition; estimators refuse one without rows, whose result is `empty`."""
    return np.asarray(method(part)) if len(part) else empty


def _array_table(part: Array) -> ArrayTable:
    return ArrayTable(plain_array(part, "X"))


def _is_known(dtype: Any) -> bool:
    """Return whether the categories of a column are known before it is computed."""
    from dask.dataframe.utils import UNKNOWN_CATEGORIES

    return UNKNOWN_CATEGORIES not in dtype.categories
