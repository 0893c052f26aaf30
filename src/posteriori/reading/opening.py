"""Read any container as a table: training rows, records, and rows matched to a schema."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.engines import engine_of
from posteriori.reading.files import Scan
from posteriori.reading.known_columns import NOTHING_KNOWN, KnownColumns
from posteriori.support.checks import is_missing
from posteriori.support.lazy_polars import pl
from posteriori.support.suggestions import similar
from posteriori.support.typing import Array
from posteriori.tables.arrays import (
    ArrayTable,
    encode_objects,
    hash_strings,
    object_column,
    object_numbers,
    object_strings,
    plain_array,
    plain_cell,
    whole_numbers,
)
from posteriori.tables.batch import code_tile
from posteriori.tables.blocks import Blocks, open_blocks, open_sparse
from posteriori.tables.messages import quote
from posteriori.tables.pandas import label_name, pandas_table, plain_table, type_names
from posteriori.tables.polars import LazyTable, PolarsTable, is_polars_frame, require_threads
from posteriori.tables.schema import Column, Schema
from posteriori.tables.table import Table, UnseenRows, name_twice
from posteriori.tables.times import TimeType, times_of_objects, type_of_objects
from posteriori.user_warnings import warn

if TYPE_CHECKING:
    from sklearn.utils import Tags


_PLAIN = {float, int, type(None)}  # types of cells that NumPy converts as `object_numbers` does


@dataclass(frozen=True)
class RecordTable:
    """Mappings as rows of a table whose columns are known; a key that a row lacks is a missing cell."""

    # cells are Python or NumPy numbers, strings or booleans; None, NaN and pandas' NA are missing
    records: Sequence[Mapping[str, Any]]
    names: tuple[str, ...]  # the columns
    named: bool = True  # whether these names come from the training rows, and are not x0, x1, … of an array
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
    ) -> tuple[Array, UnseenRows]:
        """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column."""
        pairs = zip(columns, schema_columns, strict=True)
        encoded = [encode_objects(self._cells(j, rows), column) for j, column in pairs]
        return code_tile(encoded, schema, schema_columns, len(self.records[rows]))


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
    if named and _is_series(X) and not _record_of(X, named).keys().isdisjoint(names):  # a row, such as table.iloc[3]
        X = _record_of(X, named)
    elif isinstance(X, list | tuple) and X and _is_series(X[0]):
        X = [_record_of(row, named) if _is_series(row) else row for row in X]
    if isinstance(X, Mapping):
        X = [X]
    elif not (isinstance(X, list | tuple) and X and isinstance(X[0], Mapping)):
        return None
    for row, record in enumerate(X):
        if not isinstance(record, Mapping):
            found = type(record).__name__
            raise TypeError(f"row {row} of X is a {found}, and row 0 is a dict; give each row as a dict")
    warn_of_unknown_keys(X, names, model, target)
    return RecordTable(X, names, named)


def _record_of(series: Any, named: bool) -> dict[str, Any]:
    """Return a Series as a mapping; of a model without names, the columns are known by their numbers."""
    names = ((label_name(label), cell) for label, cell in series.to_dict().items())
    return {name if named or not name.isdecimal() else f"x{name}": cell for name, cell in names}


def _is_series(row: Any) -> bool:
    """Return whether an object is a Series of pandas, which need not be installed."""
    return type(row).__name__ == "Series" and type(row).__module__.split(".")[0] == "pandas"


def warn_of_unknown_keys(
    records: Iterable[Mapping[str, Any]], names: Sequence[str], model: str, target: str | None
) -> None:
    """Issue one UserWarning that names the keys of some rows that are not columns of a model."""
    known = {*names, target}
    extra = list(dict.fromkeys(key for record in records for key in record if key not in known))
    if not extra:
        return
    found = similar(str(extra[0]), [name for name in names if all(name not in record for record in records)])
    hint = f"; is {extra[0]!r} the column {found!r}?" if found else ""
    warn(f"the rows have {quote(map(str, extra))}, which {model} was not trained on; ignored{hint}")


def read_table(X: Any, known: KnownColumns = NOTHING_KNOWN) -> Table:
    """Open a NumPy array, a list of rows, a data frame that narwhals reads, a scan, or what a registered engine takes.

    A path is scanned, and the columns of text files are read with what is known of them; what that changes in their
    cells is warned of. A lazy table, such as a polars LazyFrame or a DuckDB relation, is computed and held in memory.

    A sparse matrix of SciPy is a table with a single column of counts, and `Blocks` are several beside a table.
    Raises TypeError if X is not a table, and ValueError if X is not two-dimensional, is empty, or two
    columns share a name.
    """
    table = open_table(X, known)
    shape = (table.n_rows, len(table.names))
    if type(X).__module__.startswith("scipy.sparse"):
        shape = X.shape
    if not shape[1]:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if not shape[0]:
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    return table


def read_rows(X: Any, schema: Schema, model: str) -> Table:
    """Open rows to predict: a table as `read_table` does, a dict or a Series of pandas for one row, or a list of these.

    Of dicts, the keys are the columns of the schema. A key that a row lacks is a missing cell; other keys are ignored,
    with a warning.
    """
    records = read_records(X, schema.given, model, named=schema.named, target=schema.target)
    if records is not None:
        return records
    are_files = isinstance(X, str | os.PathLike | Scan)
    return read_table(X, KnownColumns.of_model(schema) if are_files else NOTHING_KNOWN)


def open_table(X: Any, known: KnownColumns = NOTHING_KNOWN) -> Table:
    """Open a table as `read_table` does, without a check that it has rows and columns."""
    if isinstance(X, np.ndarray):
        return ArrayTable(_two_dimensional(X))
    if is_polars_frame(X):
        return PolarsTable(X)
    if isinstance(X, Scan):
        again = X.knowing(known)
        again.warn_of_repairs(before=X)
        return again
    if isinstance(X, LazyTable):
        return X
    if isinstance(X, Blocks):
        return open_blocks(X, None if X.table is None else read_table(X.table))
    if type(X).__module__.startswith("scipy.sparse"):
        return open_sparse(X)
    engine = engine_of(X)
    if engine is not None:
        opened: Table = engine.open(X)
        if isinstance(opened, Scan):
            opened = opened.knowing(known)
            opened.warn_of_repairs()
        return opened
    if type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "iloc") and hasattr(X, "columns"):
        return pandas_table(X)
    return _open_foreign(X)


def _open_foreign(X: Any) -> Table:
    """Open an object of another library: a frame that narwhals reads, an Arrow table, or rows of cells."""
    import narwhals as nw

    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise name_twice(list(X.columns) if hasattr(X, "iloc") else X.column_names) or error from None
    if isinstance(frame, nw.LazyFrame):
        return PolarsTable(frame.collect("polars").to_native())
    if isinstance(frame, nw.DataFrame):
        return _open_frame(frame)
    if hasattr(X, "__arrow_c_stream__") and (hasattr(X, "columns") or not hasattr(X, "__array__")):
        return _open_arrow(X)
    if isinstance(X, bytes | dict) or X is None:
        raise TypeError(f"X is a {type(X).__name__}, not a table; pass an array or a data frame")
    if isinstance(X, list | tuple) and any(isinstance(row, Mapping) for row in X):
        raise TypeError("X is a list of dicts, which have no fixed columns; make a table of it: polars.DataFrame(X)")
    return ArrayTable(_two_dimensional(_array_of_rows(X)))


def _array_of_rows(X: Any) -> Array:
    """Return rows as an array; of objects if NumPy would convert numbers to strings, or booleans to numbers."""
    try:
        values = np.asarray(X)
    except ValueError:
        raise ValueError("the rows of X are not of one length; give each row one cell per column") from None
    if not isinstance(X, list | tuple) or values.ndim != 2 or values.dtype.kind not in "USiuf":
        return values
    if values.dtype.kind in "US" or any(isinstance(cell, bool | np.bool_) for row in X for cell in row):
        return np.array(X, dtype=object)
    return values


def _open_frame(frame: Any) -> Table:
    native = frame.to_native()
    implementation = frame.implementation
    if implementation.is_pandas_like():
        if not implementation.is_pandas():
            native = frame.to_pandas()
        return pandas_table(native)
    if implementation.is_polars():
        return PolarsTable(native)
    return _open_arrow(native)


def _open_arrow(X: Any) -> PolarsTable:
    import pyarrow as pa

    require_threads("an Arrow table")
    given = X if isinstance(X, pa.Table) else pa.table(X)
    plain = plain_table(given)
    return PolarsTable(pl.DataFrame(plain), "pyarrow", type_names(given, plain))


def _two_dimensional(values: Array) -> Array:
    if values.ndim == 1 and len(values) and all(isinstance(cell, str) for cell in values):
        raise ValueError(
            'X is a list of strings; give a table with one column, polars.DataFrame({"text": X}), and '
            'columns=po.Columns(text=["text"]) if they are texts, to be cut into words'
        )
    values = plain_array(values, "X", times=True)
    if values.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {values.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
            "contains a single sample."
        )
    return values


def takes_tables(tags: Tags) -> Tags:
    """Return the tags of an estimator with those of tables with missing cells, strings and categories."""
    tags.input_tags.allow_nan = True
    tags.input_tags.categorical = True
    tags.input_tags.string = True
    return tags
