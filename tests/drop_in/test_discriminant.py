"""The drop-in discriminant analyses against scikit-learn: its own tests, its conformance checks, and its numbers."""

import importlib.util
import inspect
import pickle
import sys
from unittest import mock

import numpy as np
import pytest
import sklearn.discriminant_analysis
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.covariance import OAS, ledoit_wolf
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from posteriori import GaussianDiscriminant, drop_in
from posteriori.densities.covariances import ShrinkToIdentity, ledoit_wolf_share, shrink_to_identity
from posteriori.drop_in import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from posteriori.statistics.moments import QuarticNorms
from posteriori.tables import Assignment, Numbers

CLASSES = [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]

# scikit-learn's own tests ----------------------------------------------------------------------------------

# Every test of sklearn/tests/test_discriminant_analysis.py is run below, with our classes for its own, but these.
NOT_APPLICABLE = {
    "test_covariance": "calls scikit-learn's private _cov alone, and none of its estimators",
}


def load_scikit_learns_tests():
    """Return scikit-learn's test module, executed while our classes stand in for its own."""
    origin = importlib.util.find_spec("sklearn.tests.test_discriminant_analysis").origin
    spec = importlib.util.spec_from_file_location("scikit_learns_discriminant_tests", origin)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.multiple("sklearn.discriminant_analysis", **{cls.__name__: cls for cls in CLASSES}):
        spec.loader.exec_module(module)
    return module


SCIKIT_LEARNS = load_scikit_learns_tests()
THEIR_TESTS = {name for name in vars(SCIKIT_LEARNS) if name.startswith("test_")}
globals().update({name: getattr(SCIKIT_LEARNS, name) for name in sorted(THEIR_TESTS - set(NOT_APPLICABLE))})


@pytest.fixture(params=[0, 42])
def global_random_seed(request):
    return request.param


def test_every_test_of_scikit_learn_is_run_or_listed():
    here = vars(sys.modules[__name__])
    run = {name for name in THEIR_TESTS if here.get(name) is getattr(SCIKIT_LEARNS, name)}
    assert len(THEIR_TESTS) >= 30
    assert run | set(NOT_APPLICABLE) == THEIR_TESTS
    assert run.isdisjoint(NOT_APPLICABLE)
    assert all(NOT_APPLICABLE.values())
    assert {getattr(SCIKIT_LEARNS, cls.__name__) for cls in CLASSES} == set(CLASSES)


# Conformance -----------------------------------------------------------------------------------------------


# Rows of these checks are fewer than columns, or repeat each other, in a class: of which, as in scikit-learn, QDA is an
# error, unless something regularises it.
SINGULAR = "the covariance of a class is singular"
NO_RANK = {"check_sample_weight_equivalence_on_dense_data": SINGULAR}
UNREGULARISED = NO_RANK | {"check_sample_weights_shape": SINGULAR, "check_sample_weights_not_overwritten": SINGULAR}


def failing_checks(model):
    """Return the checks that cannot pass, with the reason."""
    if isinstance(model, LinearDiscriminantAnalysis):
        return {}
    return NO_RANK if model.shrinkage else UNREGULARISED


@parametrize_with_checks(
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis("eigen", shrinkage=0.2),
        QuadraticDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    ],
    expected_failed_checks=failing_checks,
)
def test_conforms_to_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", CLASSES)
def test_the_interface_is_scikit_learns(cls):
    theirs = getattr(sklearn.discriminant_analysis, cls.__name__)
    assert not issubclass(cls, theirs)
    assert getattr(drop_in, cls.__name__) is cls
    ours_takes, theirs_takes = (
        [(p.name, p.kind, p.default) for p in inspect.signature(home).parameters.values()] for home in (cls, theirs)
    )
    assert ours_takes == theirs_takes
    assert list(inspect.signature(cls.fit).parameters) == [*inspect.signature(theirs.fit).parameters, "sample_weight"]
    public = {name for name in dir(theirs) if not name.startswith("_")}
    assert public <= set(dir(cls))
    assert set(cls._parameter_constraints) == set(theirs._parameter_constraints)
    for name, constraints in theirs._parameter_constraints.items():
        # The options of a StrOptions are a set, which is printed in any order.
        assert sorted(sorted(str(one)) for one in cls._parameter_constraints[name]) == sorted(
            sorted(str(one)) for one in constraints
        )
    tags, their_tags = cls().__sklearn_tags__(), theirs().__sklearn_tags__()
    their_tags.array_api_support = False  # not offered
    their_tags.input_tags.allow_nan = True  # offered here
    assert tags == their_tags


# Numbers ---------------------------------------------------------------------------------------------------

SIGNED = {"scalings_", "rotations_"}  # an axis has no sign


def assert_same(ours, theirs, X, rtol=1e-6):
    """Assert that every fitted attribute of scikit-learn's estimator, and every prediction, is ours too."""
    for name, value in vars(theirs).items():
        if not name.endswith("_") or name == "statistics_":
            continue
        mine = getattr(ours, name)
        pairs = zip(mine, value, strict=True) if isinstance(value, list) else [(mine, value)]
        for a, b in pairs:
            assert np.shape(a) == np.shape(b), name
            assert np.asarray(a).dtype == np.asarray(b).dtype, name
            if name in SIGNED:
                kept = getattr(theirs, "_n_features_out", None)  # "eigen" publishes directions without meaning, too
                a, b = (np.abs(one[..., :kept]) for one in (a, b))
            if np.asarray(b).dtype.kind == "f":
                assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=0), err_msg=name)
            else:
                assert_array_equal(a, b, err_msg=name)
    for method in ("decision_function", "predict_proba"):
        a, b = getattr(ours, method)(X), getattr(theirs, method)(X)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(), err_msg=method)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, theirs.predict(X)) == 1.0
    seen = theirs.predict_proba(X) > 0.1 * rtol  # below scikit-learn has rounded the probability
    assert_allclose(ours.predict_log_proba(X)[seen], theirs.predict_log_proba(X)[seen], rtol=rtol, atol=rtol)
    if hasattr(theirs, "transform") and theirs.solver != "lsqr":
        a, b = ours.transform(X), theirs.transform(X)
        assert a.dtype == b.dtype
        assert_allclose(np.abs(a), np.abs(b), rtol=rtol, atol=rtol * np.abs(b).max())


def both(cls, X, y, **parameters):
    theirs = getattr(sklearn.discriminant_analysis, cls.__name__)
    return cls(**parameters).fit(X, y), theirs(**parameters).fit(X, y)


def table(n_classes=4, n=240, d=5, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * rng.uniform(0.5, 2, n_classes)[y, np.newaxis]
    return (X + rng.normal(size=(n_classes, d))[y] + 10.0).astype(dtype), y


LDA = [
    {},
    {"store_covariance": True},
    {"tol": 0.5},
    {"n_components": 1},
    *({"solver": solver, "shrinkage": share} for solver in ("lsqr", "eigen") for share in (None, 0, 0.3, 1.0, "auto")),
    {"solver": "eigen", "n_components": 1},
    {"solver": "lsqr", "covariance_estimator": OAS()},
    {"solver": "eigen", "covariance_estimator": OAS(), "shrinkage": 0},
]
QDA = [
    {},
    {"store_covariance": True},
    {"reg_param": 0.2, "store_covariance": True},
    *({"solver": "eigen", "store_covariance": True, "shrinkage": share} for share in (None, 0, 0.3, 1.0, "auto")),
    {"solver": "eigen", "reg_param": 0.2},
    {"solver": "eigen", "covariance_estimator": OAS()},
]
BOTH = [(LinearDiscriminantAnalysis, one) for one in LDA] + [(QuadraticDiscriminantAnalysis, one) for one in QDA]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("cls", "parameters"), BOTH)
def test_numbers(cls, parameters, n_classes):
    X, y = table(n_classes)
    for priors in (None, np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1))):
        assert_same(*both(cls, X, y, priors=priors, **parameters), X)


@pytest.mark.parametrize(("cls", "parameters"), BOTH)
def test_numbers_of_single_precision(cls, parameters):
    X, y = table(3, dtype=np.float32)
    assert_same(*both(cls, X, y, **parameters), X, rtol=2e-3)  # scikit-learn computes in single precision


@pytest.mark.parametrize(("cls", "parameters"), BOTH)
def test_numbers_of_integers_and_strings(cls, parameters):
    X, y = table(2)
    y = np.array([f"class {k}" for k in y])
    assert_same(*both(cls, np.round(10 * X).astype(np.int64), y, **parameters), X)


@pytest.mark.parametrize("cls", CLASSES)
def test_numbers_of_any_labels(cls):
    X, y = table(2)
    for labels in (3 * y - 4, y > 0, y.astype(float)):
        assert_same(*both(cls, X, labels), X)


@pytest.mark.parametrize(("cls", "parameters"), [(LinearDiscriminantAnalysis, {}), (QuadraticDiscriminantAnalysis, {})])
def test_numbers_over_many_batches(cls, parameters):
    X, y = table(3, n=9000, d=40)
    assert_same(*both(cls, np.asfortranarray(X), y, **parameters), X)


def test_lda_where_columns_depend_on_each_other():
    X, y = table(3, d=4)
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 7.0)])
    ours, theirs = both(LinearDiscriminantAnalysis, X, y)
    assert_same(ours, theirs, X)
    ours, theirs = both(LinearDiscriminantAnalysis, X, y, solver="lsqr")
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    incomplete = X.copy()
    incomplete[:, 4] = np.nan  # which the others determine
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert_allclose(model.predict_proba(incomplete), model.predict_proba(X), atol=1e-3)


def test_lda_of_fewer_rows_than_columns():
    X, y = table(3, n=12, d=30)
    assert_same(*both(LinearDiscriminantAnalysis, X, y), X)
    assert_same(*both(LinearDiscriminantAnalysis, X, y, solver="eigen", shrinkage="auto"), X)


def test_lda_directions_are_as_many_as_the_means_span():
    X = np.array([[0.0, 1.0], [0.0, -1.0], [2.0, 1.0], [2.0, -1.0], [4.0, 1.0], [4.0, -1.0]])
    X = np.vstack([X, X + np.array([0.5, 0.0])])
    y = np.tile([0, 0, 1, 1, 2, 2], 2)
    ours, theirs = both(LinearDiscriminantAnalysis, X, y)
    assert_same(ours, theirs, X)
    assert ours.transform(X).shape == (12, 1)
    frame = ours.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == ["lineardiscriminantanalysis0"]


def test_offset_costs_no_digits():
    X, y = table(3)
    X = X.round(3)
    for cls in CLASSES:
        near, far = cls().fit(X, y), cls().fit(X + 1e7, y)
        assert_allclose(far.predict_proba(X + 1e7), near.predict_proba(X), atol=1e-5)


def test_log_probabilities_are_not_rounded():
    X, y = np.array([[0.0], [0.1], [10.0], [10.1]]), [0, 0, 1, 1]
    model = LinearDiscriminantAnalysis().fit(X, y)
    odds = model.decision_function(X)
    assert_allclose(model.predict_log_proba(X)[0], [0.0, odds[0]], atol=1e-12)
    assert odds[0] < -1000


def test_ledoit_wolf_is_scikit_learns():
    X = np.random.default_rng(0).exponential(size=(30, 6))
    centred = X - X.mean(axis=0)
    everyone = Assignment(np.zeros(30, np.int32), np.ones(30), 1)
    quartic = QuarticNorms(X.mean(axis=0, keepdims=True), np.ones((1, 6))).of(Numbers(X), everyone)
    covariance = centred.T @ centred / 30
    ours = shrink_to_identity(covariance, ledoit_wolf_share(covariance, 30.0, quartic[0] / 30))
    assert_allclose(ours, ledoit_wolf(X)[0], rtol=1e-12)


# What scikit-learn lacks -----------------------------------------------------------------------------------

FROM_SUMS = [(cls, one) for cls, one in BOTH if "covariance_estimator" not in one]
ADDITIVE = [(cls, one) for cls, one in FROM_SUMS if one.get("shrinkage") != "auto"]


@pytest.mark.parametrize(("cls", "parameters"), FROM_SUMS)
def test_a_row_of_weight_k_is_k_rows(cls, parameters):
    X, y = table(3)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    theirs = getattr(sklearn.discriminant_analysis, cls.__name__)(**parameters)
    theirs.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same(cls(**parameters).fit(X, y, sample_weight=weight), theirs, X)
    weight = weight / weight.sum()
    if parameters.get("shrinkage") != "auto":  # which weighs its evidence by the number of rows
        assert_same(cls(**parameters).fit(X, y, sample_weight=weight), theirs, X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("cls", "parameters"), ADDITIVE)
def test_partial_fit_of_parts_is_fit_of_all(cls, parameters, weighted):
    X, y = table(3)
    order = np.argsort(y, kind="stable")  # one class after another
    X, y = X[order], y[order]
    weight = np.random.default_rng(2).uniform(0.5, 2, len(X)) if weighted else None
    parts = cls(**parameters)
    for start, stop in ((0, 1), (1, 60), (60, 150), (150, 240)):
        rows = slice(start, stop)
        parts.partial_fit(X[rows], y[rows], [0, 1, 2], None if weight is None else weight[rows])
    assert_same(parts, cls(**parameters).fit(X, y, weight), X, rtol=1e-9)


def test_partial_fit_while_rows_do_not_suffice():
    X, y = table(2)
    for cls in CLASSES:
        model = cls().partial_fit(X[:1], y[:1], classes=[0, 1])
        with pytest.raises(NotFittedError, match=r"do not determine the model.*1 sample"):
            model.predict(X)
        assert_array_equal(model.partial_fit(X[1:], y[1:]).predict(X), cls().fit(X, y).predict(X))
    model = LinearDiscriminantAnalysis().partial_fit(X, y, classes=[0, 1, 2])
    assert_array_equal(model.predict_proba(X)[:, 2], 0)


def test_partial_fit_refuses_what_needs_all_rows():
    X, y = table(2)
    for parameters in ({"shrinkage": "auto"}, {"covariance_estimator": OAS()}):
        for cls in CLASSES:
            with pytest.raises(NotImplementedError, match="needs all rows at once"):
                cls(solver="eigen", **parameters).partial_fit(X, y, classes=[0, 1])
            holed = X.copy()
            holed[0, 0] = np.nan
            with pytest.raises(ValueError, match="needs rows without missing cells"):
                cls(solver="eigen", **parameters).fit(holed, y)
    with pytest.raises(NotImplementedError, match="does not support sample_weight"):
        LinearDiscriminantAnalysis("lsqr", covariance_estimator=OAS()).fit(X, y, np.ones(len(X)))


def holed(X, share=0.2, seed=3):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(X.shape) < share, np.nan, X)


MISSING = [
    (LinearDiscriminantAnalysis(), {"pooling": "pooled"}),
    (LinearDiscriminantAnalysis("lsqr"), {"pooling": "pooled"}),
    (LinearDiscriminantAnalysis("eigen"), {"pooling": "pooled"}),
    (LinearDiscriminantAnalysis("lsqr", shrinkage=0.3), {"pooling": "pooled", "shrinkage": 0.3}),
    (LinearDiscriminantAnalysis("svd", priors=[0.2, 0.3, 0.5]), {"pooling": "pooled", "priors": [0.2, 0.3, 0.5]}),
    (QuadraticDiscriminantAnalysis(), {"pooling": "per_class"}),
    (QuadraticDiscriminantAnalysis(solver="eigen"), {"pooling": "per_class"}),
    (QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.3), {"pooling": "per_class", "shrinkage": 0.3}),
]


@pytest.mark.parametrize(
    ("model", "parameters", "dtype"), [(*one, np.float64) for one in MISSING] + [(*MISSING[0], np.float32)]
)
def test_missing_cells_are_those_of_the_core(model, parameters, dtype, monkeypatch):
    if "shrinkage" in parameters:  # scikit-learn's sphere is one in data units
        monkeypatch.setattr(GaussianDiscriminant, "_shrinkage", lambda self: ShrinkToIdentity(self.shrinkage))
    X, y = table(3, dtype=dtype)
    incomplete = holed(X, 0.1)
    ours, core = clone(model).fit(incomplete, y), GaussianDiscriminant(**parameters).fit(incomplete, y)
    tolerance = 1e-8 if dtype == np.float64 else 1e-3
    assert_allclose(ours.means_, core.means_, rtol=tolerance)
    for rows in (incomplete, X, np.full((2, 5), np.nan, dtype)):
        assert_allclose(ours.predict_proba(rows), core.predict_proba(rows), atol=tolerance)
    if isinstance(model, LinearDiscriminantAnalysis) and model.solver != "lsqr":
        a, b = ours.transform(incomplete), core.transform(incomplete)
        a, b = (np.abs(one - one.mean(axis=0)) for one in (a, b))  # up to a sign; "eigen" does not centre
        assert_allclose(a, b, atol=10 * tolerance)


@pytest.mark.parametrize(("model", "parameters"), MISSING)
def test_a_missing_cell_scores_as_if_its_column_had_never_been(model, parameters):
    X, y = table(3)
    if model.get_params().get("shrinkage") is not None:
        return  # the sphere that it shrinks to depends on the columns
    incomplete = X.copy()
    incomplete[::2, 1] = np.nan
    scores = clone(model).fit(X, y).decision_function(incomplete)
    others = clone(model).fit(np.delete(X, 1, axis=1), y)
    assert_allclose(scores[::2], others.decision_function(np.delete(X, 1, axis=1))[::2], atol=1e-8)
    assert_allclose(scores[1::2], clone(model).fit(X, y).decision_function(X)[1::2], rtol=1e-12)


def test_partial_fit_takes_missing_cells():
    X, y = table(2, n=400)
    incomplete = holed(X, 0.1)
    for cls in CLASSES:
        parts = cls().partial_fit(incomplete[:200], y[:200], [0, 1]).partial_fit(incomplete[200:], y[200:])
        assert_allclose(parts.means_, cls().fit(incomplete, y).means_, atol=0.1)
        assert np.mean(parts.predict(X) == cls().fit(X, y).predict(X)) > 0.95


# Bad input, and use ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinity_is_refused(cls, bad):
    X, y = table(2)
    model = cls().fit(X, y)
    X[200, 3], X[201, 3] = bad, -bad
    for attempt in (lambda: cls().fit(X, y), lambda: model.predict(X), lambda: model.decision_function(X)):
        with pytest.raises(ValueError, match="Input X contains infinity"):
            attempt()
    if cls is LinearDiscriminantAnalysis:
        with pytest.raises(ValueError, match="Input X contains infinity"):
            model.transform(X)


@pytest.mark.parametrize("cls", CLASSES)
def test_refusals(cls):
    X, y = table(2)
    with pytest.raises(ValueError, match="Number of priors must match number of classes: 3 for 2"):
        cls(priors=[0.2, 0.3, 0.5]).fit(X, y)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        cls().fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match=r"The target label\(s\) \[7\] in y do not exist"):
        cls().partial_fit(X[:2], [0, 7], classes=[0, 1])
    with pytest.raises(NotFittedError):
        cls().predict(X)


def test_lda_of_one_class_predicts_it():
    X, _ = table(2)
    for solver in ("svd", "lsqr"):
        model = LinearDiscriminantAnalysis(solver).fit(X, np.zeros(len(X)))
        assert_array_equal(model.predict(X), 0)
        assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))


def test_what_another_solver_published_does_not_outlive_a_fit():
    X, y = table(3)
    model = LinearDiscriminantAnalysis().fit(X, y).set_params(solver="lsqr").fit(X, y)
    assert not hasattr(model, "scalings_")
    assert not hasattr(model, "xbar_")
    assert_same(model, sklearn.discriminant_analysis.LinearDiscriminantAnalysis("lsqr").fit(X, y), X)


@pytest.mark.parametrize("cls", CLASSES)
def test_pickles_clones_and_searches(cls):
    X, y = table(3)
    model = cls().fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "classes_")
    grid = {"solver": ["eigen"], "shrinkage": [None, "auto", 0.1]}
    assert GridSearchCV(cls(), grid, cv=3).fit(X, y).best_score_ > 0.3


def test_predictions_follow_attributes_set_by_hand():
    X, y = table(3)
    for cls in CLASSES:
        ours, theirs = both(cls, X, y)
        changed = {"intercept_": np.array([1.0, 2.0, 3.0])} if cls is CLASSES[0] else {"priors_": np.full(3, 0.2)}
        for model in (ours, theirs):
            vars(model).update(changed)
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_collinear_columns_are_solved_by_eigen_as_by_svd(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 310)
    X = np.round(rng.normal([60, 17, 52, 43, 26], [17, 10, 18, 13, 37], (310, 5)) + 5 * y[:, np.newaxis], 2)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])  # as in vertebral_column: whether Σ is singular depends on rounding
    solved = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    reference = sklearn.discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    assert_allclose(solved.predict_proba(X), reference.predict_proba(X), atol=1e-10)
    within = sum((y == c).mean() * np.cov(solved.transform(X)[y == c].T, bias=True) for c in range(3))
    assert_allclose(within, np.eye(2), atol=1e-9)
