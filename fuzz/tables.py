"""Small tables that are valid, with columns of every data type, and changes of one thing in them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

Rng = np.random.Generator

NAMES = (
    "a", "b", "c", "x", "height", "class", "count", "fold", "weight", "len", "row", "a b", "ä", "日本", "\U0001f600",
    "é\u0301", "A", "__x", "a'b",
)  # fmt: skip
ODD_NAMES = (
    "prediction", "component", "p_a", "_", "", " ", "a,b", 'a"b', "a\nb", "a\tb", "a\x00missing", "0", "-1", "1.5",
    "nan", "null", "NA", "a_duplicated_0", "a|b", "a;b", "[a]", "{a}", "a=b", "--target", "%s", "$(x)", "\\", "/",
    "literal", "index", "x" * 300, "\ufeffa", "a\r", "y\x00", "*", "^a$", "^.*$",
)  # fmt: skip
EDGE_NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 1e200, 1e160, 1e154, 1e100,
    1e-100, 1e-160, 1e-300, 5e-324, 2.0**53, 2.0**53 + 2, 1e15, 1e16, 0.1, 1 / 3, 1e8, 1e8 + 1,
)  # fmt: skip
_FORMATS = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%H:%M", "%d.%m.%y",
)  # fmt: skip
_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def pick(rng: Rng, options: Sequence[Any]) -> Any:
    """Return one of the options."""
    return options[int(rng.integers(len(options)))]


def _normal(rng: Rng, n: int) -> pl.Series:
    return pl.Series((rng.normal(size=n) * 10.0 ** rng.integers(-3, 4) + pick(rng, (0, 0, 0, 1e6, 1e9))).tolist())


def _edges(rng: Rng, n: int) -> pl.Series:
    some = [pick(rng, EDGE_NUMBERS) for _ in range(int(rng.integers(1, 4)))]
    cells = [pick(rng, some) if rng.random() < 0.3 else float(rng.normal()) for _ in range(n)]
    return pl.Series(cells, dtype=pick(rng, (pl.Float64, pl.Float64, pl.Float32)), strict=False)


def _few(rng: Rng, n: int) -> pl.Series:
    return pl.Series(rng.integers(0, int(rng.integers(1, 6)), n).tolist(), dtype=pl.Int64)


def _integers(rng: Rng, n: int) -> pl.Series:
    dtype = pick(rng, _INTEGERS)
    low, high = np.iinfo(dtype.__name__.lower()).min, np.iinfo(dtype.__name__.lower()).max
    ends = [low, high, low + 1, high - 1, 0, 1, high // 2]
    if rng.random() < 0.5:
        return pl.Series([pick(rng, ends) for _ in range(n)], dtype=dtype)
    return pl.Series([int(cell) for cell in rng.integers(0, 100, n)], dtype=dtype)


def _huge_integers(rng: Rng, n: int) -> pl.Series:
    dtype = pick(rng, (pl.Int128, pl.UInt128))
    ends = [0, 1, 5, 2**53 + 1, 2**64, 2**100, 2**127 - 1] + ([-1, -(2**127)] if dtype == pl.Int128 else [2**128 - 1])
    some = [pick(rng, ends) for _ in range(int(rng.integers(1, 4)))]
    return pl.Series([pick(rng, some) for _ in range(n)], dtype=dtype)


def _booleans(rng: Rng, n: int) -> pl.Series:
    return pl.Series((rng.random(n) < pick(rng, (0.5, 0.0, 1.0, 0.1))).tolist(), dtype=pl.Boolean)


def _words(rng: Rng) -> list[str]:
    plain = ["a", "b", "c", "d", "yes", "no"]
    odd = ["", " ", "NA", "nan", "None", "?", "1", "1.0", "true", "inf", "a,b", 'q"q', "l\nm", "\t", "ü", "\U0001f600"]
    return (
        plain if rng.random() < 0.6 else [*plain, *odd, "x" * 1000, "\x00", "\u202e", "1e400", "99999999999999999999"]
    )


def _strings(rng: Rng, n: int) -> pl.Series:
    words = _words(rng)
    some = [pick(rng, words) for _ in range(int(rng.integers(1, 5)))]
    return pl.Series([pick(rng, some) for _ in range(n)], dtype=pl.String)


def _identifiers(rng: Rng, n: int) -> pl.Series:
    return pl.Series([f"id{int(rng.integers(10**6))}" for _ in range(n)], dtype=pl.String)


def _categories(rng: Rng, n: int) -> pl.Series:
    return _strings(rng, n).cast(pl.Categorical)


def _enum(rng: Rng, n: int) -> pl.Series:
    words = list(dict.fromkeys(["unused", *_words(rng)]))
    return pl.Series([pick(rng, words[: int(rng.integers(1, 5))]) for _ in range(n)], dtype=pl.Enum(words))


def _decimals(rng: Rng, n: int) -> pl.Series:
    scale = int(rng.integers(0, 10))
    cells = [Decimal(int(rng.integers(-(10**9), 10**9))).scaleb(-scale) for _ in range(n)]
    return pl.Series(cells, dtype=pl.Decimal(38, scale))


def _temporal(rng: Rng, n: int) -> pl.Series:
    days = pl.Series(rng.integers(-(10**5), 10**5, n).tolist(), dtype=pl.Int64)
    dtype = pick(rng, (pl.Date, pl.Datetime("us"), pl.Datetime("ns", "UTC"), pl.Duration("ms"), pl.Time))
    return (days.abs() if dtype == pl.Time else days).cast(pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)


def _written_dates(rng: Rng, n: int) -> pl.Series:
    some = [pick(rng, _FORMATS)] if rng.random() < 0.8 else _FORMATS
    days = (dt.datetime(1990, 1, 1) + dt.timedelta(hours=int(one)) for one in rng.integers(0, 10**5, n))
    cells = [day.strftime(pick(rng, some)) for day in days]
    if n and rng.random() < 0.2:
        cells[int(rng.integers(n))] = pick(rng, ("soon", "", "2024-02-30", "0000-00-00", "99999-01-01", "24:00:00"))
    return pl.Series(cells, dtype=pl.String)


def _nothing(rng: Rng, n: int) -> pl.Series:
    return pl.Series([None] * n, dtype=pick(rng, (pl.Null, pl.String, pl.Float64, pl.Boolean, pl.Int64)))


def _nested(rng: Rng, n: int) -> pl.Series:
    kind = int(rng.integers(4))
    if kind == 0:
        return pl.Series([[1, 2]] * n, dtype=pl.List(pl.Int64))
    if kind == 1:
        return pl.Series([{"a": 1, "b": "c"}] * n, dtype=pl.Struct({"a": pl.Int64, "b": pl.String}))
    if kind == 2:
        return pl.Series([[1.0, 2.0]] * n, dtype=pl.Array(pl.Float64, 2))
    return pl.Series([b"a\x00"] * n, dtype=pl.Binary)


def _objects(rng: Rng, n: int) -> pl.Series:
    dates = ([dt.date(2020, 1, 1)], [dt.date(2020, 1, 1), dt.datetime(2024, 5, 6, 7)])
    some = pick(rng, ([1, "a"], [1.5, None], *dates, [object], [True, 1], [b"a"], [10**400, 1]))
    return pl.Series([pick(rng, some) for _ in range(n)], dtype=pl.Object)


_TEXTS = ("good soup and bread", "the soup was cold", "warm bread, good wine", "cold wine is bad", "bad bread")


def _texts(rng: Rng, n: int) -> pl.Series:
    return pl.Series([f"{pick(rng, _TEXTS)} {pick(rng, _TEXTS)}" for _ in range(n)], dtype=pl.String)


_USUAL = (_normal, _few, _strings, _booleans)
_MORE = (_integers, _categories, _enum, _decimals, _temporal, _written_dates, _texts)
_ODD = (_edges, _huge_integers, _identifiers, _nothing, _nested, _objects, *_MORE)


def _with_gaps(rng: Rng, series: pl.Series) -> pl.Series:
    present = pl.Series((rng.random(len(series)) < pick(rng, (0.9, 0.5))).tolist(), dtype=pl.Boolean)
    return pl.select(pl.when(present).then(series)).to_series()


def _labels(rng: Rng, n: int) -> pl.Series:
    """Return a column of classes, each of which has two rows or more."""
    classes = pick(rng, (["a", "b"], ["a", "b", "c"], [0, 1], [True, False], [1, 2, 3], ["x,y", 'p"q', "\u00e9"]))
    if rng.random() < 0.06:
        classes = [f"class {k}" for k in range(n // 2)]
    return pl.Series([classes[int(k)] for k in rng.permutation(n) % len(classes)])


def valid_table(rng: Rng) -> tuple[pl.DataFrame, str]:
    """Return a small table that every model of mixed columns can learn, and the name of the column of classes."""
    n = int(rng.integers(10, 41)) if rng.random() < 0.9 else int(rng.integers(6, 10))
    names = list(
        dict.fromkeys(pick(rng, NAMES if rng.random() < 0.3 else NAMES[:5]) for _ in range(rng.integers(1, 6)))
    )
    columns = [pick(rng, _USUAL if j == 0 or rng.random() < 0.6 else _MORE)(rng, n) for j in range(len(names))]
    columns = [_with_gaps(rng, one) if rng.random() < 0.25 else one for one in columns]
    columns = [one.alias(name) for one, name in zip(columns, names, strict=True)]
    columns.insert(int(rng.integers(len(columns) + 1)), _labels(rng, n).alias("y"))
    return pl.DataFrame(columns), "y"


def _mutate_labels(rng: Rng, frame: pl.DataFrame, target: str) -> pl.DataFrame:
    n, present = frame.height, pl.Series(rng.random(frame.height) < 0.7)
    kind = int(rng.integers(6))
    if kind == 0:
        return frame.with_columns(pl.lit("only").alias(target))
    if kind == 1:
        return frame.with_columns(pl.Series(target, [f"class {k}" for k in range(n)]))
    if kind == 2:
        return frame.with_columns(pl.Series(target, ["lone" if k == n // 2 else "others" for k in range(n)]))
    if kind == 3:
        return frame.with_columns(pl.when(present).then(pl.col(target)).alias(target))
    if kind == 4:
        return frame.with_columns(pick(rng, _ODD)(rng, n).alias(target))
    return frame.drop(target)


def mutate_table(rng: Rng, frame: pl.DataFrame, target: str) -> pl.DataFrame:
    """Return a table in which one thing differs: a cell, a name, a column, the labels or the number of rows."""
    features = [name for name in frame.columns if name != target]
    name, n, kind = pick(rng, features), frame.height, int(rng.integers(8))
    series = frame[name]
    if kind == 0:
        other = pick(rng, [one for one in ODD_NAMES if one not in frame.columns])
        return frame.rename({pick(rng, frame.columns): other})
    if kind == 1:
        return _mutate_labels(rng, frame, target)
    if kind == 2:
        return frame[: int(rng.integers(0, 4))] if rng.random() < 0.7 else pl.concat([frame] * int(rng.integers(2, 9)))
    if kind == 3:
        return frame.drop(name) if rng.random() < 0.5 else frame.select(pl.col(target))
    if kind == 4 and series.dtype.is_float():
        return frame.with_columns(pl.col(name) * pick(rng, (0.0, 1e-300, 1e160, 1e300, -1.0)))
    if kind <= 5 and n and series.dtype != pl.Duration:
        cells: list[object] = series.cast(pl.String, strict=False).to_list()
        odd = pick(rng, (*ODD_NAMES, "0.5", "1e999", "true", "2024-02-30", "?"))
        if series.dtype.is_float():
            cells, odd = series.to_list(), pick(rng, EDGE_NUMBERS)
        cells[int(rng.integers(n))] = odd
        return frame.with_columns(pl.Series(name, cells, dtype=pl.Float64 if series.dtype.is_float() else pl.String))
    return frame.with_columns(pick(rng, _ODD)(rng, n).alias(name))
