"""Lists to act on: predictions sorted by a class or a number, the first ones, with reasons, as a spreadsheet."""

import json
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.cli import lists
from posteriori.reading import files
from tests.cli.command_line import CommandLine

LINE = CommandLine(details=False, replaces=True)
succeeds, refused = LINE.succeeds, LINE.refused


def customers(n=600, seed=0):
    rng = np.random.default_rng(seed)
    leaves = rng.random(n) < 0.25
    months = np.where(leaves, rng.exponential(8, n), rng.exponential(30, n)).round(1)
    contract = np.where(rng.random(n) < 0.3, "Two year", np.where(leaves, "Month-to-month", "One year"))
    return pl.DataFrame(
        {
            "name": [f"00{i}" for i in range(n)],
            "contract": contract,
            "months": months,
            "fee": (60 + 20 * leaves + rng.normal(0, 15, n)).round(2),
            "calls": rng.integers(0, 5, n),
            "leaves": np.where(leaves, "Yes", "No"),
        }
    ).with_columns(months=pl.when(pl.int_range(n) % 9 > 0).then("months"))


ROWS = customers()
FEATURES = ROWS.drop("name", "leaves")
MODELS = {
    "nb": po.NaiveBayes(),
    "tan": po.TreeAugmentedNaiveBayes(),
    "pool": po.GenerativeClassifier(["nb", "lda", "tan"]),
    "species": po.NaiveBayes(),
    "number": po.GenerativeRegressor(members=["additive"]),
    "additive": po.AdditiveRegressor(),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    position = tmp_path_factory.mktemp("models")
    for name, model in MODELS.items():
        if name == "species":
            model.fit(po.datasets.load_penguins(), "species")
        elif name in ("number", "additive"):
            model.fit(ROWS.drop("name"), "fee")
        else:
            model.fit(ROWS.drop("name"), "leaves")
        po.save(model, position / name)
    return position


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ROWS.write_csv("rows.csv")


def listed(*arguments):
    return pl.read_csv(succeeds("predict", *arguments).encode(), schema_overrides={"name": pl.String})


@pytest.mark.parametrize("name", ["nb", "tan", "pool"])
@pytest.mark.parametrize("label", ["Yes", "No"])
def test_a_list_has_the_most_probable_rows_of_the_class_first(name, label, models, monkeypatch):
    monkeypatch.setattr(files, "_READ_AHEAD", 100)
    monkeypatch.setattr(lists, "_WAITING", 10)
    model = po.load(models / name)
    p = model.predict_proba(FEATURES)[:, model.classes_.tolist().index(label)]
    odds = model.decision_function(FEATURES) * (1 if label == "Yes" else -1)
    best = np.lexsort([np.arange(len(p)), -odds.round(9)])[:20]
    found = listed(models / name, "rows.csv", "--sort", label, "--top", "20")
    assert found["row"].to_list() == best.tolist()
    assert found.columns == ["row", *ROWS.columns, "prediction", f"p_{label}"]
    assert found["name"].to_list() == ROWS["name"][best].to_list()
    assert_allclose(found[f"p_{label}"], p[best], atol=1e-4)
    whole = listed(models / name, "rows.csv", "--sort", label, "--with", "name")
    assert whole.columns == ["row", "name", "prediction", f"p_{label}"]
    assert whole[:20]["row"].to_list() == best.tolist()
    assert sorted(whole["row"]) == list(range(len(ROWS)))


def test_probabilities_of_a_list_are_short_and_never_1_below_1(models):
    po.datasets.load_penguins().write_csv("birds.csv")
    text = succeeds("predict", models / "species", "birds.csv", "--sort", "Gentoo", "--proba", "--with", "sex")
    cells = [line.split(",")[3:] for line in text.splitlines()[1:]]
    assert max(len(cell) for row in cells for cell in row) <= 8
    p = np.array(cells, float)
    assert p.max() == 0.9999
    assert p.min() > 0
    exact = np.sort(po.load(models / "species").predict_proba(po.datasets.load_penguins().drop("species"))[:, 2])
    assert np.abs(p[::-1, 2] - exact).max() <= 1.01e-4
    plain = succeeds("predict", models / "species", "birds.csv", "--proba")
    assert max(len(cell) for line in plain.splitlines() for cell in line.split(",")) > 12


def test_rows_with_probability_1_are_sorted_by_their_odds(models):
    far = pl.DataFrame({"flipper_length_mm": [228.0, 250.0, 239.0], "body_mass_g": [6000.0, 7000.0, 6500.0]})
    far.write_csv("far.csv")
    po.save(po.NaiveBayes().fit(po.datasets.load_penguins()[["species", *far.columns]], "species"), "two")
    assert po.load("two").predict_proba(far)[1, 2] == 1.0
    assert listed("two", "far.csv", "--sort", "Gentoo")["row"].to_list() == [1, 2, 0]


def test_a_list_by_expected_cost(models):
    Path("costs.json").write_text(json.dumps({"No": {"Yes": 1}, "Yes": {"No": 7}}))
    p = po.load(models / "pool").predict_proba(FEATURES)  # No, Yes
    cost = np.minimum(p[:, 0], 7 * p[:, 1])
    found = listed(models / "pool", "rows.csv", "--sort", "cost", "--costs", "costs.json", "--top", "9")
    assert found["row"].to_list() == np.argsort(-cost, kind="stable")[:9].tolist()
    assert_allclose(found["expected_cost"], np.sort(-cost)[:9] * -1, rtol=1e-5)
    assert "add --costs" in refused("predict", models / "pool", "rows.csv", "--sort", "cost")


@pytest.mark.parametrize("name", ["number", "additive"])
def test_a_list_of_numbers(name, models):
    rows, model = ROWS.drop("name", "fee"), po.load(models / name)
    mean, high = model.predict(rows), model.predict_quantiles(rows, [0.9])[:, 0]
    found = listed(models / name, "rows.csv", "--sort", "mean", "--top", "7", "--reasons", "2")
    best = np.argsort(-mean, kind="stable")[:7]
    assert found["row"].to_list() == best.tolist()
    explanation = model.explain(rows[best])
    for i, row in enumerate(found.iter_rows(named=True)):
        parts = np.array([row["reason_1_part"], row["reason_2_part"], row["others_part"], row["start_part"]], float)
        assert_allclose(parts.sum(), row["prediction"], rtol=1e-4)
        strongest = explanation.feature_names[explanation.ranked(i)[0]]
        assert row["reason_1"].startswith(f"{strongest} = ")
    arguments = ("--quantiles", "0.5,0.9", "--sort", "quantile_0.9", "--top", "5")
    found = listed(models / name, "rows.csv", *arguments)
    assert_allclose(found["quantile_0.9"], np.sort(high)[::-1][:5], rtol=1e-5)


@pytest.mark.parametrize("name", ["nb", "tan", "pool", "species"])
@pytest.mark.parametrize("top", [None, 15])
def test_reasons_are_parts_of_explain_and_sum_to_the_log_odds(name, top, models):
    data, label = (po.datasets.load_penguins(), "Chinstrap") if name == "species" else (ROWS, "Yes")
    data.write_parquet("t.parquet")
    model = po.load(models / name)
    arguments = ("--sort", label, *(() if top is None else ("--top", top)), "--reasons", "2", "-o", "out.parquet")
    succeeds("predict", models / name, "t.parquet", *arguments)
    found = pl.read_parquet("out.parquet")
    rows = (data.drop("species") if name == "species" else FEATURES)[found["row"].to_list()]
    explanation = model.explain(rows)
    for i, row in enumerate(found.iter_rows(named=True)):
        assert row["reasons_for"] == label
        odds = explanation.log_odds(i, label, row["reasons_against"])
        assert odds.against == explanation.log_odds(i, label).against
        amounts = sorted(odds.factors.values(), key=abs, reverse=True)
        parts = [row["reason_1_part"], row["reason_2_part"]]
        assert_allclose(parts, amounts[:2], atol=1e-4)
        assert row["reason_1"].split(" = ")[0] in odds.factors
        assert_allclose(sum(parts) + row["others_part"] + row["start_part"], odds.total, atol=1e-3)
        assert_allclose(row["log_odds"], odds.total, atol=1e-4)


def test_reasons_of_rows_in_order_are_exact_for_the_prediction(models):
    found = listed(models / "pool", "rows.csv", "--reasons", "9")
    assert found.height == len(ROWS)
    assert found["reasons_for"].equals(found["prediction"].alias("reasons_for"))
    p = po.load(models / "pool").predict_proba(FEATURES)
    assert_allclose(found["log_odds"], np.abs(np.log(p[:, 1] / p[:, 0])), atol=1e-9)
    parts = [name for name in found.columns if name.endswith("_part")]
    assert_allclose(found.select(parts).cast(pl.Float64).sum_horizontal(), found["log_odds"], atol=1e-9)
    assert 0.0 not in found["reason_4_part"].to_list()  # a cell that is missing is no reason


def test_a_spreadsheet_holds_numbers_and_text_and_no_formula(models):
    ROWS.with_columns(name=pl.lit("=1+1")).write_csv("formulas.csv")
    for table, names in (("rows.csv", ROWS["name"].to_list()), ("formulas.csv", ["=1+1"] * len(ROWS))):
        succeeds("predict", models / "nb", table, "--sort", "Yes", "--top", "4", "-o", "list.xlsx")
        header, *rows = openpyxl.load_workbook("list.xlsx").active.iter_rows()
        assert [cell.value for cell in header] == ["row", *ROWS.columns, "prediction", "p_Yes"]
        assert len(rows) == 4
        for row in rows:
            assert row[1].value == names[row[0].value]
            assert row[1].data_type == "s"
            assert isinstance(row[4].value, float | int)
            assert 0 < row[-1].value < 1
    succeeds("predict", models / "nb", "rows.csv", "-o", "all.xlsx")
    assert openpyxl.load_workbook("all.xlsx").active.max_row == len(ROWS) + 1
    assert pl.read_excel("all.xlsx")["row"].to_list() == list(range(len(ROWS)))


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("nb", "--top", "9"), "add --sort"),
        (("nb", "--sort", "yess"), "did you mean 'Yes'"),
        (("nb", "--sort", "prediction"), "the classes are 'No', 'Yes'"),
        (("number", "--sort", "Yes"), "the columns to sort by are 'mean', 'prediction_low', 'prediction_high'"),
        (("nb", "--sort", "Yes", "-o", "x.xlsx", "--escape-formulas"), "is for CSV and TSV"),
        (("nb", "-o", "x.ods"), "write .xlsx"),
    ],
)
def test_lists_that_cannot_be(arguments, part, models):
    name, *others = arguments
    assert part in refused("predict", models / name, "rows.csv", *others)


def test_a_spreadsheet_needs_openpyxl_and_allowed_characters(models, monkeypatch):
    ROWS.with_columns(name=pl.lit("a\x01b")).write_csv("odd.csv")
    assert "control character" in refused("predict", models / "nb", "odd.csv", "--with", "name", "-o", "x.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    assert "pip install openpyxl" in refused("predict", models / "nb", "rows.csv", "-o", "x.xlsx")
    assert not Path("x.xlsx").exists()
