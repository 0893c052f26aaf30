"""Any table in, arrays out: columns and their kinds, and batches of rows as tiles."""

from posteriori.tables.batch import Assignment, Batch, Codes, Numbers, Tile, one_by_one
from posteriori.tables.labels import Labels, read_labels
from posteriori.tables.reading import Table, infer_schema, read_table
from posteriori.tables.schema import Cell, Column, Schema, quote
from posteriori.tables.weights import check_weights

__all__ = [
    "Assignment",
    "Batch",
    "Cell",
    "Codes",
    "Column",
    "Labels",
    "Numbers",
    "Schema",
    "Table",
    "Tile",
    "check_weights",
    "infer_schema",
    "one_by_one",
    "quote",
    "read_labels",
    "read_table",
]
