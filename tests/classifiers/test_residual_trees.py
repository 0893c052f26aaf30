"""Trees on what the other members of a pool leave: rows kept apart, offsets, what nothing known gives, updates."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.folded_data import FoldedData
from posteriori.pool.candidates import RESIDUAL

MEMBERS = ["nb", RESIDUAL]


def rule(n=2100, seed=0, noise=0.05):
    """Draw rows whose class follows a rule over columns, which naive Bayes does not see, and a shift, which it does."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    kind = rng.choice(["red", "green", "blue"], n)
    y = (x[:, 0] > 0) ^ (x[:, 1] > 0) ^ (kind == "red") ^ (rng.random(n) < noise)
    x[:, 2] += 0.5 * y
    x[rng.random((n, 3)) < 0.05] = np.nan
    frame = pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "kind": kind}, nan_to_null=True)
    return frame, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def pool():
    return po.GenerativeClassifier(MEMBERS).fit(*rule())


def loss(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()


def test_trees_learn_a_rule_that_the_other_members_miss(pool):
    X, y = rule(seed=1)
    assert pool.member_weights_[RESIDUAL] == 1.0
    alone = po.GenerativeClassifier(["nb"]).fit(*rule())
    assert loss(alone, X, y) > 0.6
    assert loss(pool, X, y) < 0.35


def test_nothing_known_gives_the_prior(pool):
    nothing = rule()[0][:1].with_columns(pl.lit(None, dtype).alias(name) for name, dtype in rule()[0].schema.items())
    assert_allclose(pool.predict_proba(nothing)[0], pool.class_prior_, atol=1e-9)


def test_an_explanation_adds_up_to_the_prediction(pool):
    X, _ = rule(50, seed=2)
    explained = pool.explain(X)
    assert_allclose(explained.posterior, pool.predict_proba(X), atol=1e-9)
    odds = explained.log_odds(0, "yes", "no")
    log_proba = pool.predict_log_proba(X)
    assert_allclose(odds.total, log_proba[0, 1] - log_proba[0, 0], atol=1e-9)


def test_a_saved_pool_predicts_the_same(pool, tmp_path):
    X, _ = rule(200, seed=3)
    po.save(pool, tmp_path / "pool.posteriori")
    assert_array_equal(po.load(tmp_path / "pool.posteriori").predict_proba(X), pool.predict_proba(X))


def test_members_learn_from_the_rows_apart_as_well(pool):
    X, y = rule()
    alone = po.NaiveBayes().fit(X, y)
    assert_allclose(pool.members_["nb"].predict_proba(X), alone.predict_proba(X), atol=1e-12)
    assert len(pool.out_of_fold_.y_true) == 420  # a fifth, as the fewest are 400 of 2,100


def test_the_order_of_rows_and_columns_changes_nothing(pool):
    X, y = rule()
    rows = np.random.default_rng(0).permutation(len(y))
    moved = po.GenerativeClassifier(MEMBERS).fit(X[rows].select("kind", "c", "a", "b"), y[rows])
    new, _ = rule(100, seed=4)
    assert_allclose(moved.predict_proba(new.select("kind", "c", "a", "b")), pool.predict_proba(new), atol=1e-6)


def test_where_nothing_is_left_there_are_no_trees():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2100, 2)), rng.integers(0, 2, 2100)
    pool = po.GenerativeClassifier(MEMBERS).fit(X + y[:, np.newaxis], y)
    assert pool.skipped_ == {RESIDUAL: "no tree predicts better the rows that it has not seen"}
    assert_allclose(pool.members_["nb"].predict_proba(X), po.NaiveBayes().fit(X + y[:, np.newaxis], y).predict_proba(X))


def test_p_of_x_and_drawn_rows_are_those_of_the_other_members(pool):
    X, _ = rule(50, seed=5)
    assert_allclose(pool.score_samples(X), pool.members_["nb"].score_samples(X))
    drawn, _ = pool.sample(20, random_state=0)
    assert drawn.shape == (20, 4)


def test_more_rows_leave_the_trees_as_they_are():
    X, y = rule()
    pool = po.GenerativeClassifier(MEMBERS).fit(X, y)
    before = pool.members_[RESIDUAL].model_.parameters[0].trees
    with pytest.warns(UserWarning, match="the trees"):
        pool.members_[RESIDUAL].partial_fit(X[:20], y[:20])
    pool.partial_fit(X[:20], y[:20])
    assert pool.members_[RESIDUAL].model_.parameters[0].trees == before


def test_merged_pools_of_other_trees_lose_them():
    skewed = []
    for seed in (6, 7):
        X, y = rule(3000, seed)
        kept = (y == "yes") | (np.arange(3000) % 3 == 0)
        skewed.append((X.filter(kept), y[kept]))
    with pytest.warns(UserWarning, match=f"'{RESIDUAL}' leaves the pool"):
        merged = po.merge([po.GenerativeClassifier(MEMBERS).fit(*part) for part in skewed])
    X, y = skewed[0]
    assert list(merged.members_) == ["nb"]
    assert_allclose(merged.predict_proba(X).mean(axis=0), [(y == "no").mean(), (y == "yes").mean()], atol=0.05)


def test_rows_apart_are_of_their_own_groups():
    X, y = rule(300)
    y = np.where(np.arange(300) == 7, "rare", y)
    rows = read_first_rows(po.NaiveBayes().recipe, X, y)
    groups = np.repeat(np.arange(30), 10)
    for given in (None, groups):
        others, whole = FoldedData.of(rows, 5, groups=given, at_most=True).apart(0.2, 0)
        apart = whole.evaluated[whole.fold == 0]
        assert set(apart) | set(others.evaluated) == set(range(300))
        assert not set(apart) & set(others.evaluated)
        assert not others.source.weight[apart].any()
        assert set(others.y_true) == {0, 1, 2}
        assert others.n_labelled == len(others.evaluated)
        if given is not None:
            assert len(set(groups[apart]) & set(groups[others.evaluated])) <= 1  # that of the only row of a class


def test_members_leave_rows_without_label_out():
    X, y = rule(1500)
    labels = np.where(np.arange(1500) % 10 == 0, None, y)
    pool = po.GenerativeClassifier(["nb", "cells", RESIDUAL], labels=po.Labels(unlabelled="learn")).fit(X, labels)
    assert {"cells", RESIDUAL} <= set(pool.members_)
    assert loss(pool, *rule(seed=1)) < 0.4


def test_a_rule_over_two_columns_alone_is_found():
    X, y = rule(2100)
    X, y = X.filter(pl.col("kind") == "blue").select("a", "b"), y[(X["kind"] == "blue").to_numpy()]
    assert RESIDUAL in po.GenerativeClassifier(MEMBERS).fit(X, y).members_


def test_a_report_is_of_the_rows_that_were_kept_apart(pool, tmp_path):
    X, y = rule()
    po.report(pool, X, y, tmp_path / "report.html")
    assert "kept from the models" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_new_rows_of_one_class_move_the_pool_to_their_share():
    X, y = rule()
    pool = po.GenerativeClassifier(MEMBERS).fit(X, y)
    new, of_new = rule(900, seed=8)
    pool.partial_fit(new.filter(of_new == "yes"), of_new[of_new == "yes"])
    X, y = rule(3000, seed=9)
    assert pool.predict_proba(X)[:, 1].mean() < pool.class_prior_[1] + 0.03
    assert loss(pool, X, y) < 0.45


@pytest.mark.parametrize("sizes", [[700, 799, 1], [1490, 2, 2, 2, 2, 2], [750, 750]])
def test_groups_that_are_too_unequal_are_not_kept_apart(sizes):
    X, y = rule(1500)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    pool = po.GenerativeClassifier(MEMBERS, folds=len(sizes)).fit(X, y, groups=groups)
    assert "of the rows" in pool.skipped_[RESIDUAL]


def test_two_sums_of_trees_are_refused():
    sums = [po.GenerativeForest(combine="sum"), po.GenerativeForest(combine="sum", random_state=1)]
    with pytest.raises(ValueError, match="two sums of trees"):
        po.GenerativeClassifier(["nb", *sums]).fit(*rule(300))
