"""The explorer: one HTML file in which any input of a model may be unknown."""

from posteriori.exploring.document import Explorer, explore

__all__ = ["Explorer", "explore"]
