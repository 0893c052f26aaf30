"""Self-contained HTML report on a fitted classifier or regressor."""

from posteriori.reporting.document import Report, report

__all__ = ["Report", "report"]
