"""Missing cells among Python objects."""

from __future__ import annotations

from typing import Any


def is_missing(cell: Any) -> bool:
    """Return whether a Python cell is None, NaN or pandas' NA or NaT."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # an array has many
        return False
