"""Intervals of few rows, whose spread is an estimate, and scales of targets that move with an offset."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, t

import posteriori as po
from posteriori.regression.scales import Scale, scales_of
from posteriori.support.factors import student_cdf, student_to_normal


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize(("degrees", "off"), [(1.0, 0.0078), (2.0, 0.0018), (4.0, 0.0005), (30.0, 2e-5), (1e9, 1e-9)])
def test_the_deviate_of_wallace_is_as_near_as_said(degrees, off):
    x = np.linspace(-60.0, 60.0, 2401)
    assert np.abs(student_cdf(x, degrees) - t.cdf(x, degrees)).max() <= off


@pytest.mark.parametrize("degrees", [1.0, 3.0, 10.0, 1e6])
def test_the_quotient_of_quantiles_inverts_the_deviate(degrees):
    z = norm.ppf(0.95)
    assert_allclose(student_cdf(np.array([z * student_to_normal(degrees)]), degrees), 0.95, rtol=1e-12)


@pytest.mark.parametrize("n", [5, 10, 15])
@pytest.mark.parametrize(
    ("model", "tables"), [(po.AdditiveRegressor(), 40), (po.KernelRegressor(), 40), (po.GenerativeRegressor(), 40)]
)
def test_intervals_of_few_rows_hold_new_ones(model, tables, n):
    """Least squares with Student's t holds .9; with σ as if it were known, .68 of 5 rows."""
    held = []
    for seed in range(tables):
        low, high = model.fit(*drawn(n, seed)).predict_interval((new := drawn(300, 1000 + seed))[0], 0.9).T
        held.append(np.mean((low <= new[1]) & (new[1] <= high)))
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("offset", [16.0, 1024.0, 2.0**20, -5.0])
def test_scales_that_are_chosen_move_with_an_offset(offset):
    y = np.round(np.random.default_rng(0).lognormal(size=200) * 2.0**20) / 2.0**20
    weight = np.ones(200)
    for one, moved in zip(scales_of(y, weight), scales_of(y + offset, weight), strict=True):
        assert one.name == moved.name
        assert_allclose(moved.forward(y + offset), one.forward(y), rtol=1e-8, atol=1e-8)


def test_the_logarithm_of_skew_numbers_is_symmetric():
    y = np.random.default_rng(0).lognormal(size=500) + 40.0
    scale = Scale.symmetric_log(y, np.ones(500))
    skewness = lambda values: np.mean((values - values.mean()) ** 3) / values.std() ** 3  # noqa: E731
    assert skewness(y) > 2.0
    assert abs(skewness(scale.forward(y))) < 1e-6
    assert Scale.symmetric_log(-y, np.ones(500)) is None


@pytest.mark.parametrize("offset", [16.0, 2.0**20])
def test_predictions_move_with_an_offset(offset):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    y = np.round((X[:, 0] + rng.normal(size=120)) * 2.0**10) / 2.0**10 - 50.0
    for make in (po.AdditiveRegressor, po.GenerativeRegressor):
        at_first, moved = (make(random_state=0).fit(X, y + one).predict(X) - one for one in (0.0, -offset))
        assert_allclose(moved, at_first, atol=1e-4 * np.ptp(y))


def test_rows_without_target_do_not_count_among_the_fewest():
    y = np.array([1.0, 2.0, *[np.nan] * 8])
    with pytest.warns(UserWarning, match="8 of 10 rows have no label"), pytest.raises(ValueError, match="n_samples=2"):
        po.AdditiveRegressor().fit(np.arange(10.0)[:, np.newaxis], y)
