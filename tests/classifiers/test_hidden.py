"""Rows without label and rows with missing cells enter the fit through one E-step."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.em_steps import expect_hidden
from posteriori.learning.fit import Collect
from posteriori.model_selection import out_of_fold
from posteriori.reading import infer_schema, read_table
from posteriori.sources import source_of
from posteriori.tables import Assignment

MODELS = {
    "naive": po.NaiveBayes(alpha=0.0, distributions=po.Gaussian(0.0)),
    "lda": po.GaussianDiscriminant(alpha=0.0),
    "qda": po.GaussianDiscriminant(pooling="per_class", alpha=0.0),
    "tree": po.TreeAugmentedNaiveBayes(bins=3, backoff=None, alpha=1e-6),
    "forest": po.classifiers.ChowLiuClassifier(bins=3, backoff=None, alpha=1e-6),
}


def rows(seed, n=150, d=3, cells=0.0, hidden=0.7):
    """Return a table with a categorical column, its true labels, and labels some of which are NaN."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(0, 2, (3, d))[y]
    X = np.where(rng.random(X.shape) < cells, np.nan, X)
    kind = np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n)).astype(float)
    kind[rng.random(n) < cells] = np.nan
    table = pl.DataFrame({f"x{j}": X[:, j] for j in range(d)}).with_columns(
        kind=pl.Series([None if np.isnan(k) else "abc"[int(k)] for k in kind], dtype=pl.String)
    )
    some = y.astype(float)
    some[rng.random(n) < hidden] = np.nan
    some[:9] = y[:9]
    return table, y, some


def learning(model, **parameters):
    return clone(model).set_params(labels__unlabelled="learn", **parameters)


@pytest.mark.filterwarnings("ignore:EM stopped", "ignore:column '.*does not vary")
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), cells=st.sampled_from([0.0, 0.2]), weight=st.sampled_from([0.3, 1.0]))
def test_no_step_lowers_the_likelihood(name, seed, cells, weight):
    if name in ("tree", "forest"):
        cells = 0.0  # pairs of present cells are not of maximum likelihood
    table, _, some = rows(seed, cells=cells)
    model = learning(MODELS[name], em__max_iter=20, em__tol=0.0, labels__unlabelled_weight=weight)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the covariance is singular")
        try:
            trace = model.fit(table, some).log_likelihood_trace_
        except (UserWarning, ValueError):  # of maximum likelihood, rows may be impossible in every class
            reject()
    slack = 1e-3 if name in ("tree", "forest") else 1e-8 * abs(trace[-1])  # what pseudo-counts may take
    assert np.diff(trace).min() >= -slack


@pytest.mark.parametrize("cells", [0.0, 0.2])
def test_the_trace_is_the_likelihood_of_what_is_observed(cells):
    table, _, some = rows(3, cells=cells)
    for model in (po.NaiveBayes(), po.GaussianDiscriminant(pooling="per_class")):
        model = learning(model, em__max_iter=300, em__tol=1e-10, labels__unlabelled_weight=0.5).fit(table, some)
        known = ~np.isnan(some)
        joint = model.predict_joint_log_proba(table)
        labelled = joint[known, some[known].astype(int)].sum()
        total = labelled + 0.5 * model.score_samples(table)[~known].sum()
        assert_allclose(model.log_likelihood_trace_[-1], total, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_fully_labelled_table_is_learned_in_closed_form(name):
    table, y, _ = rows(4)
    plain = MODELS[name].fit(table, y)
    again = learning(MODELS[name]).fit(table, y)
    assert not len(again.log_likelihood_trace_)
    assert_array_equal(plain.predict_joint_log_proba(table), again.predict_joint_log_proba(table))
    assert_array_equal(again.transduction_, y)


@pytest.mark.parametrize("name", MODELS)
def test_rows_without_label_and_without_weight_teach_nothing(name):
    table, _, some = rows(5)
    known = ~np.isnan(some)
    unheard = learning(MODELS[name], labels__unlabelled_weight=0.0, **binless(name)).fit(table, some)
    alone = learning(MODELS[name], **binless(name)).fit(table.filter(known), some[known])
    seen = table.filter(known)
    assert_allclose(unheard.predict_proba(seen), alone.predict_proba(seen))
    assert np.isin(unheard.transduction_, unheard.classes_).all()


def binless(name):
    """Return cut points, where there are bins: which rows of no weight would otherwise not share."""
    return {"bins": [-1.0, 1.0]} if name in ("tree", "forest") else {}


@pytest.mark.parametrize("cells", [0.0, 0.2])
def test_weights_are_repetitions(cells):
    table, _, some = rows(6, cells=cells)
    weight = np.random.default_rng(0).integers(0, 3, len(some))
    weight[:9] = 1
    many = np.repeat(np.arange(len(some)), weight)
    for model in (po.NaiveBayes(), po.GaussianDiscriminant(pooling="per_class")):
        weighted = learning(model).fit(table, some, sample_weight=weight)
        repeated = learning(model).fit(table[many], some[many])
        assert_allclose(weighted.log_likelihood_trace_, repeated.log_likelihood_trace_)
        assert_allclose(weighted.predict_proba(table), repeated.predict_proba(table), atol=1e-9)


def test_classes_may_be_named_in_any_order():
    table, _, some = rows(7, cells=0.1)
    swapped = np.where(np.isnan(some), np.nan, 2 - some)
    one, other = (learning(po.NaiveBayes()).fit(table, labels).predict_proba(table) for labels in (some, swapped))
    assert_allclose(one, other[:, ::-1], atol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_expected_statistics_are_sums_over_all_ways_to_label(seed):
    table, _, some = rows(seed, n=40, cells=0.2)
    model = learning(po.NaiveBayes(), em__max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = model.fit(table, some).model_
    source = read_first_rows(model.recipe, table, some).source
    expected = expect_hidden(source, fitted, (), source.reduce(Collect(fitted.blocks)))
    batch = source.batch(slice(0, 40))
    log_joint = fitted.log_joint(batch)
    for z in range(3):
        share = np.exp(log_joint[:, z]) / np.exp(log_joint).sum(axis=1)
        share = np.where(np.isnan(some), share, some == z)
        assert_allclose(expected.weight[z], share.sum())
        for block, sums in zip(fitted.blocks, expected.blocks, strict=True):
            tile = block.tile(batch)
            for j in range(len(block.columns)):
                if block.density.kind == "categorical":
                    counts = [share[tile.values[:, j] == k + 1].sum() for k in range(tile.cardinalities[j])]
                    assert_allclose(sums.column(j)[z], counts, atol=1e-12)
                else:
                    present = ~np.isnan(tile.values[:, j])
                    x, w = tile.values[present, j], share[present]
                    assert_allclose(sums.mean[z, j], w @ x / w.sum())
                    assert_allclose(sums.scatter[z, j], w @ (x - w @ x / w.sum()) ** 2, rtol=1e-8)


def test_a_batch_falls_into_labelled_and_unlabelled_rows():
    table = read_table(np.arange(12.0).reshape(6, 2))
    schema = infer_schema(table, [0, 1], [])
    batch = source_of(table, schema, [0, 1], local=True).batch(slice(0, 6))
    component = np.array([0, -1, 1, -1, -1, 2], np.int32)
    batch = replace(batch, start=10, assignment=Assignment(component, np.arange(6.0), 3))
    known, hidden = batch.labelled(), batch.unlabelled()
    assert_array_equal(known.assignment.component, [0, 1, 2])
    assert_array_equal(known.assignment.weight, [0.0, 2.0, 5.0])
    assert_array_equal(hidden.numbers.values, batch.numbers.values[[1, 3, 4]])
    assert [known.number(i) for i in range(3)] == [10, 12, 15]
    assert hidden.rows(np.array([False, True, True])).number(1) == 14
    assert batch.number(3) == 13


def test_unlabelled_rows_help_where_labels_are_few():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = rng.normal(size=(2000, 6)) + 1.2 * y[:, np.newaxis]
    some = np.where(np.arange(2000) < 8, y, -1)
    few = po.NaiveBayes().fit(X[:8], y[:8]).score(X, y)
    many = po.NaiveBayes(labels=po.Labels(unlabelled=-1)).fit(X, some)
    assert many.score(X, y) > few
    assert_array_equal(many.classes_, [0, 1])
    assert (many.transduction_ == y).mean() > 0.9
    assert_array_equal(many.transduction_[:8], y[:8])


def test_unlabelled_penguins_help_one_model_and_hurt_another():
    penguins = load_penguins()
    species = np.array(penguins["species"].to_list(), dtype=object)
    X, right = penguins.drop("species"), {}
    for seed in range(10):
        shuffled = np.random.default_rng(seed).permutation(len(species))
        known = np.concatenate([shuffled[species[shuffled] == name][:5] for name in sorted(set(species))])
        some = np.full(len(species), None, dtype=object)
        some[known] = species[known]
        others = np.setdiff1d(np.arange(len(species)), known)
        for kind in (po.GaussianDiscriminant, po.NaiveBayes):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                alone = kind().fit(X[known], species[known]).predict(X[others])
                together = kind(labels=po.Labels(unlabelled="learn")).fit(X, some).transduction_[others]
            right.setdefault(kind, []).append([(one == species[others]).mean() for one in (alone, together)])
    assert_allclose(np.mean(right[po.GaussianDiscriminant], axis=0), [0.96, 0.99], atol=0.02)
    assert_allclose(np.mean(right[po.NaiveBayes], axis=0), [0.91, 0.75], atol=0.02)


LABELS = {
    "None": ["a", "b", None] * 8,
    "NaN": np.array([0.0, 1.0, np.nan] * 8),
    "pandas": pd.Series(pd.Categorical(["a", "b", None] * 8)),
    "polars": pl.Series(["a", "b", None] * 8),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels_may_be_missing_in_any_container(y):
    X = np.random.default_rng(0).normal(size=(24, 2))
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(X, y)
    assert len(model.classes_) == 2
    assert len(model.transduction_) == 24
    assert model.class_count_.sum() == pytest.approx(24)
    with pytest.warns(UserWarning, match="8 of 24 rows have no label; they are learned from by EM"):
        assert_array_equal(po.NaiveBayes().fit(X, y).predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="partial_fit learns from labelled rows"):
        po.NaiveBayes(labels=po.Labels(unlabelled="learn")).partial_fit(X, y)


def test_a_code_stands_for_a_missing_label():
    X = np.random.default_rng(0).normal(size=(24, 2))
    y = np.array(["a", "b", "?"] * 8)
    coded = po.GaussianDiscriminant(labels=po.Labels(unlabelled="?")).fit(X, y)
    missing = po.GaussianDiscriminant(labels=po.Labels(unlabelled="learn")).fit(
        X, [None if one == "?" else one for one in y]
    )
    assert_array_equal(coded.predict_proba(X), missing.predict_proba(X))
    with pytest.raises(ValueError, match="the label of row 2, 5, 8"):
        po.GaussianDiscriminant(labels=po.Labels(unlabelled="?")).partial_fit(X, y)
    with pytest.raises(ValueError, match="every label is missing"):
        po.GaussianDiscriminant(labels=po.Labels(unlabelled="?")).fit(X, ["?"] * 24)


def test_a_code_that_y_lacks_is_an_error():
    for code in ("ingore", -1):
        with pytest.raises(ValueError, match=f"unlabelled is {code!r}, which no label of y is"):
            po.NaiveBayes(labels=po.Labels(unlabelled=code)).fit([["u"], ["v"], ["u"]], ["a", "b", None])


@pytest.mark.parametrize("kind", [po.NaiveBayes, po.TreeAugmentedNaiveBayes, po.GenerativeClassifier])
def test_ignored_rows_without_label_are_those_left_out(kind):
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"a": rng.normal(size=90), "b": ["u", "v", "only without label"] * 30})
    y, known = ["p", "q", None] * 30, np.arange(90) % 3 < 2
    ignoring = kind(labels=po.Labels(unlabelled="ignore"))
    model, expected = ignoring.fit(X, y), kind().fit(X.filter(known), ["p", "q"] * 30)
    seen = X.filter(known)
    assert_allclose(model.predict_proba(seen), expected.predict_proba(seen), rtol=0, atol=1e-12)
    assert model.schema_.columns[1].categories == ("u", "v")
    if kind is not po.GenerativeClassifier:
        half = clone(ignoring).partial_fit(X[:45], y[:45], classes=["p", "q"]).partial_fit(X[45:], y[45:])
        assert half.statistics_.weight.sum() == 60
    with pytest.raises(ValueError, match="leave out one of the two"):
        clone(ignoring).set_params(labels__unlabelled_weight=0.5).fit(X, y)


def test_minus_one_is_a_class_only_with_a_warning():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.array([-1, 0, 1] * 10)
    learning = po.NaiveBayes(labels=po.Labels(unlabelled="learn"))
    with pytest.warns(UserWarning, match="y holds -1 beside 0 to 1") as caught:
        assert_array_equal(learning.fit(X, y).classes_, [-1, 0, 1])
    assert [one.filename for one in caught] == [__file__]
    assert_array_equal(po.NaiveBayes(labels=po.Labels(unlabelled=-1)).fit(X, y).classes_, [0, 1])
    # Without a warning: NaN marks missing labels, −1 has another neighbour, or no label may be missing.
    assert len(learning.fit(X, np.where(np.arange(30) < 3, np.nan, y)).classes_) == 3
    assert len(learning.fit(X, np.where(y == 0, 2, y)).classes_) == 3
    assert len(po.NaiveBayes().fit(X, y).classes_) == 3


WITHOUT_EM = {
    "kdb": po.KDependenceBayes(),
    "aode": po.AveragedOneDependence(),
    "weighed": po.NaiveBayes(feature_weights="conditional"),
    "forest": po.GenerativeForest(n_trees=3),
    "pool": po.GenerativeClassifier(["nb", "tan"]),
    "stated": po.NaiveBayes(labels=po.Labels(unlabelled="ignore")),
}


@pytest.mark.parametrize("model", WITHOUT_EM.values(), ids=WITHOUT_EM)
def test_models_without_em_leave_rows_without_label_out(model):
    table, _, some = rows(3, cells=0.1)
    known = ~np.isnan(some)
    fewer = clone(model).fit(table.filter(known), some[known])
    if model is not WITHOUT_EM["stated"]:
        with pytest.warns(UserWarning, match=rf"{(~known).sum()} of {len(some)} rows have no label; they are left out"):
            model = clone(model).fit(table, some)
    else:
        model = clone(model).fit(table, some)
    assert_array_equal(model.predict_proba(table), fewer.predict_proba(table))
    assert not hasattr(model, "transduction_")


@pytest.mark.parametrize("from_file", [False, True])
@pytest.mark.parametrize("model", [po.NaiveBayes(labels=po.Labels(unlabelled="ignore")), po.GenerativeRegressor()])
def test_rows_that_are_left_out_decide_nothing(model, from_file, tmp_path):
    x = np.random.default_rng(0).normal(size=80)
    is_known = np.arange(80) < 40
    target = np.where(is_known, x > 0 if isinstance(model, po.NaiveBayes) else x, None)
    table = pl.DataFrame({"x": np.where(is_known, x, np.inf), "key": [f"q{min(i, 40)}" for i in range(80)]})
    table = table.with_columns(y=pl.Series(target.tolist()))
    table.write_parquet(tmp_path / "t.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(tmp_path / "t.parquet" if from_file else table, "y")  # infinity would be an error
    assert [column.kind for column in model.schema_.columns] == ["continuous", "ignored"]


def test_further_rows_without_label_are_left_out():
    table, _, some = rows(3, cells=0.1)
    known = ~np.isnan(some)
    fewer = po.NaiveBayes().fit(table.filter(known), some[known]).partial_fit(table.filter(known), some[known])
    model = po.NaiveBayes().fit(table.filter(known), some[known])
    with pytest.warns(UserWarning, match="they are left out"):
        model.partial_fit(table, some)
    assert_array_equal(model.predict_proba(table), fewer.predict_proba(table))
    with pytest.warns(UserWarning, match="they are left out"):
        model.unlearn(table, some)
    again = po.NaiveBayes().fit(table.filter(known), some[known])
    assert_allclose(model.predict_proba(table), again.predict_proba(table), rtol=1e-9)


def test_rows_without_label_are_an_error_if_that_is_stated():
    with pytest.raises(ValueError, match=r"the label of row 7 is missing; drop or label such rows$"):
        po.NaiveBayes(labels=po.Labels(unlabelled="error")).fit([["a"], ["b"]] * 4, [0, 1, 0, 1, 0, 1, 0, None])


def test_a_row_that_nothing_can_produce_is_named():
    X = pl.DataFrame({"a": ["u", "v", "u", "v", "w"]})
    with pytest.raises(ValueError, match="row 4 has probability 0 under every component that its label allows"):
        po.NaiveBayes(alpha=0.0, labels=po.Labels(unlabelled="learn")).fit(X, [0, 1, 0, 1, None])


@pytest.mark.parametrize("cells", [0.0, 0.2])
def test_cross_validation_judges_labelled_rows_as_refitting_does(cells):
    """EM starts in each fold as in a refit, and ends where it does, at any tolerance."""
    table, _, some = rows(8, cells=cells)
    end = {"em__tol": 1e-5, "em__max_iter": 2000}
    model = learning(po.GaussianDiscriminant(), **end)
    scored = out_of_fold(model, table, some, folds=3)
    known = np.flatnonzero(~np.isnan(some))
    assert_array_equal(scored.y_true, some[known])
    for k in range(3):
        held_out = known[scored.fold == k]
        taught = np.setdiff1d(np.arange(len(some)), held_out)
        again = learning(po.GaussianDiscriminant(), **end).fit(table[taught], some[taught])
        assert_allclose(scored.posterior[scored.fold == k], again.predict_proba(table[held_out]), atol=1e-9)
    again = learning(po.GaussianDiscriminant(), **end).fit(table, some)
    assert_allclose(model.predict_proba(table), again.predict_proba(table))


def test_threads_do_not_change_the_result():
    X = np.random.default_rng(1).normal(size=(3000, 2))
    y = np.where(np.arange(3000) % 5 == 0, (X[:, 0] > 0).astype(float), np.nan)
    one, two = (
        po.NaiveBayes(labels=po.Labels(unlabelled="learn"), n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2)
    )
    assert_array_equal(one, two)


def test_a_model_of_unlabelled_rows_is_saved_and_loaded(tmp_path):
    table, _, some = rows(9, cells=0.1)
    model = learning(po.NaiveBayes()).fit(table, some)
    po.save(model, tmp_path / "model.posteriori")
    again = po.load(tmp_path / "model.posteriori")
    assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.labels.unlabelled == "learn"
    assert again.statistics_.hidden == model.statistics_.hidden > 0


def test_running_out_of_steps_is_warned_of():
    table, _, some = rows(10)
    with pytest.warns(ConvergenceWarning, match="EM stopped after 2 steps with a last gain of") as caught:
        learning(po.NaiveBayes(), em__max_iter=2).fit(table, some)
    assert caught[0].filename == __file__


def test_label_noise_of_a_class_is_a_mapping():
    with pytest.raises(ValueError, match="label_noise has no mapping of recorded labels of a class"):
        po.NaiveBayes(labels=po.Labels(label_noise={"a": 0.1})).fit(
            pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), list("abab")
        )
