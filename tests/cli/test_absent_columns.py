"""What a table lacks is unknown: its columns count as missing in every row, with a warning that names them."""

import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine

SAID = "warning: the table lacks columns 'island', 'year', which the model was trained on: unknown in every row\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = load_penguins().with_columns(day=pl.date(2009, 1, 1) + pl.duration(days=pl.int_range(pl.len()) % 50))
    model = po.NaiveBayes().fit(table, "species")
    po.save(model, "m.posteriori")
    lacking = table.drop("island", "year")
    lacking.write_csv("t.csv")
    lacking.write_parquet("t.parquet")
    return model, lacking.with_columns(island=pl.lit(None, pl.String), year=pl.lit(None, pl.Int64)).select(
        table.columns
    )


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_predict_integrates_absent_columns_out(files, name):
    model, unknown = files
    code, out, err = CommandLine().run("predict", "m.posteriori", name, "--proba")
    assert code == 0
    assert SAID in err
    found = pl.read_csv(out.encode()).select(pl.selectors.starts_with("p_")).to_numpy()
    assert found == pytest.approx(model.predict_proba(unknown.drop("species")), abs=1e-9)


@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "m.posteriori", "t.csv"),
        ("explain", "m.posteriori", "t.csv", "--row", "3"),
        ("report", "m.posteriori", "t.csv", "-o", "r.html"),
        ("explore", "m.posteriori", "t.csv", "-o", "e.html"),
    ],
)
def test_every_command_reads_rows_that_lack_a_column(files, words):
    code, _, err = CommandLine().run(*words)
    assert code == 0, err
    assert err.count(SAID) == 1


def test_an_absent_column_of_dates_is_unknown_too(files):
    model, unknown = files
    pl.read_csv("t.csv").drop("day").write_csv("u.csv")
    out = CommandLine().succeeds("predict", "m.posteriori", "u.csv", "--proba")
    found = pl.read_csv(out.encode()).select(pl.selectors.starts_with("p_")).to_numpy()
    expected = model.predict_proba(unknown.with_columns(day=pl.lit(None, pl.Date)).drop("species"))
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_column_under_another_spelling_is_no_absent_column(files):
    pl.read_csv("t.csv").rename({"body_mass_g": "body_mas_g"}).write_csv("u.csv")
    code, _, err = CommandLine().run("predict", "m.posteriori", "u.csv")
    assert code == 2
    assert "lacks column 'body_mass_g', which the model was trained on; is it 'body_mas_g'?" in err
