"""Models in JavaScript: an evaluator as an ES module, and models as the JSON that it reads.

`evaluator/` holds the module in parts, whose classes have the names of those in Python. The rest of the folder writes
what it reads. A test compares each with Python.
"""

from posteriori.javascript.export import javascript_evaluator, to_javascript

__all__ = ["javascript_evaluator", "to_javascript"]
