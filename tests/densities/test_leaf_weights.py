from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

from posteriori import kernels
from posteriori.densities import RandomTrees, tree_growing
from posteriori.densities import random_trees as leaf_weights
from posteriori.densities.random_trees import PENALTY, FoldTrees, conditional_changes
from posteriori.densities.tree_growing import WeighedTrees, smoothed_prior
from posteriori.statistics.forests import CodedRows
from posteriori.tables import Assignment, Codes

CARDINALITIES = (3, 9, 4)
Z = 3


def fold_trees(dealt, trees, counts, strengths, prior):
    """Return the trees that leave out each fold."""
    weighed = WeighedTrees.of(trees, counts)
    folds = np.unique(dealt.fold_of_trees(trees.n_trees)).tolist()
    return [FoldTrees.of(dealt, weighed, fold, strengths, prior) for fold in folds]


def draw_rows(n=150, seed=0, missing=0.0):
    """Draw rows whose class follows a rule over two columns, with noise."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(1, k + 1, n) for k in CARDINALITIES]).astype(np.uint8)
    component = np.where((codes[:, 0] == 2) ^ (codes[:, 1] > 4), 1, 0)
    component = np.where(rng.random(n) < 0.1, rng.integers(0, Z, n), component).astype(np.int32)
    codes[rng.random(codes.shape) < missing] = 0
    return Codes(codes, CARDINALITIES), Assignment(component, np.ones(n), Z)


def grown(tile, labels, n_trees=10, strength=0.7, **options):
    """Return rows that are dealt to folds, trees, the counts outside the fold of each tree, and p(y)."""
    dealt = RandomTrees((1,)).deal(CodedRows.of(tile, labels))
    density, counts, outside = RandomTrees((1,), n_trees, strength=strength, **options).grown(dealt)
    counts = type(counts)(counts.singles, outside)
    return dealt, density, counts, smoothed_prior(np.bincount(dealt.rows.component, minlength=Z))


def test_changes_are_rounded_to_steps_that_no_posterior_shows():
    _, _, _, (group, *_) = groups_of(*draw_rows())
    group.start()
    group.improve(1.0)
    change = group.change()
    assert_array_equal(change * 256, np.round(change * 256))
    assert np.abs(change - group.theta * len(group.leaf)).max() <= 1 / 512 + 1e-6
    assert len(np.unique(change)) > 20


def groups_of(tile, labels, **options):
    dealt, density, counts, prior = grown(tile, labels, **options)
    return dealt, density, counts, fold_trees(dealt, density.structure, counts, density.strengths, prior)


def test_held_out_posteriors_are_those_of_the_learned_leaves(monkeypatch):
    monkeypatch.setattr(leaf_weights, "_STEPS", 1e9)  # what is stored is rounded less than float32 does
    tile, labels = draw_rows()
    dealt, density, counts, prior = grown(tile, labels)
    structure, (group, *_) = density.structure, fold_trees(dealt, density.structure, counts, density.strengths, prior)
    group.start()
    for pace in (1.0, 2.0, 4.0):
        group.improve(pace)
    part, numbers = structure.take(0, 2)  # 10 trees, 5 folds
    changed = type(part)(
        part.cardinalities, part.ordered, part.roots, part.nodes, part.share, part.sides, group.change()
    )
    weighed = WeighedTrees.of(changed, type(counts)(counts.singles, counts.leaves[numbers]))
    given = weighed.smoothed(density.strengths, prior)
    at = np.flatnonzero(group.held_out)
    leaves = np.flatnonzero(changed.nodes[:, 0] < 0)[group.leaf[:, at]]
    expected = softmax(np.log(prior) + given[leaves].mean(axis=0), axis=1)
    assert np.abs(group.theta).max() > 0.05
    assert_allclose(group.posterior[at], expected, atol=1e-6)  # changes are stored as float32
    root = given[changed.roots[:-1]]
    assert_allclose(root, 0.0, atol=1e-12)


def test_a_step_follows_the_numeric_gradient_and_curvature():
    tile, labels = draw_rows()
    _, _, _, (group, *_) = groups_of(tile, labels, n_trees=5)  # one tree per fold
    n = len(group.component)
    logits = np.random.default_rng(1).normal(size=(n, Z))
    group.posterior[:] = softmax(logits, axis=1)
    group.theta[:] = 0.3
    group.given[:] = 0.0
    before = group.theta.copy()

    def objective(leaf, z, theta):
        moved = logits + (group.leaf[0] == leaf)[:, np.newaxis] * (np.arange(Z) == z) * (theta - 0.3)
        of_row = log_softmax(moved, axis=1)[np.arange(n), group.component]
        return group.weight @ of_row - PENALTY / 2 * theta**2

    kernels.improve_leaves(
        group.leaf,
        group.component,
        group.weight,
        group.log_p,
        group.share,
        group.bounds,
        group.log_prior,
        PENALTY,
        1e-3,
        group.theta,
        group.given,
        group.posterior,
    )
    for leaf in range(min(4, len(before))):
        for z in range(Z):
            h = 1e-4
            up, here, down = (objective(leaf, z, 0.3 + d) for d in (h, 0.0, -h))
            step = (up - down) / (2 * h) / -((up - 2 * here + down) / h**2)
            assert_allclose((group.theta - before)[leaf, z], 1e-3 * np.clip(step, -4, 4), rtol=1e-4, atol=1e-9)


def test_the_posterior_of_a_row_follows_the_step_without_the_row():
    tile, labels = draw_rows()
    _, _, _, (group, *_) = groups_of(tile, labels, n_trees=5)  # one tree per fold
    group.start()
    before, given = group.posterior.copy(), group.given.copy()
    group.improve(0.5)
    leaf, y = group.leaf[0], np.eye(Z)[group.component]
    steps_of = {"with": [], "without": []}
    for row in range(len(leaf)):
        for kind, rows in steps_of.items():
            weight = group.weight * (leaf == leaf[row])
            if kind == "without":
                weight[row] = 0.0
            gradient, curvature = weight @ (y - before), weight @ (before * (1.0 - before)) + PENALTY
            rows.append(0.5 * np.clip(gradient / curvature, -4.0, 4.0))
    changed = np.array(steps_of["without"]) - np.array(steps_of["with"])
    assert np.abs(changed).max() > 0.02
    expected = before * np.exp((group.given - given)[leaf] + changed)
    assert_allclose(group.posterior, expected / expected.sum(axis=1, keepdims=True), atol=2e-3)  # tiny shares are left


@pytest.mark.parametrize("strength", [0.1, 3.0])
def test_a_row_sees_each_leaf_as_counted_without_the_row(strength):
    tile, labels = draw_rows(60)
    dealt, density, counts, prior = grown(tile, labels, strength=strength)
    structure = density.structure
    weighed = WeighedTrees.of(structure, counts)
    (group, *_) = fold_trees(dealt, structure, counts, density.strengths, prior)
    part, numbers = structure.take(0, 2)
    for row in np.flatnonzero(group.weight)[:12]:
        y = group.component[row]
        for t in range(2):
            leaf = group.leaf[t, row]
            fewer = counts.leaves[numbers].copy()
            fewer[leaf, y] -= 1.0
            weight = part.weights(fewer)
            node, p, path = int(np.flatnonzero(part.nodes[:, 0] < 0)[leaf]), prior, []
            while True:
                path.append(node)
                above = np.flatnonzero(
                    (part.nodes[:, 0] >= 0) & ((part.nodes[:, 2] == node) | (part.nodes[:, 2] + 1 == node))
                )
                if not len(above):
                    break
                node = int(above[0])
            for node in reversed(path):
                p = (weight[node] + strength * p) / (weight[node].sum() + strength)
            assert_allclose(np.exp(group.left_out[group.place[leaf, y]]), p, atol=1e-12)
    assert weighed.leaf_shares().shape == (structure.n_leaves,)


def test_leaves_and_shares_give_the_class_distribution_of_trees():
    tile, labels = draw_rows(missing=0.1)
    _, density, counts, prior = grown(tile, labels)
    weighed = WeighedTrees.of(density.structure, counts)
    p, share = np.exp(weighed.leaf_distributions(density.strengths, prior)), weighed.leaf_shares()
    assert_allclose(p.sum(axis=1), 1.0)
    given = weighed.smoothed(density.strengths, prior)[density.structure.nodes[:, 0] < 0]
    for t in range(3):
        numbers = density.structure.take(t, t + 1)[1]
        assert_allclose(share[numbers].sum(), 1.0)
        of_tree = share[numbers] @ p[numbers]
        assert_allclose(np.log(p[numbers] / of_tree), given[numbers], atol=1e-12)


def test_learned_leaves_keep_the_prior_and_exact_factors():
    tile, labels = draw_rows(400, missing=0.1)
    density = RandomTrees((1,), 10)
    density, counts = density.refine(density.sufficient_statistics.of(tile, labels))
    change = np.random.default_rng(1).normal(size=(density.structure.n_leaves, Z)).astype(np.float32)
    density = replace(density, structure=replace(density.structure, change=change))
    parameters = density.estimate(counts)
    blank = Codes(np.zeros((1, 3), np.uint8), CARDINALITIES)
    assert_allclose(density.log_scores(parameters, blank), 0.0, atol=1e-12)
    total = density.log_factors(parameters, tile).sum(axis=2)
    assert_allclose(total - total[:, :1], density.log_scores(parameters, tile), atol=1e-9)


def test_changes_ignore_threads_and_the_order_of_rows(monkeypatch):
    tile, labels = draw_rows(300)
    monkeypatch.setattr(leaf_weights, "_PACES", (1.0, 2.0))
    for module in (leaf_weights, tree_growing):
        monkeypatch.setattr(module, "CELLS_PER_THREAD", 1)
    monkeypatch.setattr(leaf_weights.FoldTrees, "_loss", lambda group: -float(np.abs(group.theta).sum()))  # never stop
    order = np.random.default_rng(3).permutation(300)
    shuffled = Codes(tile.values[order], CARDINALITIES), Assignment(labels.component[order], labels.weight[order], Z)
    found = []
    for rows, n_jobs in (((tile, labels), 1), ((tile, labels), 2), (shuffled, 1)):
        density = RandomTrees((1,), 10, leaf_weights="conditional", n_jobs=n_jobs)
        found.append(density.refine(density.sufficient_statistics.of(*rows))[0].structure)
    assert len(found[0].change) == found[0].n_leaves
    assert found[0] == found[1] == found[2]


def test_one_class_has_nothing_to_learn():
    tile, _ = draw_rows(30)
    one = Assignment(np.zeros(30, np.int32), np.ones(30), 1)
    dealt = RandomTrees((1,)).deal(CodedRows.of(tile, one))
    density, counts, _ = RandomTrees((1,), 5, strength=1.0).grown(dealt)
    assert_array_equal(
        conditional_changes(dealt, density.structure, counts, np.ones((2, 1)), np.ones(1), 1), np.empty((0, 0))
    )
