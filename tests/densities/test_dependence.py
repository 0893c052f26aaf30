"""Densities of columns that depend on each other, against brute-force enumeration of what they say."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from posteriori.densities import AveragedOneDependence, BackOff, Forest, FullJoint, KDependence, Tree
from posteriori.densities.dependence import choose_parents
from posteriori.densities.refinement import finish
from posteriori.statistics import Counts, CountTogether, Pairs
from posteriori.statistics.pairs import dependence_of_pairs, mixed_forest, spanning_forest
from posteriori.tables.batch import Assignment, Codes, Mixed, Numbers

CARDINALITIES = (2, 3, 1, 4)
GRID = np.array(list(itertools.product(*[range(1, k + 1) for k in CARDINALITIES])), np.uint8)
N_CLASSES = 2


def tile_of(codes, numbers=None, continuous=None):
    numbers = np.empty((len(codes), 0)) if numbers is None else numbers
    return Mixed(Numbers(numbers), Codes(codes, CARDINALITIES), continuous or (False,) * codes.shape[1])


def assignment(component):
    return Assignment(component.astype(np.int32), np.ones(len(component)), N_CLASSES)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    component = rng.integers(0, N_CLASSES, 150)
    codes = rng.integers(1, np.array(CARDINALITIES) + 1, (150, 4))
    codes[:, 3] = np.where(rng.random(150) < 0.6, codes[:, 1], codes[:, 3])
    codes[rng.random(codes.shape) < 0.2] = 0
    return codes.astype(np.uint8), component


def settled(density, statistics, codes, component):
    """Return the density and statistics after its second look, if it takes one."""
    if not hasattr(density, "refine"):
        return density, statistics
    return finish(
        density.refine(statistics),
        lambda sufficient_statistics: sufficient_statistics.of(Codes(codes, CARDINALITIES), assignment(component)),
    )


DENSITIES = {
    "tree": Tree(BackOff()),
    "tree per class": Tree(BackOff(), one_tree=False),
    "tree, no back-off": Tree(BackOff(None, 0.5)),
    "forest": Tree(BackOff(), penalty="bic"),
    "no parent": KDependence(0, BackOff()),
    "one parent": KDependence(1, BackOff()),
    "three parents": KDependence(3, BackOff(2.0)),
    "averaged": AveragedOneDependence(BackOff()),
    "full joint": FullJoint(),
}


def fit(density, codes, component):
    tile = tile_of(codes) if density.kind == "mixed" else Codes(codes, CARDINALITIES)
    statistics = density.sufficient_statistics.of(tile, assignment(component))
    density, statistics = settled(density, statistics, codes, component)
    return density, density.estimate(statistics)


def view(density, codes):
    return tile_of(codes) if density.kind == "mixed" else Codes(codes, CARDINALITIES)


@pytest.fixture(params=DENSITIES)
def fitted(request, rows):
    return fit(DENSITIES[request.param], *rows)


# Every density ---------------------------------------------------------------------------------------------------


def test_the_probabilities_of_all_rows_sum_to_1(fitted):
    density, parameters = fitted
    assert_allclose(np.exp(density.log_density(parameters, view(density, GRID))).sum(axis=0), 1.0)


def test_factors_add_up_to_the_density_whatever_is_missing(fitted, rows):
    density, parameters = fitted
    tile = view(density, rows[0])
    factors = density.log_factors(parameters, tile)
    assert_allclose(factors.sum(axis=2), density.log_density(parameters, tile), rtol=1e-9, atol=1e-9)


def test_factors_are_conditional_on_what_the_density_says(fitted):
    density, parameters = fitted
    factors = density.log_factors(parameters, view(density, GRID))
    for j, given_columns in enumerate(density.given(parameters)):
        known = [j, *given_columns]
        _, first, position = np.unique(GRID[:, known], axis=0, return_index=True, return_inverse=True)
        assert_allclose(factors[:, :, j], factors[first[position.ravel()], :, j], atol=1e-9)


def test_missing_cells_are_summed_out_exactly(fitted, rows):
    density, parameters = fitted
    joint = density.log_density(parameters, view(density, GRID))
    found = density.log_density(parameters, view(density, rows[0]))
    for i, row in enumerate(rows[0]):
        consistent = ((row == 0) | (row == GRID)).all(axis=1)
        assert_allclose(found[i], logsumexp(joint[consistent], axis=0), rtol=1e-9, atol=1e-12)


def test_drawing_and_estimating_gives_the_density_back(fitted):
    density, parameters = fitted
    component = np.repeat([0, 1], 40_000)
    drawn = density.sample(parameters, component, np.random.default_rng(1)).astype(np.uint8)
    assert drawn.min() >= 1
    frequency = CountTogether((tuple(range(4)),)).of(Codes(drawn, CARDINALITIES), assignment(component))
    shares = frequency.table(tuple(range(4)))[:, 1:, 1:, 1:, 1:].reshape(2, -1) / 40_000
    probability = np.exp(density.log_density(parameters, view(density, GRID))).T
    assert np.abs(shares - probability).max() < 5 * np.sqrt(0.25 / 40_000)


def test_counting_parameters(rows):
    counts = {name: density.n_parameters(parameters) for name, (density, parameters) in fit_all(rows).items()}
    assert counts["no parent"] == 2 * (1 + 2 + 0 + 3)
    assert counts["full joint"] == 2 * (2 * 3 * 1 * 4 - 1)
    of_tree = 0
    for j, parent in enumerate(fit(DENSITIES["tree"], *rows)[1].parents[0].tolist()):
        of_tree += (CARDINALITIES[parent] if parent >= 0 else 1) * (CARDINALITIES[j] - 1)
    assert counts["tree"] == 2 * of_tree


def fit_all(rows):
    return {name: fit(density, *rows) for name, density in DENSITIES.items()}


# Structure -------------------------------------------------------------------------------------------------------


def test_naive_bayes_trees_and_parents_come_out_of_one_statistic(rows):
    codes, component = rows
    pairs = Pairs.of(tile_of(codes), assignment(component))
    singles = Counts.of(Codes(codes, CARDINALITIES), assignment(component))
    assert_allclose(pairs.codes.singles.table, singles.table)
    for shared in (True, False):
        one, other = Tree(BackOff(), one_tree=shared), fit(Tree(BackOff(), one_tree=shared), *rows)[1]
        assert_allclose(one.estimate(pairs).table, other.table)
    assert choose_parents(pairs.codes, 2)[0] == fit(KDependence(2, BackOff()), *rows)[0].parents


def test_information_is_that_of_the_enumerated_table(rows):
    codes, component = rows
    found = dependence_of_pairs(Pairs.of(tile_of(codes), assignment(component)))
    for z, i, j in itertools.product(range(2), range(4), range(4)):
        both = (component == z) & (codes[:, i] > 0) & (codes[:, j] > 0)
        joint = np.zeros((5, 5))
        np.add.at(joint, (codes[both, i], codes[both, j]), 1 / both.sum())
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        expected = (joint[joint > 0] * np.log(joint[joint > 0] / product[joint > 0])).sum() if i != j else 0.0
        assert_allclose(found.information[z, i, j], expected, atol=1e-12)


@given(st.integers(2, 8), st.integers(0, 10_000), st.booleans())
def test_the_forest_has_the_weight_of_networkx(d, seed, negative):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(d, d)) if negative else rng.random((d, d))
    weight = weight + weight.T
    graph = nx.Graph()
    graph.add_nodes_from(range(d))
    graph.add_weighted_edges_from((i, j, weight[i, j]) for i in range(d) for j in range(i) if weight[i, j] > 0)
    expected = sum(data["weight"] for *_, data in nx.maximum_spanning_edges(graph, data=True))
    parents = spanning_forest(weight, int(rng.integers(d)))
    assert_allclose(sum(weight[j, p] for j, p in enumerate(parents) if p >= 0), expected)
    assert nx.is_forest(nx.Graph([(j, p) for j, p in enumerate(parents) if p >= 0] or [(0, 1)]))


@given(st.lists(st.booleans(), min_size=2, max_size=6), st.integers(0, 10_000))
def test_the_mixed_forest_is_the_best_without_numbers_as_parents(continuous, seed):
    d, rng = len(continuous), np.random.default_rng(seed)
    weight = rng.random((d, d))
    weight = weight + weight.T
    parents = mixed_forest(weight, np.array(continuous))
    assert not any(p >= 0 and continuous[p] and not continuous[j] for j, p in enumerate(parents))
    best = 0.0
    edges = list(itertools.combinations(range(d), 2))
    for chosen in itertools.combinations(edges, d - 1):
        graph = nx.Graph(chosen)
        graph.add_nodes_from(range(d))
        if nx.is_forest(graph) and not has_forbidden_path(graph, continuous):
            best = max(best, sum(weight[edge] for edge in chosen))
    assert_allclose(sum(weight[j, p] for j, p in enumerate(parents) if p >= 0), best)


def has_forbidden_path(graph, continuous):
    """Return whether two categories are joined by a path of numbers (Edwards et al. 2010)."""
    categories = [node for node in graph if not continuous[node]]
    for a, b in itertools.combinations(categories, 2):
        if nx.has_path(graph, a, b):
            between = nx.shortest_path(graph, a, b)[1:-1]
            if between and all(continuous[node] for node in between):
                return True
    return False


def test_a_tree_is_recovered_from_rows_that_it_made():
    rng = np.random.default_rng(0)
    parents = np.array([[-1, 0, 0, 1]])
    codes = np.zeros((20_000, 4), np.uint8)
    codes[:, 0] = rng.integers(1, 3, 20_000)
    for j, (parent, k) in enumerate(zip(parents[0], (2, 3, 2, 4), strict=True)):
        if parent >= 0:
            noise = rng.integers(1, k + 1, 20_000)
            codes[:, j] = np.where(rng.random(20_000) < 0.6, np.minimum(codes[:, parent], k), noise)
    tile = Mixed(Numbers(np.empty((20_000, 0))), Codes(codes, (2, 3, 2, 4)), (False,) * 4)
    found = Tree(BackOff()).estimate(Pairs.of(tile, assignment(np.zeros(20_000, int))))
    edges = [
        {frozenset((j, p)) for j, p in enumerate(tree.tolist()) if p >= 0} for tree in (found.parents[0], parents[0])
    ]
    assert edges[0] == edges[1]


def test_the_root_changes_no_density_of_maximum_likelihood(rows):
    codes, component = rows[0][(rows[0] > 0).all(axis=1)], rows[1][(rows[0] > 0).all(axis=1)]
    statistics = Pairs.of(tile_of(codes), assignment(component))
    density = Tree(BackOff(0.0, 0.0))
    chain, reversed_chain = np.array([[-1, 0, 1, 2]]), np.array([[1, 2, 3, -1]])
    log = [
        density.log_density(
            density.along(Forest((tuple(tree[0].tolist()),), ((0.0,) * 4,)), statistics), tile_of(codes)
        )
        for tree in (chain, reversed_chain)
    ]
    own = (range(len(codes)), component)
    assert_allclose(log[0][own], log[1][own])


def test_a_likeliest_tree_is_at_least_as_likely_as_independence(rows):
    codes, component = rows[0][(rows[0] > 0).all(axis=1)], rows[1][(rows[0] > 0).all(axis=1)]
    naive, tree, own_trees = (
        density.log_density(parameters, view(density, codes))[range(len(codes)), component].sum()
        for density, parameters in (
            fit(KDependence(0, BackOff(0.0, 0.0)), codes, component),
            fit(Tree(BackOff(0.0, 0.0)), codes, component),
            fit(Tree(BackOff(0.0, 0.0), one_tree=False), codes, component),
        )
    )
    assert naive <= tree <= own_trees


def test_a_penalty_leaves_out_edges_that_do_not_pay():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(1, k + 1, 500) for k in CARDINALITIES]).astype(np.uint8)
    component = rng.integers(0, 2, 500)
    assert (fit(Tree(BackOff(), penalty="bic"), codes, component)[1].parents == -1).all()
    parents = fit(Tree(BackOff()), codes, component)[1].parents
    assert (parents >= 0).tolist() == [[True, True, False, False]]  # a constant column has no edge


# Smoothing -------------------------------------------------------------------------------------------------------


def test_back_off_is_the_formula_by_hand():
    counts = np.zeros((2, 3, 3))
    counts[:, 1:, 1:] = [[[3, 1], [0, 2]], [[0, 0], [5, 0]]]
    s, alpha = 2.0, 1.0
    p_x = np.array([8 + alpha, 3 + alpha]) / (11 + 2 * alpha)
    p_xz = (np.array([[3, 3], [5, 0]]) + alpha * p_x) / (np.array([[6], [5]]) + alpha)
    p_xa = (np.array([[3, 1], [5, 2]]) + s * p_x) / (np.array([[4], [7]]) + s)
    n_az = np.array([[[4], [2]], [[0], [5]]])
    given = (counts[:, 1:, 1:] + s / 2 * p_xz[:, np.newaxis] + s / 2 * p_xa) / (n_az + s)
    found = np.exp(BackOff(s, alpha).log_conditional(counts)[:, :, 1:])
    assert_allclose(found, np.concatenate([p_xz[:, np.newaxis], given], axis=1))


def test_an_unseen_combination_has_half_the_effect_of_the_class():
    counts = np.zeros((2, 3, 3))
    counts[0, 1, 1:], counts[1, 1, 1:] = [9, 1], [1, 9]
    found = np.exp(BackOff(4.0, 0.0).log_conditional(counts)[:, :, 1:])
    assert_allclose(found[:, 2], (found[:, 0] + 0.5) / 2.0)


def test_without_back_off_it_is_pseudo_counts_a_category():
    counts = np.zeros((1, 3, 3))
    counts[0, 1:, 1:] = [[3, 1], [0, 0]]
    found = np.exp(BackOff(None, 1.0).log_conditional(counts)[0, 1:, 1:])
    assert_allclose(found, [[4 / 6, 2 / 6], [1 / 2, 1 / 2]])


def test_rows_without_their_parent_inform_the_back_off():
    counts = np.zeros((1, 2, 3))
    counts[0, 0, 1:] = [1, 9]
    found = np.exp(BackOff(1.0, 0.0).log_conditional(counts)[0, :, 1:])
    assert_allclose(found, [[0.1, 0.9], [0.1, 0.9]])


def test_the_full_joint_learns_maximum_likelihood_from_gaps():
    codes = np.array([[1, 1]] * 3 + [[2, 2]] * 1 + [[1, 0]] * 2 + [[0, 2]] * 2, np.uint8)
    everything = Assignment(np.zeros(len(codes), np.int32), np.ones(len(codes)), 1)
    density = FullJoint(alpha=0.0)
    found = np.exp(
        density.estimate(density.sufficient_statistics.of(Codes(codes, (2, 2)), everything)).log_probability[0, 1:, 1:]
    )

    def log_likelihood(p):
        return np.log(p[codes[:4, 0] - 1, codes[:4, 1] - 1]).sum() + 2 * np.log(p[0].sum()) + 2 * np.log(p[:, 1].sum())

    rng = np.random.default_rng(0)
    best = log_likelihood(np.maximum(found, 1e-12))
    for _ in range(300):
        other = np.maximum(found + rng.normal(0, 0.02, (2, 2)), 1e-12)
        assert log_likelihood(other / other.sum()) <= best + 1e-9


# Numbers ---------------------------------------------------------------------------------------------------------

CONTINUOUS = (True, False, False, True, False, False, True)


@pytest.fixture(scope="module")
def mixed(rows):
    rng = np.random.default_rng(2)
    codes, component = rows
    numbers = rng.normal(size=(len(codes), 3))
    numbers[:, 1] += numbers[:, 0] + codes[:, 1]
    numbers[:, 2] += 2.0 * numbers[:, 1]
    numbers[rng.random(numbers.shape) < 0.2] = np.nan
    return numbers + np.array([1e6, 0.0, -50.0]), codes, component


@pytest.mark.parametrize("shared", [True, False])
def test_missing_numbers_and_categories_are_marginalised_exactly(mixed, shared):
    numbers, codes, component = mixed
    tile, density = tile_of(codes, numbers, CONTINUOUS), Tree(BackOff(), one_tree=shared)
    parameters = density.estimate(Pairs.of(tile, assignment(component)))
    found = density.log_density(parameters, tile)
    for i in range(0, len(codes), 3):
        for z in range(2):
            assert_allclose(found[i, z], enumerated(parameters, z, codes[i], numbers[i]), rtol=1e-8)
    factors = density.log_factors(parameters, tile)
    assert_allclose(factors.sum(axis=2), found, rtol=1e-9, atol=1e-9)


def enumerated(parameters, z, codes, numbers):
    """Return log p of a row: the categories enumerated, the numbers one Gaussian given them."""
    tree, order = parameters.of_each(parameters.parents)[z], parameters.of_each(parameters.order)[z]
    position, start, m = parameters.position, parameters.start[z], len(numbers)
    terms = []
    for values in itertools.product(
        *[[c] if c else range(1, k + 1) for c, k in zip(codes, CARDINALITIES, strict=True)]
    ):
        log_p, mean, slope, variance = 0.0, np.zeros(m), np.zeros((m, m)), np.zeros(m)
        for j in order:
            p = tree[j]
            if not CONTINUOUS[j]:
                a = values[position[p]] if p >= 0 else 0
                log_p += parameters.table[start[j] + a * parameters.widths[j] + values[position[j]]]
                continue
            regression = p >= 0 and CONTINUOUS[p]
            line = parameters.normal[start[j] + (0 if regression or p < 0 else values[position[p]])]
            mean[position[j]] = line[0] + (line[1] * mean[position[p]] if regression else 0.0)
            if regression:
                slope[position[j], position[p]] = line[1]
            variance[position[j]] = line[2]
        spread = np.linalg.inv(np.eye(m) - slope)
        covariance = spread @ np.diag(variance) @ spread.T
        seen = ~np.isnan(numbers)
        if seen.any():
            x = (numbers - parameters.centre)[seen]
            log_p += multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x)
        terms.append(log_p)
    return logsumexp(terms)


def test_pairs_of_numbers_add_up_to_one_pass_at_any_offset(mixed):
    numbers, codes, component = mixed
    shifted = numbers + 1e9

    def of(rows):
        return Pairs.of(tile_of(codes[rows], shifted[rows], CONTINUOUS), assignment(component[rows])).together

    whole, parts = of(slice(None)), of(slice(0, 40)) + of(slice(40, 40)) + of(slice(40, None))
    for name in ("weight", "scatter", "cross"):
        assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-6)
    for z, i, j in itertools.product(range(2), range(3), range(3)):
        both = (component == z) & ~np.isnan(shifted[:, [i, j]]).any(axis=1)
        expected = np.cov(numbers[both, i], numbers[both, j], ddof=0)[0, 1] * both.sum()
        assert_allclose(whole.cross[z, i, j], expected, rtol=1e-4, atol=1e-4)


def test_a_mixed_tree_is_recovered_with_its_regressions(mixed):
    numbers, codes, component = mixed
    density = Tree(BackOff())
    parameters = density.estimate(Pairs.of(tile_of(codes, numbers, CONTINUOUS), assignment(component)))
    component = np.repeat([0, 1], 60_000)
    drawn = density.sample(parameters, component, np.random.default_rng(3))
    mask = np.array(CONTINUOUS)
    tile = tile_of(np.ascontiguousarray(drawn[:, ~mask].astype(np.uint8)), drawn[:, mask], CONTINUOUS)
    forest = Forest(tuple(map(tuple, parameters.parents.tolist())), tuple(map(tuple, parameters.edge_weights.tolist())))
    again = density.along(forest, Pairs.of(tile, assignment(component)))
    assert_allclose(again.normal[:, 1], parameters.normal[:, 1], atol=0.05)
    probe = tile_of(codes, numbers, CONTINUOUS)
    gap = density.log_density(again, probe) - density.log_density(parameters, probe)
    assert np.abs(gap).mean() < 0.1


# Expected counts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_tree", [True, False])
def test_expected_counts_are_those_of_enumeration(rows, one_tree):
    codes, component = rows
    density = Tree(BackOff(), one_tree=one_tree)
    parameters = density.estimate(Pairs.of(tile_of(codes), assignment(component)))
    weight = np.random.default_rng(0).integers(0, 3, len(codes)).astype(float)
    found, log_likelihood = density.expect(
        parameters, tile_of(codes), Assignment(component.astype(np.int32), weight, N_CLASSES)
    )
    log_joint = density.log_density(parameters, tile_of(GRID))
    expected = np.zeros((N_CLASSES, 5, 5, 5, 5))
    total = 0.0
    for row, z, w in zip(codes, component, weight, strict=True):
        consistent = ((row == 0) | (row == GRID)).all(axis=1)
        log_p = log_joint[consistent, z]
        total += w * logsumexp(log_p)
        np.add.at(expected[z], tuple(GRID[consistent].T), w * np.exp(log_p - logsumexp(log_p)))
    assert_allclose(log_likelihood, total)
    for z, tree in enumerate(parameters.of_each(parameters.parents)):
        for j, p in enumerate(tree):
            others = tuple(axis for axis in range(4) if axis not in (j, p))
            both = expected[z].sum(axis=others)
            if p < 0:
                assert_allclose(found.codes.single(j)[z], both[: CARDINALITIES[j] + 1], atol=1e-9)
            else:
                wanted = both if p < j else both.T
                counts = found.codes.pair(int(p), j)[z]
                assert_allclose(counts, wanted[: counts.shape[0], : counts.shape[1]], atol=1e-9)


@pytest.mark.parametrize("strength", [None, 0.0, 5.0])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("of_columns", [(), ((2.0, 7.0, 0.5),)])
def test_the_kernel_of_few_parents_agrees_with_general_tables(strength, alpha, of_columns):
    rng = np.random.default_rng(0)
    smoothing = BackOff(strength, alpha, of_columns)
    for shape in ((3, 5), (2, 4, 5), (2, 1, 5), (3, 4, 1), (2, 3, 5, 4), (2, 1, 4, 3), (2, 3, 1, 4)):
        counts = np.where(rng.random(shape) < 0.4, 3.0 * rng.random(shape), 0.0)
        with np.errstate(all="ignore"):
            expected = smoothing._of_many_parents(counts)
        assert_allclose(smoothing.log_conditional(counts), expected, rtol=1e-12, atol=1e-12)
        if len(shape) > 2:  # the tables of a pair may be a view with swapped columns
            view = np.ascontiguousarray(counts.swapaxes(1, -1)).swapaxes(1, -1)
            assert_allclose(smoothing.log_conditional(view), expected, rtol=1e-12, atol=1e-12)
