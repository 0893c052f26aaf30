"""A model of fit --for sql has a SELECT, one of --for javascript is exported, and the page states what that costs."""

import datetime
import json
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest

from posteriori.registry import seen_by
from posteriori.sql import translation
from tests.cli.command_line import CommandLine

line = CommandLine(replaces=True, details=False)
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = RNG.normal(size=120)
    days = [datetime.date(2023, 1, 1) + datetime.timedelta(days=int(day)) for day in RNG.integers(0, 500, 120)]
    frame = pl.DataFrame({"day": days, "x": x, "label": np.where(x + RNG.normal(size=120) > 0, "yes", "no")})
    frame.write_csv("rows.csv")


def test_the_default_of_a_table_with_dates_scores_in_a_database():
    page = line.succeeds("fit", "rows.csv", "-t", "label", "--for", "sql")
    assert "SELECT" not in page  # nothing is left out
    select = line.succeeds("sql", "rows.posteriori", "--table", "'rows.csv'", "--with", "day,x")
    found = duckdb.sql(select).pl().sort("day", "x")
    line.succeeds("predict", "rows.posteriori", "rows.csv", "--proba", "--with", "day,x", "-o", "scores.csv")
    expected = pl.read_csv("scores.csv", try_parse_dates=True).sort("day", "x")
    np.testing.assert_allclose(found["p_yes"].to_numpy(), expected["p_yes"].to_numpy(), atol=1e-9)


def test_the_page_and_the_facts_state_what_is_left_out(monkeypatch):
    monkeypatch.setattr(translation, "LANGUAGE", replace(translation.LANGUAGE, most=200_000))
    for details in ((), ("--details",)):
        page = " ".join(line.succeeds("fit", "rows.csv", "-t", "label", "--for", "sql", *details).split())
        assert "characters of the SELECT (limit 200,000 for all)" in page
        assert "the log-loss of the pool, " in page
        assert f"{seen_by('forest mixed')!r} is left out" in page
    note = json.loads(line.succeeds("fit", "rows.csv", "-t", "label", "--for", "sql", "--json"))["language_note"]
    assert "'forest mixed' is left out" in note


def test_for_javascript_is_exported():
    line.succeeds("fit", "rows.csv", "-t", "label", "--for", "javascript")
    assert json.loads(line.succeeds("export", "rows.posteriori"))["kind"] == "classifier"


def test_for_goes_with_the_pool():
    assert "--for chooses the candidates of the pool" in line.refused(
        "fit", "rows.csv", "-t", "label", "--for", "sql", "--model", "tan"
    )
    assert "names a parameter of nb" in line.refused(
        "fit", "rows.csv", "-t", "label", "--for", "sql", "--set", "label_noise=learn"
    )
    assert "cobol" in line.run("fit", "rows.csv", "-t", "label", "--for", "cobol")[2]
