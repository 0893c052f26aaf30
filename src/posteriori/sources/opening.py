"""Compose a source of a table, its schema and its labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from posteriori.engines import source_class_of
from posteriori.sources.labelling import Labelling
from posteriori.sources.row_reader import RowReader
from posteriori.sources.source import LabelledSource
from posteriori.sources.table_source import TableSource
from posteriori.tables import Bags, Column, LabelModel, Labels, PartialLabels, Schema, Table
from posteriori.typing import Array


def source_of(
    table: Table,
    schema: Schema,
    positions: Sequence[int],
    labels: Labels | PartialLabels | None = None,
    classes: Column | None = None,
    weight: Array | None = None,
    folds: Array | None = None,
    n_jobs: int | None = None,
    unlabelled_weight: float = 1.0,
    label_model: LabelModel | None = None,
    progress: Callable[[int], None] | None = None,
    texts: Mapping[int, Bags] | None = None,
    local: bool = False,
) -> LabelledSource:
    """Return the rows of a table as a source, which runs where the engine of the table runs (`engines.ENGINES`).

    Parameters
    ----------
    table : Table
    schema : Schema
    positions : sequence of int
        The position in the table of each column of the schema.
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
    """
    reader = RowReader(table, schema, positions, texts=texts or {})
    labelling = Labelling(labels, classes, weight, folds, unlabelled_weight, label_model)
    source_class = TableSource if local else source_class_of(table)
    source: LabelledSource = source_class(reader, labelling, n_jobs, progress)
    return source
