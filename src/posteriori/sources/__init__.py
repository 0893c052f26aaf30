"""Where rows live: a source folds batches into statistics, and maps them to scores.

`reduce` learns, `map` predicts, and both stand on `stream`, for work that keeps its results apart. Whether the rows are
in memory, in files, in partitions or in a database is known only here and below.
"""

from posteriori.sources.source import LabelledSource, Source
from posteriori.sources.table_source import source_of

__all__ = ["LabelledSource", "Source", "source_of"]
