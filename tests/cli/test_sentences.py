"""fit, show, evaluate, report, explore and Python say the same sentences, about the same class of interest."""

import json
import re

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.exploring.document import verdict
from posteriori.model_selection import out_of_fold
from posteriori.support.suggestions import class_index
from tests.cli.command_line import CommandLine

LINE = CommandLine(model="nb", details=False, replaces=True)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    is_bad = rng.random(300) < 0.3
    rows = pl.DataFrame({"a": rng.normal(size=300) + 1.5 * is_bad, "y": np.where(is_bad, "bad", "good")})
    rows.write_csv("t.csv")
    return rows


def fitted(*options):
    """Return the facts of a fit, which the JSON of the command holds."""
    return json.loads(LINE.succeeds("fit", "t.csv", "--target", "y", "-o", "m.posteriori", "--json", *options))


def shown(*arguments):
    return " ".join(LINE.succeeds(*arguments).split())


def text_of(path):
    return re.sub(r"<[^>]+>", "", path.read_text("utf-8"))


@pytest.mark.parametrize("model", ["nb", "pool"])
def test_every_page_begins_with_what_fit_has_printed(table, tmp_path, model):
    sentences = fitted("--model", model)["summary"]
    assert len(sentences) == 3
    expected = " ".join(sentences)
    assert expected in shown("show", "m.posteriori")
    assert expected in shown("evaluate", "m.posteriori", "t.csv")
    assert expected in shown("fit", "t.csv", "--target", "y", "--model", model, "-o", "d.posteriori", "--details")
    LINE.succeeds("report", "m.posteriori", "t.csv", "-o", "r.html")
    assert expected in text_of(tmp_path / "r.html")
    assert verdict(po.load("m.posteriori"), None) == sentences
    assert po.load("m.posteriori").summary().splitlines() == sentences
    assert json.loads(LINE.succeeds("show", "m.posteriori", "--json"))["summary"] == sentences


@pytest.mark.parametrize("rows", [["--holdout", "0.3"], []])
def test_the_class_of_interest_is_that_of_fit_unless_stated(table, tmp_path, rows):
    facts = fitted("--positive", "good", *rows)
    assert facts["positive"] == "good"
    assert any("Of 100 that are “good”" in one for one in facts["summary"])
    for arguments in (("show", "m.posteriori"), ("evaluate", "m.posteriori", "t.csv")):
        assert "Of 100 that are “good”" in shown(*arguments)
    assert "recall (good)" in shown("evaluate", "m.posteriori", "t.csv")
    for option, label in (((), "good"), (("--positive", "bad"), "bad")):
        assert f"Of 100 that are “{label}”" in shown("evaluate", "m.posteriori", "t.csv", *option)
        LINE.succeeds("report", "m.posteriori", "t.csv", "-o", "r.html", *option)
        assert f"Thresholds of p({label})" in text_of(tmp_path / "r.html")
        LINE.succeeds("explore", "m.posteriori", "t.csv", "-o", "e.html", *option)
        page = (tmp_path / "e.html").read_text("utf-8")
        assert f"Of 100 that are \\u201c{label}\\u201d" in page
        assert f'"positive":{["bad", "good"].index(label)}' in page
    assert "Of 100 that are “bad”" in po.load("m.posteriori").summary(positive="bad")


def test_rows_that_were_held_out_are_named_before_the_sentences(table):
    facts = fitted("--holdout", "0.3")
    expected = [facts["hold_out"]["sentence"], *facts["summary"]]
    assert po.load("m.posteriori").summary().splitlines() == expected
    assert " ".join(expected) in shown("show", "m.posteriori")


def test_the_scores_of_the_terminal_are_of_the_class_of_interest(table):
    held_out = out_of_fold(po.NaiveBayes(), table, "y")
    of_bad = held_out.predictions[held_out.classes[held_out.y_true] == "bad"]
    facts = fitted()["cross_validation"]
    assert facts["model"]["recall"] == pytest.approx((of_bad == "bad").mean())
    details = shown("fit", "t.csv", "--target", "y", "-o", "d.posteriori", "--details")
    assert f"recall (bad) {facts['model']['recall']:.4f}" in details
    assert "mean of the classes" not in details


def test_an_unknown_class_of_interest_is_answered_by_the_classes(table):
    expected = "'worse' is not a class; the classes are 'bad', 'good'"
    fitting = ("fit", "t.csv", "--target", "y", "-o", "n.posteriori", "--positive", "worse")
    assert LINE.refused(*fitting) == expected
    fitted()
    for command in ("evaluate", "report", "explore"):
        assert LINE.refused(command, "m.posteriori", "t.csv", "--positive", "worse") == expected
    model = po.load("m.posteriori")
    for call in (
        lambda: model.summary(positive="worse"),
        lambda: po.report(model, table, "y", positive="worse"),
        lambda: po.explore(model, positive="worse"),
    ):
        with pytest.raises(ValueError, match=expected):
            call()


def test_no_class_of_interest_is_taken_where_it_would_be_ignored(table):
    fitted()
    model = po.load("m.posteriori")
    error = LINE.refused("report", "m.posteriori", "t.csv", "--against", "t.csv", "--positive", "bad")
    assert error == "--positive is not used with --against; remove one of them"
    with pytest.raises(ValueError, match="positive is not used with against"):
        po.report(model, table, against=table, positive="bad")
    with pytest.raises(ValueError, match="explore a network without it"):
        po.explore(po.BayesianNetwork([("a", "b")]), positive="bad")


def test_a_class_of_interest_among_three_is_asked_for(table):
    table.with_columns(y=pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("odd")).otherwise("y")).write_csv("t.csv")
    assert fitted()["positive"] is None
    assert "Of 100 that are" not in " ".join(fitted()["summary"])
    assert "Of 100 that are “odd”, it finds" in " ".join(fitted("--positive", "odd")["summary"])
    assert "recall (odd)" in shown("evaluate", "m.posteriori", "t.csv")


def test_a_number_is_named_as_a_file_spells_it(table):
    assert [class_index(one, [0, 1]) for one in (1, "1")] == [1, 1]
    assert class_index("true", [False, True]) == 1
    table.with_columns(y=(pl.col("y") == "bad").cast(int)).write_csv("t.csv")
    assert fitted("--positive", "1")["positive"] == 1
    assert "Of 100 that are “y = 1”, it finds" in po.load("m.posteriori").summary()


def test_one_class_is_all_that_is_said_of_a_table_with_one(table):
    table.with_columns(y=pl.lit("bad")).write_csv("t.csv")
    sentence = "Every row is “bad”: with one class there is nothing to predict."
    page = shown("fit", "t.csv", "--target", "y", "-o", "m.posteriori")
    assert sentence in page
    for judged in ("Of 100", "trusted", "matters", "look at", "no information", "alert", "hint"):
        assert judged not in page
    assert sentence in shown("show", "m.posteriori")
    assert fitted("--model", "pool")["summary"] == [sentence]


def test_a_pool_keeps_the_sentences_in_python_and_in_its_file(table, tmp_path):
    pool = po.GenerativeClassifier(["nb", "lda"]).fit(table, "y")
    assert pool.summary() == pool.out_of_fold_.summary().replace("class = ", "y = ")
    po.save(pool, tmp_path / "p.posteriori")
    assert po.load(tmp_path / "p.posteriori").summary() == pool.summary()
    pool.partial_fit(table[:20], "y")
    with pytest.raises(ValueError, match="keeps no held-out predictions; use"):
        pool.summary()


@pytest.mark.parametrize("change", ["partial_fit", "unlearn", "fit"])
def test_a_model_that_changes_has_no_sentences(table, change):
    fitted()
    model = po.load("m.posteriori")
    getattr(model, change)(table[:20], "y")
    with pytest.raises(ValueError, match="keeps no held-out predictions; use"):
        model.summary()


def test_merged_models_have_no_sentences(table):
    fitted()
    pool = po.GenerativeClassifier(["nb", "lda"]).fit(table, "y")
    for model in (po.load("m.posteriori"), pool):
        with pytest.raises(ValueError, match="keeps no held-out predictions; use"):
            po.merge([model, model]).summary()


def test_the_pool_has_one_verdict_and_names_what_its_members_see(table):
    fitted("--model", "pool")
    page = shown("show", "m.posteriori")
    advice = page.count("the pool is kept")
    assert advice <= 1
    assert "--pool" not in page
    for name in po.load("m.posteriori").members_:
        assert not re.search(rf"(^| ){name} has a lower log-loss", page)
