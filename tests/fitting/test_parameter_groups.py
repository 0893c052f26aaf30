"""Groups of parameters of classifiers, as scikit-learn and model files see them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import posteriori as po

X = np.random.default_rng(0).normal(size=(60, 2)) + np.arange(60)[:, np.newaxis] % 2
Y = np.arange(60) % 2


def test_one_unstated_parameter_of_a_group_is_set_and_searched():
    model = po.GaussianDiscriminant(random_state=0)
    other = clone(model).set_params(em__components_per_class=2)
    assert model.em is None
    assert other.em.components_per_class == 2
    searched = make_pipeline(FunctionTransformer(), model)
    search = GridSearchCV(searched, {"gaussiandiscriminant__em__components_per_class": [1, 2]}, cv=2).fit(X, Y)
    found = search.best_params_["gaussiandiscriminant__em__components_per_class"]
    assert len(search.best_estimator_[-1].component_classes_) == 2 * found
    assert model.em is None


def test_a_clone_has_its_own_group():
    model = po.NaiveBayes(em=po.EM(tol=1e-3))
    copy = clone(model).set_params(em__tol=1e-2)
    assert (model.em.tol, copy.em.tol) == (1e-3, 1e-2)
    assert model.get_params()["em__tol"] == 1e-3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"em": po.EM(tol=-1)}, "'tol' parameter of EM"),
        ({"labels": po.Labels(unlabelled_weight=2.0)}, "'unlabelled_weight' parameter of Labels"),
        ({"em": {"tol": 1e-3}}, r"em is \{'tol': 0.001\}; it takes a po.EM, such as em=po.EM\(max_iter=50\)"),
        ({"columns": ["zip"]}, r"columns is \['zip'\].*such as columns=po.Columns\(categorical_features="),
    ],
)
def test_a_wrong_value_is_named_with_its_group(parameters, message):
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes(**parameters).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes(**parameters).partial_fit(X, Y)


@pytest.mark.parametrize("labels", [po.Labels(label_noise=0.1), po.Labels(unlabelled_weight="held_out")], ids=str)
def test_a_pool_refuses_what_it_has_not(labels):
    with pytest.raises(ValueError, match="a pool has no label_noise"):
        po.GenerativeClassifier(["nb"], labels=labels).fit(X, Y)


def test_a_model_file_keeps_the_groups(tmp_path):
    labels = [None if row % 3 == 0 else f"c{label}" for row, label in enumerate(Y)]
    model = po.NaiveBayes(em=po.EM(tol=1e-3), labels=po.Labels(unlabelled="learn", unlabelled_weight=0.5)).fit(
        X, labels
    )
    po.save(model, tmp_path / "one.posteriori")
    again = po.load(tmp_path / "one.posteriori")
    assert repr(again) == repr(model)
    assert again.fit(X, labels).unlabelled_weight_ == 0.5


def test_text_that_is_named_is_refused_by_models_that_read_none():
    rows = [["one word"], ["two words"]] * 10
    for model in (po.KDependenceBayes(), po.MixtureModel()):
        with pytest.raises(ValueError, match=r"does not read text, but text names \[0\]"):
            model.set_params(columns__text=[0]).fit(rows, ["a", "b"] * 10)


def test_members_of_a_pool_have_groups_of_their_own():
    pool = po.GenerativeClassifier(["nb", "lda"], columns=po.Columns(dates="ignore")).fit(X, Y)
    one, other = pool.members_.values()
    one.set_params(columns__dates="parts")
    assert other.columns.dates == pool.columns.dates == "ignore"


def test_text_and_keep_take_a_single_name():
    rows = pl.DataFrame({"id": [f"c{i:03}" for i in range(40)], "note": ["red wine", "tea"] * 20, "y": ["u", "v"] * 20})
    given = po.Columns(keep="id", text="note")
    kinds = {column.name: column.kind for column in po.NaiveBayes(columns=given).fit(rows, "y").schema_.columns}
    assert kinds == {"id": "categorical", "note": "counts"}
    assert (given.keep, given.text) == ("id", "note")  # as given, for clones
    with pytest.raises(ValueError, match="text names 'nope'"):
        po.NaiveBayes(columns=po.Columns(text="nope")).fit(rows, "y")
