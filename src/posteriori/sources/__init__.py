"""Where rows live: a source folds batches into statistics, and maps them to scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from posteriori.sources.database import DatabaseSource
from posteriori.sources.partitioned import PartitionedSource
from posteriori.sources.table_source import TableSource
from posteriori.tables import Batch, Column, LabelModel, Schema, Table
from posteriori.tables.database import Query
from posteriori.tables.partitioned import PartitionedTable
from posteriori.typing import Array

__all__ = ["LabelledSource", "Source", "TableSource", "source_of"]

S = TypeVar("S")


class Source(Protocol):
    """Rows, wherever they are."""

    @property
    def schema(self) -> Schema:
        """What the columns are."""

    def with_schema(self, schema: Schema) -> Source:
        """Return the same rows with the cut points of another schema of the same columns."""

    def numeric_columns(self) -> Source:
        """Return the same rows, their categories not read, as if all were missing."""

    def reduce(self, accumulate: Callable[[Batch], S]) -> S:
        """Fold: add up accumulate(batch) over all batches. The one way that data is read to learn."""

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches, in the order of the rows. The one way data is read to predict."""


class LabelledSource(Source, Protocol):
    """Rows to learn from, which may say of which class they are."""

    @property
    def classes(self) -> Column | None:
        """The classes of the labels, where the rows have some."""

    @property
    def label_model(self) -> LabelModel | None:
        """What labels say of components, where that is not simply which one made the row."""

    @property
    def is_streamed(self) -> bool:
        """Whether every pass fetches the rows from elsewhere."""

    def cached(self) -> LabelledSource:
        """Return the same rows, kept for further passes where they are few."""

    def with_label_model(self, label_model: LabelModel | None) -> Self:
        """Return the same rows, their labels understood so."""

    def with_schema(self, schema: Schema) -> Self:
        """Return the same rows with the cut points of another schema of the same columns."""


def source_of(table: Table, schema: Schema, *args: Any, **known: Any) -> TableSource:
    """Return the rows of a table as a source, by where they are; the arguments are those of `TableSource`."""
    kinds = ((PartitionedTable, PartitionedSource), (Query, DatabaseSource))
    kind = next((source for of_table, source in kinds if isinstance(table, of_table)), TableSource)
    return kind(table, schema, *args, **known)
