"""Watching a classifier in use: batch after batch, whether its model still holds.

Rows are scored in streams, and a martingale measures the evidence that the scores have changed. The state of a monitor
is a value with a file of its own, and its history is a page.
"""

from posteriori.watching.monitor import BatchVerdict, Monitor

__all__ = ["BatchVerdict", "Monitor"]
