"""Splits of tables in which the test rows lie outside of what the training rows show.

- "upper" and "lower": the test rows are those above the 70 % point, or below the 30 % point, of a numeric column.
- "without": the test rows are those of one category of a column.
- "group": the test rows are those of one shop, person or year. The column that names it stays a feature.
- "random": the test rows are drawn at random, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.metrics import mutual_info_score

from experiments.real_tables import read_index, tables
from experiments.regression import read_tables

KINDS = {"upper": "upper end", "lower": "lower end", "without": "category left out", "random": "random rows"}
SEED = 0
TEST_SHARE = 0.3
WANTED_SHARE = 0.2  # of the category that is left out
LEAST_TRAINING, LEAST_TEST = 60, 20
LEAST_OF_CLASS = 5  # training rows
LEAST_VALUES = 10  # of a numeric column
CATEGORIES = range(3, 21)  # of a categorical column of which one is left out
MOST_GROUPS = 12
# The column that names the group, and what a group is.
GROUPS = {
    ("oj", "StoreID"): "shop",
    ("vowel", "Speaker Number"): "person",
    ("eucalyptus", "Locality"): "place",
    ("eucalyptus", "Year"): "year",
    ("covertype_part", "Wilderness_Area"): "area",
    ("fars", "CASE_STATE"): "state",
    ("sick", "referral source"): "referring clinic",
    ("cylinder_bands", "press"): "machine",
    ("cylinder_bands", "customer"): "customer",
    ("titanic_kaggle", "embarked"): "port",
    ("penguins", "year"): "year",
    ("nass_cds", "yearacc"): "year",
}
Allows = Callable[[np.ndarray], bool]  # whether test rows, as a mask (n,), leave enough training rows


@dataclass(frozen=True)
class Places:
    """A table and its splits.

    Attributes
    ----------
    X : DataFrame
        The features, n rows.
    y : array (n,)
        Codes of classes, or numbers.
    classes : array (C,)
        The classes; empty if the target is a number.
    splits : dict
        Which rows are test rows, a mask (n,), by the name of the split, which begins with its kind.
    """

    X: pl.DataFrame
    y: np.ndarray
    classes: np.ndarray
    splits: dict[str, np.ndarray]


def kind_of(split: str) -> str:
    """Return the kind of a split by its name."""
    return split.partition(":")[0]


def names_of(part: str, folder: Path) -> list[str]:
    """Return the names of the tables of a part; those of groups have the column of the group."""
    index = [line["name"] for line in read_index(folder)]
    if part == "classes":
        return index
    if part == "numbers":
        return [table.name for table in read_tables(folder)]
    return [f"{table}: {column}" for table, column in GROUPS if table in index]


@lru_cache(maxsize=1)
def read_places(part: str, name: str, folder: Path, n_columns: int) -> Places:
    """Read a table and split it; `n_columns` is the greatest number of numeric columns that it is split by."""
    if part == "numbers":
        (numeric,) = (table for table in read_tables(folder) if table.name == name)
        allows, y = _allows_numbers(numeric.y), numeric.y
        quintile = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
        splits = _shifted(numeric.X, quintile, allows, n_columns)
        return Places(numeric.X, y, np.empty(0), splits | _random(len(y), allows))
    table_name, _, column = name.partition(": ")
    (table,) = tables(folder, [table_name])
    classes, y = np.unique(table.y.to_numpy(), return_inverse=True)
    allows = _allows_classes(y)
    if part == "classes":
        return Places(table.X, y, classes, _shifted(table.X, y, allows, n_columns))
    groups = dict(_groups(table.X[column], allows))
    return Places(table.X, y, classes, groups | _random(len(y), allows))


def outside(X: pl.DataFrame, test: np.ndarray) -> np.ndarray:
    """Return which rows have a number beyond those of the training rows, or a category that these lack, (n,)."""
    found = np.zeros(X.height, dtype=bool)
    for column in X:
        if column.dtype.is_numeric():
            values = _numbers(column)
            known = values[~test & ~np.isnan(values)]
            if len(known):
                found |= (values < known.min()) | (values > known.max())
        else:
            unknown = ~column.is_in(column.filter(~test).drop_nulls().unique().implode())
            found |= unknown.fill_null(False).to_numpy()
    return found


def _numbers(column: pl.Series) -> np.ndarray:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _has_rows(test: np.ndarray) -> bool:
    return bool(test.sum() >= LEAST_TEST and (~test).sum() >= LEAST_TRAINING)


def _allows_classes(y: np.ndarray) -> Allows:
    def allows(test: np.ndarray) -> bool:
        counts = np.bincount(y[~test], minlength=y.max() + 1)
        known = counts[counts > 0]
        is_learned = len(known) > 1 and known.min() >= LEAST_OF_CLASS
        return bool(_has_rows(test) and is_learned and (counts[y[test]] > 0).all())

    return allows


def _allows_numbers(y: np.ndarray) -> Allows:
    return lambda test: _has_rows(test) and len(np.unique(y[~test])) >= LEAST_VALUES


def _shifted(X: pl.DataFrame, classes: np.ndarray, allows: Allows, n_columns: int) -> dict[str, np.ndarray]:
    """Return the splits by the numeric columns of most distinct values, and the one by a category."""
    numbers = [column for column in X if column.dtype.is_numeric()]
    found: dict[str, np.ndarray] = {}
    used = 0
    for column in sorted(numbers, key=lambda one: -one.drop_nulls().n_unique()):  # equal ones in order of the table
        if used == n_columns or column.drop_nulls().n_unique() < LEAST_VALUES:
            break
        allowed = {title: test for title, test in _ends(column) if allows(test)}
        used += bool(allowed)
        found |= allowed
    return found | _without_category(X, classes, allows)


def _ends(column: pl.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the splits by a numeric column; rows without a number are training rows."""
    values = _numbers(column)
    low, high = np.nanquantile(values, [TEST_SHARE, 1 - TEST_SHARE])
    yield f"upper: {column.name}", values > high
    yield f"lower: {column.name}", values < low


def _without_category(X: pl.DataFrame, classes: np.ndarray, allows: Allows) -> dict[str, np.ndarray]:
    """Return the split by a category, of the column with the most information on the class that allows one."""
    kinds = [one for one in X if not one.dtype.is_numeric() and one.drop_nulls().n_unique() in CATEGORIES]
    information = {one.name: mutual_info_score(one.fill_null("").to_list(), classes) for one in kinds}
    for column in sorted(kinds, key=lambda one: -information[one.name]):
        counts = dict(column.drop_nulls().value_counts().iter_rows())
        left_out = min(sorted(counts), key=lambda one: abs(counts[one] / X.height - WANTED_SHARE))
        test = _is(column, left_out)
        if allows(test):
            return {f"without: {column.name} = {left_out}": test}
    return {}


def _groups(column: pl.Series, allows: Allows) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the splits that leave out one of the largest groups."""
    counts = dict(column.drop_nulls().value_counts().iter_rows())
    largest = sorted(sorted(counts), key=lambda one: -counts[one])[:MOST_GROUPS]
    masks = ((f"group: {one}", _is(column, one)) for one in largest)
    yield from ((name, test) for name, test in masks if allows(test))


def _is(column: pl.Series, value: object) -> np.ndarray:
    return (column == value).fill_null(False).to_numpy()


def _random(n_rows: int, allows: Allows) -> dict[str, np.ndarray]:
    test = np.random.default_rng(SEED).permutation(n_rows) < round(TEST_SHARE * n_rows)
    return {"random": test} if allows(test) else {}
