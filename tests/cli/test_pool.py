"""The command line's default model, and cv."""

import contextlib
import io
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.cli.options import base_models
from posteriori.datasets import load_penguins
from posteriori.registry import MODELS, seen_by
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(replaces=True)
run, succeeds = COMMAND_LINE.run, COMMAND_LINE.succeeds


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool")
    load_penguins().write_csv(path / "penguins.csv")
    with contextlib.chdir(path):
        return json.loads(succeeds("fit", "penguins.csv", "--target", "species", "--json")), path


@pytest.fixture(autouse=True)
def folder(fitted, monkeypatch):
    monkeypatch.chdir(fitted[1])
    monkeypatch.setenv("COLUMNS", "80")


def test_fit_pools_by_default(fitted):
    facts = fitted[0]
    model = po.load("penguins.posteriori")
    assert facts["model"] == "pool"
    assert isinstance(model, po.GenerativeClassifier)
    again = po.GenerativeClassifier().fit(pl.read_csv("penguins.csv", null_values=["NA"]), "species")
    pool = next(row for row in facts["candidates"] if row["member"] == "pool")
    assert pool["log_loss"] == pytest.approx(again.cv_results_["log_loss"][-1], abs=1e-6)
    assert pool["log_loss"] == pytest.approx(facts["cross_validation"]["model"]["log_loss"], abs=1e-9)
    assert facts["cross_validation"]["model"]["log_loss"] < 0.1
    nats = {entry["feature"]: entry["nats"] for entry in facts["information"]}
    assert nats == dict(zip(model.schema_.names, model.importance_.increase, strict=True))
    errors = {entry["feature"]: entry["standard_error"] for entry in facts["information"]}
    assert errors == dict(zip(model.schema_.names, model.importance_.standard_error, strict=True))
    assert json.loads(succeeds("show", "penguins.posteriori", "--json"))["information"] == facts["information"]


def test_what_the_pool_lacks_is_asked_of_naive_bayes():
    arguments = ("fit", "penguins.csv", "--target", "species", "--output", "n.posteriori", "--json")
    assert json.loads(succeeds(*arguments, "--set", "feature_weights=conditional"))["model"] == "nb"
    code, _, err = run(*arguments, "--set", "feature_weights=conditional", "--model", "pool")
    assert code == 2
    assert "it goes with --model nb" in err


def test_the_pool_takes_options_of_its_members():
    arguments = ("fit", "penguins.csv", "--target", "species", "--output", "o.posteriori", "--force", "--json")
    options = ("--set", "missing=informative", "--set", "pool=best", "--column", "year=binned", "--ignore", "island")
    assert json.loads(succeeds(*arguments, *options))["model"] == "pool"
    model = po.load("o.posteriori")
    assert (model.missing, model.pool, model.distributions) == ("informative", "best", {"year": "binned"})
    assert [*model.member_weights_.values()] == [1.0]
    code, _, err = run(*arguments, "--model", "nb", "--set", "pool=best")
    assert (code, "it goes with --model pool" in err) == (2, True)


def test_candidates_left_out_are_named_by_what_they_see(fitted):
    page = " ".join(succeeds("fit", "penguins.csv", "--target", "species", "-o", "l.posteriori", "--details").split())
    reasons = po.load("l.posteriori").skipped_
    assert "'rda predictive' sees the table alike" in reasons.values()
    (line,) = re.findall(r"left out: ([^()]*) \('gently curved boundaries' sees the table alike\)", page)
    assert "straight boundaries" in line
    assert not any(f"{name}," in line for name in reasons)


def test_what_models_see_is_told_apart_in_a_list():
    seen = [spec.sees for spec in MODELS.values() if spec.sees]
    assert len(set(seen)) == len(seen) > 10
    assert not any("," in words for words in seen)


def test_the_time_budget_is_one_of_the_pool():
    arguments = ("fit", "penguins.csv", "--target", "species", "--output", "b.posteriori", "--force", "--json")
    assert json.loads(succeeds(*arguments, "--set", "time_budget=1e-6"))["model"] == "pool"
    model = po.load("b.posteriori")
    assert (model.time_budget, len(model.cv_results_["member"])) == (1e-6, 2)
    code, _, err = run(*arguments, "--model", "nb", "--set", "time_budget=5")
    assert (code, "it goes with --model pool" in err) == (2, True)
    code, _, err = run(*arguments, "--set", "time_budget=0")
    assert (code, "a float in the range (0.0, inf). Got 0 instead" in err) == (2, True)


def test_candidates_weights_and_the_choice_are_explained(fitted):
    shown = " ".join(succeeds("show", "penguins.posteriori").split())
    described = [row for row in fitted[0]["candidates"] if row["description"]]
    assert len({row["sees"] for row in described}) == len(described) > 4
    assert all(f"{row['sees']}: {row['member']}, {row['description']}" in shown for row in described)
    assert "weights are not shares" in shown
    model = po.load("penguins.posteriori")
    results = model.cv_results_
    best = int(np.argmin(results["log_loss"][:-1]))
    above = results["log_loss"][best] - results["log_loss"][-1]
    assert above == pytest.approx(results["log_loss_above_pool"][best])
    assert (f"{seen_by(results['member'][best])} has a lower log-loss than the pool" in shown) == (above < 0)
    assert pl.DataFrame(results).height == len(results["member"])


def test_a_variant_is_fitted_by_the_name_that_the_pool_shows(fitted):
    arguments = ("fit", "penguins.csv", "--target", "species", "--output", "v.posteriori", "--json")
    loss = {row["member"]: row["log_loss"] for row in fitted[0]["candidates"]}
    for name in ("tan 5", "rda predictive"):
        found = json.loads(succeeds(*arguments, "--model", name))
        assert found["model"] == name
        assert po.load("v.posteriori").get_params().items() >= MODELS[name].parameters.items()
        assert loss[name] == pytest.approx(found["cross_validation"]["model"]["log_loss"], rel=0.5)
        assert MODELS[name].description in succeeds("show", "penguins.posteriori")
    for name, words in (("tan30", "is it 'tan 30'?"), ("random forest", "discriminative and only for comparison")):
        code, _, err = run(*arguments, "--model", name)
        assert (code, "'--model'" in err, words in err) == (2, True, True)


@pytest.mark.parametrize("command", ["fit", "cv", "compare"])
def test_help_lists_every_generative_model(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = " ".join(re.sub("[│\\s]+", " ", succeeds(command, "--help")).split())
    assert all(spec.name in text for spec in base_models())


def test_the_page_on_the_command_line_lists_every_model():
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()
    assert [name for name in MODELS if f"`{name}`" not in page] == []


def test_every_command_takes_a_pool():
    shown = succeeds("show", "penguins.posteriori")
    assert "GenerativeClassifier of species" in shown
    assert json.loads(succeeds("show", "penguins.posteriori", "--json"))["members"]
    assert "weighted" in succeeds("explain", "penguins.posteriori", "penguins.csv", "--row", "3")
    assert json.loads(succeeds("evaluate", "penguins.posteriori", "penguins.csv", "--json"))["model"]["accuracy"] > 0.97
    drawn = pl.read_csv(io.StringIO(succeeds("sample", "penguins.posteriori", "-n", "20", "--seed", "1")))
    assert set(drawn.columns) == set(load_penguins().columns)
    predicted = pl.read_csv(io.StringIO(succeeds("predict", "penguins.posteriori", "penguins.csv", "--proba")))
    assert predicted.height == 344
    assert "candidate" in succeeds("fit", "penguins.csv", "--target", "species")


def test_cv_judges_models_as_the_library_does():
    out = json.loads(succeeds("cv", "penguins.csv", "--target", "species", "--models", "nb,tan,lda", "--json"))
    found = po.cross_validate(["nb", "tan", "lda"], pl.read_csv("penguins.csv", null_values=["NA"]), "species")
    best = found.table.sort("log_loss").to_dicts()
    assert [row["model"] for row in out["models"]] == [row["model"] for row in best]
    assert out["models"][0]["log_loss"] == pytest.approx(best[0]["log_loss"])
    page = succeeds("cv", "penguins.csv", "--target", "species", "--models", "nb", "--groups", "island", "--folds", "3")
    assert "naive Bayes" in page
    code, _, err = run("cv", "penguins.csv", "--target", "species", "--models", "svm")
    assert (code, "'svm'" in err) == (2, True)


def test_every_command_reads_a_pool_with_a_sum_of_trees():
    table = pl.read_csv("penguins.csv", null_values=["NA"])
    members = [po.NaiveBayes(), po.GenerativeForest(combine="sum", n_trees=5)]
    model = po.GenerativeClassifier(members, folds=2).fit(table, "species")
    po.save(model, "sum.posteriori")
    assert list(po.load("sum.posteriori").members_) == ["NaiveBayes", "residual trees"]
    explained = succeeds("explain", "sum.posteriori", "penguins.csv", "--row", 0)
    assert f"p = {model.predict_proba(table.head(1)).max():.4f}" in explained
    assert "residual trees" in succeeds("show", "sum.posteriori")
    scores = json.loads(succeeds("evaluate", "sum.posteriori", "penguins.csv", "--json"))["model"]
    assert 0 < scores["log_loss"] < 0.2
    succeeds("report", "sum.posteriori", "penguins.csv", "--output", "sum.html")
    succeeds("explore", "sum.posteriori", "penguins.csv", "--output", "page.html")
    succeeds("export", "sum.posteriori", "--output", "sum.json")
    assert "SummedTrees" in Path("sum.json").read_text(encoding="utf-8")
    assert "EXP(w)" in succeeds("sql", "sum.posteriori")
