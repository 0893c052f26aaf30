"""Cells and lines that make a table hard to read: each is read as it is meant, or named in a sentence."""

from __future__ import annotations

import datetime
import re
import warnings
from contextlib import suppress

import openpyxl
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import posteriori as po

ERRORS = ["#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#N/A", "#NUM!", "#NULL!"]


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path, **asked):
    """Return the rows of a file, and the sentences about them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows = po.scan(path, **asked)
        frame = pl.concat(rows.frames(rows.names))
    return frame, [str(one.message) for one in said]


def workbook(rows, sheet=None):
    book = openpyxl.Workbook()
    cells = book.active if sheet is None else book.create_sheet(sheet)
    for row in rows:
        cells.append(row)
    return book, cells


def table(n=30):
    return [[i * 1.5e-20, i % 7, datetime.datetime(2024, 1, 1 + i % 28), "ab"[i % 2]] for i in range(n)]


@pytest.mark.parametrize("errors", [["#NAME?"], ERRORS])
def test_errors_of_formulas_are_missing_and_counted(errors, tmp_path):
    book, cells = workbook([["x", "n", "day", "y"], *table()])
    for k, error in enumerate(errors):
        cells.cell(5 + k, 1 + k % 4, error).data_type = "e"
    book.save(tmp_path / "t.xlsx")
    frame, said = read(tmp_path / "t.xlsx")
    expected = pl.DataFrame(table(), schema=["x", "n", "day", "y"], orient="row").with_columns(pl.col("day").dt.date())
    for k in range(len(errors)):
        expected[3 + k, k % 4] = None
    assert_frame_equal(frame, expected)
    (sentence,) = said
    assert sentence.startswith("t.xlsx: cells with errors of formulas are missing: ")
    counts = re.findall(r"(\d) in '(\w+)' \(([^;]*); the first in row (\d+)\)", sentence)
    assert sum(int(n) for n, *_ in counts) == len(errors)
    assert {error for *_, listed, _ in counts for error in listed.split(", ")} == set(errors)
    assert counts[0][1:] == ("x", ", ".join(sorted(errors[::4])), "5")


def test_merged_cells_of_a_workbook_are_named(tmp_path):
    book, cells = workbook([["x", "n", "day", "y"], *table()])
    cells.merge_cells("D2:D7")
    cells.merge_cells("D8:D9")
    book.save(tmp_path / "t.xlsx")
    frame, said = read(tmp_path / "t.xlsx")
    assert frame["y"].null_count() == 6
    assert said == [
        "t.xlsx: cells D2:D7 and another range are merged, and missing except the first of each; split them, and fill "
        "all"
    ]


def test_merged_cells_of_a_header_are_no_gaps(tmp_path):
    book, cells = workbook([["x", "n", "day", "y"], *table()])
    cells.merge_cells("D1:E1")
    book.save(tmp_path / "t.xlsx")
    assert read(tmp_path / "t.xlsx")[1] == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ((3,), ["a blank row is skipped (it is below 3 rows"]),
        ((9, 5, 9), ["3 blank rows are skipped (the first is below 5 rows"]),
    ],
)
def test_blank_rows_of_a_workbook_are_named(after, said, tmp_path):
    rows = table()
    for place in sorted(after, reverse=True):
        rows.insert(place, [])
    book, _ = workbook([["x", "n", "day", "y"], *rows, [], []])
    book.save(tmp_path / "t.xlsx")
    frame, sentences = read(tmp_path / "t.xlsx")
    assert frame["n"].to_list() == [row[1] for row in table()]
    assert sentences == [f"t.xlsx: {one} of the table); delete such rows" for one in said]


def test_an_empty_first_sheet_is_named(tmp_path):
    book, _ = workbook([["x", "n", "day", "y"], *table()], "Data")
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match=r"the sheet 'Sheet' of '.*t.xlsx' is empty; name another \(--sheet 'Data'\)"):
        po.scan(tmp_path / "t.xlsx")
    assert read(tmp_path / "t.xlsx", sheet="Data")[0].height == 30


ROWS = [f"Bar {i} pipe,{i},{'ab'[i % 2]}" for i in range(20)]


def test_a_cell_far_below_in_a_workbook_is_kept(tmp_path):
    book = openpyxl.Workbook()
    for row in (("x", "day"), *[(i, datetime.date(2020, 1, 2)) for i in range(1200)], ("oops", 5)):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    frame, said = read(tmp_path / "t.xlsx")
    assert frame.row(-1) == ("oops", "5")
    assert len(said) == 2


@pytest.mark.parametrize("cells", [['Bar 7" pipe'], ['5"', '7" x 8"'], ['x ""', '"odd ""one"", too"']])
def test_a_quote_within_a_cell_is_a_character(cells, tmp_path):
    written = [f"{cell},7,a" for cell in cells]
    frame, said = read(write(tmp_path / "t.csv", "name,x,y", *ROWS, *written, *ROWS))
    expected = [cell if cell[0] != '"' else 'odd "one", too' for cell in cells]
    assert frame["name"].to_list()[20 : 20 + len(cells)] == expected
    assert (frame.height, frame["x"].dtype, said) == (40 + len(cells), pl.Int64, [])


def test_quotes_that_do_not_pair_are_named_with_their_line(tmp_path):
    path = write(tmp_path / "t.csv", "name,x,y", *ROWS, '"Bar 7" pipe,7,a', *ROWS)
    with pytest.raises(ValueError, match=r"in line 22 .*quotes do not pair"):
        read(path)
    path = write(tmp_path / "t.csv", "name,x,y", 'a" b,1,a', *ROWS, '"Bar 7" pipe,7,a', *ROWS)
    with pytest.raises(ValueError, match="in line 23 quotes do not pair"):
        read(path)


@pytest.mark.parametrize("cell", ['"Bar 7\\" pipe"', '"{\\"k\\": 1}"', '"one "odd" one"'])
def test_a_quote_that_ends_a_cell_too_early_is_named(cell, tmp_path):
    path = write(tmp_path / "t.csv", "name,x,y", *ROWS, f"{cell},7,a", *ROWS)
    with pytest.raises(ValueError, match="in line 22 quotes do not pair"):
        read(path)


def test_a_quote_far_below_is_named_with_its_line(tmp_path):
    many = [f"{'x' * 300},{i},a" for i in range(20_000)]
    path = write(tmp_path / "t.csv", "name,x,y", *many, 'Bar 7" pipe,7,a', *many[:10])
    with pytest.raises(ValueError, match="in line 20002 quotes do not pair"):
        read(path)


@pytest.mark.parametrize("cells", [["St. A | B", "C | D"], ["1,5", "2,5"], ["a\tb", "c\td"]])
def test_a_title_is_found_whatever_stands_in_cells(cells, tmp_path):
    rows = [f"{i};{cells[i % 2]};{'ab'[i % 2]}" for i in range(30)]
    path = write(tmp_path / "t.csv", "Report of stations", "id;name;flag", *rows)
    with pytest.warns(match=r"the header may be in line 2; .*\(--skip-rows 1\)"), suppress(ValueError):
        po.scan(path)
    assert read(path, skip_rows=1)[0].columns == ["id", "name", "flag"]


DAYS = [(datetime.date(2024, 1, 1) + datetime.timedelta(i)).isoformat() for i in range(60)]


@pytest.mark.parametrize("cell", ["2024-02-30", "0000-00-00", "2023-13-05", "05-MAY-11", "soon"])
@pytest.mark.parametrize("place", [3, 50])
def test_a_cell_among_dates_that_is_none_is_named_with_its_line(cell, place, tmp_path):
    days = [*DAYS[:place], cell, *DAYS[place:]]
    frame, said = read(write(tmp_path / "t.csv", "day,y", *(f"{day},{i % 3}" for i, day in enumerate(days))))
    assert frame["day"].to_list() == days
    assert said == [
        f"t.csv: column 'day' holds dates except {cell!r} (1 of 61 cells; the first in line {place + 2}), so they stay "
        "strings; write all as 2024-12-31, or leave cells empty"
    ]


def test_months_in_capitals_are_dates_in_words(tmp_path):
    rows = [f"{i % 28 + 1:02}-{['JAN', 'FEB', 'MAY'][i % 3]}-11,{i % 3}" for i in range(60)]
    assert "column 'day' holds dates in words ('01-FEB-11')" in read(write(tmp_path / "t.csv", "day,y", *rows))[1][0]


@pytest.mark.parametrize("every", [61, 10])
def test_a_bound_among_the_numbers_of_a_target_is_named(every, tmp_path):
    cells = [f"{i * 7 % 90 / 8}" if (i + 1) % every else "<1.0" for i in range(70)]
    path = write(tmp_path / "t.csv", "k,x", *(f"{cell},{i % 5}" for i, cell in enumerate(cells)))
    (sentence,) = read(path, target="k")[1]
    line = cells.index("<1.0") + 2
    assert f"such as '<1.0' ({cells.count('<1.0')} of 70 cells; the first in line {line})" in sentence


@pytest.mark.parametrize("cell", ["1e2", "7.0", "1e0", "+3"])
@pytest.mark.parametrize("mark", ["", "?"])
def test_a_whole_number_in_another_spelling_is_whole(cell, mark, tmp_path):
    cells = [*(str(i % 9) for i in range(40)), cell, mark, str(2**53 + 1)]
    frame, _ = read(write(tmp_path / "t.csv", "k,y", *(f"{one},{'ab'[i % 2]}" for i, one in enumerate(cells))))
    expected = [None if one == mark else int(one) if one.isdecimal() else int(float(one)) for one in cells]
    assert frame["k"].dtype == pl.Int64
    assert frame["k"].to_list() == expected


def test_a_label_in_another_spelling_is_its_class(tmp_path):
    path = write(tmp_path / "t.csv", "k,x", *(f"{i % 3 if i != 4 else '1.0'},{i % 5}" for i in range(60)))
    with pytest.warns(po.tables.ReadingWarning, match="'1' and '1.0' as one number"):
        model = po.NaiveBayes().fit(po.scan(path, target="k"))
    assert model.classes_.tolist() == [0, 1, 2]
    columns = po.Columns(categorical_features=["k"])
    path = write(tmp_path / "f.csv", "k,y", *(f"{i % 3 if i != 4 else '1.0'},{'ab'[i % 2]}" for i in range(60)))
    with pytest.warns(po.tables.ReadingWarning, match="'1' and '1.0' as one number"):
        model = po.NaiveBayes(columns=columns).fit(path, "y")
    assert model.schema_.columns[0].categories == (0, 1, 2)


def test_a_later_fraction_among_whole_numbers_is_not_cut(tmp_path):
    cells = [*(str(i % 9) for i in range(12_000)), "7.5"]
    cells[3] = "1e0"
    path = write(tmp_path / "t.csv", "k,y", *(f"{one},{i % 2}" for i, one in enumerate(cells)))
    with pytest.raises(ValueError, match=r"in line 12002 column 'k' holds '7.5'"):
        read(path)


def test_a_stated_sentinel_is_missing_in_each_spelling(tmp_path):
    cells = [*(str(i) for i in range(50)), "-999", "-999.0", "-9.99e2"]
    path = write(tmp_path / "t.csv", "k,y", *(f"{one},{i % 2}" for i, one in enumerate(cells)))
    frame, _ = read(path, missing_values=["-999"])
    assert frame["k"].to_list() == [*range(50), None, None, None]


def test_a_state_of_a_network_has_any_spelling():
    rows = pl.DataFrame({"k": [1, 2] * 20, "y": ["a", "b"] * 20})
    network = po.learn_network(rows)
    expected = network.probability({"y": "a"}, {"k": 1})
    assert [network.probability({"y": "a"}, {"k": one}) for one in ("1", "1.0", 1.0)] == [expected] * 3


def test_doubled_quotes_in_a_header_are_one_quote(tmp_path):
    path = write(tmp_path / "t.csv", '"to ""x""",n,y', *(f"{i % 7 / 4},{i % 5},{'ab'[i % 2]}" for i in range(40)))
    assert read(path)[0].columns == ['to "x"', "n", "y"]
    model = po.NaiveBayes().fit(path, "y")
    assert model.predict(path).tolist() == model.predict(pl.read_csv(path).rename({'to ""x""': 'to "x"'})).tolist()


TABLE = [f"{i},{i * 3 % 20 / 8},{'ab'[i % 2]}" for i in range(40)]


@pytest.mark.parametrize("blank", ["", "  "])
def test_blank_lines_are_skipped_and_counted(blank, tmp_path):
    frame, said = read(write(tmp_path / "t.csv", "n,x,y", *TABLE[:5], blank, *TABLE[5:9], blank, *TABLE[9:]))
    assert frame.equals(read(write(tmp_path / "clean.csv", "n,x,y", *TABLE))[0])
    assert said == ["t.csv: 2 blank lines are skipped (the first is line 7); delete such lines"]


def test_lines_below_blank_lines_keep_their_numbers(tmp_path):
    path = write(tmp_path / "t.csv", "n,x,y", *TABLE[:5], "", *TABLE[5:], "1,2,a,4", *TABLE)
    with pytest.raises(ValueError, match="in line 43 there are more cells than in the header"):
        read(path)


@pytest.mark.parametrize("header", ["n;x;y", "n;x;y;"])
def test_a_separator_at_the_end_of_lines_is_no_column(header, tmp_path):
    rows = [row.replace(",", ";") for row in TABLE]
    frame, said = read(write(tmp_path / "t.csv", header, *(f"{row};" for row in rows)))
    assert frame.equals(read(write(tmp_path / "clean.csv", "n;x;y", *rows))[0])
    assert said == ["t.csv: a separator ends each line, and is left out; delete it"]


@pytest.mark.parametrize(("separator", "header"), [(";", "size, cm;day"), ("\t", "size, cm\tday"), (";", "a;b, c")])
def test_a_comma_in_each_name_and_cell_is_no_separator(separator, header, tmp_path):
    rows = [f"{i % 7},{i % 9}{separator}{i % 28 + 1}.02.2020" for i in range(40)]
    frame, _ = read(write(tmp_path / "t.csv", header, *rows))
    assert frame.columns == header.split(separator)
    assert frame.dtypes == [pl.Float64, pl.Date]


def test_points_in_a_file_of_semicolons_may_be_doubtful(tmp_path):
    rows = [f"{i + 20}.{i * 7 % 900 + 100};{'ab'[i % 2]}" for i in range(40)]
    frame, (sentence,) = read(write(tmp_path / "t.csv", "size;y", *rows))
    assert frame["size"][0] == 20.1
    assert sentence.startswith("t.csv has numbers such as 20.100, read with a decimal point")
    assert sentence.endswith("if it separates thousands, add --decimal , (in Python, decimal=',')")
    for shown, size in (("3,5", 3.5), ("1.234.500", 1_234_500.0)):
        frame, _ = read(write(tmp_path / "s.csv", "size;y", *rows, f"{shown};a"))
        assert frame["size"].to_list()[::40] == [20_100.0, size]
    rows = [row.replace(";", ",") for row in rows]
    assert po.scan(write(tmp_path / "u.csv", "size,y", *rows)).doubtful_numbers == {}


def test_a_first_line_of_values_is_named(tmp_path):
    (sentence,) = read(write(tmp_path / "t.csv", *TABLE))[1]
    assert "the first line looks like a row and is read as the header ('0' is the name of a column" in sentence


@pytest.mark.parametrize("header", ["0,1,2", "2019,2020,y", "n,x,y", "10,20,30"])
def test_numbers_in_a_header_may_be_names(header, tmp_path):
    last = [header.rpartition(",")[2]] if header[-1] == "y" else []
    rows = TABLE if last else [row.replace("a", "1").replace("b", "2") for row in TABLE]
    assert read(write(tmp_path / "t.csv", header, *rows))[1] == []


def test_strict_reading_refuses_what_is_left_out(tmp_path):
    from posteriori.reading.dialects import AskedDialect
    from posteriori.reading.files import open_scan

    path = write(tmp_path / "t.csv", "n,x,y", *TABLE[:5], "", *TABLE[5:])
    with pytest.raises(ValueError, match=r"a blank line is skipped .*without --strict"):
        open_scan(path, AskedDialect(is_strict=True))


WIDE = [2**53, 2**53 + 1, 2**53 + 3]


@pytest.mark.parametrize("engine", ["polars", "pandas", "lazy", "records"])
def test_whole_numbers_of_more_than_53_bits_are_kept_apart(engine):
    rows = pl.DataFrame({"x": [*WIDE * 10, None], "y": [*"abc" * 10, "a"]})
    frames = {"polars": rows, "pandas": rows.to_pandas(use_pyarrow_extension_array=True), "lazy": rows.lazy()}
    columns = po.Columns(categorical_features=["x"])
    model = po.NaiveBayes(columns=columns).fit(frames.get(engine, rows), "y")
    assert model.schema_.columns[0].categories == tuple(WIDE)
    new = [{"x": one} for one in WIDE] if engine == "records" else frames[engine].head(3)
    assert model.predict(new).tolist() == ["a", "b", "c"]
    by_label = po.NaiveBayes().fit(pl.DataFrame({"x": [0.0, 1.0, 2.0] * 10, "y": WIDE * 10}), "y")
    assert by_label.classes_.tolist() == WIDE


def test_long_whole_numbers_stay_beside_a_fraction(tmp_path):
    (tmp_path / "t.csv").write_text("id,y\n9007199254740993,a\n9007199254740995,b\n7.0,a\n")
    assert po.scan(tmp_path / "t.csv").frame.collect()["id"].to_list() == [2**53 + 1, 2**53 + 3, 7]
