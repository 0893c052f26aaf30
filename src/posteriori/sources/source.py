"""The interface of a source of rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol, Self, TypeVar

from posteriori.densities.label_model import LabelModel
from posteriori.reading import LabelColumn, PartialLabels
from posteriori.reading.labels import KnownLabels
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema, Table

T = TypeVar("T")


class Source(Protocol):
    """Rows, wherever they are."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    def with_schema(self, schema: Schema) -> Source:
        """Return the same rows under another schema of the same columns, with other cut points."""

    def numeric_columns(self) -> Source:
        """Return the same rows without reading categorical columns, as if all their cells were missing."""

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Fold: add up accumulate(batch) over all batches. `stream` and this read data to learn."""

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches, in the order of the rows. The one way that data is read to predict."""


class LabelledSource(Source, Protocol):
    """Rows of a table, with labels, weights and folds where they have them."""

    @property
    def table(self) -> Table:
        """The table that holds the rows."""

    @property
    def positions(self) -> Sequence[int]:
        """The position in the table of each column of the schema."""

    @property
    def labels(self) -> LabelColumn | PartialLabels | KnownLabels | None:
        """The labels; None where all rows are unlabelled."""

    @property
    def classes(self) -> Column | None:
        """The classes of the labels; None where the rows are not to be learned from."""

    @property
    def weight(self) -> Array | None:
        """The weight of each row, (n,); None where every weight is 1."""

    @property
    def folds(self) -> Array | None:
        """The fold of each row, (n,), −1 for none; None where the rows have no folds."""

    @property
    def unlabelled_weight(self) -> float:
        """A factor on the weight of unlabelled rows."""

    @property
    def label_model(self) -> LabelModel | None:
        """The model log p(label | component); None where the label is the component."""

    @property
    def n_jobs(self) -> int | None:
        """The number of threads; None or −1 for one per core."""

    @property
    def is_streamed(self) -> bool:
        """Whether every pass fetches the rows from elsewhere."""

    def cached(self) -> Self:
        """Return the same rows, with their cells kept in memory for further passes where they are few enough."""

    def batch(self, rows: slice) -> Batch:
        """Return some rows as a batch."""

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` names the pass for progress reports."""

    def numeric_columns(self) -> Self:
        """Return the same rows without reading categorical columns, as if all their cells were missing."""

    def reweighted(self, factor: Array) -> Self:
        """Return the same rows with their weights multiplied by factors (n,)."""

    def with_folds(self, folds: Array) -> Self:
        """Return the same rows with the fold of each row, (n,)."""

    def with_label_model(self, label_model: LabelModel | None) -> Self:
        """Return the same rows with another label model."""

    def with_labels(self, labels: LabelColumn, classes: Column | None = None) -> Self:
        """Return the same rows with other labels, and other classes unless they are None."""

    def with_progress(self, progress: Callable[[int], None] | None) -> Self:
        """Return the same rows; `progress` is called with the number of rows of each batch that is done."""

    def with_schema(self, schema: Schema) -> Self:
        """Return the same rows under another schema of the same columns, with other cut points."""

    def with_unlabelled_weight(self, weight: float) -> Self:
        """Return the same rows with another factor on the weight of unlabelled rows."""

    def with_weight(self, weight: Array | None) -> Self:
        """Return the same rows with other weights (n,)."""

    def with_width(self, width: int) -> Self:
        """Return the same rows in batches for work that holds `width` numbers per row in memory."""
