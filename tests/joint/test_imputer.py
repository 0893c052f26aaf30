"""GenerativeImputer as a transformer of scikit-learn: its conventions, names of columns, files, one column alone."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.datasets import load_penguins

PENGUINS = load_penguins()
METHODS = ["joint", "pool"]


@parametrize_with_checks([po.GenerativeImputer(method=method) for method in METHODS])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_names_of_columns_stay():
    X = PENGUINS.select("bill_length_mm", "bill_depth_mm", "sex")
    imputer = po.GenerativeImputer(method="joint").fit(X)
    assert imputer.get_feature_names_out().tolist() == X.columns
    assert imputer.n_features_in_ == 3
    of_array = po.GenerativeImputer(method="joint").fit(X.select(pl.col(pl.Float64)).to_numpy())
    assert of_array.get_feature_names_out().tolist() == ["x0", "x1"]
    assert of_array.get_feature_names_out(["u", "v"]).tolist() == ["u", "v"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_chooses_the_type(kind):
    frame_type = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind]
    wanted = po.GenerativeImputer(method="joint").fit_transform(PENGUINS)
    for table in (PENGUINS, PENGUINS.to_pandas()):
        found = po.GenerativeImputer(method="joint").set_output(transform=kind).fit_transform(table)
        assert isinstance(found, frame_type)
        assert list(found.columns) == PENGUINS.columns
        assert found["sex"].to_list() == wanted["sex"].to_list()
    of_array = po.GenerativeImputer(method="joint").set_output(transform=kind)
    found = of_array.fit_transform(PENGUINS.select(pl.col(pl.Float64)).to_numpy())
    assert isinstance(found, frame_type)
    assert list(found.columns) == ["x0", "x1"]


def test_rows_have_the_columns_of_fit_in_their_order():
    imputer = po.GenerativeImputer(method="joint").fit(PENGUINS)
    wanted = imputer.transform(PENGUINS)
    turned = PENGUINS.select(PENGUINS.columns[::-1])
    assert imputer.transform(turned).equals(wanted)
    with pytest.warns(UserWarning, match="X has column 'note', which GenerativeImputer was not trained on; ignored"):
        assert imputer.transform(turned.with_columns(note=pl.lit("x"))).equals(wanted)
    with pytest.raises(ValueError, match="X lacks column 'sex', which GenerativeImputer was trained on"):
        imputer.transform(PENGUINS.drop("sex"))


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize("method", METHODS)
def test_columns_without_names_are_those_at_the_same_place(method):
    X = PENGUINS.select("bill_length_mm", "bill_depth_mm").to_numpy()
    tables = [X, pd.DataFrame(X), pd.DataFrame(X, columns=["u", "v"]), pl.DataFrame(X, schema=["u", "v"])]
    wanted = po.GenerativeImputer(method=method).fit_transform(X)
    assert not np.isnan(wanted).any()
    for learned, table in itertools.product(tables, tables):
        found = po.GenerativeImputer(method="joint").fit(learned).transform(table)
        assert type(found) is type(table)
        assert list(getattr(found, "columns", [])) == list(getattr(table, "columns", []))
        if method == "joint":
            assert_array_equal(np.asarray(found), wanted)
    of_names = po.GenerativeImputer(method=method).fit(tables[2])
    assert_array_equal(of_names.transform(X), of_names.transform(tables[2]).to_numpy())


@pytest.mark.parametrize("method", METHODS)
def test_rows_as_lists_keep_numbers_and_strings(method):
    rows = [["a", 1.0], ["b", 2.0], ["a", 1.0], ["b", 2.0]] * 10
    found = po.GenerativeImputer(method=method).fit(rows).transform([["a", None], [None, 2.0]])
    assert found.tolist() == [["a", 1.0], ["b", 2.0]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_one_column_alone_is_filled_by_its_mean(method, offset):
    x = np.exp(2 * np.random.default_rng(0).normal(size=300)) + offset  # the mean is far above most numbers
    X = np.append(x, [np.nan, np.nan])[:, np.newaxis]
    filled = po.GenerativeImputer(method=method).fit_transform(X)
    assert_array_equal(filled[:-2, 0], x)
    assert_allclose(filled[-2:, 0], x.mean(), rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_columns_that_know_nothing_of_each_other(method):
    table = pl.DataFrame({"n": pl.Series([1, 2, 2, 7, None] * 12), "id": [f"u{i}" for i in range(60)], "same": "x"})
    with pytest.warns(UserWarning, match="'id'"):
        filled = po.GenerativeImputer(method=method).fit(table).transform(table)
    assert filled["n"].to_list() == [1, 2, 2, 7, 3] * 12  # the mean, and whole numbers stay whole
    empty = table.select("n", none=pl.lit(None, pl.Float64))
    with pytest.warns(UserWarning, match="'none'"):
        imputer = po.GenerativeImputer(method=method).fit(empty)
    with pytest.warns(UserWarning, match="the missing cells of column 'none' stay"):
        assert imputer.transform(empty)["n"].equals(filled["n"])
    letters = pl.DataFrame({"c": ["u", "v", "u", None] * 5})
    assert po.GenerativeImputer(method=method).fit_transform(letters)["c"].to_list() == ["u", "v", "u", "u"] * 5


@pytest.mark.parametrize("method", METHODS)
def test_one_column_alone_is_drawn_from_its_distribution(method):
    x = np.random.default_rng(0).normal(5.0, 2.0, 400)
    X = np.append(x, np.full(400, np.nan))[:, np.newaxis]
    drawn = po.GenerativeImputer(method=method, draw=True).fit_transform(X)[400:, 0]
    assert_allclose(np.quantile(drawn, [0.25, 0.5, 0.75]), np.quantile(x, [0.25, 0.5, 0.75]), rtol=0.2)


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_imputer_fills_the_same(method, tmp_path):
    table = PENGUINS.select("bill_length_mm", "sex", "year")
    imputer = po.GenerativeImputer(method=method).fit(table)
    path = tmp_path / "imputer.posteriori"
    po.save(imputer, path)
    loaded = po.load(path)
    assert loaded.get_params() == imputer.get_params()
    assert loaded.transform(table).equals(imputer.transform(table))
    assert loaded.get_feature_names_out().tolist() == table.columns
    without_year = table.with_columns(year=pl.lit(None, pl.Int64))
    if method == "pool":  # no row lacked the year in training
        with pytest.raises(ValueError, match="keeps no rows to fit a pool of 'year' to; use method=\"joint\""):
            loaded.transform(without_year)
        assert imputer.transform(without_year)["year"].null_count() == 0
        po.save(imputer, path)  # with the pool that has been fitted since
        assert po.load(path).transform(without_year).equals(imputer.transform(without_year))
        with pytest.raises(ValueError, match='set method="joint", or leave out without_rows'):
            po.save(imputer, path, without_rows=True)
    else:
        assert loaded.transform(without_year).equals(imputer.transform(without_year))
        po.save(imputer, path, without_rows=True)
        assert po.load(path).transform(table).equals(imputer.transform(table))


def test_a_saved_mean_of_one_column(tmp_path):
    X = np.append(np.exp(np.random.default_rng(0).normal(size=50)), np.nan)[:, np.newaxis]
    imputer = po.GenerativeImputer().fit(X)
    po.save(imputer, tmp_path / "one.posteriori")
    assert_array_equal(po.load(tmp_path / "one.posteriori").transform(X), imputer.transform(X))
