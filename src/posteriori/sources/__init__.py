"""Where rows live: a source folds batches into statistics, and maps them to scores."""

from posteriori.sources.source import LabelledSource, Source
from posteriori.sources.table_source import source_of

__all__ = ["LabelledSource", "Source", "source_of"]
