"""Column names as polars expressions."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs


def exactly(*names: str) -> pl.Expr:
    """Return the columns with these names, in this order.

    `polars.col` reads ``*`` and names from ``^`` to ``$`` as patterns, which a file may well use as names.
    """
    return cs.by_name(*names).as_expr()
