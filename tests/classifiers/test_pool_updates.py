"""Updates of a pool: its members equal those of a fit, and its weights come from held-out predictions."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import posteriori as po
from posteriori.learning.pool_weights import fit_pool
from posteriori.model import clip_log_posteriors

MEMBERS = {"nb": po.NaiveBayes(), "lda": po.GaussianDiscriminant(), "tan": po.TreeAugmentedNaiveBayes(bins=(0.0, 1.0))}


def table(n=240, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    u = rng.normal(size=n) + y
    frame = pl.DataFrame({"u": u, "v": 0.7 * u + rng.normal(size=n), "kind": np.array(list("pqr"))[(y + (u > 1)) % 3]})
    return frame, np.array(list("abcd"))[y]


def pool_of(X, y, members=MEMBERS, **parameters):
    return po.GenerativeClassifier(members, penalty=100.0, **parameters).fit(X, y)


def require_members_of(model, X, y, members=MEMBERS, atol=1e-9):
    """The members are what each of them learns alone from the rows."""
    assert set(model.members_) == set(members)
    for name, member in members.items():
        alone = clone(member).fit(X, y)
        assert_allclose(model.members_[name].predict_proba(X), alone.predict_proba(X), atol=atol, err_msg=name)


def test_partial_fit_weighs_members_by_earlier_predictions():
    X, y = table()
    model = po.GenerativeClassifier(MEMBERS, penalty=100.0).partial_fit(X[:120], y[:120], classes=list("abcd"))
    assert model.classes_.tolist() == list("abcd")
    model = pool_of(X[:120], y[:120])
    first = model.fitted_.held_out_sample
    before = np.stack([one.predict_log_proba(X[120:]) for one in model.members_.values()], axis=2)
    model.partial_fit(X[120:], y[120:])
    require_members_of(model, X, y)
    logs = np.concatenate([first.log_posterior, clip_log_posteriors(before)])
    true = np.concatenate([first.y_true, np.searchsorted(list("abc"), y[120:])])
    weight = np.concatenate([first.weight, np.ones(120)])  # several assignments to folds share the weight of a row
    expected = fit_pool(logs, true, weight, 100.0)
    assert_allclose([*model.member_weights_.values()], expected.weight, atol=1e-5)
    assert_allclose(model.class_bias_, expected.bias, atol=1e-5)
    assert_allclose(model.training_prior_, np.unique(y, return_counts=True)[1] / 240)
    assert not hasattr(model, "out_of_fold_")


def test_new_classes_and_priors():
    X, y = table(classes=2)
    more, labels = table(60, seed=1, classes=3)
    model = pool_of(X, y).partial_fit(more, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]
    require_members_of(model, pl.concat([X, more]), np.concatenate([y, labels]))
    assert np.isfinite(model.predict_log_proba(X)).all()
    known = labels != "c"
    moved, plain = (
        pool_of(X, y, priors=priors).partial_fit(more.filter(known), labels[known])
        for priors in ({"a": 0.8, "b": 0.2}, None)
    )
    expected = plain.predict_proba(X) * np.array([0.8, 0.2]) / plain.training_prior_
    assert_allclose(moved.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)
    with pytest.raises(ValueError, match="priors must name every class"):
        moved.partial_fit(more, labels)
    assert moved.classes_.tolist() == ["a", "b"]


def test_a_loaded_pool_keeps_its_weights_until_it_sees_enough(tmp_path):
    X, y = table()
    po.save(pool_of(X[:120], y[:120]), tmp_path / "pool.posteriori")
    model = po.load(tmp_path / "pool.posteriori")
    weights = dict(model.member_weights_)
    model.partial_fit(X[120:], y[120:])
    require_members_of(model, X, y)
    assert model.member_weights_ == pytest.approx(weights)
    many, labels = table(1600, seed=2)
    model.partial_fit(many, labels)
    assert model.member_weights_ != pytest.approx(weights)
    po.save(model, tmp_path / "again.posteriori")
    assert_array_equal(po.load(tmp_path / "again.posteriori").predict_proba(X), model.predict_proba(X))


def test_the_kept_sample_is_bounded_and_holds_no_cells():
    X, y = table(6000)
    model = pool_of(X, y, {"nb": po.NaiveBayes()})
    for _ in range(2):
        sample = model.fitted_.held_out_sample
        assert len(sample.y_true) == 5000
        assert sample.log_posterior.shape == (5000, 3, 1)
        model.partial_fit(X, y)
    assert model.fitted_.held_out_sample.weight.sum() == pytest.approx(18000)


def test_unlearned_rows_leave_every_member_and_the_sample():
    X, y = table()
    model = pool_of(X, y)
    weights = dict(model.member_weights_)
    model.unlearn(X[200:], y[200:])
    require_members_of(model, X[:200], y[:200], atol=1e-8)
    assert model.member_weights_ == pytest.approx(weights)
    fitted = model.fitted_
    assert (fitted.held_out_sample, fitted.out_of_fold, fitted.record.held_out) == (None, None, None)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"'kind'|weigh"):
        model.unlearn(pl.concat([X] * 3), np.concatenate([y] * 3))
    assert_array_equal(model.predict_proba(X), before)


def test_members_that_cannot_update_leave_with_a_warning():
    X, y = table()
    members = {
        "weighted": po.NaiveBayes(feature_weights="conditional"),
        "two passes": po.GaussianDiscriminant(shrinkage="ledoit_wolf"),
    }
    model = pool_of(X[:120], y[:120], members)
    total, weight = sum(model.member_weights_.values()), model.members_["weighted"].feature_weights_
    with pytest.warns(UserWarning, match="the member 'two passes' leaves the pool: .*ledoit_wolf"):
        model.partial_fit(X[120:], y[120:])
    (member,) = model.members_.values()
    assert_array_equal(member.feature_weights_, weight)
    plain = po.NaiveBayes().fit(X, y)
    assert_allclose(member.predict_joint_log_proba(X), plain.predict_joint_log_proba(X), atol=1e-9)
    model = pool_of(X, y, members)
    with pytest.warns(UserWarning, match="'two passes' leaves"):
        model.unlearn(X[:9], y[:9])
    assert sum(model.member_weights_.values()) == pytest.approx(total, rel=0.5)
    with pytest.raises(ValueError, match="no member of the pool can be updated: two passes: "):
        pool_of(X, y, {"two passes": members["two passes"]}).unlearn(X[:9], y[:9])


def test_merged_pools_have_the_members_of_all_rows(tmp_path):
    X, y = table()
    north, south = pool_of(X[:80], y[:80]), pool_of(X[80:], y[80:])
    both = po.merge([north, south])
    require_members_of(both, X, y)
    for name, weight in both.member_weights_.items():
        assert weight == pytest.approx((north.member_weights_[name] + 2 * south.member_weights_[name]) / 3)
    assert_allclose(both.class_bias_, (north.class_bias_ + 2 * south.class_bias_) / 3, atol=1e-12)
    po.save(both, tmp_path / "both.posteriori")
    assert_array_equal(po.load(tmp_path / "both.posteriori").predict_proba(X), both.predict_proba(X))
    both.unlearn(X[80:], y[80:])
    for name, member in north.members_.items():
        assert_allclose(both.members_[name].predict_proba(X), member.predict_proba(X), atol=1e-7, err_msg=name)


def test_members_that_cannot_be_merged_are_named():
    X, y = table()
    members = {"nb": po.NaiveBayes(), "binned": po.NaiveBayes(distributions="binned")}
    north, south = pool_of(X[:120], y[:120], members), pool_of(X[120:], y[120:], members)
    with pytest.warns(UserWarning, match="'binned' leaves the pool: .*cut into bins at other points"):
        both = po.merge([north, south])
    total = sum(sum(pool.member_weights_.values()) for pool in (north, south)) / 2
    assert both.member_weights_ == {"nb": pytest.approx(total)}
    with pytest.raises(ValueError, match=r"no member .*bins=\[…\]"):
        po.merge([pool_of(X[k : k + 120], y[k : k + 120], {"binned": members["binned"]}) for k in (0, 120)])
    with pytest.raises(ValueError, match=r"penalty is 3\.0 in model 1"):
        po.merge([north, south.set_params(penalty=3.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert po.merge([north]).predict_proba(X).shape == (240, 3)


def test_importance_under_the_model_is_of_the_training_rows():
    """Priors of another place change predictions, and not which columns inform about the training rows."""
    X, y = table()
    members = {"nb": po.NaiveBayes()}
    plain, moved = (pool_of(X, y, members, priors=priors).partial_fit(X, y) for priors in (None, [0.9, 0.05, 0.05]))
    assert not plain.importance_.held_out
    assert_allclose(moved.importance_.increase, plain.importance_.increase, rtol=1e-6)


def test_merged_pools_of_one_column_are_read_again(tmp_path):
    """The shares of these rows add up to 1 + 2⁻⁵², and so would the weight of the column."""
    rng = np.random.default_rng(0)
    pools = []
    for n in (40, 54, 56, 14):
        y = np.resize(["a", "b"], n)
        table = pl.DataFrame({"s": np.where(rng.random(n) < 0.8, y, "c")})
        pools.append(po.GenerativeClassifier([po.NaiveBayes()], folds=2).fit(table, y))
    merged = po.merge(pools)
    po.save(merged, tmp_path / "m.posteriori")
    assert np.array_equal(po.load(tmp_path / "m.posteriori").predict_proba(table), merged.predict_proba(table))


def test_rows_without_label_add_nothing_to_the_held_out_sample():
    X, y = table(360)
    known = np.arange(len(y)) % 3 > 0
    gaps = np.where(known, y, None)
    first, later, kept = slice(0, 120), slice(120, 360), known[120:]
    models = [pool_of(X[first], y[first]) for _ in range(2)]
    with pytest.warns(UserWarning, match="80 of 240 rows have no label; they are left out"):
        models[0].partial_fit(X[later], gaps[later])
    models[1].partial_fit(X[later].filter(kept), y[later][kept])
    assert models[0].member_weights_ == models[1].member_weights_
    assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))
    with pytest.warns(UserWarning, match="have no label") as said:
        models[0].unlearn(X[later], gaps[later])
    assert len([one for one in said if "no label" in str(one.message)]) == 1
