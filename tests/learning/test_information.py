"""Mutual information against sums over all cells, scipy's integration, and the laws of information."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.densities import (
    BaseDensity,
    Categorical,
    CategoricalParameters,
    Gaussian,
    GaussianParameters,
    Poisson,
    PoissonParameters,
)
from posteriori.learning.importance import mutual_information
from posteriori.model import Block, GenerativeModel
from posteriori.tables import Column, Schema


def numeric_model(prior, density, parameters, d=1):
    schema = Schema(tuple(Column(f"x{j}", "continuous") for j in range(d)))
    return GenerativeModel(schema, (Block(density, tuple(range(d))),), log_of(prior), (parameters,))


def gaussian_model(prior, mean, sd):
    mean, sd = (np.array(value, float).reshape(len(prior), -1) for value in (mean, sd))
    return numeric_model(prior, Gaussian(), GaussianParameters(mean, sd**2), mean.shape[1])


def poisson_model(prior, rate):
    rate = np.array(rate, float).reshape(len(prior), -1)
    return numeric_model(prior, Poisson(), PoissonParameters(rate), rate.shape[1])


def categorical_model(prior, tables):
    """Build a model from p(x_j | z), a (Z, K) array a column."""
    schema = Schema(
        tuple(
            Column(f"x{j}", "categorical", tuple(f"k{k}" for k in range(len(table[0]))))
            for j, table in enumerate(tables)
        )
    )
    slots = [np.column_stack([np.zeros(len(prior)), log_of(table)]) for table in tables]
    parameters = CategoricalParameters(tuple(len(table[0]) for table in tables), np.concatenate(slots, axis=1))
    return GenerativeModel(schema, (Block(Categorical(), tuple(range(len(tables)))),), log_of(prior), (parameters,))


def log_of(probability):
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probability, float))


def entropy(prior):
    return scipy.stats.entropy(np.asarray(prior, float))


def brute_force(joint):
    """Return Σ p(x, z) log p(x, z) / (p(x) p(z)) of a table of p(z, x)."""
    x, z = joint.sum(axis=0), joint.sum(axis=1)
    return sum(joint[i, k] * np.log(joint[i, k] / (z[i] * x[k])) for i, k in np.ndindex(joint.shape) if joint[i, k] > 0)


def by_scipy(prior, density, edges):
    """Integrate Σ_z p_z p(x|z) log p(x|z)/p(x) piece by piece; density(x) returns p(x | z) of every z."""
    prior = np.asarray(prior, float)

    def integrand(x):
        p = density(x)
        mixture = prior @ p
        return sum(w * q * np.log(q / mixture) for w, q in zip(prior, p, strict=True) if w * q > 0)

    pieces = itertools.pairwise(edges)
    return sum(scipy.integrate.quad(integrand, a, b, epsabs=1e-11, limit=200)[0] for a, b in pieces)


# Categories -------------------------------------------------------------------------------------


@given(st.data())
def test_categories_equal_the_sum_over_all_cells(data):
    n_classes, n_categories = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    cell = st.integers(0, 20)
    rows = st.lists(cell, min_size=n_categories, max_size=n_categories).filter(any)
    table = np.array(data.draw(st.lists(rows, min_size=n_classes, max_size=n_classes)), float)
    table /= table.sum(axis=1, keepdims=True)
    prior = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n_classes, max_size=n_classes).filter(any)), float)
    prior /= prior.sum()
    found = mutual_information(categorical_model(prior, [table]))
    assert_allclose(found, brute_force(prior[:, np.newaxis] * table), atol=1e-12)


def test_columns_of_unlike_sizes_do_not_disturb_each_other():
    prior = [0.3, 0.7]
    tables = [
        np.array([[1.0], [1.0]]),
        np.array([[0.9, 0.1], [0.2, 0.8]]),
        np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]]),
    ]
    expected = [brute_force(np.array(prior)[:, np.newaxis] * table) for table in tables]
    assert_allclose(mutual_information(categorical_model(prior, tables)), expected, atol=1e-14)


def test_a_feature_that_reveals_the_class_has_its_entropy():
    prior = [0.2, 0.3, 0.5]
    assert_allclose(mutual_information(categorical_model(prior, [np.eye(3)])), entropy(prior))
    assert_allclose(mutual_information(gaussian_model(prior, [0, 100, 200], [1, 2, 3])), entropy(prior))
    assert_allclose(mutual_information(poisson_model(prior, [0, 500, 5000])), entropy(prior))


# Numbers ----------------------------------------------------------------------------------------

MIXTURES = [
    ([0.5, 0.5], [0, 1], [1, 1]),
    ([0.1, 0.9], [0, 0], [1, 4]),
    ([0.2, 0.3, 0.5], [0, 3, 3.5], [1, 0.2, 2]),
    ([0.5, 0.5], [0, 0], [1, 1e-3]),
    ([0.3, 0.7], [1e6, 1e6 + 1], [1, 2]),
    ([0.001, 0.999], [0, 6], [1, 1]),
]


@pytest.mark.parametrize(("prior", "mean", "sd"), MIXTURES)
def test_gaussians_equal_scipys_integral(prior, mean, sd):
    mean, sd = np.array(mean, float), np.array(sd, float)
    edges = np.unique(np.concatenate([mean + k * sd for k in np.arange(-14, 14.5, 0.5)]))
    expected = by_scipy(prior, lambda x: scipy.stats.norm.pdf(x, mean, sd), edges)
    assert_allclose(mutual_information(gaussian_model(prior, mean, sd)), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("prior", "rate"),
    [
        ([0.5, 0.5], [1.0, 2.0]),
        ([0.5, 0.5], [1e-4, 3.0]),
        ([0.2, 0.3, 0.5], [0.1, 20.0, 21.0]),
        ([0.4, 0.6], [900.0, 1000.0]),
        ([0.4, 0.6], [0.0, 0.7]),
    ],
)
def test_poissons_equal_the_sum_over_whole_numbers(prior, rate):
    events = np.arange(3000)
    joint = np.array(prior)[:, np.newaxis] * scipy.stats.poisson.pmf(events, np.array(rate)[:, np.newaxis])
    found = mutual_information(poisson_model(prior, rate))
    assert_allclose(found, brute_force(joint[:, joint.any(axis=0)]), atol=1e-10)


def test_large_rates_are_summed_in_strides():
    prior, rate = np.array([0.3, 0.7]), np.array([1e5, 1e5 + 300])
    events = np.arange(95_000, 106_000)
    joint = prior[:, np.newaxis] * scipy.stats.poisson.pmf(events, rate[:, np.newaxis])
    log_ratio = np.log(joint / prior[:, np.newaxis]) - np.log(joint.sum(axis=0))
    expected = (joint * log_ratio).sum()
    assert_allclose(mutual_information(poisson_model(prior, rate)), expected, atol=1e-4)


@dataclass(frozen=True)
class Exponential(BaseDensity):
    """p(x | z) = rate_z exp(−rate_z x), x ≥ 0: a density that information.py does not know."""

    name = "exponential"
    kind = "continuous"
    has_full_support = False
    support = "a number, 0 or more"

    def out_of_support(self, tile):
        return tile.values < 0

    def log_density(self, rate, tile):
        return (np.log(rate) - rate * tile.values[:, np.newaxis, :]).sum(axis=2)

    def sample(self, rate, component, rng):
        return rng.exponential(1.0 / rate[component])


def test_any_density_of_numbers_will_do():
    prior, rate = [0.4, 0.6], np.array([[1.0], [7.0]])
    expected = by_scipy(prior, lambda x: scipy.stats.expon.pdf(x, scale=1 / rate[:, 0]), np.linspace(0, 40, 81))
    assert_allclose(mutual_information(numeric_model(prior, Exponential(), rate)), expected, atol=1e-8)


# Laws -------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 9), st.floats(-5, 5), st.floats(0.01, 5)), min_size=1, max_size=4),
    st.floats(1e-6, 1e6),
    st.floats(-1e3, 1e3),
)
def test_information_lies_between_0_and_entropy_and_has_no_unit(components, scale, shift):
    weight, mean, sd = (np.array(column, float) for column in zip(*components, strict=True))
    prior = weight / weight.sum()
    found = mutual_information(gaussian_model(prior, mean, sd))
    assert 0.0 <= found[0] <= entropy(prior) + 1e-12
    moved = mutual_information(gaussian_model(prior, scale * (mean + shift), scale * sd))
    assert_allclose(moved, found, atol=1e-7)


def test_like_components_give_no_information():
    assert_allclose(mutual_information(gaussian_model([0.5, 0.5], [1, 1], [2, 2])), 0.0, atol=1e-12)
    assert_allclose(mutual_information(poisson_model([0.5, 0.5], [3, 3])), 0.0, atol=1e-12)


def test_a_class_that_never_occurs_gives_no_information():
    found = mutual_information(gaussian_model([0.5, 0.5, 0.0], [0, 1, 50], [1, 1, 1]))
    assert_allclose(found, mutual_information(gaussian_model([0.5, 0.5], [0, 1], [1, 1])), atol=1e-9)


def test_columns_are_computed_each_for_itself_whatever_the_chunk(monkeypatch):
    from posteriori.learning import importance as information

    rng = np.random.default_rng(0)
    prior, mean, sd = [0.25] * 4, rng.normal(size=(4, 3)), rng.uniform(0.1, 2, size=(4, 3))
    together = mutual_information(gaussian_model(prior, mean, sd))
    alone = [mutual_information(gaussian_model(prior, mean[:, j], sd[:, j]))[0] for j in range(3)]
    assert_allclose(together, alone, atol=1e-8)
    monkeypatch.setattr(information, "_MOST_CELLS", 100)
    assert_allclose(mutual_information(gaussian_model(prior, mean, sd)), together, rtol=1e-12)


def test_it_is_the_same_every_time():
    model = gaussian_model([0.5, 0.5], [0, 1], [1, 3])
    assert mutual_information(model).tolist() == mutual_information(model).tolist()


def test_a_model_of_mixed_columns_reports_in_schema_order():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    X = np.empty((400, 4), object)
    X[:, 0] = np.where(rng.random(400) < 0.9, y, 1 - y).astype(str)
    X[:, 1] = rng.normal(size=400)
    X[:, 2] = rng.poisson(1 + 5 * y).astype(float)
    X[:, 3] = rng.choice(["a", "b"], 400)
    model = po.NaiveBayes(distributions={2: "poisson"}).fit(X, y).model_
    found = mutual_information(model)
    assert found[2] > found[0] > 0.2
    assert max(found[1], found[3]) < 0.02


def test_a_column_without_any_value_gives_no_information():
    X = np.column_stack([[1.0, 2.0, 5.0, 6.0], [np.nan] * 4])
    with pytest.warns(UserWarning, match="no cell with a value"):
        model = po.NaiveBayes().fit(X, [0, 0, 1, 1]).model_
    found = mutual_information(model)
    assert found[0] > 0.5
    assert_allclose(found[1], 0.0, atol=1e-12)
