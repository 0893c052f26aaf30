"""The explorer: one HTML file in which any input of a model may be unknown.

It is about a model, a regressor, a joint model or a network. `page/` holds its script in parts, which are joined with
the evaluator of `javascript/`, so that the page computes what Python does and needs no server.
"""

from posteriori.exploring.document import Explorer, explore

__all__ = ["Explorer", "explore"]
