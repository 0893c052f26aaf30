"""Names that users of other libraries look for: keywords of constructors, scores and importance."""

import inspect
import pickle
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import get_scorer, roc_auc_score

import posteriori as po
from posteriori.datasets import load_penguins

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], [30, 20, 10])
X = RNG.normal(size=(60, 3)) + np.outer(Y, [2.0, 0.0, 1.0])
TWO = Y < 2


@pytest.mark.parametrize(
    ("model", "keyword", "advice"),
    [
        (po.NaiveBayes, "class_weight", 'use priors="uniform" for equal classes, or fit(X, y, sample_weight=…)'),
        (po.GenerativeClassifier, "class_weight", 'use priors="uniform" for equal classes'),
        (po.NaiveBayes, "var_smoothing", "use distributions=po.Gaussian(smoothing=…)"),
        (po.GaussianDiscriminant, "reg_param", "use shrinkage=…"),
        (po.NaiveBayes, "max_iter", "use em=po.EM(max_iter=…)"),
        (po.TreeAugmentedNaiveBayes, "unlabelled", "use labels=po.Labels(unlabelled=…)"),
        (po.KDependenceBayes, "categorical_features", "use columns=po.Columns(categorical_features=…)"),
        (po.GenerativeForest, "n_estimators", "use n_trees=…"),
        (po.GenerativeClassifier, "cv", "use folds=…"),
        (po.NaiveBayes, "aplha", "did you mean 'alpha'?"),
    ],
)
def test_the_error_for_an_unknown_keyword_names_its_place(model, keyword, advice):
    with pytest.raises(TypeError) as caught:
        model(**{keyword: 1})
    assert str(caught.value).startswith(f"{model.__name__} has no parameter {keyword!r}; {advice}")


def test_advice_names_only_parameters_that_the_model_has():
    with pytest.raises(TypeError, match="no parameter 'max_iter'; ") as caught:
        po.AveragedOneDependence(max_iter=3)
    assert "po.EM" not in str(caught.value)


def test_a_subclass_may_hand_its_keywords_on():
    class Named(po.NaiveBayes):
        def __init__(self, name="", **keywords):
            super().__init__(**keywords)
            self.name = name

    stated = po.NaiveBayes(alpha=2.0).fit(X, Y)
    assert_array_equal(Named("mine", alpha=2.0).fit(X, Y).predict_proba(X), stated.predict_proba(X))
    with pytest.raises(TypeError, match="no parameter 'aplha'; did you mean 'alpha'"):
        Named(aplha=2.0)


def test_scikit_learn_still_sees_the_parameters():
    signature = inspect.signature(po.NaiveBayes)
    assert "alpha" in signature.parameters
    model = po.NaiveBayes(alpha=0.5, em=po.EM(tol=1e-3))
    assert sorted(model.get_params(deep=False)) == sorted(signature.parameters)
    assert clone(model).alpha == pickle.loads(pickle.dumps(model)).alpha == 0.5


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier(["nb"], folds=3)], ids=["one", "pool"])
def test_uniform_priors_give_every_class_the_same(model):
    stated = clone(model).set_params(priors=[1 / 3] * 3).fit(X, Y)
    found = clone(model).set_params(priors="uniform").fit(X, Y)
    assert_array_equal(found.class_prior_, np.full(3, 1 / 3))
    assert_array_equal(found.predict_proba(X), stated.predict_proba(X))


def test_another_word_for_priors_is_refused():
    with pytest.raises(ValueError, match=r"'priors' parameter of NaiveBayes must be .*a str among \{'uniform'\}"):
        po.NaiveBayes(priors="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="does not say how many classes there are; give classes="):
        po.NaiveBayes.from_parameters(priors="uniform", gaussian={"x": {"mean": [0, 1], "sd": [1, 1]}})
    given = po.NaiveBayes.from_parameters(
        priors="uniform", classes=["u", "v"], gaussian={"x": {"mean": [0, 1], "sd": [1, 1]}}
    )
    assert_array_equal(given.class_prior_, [0.5, 0.5])


def test_decision_function_is_log_odds_or_the_log_posterior():
    two = po.NaiveBayes().fit(X[TWO], Y[TWO])
    odds = two.decision_function(X)
    assert_allclose(odds, np.diff(two.predict_log_proba(X), axis=1)[:, 0])
    assert_array_equal(odds > 0, two.predict(X) == 1)
    many = po.NaiveBayes().fit(X, Y)
    assert_array_equal(many.decision_function(X), many.predict_log_proba(X))


def test_scikit_learn_takes_the_decision_function():
    two = po.NaiveBayes().fit(X[TWO], Y[TWO])
    auc = roc_auc_score(Y[TWO], two.predict_proba(X[TWO])[:, 1])
    assert get_scorer("roc_auc")(two, X[TWO], Y[TWO]) == auc
    calibrated = CalibratedClassifierCV(po.NaiveBayes(), cv=3).fit(X, Y)
    assert calibrated.score(X, Y) > 0.6


def test_a_row_that_no_class_can_produce_has_no_score():
    model = po.NaiveBayes(alpha=0).fit([["u", "p"], ["v", "q"]], ["a", "b"])
    with pytest.warns(UserWarning, match="cannot be produced by any class"):
        assert np.isnan(model.decision_function([["u", "q"]])).all()


def test_feature_importances_are_of_the_columns_in_their_order():
    model = po.NaiveBayes().fit(load_penguins(), "species")
    assert_array_equal(model.feature_importances_, model.importance_.increase)
    assert len(model.feature_importances_) == len(model.feature_names_in_)
    chosen = SelectFromModel(po.NaiveBayes(), threshold=0.05).fit(X, Y)
    assert chosen.get_support().tolist() == [True, False, True]


def test_feature_importance_of_a_date_is_that_of_its_parts():
    when = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 12, 20), "6d", eager=True)[:60]
    table = pl.DataFrame({"when": when, "x": X[:, 0]})
    model = po.NaiveBayes().fit(table, Y)
    assert model.feature_names_in_.tolist() == ["when", "x"]
    assert len(model.schema_.names) > 2
    information = model.importance_.increase
    assert_allclose(model.feature_importances_, [information[:-1].sum(), information[-1]])


def test_words_of_a_sparse_matrix_have_no_own_importance():
    from scipy.sparse import csr_array

    model = po.NaiveBayes().fit(csr_array(RNG.poisson(1.0, (60, 4))), Y)
    with pytest.raises(AttributeError, match="X was a sparse matrix, whose words share one importance"):
        _ = model.feature_importances_
    assert not hasattr(model, "feature_importances_")


def test_importance_prints_named_columns_the_greatest_first():
    table = pl.DataFrame({f"c{j}": RNG.normal(size=60) for j in range(33)} | {"strong": Y + RNG.normal(size=60) / 9})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = po.NaiveBayes().fit(table, Y)
    lines = repr(model.importance_).splitlines()
    found = model.importance_
    assert found.names == tuple(table.columns)
    assert lines[0] == "Importance: nats per row that are lost without each column (1,730 rows drawn from the model)"
    assert lines[1].split() == ["strong", f"{found.increase[-1]:.4f}", "±", f"{found.standard_error[-1]:.4f}"]
    assert len(lines) == 32
    assert lines[-1] == "… and 4 more columns"


@pytest.mark.parametrize(
    ("call", "keyword", "advice"),
    [
        (po.Columns, "ignore", "drop the columns from X"),
        (po.Columns, "categorical", "use categorical_features=…"),
        (po.Columns, "kept", "did you mean 'keep'?"),
        (po.EM, "n_components", "use components_per_class=…"),
        (po.Labels, "unlabeled", "did you mean 'unlabelled'?"),
        (po.ChowLiuTree, "seed", "the parameters are"),
        (po.ChowLiuTree, "categorical_features", "use columns=po.Columns(categorical_features=…)"),
        (po.StructureSearch, "scores", "did you mean 'score'?"),
        (po.cross_validate, "categorical", "use categorical_features=…"),
        (po.cross_validate, "ignore", "drop the columns from X"),
        (po.compare, "columns", "set columns of the models, or use categorical_features=…"),
        (po.compare, "cv", "use repeats=…"),
        (po.compare, "folds", "use repeats=…, or po.cross_validate(models, X, y, folds=…)"),
        (po.scan, "categorical_features", "use categorical=…"),
        (po.scan, "sep", "use separator=…"),
        (po.reading.scan_sql, "categorical_features", "use categorical=…"),
        (po.learn_network, "categorical_features", "use states={variable: [state, …]}"),
        (po.networks.learn_structure, "categorical", "use states={variable: [state, …]}"),
        (po.NaiveBayes().sample, "given", "use y=… for rows of a class; for any other column use"),
        (po.GenerativeClassifier().sample, "evidence", "use y=… for rows of a class; for any other column use"),
        (po.MixtureModel().sample, "given", "for any other column use net = po.learn_network(table)"),
        (po.ChowLiuTree().sample, "given", "for any other column use net = po.learn_network(table)"),
        (po.BayesianNetwork().sample, "given", "use evidence={variable: state}"),
    ],
)
def test_every_function_names_the_place_of_an_unknown_keyword(call, keyword, advice):
    with pytest.raises(TypeError) as caught:
        call(**{keyword: 1})
    assert f" has no parameter {keyword!r}; {advice}" in str(caught.value)


@pytest.mark.parametrize(
    "model",
    [po.NaiveBayes(), po.GenerativeClassifier(), po.MixtureModel(), po.ChowLiuTree(), po.BayesianNetwork()],
    ids=lambda model: type(model).__name__,
)
def test_methods_that_people_look_for_name_the_right_call(model):
    with pytest.raises(AttributeError, match=rf"^{type(model).__name__} has no method 'save'; use po\.save\("):
        model.save("model.posteriori")
    with pytest.raises(AttributeError, match=r"no method 'impute'; .*net\.marginals\(table\) has p\("):
        model.impute([[1]])
    assert not hasattr(model, "save")


def test_the_advice_on_other_columns_works():
    table = pl.DataFrame({"colour": ["red", "blue", None] * 20, "size": ["big", "small", "big"] * 20})
    net = po.learn_network(table)
    assert net.marginals(table)["colour"].shape == (60, 2)
    assert set(net.sample(50, evidence={"colour": "red"}, random_state=0)["colour"]) == {"red"}
