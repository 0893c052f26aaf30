"""Tables of pairs of columns: which pairs are found, what is solved, and that the sum is that of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import log_softmax

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.learning import pairs as learning
from posteriori.learning.cells import CellProblem
from posteriori.learning.pairs import GroupedColumn, PairCells, screened_pairs
from posteriori.user_warnings import RepeatedRowsWarning
from tests.learning.test_cells import draw_rows

MODEL = po.NaiveBayes(distributions="binned", bins="fine", feature_weights="pairs")


def exclusive_or(n, seed=0, noise=0.1):
    """Return rows whose class is the exclusive or of the signs of two numbers, beside a third number."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)) ^ (rng.random(n) < noise)
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": np.where(y, "odd", "even")})


def grouped_rows(seed, sizes=(4, 3, 5), n_classes=3):
    """Return a problem of columns alone, their codes and their groups."""
    rows, tables, log_prior = draw_rows(seed, n=90, n_classes=n_classes, sizes=sizes)
    starts = np.cumsum([0, *[size + 1 for size in sizes[:-1]]])
    codes = (rows.slots - starts).astype(np.int64)
    columns = [
        GroupedColumn.of(np.bincount(codes[:, j], rows.weight, size + 1)[1:], j != 1) for j, size in enumerate(sizes)
    ]
    return CellProblem(rows, tables, log_prior, 2.0), codes, columns


@given(st.lists(st.floats(0.0, 100.0), min_size=2, max_size=300).filter(lambda weights: sum(weights) > 1))
def test_groups_of_bins_are_neighbours_and_nested(weights):
    column = GroupedColumn.of(np.array(weights), True)
    for coarse, fine in zip(column.levels[:-1], column.levels[1:], strict=True):
        assert (np.diff(coarse) >= 0).all()
        assert (np.diff(fine) >= 0).all()
        for group in np.unique(fine):
            assert len(set(coarse[fine == group].tolist())) == 1
    assert column.n_groups <= learning.MOST_GROUPS
    assert column.screened.max() < learning._FEW
    assert_array_equal(column.coarser(0)[column.groups], column.levels[0])


def test_few_values_stay_and_many_categories_keep_the_frequent():
    assert_array_equal(GroupedColumn.of(np.full(13, 100.0), True).groups, np.arange(13))
    weight = np.concatenate([np.full(20, 9.0), np.arange(40.0) / 100])
    group = GroupedColumn.of(weight, False).groups
    assert len(np.unique(group[:20])) == 20
    shuffled = np.random.default_rng(0).permutation(60)
    again = GroupedColumn.of(weight[shuffled], False).groups
    same = again[:, np.newaxis] == again
    assert_array_equal(same, group[shuffled][:, np.newaxis] == group[shuffled])


@given(st.integers(0, 10**6), st.sampled_from([0.5, 4.0]), st.booleans())
def test_the_problem_is_that_of_nested_tables(seed, penalty, weighed):
    alone, codes, columns = grouped_rows(seed)
    alone = replace(alone, tables=replace(alone.tables, weighed=weighed))
    cells = PairCells([(0, 1), (0, 2)], columns, codes)
    both = learning._beside(alone, cells, cells.slots, penalty)
    rng = np.random.default_rng(seed)
    n_alone = 3 + alone.tables.n_weights + alone.tables.basis.shape[1] * 3
    position = np.append(rng.normal(size=n_alone), rng.normal(size=3 * cells.n_directions))
    assert_allclose(both(position)[1], approx_fprime(position, lambda x: both(x)[0], 1e-6), atol=3e-5)
    # By hand: a number for each distinct coarse, middle and fine cell of each pair that some row shows.
    eta, first = position[n_alone:].reshape(-1, 3), 0
    added = np.zeros((len(codes), 3))
    for i, j in cells.pairs:
        known = (codes[:, i] > 0) & (codes[:, j] > 0)
        before = 0
        for level in range(4):
            cell = [columns[k].levels[level][codes[known, k] - 1] for k in (i, j)]
            shown, place = np.unique(np.stack(cell, axis=1), axis=0, return_inverse=True)
            if len(shown) == before:
                continue
            before = len(shown)
            added[known] += eta[first + place.reshape(-1)]
            first += len(shown)
    assert first == cells.n_directions
    scores = np.log(alone.posterior(position[:n_alone])) + added * np.sqrt(alone.penalty / penalty)
    losses = -log_softmax(scores, axis=1)[np.arange(90), alone.rows.component]
    assert_allclose(both.log_loss(position), alone.rows.weight @ losses)


def test_screening_is_one_newton_step_that_held_out_rows_judge():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (400, 4))
    columns = [GroupedColumn.of(np.bincount(codes[:, j], minlength=4)[1:].astype(float), True) for j in range(4)]
    y = (codes[:, 0] + codes[:, 2]) % 2
    residual, curvature = np.stack([0.5 - y, y - 0.5], axis=1), np.full((400, 2), 0.25)
    share = (rng.random(400) < 1 / 3).astype(float)
    slopes = np.concatenate([residual, curvature], axis=1)
    found = screened_pairs(columns, codes, slopes, share, np.ones(4), 0.0)
    gains = {}
    for i in range(4):
        for j in range(i + 1, 4):
            of_pair = []
            for penalty in learning._SCREENING:
                gain = 0.0
                for a in range(1, 4):
                    for b in range(1, 4):
                        here = (codes[:, i] == a) & (codes[:, j] == b)
                        sums = [
                            (part @ residual[here], part @ curvature[here]) for part in (1 - share[here], share[here])
                        ]
                        step = sums[0][0] / (sums[0][1] + penalty)
                        gain += step @ sums[1][0] - 0.5 * step**2 @ sums[1][1]
                of_pair.append(gain)
            gains[i, j] = max(of_pair)
    expected = sorted((pair for pair, gain in gains.items() if gain > 0), key=lambda pair: -gains[pair])
    assert found == expected
    assert found[0] == (0, 2)
    sure = screened_pairs(columns, codes, slopes, share, np.ones(4), learning.SURE)
    assert sure[0] == (0, 2)
    assert len(sure) < len(found)
    assert screened_pairs(columns[:1], codes[:, :1], slopes, share, np.ones(1), 0.0) == []


def test_a_table_is_centred_and_the_columns_get_the_rest():
    alone, codes, columns = grouped_rows(5)
    cells = PairCells([(0, 1), (1, 2)], columns, codes)
    eta = np.random.default_rng(0).normal(size=(cells.n_directions, 3))
    weight = alone.rows.weight
    tables, moved = cells.tables(eta, weight)
    whole = [np.sum([np.concatenate([eta, np.zeros((1, 3))])[of] for of, _, _ in one], axis=0) for one in cells._levels]
    for p, table in enumerate(tables):
        counts, before = cells.weight(p, weight), whole[p].reshape(table.shape)
        for axis in (0, 1):  # the means are smaller than before, and not quite 0: some rows of 0 are added
            means = [np.einsum("abc,ab->abc", one, counts).sum(axis=axis) for one in (table, before)]
            assert (means[0] ** 2).sum() < 0.2 * (means[1] ** 2).sum()
    shown = np.zeros((len(codes), 3))
    for (i, j), table in zip(cells.pairs, tables, strict=True):
        known = (codes[:, i] > 0) & (codes[:, j] > 0)
        shown[known] += table[columns[i].groups[codes[known, i] - 1], columns[j].groups[codes[known, j] - 1]]
    complete = (codes > 0).all(axis=1)
    for k, numbers in enumerate(moved):
        shown[complete] += numbers[codes[complete, k] - 1]
    expected = (cells.basis(1.0) @ eta)[cells.slots].sum(axis=1)
    assert_allclose(shown[complete], expected[complete], atol=1e-9)


def test_an_exclusive_or_is_found_and_noise_is_not():
    rows, new = exclusive_or(3000), exclusive_or(3000, seed=1)
    y = (new["y"] == "odd").to_numpy().astype(int)
    losses = {}
    for kind in ("cells", "pairs"):
        model = po.NaiveBayes(distributions="binned", bins="fine", feature_weights=kind).fit(rows, "y")
        losses[kind] = -np.log(model.predict_proba(new.drop("y"))[np.arange(3000), y]).mean()
    assert losses["cells"] > 0.68
    assert losses["pairs"] < 0.5  # the entropy of the noise is 0.325
    found = model.model_.weights.pairs
    model.model_.check()
    assert found.columns(model.schema_)[0] == (0, 1)
    rng = np.random.default_rng(0)
    noise = pl.DataFrame({name: rng.normal(size=3000) for name in "abc"} | {"y": rng.choice(["p", "q"], 3000)})
    assert MODEL.fit(noise, "y").model_.weights.pairs is None


@pytest.fixture(scope="module")
def fitted():
    rows = exclusive_or(2500, seed=3).with_columns(k=pl.Series(np.random.default_rng(0).choice(["u", "v", "w"], 2500)))
    return rows, po.NaiveBayes(distributions="binned", bins="fine", feature_weights="pairs").fit(rows, "y")


def test_the_sum_of_the_explanation_is_the_prediction(fitted):
    rows, model = fitted
    lacking = rows.head(200).with_columns(a=pl.when(pl.int_range(200) % 3 > 0).then("a"))
    explanation = model.explain(lacking.drop("y"))
    assert_allclose(explanation.posterior, model.predict_proba(lacking.drop("y")), atol=1e-9)
    assert "a with b" in explanation.feature_names


def test_a_row_without_cells_has_the_prior(fitted):
    rows, model = fitted
    nothing = rows.drop("y").clear(1)
    assert_allclose(model.predict_proba(nothing)[0], model.class_prior_, atol=1e-12)


def test_the_order_of_rows_columns_and_the_names_do_not_matter(fitted):
    rows, model = fitted
    expected = model.predict_proba(rows.drop("y"))
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=1).select("k", "c", "b", "a", "y")
    renamed = shuffled.with_columns(pl.col("k").replace({"u": "zz", "w": "aa"}))
    again = po.NaiveBayes(distributions="binned", bins="fine", feature_weights="pairs").fit(renamed, "y")
    asked = rows.with_columns(pl.col("k").replace({"u": "zz", "w": "aa"})).select("k", "c", "b", "a")
    assert_allclose(again.predict_proba(asked), expected, atol=1e-9)


def test_a_weight_of_two_is_two_rows(fitted):
    rows, _ = fitted
    weight = np.where(np.arange(len(rows)) % 5 == 0, 2.0, 1.0)
    repeated = rows[np.repeat(np.arange(len(rows)), weight.astype(int))]
    model = po.NaiveBayes(distributions="binned", bins=16, feature_weights="pairs")
    once = model.fit(rows.drop("y"), rows["y"], sample_weight=weight).predict_proba(rows.drop("y"))
    with pytest.warns(RepeatedRowsWarning):
        twice = model.fit(repeated, "y").predict_proba(rows.drop("y"))
    assert np.abs(once - twice).mean() < 0.02


def test_nearly_constant_columns_and_empty_classes_are_accepted():
    penguins = load_penguins().drop_nulls("species")
    few = penguins.with_columns(one=pl.lit("same"))
    model = MODEL.fit(few, "species")
    model.model_.check()
    priors = {"Adelie": 0.5, "Gentoo": 0.5, "Chinstrap": 0.0}
    without = po.NaiveBayes(distributions="binned", feature_weights="pairs", priors=priors).fit(penguins, "species")
    assert (without.predict_proba(penguins)[:, list(without.classes_).index("Chinstrap")] == 0).all()
    alone = po.NaiveBayes(distributions="binned", feature_weights="pairs")
    alone.fit(penguins.select("island", "species"), "species")
    assert alone.model_.weights.pairs is None
