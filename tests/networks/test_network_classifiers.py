"""Classifiers as networks, and networks as classifiers: the same posterior, whichever way it is asked for."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import posteriori as po
from posteriori.datasets import load_penguins

COLUMNS = {"sky": ["clear", "grey", "rain"], "wind": ["calm", "gale"], "warm": [False, True], "day": [1, 2, 3]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    sky = (y + rng.integers(0, 2, 300)) % 3
    return pl.DataFrame(
        {
            "sky": np.array(COLUMNS["sky"])[sky],
            "wind": np.array(COLUMNS["wind"])[((sky > 1) ^ (rng.random(300) < 0.2)).astype(int)],
            "warm": rng.random(300) < 0.3 + 0.4 * y,
            "day": rng.integers(1, 4, 300),
            "play": np.array(["no", "yes"])[y],
        }
    )


@pytest.fixture(scope="module")
def grid():
    """Return every row there can be, each cell also missing."""
    cells = [[*states, None] for states in COLUMNS.values()]
    return pl.DataFrame(list(itertools.product(*cells)), schema=list(COLUMNS), orient="row")


MODELS = {
    "naive": po.NaiveBayes(columns=po.Columns(categorical_features=["day"])),
    "tan": po.TreeAugmentedNaiveBayes(columns=po.Columns(categorical_features=["day"])),
    "kdb": po.KDependenceBayes(2, columns=po.Columns(categorical_features=["day"])),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_classifier_and_its_network_give_one_posterior(name, table, grid):
    model = MODELS[name].fit(table, "play")
    network = model.to_network()
    assert_allclose(network.predict_proba(grid, "play"), model.predict_proba(grid), atol=1e-12)
    classifier = network.as_classifier("play")
    assert_array_equal(classifier.classes_, model.classes_)
    assert_allclose(classifier.predict_proba(grid), model.predict_proba(grid), atol=1e-12)
    assert_allclose(network.log_likelihood(grid), model.score_samples(grid), rtol=1e-10)


def test_the_class_is_above_every_feature(table):
    network = MODELS["tan"].fit(table, "play").to_network()
    assert {child for parent, child in network.edges if parent == "play"} == set(COLUMNS)
    tree = {(parent, child) for child, parent in MODELS["tan"].tree_.items() if parent is not None}
    assert tree == {edge for edge in network.edges if edge[0] != "play"}
    assert network.n_parameters == MODELS["tan"].n_parameters_


def test_a_class_without_a_name_and_one_that_a_feature_has(table):
    X, y = table.drop("play"), table["play"].to_list()
    assert "class" in po.NaiveBayes(columns=po.Columns(categorical_features=["day"])).fit(X, y).to_network().variables
    taken = X.rename({"sky": "class"})
    assert (
        "class_" in po.NaiveBayes(columns=po.Columns(categorical_features=["day"])).fit(taken, y).to_network().variables
    )


def test_what_is_no_network(table):
    with pytest.raises(ValueError, match=r"column 'day' holds numbers that are no normal density"):
        po.NaiveBayes(distributions={"day": "poisson"}).fit(table, "play").to_network()
    with pytest.raises(ValueError, match=r"each class has a tree of its own"):
        po.classifiers.ChowLiuClassifier(columns=po.Columns(categorical_features=["day"])).fit(
            table, "play"
        ).to_network()
    with pytest.raises(ValueError, match=r"averaged one-dependence model is no network"):
        po.AveragedOneDependence(columns=po.Columns(categorical_features=["day"])).fit(table, "play").to_network()


def test_any_variable_can_be_the_class(table):
    network = MODELS["tan"].fit(table, "play").to_network()
    weather = network.as_classifier("sky")
    rows = table.drop("sky")
    assert_allclose(weather.predict_proba(rows), network.predict_proba(rows, "sky"))
    assert_array_equal(weather.predict(rows), weather.classes_[weather.predict_proba(rows).argmax(axis=1)])
    assert_allclose(np.exp(weather.predict_log_proba(rows)), weather.predict_proba(rows))
    assert weather.score(rows, table["sky"].to_numpy()) > 0.4
    assert weather.n_features_in_ == 4
    with pytest.raises(ValueError, match=r"no variable 'sk'; did you mean 'sky'"):
        network.as_classifier("sk")


def test_a_network_classifier_learns_its_tables_anew(table):
    network = po.NaiveBayes(columns=po.Columns(categorical_features=["day"])).fit(table, "play").to_network()
    learner = clone(network.as_classifier("play"))
    X, y = table.drop("play").to_pandas(), table["play"].to_numpy()
    again = learner.fit(X, y)
    assert_allclose(
        again.predict_proba(X),
        po.NaiveBayes(columns=po.Columns(categorical_features=["day"]), priors=1.0).fit(X, y).predict_proba(X),
    )
    assert cross_val_score(learner, X, y, cv=3).mean() > 0.5


def with_numbers(n=300):
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    level = np.select([kind == "a", kind == "b"], [0.0, 2.0], 4.0)
    length = rng.normal(level, 1.0 + 0.2 * level)
    weight = 100.0 + 3.0 * length + rng.normal(0, 1.0, n)
    colour = np.where(rng.random(n) < 0.3 + 0.1 * level, "red", "blue")
    return pl.DataFrame(
        {"length": length, "weight": weight, "depth": rng.normal(level), "colour": colour, "kind": kind}
    )


@pytest.mark.parametrize(
    ("model", "dropped"),
    [
        (po.NaiveBayes(), []),
        (po.TreeAugmentedNaiveBayes(bins=None), []),
        (po.GaussianDiscriminant(pooling="pooled"), ["colour"]),
        (po.GaussianDiscriminant(pooling="per_class"), ["colour"]),
    ],
    ids=["mixed naive Bayes", "mixed tree", "LDA", "QDA"],
)
def test_a_classifier_of_numbers_and_its_network_agree(model, dropped):
    frame = with_numbers().drop(dropped)
    fitted = model.fit(frame, "kind")
    network = fitted.to_network()
    rng = np.random.default_rng(1)
    grid = frame.drop("kind")[:40]
    gaps = grid.with_columns(
        pl.when(pl.Series(rng.random(40) < 0.25)).then(None).otherwise(pl.col(name)).alias(name)
        for name in grid.columns
    )
    for rows in (grid, gaps):
        assert_allclose(network.predict_proba(rows, "kind"), fitted.predict_proba(rows), atol=1e-8)
        assert_allclose(network.log_likelihood(rows), fitted.score_samples(rows), rtol=1e-8, atol=1e-8)
    back = network.as_classifier("kind")
    assert_array_equal(back.predict(grid), fitted.predict(grid))
    assert network.query("length", evidence={"kind": "b"}).mean == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize(
    "model", [po.NaiveBayes(distributions="binned"), po.TreeAugmentedNaiveBayes()], ids=["naive Bayes", "TAN"]
)
def test_bins_are_states_and_the_classifier_gives_the_posterior(model):
    penguins = load_penguins()
    network = model.fit(penguins, "species").to_network()
    cuts = {column.name: column.cuts for column in model.schema_.columns if column.cuts}
    rows = penguins.head(20).to_dicts()
    for row, posterior in zip(rows, model.predict_proba(rows), strict=True):
        evidence = {name: cell for name, cell in row.items() if name in ("island", "sex") and cell is not None}
        for name, of_column in cuts.items():
            if row[name] is not None:
                evidence[name] = network.states(name)[np.searchsorted(of_column, row[name], side="right")]
        np.testing.assert_allclose(network.query("species", evidence=evidence).probabilities, posterior, rtol=1e-9)
    assert network.states("bill_length_mm")[0].startswith("< ")
