"""The order of labelled rows by their cells, from which folds are dealt."""

from __future__ import annotations

import numpy as np

from posteriori.sources import LabelledSource
from posteriori.statistics.canonical_order import CanonicalOrder
from posteriori.statistics.forests import CodedRows
from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Batch, joined

_MOST_CELLS = 1 << 24  # that are held and sorted


def order_by_cells(source: LabelledSource, chosen: Array, component: Array, weight: Array) -> CanonicalOrder | None:
    """Return an order of rows and classes that depends on cells, labels and weights, not on places and names.

    Of numbers, their order within the column counts, so that units do not. None for a table of more than 2²⁴ cells.

    Parameters
    ----------
    source : LabelledSource
        Under its inferred schema. It is read once.
    chosen : ndarray (m,)
        The positions of the rows, ascending.
    component : ndarray (m,)
        The class index of each of them.
    weight : ndarray (m,)
    """
    if len(chosen) * len(source.schema.columns) > _MOST_CELLS:
        return None
    marked = np.zeros(source.table.n_rows, np.bool_)
    marked[chosen] = True
    parts = source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]), "reading")
    cells = joined([part for part in parts if len(part)])
    columns = [*map(_ranks, cells.numbers.values.T), *_categories(cells), *map(_distinct, cells.bags)]
    codes = np.array(columns, np.int32).reshape(len(columns), len(chosen)).T
    cardinalities = tuple(codes.max(axis=0, initial=0).tolist())
    is_ordered = np.arange(len(columns)) < cells.numbers.values.shape[1]
    n_classes = int(component.max()) + 1
    hashes = np.zeros(len(chosen), np.uint64)  # all rows are kept
    rows = CodedRows(cardinalities, n_classes, len(chosen), hashes, codes, component.astype(np.int32), weight)
    return CanonicalOrder.of(rows, is_ordered)


def _ranks(values: Array) -> Array:
    """Return the rank of each number among the distinct ones, from 1; 0 where it is missing."""
    known, ranks = ~np.isnan(values), np.zeros(len(values), np.int32)
    ranks[known] = np.unique(values[known], return_inverse=True)[1] + 1
    return ranks


def _categories(cells: Batch) -> Array:
    schema = cells.schema
    found: Array = cells.codes.values[:, [schema.coded.index(j) for j in schema.of_kind("categorical")]].T
    return found


def _distinct(bags: Bags) -> Array:
    """Return codes of bags, from 1, that are equal where the bags are."""
    parts = [slice(*ends) for ends in zip(bags.starts[:-1], bags.starts[1:], strict=True)]
    number: dict[tuple[bytes, bytes], int] = {}
    keys = [(bags.words[part].tobytes(), bags.counts[part].tobytes()) for part in parts]
    return np.array([number.setdefault(key, 1 + len(number)) for key in keys], np.int32)
