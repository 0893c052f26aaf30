"""Rows in partitions that live elsewhere: each partition is folded, or scored, where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar, cast

import numpy as np

from posteriori.reading import LabelColumn
from posteriori.reading.labels import KnownLabels
from posteriori.reading.matching import ABSENT
from posteriori.sources.table_source import ComposedSource, Labelling, RowReader, TableSource, warn_of_unseen
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema, Table
from posteriori.tables.partitioned import PartitionedTable, add
from posteriori.tables.progress import start_progress

T = TypeVar("T")


@dataclass(frozen=True)
class PartitionContext:
    """Values sent along with one partition: its row numbers, and labels, weights and folds that it does not hold."""

    rows: slice
    labels: KnownLabels | None = None
    weight: Array | None = None
    fold: Array | None = None


@dataclass(frozen=True)
class PartitionedSource(ComposedSource):
    """A table in partitions. Batches, labels and messages are as if all rows were in this process.

    A worker receives the work, and for each partition its weights, folds and those labels that are not a column of the
    table.
    """

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Fold: add up accumulate(batch) over the batches of each partition where it is, then over the partitions."""
        total = self._partitions.fold(Fold(self._task, accumulate), self._columns, self._contexts)
        self._report_all_rows("statistics")
        return cast(T, total)

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches in the order of the rows; warn of categories unseen in training."""
        unseen: Counter[str] = Counter()
        scores: list[Array] = []
        for batch_scores, counts in self.stream(ScoreBatch(score)):
            scores.append(batch_scores)
            unseen.update(counts)
        if unseen:
            warn_of_unseen(unseen)
        return np.concatenate(scores)

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` names the pass for progress reports."""
        for results in self._partitions.run(Each(self._task, work), self._columns, self._contexts):
            yield from results
        self._report_all_rows(what)

    def cached(self) -> Self:
        """Return the same rows: partitions stay where they are."""
        return self

    @property
    def _partitions(self) -> PartitionedTable:
        return cast(PartitionedTable, self.table)

    @property
    def _label_column(self) -> LabelColumn | None:
        """The labels, where they are a column of the table."""
        return self.labelling.column_of(self.table)

    @cached_property
    def _columns(self) -> Sequence[int]:
        """The columns that are read: those of the schema, then that of the labels."""
        labels = self._label_column
        # The parts of a date are read from one column.
        features = [position for position in dict.fromkeys(self.positions) if position != ABSENT]
        return features if labels is None else [*features, labels.position]

    @property
    def _task(self) -> PartitionReader:
        """The reader of every partition: everything except the rows."""
        labels = self._label_column
        if labels is not None:  # the table is left behind: each partition takes its place
            labels = replace(labels, table=cast(Table, None), position=len(self._columns) - 1)
        labelling = replace(self.labelling, labels=labels, weight=None, folds=None)
        columns = self._columns
        places = [ABSENT if position == ABSENT else columns.index(position) for position in self.positions]
        return PartitionReader(self.schema, places, labelling, self.reader.numeric_only)

    @cached_property
    def _contexts(self) -> list[PartitionContext]:
        labels, classes = self.labels, self.classes
        known = None
        if labels is not None and classes is not None and self._label_column is None:
            all_rows = slice(0, self.table.n_rows)
            known = KnownLabels(labels.components(classes, all_rows), labels.allowed(all_rows))
        weight, folds = self.labelling.weight, self.labelling.folds
        return [
            PartitionContext(
                rows,
                None if known is None else KnownLabels(known.component[rows], known.allowed(rows)),
                None if weight is None else weight[rows],
                None if folds is None else folds[rows],
            )
            for rows in self._partitions.slices
        ]

    def _report_all_rows(self, what: str) -> None:
        """Report all rows at once as done; the engine shows the progress in between in its own way."""
        (self.progress or start_progress(what, self.table.n_rows))(self.table.n_rows)


@dataclass(frozen=True)
class PartitionReader:
    """Turns the tables of a partition into sources, on a worker."""

    schema: Schema
    positions: Sequence[int]  # the position of each column of the schema in the tables of a partition
    labelling: Labelling  # Without weights and folds. Its labels, if any, are a column whose table is to be filled in.
    numeric_only: bool  # as in `RowReader`

    def sources(self, tables: Iterable[Table], context: PartitionContext) -> Generator[TableSource, None, None]:
        """Yield the rows of a partition, which may come in several tables, as sources.

        Raises ValueError if the number of rows has changed.
        """
        n_rows = 0
        for table in tables:
            rows = slice(n_rows, n_rows + table.n_rows)
            n_rows = rows.stop
            if table.n_rows:
                yield self._source(table, rows, context)
        expected = context.rows.stop - context.rows.start
        if n_rows != expected:
            raise ValueError(
                f"a partition that had {expected} rows has {n_rows} now: the rows come differently each time; "
                "persist (Dask), or cache or checkpoint (Spark), the table first"
            )

    def _source(self, table: Table, rows: slice, context: PartitionContext) -> TableSource:
        first = context.rows.start + rows.start
        if hasattr(table, "offset"):
            table = cast(Table, replace(cast(Any, table), offset=first))
        labels: Any = self.labelling.labels
        if context.labels is not None:
            labels = KnownLabels(context.labels.component[rows], context.labels.allowed(rows))
        elif labels is not None:
            labels = replace(labels, table=table, offset=first)
        weight = None if context.weight is None else context.weight[rows]
        fold = None if context.fold is None else context.fold[rows]
        labelling = replace(self.labelling, labels=labels, weight=weight, folds=fold)
        reader = RowReader(table, self.schema, self.positions, first=first, numeric_only=self.numeric_only)
        return TableSource(reader, labelling, n_jobs=1)  # the engine runs several partitions at once


@dataclass(frozen=True)
class Fold:
    """A task that adds up accumulate(batch) over the batches of a partition; None for a partition without rows."""

    reader: PartitionReader
    accumulate: Callable[[Batch], Any]

    def __call__(self, tables: Iterable[Table], context: PartitionContext) -> Any:
        """Return the sum."""
        total = None
        for source in self.reader.sources(tables, context):
            total = add(total, source.reduce(self.accumulate))
        return total


@dataclass(frozen=True)
class Each:
    """A task that returns work(batch) of each batch of a partition."""

    reader: PartitionReader
    work: Callable[[Batch], Any]

    def __call__(self, tables: Iterable[Table], context: PartitionContext) -> list[Any]:
        """Return the results in the order of the rows."""
        return [result for source in self.reader.sources(tables, context) for result in source.stream(self.work)]


@dataclass(frozen=True)
class ScoreBatch:
    """Work that scores a batch and counts the cells whose category was unseen in training."""

    score: Callable[[Batch], Array]

    def __call__(self, batch: Batch) -> tuple[Array, dict[str, int]]:
        """Return the scores (n, …) and the number of such cells per column."""
        return self.score(batch), batch.unseen
