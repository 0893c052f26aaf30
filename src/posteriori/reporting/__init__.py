"""Self-contained HTML report on a fitted classifier."""

from posteriori.reporting.document import Report, report

__all__ = ["Report", "report"]
