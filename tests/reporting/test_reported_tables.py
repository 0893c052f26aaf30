"""A report is written of any table and of every kind of model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.facts.columns import facts_of_rows
from posteriori.reporting import markup
from posteriori.support.formatting import shorten
from posteriori.tables.rows import take_rows
from tests.reporting.test_report import PENGUINS, Page, check

MODELS = {
    "naive Bayes": po.NaiveBayes(),
    "weighted": po.NaiveBayes(feature_weights="conditional"),
    "missing tells": po.NaiveBayes(missing="informative"),
    "mixture": po.NaiveBayes(em=po.EM(components_per_class=2, n_init=1), random_state=0),
    "LDA": po.GaussianDiscriminant(),
    "TAN": po.TreeAugmentedNaiveBayes(),
    "TAN of numbers": po.TreeAugmentedNaiveBayes(bins=None),
    "trees": po.classifiers.ChowLiuClassifier(),
    "kDB": po.KDependenceBayes(),
    "AODE": po.AveragedOneDependence(),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:.*EM:UserWarning", "ignore:.*converge:UserWarning")
def test_every_kind_of_model(name, monkeypatch):
    monkeypatch.setattr(markup, "_MOST_PICTURES", 1)
    some = PENGUINS.select("island", "bill_length_mm", "sex", "species")[::4]
    report = po.report(MODELS[name].fit(some, "species"), some, "species")
    page = check(report)
    ids = [attributes["id"] for attributes in page.of("h2")]
    assert ("tree" in ids) == (name in ("TAN", "TAN of numbers", "trees", "kDB"))
    assert len(page.of("article")) == 5
    assert page.text.count("Bayes’ rule, written out") == (0 if name == "weighted" else 5)
    assert "prior odds" in page.text
    assert "initial odds" not in page.text


def table(kind):
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=40)
    if kind == "one column":
        return pl.DataFrame({"x": rng.normal(size=40) + y, "y": y}), "y", po.TreeAugmentedNaiveBayes()
    if kind == "categories":
        return pl.DataFrame({"a": (y * 3).astype(str), "b": rng.integers(3, size=40).astype(str)}), y, po.NaiveBayes()
    if kind == "26 classes":
        y = np.repeat(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), 8)
        X = {"n": rng.normal(size=208), "long": [f"category {k // 2}" for k in range(208)]}
        return pl.DataFrame(X), y, po.NaiveBayes()
    if kind == "one class":
        return rng.normal(size=(20, 2)), np.zeros(20, int), po.NaiveBayes()
    if kind == "lists":
        return [[float(x), "u" if x > 0 else "v"] for x in rng.normal(size=40)], (y > 0).tolist(), po.NaiveBayes()
    if kind == "pandas without names":
        return pd.DataFrame(rng.normal(size=(40, 2))), y.astype(float), po.GaussianDiscriminant()
    if kind == "far away":
        return pd.DataFrame({"x": 1e9 + rng.normal(size=40) + y, "empty": [None] * 40}), y, po.NaiveBayes()
    assert kind == "impossible rows"  # no class can make the third category of some folds
    return [["a"], ["a"], ["b"], ["b"], ["c"], ["c"]] * 2, [0, 0, 1, 1, 0, 1] * 2, po.NaiveBayes(alpha=0.0)


KINDS = ["one column", "categories", "26 classes", "one class", "lists", "pandas without names", "far away"]


@pytest.mark.parametrize("kind", [*KINDS, "impossible rows"])
@pytest.mark.filterwarnings("ignore:.*(no value|missing throughout|no cell):UserWarning")
def test_any_table(kind, monkeypatch):
    monkeypatch.setattr(markup, "_MOST_PICTURES", 2)
    X, y, model = table(kind)
    page = check(po.report(model.fit(X, y), X, y))
    if kind == "far away":
        assert "1,000,000,000" in page.text
    if kind == "one class":
        assert "accuracy 100 %" in page.text
    if kind == "26 classes":
        assert "too many to draw" in page.text


@pytest.mark.filterwarnings("ignore:.*only one class:UserWarning")
def test_long_category_names_leave_room_for_the_densities():
    names = [f"level number {k} of many" for k in range(20)]
    X = pl.DataFrame({"x": np.arange(60.0), "w": names * 3})
    y = ["only"] * 60
    page = check(po.report(po.NaiveBayes().fit(X, y), X, y))
    assert all(shorten(name) in page.text for name in names)


def test_rows_without_label(monkeypatch):
    monkeypatch.setattr(markup, "_MOST_PICTURES", 1)
    labels = [None if row % 3 else label for row, label in enumerate(PENGUINS["species"])]
    X = PENGUINS.select("bill_length_mm", "flipper_length_mm", "island")
    model = po.GaussianDiscriminant(labels=po.Labels(unlabelled="learn")).fit(X, labels)
    report = po.report(model, X, labels)
    assert "229 without label" in check(report).text
    assert "Scores on 115 rows" in Page(report.html).text


def test_a_strange_cell_is_named():
    odd = PENGUINS.with_columns(
        body_mass_g=pl.when(pl.int_range(pl.len()) == 7).then(63000).otherwise("body_mass_g"),
        bill_depth_mm=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("bill_depth_mm"),
    )
    page = check(po.report(po.GaussianDiscriminant().fit(odd, "species"), odd, "species"))
    assert page.text.split("unusual cells")[1].startswith("row 7")
    low, high = odd["body_mass_g"].quantile(0.05, "nearest"), odd["body_mass_g"].quantile(0.95, "nearest")
    assert f"body_mass_g = 63000 (90 % of cells are from {low:.0f} to {high:.0f}" in page.text
    assert "bill_depth_mm = missing" not in page.text


def test_take_rows(constructor, columns):
    X = constructor(columns)
    taken = take_rows(X, np.array([6, 0]))
    assert type(taken) is type(X)
    model = po.NaiveBayes().fit(X, [0, 1] * 4)
    assert_allclose(model.score_samples(taken), model.score_samples(X)[[6, 0]])


def test_facts_of_columns_are_those_of_the_cells():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": 1e9 + rng.normal(size=3000), "c": rng.choice(["u", "v", None], 3000)})
    X.loc[::7, "n"] = np.nan
    number, category = facts_of_rows(po.NaiveBayes().fit(X, rng.integers(2, size=3000)), X)
    assert (number.cells.missing, category.cells.missing) == tuple(X.isna().sum())
    found = [number.cells.mean, number.cells.sd, number.cells.lowest, number.cells.highest]
    assert_allclose(found, X["n"].agg(["mean", "std", "min", "max"]), rtol=1e-12)
    assert_allclose(number.cells.sd, X["n"].std(), rtol=1e-6)
    assert category.counts.tolist() == X["c"].value_counts().sort_index().tolist()
