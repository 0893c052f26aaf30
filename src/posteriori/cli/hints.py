"""Hints of fit on columns that are probably not what their type makes of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from posteriori.formatting import plural
from posteriori.tables import Column, Schema, quote
from posteriori.tables.names import exactly
from posteriori.tables.texts import SAMPLED, looks_like_text
from posteriori.tables.written_numbers import is_written_number

if TYPE_CHECKING:
    from posteriori.statistics.description import ScannedTable
    from posteriori.tables import Scan

_FEWEST_ROWS = 10  # with fewer rows, a row counter or as many categories as rows may be chance
_IDENTIFIER_SHARE = 0.8  # categories per present cell
_MOST_WORDS = 3  # that a column of numbers may contain as codes of a missing cell


def hints(scan: Scan, description: ScannedTable, schema: Schema) -> Iterable[str]:
    """Yield a sentence with a remedy for each suspicious column.

    The suspects are columns that count the rows, have one value or two whole numbers, mix numbers with a few words, or
    have almost as many categories as cells.
    """
    constant, binary = [], []
    for column in schema.columns:
        if column.part is not None:
            if column.is_ignored:
                yield f"{quote([column.name])} is ignored: {column.reason}"
            continue
        if column.is_ignored:
            option = "--text" if _is_text(scan, column) else "--keep"
            yield (
                f"{quote([column.name])} is ignored: {column.reason}; to use it, add {option} "
                f"{shlex.quote(column.name)}"
            )
            words = _words_in(scan, column)
            if words:
                yield _hint_on_words(scan, column, words)
            continue
        scanned = description.columns[column.name]
        present = scanned.cells.present
        if present >= _FEWEST_ROWS and scanned.counts_rows:
            yield f"{quote([column.name])} counts the rows; leave it out: --ignore {shlex.quote(column.name)}"
        if scanned.n_values == 1:
            constant.append(column.name)
        if scanned.n_values == 2 and scanned.dtype.is_integer() and column.kind == "continuous":
            binary.append(column.name)
        if column.kind == "categorical" and column.holds_strings and present >= _FEWEST_ROWS:
            yield from _hints_on_strings(scan, column, present)
    if binary:
        yield (
            f"{quote(binary)} {_have(binary)} only two values; if they are codes rather than quantities, "
            f"add --categorical {shlex.quote(','.join(binary))}"
        )
    if constant:
        yield f"{quote(constant)} {_have(constant)} only one value and cannot inform on the class"


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _hints_on_strings(scan: Scan, column: Column, present: int) -> Iterable[str]:
    n_categories = len(column.categories)
    words = _words_among_numbers(column)
    if words:
        yield _hint_on_words(scan, column, words)
    elif n_categories > _IDENTIFIER_SHARE * present:
        yield (
            f"{quote([column.name])} has {n_categories} categories in {present} cells: an identifier or "
            f"free text? leave it out: --ignore {shlex.quote(column.name)}"
        )


def _hint_on_words(scan: Scan, column: Column, words: list[str]) -> str:
    found = scan.frame.select(exactly(column.name).cast(pl.String).is_in(words).sum())
    n_cells = found.collect(engine="streaming").item()
    return (
        f"{quote([column.name])} would be a number except for {', '.join(map(repr, words))} in "
        f"{plural(n_cells, 'cell')}; if that means missing, write NA or leave the cell empty"
    )


def _is_text(scan: Scan, column: Column) -> bool:
    """Return whether an ignored column is text, which only some models read."""
    if scan.types[column.name] != pl.String:
        return False
    head = scan.frame.select(exactly(column.name).drop_nulls().head(SAMPLED)).collect(engine="streaming")
    return looks_like_text(head.to_series().to_list())


def _words_in(scan: Scan, column: Column) -> list[str]:
    """Return the cells of an ignored column that are not numbers, if they are few: its values are not stored."""
    if scan.types[column.name] != pl.String:
        return []
    cells = exactly(column.name).drop_nulls()
    words = cells.filter(~_is_number(cells)).unique().head(_MOST_WORDS + 1)
    found: list[str] = scan.frame.select(words).collect(engine="streaming").to_series().sort().to_list()
    return found if len(found) <= _MOST_WORDS else []


def _words_among_numbers(column: Column) -> list[str]:
    """Return the categories that are not numbers, if they are few and the other categories are all numbers."""
    cells = pl.DataFrame({"cells": [str(category) for category in column.categories]})
    words = cells.filter(~_is_number(pl.col("cells")))["cells"].to_list()
    return words if 0 < len(words) <= _MOST_WORDS and len(cells) - len(words) >= _FEWEST_ROWS else []


def _is_number(cells: pl.Expr) -> pl.Expr:
    """Return whether strings are numbers, possibly with a unit and separators of thousands."""
    written = is_written_number(cells, ".") | is_written_number(cells, ",")
    return cells.cast(pl.Float64, strict=False).is_not_null() | written
