"""Text files in any spelling: separators, decimal marks, encodings, written numbers, and spreadsheets."""

import gzip
import itertools
import re
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import posteriori as po
from posteriori.reading.dialects import TableFile, head_of, spooled
from posteriori.reading.text_lines import reason_of

ROWS = pl.DataFrame(
    {
        "größe, in mm": [1.5, -2.25, None, 1234.0],
        "farbe": ["grün", "blau; hell", "gelb | rot", 'ein "Wort"'],
        "n": [1, 2, 3, 4],
        "art": ["a", "b", "a", "b"],
    }
)


def spelled(frame, separator, decimal, encoding, quote="necessary"):
    text = frame.write_csv(separator=separator, decimal_comma=decimal == ",", quote_style=quote)
    return text.replace("\n", "\r\n").encode(encoding)


def read(path, **asked):
    return pl.concat(po.scan(path, **asked).frames(list(ROWS.columns)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(("separator", "decimal"), list(itertools.product(",;\t|", ".,")))
def test_every_spelling_is_read_as_the_same_table(separator, decimal, encoding, tmp_path):
    (tmp_path / "a.csv").write_bytes(spelled(ROWS, separator, decimal, encoding))
    assert_frame_equal(read(tmp_path / "a.csv"), ROWS)
    assert_frame_equal(read(tmp_path / "a.csv", separator=separator, decimal=decimal, encoding=encoding), ROWS)


def test_options_replace_what_is_detected(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1,5;a\n2,5;b\n")
    assert po.scan(tmp_path / "a.csv").types == {"x": pl.Float64, "y": pl.String}
    with pytest.raises(ValueError, match="more cells than in the header"):
        po.scan(tmp_path / "a.csv", separator=",")
    assert po.scan(tmp_path / "a.csv", decimal=".").types["x"] == pl.String
    assert "read with separator ';', decimal comma" in repr(po.scan(tmp_path / "a.csv"))


def test_files_of_several_spellings_are_one_table(tmp_path):
    (tmp_path / "a.csv").write_bytes(spelled(ROWS, ";", ",", "cp1252"))
    (tmp_path / "b.csv").write_bytes(spelled(ROWS, ",", ".", "utf-8"))
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(spelled(ROWS, "|", ".", "utf-16")))
    assert_frame_equal(read(tmp_path), pl.concat([ROWS] * 3))


def test_a_file_without_fractions_has_the_others_decimal_mark(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1;a\n2;b\n")
    (tmp_path / "b.csv").write_text("x;y\n1,5;a\n2;b\n")
    assert po.scan(tmp_path).types["x"] == pl.Float64
    assert po.scan(tmp_path).dialect == "separator ';', decimal comma"


@pytest.mark.parametrize(
    ("cells", "separator", "numbers"),
    [
        (["$1,000", "-$2.50", "", "- $3"], ";", [1000, -2.5, None, -3]),
        (["1.234,50 €", "2 €", "NA", "1.000.000,00 €"], ";", [1234.5, 2, None, 1e6]),
        (["12 %", "3.5%", "-1%", "0"], ",", [12, 3.5, -1, 0]),
        (["1'000.5", "2", "3", "4'000'000"], ",", [1000.5, 2, 3, 4e6]),
        (["EUR 10", "EUR 2000", "EUR 3", "EUR 4"], ",", [10, 2000, 3, 4]),
        (["12 kg", "1,200 kg", "-3.5kg", "4 kg"], ",", [12, 1200, -3.5, 4]),
        (["12,5 °C", "1.200,0 °C", "3 °C", "(4 °C)"], ";", [12.5, 1200, 3, -4]),
        (["12 m", "3.5 m", "4 m", "5 m"], ",", [12, 3.5, 4, 5]),
        (["(1,200)", "7", "($2.50)", "$ (3)"], ",", [-1200, 7, -2.5, -3]),
        (["1.200,50-", "7", "2,5 €", "3 - €"], ";", [-1200.5, 7, 2.5, -3]),
    ],
)
def test_written_numbers_are_numbers(cells, separator, numbers, tmp_path):
    path = tmp_path / "a.csv"
    lines = [f'"{cell}"{separator}{label}' for cell, label in zip(cells, "abab", strict=True)]
    path.write_text("\n".join([f"x{separator}y", *lines]))
    with pytest.warns(po.tables.ReadingWarning, match="a.csv is read with repairs: column 'x' as numbers, "):
        rows = po.scan(path, target="y")
    assert pl.concat(rows.frames(["x"]))["x"].to_list() == numbers
    assert po.NaiveBayes().fit(rows).schema_.columns[0].kind == "continuous"
    kept = po.scan(path, dtypes={"x": pl.String})
    assert kept.types["x"] == pl.String
    assert not kept.repairs


@pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")
@pytest.mark.parametrize(
    "cells",
    [
        ["$1", "2 €"],
        ["1 kg", "500 mg"],
        ["5A", "7A"],
        ["2 WD", "4 WD"],
        ["1,00", "12,34,56"],
        ["a1", "a2"],
        ["1-2", "3-4"],
        ["1,000", "many"],
        ["(1", "2)"],
        ["(-1)", "(+2)"],
        ["-1-", "2"],
        ["(1)-", "2"],
    ],
)
def test_other_strings_are_no_written_numbers(cells, tmp_path):
    (tmp_path / "a.csv").write_text("x|y\n" + "".join(f"{cell}|a\n" for cell in cells))
    assert po.scan(tmp_path / "a.csv", decimal=".").types["x"] == pl.String


def test_columns_with_negative_numbers_in_parentheses_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("x,z,y\n(1),1,a\n2,$2,b\n3-,3,a\n")
    with pytest.warns(po.tables.ReadingWarning, match="column 'x' as numbers, in parentheses or with a minus behind"):
        assert len(po.scan(tmp_path / "a.csv").repairs) == 2


@pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")
@pytest.mark.parametrize(
    ("cells", "doubtful"),
    [
        (["2.301", "948", "1.007", "?"], {".": "1.007"}),
        (["2,301", "948", "1,007", ""], {",": "1,007"}),
        (["2.301", "948", "1.007", "0.5"], {}),  # a fraction that separates no thousands
        (["2.301", "948", "1.007", "1200"], {}),  # a number above 999 without separators
        (["2.301", "9.480", "1.007", "2.000"], {".": "1.007"}),  # beside ";" points hardly are decimal marks
        (["2.301", "948", "0.007", "3"], {}),
    ],
)
def test_decimal_marks_that_may_separate_thousands_are_found(cells, doubtful, tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n" + "".join(f"{cell};a\n" for cell in cells))
    assert po.scan(tmp_path / "a.csv").doubtful_numbers == doubtful
    for decimal in ",.":
        assert po.scan(tmp_path / "a.csv", decimal=decimal).doubtful_numbers == {}


def test_a_fraction_in_another_column_shows_the_decimal_mark(tmp_path):
    (tmp_path / "a.csv").write_text("x;z\n2.301;1\n948;0.5\n1.007;2\n")
    assert po.scan(tmp_path / "a.csv").doubtful_numbers == {}


@pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")
def test_a_later_cell_that_is_no_written_number_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "$1,a\n" * 10_001 + "free,b\n")
    with pytest.raises(ValueError, match="in line 10003 column 'x' holds 'free', which is not a number"):
        po.NaiveBayes().fit(po.scan(tmp_path / "a.csv", target="y"))


def test_a_first_sheet_is_read_as_a_csv_file(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    for row in (ROWS.columns, *ROWS.rows()):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert_frame_equal(read(tmp_path / "a.xlsx"), ROWS)
    book.create_sheet("other")
    book.save(tmp_path / "a.xlsx")
    with pytest.warns(UserWarning, match="2 sheets; the first, 'Sheet', is read"):
        po.scan(tmp_path / "a.xlsx")


@pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")
def test_texts_of_a_spreadsheet_have_their_own_decimal_mark(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    for row in (("x", "z", "y"), ("1.037,00", 0.5, "a"), ("948,50", 1234.25, "b"), ("-", 3, "a")):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    rows = po.scan(tmp_path / "a.xlsx", missing_values=["-"])
    frame = rows.frame.collect()
    assert frame["x"].to_list() == [1037.0, 948.5, None]
    assert frame["z"].to_list() == [0.5, 1234.25, 3.0]
    assert po.scan(tmp_path / "a.xlsx", decimal=".").types["x"] == pl.String
    with pytest.raises(ValueError, match="leave separator and encoding out"):
        po.scan(tmp_path / "a.xlsx", separator=";")


def test_a_spreadsheet_without_its_reader_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match="pip install fastexcel"):
        po.scan(tmp_path / "a.xlsx")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".arrow", ".ndjson"])
def test_the_format_of_a_stream_is_in_its_first_bytes(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    if suffix.startswith(".csv"):
        content = spelled(ROWS, ";", ",", "utf-8")
        path.write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    else:
        {".parquet": ROWS.write_parquet, ".arrow": ROWS.write_ipc, ".ndjson": ROWS.write_ndjson}[suffix](path)
    with path.open("rb") as stream:
        copy, kept = spooled(stream)
    assert copy.name == f"stdin{suffix}"
    assert_frame_equal(read(copy), ROWS)
    del kept
    assert not copy.exists()


def test_copies_live_as_long_as_what_reads_them(tmp_path):
    (tmp_path / "a.csv").write_bytes(spelled(ROWS, ";", ",", "utf-16"))
    rows = po.scan(tmp_path / "a.csv")
    copy = rows.files[0].readable
    narrow = rows.narrowed(["n"])
    del rows
    assert copy.exists()
    assert pl.concat(narrow.frames(["n"]))["n"].to_list() == [1, 2, 3, 4]
    del narrow
    assert not copy.exists()


def test_a_damaged_compressed_file_is_refused(tmp_path):
    path = tmp_path / "rows.csv.gz"
    packed = bytearray(gzip.compress(ROWS.write_csv().encode(), mtime=0))
    packed[10] |= 0b110  # a kind of block that does not exist
    path.write_bytes(packed)
    with pytest.raises(ValueError, match="cannot read"):
        po.NaiveBayes().fit(po.scan(path), "art")


@pytest.mark.parametrize("encoding", ["klingon", "\0", "rot13"])
def test_an_encoding_that_does_not_exist_is_refused(encoding, tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS.write_csv())
    with pytest.raises(ValueError, match=re.escape(f"the encoding {encoding!r} is unknown; give")):
        po.scan(tmp_path / "rows.csv", encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_that_is_not_in_the_stated_encoding_is_refused(encoding, tmp_path):
    (tmp_path / "rows.csv").write_text(ROWS.write_csv())
    with pytest.raises(ValueError, match=rf"cannot read '.*rows\.csv': it is not {encoding} text; state its encoding"):
        po.scan(tmp_path / "rows.csv", encoding=encoding)


def spoiled(name):
    """Return a table packed by gzip, and broken: cut off, of another checksum, or with zeros in the middle."""
    lines = "".join(f"{k},{k % 7}\n" for k in range(3000))
    packed = gzip.compress(f"a,b\n1,2,3\n{lines}".encode("utf-16" if name == "utf-16" else "utf-8"), mtime=0)
    middle = len(packed) // 2
    broken = {"cut": packed[:middle], "checksum": packed[:-8] + bytes(8)}
    return broken.get(name, packed[:middle] + bytes(64) + packed[middle + 64 :])


@pytest.mark.parametrize("name", ["cut", "checksum", "zeros"])
def test_the_beginning_of_a_damaged_file_raises_nothing(name, tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(spoiled(name))
    head_of(tmp_path / "rows.csv.gz")
    with pytest.raises(ValueError, match="cannot read"):
        po.NaiveBayes().fit(po.scan(tmp_path / "rows.csv.gz"), "b")


def test_a_damaged_file_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(spoiled("utf-16"))
    with pytest.raises(ValueError, match="it is damaged"):
        po.scan(tmp_path / "rows.csv.gz", encoding="utf-16")


def test_the_line_of_a_fault_is_found_in_a_damaged_file(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(spoiled("zeros"))
    file = TableFile(path, "csv", path)
    error = pl.exceptions.ComputeError("found more fields than defined in 'Schema'")
    assert "there are more cells than in the header" in reason_of(error, file)
    error = pl.exceptions.ComputeError("could not parse `\"open` as dtype `str` at column 'a' (column number 1)")
    assert "where quotes do not pair" in reason_of(error, file)
