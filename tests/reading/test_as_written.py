"""What is written is kept: columns of text files are read unchanged, or a note names the change."""

from __future__ import annotations

import datetime
import gzip
import random
import re
import warnings

import polars as pl
import pytest

import posteriori as po
from posteriori.reading.marks import is_mark
from posteriori.reading.written_numbers import WrittenNumber, WrittenText, look_at, type_of_cells

NO_NOTES = pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")
DATES = [
    *("%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y", "%d %b %Y", "%b %d, %Y", "%d-%b-%y", "%Y%m%d", "%d/%m/%y", "%d.%m.%y"),
    *("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%H:%M", "%I:%M %p", "%Y-W%W", "%Y-%m", "%m/%Y", "%H:%M:%S"),
]


def date(r, form):
    return (datetime.datetime(1990, 1, 1) + datetime.timedelta(seconds=r.randint(0, 10**9))).strftime(form)


KINDS = {
    "zip codes": lambda r: f"{r.randint(0, 99999):05}",
    "zip codes of two parts": lambda r: f"{r.randint(0, 99999):05}-{r.randint(0, 9999):04}",
    "codes": lambda r: f"{r.randint(0, 999):03}",
    "hexadecimal": lambda r: f"{r.randint(0, 65535):04X}",
    "letters in codes": lambda r: f"{r.randint(0, 9)}{r.choice('ABCDE')}{r.randint(0, 9)}",
    "exponents": lambda r: f"{r.randint(0, 99)}E{r.randint(0, 9)}",
    "small exponents": lambda r: f"{r.randint(1, 9)}e{r.randint(1, 9)}",
    "floats of programs": lambda r: repr(r.gauss(0, 1e6)),
    "scientific": lambda r: f"{r.random():.2e}",
    "countries": lambda r: r.choice(["DE", "FR", "NA", "US", "GB"]),
    "names": lambda r: r.choice(["Ana", "Null", "None", "Infinity", "True", "May", "April", "Nan"]),
    "versions": lambda r: f"{r.randint(1, 3)}.{r.randint(0, 20)}",
    "long versions": lambda r: f"{r.randint(1, 3)}.{r.randint(0, 20)}.{r.randint(0, 9)}",
    "grades": lambda r: f"{r.randint(1, 6)}{r.choice(['', '-', '+'])}",
    "grades with minus": lambda r: f"{r.randint(1, 6)}{r.choice(['', '-'])}",
    "grades of letters": lambda r: r.choice("ABC") + r.choice(["", "-", "+"]),
    "odds": lambda r: f"{r.randint(1, 9)}:{r.randint(1, 9)}",
    "long odds": lambda r: f"{r.randint(1, 20)}:{r.randint(1, 30)}",
    "odds of two digits": lambda r: f"{r.randint(1, 9)}:{r.randint(10, 59)}",
    "odds with a slash": lambda r: f"{r.randint(1, 20)}/{r.randint(1, 30)}",
    "scores": lambda r: f"{r.randint(0, 9)}-{r.randint(0, 9)}",
    "ranges": lambda r: f"{r.randint(0, 9) * 10}-{r.randint(10, 99) * 10}",
    "phones": lambda r: f"+{r.randint(1, 99)} {r.randint(100, 999)} {r.randint(10**6, 10**7 - 1)}",
    "phones with zero": lambda r: f"0{r.randint(10, 999)}/{r.randint(10000, 999999)}",
    "phones with parentheses": lambda r: f"({r.randint(200, 999)}) {r.randint(200, 999)}-{r.randint(0, 9999):04}",
    "phones in groups": lambda r: f"{r.randint(200, 999)} {r.randint(200, 999)} {r.randint(100, 999)}",
    "prefixes of phones": lambda r: f"+{r.randint(1, 99)}",
    "addresses": lambda r: ".".join(str(r.randint(0, 255)) for _ in range(4)),
    "seats": lambda r: f"{r.randint(1, 40)}{r.choice('ABCDEF')}",
    "seats with a blank": lambda r: f"{r.randint(1, 40)} A",
    "whole numbers": lambda r: str(r.randint(-1000, 1000)),
    "prices": lambda r: f"{r.random() * 100:.2f}",
    "money": lambda r: f"${r.randint(1, 10**6):,}.{r.randint(0, 99):02}",
    "other money": lambda r: f"{r.choice(['SEK', ''])} {r.randint(1, 10**4)}".strip(),
    "thousands by non-breaking spaces": lambda r: f"{r.randint(1, 999)}\u00a0{r.randint(0, 999):03}",
    "thousands by narrow spaces": lambda r: f"{r.randint(1, 999)}\u202f{r.randint(0, 999):03}",
    "thousands by apostrophes": lambda r: f"{r.randint(1, 9)}'{r.randint(0, 999):03}",
    "lakhs": lambda r: f"{r.randint(1, 99)},{r.randint(0, 99):02},{r.randint(0, 999):03}",
    "percent": lambda r: f"{r.randint(1, 100)} %",
    "accounts": lambda r: r.choice(["({})", "{}"]).format(r.randint(1, 999)),
    "accounts with minus behind": lambda r: f"{r.randint(1, 9999)}.{r.randint(0, 99):02}{r.choice(['', '-'])}",
    "typographic minus": lambda r: f"{r.choice(['−', '', '–'])}{r.randint(1, 999)}",
    "blanks around": lambda r: f"{r.choice(['', ' '])}{r.randint(1, 999)}{r.choice(['', ' ', chr(0xA0)])}",
    "signs": lambda r: f"{r.randint(-9, 9):+}",
    "13 digits": lambda r: f"{r.randint(10**12, 10**13 - 1)}",
    "19 digits": lambda r: f"{r.randint(10**18, 10**19 - 1)}",
    "digits that floats confuse": lambda r: f"{2**53 + r.randint(0, 50)}",
    "accounts of banks": lambda r: f"DE{r.randint(10, 99)} {r.randint(1000, 9999)} {r.randint(1000, 9999)}",
    "books": lambda r: f"978-{r.randint(0, 9)}-{r.randint(100, 999)}-{r.randint(10000, 99999)}-{r.randint(0, 9)}",
    "sizes": lambda r: r.choice(["S", "M", "L", "42", "44"]),
    "truth": lambda r: r.choice(["TRUE", "FALSE"]),
    "flights": lambda r: f"{r.choice(['LH', '3E', '5E'])}{r.randint(1, 999)}",
    "temperatures": lambda r: f"{r.randint(-9, 39)} °C",
    "one of two units": lambda r: f"{r.randint(1, 99)} {r.choice(['kg', 'lb'])}",
    "shares and percent": lambda r: r.choice([f"{r.randint(1, 100)}%", f"0.{r.randint(10, 99)}"]),
    "a stray word": lambda r: "abc" if r.random() < 0.05 else str(r.random()),
    "infinite numbers": lambda r: r.choice(["inf", "1.5", "-inf"]),
    **{f"dates as {form}": (lambda r, form=form: date(r, form)) for form in DATES},
}


def is_kept(written, read):
    """Return whether a cell that was read says what was written; of a date, that it is one."""
    if read is None:
        return False
    if isinstance(read, bool):
        return written.lower() == str(read).lower()
    if isinstance(read, int):
        return written == str(read)
    return read == (float(written) if isinstance(read, float) else written) or isinstance(
        read, datetime.date | datetime.datetime | datetime.time
    )


def kept(written, read):
    try:
        return is_kept(written, read)
    except ValueError:  # a float that is read from other cells than floats
        return False


@pytest.mark.parametrize("seed", range(30))
def test_columns_are_read_unchanged_or_a_note_names_them(seed, tmp_path):
    r = random.Random(seed)
    n = r.randint(8, 80)
    columns = {name: [make(r) for _ in range(n)] for name, make in KINDS.items()}
    names = list(columns)
    for some in (names[start : start + 5] for start in range(0, len(names), 5)):  # a note lists five columns
        lines = ["|".join(some), *("|".join(cells) for cells in zip(*(columns[name] for name in some), strict=True))]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = po.scan(tmp_path / "t.csv", separator="|", decimal=".")
        notes = "\n".join(str(one.message) for one in caught)
        frame = rows.frame.collect()
        for name in some:
            read = frame[name].to_list()
            merges = len({*map(str, read)}) < len({*columns[name]})
            changed = merges or not all(map(kept, columns[name], read))
            assert not changed or repr(name) in notes, (name, columns[name], read)


@pytest.mark.parametrize(
    "cells",
    [
        ["00123", "123", "4"],
        ["00E1", "00E2"],
        ["1E2", "2E3", "17"],
        ["+49", "+1", "+33"],
        ["1", "1-", "2", "2-"],
        ["12345678901234567890", "7"],
        [str(2**53), str(2**53 + 1)],
        ["-01", "-02"],
    ],
)
def test_codes_stay_text_in_features_labels_and_categories(cells, tmp_path):
    written = [cells[i % len(cells)] for i in range(60)]
    (tmp_path / "t.csv").write_text("x,z,y\n" + "".join(f"{cell},{i % 7},{cell}\n" for i, cell in enumerate(written)))
    model = po.NaiveBayes().fit(tmp_path / "t.csv", "y")
    assert model.schema_.columns[0].categories == tuple(sorted({*cells}))
    assert model.classes_.tolist() == sorted({*cells})
    assert (model.predict(tmp_path / "t.csv") == written).all()
    assert model.predict([{"x": cells[0]}]).tolist() == cells[:1]


@NO_NOTES
def test_a_column_stated_as_a_category_keeps_its_spelling(tmp_path):
    for cells in (["1.10", "1.1"], ["1.50", "2.50"], ["10 kg", "5 kg"], ["1,000", "2"], ["12 %", "3"], [" 1", "2"]):
        written = [cells[i % 2] for i in range(60)]
        rows = "".join(f'"{cell}",{i % 7},{"ab"[i % 3 == 0]}\n' for i, cell in enumerate(written))
        (tmp_path / "t.csv").write_text(f"x,z,y\n{rows}")
        columns = po.Columns(categorical_features=["x"])
        for model in (
            po.NaiveBayes(columns=columns).fit(tmp_path / "t.csv", "y"),
            po.NaiveBayes(distributions={"x": "categorical"}).fit(tmp_path / "t.csv", "y"),
            po.NaiveBayes().fit(po.scan(tmp_path / "t.csv", "y", categorical=["x"])),
        ):
            assert model.schema_.columns[0].categories == tuple(sorted(cells))
            model.predict_proba(tmp_path / "t.csv")  # without a warning of unseen categories
    usual = po.NaiveBayes(columns=columns).fit(*_table(tmp_path, ["1", "2", "3"]))
    assert usual.schema_.columns[0].categories == (1, 2, 3)


def _table(folder, cells, name="t.csv"):
    rows = "".join(f"{cells[i % len(cells)]},{i % 7},{'ab'[i % 3 == 0]}\n" for i in range(20 * len(cells)))
    (folder / name).write_text(f"x,z,y\n{rows}")
    return folder / name, "y"


@pytest.mark.parametrize(("cells", "classes"), [(["01", "1", "1.0"], 3), (["1", "1.0"], 2), (["5 kg", "7 kg"], 2)])
def test_labels_keep_their_spelling(cells, classes, tmp_path):
    written = [cells[i % len(cells)] for i in range(60)]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 7},{cell}\n" for i, cell in enumerate(written)))
    with warnings.catch_warnings():
        # As a feature the column would be repaired: `scan` does not know yet that it holds the labels.
        warnings.simplefilter("ignore", po.tables.ReadingWarning)
        models = [po.NaiveBayes().fit(rows, "y") for rows in (tmp_path / "t.csv", po.scan(tmp_path / "t.csv"))]
    assert all(model.classes_.tolist() == sorted(cells) for model in models)


@NO_NOTES
def test_zeros_below_the_first_rows_are_kept(tmp_path):
    cells = [f"{10000 + i % 500}" for i in range(12_000)] + ["00123"]
    lines = "".join(f"{cell},0.5,{'ab'[i % 2]}\n" for i, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"zip,x,y\n{lines}")
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(f"zip,x,y\n{lines}")
    for name in ("t.csv", "t.csv.gz"):
        rows = po.scan(tmp_path / name)
        assert rows.types == {"zip": pl.String, "x": pl.Float64, "y": pl.String}
        assert rows.frame.collect()["zip"].to_list() == cells


def test_codes_in_one_file_are_codes_in_all(tmp_path):
    _table(tmp_path, ["12345", "23456"], "1.csv")
    _table(tmp_path, ["01234", "23456"], "2.csv")
    _table(tmp_path, ["34567.5", "1"], "3.csv")
    for names in (["1.csv", "2.csv"], ["2.csv", "1.csv"], ["3.csv", "2.csv"]):
        assert po.scan([tmp_path / name for name in names]).types["x"] == pl.String


def test_a_model_of_numbers_reads_all_new_rows_as_numbers(tmp_path):
    path, y = _table(tmp_path, ["1.5", "2.5", "3.5"])
    model = po.NaiveBayes().fit(path, y)
    expected = model.predict_proba([{"x": 1.0}, {"x": None}, {"x": 3.0}])
    for cells in (["01", "n/a", "03"], ["1", "-", "3"], ["1", "?", "3.0"], ["1.0", "unknown", "3"]):
        (tmp_path / "new.csv").write_text("x\n" + "\n".join(cells) + "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # column z is absent, and marks are repairs
            assert model.predict_proba(tmp_path / "new.csv") == pytest.approx(expected)
    (tmp_path / "new.csv").write_text("x,z\n1,2\nmany,3\n")
    with pytest.raises(ValueError, match="column 'x' is read as numbers, and holds 'many'; correct such cells"):
        model.predict(tmp_path / "new.csv")


@pytest.mark.parametrize("cell", ["inf", "Infinity", "-INF"])
def test_an_infinite_number_is_refused_by_its_row(cell, tmp_path):
    path, y = _table(tmp_path, ["1.5", cell, "3.5"])
    with pytest.raises(ValueError, match=r"column 'x' holds -?inf in row 1"):
        po.NaiveBayes().fit(path, y)


def test_a_country_that_is_called_as_missing_cells_are(tmp_path):
    path, y = _table(tmp_path, ["DE", "NA", "FR"])
    with pytest.warns(
        po.tables.ReadingWarning, match=r"holds codes of two letters, and 'NA' \(20 cells\) is read as mis"
    ):
        model = po.NaiveBayes().fit(path, y)
    assert model.schema_.columns[0].categories == ("DE", "FR")
    model = po.NaiveBayes(columns=po.Columns(categorical_features=["x"])).fit(path, y)
    assert model.schema_.columns[0].categories == ("DE", "FR", "NA")
    (tmp_path / "new.csv").write_text("x,z\nNA,NA\nDE,1\n")
    assert (model.predict_proba(tmp_path / "new.csv") == model.predict_proba([{"x": "NA"}, {"x": "DE", "z": 1}])).all()


@pytest.mark.parametrize(
    ("cells", "remark"),
    [
        (["0.5"] * 12 + ["abc"], "holds numbers except 'abc' (1 of 13 cells), and stays text; correct such cells, or"),
        (["0.5"] * 12 + ["?"] * 4, "holds numbers except '?' (4 of 16 cells), and stays text; state them as missing"),
        (["12 %", "0.12"] * 5, "holds numbers with and without '%' (such as '0.12'), and stays text"),
        (["12 kg", "9 lb"] * 5, "holds numbers in several units ('kg' and 'lb'), and stays text"),
        (["abc", "0.5"] * 5, ""),
        (
            [f"0.{i}" for i in range(30)] + ["<0.05", "~7", "1.2M"],
            "holds bounds, or rough or abbreviated numbers",
        ),
        ([f"0.{i}" for i in range(30)] + [f"1,{i}" for i in range(30)], "holds numbers except '1,"),
        (["<=50K", ">50K"] * 5, ""),
        (["red", "blue"] * 5, ""),
    ],
)
def test_why_a_column_stays_text_is_said(cells, remark):
    found = type_of_cells(look_at(pl.Series(cells), "."), "x", ".")
    assert (found.remark if found else "").startswith(f"column 'x' {remark}" if remark else "")
    assert found is None or isinstance(found, WrittenText)


@pytest.mark.parametrize("decimal", [".", ","])
def test_what_parts_of_a_column_show_adds_up(decimal):
    cells = pl.Series(["1", "$2", None, "-", "03", "1.50", "1.5", "x y", "(4)", "5 kg", "−6", "1e5", "7"])
    whole = look_at(cells, decimal)
    for cut in range(len(cells)):
        parts = look_at(cells[:cut], decimal) + look_at(cells[cut:], decimal)
        assert (parts.n_numbers, parts.n_words, parts.words) == (whole.n_numbers, whole.n_words, whole.words)
        assert (parts.n_plain, parts.units, parts.repairs) == (whole.n_plain, whole.units, whole.repairs)
        assert bool(parts.code) == bool(whole.code)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_rows_end_as_on_any_system(end, encoding, tmp_path):
    quoted = end in ("\n", "\r\n", "\r")  # in quotes they are a part of the cell
    rows = [["x", "n", "y"], *([str(i), '"a\rb, c"' if quoted and i % 5 == 0 else "w", "ab"[i % 2]] for i in range(40))]
    text = end.join(",".join(cells) for cells in rows) + end
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    table = po.scan(tmp_path / "t.csv")
    frame = table.frame.collect()
    assert frame["x"].to_list() == list(range(40))
    assert frame["n"].to_list() == [cells[1].strip('"') for cells in rows[1:]]
    assert frame["y"].to_list() == [cells[2] for cells in rows[1:]]


@pytest.mark.parametrize("name", ["*", "^x$", "^.*$", "cells", "n"])
@pytest.mark.parametrize("cells", [["2024-01-01", "2024-05-06"], ["$1", "$2"], ["a", "b"], ["01", "2"], ["1.5", "abc"]])
@NO_NOTES
def test_columns_have_any_name(name, cells, tmp_path):
    lines = "".join(f"{cells[i % 2]},{i % 3}\n" for i in range(20))
    frames = []
    for header in (name, "other"):
        (tmp_path / "t.csv").write_text(f"{header},y\n{lines}")
        rows = po.scan(tmp_path / "t.csv")
        frames.append(pl.concat(rows.frames(list(rows.types))).to_series().alias("x"))
    assert frames[0].equals(frames[1])


def test_more_lines_to_skip_than_there_are_is_said(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,a\n")
    with pytest.raises(ValueError, match="has only 2 lines, and 99999999999 are to be skipped"):
        po.scan(tmp_path / "t.csv", skip_rows=99999999999)


@pytest.mark.parametrize("text", ["x," * 200_000 + "\n1,2\n", '[{"a":1},' * 200_000, "1," * 120_000 + "\r2,3\r"])
def test_a_file_without_a_header_is_refused_before_taking_memory(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=r"the first line of .* has .* cells or more; is it a table"):
        po.scan(tmp_path / "t.csv")


def test_expressions_and_series_read_written_numbers_alike():
    cells = pl.Series("x", ["$1,000", "(2.5)", "3-", "−4", "12,34,567", "1e5", "5 kg", " 6 ", "7\u00a0000", "+8"])
    values = [1000.0, -2.5, -3.0, -4.0, 1234567.0, 1e5, 5.0, 6.0, 7000.0, 8.0]
    from posteriori.reading.written_numbers import as_number, to_numbers

    assert to_numbers(cells, ".").to_list() == values
    repaired = as_number(pl.col("x"), WrittenNumber(".", ("?",), ("some",), ("$", "kg")))
    assert pl.DataFrame([pl.concat([cells, pl.Series("x", ["?", None])])]).select(repaired)["x"].to_list() == [
        *values,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("cell", "late"),
    [("$5", "€6"), ("5 kg", "6 lb"), ("5%", "0.6"), ("5 ‰", "9"), ('"1,000"', "6 kg")],
)
@NO_NOTES
def test_a_unit_below_the_first_rows_is_refused_by_its_cell(cell, late, tmp_path):
    lines = "".join(f"{cell},{i % 7},{'ab'[i % 2]}\n" for i in range(12_000))
    (tmp_path / "t.csv").write_text(f"x,z,y\n{lines}{late},1,a\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"in line 12002 column 'x' holds '{late}', which is not a number as"):
        po.NaiveBayes().fit(tmp_path / "t.csv", "y")
    (tmp_path / "t.csv").write_text(f"x,z,y\n{lines}{cell},1,a\n0,1,b\n", encoding="utf-8")
    assert po.scan(tmp_path / "t.csv").frame.collect()["x"].null_count() == 0


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (["$5", "$6"], ["€5", "€6"], r"in '\$' and '€' in several files, and stays text"),
        (["5%", "6%"], ["0.5", "0.6"], "in '%' and without it in several files, and stays text"),
    ],
)
def test_units_of_several_files_are_not_mixed(one, other, said, tmp_path):
    _table(tmp_path, one, "1.csv")
    _table(tmp_path, other, "2.csv")
    for names in (["1.csv", "2.csv"], ["2.csv", "1.csv"]):
        with pytest.warns(po.tables.ReadingWarning, match=said):
            rows = po.scan([tmp_path / name for name in names])
        assert {*rows.frame.collect()["x"]} == {*one, *other}
    with pytest.warns(po.tables.ReadingWarning, match="without"):
        assert po.scan([tmp_path / "1.csv", tmp_path / "1.csv"]).types["x"] == pl.Float64


def test_a_zero_with_a_minus_is_no_repair(tmp_path):
    path, _ = _table(tmp_path, ["-0.0", "0.0", "0.5", "-1.5"])
    assert not po.scan(path).written


@NO_NOTES
def test_columns_of_plain_numbers_are_converted_without_patterns(tmp_path):
    path, _ = _table(tmp_path, ["1.10", "1.1", "?", "2.5"] + ["3.5"] * 16)
    rows = po.scan(path)
    assert rows.written["x"].is_plain
    assert "udf" not in rows.frame.explain()
    assert rows.frame.collect()["x"].head(4).to_list() == [1.1, 1.1, None, 2.5]


@pytest.mark.parametrize("mark", ["-", "n/a", "Unknown", "NAN", "-nan", "NaT", "<NA>", "?", '"k.A."'])
def test_marks_below_the_first_rows_are_missing_in_all_rows(mark, tmp_path):
    lines = [f"{i % 50},{i % 7},{'ab'[i % 2]}" for i in range(12_000)]
    (tmp_path / "t.csv").write_text("x,z,y\n" + "\n".join([*lines, f"{mark},1,a"]) + "\n")
    (tmp_path / "new.csv").write_text("x,z,y\n" + "\n".join([*lines, *[f"{mark},1,a"] * 9_000]) + "\n")
    said = f"{mark.strip(chr(34))!r} in column 'x' as missing"
    with pytest.warns(po.tables.ReadingWarning, match=re.escape(said)):
        model = po.NaiveBayes().fit(tmp_path / "t.csv", "y")
    expected = model.predict_proba([{"x": None, "z": 1}])[0]
    for rows in (tmp_path / "t.csv", tmp_path / "new.csv"):
        with pytest.warns(po.tables.ReadingWarning, match=re.escape(said)):
            assert model.predict_proba(rows)[-1] == pytest.approx(expected)


def test_a_sign_of_infinity_is_no_mark_of_a_missing_cell():
    assert not is_mark("∞")
    assert not is_mark("-∞")


def test_a_country_below_the_first_rows_is_kept(tmp_path):
    cells = ["DE", "FR"] * 6_000 + ["NA"]
    lines = "".join(f"{cell},{i % 7},{'ab'[i % 2]}\n" for i, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(f"x,z,y\n{lines}")
    with pytest.warns(po.tables.ReadingWarning, match=r"'NA' \(1 cell\) is read as missing"):
        po.scan(tmp_path / "t.csv")
    model = po.NaiveBayes(columns=po.Columns(categorical_features=["x"])).fit(tmp_path / "t.csv", "y")
    assert model.schema_.columns[0].categories == ("DE", "FR", "NA")
    probabilities = model.predict_proba(tmp_path / "t.csv")
    assert probabilities[-1] == pytest.approx(model.predict_proba([{"x": "NA", "z": 12_000 % 7}])[0])


@NO_NOTES
@pytest.mark.parametrize("stated", [["x"], [0], [True, False], "all"])
def test_columns_stated_by_place_keep_their_spelling(stated, tmp_path):
    path, y = _table(tmp_path, ["1.10", "1.1", "2"])
    columns = po.Columns(categorical_features=stated)
    for rows, labels in ((path, y), (po.scan(path), y), (po.scan(path, y), None)):
        model = po.NaiveBayes(columns=columns).fit(rows, labels)
        assert model.schema_.columns[0].categories == ("1.1", "1.10", "2")
    mixture = po.MixtureModel(2, columns=columns if stated != [True, False] else None)
    assert mixture.fit(po.scan(path, columns=["x", "z"])) is mixture


@NO_NOTES
@pytest.mark.parametrize("cells", [["1", "2"], ["1.10", "1.1"], ["5 kg", "6 kg"], ["2024-01-01", "2024-01-02"]])
def test_declared_categories_are_read_as_they_are_written(cells, tmp_path):
    path, y = _table(tmp_path, cells)
    model = po.NaiveBayes().fit(po.scan(path, y, categories={"x": cells}))
    assert model.schema_.columns[0].categories == tuple(cells)
    model.predict(path)


@pytest.mark.parametrize("cells", [["٣", "٤"], ["１２", "３"], ["३", "४"]])
def test_digits_of_other_scripts_stay_text(cells, tmp_path):
    path, y = _table(tmp_path, cells)
    assert po.NaiveBayes().fit(path, y).schema_.columns[0].categories == tuple(sorted(cells))


@pytest.mark.parametrize("mark", ["?", "-", "NaT", "unknown"])
def test_marks_among_new_dates_are_missing_at_any_share(mark, tmp_path):
    path, y = _table(tmp_path, [f"2024-01-{day:02}" for day in range(1, 29)])
    model = po.NaiveBayes().fit(path, y)
    expected = model.predict_proba([{"x": "2024-01-02", "z": 1}, {"x": None, "z": 1}])
    (tmp_path / "new.csv").write_text(f"x,z\n2024-01-02,1\n{mark},1\n{mark},1\n")
    for n in (3, 2):
        (tmp_path / "new.csv").write_text("x,z\n" + "".join([f"{mark},1\n"] * (n - 1)) + "2024-01-02,1\n")
        with pytest.warns(po.tables.ReadingWarning, match=re.escape(f"{mark!r} in column 'x' as missing")):
            found = model.predict_proba(tmp_path / "new.csv")
        assert found[[-1, 0]] == pytest.approx(expected)


def test_a_scan_that_a_model_reads_in_another_way_is_warned_of(tmp_path):
    path, y = _table(tmp_path, ["1.5", "2.5"])
    model = po.NaiveBayes().fit(path, y)
    (tmp_path / "new.csv").write_text("x,z\n?,1\n2.5,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = po.scan(tmp_path / "new.csv")
    with pytest.warns(po.tables.ReadingWarning, match=r"'\?' in column 'x' as missing"):
        model.predict(rows)


def test_unseen_categories_of_a_file_say_what_may_be_meant(tmp_path):
    path, y = _table(tmp_path, ["red", "blue"])
    model = po.NaiveBayes().fit(path, y)
    (tmp_path / "new.csv").write_text("x,z\nRed,1\nblue,2\n")
    for rows in (tmp_path / "new.csv", po.scan(tmp_path / "new.csv")):
        with pytest.warns(UserWarning, match="'Red': did you mean 'red'"):
            model.predict(rows)


@pytest.mark.parametrize("stated", ["-999", "-999.0", "-9.99e2", "-999,0"])
@pytest.mark.parametrize("written", ["-999", "-999.0", "-999.00"])
def test_a_stated_number_is_missing_in_every_spelling(stated, written, tmp_path):
    decimal = "," if "," in stated else "."
    cells = [written.replace(".", decimal), "099", *(f"{k}{decimal}5" for k in range(20))]
    (tmp_path / "t.csv").write_text("x;z\n" + "".join(f"{cell};{cells[-1]}\n" for cell in cells))
    scan = po.scan(tmp_path / "t.csv", missing_values=[stated, "99"], separator=";", decimal=decimal)
    found = next(scan.parts([slice(0, scan.n_rows)], [0])).frame["x"].to_list()
    assert found[0] is None
    assert found[1:] == cells[1:]  # 099 is a code, and no 99


@pytest.mark.parametrize(
    ("odd", "classes"), [("1e0", [0, 1]), ("1.0", [0, 1]), ("01", ["0", "01", "1"]), ("1E0", [0, 1])]
)
@pytest.mark.filterwarnings("ignore::posteriori.tables.messages.ReadingWarning")
def test_one_number_that_is_written_otherwise_is_that_number(odd, classes, tmp_path):
    y = ["0", "1"] * 30 + [odd]
    x = [str(k) for k in range(60)] + ["1e2"]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    model = po.NaiveBayes().fit(tmp_path / "t.csv", "y")
    assert model.classes_.tolist() == classes
    assert model.schema_.columns[0].kind == "continuous"


def test_labels_with_versions_keep_their_spelling(tmp_path):
    cells = ["1", "1.1", "1.10", "1.0"] * 15
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{k % 7},{cell}\n" for k, cell in enumerate(cells)))
    assert po.NaiveBayes().fit(tmp_path / "t.csv", "y").classes_.tolist() == ["1", "1.0", "1.1", "1.10"]
