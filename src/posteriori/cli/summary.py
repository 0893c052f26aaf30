"""What fit tells of a table's columns beside the model: added up part by part, in one look at all rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from posteriori.cli.checks import check_whole
from posteriori.tables.names import exactly
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.tables import Scan

_BATCH_ROWS = 1 << 17
_FEW = 3  # distinct values that are worth counting
_MOST_LABELS = 100_000


@dataclass(frozen=True)
class ColumnSummary:
    """What the cells of a column are like.

    Attributes
    ----------
    dtype : polars data type
    present, missing : int
        NaN is missing, too.
    n_values : int
        How many distinct values there are, of numbers with fractions and of more than two: three.
    counts_rows : bool
        Whether it holds whole numbers, each one more than that of the row above.
    mean, sd, least, greatest : float or None
        Of numbers.
    """

    dtype: pl.DataType
    present: int
    missing: int
    n_values: int
    counts_rows: bool
    mean: float | None = None
    sd: float | None = None
    least: float | None = None
    greatest: float | None = None


@dataclass(frozen=True)
class Summary:
    """What the rows of a table are like: their number, each column, and how many rows have each label."""

    n_rows: int
    columns: dict[str, ColumnSummary]
    labels: dict[Any, int]

    @property
    def n_labelled(self) -> int:
        """The number of rows with a label."""
        return sum(self.labels.values())


def summarise(scan: Scan, features: Sequence[str], target: str, progress: Callable[[int], None] | None) -> Summary:
    """Look at all rows once.

    Raises
    ------
    Refusal
        The target holds fractions.
    """
    names = [*features, target]
    starts = range(0, scan.n_rows, _BATCH_ROWS)
    slices = [slice(start, min(start + _BATCH_ROWS, scan.n_rows)) for start in starts]
    positions = dict(zip(features, map(str, range(len(features))), strict=True))
    labels: Counter[Any] = Counter()
    parts = []
    for part, rows in zip(scan.parts(slices, [scan.names.index(name) for name in names]), slices, strict=True):
        cells = part.frame.lazy()
        wanted = [one for name, key in positions.items() for one in _wanted(name, key, scan.types[name], rows)]
        found, counts = pl.collect_all([cells.select(wanted), _label_counts(cells, target)])
        parts.append(found)
        labels.update(dict(zip(*counts.get_columns(), strict=True)))
        if len(labels) > _MOST_LABELS:
            check_whole(target, labels)
        if progress is not None:
            progress(rows.stop - rows.start)
    rows_found = pl.concat(parts)
    found_by_key = {series.name: series for series in rows_found}
    columns = {name: _column(found_by_key, key, scan.types[name], scan.n_rows) for name, key in positions.items()}
    return Summary(scan.n_rows, columns, dict(labels))


def _label_counts(cells: pl.LazyFrame, target: str) -> pl.LazyFrame:
    labels = exactly(target)
    known = labels.is_not_null()
    if cells.collect_schema()[target].is_float():
        known &= labels.is_not_nan()
    return cells.filter(known).group_by(labels).agg(pl.len().alias(f"rows of {target}"))


def _wanted(name: str, key: str, dtype: pl.DataType, rows: slice) -> list[pl.Expr]:
    """Return what is needed of some rows of a column, each expression named by the column's key and its own name."""
    column = exactly(name)
    found = {"missing": column.null_count()}
    if dtype.is_float():
        column = column.fill_nan(None)
        found = {"missing": column.null_count()}
    if dtype.is_numeric() or dtype == pl.Null:
        number = column.cast(pl.Float64)
        found |= {"mean": number.mean(), "variance": number.var(ddof=0)}
        found |= {"least": number.min(), "greatest": number.max()}
    if dtype.is_integer():
        step = column.cast(pl.Int64, strict=False) - pl.int_range(rows.start, rows.stop, dtype=pl.Int64)
        found |= {"least_step": step.min(), "greatest_step": step.max()}
    if dtype.is_integer() or dtype in (pl.Boolean, pl.String, pl.Categorical, pl.Enum):
        found["values"] = column.drop_nulls().unique().head(_FEW).implode()
    return [expression.alias(f"{key} {what}") for what, expression in found.items()]


def _column(parts: dict[str, pl.Series], key: str, dtype: pl.DataType, n_rows: int) -> ColumnSummary:
    def of(what: str) -> pl.Series | None:
        return parts.get(f"{key} {what}")

    missing = of("missing")
    assert missing is not None
    n_missing = int(missing.sum())
    least, greatest, values = _least(of("least")), _greatest(of("greatest")), of("values")
    step = _least(of("least_step"))
    if values is not None:
        n_values = min(values.explode().drop_nulls().n_unique(), _FEW)
    else:
        n_values = 0 if least is None else 1 if least == greatest else _FEW
    mean, sd = (None, None) if of("mean") is None else _moments(parts, key, n_missing, n_rows)
    counts_rows = step is not None and step == _greatest(of("greatest_step"))
    return ColumnSummary(dtype, n_rows - n_missing, n_missing, n_values, counts_rows, mean, sd, least, greatest)


def _least(values: pl.Series | None) -> Any:
    return None if values is None else values.min()


def _greatest(values: pl.Series | None) -> Any:
    return None if values is None else values.max()


def _moments(parts: dict[str, pl.Series], key: str, n_missing: int, n_rows: int) -> tuple[float | None, float | None]:
    """Return mean and standard deviation, merged from those of the parts (Chan et al. 1979)."""
    present = n_rows - n_missing
    if not present:
        return None, None
    missing = parts[f"{key} missing"].to_numpy()
    sizes = np.full(len(missing), float(_BATCH_ROWS))
    sizes[-1] = n_rows - _BATCH_ROWS * (len(missing) - 1)
    weight = sizes - missing
    mean: Array = parts[f"{key} mean"].fill_null(0.0).to_numpy()
    variance: Array = parts[f"{key} variance"].fill_null(0.0).to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):  # infinite cells are refused later on
        shift = mean[np.argmax(weight)]
        whole = shift + (weight * (mean - shift)).sum() / present
        scatter = (weight * (variance + (mean - whole) ** 2)).sum()
    sd = math.sqrt(scatter / (present - 1)) if present > 1 and scatter >= 0 else None
    return float(whole), sd
