"""What the command line repairs in a table: it names it in one line, and refuses it with --strict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine

command_line = CommandLine(model="nb", replaces=True)
run, succeeds, refused = command_line.run, command_line.succeeds, command_line.refused
REPAIRS = (
    "t.csv is read with repairs: 12 cells '-', '?' in column 'x' as missing; labels 'BAD' as 'bad', 'good ' as 'good'"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = ["bad", "good", "BAD", "good", "bad", "good "]
    rows = (f"{'-?'[i // 10 % 2] if i % 10 == 9 else i * 7 % 50},{'uvU'[i % 3]},{labels[i % 6]}" for i in range(120))
    Path("t.csv").write_text("x,c,y\n" + "\n".join(rows) + "\n")


def test_fit_merges_labels_and_names_all_repairs_in_one_line():
    code, out, err = run("fit", "t.csv", "-t", "y", "--json", "-o", "m.posteriori")
    assert code == 0
    # A slow machine prints progress, too.
    assert [line for line in err.splitlines() if line.startswith("note: t.csv")] == [f"note: {REPAIRS}"]
    facts = json.loads(out)
    assert {one["class"]: one["rows"] for one in facts["classes"]} == {"bad": 60, "good": 60}
    x, c = facts["columns"]
    assert (x["kind"], x["missing"], x["read_as_missing"]) == ("continuous", 12, {"-": 6, "?": 6})
    assert c["kind"] == "categorical"
    (alert,) = (alert for alert in facts["alerts"] if alert["columns"] == ["c"])
    assert alert["text"] == "3 spellings of 2 values, such as 'U', 'u'."


def test_fit_prints_the_marks_beside_the_column():
    assert "; missing: '-', '?'" in succeeds("fit", "t.csv", "-t", "y", "-o", "m.posteriori")


@pytest.mark.parametrize("command", ["fit", "cv"])
def test_strict_refuses_with_the_same_sentence(command):
    options = ["-o", "m.posteriori"] if command == "fit" else ["--models", "nb"]
    error = refused(command, "t.csv", "-t", "y", "--strict", *options)
    assert error == f"{REPAIRS}; correct the table, or remove --strict"
    assert not Path("m.posteriori").exists()


def test_strict_accepts_a_table_without_repairs():
    Path("clean.csv").write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    assert "is read with" not in run("fit", "clean.csv", "-t", "y", "--strict")[2]


def test_one_sentence_refuses_an_unknown_value_of_an_option():
    error = refused("fit", "t.csv", "-t", "y", "--for", "cobol")
    assert error == "invalid value for '--for': 'cobol' is not one of 'sql', 'javascript' (see posteriori fit --help)"


def test_keep_spelling_keeps_labels_apart():
    facts = json.loads(succeeds("fit", "t.csv", "-t", "y", "--keep-spelling", "--json", "-o", "m.posteriori"))
    assert [one["class"] for one in facts["classes"]] == ["BAD", "bad", "good", "good "]
    assert sum("differ only in case" in hint for hint in facts["hints"]) == 2


def test_a_model_reads_new_files_with_its_remembered_marks():
    succeeds("fit", "t.csv", "-t", "y", "-o", "m.posteriori")
    Path("new.csv").write_text("x,c\n?,u\n-,v\n3,u\n")  # by themselves, two of three cells make no column of numbers
    Path("empty.csv").write_text("x,c\n,u\n,v\n3,u\n")
    assert succeeds("predict", "m.posteriori", "new.csv", "--proba") == succeeds(
        "predict", "m.posteriori", "empty.csv", "--proba"
    )


def test_a_model_remembers_stated_missing_values_of_categories():
    succeeds("fit", "t.csv", "-t", "y", "--missing-values", "v,-,?", "-o", "m.posteriori")
    Path("new.csv").write_text("x,c\n1,v\n3,u\n")
    Path("empty.csv").write_text("x,c\n1,\n3,u\n")
    assert succeeds("predict", "m.posteriori", "new.csv", "--proba") == succeeds(
        "predict", "m.posteriori", "empty.csv", "--proba"
    )


def test_evaluate_reads_labels_in_the_spelling_of_the_classes():
    succeeds("fit", "t.csv", "-t", "y", "-o", "m.posteriori")
    Path("new.csv").write_text("x,c,y\n1,u,Bad\n3,v,GOOD\n5,u,bad\n")
    code, _, err = run("evaluate", "m.posteriori", "new.csv", "--json")
    assert code == 0, err
    assert "labels 'Bad' as 'bad', 'GOOD' as 'good'" in err


def test_categorical_keeps_the_strings_of_a_column_with_marks():
    facts = json.loads(succeeds("fit", "t.csv", "-t", "y", "--categorical", "x", "--json", "-o", "m.posteriori"))
    assert facts["columns"][0]["first_categories"][0] == "-"


def test_marks_among_dates_and_two_digit_years_are_remembered():
    when = ["-" if i % 6 == 5 else f"{1 + i % 12}/{1 + i % 28}/19" for i in range(90)]
    Path("d.csv").write_text("when,x,y\n" + "".join(f"{cell},{i % 7},{'ab'[i % 2]}\n" for i, cell in enumerate(when)))
    code, _, err = run("fit", "d.csv", "-t", "y", "-o", "m.posteriori")
    assert code == 0
    assert "15 cells '-' in column 'when' as missing; two-digit years of column 'when' as 1970 to 2069" in err
    Path("new.csv").write_text("when,x\n-,1\n-,2\n2/3/19,3\n")
    Path("empty.csv").write_text("when,x\n,1\n,2\n2/3/19,3\n")
    assert succeeds("predict", "m.posteriori", "new.csv", "--proba") == succeeds(
        "predict", "m.posteriori", "empty.csv", "--proba"
    )


def test_a_hint_names_the_option_for_thousands_like_fractions():
    for decimal, other in (".,", ",."):
        cells = [f"{1 + i % 9}{decimal}{100 + i * 7 % 800}" if i % 2 else str(i * 9) for i in range(60)]
        Path("d.csv").write_text("x;y\n" + "".join(f"{cell};{'ab'[i % 2]}\n" for i, cell in enumerate(cells)))
        code, _, err = run("fit", "d.csv", "-t", "y", "-o", "m.posteriori")
        assert code == 0
        assert f"if it separates thousands, add --decimal {other}" in err
        facts = json.loads(succeeds("fit", "d.csv", "-t", "y", "--decimal", other, "--json", "-o", "m.posteriori"))
        assert facts["columns"][0]["max"] > 1000


def test_negative_numbers_in_parentheses_are_a_repair():
    Path("d.csv").write_text("x,y\n" + "".join(f"{'(7)' if i % 9 == 0 else i},{'ab'[i % 2]}\n" for i in range(60)))
    err = run("fit", "d.csv", "-t", "y", "-o", "m.posteriori")[2]
    assert "column 'x' as numbers, in parentheses or with a minus behind as negative" in err


def test_skip_rows_holds_for_every_table_of_a_command():
    Path("skip.csv").write_text("Report\n\n" + Path("t.csv").read_text())
    succeeds("fit", "skip.csv", "-t", "y", "--skip-rows", "2", "-o", "m.posteriori")
    succeeds("fit", "t.csv", "-t", "y", "-o", "n.posteriori")
    assert succeeds("predict", "m.posteriori", "skip.csv", "--skip-rows", "2") == succeeds(
        "predict", "n.posteriori", "t.csv"
    )


@pytest.mark.parametrize(
    ("above", "below", "sentence"),
    [
        (
            "",
            "Total,20,\n",
            "the last row holds 'Total' and looks like a sum of the others, not like one of them; delete it",
        ),
        (
            "number,mm,\n",
            "",
            "line 2 looks like a second header ('number', 'mm' above numbers); delete it, or take it as ",
        ),
        ("kg,°C,\n", "", "line 2 looks like a second header ('kg', '°C' above numbers); delete it, or take it as "),
    ],
)
def test_strict_refuses_totals_second_headers_and_units(above, below, sentence):
    rows = "".join(f"{i},{i % 3},{'ab'[i % 2]}\n" for i in range(40))
    Path("odd.csv").write_text(f"n,x,y\n{above}{rows}{below}", encoding="utf-8")
    error = refused("fit", "odd.csv", "-t", "y", "--strict", "-o", "m.posteriori")
    assert error.startswith(f"odd.csv: {sentence}")
    assert error.endswith("; or read it as it is, without --strict")
    assert not Path("m.posteriori").exists()
    assert sentence in run("fit", "odd.csv", "-t", "y", "--model", "nb", "-o", "m.posteriori")[2]
