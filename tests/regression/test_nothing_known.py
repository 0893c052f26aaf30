"""A row of which nothing is known, and rows with more gaps than training rows had."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.javascript import to_javascript
from tests.javascript.engines import in_node

REGRESSORS = (po.GenerativeRegressor, po.AdditiveRegressor, po.KernelRegressor)


def gappy_table(n=400, seed=0):
    """Targets are higher where a cell is missing, and no row lacks more than one of four cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    gap = rng.integers(12, size=n)
    y = np.exp(x[:, 0] / 2 + (gap < 4) + rng.normal(0.0, 0.2, n))
    x[np.arange(n)[gap < 4], gap[gap < 4]] = np.nan
    return pl.DataFrame(x, schema=list("abcd")).fill_nan(None), y


@pytest.fixture(scope="module", params=REGRESSORS, ids=[one.__name__ for one in REGRESSORS])
def fitted(request):
    X, y = gappy_table()
    return request.param().fit(X, y), X, y


def test_nothing_known_is_the_distribution_of_the_training_rows(fitted):
    model, X, y = fitted
    nothing = X.head(1).with_columns(pl.lit(None, pl.Float64).alias(name) for name in X.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of absent columns
        absent = model.predict([{}])
    assert_allclose(model.predict(nothing), y.mean(), rtol=0.02)
    assert_allclose(absent, y.mean(), rtol=0.02)
    (low, high) = model.predict_interval(nothing)[0]
    assert abs(((y >= low) & (y <= high)).mean() - 0.9) < 0.02


def test_gaps_add_no_more_than_was_seen(fitted):
    model, X, y = fitted
    for k in range(2, 5):
        rows = X.head(20).with_columns(pl.lit(None, pl.Float64).alias(name) for name in X.columns[:k])
        assert model.predict(rows).max() < y.max()


@pytest.mark.parametrize("known", [(), ("b",), ("a", "d"), ("a", "b", "c")])
def test_javascript_agrees(tmp_path, known):
    X, y = gappy_table()
    model = po.AdditiveRegressor().fit(X, y)
    rows = X.head(5).with_columns(pl.lit(None, pl.Float64).alias(name) for name in X.columns if name not in known)
    script = "const result = given.rows.map((row) => load(JSON.stringify(given.file)).predict(row));"
    found = in_node(script, {"file": json.loads(to_javascript(model)), "rows": rows.to_dicts()}, tmp_path)
    assert_allclose(found, model.predict(rows), rtol=1e-7)
