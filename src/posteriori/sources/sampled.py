"""A sample of the rows of a source, in memory."""

from __future__ import annotations

import numpy as np

from posteriori.reading.labels import KnownLabels
from posteriori.sources.source import LabelledSource
from posteriori.sources.table_source import CachedRows, Labelling, RowReader, TableSource
from posteriori.support.typing import Array
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.batch import joined


def sampled_source(source: LabelledSource, rows: Array, components: Array) -> TableSource:
    """Return some labelled rows as a source of their own, read in one pass.

    Parameters
    ----------
    source : LabelledSource
        Under its inferred schema, without bins.
    rows : ndarray (m,)
        The positions of the rows, ascending; a row may occur several times.
    components : ndarray (m,)
        The class index of each of them.
    """
    marked = np.zeros(source.table.n_rows, np.bool_)
    marked[rows] = True
    parts = source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]), "reading")
    cells = joined([part for part in parts if len(part)])
    if len(cells) < len(rows):
        cells = cells.rows(np.searchsorted(np.flatnonzero(marked), rows))
    schema = source.schema
    codes = cells.codes.values[:, [schema.coded.index(j) for j in schema.of_kind("categorical")]]
    texts = dict(zip(schema.of_kind("counts"), cells.bags, strict=True))
    reader = RowReader(
        ArrayTable(np.empty((len(rows), 0))),
        schema,
        source.positions,
        CachedRows(cells.numbers.values, codes),
        texts=texts,
    )
    weight = None if source.weight is None else source.weight[rows]
    labels = KnownLabels(components.astype(np.int32))
    return TableSource(reader, Labelling(labels, source.classes, weight), source.n_jobs)
