"""Options of predict: columns beside the prediction, strangeness, and rules of decision."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

import posteriori as po
from posteriori.reading import files
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine()
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "id": [f"{i:07}" for i in range(n)],
            "x": rng.normal(y).round(3),
            "k": rng.integers(0, 9, n),
            "c": np.array(["red", "green", "blue"])[(y + (rng.random(n) < 0.4)) % 3],
            "y": np.array(["low", "mid", "high"])[y],
        }
    ).with_columns(
        x=pl.when(pl.int_range(pl.len()) % 7 > 0).then("x"), c=pl.when(pl.int_range(pl.len()) % 5 > 0).then("c")
    )


ROWS = table(400)
MODELS = {
    "nb": po.NaiveBayes(),
    "informative": po.NaiveBayes(missing="informative"),
    "qda": po.GaussianDiscriminant(),
    "tan": po.TreeAugmentedNaiveBayes(),
    "pool": po.GenerativeClassifier(["nb", "lda", "tan"]),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    position = tmp_path_factory.mktemp("models")
    for name, model in MODELS.items():
        po.save(model.fit(ROWS.drop("id"), "y"), position / name)
    return position


def predicted(*arguments):
    return pl.read_csv(succeeds("predict", *arguments).encode(), infer_schema=False)


def test_columns_beside_the_prediction_are_written_as_they_stand(models, monkeypatch):
    rows = table(30_000, seed=1)
    rows.write_csv("t.csv")
    rows.write_parquet("t.parquet")
    monkeypatch.setattr(files, "_READ_AHEAD", 1000)
    model = po.load(models / "nb")
    found = predicted(models / "nb", "t.csv", "--with", "id,k")
    assert found.columns == ["id", "k", "prediction"]
    assert found["id"].to_list() == rows["id"].to_list()
    assert found["k"].to_list() == list(map(str, rows["k"]))
    assert_array_equal(found["prediction"], model.predict(rows.drop("id", "y")))
    succeeds("predict", models / "nb", "t.parquet", "--append", "--proba", "--output", "out.parquet")
    written = pl.read_parquet("out.parquet")
    assert written.columns[:6] == [*rows.columns, "prediction"]
    assert written.select(rows.columns).equals(rows)
    assert_allclose(written.select("p_low").to_series(), model.predict_proba(rows.drop("id", "y"))[:, 1], atol=1e-12)
    po.predict_to(model, po.scan("t.parquet"), "again.parquet", True, with_columns=rows.columns)
    assert pl.read_parquet("again.parquet").equals(written)


def test_columns_beside_the_prediction_warn_of_no_column(models):
    ROWS.with_columns(pl.lit(1).alias("more")).write_csv("t.csv")
    code, _, err = run("predict", models / "nb", "t.csv", "--with", "id")
    assert (code, err) == (0, "warning: ignored, because the model does not have it: column 'more'\n")


@pytest.mark.parametrize("name", MODELS)
def test_strangeness_is_uniform_and_log_density_is_the_librarys(name, models):
    model = po.load(models / name)
    drawn, _ = model.sample(2000, random_state=1, respect_ranges=False)
    drawn.write_csv("t.csv")
    found = predicted(models / name, "t.csv", "--strangeness").cast({"log_density": float, "strangeness": float})
    assert_allclose(found["log_density"], model.score_samples(drawn), rtol=1e-9)
    # Against 1000 drawn rows, the distance to the uniform distribution has a standard deviation of about 0.03.
    assert kstest(found["strangeness"], "uniform").statistic < 0.08


def test_a_row_is_compared_with_rows_that_lack_the_same_cells(models):
    blank = ROWS.drop("id").with_columns(pl.lit(None, pl.Float64).alias("x"))
    blank.write_csv("blank.csv")
    po.save(po.NaiveBayes().fit(ROWS.drop("id", "x"), "y"), "without")
    found = predicted(models / "nb", "blank.csv", "--strangeness").cast({"strangeness": float})["strangeness"]
    ROWS.drop("id", "x").write_csv("t.csv")
    expected = predicted("without", "t.csv", "--strangeness").cast({"strangeness": float})["strangeness"]
    assert_allclose(found, expected, atol=0.1)


def test_costs_and_thresholds_decide_as_loops_do(models):
    ROWS.write_csv("t.csv")
    model = po.load(models / "nb")
    p, classes = model.predict_proba(ROWS.drop("id", "y")), model.classes_.tolist()
    costs = {"low": {"mid": 1, "high": 9}, "mid": {"low": 2, "high": 0.5}, "high": {"low": 8, "mid": 3}}
    expected = []
    for row in p:
        cost = {k: sum(q * costs[c].get(k, 0.0) for q, c in zip(row, classes, strict=True)) for k in classes}
        expected.append(min(cost, key=cost.get))
    Path("costs.json").write_text(json.dumps(costs))
    Path("costs.csv").write_text("true;low;mid;high\nlow;0;1;9\nmid;2;0;0,5\nhigh;8;3;0\n")
    for name in ("costs.json", "costs.csv"):
        assert predicted(models / "nb", "t.csv", "--costs", name)["prediction"].to_list() == expected
    assert po.decide(p, classes, costs=costs).tolist() == expected
    expected = []
    for row in p:
        at = dict(zip(classes, row, strict=True))
        expected.append("mid" if at["mid"] >= 0.2 else "low" if at["low"] >= 0.6 else "high")
    found = predicted(models / "nb", "t.csv", "--threshold", "mid=0.2", "--threshold", "low=0.6")
    assert found["prediction"].to_list() == expected
    assert po.decide(p, classes, thresholds={"mid": 0.2, "low": 0.6}).tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--with", "idd"), "did you mean 'id'"),
        (("--with", "id", "--append"), "remove one of the options"),
        (("--threshold", "low=2"), "write CLASS=P"),
        (("--threshold", "lo=0.2"), "did you mean 'low'"),
        (("--threshold", "low=0.2", "--costs", "costs.json"), "two rules"),
        (("--costs", "costs.json"), "lack that of deciding 'low' where 'high' is true"),
        (("--costs", "list.json"), "is no JSON of costs"),
        (("--costs", "words.csv"), "must hold a cost in each row"),
    ],
)
def test_refusals(arguments, part, models):
    ROWS.write_csv("t.csv")
    Path("costs.json").write_text('{"low": {"mid": 1, "high": 1}}')
    Path("list.json").write_text("[1]")
    Path("words.csv").write_text("true,low,mid,high\nlow,0,1,a lot\n")
    assert part in refused("predict", models / "nb", "t.csv", *arguments)


def test_a_column_with_the_name_of_a_result_is_refused(models):
    ROWS.with_columns(pl.lit("low").alias("prediction")).write_csv("t.csv")
    assert "name of a result too" in refused("predict", models / "nb", "t.csv", "--append")


def test_decide_refuses_what_does_not_fit():
    for arguments, message in [
        ({}, "one of them"),
        ({"costs": {}, "thresholds": {}}, "one of them"),
        ({"thresholds": {"a": 1.5}}, "from 0 to 1"),
        ({"costs": {"a": {"b": float("nan")}}}, "give a number"),
    ]:
        with pytest.raises(ValueError, match=message):
            po.decide([[0.5, 0.5]], ["a", "b"], **arguments)
    for arguments, message in [
        ({"costs": [[0, 1], [5, 0]]}, "costs is a list; name the classes, costs={true class: {decided class: cost}}"),
        ({"costs": {"a": 1}}, "the costs where 'a' is true are 1; name them, {decided class: cost}"),
        ({"thresholds": [0.5]}, "thresholds is a list; name the classes"),
    ]:
        with pytest.raises(TypeError, match=re.escape(message)):
            po.decide([[0.5, 0.5]], ["a", "b"], **arguments)
    with pytest.raises(TypeError, match="posterior is a model; give its probabilities"):
        po.decide(po.NaiveBayes(), [], costs={})
    with pytest.raises(ValueError, match="one column for each of the 3 classes"):
        po.decide([[0.5, 0.5]], ["a", "b", "c"], thresholds={"a": 0.5})


def test_whole_numbers_of_128_bits_are_predicted(folder):
    classes = pl.Series([5, 2**127 - 1, 2**64] * 4, dtype=pl.Int128)
    po.save(po.NaiveBayes().fit(pl.DataFrame({"x": [0.0, 9.0, 90.0] * 4}), classes), "model.posteriori")
    pl.DataFrame({"x": [0.0, 9.0, 90.0]}).write_csv("rows.csv")
    assert succeeds("predict", "model.posteriori", "rows.csv").split() == ["prediction", *map(str, classes[:3])]


def test_text_holds_a_duration_as_iso_8601_and_refuses_lists(folder):
    spans = pl.Series([1_500, 90_000, 3_600_000], dtype=pl.Int64).cast(pl.Duration("ms"))
    rows = pl.DataFrame({"span": spans, "x": [1.0, 2.0, 3.0], "many": [[1], [2], [3]]})
    rows.write_parquet("rows.parquet")
    po.save(po.NaiveBayes().fit(pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), ["a", "b", "a", "b"]), "model.posteriori")
    written = succeeds("predict", "model.posteriori", "rows.parquet", "--with", "span")
    assert [line.split(",")[0] for line in written.split()] == ["span", "PT1.5S", "PT1M30S", "PT1H"]
    succeeds("predict", "model.posteriori", "rows.parquet", "--with", "span", "--output", "out.csv")
    assert Path("out.csv").read_text() == written
    sentence = "column 'many' is List(Int64), which CSV cannot hold"
    assert sentence in refused("predict", "model.posteriori", "rows.parquet", "--with", "many")


def test_durations_are_drawn_as_text(folder):
    spans = pl.Series([1_500, 90_000, 3_600_000, 7_200_000], dtype=pl.Int64).cast(pl.Duration("ms"))
    po.save(po.NaiveBayes().fit(pl.DataFrame({"span": spans}), ["a", "b", "a", "b"]), "model.posteriori")
    assert succeeds("sample", "model.posteriori", "--seed", 1).split()[1].startswith("PT")
