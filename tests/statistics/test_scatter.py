"""Laws of second moments: a commutative monoid, weights are repetitions, an offset costs no digits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.statistics import Moments, Scatter
from posteriori.tables import Assignment, Column, Numbers, Schema

Z, D = 3, 3
numbers = st.floats(-1e3, 1e3, width=32)
cells = st.one_of(numbers, st.just(np.nan))


@st.composite
def batches(draw, elements=numbers, min_rows=0):
    n = draw(st.integers(min_rows, 12))
    values = draw(hnp.arrays(np.float64, (n, D), elements=elements))
    component = draw(hnp.arrays(np.int32, n, elements=st.integers(0, Z - 1)))
    weight = draw(hnp.arrays(np.float64, n, elements=st.integers(0, 4)))
    return values, component, weight


def scatter_of(batch, rows=slice(None)):
    values, component, weight = (part[rows] for part in batch)
    return Scatter.of(Numbers(np.ascontiguousarray(values)), Assignment(component, weight, Z))


def assert_same(a, b, rtol=1e-9):
    assert_allclose(a.weight, b.weight)
    assert_allclose(a.cells.weight, b.cells.weight)
    seen = a.weight > 0
    assert_allclose(a.mean[seen], b.mean[seen], rtol=rtol, atol=1e-9)
    assert_allclose(a.scatter[seen], b.scatter[seen], rtol=rtol, atol=1e-5)
    present = a.cells.weight > 0
    assert_allclose(a.cells.mean[present], b.cells.mean[present], rtol=rtol, atol=1e-9)
    assert_allclose(a.cells.scatter[present], b.cells.scatter[present], rtol=rtol, atol=1e-5)


@given(batches())
def test_against_the_definition(batch):
    values, component, weight = batch
    result = scatter_of(batch)
    assert result.is_exact()
    for z in range(Z):
        x, w = values[component == z], weight[component == z]
        assert_allclose(result.weight[z], w.sum())
        if w.sum() > 0:
            mean = w @ x / w.sum()
            assert_allclose(result.mean[z], mean, atol=1e-9)
            assert_allclose(result.scatter[z], (x - mean).T @ ((x - mean) * w[:, np.newaxis]), atol=1e-5)
        else:
            assert_array_equal(result.scatter[z], 0.0)


@given(batches(), batches(), batches())
def test_addition_is_associative_and_commutes(a, b, c):
    a, b, c = map(scatter_of, (a, b, c))
    assert_same(a + b, b + a)
    assert_same((a + b) + c, a + (b + c))


@given(batches(min_rows=1))
def test_no_rows_are_the_identity(batch):
    nothing = scatter_of(batch, slice(0, 0))
    assert_same(scatter_of(batch) + nothing, scatter_of(batch))
    assert_same(nothing + scatter_of(batch), scatter_of(batch))


@given(batches(min_rows=2), st.data())
def test_any_partition_adds_up_to_the_whole(batch, data):
    n = len(batch[0])
    part = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    parts = [scatter_of(batch, part == k) for k in range(3)]
    assert_same(parts[0] + parts[1] + parts[2], scatter_of(batch))


@given(batches(elements=cells))
def test_weights_are_repetitions(batch):
    repeated = tuple(np.repeat(part, batch[2].astype(int), axis=0) for part in batch[:2])
    assert_same(scatter_of(batch), scatter_of((*repeated, np.ones(len(repeated[0])))))


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("d", [1, 3, 40])
def test_an_offset_costs_no_digits(offset, pieces, d):
    rng = np.random.default_rng(0)
    n = 9000
    # Multiples of 2^-10 are exact beside 1e12, so that the offset changes nothing but the arithmetic.
    x = np.round(rng.normal(size=(n, d)) * 1024) / 1024
    component = rng.integers(0, Z, n).astype(np.int32)
    total = None
    for rows in np.array_split(np.arange(n), pieces):
        part = Scatter.of(Numbers(x[rows] + offset), Assignment(component[rows], np.ones(len(rows)), Z))
        total = part if total is None else total + part
    for z in range(Z):
        mine = x[component == z]
        assert_allclose(total.scatter[z], np.cov(mine.T, ddof=0) * len(mine), rtol=1e-10, atol=1e-8)
        assert_allclose(total.mean[z] - offset, mine.mean(axis=0), atol=abs(offset) * 2e-16 + 1e-13)


def test_scatter_matrices_are_symmetric_to_the_last_bit():
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(500, 5)), rng.integers(0, Z, 500).astype(np.int32), rng.random(500)
    scatter = scatter_of(batch).scatter
    assert_array_equal(scatter, scatter.transpose(0, 2, 1))


@given(batches(elements=cells))
def test_present_cells_are_counted_and_gaps_make_sums_inexact(batch):
    values, component, weight = batch
    result = scatter_of(batch)
    moments = Moments.of(Numbers(values), Assignment(component, weight, Z))
    assert_allclose(result.observed(), moments.weight)
    assert result.is_exact() == (not np.isnan(values[weight > 0]).any())
    # Where only the present cells speak, a column that was seen has the mean and variance they have.
    start = result.independent()
    seen = moments.weight > 0
    assert_allclose(start.mean[seen], moments.mean[seen], atol=1e-9)
    variance = np.diagonal(start.scatter, axis1=1, axis2=2) / np.maximum(start.weight, 1)[:, np.newaxis]
    assert_allclose(variance[seen], (moments.scatter / np.maximum(moments.weight, 1))[seen], rtol=1e-9, atol=1e-6)


def test_a_column_unseen_in_a_component_starts_as_in_all():
    x = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, np.nan], [4.0, np.nan]])
    start = Scatter.of(Numbers(x), Assignment(np.array([0, 0, 1, 1], np.int32), np.ones(4), 2)).independent()
    assert_allclose(start.mean[1], [3.5, 6.0])
    assert_allclose(start.scatter[1] / 2, np.diag([0.25, 1.0]))


@given(batches(elements=cells, min_rows=1), st.permutations(range(Z)))
def test_components_can_be_renamed_and_added(batch, order):
    values, component, weight = batch
    moved = scatter_of((values, np.argsort(order).astype(np.int32)[component], weight))
    assert_same(scatter_of(batch).reindexed(order), moved)
    grown = scatter_of(batch).reindexed([0, 1, 2, -1])
    assert grown.weight[3] == 0
    assert grown.cells.weight[3].sum() == 0


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e200])
def test_what_cannot_be_computed_with_is_told_of(value):
    x = np.array([[1.0, 2.0], [value, 3.0], [2.0, np.nan]])
    assert not Scatter.of(Numbers(x[:2]), Assignment(np.zeros(2, np.int32), np.ones(2), 1)).finite().all()
    assert not Scatter.of(Numbers(x), Assignment(np.zeros(3, np.int32), np.ones(3), 1)).finite().all()


def test_float32_is_read_as_it_is():
    rng = np.random.default_rng(0)
    x, component = rng.normal(size=(50, 3)).astype(np.float32), rng.integers(0, Z, 50).astype(np.int32)
    assert_same(scatter_of((x, component, np.ones(50))), scatter_of((x.astype(float), component, np.ones(50))))


def test_the_scatter_of_huge_numbers_is_checked_without_overflow():
    x = np.array([[1e140, -3e140], [-2e140, 5e139], [4e139, 1e140]])
    schema = Schema(tuple(Column(name, "continuous") for name in "ab"))
    scatter = Scatter.of(Numbers(x), Assignment(np.zeros(3, np.int32), np.ones(3), 1))
    scatter.check_against(schema.columns, 1)
    skew = replace(scatter, scatter=scatter.scatter * np.array([[1.0, 1.001], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="not symmetric"):
        skew.check_against(schema.columns, 1)
