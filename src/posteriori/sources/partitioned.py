"""Rows in partitions that live elsewhere: each is folded, or scored, where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np

from posteriori.sources.table_source import TableSource, warn_of_unseen
from posteriori.tables import Batch, Labels, Table
from posteriori.tables.labels import KnownLabels
from posteriori.tables.partitioned import PartitionedTable, add
from posteriori.tables.progress import start_progress
from posteriori.typing import Array

T = TypeVar("T")


@dataclass(frozen=True)
class PartitionContext:
    """What this process knows of the rows of one partition: the number of the first, and more where rows have it."""

    rows: slice
    labels: KnownLabels | None = None
    weight: Array | None = None
    fold: Array | None = None


@dataclass(frozen=True)
class PartitionedSource(TableSource):
    """A table in partitions. Batches, labels and messages are as if all rows were here.

    What is sent is the work, once, and each partition's share of what is kept by row: weights, folds and labels that
    are not a column of the table.
    """

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Add up accumulate(batch) over all batches: of a partition where it is, then partition by partition."""
        total = self._partitions.fold(Fold(self._work, accumulate), self._columns, self._shares)
        self._done("statistics")
        return total

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches in the order of the rows; warn of categories unseen in training."""
        unseen: Counter[str] = Counter()
        scores: list[Array] = []
        for part, strange in self.stream(Score(score)):
            scores.append(part)
            unseen.update(strange)
        if unseen:
            warn_of_unseen(unseen)
        return np.concatenate(scores)

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` is for those who watch."""
        for results in self._partitions.run(Each(self._work, work), self._columns, self._shares):
            yield from results
        self._done(what)

    @property
    def _partitions(self) -> PartitionedTable:
        return cast(PartitionedTable, self.table)

    @cached_property
    def _columns(self) -> Sequence[int]:
        """The columns that are read: those of the schema, and that of the labels."""
        inside = self._inside
        return list(self.positions) if inside is None else [*self.positions, inside.position]

    @property
    def _inside(self) -> Labels | None:
        """The labels, where they are a column of the table."""
        return self.labels if isinstance(self.labels, Labels) and self.labels.table is self.table else None

    @property
    def _work(self) -> TableSource:
        """What is the same for all partitions: everything but the rows."""
        inside, positions = self._inside, range(len(self.positions))
        nothing = cast(Table, None)
        labels = None if inside is None else replace(inside, table=nothing, position=len(positions))
        return TableSource(
            nothing,
            self.schema,
            positions,
            labels,
            self.classes,
            n_jobs=1,  # the engine has others to share the processors with
            unlabelled_weight=self.unlabelled_weight,
            label_model=self.label_model,
            numeric_only=self.numeric_only,
        )

    @cached_property
    def _shares(self) -> list[PartitionContext]:
        labels, classes = self.labels, self.classes
        known = None
        if labels is not None and classes is not None and self._inside is None:
            every = slice(0, self.table.n_rows)
            known = KnownLabels(labels.components(classes, every), labels.allowed(every))
        return [
            PartitionContext(
                rows,
                None if known is None else KnownLabels(known.component[rows], known.allowed(rows)),
                None if self.weight is None else self.weight[rows],
                None if self.folds is None else self.folds[rows],
            )
            for rows in self._partitions.slices
        ]

    def _done(self, what: str) -> None:
        """Tell of all rows at once: which are done meanwhile, the engine shows in its own way."""
        (self.progress or start_progress(what, self.table.n_rows))(self.table.n_rows)


@dataclass(frozen=True)
class _Work:
    """Work on the rows of a partition, done where these are."""

    source: TableSource

    def sources(self, tables: Iterable[Table], share: PartitionContext) -> Generator[TableSource, None, None]:
        """Yield the rows of a partition, which may come in several tables, as sources.

        Raises
        ------
        ValueError
            They are not as many as they were.
        """
        position = 0
        for table in tables:
            first = share.rows.start + position
            rows = slice(position, position + table.n_rows)
            position = rows.stop
            if not table.n_rows:
                continue
            if hasattr(table, "offset"):
                table = cast(Table, replace(cast(Any, table), offset=first))
            labels: Any = self.source.labels
            if share.labels is not None:
                labels = KnownLabels(share.labels.component[rows], share.labels.allowed(rows))
            elif labels is not None:
                labels = replace(labels, table=table, offset=first)
            weight = None if share.weight is None else share.weight[rows]
            fold = None if share.fold is None else share.fold[rows]
            yield replace(self.source, table=table, labels=labels, weight=weight, folds=fold, first=first)
        if position != share.rows.stop - share.rows.start:
            raise ValueError(
                f"a partition that had {share.rows.stop - share.rows.start} rows has {position} now: the rows come "
                "differently each time; persist (Dask), or cache or checkpoint (Spark), the table first"
            )


@dataclass(frozen=True)
class Fold(_Work):
    """Adds up over the batches of a partition; None where it has no row."""

    accumulate: Callable[[Batch], Any]

    def __call__(self, tables: Iterable[Table], share: PartitionContext) -> Any:
        """Return the sum."""
        total = None
        for source in self.sources(tables, share):
            total = add(total, source.reduce(self.accumulate))
        return total


@dataclass(frozen=True)
class Each(_Work):
    """Works on the batches of a partition one by one."""

    work: Callable[[Batch], Any]

    def __call__(self, tables: Iterable[Table], share: PartitionContext) -> list[Any]:
        """Return what comes of each."""
        return [result for source in self.sources(tables, share) for result in source.stream(self.work)]


@dataclass(frozen=True)
class Score:
    """Scores a batch, and says how many of its cells hold a category that training did not know."""

    score: Callable[[Batch], Array]

    def __call__(self, batch: Batch) -> tuple[Array, dict[str, int]]:
        """Return both."""
        return self.score(batch), batch.unseen
