"""Cross-validation from one pass is refitting, not an approximation of it."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import posteriori as po
import posteriori.sources.table_source
from posteriori.densities.categorical import Binned
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.folded_data import FoldedData
from posteriori.learning.folds import stratified_folds
from posteriori.model_selection import out_of_fold
from posteriori.pool import fit as pool_fit


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 200
    y = rng.integers(0, 3, n)
    frame = pl.DataFrame(
        {
            "x": rng.normal(1e6 + y, 1.0),
            "rare": rng.choice([f"r{k}" for k in range(60)], n),  # some are in one fold only
            "visits": rng.poisson(1.0 + y),
            "y": np.array(["a", "b", "c"])[y],
        }
    )
    gaps = pl.Series(rng.random(n) < 0.1)
    return frame.with_columns(pl.when(~gaps).then("rare"), pl.when(~gaps.shuffle(1)).then("x"))


@pytest.mark.parametrize("folds", [2, 5, 10])
@pytest.mark.parametrize(
    "settings",
    [{}, {"alpha": 0.3, "priors": 2.0, "distributions": {"visits": "poisson", "x": po.Gaussian(5.0, ddof=1)}}],
)
def test_it_equals_refitting(table, folds, settings, monkeypatch):
    monkeypatch.setattr(posteriori.sources.table_source, "_MOST_ROWS", 64)  # several batches
    model = po.NaiveBayes(**{"distributions": {"visits": "poisson"}, **settings})
    weight = np.random.default_rng(1).integers(1, 4, len(table)).astype(float)
    result = out_of_fold(model, table, "y", folds=folds, sample_weight=weight)
    for k in range(folds):
        held_out = result.fold == k
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # categories of this fold only
            refit = po.NaiveBayes(**{"distributions": {"visits": "poisson"}, **settings}).fit(
                table.filter(~pl.Series(held_out)), "y", sample_weight=weight[~held_out]
            )
            expected = refit.predict_proba(table.filter(pl.Series(held_out)))
        assert_allclose(result.posterior[held_out], expected, atol=1e-9)
        assert_allclose(result.prior[held_out], np.tile(refit.class_prior_, (held_out.sum(), 1)))


@pytest.mark.parametrize("bins", ["mdlp", 8])
def test_it_equals_refitting_with_other_bins_and_missing_labels(bins):
    rng = np.random.default_rng(0)
    n = 60
    y = np.arange(n) % 2
    label = np.where(rng.random(n) < 0.25, None, np.array(["a", "b"])[y]).tolist()
    x = rng.poisson(1.0 + 1.5 * y) + 0.5  # a few values, so that the quantiles of some folds coincide
    rows = pl.DataFrame({"x": x, "z": rng.normal(size=n) + 1.2 * y, "y": pl.Series(label, dtype=pl.String)})
    binned = {"x": Binned(bins=bins), "z": Binned(bins=bins)}
    model = po.NaiveBayes(
        distributions=binned, labels=po.Labels(unlabelled="learn"), em=po.EM(tol=1e-12, max_iter=5000)
    )
    result = out_of_fold(model, rows, "y", folds=4)
    fold = np.full(n, -1)  # unlabelled rows are in no fold: every model learns from them
    fold[rows["y"].is_not_null().to_numpy()] = result.fold
    n_bins = set()
    for k in range(4):
        refit = clone(model).fit(rows.filter(pl.Series(fold != k)), "y")
        n_bins.add(tuple(column.cardinality for column in refit.model_.schema.columns))
        expected = refit.predict_proba(rows.filter(pl.Series(fold == k)).drop("y"))
        assert_allclose(result.posterior[result.fold == k], expected, atol=1e-9)
    assert len(n_bins) > 1


def test_the_estimator_comes_back_fitted_to_all_rows(table):
    result = out_of_fold(po.NaiveBayes(), table, "y")
    whole = po.NaiveBayes().fit(table, "y")
    assert_allclose(result.estimator.predict_joint_log_proba(table), whole.predict_joint_log_proba(table), rtol=1e-10)
    assert_array_equal(result.classes[result.y_true], table["y"].to_numpy())
    assert result.estimator.model_.schema == whole.model_.schema


@pytest.mark.parametrize("folds", [2, 3, 7])
def test_every_class_is_spread_evenly(folds):
    components = np.random.default_rng(0).choice(4, 101, p=[0.6, 0.3, 0.07, 0.03])
    fold = stratified_folds(components, folds)
    sizes = np.array([[np.sum((components == c) & (fold == k)) for k in range(folds)] for c in range(4)])
    assert (np.ptp(sizes, axis=1) <= 1).all()
    assert np.ptp(np.bincount(fold, minlength=folds)) <= 1
    assert_array_equal(fold, stratified_folds(components, folds))
    assert (fold != stratified_folds(components, folds, random_state=1)).any()


def test_a_class_that_is_in_one_fold_only():
    X, y = np.arange(7.0).reshape(-1, 1), ["a", "a", "a", "b", "b", "b", "c"]
    result = out_of_fold(po.NaiveBayes(), X, y, folds=3)
    assert_allclose(result.posterior.sum(axis=1), 1.0)
    assert result.posterior[6, 2] == 0.0


@pytest.mark.parametrize("folds", [1, 8])
def test_there_must_be_folds_and_rows_for_them(folds):
    with pytest.raises(ValueError, match=f"folds is {folds}; give at least 2"):
        out_of_fold(po.NaiveBayes(), np.arange(7.0).reshape(-1, 1), [0, 1] * 3 + [0], folds=folds)


def test_progress_counts_every_row_twice(table):
    done = []
    out_of_fold(po.NaiveBayes(), table, "y", progress=done.append)
    assert sum(done) == 2 * len(table)


def test_some_of_many_rows_are_judged_and_all_folds_learn_others():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = rng.normal(y[:, np.newaxis], 1.0, (900, 2))
    result = out_of_fold(po.NaiveBayes(), X, y, folds=3, most=300)
    assert np.bincount(result.y_true).tolist() == pytest.approx(np.bincount(y) / 3, abs=1.0)
    folded = FoldedData.of(read_first_rows(po.NaiveBayes().recipe, X, y), 3, most=300)
    assert folded.y_true.tolist() == y[folded.evaluated].tolist() == result.y_true.tolist()
    for k in range(3):
        held_out = folded.evaluated[result.fold == k]
        refit = po.NaiveBayes().fit(np.delete(X, held_out, axis=0), np.delete(y, held_out))
        np.testing.assert_allclose(result.posterior[result.fold == k], refit.predict_proba(X[held_out]), atol=1e-9)


def test_a_pool_of_many_rows_judges_some(monkeypatch):
    monkeypatch.setattr(pool_fit, "MOST_EVALUATED_BY_ALL", 60)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    model = po.GenerativeClassifier(members=["nb", "lda"]).fit(rng.normal(y[:, np.newaxis], 1.0, (200, 2)), y)
    assert len(model.out_of_fold_.fold) == 60
    assert model.class_prior_.tolist() == pytest.approx((np.bincount(y) / 200).tolist())
