"""Least squares from sums: against refits, against the joint Gaussian, and by updates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from posteriori.regression.least_squares import LeastSquares, Products

SEEDS = st.integers(0, 2**32 - 1)


def table(seed, n, p, k=2):
    rng = np.random.default_rng(seed)
    features, weight = rng.normal(size=(n, p)), rng.integers(1, 4, n).astype(float)
    targets = features[:, : min(p, 3)].sum(axis=1, keepdims=True) + rng.normal(size=(n, k))
    return features, targets, weight, rng.uniform(0.1, 3.0, p)


@given(SEEDS)
def test_it_is_ridge_regression(seed):
    features, targets, weight, _ = table(seed, 30, 4)
    found = LeastSquares(Products.of(features, targets, weight), np.full(4, 2.0))
    other = Ridge(alpha=2.0, solver="cholesky").fit(features, targets, weight)
    assert_allclose(found.predict(features), other.predict(features), rtol=1e-8, atol=1e-10)


@given(SEEDS, st.sampled_from([(20, 3), (12, 11), (10, 25)]))
def test_leave_one_out_equals_refits_with_many_features_too(seed, shape):
    features, targets, weight, penalty = table(seed, *shape)
    whole = LeastSquares(Products.of(features, targets, weight), penalty)
    found = whole.leave_one_out(features, targets, weight)
    for i in range(len(features)):
        kept = np.arange(len(features)) != i
        refit = LeastSquares(Products.of(features[kept], targets[kept], weight[kept]), penalty)
        assert_allclose(found[i], refit.predict(features[i : i + 1])[0], rtol=1e-7, atol=1e-8)


@given(SEEDS)
def test_sums_add_and_subtract(seed):
    features, targets, weight, penalty = table(seed, 40, 5)
    whole = Products.of(features, targets, weight)
    part, rest = (Products.of(features[s], targets[s], weight[s]) for s in (slice(0, 15), slice(15, None)))
    for one in (part + rest, (whole - part) + part):
        found = LeastSquares(one, penalty).predict(features)
        assert_allclose(found, LeastSquares(whole, penalty).predict(features), rtol=1e-9, atol=1e-10)


def test_a_weight_is_so_many_rows():
    features, targets, weight, penalty = table(0, 25, 4)
    repeated = np.repeat(np.arange(25), weight.astype(int))
    one = LeastSquares(Products.of(features, targets, weight), penalty)
    other = LeastSquares(Products.of(features[repeated], targets[repeated], np.ones(len(repeated))), penalty)
    assert_allclose(one.predict(features), other.predict(features), rtol=1e-10)


@given(SEEDS, st.integers(1, 5))
def test_unknown_features_are_integrated_out(seed, n_unknown):
    features, targets, weight, penalty = table(seed, 60, 6)
    products = Products.of(features, targets, weight)
    model = LeastSquares(products, penalty)
    unknown = np.zeros(features.shape, bool)
    hidden = np.random.default_rng(seed).permutation(6)[:n_unknown]
    unknown[:, hidden] = True
    filled, variance = model.filled(np.where(unknown, np.nan, features), unknown)
    known = np.setdiff1d(np.arange(6), hidden)
    # The conditional mean of the joint Gaussian is the least squares of the targets on the known features.
    alone = LeastSquares(Products.of(features[:, known], targets, weight), penalty[known])
    assert_allclose(model.predict(filled), alone.predict(features[:, known]), rtol=1e-7, atol=1e-9)
    # The variance is that of the conditional distribution of the unknown features, by the covariance itself.
    centred = features - np.average(features, axis=0, weights=weight)
    covariance = ((centred * weight[:, None]).T @ centred + np.diag(penalty)) / weight.sum()
    u, o = np.sort(hidden), known
    conditional = covariance[np.ix_(u, u)] - covariance[np.ix_(u, o)] @ np.linalg.solve(
        covariance[np.ix_(o, o)], covariance[np.ix_(o, u)]
    )
    beta = model.coefficients[u]
    assert_allclose(variance[0], np.diag(beta.T @ conditional @ beta), rtol=1e-7)


def test_known_rows_stay_as_they_are():
    features, targets, weight, penalty = table(1, 20, 3)
    model = LeastSquares(Products.of(features, targets, weight), penalty)
    filled, variance = model.filled(features, np.zeros(features.shape, bool))
    assert (filled == features).all()
    assert not variance.any()


@pytest.mark.parametrize("part", ["squares", "mixed", "targets"])
def test_sums_of_other_shapes_are_refused(part):
    features, targets, weight, _ = table(2, 10, 3)
    products = Products.of(features, targets, weight)
    with pytest.raises(ValueError, match="the sums of"):
        Products(**(vars(products) | {part: getattr(products, part)[1:]})).check()
