"""Gaussians whose parameters are integrated out: against SciPy, integration, marginal likelihoods and their limit."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori import kernels
from posteriori.densities import Gaussian, MultivariateGaussian
from posteriori.densities.covariances import Chain, PerClass, Pooled, PseudoRows, Regularized, ShrinkToDiagonal
from posteriori.densities.gaussian import log_peaks, log_tails, truncated_t
from posteriori.densities.within_ranges import Box, draw_within
from posteriori.statistics import Moments, Scatter
from posteriori.tables import Assignment, Numbers

Z = 3
POOLINGS = [PerClass(), Pooled(), Regularized(0.3), PseudoRows(4.0)]


def rows_of(n, d=3, missing=0.0, offset=0.0, seed=0):
    """Return n rows in Z components with correlated columns, and their components."""
    rng = np.random.default_rng(seed)
    z = (np.arange(n) % Z).astype(np.int32)
    values = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5) + z[:, np.newaxis] + offset
    values[rng.random(values.shape) < missing] = np.nan
    return Numbers(values), Assignment(z, np.ones(n), Z)


def fitted(density, *args, **options):
    tile, assignment = rows_of(*args, **options)
    return density.estimate(density.sufficient_statistics.of(tile, assignment)), tile


@given(st.floats(0.1, 1e4), st.integers(0, 9))
def test_the_peak_is_a_ratio_of_gamma_functions(degrees, p):
    gamma = scipy.special.gammaln
    expected = gamma((degrees + p) / 2) - gamma(degrees / 2) - p / 2 * np.log(degrees * np.pi)
    assert_allclose(log_peaks(np.array(degrees), 9)[p], expected, atol=1e-9)


def test_infinite_degrees_of_freedom_give_a_gaussian():
    degrees = np.array([1e13, np.inf])
    assert_allclose(log_peaks(degrees, 4)[4], scipy.stats.multivariate_normal(np.zeros(4)).logpdf(np.zeros(4)))
    assert_allclose(log_tails(np.array(9.0), 4, degrees[0]), -4.5)


@pytest.mark.parametrize("n", [4, 30])
def test_a_column_is_integrated_over_its_mean_and_variance(n):
    (tile, assignment), smoothing = rows_of(n, d=1), 2.0
    parameters = Gaussian(smoothing, predictive=True).estimate(Moments.of(tile, assignment))
    groups = [tile.values[assignment.component == z, 0] for z in range(Z)]
    pooled = sum(((g - g.mean()) ** 2).sum() for g in groups) / n
    for z, g in enumerate(groups):

        def of_variance(log_variance, x, g=g):
            # Given the variance, the flat prior of the mean leaves the predictive N(x; mean, (1 + 1/n)·variance).
            v = np.exp(log_variance)
            scatter = ((g - g.mean()) ** 2).sum()
            posterior = -0.5 * (scatter + smoothing * pooled) / v - 0.5 * (len(g) - 1 + smoothing) * log_variance
            spread = v * (1 + 1 / len(g))
            new = 1.0 if x is None else np.exp(-0.5 * (x - g.mean()) ** 2 / spread) / np.sqrt(2 * np.pi * spread)
            return np.exp(posterior) * new

        for x in (-4.0, 0.3, 9.0):
            above, below = (scipy.integrate.quad(of_variance, -12, 12, args=(at,), epsabs=0.0)[0] for at in (x, None))
            mine = Gaussian().log_density(parameters, Numbers(np.array([[x]])))[0, z]
            assert_allclose(mine, np.log(above / below), rtol=1e-6)


def test_a_column_against_scipy():
    parameters, tile = fitted(Gaussian(predictive=True), 20, missing=0.2)
    t = scipy.stats.t(parameters.degrees, parameters.mean, np.sqrt(parameters.variance))
    expected = np.nan_to_num(t.logpdf(tile.values[:, np.newaxis, :]))
    assert_allclose(Gaussian().log_factors(parameters, tile), expected, rtol=1e-9, atol=1e-12)
    many = Numbers(np.tile(tile.values, (60, 1)))  # so many rows that the loop is compiled
    assert_allclose(Gaussian().log_density(parameters, many)[:20], expected.sum(axis=2), rtol=1e-9)
    assert_allclose(Gaussian().log_density(parameters, tile), expected.sum(axis=2), rtol=1e-9)


@pytest.mark.parametrize("pooling", POOLINGS, ids=repr)
def test_the_block_and_its_marginals_against_scipy(pooling):
    density = MultivariateGaussian(pooling, Chain((ShrinkToDiagonal(0.1),)), predictive=True)
    parameters, _ = fitted(density, 18)
    tile, _ = rows_of(18, missing=0.3, seed=1)
    mine = density.log_density(parameters, tile)
    for z in range(Z):
        scale = parameters.spread[z] * parameters.covariance[parameters.groups[z]]
        for row, of_row in zip(tile.values, mine[:, z], strict=True):
            o = np.flatnonzero(~np.isnan(row))
            t = scipy.stats.multivariate_t(parameters.mean[z, o], scale[np.ix_(o, o)], parameters.degrees[z])
            assert_allclose(of_row, t.logpdf(row[o]) if len(o) else 0.0, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 9, 40])
@pytest.mark.parametrize("pooling", [Pooled(), PerClass()], ids=repr)
def test_the_block_is_the_ratio_of_marginal_likelihoods(n, pooling):
    """p(x | rows) = p(rows and x) / p(rows), each an integral over the means and the covariance (Murphy 2007, § 9)."""
    rng = np.random.default_rng(n)
    x, new, d = rng.normal(size=(n, 4)), rng.normal(size=4), 4
    psi = np.diag(((x - x.mean(axis=0)) ** 2).mean(axis=0))
    if not pooling.shared:
        psi = (n * np.cov(x.T, ddof=0) + (d + 1) * psi) / (n + 1)

    def log_marginal(rows):
        m, degrees = len(rows), d + len(rows)  # d + 1 of the prior, and one less for the mean
        scatter = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) + (d + 1) * psi
        gamma = scipy.special.multigammaln(degrees / 2, d)
        return gamma - degrees / 2 * np.linalg.slogdet(scatter)[1] - d / 2 * (np.log(m) + m * np.log(np.pi))

    one = Assignment(np.zeros(n, np.int32), np.ones(n), 1)
    density = MultivariateGaussian(pooling, predictive=True)
    parameters = density.estimate(Scatter.of(Numbers(x), one))
    expected = log_marginal(np.vstack([x, new])) - log_marginal(x)
    assert_allclose(density.log_density(parameters, Numbers(new[np.newaxis]))[0, 0], expected, rtol=1e-9)


@pytest.mark.parametrize(
    "density", [Gaussian(), Gaussian(np.inf), *(MultivariateGaussian(pooling) for pooling in POOLINGS)], ids=repr
)
def test_many_rows_give_the_estimate(density):
    tile, assignment = rows_of(300)
    many = Assignment(assignment.component, np.full(300, 1e7), Z)
    statistics = density.sufficient_statistics.of(tile, many)
    predictive = replace(density, predictive=True)
    estimated, integrated = density.estimate(statistics), predictive.estimate(statistics)
    assert_allclose(predictive.log_density(integrated, tile), density.log_density(estimated, tile), atol=1e-6)


@pytest.mark.parametrize("density", [Gaussian(predictive=True), MultivariateGaussian(predictive=True)], ids=repr)
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_neither_a_unit_nor_an_offset_changes_the_log_odds(density, scale):
    parameters, tile = fitted(density, 12)
    moved, values = fitted(density, 12, offset=1e9)
    odds = np.diff(density.log_density(parameters, tile), axis=1)
    assert_allclose(np.diff(density.log_density(moved, values), axis=1), odds, atol=1e-5)
    _, assignment = rows_of(12)
    scaled = Numbers(tile.values * np.array([scale, 1.0, 1.0]))
    other = density.estimate(density.sufficient_statistics.of(scaled, assignment))
    assert_allclose(np.diff(density.log_density(other, scaled), axis=1), odds, atol=1e-6)


@pytest.mark.parametrize("density", [Gaussian(predictive=True), MultivariateGaussian(predictive=True)], ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_any_number_of_rows_gives_a_proper_density(density, n):
    parameters, _ = fitted(density, n)
    far = Numbers(np.array([[1e100, -1e100, 0.0], [0.0, 0.0, 0.0]]))
    assert np.isfinite(density.log_density(parameters, far)).all()
    assert np.isfinite(density.log_factors(parameters, far)).all()


def test_few_rows_are_less_sure_than_the_estimate():
    sure, tile = fitted(MultivariateGaussian(), 15)
    unsure, _ = fitted(MultivariateGaussian(predictive=True), 15)
    odds = [
        np.abs(np.diff(MultivariateGaussian().log_density(p, Numbers(tile.values * 9)), axis=1)) for p in (sure, unsure)
    ]
    assert (odds[1] < odds[0]).mean() > 0.9


@pytest.mark.parametrize("pooling", POOLINGS, ids=repr)
def test_conditionals_and_single_columns_are_those_of_the_joint(pooling):
    density = MultivariateGaussian(pooling, predictive=True)
    parameters, _ = fitted(density, 20)
    tile, _ = rows_of(20, missing=0.3, seed=2)
    for j, without in enumerate(density.without_each(parameters, tile)):
        blank = tile.values.copy()
        blank[:, j] = np.nan
        assert_allclose(without, density.log_density(parameters, Numbers(blank)), atol=1e-9)
        alone = np.full(tile.values.shape, np.nan)
        alone[:, j] = tile.values[:, j]
        margin = density.log_density_of_column(parameters, j, tile.values[:, j])
        assert_allclose(margin, density.log_density(parameters, Numbers(alone)), atol=1e-9)


def test_rows_drawn_have_the_distances_of_a_t():
    density = MultivariateGaussian(Pooled(), predictive=True)
    parameters, _ = fitted(density, 9)
    drawn = density.sample(parameters, np.full(20_000, 1), np.random.default_rng(0))
    scaled = density.mahalanobis(parameters, Numbers(drawn))[:, 1] ** 2 / parameters.spread[1] / 3
    assert scipy.stats.kstest(scaled, scipy.stats.f(3, parameters.degrees[1]).cdf).pvalue > 1e-3
    column = Gaussian(predictive=True)
    alone, _ = fitted(column, 9)
    drawn = column.sample(alone, np.full(20_000, 2), np.random.default_rng(0))[:, 0]
    t = scipy.stats.t(alone.degrees[2, 0], alone.mean[2, 0], np.sqrt(alone.variance[2, 0]))
    assert scipy.stats.kstest(drawn, t.cdf).pvalue > 1e-3


def test_rows_drawn_within_ranges_stay_within():
    density = MultivariateGaussian(predictive=True)
    parameters, _ = fitted(density, 12)
    box = Box(np.array([3.0, -np.inf, 0.0]), np.array([3.2, 0.0, 9.0]), np.array([False, False, True]))
    drawn = draw_within(density, parameters, np.zeros(400, np.int32), np.random.default_rng(0), box)
    assert not box.out_of_support(drawn).any()
    t, n = scipy.stats.t(4), 4000
    cells = truncated_t(4.0, np.zeros(n), np.ones(n), 2.0, 3.0, np.random.default_rng(0))
    between = (t.cdf(cells) - t.cdf(2.0)) / (t.cdf(3.0) - t.cdf(2.0))
    assert scipy.stats.kstest(between, "uniform").pvalue > 1e-3


def test_columns_that_share_a_logarithm_have_the_density_of_each():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 60)) * 10.0 ** rng.choice([0, 0, 3, 60, 140], (40, 60))
    values[rng.random(values.shape) < 0.1] = np.nan
    degrees = rng.choice([1.0, 7.5, 7.5, 900.0, 1e6], (3, 60))
    mean, precision = rng.normal(size=(3, 60)), rng.uniform(0.5, 2.0, (3, 60))
    expected = scipy.stats.t.logpdf(values[:, np.newaxis], degrees, mean, precision**-0.5)
    peak = scipy.stats.t.logpdf(0.0, degrees) + 0.5 * np.log(precision)
    found = np.zeros((40, 3))
    kernels.add_student(values, mean, precision, peak, degrees, found)
    assert_allclose(found, np.nansum(expected, axis=2), rtol=1e-11)
