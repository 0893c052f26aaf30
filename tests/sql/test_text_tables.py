"""Tables whose cells are all text are scored as tables of numbers."""

import sqlite3

import numpy as np
import polars as pl
import pytest

import posteriori as po
from tests.sql.test_to_sql import PENGUINS, fetched, in_duckdb, in_sqlite, logs_of, with_holes


def as_text(frame, rng):
    """Return the frame as an import of CSV leaves it: every cell is text, and a missing one a word for it, or NULL."""
    columns = []
    for series in frame:
        text = series.cast(pl.String).to_list()
        if series.dtype == pl.Boolean:
            text = [None if cell is None else rng.choice([cell, cell.capitalize()]) for cell in text]
        words = [None, "", "NA"]
        columns.append(pl.Series(series.name, [words[rng.integers(3)] if cell is None else cell for cell in text]))
    return pl.DataFrame(columns, schema=dict.fromkeys(frame.columns, pl.String))


def typed_in_sqlite(select, frame):
    connection = sqlite3.connect(":memory:")
    names = ", ".join(f'"{name}" TEXT' for name in frame.columns)
    connection.execute(f"CREATE TABLE rows ({names})")
    connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * frame.width)})", frame.rows())
    return fetched(connection.execute(select))


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite, typed_in_sqlite])
@pytest.mark.parametrize("name", ["naive Bayes", "of codes", "lda", "tan", "kdb"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tables_of_text_are_scored_as_tables_of_numbers(name, run):
    rng = np.random.default_rng(3)
    rows = PENGUINS.with_columns(heavy=pl.col("body_mass_g") > 4000, tiny=pl.col("bill_depth_mm") * 1e-7)
    rows = rows.with_columns(code=pl.col("body_mass_g") // 1000)
    codes = po.Columns(categorical_features=["code", "year"])
    model = {
        "naive Bayes": po.NaiveBayes(missing="informative"),
        "of codes": po.NaiveBayes(columns=codes),
        "lda": po.GaussianDiscriminant(columns=codes),
        "tan": po.TreeAugmentedNaiveBayes(columns=codes),
        "kdb": po.KDependenceBayes(columns=codes),
    }[name].fit(rows, "species")
    some = with_holes(rows.drop("species"), 0.2, rng).sample(80, seed=1)
    table = as_text(some, rng).with_columns(pl.Series("key", [str(1000 + i) for i in range(some.height)]))
    dialect = "duckdb" if run is in_duckdb else "sqlite"
    out = run(model.to_sql(dialect=dialect, columns=["key"]), table).sort("key")
    np.testing.assert_allclose(logs_of(out), model.predict_log_proba(some), rtol=1e-9, atol=1e-9)
    assert out["prediction"].to_list() == model.predict(some).tolist()


@pytest.mark.parametrize("run", [in_duckdb, in_sqlite, typed_in_sqlite])
def test_words_among_numbers_are_refused_row_by_row(run):
    model = po.NaiveBayes().fit(PENGUINS.select("body_mass_g", "species"), "species")
    cells = ["4000", " 4000", "4e3", "4000 g", "heavy", "inf", "1e999", "", "NA", None]
    dialect = "duckdb" if run is in_duckdb else "sqlite"
    table = pl.DataFrame({"body_mass_g": cells, "key": [str(i) for i in range(len(cells))]})
    out = run(model.to_sql(dialect=dialect, columns=["key"]), table).sort("key")
    expected = model.predict(pl.DataFrame({"body_mass_g": [4000.0, None]})).tolist()
    assert out["prediction"].to_list() == [expected[0]] * 3 + [None] * 4 + [expected[1]] * 3
