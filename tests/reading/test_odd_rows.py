"""Rows of text files and spreadsheets that are none of the table: lines above the header, second headers, totals."""

from __future__ import annotations

import gzip
import warnings

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import posteriori as po

ROWS = [f"{i},{i * 7 % 50 / 4},{'uv'[i % 2]}" for i in range(30)]
TABLE = "\n".join(["n,x,y", *ROWS]) + "\n"

pytestmark = pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")


def write(path, text, encoding="utf-8"):
    content = text.encode(encoding)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def frame_of(path, **asked):
    rows = po.scan(path, **asked)
    return pl.concat(rows.frames(rows.names))


@pytest.mark.parametrize("above", ["Report of 2024\n\n", "Report of 2024,,\n,,\n", "\n\n"])
@pytest.mark.parametrize(("name", "encoding"), [("t.csv", "utf-8"), ("t.csv", "utf-16"), ("t.csv.gz", "cp1252")])
def test_lines_above_the_header_are_skipped(above, name, encoding, tmp_path):
    path = write(tmp_path / name, above + TABLE, encoding)
    assert_frame_equal(frame_of(path, skip_rows=2), frame_of(write(tmp_path / "clean.csv", TABLE)))


@pytest.mark.parametrize("above", ["Report of 2024\n\n", "Report of 2024;;\n;;\n"])
def test_lines_above_the_header_are_named(above, tmp_path):
    path = write(tmp_path / "t.csv", above + TABLE.replace(",", ";"))
    with pytest.warns(UserWarning, match=r"t.csv: the header may be in line 3; then skip the 2 lines .*--skip-rows 2"):
        po.scan(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert po.scan(path, skip_rows=2).names == ("n", "x", "y")


def test_a_title_that_holds_the_separator_is_above_the_header(tmp_path):
    rows = "".join(f"{i};{i % 7};{i % 5};{i % 3};{'uv'[i % 2]}\n" for i in range(30))
    with pytest.warns(UserWarning, match=r"the header may be in line 3; .*--skip-rows 2"):
        po.scan(write(tmp_path / "t.csv", "Report; May\n\na;b;c;d;y\n" + rows))


def test_errors_name_the_line_of_the_file_not_of_the_table(tmp_path):
    path = write(tmp_path / "t.csv", "Report\n\n" + TABLE + "1,2\n3,4,u\n")
    with pytest.raises(ValueError, match="line 34 of"):
        _ = po.scan(path, skip_rows=2).n_rows
    path = write(tmp_path / "t.csv", "Report\n\n" + TABLE + "1,2,u,v\n")
    with pytest.raises(ValueError, match="in line 34 there are more cells than in the header"):
        frame_of(path, skip_rows=2)


@pytest.mark.parametrize("skip_rows", [-1, 1.5, True])
def test_a_number_of_lines_that_cannot_be_skipped_is_an_error(skip_rows, tmp_path):
    with pytest.raises(ValueError, match="give the number of lines above the header"):
        po.scan(write(tmp_path / "t.csv", TABLE), skip_rows=skip_rows)


def test_lines_and_sheets_of_other_formats_are_errors(tmp_path):
    frame_of(write(tmp_path / "t.csv", TABLE)).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="lines to skip are stated for CSV, TSV and spreadsheets"):
        po.scan(tmp_path / "t.parquet", skip_rows=1)
    for name in ("t.parquet", "t.csv"):
        with pytest.raises(ValueError, match="is no spreadsheet; leave it out"):
            po.scan(tmp_path / name, sheet=1)


def test_a_sheet_is_read_by_name_or_number_below_skipped_lines(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    book.active.append(["notes"])
    for title, cells in (("2024", (1.5, 2.5)), ("3", (3.5, 4.5))):
        sheet = book.create_sheet(title)
        for row in (["Report of a year"], [], ["x", "y"], [cells[0], "a"], [cells[1], "b"]):
            sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    for sheet, first in (("2024", 1.5), (2, 1.5), ("2", 1.5), ("3", 3.5)):
        assert frame_of(tmp_path / "t.xlsx", sheet=sheet, skip_rows=2)["x"][0] == first
    for x in range(20):
        book["3"].append([x, "a"])
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(UserWarning, match=r"t.xlsx: the header may be in line 3; .*\(--skip-rows 2\)"):
        po.scan(tmp_path / "t.xlsx", sheet="3")
    with pytest.raises(ValueError, match="has no sheet 4; it has 'Sheet', '2024', '3'"):
        po.scan(tmp_path / "t.xlsx", sheet=4)


def test_a_second_header_is_named(tmp_path):
    path = write(tmp_path / "t.csv", TABLE.replace("n,x,y", "n,x,y\nnumber,mm,class"))
    with pytest.warns(
        UserWarning, match=r"line 2 looks like a second header \('number', 'mm' above numbers\); delete it"
    ):
        po.scan(path)
    assert po.scan(path, skip_rows=1).names == ("number", "mm", "class")


@pytest.mark.parametrize("first", ["?,?,u", "low,1,u", ",,u", "low,mid,u", "0,low,w"])
def test_a_first_row_of_values_is_no_second_header(first, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", po.tables.ReadingWarning)
        po.scan(write(tmp_path / "t.csv", TABLE.replace("n,x,y", f"n,x,y\n{first}")))


@pytest.mark.parametrize("last", ["Summe,120,", "435,12.5,Total:"])
def test_a_last_row_of_totals_is_named(last, tmp_path):
    with pytest.warns(UserWarning, match="the last row holds '(Summe|Total:)' and looks like a sum of the others"):
        po.scan(write(tmp_path / "t.csv", f"{TABLE}{last}\n"))


def test_cells_with_decimal_commas_are_no_lines_above_the_header(tmp_path):
    rows = "".join(f"{i},5;{i % 7};{'uv'[i % 2]}\n" for i in range(30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        po.scan(write(tmp_path / "t.csv", "n;x;y\n" + rows))


def test_a_word_for_totals_that_is_a_category_is_not_named(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        po.scan(write(tmp_path / "t.csv", TABLE.replace(",v\n", ",total\n")))
