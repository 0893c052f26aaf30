"""A saved model predicts, is evaluated, explains, is sampled and is shown as in the library."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.explain.sums import merge_classes
from posteriori.model_selection import metrics
from tests.cli.command_line import CommandLine
from tests.cli.test_cli import write
from tests.cli.test_fit import scores_of_scikit_learn

COMMAND_LINE = CommandLine(model="nb", replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
pytestmark = pytest.mark.usefixtures("folder")


def test_predictions_are_those_of_the_library(model, penguins):
    estimator, table = po.load(model), load_penguins()
    frame = pl.read_csv(succeeds("predict", model, penguins, "--proba").encode())
    assert frame.columns == ["prediction", "p_Adelie", "p_Chinstrap", "p_Gentoo"]
    assert frame["prediction"].to_list() == estimator.predict(table).tolist()
    assert_allclose(frame.drop("prediction").to_numpy(), estimator.predict_proba(table), rtol=1e-12)
    succeeds("predict", model, penguins, "--output", "p.parquet")
    assert pl.read_parquet("p.parquet").equals(frame.select("prediction"))


def test_the_order_of_columns_and_the_target_do_not_matter(model, penguins):
    table = load_penguins()
    table.drop("species").select(reversed(table.columns[:-1])).write_csv("other.csv")
    assert succeeds("predict", model, "other.csv") == succeeds("predict", model, penguins)


def test_extra_columns_and_unseen_categories_are_told_once(model):
    load_penguins().with_columns(pl.lit("Mars").alias("island"), pl.lit(1).alias("extra")).write_csv("t.csv")
    code, out, err = run("predict", model, "t.csv", "--proba")
    assert (code, len(out.splitlines())) == (0, 345)
    lines = err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("warning: ") for line in lines)
    assert "'extra'" in lines[0]
    assert "344 cells of column 'island'" in lines[1]


@pytest.mark.parametrize("name", ["m.model", "m"])
def test_models_are_known_whatever_their_ending(model, name):
    Path(name).write_bytes(Path(model).read_bytes())
    assert succeeds("export", name) == succeeds("export", model)
    assert "wrote m.html" in succeeds("explore", name)
    assert "not a network" in refused("network", "show", name)


def test_true_and_false_are_spelled_as_in_files():
    write("t.csv", "x,y\n" + "1,true\n5,false\n" * 4)
    succeeds("fit", "t.csv", "--target", "y")
    frame = pl.read_csv(succeeds("predict", "t.posteriori", "t.csv", "--proba").encode())
    assert frame.columns == ["prediction", "p_false", "p_true"]
    assert frame["prediction"].to_list() == [True, False] * 4


def test_evaluation_equals_the_library(model, penguins):
    estimator, table = po.load(model), load_penguins()
    components = np.searchsorted(estimator.classes_, table["species"].to_numpy())
    posterior = estimator.predict_proba(table)
    estimator.fitted_ = estimator.fitted_.with_record(
        fingerprints=None,
        posteriors=None,
        figures=None,  # and with them the out-of-fold predictions
    )
    po.save(estimator, "alone.posteriori")
    found = json.loads(succeeds("evaluate", "alone.posteriori", penguins, "--json"))
    assert found["model"] == pytest.approx(scores_of_scikit_learn(components, posterior))
    assert found["model"]["accuracy"] == pytest.approx(estimator.score(table, "species"))
    prior = np.broadcast_to(estimator.class_prior_, posterior.shape)
    assert_allclose(found["class_prior"]["log_loss"], metrics.log_loss(components, prior))
    assert found["confusion"] == metrics.confusion_matrix(components, posterior).tolist()
    per_class = metrics.precision_recall(components, posterior)
    assert [entry["precision"] for entry in found["classes"]] == per_class.precision.tolist()
    assert [entry["recall"] for entry in found["classes"]] == per_class.recall.tolist()
    assert [entry["f1"] for entry in found["classes"]] == per_class.f1.tolist()
    error = metrics.calibration(components, posterior).expected_error
    assert found["expected_calibration_error"] == pytest.approx(error)
    assert sum(entry["rows"] for entry in found["calibration"]) == 344


def test_evaluation_with_a_renamed_target(model, penguins):
    load_penguins().rename({"species": "kind"}).write_csv("renamed.csv")
    here = json.loads(succeeds("evaluate", model, "renamed.csv", "--target", "kind", "--json"))
    there = json.loads(succeeds("evaluate", model, penguins, "--json"))
    assert here["confusion"] == there["confusion"]


def test_explanation_prints_bayes_rule_and_sums_to_the_log_odds(model, penguins):
    explanation = po.load(model).explain(load_penguins().slice(7, 1))
    out = succeeds("explain", model, penguins, "--row", 7)
    assert explanation.bayes_table() in out
    log_odds = explanation.log_odds()
    entries = re.findall(r"^(\w+) .* ([+-]\d+\.\d{4})", out[out.index("adds to the log-odds") :], re.MULTILINE)
    expected = {"prior": log_odds.prior, **log_odds.factors}
    assert {name: float(nats) for name, nats in entries} == pytest.approx(expected, abs=1e-4)
    sizes = [abs(float(nats)) for _, nats in entries]
    assert sizes == sorted(sizes, reverse=True)
    assert f"log-odds {log_odds.total:+.4f}" in " ".join(out.split())


def test_merged_classes_keep_joint_evidence_and_posterior():
    rng = np.random.default_rng(0)
    estimator = po.NaiveBayes().fit(rng.normal(size=(60, 4)), np.arange(60) % 6)
    explanation = estimator.explain(rng.normal(size=(1, 4)))
    merged = merge_classes(explanation, [4, 1])
    assert merged.classes.tolist() == [4, 1, "4 others"]
    assert_allclose(merged.log_evidence, explanation.log_evidence)
    expected = explanation.posterior[0]
    assert_allclose(merged.posterior[0], [expected[4], expected[1], 1 - expected[4] - expected[1]])
    assert_allclose(np.exp(merged.log_prior).sum(), 1.0)


def test_sample_is_that_of_the_library_and_can_be_learned_from(model):
    X, y = po.load(model).sample(30, random_state=3)
    frame = pl.read_csv(succeeds("sample", model, "-n", 30, "--seed", 3).encode())
    assert frame["species"].to_list() == y.tolist()
    assert frame["island"].to_list() == X["island"].to_list()
    succeeds("sample", model, "-n", 60, "--seed", 1, "--output", "drawn.csv")
    succeeds("fit", "drawn.csv", "--target", "species")


def test_show_prints_the_parameters_of_the_model(model):
    estimator = po.load(model)
    found = json.loads(succeeds("show", model, "--json"))
    columns = {column["name"]: column for column in found["columns"]}
    names = estimator.schema_.names
    numeric = [names[j] for j in estimator.schema_.of_kind("continuous")]
    assert_allclose([columns[name]["mean"] for name in numeric], estimator.theta_.T)
    assert_allclose([columns[name]["variance"] for name in numeric], estimator.var_.T)
    assert_allclose(columns["sex"]["probability"], np.exp(estimator.feature_log_prob_[1]))
    assert_allclose(found["prior"], estimator.class_prior_)
    assert found["n_parameters"] == estimator.n_parameters_
    out = succeeds("show", model)
    assert f"{columns['island']['probability'][2][0]:.4f}" in out
    assert "mean ± standard deviation" in out


@pytest.mark.parametrize("container", ["numpy", "pandas", "parameters"])
def test_models_made_in_python_are_served_too(container, penguins):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    if container == "pandas":
        pandas = pytest.importorskip("pandas")
        estimator = po.NaiveBayes().fit(
            pandas.DataFrame({"a": X[:, 0], "b": X[:, 1].round().astype(int).astype(str)}), y
        )
    elif container == "numpy":
        estimator = po.NaiveBayes().fit(X, y)
    else:
        estimator = po.NaiveBayes.from_parameters(
            priors={"u": 0.5, "v": 0.5}, gaussian={"a": {"mean": [0, 1], "sd": [1, 1]}}
        )
    po.save(estimator, "m.posteriori")
    drawn = pl.read_csv(succeeds("sample", "m.posteriori", "-n", 8, "--seed", 0).encode())
    assert drawn.columns[-1] == "class"
    assert drawn.height == 8
    succeeds("show", "m.posteriori")
    drawn.drop("class").write_csv("new.csv")
    assert len(succeeds("predict", "m.posteriori", "new.csv").splitlines()) == 9
    assert "--target" in refused("evaluate", "m.posteriori", "new.csv")
    drawn.write_csv("new.csv")
    succeeds("evaluate", "m.posteriori", "new.csv", "--target", "class")


def test_rows_that_no_class_can_produce_fall_back_on_the_prior():
    frame = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"], "y": [0, 0, 1, 1]})
    po.save(po.NaiveBayes(alpha=0.0).fit(frame, "y"), "m.posteriori")
    write("t.csv", "a,b,y\nx,v,0\nx,u,0\n")  # and of one class, which is no reason for a warning here
    code, out, err = run("evaluate", "m.posteriori", "t.csv", "--json")
    assert code == 0
    assert_allclose(json.loads(out)["model"]["log_loss"], np.log(2) / 2, rtol=1e-6)
    assert err.startswith("warning: row 0 cannot be produced")
    assert "nan" in succeeds("explain", "m.posteriori", "t.csv")
