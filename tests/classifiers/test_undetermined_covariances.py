"""Tables that leave a covariance undetermined."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from tests.classifiers.test_gaussian_discriminant import MODELS, blobs, every_model


def degenerate(kind, missing):
    X, y = blobs(n=90, d=4)
    named = {"constant": "'x1'", "constant in a class": "'x1'", "collinear": "'x0', 'x1', 'x3'"}.get(kind, "'x0', 'x1'")
    if kind == "constant":
        X[:, 1] = 0.1
    elif kind == "constant in a class":
        X[y == 1, 1] = 0.1
    elif kind == "collinear":
        X[:, 3] = X[:, 0] - 2 * X[:, 1]
    elif kind == "more columns than rows":
        X, y = blobs(n=20, d=30)
    elif kind == "a row per class":
        X, y = X[:6:2], y[:6:2]
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    return X, y, named


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
@pytest.mark.parametrize(
    "kind", ["constant", "constant in a class", "collinear", "more columns than rows", "a row per class"]
)
def test_undetermined_parts_are_named_and_the_model_is_usable(kind, pooling, missing):
    X, y, named = degenerate(kind, missing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)
    messages = [str(one.message) for one in caught]
    if kind == "constant in a class" and pooling == "pooled":
        assert messages == []  # the others determine it
    else:
        assert any("the covariance is singular" in message and named in message for message in messages)
    assert not any("EM stopped" in message for message in messages)
    posterior = model.predict_proba(X + 0.01)
    assert_allclose(posterior.sum(axis=1), 1.0)
    assert model.score(X, y) >= (0.55 if kind != "a row per class" else 1.0)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.explain(X).log_factors).all()


def test_a_constant_column_changes_no_posterior():
    X, y = blobs()
    expected = po.GaussianDiscriminant(pooling="per_class").fit(X, y).predict_proba(X)
    wider = np.column_stack([X, np.full(len(y), 1e7 + 0.1)])
    for missing in (0.0, 0.2):
        table = wider.copy()
        table[np.random.default_rng(0).random(len(y)) < missing, 3] = np.nan
        with pytest.warns(UserWarning, match="column 'x3' is constant"):
            model = po.GaussianDiscriminant(pooling="per_class").fit(table, y)
        assert_allclose(model.predict_proba(wider), expected, atol=1e-4)


def test_shrinkage_needs_no_mending():
    X, y, _ = degenerate("more columns than rows", 0.0)
    for parameters in ({"shrinkage": 0.1}, {"shrinkage": "oas"}, {"shrinkage": "spherical"}):
        po.GaussianDiscriminant(pooling="per_class", **parameters).fit(X, y)  # a warning would be an error


@every_model
def test_one_class_one_row_one_feature(parameters):
    X, y = blobs()
    alone = po.GaussianDiscriminant(**parameters).fit(X, np.zeros(len(y)))
    assert_array_equal(alone.predict_proba(X), 1.0)
    assert alone.transform(X).shape == (len(y), 0)
    narrow = po.GaussianDiscriminant(**parameters).fit(X[:, :1], y)
    assert narrow.transform(X[:, :1]).shape == (len(y), 1)
    assert np.isfinite(narrow.predict_proba(X[:, :1])).all()
    with pytest.warns(UserWarning, match="the covariance is singular"):
        single = po.GaussianDiscriminant(**parameters).fit(X[:1], y[:1])
    assert_array_equal(single.predict(X), y[0])


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
def test_a_column_unseen_in_all_rows_or_in_one_class(pooling):
    X, y = blobs(n=120)
    X[:, 1] = np.nan
    with pytest.warns(UserWarning, match="column 'x1' has no cell with a value") as caught:
        model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)
    assert len(caught) == 1
    without = po.GaussianDiscriminant(pooling=pooling, em=po.EM(tol=1e-9, max_iter=1000)).fit(X[:, [0, 2]], y)
    assert_allclose(model.predict_proba(X), without.predict_proba(X[:, [0, 2]]), atol=1e-6)

    X, y = blobs(n=120)
    X += 1e6
    X[y == 0, 1] = np.nan
    model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)
    assert 9e5 < model.means_[0, 1] < 1.1e6
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_class_without_rows_is_usable_with_a_stated_prior():
    X, y = blobs()
    for parameters in MODELS:
        model = po.GaussianDiscriminant(priors=1.0, **parameters)
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
        assert np.isfinite(model.predict_joint_log_proba(X)).all()
        assert_allclose(model.means_[3], X.mean(axis=0))
    bare = po.GaussianDiscriminant().partial_fit(X, y, classes=[0, 1, 2, 3])
    assert_array_equal(bare.predict_proba(X)[:, 3], 0.0)


@pytest.mark.parametrize("cell", [np.inf, 1e200])
@pytest.mark.parametrize("gap", [0.0, np.nan])
def test_numbers_that_cannot_be_computed_with_are_refused(cell, gap):
    X, y = blobs()
    X[3, 1], X[5, 2] = cell, gap
    with pytest.raises(ValueError, match=r"infinity: column 'x1' holds inf in row 3|overflows"):
        po.GaussianDiscriminant().fit(X, y)
    model = po.GaussianDiscriminant().fit(*blobs())
    if np.isinf(cell):
        with pytest.raises(ValueError, match="column 'x1' holds inf in row 3"):
            model.predict(X)
