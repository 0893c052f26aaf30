"""Rows given as mappings from column names to cells: a dict or a Series for one row, a list of them for several."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.suggestions import similar
from posteriori.tables.columns import Column
from posteriori.tables.messages import quote
from posteriori.tables.missing import is_missing
from posteriori.tables.objects import (
    encode_objects,
    hash_strings,
    object_column,
    object_numbers,
    object_strings,
    plain_cell,
    whole_numbers,
)
from posteriori.tables.schema import Schema
from posteriori.tables.times import TimeType, times_of_objects, type_of_objects
from posteriori.typing import Array

_PLAIN = {float, int, type(None)}  # types of cells that NumPy converts as `object_numbers` does


@dataclass(frozen=True)
class RecordTable:
    """Mappings as rows of a table whose columns are known; a key that a row lacks is a missing cell.

    Attributes
    ----------
    records : sequence of mappings
        Cells are Python or NumPy numbers, strings or booleans; None, NaN and pandas' NA are missing.
    names : tuple of str
        The columns.
    named : bool
        Whether these names come from the training rows, and are not x0, x1, … of an array.
    """

    records: Sequence[Mapping[str, Any]]
    names: tuple[str, ...]
    named: bool = True
    container = "numpy"
    dtype = ""

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.records)

    def _cells(self, j: int, rows: slice = slice(None)) -> list[Any]:
        name = self.names[j]
        return [record.get(name) for record in self.records[rows]]

    def column(self, j: int, categorical: bool) -> Column:
        """Infer column j, as a categorical one whatever its data type if `categorical`."""
        return object_column(self.names[j], self._cells(j), categorical)

    def distinct(self, j: int) -> list[Any]:
        """Return the distinct cells of column j that are present."""
        return list({plain_cell(cell, self.names[j]) for cell in self._cells(j) if not is_missing(cell)})

    def data_type(self, j: int) -> str:
        """Return the name of the data type of column j: cells of any type."""
        return "object"

    def whole_numbers(self, j: int, n_rows: int | None) -> Array | None:
        """Return the present integers of column j in the first rows; None if it does not hold integers."""
        return whole_numbers(self._present(j, n_rows))

    def hashes(self, j: int, n_rows: int | None) -> Array | None:
        """Return hashes of the present cells of column j in the first rows; None if it does not hold strings."""
        return hash_strings(self._present(j, n_rows))

    def _present(self, j: int, n_rows: int | None) -> list[Any]:
        return [cell for cell in self._cells(j, slice(n_rows)) if not is_missing(cell)]

    def time_type(self, j: int) -> TimeType | None:
        """Return the type of the dates, times of day or durations that column j holds; None if it holds others."""
        return type_of_objects(self._cells(j))

    def times(self, j: int, wanted: TimeType, rows: slice) -> Array:
        """Return column j of some rows as times (n,) of the type that a model has, NaT where missing."""
        return times_of_objects(self._cells(j, rows), wanted, self.names[j])

    def texts(self, j: int, rows: slice) -> list[str | None]:
        """Return column j of some rows as strings, None where missing; ValueError if it does not hold strings."""
        return object_strings(self._cells(j, rows), self.names[j])

    def numbers(self, columns: Sequence[int], schema_columns: Sequence[Column], rows: slice) -> Array:
        """Return some continuous columns of some rows as floats (n, d), NaN where missing."""
        names = [self.names[j] for j in columns]
        cells = [[record.get(name) for name in names] for record in self.records[rows]]
        if _PLAIN.issuperset(type(cell) for row in cells for cell in row):
            with suppress(OverflowError):  # an integer too large for a float, which `object_numbers` names
                return np.array(cells, np.float64)  # None becomes NaN
        start = rows.start or 0
        pairs = zip(columns, schema_columns, strict=True)
        return np.stack([object_numbers(self._cells(j, rows), column, start) for j, column in pairs], axis=1)

    def codes(
        self, columns: Sequence[int], schema: Schema, schema_columns: Sequence[Column], rows: slice
    ) -> tuple[Array, dict[str, int]]:
        """Return categorical columns of some rows as codes (n, d), and the number of unseen categories per column."""
        codes = np.empty((len(self.records[rows]), len(columns)), schema.code_dtype)
        unseen = {}
        for position, (j, column) in enumerate(zip(columns, schema_columns, strict=True)):
            codes[:, position], n_unseen = encode_objects(self._cells(j, rows), column)
            if n_unseen:
                unseen[column.name] = n_unseen
        return codes, unseen


def read_records(
    X: Any, names: tuple[str, ...], model: str, *, named: bool = True, target: str | None = None
) -> RecordTable | None:
    """Open a mapping, or a list of mappings, as rows of the columns of a model; return None for any other object.

    A Series of pandas whose index names columns is a row as well.

    Issues one UserWarning for the keys that are not columns of the model. The key of the target is ignored.

    Parameters
    ----------
    X : any
    names : tuple of str
        The columns of the model.
    model : str
        The name of the model in messages.
    named : bool
        As in `RecordTable`.
    target : str, optional
        The name of the column of labels.

    Raises
    ------
    TypeError
        The first row is a mapping, and another one is not.
    """
    if type(X).__module__.startswith("scipy.sparse"):  # one of its formats is a dict
        return None
    if _is_series(X) and not set(names).isdisjoint(X.index):  # a row of a frame, such as table.iloc[3]
        X = X.to_dict()
    elif isinstance(X, list | tuple) and X and _is_series(X[0]):
        X = [row.to_dict() if _is_series(row) else row for row in X]
    if isinstance(X, Mapping):
        X = [X]
    elif not (isinstance(X, list | tuple) and X and isinstance(X[0], Mapping)):
        return None
    for row, record in enumerate(X):
        if not isinstance(record, Mapping):
            found = type(record).__name__
            raise TypeError(f"row {row} of X is a {found}, and row 0 is a dict; give each row as a dict")
    warn_of_unknown_keys(X, names, model, target, stacklevel=6)
    return RecordTable(X, names, named)


def _is_series(row: Any) -> bool:
    """Return whether an object is a Series of pandas, which need not be installed."""
    return type(row).__name__ == "Series" and type(row).__module__.split(".")[0] == "pandas"


def warn_of_unknown_keys(
    records: Iterable[Mapping[str, Any]], names: Sequence[str], model: str, target: str | None, stacklevel: int
) -> None:
    """Issue one UserWarning that names the keys of some rows that are not columns of a model."""
    known = {*names, target}
    extra = list(dict.fromkeys(key for record in records for key in record if key not in known))
    if not extra:
        return
    found = similar(str(extra[0]), [name for name in names if all(name not in record for record in records)])
    hint = f"; is {extra[0]!r} the column {found!r}?" if found else ""
    warnings.warn(
        f"the rows have {quote(map(str, extra))}, which {model} was not trained on; ignored{hint}",
        UserWarning,
        stacklevel=stacklevel,
    )
