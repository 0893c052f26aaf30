"""Targets that look like quantities, cut into classes, and what a command overwrites."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori.reading.target_cuts import looks_like_a_quantity
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(model="nb")
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


@pytest.fixture
def cars(tmp_path, monkeypatch):
    """Write a table of cars with a price, and a second one of the same kind; return the folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("cars", "more"):
        km = rng.integers(0, 200_000, 400)
        frame = pl.DataFrame(
            {
                "price": (20_000 - km / 15 + rng.normal(0, 1500, 400)).round().astype(int),
                "km": km,
                "fuel": rng.choice(["gas", "diesel"], 400),
            }
        )
        frame.write_csv(f"{name}.csv")
        frame.write_parquet(f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier(), po.TreeAugmentedNaiveBayes()])
def test_a_target_like_a_quantity_is_refused_with_the_fix(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(100, 5000, 300)
    with pytest.raises(ValueError, match=r"a quantity; cut it into classes with posteriori\.reading\.quantile_classes"):
        model.fit(X, y)
    assert len(model.fit(X, po.reading.quantile_classes(y)).classes_) == 4


def test_cross_validation_refuses_undeclared_quantities_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.repeat(np.arange(100, 400, 4), 4)
    with pytest.raises(ValueError, match="looks like a quantity"):
        po.cross_validate(["nb"], X, y)
    with pytest.raises(ValueError, match="looks like a quantity"):
        po.NaiveBayes().partial_fit(X, y)
    assert len(po.NaiveBayes().partial_fit(X, y, classes=np.unique(y)).classes_) == 75
    assert len(po.NaiveBayes().fit(X, y.astype(str)).classes_) == 75
    assert len(po.NaiveBayes().fit(X, pl.Series(y).cast(pl.String).cast(pl.Categorical)).classes_) == 75


@pytest.mark.parametrize(
    ("labels", "rows", "expected"),
    [
        (range(1, 27), 300, False),  # letters
        (range(18), 100, False),
        (range(100), 600, False),
        ([101, 204, 305], 30, False),
        (range(18, 69), 4454, True),  # ages
        ([7 * k for k in range(30)], 4454, False),
        (["a", "b"] * 20, 50, False),
        ([float(k) for k in range(5, 60)], 500, True),
        ([True, False], 5, False),
    ],
)
def test_the_rule(labels, rows, expected):
    assert looks_like_a_quantity(list(labels), rows) is expected


@given(st.lists(st.integers(-1000, 1000), min_size=2).filter(lambda y: len(set(y)) > 1), st.integers(2, 9))
def test_quantile_classes_are_intervals_of_values_in_order(y, k):
    cuts = po.reading.TargetCuts.of(y, k)
    labels = po.reading.quantile_classes(y, k)
    assert 2 <= len(set(labels)) == len(cuts.names) <= k
    position = [cuts.names.index(label) for label in labels]
    for value, other in zip(y, position, strict=True):
        low = -np.inf if other == 0 else cuts.cuts[other - 1]
        high = np.inf if other == len(cuts.cuts) else cuts.cuts[other]
        assert low < value <= high
    assert_array_equal(po.reading.quantile_classes(y, cuts=cuts.cuts), labels)
    assert pl.DataFrame({"y": y}).select(cuts.expression("y"))["y"].to_list() == labels.tolist()


def test_missing_numbers_have_no_class_and_errors_name_arguments():
    assert po.reading.quantile_classes([1.0, None, 3.0, float("nan")], 2).tolist() == ["≤ 1", None, "> 1", None]
    for arguments, message in [
        ((["a", "b"], 2), "only a target of numbers"),
        (([1, 2], 1), "classes is 1"),
        (([3, 3], 2), "one class"),
        (([None], 2), "no value"),
        (([1, np.inf], 2), "infinite"),
    ]:
        with pytest.raises(ValueError, match=message):
            po.reading.quantile_classes(*arguments)
    with pytest.raises(ValueError, match="increasing"):
        po.reading.quantile_classes([1, 2], cuts=[3, 1])
    with pytest.raises(ValueError, match="give one of them"):
        po.reading.quantile_classes([1, 2], 2, cuts=[1])


# The command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "cv", "compare"])
def test_commands_refuse_such_a_target_and_take_it_cut_or_meant(command, cars):
    models = ("--model", "nb") if command == "fit" else ("--models", "nb")
    few = ("--repeats", "1", "--sizes", "100") if command == "compare" else ()
    assert "--classes 4" in (sentence := refused(command, "cars.csv", "--target", "price", *models, *few))
    assert "--target-is-class" in sentence
    succeeds(command, "cars.csv", "--target", "price", "--classes", "3", *models, *few)
    both = refused(command, "cars.csv", "--target", "price", "--classes", "3", "--target-is-class", *models, *few)
    assert "remove one of them" in both
    assert "has none" in refused(command, "more.csv", "--target", "fuel", "--classes", "3", *models, *few)


def test_numbers_are_classes_where_the_user_says_so(cars):
    pl.DataFrame({"x": range(300), "code": [100 + 7 * (i % 30) for i in range(300)]}).write_csv("codes.csv")
    assert "looks like a quantity" in refused("fit", "codes.csv", "--target", "code", "--model", "nb")
    succeeds("fit", "codes.csv", "--target", "code", "--target-is-class")
    assert len(po.load("codes.posteriori").classes_) == 30


@pytest.mark.parametrize(
    ("kind", "model"),
    [("csv", "nb"), ("parquet", "nb"), ("csv", "pool"), ("parquet", "pool")],
)
def test_a_saved_model_cuts_the_target_of_new_rows_as_its_own(kind, model, cars):
    succeeds("fit", f"cars.{kind}", "--target", "price", "--classes", "3", "--model", model)
    loaded = po.load("cars.posteriori")
    found = json.loads(succeeds("evaluate", "cars.posteriori", f"more.{kind}", "--json"))
    rows = pl.read_csv("more.csv")
    expected = (loaded.predict(rows.drop("price")) == loaded.fitted_.record.target_cuts.apply(rows["price"])).mean()
    assert found["model"]["accuracy"] == pytest.approx(expected)
    assert expected > 0.6


def test_a_different_model_is_not_overwritten_without_force(cars):
    fit = ("fit", "cars.csv", "--output", "m.posteriori", "--target")
    succeeds(*fit, "fuel")
    before = (cars / "m.posteriori").read_bytes()
    sentence = refused(*fit, "price", "--classes", "2")
    assert "the model of the target 'fuel'" in sentence
    assert "--force" in sentence
    assert "the target 'fuel'" in refused("cluster", "cars.csv", "-k", "2", "--output", "m.posteriori")
    learn = ("network", "learn", "cars.csv", "--binned", "--output")
    assert "the target 'fuel'" in refused(*learn, "m.posteriori")
    assert (cars / "m.posteriori").read_bytes() == before
    (cars / "notes.posteriori").write_text("not a model")
    assert "not a posteriori model" in refused("fit", "cars.csv", "--target", "fuel", "--output", "notes.posteriori")
    (cars / "notes.bif").write_text("not a network")
    assert "not a posteriori model" in refused(*learn, "notes.bif")
    succeeds(*learn, "net.bif")
    assert "holds a Bayesian network" in refused(*learn, "net.bif")
    succeeds(*learn, "net.bif", "--force")
    succeeds(*fit, "price", "--classes", "2", "--force")
    assert po.load("m.posteriori").schema_.target == "price"


def test_merge_keeps_to_the_same_rule(cars):
    for name in ("cars", "more"):
        succeeds("fit", f"{name}.csv", "--target", "fuel")
    merge = ("merge", "cars.posteriori", "more.posteriori", "--out")
    succeeds(*merge, "both.posteriori")
    succeeds(*merge, "both.posteriori")
    succeeds("fit", "cars.csv", "--target", "price", "--classes", "2", "--output", "price.posteriori")
    assert "the target 'price'" in refused(*merge, "price.posteriori")
    succeeds(*merge, "price.posteriori", "--force")


def test_models_whose_targets_were_cut_elsewhere_are_not_merged(cars):
    for name in ("cars", "more"):
        succeeds("fit", f"{name}.csv", "--target", "price", "--classes", "2")
    assert "cut into classes at different numbers" in refused(
        "merge", "cars.posteriori", "more.posteriori", "--out", "both.posteriori"
    )


def test_the_command_sample_draws_within_the_ranges_by_default(cars):
    succeeds("fit", "cars.csv", "--target", "fuel")
    drawn = pl.read_csv(succeeds("sample", "cars.posteriori", "-n", "200", "--seed", "1").encode())
    rows = pl.read_csv("cars.csv")
    for name in ("price", "km"):
        assert drawn[name].dtype == pl.Int64
        assert drawn[name].min() >= rows[name].min()
        assert drawn[name].max() <= rows[name].max()
    raw = pl.read_csv(succeeds("sample", "cars.posteriori", "-n", "200", "--seed", "1", "--ignore-ranges").encode())
    assert raw["km"].min() < 0
    code, _, err = run("sample", "cars.posteriori", "-n", "99999999999999999999")
    assert code == 2
    assert "the draw of 99,999,999,999,999,999,999 rows of 2 columns is not begun" in err


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=80).filter(lambda y: len(set(y)) > 1))
def test_more_classes_than_numbers_are_one_for_each_number(y):
    for n_classes in (2 * len(y), 3 * len(y), 10**20):
        assert po.reading.TargetCuts.of(y, n_classes).cuts == tuple(sorted(set(y))[:-1])


def test_a_damaged_file_is_named_where_its_target_is_cut(cars):
    data = bytearray((cars / "cars.parquet").read_bytes())
    data[50 : len(data) // 2] = b"\x07" * (len(data) // 2 - 50)
    (cars / "cars.parquet").write_bytes(data)
    assert "cannot read 'cars.parquet'" in refused("fit", "cars.parquet", "--target", "price", "--classes", "2")


@pytest.fixture
def partly_labelled(cars):
    """Fit a model of the fuel to cars.csv, and take the labels of five rows of more.csv; return the folder."""
    succeeds("fit", "cars.csv", "--target", "fuel", "-o", "m.posteriori")
    frame = pl.read_csv("more.csv").with_row_index()
    frame.with_columns(fuel=pl.when(pl.col("index") % 80 != 7).then("fuel")).drop("index").write_csv("more.csv")
    pl.read_csv("more.csv").drop_nulls("fuel").write_csv("labelled.csv")
    return cars


def test_rows_without_a_label_are_left_out_of_scores_and_counted(partly_labelled):
    code, out, err = run("evaluate", "m.posteriori", "more.csv", "--json")
    facts, alone = json.loads(out), json.loads(succeeds("evaluate", "m.posteriori", "labelled.csv", "--json"))
    assert code == 0
    assert "note: 5 rows without a label in 'fuel' are left out, of 400\n" in err
    assert (facts.pop("rows_without_label"), facts.pop("rows"), facts.pop("table")) == (5, 395, "more.csv")
    assert (alone.pop("rows_without_label"), alone.pop("rows"), alone.pop("table")) == (0, 395, "labelled.csv")
    assert facts == alone
    _, out, err = run("cv", "more.csv", "-t", "fuel", "--models", "nb", "--json")
    assert json.loads(out)["rows"] == 395
    assert "5 rows without a label" in err


def test_reports_leave_them_out_and_the_explorer_shows_them(partly_labelled):
    code, _, err = run("report", "m.posteriori", "more.csv", "-o", "page.html")
    assert code == 0
    assert "5 rows without a label in 'fuel' are left out, of 400; row numbers on the page count the others" in err
    succeeds("explore", "m.posteriori", "more.csv", "-o", "rows.html")
    pl.read_csv("more.csv").with_columns(fuel=pl.lit(None, pl.String)).write_csv("none.csv")
    assert "every cell of the target 'fuel' is missing" in refused("evaluate", "m.posteriori", "none.csv")


@pytest.mark.parametrize("model", ["nb", "pool"])
@pytest.mark.parametrize("k", [2, 5, 7])
def test_classes_of_a_cut_target_are_in_numeric_order(tmp_path, monkeypatch, model, k):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    size = rng.normal(size=140)
    price = (9000 * np.exp(size + 0.1 * rng.normal(size=140))).round()
    pl.DataFrame({"size": size, "price": price}).write_csv("flats.csv")
    names = list(po.reading.TargetCuts.of(price, k).names)
    assert k == 2 or names != sorted(names)
    page = " ".join(
        succeeds("fit", "flats.csv", "-t", "price", "--classes", str(k), "--model", model, "-o", "m.posteriori").split()
    )
    places = [page.index(f"{name} {140 // k}") for name in names]  # all, with their rows
    assert places == sorted(places)
    assert list(po.load("m.posteriori").classes_) == names
    head, *_ = succeeds("predict", "m.posteriori", "flats.csv", "--proba").splitlines()
    levels = ["median", "prediction_low", "prediction_high"] if k > 2 else []
    assert head.split(",") == ["prediction", *(f"p_{name}" for name in names), *levels]
    for command in ("evaluate m.posteriori flats.csv", "report m.posteriori flats.csv", "show m.posteriori"):
        succeeds(*command.split())
    figures = json.loads(succeeds("evaluate", "m.posteriori", "flats.csv", "--json"))
    assert [one["class"] for one in figures["classes"]] == names
    if model == "nb":
        assert list(po.merge([po.load("m.posteriori")] * 2).classes_) == names
