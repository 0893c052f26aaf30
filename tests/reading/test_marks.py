"""Marks of missing cells among numbers in text files, by one rule for every reader."""

from __future__ import annotations

import datetime

import pandas as pd
import polars as pl
import pytest

import posteriori as po
from posteriori.reading.marks import is_mark, marks_among

pytestmark = pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")


def write(path, cells, name="x", labels="ab"):
    rows = [f"{cell},{labels[i % len(labels)]}" for i, cell in enumerate(cells)]
    path.write_text(f"{name},y\n" + "\n".join(rows) + "\n")
    return path


NUMBERS = [str(i * 7 % 90 / 4) for i in range(92)]


@pytest.mark.parametrize("mark", ["-", "?", "--", "none", "N/a", "k.A.", " unknown", "#DIV/0!", "Keine  Angabe"])
def test_usual_marks_are_marks(mark):
    assert is_mark(mark)


@pytest.mark.parametrize("word", ["low", "free", "0", "----", "x-", "3+", "nobody"])
def test_words_that_may_be_values_are_no_marks(word):
    assert not is_mark(word)


def test_marks_are_at_most_a_tenth_of_the_cells():
    assert marks_among(["?", "-"], 10, 90) == ("-", "?")
    assert marks_among(["?", "-"], 11, 90) == ()
    assert marks_among(["?", "low"], 5, 95) == ()


def test_several_marks_in_a_column_of_numbers_are_missing(tmp_path):
    cells = [*NUMBERS, "-", "?", "none", "N/A", "k.A.", "-"]
    rows = po.scan(write(tmp_path / "t.csv", cells), target="y")
    assert rows.types["x"] == pl.Float64
    assert rows.marks("x") == ("-", "?", "k.A.", "none")
    assert rows.marked_cells() == {"x": {"-": 2, "?": 1, "k.A.": 1, "none": 1}}
    assert rows.repairs == []
    read = rows.frame.collect()["x"]
    assert read.drop_nulls().to_list() == [float(cell) for cell in NUMBERS]


def test_a_model_of_marks_is_that_of_empty_cells(tmp_path):
    marked = [*NUMBERS, "-", "?", "none"]
    empty = [*NUMBERS, "", "", ""]
    one, two = (
        po.NaiveBayes().fit(po.scan(write(tmp_path / f"{name}.csv", cells), target="y"))
        for name, cells in (("marked", marked), ("empty", empty))
    )
    new = po.scan(write(tmp_path / "new.csv", NUMBERS[:20]), target="y")
    assert (one.predict_proba(new) == two.predict_proba(new)).all()
    assert one.schema_.columns[0].marks == ("-", "?", "none")


def test_numbers_with_a_decimal_comma_and_thousands_have_marks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "".join(f"{i}.{i:03},5;{'ab'[i % 2]}\n" for i in range(100, 140)) + "-;a\n?;b\n3,25;a\n")
    rows = po.scan(path, target="y")
    assert rows.frame.collect()["x"].to_list()[-4:] == [139139.5, None, None, 3.25]
    assert rows.repairs == ["column 'x' as numbers, without thousands separators"]


def test_columns_of_few_numbers_are_numbers_too(tmp_path):
    rows = po.scan(write(tmp_path / "t.csv", ["1", "2", "3", "4"] * 5 + ["n/a"]))
    assert rows.types["x"] == pl.Int64


def test_files_with_other_marks_are_one_table(tmp_path):
    write(tmp_path / "1.csv", [*NUMBERS, "-"])
    write(tmp_path / "2.csv", [*NUMBERS, "?"])
    write(tmp_path / "3.csv", NUMBERS)
    rows = po.scan(tmp_path / "*.csv", target="y")
    assert rows.marks("x") == ("-", "?")
    assert rows.marked_cells() == {"x": {"-": 1, "?": 1}}
    assert rows.frame.collect()["x"].null_count() == 2


def test_targets_and_stated_types_keep_their_strings(tmp_path):
    path = write(tmp_path / "t.csv", [*NUMBERS, "-"], labels=["0", "1", "0", "1", "0", "1", "0", "1", "0", "1", "?"])
    for options in ({"categorical": ["x"]}, {"dtypes": {"x": pl.String}}):
        assert po.scan(path, target="y", **options).types == {"x": pl.String, "y": pl.String}


def test_stated_missing_values_hold_for_all_columns(tmp_path):
    rows = po.scan(write(tmp_path / "t.csv", ["low"] * 50 + NUMBERS[:20]), target="y", missing_values=["low", "b"])
    frame = rows.frame.collect()
    assert (frame["x"].null_count(), frame["y"].null_count()) == (50, 35)
    assert rows.marks("x") == ("b", "low")
    with pytest.raises(ValueError, match="give a list of strings"):
        po.scan(tmp_path / "t.csv", missing_values="low")
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="missing values are stated for CSV, TSV and spreadsheets"):
        po.scan(tmp_path / "t.parquet", missing_values=["low"])


DAYS = [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(60)]


def test_marks_among_dates_are_missing_even_if_they_are_many(tmp_path):
    rows = po.scan(write(tmp_path / "t.csv", [*DAYS, *["-", "?", "n/a"] * 10], labels="aab"), target="y")
    assert rows.types["x"] == pl.Date
    assert rows.marks("x") == ("-", "?", "n/a")
    assert rows.marked_cells() == {"x": {"-": 10, "?": 10, "n/a": 10}}
    assert rows.frame.collect()["x"].to_list()[:2] == [datetime.date(2024, 1, 1), datetime.date(2024, 2, 2)]
    assert rows.frame.collect()["x"].null_count() == 30


def test_a_model_of_dates_remembers_marks_as_empty_cells(tmp_path):
    one, two = (
        po.NaiveBayes().fit(po.scan(write(tmp_path / f"{name}.csv", [*DAYS, *[mark] * 20], labels="aab"), target="y"))
        for name, mark in (("marked", "-"), ("empty", ""))
    )
    new = po.scan(write(tmp_path / "new.csv", DAYS[:20]), target="y")
    assert (one.predict_proba(new) == two.predict_proba(new)).all()
    assert {column.marks for column in one.schema_.columns} == {("-",)}


@pytest.mark.parametrize("words", [["soon"], ["-"] * 61])
def test_dates_with_values_among_them_stay_strings(words, tmp_path):
    rows = po.scan(write(tmp_path / "t.csv", [*DAYS, *words]), target="y")
    assert (rows.types["x"], rows.marks("x")) == (pl.String, ())


def test_stated_types_keep_the_strings_of_dates(tmp_path):
    path = write(tmp_path / "t.csv", [*DAYS, "-"])
    assert po.scan(path, target="y", dtypes={"x": pl.String}).types["x"] == pl.String
    assert po.scan(path, target="y", categorical=["x"]).types["x"] == pl.String


@pytest.mark.parametrize("container", [pl.DataFrame, pd.DataFrame])
def test_a_frame_of_numeric_strings_and_marks_is_warned_of(container):
    X = container({"x": [*(str(i % 30 / 2) for i in range(92)), "-", "?"], "z": [float(i % 7) for i in range(94)]})
    y = ["a", "b"] * 47
    with pytest.warns(UserWarning, match=r"column 'x' holds strings that are numbers except for '-', '\?', and is not"):
        po.NaiveBayes().fit(X, y)
    columns = po.Columns(categorical_features=["x"])
    assert po.NaiveBayes(columns=columns).fit(X, y).schema_.columns[0].kind == "categorical"


@pytest.mark.parametrize("words", [["low", "-"], ["-"] * 20])
def test_a_frame_with_values_among_numbers_is_not_warned_of(words):
    X = pl.DataFrame({"x": [*(str(i % 30) for i in range(92)), *words]})
    assert po.NaiveBayes().fit(X, [i % 2 for i in range(X.height)]).schema_.columns[0].kind == "categorical"
