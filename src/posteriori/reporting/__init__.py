"""Self-contained HTML report on a fitted classifier or regressor.

It draws what `facts/` has collected, and adds alerts about columns. The page loads nothing, so it can be sent as one
file.
"""

from posteriori.reporting.document import Report, report

__all__ = ["Report", "report"]
