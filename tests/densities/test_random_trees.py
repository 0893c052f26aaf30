"""Randomised trees: each is a joint distribution, checked against the sum over its leaves, and they add up."""

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.stats import chisquare

import posteriori as po
from posteriori.densities import RandomTrees
from posteriori.densities.refinement import finish
from posteriori.densities.tree_growing import LEVELS, Growth, Paths, WeighedTrees, trees_for
from posteriori.kernels.loops.descent import DEEPEST
from posteriori.kernels.loops.forests import level_of
from posteriori.statistics.forests import CodedRows, CountLeaves, TreeStructure
from posteriori.tables import Assignment, Codes

CARDINALITIES = (3, 5, 2)  # the second column is one of numbers
Z = 3


def draw_rows(n=120, seed=0, missing=0.1):
    """Draw rows whose class follows a rule over two columns, with noise."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(1, k + 1, n) for k in CARDINALITIES]).astype(np.uint8)
    component = np.where((codes[:, 0] == 2) ^ (codes[:, 1] > 3), 1, 0)
    component = np.where(rng.random(n) < 0.2, rng.integers(0, Z, n), component).astype(np.int32)
    codes[rng.random(codes.shape) < missing] = 0
    return Codes(codes, CARDINALITIES), Assignment(component, rng.integers(1, 3, n).astype(float), Z)


def fitted(tile, labels, **options):
    density = RandomTrees((1,), **{"n_trees": 10, "strength": 0.7, **options})
    density, counts = density.refine(density.sufficient_statistics.of(tile, labels))
    return density, density.estimate(counts), counts


def every_row(with_missing=False):
    values = [range(0 if with_missing else 1, k + 1) for k in CARDINALITIES]
    return Codes(np.array(list(itertools.product(*values)), np.uint8), CARDINALITIES)


def leaves_of(density, parameters, t):
    """Yield p(leaf), the node, and p(x_j | leaf) of every code, in another order than by the path of a row."""
    trees = density.structure
    starts = np.cumsum([0, *(k + 1 for k in CARDINALITIES)])
    root = [parameters.mass[a:b].copy() for a, b in itertools.pairwise(starts)]
    waiting = [(int(trees.roots[t]), 1.0, root)]
    while waiting:
        node, p, masses = waiting.pop()
        j, cut, child = trees.nodes[node].tolist()
        if j < 0:
            yield p, node, masses
            continue
        code = np.arange(CARDINALITIES[j] + 1)
        side = np.where(code <= cut, 1, 2) if trees.ordered[j] else trees.sides[cut : cut + len(code)]
        for k, share in ((1, parameters.share[node]), (2, 1.0 - parameters.share[node])):
            inside = masses[j].copy()
            inside[side == k] *= inside[side > 0].sum() / inside[side == k].sum()
            inside[side == 3 - k] = 0.0
            waiting.append((child + k - 1, p * share, [*masses[:j], inside, *masses[j + 1 :]]))


def joint_of(density, parameters, t, row):
    """Return p_t(x, y) of the present cells of a row, (Z,), as a sum over the leaves."""
    total = np.zeros(Z)
    prior = prior_of(density, parameters, t)
    for p, node, masses in leaves_of(density, parameters, t):
        for j, code in enumerate(row):
            p *= masses[j][code] if code else 1.0
        total += p * prior * np.exp(parameters.given_node[node])
    return total


def prior_of(density, parameters, t):
    """Return p_t(y), which makes every p(y | node) = p_t(y)·exp(given_node) sum to 1."""
    given_node = np.exp(parameters.given_node[density.structure.roots[t] : density.structure.roots[t + 1]])
    prior, *_ = np.linalg.lstsq(given_node, np.ones(len(given_node)), rcond=None)
    return prior


@pytest.mark.parametrize("splits", ["random", "best", "mixed"])
def test_a_row_with_missing_cells_has_the_marginal_of_each_tree(splits):
    density, parameters, _ = fitted(*draw_rows(), splits=splits)
    rows = every_row(with_missing=True)
    for t in range(density.n_trees):
        tree, leaves = density.of_trees(t, t + 1)
        counts = replace(parameters.counts, leaves=parameters.counts.leaves[leaves])
        of_tree = replace(parameters, trees=tree.structure, counts=counts)
        joint = np.array([joint_of(density, parameters, t, row) for row in rows.values])
        evidence = joint.sum(axis=1, keepdims=True)
        expected = np.log(joint / evidence / prior_of(density, parameters, t))
        assert_allclose(tree.log_scores(of_tree, rows), expected - expected[:, :1], atol=1e-9)
        found = tree.log_density(of_tree, rows)
        assert_allclose(found, np.log(joint / prior_of(density, parameters, t)), atol=1e-9)
        assert_allclose(tree.log_factors(of_tree, rows).sum(axis=2), found, atol=1e-9)
        assert_allclose(joint[(rows.values > 0).all(axis=1)].sum(), 1.0)


def test_the_posterior_is_a_mean_of_trees_and_p_x_their_mixture():
    tile, labels = draw_rows()
    density, parameters, _ = fitted(tile, labels)
    rows = every_row(with_missing=True)
    joint = np.array([[joint_of(density, parameters, t, row) for row in rows.values] for t in range(density.n_trees)])
    prior = np.array([prior_of(density, parameters, t) for t in range(density.n_trees)])[:, np.newaxis]
    ratio = joint / joint.sum(axis=2, keepdims=True) / prior
    expected = np.log(ratio).mean(axis=0)
    assert_allclose(density.log_scores(parameters, rows), expected - expected[:, :1], atol=1e-9)
    of_mean = replace(parameters, geometric=False)
    posterior = ratio * parameters.prior
    posterior /= posterior.sum(axis=2, keepdims=True)
    arithmetic = density.log_scores(of_mean, rows)
    assert_allclose(arithmetic, np.log(posterior.mean(axis=0) / parameters.prior), atol=1e-9)
    mixture = np.exp(density.log_density(parameters, rows))
    assert_allclose(mixture, (joint / prior).mean(axis=0), atol=1e-12)
    assert_allclose(mixture[(rows.values > 0).all(axis=1)].sum(axis=0), 1.0)
    assert_allclose(density.log_density(of_mean, rows), np.log(mixture), atol=1e-9)


def test_a_row_without_cells_has_the_class_prior():
    density, parameters, _ = fitted(*draw_rows())
    nothing = Codes(np.zeros((2, 3), np.uint8), CARDINALITIES)
    assert_allclose(density.log_density(parameters, nothing), 0.0, atol=1e-12)


def test_factors_add_up_and_a_missing_cell_has_none():
    density, parameters, _ = fitted(*draw_rows())
    rows = every_row(with_missing=True)
    factors = density.log_factors(parameters, rows)
    total, scores = factors.sum(axis=2), density.log_scores(parameters, rows)
    assert_allclose(total - total[:, :1], scores, atol=1e-9)
    assert not factors[np.broadcast_to((rows.values == 0)[:, np.newaxis], factors.shape)].any()
    with pytest.raises(ValueError, match="arithmetic mean of trees is no sum"):
        density.log_factors(replace(parameters, geometric=False), rows)


def test_factors_on_a_path_are_the_changes_of_p_y_given_the_node():
    density, parameters, _ = fitted(*draw_rows(), n_trees=1)
    trees, rows = density.structure, every_row()
    factors = density.log_factors(parameters, rows)
    for row, found in zip(rows.values, factors, strict=True):
        expected, node = np.zeros((Z, 3)), 0
        while trees.nodes[node, 0] >= 0:
            j, cut, child = trees.nodes[node].tolist()
            side = (row[j] > cut) + 1 if trees.ordered[j] else trees.sides[cut + row[j]]
            if side == 0:
                break
            expected[:, j] += parameters.given_node[child + side - 1] - parameters.given_node[node]
            node = child + side - 1
        else:
            assert_allclose(found - found[:1], expected - expected[:1], atol=1e-9)


@pytest.mark.parametrize("strength", [0.7, None])
def test_leaves_back_off_to_their_ancestors(strength):
    density, parameters, counts = fitted(*draw_rows(missing=0.0), strength=strength)
    strengths = density.strengths
    assert (np.ptp(strengths) > 0) == (strength is None)
    trees = density.structure
    weight = trees.weights(counts.leaves)
    for t in range(density.n_trees):
        prior = prior_of(density, parameters, t)
        waiting = [(int(trees.roots[t]), parameters.prior)]
        while waiting:
            node, lower = waiting.pop()
            s = strengths[int(trees.nodes[node, 0] < 0), level_of(weight[node].sum(), strengths.shape[1])]
            smoothed = (weight[node] + s * lower) / (weight[node].sum() + s)
            if trees.nodes[node, 0] < 0:
                assert_allclose(prior * np.exp(parameters.given_node[node]), smoothed)
            else:
                waiting += [(int(trees.nodes[node, 2]) + k, smoothed) for k in (0, 1)]


def held_out_paths(seed):
    """Return the paths of rows in the trees of a fold that did not see them, and what these come from."""
    dealt = RandomTrees((1,)).deal(CodedRows.of(*draw_rows(seed=seed)))
    trees = dealt.grow(Growth(5, "random", None, 2.0, seed), 1)
    counts, outside = dealt.count(trees)
    weighed = WeighedTrees.of(trees, replace(counts, leaves=outside))
    rows, prior = dealt.rows.take(np.flatnonzero(dealt.fold == 2)), np.array([0.5, 0.3, 0.2])
    return Paths.of(weighed.take(2, 3), rows, prior), weighed, rows, prior


def test_every_second_tree_of_a_mixed_forest_has_the_best_cuts():
    dealt = RandomTrees((1,)).deal(CodedRows.of(*draw_rows()))
    mixed, best, random = (dealt.grow(Growth(6, splits, None, 2.0, 3), 1) for splits in ("mixed", "best", "random"))

    def shape(trees, t):  # the column and the child of each node; its cut may be a place in a table of all trees
        return trees.take(t, t + 1)[0].nodes[:, [0, 2]].tolist()

    assert [shape(mixed, t) for t in range(6)] == [shape(random if t % 2 else best, t) for t in range(6)]
    assert all(shape(best, t) != shape(random, t) for t in range(6))


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_paths_have_the_likelihood_of_rows_and_its_gradient(seed):
    paths, weighed, rows, prior = held_out_paths(seed)
    trees, strengths = weighed.trees, np.random.default_rng(seed).gamma(2.0, 2.0, LEVELS)
    total = 0.0
    for row, z, w in zip(rows.codes, rows.component, rows.weight, strict=True):
        node, p = int(trees.roots[2]), prior[z]
        while True:
            n = weighed.weight[node].sum()
            s = strengths[level_of(n, LEVELS)]
            p = (weighed.weight[node, z] + s * p) / (n + s)
            j, cut, child = trees.nodes[node].tolist()
            if j < 0 or row[j] == 0:
                break
            right = row[j] > cut if trees.ordered[j] else trees.sides[cut + int(row[j])] == 2
            if not trees.ordered[j] and trees.sides[cut + int(row[j])] == 0:
                break
            node = child + int(right)
        total += w * np.log(p)
    by_prior, exposure = np.zeros(LEVELS), np.zeros(LEVELS)

    def likelihood(logs):
        return paths.sweep(np.exp(logs), np.zeros(LEVELS), np.zeros(LEVELS))

    assert_allclose(paths.sweep(strengths, by_prior, exposure), total)
    gradient = approx_fprime(np.log(strengths), likelihood, 1e-6)
    assert_allclose(by_prior - strengths * exposure, gradient, atol=1e-3)


def test_learned_strengths_follow_the_noise_of_the_class():
    rng = np.random.default_rng(0)
    codes = Codes(rng.integers(1, 4, (300, 3)).astype(np.uint8), (3, 3, 3))
    rule = np.where(codes.values[:, 0] == codes.values[:, 1], 1, 0).astype(np.int32)
    found = []
    for component in (rule, rng.integers(0, 2, 300).astype(np.int32)):
        labels = Assignment(component, np.ones(300), 2)
        density = RandomTrees((), 20)
        found.append(density.refine(density.sufficient_statistics.of(codes, labels))[0].strengths)
    assert np.exp(np.mean(np.log(found[0]))) < 0.1 * np.exp(np.mean(np.log(found[1])))


def test_the_best_split_is_the_best_of_all_prefixes():
    codes = np.array([[1], [1], [2], [2], [3], [4], [4], [5]], np.uint8)
    labels = Assignment(np.array([0, 0, 0, 1, 1, 1, 1, 1], np.int32), np.ones(8), 2)
    density = RandomTrees((0,), 1, "best", strength=1.0)
    rows = CodedRows.of(Codes(codes, (5,)), labels)
    dealt = density.deal(rows, np.full(8, -1), 1)
    trees = density.grown(dealt)[0].structure

    def entropy(part):
        p = np.bincount(part, minlength=2) / len(part)
        return -len(part) * sum(x * np.log(x) for x in p if x > 0)

    cuts = [
        entropy(labels.component[codes[:, 0] <= c]) + entropy(labels.component[codes[:, 0] > c]) for c in (1, 2, 3, 4)
    ]
    assert trees.nodes[0, 1] == 1 + int(np.argmin(cuts))


def test_sets_of_categories_are_split_by_second_class_share():
    share = {1: 0.9, 2: 0.1, 3: 0.8, 4: 0.2}
    codes, component = [], []
    for code, p in share.items():
        codes += [[code]] * 20
        component += [1] * round(20 * p) + [0] * round(20 * (1 - p))
    rows = CodedRows.of(
        Codes(np.array(codes, np.uint8), (4,)), Assignment(np.array(component, np.int32), np.ones(80), 2)
    )
    density = RandomTrees((), 1, "best", strength=1.0)
    trees = density.grown(density.deal(rows, np.full(80, -1), 1))[0].structure
    sides = trees.sides[trees.nodes[0, 1] :][:5].tolist()
    assert sides in ([0, 1, 2, 1, 2], [0, 2, 1, 2, 1])


@given(st.lists(st.booleans(), min_size=120, max_size=120))
def test_leaf_counts_add_up_and_weights_are_repetitions(first):
    tile, labels = draw_rows()
    density, _, counts = FITTED
    factory, first = CountLeaves(density.structure), np.array(first)
    parts = [factory.of(tile.rows(rows), labels.rows(rows)) for rows in (first, ~first)]
    together = parts[0] + parts[1]
    assert_allclose(together.leaves, counts.leaves, rtol=1e-9, atol=1e-12)
    assert_array_equal(together.singles.table, counts.singles.table)
    assert_allclose((together - parts[1]).leaves, parts[0].leaves, rtol=1e-9, atol=1e-9)
    repeated = np.repeat(np.arange(120), labels.weight.astype(int))
    once = Assignment(labels.component[repeated], np.ones(len(repeated)), Z)
    assert_allclose(factory.of(tile.rows(repeated), once).leaves, counts.leaves, rtol=1e-9, atol=1e-12)
    assert_allclose(counts.leaves.sum(axis=0), density.n_trees * np.bincount(labels.component, labels.weight, Z))


FITTED = fitted(*draw_rows())


def test_trees_ignore_the_order_of_rows_and_threads(monkeypatch):
    monkeypatch.setattr("posteriori.densities.tree_growing.CELLS_PER_THREAD", 1)
    tile, labels = draw_rows()
    order = np.random.default_rng(1).permutation(120)
    rows = CodedRows.of(tile.rows(order[:50]), labels.rows(order[:50])) + CodedRows.of(
        tile.rows(order[50:]), labels.rows(order[50:])
    )
    again, _ = RandomTrees((1,), 10, strength=0.7, n_jobs=2).refine(rows)
    for name in ("nodes", "share", "sides"):
        assert_array_equal(getattr(again.structure, name), getattr(FITTED[0].structure, name))


def test_a_large_table_grows_on_some_rows_and_counts_all(monkeypatch):
    monkeypatch.setattr("posteriori.statistics.forests.MOST_ROWS", 20)
    monkeypatch.setattr("posteriori.statistics.forests._MOST_CELLS", 0)
    tile, labels = draw_rows(3000)
    whole = CodedRows.of(tile, labels)
    parts = [CodedRows.of(tile.rows(rows), labels.rows(rows)) for rows in np.array_split(np.arange(3000), 7)]
    added = parts[0]
    for part in parts[1:]:
        added = added + part
    assert not added.is_complete
    assert added.n_rows == 3000
    kept = [part.take(np.lexsort((part.component, part.hashes))[:20]).hashes.tolist() for part in (added, whole)]
    assert kept[0] == kept[1]
    looked = []
    density, _ = finish(
        RandomTrees((1,), 5).refine(added), lambda factory: looked.append(factory) or factory.of(tile, labels)
    )
    assert looked[0].structure is density.structure


def test_sampled_rows_have_the_distribution_of_their_class():
    density, parameters, _ = fitted(*draw_rows(400, missing=0.0), n_trees=3, strength=10.0)
    drawn = density.sample(parameters, np.full(10_000, 1), np.random.default_rng(0))
    rows = every_row()
    expected = len(drawn) * np.exp(density.log_density(parameters, rows)[:, 1])
    index = {tuple(row): k for k, row in enumerate(rows.values.tolist())}
    found = np.bincount([index[tuple(row)] for row in drawn.tolist()], minlength=len(index))
    assert expected.min() > 5.0
    assert chisquare(found, expected).pvalue > 1e-6


def test_splits_follow_categories_and_new_ones_go_both_ways():
    density, parameters, counts = FITTED
    moves = [[2, 0, -1, 1], list(range(5)), [0, 1]]
    moved, sums = density.reindexed(moves), counts.reindexed(range(Z), moves)
    rows = every_row()
    more = Codes(np.column_stack([np.array([0, 2, 4, 1])[rows.values[:, 0]], rows.values[:, 1:]]), (4, 5, 2))
    assert_allclose(moved.log_scores(moved.estimate(sums), more), density.log_scores(parameters, rows))
    unseen = Codes(np.array([[3, 2, 1]], np.uint8), (4, 5, 2))
    blank = Codes(np.array([[0, 2, 1]], np.uint8), CARDINALITIES)
    assert_allclose(moved.log_scores(moved.estimate(sums), unseen), density.log_scores(parameters, blank))


@pytest.mark.parametrize(("rows", "trees"), [(1, 100), (10_000, 100), (20_000, 50), (1_000_000, 25)])
def test_many_rows_take_fewer_trees(rows, trees):
    assert [trees_for(rows, splits) for splits in ("random", "best", "mixed")] == [trees, trees, trees * 3 // 2]


def test_a_tree_without_anything_to_learn_is_a_leaf():
    labels = Assignment(np.zeros(6, np.int32), np.ones(6), 2)
    tile = Codes(np.array([[1, 0]] * 6, np.uint8), (1, 0))
    density, counts = RandomTrees((), 5).refine(CodedRows.of(tile, labels))
    parameters = density.estimate(counts)
    assert_array_equal(density.structure.nodes[:, 0], -1)
    assert_allclose(density.log_density(parameters, tile), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "index", "value", "message"),
    [
        ("nodes", (0, 2), 0, "no children"),
        ("nodes", (0, 0), 7, "column that does not exist"),
        ("sides", 0, 9, "side other than"),
        ("roots", 1, 0, "trees overlap"),
        ("share", 0, 2.0, "shares"),
    ],
)
def test_a_crafted_structure_is_refused(name, index, value, message):
    array = getattr(FITTED[0].structure, name).copy()
    array[index] = value
    with pytest.raises(ValueError, match=message):
        replace(FITTED[0].structure, **{name: array}).check()
    FITTED[0].structure.check()


def chain(levels):
    """A tree that splits one leaf off at each level."""
    nodes = [node for k in range(levels) for node in ((0, 1, 2 * k + 1), (-1, 0, k))]
    nodes = np.array([*nodes, (-1, 0, levels)], np.int32)
    n = len(nodes)
    return TreeStructure((2,), np.ones(1, bool), np.array([0, n]), nodes, np.full(n, 0.5), np.empty(0, np.uint8))


def test_a_tree_beyond_the_limit_of_depth_is_refused():
    chain(DEEPEST).check()
    with pytest.raises(ValueError, match=f"a tree is deeper than {DEEPEST} levels"):
        chain(DEEPEST + 1).check()


def many_categories(n_rows=9000, n_categories=3000, seed=0):
    """Draw rows of one column with more categories than the rows that choose a split show."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_rows) % n_categories + 1).astype(np.uint16)[:, np.newaxis]
    labels = Assignment((rng.random(n_rows) < 0.02).astype(np.int32), np.ones(n_rows), 2)
    return Codes(codes, (n_categories,)), labels


@pytest.mark.parametrize("rows", [draw_rows(missing=0.0), many_categories()], ids=["few", "many"])
def test_categories_unseen_in_a_node_stay_on_one_side(rows):
    cardinalities = rows[0].cardinalities
    ordered = (1,) if rows[0].cardinalities == CARDINALITIES else ()
    density = RandomTrees(ordered, n_trees=10, splits="mixed", strength=0.7)
    density, counts = density.refine(density.sufficient_statistics.of(*rows))
    assert np.isfinite(density.estimate(counts).log_edge).all()
    trees = density.structure
    for t in range(density.n_trees):
        waiting = [(int(trees.roots[t]), [set(range(1, k + 1)) for k in cardinalities])]
        while waiting:
            node, cell = waiting.pop()
            j, cut, child = trees.nodes[node].tolist()
            if j < 0:
                continue
            side = {code: (code > cut) + 1 if trees.ordered[j] else int(trees.sides[cut + code]) for code in cell[j]}
            assert set(side.values()) == {1, 2}
            for k in (1, 2):
                inside = {code for code in cell[j] if side[code] == k}
                waiting.append((child + k - 1, [*cell[:j], inside, *cell[j + 1 :]]))


def test_a_forest_grows_on_fewer_rows_than_folds():
    model = po.GenerativeForest(n_trees=1).fit(pl.DataFrame({"x": ["a", "b"]}), ["u", "v"])
    assert_allclose(model.predict_proba(pl.DataFrame({"x": [None]}, schema={"x": pl.String})), 0.5)
