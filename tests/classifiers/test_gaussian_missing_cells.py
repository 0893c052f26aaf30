"""Missing cells in the training rows of a Gaussian discriminant, filled in by EM."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.tables import Assignment, Numbers
from tests.classifiers.test_gaussian_discriminant import MODELS, blobs, every_model


@pytest.mark.parametrize("parameters", MODELS[:2], ids=str)
@pytest.mark.parametrize("shrinkage", [None, "diagonal", "spherical"])
@pytest.mark.parametrize("seed", range(3))
def test_em_never_lowers_the_likelihood_of_the_present_cells(parameters, shrinkage, seed):
    X, y = blobs(seed=seed, missing=0.3)
    model = po.GaussianDiscriminant(shrinkage=shrinkage, em=po.EM(tol=1e-9, max_iter=5000), **parameters).fit(X, y)
    trace = model.log_likelihood_trace_
    assert len(trace) >= 2
    assert np.diff(trace).min() > -1e-9 * len(y)
    position = model.predict_joint_log_proba(X)[np.arange(len(y)), y] - model.class_log_prior_[y]
    assert position.sum() >= trace[-1] - 1e-7


@every_model
def test_em_with_nothing_missing_is_the_closed_form(parameters):
    X, y = blobs()
    plain = po.GaussianDiscriminant(**parameters).fit(X, y)
    assert len(plain.log_likelihood_trace_) == 0
    density, fitted = plain.model_.blocks[0].density, plain.model_.parameters[0]
    assignment = Assignment(y.astype(np.int32), np.ones(len(y)), 3)
    sums, log_likelihood = density.expect(fitted, Numbers(X), assignment)
    again = density.estimate(sums)
    assert_allclose(again.mean, fitted.mean, rtol=1e-9)
    assert_allclose(again.covariance, fitted.covariance, rtol=1e-9, atol=1e-12)
    own = density.log_density(fitted, Numbers(X))[np.arange(len(y)), y]
    assert_allclose(log_likelihood, own.sum(), rtol=1e-10)
    # A row of no weight with a gap leaves the rows complete.
    gap = po.GaussianDiscriminant(**parameters).fit(
        np.vstack([X, [[np.nan, 1e3, 0.0]]]), np.append(y, 0), sample_weight=np.append(np.ones(len(y)), 0.0)
    )
    assert len(gap.log_likelihood_trace_) == 0
    assert_allclose(gap.covariance_, plain.covariance_, rtol=1e-9, atol=1e-12)


def test_the_fixed_point_of_em_is_where_direct_maximisation_ends():
    rng = np.random.default_rng(3)
    X = rng.multivariate_normal([1, -1], [[2, 1.2], [1.2, 1]], 40)
    X[:10, 0], X[10:18, 1] = np.nan, np.nan
    model = po.GaussianDiscriminant(em=po.EM(tol=1e-13, max_iter=10_000)).fit(X, np.zeros(40, int))

    def loss(theta):
        root = np.array([[math.exp(theta[2]), 0.0], [theta[3], math.exp(theta[4])]])
        total = 0.0
        for row in X:
            o = np.flatnonzero(~np.isnan(row))
            total -= scipy.stats.multivariate_normal(theta[:2][o], (root @ root.T)[np.ix_(o, o)]).logpdf(row[o])
        return total

    best = scipy.optimize.minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    root = np.array([[math.exp(best.x[2]), 0.0], [best.x[3], math.exp(best.x[4])]])
    assert_allclose(model.means_[0], best.x[:2], atol=1e-4)
    assert_allclose(model.covariance_, root @ root.T, atol=1e-4)
    assert_allclose(model.log_likelihood_trace_[-1], -best.fun, atol=1e-7)


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_em_ends_by_itself_on_ordinary_tables(data, pooling):
    X, y = data(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)  # a warning would be an error
    assert 2 <= len(model.log_likelihood_trace_) < 200
    assert model.score(X, y) > 0.9


def test_penguins():
    table = load_penguins()
    model = po.GaussianDiscriminant().fit(table, "species")
    assert model.score(table, "species") > 0.98
    assert model.means_.shape[0] == 3
    drawn, labels = model.sample(20, random_state=0)
    assert drawn.columns == [name for name in table.columns if name != "species"]
    assert model.score(drawn, labels) > 0.8


def test_em_that_runs_out_of_steps_says_so():
    X, y = blobs(missing=0.3)
    with pytest.warns(ConvergenceWarning, match=r"EM stopped after 2 steps with a last gain of .* nats"):
        po.GaussianDiscriminant(em=po.EM(max_iter=2)).fit(X, y)
