"""Rows of a table that this process reads, in memory or streamed: threads work on one batch each."""

from __future__ import annotations

import operator
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from posteriori.model_cost import Work
from posteriori.sources.composed_source import ComposedSource
from posteriori.sources.labelling import Labelling
from posteriori.sources.row_reader import CachedRows, RowReader
from posteriori.sources.threads import in_order, n_threads
from posteriori.tables import Bags, Batch, quote
from posteriori.tables.blocks import TableWithCounts
from posteriori.tables.lazy import LazyTable, StreamedTable
from posteriori.tables.progress import start_progress
from posteriori.typing import Array

T = TypeVar("T")

_TILE_BYTES = 1 << 25  # of the numbers of one batch: with less, Python's work per batch would dominate
_MOST_ROWS = 1 << 16  # in a batch
_FEWEST_ROWS = 1 << 10  # in a batch
_MOST_HELD = 1 << 30  # bytes of cells that are kept in memory
_MOST_HELD_OF_STREAM = 1 << 29  # bytes of cells of a stream that are kept in memory
_SHARED_ROWS = 1 << 14  # a longer table is cut into batches for several threads, even if one batch could hold it
_TIMED_ROWS = 1 << 8  # in each of the first two batches of a longer table; the first may compile
_FEWER_ROWS = "give fewer rows at a time"


@dataclass(frozen=True)
class TableSource(ComposedSource):
    """A table that threads read batch by batch. The batches do not depend on the number of threads.

    A streamed table (`StreamedTable`) is read part by part. Only a few parts are in memory at a time, and the batches
    are the same as for the same rows in memory.
    """

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Fold: add up accumulate(batch) over all batches, in their order."""
        sums = self.stream(accumulate, "statistics")
        total = next(sums)
        for batch_sum in sums:
            total = operator.add(total, batch_sum)
        return total

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches in the order of the rows; warn of categories unseen in training."""
        unseen: Counter[str] = Counter()
        scores: list[Array] = []
        lock = threading.Lock()

        def store(batch: Batch) -> dict[str, int]:
            result = score(batch)
            with lock:
                if not scores:  # the first result shows the type and the width of all
                    n_rows = self.table.n_rows
                    is_whole = len(result) == n_rows
                    n_bytes = result.nbytes / len(result) * n_rows
                    Work(n_bytes=n_bytes).require_affordable(f"the scoring of {n_rows:,} rows", _FEWER_ROWS)
                    scores.append(result if is_whole else np.empty((n_rows, *result.shape[1:]), result.dtype))
            if scores[0] is not result:
                scores[0][batch.start : batch.start + len(result)] = result
            return batch.unseen

        for counts in self.stream(store):
            unseen.update(counts)
        if unseen:
            warn_of_unseen(unseen)
        return scores[0]

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` names the pass for progress reports.

        The time of a row depends on which of its cells are missing, so that scores are timed on the first rows of a
        table in memory. Too much work for all rows is refused then, as by `Work`.
        """
        slices = self._slices()
        progress = self.progress or start_progress(what, self.table.n_rows)

        def read_and_work(part: tuple[RowReader, Labelling, slice]) -> T:
            reader, labelling, rows = part
            batch = reader.batch(rows, labelling)
            result = work(batch)
            progress(len(batch))
            return result

        if what == "scores" and self.table.n_rows > _SHARED_ROWS and not isinstance(self.table, LazyTable):
            timed = [slice(0, _TIMED_ROWS), slice(_TIMED_ROWS, 2 * _TIMED_ROWS)]
            slices = [slice(max(one.start, 2 * _TIMED_ROWS), one.stop) for one in slices if one.stop > 2 * _TIMED_ROWS]
            seconds = []
            for part in self.reader.parts(timed, self.labelling):
                begun = time.thread_time()
                result = read_and_work(part)
                seconds.append(time.thread_time() - begun)
                yield result
            work_of_all = Work(min(seconds) / _TIMED_ROWS * self.table.n_rows)
            work_of_all.require_affordable(f"the scoring of {self.table.n_rows:,} rows", _FEWER_ROWS)
        n_jobs = min(n_threads(self.n_jobs), len(slices)) if len(slices) > 1 else 1
        yield from in_order(self.reader.parts(slices, self.labelling), read_and_work, n_jobs)

    def cached(self) -> Self:
        """Return the same rows, with their numbers, codes and counts of words kept in memory for further passes.

        More than 1 GB, or 512 MB of a stream, are not kept: a number takes 8 bytes, a category 1 or 2, a word of a text
        12. Partitions are not kept either.
        """
        counts = self.schema.of_kind("counts")
        texts = [j for j in counts if self.schema.columns[j].text is not None and j not in self.reader.texts]
        if self.reader.kept is not None or (counts and not texts):  # sparse blocks and counted texts are in memory
            return self
        n_rows, schema = self.table.n_rows, self.schema
        n_codes = len(schema.of_kind("categorical"))
        n_bytes = n_rows * (8 * len(schema.of_kind("continuous")) + np.dtype(schema.code_dtype).itemsize * n_codes)
        if isinstance(self.table, LazyTable):
            is_kept = isinstance(self.table, StreamedTable) and n_bytes <= _MOST_HELD_OF_STREAM
            return self._cached_stream(texts, _MOST_HELD_OF_STREAM) if is_kept else self
        if n_bytes > _MOST_HELD:
            return self
        if texts:
            return self._cached_stream(texts, _MOST_HELD)
        whole = self.batch(slice(0, n_rows))
        labels, classes = self.labels, self.classes
        components = None if labels is None or classes is None else labels.components(classes, slice(0, n_rows))
        return self._keeping(whole.numbers.values, _categories(whole), components)

    def _cached_stream(self, texts: Sequence[int], most: int) -> Self:
        """Return the same rows, kept batch by batch; not kept if the words take more than `most` bytes."""
        n_rows = self.table.n_rows
        kept: list[Array] = []
        places = [self.schema.of_kind("counts").index(j) for j in texts]
        words: dict[int, list[Bags]] = {}  # by the first row of the batch
        held = 0
        lock = threading.Lock()

        def keep(batch: Batch) -> None:
            nonlocal held
            labels = () if batch.assignment is None else (batch.assignment.component,)
            codes = _categories(batch).astype(batch.schema.code_dtype, copy=False)  # of one type in all batches
            parts = (batch.numbers.values, codes, *labels)
            with lock:
                bags = [batch.bags[place] for place in places]
                held += sum(one.nbytes for one in bags)
                if held > most:
                    words.clear()
                else:
                    words[batch.start] = bags
                if not kept:
                    kept.extend(np.empty((n_rows, *part.shape[1:]), part.dtype) for part in parts)
            for whole, part in zip(kept, parts, strict=True):
                whole[batch.start : batch.start + len(batch)] = part

        # Under a label model the component of a row may be hidden although its label is known.
        plain = replace(self, labelling=replace(self.labelling, label_model=None, folds=None, weight=None))
        for _ in plain.stream(keep, "reading"):
            pass
        if held > most:
            return self
        numbers, codes, *components = kept
        parts = zip(*(words[start] for start in sorted(words)), strict=True)
        joined = {j: Bags.joined(bags) for j, bags in zip(texts, parts, strict=True)}
        return self._keeping(numbers, codes, components[0] if components and self.labels is not None else None, joined)

    def _keeping(
        self, numbers: Array, codes: Array, components: Array | None, texts: Mapping[int, Bags] | None = None
    ) -> Self:
        reader = replace(self.reader, kept=CachedRows(numbers, codes), texts=texts or self.reader.texts)
        return replace(self, reader=reader, labelling=replace(self.labelling, components=components))

    def _slices(self) -> list[slice]:
        """Return the rows of each batch: of like size, and a multiple of eight batches where there are several."""
        n_rows = self.table.n_rows
        n_cells = len(self.positions)  # per row
        if isinstance(self.table, TableWithCounts):
            n_cells += self.table.n_stored // n_rows
        size = _TILE_BYTES // (8 * n_cells)
        size = min(max(size, _FEWEST_ROWS), _MOST_ROWS, max(_TILE_BYTES // (8 * max(self.width, 1)), 1))
        if n_rows > min(size, _SHARED_ROWS):
            n_batches = min(-(-n_rows // size // 8) * 8, self._most_sums())
            size = max(-(-n_rows // n_batches), min(_FEWEST_ROWS, size))
        return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]

    def _most_sums(self) -> int:
        """Return the most batches whose sums of words, (Z, V) each, together take a quarter of the sparse table."""
        if self.classes is None or not isinstance(self.table, TableWithCounts):
            return self.table.n_rows
        n_components = self.classes.cardinality if self.label_model is None else len(self.label_model.of_class)
        n_words = sum(self.schema.columns[j].width for j in self.schema.of_kind("counts"))
        return max(12 * self.table.n_stored // (4 * 8 * n_components * n_words), 1) if n_words else self.table.n_rows


def _categories(batch: Batch) -> Array:
    """Return the codes of the categorical columns, (n, d), without those of binned columns."""
    schema = batch.schema
    return batch.codes.values[:, [schema.coded.index(j) for j in schema.of_kind("categorical")]]


def warn_of_unseen(unseen: Mapping[str, int]) -> None:
    """Warn of cells whose category was unseen in training, with their number per column."""
    cells = ", ".join(f"{count} cell{'s' if count > 1 else ''} of {quote([name])}" for name, count in unseen.items())
    warnings.warn(f"categories unseen in training count as missing: {cells}", UserWarning, stacklevel=2)
