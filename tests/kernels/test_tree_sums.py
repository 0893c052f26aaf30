"""Trees of categories with missing cells, against the sum over every completion."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from posteriori.densities import BackOff, Tree, TreeParameters
from posteriori.densities.tree_parameters import table_starts
from posteriori.tables.batch import Codes, Mixed, Numbers

LOGARITHMS = {"plain": [0.0], "zeros": [0.0, -np.inf], "extreme": [0.0, -30.0, -340.0, -700.0, -np.inf]}


def random_tables(rng, cardinalities, n_components, parents, kind):
    """Return parameters along trees (T, d), with tables that sum to 1."""
    widths, d = np.array(cardinalities) + 1, len(cardinalities)
    start, n_slots, _ = table_starts(np.zeros(d, np.bool_), widths, parents, n_components)
    table = np.zeros(n_slots)
    for z, tree in enumerate(np.broadcast_to(parents, start.shape)):
        for j, p in enumerate(tree):
            lines = widths[p] if p >= 0 else 1
            log_p = np.log(rng.dirichlet(np.ones(cardinalities[j]), lines))
            log_p += rng.choice(LOGARITHMS[kind], log_p.shape)
            log_p[np.isneginf(log_p).all(axis=1)] = 0.0
            block = table[start[z, j] : start[z, j] + lines * widths[j]].reshape(lines, widths[j])
            block[:, 1:] = log_p - logsumexp(log_p, axis=1, keepdims=True)
    nothing = np.empty(0), np.empty((0, 3))
    return TreeParameters((False,) * d, tuple(cardinalities), parents, np.zeros(parents.shape), start, table, *nothing)


def random_trees(rng, n_trees, d):
    """Return the parents of random forests, (T, d)."""
    parents = np.full((n_trees, d), -1)
    for tree in parents:
        order = rng.permutation(d)
        for place in range(1, d):
            tree[order[place]] = rng.choice([-1, *order[:place], *order[:place]])
    return parents


def log_density(parameters, codes):
    tile = Mixed(Numbers(np.empty((len(codes), 0))), Codes(codes, parameters.cardinalities), parameters.continuous)
    return Tree(BackOff(), one_tree=len(parameters.parents) == 1).log_density(parameters, tile)


def enumerated(parameters, row):
    """Return log Σ over all completions of p(x | z), (Z,)."""
    cells = [[x] if x else range(1, k + 1) for x, k in zip(row.tolist(), parameters.cardinalities, strict=True)]
    rows = np.array(list(itertools.product(*cells)), np.uint8)
    with np.errstate(divide="ignore"):
        return logsumexp(parameters.looked_up(rows).sum(axis=2), axis=0)


def rows_lost(parameters, codes):
    """Return the rows that products of probabilities leave to logarithms."""
    (tables,) = parameters.family_tables
    return tables.tree_log_density(codes)[1].tolist()


@pytest.mark.parametrize("kind", LOGARITHMS)
@pytest.mark.parametrize("n_trees", [1, 3])
@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=6), st.sampled_from([0.3, 0.7, 1.0]))
def test_missing_cells_are_summed_out(kind, n_trees, seed, cardinalities, missing):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, n_trees, len(cardinalities))
    parameters = random_tables(rng, cardinalities, 3, trees, kind)
    codes = rng.integers(1, np.array(cardinalities) + 1, (8, len(cardinalities))).astype(np.uint8)
    codes[rng.random(codes.shape) < missing] = 0
    expected = np.array([enumerated(parameters, row) for row in codes])
    assert_allclose(log_density(parameters, codes), expected, rtol=1e-12, atol=1e-12)
    if kind != "extreme" and n_trees == 1:
        assert not rows_lost(parameters, codes)


def test_many_small_factors_are_rescaled():
    """A missing parent of 600 children, each with probability near 1e-4: their product is below the smallest number."""
    d = 601
    parents = np.array([[-1, *[0] * (d - 1)]])
    parameters = random_tables(np.random.default_rng(0), (3, *[2] * (d - 1)), 2, parents, "plain")
    small = np.log(1e-4 * np.random.default_rng(1).uniform(1.0, 1.2, (2, d - 1, 3)))
    for z, j, a in np.ndindex(small.shape):
        parameters.table[parameters.start[z, j + 1] + (a + 1) * 3 + 1] = small[z, j, a]
    row = np.ones((1, d), np.uint8)
    row[0, 0] = 0
    expected = enumerated(parameters, row[0])
    assert (expected < -5000.0).all()
    assert_allclose(log_density(parameters, row)[0], expected, rtol=1e-12)
    assert not rows_lost(parameters, row)


def test_what_a_product_would_lose_is_left_to_logarithms():
    """One child makes a value of its missing parent improbable beyond the range of numbers, another all others."""
    parameters = random_tables(np.random.default_rng(0), (2, 2, 2), 2, np.array([[-1, 0, 0]]), "plain")
    for j, against in ((1, 1), (2, 2)):
        first = parameters.start[:, j] + against * 3 + 1
        parameters.table[first], parameters.table[first + 1] = -400.0 * j, 0.0
    codes = np.array([[0, 1, 1], [0, 2, 2], [0, 0, 1], [1, 1, 1]], np.uint8)
    expected = np.array([enumerated(parameters, row) for row in codes])
    assert (expected[0] < -390.0).all()
    assert_allclose(log_density(parameters, codes), expected, rtol=1e-12)
    assert rows_lost(parameters, codes) == [0, 2]


def test_a_row_without_probability_is_not_lost():
    parameters = random_tables(np.random.default_rng(0), (2, 2, 2), 2, np.array([[-1, 0, 0]]), "plain")
    for j, against in ((1, 1), (2, 2)):
        parameters.table[parameters.start[:1, j] + against * 3 + 1] = -np.inf
    row = np.array([[0, 1, 1]], np.uint8)
    found = log_density(parameters, row)[0]
    assert found[0] == -np.inf
    assert_allclose(found[1], enumerated(parameters, row[0])[1], rtol=1e-12)
    assert not rows_lost(parameters, row)
