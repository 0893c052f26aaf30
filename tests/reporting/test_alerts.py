"""Each alert is raised by the column that was made for it, and by no other one."""

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.facts.columns import facts_of_rows
from posteriori.reporting.alerts import alerts_table, find_alerts
from posteriori.reporting.data import ReportData

N = 600


def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    plain = rng.normal(size=N) + y
    return pl.DataFrame(
        {
            "plain": plain,
            "category": rng.choice(["u", "v", "w"], N),
            "constant": [7.0] * N,
            "in inches": plain * 2.54 + 1.0,
            "renamed": [{"u": "x", "v": "y", "w": "z"}[cell] for cell in rng.choice(["u", "v", "w"], N)],
            "zeros": np.where(rng.random(N) < 0.8, 0.0, rng.uniform(1.0, 2.0, N)),
            "tail": np.exp(rng.normal(0.0, 3.0, N)),
            "sparse": np.where(rng.random(N) < 0.5, np.nan, rng.normal(size=N)),
            "drifting": rng.normal(size=N) + np.linspace(0.0, 3.0, N),
            "drifting category": np.where(rng.random(N) < np.linspace(0.1, 0.9, N), "a", "b"),
            "outcome": y + rng.normal(0.0, 0.01, N),
            "y": np.array(["no", "yes"])[y],
        }
    ).with_columns(renamed=pl.col("category").replace({"u": "x", "v": "y", "w": "z"}))


@pytest.fixture(scope="module")
def alerts():
    table = rows()
    model = po.NaiveBayes().fit(table, "y")
    return find_alerts(ReportData.of(model, table, "y"), facts_of_rows(model, table))


def test_each_alert_is_found_and_no_other(alerts):
    found = {(one.columns, one.kind) for one in alerts}
    assert found == {
        (("constant",), "constant"),
        (("plain", "in inches"), "duplicates"),
        (("category", "renamed"), "duplicates"),
        (("zeros",), "many zeros"),
        (("tail",), "heavy tail"),
        (("sparse",), "many missing cells"),
        (("drifting",), "changes along the rows"),
        (("drifting category",), "changes along the rows"),
        (("outcome",), "predicts the class alone"),
    }


def test_a_table_sorted_by_class_does_not_drift_for_this_reason():
    table = rows().select("plain", "category", "outcome", "y").sort("y")
    model = po.NaiveBayes().fit(table, "y")
    kinds = {one.kind for one in find_alerts(ReportData.of(model, table, "y"), facts_of_rows(model, table))}
    assert kinds == {"predicts the class alone"}


def test_many_alerts_are_folded(alerts):
    assert not str(alerts_table(alerts)).startswith("<details")
    assert "<details" not in str(alerts_table(alerts * 2))
    folded = str(alerts_table(alerts * 3))
    assert "<details><summary>6 alerts “duplicates”: plain and in inches, category and renamed, " in folded
    assert folded.count("<details") == 2  # duplicates, and changes along the rows
    assert "No alerts" in alerts_table([])


def test_copies_of_large_numbers_are_found():
    x = np.random.default_rng(0).normal(size=40)
    table = pl.DataFrame({"x": x, "copy": x, "y": ["a", "b"] * 20})
    model = po.NaiveBayes().fit(table, "y")
    later = table.with_columns(pl.col("x", "copy") * 1e200)
    found = find_alerts(ReportData.of(model, later, "y"), facts_of_rows(model, later))
    assert ("x", "copy") in {one.columns for one in found if one.kind == "duplicates"}
