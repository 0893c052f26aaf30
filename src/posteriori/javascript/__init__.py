"""Models in JavaScript: an evaluator as an ES module, and models as the JSON that it reads."""

from posteriori.javascript.export import javascript_evaluator, to_javascript

__all__ = ["javascript_evaluator", "to_javascript"]
