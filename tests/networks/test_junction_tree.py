"""The junction tree against enumeration of the joint distribution."""

import itertools
import math
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom

from posteriori.networks.inference.clique_tables import (
    COSTS,
    Factor,
    build_clique_tree,
    eliminate,
    fill_tables,
    join,
    most_bytes,
    triangulate,
)
from posteriori.networks.inference.junction_tree import _assigned, compile_tree


def random_network(rng, n_variables, most_states=4, zeros=0.3, most_parents=3):
    """Return cardinalities and the CPTs of a random DAG, some cells 0, variables in no particular order."""
    cardinalities = tuple(int(k) for k in rng.integers(1, most_states + 1, n_variables))
    order = rng.permutation(n_variables)
    factors = []
    for i, v in enumerate(order):
        parents = rng.choice(order[:i], rng.integers(0, min(i, most_parents) + 1), replace=False) if i else []
        scope = (*(int(u) for u in parents), int(v))
        table = rng.random([cardinalities[u] for u in scope]) + 1e-3
        possible = rng.random(table.shape) >= zeros
        possible[..., 0] |= ~possible.any(axis=-1)
        table *= possible
        factors.append(Factor(scope, table / table.sum(axis=-1, keepdims=True)))
    return cardinalities, factors


def random_evidence(rng, cardinalities, n_rows, share=0.4):
    """Return hard findings, and likelihoods of two variables, one for all rows and one for each."""
    codes = np.array([[rng.integers(k) if rng.random() < share else -1 for k in cardinalities] for _ in range(n_rows)])
    u, v = rng.choice(len(cardinalities), 2, replace=False) if len(cardinalities) > 1 else (0, 0)
    soft = {int(u): rng.random(cardinalities[u])}
    soft[int(v)] = rng.random((n_rows, cardinalities[v])) * (rng.random((n_rows, cardinalities[v])) < 0.8)
    return codes.reshape(n_rows, len(cardinalities)), soft


def enumerated(cardinalities, factors, codes=None, soft=None):
    """Return p(x, evidence) of one row of evidence as a table of all variables."""
    joint = np.ones(cardinalities)
    likelihoods = [] if soft is None else [Factor((v,), likelihood) for v, likelihood in soft.items()]
    if codes is not None:
        likelihoods += [Factor((v,), np.eye(cardinalities[v])[code]) for v, code in enumerate(codes) if code >= 0]
    for factor in [*factors, *likelihoods]:
        joint = np.einsum(joint, range(len(cardinalities)), factor.table, factor.scope, range(len(cardinalities)))
    return joint


def row_of(soft, i):
    return {v: likelihood if likelihood.ndim == 1 else likelihood[i] for v, likelihood in soft.items()}


def summed_onto(joint, variables):
    return np.einsum(joint, range(joint.ndim), variables)


networks = st.builds(lambda seed, n: (np.random.default_rng(seed), n), st.integers(0, 2**32), st.integers(1, 7))


@given(networks)
def test_beliefs_are_those_of_enumeration(drawn):
    rng, n_variables = drawn
    cardinalities, factors = random_network(rng, n_variables)
    codes, soft = random_evidence(rng, cardinalities, 11)
    tree = compile_tree(cardinalities, factors)
    assert tree.total_size <= math.prod(cardinalities) * n_variables
    for likelihoods in (None, soft):
        marginals, log_evidence = tree.marginals(codes, likelihoods)
        assert_array_equal(tree.log_evidence(codes, likelihoods), log_evidence)
        for i in range(len(codes)):
            joint = enumerated(cardinalities, factors, codes[i], likelihoods and row_of(likelihoods, i))
            total = joint.sum()
            if total == 0:
                assert log_evidence[i] == -np.inf
                assert all(np.isnan(marginal[i]).all() for marginal in marginals)
                continue
            assert_allclose(log_evidence[i], np.log(total), rtol=1e-12, atol=1e-12)
            for v, marginal in enumerate(marginals):
                assert_allclose(marginal[i], summed_onto(joint, [v]) / total, rtol=1e-11, atol=1e-13)


@given(networks)
def test_the_most_probable_configuration_is_that_of_enumeration(drawn):
    rng, n_variables = drawn
    cardinalities, factors = random_network(rng, n_variables)
    codes, soft = random_evidence(rng, cardinalities, 9)
    found, log_probability = compile_tree(cardinalities, factors).most_probable(codes, soft)
    for i in range(len(codes)):
        joint = enumerated(cardinalities, factors, codes[i], row_of(soft, i))
        if joint.max() == 0:
            assert log_probability[i] == -np.inf
            assert (found[i] == -1).all()
        else:
            assert_allclose(log_probability[i], np.log(joint.max()), rtol=1e-12, atol=1e-12)
            assert_allclose(joint[tuple(found[i])], joint.max(), rtol=1e-12)


@given(networks, st.data())
def test_the_joint_of_any_variables_is_that_of_enumeration(drawn, data):
    rng, n_variables = drawn
    cardinalities, factors = random_network(rng, n_variables)
    codes, soft = random_evidence(rng, cardinalities, 1, share=0.2)
    variables = data.draw(st.permutations(range(n_variables)))[: data.draw(st.integers(0, 4))]
    tree = compile_tree(cardinalities, factors)
    joint, log_evidence = tree.joint(variables, codes[0], row_of(soft, 0))
    expected = summed_onto(enumerated(cardinalities, factors, codes[0], row_of(soft, 0)), variables)
    assert joint.shape == tuple(cardinalities[v] for v in variables)
    if expected.sum() == 0:
        assert log_evidence == -np.inf
        assert np.isnan(joint).all()
    else:
        assert_allclose(log_evidence, np.log(expected.sum()), rtol=1e-12, atol=1e-12)
        assert_allclose(joint, expected / expected.sum(), rtol=1e-11, atol=1e-13)


@given(networks)
def test_expected_counts_are_those_of_enumeration(drawn):
    rng, n_variables = drawn
    cardinalities, factors = random_network(rng, n_variables)
    codes, soft = random_evidence(rng, cardinalities, 19)
    weight = rng.random(19) * (rng.random(19) < 0.8)
    tree = compile_tree(cardinalities, factors)
    scopes = [tuple(rng.permutation(factor.scope).tolist()) for factor in factors]
    counts, log_likelihood = tree.expected_counts(codes, weight, scopes, soft)
    expected = [np.zeros(table.shape) for table in counts]
    log_expected = 0.0
    for i in range(len(codes)):
        joint = enumerated(cardinalities, factors, codes[i], row_of(soft, i))
        if joint.sum() > 0:
            for table, scope in zip(expected, scopes, strict=True):
                table += weight[i] * summed_onto(joint, scope) / joint.sum()
        if weight[i] > 0:
            log_expected += weight[i] * (np.log(joint.sum()) if joint.sum() > 0 else -np.inf)
    assert_allclose(log_likelihood, log_expected, rtol=1e-12, atol=1e-12)
    for table, known in zip(counts, expected, strict=True):
        assert_allclose(table, known, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_draws_have_the_frequencies_of_the_posterior(seed):
    rng = np.random.default_rng(seed)
    cardinalities, factors = random_network(rng, 5, most_states=3)
    possible = np.argwhere(enumerated(cardinalities, factors) > 0)
    codes = np.full(5, -1)
    codes[:2] = possible[0, :2]
    soft = {4: rng.random(cardinalities[4]) + 0.1}
    posterior = enumerated(cardinalities, factors, codes, soft)
    posterior /= posterior.sum()
    n = 20_000
    drawn = compile_tree(cardinalities, factors).sample(codes, n, rng, soft)
    assert drawn.shape == (n, 5)
    counted = np.zeros(cardinalities, int)
    np.add.at(counted, tuple(drawn.T), 1)
    assert (counted[posterior == 0] == 0).all()
    unlikely = 1e-7 / posterior.size
    assert (counted >= binom.ppf(unlikely, n, posterior)).all()
    assert (counted <= binom.isf(unlikely, n, posterior)).all()


def test_answers_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("posteriori.networks.inference.junction_tree._WORTH_A_THREAD", 1)
    started = []

    class Counted(ThreadPoolExecutor):
        def __init__(self, n_threads):
            started.append(n_threads)
            super().__init__(n_threads)

    monkeypatch.setattr("posteriori.networks.inference.junction_tree.ThreadPoolExecutor", Counted)
    rng = np.random.default_rng(0)
    cardinalities, factors = random_network(rng, 12, zeros=0.1)
    codes, soft = random_evidence(rng, cardinalities, 101, share=0.2)
    tree = compile_tree(cardinalities, factors)
    weight = rng.random(101)
    scopes = [factor.scope for factor in factors]

    def answers(n_jobs):
        marginals, log_evidence = tree.marginals(codes, soft, n_jobs)
        found, log_probability = tree.most_probable(codes, soft, n_jobs)
        counts, log_likelihood = tree.expected_counts(codes, weight, scopes, soft, n_jobs)
        return [*marginals, log_evidence, found, log_probability, *counts, np.array(log_likelihood)]

    alone = answers(1)
    assert not started
    for n_jobs in (2, 5):
        for one, other in zip(alone, answers(n_jobs), strict=True):
            assert_array_equal(one, other)
    assert max(started) == 5


def test_only_the_marginals_asked_for():
    rng = np.random.default_rng(1)
    cardinalities, factors = random_network(rng, 7)
    tree = compile_tree(cardinalities, factors)
    codes = np.full((3, 7), -1)
    everything, _ = tree.marginals(codes)
    some, _ = tree.marginals(codes, variables=[5, 2])
    assert_array_equal(some[0], everything[5])
    assert_array_equal(some[1], everything[2])


def test_factors_need_not_be_a_network():
    rng = np.random.default_rng(2)
    cardinalities = (2, 3, 2, 2, 3)
    scopes = [(0, 1), (1, 2), (2, 3), (3, 0), (4,), (4,)]
    factors = [Factor(scope, 100 * rng.random([cardinalities[v] for v in scope])) for scope in scopes]
    joint = enumerated(cardinalities, factors)
    marginals, log_evidence = compile_tree(cardinalities, factors).marginals(np.full((1, 5), -1))
    assert_allclose(log_evidence, np.log(joint.sum()))
    for v, marginal in enumerate(marginals):
        assert_allclose(marginal[0], summed_onto(joint, [v]) / joint.sum())


def test_tables_that_contradict_each_other_rule_everything_out():
    factors = [Factor((0,), np.array([1.0, 0.0])), Factor((0, 1), np.array([[0.0, 0.0], [0.5, 0.5]]))]
    tree = compile_tree((2, 2), factors)
    marginals, log_evidence = tree.marginals(np.array([[-1, -1], [0, 1]]))
    assert_array_equal(log_evidence, -np.inf)
    assert np.isnan(np.concatenate(marginals)).all()
    assert tree.most_probable(np.array([[-1, -1]]))[1][0] == -np.inf
    with pytest.raises(ValueError, match="probability 0"):
        tree.sample(np.array([-1, -1]), 3, np.random.default_rng(0))


def test_other_tables_over_the_same_scopes():
    rng = np.random.default_rng(3)
    cardinalities, factors = random_network(rng, 6, zeros=0.5)
    others = [
        Factor(factor.scope, rng.dirichlet(np.ones(factor.table.size)).reshape(factor.table.shape))
        for factor in factors
    ]
    codes = np.array([[0, *[-1] * 5], [-1] * 6])
    changed = compile_tree(cardinalities, factors).with_factors(others)
    for one, other in zip(
        changed.marginals(codes)[0], compile_tree(cardinalities, others).marginals(codes)[0], strict=True
    ):
        assert_array_equal(one, other)


def test_a_long_chain_of_faint_evidence_does_not_underflow():
    n = 1500
    step = np.array([[0.9, 0.1], [0.2, 0.8]])
    faint = np.array([[1 - 1e-5, 1e-5], [1 - 3e-5, 3e-5]])
    chain = [Factor((0,), np.array([0.5, 0.5])), *(Factor((i, i + 1), step) for i in range(n - 1))]
    factors = chain + [Factor((i, n + i), faint) for i in range(n)]
    codes = np.full((2, 2 * n), -1)
    codes[:, n:] = 1
    marginals, log_evidence = compile_tree((2,) * (2 * n), factors).marginals(codes)
    forward, log_expected = np.array([0.5, 0.5]), 0.0
    for i in range(n):
        forward = (forward @ step if i else forward) * faint[:, 1]
        log_expected += np.log(forward.sum())
        forward /= forward.sum()
    assert_allclose(log_evidence, log_expected, rtol=1e-12)
    assert_allclose(marginals[n - 1][0], forward, rtol=1e-10)


def test_a_hub_with_thousands_of_findings_does_not_underflow():
    n = 3000
    rng = np.random.default_rng(4)
    tables = rng.random((n, 3, 2)) * [1, 1e-6]
    tables[:, :, 0] = 1 - tables[:, :, 1]
    factors = [Factor((0,), np.array([0.2, 0.3, 0.5])), *(Factor((0, v + 1), tables[v]) for v in range(n))]
    codes = np.array([[-1, *[1] * n]])
    marginals, log_evidence = compile_tree((3,) + (2,) * n, factors).marginals(codes)
    log_joint = np.log([0.2, 0.3, 0.5]) + np.log(tables[:, :, 1]).sum(axis=0)
    assert_allclose(log_evidence, np.logaddexp.reduce(log_joint), rtol=1e-12)
    assert_allclose(marginals[0][0], np.exp(log_joint - np.logaddexp.reduce(log_joint)), rtol=1e-8, atol=1e-300)


def test_no_rows_and_no_findings():
    cardinalities, factors = random_network(np.random.default_rng(5), 4)
    tree = compile_tree(cardinalities, factors)
    marginals, log_evidence = tree.marginals(np.empty((0, 4), int))
    assert [marginal.shape for marginal in marginals] == [(0, k) for k in cardinalities]
    assert log_evidence.shape == (0,)
    assert_allclose(tree.log_evidence(np.full((1, 4), -1)), 0, atol=1e-12)


def test_a_tree_that_is_too_large_is_refused_with_its_size():
    n = 30
    factors = [Factor((u, v), np.ones((4, 4))) for u, v in itertools.combinations(range(n), 2)]
    with pytest.raises(ValueError, match=r"about 1e18 cells for 30 variables; one table may not have 2\*\*31"):
        compile_tree((4,) * n, factors)
    with pytest.raises(
        ValueError, match=r"needs clique tables of 16 cells, .* max_table_size = 15; .*max_table_size=16 "
    ):
        compile_tree((4, 4), [Factor((0, 1), np.ones((4, 4)))], max_table_size=15)


@pytest.mark.parametrize("zeros", [0.0, 0.9])
@pytest.mark.parametrize("width", [8, 16])
def test_the_memory_that_is_stated_is_about_what_compiling_takes(zeros, width):
    rng = np.random.default_rng(0)
    factors, cardinalities = [], (2,) * (4 * (width - 2) + 2)
    for first in range(0, 4 * (width - 2), width - 2):
        table = rng.random((2,) * width)
        table[rng.random(table.shape) < zeros] = 0
        table[(0,) * width] = 1
        factors.append(Factor(tuple(range(first, first + width)), table))
    tree = compile_tree(cardinalities, factors)
    stated = most_bytes(tree.skeleton, _assigned(tree.triangulation, tree.skeleton, factors))
    tracemalloc.start()
    fill_tables(tree.skeleton, _assigned(tree.triangulation, tree.skeleton, factors))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    slack = 1 << 17  # Python objects, of which a small tree is mostly made
    assert taken <= 1.25 * stated + slack
    assert stated <= 3 * taken + slack


@pytest.mark.parametrize(
    ("codes", "soft", "message"),
    [
        ([[0, 2]], None, r"code 2 in row 0 is none of the 2 states of variable 1"),
        ([[0]], None, r"codes have shape \(1, 1\)"),
        ([[0, 0]], {1: np.ones(3)}, r"likelihood of variable 1 has shape \(3,\)"),
    ],
)
def test_evidence_of_another_shape_is_refused(codes, soft, message):
    tree = compile_tree((2, 2), [Factor((0, 1), np.full((2, 2), 0.25))])
    with pytest.raises(ValueError, match=message):
        tree.marginals(np.array(codes), soft)


def test_scopes_and_tables_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"table of \(0, 1\) has shape \(2, 3\); \(2, 2\) is needed"):
        compile_tree((2, 2), [Factor((0, 1), np.ones((2, 3)))])
    tree = compile_tree((2, 2, 2), [Factor((0, 1), np.ones((2, 2))), Factor((1, 2), np.ones((2, 2)))])
    with pytest.raises(ValueError, match=r"no clique contains all variables of \(0, 2\)"):
        tree.expected_counts(np.full((1, 3), -1), np.ones(1), [(0, 2)])


@given(networks, st.sampled_from(COSTS))
def test_cliques_are_a_junction_tree(drawn, cost):
    rng, n_variables = drawn
    cardinalities, factors = random_network(rng, n_variables)
    scopes = [factor.scope for factor in factors]
    graph, weights = join(n_variables, scopes), np.log2(cardinalities).tolist()
    order, neighbours = eliminate(graph, range(n_variables), weights, cost, rng.permutation(n_variables).tolist())
    for tree in (build_clique_tree(order, neighbours, cardinalities), triangulate(cardinalities, scopes)):
        for i, clique in enumerate(tree.cliques):
            assert not any(clique.scope <= other.scope for j, other in enumerate(tree.cliques) if i != j)
            assert clique.parent < i
            # What a clique shares with any that comes before it, it shares with its parent: running intersection.
            before = set().union(*(other.scope for other in tree.cliques[:i]))
            assert clique.scope & before == clique.separator
            assert not clique.separator or clique.separator <= tree.cliques[clique.parent].scope
        assert all(set(scope) <= tree.cliques[tree.home(scope)].scope for scope in scopes)
        assert tree.total_size == sum(math.prod(cardinalities[v] for v in clique.scope) for clique in tree.cliques)


def test_a_chain_is_triangulated_into_its_edges():
    tree = triangulate((3,) * 40, [(i, i + 1) for i in range(39)])
    assert sorted(sorted(clique.scope) for clique in tree.cliques) == [[i, i + 1] for i in range(39)]
    assert tree.total_size == 39 * 9
