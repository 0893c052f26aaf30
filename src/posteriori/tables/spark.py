"""Spark DataFrames as tables: Python goes to their partitions as Arrow batches, and statistics come back."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from posteriori.tables.frames import PolarsTable, cells_tell
from posteriori.tables.partitioned import PartitionedTable, Task, add, add_in_pairs
from posteriori.tables.table import Table, name_twice
from posteriori.typing import Array

T = TypeVar("T")

_NO_TREE = 4  # partitions
_MOST_ROWS = 1 << 16  # of the batches that Spark hands over, so many are one table


@dataclass(frozen=True, eq=False)
class SparkTable(PartitionedTable):
    """A Spark DataFrame. Each pass is a job of its own: cache what is dear to compute."""

    frame: Any

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(self.frame.columns)

    @cached_property
    def _types(self) -> pl.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        empty = pl.from_arrow(to_arrow_schema(self.frame.schema).empty_table())
        assert isinstance(empty, pl.DataFrame)
        return empty.schema

    def run(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield task(tables, share) of every partition, in their order."""
        rows = sorted(self._results(task, columns, shares).collect(), key=lambda row: row.partition)
        for row in rows:
            yield _unpacked(row.result)

    def fold(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None = None) -> T:
        """Return the sum of task(tables, share) over all partitions, added up as a tree on the executors."""
        # Connect has no RDDs, and of so few partitions a tree has one level, which is here.
        if self._over_connect or len(self.lengths) <= _NO_TREE:
            return add_in_pairs(list(self.run(task, columns, shares)))
        results = self._results(task, columns, shares).rdd.map(lambda row: row.result)
        total = _unpacked(results.treeReduce(_add_packed))
        if total is None:
            raise ValueError("Found array with 0 sample(s): no partition has a row; give at least one")
        return total

    def _results(self, task: Task[T], columns: Sequence[int], shares: Sequence[Any] | None) -> Any:
        """Return a DataFrame of what a task will return of each partition."""
        sent: Any = shares
        if shares is not None and not self._over_connect:
            sent = self.frame.sparkSession.sparkContext.broadcast(list(shares))
        work = functools.partial(_work_on_partition, task, sent, [self.names[j] for j in columns])
        return self._plain.select(*(_plain(j) for j in columns)).mapInArrow(work, "partition int, result binary")

    @property
    def _over_connect(self) -> bool:
        return "connect" in type(self.frame).__module__

    @cached_property
    def _plain(self) -> Any:
        """The frame with columns of other names: mapInArrow cannot find a column in whose name there is a dot."""
        return self.frame.toDF(*map(_plain, range(len(self.names))))

    @property
    def _narrowest(self) -> Sequence[int]:
        plain = [j for j, dtype in enumerate(self._types.dtypes()) if dtype.is_numeric() or dtype == pl.Boolean]
        return plain[:1] or (0,)

    def _cells_tell(self, j: int, categorical: bool) -> bool:
        return cells_tell(self._types[self.names[j]], categorical)

    def _table_of(self, j: int, cells: list[Any]) -> Table:
        name = self.names[j]
        return PolarsTable(pl.DataFrame({name: pl.Series(name, cells, self._types[name])}))

    def each(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return X as a Spark DataFrame with what a method says of each row in one more column, of this title."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        if title in self.names:
            raise ValueError(
                f"X has a column {title!r} already, which what is said of its rows would be called; rename it"
            )
        kind = _as_arrow(example).type
        schema = StructType([*self.frame.schema.fields, StructField(title, from_arrow_type(kind))])
        return self._plain.mapInArrow(functools.partial(_with_column, method, [*self.names, title]), schema)


def spark_table(X: Any) -> SparkTable:
    """Open a Spark DataFrame.

    Raises
    ------
    TypeError
        X is something else of Spark's.
    ValueError
        Two columns share a name.
    """
    from pyspark.sql import DataFrame

    if not isinstance(X, DataFrame):
        raise TypeError(f"X is a {type(X).__name__} of Spark; give a DataFrame")
    twice = name_twice(X.columns)
    if twice is not None:
        raise twice
    return SparkTable(X)


@dataclass(frozen=True)
class _Failure:
    """An error on its way back, which Spark would turn into the text of a traceback."""

    error: Exception


def _plain(j: int) -> str:
    return f"c{j}"


def _work_on_partition(
    task: Task[Any], shares: Any, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what a task returns of a partition, packed, with the number of the partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    number = context.partitionId()
    known = shares if shares is None or isinstance(shares, list) else shares.value
    try:
        if known is not None and number >= len(known):
            raise ValueError("X has more partitions than it had; cache or checkpoint it first")
        result = task(_tables(batches, names), None if known is None else known[number])
    except Exception as error:
        result = _Failure(error)
    packed = pa.array([pickle.dumps(result, pickle.HIGHEST_PROTOCOL)], pa.binary())
    yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), packed], ["partition", "result"])


def _tables(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[PolarsTable]:
    """Yield batches, several together, as tables."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _MOST_ROWS:
            yield PolarsTable(_frame(held, names))
            held = []
    if held:
        yield PolarsTable(_frame(held, names))


def _frame(batches: list[pa.RecordBatch], names: Sequence[str]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches).rename_columns(list(names)))
    assert isinstance(frame, pl.DataFrame)
    return frame


def _unpacked(packed: bytes) -> Any:
    result = pickle.loads(packed)
    if isinstance(result, _Failure):
        raise result.error
    return result


def _add_packed(a: bytes, b: bytes) -> bytes:
    """Return the sum of two results, packed as they are; the first error if one is such."""
    one, other = pickle.loads(a), pickle.loads(b)
    for result in (one, other):
        if isinstance(result, _Failure):
            return pickle.dumps(result)
    try:
        result = add(one, other)
    except Exception as error:
        result = _Failure(error)
    return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)


def _with_column(
    method: Callable[[Any], Array], names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield batches with what a method says of their rows in one more column, the last of `names`."""
    for batch in batches:
        if batch.num_rows:
            said = _as_arrow(np.asarray(method(_frame([batch], names[:-1]))))
            yield pa.RecordBatch.from_arrays([*batch.columns, said], list(names))


def _as_arrow(said: Array) -> pa.Array:
    """Return an array (n,) or (n, C) as a column, of lists where it has several numbers a row."""
    if said.ndim == 1:
        return pa.array(said.tolist()) if said.dtype.kind in "OU" else pa.array(said)
    return pa.array(list(said.astype(np.float64)), pa.list_(pa.float64()))
