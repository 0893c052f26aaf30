"""Forms of a Gaussian discriminant: linear, quadratic, transformed and explained."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.learning.importance import mutual_information
from tests.classifiers.test_gaussian_discriminant import blobs, drawn, every_model


def test_the_linear_form_of_a_shared_covariance():
    X, y = blobs()
    model = po.GaussianDiscriminant().fit(X, y)
    scores = X @ model.coef_.T + model.intercept_
    assert_allclose(scipy.special.softmax(scores, axis=1), model.predict_proba(X), rtol=1e-7)
    form = po.explain.linear_form(model)
    assert_allclose(form.weight, model.coef_)
    assert_allclose(form.bias, model.intercept_)
    quadratic = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
    with pytest.raises(ValueError, match="quadratic"):
        po.explain.linear_form(quadratic)
    with pytest.raises(AttributeError, match="quadratic"):
        _ = quadratic.coef_


def test_the_linear_form_of_a_mixed_table():
    table = load_penguins().drop_nulls()
    model = po.GaussianDiscriminant().fit(table, "species")
    form = po.explain.linear_form(model)
    scores = form.scores(form.design(model.explain(table)))
    assert_allclose(scipy.special.softmax(scores, axis=1), model.predict_proba(table), atol=1e-8)


@every_model
def test_the_quadratic_form_is_the_joint(parameters):
    X, y = blobs()
    model = po.GaussianDiscriminant(**parameters).fit(X, y)
    form = model.quadratic_form()
    assert_allclose(form.scores(X), model.predict_joint_log_proba(X), rtol=1e-8)
    x = X[0]
    by_hand = [x @ form.quadratic[c] @ x + form.linear[c] @ x + form.constant[c] for c in range(3)]
    assert_allclose(by_hand, model.predict_joint_log_proba(X[:1])[0], rtol=1e-8)


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
def test_transform_makes_the_spread_within_classes_a_sphere(pooling):
    X, y = blobs(n=300, d=5, n_classes=4)
    model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)
    Z = model.transform(X)
    assert Z.shape == (300, 3)
    means = np.array([Z[y == c].mean(axis=0) for c in range(4)])
    within = (Z - means[y]).T @ (Z - means[y]) / len(y)
    assert_allclose(within, np.eye(3), atol=1e-9)
    between = (means * model.class_prior_[:, np.newaxis]).T @ means
    assert_allclose(between, np.diag(np.diagonal(between)), atol=1e-9)
    spread = np.diagonal(between)
    assert (np.diff(spread) <= 0).all()
    assert_allclose(model.explained_variance_ratio_, spread / spread.sum())
    assert_allclose(model.class_prior_ @ means, 0.0, atol=1e-9)


def test_transform_of_a_row_with_gaps_is_the_expected_one():
    mean, covariance, _ = drawn(n_classes=2)
    model = po.GaussianDiscriminant.from_parameters(priors=[0.5, 0.5], means=mean, covariance=covariance[0])
    row = np.array([[0.3, np.nan, -0.2]])
    o, posterior, S = [0, 2], model.predict_proba(row)[0], covariance[0]
    expected = [mean[c, 1] + S[1, o] @ np.linalg.solve(S[np.ix_(o, o)], row[0, o] - mean[c, o]) for c in range(2)]
    filled = row.copy()
    filled[0, 1] = posterior @ expected
    assert_allclose(model.transform(row), model.transform(filled), rtol=1e-9)
    nothing = model.transform(np.full((1, 3), np.nan))
    assert_allclose(nothing, 0.0, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_chain_of_an_explanation_sums_to_the_joint(missing):
    X, y = blobs(missing=missing)
    X[0] = np.nan
    model = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
    assert_allclose(model.explain(X).log_joint, model.predict_joint_log_proba(X), rtol=1e-9)
    assert "posterior" in model.explain(X[:1]).bayes_table()


def test_the_mutual_information_is_that_of_each_column_alone():
    X, y = blobs()
    model = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
    alone = [po.NaiveBayes(distributions=po.Gaussian(0.0)).fit(X[:, [j]], y) for j in range(3)]
    expected = [mutual_information(one.model_)[0] for one in alone]
    assert_allclose(mutual_information(model.model_), expected, atol=1e-6)
