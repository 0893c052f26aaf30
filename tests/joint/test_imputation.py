"""Missing cells: filled by the conditional distribution, without a change of anything else."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import posteriori as po
from posteriori.datasets import load_penguins

PENGUINS = load_penguins().drop_nulls()


def with_gaps(frame, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    lacks = {name: pl.Series(rng.random(len(frame)) < share) for name in frame.columns}
    return frame.with_columns(
        pl.when(one).then(None).otherwise(pl.col(name)).alias(name) for name, one in lacks.items()
    )


GAPS = with_gaps(PENGUINS)


@pytest.fixture(scope="module")
def model():
    return po.JointModel().fit(GAPS)


@pytest.mark.parametrize("draw", [False, True])
@pytest.mark.parametrize("method", ["joint", "pool"])
def test_known_cells_types_and_columns_stay(model, method, draw):
    table = GAPS.with_columns(note=pl.lit("kept")).head(80)
    with pytest.warns(UserWarning, match="'note'"):
        filled = model.impute(table, method, draw=draw, random_state=0)
    assert filled.schema == table.schema
    assert filled.null_count().row(0) == (0,) * table.width
    for name in table.columns:
        known = table[name].is_not_null()
        assert filled.filter(known)[name].equals(table.filter(known)[name])
    assert (filled["body_mass_g"] % 25 == 0).all()


@pytest.mark.parametrize("of_type", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_other_tables_are_filled_alike(model, of_type):
    wanted = model.impute(GAPS, "joint")
    found = model.impute(of_type(GAPS), "joint")
    found = pl.from_pandas(found) if isinstance(found, pd.DataFrame) else pl.from_arrow(found)
    for name in GAPS.columns:
        assert found[name].cast(wanted.schema[name]).to_list() == wanted[name].to_list()


def test_the_joint_model_fills_by_its_conditionals(model):
    filled, known = model.impute(GAPS, "joint"), model.missing(GAPS, "joint")
    of_species = known.filter(pl.col("column") == "species")
    row = of_species["row"][0]
    probability = model.predict_proba(GAPS, "species", "joint")[row]
    assert filled["species"][row] == model.categories("species")[int(probability.argmax())]
    assert_allclose(of_species["probability"][0], probability.max(), rtol=1e-6)
    of_mass = known.filter(pl.col("column") == "body_mass_g")
    density = model.predict_density(GAPS, "body_mass_g", "joint")
    assert_allclose(of_mass["std"].to_numpy(), density.std[of_mass["row"].to_numpy()], rtol=1e-6)


@pytest.mark.parametrize("method", ["joint", "pool"])
def test_filled_cells_are_nearer_than_those_of_the_column_alone(model, method):
    filled = model.impute(GAPS, method)
    lacks = GAPS["species"].is_null()
    assert (filled["species"] == PENGUINS["species"]).filter(lacks).mean() > 0.9
    lacks = GAPS["body_mass_g"].is_null()
    error = (filled["body_mass_g"] - PENGUINS["body_mass_g"]).filter(lacks)
    assert (error**2).mean() ** 0.5 < 0.6 * PENGUINS["body_mass_g"].std()


def test_intervals_of_multiple_draws_cover_the_mean():
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 2, 300)
        y = np.round(10.0 * group + rng.normal(size=300) * 3)
        lacks = rng.random(300) < 0.1 + 0.5 * group  # more often where y is large
        table = pl.DataFrame({"group": np.array(["a", "b"])[group], "y": pl.Series(y)})
        table = table.with_columns(y=pl.when(pl.Series(lacks)).then(None).otherwise(pl.col("y")))
        model = po.JointModel(members=["tree"]).fit(table)
        draws = [model.impute(table, "joint", draw=True, random_state=k)["y"] for k in range(5)]
        means, within = np.array([one.mean() for one in draws]), np.mean([one.var() / 300 for one in draws])
        spread = np.sqrt(within + 1.2 * means.var(ddof=1))  # Rubin's rule
        covered.append(abs(means.mean() - 5.0) < 2.0 * spread)
        assert abs(table["y"].mean() - 5.0) > 0.5  # of the known cells alone
    assert np.mean(covered) > 0.85


def test_draws_depend_on_the_seed_alone(model):
    one, same, other = (model.impute(GAPS, "joint", draw=True, random_state=seed) for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_arrays_without_names():
    X = GAPS.select(pl.col(pl.Float64)).to_numpy()
    for method in ("joint", "pool"):
        imputer = clone(po.GenerativeImputer(method=method))
        filled = imputer.fit_transform(X)
        assert not np.isnan(filled).any()
        assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_a_method_that_does_not_exist_is_named(model):
    with pytest.raises(ValueError, match="method is 'mean'"):
        model.impute(GAPS, "mean")
    with pytest.raises(ValueError, match=r"'method' parameter of GenerativeImputer must be a str among.*'mean'"):
        po.GenerativeImputer(method="mean").fit(GAPS)


@pytest.mark.parametrize("draw", [False, True])
@pytest.mark.parametrize("method", ["joint", "pool"])
def test_a_table_without_gaps_is_copied(method, draw):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = po.JointModel(members=["tree"]).fit(X)
    filled = model.impute(X, method, draw=draw)
    assert filled is not X
    assert_array_equal(filled, X)
    assert len(model.missing(X, method)) == 0
