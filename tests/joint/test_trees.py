"""Trees of smoothed tables: against sums over all rows, and under changes that mean nothing."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.joint.edges import Axis, candidates, learned_mixture, smoothed_shares, table_of, with_margins
from posteriori.joint.trees import PARTS, in_parts
from posteriori.model.beliefs import Tables
from posteriori.user_warnings import RepeatedRowsWarning

SEEDS = st.integers(0, 2**32 - 1)
SIZES = (3, 2, 4)
PENGUINS = load_penguins()


def axis_of(seed, size, is_ordered):
    share = np.random.default_rng(seed).dirichlet(np.ones(size))
    return Axis(share, is_ordered)


def chain(seed, n_components):
    """Random tables of three columns, each the parent of the next."""
    rng = np.random.default_rng(seed)
    shapes = [(n_components,), (n_components, SIZES[0]), (n_components, SIZES[1])]
    tables = [rng.dirichlet(np.ones(size), size=shape) for size, shape in zip(SIZES, shapes, strict=True)]
    return Tables(np.log(rng.dirichlet(np.ones(n_components))), (0, 1, 2), (-1, 0, 1), tuple(tables))


@given(SEEDS, st.sampled_from([1, 3]))
@settings(max_examples=20)
def test_expected_sums_are_those_over_all_rows(seed, n_components):
    tables, rng = chain(seed, n_components), np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size + 1, 6) for size in SIZES])  # 0 is missing
    known = [np.where(codes[:, [j]] == 0, 1.0, codes[:, [j]] == np.arange(1, size + 1)) for j, size in enumerate(SIZES)]
    weight = rng.random(6)
    share, of_codes, of_pairs = tables.beliefs(known).expected(weight)
    wanted = []
    for i in range(6):
        each = np.zeros((n_components, *SIZES))
        for z, cell in itertools.product(range(n_components), itertools.product(*map(range, SIZES))):
            p = np.exp(tables.log_prior[z]) * tables.tables[0][z, cell[0]]
            p *= tables.tables[1][z, cell[0], cell[1]] * tables.tables[2][z, cell[1], cell[2]]
            each[z, *cell] = p * np.prod([one[i, k] for one, k in zip(known, cell, strict=True)])
        wanted.append(each / each.sum())
    wanted, lacks = np.array(wanted), codes == 0
    assert_allclose(share, wanted.sum(axis=(2, 3, 4)), rtol=1e-9)
    of_row = weight[:, np.newaxis, np.newaxis]
    assert_allclose(of_codes[1], (of_row * wanted.sum(axis=(2, 4)))[lacks[:, 1]].sum(axis=0), rtol=1e-9, atol=1e-12)
    of_row = of_row[..., np.newaxis]
    for j, summed in ((1, 4), (2, 2)):
        pairs = (of_row * wanted.sum(axis=summed))[lacks[:, j] | lacks[:, j - 1]].sum(axis=0)
        assert_allclose(of_pairs[j], pairs, rtol=1e-9, atol=1e-12)


@given(SEEDS, st.booleans(), st.booleans())
@settings(max_examples=20)
def test_tables_are_distributions_with_the_margins(seed, of_parent, of_child):
    rng = np.random.default_rng(seed)
    parent, child = axis_of(seed, 6, of_parent), axis_of(seed + 1, 9, of_child)
    folds = [rng.poisson(40 * np.outer(parent.share, child.share)).astype(float) for _ in range(3)]
    base = np.broadcast_to(child.share, folds[0].shape)
    each = np.stack([made() for made in candidates(folds[0], parent, child, child.share, base)])
    assert_allclose(each.sum(axis=2), 1.0)
    assert (each >= 0).all()
    mixture = learned_mixture(folds, parent, child, np.arange(6) // 3)
    assert_allclose(mixture.sum(axis=0), 1.0)
    table = table_of(np.sum(folds, axis=0), mixture, parent, child, child.share)
    table = with_margins(table, parent.share, child.share)
    assert_allclose(table.sum(axis=1), 1.0)
    assert_allclose(parent.share @ table, child.share, atol=2e-3)


def test_many_rows_of_categories_are_counted():
    rng = np.random.default_rng(0)
    parent, child = axis_of(1, 3, False), axis_of(2, 4, False)
    truth = rng.dirichlet(np.ones(4), 3)
    counts = np.round(3e6 * parent.share[:, np.newaxis] * truth)
    own = Axis(parent.share @ truth, False)
    mixture = learned_mixture([counts, counts], parent, own, np.zeros(3, np.int64))
    table = table_of(counts, mixture, parent, own, own.share)
    assert_allclose(table, truth, atol=2e-3)
    assert_allclose(smoothed_shares(counts.sum(axis=0), child, False), counts.sum(axis=0) / counts.sum(), atol=1e-5)


def test_a_number_that_follows_another_one_is_found_in_its_cell():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    table = pl.DataFrame({"x": x, "y": x + 0.05 * rng.normal(size=3000)})
    model = po.JointModel().fit(table)
    density = model.predict_density(pl.DataFrame({"x": [-1.0, 0.0, 1.0]}), "y", method="joint")
    assert_allclose(density.mean, [-1.0, 0.0, 1.0], atol=0.06)
    assert (density.std < 0.15).all()  # of 1 without x


CHANGES = {
    "rows": lambda table: table.sample(fraction=1.0, shuffle=True, seed=1),
    "columns": lambda table: table.select(reversed(table.columns)),
    "names": lambda table: table.rename({name: f"c{len(table.columns) - k}" for k, name in enumerate(table.columns)}),
    "thousands": lambda table: table.with_columns(pl.col(pl.Float64) * 1000),
    "binary": lambda table: table.with_columns(pl.col(pl.Float64) * 1024),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_without_meaning_change_nothing(change):
    table = PENGUINS.with_columns(pl.col("bill_length_mm", "bill_depth_mm") + 0.25)
    changed = CHANGES[change](table)
    before, after = (po.JointModel(random_state=3).fit(one) for one in (table, changed))
    assert_allclose(list(after.member_weights_.values()), list(before.member_weights_.values()), rtol=1e-6)
    gaps = table.with_columns(pl.when(pl.int_range(pl.len()) % 3 > 0).then(pl.col("bill_length_mm")))
    filled, moved = before.impute(gaps, method="joint"), after.impute(CHANGES[change](gaps), method="joint")
    scale = {"thousands": 1000.0, "binary": 1024.0}.get(change, 1.0)
    name = "bill_length_mm" if change != "names" else f"c{len(table.columns) - 1}"
    expected = filled if change != "rows" else CHANGES[change](filled)
    # A mean that is halfway between two points of the grid of numbers goes to either, by rounding.
    apart = np.abs(moved[name].to_numpy() / scale - expected["bill_length_mm"].to_numpy())
    assert apart.max() < 0.0501
    assert (apart > 1e-6).mean() < 0.03


def test_rows_that_occur_twice_are_rows_of_weight_two():
    with pytest.warns(RepeatedRowsWarning):
        twice = po.JointModel().fit(pl.concat([PENGUINS, PENGUINS]))
    weighted = po.JointModel().fit(PENGUINS, sample_weight=np.full(len(PENGUINS), 2.0))
    assert_allclose(twice.score_samples(PENGUINS), weighted.score_samples(PENGUINS), rtol=1e-9)


def test_cells_that_rows_show_to_be_missing_do_not_bias_the_rest():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    y = x + rng.normal(size=4000)
    seen = np.where(rng.random(4000) < 1 / (1 + np.exp(-2 * x)), np.nan, y)
    model = po.JointModel().fit(pl.DataFrame({"x": x, "y": seen}))
    assert np.nanmean(seen) < -0.4
    assert abs(model.query("P(y)").mean[0]) < 0.1


def test_learned_lines_are_whole_parts_that_sum_to_one():
    gaps = PENGUINS.with_columns(island=pl.when(pl.int_range(pl.len()) % 3 > 0).then("island"))
    for table in (PENGUINS.drop_nulls(), gaps):
        for member in po.JointModel(random_state=0).fit(table).fitted_.members.values():
            for lines in member.tables:
                parts = lines * PARTS
                assert (parts == np.rint(parts)).all()
                assert (parts.sum(axis=-1) == PARTS).all()


def test_rounding_to_parts_moves_no_probability_further():
    tables = chain(3, 2)
    for before, after in zip(tables.tables, in_parts(tables).tables, strict=True):
        assert np.abs(before - after).max() < 1 / PARTS
    thirds = Tables(np.zeros(1), (0,), (-1,), (np.full((1, 3), 1 / 3),))
    assert (in_parts(thirds).tables[0] * PARTS).tolist() == [[349526, 349525, 349525]]
