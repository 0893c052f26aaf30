"""The drop-in classifiers against scikit-learn: its own tests, its conformance checks, and its numbers."""

import importlib.util
import inspect
import itertools
import pickle
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
import sklearn.naive_bayes
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_matrix, csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori import drop_in
from posteriori.drop_in import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

CLASSES = [BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB]

# scikit-learn's own tests ----------------------------------------------------------------------------------

# Every test of sklearn/tests/test_naive_bayes.py is run below, with our classes for its own, but these.
NOT_APPLICABLE = {
    "test_gnb_check_update_with_no_data": "calls the private GaussianNB._update_mean_variance",
    "test_gnb_array_api_compliance": "array API dispatch (torch, CuPy) is not offered",
}


def load_scikit_learns_tests():
    """Return scikit-learn's test module, executed while our classes stand in for its own."""
    origin = importlib.util.find_spec("sklearn.tests.test_naive_bayes").origin
    spec = importlib.util.spec_from_file_location("scikit_learns_naive_bayes_tests", origin)
    module = importlib.util.module_from_spec(spec)
    ours = {cls.__name__: cls for cls in CLASSES}
    with mock.patch.multiple("sklearn.naive_bayes", **ours):
        spec.loader.exec_module(module)
    return module


SCIKIT_LEARNS = load_scikit_learns_tests()
THEIR_TESTS = {name for name in vars(SCIKIT_LEARNS) if name.startswith("test_")}
globals().update({name: getattr(SCIKIT_LEARNS, name) for name in sorted(THEIR_TESTS - set(NOT_APPLICABLE))})

pytest.mark.filterwarnings("ignore:alpha too small")(SCIKIT_LEARNS.test_alpha_vector)  # it does not expect the warning


@pytest.fixture(params=[0, 42])
def global_random_seed(request):
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    return request.param


def test_every_test_of_scikit_learn_is_run_or_listed():
    here = vars(sys.modules[__name__])
    run = {name for name in THEIR_TESTS if here.get(name) is getattr(SCIKIT_LEARNS, name)}
    assert len(THEIR_TESTS) >= 30
    assert run | set(NOT_APPLICABLE) == THEIR_TESTS
    assert run.isdisjoint(NOT_APPLICABLE)
    assert all(NOT_APPLICABLE.values())
    assert {getattr(SCIKIT_LEARNS, cls.__name__) for cls in CLASSES} == set(CLASSES)
    assert set(SCIKIT_LEARNS.ALL_NAIVE_BAYES_CLASSES) == set(CLASSES)


# Conformance -----------------------------------------------------------------------------------------------


@parametrize_with_checks([cls() for cls in CLASSES])
def test_conforms_to_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_interface_is_scikit_learns(cls):
    theirs = getattr(sklearn.naive_bayes, cls.__name__)
    assert not issubclass(cls, theirs)
    assert inspect.signature(cls) == inspect.signature(theirs) or _plain(cls) == _plain(theirs)
    for method in ("fit", "partial_fit", "predict", "predict_proba", "score"):
        ours_takes = list(inspect.signature(getattr(cls, method)).parameters)
        assert ours_takes == list(inspect.signature(getattr(theirs, method)).parameters)
    assert cls().get_params() == theirs().get_params()
    assert set(cls._parameter_constraints) == set(theirs._parameter_constraints)
    for name, constraints in theirs._parameter_constraints.items():
        assert sorted(map(str, cls._parameter_constraints[name])) == sorted(map(str, constraints))
    tags, their_tags = cls().__sklearn_tags__(), theirs().__sklearn_tags__()
    their_tags.array_api_support = False  # not offered
    assert tags == their_tags


def _plain(cls):
    return [(p.name, p.kind, p.default) for p in inspect.signature(cls).parameters.values()]


@pytest.mark.parametrize("cls", CLASSES)
def test_is_reached_by_its_name(cls):
    assert getattr(drop_in, cls.__name__) is cls
    with pytest.raises(NotFittedError):
        cls().predict([[1, 2]])


# Numbers ---------------------------------------------------------------------------------------------------


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


def test_gaussian_constant_columns_are_nan_as_in_scikit_learn():
    ours, theirs = both(GaussianNB, np.ones((4, 2)), [0, 0, 1, 1])
    assert_array_equal(ours.var_, theirs.var_)
    assert_array_equal(ours.predict_proba(np.ones((1, 2))), call(theirs, "predict_proba", np.ones((1, 2))))


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


# Learning in parts -----------------------------------------------------------------------------------------


@given(table=tables, cuts=st.lists(st.floats(0, 1), max_size=3), index=st.integers(0, 2))
def test_partial_fit_of_parts_is_fit_of_all(table, cuts, index):
    rng, y, weight, _ = draw(table)
    cls, y = CLASSES[index], np.asarray(y)
    X = rng.integers(0, 4, (table["n"], table["d"]))
    parameters = {"var_smoothing": 0.3} if cls is GaussianNB else {}
    whole = cls(**parameters).fit(X, y, weight)
    edges = sorted({0, table["n"], *(int(cut * table["n"]) for cut in cuts)})
    parts = cls(**parameters)
    for start, stop in itertools.pairwise(edges):
        rows = slice(start, stop)
        part_weight = None if weight is None else weight[rows]
        assume(part_weight is None or part_weight.any())  # scikit-learn refuses rows that weigh nothing
        parts.partial_fit(X[rows], y[rows], classes=np.unique(y), sample_weight=part_weight)
    assert_same(parts, whole, X, rtol=1e-7)


@pytest.mark.parametrize("cls", CLASSES)
def test_partial_fit_numbers(cls):
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 4, (300, 4)), rng.integers(0, 3, 300)
    X[:3] = 3  # so that scikit-learn's n_categories_, that of the last part, is that of all
    X[150:153] = 3
    # Of scikit-learn's Gaussian numbers, those that are smoothed are about the last part.
    parameters = {"var_smoothing": 0} if cls is GaussianNB else {}
    ours, theirs = (home(**parameters) for home in (cls, getattr(sklearn.naive_bayes, cls.__name__)))
    for model in (ours, theirs):
        model.partial_fit(X[:150], y[:150], classes=[0, 1, 2]).partial_fit(X[150:], y[150:])
    assert_same(ours, theirs, X, rtol=1e-7)


def test_partial_fit_extends_the_categories():
    model = CategoricalNB().partial_fit([[0], [1]], [0, 1], classes=[0, 1])
    model.partial_fit([[3]], [1]).partial_fit([[0]], [0])
    assert_array_equal(model.n_categories_, [4])
    assert_array_equal(model.category_count_[0], [[2, 0, 0, 0], [0, 1, 0, 1]])


@pytest.mark.parametrize("cls", CLASSES)
def test_partial_fit_refuses_a_label_outside_the_classes(cls):
    with pytest.raises(ValueError, match=r"The target label\(s\) \[7\] in y do not exist"):
        cls().partial_fit([[0, 1], [1, 0]], [0, 7], classes=[0, 1])
    model = cls().partial_fit([[0, 1], [1, 0]], [0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match=r"The target label\(s\) \[7\] in y do not exist"):
        model.partial_fit([[0, 1]], [7])


@pytest.mark.parametrize("cls", CLASSES)
def test_fit_forgets(cls):
    X, y = [[0, 1], [1, 0], [1, 1]], [0, 1, 1]
    model = cls().fit([[0], [2]], ["a", "b"]).fit(X, y)
    assert_same(model, cls().fit(X, y), X)


# Bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_that_are_not_finite_are_refused_wherever_they_are(cls, bad, word, weighted):
    X, y = np.random.default_rng(0).integers(0, 3, (9000, 50)).astype(float), np.arange(9000) % 2
    model = cls().fit(X, y)
    X[8000, 17] = bad
    weight = np.ones(9000)
    weight[8000] = 0.0  # even a row that weighs nothing
    for attempt in (lambda: cls().fit(X, y, weight if weighted else None), lambda: model.predict(X)):
        with pytest.raises(ValueError, match=f"Input X contains {word}.*|.*{word}"):
            attempt()


@pytest.mark.parametrize("cls", CLASSES)
def test_weights_must_not_be_negative(cls):
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        cls().fit([[0, 1], [1, 0], [1, 1]], [0, 1, 1], sample_weight=[1, 2, -1])


@pytest.mark.parametrize("cls", CLASSES)
def test_sums_must_not_overflow(cls):
    X, y = [[0, 1], [1, 0], [1, 1]], [0, 1, 1]
    with pytest.raises(
        ValueError, match=r"sample_weight holds 1e\+308 in row 1; weights must be 0, or lie between 1e-100 and 1e\+50"
    ):
        cls().fit(X, y, sample_weight=[1, 1e308, 1])
    if cls in (ComplementNB, MultinomialNB):
        with pytest.raises(ValueError, match="the sum of the counts in X overflows; rescale X"):
            cls().fit(np.multiply(X, 1e308), y)


def test_shares_of_presence_lie_between_0_and_1():
    for X in (np.array([[0.0, 2.0], [1.0, 1.0]]), csr_array([[0.0, -1.0], [1.0, 1.0]])):
        with pytest.raises(ValueError, match="numbers below 0 or above 1, which are no presence; give binarize"):
            BernoulliNB(binarize=None).fit(X, [0, 1])


@pytest.mark.parametrize("cls", CLASSES)
def test_labels_that_no_integer_holds_are_refused_without_a_warning(cls):
    with pytest.raises(ValueError, match="Unknown label type"):
        cls().fit([[0, 1], [1, 0]], [1e300, 0.0])


def test_an_unseen_category_is_an_index_error_that_says_so():
    model = CategoricalNB().fit([[0, 1], [1, 2]], [0, 1])
    with pytest.raises(IndexError, match="category 5 in column 1, where CategoricalNB knows 0 to 2"):
        model.predict([[0, 0], [1, 5]])
    assert CategoricalNB(min_categories=6).fit([[0, 1], [1, 2]], [0, 1]).predict([[1, 5]]).shape == (1,)


@pytest.mark.parametrize("cls", [GaussianNB, CategoricalNB])
def test_sparse_is_refused(cls):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        cls().fit(csr_array(np.eye(2)), [0, 1])


def test_bernoulli_refuses_a_sparse_nan():
    X = csr_array(np.array([[0.0, np.nan], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        BernoulliNB().fit(X, [0, 1])


def test_bernoulli_counts_a_cell_that_is_stored_twice_once():
    X = csr_array((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    model = BernoulliNB(binarize=1.5).fit(X, [0, 1])
    assert_array_equal(model.feature_count_, [[0, 1], [0, 0]])
    assert X.nnz == 3, "the caller's matrix was changed"


# In use ----------------------------------------------------------------------------------------------------


def test_predictions_follow_attributes_set_by_hand():
    X, y = np.random.default_rng(2).integers(0, 3, (40, 2)), np.arange(40) % 2
    for cls in CLASSES:
        ours, theirs = both(cls, X, y)
        changed = {"class_prior_": np.array([0.9, 0.1])} if cls is GaussianNB else {}
        changed |= {"class_log_prior_": np.log([0.9, 0.1])} if cls is not GaussianNB else {}
        for model in (ours, theirs):
            vars(model).update(changed)
        assert_same(ours, theirs, X, rtol=1e-7)


def test_gaussian_of_parameters_alone():
    model = GaussianNB()
    model.classes_, model.class_prior_ = np.array(["a", "b"]), np.array([0.5, 0.5])
    model.theta_, model.var_ = np.array([[0.0, 0.0], [2.0, 2.0]]), np.ones((2, 2))
    assert_array_equal(model.predict([[0.1, 0.2], [1.9, 3.0]]), ["a", "b"])
    with pytest.raises(ValueError, match="broadcast"):
        model.predict([[0.1, 0.2, 0.3]])


@pytest.mark.parametrize("cls", CLASSES)
def test_pickles_clones_and_searches(cls):
    X, y = np.random.default_rng(4).integers(0, 3, (60, 3)), np.arange(60) % 3
    model = cls().fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "classes_")
    grid = {"var_smoothing": [1e-9, 1e-3]} if cls is GaussianNB else {"alpha": [0.5, 1.0]}
    if cls is CategoricalNB:
        grid["min_categories"] = [3]
    assert GridSearchCV(cls(), grid, cv=3).fit(X, y).best_score_ > 0


@pytest.mark.parametrize("alpha", [1e-10, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_bernoulli_keeps_the_digits_of_small_alphas(alpha, container):
    rng = np.random.default_rng(0)
    X, y = (rng.random((200, 30)) < 0.3) * 1.0, rng.integers(0, 3, 200)
    X[y == 0, :10], X[y == 1, 5:15] = 0.0, 1.0
    rows = (rng.random((50, 30)) < 0.5) * 1.0
    found = BernoulliNB(alpha=alpha).fit(container(X), y).predict_joint_log_proba(container(rows))
    weight = np.array([(y == c).sum() for c in range(3)], np.longdouble)[:, np.newaxis]
    present = np.array([X[y == c].sum(axis=0) for c in range(3)], np.longdouble)
    absent = weight - present
    log_present, log_absent = (np.log((n + np.longdouble(alpha)) / (weight + 2 * alpha)) for n in (present, absent))
    exact = np.log(weight[:, 0] / 200) + rows @ log_present.T + (1 - rows) @ log_absent.T
    assert_allclose(found, exact.astype(np.float64), rtol=1e-13)


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (GaussianNB, "priors"),
        (BernoulliNB, "class_prior"),
        (CategoricalNB, "class_prior"),
        (drop_in.LinearDiscriminantAnalysis, "priors"),
        (drop_in.QuadraticDiscriminantAnalysis, "priors"),
    ],
)
def test_given_priors_are_checked_alike(cls, name):
    X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 1.0], [2.0, 2.5]], [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match=r"(?i)prior.* must be non-negative: one is -0\.5"):
        cls(**{name: [-0.5, 1.5]}).fit(X, y)
    with pytest.raises(ValueError, match="Number of priors must match number of classes: 3 for 2"):
        cls(**{name: [0.2, 0.3, 0.5]}).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BernoulliNB(alpha=0.0, force_alpha=False), "alpha too small"),
        (CategoricalNB(alpha=0.0, force_alpha=False), "alpha too small"),
        (drop_in.LinearDiscriminantAnalysis(priors=[1.0, 1.0]), "do not sum to 1"),
    ],
)
def test_warnings_name_the_line_that_calls_fit(model, message):
    X, y = [[0, 1], [1, 0], [1, 1], [0, 0]], [0, 0, 1, 1]
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


# Counts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [MultinomialNB, ComplementNB])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sparse_counts_are_those_of_a_dense_array_and_of_scikit_learn(cls, dtype):
    rng = np.random.default_rng(4)
    X, y, weight = rng.poisson(0.7, (60, 8)).astype(dtype), rng.integers(0, 3, 60), rng.random(60)
    theirs = getattr(sklearn.naive_bayes, cls.__name__)().fit(X, y, weight)
    for rows in (X, csr_array(X), csc_matrix(X)):
        ours = cls().fit(rows, y, weight)
        assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=1e-12)
        assert_allclose(ours.predict_joint_log_proba(rows), theirs.predict_joint_log_proba(rows), rtol=1e-6)
        assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), rtol=1e-4)
        in_two = (
            cls()
            .partial_fit(rows[:25], y[:25], [0, 1, 2], weight[:25])
            .partial_fit(rows[25:], y[25:], None, weight[25:])
        )
        assert_allclose(in_two.feature_count_, ours.feature_count_, rtol=1e-12)


def test_a_feature_that_never_occurs_in_a_class_excludes_it_without_a_pseudo_count():
    model = MultinomialNB(alpha=0.0).fit([[1, 0, 2], [0, 1, 1]], [0, 1])
    assert_array_equal(model.predict_proba([[1, 0, 0], [0, 2, 5]]), [[1, 0], [0, 1]])
    assert_array_equal(model.predict_proba(csr_array([[0, 0, 0]])), [[0.5, 0.5]])


def test_scores_that_a_user_sets_are_checked():
    model = MultinomialNB().fit([[1, 0], [0, 1]], [0, 1])
    model.feature_log_prob_ = np.zeros((2, 3))
    with pytest.raises(ValueError, match="feature_log_prob_ is of shape"):
        model.predict([[1, 0]])


def test_a_category_beyond_31_bits_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"counts every number from 0 to the largest in X, 1e\+300"):
        CategoricalNB().fit([[1e300], [0.0]], [0, 1])


def test_an_integer_beyond_floats_is_refused_in_one_sentence():
    X = [[10**400], [1]]
    for cells in (X, np.array(X, dtype=object)):
        with pytest.raises(ValueError, match="integer too large for a float; rescale"):
            GaussianNB().fit(cells, [0, 1])


def test_a_variance_whose_inverse_is_not_finite_is_that_of_scikit_learn():
    X, y = np.array([[0.0], [1e-3], [2.0], [2.0]]), [0, 0, 1, 1]
    ours, theirs = both(GaussianNB, X, y, None, var_smoothing=5e-324)
    assert ours.var_[1, 0] == theirs.var_[1, 0] < 1e-300
    assert_allclose(ours.predict_proba([[2.0]]), theirs.predict_proba([[2.0]]))


def test_a_model_whose_last_fit_was_refused_is_not_fitted():
    model = BernoulliNB(alpha=[0.5, 0.5, 0.5]).fit(np.eye(3), [0, 1, 1])
    with pytest.raises(ValueError, match="alpha is an array"):
        model.fit(np.eye(4), [0, 1, 1, 0])
    with pytest.raises(NotFittedError, match="alpha is an array"):
        model.predict(np.eye(4))
