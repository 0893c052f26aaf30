"""Groups of columns that nearly determine each other."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import posteriori as po
from posteriori.learning import redundant_columns
from posteriori.learning.redundant_columns import redundant_groups
from posteriori.reading import read_table
from posteriori.sources import source_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def groups(table, y):
    """Return the names of each group, as sets."""
    schema = po.NaiveBayes().fit(table, y).schema_
    batch = source_of(read_table(table), schema, tuple(range(table.width))).batch(slice(0, table.height))
    return [{table.columns[j] for j in group} for group in redundant_groups(batch, y)]


@given(st.integers(0, 2**32 - 1))
def test_a_column_and_what_it_determines_are_one_group(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 600))
    value, kind = rng.normal(size=n), rng.integers(0, int(rng.integers(2, 6)), n)
    known = rng.random(n) < rng.uniform(0.6, 1.0)
    table = pl.DataFrame(
        {
            "value": np.where(known, value, np.nan),
            "falls": np.where(known, -np.exp(value), np.nan),
            "kind": kind.astype(str),
            "other name": np.array([f"n{k}" for k in rng.permutation(kind.max() + 1)])[kind],
            "number": rng.permutation(kind.max() + 1)[kind] * 10.0,
            "alone": rng.normal(size=n),
            "lonely": rng.integers(0, 3, n).astype(str),
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    table = table.select(rng.permutation(table.columns).tolist())
    found = groups(table, rng.integers(0, 2, n))
    assert sorted(map(sorted, found)) == [["falls", "value"], ["kind", "number", "other name"]]


def test_constant_columns_and_identifiers_are_in_no_group():
    rng = np.random.default_rng(0)
    n = 400
    table = pl.DataFrame(
        {
            "one": np.ones(n),
            "a": ["a"] * n,
            "id": [f"i{k}" for k in rng.integers(0, 350, n)],
            "key": [f"k{k}" for k in rng.integers(0, 350, n)],
        }
    )
    assert groups(table, rng.integers(0, 2, n)) == []


def test_the_most_informative_groups_and_columns_are_taken(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    one, other, noise = rng.normal(y), rng.normal(2.0 * y), rng.normal(size=500)
    table = pl.DataFrame({"n": noise, "m": -noise, "u": one, "v": 2 * one, "w": other, "x": other + 1})
    assert groups(table, y) == [{"n", "m"}, {"u", "v"}, {"w", "x"}]
    monkeypatch.setattr(redundant_columns, "MOST_GROUPS", 2)
    assert groups(table, y) == [{"u", "v"}, {"w", "x"}]
    monkeypatch.setattr(redundant_columns, "_MOST_COLUMNS", 2)
    assert groups(table, y) == [{"w", "x"}]


@pytest.mark.parametrize("kind", ["numbers", "categories"])
def test_a_group_has_all_copies_even_beyond_those_compared(monkeypatch, kind):
    monkeypatch.setattr(redundant_columns, "_MOST_COLUMNS", 5)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    one, other = rng.normal(3.0 * y), rng.normal(size=400)
    columns = {f"a{k}": one * (k + 1.0) for k in range(9)} | {f"b{k}": other - k for k in range(3)}
    if kind == "categories":
        columns = {name: np.char.add(name, (cells > np.median(cells)).astype(str)) for name, cells in columns.items()}
    assert groups(pl.DataFrame(columns), y) == [{f"a{k}" for k in range(9)}]


@pytest.mark.parametrize("correlation", [0.5, 0.85])
def test_columns_that_only_resemble_each_other_are_no_group(correlation):
    rng = np.random.default_rng(1)
    first = rng.normal(size=1000)
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.normal(size=1000)
    table = pl.DataFrame({"a": first, "b": second, "c": (first > 0).astype(str), "d": (second > 0).astype(str)})
    assert groups(table, (first > 0).astype(int)) == []
