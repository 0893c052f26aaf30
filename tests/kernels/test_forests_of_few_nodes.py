"""The NumPy form of the parameters of forests gives the numbers of the compiled loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.kernels.loops import few_rows, forests
from posteriori.statistics.counts import slot_offsets


@pytest.fixture(scope="module", params=["mixed", "best"])
def forest(request):
    rng = np.random.default_rng(0)
    n = 400
    X = {f"x{j}": rng.normal(size=n) for j in range(3)} | {f"c{j}": rng.choice(list("abcde"), n) for j in range(3)}
    y = np.where(X["x0"] + (X["c1"] == "a") > 0.5, "p", np.where(X["x1"] > 1, "q", "r"))
    rows = [dict(zip(X, cells, strict=True)) for cells in zip(*X.values(), strict=True)]
    import polars as pl

    model = po.GenerativeForest(splits=request.param, random_state=0).fit(pl.DataFrame(rows), y)
    return model.model_.parameters[0]


def test_weights_of_edges(forest):
    trees, counts = forest.trees, forest.counts
    results = []
    for weigh in (forests.weigh_edges.compiled, few_rows.weigh_edges):
        n = len(trees.nodes)
        weight, share, log_edge = np.empty((n, 3)), np.full(n, 0.5), np.zeros(n)
        starts = slot_offsets(counts.singles.cardinalities)
        weigh(
            counts.leaves,
            trees.nodes,
            trees.roots,
            trees.sides,
            trees.ordered,
            forest.mass,
            starts,
            weight,
            share,
            log_edge,
        )
        results.append((weight, share, log_edge))
    for loop, light in zip(*results, strict=True):
        assert_allclose(light, loop, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("weigh", [forests.weigh_edges.compiled, few_rows.weigh_edges])
@pytest.mark.parametrize(("sides", "share"), [((2, 2), 0.0), ((1, 1), 1.0), ((0, 0), 0.75), ((0, 2), 0.0)])
def test_a_side_without_codes_has_no_share(weigh, sides, share):
    # one split of two categories into leaves of two classes, of which 2.5 + 0.5 of 3 + 1 rows are at the left
    nodes = np.array([[0, 0, 1], [-1, 0, 0], [-1, 0, 1]], np.int32)
    counts, mass = np.array([[1.0, 1.5], [0.5, 0.0]]), np.array([0.0, 0.25, 0.75])
    weight, shares, log_edge = np.empty((3, 2)), np.full(3, 0.5), np.zeros(3)
    roots, starts = np.array([0, 3]), np.array([0, 3])
    ways = np.array([0, *sides], np.uint8)
    weigh(counts, nodes, roots, ways, np.zeros(1, np.bool_), mass, starts, weight, shares, log_edge)
    assert np.isfinite(np.log(shares)).all()
    assert np.isfinite(np.log1p(-shares)).all()
    assert_allclose(shares[0], share, atol=1e-15)
    assert_array_equal(log_edge, 0.0)


@pytest.mark.parametrize("leaves_only", [False, True])
@pytest.mark.parametrize("is_changed", [False, True])
def test_class_distributions_of_nodes(forest, leaves_only, is_changed):
    trees = forest.trees
    weight = trees.weights(forest.counts.leaves)
    change = np.random.default_rng(0).normal(size=forest.counts.leaves.shape).astype(np.float32)
    change = change if is_changed else np.empty((0, 0), np.float32)
    results = []
    for smooth in (forests.smooth_nodes.compiled, few_rows.smooth_nodes):
        given_node, of_tree = np.zeros(weight.shape), np.empty((trees.n_trees, 3))
        strengths = np.array([[0.5, 1.0, 2.0, 5.0], [3.0, 2.0, 1.0, 0.25]])
        smooth(
            weight,
            trees.nodes,
            trees.roots,
            forest.share,
            strengths,
            forest.prior,
            change,
            leaves_only,
            given_node,
            of_tree,
        )
        results.append((given_node, of_tree))
    for loop, light in zip(*results, strict=True):
        assert_allclose(light, loop, rtol=1e-13, atol=1e-14)


def test_a_tree_of_one_leaf():
    nodes, roots = np.array([[-1, 0, 0]], np.int32), np.array([0, 1])
    weight, share, log_edge = np.empty((1, 2)), np.full(1, 0.5), np.zeros(1)
    counts, none = np.array([[3.0, 1.0]]), np.empty(0, np.uint8)
    few_rows.weigh_edges(
        counts, nodes, roots, none, np.zeros(1, bool), np.ones(3), np.array([0, 3]), weight, share, log_edge
    )
    assert_array_equal(weight, counts)
    given_node, of_tree = np.empty((1, 2)), np.empty((1, 2))
    strengths, prior = np.ones((2, 1)), np.array([0.5, 0.5])
    few_rows.smooth_nodes(weight, nodes, roots, share, strengths, prior, np.empty((0, 0)), False, given_node, of_tree)
    assert_allclose(of_tree, [[0.7, 0.3]])
    assert_allclose(given_node, 0.0)
