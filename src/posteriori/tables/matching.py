"""Match the columns of a table to those of a schema."""

from __future__ import annotations

import warnings

from posteriori.tables.blocks import check_blocks
from posteriori.tables.messages import quote
from posteriori.tables.schema import Schema
from posteriori.tables.table import Table


def matched_places(
    table: Table, schema: Schema, model: str, target: str | None = None, *, warn_of_lost_names: bool = True
) -> tuple[int, ...]:
    """Return the position in a table of each column of a schema; the table may also hold the target.

    Other columns are ignored with a warning, where both sides have names.

    Raises
    ------
    ValueError, TypeError
        As `Schema.match` and `check_blocks`.
    """
    check_blocks(table, schema, model)
    if schema.named and not table.named and warn_of_lost_names:
        warnings.warn(
            f"X does not have valid feature names, but {model} was fitted with feature names",
            UserWarning,
            stacklevel=5,
        )
    elif table.named and not schema.named:
        warnings.warn(
            f"X has feature names, but {model} was fitted without feature names",
            UserWarning,
            stacklevel=5,
        )
    names = [name for name in table.names if name != target or target in schema.given]
    if schema.named and table.named:
        extra = [name for name in names if name not in schema.given]
        if extra and len(names) - len(extra) == len(schema.given):
            warnings.warn(f"X has {quote(extra)}, which {model} was not trained on; ignored", UserWarning, stacklevel=5)
            names = [name for name in names if name in schema.given]
    positions = schema.match(names, table.named, model)
    return tuple(table.names.index(names[position]) for position in positions)
