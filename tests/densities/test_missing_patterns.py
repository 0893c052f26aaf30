"""The E-step on moments of patterns of missing cells against the E-step on rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.densities import MultivariateGaussian, implements
from posteriori.densities.capabilities import PatternDensity
from posteriori.densities.covariances import PerClass, Pooled
from posteriori.learning import fit as em
from posteriori.statistics.scatter import MissingPatterns, Scatter
from posteriori.tables.batch import Assignment, Numbers


def drawn_rows(seed, n=60, d=4, n_components=3, share=0.2, offset=0.0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + offset
    values[rng.random((n, d)) < share] = np.nan
    component = rng.integers(0, n_components, n)
    weight = rng.integers(0, 3, n).astype(float)
    return Numbers(values), Assignment(component, weight, n_components)


@given(
    st.integers(0, 10_000),
    st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    st.sampled_from([0.0, 1e6]),
    st.sampled_from([PerClass(), Pooled()]),
)
def test_the_e_step_on_patterns_is_the_e_step_on_rows(seed, share, offset, pooling):
    tile, assignment = drawn_rows(seed, share=share, offset=offset)
    density = MultivariateGaussian(pooling)
    statistics = Scatter.of(tile, assignment)
    parameters = density.estimate(statistics.independent())
    patterns = MissingPatterns.of(tile.rows(np.arange(25)), assignment.rows(np.arange(25)))
    patterns += MissingPatterns.of(tile.rows(np.arange(25, 60)), assignment.rows(np.arange(25, 60)))
    found, log_likelihood = density.expect_from_patterns(parameters, patterns, statistics)
    expected, log_likelihood_of_rows = density.expect(parameters, tile, assignment)
    assert_allclose(found.weight, expected.weight)
    unit = np.sqrt(np.diagonal(parameters.covariance[0]))
    assert_allclose((found.mean - expected.mean) / unit, 0.0, atol=1e-12 + 1e-15 * offset)
    assert_allclose((found.scatter - expected.scatter) / np.outer(unit, unit), 0.0, atol=1e-9 + 1e-14 * offset)
    assert_allclose(log_likelihood, log_likelihood_of_rows, rtol=1e-8)


def test_only_the_multivariate_gaussian_learns_from_patterns():
    assert implements(MultivariateGaussian(), PatternDensity)


def test_too_many_patterns_are_not_kept():
    tile, assignment = drawn_rows(0, n=300, d=12, share=0.5)
    assert not MissingPatterns.of(tile, assignment).are_few()
    tile, assignment = drawn_rows(0, n=300, d=12, share=0.0)
    assert MissingPatterns.of(tile, assignment).are_few()


@pytest.mark.parametrize("pooling", ["pooled", "per_class", 0.5])
def test_a_fit_from_patterns_is_a_fit_from_rows(pooling, monkeypatch):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) + y[:, np.newaxis]
    X[rng.random(400) < 0.2, 2] = np.nan
    X[rng.random(400) < 0.1, 4] = np.nan
    passes = []
    reduce = em.expect
    monkeypatch.setattr(em, "expect", lambda *given: passes.append(1) or reduce(*given))
    found = po.GaussianDiscriminant(pooling=pooling, em=po.EM(tol=1e-9, max_iter=500)).fit(X, y)
    assert not passes  # no step reads the rows
    monkeypatch.setattr(MissingPatterns, "are_few", lambda self: False)
    expected = po.GaussianDiscriminant(pooling=pooling, em=po.EM(tol=1e-9, max_iter=500)).fit(X, y)
    assert passes
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-9)
