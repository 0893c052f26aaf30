"""Column names as polars expressions."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs


def exactly(*names: str) -> pl.Expr:
    """Return the columns with these names, in this order.

    `polars.col` would read ``*`` and names from ``^`` to ``$`` as patterns, but a file may use them as names.
    """
    return cs.by_name(*names).as_expr()
