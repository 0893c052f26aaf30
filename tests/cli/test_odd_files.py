"""What is odd in a file: labels, quotes, cells and names."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import posteriori as po
from tests.cli.command_line import CommandLine
from tests.cli.test_files import table

COMMAND_LINE = CommandLine(replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
pytestmark = pytest.mark.usefixtures("folder")


FIT = ("fit", "t.csv", "--target", "y", "--model", "nb", "--folds", "2", "--output", "m.posteriori")


def lines_with(position, line, n=60):
    """Write a CSV file of n rows, one of whose lines is another."""
    lines = ["x,c,y", *(f"{i},{'uv'[i % 2]},{'ab'[i % 3 % 2]}" for i in range(n))]
    lines[position - 1] = line
    Path("t.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("unlabelled", ["learn", "ignore"])
@pytest.mark.parametrize("model", ["nb", "lda", "tan"])
@pytest.mark.parametrize(
    ("nothing", "suffix"),
    [
        (None, ".csv"),
        (float("nan"), ".parquet"),
        (None, ".parquet"),
        (float("nan"), ".csv"),
    ],
)
def test_labels_may_be_wrong_and_missing_at_once(folder, nothing, suffix, model, unlabelled):
    labels = [nothing if k % 5 == 0 else float(k % 2) for k in range(40)]
    rows = pl.DataFrame({"x": np.random.default_rng(0).normal(size=40), "y": labels, "empty": [None] * 40})
    rows = rows.with_columns(pl.col("empty").cast(pl.Float64))
    noisy = (
        "--target",
        "y",
        "--model",
        model,
        "--folds",
        "2",
        "--set",
        "label_noise=0.1",
        "--set",
        f"unlabelled={unlabelled}",
    )
    (rows.write_csv if suffix == ".csv" else rows.write_parquet)(f"t{suffix}")
    succeeds("fit", f"t{suffix}", *noisy, "--output", "m.posteriori")
    assert np.isfinite(po.load("m.posteriori").predict_proba(rows.drop("y"))).all()
    gone = rows.with_columns(pl.lit(nothing, dtype=pl.Float64).alias("y"))
    (gone.write_csv if suffix == ".csv" else gone.write_parquet)(f"gone{suffix}")
    error = refused("fit", f"gone{suffix}", *noisy, "--output", "n.posteriori")
    assert error == "every cell of the target 'y' is missing; fill it in, or choose another target"


@pytest.mark.parametrize(("line", "where"), [('1,"u,a', " column 'c' holds"), ('1,"u"x"y,a', " quotes do not pair")])
@pytest.mark.parametrize("position", [20, 10_040])
def test_quotes_that_do_not_pair_are_named_by_their_line(line, where, position):
    lines_with(position, line, 10_050)
    assert f"in line {position}{where}" in refused(*FIT)


def test_a_row_with_too_many_cells_is_named_by_its_line():
    lines_with(10_040, "1,u,a,b", 10_050)
    assert "in line 10040 there are more cells than in the header" in refused(*FIT)


def test_a_cell_that_is_no_number_is_named_by_line_and_column():
    lines_with(2, "1,u,a")
    succeeds(*FIT)
    lines_with(10_040, "many,u,a", 10_050)
    message = refused("predict", "m.posteriori", "t.csv")
    assert "in line 10040 column 'x' holds 'many', which is not a number" in message


def test_groups_may_be_written_as_a_list_of_one():
    table(60).with_columns(pl.Series("g", list(range(20)) * 3)).write_csv("t.csv")
    judged = ("cv", "t.csv", "--target", "y", "--models", "nb", "--folds", "3", "--json")
    assert succeeds(*judged, "--groups", "g,") == succeeds(*judged, "--groups", "g")
    assert "name one column" in refused(*judged, "--groups", "g,x")
    assert "name one column" in refused(*judged, "--groups", ",")


@pytest.mark.parametrize("target", ["count", "len", "*", "^.*$", "y"])
def test_a_target_may_be_called_anything(target):
    frame = table(60).rename({"y": target})
    frame.write_parquet("t.parquet")
    fit = ("fit", "t.parquet", f"--target={target}", "--model", "nb", "--folds", "2", "--output", "m.posteriori")
    assert "accuracy" in succeeds(*fit)
    succeeds("predict", "m.posteriori", "t.parquet", "--output", "p.parquet")
    expected = po.NaiveBayes().fit(frame, target).predict(frame)
    assert pl.read_parquet("p.parquet")["prediction"].to_list() == expected.tolist()
    assert "accuracy" in succeeds("evaluate", "m.posteriori", "t.parquet", "--json")


@pytest.mark.parametrize("name", ["*", "^.*$", "a\x00missing", "\x00row", "0 missing"])
def test_a_feature_may_be_called_anything(name):
    table(60).rename({"x": name}).write_parquet("t.parquet")
    fit = ("fit", "t.parquet", "--target", "y", "--model", "nb", "--folds", "2", "--output", "m.posteriori", "--json")
    found = json.loads(succeeds(*fit))
    table(60).write_parquet("t.parquet")
    plain = json.loads(succeeds(*fit))
    assert found["cross_validation"] == plain["cross_validation"]
    assert [one["name"] for one in found["columns"]] == [name, "z", "k", "c"]
    assert [one["kind"] for one in found["columns"]] == [one["kind"] for one in plain["columns"]]


def test_integers_of_128_bits_in_files():
    cells = pl.Series([2**100, 2**101, 5, None] * 15, dtype=pl.Int128)
    table(60).with_columns(cells.alias("x")).write_ipc("t.arrow")
    succeeds("fit", "t.arrow", "--target", "y", "--model", "nb", "--folds", "2", "--output", "m.posteriori")
    succeeds("predict", "m.posteriori", "t.arrow", "--output", "p.parquet")
    assert len(pl.read_parquet("p.parquet")) == 60
