"""Macros of DuckDB give the posterior of Python, also in a file that is opened again."""

import warnings

import duckdb
import numpy as np
import polars as pl
import pytest

import posteriori as po
from tests.sql.test_to_sql import MODELS, PENGUINS, fetched, logs_of, with_holes


def stored(path, frame, name="birds"):
    with duckdb.connect(str(path)) as connection:
        connection.register("arrow", frame.to_arrow())
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")


def scored(path, table="birds", macro="posterior"):
    """Return the results of both forms, by a connection that never saw a model."""
    with duckdb.connect(str(path), read_only=True) as connection:
        structs = fetched(connection.execute(f"SELECT id, {macro}(t) AS p FROM {table} AS t ORDER BY id"))
        rows = fetched(connection.execute(f"SELECT * FROM {macro}('{table}') ORDER BY id"))
    return structs.unnest("p"), rows


@pytest.mark.parametrize("name", MODELS)
def test_a_file_that_is_opened_again_agrees_with_python(name, tmp_path):
    model, rows = MODELS[name]
    model.fit(rows, "species")
    frame = with_holes(rows.drop("species"), 0.2, np.random.default_rng(0))[::3]
    strange = pl.int_range(pl.len()) % 9 == 0
    frame = frame.with_columns(island=pl.when(strange).then(pl.lit("Nowhere")).otherwise(pl.col("island")))
    path = tmp_path / "birds.duckdb"
    stored(path, frame.with_row_index("id").select("id", *sorted(frame.columns)))
    with duckdb.connect(str(path)) as connection:
        po.to_duckdb(connection, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unseen categories and impossible rows
        wanted = model.predict_log_proba(frame)
        predicted = model.predict(frame)
    structs, handed = scored(path)
    assert structs.columns[1] == "prediction"
    assert handed.columns[: frame.width + 1] == ["id", *sorted(frame.columns)]
    for found in (structs, handed):
        np.testing.assert_allclose(logs_of(found), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.select("^p_.*$").to_numpy(), np.exp(wanted), rtol=1e-9, atol=1e-12)
        clear = np.isfinite(wanted).all(axis=1)
        np.testing.assert_array_equal(found["prediction"].to_numpy()[clear], predicted[clear])


def test_names_that_are_no_plain_words_are_quoted(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.normal(size=50) for name in ("x0", 'bill "length"', "it's", "select", "t")})
    model = po.GaussianDiscriminant().fit(frame, ["a", "b"] * 25)
    path = tmp_path / "birds.duckdb"
    stored(path, frame.with_row_index("id"), '"my birds"')
    with duckdb.connect(str(path)) as connection:
        po.to_duckdb(connection, model, 'the "answer"')
        of_row, of_table = """ "the ""answer\"""(b)""", """ "the ""answer\"""('my birds')"""
        structs = fetched(connection.execute(f'SELECT {of_row} AS p FROM "my birds" AS b ORDER BY id')).unnest("p")
        rows = fetched(connection.execute(f"SELECT * FROM {of_table} ORDER BY id"))
    for found in (structs, rows):
        np.testing.assert_allclose(found.select("^p_.*$").to_numpy(), model.predict_proba(frame), rtol=1e-9)


def test_a_later_model_takes_the_place_of_an_earlier_one():
    connection = duckdb.connect()
    for model in (po.NaiveBayes(), po.GaussianDiscriminant()):
        po.to_duckdb(connection, model.fit(PENGUINS, "species"))
    connection.register("arrow", PENGUINS.to_arrow())
    found = fetched(connection.execute("SELECT posterior(t).p_Gentoo AS p FROM arrow AS t"))["p"].sum()
    assert found == pytest.approx(model.predict_proba(PENGUINS.drop("species"))[:, 2].sum(), rel=1e-9)


def test_numbers_have_their_interval():
    rows = PENGUINS.drop_nulls()
    model = po.AdditiveRegressor().fit(rows, "body_mass_g")
    connection = duckdb.connect()
    connection.register("arrow", rows.to_arrow())
    po.to_duckdb(connection, model, "mass")
    found = fetched(connection.execute("SELECT mass(t) AS p FROM arrow AS t")).unnest("p")
    assert found.columns == ["prediction", "prediction_low", "prediction_high"]
    off = np.abs(found["prediction"].to_numpy() - model.predict(rows.drop("body_mass_g")))
    assert off.max() < 0.1 * rows["body_mass_g"].std()


def test_a_column_that_a_table_lacks_is_an_error():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    connection = duckdb.connect()
    po.to_duckdb(connection, model)
    without = PENGUINS.drop("sex", "species")
    connection.register("arrow", without.to_arrow())
    for query in ("SELECT posterior(t) FROM arrow AS t", "SELECT * FROM posterior('arrow')"):
        with pytest.raises(duckdb.BinderException, match="sex"):
            connection.execute(query)
    found = fetched(
        connection.execute("SELECT posterior(t).p_Gentoo AS p FROM (SELECT *, NULL AS sex FROM arrow) AS t")
    )
    with pytest.warns(UserWarning, match="lacks column 'sex'"):
        wanted = model.predict_proba(without)[:, 2]
    np.testing.assert_allclose(np.sort(found["p"].to_numpy()), np.sort(wanted), rtol=1e-9)


def test_errors_name_what_is_wrong():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    with pytest.raises(TypeError, match=r"connection is a str; give one of duckdb\.connect\(\)"):
        po.to_duckdb("birds.duckdb", model)
    with pytest.raises(TypeError, match="a KernelRegressor has no SELECT; score the rows by"):
        po.to_duckdb(duckdb.connect(), po.KernelRegressor())
    twice = PENGUINS.with_columns(SEX=pl.col("sex"))
    with pytest.raises(ValueError, match="columns 'sex' and 'SEX' are one name in duckdb"):
        po.to_duckdb(duckdb.connect(), po.NaiveBayes().fit(twice, "species"))
