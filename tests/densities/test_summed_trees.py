"""Sums of trees: splits and steps by hand, missing cells by both sides, and what the columns contribute."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori import kernels
from posteriori.densities import SummedTrees, summed_trees
from posteriori.densities.refinement import finish
from posteriori.statistics.forests import CodedRows
from posteriori.tables import Assignment, Codes
from tests.densities.test_random_trees import CARDINALITIES, Z, draw_rows, every_row

ORDERED = np.array([False, True, False])


def grown(tile, labels, n_trees=8, start=None, **options):
    density = SummedTrees((1,), n_trees, **options)
    rows = CodedRows.of(tile, labels)
    if start is None:
        refined, _ = finish(density.refine(rows), lambda factory: factory.of(tile, labels))
    else:
        refined, _ = density.grown(density.deal(rows), start)
    return refined, refined.estimate(None)


def leaf_of(trees, t, row):
    """Return the node of the leaf of a complete row in a tree."""
    node = int(trees.roots[t])
    while trees.nodes[node, 0] >= 0:
        j, cut, child = trees.nodes[node].tolist()
        left = row[j] <= cut if trees.ordered[j] else trees.sides[cut + row[j]] == 1
        node = child if left else child + 1
    return node


def value_of(parameters, node, row):
    """Return the mean of the leaves that a row reaches, (Z,), by recursion."""
    trees = parameters.trees
    j, cut, child = trees.nodes[node].tolist()
    if j < 0:
        return trees.change[child].astype(float)
    side = (1 if row[j] <= cut else 2) if trees.ordered[j] else int(trees.sides[cut + row[j]])
    if row[j] == 0 or side == 0:
        share = trees.share[node]
        return share * value_of(parameters, child, row) + (1 - share) * value_of(parameters, child + 1, row)
    return value_of(parameters, child + side - 1, row)


def test_scores_are_sums_of_the_leaves_that_a_row_reaches():
    density, parameters = grown(*draw_rows())
    tile = every_row(with_missing=True)
    trees = parameters.trees
    nothing = np.zeros(len(CARDINALITIES), int)
    for row, scores in zip(tile.values, density.log_density(parameters, tile), strict=True):
        roots = trees.roots[:-1].tolist()
        f = sum(value_of(parameters, root, row) - value_of(parameters, root, nothing) for root in roots)
        assert_allclose(scores, f - f[0], atol=1e-9)


def test_nothing_known_changes_nothing():
    density, parameters = grown(*draw_rows())
    nothing = Codes(np.zeros((1, len(CARDINALITIES)), np.uint8), CARDINALITIES)
    assert_allclose(density.log_density(parameters, nothing), 0.0, atol=1e-12)


def test_contributions_of_columns_add_up_to_the_scores():
    density, parameters = grown(*draw_rows())
    tile = every_row(with_missing=True)
    total = density.log_factors(parameters, tile).sum(axis=2)
    assert_allclose(total - total[:, :1], density.log_density(parameters, tile), atol=1e-9)
    assert not density.log_factors(parameters, tile)[:, :, 0][tile.values[:, 0] == 0].any()


def gradient_and_hessian(p, component, weight, direction):
    along = p @ direction - direction[component]
    return weight * along, weight * (p * (1 - p)).sum(axis=1) / (p.shape[1] - 1)


def test_gradients_are_those_of_the_log_loss():
    rng = np.random.default_rng(0)
    log_p, direction = rng.normal(size=(20, Z)), rng.normal(size=Z)
    component, weight = rng.integers(0, Z, 20).astype(np.int32), rng.random(20)
    p, gradient, hessian = np.empty((20, Z)), np.empty(20), np.empty(20)
    kernels.take_gradients(log_p, component, weight, direction, p, gradient, hessian)
    assert_allclose(p, np.exp(log_p) / np.exp(log_p).sum(axis=1, keepdims=True))

    def loss(step):
        moved = log_p + step * direction
        return weight * (np.log(np.exp(moved).sum(axis=1)) - moved[np.arange(20), component])

    assert_allclose(gradient, (loss(1e-6) - loss(-1e-6)) / 2e-6, atol=1e-6)
    assert_allclose(hessian, gradient_and_hessian(p, component, weight, direction)[1])


@pytest.mark.parametrize("seed", range(5))
def test_the_first_split_has_the_greatest_gain_of_all(seed):
    tile, _ = draw_rows(200, seed, missing=0.0)
    rng = np.random.default_rng(seed)
    gradient, hessian = rng.normal(size=200), rng.random(200)
    columns, starts = np.arange(3), np.concatenate([[0], np.cumsum(np.array(CARDINALITIES) + 1)])
    limits = 2, 5.0, 1.0, 10.0
    rows = np.arange(200, dtype=np.int32)
    nodes, share, sides, ends = kernels.grow_summand(
        tile.values, rows, columns, starts, ORDERED, gradient, hessian, *limits, np.uint64(0)
    )

    def gain(left):
        sums = [(gradient[side].sum() ** 2 / (hessian[side].sum() + 1.0)) for side in (left, ~left)]
        return sum(sums) - gradient.sum() ** 2 / (hessian.sum() + 1.0)

    best = -np.inf
    for j, k in enumerate(CARDINALITIES):
        codes = range(1, k + 1)
        sets = [codes[:n] for n in range(1, k)] if ORDERED[j] else itertools.combinations(codes, 1)
        for chosen in sets:
            left = np.isin(tile.values[:, j], list(chosen))
            best = max(best, gain(left) if min(left.sum(), (~left).sum()) >= 5 else -np.inf)
    j, cut, _ = nodes[0].tolist()
    left = tile.values[:, j] <= cut if ORDERED[j] else sides[cut + tile.values[:, j].astype(int)] == 1
    assert_allclose(gain(left), best)
    assert_allclose(share[0], (left.sum() + 0.5) / 201)
    assert_array_equal(ends[1:3, 1], [left.sum(), (~left).sum()])


def test_a_leaf_takes_the_shrunken_newton_step_of_its_rows(monkeypatch):
    monkeypatch.setattr(summed_trees, "_ROWS", 1.1)  # all of them
    tile, labels = draw_rows(400, missing=0.0)
    start = np.random.default_rng(1).normal(size=(400, Z))
    _, parameters = grown(tile, labels, 1, start)
    trees = parameters.trees
    p = np.exp(start) / np.exp(start).sum(axis=1, keepdims=True)
    leaves = np.array([leaf_of(trees, 0, row.astype(int)) for row in tile.values])
    for node in np.unique(leaves):
        inside = leaves == node
        w = labels.weight[inside, np.newaxis]
        g = (w * (p[inside] - np.eye(Z)[labels.component[inside]])).sum(axis=0)
        h = (w * p[inside] * (1 - p[inside])).sum(axis=0)
        assert_allclose(trees.change[trees.nodes[node, 2]], -0.05 * g / (h * Z / (Z - 1) + 1.0), atol=1 / 4096)


def test_trees_learn_a_rule_from_the_prior_on():
    tile, labels = draw_rows(600, missing=0.0)
    density, parameters = grown(tile, labels, None)
    new, of_new = draw_rows(600, seed=9, missing=0.0)
    prior = np.bincount(labels.component, labels.weight) / labels.weight.sum()
    scores = density.log_density(parameters, new) + np.log(prior)
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert -log_p[np.arange(600), of_new.component].mean() < 0.62  # 0.55 by the rule itself, 0.9 by the prior


def test_where_nothing_can_be_learned_no_tree_stays():
    density, grew = SummedTrees((1,)), 0
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        tile, labels = draw_rows(300, seed)
        rows = CodedRows.of(tile, Assignment(rng.integers(0, Z, 300).astype(np.int32), labels.weight, Z))
        refined, _ = density.grown(density.deal(rows, rng.integers(0, 5, 300)), np.zeros((300, Z)))
        grew += refined.structure.change.any()
    assert grew <= 5


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_no_order_of_rows_columns_and_classes_matters(seed):
    rng = np.random.default_rng(seed)
    tile, labels = draw_rows(150, seed)
    start = rng.normal(size=(150, Z))
    density, parameters = grown(tile, labels, 5, start)
    rows, columns, classes = rng.permutation(150), rng.permutation(3), rng.permutation(Z)
    moved = Codes(np.ascontiguousarray(tile.values[rows][:, columns]), tuple(np.array(CARDINALITIES)[columns]))
    of_moved = Assignment(np.argsort(classes)[labels.component[rows]].astype(np.int32), labels.weight[rows], Z)
    again = SummedTrees((int(np.flatnonzero(columns == 1)[0]),), 5, rank=tuple(np.argsort(np.argsort(columns))))
    again, _ = again.grown(again.deal(CodedRows.of(moved, of_moved)), start[rows][:, classes])
    scores = again.log_density(again.estimate(None), moved)
    expected = density.log_density(parameters, tile)[rows][:, classes]
    assert_allclose(scores - scores[:, :1], expected - expected[:, :1], atol=1e-6)


def test_one_class_or_constant_columns_have_no_trees():
    tile, labels = draw_rows(60)
    one = Assignment(np.zeros(60, np.int32), labels.weight, 1)
    for rows, of_rows in ((tile, one), (Codes(np.ones((60, 3), np.uint8), CARDINALITIES), labels)):
        density, parameters = grown(rows, of_rows)
        assert not density.log_density(parameters, rows).any()


def test_a_model_has_no_p_of_x_and_y():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    model = po.GenerativeForest(50, combine="sum").fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9
    with pytest.raises(ValueError, match=r"no p\(x, y\); use predict_log_proba"):
        model.predict_joint_log_proba(X)
    with pytest.raises(ValueError, match="splits is of trees that are grown by themselves"):
        po.GenerativeForest(combine="sum", splits="best").fit(X, y)


def test_rows_cannot_be_drawn():
    density, parameters = grown(*draw_rows())
    with pytest.raises(ValueError, match="no distribution of the columns"):
        density.sample(parameters, np.zeros(2, np.int64), np.random.default_rng(0))
