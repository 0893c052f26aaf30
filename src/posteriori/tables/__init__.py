"""Any table in, arrays out: columns and their kinds, and batches of rows as tiles.

`table.py` is the interface of a table. Each kind of table, in memory or of an engine, is one file.
"""

from posteriori.tables.bags import Bags
from posteriori.tables.batch import Assignment, Batch, Codes, LabelLikelihood, Numbers, Tile, split_by_component
from posteriori.tables.blocks import Blocks
from posteriori.tables.messages import IgnoredColumnWarning, ReadingWarning, quote
from posteriori.tables.schema import Cell, Column, Schema
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
    "LabelLikelihood",
    "Numbers",
    "ReadingWarning",
    "Schema",
    "Table",
    "Tile",
    "quote",
    "split_by_component",
]
