"""From the command line: clusters, and rows whose label is missing, wrong, or of a class with several components."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model_selection import metrics, out_of_fold
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def birds(folder):
    """Return penguins of which every third has no species, and write them."""
    species = pl.when(pl.int_range(pl.len()) % 3 > 0).then("species")
    table = load_penguins().with_columns(species.alias("species")).drop("island", "year")
    table.write_csv("birds.csv")
    return table


# cluster --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_cluster_prints_what_the_library_says(covariance):
    arguments = ("cluster", "penguins.csv", "-k", "1,2", "--ignore", "species,year", "--covariance", covariance)
    found = json.loads(succeeds(*arguments, "--seed", "1", "--json"))
    table = load_penguins().drop("species", "year")
    models = [po.MixtureModel(k, covariance=covariance, random_state=1).fit(table) for k in (1, 2)]
    for one, model in zip(found["candidates"], models, strict=True):
        assert one["n_parameters"] == model.n_parameters_
        figures = [one["log_likelihood"], one["bic"], one["aic"]]
        assert_allclose(figures, [model.score_samples(table).sum(), model.bic(table), model.aic(table)])
    best = models[np.argmin([model.bic(table) for model in models])]
    assert [one["k"] for one in found["candidates"] if one["best"]] == [found["k"]] == [best.n_components]
    assert_allclose([one["share"] for one in found["clusters"]], best.weights_)
    assert [one["rows"] for one in found["clusters"]] == np.bincount(best.predict(table)).tolist()
    means = {column["name"]: column["mean"] for column in found["columns"] if column["kind"] == "continuous"}
    assert_allclose(means["body_mass_g"], best.means_[:, 3])
    assert_allclose(po.load("penguins.clusters.posteriori").means_, best.means_)


def test_rows_are_assigned_and_new_ones_predicted():
    succeeds(
        "cluster", "penguins.csv", "-k", "3", "--ignore", "species", "--assign", "out.csv", "--out", "m.posteriori"
    )
    written, model = pl.read_csv("out.csv", null_values="NA"), po.load("m.posteriori")
    table = load_penguins()
    assert written.columns == [*table.columns, "component", "probability"]
    posterior = model.predict_proba(table.drop("species"))
    assert written["component"].to_list() == posterior.argmax(axis=1).tolist()
    assert_allclose(written["probability"], posterior.max(axis=1))
    succeeds("predict", "m.posteriori", "penguins.csv", "--proba", "--output", "p.csv")
    predicted = pl.read_csv("p.csv")
    assert predicted["prediction"].to_list() == written["component"].to_list()
    assert_allclose(predicted.select("p_0", "p_1", "p_2").to_numpy(), posterior)
    shown = succeeds("show", "m.posteriori")
    assert "p(component)" in shown
    assert "correlations given component 0" in shown
    assert "component" in succeeds("sample", "m.posteriori", "-n", "3").splitlines()[0]


def test_cluster_marks_the_best_and_describes_it():
    out = succeeds("cluster", "penguins.csv", "-k", "1..2", "--ignore", "species,year")
    assert out.count("← lowest BIC") == 1
    assert "body_mass_g" in out
    assert "Biscoe" in out
    assert "saved to penguins.clusters.posteriori" in out


def test_columns_of_few_integers_are_categories_unless_numeric():
    arguments = ("cluster", "penguins.csv", "-k", "2", "--ignore", "species", "-o", "m.posteriori")
    assert "--numeric year makes them numbers" in succeeds(*arguments)
    found = json.loads(succeeds(*arguments, "--json"))
    assert found["taken_as_categories"] == ["year"]
    table = load_penguins().drop("species")
    model = po.MixtureModel(2, columns=po.Columns(categorical_features="auto"), random_state=0).fit(table)
    assert_allclose(po.load("m.posteriori").predict_proba(table), model.predict_proba(table))
    for option, kind in (("--numeric", "continuous"), ("--categorical", "categorical")):
        found = json.loads(succeeds(*arguments, option, "year", "--json"))
        assert found["taken_as_categories"] == []
        assert {column["name"]: column["kind"] for column in found["columns"]}["year"] == kind


def test_a_best_size_at_the_edge_says_what_to_try():
    rng = np.random.default_rng(0)
    pl.DataFrame(rng.normal(size=(120, 2)) + 20.0 * rng.integers(0, 4, 120)[:, np.newaxis]).write_csv("four.csv")
    common = ("cluster", "four.csv", "-o", "m.posteriori", "-k")
    assert "BIC is still falling at k = 3, the largest tried; try -k 3..6" in succeeds(*common, "2..3")
    assert "BIC is least at k = 4, the smallest tried; try -k 1..4" in succeeds(*common, "4..6")
    edges = {k: json.loads(succeeds(*common, k, "--json"))["edge"] for k in ("2,3", "4..6", "3..5", "4")}
    assert (edges["2,3"]["side"], edges["2,3"]["try"]) == ("largest", "3..6")
    assert (edges["4..6"]["side"], edges["4..6"]["try"]) == ("smallest", "1..4")
    assert edges["3..5"] is edges["4"] is None
    assert "BIC is" not in succeeds(*common, "3..5")


def test_the_old_names_of_options_still_work():
    new = succeeds("cluster", "penguins.csv", "-k", "2", "--ignore", "species,year", "-o", "m.posteriori")
    old = succeeds("cluster", "penguins.csv", "-k", "2", "--drop", "species,year", "--out", "m.posteriori")
    assert new == old


def test_what_cluster_cannot_do_is_one_sentence():
    assert "write 3, or 2,4,6, or 2..8" in refused("cluster", "penguins.csv", "-k", "two")
    assert "is an empty range; write 2..4" in refused("cluster", "penguins.csv", "-k", "4..2")
    assert "at least one" in refused("cluster", "penguins.csv", "-k", "0")
    assert "has 344 rows; ask for fewer" in refused("cluster", "penguins.csv", "-k", "400")
    assert "did you mean 'species'?" in refused("cluster", "penguins.csv", "--ignore", "specie")
    both = ("--categorical", "year", "--numeric", "year")
    assert "both name 'year'; remove it from one of them" in refused("cluster", "penguins.csv", *both)
    every = ",".join(load_penguins().columns)
    assert "all columns" in refused("cluster", "penguins.csv", "--ignore", every)
    load_penguins().rename({"year": "component"}).write_csv("named.csv")
    assert "'component', which" in refused("cluster", "named.csv", "--assign", "out.csv")
    assert "overwrite" in refused("cluster", "named.csv", "--assign", "named.csv")
    succeeds("cluster", "penguins.csv", "-k", "2", "--out", "m.posteriori")
    for command in ("explain", "evaluate"):
        assert "holds a mixture" in refused(command, "m.posteriori", "penguins.csv")


# fit with labels missing, wrong, or of several components -----------------------------------------------------------


@pytest.mark.parametrize("model", ["nb", "lda", "qda"])
def test_rows_without_label_teach_and_are_told_of(birds, model):
    arguments = (
        "fit",
        "birds.csv",
        "--target",
        "species",
        "--model",
        model,
        "--folds",
        "2",
        "--output",
        "m.posteriori",
    )
    found = json.loads(succeeds(*arguments, "--json"))
    estimator = po.load("m.posteriori").set_params(labels__unlabelled="learn")
    scored = out_of_fold(estimator, birds, "species", folds=2)
    assert found["cross_validation"]["model"]["log_loss"] == metrics.log_loss(scored.y_true, scored.posterior)
    assert found["unlabelled"] == {"rows": 115, "use": "learn", "weight": 1.0, "weight_is_held_out": False}
    assert sum(one["rows"] for one in found["classes"]) == 344 - 115
    out = " ".join(succeeds(*arguments).split())
    assert "115 rows without a label: learned from by EM with weight 1." in out
    assert "--set unlabelled=ignore" in out
    assert "--set unlabelled_weight=held-out" in out


@pytest.mark.parametrize("model", ["nb", "kdb", "aode"])
def test_rows_without_label_may_be_left_out(birds, model):
    known = birds.drop_nulls("species")
    known.write_csv("known.csv")
    ignore = ["--set", "unlabelled=ignore"] if model == "nb" else []
    common = ("--target", "species", "--model", model, "--folds", "2", "--output", "m.posteriori")
    out = succeeds("fit", "birds.csv", *common, *ignore)
    assert "115 rows without a label: left out" in out
    found = json.loads(succeeds("fit", "birds.csv", *common, *ignore, "--json"))
    same = json.loads(succeeds("fit", "known.csv", *common, "--json"))
    assert found["cross_validation"] == same["cross_validation"]
    assert found["columns"] == same["columns"]


def test_the_weight_may_be_given_or_chosen(birds):
    common = ("fit", "birds.csv", "--target", "species", "--folds", "2", "--output", "m.posteriori")
    found = json.loads(succeeds(*common, "--set", "unlabelled_weight=0.25", "--json"))
    assert found["unlabelled"]["weight"] == 0.25
    assert "chosen on held-out rows" in " ".join(succeeds(*common, "--set", "unlabelled-weight=held-out").split())
    assert po.load("m.posteriori").labels.unlabelled_weight == "held_out"


def test_classes_of_several_components_and_wrong_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = np.where(y == 1, 0.0, np.where(rng.random(200) < 0.5, -6.0, 6.0)) + rng.normal(size=200)
    pl.DataFrame({"x": x, "y": y}).write_csv("humps.csv")
    common = ("fit", "humps.csv", "--target", "y", "--model", "lda", "--output", "m.posteriori")
    plain = json.loads(succeeds(*common, "--json"))["cross_validation"]["model"]["accuracy"]
    for components in ("2", "0=2", "0=2,1=1"):
        found = json.loads(succeeds(*common, "--set", f"components_per_class={components}", "--json"))
        assert found["cross_validation"]["model"]["accuracy"] > plain + 0.2
    assert po.load("m.posteriori").component_classes_.tolist() == [0, 0, 1]
    assert succeeds("show", "m.posteriori")
    for noise in ("0.1", "learn"):
        succeeds(*common, "--set", f"label_noise={noise}")
        assert po.load("m.posteriori").label_confusion_.shape == (2, 2)


def test_what_fit_cannot_be_told_is_one_sentence(birds):
    common = ("fit", "birds.csv", "--target", "species")
    for option in ("unlabelled=learn", "components_per_class=2", "label_noise=0.1"):
        assert "it goes with --model" in refused(*common, "--model", "kdb", "--set", option)
    assert "remove one of the two" in refused(*common, "--set", "unlabelled=ignore", "--set", "unlabelled_weight=0.1")
    assert "in the range [0.0, 1.0]" in refused(*common, "--set", "unlabelled_weight=2")
    assert "in the range [0.0, 1.0)" in refused(*common, "--set", "label_noise=1")
    assert "did you mean 'Gentoo'?" in refused(*common, "--set", "components_per_class=Gento=2")
    assert "whole numbers" in refused(*common, "--set", "components_per_class=Gentoo=x")
    assert "a whole number, at least 1" in refused(*common, "--set", "components_per_class=0")
    birds.with_columns(species=pl.lit(None, pl.String)).write_csv("none.csv")
    assert "every cell of the target" in refused("fit", "none.csv", "--target", "species")
    labels = [None] * 343 + ["Adelie"]
    birds.with_columns(species=pl.Series(labels)).write_csv("one.csv")
    assert "only one row with a label" in refused("fit", "one.csv", "--target", "species")
    birds.write_csv("some.csv")
    code, _, err = run("evaluate", "m.posteriori", "some.csv")
    assert (code, err.count("error: ")) == (2, 1)
