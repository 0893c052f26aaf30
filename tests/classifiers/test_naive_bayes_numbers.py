"""Naive Bayes on degenerate tables and on numbers that are absurdly large or small."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import posteriori as po
from posteriori.densities.covariances import PseudoRows


def test_a_thousand_features_underflow_no_likelihood():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(0.2 * y[:, np.newaxis], 1.0, (200, 1000)) * 10.0 ** rng.integers(-6, 7, 1000)
    model = po.NaiveBayes().fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.predict_joint_log_proba(X).max(axis=1) < -700).any()
    assert model.score(X, y) > 0.95
    bits = rng.random((200, 1000)) < 0.3 + 0.1 * y[:, np.newaxis]
    assert_allclose(po.NaiveBayes().fit(bits, y).predict_proba(bits).sum(axis=1), 1.0)


def test_one_class_one_row_and_a_class_without_weight():
    X, y = load_iris(return_X_y=True)
    assert_array_equal(po.NaiveBayes().fit(X, np.zeros(150)).predict_proba(X), np.ones((150, 1)))
    one = po.NaiveBayes().fit(X[:1], ["setosa"])
    assert one.predict(X[:3]).tolist() == ["setosa"] * 3
    weight = (y != 2).astype(float)
    model = po.NaiveBayes().fit(X, y, sample_weight=weight)
    assert_allclose(model.predict_proba(X)[:, 2], 0.0)
    assert_allclose(model.predict_proba(X)[:, :2], po.NaiveBayes().fit(X[y < 2], y[y < 2]).predict_proba(X))


def test_constant_and_all_missing_columns_change_no_posterior():
    X, y = load_iris(return_X_y=True)
    more = np.column_stack([X, np.full(150, 7.0), np.full(150, np.nan)])
    with pytest.warns(UserWarning, match="column 'x5' has no cell with a value"):
        model = po.NaiveBayes().fit(more, y)
    strange = more.copy()
    strange[:, 4:] = 10.0
    assert_allclose(model.predict_proba(strange), po.NaiveBayes().fit(X, y).predict_proba(X), atol=1e-12)


def test_rows_that_no_class_can_produce_are_told_of():
    X = pd.DataFrame({"a": ["x", "x", "y"], "b": ["p", "p", "q"]})
    model = po.NaiveBayes(alpha=0.0).fit(X, [0, 0, 1])
    impossible = pd.DataFrame({"a": ["x", "x"], "b": ["p", "q"]})
    with pytest.warns(UserWarning, match="row 1 cannot be produced by any class"):
        posterior = model.predict_proba(impossible)
    assert_array_equal(posterior[0], [1, 0])
    assert np.isnan(posterior[1]).all()
    with pytest.warns(UserWarning, match="cannot be produced"):
        assert model.predict(impossible).tolist() == [0, 0]
    assert model.score_samples(impossible)[1] == -np.inf


def test_degenerate_maximum_likelihood_is_told_of():
    X, y = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [3.0, 2.0]]), [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="column 'x0' does not vary within class 0.*smoothing"):
        po.NaiveBayes(distributions=po.Gaussian(0.0)).fit(X, y)
    po.NaiveBayes().fit(X, y)


def test_pseudo_counts_whose_sums_would_overflow_are_refused():
    for alpha in (1e16, 1e308, 10**300, np.inf):
        with pytest.raises(ValueError, match="'alpha' parameter"):
            po.NaiveBayes(alpha=alpha).fit([["a"], ["b"]], [0, 1])
    assert_allclose(po.NaiveBayes(alpha=10**15).fit([["a"], ["b"]], [0, 1]).predict_proba([["a"]]), 0.5, rtol=1e-14)
    X, y = [[1.0, 2.0], [2.0, 1.0], [4.0, 7.0], [6.0, 6.5]], [0, 0, 1, 1]
    many = po.GaussianDiscriminant(pooling=PseudoRows(1e15)).fit(X, y).predict_proba(X)
    assert_allclose(many, po.GaussianDiscriminant(pooling=PseudoRows(np.inf)).fit(X, y).predict_proba(X))


def test_numbers_absurdly_far_away_warn_of_no_overflow():
    model = po.NaiveBayes().fit([[0.0], [1.0], [8.0], [9.0]], [0, 0, 1, 1])
    assert np.isneginf(model.explain([[1e200]]).log_factors).all()
    assert (model.predict_joint_log_proba([[1e154], [1e154], [-1e154]]) < -1e300).all()
    with pytest.warns(UserWarning, match="row 1 cannot be produced by any class"):
        assert np.isnan(model.predict_proba([[1.0], [1e200]])).tolist() == [[False] * 2, [True] * 2]


def test_more_categories_than_16_bits_count(tmp_path):
    many, y = np.tile(np.arange(66_000), 2), np.arange(132_000) % 3 % 2
    X = many.reshape(-1, 1)
    model = po.NaiveBayes(columns=po.Columns(categorical_features=[0])).fit(X, y)
    counts = np.stack([np.bincount(many[y == z], minlength=66_000) for z in range(2)])
    joint = (counts + 1) / (counts.sum(axis=1, keepdims=True) + 66_000) * np.bincount(y)[:, np.newaxis]
    rows = slice(65_000, 66_000)
    expected = (joint / joint.sum(axis=0)).T[rows]
    assert_allclose(model.predict_proba(X[rows]), expected, rtol=1e-9)
    halves = po.NaiveBayes(columns=po.Columns(categorical_features=[0])).partial_fit(X[:66_000], y[:66_000], [0, 1])
    assert_allclose(halves.partial_fit(X[66_000:], y[66_000:]).predict_proba(X[rows]), expected, rtol=1e-9)
    po.save(model, tmp_path / "m.posteriori")
    assert_allclose(po.load(tmp_path / "m.posteriori").predict_proba(X[rows]), expected, rtol=1e-9)
    drawn = model.sample(2000, random_state=0)[0][:, 0]
    assert drawn.max() > 65_535


@pytest.mark.parametrize("cell", [1e12, 1e100])
def test_equal_classes_share_the_posterior_of_a_far_cell(cell):
    X, y = [[0.0], [1.0], [0.0], [1.0]], [0, 0, 1, 1]
    model = po.NaiveBayes().fit(X, y)
    for found in (model.predict_log_proba([[cell]]), np.log(model.explain([[cell]]).posterior)):
        assert_allclose(found, np.log([[0.5, 0.5]]), rtol=1e-12)
    assert_allclose(po.drop_in.GaussianNB().fit(X, y).predict_log_proba([[cell]]), np.log([[0.5, 0.5]]), rtol=1e-12)


def test_the_leave_one_out_posterior_of_a_far_row_sums_to_1():
    rng = np.random.default_rng(0)
    X, y = rng.normal(scale=0.1, size=(17, 1)), np.arange(17) % 3
    X[2, 0] = 1e100
    found = po.model_selection.leave_one_out(po.NaiveBayes().fit(X, y), X, y).posterior
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
