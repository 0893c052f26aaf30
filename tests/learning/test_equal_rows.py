"""Copies of rows count as one row, and a row of weight k as k rows, wherever rows are held out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import posteriori as po
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.equal_rows import count_rows, group_copies, merged_weight
from posteriori.user_warnings import RepeatedRowsWarning

CLASSIFIERS = {
    "pool": po.GenerativeClassifier(["nb", "lda", "kdb"]),
    "feature weights": po.NaiveBayes(feature_weights="conditional"),
    "cells": po.NaiveBayes(distributions="binned", bins=4, feature_weights="cells"),
}
REGRESSORS = {
    "additive": po.AdditiveRegressor(),
    "kernel": po.KernelRegressor(),
    "general": po.GenerativeRegressor(),
}
copies = pytest.mark.filterwarnings("ignore::posteriori.user_warnings.RepeatedRowsWarning")


def numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + rng.normal(size=n)


def cells(n=60, seed=0):
    """A table of 9 different rows, which are equal by chance."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float)
    return X, np.round(X[:, 0] + rng.normal(size=n))


def rows_of(X, y, weight=None):
    return read_first_rows(po.NaiveBayes().recipe, X, (y > 0).astype(int), weight)


def counted(X, y, weight=None):
    rows, unit = count_rows(rows_of(X, y, weight), (y > 0).astype(int))
    return rows.source.weight, unit


# Which rows are copies -------------------------------------------------------------------------------------------


@copies
def test_the_first_of_its_copies_has_the_weight_of_all():
    X, y = numbers(20)
    order = [*range(20), 3, 3, 7]
    weight, unit = counted(X[order], y[order])
    expected = np.ones(23)
    expected[[3, 7]], expected[20:] = [3.0, 2.0], 0.0
    assert_array_equal(weight, expected)
    assert unit == 23 / 20


def test_rows_that_are_equal_by_chance_stay_as_they_are():
    assert counted(*cells(200)) == (None, 1.0)


@pytest.mark.parametrize("n", [300, 2000])
def test_a_name_and_its_code_make_no_copies(n):
    """Neither differs alone, and the class nearly follows from them."""
    rng = np.random.default_rng(1)
    shop, of_shop = rng.integers(0, 12, n), rng.integers(0, 2, 12)
    y = np.where(rng.random(n) < 0.03, 1 - of_shop[shop], of_shop[shop])
    assert counted(np.column_stack([shop, 100 + shop]), y) == (None, 1.0)


def test_rows_of_fractions_are_copies_however_often_they_occur():
    X, y = numbers(20)
    order = np.repeat(np.arange(20), np.arange(1, 21))
    with pytest.warns(RepeatedRowsWarning, match="209 of 210 rows are copies of 19 rows"):
        weight, _ = counted(X[order], y[order])
    assert_array_equal(weight[weight > 0], np.arange(1.0, 21.0))


@copies
def test_a_table_of_equal_rows_that_stands_twice_counts_once():
    X, y = cells(60)
    weight, unit = counted(np.tile(X, (2, 1)), np.tile(y, 2))
    assert (weight.sum(), np.count_nonzero(weight), unit) == (120.0, 60, 2.0)


def test_copies_in_another_class_are_other_rows():
    X, _ = numbers(20)
    assert counted(np.tile(X, (2, 1)), np.r_[np.ones(20), -np.ones(20)]) == (None, 1.0)


def test_a_copied_column_that_differs_makes_other_rows():
    X, y = numbers(40)
    X = np.column_stack([np.tile(X[:20], (2, 1)), np.arange(40.0)])
    assert counted(X, np.tile(y[:20], 2)) == (None, 1.0)


def test_weights_alone_are_no_copies():
    X, y = numbers(20)
    weight = np.arange(20.0)
    found, unit = counted(X, y, weight)
    assert_array_equal(found, weight)
    assert unit == weight.sum() / 19


def test_a_whole_weight_is_as_many_rows_if_they_are_alike():
    X, y = cells(60)
    weight = np.random.default_rng(1).integers(0, 4, 60)
    rows, _ = count_rows(rows_of(X, y, weight.astype(float)), (y > 0).astype(int))
    assert rows.source.weight is None
    assert_array_equal(rows.origin, np.repeat(np.arange(60), weight))
    batch = rows.source.batch(slice(0, len(rows.origin)))
    assert_array_equal(batch.numbers.values, X[rows.origin])
    assert_array_equal(rows.y_true, (y > 0).astype(int)[rows.origin])


def test_merged_weights_have_the_sum_of_those_given():
    X, y = numbers(20)
    order = np.r_[np.arange(20), np.arange(20)]
    weight = np.random.default_rng(0).random(40)
    found, _ = merged_weight(rows_of(X[order], y[order], weight).source, y[order])
    assert_allclose(found[:20], weight[:20] + weight[20:], rtol=1e-15)
    assert_array_equal(found[20:], 0.0)


def test_fit_says_how_many_rows_occur_several_times():
    X, y = numbers(20)
    order = [*range(20), 3, 3, 7]
    with pytest.warns(RepeatedRowsWarning, match="5 of 23 rows are copies of 2 rows"):
        po.AdditiveRegressor().fit(X[order], y[order])


def test_copies_are_in_one_fold_where_models_are_compared():
    X, y = numbers(30)
    order = np.r_[np.arange(30), np.arange(30)]
    group = group_copies(rows_of(X[order], y[order]))
    assert_array_equal(group[:30], group[30:])
    assert len(np.unique(group)) == 30
    fold = po.cross_validate(["nb"], X[order], (y[order] > 0).astype(int)).fold
    assert_array_equal(fold[:30], fold[30:])


# Laws ------------------------------------------------------------------------------------------------------------


def predicted(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict_density(X).probability


def fitted(model, X, y, weight=None):
    target = (y > 0).astype(int) if hasattr(model, "predict_proba") else y
    return clone(model).fit(X, target, sample_weight=weight)


@copies
@pytest.mark.parametrize("table", [numbers, cells])
@pytest.mark.parametrize("model", (CLASSIFIERS | REGRESSORS).values(), ids=CLASSIFIERS | REGRESSORS)
def test_a_row_of_weight_k_is_k_rows(model, table):
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    order = np.repeat(np.arange(len(y)), weight)
    expected = predicted(fitted(model, X, y, weight.astype(float)), X)
    assert_allclose(predicted(fitted(model, X[order], y[order]), X), expected, rtol=1e-9, atol=1e-12)
    some = weight > 0
    assert_array_equal(predicted(fitted(model, X[some], y[some], weight[some].astype(float)), X), expected)


@copies
@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
@pytest.mark.parametrize("times", [2, 3])
def test_numbers_of_a_table_that_stands_twice(model, times):
    X, y = numbers()
    order = np.tile(np.arange(60), times)
    expected = predicted(fitted(model, X, y), X)
    assert_allclose(predicted(fitted(model, X[order], y[order]), X), expected, rtol=1e-9, atol=1e-12)


@copies
def test_a_pool_of_copies_is_judged_as_without_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=200) > 0).astype(int)
    order = np.tile(np.arange(200), 3)
    once, thrice = (po.GenerativeClassifier().fit(X[rows], y[rows]).cv_results_ for rows in (np.arange(200), order))
    assert abs(thrice["log_loss"][-1] - once["log_loss"][-1]) < 0.02


@copies
def test_a_joint_model_counts_copies_and_weights_alike():
    X, _ = numbers()
    weight = np.random.default_rng(1).integers(0, 4, 60)
    order = np.repeat(np.arange(60), weight)
    model = po.JointModel(random_state=0)
    expected = model.fit(X, sample_weight=weight.astype(float)).score_samples(X)
    assert_allclose(po.JointModel(random_state=0).fit(X[order]).score_samples(X), expected, rtol=1e-12)
    some = weight > 0
    alone = po.JointModel(random_state=0).fit(X[some], sample_weight=weight[some].astype(float))
    assert_array_equal(alone.score_samples(X), expected)


@pytest.mark.parametrize("scale", [1.0, 0.1, 1e-3, 7.0, 1e6])
def test_fractional_weights_have_their_mean_as_unit(scale):
    X, y = numbers(100)
    weight = np.random.default_rng(0).random(100) + 0.5
    assert_allclose(counted(X, y, weight * scale)[1], weight.mean() * scale, rtol=1e-12)


@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_the_unit_of_weights_does_not_matter_to_numbers(model):
    X, y = numbers()
    expected = predicted(fitted(model, X, y), X)
    assert_allclose(predicted(fitted(model, X, y, np.full(60, 0.25)), X), expected, rtol=1e-9, atol=1e-12)


@copies
def test_further_rows_of_a_sum_are_counted_as_at_first():
    X, y = numbers(80)
    weight = np.random.default_rng(0).integers(1, 4, 80).astype(float)
    first = po.AdditiveRegressor(scale="as_is").fit(X[:50], y[:50], sample_weight=weight[:50])
    sums = first.partial_fit(X[50:], y[50:], sample_weight=weight[50:])._value.found.sums
    assert_allclose([sums.rows, sums.independent], [weight.sum(), 80.0], rtol=1e-12)


# Rows that are nearly equal --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_intervals_hold_new_people_if_groups_are_people(model):
    """Five visits of each of 60 people, which differ by little: without groups, half of the new people are outside."""
    X, y = numbers(60)
    rng, person = np.random.default_rng(1), np.repeat(np.arange(60), 5)
    visits = X[person] + 0.001 * rng.normal(size=(300, 2)), y[person] + 0.02 * rng.normal(size=300)
    new, truth = numbers(1000, seed=2)
    low, high = clone(model).fit(*visits, groups=person).predict_interval(new, 0.9).T
    assert 0.82 < np.mean((low <= truth) & (truth <= high)) < 0.95
