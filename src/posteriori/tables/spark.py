"""Spark DataFrames as tables: Python workers read their partitions as Arrow batches and send statistics back."""

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

from posteriori.support.typing import Array
from posteriori.tables.partitioned import PartitionedTable, Task, add, add_in_pairs
from posteriori.tables.polars import PolarsTable, needs_cells
from posteriori.tables.table import Table, name_twice

T = TypeVar("T")

_NO_TREE = 4  # partitions that are added up here, because a tree over so few has one level
_MOST_ROWS = 1 << 16  # Arrow batches are joined to a table until they hold so many rows


@dataclass(frozen=True, eq=False)
class SparkTable(PartitionedTable):
    """A Spark DataFrame. Each pass is one job: cache a frame that is expensive to compute."""

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

    def run(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> Iterator[T]:
        """Yield task(tables, context) of every partition, in their order."""
        rows = sorted(self._results(task, columns, contexts).collect(), key=lambda row: row.partition)
        for row in rows:
            yield _unpacked(row.result)

    def fold(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> T:
        """Return the sum of task(tables, context) over all partitions, added up as a tree on the executors."""
        # Spark Connect has no RDDs, and so no treeReduce.
        if self._over_connect or len(self.lengths) <= _NO_TREE:
            return add_in_pairs(list(self.run(task, columns, contexts)))
        results = self._results(task, columns, contexts).rdd.map(lambda row: row.result)
        total: T | None = _unpacked(results.treeReduce(_add_packed))
        if total is None:
            raise ValueError("Found array with 0 sample(s): no partition has a row; give at least one")
        return total

    def _results(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None) -> Any:
        """Return the lazy result of a task as a DataFrame with one row per partition."""
        sent: Any = contexts
        if contexts is not None and not self._over_connect:
            sent = self.frame.sparkSession.sparkContext.broadcast(list(contexts))
        work = functools.partial(_work_on_partition, task, sent, [self.names[j] for j in columns])
        return self._plain.select(*(_plain(j) for j in columns)).mapInArrow(work, "partition int, result binary")

    @property
    def _over_connect(self) -> bool:
        return "connect" in type(self.frame).__module__

    @cached_property
    def _plain(self) -> Any:
        """The frame with plain column names: mapInArrow cannot find a column whose name holds a dot."""
        return self.frame.toDF(*map(_plain, range(len(self.names))))

    @property
    def _narrowest(self) -> Sequence[int]:
        plain = [j for j, dtype in enumerate(self._types.dtypes()) if dtype.is_numeric() or dtype == pl.Boolean]
        return plain[:1] or (0,)

    def needs_cells(self, j: int, categorical: bool) -> bool:
        """Return whether the categories of column j are known only from its cells."""
        return needs_cells(self._types[self.names[j]], categorical)

    def column_from_cells(self, j: int, cells: list[Any]) -> Table:
        """Return distinct cells of column j as a table in memory of one column, of the type of column j."""
        name = self.names[j]
        return PolarsTable(pl.DataFrame({name: pl.Series(name, cells, self._types[name])}))

    def map_rows(self, method: Callable[[Any], Array], title: str, example: Array) -> Any:
        """Return X as a Spark DataFrame with the result of a method for each row in one more column, of this title."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        if title in self.names:
            raise ValueError(
                f"X has a column {title!r} already, which is the name of the column to be added; rename it"
            )
        kind = _as_arrow(example).type
        schema = StructType([*self.frame.schema.fields, StructField(title, from_arrow_type(kind))])
        return self._plain.mapInArrow(functools.partial(_with_column, method, [*self.names, title]), schema)


def spark_table(X: Any) -> SparkTable:
    """Open a Spark DataFrame; TypeError if X is another object of Spark, and ValueError if two columns share a name."""
    from pyspark.sql import DataFrame

    if not isinstance(X, DataFrame):
        raise TypeError(f"X is a {type(X).__name__} of Spark; give a DataFrame")
    twice = name_twice(X.columns)
    if twice is not None:
        raise twice
    return SparkTable(X)


@dataclass(frozen=True)
class _Failure:
    """An error on its way back: Spark itself would return only the text of its traceback."""

    error: Exception


def _plain(j: int) -> str:
    return f"c{j}"


def _work_on_partition(
    task: Task[Any], contexts: Any, names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the pickled result of a task for a partition, with the number of the partition."""
    from pyspark import TaskContext

    spark_context = TaskContext.get()
    assert spark_context is not None
    number = spark_context.partitionId()
    known = contexts if contexts is None or isinstance(contexts, list) else contexts.value
    try:
        if known is not None and number >= len(known):
            raise ValueError("X has more partitions than it had; cache or checkpoint it first")
        result = task(_tables(batches, names), None if known is None else known[number])
    except Exception as error:
        result = _Failure(error)
    packed = pa.array([pickle.dumps(result, pickle.HIGHEST_PROTOCOL)], pa.binary())
    yield pa.RecordBatch.from_arrays([pa.array([number], pa.int32()), packed], ["partition", "result"])


def _tables(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[PolarsTable]:
    """Yield consecutive batches, joined to tables of at least `_MOST_ROWS` rows."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(part.num_rows for part in pending) >= _MOST_ROWS:
            yield PolarsTable(_frame(pending, names))
            pending = []
    if pending:
        yield PolarsTable(_frame(pending, names))


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
    """Return the pickled sum of two pickled results, or the first error among them."""
    left, right = pickle.loads(a), pickle.loads(b)
    for result in (left, right):
        if isinstance(result, _Failure):
            return pickle.dumps(result)
    try:
        result = add(left, right)
    except Exception as error:
        result = _Failure(error)
    return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)


def _with_column(
    method: Callable[[Any], Array], names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield batches with the result of a method for their rows in one more column, the last of `names`."""
    for batch in batches:
        if batch.num_rows:
            result = _as_arrow(np.asarray(method(_frame([batch], names[:-1]))))
            yield pa.RecordBatch.from_arrays([*batch.columns, result], list(names))


def _as_arrow(values: Array) -> pa.Array:
    """Return an array (n,) as a column, or an array (n, C) as a column of lists."""
    if values.ndim == 1:
        return pa.array(values.tolist()) if values.dtype.kind in "OU" else pa.array(values)
    return pa.array(list(values.astype(np.float64)), pa.list_(pa.float64()))
