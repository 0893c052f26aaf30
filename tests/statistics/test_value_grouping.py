"""MODL value grouping: criterion against its definition, search against all partitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori.statistics.value_grouping import group_values, log_partitions


def partitions(n):
    """Yield every partition of n categories, as the group of each."""

    def extended(group, used):
        if len(group) == n:
            yield np.array(group)
            return
        for g in range(used + 1):
            yield from extended([*group, g], max(used, g + 1))

    yield from extended([], 0)


def partition_cost(counts, group):
    """Return the MODL cost of a partition of categories in nats, without the constant log K; less is better.

    log B(K, G) + Σ_g [log Γ(n_g + C) − log Γ(C) − Σ_c log Γ(n_gc + 1)], where B(K, G) is the number of partitions of K
    categories into at most G groups.
    """
    n_classes, n_groups = len(counts), int(group.max()) + 1
    sums = np.stack([np.bincount(group, row, n_groups) for row in counts])
    cost = float(log_partitions(counts.shape[1], n_groups)[-1])
    for column in sums.T.tolist():
        cost += math.lgamma(sum(column) + n_classes) - math.lgamma(n_classes) - sum(math.lgamma(n + 1) for n in column)
    return cost


def cost_by_definition(counts, group):
    """Boullé (2005), theorem 1, from factorials and a count of partitions; without log K."""
    n_classes, k = counts.shape
    n_groups = group.max() + 1
    cost = math.log(sum(partition.max() < n_groups for partition in partitions(k)))
    for g in range(n_groups):
        each = counts[:, group == g].sum(axis=1).astype(int).tolist()
        n = sum(each)
        cost += math.log(math.comb(n + n_classes - 1, n_classes - 1))
        cost += math.log(math.factorial(n) // math.prod(math.factorial(one) for one in each))
    return cost


tables = st.integers(2, 3).flatmap(
    lambda n_classes: st.lists(
        st.lists(st.integers(0, 30), min_size=n_classes, max_size=n_classes).filter(any), min_size=1, max_size=6
    )
)


@given(tables)
def test_the_cost_is_that_of_the_paper(rows):
    counts = np.array(rows, float).T
    for group in list(partitions(counts.shape[1]))[:20]:
        assert_allclose(partition_cost(counts, group), cost_by_definition(counts, group), rtol=1e-10)


@given(tables)
def test_no_merge_of_two_groups_costs_less(rows):
    counts = np.array(rows, float).T
    group = group_values(counts)
    cost = partition_cost(counts, group)
    for a in range(group.max() + 1):
        for b in range(a):
            merged = np.unique(np.where(group == a, b, group), return_inverse=True)[1]
            assert partition_cost(counts, merged) >= cost - 1e-9


def test_the_search_nearly_always_finds_the_best_partition():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        n_classes, k = rng.integers(2, 4), rng.integers(2, 7)
        levels = rng.dirichlet(np.full(n_classes, 0.5), size=3)[rng.integers(0, 3, k)]
        counts = np.stack([rng.multinomial(rng.integers(1, 40), p) for p in levels], axis=1).astype(float)
        best = min(partition_cost(counts, group) for group in partitions(k))
        found = partition_cost(counts, group_values(counts))
        assert found <= best + 1.0
        missed += found > best + 1e-9
    assert missed <= 3


def test_levels_of_many_categories_are_found_noise_is_one_group():
    rng = np.random.default_rng(1)
    counts = rng.binomial(40, np.repeat([0.1, 0.5, 0.9], 100)).astype(float)
    counts = np.stack([counts, 40 - counts])
    group = group_values(counts)
    assert group.max() + 1 == 3
    agreement = [np.bincount(group[level * 100 : level * 100 + 100]).max() for level in range(3)]
    assert min(agreement) > 95
    noise = np.stack([rng.binomial(2, 0.5, 300), rng.binomial(2, 0.5, 300)]).astype(float)
    assert group_values(noise).max() == 0


def test_groups_are_limited_and_unseen_ones_join_the_largest():
    counts = np.diag(np.full(8, 1000.0))
    assert group_values(counts, 8).max() == 7
    assert group_values(counts, 3).max() == 2
    group = group_values(np.concatenate([counts, counts[:, :2], np.zeros((8, 1))], axis=1)[:, [0, 8, 1, 2, 3, 10]], 8)
    assert group[5] == group[0] == group[1]


def test_without_classes_frequent_categories_are_own_groups():
    weight = np.array([[1.0, 5.0, 0.0, 3.0, 2.0]])
    group = group_values(weight, 3)
    assert group[1] != group[3]
    assert group[0] == group[4] == group[2]
    assert {group[1], group[3], group[0]} == {0, 1, 2}


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_numbers_of_partitions(n):
    exact = [sum(group.max() < g for group in partitions(n)) for g in range(1, n + 2)]
    assert_allclose(np.exp(log_partitions(n, n + 1)), exact)


def test_numbers_of_partitions_continue_beyond_the_exact_ones():
    exact, leading = log_partitions(4096, 64), log_partitions(4097, 64)
    assert_allclose(leading - exact, np.log(np.arange(1, 65)), atol=1e-3)
