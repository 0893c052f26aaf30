"""Open any object that holds rows and columns as a table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.engines import engine_of
from posteriori.lazy_polars import pl
from posteriori.tables.arrays import ArrayTable, plain_array
from posteriori.tables.arrow import plain_table, type_names
from posteriori.tables.blocks import Blocks, needs_dense, open_blocks, open_sparse
from posteriori.tables.columns import Column
from posteriori.tables.dates import Parts, extended_dates, find_dates
from posteriori.tables.forking import require_threads
from posteriori.tables.identifiers import find_identifiers
from posteriori.tables.lazy import LazyTable
from posteriori.tables.messages import IgnoredColumnWarning, infinite_cell, quote
from posteriori.tables.pandas import pandas_table
from posteriori.tables.polars import PolarsTable
from posteriori.tables.records import read_records
from posteriori.tables.schema import Schema
from posteriori.tables.table import Table, name_twice
from posteriori.tables.texts import CountedText, Texts, extended_texts, find_texts
from posteriori.typing import Array


def read_table(X: Any) -> Table:
    """Open a NumPy array, a list of rows, a data frame that narwhals reads, a scan, or a table of a registered engine.

    A sparse matrix of SciPy is a table with a single column of counts, and `Blocks` are several beside a table.

    Raises
    ------
    TypeError
        X is lazy or not a table.
    ValueError
        X is not two-dimensional, is empty, or two columns share a name.
    """
    table = open_table(X)
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
    return read_table(X) if records is None else records


def open_table(X: Any) -> Table:
    """Open a table as `read_table` does, without a check that it has rows and columns."""
    if isinstance(X, LazyTable):
        return X
    if isinstance(X, Blocks):
        return open_blocks(X, None if X.table is None else read_table(X.table))
    if type(X).__module__.startswith("scipy.sparse"):
        return open_sparse(X)
    engine = engine_of(X)
    if engine is not None:
        opened: Table = engine.open(X)
        return opened
    if isinstance(X, np.ndarray):
        return ArrayTable(_two_dimensional(X))
    if isinstance(X, pl.DataFrame):
        return PolarsTable(X)
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
        raise TypeError(
            f"X is a lazy {type(X).__module__.split('.')[0]} table; collect it first, or use posteriori.scan"
        )
    if isinstance(frame, nw.DataFrame):
        return _open_frame(frame)
    if hasattr(X, "__arrow_c_stream__") and (hasattr(X, "columns") or not hasattr(X, "__array__")):
        return _open_arrow(X)
    if isinstance(X, str | bytes | dict) or X is None:
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
    values = plain_array(values, "X", times=True)
    if values.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {values.ndim}D array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
            "contains a single sample."
        )
    return values


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
    if dates is not None:
        found |= find_dates(table, [j for j in positions if j not in found], dates, declared)
    if texts:
        found |= find_texts(table, [j for j in positions if j not in found], texts, counted)
    if keep is not None:
        identifiers = _identifiers(table, [j for j in positions if j not in found], declared.union(keep))
        found |= {j: (column,) for j, column in identifiers.items()}
    read = [j for j in positions if j not in found]
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


def _identifiers(table: Table, positions: Sequence[int], keep: Collection[int]) -> dict[int, Column]:
    """Return the columns that identify rows, with a warning; none if no other column is left to learn from."""
    found = find_identifiers(table, [j for j in positions if j not in keep])
    if not found or len(found) == len(positions):
        return {}
    names = [column.name for column in found.values()]
    are, them = ("are", "them") if len(names) > 1 else ("is", "it")
    reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in found.values())
    kept = names if table.named else list(found)
    warnings.warn(
        f"{quote(names)} {are} ignored ({reasons}); to use {them}, pass columns=po.Columns(keep={kept!r}) "
        "(--keep on the command line)",
        IgnoredColumnWarning,
        stacklevel=7,
    )
    return found


def _reject_infinite(table: Table, j: int, column: Column) -> None:
    infinite = [cell for cell in column.categories if cell in (math.inf, -math.inf)]
    if infinite:
        codes, _ = table.codes([j], Schema((column,)), [column], slice(0, table.n_rows))
        row = np.flatnonzero(codes == column.lookup[infinite[0]])[0]
        raise infinite_cell(column.name, float(infinite[0]), int(row))
