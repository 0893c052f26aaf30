"""The drop-in classifiers against scikit-learn: its own tests, its conformance checks, and its numbers."""

import importlib.util
import inspect
import itertools
import pickle
import sys
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
from tests.drop_in.test_drop_in_numbers import assert_same, both, draw, tables

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
def test_labels_beyond_any_integer_are_refused_without_a_warning(cls):
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
def test_sparse_counts_equal_dense_ones_and_scikit_learn(cls, dtype):
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


def test_a_feature_absent_from_a_class_excludes_it_unsmoothed():
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


def test_a_variance_without_finite_inverse_is_scikit_learns():
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
