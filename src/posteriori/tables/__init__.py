"""Any table in, arrays out: columns and their kinds, and batches of rows as tiles."""

from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Batch, Codes, LabelLikelihood, Numbers, Tile, split_by_component
from posteriori.tables.blocks import Blocks
from posteriori.tables.database import Query, scan_sql
from posteriori.tables.files import Scan, scan
from posteriori.tables.labels import (
    LabelColumn,
    LabelModel,
    PartialLabels,
    TargetCuts,
    check_weights,
    quantile_classes,
    read_labels,
    read_teaching_labels,
)
from posteriori.tables.messages import IgnoredColumnWarning, ReadingWarning, quote
from posteriori.tables.reading import infer_schema, open_table, read_rows, read_table
from posteriori.tables.schema import Cell, Column, Schema
from posteriori.tables.spellings import one_spelling
from posteriori.tables.table import Table

__all__ = [
    "Assignment",
    "Bags",
    "Batch",
    "Blocks",
    "Cell",
    "Codes",
    "Column",
    "IgnoredColumnWarning",
    "LabelColumn",
    "LabelLikelihood",
    "LabelModel",
    "Numbers",
    "PartialLabels",
    "Query",
    "ReadingWarning",
    "Scan",
    "Schema",
    "Table",
    "TargetCuts",
    "Tile",
    "check_weights",
    "infer_schema",
    "one_spelling",
    "open_table",
    "quantile_classes",
    "quote",
    "read_labels",
    "read_rows",
    "read_table",
    "read_teaching_labels",
    "scan",
    "scan_sql",
    "split_by_component",
]
