"""The numbers of the drop-in naive Bayes classifiers are those of scikit-learn."""

import warnings

import numpy as np
import pytest
import sklearn.naive_bayes
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_array

from posteriori.drop_in import BernoulliNB, CategoricalNB, GaussianNB


def assert_same(ours, theirs, X, rtol=1e-9, attribute_rtol=1e-9):
    """Assert that every fitted attribute of scikit-learn's estimator, and every prediction, is ours too."""
    for name, value in vars(theirs).items():
        if name.endswith("_") and name != "statistics_":
            mine = getattr(ours, name)
            pairs = zip(mine, value, strict=True) if isinstance(value, list) else [(mine, value)]
            for a, b in pairs:
                assert np.shape(a) == np.shape(b), name
                if np.asarray(b).dtype.kind == "f":
                    assert np.asarray(a).dtype == np.asarray(b).dtype, name
                    # 1e-14 for a mean of 0, of which no relative digit is right.
                    assert_allclose(a, b, rtol=attribute_rtol, atol=1e-5 * attribute_rtol, err_msg=name)
                else:
                    assert np.asarray(a).dtype.kind == np.asarray(b).dtype.kind, name
                    assert_array_equal(a, b, err_msg=name)
    for method in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
        a, b = getattr(ours, method)(X), call(theirs, method, X)
        assert a.dtype == b.dtype
        assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=method)
    # Where two classes are equally probable, the last digit decides.
    descending = -np.sort(-ours.predict_proba(X), axis=1)
    clear = descending[:, 0] - descending[:, 1:].max(axis=1, initial=0) > 1e-6
    assert_array_equal(ours.predict(X)[clear], call(theirs, "predict", X)[clear])


def call(theirs, method, *args, **kwargs):
    """Call scikit-learn, which computes log(0) aloud."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return getattr(theirs, method)(*args, **kwargs)


def both(cls, X, y, sample_weight=None, **parameters):
    theirs = getattr(sklearn.naive_bayes, cls.__name__)(**parameters)
    return cls(**parameters).fit(X, y, sample_weight), call(theirs, "fit", X, y, sample_weight)


def labels(rng, n, n_classes, kind):
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, max(n - n_classes, 0))])[:n]
    rng.shuffle(y)
    return {
        "int": y,
        "negative": y * 3 - 4,
        "float": y.astype(float),
        "bool": y > 0,
        "str": np.array([f"class {k}" for k in y]),
        "object": np.array([f"class {k}" for k in y], dtype=object),
        "list": [f"class {k}" for k in y],
    }[kind]


tables = st.fixed_dictionaries({
    "seed": st.integers(0, 2**32 - 1),
    "n": st.integers(1, 60),
    "d": st.integers(1, 6),
    "n_classes": st.integers(1, 4),
    "kind": st.sampled_from(["int", "negative", "float", "bool", "str", "object", "list"]),
    "weighted": st.booleans(),
})  # fmt: skip


def draw(table):
    rng = np.random.default_rng(table["seed"])
    n_classes = min(table["n"], table["n_classes"])
    y = labels(rng, table["n"], n_classes, table["kind"])
    # Halves, so that sums of weights are exact; none of them all zero.
    weight = rng.integers(0, 5, table["n"]) / 2 if table["weighted"] else None
    if weight is not None:
        weight[0] = 1.0
    return rng, y, weight, len(np.unique(y))


@given(
    table=tables,
    var_smoothing=st.sampled_from([1e-9, 1e-3, 0.5]),
    priors=st.booleans(),
    integers=st.booleans(),
)
def test_gaussian_numbers(table, var_smoothing, priors, integers):
    rng, y, weight, n_classes = draw(table)
    X = rng.normal(rng.normal(size=table["d"]), rng.uniform(0.1, 10, table["d"]), (table["n"], table["d"]))
    if integers:
        X = np.round(3 * X).astype(rng.choice([np.int8, np.int64]))
    if rng.random() < 0.5:
        X = np.asfortranarray(X)
    assume(np.ptp(X, axis=0).any())
    given_priors = list(np.full(n_classes, 1 / n_classes)) if priors else None
    ours, theirs = both(GaussianNB, X, y, weight, var_smoothing=var_smoothing, priors=given_priors)
    # A class of one row has the variance epsilon alone, so that any last digit counts for 1e9 of itself.
    assert_same(ours, theirs, X, rtol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gaussian_numbers_over_many_batches(weighted, dtype):
    rng = np.random.default_rng(0)
    n, d = 9000, 50
    y = rng.integers(0, 3, n)
    X = (rng.normal(size=(n, d)) + 0.3 * y[:, np.newaxis]).astype(dtype)
    weight = rng.uniform(0, 2, n) if weighted else None
    ours, theirs = both(GaussianNB, X, y, weight, var_smoothing=0.1)
    # scikit-learn sums float32 in float32: it, not we, loses digits.
    tolerance = 1e-10 if dtype == np.float64 else 2e-4
    assert_same(ours, theirs, X, rtol=tolerance, attribute_rtol=max(tolerance, 1e-9))
    exact = GaussianNB(var_smoothing=0.1).fit(X.astype(np.float64), y, weight)
    assert_allclose(ours.theta_, exact.theta_, rtol=1e-6, atol=1e-7)
    assert_allclose(ours.predict_proba(X), exact.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_gaussian_offset_costs_no_digits():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(500, 3)).round(3), rng.integers(0, 2, 500)
    near, far = GaussianNB().fit(X, y), GaussianNB().fit(X + 1e8, y)
    assert_allclose(far.var_, near.var_, rtol=1e-6)
    assert_allclose(far.predict_proba(X + 1e8), near.predict_proba(X), rtol=1e-5)


def test_gaussian_epsilon_is_of_all_rows_without_weights():
    X, y = np.array([[0.0], [2.0], [10.0], [12.0]]), [0, 0, 1, 1]
    model = GaussianNB(var_smoothing=0.5).fit(X, y, sample_weight=[1, 1, 5, 0])
    assert_allclose(model.epsilon_, 0.5 * X.var())
    assert_allclose(model.var_, [[1 + 0.5 * X.var()], [0.5 * X.var()]])


def test_gaussian_constant_columns_say_nothing():
    """scikit-learn gives NaN."""
    y = ["a", "b", "b", "b"]
    for constant in (0.0, 1.0, 1e9, 1e30):
        ours = GaussianNB().fit(np.full((4, 2), constant), y)
        assert_array_equal(ours.var_, 0.0)
        for row in (constant, constant + 1.0, -3.0):
            assert_allclose(ours.predict_proba([[row, row]]), [[0.25, 0.75]])


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1.0, 1e18, 1e30])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e9, 1e20])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gaussian_posteriors_of_narrow_floats_are_finite(dtype, offset, scale):
    """Rows far from 0 may be equal once they are rounded, and squares of floats of 32 bits may need 64."""
    rng = np.random.default_rng(0)
    X = np.clip(offset + scale * rng.normal(size=(60, 2)), -6e4, 6e4) if dtype == np.float16 else None
    X = (offset + scale * rng.normal(size=(60, 2)) if X is None else X).astype(dtype)
    y = rng.integers(0, 3, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        posterior = GaussianNB().fit(X, y).predict_proba(X)
    exact = GaussianNB().fit(X.astype(np.float64), y).predict_proba(X.astype(np.float64))
    assert np.isfinite(posterior).all()
    if offset == 0.0:
        assert_allclose(posterior, exact, rtol=1e-3, atol=1e-5)


def test_gaussian_class_without_weight_is_never_predicted():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0], [3.0, 1.0]]), np.array([0, 0, 1, 2])
    weight = np.array([1.0, 1.0, 0.0, 1.0])
    ours, theirs = both(GaussianNB, X, y, weight)
    assert_same(ours, theirs, X, rtol=1e-7)
    assert_array_equal(ours.predict_proba(X)[:, 1], 0)


def test_gaussian_overflow_is_an_error():
    with pytest.raises(ValueError, match="overflows; rescale"):
        GaussianNB().fit([[1e200], [-1e200], [1.0]], [0, 0, 1])


discrete = {
    "alpha": st.sampled_from([1.0, 0.3, 1e-3, 7]),
    "fit_prior": st.booleans(),
    "class_prior": st.booleans(),
}


def prior_of(given_prior, n_classes):
    return np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1)) if given_prior else None


@given(
    table=tables,
    parameters=st.fixed_dictionaries(discrete),
    binarize=st.sampled_from([0.0, 0.7, None]),
    container=st.sampled_from([np.asarray, csr_array, csc_matrix, np.asfortranarray]),
)
def test_bernoulli_numbers(table, parameters, binarize, container):
    rng, y, weight, n_classes = draw(table)
    X = rng.integers(0, 2, (table["n"], table["d"])) * rng.uniform(0, 1, (table["n"], table["d"]))
    if rng.random() < 0.3:
        X = (X > 0).astype(rng.choice([np.int64, np.float32, np.uint8]))
    parameters = parameters | {"class_prior": prior_of(parameters["class_prior"], n_classes)}
    ours, theirs = both(BernoulliNB, container(X), y, weight, binarize=binarize, **parameters)
    assert_same(ours, theirs, container(X))


@given(
    table=tables,
    parameters=st.fixed_dictionaries(discrete),
    min_categories=st.sampled_from([None, 2, 9, "each"]),
    dtype=st.sampled_from([np.int64, np.uint8, np.float64, np.float32, bool]),
)
def test_categorical_numbers(table, parameters, min_categories, dtype):
    rng, y, weight, n_classes = draw(table)
    X = rng.integers(0, rng.integers(1, 8, table["d"]), (table["n"], table["d"])).astype(dtype)
    if min_categories == "each":
        min_categories = rng.integers(1, 10, table["d"]).tolist()
    parameters = parameters | {"class_prior": prior_of(parameters["class_prior"], n_classes)}
    ours, theirs = both(CategoricalNB, X, y, weight, min_categories=min_categories, **parameters)
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("cls", [BernoulliNB, CategoricalNB])
def test_discrete_numbers_over_many_batches(cls):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 9000)
    X = rng.integers(0, 5, (9000, 50))
    X[::2, 0] = 0
    X[8999, 1] = 300  # the last batch has a category of its own, and wider codes
    ours, theirs = both(cls, X, y, rng.integers(0, 4, 9000))
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("largest", [254, 255, 70_000])
def test_categorical_numbers_at_every_width_of_code(largest):
    X = np.array([[0, 1], [largest, 0], [1, 1]])
    assert_same(*both(CategoricalNB, X, [0, 1, 1]), X)


def test_categorical_fractions_are_cut_off():
    X = np.array([[0.0, 1.9], [1.2, 2.0], [0.9, 0.0], [-0.5, 1.0]])
    assert_same(*both(CategoricalNB, X, [0, 1, 1, 0]), X)


def test_categorical_alpha_0():
    X, y = np.array([[0, 0], [1, 1], [0, 2], [1, 0]]), [0, 0, 1, 1]
    ours, theirs = both(CategoricalNB, X, y, alpha=0)
    for a, b in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        assert_allclose(a, b)
    assert_allclose(ours.predict_proba(X), call(theirs, "predict_proba", X))
    assert_array_equal(ours.predict_proba([[0, 1]]), [[1, 0]])


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_bernoulli_alpha_0_is_the_limit_of_small_alphas(container):
    X = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]])
    y = [0, 0, 1, 1]
    exact, near = BernoulliNB(alpha=0).fit(container(X), y), BernoulliNB(alpha=1e-9).fit(container(X), y)
    rows = container(X)
    assert np.isneginf(exact.feature_log_prob_).any()
    assert np.isneginf(exact.predict_joint_log_proba(rows)).any()
    assert_allclose(exact.predict_proba(rows), near.predict_proba(rows), atol=1e-7)


def test_alpha_0_and_a_class_without_rows():
    X, y = np.array([[0, 1], [1, 1]]), [0, 0]
    for cls in (BernoulliNB, CategoricalNB):
        model = cls(alpha=0).partial_fit(X, y, classes=[0, 1])
        assert_array_equal(model.predict_proba(X), [[1, 0], [1, 0]])


def test_bernoulli_alpha_per_feature():
    X, y = np.array([[1, 0], [1, 1], [0, 1]]), [0, 1, 1]
    model = BernoulliNB(alpha=[1.0, 3.0]).fit(X, y)
    assert_allclose(np.exp(model.feature_log_prob_), [[2 / 3, 3 / 7], [2 / 4, 5 / 8]])
    with pytest.raises(ValueError, match="give 2 elements instead of 3"):
        BernoulliNB(alpha=[1.0, 1.0, 1.0]).fit(X, y)
    with pytest.raises(ValueError, match="must be greater than 0"):
        BernoulliNB(alpha=[1.0, -1.0]).fit(X, y)
    with pytest.raises(ValueError, match=r"alpha holds 1e\+308; it must be at most 1e\+30"):
        BernoulliNB(alpha=[1.0, 1e308]).fit(X, y)


@pytest.mark.parametrize("least", [[2.5, 3.0], 2.0 * np.ones(2)])
def test_min_categories_must_be_integers(least):
    with pytest.raises(ValueError, match="'min_categories' should have integral type"):
        CategoricalNB(min_categories=least).fit([[0, 1], [1, 0]], [0, 1])
