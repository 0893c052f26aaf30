"""Write codes and numbers as a table of the type that was read."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables.arrays import number_type, objects_array, write_column
from posteriori.tables.batch import Batch
from posteriori.tables.blocks import Blocks
from posteriori.tables.pandas import type_of_name
from posteriori.tables.polars import require_threads
from posteriori.tables.schema import Column, Schema
from posteriori.tables.times import TimeType, polars_times, python_times

if TYPE_CHECKING:
    import polars as pl


def label_series(name: str, labels: list[Any]) -> pl.Series:
    """Return labels as a polars column; of 128 bits if 64 do not hold a whole number."""
    import polars as pl

    whole = bool(labels) and all(type(label) is int for label in labels)
    if not whole or -(2**63) <= min(labels) <= max(labels) < 2**63:
        return pl.Series(name, labels)
    return pl.Series(name, labels, dtype=pl.UInt128 if max(labels) >= 2**127 else pl.Int128)


def text_of_label(label: Any) -> str:
    """Return a class as files spell it: 1, 1.0, true."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def csv_text(frame: pl.DataFrame, separator: str = ",", header: bool = True, names: Sequence[str] | None = None) -> str:
    """Return a table as CSV, a duration as ISO 8601 writes it; ValueError if CSV cannot hold a column.

    The header has `names`, if they are given, in place of those of the columns: a file may have names twice, or none.
    """
    import polars as pl
    import polars.selectors as cs

    for name, dtype in frame.schema.items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise ValueError(f"column {name!r} is {dtype}, which CSV cannot hold; write .parquet")
    written = frame.with_columns(cs.duration().dt.to_string("iso"))
    text = written.write_csv(separator=separator, include_header=header and names is None)
    if not header or names is None:
        return text
    cells = [[name or None] if len(names) > 1 else [name] for name in names]  # a line without a cell is no header
    line = pl.DataFrame(cells, schema=[(str(k), pl.String) for k in range(len(names))])
    return line.write_csv(separator=separator, include_header=False) + text


def decode(batch: Batch) -> Array:
    """Return the cells of a batch as Python values, (n, d) objects, None where missing; a bag is its counts by word."""
    schema = batch.schema
    cells = np.empty((len(batch), len(schema.columns)), dtype=object)
    for position, j in enumerate(schema.of_kind("continuous")):
        cells[:, j] = [None if x != x else x for x in batch.numbers.values[:, position].tolist()]
    for position, j in enumerate(schema.coded):
        if schema.columns[j].is_binned:
            continue
        known = (None, *schema.columns[j].categories)
        cells[:, j] = [known[code] for code in batch.codes.values[:, position].tolist()]
    for bags, j in zip(batch.bags, schema.of_kind("counts"), strict=True):
        column = schema.columns[j]
        words, counts = [column.word(word) for word in bags.words.tolist()], bags.counts.tolist()
        for i, (start, stop) in enumerate(itertools.pairwise(bags.starts.tolist())):
            cells[i, j] = dict(zip(words[start:stop], counts[start:stop], strict=True))
    return cells


def write_table(schema: Schema, drawn: list[Any]) -> Any:
    """Return drawn columns as a table like the one the schema was inferred from.

    Parameters
    ----------
    schema : Schema
    drawn : list of ndarray (n,) or Bags
        The numbers of each column, or its codes from 1 on; a missing cell is NaN, or 0. Bags in a column of counts.

    Returns
    -------
    table
        Categorical columns have the data type that they were read in. So have integers that were drawn as whole
        numbers, unless cells are missing and the type cannot hold missing cells. If a number does not fit the type,
        the column has the 64-bit type of the same sign, and numbers beyond it become its largest or smallest number.
        Other numbers are floats of the same width and the same kind of type (NumPy, nullable, Arrow).
        A column without a known category or number, or that the model ignores, is missing throughout. A date is
        that of the drawn days since the first; a time of day is the full hour; without these parts it is missing.
        A text is the drawn words, each as often as drawn, in alphabetical order.
    """
    writers: dict[str, Callable[[Schema, list[Array]], Any]] = {
        "numpy": _write_array,
        "pandas": _write_pandas,
        "polars": _write_polars,
        "pyarrow": _write_arrow,
    }
    blocks = {schema.names[j]: drawn[j] for j in schema.of_kind("counts") if schema.columns[j].text is None}
    if not blocks:
        return writers[schema.container](*_of_table(schema, drawn))
    counts = {name: bags.to_matrix() for name, bags in blocks.items()}
    words = {column.name: column.words for column in schema.columns if column.words and column.text is None}
    if schema.container == "scipy":
        return Blocks(None, counts, words) if schema.named else counts[schema.names[0]]
    others = [j for j in range(len(drawn)) if schema.names[j] not in blocks]
    rest = replace(schema, columns=tuple(schema.columns[j] for j in others))
    return Blocks(writers[schema.container](*_of_table(rest, [drawn[j] for j in others])), counts, words)


def _of_table(schema: Schema, drawn: list[Array]) -> tuple[Schema, list[Array]]:
    """Return the columns of the table with their cells: times instead of their parts, and nothing in ignored columns.

    An ignored column becomes a column of numbers or of no category, by its data type, with all cells missing.
    """
    columns: dict[str, Column] = {}
    cells: dict[str, Array] = {}
    for column, values in zip(schema.columns, drawn, strict=True):
        name = column.source
        if column.part is not None:
            times = column.part.times(values)
            if name not in cells or np.isnat(cells[name]).all():  # the first part that determines a time
                columns[name], cells[name] = replace(column, name=name), times
        elif column.is_ignored:
            is_numeric = number_type(column.dtype) is not None
            columns[name] = replace(column, kind="continuous" if is_numeric else "categorical", reason="")
            cells[name] = np.full(len(values), np.nan) if is_numeric else np.zeros(len(values), np.uint16)
        elif column.text is not None:
            columns[name], cells[name] = _drawn_texts(column, values)
        else:
            columns[name], cells[name] = column, values
    return replace(schema, columns=tuple(columns.values())), list(cells.values())


def _drawn_texts(column: Column, bags: Any) -> tuple[Column, Array]:
    """Return drawn words as a column that has the text of each row as a category of its own."""
    if not column.words:
        raise ValueError(
            f"the words of column {column.name!r} are hashed, so that no text can be written; leave n_features out"
        )
    words, counts = bags.words.tolist(), bags.counts.astype(np.int64).tolist()
    texts = [
        " ".join(" ".join([column.word(word)] * count) for word, count in zip(words[i:k], counts[i:k], strict=True))
        for i, k in itertools.pairwise(bags.starts.tolist())
    ]
    written = replace(column, kind="categorical", categories=tuple(texts), width=0, words=(), text=None)
    return written, np.arange(1, len(texts) + 1)


def _is_count(column: Column, values: Array) -> bool:
    """Return whether a column of integers was drawn as whole numbers; a Gaussian draws others."""
    dtype = number_type(column.dtype)
    whole = (values == np.floor(values)) | np.isnan(values)
    return dtype is not None and dtype.kind in "iu" and bool(whole.all())


def _integers(column: Column, values: Array) -> tuple[str, Array]:
    """Return a data type that is wide enough for drawn whole numbers, and the numbers as float64.

    Numbers beyond 64 bits become the largest or the smallest number of the type.
    """
    label = column.dtype
    dtype = number_type(label)
    assert dtype is not None
    present = values[~np.isnan(values)]
    if len(present) and not _fits(present, dtype):
        width = str(dtype.itemsize if label[:1] in "<>|=" else 8 * dtype.itemsize)
        label = label.replace(width, "8" if label[:1] in "<>|=" else "64", 1)
        dtype = np.dtype(f"{dtype.kind}8")
        if label[:1] == "|":
            label = dtype.str
    span = np.iinfo(dtype)
    # The largest 64-bit integers are not floats, so the next smaller float is used.
    highest = np.nextafter(float(span.max), 0.0) if float(span.max) > span.max else float(span.max)
    return label, np.clip(values, float(span.min), highest)


def _fits(values: Array, dtype: np.dtype[Any]) -> bool:
    span = np.iinfo(dtype)
    return bool(values.min() >= span.min and values.max() <= span.max)


def _take(known: Array, codes: Array) -> Array:
    """Return the categories of codes; NaN where missing, or None in an array of objects."""
    taken = known[codes.astype(np.int64) - 1]
    missing = codes == 0
    if not missing.any():
        return taken
    if taken.dtype.kind in "iuf":
        return np.where(missing, np.nan, taken)
    cells = taken.astype(object)
    cells[missing] = None
    return cells


def _write_array(schema: Schema, drawn: list[Array]) -> Array:
    """Return an array of the type that was read; of a wider one only if later rows held cells that it cannot."""
    narrow = schema.dtype[1:] == "f4"
    cells: list[Array] = []
    for column, values in zip(schema.columns, drawn, strict=True):
        if column.part is not None:
            is_plain = schema.dtype[1:2] in ("m", "M")
            cells.append(
                values.astype(schema.dtype) if is_plain else objects_array(python_times(values, column.part.type))
            )
        elif column.kind == "continuous" and _is_count(column, values) and not np.isnan(values).any():
            label, whole = _integers(column, values)
            cells.append(whole.astype(number_type(label)))  # a crafted file may name another library's type
        elif column.kind == "continuous":
            cells.append(values.astype(np.float32 if narrow else np.float64))
        elif column.categories:
            cells.append(_take(write_column(column), values))
        else:
            cells.append(np.full(len(values), np.nan, np.float32 if narrow else np.float64))
    if schema.dtype != "|O" and not any(values.dtype.kind == "O" for values in cells):
        return np.column_stack(cells)
    table = np.empty((len(drawn[0]), len(drawn)), dtype=object)
    for j, values in enumerate(cells):
        table[:, j] = values
    return table


def _write_pandas(schema: Schema, drawn: list[Array]) -> Any:
    import pandas as pd

    pairs = zip(schema.columns, drawn, strict=True)
    table = {column.name: _pandas_cells(column, values) for column, values in pairs}
    frame = pd.DataFrame(table)
    return frame if schema.named else frame.set_axis(range(len(drawn)), axis=1)


def _pandas_cells(column: Column, values: Array) -> Any:
    if column.part is not None:
        return _pandas_times(column, values, column.part.type)
    return _pandas_numbers(column, values) if column.kind == "continuous" else _pandas_categories(column, values)


def _pandas_times(column: Column, times: Array, wanted: TimeType) -> Any:
    import pandas as pd

    label = column.dtype
    if label == "object" or label.endswith("[pyarrow]"):
        cells = python_times(times, wanted)
        return pd.Series(cells, dtype="object" if label == "object" else _pandas_type(label))
    if "[ns" in label and not wanted.is_span:  # of which there are 64 bits
        bounds = (np.datetime64("1678-01-01", "us"), np.datetime64("2262-01-01", "us"))
        times = np.where(np.isnat(times), times, times.clip(*bounds))
    series = pd.Series(times)
    if label.startswith("period["):
        return series.dt.to_period(label.removeprefix("period[").removesuffix("]"))
    if wanted.zone:
        first = np.ones(len(times), np.bool_)  # of two equal times when the clock is set back
        series = series.dt.tz_localize(wanted.zone, ambiguous=first, nonexistent="shift_forward")
    return series.astype(label)


def _pandas_numbers(column: Column, values: Array) -> Any:
    """Return drawn numbers as a series; as floats where NumPy integers would have to be missing."""
    import pandas as pd

    has_gaps = bool(np.isnan(values).any()) and column.dtype[:1] not in ("I", "U")
    if has_gaps or not _is_count(column, values):
        return pd.Series(values).astype(_pandas_float(column.dtype))
    label, whole = _integers(column, values)
    return pd.Series(whole).astype(label)


def _pandas_float(label: str) -> str:
    """Return the data type of floats for a data type of numbers: Float64 for Int64, for example."""
    narrow = label.lower().startswith(("float32", "float["))
    if label.endswith("[pyarrow]"):
        return "float[pyarrow]" if narrow else "double[pyarrow]"
    if label[:1] in ("I", "U", "F"):
        return "Float32" if narrow else "Float64"
    return label if label == "object" else "float32" if narrow else "float64"


def _pandas_categories(column: Column, codes: Array) -> Any:
    import pandas as pd

    cells: list[Any] = list(column.categories)
    if column.dtype in ("category", "ordered"):
        dtype = pd.CategoricalDtype(cells, ordered=column.dtype == "ordered")
        return pd.Series(pd.Categorical.from_codes(codes.astype(np.int64) - 1, dtype=dtype))
    try:
        known = pd.Series(cells or [None], dtype=_pandas_type(column.dtype))
    except (TypeError, ValueError, OverflowError):  # later rows held cells that this type cannot
        known = pd.Series(cells or [None], dtype="object" if len(column.kinds) > 1 else None)
    taken = known.take(codes.astype(np.int64) - 1 if cells else np.zeros(len(codes), np.int64)).reset_index(drop=True)
    return taken.where(codes > 0) if (codes == 0).any() else taken


def _pandas_type(label: str) -> Any:
    import pandas as pd

    if not label.endswith("[pyarrow]"):
        return label
    return pd.ArrowDtype(type_of_name(label.removesuffix("[pyarrow]")))


def _write_polars(schema: Schema, drawn: list[Array]) -> Any:
    import polars as pl

    require_threads("a new polars table")

    return pl.DataFrame([_polars_cells(column, values) for column, values in zip(schema.columns, drawn, strict=True)])


def _polars_cells(column: Column, values: Array) -> Any:
    if column.part is not None:
        import polars as pl

        series = polars_times(column.name, values, column.part.type)
        return pl.Series(column.name, series.to_list(), pl.Object) if column.dtype == "Object" else series
    return _polars_numbers(column, values) if column.kind == "continuous" else _polars_categories(column, values)


def _polars_numbers(column: Column, values: Array) -> Any:
    import polars as pl

    if _is_count(column, values):
        label, whole = _integers(column, values)
        return pl.Series(column.name, whole, nan_to_null=True).cast(getattr(pl, label))
    # `Series.fill_nan` would read a name from ^ to $ as a pattern.
    dtype = np.float32 if column.dtype == "Float32" else np.float64
    return pl.Series(column.name, values.astype(dtype), nan_to_null=True)


def _polars_categories(column: Column, codes: Array) -> Any:
    import polars as pl

    cells: list[Any] = list(column.categories)
    if len(column.kinds) > 1 or column.dtype in ("object", "Object"):
        return pl.Series(
            column.name, [cells[code - 1] if code else None for code in codes.astype(np.int64)], dtype=pl.Object
        )
    wide = {"Int128": pl.Int128, "UInt128": pl.UInt128}.get(column.dtype)
    known = pl.Series(column.name, cells or [None], dtype=wide)
    # Later rows may have held cells that the type of the column cannot hold.
    with contextlib.suppress(AttributeError, TypeError, pl.exceptions.PolarsError):
        known = known.cast(pl.Enum(cells) if column.dtype == "Enum" else getattr(pl, column.dtype))
    if not cells:
        return known.gather(np.zeros(len(codes), np.int64))
    return known.gather(pl.Series(codes.astype(np.int64) - 1).replace(-1, None))


def _write_arrow(schema: Schema, drawn: list[Array]) -> Any:
    import pyarrow as pa

    return pa.table(
        {column.name: _arrow_cells(column, values) for column, values in zip(schema.columns, drawn, strict=True)}
    )


def _arrow_cells(column: Column, values: Array) -> Any:
    if column.part is not None:
        cells = polars_times(column.name, values, column.part.type).to_arrow()
        with contextlib.suppress(ValueError):  # a crafted file may name another type
            cells = cells.cast(type_of_name(column.dtype), safe=False)
        return cells
    return _arrow_numbers(column, values) if column.kind == "continuous" else _arrow_categories(column, values)


def _arrow_numbers(column: Column, values: Array) -> Any:
    import pyarrow as pa

    if _is_count(column, values):
        label, whole = _integers(column, values)
        return pa.array(whole, from_pandas=True).cast(type_of_name(label))
    return pa.array(values.astype(np.float32 if column.dtype == "float" else np.float64), from_pandas=True)


def _arrow_categories(column: Column, codes: Array) -> Any:
    import pyarrow as pa

    cells: list[Any] = list(column.categories)
    try:
        known = pa.array(cells or [None], type=type_of_name(column.dtype))  # None: the type of the cells
    except (ValueError, OverflowError):  # later rows held cells that this type cannot
        known = pa.array(cells or [None])
    positions = codes.astype(np.int64) - 1 if cells else np.zeros(len(codes), np.int64)
    drawn = known.take(pa.array(positions, mask=positions < 0))
    return drawn.dictionary_encode() if column.dtype.startswith("dictionary") else drawn
