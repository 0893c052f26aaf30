"""The interface of a table: what every container and every engine provides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.schema import Column, Schema
from posteriori.tables.times import TimeType

# The rows of the cells per column, by name, whose category was unseen in training; of counts, a row for each such word.
UnseenRows = dict[str, Array]
NO_ROWS = np.empty(0, np.int64)


class Table(Protocol):
    """Rows and columns: kinds of columns are inferred from them, and blocks of cells are read."""

    @property
    def container(self) -> str:
        """The kind of table: ``"numpy"``, ``"pandas"``, ``"polars"`` or ``"pyarrow"``."""

    @property
    def named(self) -> bool:
        """Whether the columns have names of their own."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""

    @property
    def dtype(self) -> str:
        """The data type of all cells, where there is one."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j."""

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Return the present integers of column j in the first rows; None if it does not hold integers."""

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Return hashes of the present cells of column j in the first rows; None if it does not hold strings."""

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations that column j holds; None if it holds others."""

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Return column j of some rows as times (n,) of the type that a model has, NaT where missing."""

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Return column j of some rows as strings, None where missing; ValueError if it does not hold strings."""

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as floats (n, d), NaN where missing."""

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, UnseenRows]:
        """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column."""


def joined_rows(parts: Iterable[tuple[int, UnseenRows]]) -> UnseenRows:
    """Return the rows of unseen categories of parts of a table that follow each other, from their lengths and rows."""
    found: dict[str, list[Array]] = {}
    start = 0
    for n_rows, unseen in parts:
        for name, rows in unseen.items():
            found.setdefault(name, []).append(start + rows)
        start += n_rows
    return {name: np.concatenate(each) for name, each in found.items()}


def joined_codes(parts: Sequence[tuple[Array, UnseenRows]], rows: slice) -> tuple[Array, UnseenRows]:
    """Return some rows of the codes of parts of a table that follow each other, and those of unseen categories."""
    codes = np.concatenate([of_part for of_part, _ in parts])
    unseen = joined_rows((len(of_part), found) for of_part, found in parts)
    return codes[rows], chosen_rows(unseen, len(codes), rows)


def chosen_rows(unseen: UnseenRows, n_rows: int, chosen: Array | slice) -> UnseenRows:
    """Return the rows of unseen categories of some of n rows, by a mask, their positions or a slice."""
    found = {}
    for name, rows in unseen.items():
        of_chosen = np.bincount(rows, minlength=n_rows)[chosen]
        if of_chosen.any():
            found[name] = np.repeat(np.arange(len(of_chosen)), of_chosen)
    return found


def name_twice(names: Sequence[Any]) -> ValueError | None:
    """Return the error for two columns that share a name; None where all names differ."""
    duplicate = next((name for name in names if names.count(name) > 1), None)
    return None if duplicate is None else ValueError(f"column {duplicate!r} occurs twice; rename or drop one")
