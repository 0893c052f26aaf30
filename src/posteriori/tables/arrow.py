"""Columns of Arrow, of which there are more types than polars and pandas read."""

from __future__ import annotations

import re
from typing import Any


def plain_column(values: Any, keep_dictionaries: bool) -> Any | None:
    """Return a column of Arrow as booleans, numbers, strings or times; None if its cells are something else.

    Run ends and dictionaries are expanded, except dictionaries of strings if they are to be kept. Decimals of any
    width become floats of 64 bits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, types = values.type, pa.types
    if types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in values.chunks]
        return plain_column(pa.chunked_array(chunks, kind.value_type), keep_dictionaries)
    if types.is_dictionary(kind):
        if keep_dictionaries and kind.value_type in (pa.string(), pa.large_string()):
            return values
        chunks = [chunk.dictionary_decode() for chunk in values.chunks]
        return plain_column(pa.chunked_array(chunks, kind.value_type), keep_dictionaries)
    if types.is_decimal(kind) or types.is_null(kind):
        return values.cast(pa.float64())
    if kind == pa.string_view():
        return values.cast(pa.large_string())
    is_time = types.is_temporal(kind) and not types.is_interval(kind)
    is_scalar = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    return values if is_time or is_scalar or kind in (pa.string(), pa.large_string()) else None


def plain_table(table: Any) -> Any:
    """Return a table of Arrow with plain columns; other columns get cells of bytes, which no model reads."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        plain = plain_column(column, keep_dictionaries=True)
        columns.append(pa.repeat(pa.scalar(b""), table.num_rows) if plain is None else plain)
    return pa.table(columns, names=table.column_names)


def type_names(table: Any, plain: Any) -> tuple[str, ...]:
    """Return the names of the types of plain columns, and of the original types of columns that no model reads."""
    import pyarrow as pa

    pairs = zip(table.schema.types, plain.schema.types, strict=True)
    return tuple(str(given if read == pa.binary() else read) for given, read in pairs)


def type_of_name(name: str) -> Any | None:
    """Return the type of Arrow with this name; None for one with parameters other than a unit and a time zone."""
    import pyarrow as pa

    zoned = re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", name)
    if zoned:
        return pa.timestamp(zoned[1], zoned[2])
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return None
