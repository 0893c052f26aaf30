"""SQUAREM acceleration of EM: the likelihood never falls, and the optimum is that of plain EM."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
import posteriori.learning.fit
from posteriori.learning.em_steps import PlainEM, Squarem


class WithoutAcceleration:
    """Takes the place of `Squarem`, and starts plain EM."""

    @staticmethod
    def start(model, blocks, of_other_rows):
        del blocks, of_other_rows
        return PlainEM(model)


def rows(seed, n=120, d=4, missing=0.3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(0, 2, (3, d))[y]
    return np.where(rng.random(X.shape) < missing, np.nan, X), y


@given(st.integers(0, 10**6), st.sampled_from(["pooled", "per_class", 0.5]))
@pytest.mark.filterwarnings("ignore:EM stopped", "ignore:the covariance is singular")
def test_no_extrapolation_lowers_the_likelihood(seed, pooling):
    X, y = rows(seed)
    trace = po.GaussianDiscriminant(pooling=pooling, em=po.EM(tol=0.0, max_iter=60)).fit(X, y).log_likelihood_trace_
    worst = 0.0 if pooling != 0.5 else np.inf  # a mixed covariance is not of maximum likelihood
    assert np.diff(trace).min() >= -worst - 1e-8 * abs(trace[-1])


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
def test_acceleration_reaches_the_same_optimum_in_fewer_passes(pooling, monkeypatch):
    X, y = rows(1)
    model = po.GaussianDiscriminant(pooling=pooling, em=po.EM(tol=1e-12, max_iter=20_000))
    posterior, steps = model.fit(X, y).predict_proba(X), model.n_iter_
    extrapolated = model.log_likelihood_trace_[-1]
    monkeypatch.setattr(posteriori.learning.fit, "Squarem", WithoutAcceleration)
    assert_allclose(model.fit(X, y).predict_proba(X), posterior, atol=1e-3)
    assert_allclose(model.log_likelihood_trace_[-1], extrapolated, atol=1e-5)
    assert 2 * steps < model.n_iter_


@pytest.mark.filterwarnings("ignore:EM stopped")
@pytest.mark.parametrize("steps", range(1, 8))
def test_a_model_that_ran_out_of_steps_is_that_of_its_statistics(steps):
    X, y = rows(2)
    model = po.GaussianDiscriminant(em=po.EM(max_iter=steps, tol=0.0)).fit(X, y)
    again = model.model_.blocks[0].density.estimate(model.statistics_.blocks[0])
    assert_allclose(model.covariance_, again.covariance[0])
    own = model.predict_joint_log_proba(X)[np.arange(len(y)), y] - model.class_log_prior_[y]
    assert own.sum() >= model.log_likelihood_trace_[-1]


def first_models(monkeypatch, n=3):
    """Return successive models of plain EM, the statistics of the last, and the block with missing cells."""
    monkeypatch.setattr(posteriori.learning.fit, "Squarem", WithoutAcceleration)
    X, y = rows(3)
    fits = [po.GaussianDiscriminant(em=po.EM(max_iter=steps, tol=0.0)) for steps in range(1, n + 1)]
    return [fit.fit(X, y).model_ for fit in fits], fits[-1].statistics_, [0]


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_squarem_extrapolates_from_three_models_or_returns(monkeypatch):
    models, statistics, blocks = first_models(monkeypatch)
    squarem = Squarem.start(models[0], blocks, of_other_rows=False)
    for model in models[1:]:
        assert not squarem.is_extrapolated
        assert squarem.proposal is squarem.last
        squarem = squarem.advance(model, statistics)
    assert squarem.is_extrapolated
    assert squarem.last is models[-1]
    density = models[0].blocks[0].density
    start, first, second, reached = (
        density.to_unconstrained(model.parameters[0], models[0].parameters[0]) for model in (*models, squarem.proposal)
    )
    r, v = first - start, second - 2 * first + start
    a = min(np.linalg.norm(r) / np.linalg.norm(v), 4.0)
    assert a > 1
    assert_allclose(reached, start + 2 * a * r + a**2 * v, rtol=1e-6, atol=1e-9)
    rejected = squarem.reject()
    assert not rejected.is_extrapolated
    assert rejected.proposal is rejected.last is models[-1]
    assert rejected.max_length == max(1.0, squarem.max_length / 4)


def test_folds_with_other_trees_start_from_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.arange(24) % 2
    found = po.model_selection.out_of_fold(po.TreeAugmentedNaiveBayes(missing="em"), X, y, folds=3)
    assert_allclose(found.posterior.sum(axis=1), 1.0)
