"""The report on a joint model: whole, in plain HTML, and with the figures of the Python calls."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.facts.joint import value_of
from posteriori.joint.answers import cell_figures
from posteriori.reporting.joint_data import JointReport
from tests.reporting.test_report import check

SECTIONS = ["table", "map", "derived", "predictability", "cells", "rows", "repeated"]


@functools.cache
def fitted():
    return po.JointModel().fit(load_penguins())


@functools.cache
def subject():
    return JointReport.of(fitted(), load_penguins())


def money(n=400):
    """Return rows in which the unit follows from the country, and nothing tells about the noise."""
    rng = np.random.default_rng(0)
    unit = {"fr": "euro", "de": "euro", "us": "dollar", "ca": "dollar"}
    country = rng.choice(list(unit), n)
    return pl.DataFrame(
        {
            "country": country,
            "unit": [unit[one] for one in country],
            "noise": rng.choice(["u", "v"], n),
            "same": ["x"] * n,
            "size": rng.normal(size=n),
        }
    )


def test_the_page_has_all_sections_and_the_figures_of_the_calls(tmp_path):
    report = po.report(fitted(), load_penguins(), path=tmp_path / "page.html")
    page = check(report)
    assert [one["id"] for one in page.of("h2")] == SECTIONS
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html
    assert len(page.of("svg")) == 1
    for name, weight in fitted().member_weights_.items():
        assert f"{name} {weight:.2f}" in page.text
    row, column = np.unravel_index(np.nanargmax(scores := fitted().score_cells(load_penguins())), scores.shape)
    first = subject().strange_cells(1)[0]
    assert (first.row, first.column) == (row, load_penguins().columns[column])
    assert first.score == scores[row, column]
    assert f"row {row}{first.column}{first.value}{first.expected}" in page.text.replace("\n", "")
    log_density = fitted().score_samples(load_penguins())
    assert subject().strange_rows(10).tolist() == np.argsort(log_density, kind="stable")[:10].tolist()
    assert f"row {log_density.argmin()}" in page.text


def test_figures_and_importance_are_those_of_the_model():
    value = value_of(fitted())
    expected = cell_figures(value.law, value.rows.source(load_penguins()))
    assert {load_penguins().columns[j]: one for j, one in expected.items()} == subject().figures
    table = fitted().importance_.drop("known").to_numpy()
    inside = ~np.eye(len(table), dtype=bool)
    assert_allclose(subject().importance[inside], table[inside])
    assert np.isnan(np.diag(subject().importance)).all()


def test_what_was_expected_is_what_predict_says():
    for one in subject().strange_cells(8):
        row = load_penguins()[one.row]
        said = fitted().predict(row, one.column, method="joint")[0]
        if isinstance(said, str):
            probability = fitted().predict_proba(row, one.column, method="joint")[0]
            assert one.expected.startswith(f"{said} (")
            assert_allclose(one.probability, probability[fitted().categories(one.column).index(one.value)])
        else:
            assert one.expected.startswith(f"{said:.4g} ± ")


@pytest.mark.parametrize("n", [60, 400, 3000])
def test_columns_that_follow_from_others_are_named_at_any_size(n):
    data = JointReport.of(po.JointModel().fit(money(n)), money(n))
    assert data.derived["unit"] == ["country"]


def test_columns_that_follow_from_others_are_named():
    model = po.JointModel().fit(money())
    data = JointReport.of(model, money())
    assert data.derived == {"unit": ["country"]}
    assert data.untold == ["noise", "size"]
    assert data.constant == ["same"]
    page = check(po.report(model, money()))
    assert "unit follows from country" in page.text
    assert "Nothing tells about noise and size." in page.text
    assert "Of one value only: same." in page.text


def test_parts_of_a_date_do_not_derive_each_other():
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 12, 30), eager=True).alias("when")
    table = pl.DataFrame([days, pl.Series("a", np.random.default_rng(0).choice(["u", "v"], len(days)))])
    data = JointReport.of(po.JointModel().fit(table), table)
    assert data.derived == {}
    assert list(data.figures) == ["a"]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "numpy", "list", "file"])
def test_repeated_rows_are_found_in_each_kind_of_table(kind, tmp_path):
    pd = pytest.importorskip("pandas")
    a, b = [1.5, 2.0, 1.5, None, None, 1.5, 7.0], [1.0, 2.0, 1.0, 3.0, 3.0, 1.0, 2.0]
    table = pl.DataFrame({"a": a, "b": b})
    table.write_csv(tmp_path / "t.csv")
    made = {
        "polars": table,
        "lazy": table.lazy(),
        "list": [list(row) for row in table.rows()],
        "pandas": pd.DataFrame({"a": a, "b": b}),
        "numpy": table.to_numpy(),
        "file": tmp_path / "t.csv",
    }
    data = JointReport.of(po.JointModel().fit(made[kind]), made[kind])
    assert data.repeated == [[0, 2, 5], [3, 4]]


def test_unseen_categories_are_unequal_and_identifiers_left_out():
    table = money(60).select("country", "unit").with_columns(id=pl.Series([f"n{i}" for i in range(60)]))
    with pytest.warns(UserWarning, match="ignored"):
        model = po.JointModel().fit(table)
    rows = pl.DataFrame({"country": ["xx", "yy", "xx", None], "unit": ["euro"] * 4, "id": list("abcd")})
    with pytest.warns(UserWarning, match="unseen"):
        page = check(po.report(model, rows))
    assert JointReport.of(model, rows).repeated == [[0, 2]]
    assert "3 rows repeat" not in page.text
    assert "1 repeat of another row" in page.text


HOSTILE = "<script>alert(1)</script>, \"a\" & 'b'"


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"a": ["x", "y", "x", "x"]}),
        pl.DataFrame({"a": [1.0, 2.5, 3.0, 8.0]}),
        pl.DataFrame({"a": ["x"], "b": [1.0], "c": [True]}),
        pl.DataFrame({"a": ["x", "y"] * 10, "b": [None] * 20, "c": [k % 7 for k in range(20)]}),
        pl.DataFrame({HOSTILE: [HOSTILE, "u"] * 15, "b, c": ["<b>", "&amp;"] * 15, "&": [1.0, 2.0, None] * 10}),
        pl.DataFrame({"a": ["x"] * 5, "b": ["y"] * 5}),
    ],
)
@pytest.mark.filterwarnings("ignore:column 'b' has no cell with a value")
def test_small_and_odd_tables(table):
    page = check(po.report(po.JointModel().fit(table), table))
    assert [one["id"] for one in page.of("h2")] == SECTIONS
    for name in table.columns:
        assert name in page.text


def test_rows_without_a_known_cell_of_a_column():
    rows = load_penguins().head(30).with_columns(sex=pl.lit(None, pl.String), year=pl.lit(None, pl.Int64))
    page = check(po.report(fitted(), rows))
    assert "sex" not in JointReport.of(fitted(), rows).figures
    assert "30 (100" in page.text


def test_the_map_of_many_columns_shows_the_strongest_links():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({f"c{i}": rng.choice(["u", "v"], 300) for i in range(45)})
    table = table.with_columns(copy=pl.col("c44"))
    data = JointReport.of(po.JointModel(members=["tree"]).fit(table), table)
    names = [data.law.names[k] for k in data.ordered(10)]
    assert len(set(names)) == 10
    assert abs(names.index("copy") - names.index("c44")) == 1
    assert "The 40 of 46 columns" in check(po.report(data.model, table)).text


@pytest.mark.parametrize("name", ["y", "out_of_fold", "against", "explorer", "positive"])
def test_parameters_of_targets_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is not used in a report on a joint model"):
        po.report(fitted(), load_penguins(), **{name: "species"})
