"""The mean and the interval of a number, in a database."""

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from tests.sql.test_to_sql import DATABASES

PENGUINS = load_penguins().drop_nulls()
_NAMES = ["prediction", "prediction_low", "prediction_high"]


def made(kind, n=600):
    """Rows with a number far from 0, a whole number, and a category; the first cell of prices is far from all rows."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=n), rng.integers(0, 9, n)
    y = np.exp(a * 0.8 + b / 5 + 0.3 * rng.normal(size=n))
    shifted = 100.0 + np.exp(a + 0.3 * rng.normal(size=n))
    of_kinds = {"log": y, "counts": rng.poisson(y).astype(float), "zeros": np.where(rng.random(n) < 0.3, 0.0, y)}
    y = (of_kinds | {"prices": shifted})[kind]
    return pl.DataFrame({"a": a * 50 + 1e6, "b": b, "c": rng.choice(list("uvw"), n), "y": y})


TABLES = {
    "penguins": lambda: (PENGUINS, "body_mass_g"),
    **{kind: lambda kind=kind: (made(kind), "y") for kind in ("log", "counts", "zeros", "prices")},
}


def scored(model, rows, database, **options):
    numbered = rows.with_row_index("the row").with_columns(pl.col("the row").cast(pl.Int64))
    select = model.to_sql(dialect=database, columns=["the row"], **options)
    return DATABASES[database](select, numbered).sort("the row").select(pl.col(_NAMES).cast(pl.Float64))


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("table", TABLES)
def test_mean_and_interval_are_those_of_the_usual_variance(table, database):
    frame, target = TABLES[table]()
    model = po.AdditiveRegressor().fit(frame, target)
    value, rows = model.fitted_, frame.drop(target)
    found = scored(model, rows, database, coverage=0.8).to_numpy()
    location = model._source(rows).map(
        lambda batch: value.squares.predict(value.found.design.of_rows(batch, value.found.additive)[0])
    )
    spread = np.full((len(rows), 1), np.sqrt(value.usual_variance))
    probability = value.found.student_around(location, spread, value.squares.degrees)
    density = po.Answer("y", value.cells, probability).density
    wanted = np.column_stack([density.mean, density.interval(0.8)])
    off = np.abs(found - wanted) / density.std[:, np.newaxis]
    # A quantile of whole numbers jumps where the location crosses a step.
    assert off[:, 0].max() < 2e-3
    assert np.quantile(off[:, 1:], 0.99) < 5e-3


def test_it_is_near_to_python_in_single_rows():
    model = po.AdditiveRegressor().fit(PENGUINS, "body_mass_g")
    rows = PENGUINS.drop("body_mass_g")
    density = model.predict_density(rows)
    wanted = np.column_stack([density.mean, density.interval()])
    off = np.abs(scored(model, rows, "duckdb").to_numpy() - wanted) / density.std[:, np.newaxis]
    assert np.median(off) < 0.01
    assert off.max() < 0.3


@pytest.mark.parametrize("database", DATABASES)
def test_rows_with_missing_or_unseen_cells_have_no_prediction(database):
    model = po.AdditiveRegressor().fit(PENGUINS, "body_mass_g")
    rows = (
        PENGUINS.drop("body_mass_g")
        .head(4)
        .with_columns(
            bill_depth_mm=pl.Series([None, 18.0, 18.0, 18.0]), island=pl.Series(["Dream", None, "Nowhere", "Dream"])
        )
    )
    found = scored(model, rows, database)
    assert found["prediction"].is_null().to_list() == [True, True, True, False]
    assert found.null_count().row(0) == (3, 3, 3)


@pytest.mark.parametrize("database", DATABASES)
def test_a_select_predicts_whole_rows_after_training_with_gaps(database):
    frame = made("log").with_columns(b=pl.when(pl.int_range(600) % 5 == 0).then(None).otherwise(pl.col("b")))
    model = po.AdditiveRegressor().fit(frame, "y")
    whole = frame.drop_nulls().drop("y")
    density = model.predict_density(whole)
    found = scored(model, whole, database)["prediction"].to_numpy()
    assert np.quantile(np.abs(found - density.mean) / density.std, 0.99) < 0.02


def test_numbers_beyond_the_training_rows_are_those_of_its_reach():
    model = po.AdditiveRegressor().fit(PENGUINS, "body_mass_g")
    far = PENGUINS.drop("body_mass_g").head(2).with_columns(flipper_length_mm=pl.Series([-1e6, 1e6]))
    density = model.predict_density(far)
    off = scored(model, far, "duckdb")["prediction"].to_numpy() - density.mean
    assert np.all(np.abs(off) < 0.1 * density.std)


def test_a_coverage_outside_of_0_and_1_is_refused():
    model = po.AdditiveRegressor().fit(PENGUINS, "body_mass_g")
    with pytest.raises(ValueError, match="coverage is 2"):
        model.to_sql(coverage=2)
    with pytest.raises(ValueError, match="'prediction'"):
        model.to_sql(columns=["prediction"])


@pytest.mark.parametrize("dialect", ["postgres", "bigquery", "snowflake", "tsql", "spark"])
def test_other_dialects_write_it(dialect):
    select = po.AdditiveRegressor().fit(PENGUINS, "body_mass_g").to_sql(dialect=dialect, columns=[])
    assert "prediction_high" in select
