"""Cross-validation from one pass against a refit of every fold, on real tables: models that cut numbers into bins."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import PredefinedSplit, cross_val_predict

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model_selection import out_of_fold
from posteriori.model_selection.metrics import fill_undefined, scores_of
from posteriori.registry import pool_candidates

MODELS = {
    "naive Bayes, 8": po.NaiveBayes(distributions="binned", bins=8),
    "naive Bayes, mdlp": po.NaiveBayes(distributions="binned"),
    "naive Bayes, informative": po.NaiveBayes(distributions="binned", bins=4, missing="informative"),
    "TAN, 5": po.TreeAugmentedNaiveBayes(bins=5),
    "TAN, mdlp": po.TreeAugmentedNaiveBayes(),
    "Chow-Liu, 5": po.classifiers.ChowLiuClassifier(bins=5),
    "Chow-Liu, mdlp": po.classifiers.ChowLiuClassifier(),
    "kDB, 5": po.KDependenceBayes(bins=5),
    "kDB, mdlp": po.KDependenceBayes(),
    "AODE, 5": po.AveragedOneDependence(bins=5),
    "AODE, mdlp": po.AveragedOneDependence(),
}
# What an optimiser or EM ends at depends, within its tolerance, on where it starts.
WEIGHED = {
    "naive Bayes": po.NaiveBayes(distributions="binned", bins=6, feature_weights="conditional"),
    "kDB": po.KDependenceBayes(bins=6, feature_weights="conditional"),
}


def refitted(model, X, y, fold, weight=None):
    """Return p(y | x) of each row by the model refitted to the rows of the other folds."""
    classes, posterior = np.unique(y), np.zeros((len(y), len(np.unique(y))))
    for k in range(fold.max() + 1):
        inside = fold == k
        given = {} if weight is None else {"sample_weight": weight[~inside]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of categories that this fold alone shows
            learner = clone(model).fit(X.filter(~inside), y[~inside], **given)
            found = learner.predict_proba(X.filter(inside))
        found = fill_undefined(found, np.tile(learner.class_prior_, (inside.sum(), 1)))
        posterior[np.ix_(np.flatnonzero(inside), np.searchsorted(classes, learner.classes_))] = found
    return posterior


@pytest.fixture(scope="module", params=["wine", "penguins"])
def rows(request):
    """Return a table of numbers alone; or one with categories and missing cells."""
    if request.param == "penguins":
        penguins = load_penguins()
        return penguins.drop("species"), penguins["species"].to_numpy().astype(str)
    X, y = load_wine(return_X_y=True)
    return pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]), y


def judged(model, X, y, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return po.cross_validate({"m": model}, X, y, folds=3, **how)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_bins_are_those_of_a_refit(rows, model):
    found = judged(model, *rows)
    assert_allclose(found.posteriors["m"], refitted(model, *rows, found.fold), atol=1e-9)


@pytest.mark.parametrize("name", ["naive Bayes, 8", "kDB, mdlp", "AODE, 5"])
@pytest.mark.parametrize("weights", ["whole", "fractional"])
def test_weighted_rows_and_groups(rows, name, weights):
    X, y = rows
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(y)).astype(float) if weights == "whole" else rng.gamma(2.0, 1.0, len(y))
    found = judged(MODELS[name], X, y, sample_weight=weight, groups=rng.integers(0, 20, len(y)))
    assert_allclose(found.posteriors["m"], refitted(MODELS[name], X, y, found.fold, weight), atol=1e-9)


@pytest.mark.parametrize("model", WEIGHED.values(), ids=WEIGHED)
def test_weights_of_factors_are_those_of_a_refit(rows, model):
    found = judged(model, *rows)
    assert_allclose(found.posteriors["m"], refitted(model, *rows, found.fold), atol=1e-6)


@pytest.mark.parametrize("name", pool_candidates())
@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.filterwarnings("ignore:EM stopped after 10 steps")
def test_candidates_of_the_pool(name, gaps):
    X, y = load_wine(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < gaps] = np.nan
    model = pool_candidates()[name].make()
    found = judged(model, X, y)
    expected = cross_val_predict(model, X, y, cv=PredefinedSplit(found.fold), method="predict_proba")
    assert_allclose(found.posteriors["m"], expected, atol=1e-6 if "weighted" in name else 1e-9)


def test_scores_of_a_pool_are_those_of_refits(rows):
    X, y = rows
    members = {name: MODELS[name] for name in ("naive Bayes, 8", "TAN, mdlp", "AODE, 5")}
    pool = po.GenerativeClassifier(members={name: clone(one) for name, one in members.items()}, folds=3).fit(X, y)
    held_out = pool.out_of_fold_
    for name, model in members.items():
        expected = scores_of(held_out.y_true, refitted(model, X, y, held_out.fold), held_out.weight)["log_loss"]
        position = pool.cv_results_["member"].index(name)
        assert pool.cv_results_["log_loss"][position] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bins", [6, "mdlp"])
def test_rows_without_label_are_cut_too(bins):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = pl.DataFrame(rng.normal(y[:, np.newaxis], 1.5, (300, 3)), schema=["a", "b", "c"])
    some = np.where(rng.random(300) < 0.3, -1, y)
    model = po.NaiveBayes(
        distributions="binned", bins=bins, labels=po.Labels(unlabelled=-1), em=po.EM(tol=1e-10, max_iter=500)
    )
    result = out_of_fold(model, X, some, folds=3)
    known = np.flatnonzero(some >= 0)
    for k in range(3):
        kept = np.ones(300, bool)
        kept[known[result.fold == k]] = False
        refit = clone(model).fit(X.filter(kept), some[kept])
        assert_allclose(result.posterior[result.fold == k], refit.predict_proba(X.filter(~kept)), atol=1e-9)


def test_held_out_labels_do_not_leak_through_unlabelled_rows():
    rng = np.random.default_rng(0)
    X = rng.choice(["a", "b", "c"], (200, 20))  # without any structure the likelihood of EM has many maxima
    y = np.full(200, -1)
    y[:20] = np.arange(20) % 2
    model = po.NaiveBayes(labels=po.Labels(unlabelled=-1), em=po.EM(tol=1e-10, max_iter=2000))
    found = out_of_fold(model, X, y, folds=2)
    for k in range(2):
        left_out = np.flatnonzero(y >= 0)[found.fold == k]
        rest = np.setdiff1d(np.arange(200), left_out)
        refit = clone(model).fit(X[rest], y[rest])
        assert_allclose(found.posterior[found.fold == k], refit.predict_proba(X[left_out]), atol=1e-9)
