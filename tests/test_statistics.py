"""Laws of sufficient statistics: they form a commutative monoid, and weights are repetitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.statistics import Counts, JointStatistics, Moments
from posteriori.tables import Assignment, Codes, Numbers

N_COMPONENTS = 3
CARDINALITIES = (2, 1, 4)

cells = st.one_of(st.floats(-1e3, 1e3, width=32), st.just(np.nan))


@st.composite
def batches(draw, min_rows=0):
    n = draw(st.integers(min_rows, 12))
    values = draw(hnp.arrays(np.float64, (n, 2), elements=cells))
    codes = np.column_stack([draw(hnp.arrays(np.uint8, n, elements=st.integers(0, k))) for k in CARDINALITIES]).reshape(
        n, 3
    )
    component = draw(hnp.arrays(np.int32, n, elements=st.integers(0, N_COMPONENTS - 1)))
    weight = draw(hnp.arrays(np.float64, n, elements=st.integers(0, 4)))
    return np.ascontiguousarray(values), np.ascontiguousarray(codes), component, weight


def statistics_of(batch, rows=slice(None)):
    values, codes, component, weight = (part[rows] for part in batch)
    assignment = Assignment(component, weight, N_COMPONENTS)
    return JointStatistics(
        np.bincount(component, weight, N_COMPONENTS),
        (Moments.of(Numbers(values), assignment), Counts.of(Codes(codes, CARDINALITIES), assignment)),
    )


def assert_same(a, b, rtol=1e-9):
    assert_allclose(a.weight, b.weight)
    assert_allclose(a.blocks[1].table, b.blocks[1].table)
    first, second = a.blocks[0], b.blocks[0]
    assert_allclose(first.weight, second.weight)
    seen = first.weight > 0
    assert_allclose(first.mean[seen], second.mean[seen], rtol=rtol, atol=1e-9)
    assert_allclose(first.scatter[seen], second.scatter[seen], rtol=rtol, atol=1e-6)


@given(batches(), batches())
def test_addition_commutes(a, b):
    assert_same(statistics_of(a) + statistics_of(b), statistics_of(b) + statistics_of(a))


@given(batches(), batches(), batches())
def test_addition_is_associative(a, b, c):
    a, b, c = map(statistics_of, (a, b, c))
    assert_same((a + b) + c, a + (b + c))


@given(batches(min_rows=1))
def test_no_rows_are_the_identity(batch):
    nothing = statistics_of(batch, slice(0, 0))
    assert_same(statistics_of(batch) + nothing, statistics_of(batch))
    assert_same(nothing + statistics_of(batch), statistics_of(batch))


@given(batches(min_rows=2), st.data())
def test_any_partition_adds_up_to_the_whole(batch, data):
    n = len(batch[0])
    part = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    parts = [statistics_of(batch, part == k) for k in range(3)]
    assert_same(parts[0] + parts[1] + parts[2], statistics_of(batch))


@given(batches())
def test_weights_are_repetitions(batch):
    repeated = tuple(np.repeat(part, batch[3].astype(int), axis=0) for part in batch[:3])
    ones = np.ones(len(repeated[0]))
    assert_same(statistics_of(batch), statistics_of((*repeated, ones)))


@given(batches())
def test_against_the_definition(batch):
    values, codes, component, weight = batch
    result = statistics_of(batch)
    for z in range(N_COMPONENTS):
        mine = component == z
        for j in range(values.shape[1]):
            present = mine & ~np.isnan(values[:, j])
            w, x = weight[present], values[present, j]
            assert_allclose(result.blocks[0].weight[z, j], w.sum())
            if w.sum() > 0:
                mean = (w * x).sum() / w.sum()
                assert_allclose(result.blocks[0].mean[z, j], mean, atol=1e-9)
                assert_allclose(result.blocks[0].scatter[z, j], (w * (x - mean) ** 2).sum(), atol=1e-6)
        for j, cardinality in enumerate(CARDINALITIES):
            expected = np.bincount(codes[mine, j], weight[mine], cardinality + 1)
            assert_array_equal(result.blocks[1].missing(j)[z], expected[0])
            assert_array_equal(result.blocks[1].column(j)[z], expected[1:])
            assert_allclose(result.blocks[1].observed()[z, j], expected[1:].sum())


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
@pytest.mark.parametrize("pieces", [1, 7])
def test_an_offset_costs_no_digits(offset, pieces):
    rng = np.random.default_rng(0)
    n = 5000
    # Multiples of 2^-10 are exact beside 1e12, so that the offset changes nothing but the arithmetic.
    x = np.round(rng.normal(size=(n, 2)) * 1024) / 1024
    component = rng.integers(0, N_COMPONENTS, n).astype(np.int32)
    total = None
    for rows in np.array_split(np.arange(n), pieces):
        assignment = Assignment(component[rows], np.ones(len(rows)), N_COMPONENTS)
        part = Moments.of(Numbers(x[rows] + offset), assignment)
        total = part if total is None else total + part
    for z in range(N_COMPONENTS):
        mine = x[component == z]
        assert_allclose(total.scatter[z], len(mine) * mine.var(axis=0), rtol=1e-11)
        assert_allclose(total.mean[z] - offset, mine.mean(axis=0), atol=abs(offset) * 2e-16 + 1e-13)


def test_a_far_outlier_of_no_weight_costs_no_digits():
    x = np.array([[1e17], [1.0], [2.0], [4.0]])
    assignment = Assignment(np.zeros(4, np.int32), np.array([0.0, 1, 1, 1]), 1)
    moments = Moments.of(Numbers(x), assignment)
    assert_allclose(moments.scatter, [[np.var([1, 2, 4]) * 3]], rtol=1e-14)


def test_classes_far_apart_do_not_blur_each_other():
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=2000) * 1024) / 1024
    component = np.repeat([0, 1], 1000).astype(np.int32)
    moments = Moments.of(Numbers((x + 1e12 * component).reshape(-1, 1)), Assignment(component, np.ones(2000), 2))
    assert_allclose(moments.scatter[:, 0], [x[:1000].var() * 1000, x[1000:].var() * 1000], rtol=1e-10)


@given(batches(min_rows=1), st.permutations(range(N_COMPONENTS)))
def test_reindexing_moves_components_and_categories(batch, order):
    values, codes, component, weight = batch
    statistics = statistics_of(batch)
    # Component z of the result was order[z]; the first column gets a new category in front.
    moved = statistics.reindexed([*order, -1], [None, [[-1, 0, 1], [0], [3, 2, 1, 0]]])
    place = np.argsort(order)
    new_codes = codes.copy()
    new_codes[:, 0] = np.array([0, 2, 3])[codes[:, 0]]
    new_codes[:, 2] = np.array([0, 4, 3, 2, 1])[codes[:, 2]]
    assignment = Assignment(place[component].astype(np.int32), weight, N_COMPONENTS + 1)
    assert_array_equal(moved.blocks[1].table, Counts.of(Codes(new_codes, (3, 1, 4)), assignment).table)
    direct = Moments.of(Numbers(values), assignment)
    assert_allclose(moved.blocks[0].weight, direct.weight)
    assert_allclose(moved.blocks[0].scatter, direct.scatter)
    assert_array_equal(moved.weight, np.bincount(assignment.component, weight, N_COMPONENTS + 1))


@settings(max_examples=20)
@given(batches(min_rows=1))
def test_pooled_moments_are_those_of_all_rows(batch):
    values, _, _, weight = batch
    pooled = statistics_of(batch).blocks[0].pooled()
    together = Moments.of(Numbers(values), Assignment(np.zeros(len(values), np.int32), weight, 1))
    assert_allclose(pooled.weight, together.weight)
    assert_allclose(pooled.scatter, together.scatter, rtol=1e-9, atol=1e-6)


def test_columns_that_cannot_be_computed_with_are_told_apart():
    x = np.array([[1.0, np.inf, 1.0, 1e200], [2.0, 0.0, np.nan, 1.0]])
    moments = Moments.of(Numbers(x), Assignment(np.zeros(2, np.int32), np.ones(2), 1))
    assert moments.finite().tolist() == [True, False, True, False]
