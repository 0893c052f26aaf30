"""Whatever holds rows in, tables with a schema out: files, databases, data frames, arrays, and columns of labels.

Text files are read as people write them: dialects, written numbers and times, marks of missing cells. Whoever writes a
model never needs this folder.
"""

from posteriori.reading.database import Query, scan_sql
from posteriori.reading.files import Scan, scan
from posteriori.reading.labels import LabelColumn, PartialLabels, check_weights, read_labels, read_teaching_labels
from posteriori.reading.opening import open_table, read_rows, read_table
from posteriori.reading.schemas import infer_schema
from posteriori.reading.spellings import one_spelling
from posteriori.reading.target_cuts import TargetCuts, quantile_classes

__all__ = [
    "LabelColumn",
    "PartialLabels",
    "Query",
    "Scan",
    "TargetCuts",
    "check_weights",
    "infer_schema",
    "one_spelling",
    "open_table",
    "quantile_classes",
    "read_labels",
    "read_rows",
    "read_table",
    "read_teaching_labels",
    "scan",
    "scan_sql",
]
