"""Tables are read from every format, with missing cells, odd columns and odd lines."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.cli import files as reading
from tests.cli.command_line import CommandLine
from tests.cli.test_cli import SMALL, write

COMMAND_LINE = CommandLine(model="nb", replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "NaN", "nan", "null", '""'])
def test_missing_cells_of_text_files(missing):
    write("t.csv", f"a,b\n1,x\n{missing},{missing}\n2,None\n3,?\n4,-\n")
    frame = reading.read_frame(Path("t.csv"))
    assert frame["a"].to_list() == [1, None, 2, 3, 4]
    assert frame["b"].to_list() == ["x", None, "None", "?", "-"]


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.tsv",
        "t.parquet",
        "t.pq",
        "t.arrow",
        "t.feather",
        "t.ipc",
        "t.ndjson",
        "t.jsonl",
        "t.csv.gz",
        "T.CSV",
    ],
)
def test_every_format_is_written_and_read(name, model):
    succeeds("sample", model, "-n", 12, "--seed", 0, "--output", name)
    X, y = po.load(model).sample(12, random_state=0)
    frame = reading.read_frame(Path(name))
    assert frame.columns == [*X.columns, "species"]
    assert frame["species"].to_list() == y.tolist()
    assert_allclose(frame["body_mass_g"], X["body_mass_g"])


def test_zstd_is_read():
    frame = pl.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    try:
        frame.write_csv("t.csv.zst", compression="zstd")
    except TypeError:
        pytest.skip("this polars writes no packed CSV")
    assert reading.read_frame(Path("t.csv.zst")).equals(frame)


def test_columns_read_as_the_model_knows_them():
    write("t.csv", "doors,y\n" + "2,a\n3,b\n5more,a\n" * 4)
    succeeds("fit", "t.csv", "--target", "y")
    write("new.csv", "doors,y\n2,a\n3,b\n")  # would be numbers, had the model not been asked
    assert succeeds("predict", "t.posteriori", "new.csv") == "prediction\na\nb\n"
    write("new.csv", "doors\nNA\nNA\n")
    assert len(succeeds("predict", "t.posteriori", "new.csv").splitlines()) == 3


def test_numeric_labels_that_once_had_a_word_among_them():
    write("t.csv", "x,y\n" + "1,1\n2,2\n3,x\n" * 4)
    succeeds("fit", "t.csv", "--target", "y")
    write("new.csv", "x,y\n1,1\n2,2\n")
    assert "accuracy" in succeeds("evaluate", "t.posteriori", "new.csv")


def test_an_unnamed_column_gets_a_name_a_repeated_one_a_warning():
    write("t.csv", ",a,a,y\n" + "0,1,2,u\n1,2,3,v\n" * 3)
    code, out, err = run("fit", "t.csv", "--target", "y", "--json")
    assert code == 0
    assert [column["name"] for column in json.loads(out)["columns"]] == ["column_1", "a", "a_duplicated_0"]
    assert err == "warning: t.csv has the column 'a' twice; the second is called 'a_duplicated_0'\n"


def test_empty_lines_at_the_end_are_left_out_with_a_warning():
    write("t.csv", SMALL + "\n\n")
    code, out, err = run("fit", "t.csv", "--target", "kind", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 6)
    assert err == "warning: t.csv ends in 2 lines without any value, left out\n"


def test_names_with_markup_and_line_ends_are_printed_as_they_are():
    write("t.csv", '"[red]a[/red]","b\nc",y\n' + "1,:smile:,[bold]\n2,[/x],v\n" * 4)
    out = succeeds("fit", "t.csv", "--target", "y")
    assert "[red]a[/red]" in out
    assert "b\\nc" in out
    for command in ("evaluate", "explain"):
        assert "[bold]" in succeeds(command, "t.posteriori", "t.csv")
    assert ":smile:" in succeeds("show", "t.posteriori")
