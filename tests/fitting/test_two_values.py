"""Columns of two whole numbers are categories in every model, from every source, and their kind depends on no batch."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB

import posteriori as po

RNG = np.random.default_rng(0)
BINARY = (RNG.random((200, 3)) < 0.4).astype(float)
X = np.c_[BINARY, RNG.normal(size=200)]
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=200) > 0.8).astype(int)
KINDS = ["categorical", "categorical", "categorical", "continuous"]


def kinds(model):
    return [column.kind for column in model.schema_.columns]


def frame():
    return pl.DataFrame(X, schema=list("abcd"))


def test_naive_bayes_of_zeros_and_ones_is_bernoulli():
    theirs = BernoulliNB().fit(BINARY, Y).predict_proba(BINARY)
    assert_allclose(po.NaiveBayes(alpha=1.0, priors=0.0).fit(BINARY, Y).predict_proba(BINARY), theirs, atol=0.02)


SINGLE = [po.NaiveBayes, po.TreeAugmentedNaiveBayes, po.KDependenceBayes, po.GenerativeForest, po.GenerativeClassifier]


@pytest.mark.parametrize("kind", SINGLE)
def test_every_model_takes_two_values_as_categories(kind):
    assert kinds(kind().fit(X, Y)) == KINDS


def test_a_joint_gaussian_keeps_them_as_numbers_unless_asked():
    assert kinds(po.GaussianDiscriminant().fit(X, Y)) == ["continuous"] * 4
    assert kinds(po.GaussianDiscriminant(columns=po.Columns(categorical_features="auto")).fit(X, Y)) == KINDS


def test_every_source_gives_the_same_kinds(tmp_path):
    expected = po.NaiveBayes().fit(X, Y).predict_proba(X)
    frame().with_columns(y=pl.Series(Y)).write_csv(tmp_path / "t.csv")
    frame().with_columns(y=pl.Series(Y)).write_parquet(tmp_path / "t.parquet")
    integers = pd.DataFrame(BINARY.astype(int), columns=list("abc")).assign(d=X[:, 3])
    for rows in (frame(), integers, po.scan(tmp_path / "t.csv", target="y"), po.scan(tmp_path / "t.parquet", "y")):
        model = po.NaiveBayes().fit(rows, *(() if hasattr(rows, "paths") else (Y,)))
        assert kinds(model) == KINDS
        assert_allclose(model.predict_proba(frame()), expected, rtol=1e-12)


def test_a_row_of_weight_0_does_not_change_the_kind():
    weighted = po.NaiveBayes().fit(np.r_[X, [[7.0] * 4]], np.r_[Y, 0], np.r_[np.ones(200), 0.0])
    assert kinds(weighted) == KINDS


@pytest.mark.parametrize(
    "cells",
    [
        np.where(BINARY[:, 0] > 0, 0.5, 0.0),  # not whole
        np.where(BINARY[:, 0] > 0, 16.0, 0.0),  # far apart
        np.arange(200) % 3.0,
        np.zeros(200),
        np.where(np.arange(200) < 19, BINARY[:, 0], np.nan),  # few cells
    ],
    ids=["fractions", "far", "three", "one", "few"],
)
def test_other_columns_stay_numbers(cells):
    assert kinds(po.NaiveBayes().fit(np.c_[cells, X[:, 3]], Y)) == ["continuous", "continuous"]


def test_stated_kinds_and_densities_prevail():
    def of(**parameters):
        return kinds(po.NaiveBayes(**parameters).fit(X, Y))

    assert of(columns=po.Columns(categorical_features="from_dtype")) == ["continuous"] * 4
    assert of(distributions="gaussian") == ["continuous"] * 4
    assert of(distributions={0: "poisson"}) == ["continuous", *KINDS[1:]]
    assert kinds(po.NaiveBayes(columns=po.Columns(categorical_features="all")).fit(BINARY, Y)) == KINDS[:3]


def test_parts_equal_one_fit_and_a_third_value_warns():
    parts = po.NaiveBayes().partial_fit(X[:90], Y[:90]).partial_fit(X[90:], Y[90:])
    assert_allclose(parts.predict_proba(X), po.NaiveBayes().fit(X, Y).predict_proba(X), rtol=1e-9)
    later = X[90:].copy()
    later[0, 0] = 7.0
    model = po.NaiveBayes().partial_fit(X[:90], Y[:90])
    with pytest.warns(UserWarning, match="column 'x0' held 0 and 1 in the first rows.* holds 7 now") as caught:
        model.partial_fit(later, Y[90:])
    assert [one.filename for one in caught] == [__file__]
    assert model.schema_.columns[0].categories == (0, 1, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        po.NaiveBayes(columns=po.Columns(categorical_features="from_dtype")).partial_fit(X, Y).partial_fit(
            later, Y[90:]
        )


@pytest.mark.parametrize("model", [po.GenerativeForest(), po.NaiveBayes(labels=po.Labels(unlabelled="ignore"))])
def test_rows_left_out_do_not_decide_on_two_values(model):
    y = np.array(["a", "b", None] * 20, dtype=object)
    X = pl.DataFrame({"x": np.arange(60.0) % 9, "two": [i // 3 % 2 if i % 3 < 2 else i for i in range(60)]})
    known = np.arange(60) % 3 < 2
    labelled = X.filter(known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left_out = clone(model).fit(X, y)
    alone = clone(model).fit(labelled, y[known])
    assert_array_equal(left_out.predict_proba(labelled), alone.predict_proba(labelled))
