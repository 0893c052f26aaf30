"""The schema of a table: what each column is, inferred from its cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from posteriori.reading.column_kinds import Parts, extended_dates, find_dates, find_identifiers
from posteriori.reading.marks import marks_in
from posteriori.reading.texts import SAMPLED, CountedText, Texts, extended_texts, find_texts, may_be_text
from posteriori.reading.written_times import looks_like_times
from posteriori.tables.arrays import (
    ArrayTable,
)
from posteriori.tables.blocks import needs_dense
from posteriori.tables.messages import IgnoredColumnWarning, infinite_cell, quote
from posteriori.tables.polars import LazyTable
from posteriori.tables.schema import Column, Schema
from posteriori.tables.table import Table
from posteriori.user_warnings import warn


def infer_schema(
    table: Table,
    columns: Sequence[int] | None = None,
    categorical: Sequence[int] = (),
    target: str | None = None,
    *,
    keep: Collection[int] | None = None,
    dates: Parts | None = None,
    known: Mapping[int, tuple[Column, ...]] | None = None,
    reads_counts: bool = False,
    texts: Texts = (),
    counted: dict[int, CountedText] | None = None,
    deciding: Table | None = None,
) -> Schema:
    """Infer the schema of a table.

    Parameters
    ----------
    table : Table
    columns : sequence of int, optional
        The positions of the columns to read; default all.
    categorical : sequence of int
        The positions of columns that are categorical although their data type is numeric.
    target : str, optional
        The name of the column of labels, which the schema keeps.
    keep : collection of int, optional
        The positions of columns that are not ignored even if they identify rows (`find_identifiers`); None keeps all.
    dates : "parts", "ignore" or sequence of str, optional
        How dates, times of day and durations are read (`find_dates`); None refuses them.
    known : mapping of int to tuple of Column, optional
        The columns of a fitted model that come from a column of the table, by its position: ignored ones, which are not
        read, and parts of dates.
    reads_counts : bool
        Whether the caller reads columns of counts; if not, they are an error.
    texts : collection of int, or mapping of int to Tokenizer
        The positions of the columns that may be text, or of those that are (`find_texts`); default: no column is.
    counted : dict, optional
        Where the counts of the words of columns of text in memory are put, by their positions (`see_words`).
    deciding : Table, optional
        The rows that decide which columns identify rows; default all.

    Returns
    -------
    Schema
        The columns of the table in this order, with the parts of dates in place of a column of dates.
        `Schema.spread(columns)` is the position in the table of each of them.

    Raises
    ------
    ValueError
        Every column is ignored, or for the reasons of `find_dates`.
    TypeError
        A column is a sparse block of counts, and the caller reads dense columns only.

    Warns
    -----
    IgnoredColumnWarning
        A column identifies rows, or has no part to read, and is ignored.
    """
    declared = set(categorical)
    positions = range(len(table.names)) if columns is None else columns
    found: dict[int, tuple[Column, ...]] = {}
    if known:
        found = extended_dates(table, known) | extended_texts(table, known, counted)
    # An array of floats holds no date, no text and no identifier, unless an argument says so, which is then checked.
    is_plain = isinstance(table, ArrayTable) and table.values.dtype.kind == "f"
    if dates is not None and not (is_plain and isinstance(dates, str)):
        found |= find_dates(table, [j for j in positions if j not in found], dates, declared)
    if texts and not (is_plain and not isinstance(texts, Mapping)):
        found |= find_texts(table, [j for j in positions if j not in found], texts, counted)
    if keep is not None and not is_plain:
        identifiers = _identifiers(deciding or table, [j for j in positions if j not in found], declared.union(keep))
        found |= {j: (column,) for j, column in identifiers.items()}
    read = [j for j in positions if j not in found]
    if not known and not is_plain and not isinstance(table, LazyTable):
        _warn_of_marks(table, [j for j in positions if j not in declared])
    if isinstance(table, LazyTable):
        table.find_categories(read, declared, target)
    of_position = {j: table.column(j, j in declared) for j in read}
    for j, column in of_position.items():
        if column.kind == "counts" and not reads_counts:
            raise needs_dense(column, table.n_rows, "this estimator")
        _reject_infinite(table, j, column)
    found |= {j: (column,) for j, column in of_position.items()}
    if all(column.is_ignored for j in positions for column in found[j]):
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for j in positions for column in found[j])
        raise ValueError(f"X has no column left to learn from ({reasons}); add a feature")
    return Schema(
        tuple(column for j in positions for column in found[j]),
        container=table.container,
        named=table.named,
        dtype=table.dtype,
        target=target,
    )


def _warn_of_marks(table: Table, positions: Iterable[int]) -> None:
    """Warn of columns of strings in memory whose first cells are dates, or numbers and marks of missing cells."""
    found: dict[str, tuple[str, ...]] = {}
    dates: list[str] = []
    for j in positions:
        if may_be_text(table, j):
            cells = table.texts(j, slice(0, min(SAMPLED, table.n_rows)))
            marks = marks_in(cells)
            if marks:
                found[table.names[j]] = marks
            elif looks_like_times(cells):
                dates.append(table.names[j])
    if dates:
        holds, are = ("holds", "is") if len(dates) == 1 else ("hold", "are")
        warn(
            f"{quote(dates)} {holds} strings that are dates or times, and {are} read as categories; convert them (in "
            "polars by str.to_datetime(), in pandas by to_datetime), or name them in categorical_features"
        )
    if found:
        listed = ", ".join(map(repr, sorted({mark for marks in found.values() for mark in marks})))
        holds, are = ("holds", "is") if len(found) == 1 else ("hold", "are")
        warn(
            f"{quote(found)} {holds} strings that are numbers except for {listed}, and {are} not read as numbers; "
            "convert them (in polars by cast(polars.Float64, strict=False), in pandas by "
            "to_numeric(…, errors='coerce')), or name them in categorical_features"
        )


def _identifiers(table: Table, positions: Sequence[int], keep: Collection[int]) -> dict[int, Column]:
    """Return the columns that identify rows, with a warning; none if no other column is left to learn from."""
    found = find_identifiers(table, [j for j in positions if j not in keep])
    if not found or len(found) == len(positions):
        return {}
    names = [column.name for column in found.values()]
    are, them = ("are", "them") if len(names) > 1 else ("is", "it")
    reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in found.values())
    kept = names if table.named else list(found)
    warn(
        f"{quote(names)} {are} ignored ({reasons}); to use {them}, pass columns=po.Columns(keep={kept!r}) "
        "(--column NAME=keep on the command line)",
        IgnoredColumnWarning,
    )
    return found


def _reject_infinite(table: Table, j: int, column: Column) -> None:
    infinite = [cell for cell in column.categories if cell in (math.inf, -math.inf)]
    if infinite:
        codes, _ = table.codes([j], Schema((column,)), [column], slice(0, table.n_rows))
        row = np.flatnonzero(codes == column.lookup[infinite[0]])[0]
        raise infinite_cell(column.name, float(infinite[0]), int(row))
