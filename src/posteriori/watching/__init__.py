"""Watching a classifier in use: batch after batch, whether its model still holds."""

from posteriori.watching.monitor import BatchVerdict, Monitor

__all__ = ["BatchVerdict", "Monitor"]
