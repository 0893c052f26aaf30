"""Rows of a table, in memory or in files: threads over batches of it."""

from __future__ import annotations

import operator
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from posteriori.sources.threads import in_order, n_threads
from posteriori.tables import Assignment, Batch, Column, LabelModel, Labels, PartialLabels, Scan, Schema, Table, quote
from posteriori.tables.labels import KnownLabels
from posteriori.tables.lazy import LazyTable, StreamedTable
from posteriori.tables.progress import start_progress
from posteriori.tables.schema import UnseenCategoryError
from posteriori.typing import Array

T = TypeVar("T")

_TILE_BYTES = 1 << 25  # smaller tiles would spend their time in Python
_MOST_ROWS = 1 << 16
_FEWEST_ROWS = 1 << 10
_MOST_HELD = 1 << 27
_MOST_HELD_OF_STREAM = 1 << 24
_SHARED_ROWS = 1 << 14  # from which on threads share the rows, few as the batches may be


@dataclass(frozen=True)
class CachedRows:
    """Cells as numbers (n, d), codes of categories (n, d), and the class of each row (n,), where rows have one."""

    numbers: Array
    codes: Array
    component: Array | None


@dataclass(frozen=True)
class TableSource:
    """A table, read by threads batch after batch; the batches do not depend on the number of threads.

    Of rows that come from elsewhere (`StreamedTable`), a few parts are in memory at a time, and the batches are
    those of the same rows in memory.

    Attributes
    ----------
    positions : sequence of int
        Where each column of the schema stands in the table.
    labels, classes : Labels and Column, optional
        The labels and their classes, where the rows are to be learned from.
        Of classes without labels, every row's is hidden.
    label_model : Telling, optional
        What labels say of components, where those are not the classes or labels may be wrong or say less.
    weight : ndarray (n,), optional
        The weight of each row; 1 where absent.
    unlabelled_weight : float
        By which the weight of rows whose label is hidden is multiplied.
    folds : ndarray (n,), optional
        The number of the fold of each row, so that statistics can be kept per fold.
    n_jobs : int, optional
        Threads; None or −1 for one a core.
    progress : callable, optional
        Called with the number of rows of every batch that is done.
    held : CachedRows, optional
        The cells as numbers and codes, where they are to be read many times.
    first : int
        The number of the first row, where these are a part of more.
    strict : bool
        Whether a category that the schema lacks is an error, for it was taken not to occur.
    numeric_only : bool
        Whether categories are not read, as if all were missing: where only numbers are looked at.
    """

    table: Table
    schema: Schema
    positions: Sequence[int]
    labels: Labels | PartialLabels | KnownLabels | None = None
    classes: Column | None = None
    weight: Array | None = None
    folds: Array | None = None
    n_jobs: int | None = None
    unlabelled_weight: float = 1.0
    label_model: LabelModel | None = None
    progress: Callable[[int], None] | None = None
    held: CachedRows | None = None
    first: int = 0
    strict: bool = False
    numeric_only: bool = False

    @property
    def is_streamed(self) -> bool:
        """Whether every pass fetches the rows from elsewhere."""
        return isinstance(self.table, LazyTable)

    def cached(self) -> TableSource:
        """Return the same rows, their cells kept as numbers and codes: read once, however many passes there are.

        Of more than 2²⁷ cells (1 GB), or 2²⁴ of a stream (128 MB), nothing is kept, nor of rows in partitions.
        """
        n_rows = self.table.n_rows
        n_cells = n_rows * len(self.positions)
        if self.held is not None:
            return self
        if isinstance(self.table, LazyTable):
            keep = isinstance(self.table, StreamedTable) and n_cells <= _MOST_HELD_OF_STREAM
            return self._cached_stream() if keep else self
        if n_cells > _MOST_HELD:
            return self
        whole = self.batch(slice(0, n_rows))
        component = (
            None
            if self.labels is None or self.classes is None
            else self.labels.components(self.classes, slice(0, n_rows))
        )
        return replace(self, held=CachedRows(whole.numbers.values, _categories(whole), component))

    def _cached_stream(self) -> TableSource:
        def cells(batch: Batch) -> tuple[Array, ...]:
            labels = () if batch.assignment is None else (batch.assignment.component,)
            return batch.numbers.values, _categories(batch), *labels

        plain = replace(self, label_model=None, folds=None, weight=None)
        numbers, codes, *component = map(np.concatenate, zip(*plain.stream(cells), strict=True))
        labelled = component[0] if component and self.labels is not None else None
        return replace(self, held=CachedRows(numbers, codes, labelled))

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Add up accumulate(batch) over all batches, in their order."""
        parts = self.stream(accumulate, "statistics")
        total = next(parts)
        for part in parts:
            total = operator.add(total, part)
        return total

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches in the order of the rows; warn of categories unseen in training."""
        unseen: Counter[str] = Counter()
        scores: list[Array] = []
        lock = threading.Lock()

        def position(batch: Batch) -> dict[str, int]:
            part = score(batch)
            with lock:
                if not scores:
                    whole = len(part) == self.table.n_rows
                    scores.append(part if whole else np.empty((self.table.n_rows, *part.shape[1:]), part.dtype))
            if scores[0] is not part:
                scores[0][batch.start : batch.start + len(part)] = part
            return batch.unseen

        for strange in self.stream(position):
            unseen.update(strange)
        if unseen:
            warn_of_unseen(unseen)
        return scores[0]

    def reweighted(self, factor: Array) -> TableSource:
        """Return the same rows with their weights multiplied."""
        return replace(self, weight=factor * (1.0 if self.weight is None else self.weight))

    def numeric_columns(self) -> TableSource:
        """Return the same rows, their categories not read, as if all were missing."""
        return replace(self, numeric_only=True)

    def with_schema(self, schema: Schema) -> TableSource:
        """Return the same rows with the cut points of another schema of the same columns."""
        return replace(self, schema=schema)

    def with_label_model(self, label_model: LabelModel | None) -> TableSource:
        """Return the same rows, their labels understood so."""
        return replace(self, label_model=label_model)

    def batch(self, rows: slice) -> Batch:
        """Return some rows as arrays."""
        schema = self.schema
        categorical = schema.of_kind("categorical")
        start = rows.start or 0
        stop = self.table.n_rows if rows.stop is None else rows.stop
        unseen: dict[str, int] = {}
        if self.held is not None:
            numbers, codes = self.held.numbers[rows], self.held.codes[rows]
            fold = None if self.folds is None else self.folds[rows]
            return Batch.of(
                schema, self.first + start, numbers, codes, unseen, self._assignment(rows, stop - start), fold
            )
        numbers = self._numbers(rows, stop - start)
        if categorical and not self.numeric_only:
            columns = [schema.columns[j] for j in categorical]
            codes, unseen = self.table.codes([self.positions[j] for j in categorical], schema, columns, rows)
            if unseen and self.strict:
                raise UnseenCategoryError(f"{quote(unseen)} holds a category that was taken not to occur")
        else:
            codes = np.zeros((stop - start, len(categorical)), np.uint8)
        assignment = self._assignment(rows, stop - start)
        fold = None if self.folds is None else self.folds[rows]
        return Batch.of(schema, self.first + start, numbers, codes, unseen, assignment, fold)

    def _numbers(self, rows: slice, n_rows: int) -> Array:
        """Return the continuous cells of some rows: missing throughout in columns that had no value in training."""
        schema = self.schema
        continuous = schema.of_kind("continuous")
        read = [j for j in continuous if not schema.columns[j].valueless]
        if not read:
            return np.full((n_rows, len(continuous)), np.nan)
        columns = [schema.columns[j] for j in read]
        numbers = self.table.numbers([self.positions[j] for j in read], columns, rows)
        if len(read) == len(continuous):
            return numbers
        tile = np.full((n_rows, len(continuous)), np.nan, numbers.dtype)
        tile[:, [continuous.index(j) for j in read]] = numbers
        return tile

    def _assignment(self, rows: slice, n_rows: int) -> Assignment | None:
        if self.classes is None:
            return None
        weight = np.ones(n_rows) if self.weight is None else self.weight[rows]
        if self.held is not None and self.held.component is not None:
            component = self.held.component[rows]
        else:
            component = self.labels.components(self.classes, rows) if self.labels else np.full(n_rows, -1, np.int32)
        allowed = self.labels.allowed(rows) if self.labels else None
        unlabelled = component < 0 if allowed is None else allowed.all(axis=1)
        if self.unlabelled_weight != 1.0 and unlabelled.any():
            weight = np.where(unlabelled, self.unlabelled_weight * weight, weight)
        if self.label_model is not None:
            return self.label_model.assignment(component, allowed, weight)
        return Assignment(component, weight, len(self.classes.categories))

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` is for those who watch."""
        slices = self._slices()
        progress = self.progress or start_progress(what, self.table.n_rows)

        def one(part: tuple[TableSource, slice]) -> T:
            source, rows = part
            batch = source.batch(rows)
            result = work(batch)
            progress(len(batch))
            return result

        n_jobs = min(n_threads(self.n_jobs), len(slices)) if len(slices) > 1 else 1
        return in_order(self._parts(slices), one, n_jobs)

    def _parts(self, slices: Sequence[slice]) -> Iterator[tuple[TableSource, slice]]:
        """Yield, with each of the slices, the rows in memory that it is cut from: of a stream, a part that was read."""
        if self.held is not None or not isinstance(self.table, StreamedTable):
            yield from ((self, rows) for rows in slices)
            return
        labels = self.labels
        inside = labels if isinstance(labels, Labels) and labels.table is self.table else None
        wanted = self.schema.of_kind("continuous") if self.numeric_only else range(len(self.positions))
        positions = [wanted.index(j) if j in wanted else -1 for j in range(len(self.positions))]
        columns = [self.positions[j] for j in wanted] + ([] if inside is None else [inside.position])
        for part, rows in zip(self.table.parts(slices, columns), slices, strict=True):
            if inside is not None:
                labels = replace(inside, table=part, position=len(wanted))
            strict = isinstance(self.table, Scan) and self.table.from_first_rows
            yield replace(self, table=part, labels=labels, positions=positions, strict=strict), rows

    def _slices(self) -> list[slice]:
        """Return batches of like size, a multiple of eight of them where there are several, for threads to share."""
        n_rows = self.table.n_rows
        size = _TILE_BYTES // (8 * len(self.positions))
        size = min(max(size, _FEWEST_ROWS), _MOST_ROWS)
        if n_rows > min(size, _SHARED_ROWS):
            n_batches = -(-n_rows // size)
            size = max(-(-n_rows // (-(-n_batches // 8) * 8)), min(_FEWEST_ROWS, size))
        return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def _categories(batch: Batch) -> Array:
    """Return the codes of the categorical columns, (n, d)."""
    schema = batch.schema
    return batch.codes.values[:, [schema.coded.index(j) for j in schema.of_kind("categorical")]]


def warn_of_unseen(unseen: Counter[Any]) -> None:
    """Warn of cells whose category training did not know, by the number of them in each column."""
    cells = ", ".join(f"{count} cell{'s' if count > 1 else ''} of {quote([name])}" for name, count in unseen.items())
    warnings.warn(f"categories unseen in training count as missing: {cells}", UserWarning, stacklevel=2)
