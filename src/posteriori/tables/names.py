"""Column names as polars expressions."""

from __future__ import annotations

from posteriori.lazy_polars import pl


def exactly(*names: str) -> pl.Expr:
    """Return the columns with these names, in this order.

    `polars.col` would read ``*`` and names from ``^`` to ``$`` as patterns, but a file may use them as names.
    """
    return pl.selectors.by_name(*names).as_expr()
