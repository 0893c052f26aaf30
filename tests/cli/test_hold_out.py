"""Rows that fit holds out: a random share, the last ones along a column, and whole groups."""

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.cli.fit_options import HoldOutOptions
from posteriori.cli.hold_out import choose_rows
from posteriori.model_selection import metrics
from tests.cli.command_line import CommandLine

line = CommandLine(model="nb", replaces=True)
page = CommandLine(model="nb", replaces=True, details=False)
N = 600
FIRST = dt.date(2020, 1, 1)


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """Sales, one a day, in random order: the relation of `a` to the class turns round along the days."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y, day = rng.choice(["u", "v"], N), rng.permutation(N)
    a = (y == "v") * (3.0 - 6.0 * (day >= 480)) + rng.normal(size=N)
    frame = pl.DataFrame({"sold": [FIRST + dt.timedelta(days=int(one)) for one in day], "day": day, "a": a, "y": y})
    frame.write_csv("sales.csv")
    return frame


def facts(*options, table="sales.csv"):
    return json.loads(line.succeeds("fit", table, "-t", "y", "--json", "-q", *options))


def first_page(*options, table="sales.csv"):
    return " ".join(page.succeeds("fit", table, "-t", "y", "-q", *options).split())


def with_label_at(frame, row, label):
    return frame.with_columns(y=pl.when(pl.int_range(pl.len()) == row).then(pl.lit(label)).otherwise("y"))


@pytest.mark.parametrize("column", ["sold", "day"])
def test_the_last_rows_are_scored_by_a_model_of_the_others(table, column):
    found = facts("--holdout-by", column, "--ignore", "sold,day")["hold_out"]
    earlier, later = table.filter(pl.col("day") < 480), table.filter(pl.col("day") >= 480)
    model = po.NaiveBayes().fit(earlier.select("a", "y"), "y")
    y_true = (later["y"] == "v").to_numpy().astype(int)
    proba = model.predict_proba(later.select("a"))
    assert found["model"]["log_loss"] == pytest.approx(metrics.log_loss(y_true, proba))
    assert found["model"]["accuracy"] == pytest.approx(metrics.accuracy(y_true, proba))
    assert found["model"]["accuracy"] < 0.45
    assert (found["rows"], found["trained_rows"]) == (120, 480)


def test_the_saved_model_and_predictions_are_of_all_rows(table):
    assert facts("-o", "all.posteriori")["hold_out"] is None
    found = facts("--holdout-by", "sold", "-o", "held.posteriori")
    np.testing.assert_array_equal(*(po.load(f"{one}.posteriori").predict_proba(table) for one in ("all", "held")))
    judged = json.loads(line.succeeds("evaluate", "held.posteriori", "sales.csv", "--json"))
    assert judged["out_of_fold_rows"] == N
    assert judged["model"]["accuracy"] == pytest.approx(found["cross_validation"]["model"]["accuracy"])


def test_the_first_page_states_held_out_rows_and_what_is_saved():
    out = first_page("--holdout-by", "sold")
    assert (
        "Scored on the 120 rows with the last values of sold, from 2021-04-25 on, by a model of 480 other rows; "
        "the saved model learned from all 600 rows. Of 100 held-out rows, it predicts "
    ) in out
    out = first_page("--holdout", "0.3")
    assert "Scored on 180 rows, drawn at random, by a model of 420 other rows; the saved model learned from" in out
    assert "Scored on" not in first_page()


def test_the_first_sentence_has_the_held_out_accuracy():
    found = facts("--holdout-by", "sold", "--ignore", "sold,day")
    assert found["hold_out"]["model"]["accuracy"] < found["cross_validation"]["model"]["accuracy"] - 0.2
    correct = 100 * found["hold_out"]["model"]["accuracy"]
    assert (
        f"it predicts {correct:.0f} correctly" in found["summary"][0]
        or f"predicts {correct:.1f} " in found["summary"][0]
    )


def test_details_show_the_scores_of_both():
    out = line.succeeds("fit", "sales.csv", "-t", "y", "--holdout", "0.25")
    assert "150 held-out rows" in out
    assert "5-fold cross-validation" in out


def test_a_row_and_its_copies_are_held_out_together():
    y = pl.Series("y", ["p"] * 70 + ["q"] * 30)
    table = pl.DataFrame({"a": np.random.default_rng(0).normal(size=100), "y": y})
    pl.concat([table, table]).write_csv("t.csv")
    copies = np.tile(np.arange(100), 2)
    chosen = choose_rows(po.scan("t.csv", "y"), "y", HoldOutOptions(0.2), None, None, 0, copies)
    assert not np.isin(copies[chosen.judged], copies[chosen.trained]).any()
    assert len(chosen.judged) == 40
    found = json.loads(line.succeeds("fit", "t.csv", "-t", "y", "--holdout", "0.2", "--json"))
    assert found["hold_out"]["rows"] == 40


def test_a_random_share_is_that_of_each_class():
    y = pl.Series("y", ["p"] * 70 + ["q"] * 20 + ["r"] * 9 + ["s"])
    pl.DataFrame({"a": np.arange(100.0), "y": y}).write_csv("t.csv")
    chosen = {seed: choose_rows(po.scan("t.csv", "y"), "y", HoldOutOptions(0.2), None, None, seed) for seed in (0, 1)}
    for one in chosen.values():
        counts = dict(y[one.judged].value_counts().iter_rows())
        assert (counts["p"], counts["q"]) == (14, 4)
        assert counts["r"] in (1, 2)
        assert "s" not in counts  # a model of the others has to know every class
        assert sorted([*one.judged, *one.trained]) == list(range(100))
    assert set(chosen[0].judged) != set(chosen[1].judged)


def test_rows_of_one_value_stay_together():
    year = np.repeat([2007, 2008, 2009], [40, 35, 25])
    rng = np.random.default_rng(0)
    pl.DataFrame({"year": year, "a": rng.normal(size=100), "y": rng.choice(["p", "q"], 100)}).write_csv("t.csv")
    assert facts("--holdout-by", "year", table="t.csv")["hold_out"]["rows"] == 25
    found = facts("--holdout-by", "year", "--holdout", "0.5", table="t.csv")["hold_out"]
    assert (found["rows"], found["from"]) == (60, 2008)


def test_rows_with_an_unknown_value_are_trained_on_and_named(table):
    table.with_columns(sold=pl.when(pl.int_range(pl.len()).is_in([5, 9])).then(None).otherwise("sold")).write_csv(
        "t.csv"
    )
    found = facts("--holdout-by", "sold", table="t.csv")["hold_out"]
    assert found["rows_without_value"] == 2
    assert "by a model of 480 other rows, among them 2 without sold (rows 5 and 9);" in found["sentence"]


def test_not_a_number_is_an_unknown_value(table):
    day = pl.when(pl.int_range(pl.len()) == 7).then(float("nan")).otherwise(pl.col("day").cast(pl.Float64))
    table.with_columns(day=day).write_parquet("t.parquet")
    assert "among them 1 without day (row 7)" in facts("--holdout-by", "day", table="t.parquet")["hold_out"]["sentence"]


@pytest.mark.parametrize(
    ("dtype", "first", "shown"),
    [
        (pl.Decimal(10, 2), "480.00", "480.00"),
        (pl.Datetime("us"), "1970-01-01 08:00:00", "1970-01-01 08:00:00"),
        (pl.Duration("us"), "8:00:00", "8:00:00"),
        (pl.Time, "08:00:00", "08:00:00"),
        (pl.Float64, 480.0, "480"),
    ],
)
def test_columns_of_every_ordered_type_have_last_rows(table, dtype, first, shown):
    unit = 1 if dtype in (pl.Decimal, pl.Float64) else 60_000_000 * (1_000 if dtype == pl.Time else 1)
    when = (pl.col("day").cast(pl.Int64) * unit).cast(dtype)
    frame = table.select(when.alias("[b]when\x1b"), "a", "y")
    frame.write_parquet("t.parquet")
    found = facts("--holdout-by", "[b]when\x1b", "--ignore", "[b]when\x1b", table="t.parquet")["hold_out"]
    assert (found["rows"], found["from"]) == (120, first)
    assert "last values of [b]when\\x1b, from " in found["sentence"]
    assert f"from {shown} on" in found["sentence"]


def test_a_large_table_is_scored_on_a_part_of_held_out_rows(monkeypatch):
    monkeypatch.setattr("posteriori.learning.folded_data.MOST_EVALUATED", 40)
    found = facts("--holdout-by", "sold")["hold_out"]
    assert (found["rows"], found["held_out_rows"], found["trained_rows"]) == (40, 120, 480)
    assert "from 2021-04-25 on (40 of them), by a model of 480 other rows" in found["sentence"]


def test_ordered_categories_have_last_rows(table):
    size = pl.Series(np.where(table["day"] < 400, "small", np.where(table["day"] < 500, "big", "huge")))
    table.with_columns(size=size.cast(pl.Enum(["small", "big", "huge"]))).write_parquet("t.parquet")
    found = facts("--holdout-by", "size", "--ignore", "day,sold", table="t.parquet")["hold_out"]
    assert (found["rows"], found["from"]) == (100, "huge")


@pytest.mark.parametrize("model", ["forest", "pool"])
def test_whole_groups_are_held_out(model):
    rng = np.random.default_rng(0)
    patient, visit = np.repeat(np.arange(60), 6), np.tile(np.arange(6), 60)
    own = rng.normal(size=(60, 2))[patient] + rng.normal(scale=0.01, size=(360, 2))
    frame = pl.DataFrame({"patient": patient, "visit": patient + 10 * visit, "y": rng.choice(["u", "v"], 60)[patient]})
    frame.with_columns(a=own[:, 0], b=own[:, 1]).write_csv("visits.csv")
    options = ("--model", model, "--holdout", "0.25", "--ignore", "visit")
    known = facts(*options, "--ignore", "patient", table="visits.csv")["hold_out"]
    new = facts(*options, "--groups", "patient", table="visits.csv")["hold_out"]
    assert known["model"]["accuracy"] > 0.85  # other visits of a patient have its label
    assert new["model"]["accuracy"] < 0.75
    assert (new["groups"], new["rows"]) == (15, 90)
    scan, by = po.scan("visits.csv", "y"), HoldOutOptions(0.25, "visit")
    latest = choose_rows(scan, "y", by, "patient", None, 0)
    assert set(patient[latest.judged]) == set(range(45, 60))
    assert "the 90 rows of 15 groups of patient whose last visit is 95 or later" in latest.sentence(numbered=True)


def test_the_pool_scores_held_out_rows_of_few_remaining_groups():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"g": np.arange(60) % 5, "a": rng.normal(size=60), "y": rng.choice(["u", "v"], 60)})
    frame.write_csv("t.csv")
    assert facts("--model", "pool", "--groups", "g", "--holdout", "0.2", table="t.csv")["hold_out"]["rows"] == 12
    frame.filter(pl.col("g") < 2).write_csv("t.csv")
    command = ("fit", "t.csv", "-t", "y", "--model", "pool", "--groups", "g", "--folds", "2", "--holdout", "0.2")
    assert "leaves one group of 'g', and the pool needs two" in line.refused(*command)


def test_last_rows_without_label_are_not_scored_or_learned_from(table):
    y = pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise("y")
    table.with_columns(y=y).write_csv("t.csv")
    n_late = table.with_row_index().filter((pl.col("day") >= 480) & (pl.col("index") % 10 == 0)).height
    assert n_late > 0
    left_out = facts("--holdout-by", "day", "--set", "unlabelled=ignore", table="t.csv")["hold_out"]
    assert left_out["rows"] + left_out["trained_rows"] == 540
    chosen = choose_rows(po.scan("t.csv", "y"), "y", HoldOutOptions(0.2, "day"), None, None, 0)
    assert table["day"][chosen.trained].max() < table["day"][chosen.judged].min()
    assert table.with_columns(y=y)["y"][chosen.judged].null_count() == 0


def test_rows_to_look_at_are_held_out_with_their_file_numbers():
    rng = np.random.default_rng(1)
    y = np.repeat(["p", "q"], 100)
    frame = pl.DataFrame({"t": rng.permutation(200), "a": rng.normal(size=200) + 9.0 * (y == "p"), "y": y})
    row = int(frame["t"].arg_max())
    with_label_at(frame, row, "q" if y[row] == "p" else "p").write_csv("t.csv")
    found = facts("--holdout-by", "t", table="t.csv")["rows_to_look_at"]
    assert [one["row"] for one in found] == [row]


def test_rows_have_no_numbers_if_some_without_label_are_left_out(table):
    frame = with_label_at(table, 0, None)
    frame = with_label_at(frame, 300, "u" if table["y"][300] == "v" else "v")
    frame.with_columns(a=pl.when(pl.col("y") == "u").then(-9.0).otherwise(9.0)).write_csv("t.csv")
    with_wrong = pl.read_csv("t.csv").with_columns(
        a=pl.when(pl.int_range(pl.len()) == 300).then(-pl.col("a")).otherwise("a")
    )
    with_wrong.write_csv("t.csv")
    found = facts("--set", "unlabelled=ignore", table="t.csv")["rows_to_look_at"]
    assert found
    assert all(one["row"] is None for one in found)


def test_the_report_is_of_the_held_out_rows(tmp_path):
    line.succeeds("fit", "sales.csv", "-t", "y", "--holdout-by", "sold", "--report", "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "Scored on the 120 rows with the last values of sold" in text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--holdout", "20"), "--holdout is 20; give a share of the rows between 0 and 1, such as 0.2"),
        (("--holdout", "0"), "--holdout is 0; give a share"),
        (("--holdout", "nan"), "--holdout is nan; give a share"),
        (("--holdout", "0.0001"), "holds out no row; give a larger share"),
        (("--holdout-by", "y"), "--holdout-by names 'y', which is the target"),
        (("--holdout-by", "nurse"), "--holdout-by names 'nurse', which is not"),
        (("--holdout-by", "a,day"), "--holdout-by is 'a,day'; name one column"),
        (("--holdout-by", "shop"), "--holdout-by names 'shop', which is String and has no order"),
        (("--holdout-by", "same"), "--holdout-by names 'same', which has the same value in every row"),
        (("--holdout", "0.2", "--groups", "same"), "'same' of --groups has only one group; remove --groups"),
        (("--holdout-by", "day", "--groups", "odd"), "'day', which has the same last value in every group of 'odd'"),
        (("--holdout-by", "day", "-t", "late"), "only held-out rows have the class 'yes'"),
    ],
)
def test_what_cannot_be_held_out_is_refused(table, options, error):
    late = np.where(table["day"] >= 500, "yes", "no")
    table = table.with_columns(shop=pl.lit("s"), same=pl.lit(1), odd=pl.col("day") % 2, late=pl.Series(late))
    table = table.with_columns(day=pl.when(pl.col("day") > 590).then(599).otherwise("day"))
    table.write_csv("t.csv")
    target = () if "-t" in options else ("-t", "y")
    assert error in line.refused("fit", "t.csv", *target, *options)


def test_the_alert_on_changing_rows_names_option_and_column(table):
    table.sort("day").drop("day").rename({"sold": "sold on"}).write_csv("t.csv")
    option = "--holdout-by 'sold on'"
    drifting = "changes along the rows; if their order is time, the scores may be optimistic for later rows"
    assert f"{drifting}: {option} scores the latest ones" in first_page(table="t.csv")
    assert drifting not in first_page("--holdout-by", "sold on", table="t.csv")
    assert f"{drifting}: {option}" in first_page("--holdout", "0.2", table="t.csv")
    texts = [one["text"] for one in facts(table="t.csv")["alerts"] if one["kind"] == "changes along the rows"]
    assert texts
    assert all(one.endswith(f"evaluate the later ones (posteriori fit {option}).") for one in texts)
    table.sort("day").drop("sold").write_csv("t.csv")
    assert f"{drifting}: evaluate on the latest ones" in first_page("--column", "day=keep", table="t.csv")


def test_a_model_that_fails_on_the_last_rows_is_said_to_fail():
    out = first_page("--holdout-by", "sold", "--ignore", "sold,day")
    assert "On the held-out rows its probabilities are no better than the class shares." in out
    assert "carry no information" not in out
