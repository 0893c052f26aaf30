"""Columns of every polars data type, names of every kind: the parts of tables that are tried."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

Rng = np.random.Generator

NAMES = (
    "a", "b", "c", "x", "height", "class", "count", "fold", "prediction", "component", "p_a", "weight", "len", "row",
    "__x", "_", "", " ", "a b", "a,b", 'a"b', "a\nb", "a\tb", "a'b", "ä", "日本", "\U0001f600", "é\u0301",
    "a\x00missing",
    "A", "0", "-1", "1.5", "nan", "null", "NA", "a_duplicated_0", "a|b", "a;b", "[a]", "{a}", "a=b", "--target", "%s",
    "$(x)", "\\", "/", "literal", "index", "x" * 300, "\ufeffa", "a\r", "y\x00", "*", "^a$", "^.*$",
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


_USUAL = (_normal, _few, _strings, _booleans)
_ODD = (
    _edges, _integers, _huge_integers, _identifiers, _categories, _enum, _decimals, _temporal, _written_dates, _nothing,
    _nested,
)  # fmt: skip


def column(rng: Rng, n: int, *, objects: bool = False) -> pl.Series:
    """Return a column of n cells of some type, some of them missing."""
    makers: tuple[Callable[[Rng, int], pl.Series], ...] = _USUAL if rng.random() < 0.6 else _ODD
    if objects and rng.random() < 0.05:
        makers = (_objects,)
    series = pick(rng, makers)(rng, n)
    if rng.random() < 0.3 and series.dtype != pl.Object:
        present = pl.Series((rng.random(n) < pick(rng, (0.9, 0.5, 0.05))).tolist(), dtype=pl.Boolean)
        series = pl.select(pl.when(present).then(series)).to_series()
    return series


def labels(rng: Rng, n: int) -> pl.Series:
    """Return a column of classes; at times one that is none."""
    draw = rng.random()
    if draw < 0.1:
        return column(rng, n)
    if draw < 0.2:
        return pl.Series(["only"] * n, dtype=pl.String)
    if draw < 0.3:
        return pl.Series(["lone" if position == n // 2 else "others" for position in range(n)], dtype=pl.String)
    classes = pick(rng, (["a", "b"], ["a", "b", "c"], [0, 1], [True, False], [1.0, 2.0], ["x,y", 'p"q', "\u00e9"]))
    cells = [pick(rng, classes) for _ in range(n)]
    if rng.random() < 0.1:
        cells = [None if rng.random() < 0.3 else cell for cell in cells]
    return pl.Series(
        cells, dtype={str: pl.String, int: pl.Int64, bool: pl.Boolean, float: pl.Float64}[type(classes[0])]
    )


def table(rng: Rng, *, objects: bool = False) -> tuple[pl.DataFrame, str]:
    """Return a small table of odd columns, and the name of the one that holds classes."""
    n = int(rng.integers(5, 61)) if rng.random() < 0.95 else int(rng.integers(0, 4))
    d = int(rng.integers(1, 9)) if rng.random() < 0.98 else 0
    if rng.random() < 0.004:
        n, d = int(rng.integers(2, 12)), int(rng.integers(200, 600))
        names = [f"v{j}" for j in range(d)]
        wide = _edges if rng.random() < 0.1 else pick(rng, (_normal, _few, _strings))
        return pl.DataFrame([wide(rng, n).alias(name) for name in names] + [labels(rng, n).alias("y")]), "y"
    pool = NAMES if rng.random() < 0.5 else NAMES[:5]
    names = list(dict.fromkeys(pick(rng, pool) for _ in range(d)))
    target = "y" if rng.random() < 0.9 else next((name for name in NAMES[::-1] if name not in names), "y")
    columns = [column(rng, n, objects=objects).alias(name) for name in names]
    position = int(rng.integers(len(columns) + 1))
    columns.insert(position, labels(rng, n).alias(target))
    return pl.DataFrame(columns), target
