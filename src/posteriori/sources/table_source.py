"""Rows of a table that this process reads: cells, labels and batches."""

from __future__ import annotations

import operator
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self, TypeVar

import numpy as np

from posteriori.densities.label_model import LabelModel
from posteriori.engines import source_class_of
from posteriori.model_cost import Work
from posteriori.reading import LabelColumn, PartialLabels, Scan
from posteriori.reading.labels import KnownLabels
from posteriori.reading.matching import ABSENT
from posteriori.reading.spellings import spellings_of_classes
from posteriori.sources.source import LabelledSource
from posteriori.support.threads import in_order, n_threads
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Bags, Batch, Column, Schema, Table, quote
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.batch import Times, read_codes, read_numbers, require_finite
from posteriori.tables.blocks import TableWithCounts, no_counts
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.polars import LazyTable, PolarsTable, StreamedTable
from posteriori.tables.progress import callback, start_progress
from posteriori.tables.table import UnseenRows
from posteriori.user_warnings import warn


@dataclass(frozen=True)
class Labelling:
    """Labels, weights and folds of the rows of a table."""

    # The label of each row. Without labels but with classes, every row is unlabelled.
    labels: LabelColumn | PartialLabels | KnownLabels | None = None
    classes: Column | None = None  # the classes of the labels; None where no rows are to be learned from
    weight: Array | None = None  # (n,): the weight of each row; 1 where absent
    folds: Array | None = None  # (n,): the fold of each row, for statistics that are kept per fold
    unlabelled_weight: float = 1.0  # a factor on the weight of unlabelled rows
    # log p(label | component), where components are not the classes, or where labels may be wrong or partial
    label_model: LabelModel | None = None
    # (n,): the class index of each row, where the labels were encoded before (`TableSource.cached`)
    components: Array | None = None

    def assignment(self, rows: slice, n_rows: int) -> Assignment | None:
        """Return the components and weights of some rows; None where there are no classes.

        Raises ValueError if a label is missing where it must not be, or is not one of the classes.
        """
        if self.classes is None:
            return None
        weight = np.ones(n_rows) if self.weight is None else self.weight[rows]
        component = self._encoded(self.classes, rows, n_rows)
        allowed = self.labels.allowed(rows) if self.labels else None
        unlabelled = component < 0 if allowed is None else allowed.all(axis=1)
        if self.unlabelled_weight != 1.0 and unlabelled.any():
            weight = np.where(unlabelled, self.unlabelled_weight * weight, weight)
        if self.label_model is not None:
            return self.label_model.assignment(component, allowed, weight)
        return Assignment(component, weight, len(self.classes.categories))

    def left_out(self, assignment: Assignment) -> Array:
        """Return which rows lack a target and have no weight, (n,); where numbers were cut, the weight of 0 says so."""
        are_cut = isinstance(self.labels, LabelColumn) and self.labels.cut_from is not None
        left_out: Array = (assignment.weight == 0) & (are_cut | (assignment.component < 0))
        return left_out

    def _encoded(self, classes: Column, rows: slice, n_rows: int) -> Array:
        if self.components is not None:
            return self.components[rows]
        return self.labels.components(classes, rows) if self.labels else np.full(n_rows, -1, np.int32)

    def fold(self, rows: slice) -> Array | None:
        """Return the folds of some rows; None where there are none."""
        return None if self.folds is None else self.folds[rows]

    def column_of(self, table: Table) -> LabelColumn | None:
        """Return the labels if they are a column of this table, which is then read along with the features."""
        return self.labels if isinstance(self.labels, LabelColumn) and self.labels.table is table else None

    def with_labels(self, labels: LabelColumn, classes: Column | None = None) -> Labelling:
        """Replace the labels, and the classes too unless they are None."""
        return replace(self, labels=labels, classes=classes or self.classes, components=None)

    def reweighted(self, factor: Array) -> Labelling:
        """Multiply the weights of the rows by factors (n,)."""
        return replace(self, weight=factor * (1.0 if self.weight is None else self.weight))


@dataclass(frozen=True)
class CachedRows:
    """The continuous cells as numbers (n, d) and the categorical cells as codes (n, d), read before."""

    numbers: Array
    codes: Array


@dataclass(frozen=True)
class RowReader:
    """The columns of a schema in a table."""

    table: Table
    schema: Schema
    # the position in the table of each column of the schema; `ABSENT` for one of which every cell is missing
    positions: Sequence[int]
    kept: CachedRows | None = None  # the cells of all rows, where they were read before
    first: int = 0  # the number of the first row, where the table is a part of a longer one: for messages
    # whether a category that the schema lacks is an error, because the schema was inferred from the first rows
    unseen_is_error: bool = False
    infinity_is_error: bool = True  # False for a target, whose reader has its own words
    numeric_only: bool = False  # whether categorical columns are left unread, as if all their cells were missing
    # the counts of the words of columns of text in all rows, where they were counted before, by their positions in the
    # schema
    texts: Mapping[int, Bags] = field(default_factory=dict)

    def cells(self, rows: slice, left_out: Array | None = None) -> tuple[Array, Array, UnseenRows]:
        """Return the numbers (n, d) and codes (n, d) of some rows, and the rows of unseen categories by column.

        An infinite number of a row that is left out is a missing one.
        Raises ValueError if another number is infinite, and UnseenCategoryError if a category is unseen and
        `unseen_is_error`.
        """
        if self.kept is not None:
            return self.kept.numbers[rows], self.kept.codes[rows], {}
        n_rows = self._n_rows(rows)
        times: Times = {}
        numbers = self._numbers(rows, n_rows, times, left_out)
        categorical = self.schema.of_kind("categorical")
        if not categorical or self.numeric_only:
            return numbers, np.zeros((n_rows, len(categorical)), np.uint8), {}
        read = [j for j in categorical if self.positions[j] != ABSENT]
        codes = np.zeros((n_rows, len(categorical)), self.schema.code_dtype)
        unseen: UnseenRows = {}
        if read:
            columns = [self.schema.columns[j] for j in read]
            positions = [self.positions[j] for j in read]
            present, unseen = read_codes(self.table, positions, self.schema, columns, rows, times)
            if len(read) == len(categorical):
                codes = present
            else:
                codes[:, [categorical.index(j) for j in read]] = present
        if unseen and self.unseen_is_error:
            raise UnseenCategoryError(f"{quote(unseen)} holds a category that was taken not to occur")
        return numbers, codes, unseen

    def _numbers(self, rows: slice, n_rows: int, times: Times, left_out: Array | None) -> Array:
        """Return the continuous cells of some rows; columns that are absent or had no value in training are missing."""
        schema = self.schema
        continuous = schema.of_kind("continuous")
        read = [j for j in continuous if not schema.columns[j].valueless and self.positions[j] != ABSENT]
        if not read:
            return np.full((n_rows, len(continuous)), np.nan)
        columns = [schema.columns[j] for j in read]
        numbers = read_numbers(self.table, [self.positions[j] for j in read], columns, rows, times)
        if left_out is not None and left_out.any():
            numbers = np.where(np.isinf(numbers) & left_out[:, np.newaxis], np.nan, numbers)
        if self.infinity_is_error:
            require_finite(numbers, columns, self.first + (rows.start or 0))
        if len(read) == len(continuous):
            return numbers
        filled = np.full((n_rows, len(continuous)), np.nan, numbers.dtype)
        filled[:, [continuous.index(j) for j in read]] = numbers
        return filled

    def _n_rows(self, rows: slice) -> int:
        # Not by `slice.indices`: the rows of a streamed part keep their numbers in the whole table.
        return (self.table.n_rows if rows.stop is None else rows.stop) - (rows.start or 0)

    def batch(self, rows: slice, labelling: Labelling) -> Batch:
        """Return some rows as a batch, with their labels, weights and folds."""
        assignment = labelling.assignment(rows, self._n_rows(rows))
        numbers, codes, unseen = self.cells(rows, None if assignment is None else labelling.left_out(assignment))
        start = self.first + (rows.start or 0)
        bags = self._bags(rows, len(numbers), unseen)
        return Batch.of(self.schema, start, numbers, codes, unseen, assignment, labelling.fold(rows), bags)

    def misspelt(self, unseen: Mapping[str, int]) -> dict[str, tuple[str, str]]:
        """Return an unseen category and the one that differs from it only in case or blanks, by column.

        Of many rows that are not in memory only the columns are looked at in which no category was seen.
        """
        found = {}
        is_cheap = not isinstance(self.table, LazyTable) or (
            isinstance(self.table, Scan) and self.table.n_rows <= _FEW_ROWS
        )
        for column, place in zip(self.schema.columns, self.positions, strict=True):
            if (
                column.kind == "categorical"
                and column.part is None
                and unseen.get(column.name, 0) >= (1 if is_cheap else self.table.n_rows)
            ):
                spellings = spellings_of_classes(self.table.distinct(place), column.categories)
                if spellings:
                    found[column.name] = next(iter(spellings.items()))
        return found

    def _bags(self, rows: slice, n_rows: int, unseen: UnseenRows) -> tuple[Bags, ...]:
        """Return the columns of counts and text of some rows; add the row of each unseen word to `unseen`."""
        read = []
        for j in self.schema.of_kind("counts"):
            column = self.schema.columns[j]
            if j in self.texts:
                read.append(self.texts[j].rows(rows))
                continue
            if self.positions[j] == ABSENT:  # as a missing text
                read.append(Bags.empty(n_rows, column.width))
                continue
            if column.text is not None:
                read.append(column.count_words(self.table.texts(self.positions[j], rows)))
                continue
            if not isinstance(self.table, TableWithCounts):
                raise no_counts(column.name)
            bags, of_words = self.table.bags(self.positions[j], column, rows)
            if len(of_words):
                unseen[column.name] = of_words
            read.append(bags)
        return tuple(read)

    def parts(self, slices: Sequence[slice], labelling: Labelling) -> Iterator[tuple[RowReader, Labelling, slice]]:
        """Yield each slice of rows with a reader that has these rows in memory.

        A streamed table is read in one pass, part by part, so that a part can be freed after its batch.
        """
        if self.kept is not None or not isinstance(self.table, StreamedTable):
            yield from ((self, labelling, rows) for rows in slices)
            return
        label_column = labelling.column_of(self.table)
        wanted = self.schema.of_kind("continuous") if self.numeric_only else self.schema.modelled
        read = [j for j in wanted if self.positions[j] != ABSENT]
        # The parts of a date are read from one column.
        columns = list(dict.fromkeys(self.positions[j] for j in read))
        positions = [columns.index(self.positions[j]) if j in read else ABSENT for j in range(len(self.positions))]
        label_place = len(columns)
        columns += [] if label_column is None else [label_column.position]
        from_first_rows = isinstance(self.table, Scan) and self.table.from_first_rows
        for part, rows in zip(self.table.parts(slices, columns), slices, strict=True):
            if label_column is not None:
                labelling = replace(labelling, labels=replace(label_column, table=part, position=label_place))
            yield replace(self, table=part, positions=positions, unseen_is_error=from_first_rows), labelling, rows


T = TypeVar("T")


@dataclass(frozen=True)
class ComposedSource(ABC):
    """Rows that a reader reads and a labelling labels.

    A subclass decides where the passes over the rows run. It implements the abstract methods and overrides no other.
    """

    reader: RowReader
    labelling: Labelling
    n_jobs: int | None = None  # the number of threads; None or −1 for one per core
    progress: Callable[[int], None] | None = None  # called with the number of rows of each batch that is done
    # numbers per row that the work on a batch holds in memory, beyond the cells: batches have fewer rows the more
    width: int = 0

    @abstractmethod
    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Fold: add up accumulate(batch) over all batches."""

    @abstractmethod
    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches in the order of the rows; warn of categories unseen in training."""

    @abstractmethod
    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` names the pass for progress reports."""

    @abstractmethod
    def cached(self) -> Self:
        """Return the same rows, with their cells kept in memory for further passes where they are few enough."""

    @property
    def table(self) -> Table:
        """The table that holds the rows."""
        return self.reader.table

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.reader.schema

    @property
    def positions(self) -> Sequence[int]:
        """The position in the table of each column of the schema."""
        return self.reader.positions

    @property
    def labels(self) -> LabelColumn | PartialLabels | KnownLabels | None:
        """The labels; None where all rows are unlabelled."""
        return self.labelling.labels

    @property
    def classes(self) -> Column | None:
        """The classes of the labels; None where the rows are not to be learned from."""
        return self.labelling.classes

    @property
    def weight(self) -> Array | None:
        """The weight of each row, (n,); None where every weight is 1."""
        return self.labelling.weight

    @property
    def folds(self) -> Array | None:
        """The fold of each row, (n,), −1 for none; None where the rows have no folds."""
        return self.labelling.folds

    @property
    def unlabelled_weight(self) -> float:
        """A factor on the weight of unlabelled rows."""
        return self.labelling.unlabelled_weight

    @property
    def label_model(self) -> LabelModel | None:
        """The model log p(label | component); None where the label is the component."""
        return self.labelling.label_model

    @property
    def is_streamed(self) -> bool:
        """Whether every pass fetches the rows from elsewhere."""
        return isinstance(self.table, LazyTable)

    def batch(self, rows: slice) -> Batch:
        """Return some rows as a batch."""
        return self.reader.batch(rows, self.labelling)

    def numeric_columns(self) -> Self:
        """Return the same rows without reading categorical columns, as if all their cells were missing."""
        return replace(self, reader=replace(self.reader, numeric_only=True))

    def reweighted(self, factor: Array) -> Self:
        """Return the same rows with their weights multiplied by factors (n,)."""
        return replace(self, labelling=self.labelling.reweighted(factor))

    def with_folds(self, folds: Array) -> Self:
        """Return the same rows with the fold of each row, (n,)."""
        return replace(self, labelling=replace(self.labelling, folds=folds))

    def with_label_model(self, label_model: LabelModel | None) -> Self:
        """Return the same rows with another label model."""
        return replace(self, labelling=replace(self.labelling, label_model=label_model))

    def with_labels(self, labels: LabelColumn, classes: Column | None = None) -> Self:
        """Return the same rows with other labels, and other classes unless they are None."""
        return replace(self, labelling=self.labelling.with_labels(labels, classes))

    def with_progress(self, progress: Callable[[int], None] | None) -> Self:
        """Return the same rows; `progress` is called with the number of rows of each batch that is done."""
        return replace(self, progress=progress)

    def with_schema(self, schema: Schema) -> Self:
        """Return the same rows under another schema of the same columns, with other cut points."""
        return replace(self, reader=replace(self.reader, schema=schema))

    def with_width(self, width: int) -> Self:
        """Return the same rows in batches for work that holds `width` numbers per row in memory."""
        return replace(self, width=width)

    def with_unlabelled_weight(self, weight: float) -> Self:
        """Return the same rows with another factor on the weight of unlabelled rows."""
        return replace(self, labelling=replace(self.labelling, unlabelled_weight=weight))

    def with_weight(self, weight: Array | None) -> Self:
        """Return the same rows with other weights (n,)."""
        return replace(self, labelling=replace(self.labelling, weight=weight))


_TILE_BYTES = 1 << 25  # of the numbers of one batch: with less, Python's work per batch would dominate
_MOST_ROWS = 1 << 16  # in a batch
_FEWEST_ROWS = 1 << 10  # in a batch
_MOST_HELD = 1 << 30  # bytes of cells that are kept in memory
_MOST_HELD_OF_STREAM = 1 << 29  # bytes of cells of a stream that are kept in memory
_FEW_ROWS = 1 << 17  # of files, whose categories are read again for a hint
_SHARED_ROWS = 1 << 14  # a longer table is cut into batches for several threads, even if one batch could hold it
_TIMED_PARTS = 4  # of a longer table, spread over it: the time of a row depends on which of its cells are missing
_TIMED_ROWS = 1 << 7  # in each of them, the fewest
_MOST_TIMED_ROWS = 1 << 10  # the most: in a short batch, the time that every batch takes would count too much
_TIMED_SHARE = 160  # rows of the table per row of a part
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
                    if len(result) < n_rows:
                        work = Work(n_bytes=result.nbytes / len(result) * n_rows)
                        work.announce(f"the scoring of {n_rows:,} rows", _FEWER_ROWS)
                        scores.append(np.empty((n_rows, *result.shape[1:]), result.dtype))
                    else:
                        scores.append(result)
            if scores[0] is not result:
                scores[0][batch.start : batch.start + len(result)] = result
            return batch.unseen

        for counts in self.stream(store):
            unseen.update(counts)
        if unseen:
            warn_of_unseen(unseen, self.reader.misspelt(unseen))
        return scores[0]

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` names the pass for progress reports.

        Scores of a longer table in memory are timed on some of its rows first, and announced if they take long.
        """
        slices = self._slices()
        progress = self.progress
        if progress is None and (len(slices) > 1 or callback.get() is not None):
            progress = start_progress(what, self.table.n_rows)

        def read_and_work(part: tuple[RowReader, Labelling, slice]) -> T:
            reader, labelling, rows = part
            batch = reader.batch(rows, labelling)
            result = work(batch)
            if progress is not None:
                progress(len(batch))
            return result

        if what == "scores" and self.table.n_rows > _SHARED_ROWS and not isinstance(self.table, LazyTable):
            seconds = self._timed(work) * self.table.n_rows
            Work(seconds).announce(f"the scoring of {self.table.n_rows:,} rows", _FEWER_ROWS)
        n_jobs = min(n_threads(self.n_jobs), len(slices)) if len(slices) > 1 else 1
        yield from in_order(self.reader.parts(slices, self.labelling), read_and_work, n_jobs)

    def _timed(self, work: Callable[[Batch], object]) -> float:
        """Return the seconds that work takes per row, on one core, measured on rows spread over the table."""
        n_timed = min(max(self.table.n_rows // _TIMED_SHARE, _TIMED_ROWS), _MOST_TIMED_ROWS)
        apart = (self.table.n_rows - n_timed) // (_TIMED_PARTS - 1)
        starts = [0, *(k * apart for k in range(_TIMED_PARTS))]  # the first part comes twice, because it may compile
        slices = [slice(start, start + n_timed) for start in starts]
        seconds = []
        for reader, labelling, rows in self.reader.parts(slices, self.labelling):
            begun = time.thread_time()
            work(reader.batch(rows, labelling))
            seconds.append(time.thread_time() - begun)
        return sum(seconds[1:]) / (_TIMED_PARTS * n_timed)

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
        plain = replace(self, labelling=replace(self.labelling, label_model=None, folds=None))
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


def warn_of_unseen(unseen: Mapping[str, int], misspelt: Mapping[str, tuple[str, str]] = MappingProxyType({})) -> None:
    """Warn of cells whose category was unseen in training, with their number per column, and what may be meant."""
    cells = []
    for name, count in unseen.items():
        pair = misspelt.get(name)
        hint = f" ({pair[0]!r}: did you mean {pair[1]!r}?)" if pair else ""
        cells.append(f"{count} cell{'s' if count > 1 else ''} of {quote([name])}{hint}")
    warn(f"categories unseen in training count as missing: {', '.join(cells)}")


def source_of(
    table: Table,
    schema: Schema,
    positions: Sequence[int],
    labels: LabelColumn | PartialLabels | None = None,
    classes: Column | None = None,
    weight: Array | None = None,
    folds: Array | None = None,
    n_jobs: int | None = None,
    unlabelled_weight: float = 1.0,
    label_model: LabelModel | None = None,
    progress: Callable[[int], None] | None = None,
    texts: Mapping[int, Bags] | None = None,
    local: bool = False,
    infinity_is_error: bool = True,
) -> LabelledSource:
    """Return the rows of a table as a source, which runs where the engine of the table runs (`engines.ENGINES`).

    Parameters
    ----------
    table : Table
    schema : Schema
    positions : sequence of int
        As in `RowReader`.
    labels, classes, weight, folds, unlabelled_weight, label_model
        As in `Labelling`.
    n_jobs : int, optional
        The number of threads; None or −1 for one per core.
    progress : callable, optional
        Called with the number of rows of each batch that is done.
    texts : mapping of int to Bags, optional
        As in `RowReader`.
    local : bool, default False
        Whether this process reads all batches, whatever the engine.
    infinity_is_error : bool, default True
        As in `RowReader`.
    """
    reader = RowReader(table, schema, positions, texts=texts or {}, infinity_is_error=infinity_is_error)
    labelling = Labelling(labels, classes, weight, folds, unlabelled_weight, label_model)
    source_class = TableSource if local or isinstance(table, ArrayTable | PolarsTable) else source_class_of(table)
    source: LabelledSource = source_class(reader, labelling, n_jobs, progress)
    return source
