"""Where rows live: a source folds batches into statistics, and maps them to scores."""

from posteriori.sources.opening import source_of
from posteriori.sources.source import LabelledSource, Source

__all__ = ["LabelledSource", "Source", "source_of"]
