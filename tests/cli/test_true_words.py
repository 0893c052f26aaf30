"""Sentences about rows: which of them a model was trained on, and which numbers it has never seen."""

import json
import re

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine()
run, succeeds = COMMAND_LINE.run, COMMAND_LINE.succeeds
ROWS = load_penguins().drop_nulls().sample(fraction=1.0, shuffle=True, seed=1)
OLD, NEW = ROWS.head(200), ROWS.tail(ROWS.height - 200)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    OLD.write_csv("old.csv")
    NEW.write_csv("new.csv")
    return tmp_path


def fitted(table, *options):
    return succeeds("fit", table, "-t", "species", "--model", "nb", "-q", "--folds", "2", *options)


@pytest.mark.parametrize("model", ["nb", "pool"])
def test_numbers_outside_the_training_range_are_counted(model):
    estimator = po.GenerativeClassifier(["lda", "nb"]) if model == "pool" else po.NaiveBayes()
    po.save(estimator.fit(OLD, "species"), "old.posteriori")
    wrong = NEW.with_columns(body_mass_g=pl.col("body_mass_g") / 1000)
    wrong.write_csv("wrong.csv")
    numbers = [name for name, dtype in wrong.schema.items() if dtype.is_numeric()]
    count = {name: int(((wrong[name] < OLD[name].min()) | (wrong[name] > OLD[name].max())).sum()) for name in numbers}
    count = {name: n for name, n in count.items() if n}
    assert count["body_mass_g"] == wrong.height
    for command in (("predict", "-o", "p.csv", "--force"), ("evaluate", "--json")):
        code, out, err = run(command[0], "old.posteriori", "wrong.csv", *command[1:])
        assert code == 0
        (line,) = [line for line in err.splitlines() if "outside of the range" in line]
        assert {name: int(n) for n, name in re.findall(r"(\d+) of '(\w+)'", line)} == count
        assert f"trained on {OLD['body_mass_g'].min()} to {OLD['body_mass_g'].max()}" in line
    assert json.loads(out)["outside_of_training_range"] == count
    for command in ("predict", "evaluate"):
        assert "outside" not in run(command, "old.posteriori", "old.csv")[2]


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_words_among_numbers_are_refused_naming_the_column(command):
    po.save(po.NaiveBayes().fit(OLD, "species"), "old.posteriori")
    NEW.with_columns(body_mass_g=pl.lit("heavy")).write_csv("wrong.csv")
    code, _, err = run(command, "old.posteriori", "wrong.csv")
    assert code == 2
    assert "column 'body_mass_g' was numeric in training" in " ".join(err.split())
    assert "unexpected" not in err


def test_a_report_says_whether_the_model_was_trained_on_its_rows(folder):
    fitted("old.csv", "--report", "fit.html")
    mixed = pl.concat([OLD.head(100), NEW.head(100)])
    mixed.write_csv("mixed.csv")
    for table in ("old", "new", "mixed"):
        succeeds("report", "old.posteriori", f"{table}.csv", "-o", f"{table}.html")
    words = {name: (folder / f"{name}.html").read_text() for name in ("fit", "old", "new", "mixed")}
    trained, none = "The rows that the model was trained on.", "None of these rows is among those"
    assert [trained in text for text in words.values()] == [True, True, False, False]
    assert [none in text for text in words.values()] == [False, False, True, False]
    share = re.search(r"About ([0-9.]+)\s*% of these rows", words["mixed"])
    assert float(share[1]) == pytest.approx(50.0, abs=10.0)
    for text in words.values():
        assert "200 training rows, each held out" in text


def test_merge_warns_of_rows_that_two_models_share():
    pl.concat([OLD.head(100), NEW]).write_csv("half.csv")
    for table in ("old.csv", "new.csv", "half.csv"):
        fitted(table)
    fitted("old.csv", "-o", "again.posteriori")

    def warning_of(*models):
        code, _, err = run("merge", *models, "-o", "both.posteriori", "--force")
        assert code == 0
        return " ".join(line for line in err.splitlines() if "count twice" in line)

    assert warning_of("old.posteriori", "new.posteriori") == ""
    assert "all rows" in warning_of("old.posteriori", "old.posteriori")
    assert "all rows" in warning_of("old.posteriori", "again.posteriori")
    share = re.search(r"about (\d+)%", warning_of("old.posteriori", "half.posteriori"))
    assert int(share[1]) == pytest.approx(50, abs=12)


def test_classes_and_categories_that_are_spelled_alike_are_named():
    rng = np.random.default_rng(0)
    spelled = {"bad": ["bad", "BAD", "bad "], "good": ["good"]}
    truth = rng.choice(["bad", "good"], 300)
    pl.DataFrame(
        {
            "x": rng.normal(size=300) + (truth == "bad"),
            "colour": rng.choice(["red", "Red", "blue"], 300),
            "species": [rng.choice(spelled[one]) for one in truth],
        }
    ).write_csv("t.csv")
    out = " ".join(fitted("t.csv", "--keep-spelling").split())
    assert re.search(r"classes '(BAD|bad|bad )', .*, which differ only in case or blanks", out)
    assert "colour: spelled alike. 3 spellings of 2 values, such as 'Red', 'red'" in out
    assert "differ only in case" not in " ".join(fitted("old.csv").split())
