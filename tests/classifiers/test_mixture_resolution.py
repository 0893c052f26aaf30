"""Mixtures of recorded numbers: the resolution of a column bounds its variance; few whole numbers are categories."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.classifiers.mixture import best_of, numeric_codes
from posteriori.densities import MultivariateGaussian
from posteriori.densities.covariances import raised_to
from posteriori.learning.fit import FitResult
from posteriori.model_files import unpack
from posteriori.reading import read_table
from posteriori.statistics import Moments
from posteriori.statistics.resolution import few_whole_numbers, resolution
from posteriori.tables.batch import Numbers, split_by_component

KINDS = ["full", "diagonal", "spherical", "tied"]


def graded(seed, n=150, cells=0.0):
    """Return whole numbers of two columns, few of them distinct, and one column of continuous numbers."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(1, 4, n), rng.poisson(0.4, n), rng.normal(size=n)]).astype(float)
    return np.where(rng.random(X.shape) < cells, np.nan, X)


def variances(model):
    """Return the smallest variance of each component and column that is conditional on the other columns, (Z, d)."""
    spread = model.covariances_
    if spread.ndim == 3:
        return 1.0 / np.diagonal(np.linalg.inv(spread), axis1=1, axis2=2)
    return 1.0 / np.diagonal(np.linalg.inv(spread)) if model.covariance == "tied" else spread


# The resolution -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1.0, 7.0, 1e6]), st.sampled_from([0.0, -3.0, 1e9]))
def test_the_resolution_is_that_of_rounding_in_any_unit(seed, unit, offset):
    rng = np.random.default_rng(seed)
    whole = np.round(rng.normal(0, 5, (200, 2)))
    assert_allclose(resolution(whole), 1.0)
    scale = unit if offset < 1e8 else max(unit, 1e-3)
    assert_allclose(resolution(whole * scale + offset), scale, rtol=1e-3)
    repeated = whole[rng.integers(0, 200, 1000)]
    assert_array_equal(resolution(np.concatenate([whole, repeated])), resolution(whole))


def test_the_resolution_of_dense_or_constant_numbers_vanishes():
    x = np.random.default_rng(0).normal(size=(4000, 1))
    assert resolution(x)[0] < 0.01
    assert_array_equal(resolution(np.array([[3.0, np.nan, 1.0], [3.0, np.nan, np.nan]])), 0.0)
    assert_allclose(resolution(np.array([[0.3], [0.1 + 0.2], [0.1], [0.2]])), 0.1)  # two of them differ by rounding


def test_few_whole_numbers_are_told_from_others():
    n = np.arange(40.0)
    X = np.column_stack([n % 3, n % 10, n % 11, n % 2 / 2, np.full(40, 7.0), np.where(n % 2, np.nan, n % 4)])
    assert few_whole_numbers(X).tolist() == [True, True, False, False, False, True]
    table = pl.DataFrame({"a": n % 3, "b": n, "c": ["x", "y"] * 20, "d": [1, 2] * 20})
    assert numeric_codes(read_table(table)) == [0, 3]
    rare = np.append(np.tile(n[:3], 3000), 0.5)  # a sample of rows may not show it
    assert numeric_codes(read_table(pl.DataFrame({"a": rare, "b": np.arange(9001.0)}))) == []


def test_auto_takes_few_whole_numbers_for_categories():
    X = graded(0)
    auto = po.MixtureModel(2, columns=po.Columns(categorical_features="auto"), random_state=0).fit(X)
    named = po.MixtureModel(2, columns=po.Columns(categorical_features=[0, 1]), random_state=0).fit(X)
    assert [column.kind for column in auto.schema_.columns] == ["categorical", "categorical", "continuous"]
    assert_array_equal(auto.predict_proba(X), named.predict_proba(X))
    assert all(column.kind == "continuous" for column in po.MixtureModel(2).fit(X).schema_.columns)


# The bound ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_a_raised_covariance_is_the_likeliest_of_sufficient_size(seed, d):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, max(1, d - 1))) * rng.choice([0.01, 1.0, 3.0], size=(d, 1))
    S, least = A @ A.T, rng.uniform(0.01, 1.0, d)
    best = raised_to(S[np.newaxis], least)[0]

    def loss(covariance):
        return np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, S))

    assert np.linalg.eigvalsh(best - np.diag(least)).min() > -1e-9
    for size in (1e-4, 1e-2, 1.0):
        B = size * rng.normal(size=(d, d))
        gap = best - np.diag(least)
        other = np.diag(least) + (np.eye(d) + B) @ gap @ (np.eye(d) + B).T + size * np.outer(B[0], B[0])
        assert loss(other) >= loss(best) - 1e-9 * max(1.0, abs(loss(best)))


@pytest.mark.filterwarnings("ignore")
@given(
    seed=st.integers(0, 10**6),
    covariance=st.sampled_from(KINDS),
    cells=st.sampled_from([0.0, 0.2]),
    k=st.integers(1, 5),
)
def test_the_bound_holds_and_no_step_lowers_the_likelihood(seed, covariance, cells, k):
    X = graded(seed, cells=cells)
    model = po.MixtureModel(
        k,
        covariance=covariance,
        pseudo_rows=0.0,
        alpha=0.0,
        n_init=1,
        em=po.EM(max_iter=40, tol=0.0),
        random_state=seed,
    ).fit(X)
    trace = model.log_likelihood_trace_
    assert np.isfinite(trace).all()
    assert np.diff(trace).min(initial=0.0) >= -1e-8 * abs(trace[-1])
    spread = variances(model)
    whole = spread if covariance == "spherical" else spread[..., :2]
    assert whole.min() >= 1.0 / 12.0 * (1 - 1e-9)


@pytest.mark.filterwarnings("ignore:a covariance is singular")
@pytest.mark.parametrize("covariance", KINDS)
def test_equal_rows_make_no_spike(covariance):
    """More components of the same few values gain no more than the bound allows: log p(row) has a ceiling."""
    X = np.column_stack([np.repeat([1.0, 2.0, 3.0], 60), np.tile([0.0, 1.0, 2.0], 60)])
    peak = np.log(12 / (2 * np.pi))  # two columns, each with the density √(12/2π) at most
    for k in (3, 6, 9):
        model = po.MixtureModel(k, covariance=covariance, pseudo_rows=0.0, random_state=0).fit(X)
        assert model.score_samples(X).max() <= peak + 1e-9


@pytest.mark.parametrize("covariance", ["full", "diagonal", "tied"])
def test_units_and_offsets_change_no_responsibility(covariance):
    X = graded(1, 300)
    start = (X[:, 0] + (X[:, 2] > 0) > 2).astype(int)
    model = po.MixtureModel(2, covariance=covariance, start=start)
    plain = model.fit(X).predict_proba(X)
    for unit, offset in itertools.product((1.0, 1000.0), (0.0, 1e9)):
        moved = X * [unit, unit, 1.0] + offset * np.array([1.0, 1.0, 0.0])
        assert_allclose(model.fit(moved).predict_proba(moved), plain, atol=1e-6)


def test_the_bic_has_a_minimum_on_columns_of_few_values():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 600)
    grade = np.where(rng.random(600) < 0.8, 1 + 2 * z, 2)
    table = pl.DataFrame({"x": rng.normal(4.0 * z), "grade": grade, "children": rng.poisson(0.5, 600)})
    model = po.MixtureModel(random_state=0, columns=po.Columns(categorical_features="auto"))
    bic = [model.set_params(n_components=k).fit(table).bic(table) for k in range(1, 7)]
    assert np.argmin(bic) == 1


# Starts -------------------------------------------------------------------------------------------------------------


def test_starts_depend_on_distinct_rows_and_their_weight_only():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2)) + 3.0 * rng.integers(0, 3, 120)[:, np.newaxis]
    weight = rng.integers(0, 4, 120)
    many = rng.permutation(np.repeat(np.arange(120), weight))
    model = po.MixtureModel(3, random_state=0)
    weighted = model.fit(X, sample_weight=weight).predict_proba(X)
    assert_allclose(model.fit(X[many]).predict_proba(X), weighted, atol=1e-6)


@given(st.lists(st.lists(st.floats(-5, 0), min_size=1, max_size=40), min_size=1, max_size=12), st.integers(1, 60))
def test_halving_continues_runs_where_they_stopped(gains, max_steps):
    """A run is a list of gains; a model is its number and how many steps it has taken."""
    steps = [0] * len(gains)

    def climb(model, n):
        number, taken = model
        assert n >= 1
        stop = min(taken + n, len(gains[number]))
        steps[number] += stop - taken
        trace = tuple(np.cumsum(np.abs(gains[number]))[taken:stop])
        return FitResult((number, stop), None, trace, converged=stop == len(gains[number]))

    best = best_of([(number, 0) for number in range(len(gains))], climb, max_steps)
    number, taken = best.model
    assert len(best.trace) == taken == min(max_steps, len(gains[number]))
    assert_allclose(best.trace, np.cumsum(np.abs(gains[number]))[:taken])
    first = [np.cumsum(np.abs(one))[: min(8, max_steps)][-1] for one in gains]
    if len(gains) <= 3:
        assert first[number] == max(first)
    assert max(steps) <= max_steps


def test_expected_shares_are_those_of_components_one_by_one():
    X, rng = graded(4, 60, cells=0.3), np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), 60) * (rng.random((60, 3)) < 0.8)
    density = MultivariateGaussian()
    parameters = po.MixtureModel(3, random_state=0).fit(X).model_.parameters[0]
    at_once = density.expect_from_responsibilities(parameters, Numbers(X), shares)
    parts = [density.expect(parameters, *part)[0] for part in split_by_component(Numbers(X), shares)]
    summed = parts[0] + parts[1] + parts[2]
    for name in ("weight", "mean", "scatter"):
        assert_allclose(getattr(at_once, name), getattr(summed, name), rtol=1e-9, atol=1e-9)
    cells = Moments.from_responsibilities(Numbers(X), shares)
    assert_allclose(at_once.cells.scatter, cells.scatter)


def test_a_model_without_the_bound_in_its_file_is_read(tmp_path):
    """Files of earlier versions do not name the field."""
    read = unpack({"type": "Gaussian", "fields": {"smoothing": 1.0, "ddof": 0}}, {}, lambda content, arrays: None)
    assert read.least_variance == ()


@pytest.mark.parametrize("unit", [1e-140, 1e140])
def test_the_raised_covariance_scales_with_the_unit(unit):
    S, least = np.array([[[2.0, 1.0], [1.0, 0.5]]]), np.array([1e-3, 2e-3])
    assert_allclose(raised_to(S * unit**2, least * unit**2) / unit**2, raised_to(S, least), rtol=1e-12)
