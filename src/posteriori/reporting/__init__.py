"""One self-contained page about a fitted classifier, for people."""

from posteriori.reporting.document import Report, report

__all__ = ["Report", "report"]
