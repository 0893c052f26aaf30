"""GaussianDiscriminant: against its definition, scikit-learn, SciPy and itself."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.densities import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.densities.covariances import (
    Chain,
    Diagonal,
    LedoitWolf,
    OracleApproximating,
    PerClass,
    Pooled,
    PseudoRows,
    Regularized,
    ShrinkToDiagonal,
    ShrinkToIdentity,
)
from posteriori.model_selection import out_of_fold
from posteriori.tables import Numbers


@parametrize_with_checks(
    [
        po.GaussianDiscriminant(),
        po.GaussianDiscriminant(pooling=PerClass(ddof=1), shrinkage=0.1),
        po.GaussianDiscriminant(shrinkage="diagonal", pooling=0.5, priors=1.0),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the covariance is singular")  # the tables of the checks are small
        check(estimator)


IRIS = load_iris(return_X_y=True)
POOLINGS = [PerClass(), Pooled(), Regularized(0.3), PseudoRows(5.0)]
MODELS = [
    {},
    {"pooling": "per_class"},
    {"pooling": 0.4, "shrinkage": 0.2},
    {"pooling": PseudoRows(7.0)},
    {"shrinkage": "diagonal"},
    {"shrinkage": "spherical", "pooling": PerClass(ddof=1)},
    {"shrinkage": "oas"},
]
every_model = pytest.mark.parametrize("parameters", MODELS, ids=str)


def blobs(n=60, d=3, n_classes=3, seed=0, missing=0.0):
    """Return rows of correlated columns that differ between classes, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    mix = rng.normal(size=(n_classes, d, d)) + 2 * np.eye(d)
    X = np.einsum("ni,nij->nj", rng.normal(size=(n, d)), mix[y]) + rng.normal(0, 2, (n_classes, d))[y]
    holes = rng.random(X.shape) < missing
    holes[:, 0] &= holes.sum(axis=1) < d  # a row keeps a cell
    return np.where(holes, np.nan, X), y


def drawn(n=6, d=3, n_classes=3, seed=0, missing=0.4):
    """Return known means and covariances, and rows with missing cells."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_classes, d, d))
    X = rng.normal(0, 3, (n, d))
    X[rng.random(X.shape) < missing] = np.nan
    return rng.normal(size=(n_classes, d)), root @ root.transpose(0, 2, 1) + 0.1 * np.eye(d), X


# Against others -------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.booleans())
def test_the_joint_is_scipys_marginal_of_the_present_cells(seed, shared):
    mean, covariance, X = drawn(seed=seed)
    covariance = covariance[:1] if shared else covariance
    stated = {"covariance": covariance[0]} if shared else {"covariances": covariance}
    priors = [0.2, 0.5, 0.3]
    model = po.GaussianDiscriminant.from_parameters(priors=priors, means=mean, **stated)
    for c in range(3):
        for i, row in enumerate(X):
            o = np.flatnonzero(~np.isnan(row))
            expected = math.log(priors[c])
            if len(o):
                spread = covariance[0 if shared else c][np.ix_(o, o)]
                expected += scipy.stats.multivariate_normal(mean[c, o], spread).logpdf(row[o])
            assert_allclose(model.predict_joint_log_proba(X)[i, c], expected, rtol=1e-7)


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_scikit_learns_discriminant_analyses(pooling, data):
    X, y = data(return_X_y=True)
    if pooling == "pooled":
        ours, theirs = po.GaussianDiscriminant(), LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True)
    else:
        theirs = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
        ddof = int(np.allclose(theirs.covariance_[0], np.cov(X[y == 0].T)))  # it changed between versions
        ours = po.GaussianDiscriminant(pooling=PerClass(ddof=ddof))
    ours.fit(X, y)
    theirs.fit(X, y)
    assert_allclose(ours.means_, theirs.means_)
    assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-7, atol=1e-9)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    if pooling == "pooled":
        assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
        assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_transform_is_scikit_learns_up_to_signs(data):
    X, y = data(return_X_y=True)
    ours = po.GaussianDiscriminant(pooling=Pooled(ddof=1)).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    mine, other = ours.transform(X), theirs.transform(X)
    scale = other.std() / mine.std()  # of n or n − C rows, which changed between versions
    assert_allclose(scale, 1.0, atol=0.02)
    assert_allclose(scale * np.abs(mine), np.abs(other), rtol=1e-6, atol=1e-7)
    assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-7)
    assert_allclose(ours.xbar_, theirs.xbar_)
    assert list(ours.get_feature_names_out()) == ["gaussiandiscriminant0", "gaussiandiscriminant1"]


def test_mahalanobis_is_scipys():
    X, y = blobs()
    model = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
    for c in range(3):
        expected = cdist(X, model.means_[[c]], "mahalanobis", VI=np.linalg.inv(model.covariance_[c]))[:, 0]
        assert_allclose(model.mahalanobis(X)[:, c], expected, rtol=1e-9)
    gap = X[:1].copy()
    gap[0, 1] = np.nan
    one = [0, 2]
    expected = cdist(gap[:, one], model.means_[[0]][:, one], "mahalanobis",
                     VI=np.linalg.inv(model.covariance_[0][np.ix_(one, one)]))  # fmt: skip
    assert_allclose(model.mahalanobis(gap)[0, 0], expected[0, 0], rtol=1e-9)
    assert_array_equal(model.mahalanobis(np.full((1, 3), np.nan)), 0.0)


# Laws of pooling and shrinkage ----------------------------------------------------------------------------------


def covariances(pooling, degrees, scatter):
    return pooling.covariances(np.array(degrees, float), scatter)


@given(st.integers(0, 10**6), st.lists(st.floats(0.5, 50), min_size=3, max_size=3))
def test_every_pooling_ends_at_the_named_ones(seed, degrees):
    root = np.random.default_rng(seed).normal(size=(3, 2, 2))
    scatter = root @ root.transpose(0, 2, 1)
    own, pooled = (covariances(p, degrees, scatter) for p in (PerClass(), Pooled()))
    assert_allclose(own, scatter / np.array(degrees)[:, np.newaxis, np.newaxis])
    assert_allclose(pooled[0], scatter.sum(axis=0) / sum(degrees))
    for first, last in ((Regularized(0.0), Regularized(1.0)), (PseudoRows(0.0), PseudoRows(math.inf))):
        assert_allclose(covariances(first, degrees, scatter), own)
        assert_allclose(covariances(last, degrees, scatter), pooled)
        assert (first.shared, last.shared) == (False, True)
    rows = np.array(degrees)[:, np.newaxis, np.newaxis]
    assert_allclose(covariances(PseudoRows(4.0), degrees, scatter), (scatter + 4.0 * pooled) / (rows + 4.0))
    mixed = 0.7 * scatter + 0.3 * scatter.sum(axis=0)
    assert_allclose(covariances(Regularized(0.3), degrees, scatter), mixed / (0.7 * rows + 0.3 * rows.sum()))


@pytest.mark.parametrize("pooling", POOLINGS, ids=repr)
def test_a_component_without_rows_takes_the_pooled_covariance(pooling):
    scatter = np.stack([2 * np.eye(2), np.zeros((2, 2))])
    result = covariances(pooling, [4.0, 0.0], scatter)
    assert_allclose(result[1], 0.5 * np.eye(2))
    assert np.isfinite(covariances(pooling, [0.0, 0.0], 0 * scatter)).all()


@pytest.mark.parametrize(("start", "pooling"), [("per_class", 0.0), ("pooled", 1.0)])
def test_the_ends_of_friedmans_path_are_quadratic_and_linear(start, pooling):
    named, by_share = (po.GaussianDiscriminant(pooling=p).fit(*IRIS) for p in (start, pooling))
    assert_allclose(named.predict_proba(IRIS[0]), by_share.predict_proba(IRIS[0]), rtol=1e-9)
    assert named.covariance_.shape == by_share.covariance_.shape


def test_the_ends_of_shrinkage_are_none_and_a_sphere():
    X, y = IRIS
    plain, none, ball, sphere, diagonal = (
        po.GaussianDiscriminant(**p).fit(X, y)
        for p in (
            {},
            {"shrinkage": 0.0},
            {"shrinkage": 1.0},
            {"shrinkage": "spherical"},
            {"shrinkage": "diagonal"},
        )
    )
    assert_allclose(none.covariance_, plain.covariance_)
    assert_allclose(sphere.covariance_, np.trace(plain.covariance_) / 4 * np.eye(4))
    assert_allclose(diagonal.covariance_, np.diag(np.diagonal(plain.covariance_)))
    assert_allclose(ball.covariance_, diagonal.covariance_)
    assert ball.n_parameters_ == diagonal.n_parameters_


def test_the_strength_of_the_prior_ends_at_per_class_and_pooled():
    X, y = IRIS
    for rows, pooling in ((0.0, "per_class"), (math.inf, "pooled")):
        model = po.GaussianDiscriminant(pooling=PseudoRows(rows)).fit(X, y)
        assert_allclose(model.covariance_, po.GaussianDiscriminant(pooling=pooling).fit(X, y).covariance_)


@pytest.mark.parametrize(
    ("parameters", "per_covariance"),
    [
        ({}, 10),
        ({"shrinkage": "diagonal"}, 4),
        ({"shrinkage": "spherical"}, 1),
        ({"shrinkage": 0.1}, 10),
        ({"shrinkage": "oas"}, 10),
        ({"shrinkage": "ledoit_wolf"}, 10),
    ],
    ids=str,
)
@pytest.mark.parametrize(("pooling", "number"), [("pooled", 1), ("per_class", 3), (0.5, 3), (1.0, 1)])
def test_the_number_of_parameters(parameters, per_covariance, pooling, number):
    model = po.GaussianDiscriminant(pooling=pooling, **parameters).fit(*IRIS)
    assert model.n_parameters_ == 2 + 3 * 4 + per_covariance * number
    for shrinkage in (Chain(), OracleApproximating(), LedoitWolf(), ShrinkToIdentity(0.9), ShrinkToDiagonal(0.9)):
        assert shrinkage.n_free(4, 3) == 30
    for shrinkage, free in ((Diagonal(), 12), (ShrinkToIdentity(1.0), 3), (ShrinkToDiagonal(1.0), 6)):
        assert shrinkage.n_free(4, 3) == free


def test_the_full_model_has_the_number_of_parameters_it_counts():
    model = po.GaussianDiscriminant(pooling="per_class").fit(*IRIS)
    assert model.n_parameters_ == po.parameter_count.count_parameters(3, gaussian=4).full_joint


# Symmetries -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from(["pooled", "per_class", 0.5]))
def test_no_affine_map_of_the_rows_changes_a_posterior(seed, pooling):
    X, y = blobs(seed=seed)
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(0, 1e3, 3)
    model = po.GaussianDiscriminant(pooling=pooling)
    expected = model.fit(X, y).predict_proba(X)
    assert_allclose(model.fit(X @ A.T + b, y).predict_proba(X @ A.T + b), expected, atol=1e-7)


@every_model
def test_no_offset_changes_a_posterior(parameters):
    X, y = blobs()
    X = np.round(X * 1024) / 1024
    model = po.GaussianDiscriminant(**parameters)
    expected = model.fit(X, y).predict_proba(X)
    assert_allclose(model.fit(X + 1e9, y).predict_proba(X + 1e9), expected, atol=1e-5)


@every_model
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_weights_are_repetitions(parameters, missing):
    X, y = blobs(missing=missing)
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = po.GaussianDiscriminant(**parameters).fit(X, y, sample_weight=w)
    repeated = po.GaussianDiscriminant(**parameters).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X), rtol=1e-7)


@every_model
def test_partial_fits_add_up_to_one_fit(parameters):
    X, y = blobs()
    whole, parts = po.GaussianDiscriminant(**parameters).fit(X, y), po.GaussianDiscriminant(**parameters)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the covariance is singular")  # of a part
        for rows in (slice(30, None), slice(5, 30), slice(0, 5)):
            parts.partial_fit(X[rows], y[rows])
    assert_allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)


def test_partial_fit_warns_where_missing_cells_make_it_inexact():
    X, y = blobs(missing=0.3)
    model = po.GaussianDiscriminant().partial_fit(X[::2], y[::2])  # one call is a fit, without a warning
    assert_allclose(model.predict_proba(X), po.GaussianDiscriminant().fit(X[::2], y[::2]).predict_proba(X), rtol=1e-9)
    with pytest.warns(UserWarning, match="make GaussianDiscriminant.partial_fit differ from one fit") as caught:
        model.partial_fit(X[1::2], y[1::2])
    assert [one.filename for one in caught] == [__file__]
    assert abs(model.predict_proba(X) - po.GaussianDiscriminant().fit(X, y).predict_proba(X)).max() > 1e-6
    po.NaiveBayes().partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])  # without a warning


def test_a_class_met_late_extends_the_model():
    X, y = blobs()
    first = y < 2
    model = po.GaussianDiscriminant().partial_fit(X[first], y[first]).partial_fit(X[~first], y[~first])
    assert_allclose(model.predict_proba(X), po.GaussianDiscriminant().fit(X, y).predict_proba(X), rtol=1e-9)


@every_model
def test_float32_rows_are_read_as_they_are(parameters):
    X, y = blobs(missing=0.1)
    X = X.astype(np.float32)
    model = po.GaussianDiscriminant(**parameters)
    expected = model.fit(X.astype(np.float64), y).predict_joint_log_proba(X.astype(np.float64))
    assert_allclose(model.fit(X, y).predict_joint_log_proba(X), expected, rtol=1e-7)


def test_threads_change_nothing_but_rounding():
    X, y = blobs(n=40_000, missing=0.05)
    one, two = (po.GaussianDiscriminant(pooling="per_class", n_jobs=n).fit(X, y) for n in (1, 2))
    assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("parameters", MODELS[:4], ids=str)
@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("em", [None, po.EM(max_iter=5)], ids=["converged", "stopped"])
@pytest.mark.filterwarnings("ignore:EM stopped after")
def test_out_of_fold_equals_refitting(parameters, missing, em):
    X, y = blobs(n=90, missing=missing)
    parameters = parameters | {"em": em}
    model = po.GaussianDiscriminant(**parameters)
    held_out = out_of_fold(model, X, y, folds=3)
    for k in range(3):
        train = held_out.fold != k
        refit = po.GaussianDiscriminant(**parameters).fit(X[train], y[train])
        assert_allclose(held_out.posterior[~train], refit.predict_proba(X[~train]), atol=1e-9)
    assert_allclose(model.predict_proba(X), po.GaussianDiscriminant(**parameters).fit(X, y).predict_proba(X))


def test_drawn_rows_give_the_parameters_back_despite_gaps():
    mean, covariance, _ = drawn(n_classes=2, seed=2)
    stated = po.GaussianDiscriminant.from_parameters(
        priors={"a": 0.25, "b": 0.75}, means=mean, covariances=covariance, features=["u", "v", "w"]
    )
    X, y = stated.sample(40_000, random_state=0)
    values = np.array(X, dtype=float)
    values[np.random.default_rng(0).random(values.shape) < 0.2] = np.nan
    for table in (X, values):
        model = po.GaussianDiscriminant(pooling="per_class").fit(table, y)
        assert_allclose(model.class_prior_, [0.25, 0.75], atol=0.01)
        assert_allclose(model.means_, mean, atol=0.08)
        assert_allclose(model.covariance_, covariance, atol=0.05 * covariance.max())


# Mixed tables ----------------------------------------------------------------------------------------------------


def test_categorical_columns_are_independent_given_the_class():
    X, y = blobs(missing=0.1)
    rng = np.random.default_rng(0)
    colour = np.array(["red", "green", "blue"])[(y + rng.integers(0, 2, len(y))) % 3]
    table = pd.DataFrame({"a": X[:, 0], "colour": colour, "b": X[:, 1], "c": X[:, 2]})
    mixed = po.GaussianDiscriminant(pooling="per_class").fit(table, y)
    numeric = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
    categorical = po.NaiveBayes().fit(table[["colour"]], y)
    expected = (
        numeric.predict_joint_log_proba(X)
        + categorical.predict_joint_log_proba(table[["colour"]])
        - numeric.class_log_prior_
    )
    assert_allclose(mixed.predict_joint_log_proba(table), expected, rtol=1e-9)
    assert_allclose(mixed.explain(table).log_joint, expected, rtol=1e-9)
    assert mixed.transform(table).shape == (len(y), 2)
    only = po.GaussianDiscriminant().fit(table[["colour"]], y)
    assert_allclose(only.predict_proba(table[["colour"]]), categorical.predict_proba(table[["colour"]]))
    with pytest.raises(AttributeError, match="no continuous column"):
        _ = only.means_


# Known parameters and files --------------------------------------------------------------------------------------


def test_stated_parameters_are_the_model():
    model = po.GaussianDiscriminant.from_parameters(
        priors={"no": 0.5, "yes": 0.5},
        means={"yes": [1.0, 1.0], "no": [0.0, 0.0]},
        covariances={"no": np.eye(2), "yes": [[2, 0.5], [0.5, 1]]},
        features=["u", "v"],
    )
    assert list(model.classes_) == ["no", "yes"]
    assert_array_equal(model.means_, [[0, 0], [1, 1]])
    assert model.covariance_.shape == (2, 2, 2)
    assert list(model.feature_names_in_) == ["u", "v"]
    with pytest.raises(ValueError, match="from parameters"):
        model.partial_fit(pd.DataFrame({"u": [1.0], "v": [2.0]}), ["no"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"covariance": None}, "either covariance"),
        ({"covariances": [np.eye(2)] * 2}, "either covariance"),
        ({"covariance": [[1, 2], [2, 1]]}, "positive definite"),
        ({"covariance": [[1, 0.5], [0, 1]]}, "symmetric"),
        ({"covariance": np.eye(3)}, r"shape \(2, 2\)"),
        ({"means": [[0, 0]]}, "2 classes"),
        ({"means": [[0, 0], [0, np.nan]]}, "finite"),
        ({"priors": [0.5, 0.4]}, "sum of the priors"),
        ({"features": ["a", "a"]}, "each once"),
    ],
)
def test_stated_parameters_are_checked(changes, message):
    stated = {"priors": [0.5, 0.5], "means": [[0, 0], [1, 1]], "covariance": np.eye(2), **changes}
    with pytest.raises(ValueError, match=message):
        po.GaussianDiscriminant.from_parameters(**stated)


@every_model
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_file_gives_the_model_back_bit_for_bit(parameters, missing, tmp_path):
    X, y = blobs(missing=missing)
    model = po.GaussianDiscriminant(**parameters).fit(X[:40], y[:40])
    po.save(model, tmp_path / "model.posteriori")
    loaded = po.load(tmp_path / "model.posteriori")
    assert loaded.get_params() == model.get_params()
    assert_array_equal(loaded.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    assert loaded.model_.blocks == model.model_.blocks
    assert_array_equal(loaded.log_likelihood_trace_, model.log_likelihood_trace_)
    assert loaded.n_iter_ == model.n_iter_
    assert_array_equal(loaded.transform(X), model.transform(X))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "rows with missing cells")
        first, second = (one.partial_fit(X[40:], y[40:]) for one in (model, loaded))
    assert_array_equal(first.predict_joint_log_proba(X), second.predict_joint_log_proba(X))


# The density alone -----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.floats(-3.5, -1))
def test_nearly_collinear_columns_with_gaps_keep_their_digits(seed, log_angle):
    rng = np.random.default_rng(seed)
    root = np.tril(rng.normal(size=(3, 3)), -1) + np.diag([1.0, 1.0, 10.0**log_angle])
    parameters = MultivariateGaussianParameters(np.zeros((1, 3)), (root @ root.T)[np.newaxis])
    x = rng.normal(size=(4, 3)) @ root.T
    x[0, 0] = x[1, 2] = x[2, [0, 1]] = np.nan
    result = MultivariateGaussian().log_density(parameters, Numbers(x))[:, 0]
    for row, value in zip(x, result, strict=True):
        o = np.flatnonzero(~np.isnan(row))
        normal = scipy.stats.multivariate_normal(np.zeros(len(o)), (root @ root.T)[np.ix_(o, o)])
        assert_allclose(value, normal.logpdf(row[o]), atol=10.0 ** (-2 * log_angle - 13) + 1e-7)
