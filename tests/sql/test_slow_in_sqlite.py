"""SELECTs that take long in SQLite."""

import polars as pl
import pytest

import posteriori as po
from posteriori.sql import translation


def test_a_long_select_for_sqlite_is_warned_of(monkeypatch):
    table = pl.DataFrame({"x": ["a", "b", "c", "d"] * 10, "z": ["u", "v"] * 20, "y": ["n", "m", "m", "n"] * 10})
    model = po.TreeAugmentedNaiveBayes().fit(table, "y")
    model.to_sql("t", dialect="sqlite")
    monkeypatch.setattr(translation, "_SLOW_IN_SQLITE", 100)
    model.to_sql("t", dialect="duckdb")
    with pytest.warns(
        UserWarning, match="SQLite takes seconds per row for a SELECT of 0.0 million characters: it joins"
    ):
        model.to_sql("t", dialect="sqlite")
