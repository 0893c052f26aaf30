"""Laws of sufficient statistics: they form a commutative monoid, and weights are repetitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.statistics import (
    Counts,
    CountTogether,
    JointStatistics,
    Moments,
    Pairs,
    Scatter,
    TailMoments,
    from_responsibilities,
)
from posteriori.tables import Assignment, Codes, Numbers
from posteriori.tables.batch import Mixed

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
    position = np.argsort(order)
    new_codes = codes.copy()
    new_codes[:, 0] = np.array([0, 2, 3])[codes[:, 0]]
    new_codes[:, 2] = np.array([0, 4, 3, 2, 1])[codes[:, 2]]
    assignment = Assignment(position[component].astype(np.int32), weight, N_COMPONENTS + 1)
    assert_array_equal(moved.blocks[1].table, Counts.of(Codes(new_codes, (3, 1, 4)), assignment).table)
    direct = Moments.of(Numbers(values), assignment)
    assert_allclose(moved.blocks[0].weight, direct.weight)
    assert_allclose(moved.blocks[0].scatter, direct.scatter)
    assert_array_equal(moved.weight, np.bincount(assignment.component, weight, N_COMPONENTS + 1))


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


# Rows of which every component has a share ---------------------------------------------------------------------------

CUTS = ((-1.0, 1.0), (0.0,))
TILES = {
    "moments": (Moments, lambda numbers, codes: numbers),
    "scatter": (Scatter, lambda numbers, codes: numbers),
    "outer bins": (TailMoments, lambda numbers, codes: Numbers(numbers.values, CUTS)),
    "counts": (Counts, lambda numbers, codes: codes),
    "joint counts": (CountTogether(), lambda numbers, codes: codes),
    "pairs": (Pairs, lambda numbers, codes: Mixed(numbers, codes, (True, False, False, True, False))),
}


def parts_of(statistics):
    """Return the arrays of statistics that do not depend on a shift, by their names."""
    if isinstance(statistics, Moments):
        seen = statistics.weight > 0
        mean = np.where(seen, statistics.mean, 0.0)
        return {"weight": statistics.weight, "mean": mean, "scatter": statistics.scatter}
    if isinstance(statistics, Scatter):
        seen = statistics.weight[:, np.newaxis] > 0
        cells = parts_of(statistics.cells)
        own = {"all": statistics.weight, "centre": np.where(seen, statistics.mean, 0.0), "matrix": statistics.scatter}
        return cells | (own if statistics.is_exact() else {"all": statistics.weight})
    if isinstance(statistics, TailMoments):
        return parts_of(statistics.excess)
    if isinstance(statistics, Counts):
        return {"table": statistics.table}
    if isinstance(statistics, Pairs):
        across = {
            f"{name} {j}": part for j, one in enumerate(statistics.across) for name, part in parts_of(one).items()
        }
        return (
            across | parts_of(statistics.numbers) | {"cells": statistics.codes.cells, "n": statistics.together.weight}
        )
    return {"cells": statistics.cells}


def assert_alike(one, other, atol=1e-6):
    first, second = parts_of(one), parts_of(other)
    assert first.keys() == second.keys()
    assert one.is_exact() == other.is_exact()
    for name, part in first.items():
        assert_allclose(part, second[name], rtol=1e-9, atol=atol, err_msg=name)


@st.composite
def shared_rows(draw):
    """Return tiles of numbers and codes, and the shares of three components in each row; some are nought."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, gaps = draw(st.sampled_from([0, 1, 5, 70, 131])), draw(st.sampled_from([0.0, 0.02, 0.4]))
    values = np.where(rng.random((n, 2)) < gaps, np.nan, rng.normal(0, 2, (n, 2)))
    codes = np.column_stack([rng.integers(0, k + 1, n) for k in CARDINALITIES]).astype(np.uint8)
    responsibilities = rng.gamma(0.5, size=(n, N_COMPONENTS)) * (rng.random((n, N_COMPONENTS)) < 0.7)
    return Numbers(values), Codes(codes, CARDINALITIES), responsibilities


def repeated(tile, responsibilities):
    """Return the rows once for each component, with their shares for weights."""
    n = len(responsibilities)
    component = np.repeat(np.arange(N_COMPONENTS, dtype=np.int32), n)
    return tile.rows(np.tile(np.arange(n), N_COMPONENTS)), Assignment(
        component, responsibilities.T.ravel(), N_COMPONENTS
    )


@pytest.mark.parametrize("name", TILES)
@given(shared_rows())
def test_statistics_of_shares_are_weighted_sums(name, rows):
    numbers, codes, responsibilities = rows
    sufficient_statistics, tile_of = TILES[name]
    tile = tile_of(numbers, codes)
    assert_alike(
        from_responsibilities(sufficient_statistics, tile, responsibilities),
        sufficient_statistics.of(*repeated(tile, responsibilities)),
    )


@pytest.mark.parametrize("name", TILES)
@settings(max_examples=10)
@given(shared_rows(), st.integers(0, 10**6))
def test_whole_shares_are_labels(name, rows, seed):
    numbers, codes, responsibilities = rows
    sufficient_statistics, tile_of = TILES[name]
    tile = tile_of(numbers, codes)
    rng = np.random.default_rng(seed)
    component = rng.integers(0, N_COMPONENTS, len(responsibilities)).astype(np.int32)
    weight = rng.integers(0, 3, len(responsibilities)).astype(float)
    labels = Assignment(component, weight, N_COMPONENTS)
    whole = weight[:, np.newaxis] * np.eye(N_COMPONENTS)[component]
    assert_alike(from_responsibilities(sufficient_statistics, tile, whole), sufficient_statistics.of(tile, labels))


@pytest.mark.parametrize("sufficient_statistics", [Moments, Scatter])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_an_offset_costs_shares_no_digits(sufficient_statistics, gaps):
    rng = np.random.default_rng(0)
    n = 3000
    x = np.round(rng.normal(size=(n, 2)) * 1024) / 1024
    x[rng.random(x.shape) < gaps] = np.nan
    responsibilities = rng.dirichlet(np.ones(N_COMPONENTS), n)
    near, far = (
        from_responsibilities(sufficient_statistics, Numbers(x + offset), responsibilities) for offset in (0.0, 1e9)
    )
    assert_allclose(far.scatter, near.scatter, rtol=1e-10, atol=1e-8)
    assert_allclose(far.mean - 1e9, near.mean, atol=1e-6)


@pytest.mark.parametrize("sufficient_statistics", [Moments, Scatter])
def test_distant_components_with_small_shares_do_not_blur(sufficient_statistics):
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=2000) * 1024) / 1024
    component = np.repeat([0, 1], 1000)
    moments = from_responsibilities(
        sufficient_statistics, Numbers((x + 1e12 * component).reshape(-1, 1)), np.eye(2)[component]
    )
    expected = [x[:1000].var() * 1000, x[1000:].var() * 1000]
    assert_allclose(moments.scatter.reshape(2), expected, rtol=1e-10)


@pytest.mark.parametrize("sufficient_statistics", [Moments, Scatter])
def test_shares_of_infinite_cells_are_told(sufficient_statistics):
    x = np.array([[1.0, np.inf], [2.0, 0.0], [3.0, -np.inf], [0.0, 1.0], [5.0, 1.0]])
    assert from_responsibilities(sufficient_statistics, Numbers(x), np.full((5, 2), 0.5)).finite().tolist()[1] is False


@given(st.integers(0, 2**16), st.booleans())
def test_gaps_of_one_component_leave_the_scatter_of_others_exact(seed, weighted):
    rng = np.random.default_rng(seed)
    values, component = rng.normal(size=(30, 3)), rng.integers(0, 3, 30).astype(np.int32)
    weight = rng.integers(0, 3, 30).astype(float) if weighted else np.ones(30)
    gaps = values.copy()
    gaps[(component == 1)[:, np.newaxis] & (rng.random((30, 3)) < 0.3)] = np.nan
    whole, torn = (Scatter.of(Numbers(cells), Assignment(component, weight, 3)) for cells in (values, gaps))
    for z in (0, 2):
        assert_allclose(torn.scatter[z], whole.scatter[z], atol=1e-9)
        assert_allclose(torn.mean[z], whole.mean[z], atol=1e-9)
    assert_allclose(torn.weight, whole.weight)
    assert torn.is_exact() == bool(np.isfinite(gaps[weight > 0]).all())
