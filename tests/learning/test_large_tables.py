"""Cross-validation of large tables: few rows are evaluated, and the others are read once for all folds."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import posteriori as po
from posteriori.fitting.rows import read_first_rows
from posteriori.learning import folded_data
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.learning.pool_weights import fit_pool, fit_pool_of, prune_pool
from posteriori.model import Pool

CUTS = (-0.5, 0.3, 1.2)
MODELS = {
    "nb": po.NaiveBayes(),
    "lda": po.GaussianDiscriminant(em=po.EM(tol=1e-10, max_iter=500)),
    "qda": po.GaussianDiscriminant(pooling="per_class", shrinkage="ledoit_wolf", em=po.EM(tol=1e-10, max_iter=500)),
    "tan": po.TreeAugmentedNaiveBayes(bins=CUTS),
    "kdb": po.KDependenceBayes(bins=CUTS),
    "weighted": po.KDependenceBayes(bins=CUTS, feature_weights="conditional"),
}


@pytest.fixture(scope="module")
def rows():
    """Return a table with missing cells, a column of 80 categories, and classes that depend on pairs of columns."""
    rng = np.random.default_rng(0)
    n = 1500
    y = rng.integers(0, 2, n)
    numbers = rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) + 0.7 * y[:, np.newaxis]
    numbers[rng.random((n, 4)) < [0.1, 0.0, 0.05, 0.0]] = np.nan
    many = rng.integers(0, 40, n) + 40 * (rng.random(n) < 0.3 + 0.3 * y)
    columns = {f"x{j}": pl.Series(numbers[:, j]).fill_nan(None) for j in range(4)}
    return pl.DataFrame(
        columns | {"c": pl.Series(many).cast(pl.String), "d": pl.Series((many + y) % 3).cast(pl.String)}
    ), y


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(folded_data, "MANY_ROWS", 100)


def judged(model, X, y, most=300, folds=3):
    folded = FoldedData.of(read_first_rows(model.recipe, X, y), folds, most=most)
    plan = model.recipe.plan(folded.source.schema, folded.target)
    sampled = np.arange(0, most, 7)
    found, (fitted,), kept = judge_and_sample([plan], folded, None, sampled)
    return folded, np.exp(found[:, :, 0]), fitted, kept


@pytest.mark.parametrize("many", [100, 10_000])
@pytest.mark.parametrize("name", MODELS)
def test_models_without_a_fold_are_those_of_a_refit(name, many, rows, monkeypatch):
    X, y = rows
    if many == 100 and name in ("tan", "kdb", "weighted"):
        X = X.drop("c")  # the rows in no fold choose its groups
    monkeypatch.setattr(folded_data, "MANY_ROWS", many)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folded, posterior, fitted, kept = judged(MODELS[name], X, y)
        assert folded.most_are_in_no_fold == (many < 1000)
        for k in range(3):
            held_out = np.zeros(len(y), bool)
            held_out[folded.evaluated[folded.fold == k]] = True
            expected = clone(MODELS[name]).fit(X.filter(~held_out), y[~held_out]).predict_proba(X.filter(held_out))
            apart = np.abs(posterior[folded.fold == k] - expected)
            # Weights of factors are learned from other rows than in a refit.
            assert apart.mean() < 0.1 if name == "weighted" else apart.max() < 1e-6
        if name != "weighted":
            full, whole = fitted.full.model, clone(MODELS[name]).fit(X, y)
            assert_allclose(
                np.exp(full.log_posterior(kept.with_schema(full.schema))),
                whole.predict_proba(X)[kept.chosen],
                atol=1e-6,
            )
    assert kept.chosen.tolist() == folded.evaluated[::7].tolist()


def test_rows_in_no_fold_choose_the_cut_points(rows, large):
    X, y = rows
    model = po.NaiveBayes(distributions="binned")
    folded, _, fitted, _ = judged(model, X, y)
    others = np.ones(len(y), bool)
    others[folded.evaluated] = False
    cuts = po.NaiveBayes(distributions="binned").fit(X.filter(others), y[others]).schema_.cuts
    assert all(one.model.schema.cuts == cuts for one in fitted.without)
    assert fitted.full.model.schema.cuts == cuts


@pytest.mark.parametrize("name", ["tan", "kdb", "weighted"])
def test_rows_in_no_fold_choose_the_groups_of_categories(name, rows, large):
    X, y = rows
    folded, _, fitted, _ = judged(MODELS[name], X, y)
    others = np.ones(len(y), bool)
    others[folded.evaluated] = False

    def groups(model):
        return model.blocks[0].density.groups.of_categories

    chosen = groups(clone(MODELS[name]).fit(X.filter(others), y[others]).model_)
    assert max(map(len, chosen)) == 80
    assert groups(fitted.full.model) == chosen
    assert all(groups(one.model) == chosen for one in fitted.without if not one.recode)
    assert any(not one.recode for one in fitted.without)


def test_rows_without_label_do_not_choose_cut_points(rows, large):
    X, y = rows
    some = np.where(np.arange(len(y)) < 300, y, -1)
    model = po.NaiveBayes(distributions="binned", labels=po.Labels(unlabelled=-1))
    assert not FoldedData.of(read_first_rows(model.recipe, X, some), 3, most=300).most_are_in_no_fold


def test_a_pruned_pool_loses_little():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    truth = 1.5 * np.eye(3)[y]
    shared = truth + rng.normal(size=(4000, 3))
    scores = np.stack([shared, shared + 1e-3 * rng.normal(size=(4000, 3)), truth + 2 * rng.normal(size=(4000, 3))], 2)
    log_posteriors = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    weight = np.ones(4000)
    pool = fit_pool(log_posteriors, y, weight)
    pruned = prune_pool(log_posteriors, y, weight, 1.0, pool, np.ones(3))

    def loss(pool):
        return -pool.log_posterior(log_posteriors)[np.arange(4000), y].mean()

    assert (pool.weight > 0).all()
    assert np.count_nonzero(pruned.weight) == 2  # one of two members that predict the same
    assert pruned.weight[2] > 0
    assert loss(pruned) <= loss(pool) + 5e-4
    again = fit_pool_of(
        pruned.weight > 0, log_posteriors, y, weight, 1.0, Pool(np.full(3, 0.3), np.zeros(3)), np.ones(3)
    )
    assert_allclose(again.weight, pruned.weight, atol=1e-4)


def test_cut_points_of_rows_in_no_fold_stay_within_their_table():
    """Rows that are held out have no weight in the cut points, and no place in their table of counts either."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150_000)
    table = pl.DataFrame({"x": rng.normal(y)})
    model = po.GenerativeClassifier(members=["tan"]).fit(table, y)
    assert model.score(table[:1000], y[:1000]) > 0.6
