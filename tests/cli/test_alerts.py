"""Alerts on columns: fit prints them and records them in the model, and show repeats them."""

import contextlib
import json

import numpy as np
import polars as pl
import pytest

import posteriori as po
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine()
succeeds = COMMAND_LINE.succeeds
N = 12_000  # more rows than the sample


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["a", "b", "rare"], [7000, N - 7008, 8]))
    plain = rng.normal(size=N) + (y == "b")
    table = pl.DataFrame(
        {
            "plain": plain,
            "twice": 2.0 * plain,
            "same": [1.5] * N,
            "drifting": rng.normal(size=N) + np.linspace(0.0, 3.0, N),
            "leak": (y == "a") + rng.normal(0.0, 0.01, N),
            "zeros": np.where(rng.random(N) < 0.8, 0.0, rng.uniform(1.0, 2.0, N)),
            "more zeros": np.where(rng.random(N) < 0.8, 0.0, rng.uniform(1.0, 2.0, N)),
            "y": y,
        }
    )
    path = tmp_path_factory.mktemp("alerts")
    table.write_csv(path / "table.csv")
    with contextlib.chdir(path):
        yield path


def test_fit_and_show_list_the_alerts():
    found = json.loads(succeeds("fit", "table.csv", "-t", "y", "--model", "nb", "--json", "-q"))["alerts"]
    assert {(*one["columns"], one["kind"]) for one in found} == {
        ("same", "constant"),
        ("y", "rare classes"),
        ("plain", "twice", "duplicates"),
        ("drifting", "changes along the rows"),
        ("leak", "predicts the class alone"),
        ("zeros", "many zeros"),
        ("more zeros", "many zeros"),
    }
    text = next(one["text"] for one in found if one["kind"] == "rare classes")
    assert text.startswith("Fewer than 10 rows: rare (8)")
    shown = json.loads(succeeds("show", "table.posteriori", "--json"))["alerts"]
    assert shown == found
    page = " ".join(succeeds("show", "table.posteriori").split())
    assert "alert: plain = twice: duplicates." in page
    assert "alert: many zeros: zeros and more zeros (why: --json)" in page


def test_alerts_are_forgotten_with_the_rows():
    succeeds("fit", "table.csv", "-t", "y", "--model", "nb", "-q", "--force")
    model = po.load("table.posteriori")
    assert model.fitted_.record.alerts
    table = pl.read_csv("table.csv")
    assert model.unlearn(table.head(100), "y").fitted_.record.alerts is None
    assert model.fit(table, "y").fitted_.record.alerts is None


def test_a_table_without_a_mistake_has_no_alert():
    pl.read_csv("table.csv").select("plain", "y").filter(pl.col("y") != "rare").write_csv("plain.csv")
    assert "alert" not in succeeds("fit", "plain.csv", "-t", "y", "--model", "nb", "-q")
    assert json.loads(succeeds("show", "plain.posteriori", "--json"))["alerts"] == []
    assert "alert" not in succeeds("show", "plain.posteriori")
