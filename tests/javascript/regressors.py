"""Sums of functions of columns that are evaluated in JavaScript and in Python, with rows to evaluate."""

import datetime

import numpy as np
import polars as pl

import posteriori as po


def rows_of_numbers(n=400, gaps=0.0, seed=0):
    """Return a table with numbers, categories and dates, of which a share of the cells may be missing."""
    rng = np.random.default_rng(seed)
    size, rooms = rng.gamma(3.0, 30.0, n), rng.integers(1, 7, n)
    town = rng.choice(["a", "b", "<script>", "d"], n, p=[0.5, 0.3, 0.15, 0.05])
    when = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=int(day)) for day in rng.integers(0, 700, n)]
    price = 3.0 * size + 20.0 * rooms + np.where(town == "b", 80.0, 0.0) + 25.0 * rng.normal(size=n)
    table = pl.DataFrame({"size": size, "rooms": rooms, "town": town, "when": when, "copy": size + rng.normal(size=n)})
    hidden = rng.random((n, table.width)) < gaps
    columns = [
        pl.Series(name, [None if hidden[i, j] else cell for i, cell in enumerate(table[name])], table[name].dtype)
        for j, name in enumerate(table.columns)
    ]
    return pl.DataFrame(columns).with_columns(price=pl.Series(price))


def rows_to_evaluate(table):
    """Return rows with every single column missing, with one known only, whole rows, and an empty row."""
    names = [name for name in table.columns if name != "price"]
    whole = table.select(names).head(4).to_dicts()
    first = whole[0]
    rows = [*whole, dict.fromkeys(names), dict.fromkeys(names) | {"town": "never seen"}]
    rows += [first | {name: None} for name in names]
    rows += [dict.fromkeys(names) | {name: first[name]} for name in names]
    return [*rows, first | {"size": 1e6}, first | {"size": -1e6}]


def _fit(change=lambda y: y, gaps=0.0, **parameters):
    table = rows_of_numbers(gaps=gaps)
    table = table.with_columns(price=pl.Series(np.asarray(change(table["price"].to_numpy()), np.float64)))
    return po.AdditiveRegressor(**parameters).fit(table, "price"), rows_to_evaluate(table)


def _updated():
    model, rows = _fit(gaps=0.1)
    return model.partial_fit(rows_of_numbers(200, 0.1, 5), "price"), rows


def _of_many_features():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 12))
    model = po.AdditiveRegressor().fit(X, X[:, 0] + X[:, 1] ** 2 + 1e9 + rng.normal(size=300))
    rows = [{f"x{j}": None if (i + j) % 3 == 0 else X[i, j] for j in range(12)} for i in range(5)]
    return model, rows


REGRESSORS = {
    "as is": lambda: _fit(scale="as_is"),
    "logarithms": lambda: _fit(lambda y: np.exp(y / 200.0), scale="log"),
    "logarithms with zeros": lambda: _fit(lambda y: np.where(y < 250, 0.0, y + 0.5), scale="log"),
    "ranks": lambda: _fit(scale="rank"),
    "gaps in training": lambda: _fit(gaps=0.2),
    "few gaps in training": lambda: _fit(gaps=0.02, scale="rank"),
    "whole numbers": lambda: _fit(lambda y: np.rint(y / 40.0)),
    "tenths": lambda: _fit(lambda y: np.round(y / 100.0, 1)),
    "an atom": lambda: _fit(lambda y: np.maximum(y - 250.0, 0.0)),
    "updated": _updated,
    "many features": _of_many_features,
}
