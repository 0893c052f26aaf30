"""A source composed of a reader of cells and a labelling of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from posteriori.sources.labelling import Labelling
from posteriori.sources.row_reader import RowReader
from posteriori.tables import Batch, Column, LabelModel, Labels, PartialLabels, Schema, Table
from posteriori.tables.labels import KnownLabels
from posteriori.tables.lazy import LazyTable
from posteriori.typing import Array

T = TypeVar("T")


@dataclass(frozen=True)
class ComposedSource(ABC):
    """Rows that a reader reads and a labelling labels.

    A subclass decides where the passes over the rows run. It implements the abstract methods and overrides no other.

    Attributes
    ----------
    reader : RowReader
    labelling : Labelling
    n_jobs : int, optional
        The number of threads; None or −1 for one per core.
    progress : callable, optional
        Called with the number of rows of each batch that is done.
    width : int
        Numbers per row that the work on a batch holds in memory, beyond the cells: batches have fewer rows the more.
    """

    reader: RowReader
    labelling: Labelling
    n_jobs: int | None = None
    progress: Callable[[int], None] | None = None
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
    def labels(self) -> Labels | PartialLabels | KnownLabels | None:
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

    def with_labels(self, labels: Labels, classes: Column | None = None) -> Self:
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
