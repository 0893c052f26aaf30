"""What a pool asks of its members: class priors, missing cells, rows without label, and densities of columns."""

import datetime
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, logsumexp

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.registry import MODELS, pool_candidates

PRIORS = {"a": 0.6, "b": 0.3, "c": 0.1}


def table(n=160, seed=0, gaps=0.1):
    """Return numbers, counts and categories with missing cells, which are more frequent in class c."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    u = rng.normal(size=n) + y
    u[rng.random(n) < gaps * (1 + 3 * (y == 2))] = np.nan
    kind = [None if rng.random() < gaps else "pqr"[(c + rng.integers(0, 2)) % 3] for c in y]
    columns = {"u": u, "v": u**2 + rng.normal(size=n), "visits": rng.poisson(1.0 + 3 * y), "kind": kind}
    return pl.DataFrame(columns, nan_to_null=True), np.array(list("abc"))[y]


@pytest.fixture(scope="module")
def rows():
    return table()


def members_posterior(model, X):
    """Return the posterior of a pool from the predictions of its members."""
    logs = np.stack([one.predict_log_proba(X) for one in model.members_.values()], axis=2)
    return log_softmax(np.maximum(logs, -700.0) @ np.array([*model.member_weights_.values()]) + model.class_bias_, 1)


# Class priors -------------------------------------------------------------------------------------------------


def test_priors_multiply_the_posterior_by_the_ratio_of_shares(rows, tmp_path):
    X, y = rows
    plain = po.GenerativeClassifier(["nb", "tan"]).fit(X, y)
    moved = po.GenerativeClassifier(["nb", "tan"], priors=PRIORS).fit(X, y)
    frequency = np.array([np.mean(y == label) for label in "abc"])
    expected = plain.predict_proba(X) * np.array([*PRIORS.values()]) / frequency
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(moved.predict_proba(X), expected, atol=1e-12)
    assert_allclose(moved.class_prior_, [0.6, 0.3, 0.1])
    assert_allclose(moved.explain(X.head(9)).posterior, expected[:9], atol=1e-9)
    assert_allclose(list(moved.scorer()(X.row(0, named=True)).values()), expected[0], atol=1e-12)
    po.save(moved, tmp_path / "moved.posteriori")
    again = po.load(tmp_path / "moved.posteriori")
    assert_array_equal(again.predict_proba(X), moved.predict_proba(X))
    assert_array_equal(again.score_samples(X), moved.score_samples(X))
    assert list(po.scoring.load_scorer(tmp_path / "moved.posteriori")({}).values()) == list(moved.scorer()({}).values())


def test_the_density_and_drawn_rows_have_the_priors(rows):
    X, y = rows
    model = po.GenerativeClassifier(["nb", "tan"], priors=[0.6, 0.3, 0.1]).fit(X, y)
    share = np.array([*model.member_weights_.values()])
    given_class = [one.predict_joint_log_proba(X) - one.class_log_prior_ for one in model.members_.values()]
    each = [logsumexp(one + np.log([0.6, 0.3, 0.1]), axis=1) for one in given_class]
    expected = logsumexp(np.stack(each) + np.log(share / share.sum())[:, np.newaxis], axis=0)
    assert_allclose(model.score_samples(X), expected)
    assert_allclose(np.mean(model.sample(2000, random_state=0)[1] == "a"), 0.6, atol=0.05)


def test_scores_with_priors_are_those_of_the_predictions(rows):
    X, y = rows
    plain = po.GenerativeClassifier(["nb"]).fit(X, y)
    moved = po.GenerativeClassifier(["nb"], priors=PRIORS).fit(X, y)
    ratio = np.log([*PRIORS.values()]) - np.log(plain.training_prior_)
    expected = log_softmax(plain.out_of_fold_.log_posterior + ratio, axis=1)
    assert_allclose(moved.out_of_fold_.log_posterior, expected)
    losses = -expected[np.arange(len(expected)), moved.out_of_fold_.y_true]
    assert moved.cv_results_["log_loss"][-1] == pytest.approx(losses.mean())
    assert_allclose(moved.out_of_fold_.prior, np.broadcast_to([0.6, 0.3, 0.1], expected.shape))


@pytest.mark.parametrize(("priors", "words"), [([1.0, 0.0, 0.0], "'b' the probability 0"), ([0.5, 0.5], "classes: 2")])
def test_impossible_priors_are_refused(rows, priors, words):
    with pytest.raises(ValueError, match=words):
        po.GenerativeClassifier(["nb"], priors=priors).fit(*rows)


# Missing cells ------------------------------------------------------------------------------------------------


def test_every_member_models_which_cells_are_missing(rows, tmp_path):
    X, y = rows
    members = ["lda", "tan", "aode", "kdb weighted"]
    model = po.GenerativeClassifier(members, missing="informative").fit(X, y)
    assert all(one.missing == "informative" for one in model.members_.values())
    assert_allclose(model.predict_log_proba(X), members_posterior(model, X), atol=1e-9)
    plain = po.GenerativeClassifier(members).fit(X, y)
    assert model.cv_results_["log_loss"][-1] < plain.cv_results_["log_loss"][-1]
    po.save(model, tmp_path / "model.posteriori")
    assert_array_equal(po.load(tmp_path / "model.posteriori").predict_proba(X), model.predict_proba(X))
    assert all("missing" in spec.options for spec in pool_candidates().values())


@pytest.mark.parametrize("name", ["kdb", "aode"])
def test_dependences_times_the_probability_of_the_missing_cells(rows, name):
    X, y = rows
    informed, plain = (MODELS[name].make(missing=how).fit(X, y) for how in ("informative", "at_random"))
    gap = X.select(pl.all().is_null()).to_numpy()
    some = gap.any(axis=0)
    expected = plain.predict_joint_log_proba(X)
    for c, label in enumerate("abc"):
        of_class = gap[y == label]
        p = (of_class.sum(axis=0) + 1) / (len(of_class) + 2)
        expected[:, c] += np.where(gap, np.log(p), np.log1p(-p))[:, some].sum(axis=1)
    assert_allclose(informed.predict_joint_log_proba(X), expected, atol=1e-9)
    assert_allclose(informed.explain(X).posterior, informed.predict_proba(X), atol=1e-9)


# Rows without label -------------------------------------------------------------------------------------------


def test_members_learn_from_rows_without_label_if_they_can(rows):
    X, y = rows
    hidden = y.astype(object)
    hidden[::3] = None
    known = np.array([label is not None for label in hidden])
    members = ["nb", "tan", "kdb", "binned weighted"]
    model = po.GenerativeClassifier(
        members, labels=po.Labels(unlabelled="learn", unlabelled_weight=0.5), penalty=1e3
    ).fit(X, hidden)
    assert model.unlabelled_weight_ == 0.5
    assert len(model.out_of_fold_.y_true) == known.sum()
    assert_allclose(model.training_prior_, [np.mean(y[known] == label) for label in "abc"])
    for name in ("nb", "tan"):
        alone = MODELS[name].make(labels=po.Labels(unlabelled="learn", unlabelled_weight=0.5)).fit(X, hidden)
        assert_allclose(model.members_[name].predict_proba(X), alone.predict_proba(X), atol=1e-9, err_msg=name)
    for name in ("kdb", "binned weighted"):
        alone = MODELS[name].make().fit(X.filter(known), y[known])
        assert_allclose(model.members_[name].predict_proba(X), alone.predict_proba(X), atol=1e-7, err_msg=name)


def test_candidates_are_judged_on_labels_that_no_member_saw(rows):
    X, y = rows
    hidden = y.astype(object)
    hidden[::3] = None
    known = np.flatnonzero([label is not None for label in hidden])
    model = po.GenerativeClassifier(["nb"], labels=po.Labels(unlabelled="learn"), folds=3, pool="best").fit(X, hidden)
    own = model.out_of_fold_
    for k in range(3):
        held_out = known[own.fold == k]
        kept = np.setdiff1d(np.arange(len(y)), held_out)
        alone = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(X[kept], hidden[kept])
        assert_allclose(own.posterior[own.fold == k], alone.predict_proba(X[held_out]), atol=1e-7)


# Densities ----------------------------------------------------------------------------------------------------


def test_distributions_reach_the_members_that_can_use_them(rows):
    X, y = rows
    model = po.GenerativeClassifier(distributions={"visits": "poisson"}, penalty=1e3).fit(X, y)
    assert set(model.members_) == {"nb predictive", "binned weighted"}
    assert (
        "jointly Gaussian, and distributions gives 'visits' the density 'poisson'" in model.skipped_["rda predictive"]
    )
    assert "cuts numbers into bins" in model.skipped_["aode 8 bins"]
    alone = po.NaiveBayes(distributions={"visits": "poisson"}, predictive=True).fit(X, y)
    assert_allclose(model.members_["nb predictive"].predict_proba(X), alone.predict_proba(X), atol=1e-12)
    other = {"u": "binned", "v": "binned", "visits": "poisson"}
    alone = po.NaiveBayes(distributions=other, feature_weights="conditional").fit(X, y)
    assert_allclose(model.members_["binned weighted"].predict_proba(X), alone.predict_proba(X), atol=1e-7)
    binned = po.GenerativeClassifier(distributions="binned").fit(X.drop("visits"), y)
    assert set(binned.skipped_) == {
        "lda predictive",
        "rda predictive",
        "qda predictive",
        "binned weighted",
        "residual trees",
    }
    with pytest.raises(ValueError, match=r"'lda'.*jointly Gaussian.*'visits'"):
        po.GenerativeClassifier(["nb", "lda"], distributions={"visits": "binned"}).fit(X, y)


def test_a_column_given_as_categories_is_one_for_all_members(rows):
    X, y = rows
    model = po.GenerativeClassifier(["nb", "lda"], distributions={"visits": "categorical"}, penalty=1e3).fit(X, y)
    assert model.schema_.columns[2].kind == "categorical"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = po.GaussianDiscriminant(columns=po.Columns(categorical_features=["visits"])).fit(X, y)
    assert_allclose(model.members_["lda"].predict_proba(X), alone.predict_proba(X), atol=1e-9)


def test_two_whole_numbers_are_categories(rows):
    X, y = rows
    rng = np.random.default_rng(1)
    flags = X.with_columns(flag=pl.Series(rng.integers(0, 2, len(y))), sign=pl.Series(rng.choice([-1.0, 1.0], len(y))))
    model = po.GenerativeClassifier(["nb"]).fit(flags, y)
    kinds = {column.name: column.kind for column in model.schema_.columns}
    assert kinds["flag"] == kinds["sign"] == "categorical"
    assert kinds["visits"] == "continuous"
    alone = po.NaiveBayes(columns=po.Columns(categorical_features=["flag", "sign"])).fit(flags, y)
    assert_allclose(model.members_["nb"].predict_proba(flags), alone.predict_proba(flags), atol=1e-12)
    dates = [datetime.date(2024, 12, 31), datetime.date(2025, 1, 1)]  # two numbers of days, which are no codes
    dated = po.GenerativeClassifier(["nb"], folds=2).fit(X.with_columns(when=pl.Series(rng.choice(dates, len(y)))), y)
    assert {column.name: column.kind for column in dated.schema_.columns}["when.days"] == "continuous"
    plain = po.GenerativeClassifier(["nb"], columns=po.Columns(categorical_features="from_dtype")).fit(flags, y)
    assert plain.schema_.columns[-1].kind == "continuous"
    named = po.GenerativeClassifier(["nb"], distributions={"flag": "gaussian"}).fit(flags, y)
    assert [column.kind for column in named.schema_.columns[-2:]] == ["continuous", "categorical"]


def test_few_whole_numbers_beyond_every_integer_are_read():
    y = np.array(list("ab"))[np.arange(40) % 2]
    X = pl.DataFrame({"far": np.full(40, 1e19), "x": np.random.default_rng(0).normal(np.arange(40) % 2)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        assert np.isfinite(po.GenerativeClassifier(members=["nb", "lda"]).fit(X, y).predict_proba(X)).all()


def test_nothing_known_is_the_prior_without_informative_gaps():
    penguins = load_penguins().drop_nulls()
    model = po.GenerativeClassifier(missing="informative", members=["nb", "lda", "tan 5"]).fit(penguins, "species")
    nothing = penguins.head(1).with_columns(pl.lit(None).alias(name) for name in penguins.columns)
    shares = np.unique(penguins["species"], return_counts=True)[1] / penguins.height
    np.testing.assert_allclose(model.predict_proba(nothing.drop("species"))[0], shares, atol=1e-9)
