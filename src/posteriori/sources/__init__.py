"""Where rows live: a source folds batches into statistics, and maps them to scores."""

from posteriori.sources.opening import local_source, source_of
from posteriori.sources.source import LabelledSource, Source

__all__ = ["LabelledSource", "Source", "local_source", "source_of"]
