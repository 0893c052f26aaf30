"""The interface between estimators and the algorithms of `learning` and `model_selection`."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import posteriori as po
from posteriori.classifiers.estimator import estimator_of
from posteriori.fitting.learn import fitted_of
from posteriori.fitting.rows import read_first_rows, read_further_rows
from posteriori.fitting.unlabelled_weight import WEIGHT_GRID, held_out_weight, with_held_out_weight
from posteriori.learning.cut_points import binned_schema
from posteriori.learning.fit import Collect, learn
from posteriori.model import bins_of
from posteriori.model_selection import out_of_fold

MODELS = (
    po.NaiveBayes(),
    po.NaiveBayes(feature_weights="conditional"),
    po.GaussianDiscriminant(pooling=0.5),
    po.TreeAugmentedNaiveBayes(),
)


def rows(n=60):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    return rng.normal(y[:, np.newaxis], 1.0, (n, 3)), np.array(list("abc"))[y], rng.choice([0.5, 1.0, 2.0], n)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_reading_planning_and_learning_are_fit(model):
    X, y, weight = rows()
    expected = model.fit(X, y, weight).predict_log_proba(X)
    other = clone(model)
    read = read_first_rows(other.recipe, X, y, weight)
    plan = other.recipe.plan(read.source.schema, read.target)
    source = read.source.with_schema(binned_schema(read.source, bins_of(plan.blocks)))
    fit = learn(source, plan.blocks, plan.prior, None, source.reduce(Collect(plan.blocks)), plan.limits)
    if plan.weighed is not None:
        fit = replace(fit, model=plan.weighed(fit, source))
    fitted = fitted_of(other.recipe, fit, read.target, read.source.unlabelled_weight)
    assert_array_equal(estimator_of(fitted).predict_log_proba(X), expected)


def test_reading_changes_nothing_of_an_estimator():
    X, y, weight = rows()
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out"))
    before = dict(vars(model))
    some = np.where(np.arange(len(y)) % 2, y, None)
    read = read_first_rows(model.recipe, X, some, weight)
    model.recipe.plan(read.source.schema, read.target)
    assert vars(model) == before
    assert_array_equal(np.array(read.target.categories)[read.y_true[1::2]], y[1::2])
    assert (read.y_true[::2] == -1).all()


def test_the_held_out_weight_needs_rows_and_a_plan_only():
    X, y, weight = rows()
    some = np.where(np.arange(len(y)) % 3, y, None)
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, some, weight)
    read = read_first_rows(po.NaiveBayes(labels=po.Labels(unlabelled="learn")).recipe, X, some, weight)
    losses = []
    for share in WEIGHT_GRID:
        judged = out_of_fold(
            po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight=share)), X, some, sample_weight=weight
        )
        truth = judged.log_posterior[np.arange(len(judged.y_true)), judged.y_true]
        losses.append(-np.average(truth, weights=judged.weight))
    found = held_out_weight(read, model.recipe.plan(read.source.schema, read.target))
    assert found == model.unlabelled_weight_ == WEIGHT_GRID[int(np.argmin(losses))]


def test_choosing_a_weight_does_not_advance_a_generator():
    X, y, _ = rows()
    some = np.where(np.arange(len(y)) % 3, y, None)
    used, fresh = np.random.default_rng(1), np.random.default_rng(1)
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out"), random_state=used)
    with_held_out_weight(model.recipe, read_first_rows(model.recipe, X, some))
    assert used.integers(2**31) == fresh.integers(2**31)


def test_rows_are_read_again_under_the_fitted_model():
    X, y, weight = rows()
    model = po.NaiveBayes(distributions="binned").fit(X, y, weight)
    read = read_further_rows(model.fitted_, X, y, weight)
    assert (read.source.schema, read.target) == (model.model_.schema, model.target_)


def test_learning_calls_no_private_method_of_an_estimator():
    package = Path(po.__file__).parent
    found = [
        f"{path.name}:{node.lineno} {node.value.id}.{node.attr}"
        for folder in ("learning", "model_selection")
        for path in sorted((package / folder).glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
        if isinstance(node.value, ast.Name) and node.value.id in ("estimator", "model", "one")
    ]
    assert found == []


@pytest.mark.parametrize("model", [po.GenerativeClassifier(["nb"]), po.MixtureModel(), 3])
def test_out_of_fold_takes_classifiers_of_one_model(model):
    with pytest.raises(TypeError, match=f"takes a classifier of one model, .* and not a {type(model).__name__};"):
        out_of_fold(model, [[0.0], [1.0]] * 5, [0, 1] * 5)
    assert not hasattr(model, "fitted_")
