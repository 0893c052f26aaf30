"""What fit prints and saves is what the library computes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sklearn.metrics
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.cli import main, messages
from posteriori.datasets import load_penguins
from posteriori.model_selection import metrics, out_of_fold
from tests.cli.command_line import CommandLine
from tests.cli.test_cli import SMALL, write

COMMAND_LINE = CommandLine(model="nb", replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
pytestmark = pytest.mark.usefixtures("folder")


def scores_of_scikit_learn(y_true, posterior):
    predicted, macro = posterior.argmax(axis=1), {"average": "macro", "zero_division": 0.0}
    is_prior = np.ptp(posterior, axis=0).max() < 0.01
    return {
        "accuracy": sklearn.metrics.accuracy_score(y_true, predicted),
        "log_loss": sklearn.metrics.log_loss(y_true, posterior),
        "brier_score": metrics.brier_score(y_true, posterior),
        "auc": 0.5
        if is_prior
        else sklearn.metrics.roc_auc_score(y_true, posterior, multi_class="ovr", average="weighted"),
        "precision_macro": sklearn.metrics.precision_score(y_true, predicted, **macro),
        "recall_macro": sklearn.metrics.recall_score(y_true, predicted, **macro),
        "f1_macro": sklearn.metrics.f1_score(y_true, predicted, **macro),
    }


def test_fit_prints_the_numbers_of_the_library(fitted):
    found = fitted[0]
    table = load_penguins()
    scored = out_of_fold(po.NaiveBayes(), table, "species")
    for name, posterior in (("model", scored.posterior), ("class_prior", scored.prior)):
        assert found["cross_validation"][name] == pytest.approx(scores_of_scikit_learn(scored.y_true, posterior))
    assert found["cross_validation"]["folds"] == 5
    assert (found["rows"], found["n_parameters"]) == (344, scored.estimator.n_parameters_)
    full = po.parameter_count.count_parameters(3, categorical=[3, 2], gaussian=5)
    assert (found["n_parameters"], found["n_parameters_full_joint"]) == (full.naive, full.full_joint)
    nats = dict(zip(scored.estimator.schema_.names, scored.estimator.importance_.increase, strict=True))
    assert {entry["feature"]: entry["nats"] for entry in found["information"]} == nats
    assert [entry["nats"] for entry in found["information"]] == sorted(nats.values(), reverse=True)
    assert [(entry["class"], entry["rows"]) for entry in found["classes"]] == [
        ("Adelie", 152),
        ("Chinstrap", 68),
        ("Gentoo", 124),
    ]


def test_fit_reports_noise_and_over_confidence_of_copies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random(800) < 0.3
    pl.DataFrame({"u": rng.normal(size=800), "y": y}).write_csv("noise.csv")
    copies = dict.fromkeys((f"x{k}" for k in range(30)), rng.normal(0.8 * y))
    pl.DataFrame(copies | {"y": y}).write_csv("copies.csv")
    noise = succeeds("fit", "noise.csv", "--target", "y")
    assert "carry no information about the target" in noise
    assert "over-confident" not in noise
    copied = succeeds("fit", "copies.csv", "--target", "y", "--model", "nb")
    assert "over-confident" in copied
    assert "carry no information" not in copied


@pytest.mark.parametrize(("name", "pooling"), [("lda", "pooled"), ("qda", "per_class"), ("rda", 0.5)])
def test_fit_and_show_of_discriminant_analyses(name, pooling):
    arguments = ("fit", "penguins.csv", "--target", "species", "--model", name, "--output", "m.posteriori")
    found = json.loads(succeeds(*arguments, "--json"))
    scored = out_of_fold(po.GaussianDiscriminant(pooling=pooling), load_penguins(), "species")
    model = scored.estimator
    assert found["model"] == name
    assert found["cross_validation"]["model"]["log_loss"] == metrics.log_loss(scored.y_true, scored.posterior)
    assert (found["n_parameters"], found["n_parameters_full_joint"]) == (model.n_parameters_, None)
    nats = dict(zip(model.model_.schema.names, model.importance_.increase, strict=True))
    assert {entry["feature"]: entry["nats"] for entry in found["information"]} == nats
    assert found["information_rows"] == {"rows": 344, "held_out": True}
    assert_array_equal(po.load("m.posteriori").importance_.increase, model.importance_.increase)
    shown = json.loads(succeeds("show", "m.posteriori", "--json"))
    numeric = [column for column in shown["columns"] if column["kind"] == "continuous"]
    assert_allclose(np.transpose([column["mean"] for column in numeric]), model.means_)
    covariances = np.array([entry["covariance"] for entry in shown["covariances"]])
    assert_allclose(covariances if pooling != "pooled" else covariances[0], model.covariance_)
    labels = [None] if pooling == "pooled" else ["Adelie", "Chinstrap", "Gentoo"]
    assert [entry["class"] for entry in shown["covariances"]] == labels
    assert_allclose(shown["covariances"][0]["correlation"][0][0], 1.0)
    out = succeeds("show", "m.posteriori")
    assert f"correlations given {labels[-1] or 'the class'}" in out
    assert f"{shown['covariances'][0]['correlation'][2][1]:.2f}" in out
    for command in ("predict", "explain", "evaluate"):
        assert succeeds(command, "m.posteriori", "penguins.csv")


def test_the_strongest_of_many_correlations_are_shown():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    X[:, 11] = X[:, 3] + 0.1 * rng.normal(size=60)
    po.save(po.GaussianDiscriminant().fit(X, np.arange(60) % 2), "m.posteriori")
    out = succeeds("show", "m.posteriori")
    assert "20 of 66, the strongest" in out
    assert "x11, x3" in out


def test_fit_describes_the_columns(fitted):
    columns = {column["name"]: column for column in fitted[0]["columns"]}
    table = load_penguins()
    assert list(columns) == [name for name in table.columns if name != "species"]
    mass = table["body_mass_g"]
    found = columns["body_mass_g"]
    assert (found["kind"], found["missing"]) == ("continuous", mass.null_count())
    assert_allclose([found["mean"], found["sd"]], [mass.mean(), mass.std()])
    assert (found["min"], found["max"]) == (mass.min(), mass.max())
    assert columns["sex"] == {
        "name": "sex",
        "kind": "categorical",
        "distribution": "categorical",
        "missing": 11,
        "missing_share": 11 / 344,
        "n_categories": 2,
        "first_categories": ["female", "male"],
    }


def test_the_saved_model_is_the_one_the_library_fits(model):
    table = load_penguins()
    expected = po.NaiveBayes().fit(table, "species").predict_proba(table)
    assert_allclose(po.load(model).predict_proba(table), expected, rtol=1e-12)


def test_fit_saves_under_the_stem_of_the_table():
    Path("folder").mkdir()
    for name in ("birds.csv", "folder/birds.csv", "birds.csv.gz"):
        position = Path(name)
        text = SMALL.encode()
        position.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        out = succeeds("fit", name, "--target", "kind")
        assert out.endswith("saved to birds.posteriori\n")
        Path("birds.posteriori").unlink()
    succeeds("fit", "birds.csv", "--target", "kind", "--output", "birds.csv.model")
    assert Path("birds.csv.model").exists()


def test_fit_takes_kinds_and_leaves_columns_out():
    rows = [f"{i},{i % 3},{i % 4},{'ab'[i % 2]}" for i in range(24)]
    write("t.csv", "id,code,visits,y\n" + "\n".join(rows))
    arguments = ("--ignore", "id", "--categorical", "code", "--column", "visits=poisson", "--folds", 3)
    found = json.loads(succeeds("fit", "t.csv", "--target", "y", *arguments, "--json"))
    kinds = [(column["name"], column["kind"], column["distribution"]) for column in found["columns"]]
    assert kinds == [("code", "categorical", "categorical"), ("visits", "continuous", "poisson")]
    assert found["cross_validation"]["folds"] == 3
    assert "count (Poisson)" in succeeds("fit", "t.csv", "--target", "y", *arguments)


def test_binned_columns_are_fitted_shown_and_explained():
    rows = [f"{i % 40 + 0.5},{i % 3},{'ab'[i % 40 > 24]}" for i in range(200)]
    write("t.csv", "age,turn,y\n" + "\n".join(rows))
    arguments = ("fit", "t.csv", "--target", "y", "--column", "age,turn=binned")
    found = json.loads(succeeds(*arguments, "--json"))
    age, turn = found["columns"]
    assert (age["distribution"], age["cuts"], turn["cuts"]) == ("binned", [25.0], [])
    assert found["cross_validation"]["model"]["accuracy"] == 1.0
    out = succeeds(*arguments)
    assert "2 bins" in out
    assert "1 bin" in out
    shown = succeeds("show", "t.posteriori")
    assert "p(age | class)" in shown
    assert "≥ 25" in shown
    column = json.loads(succeeds("show", "t.posteriori", "--json"))["columns"][0]
    assert column["categories"] == ["< 25", "≥ 25"]
    assert np.shape(column["probability"]) == (2, 2)
    assert "age = 30.5" in succeeds("explain", "t.posteriori", "t.csv", "--row", 30)


def test_options_take_commas_repetition_and_names_with_commas():
    write("t.csv", '"a,b",c,d,y\n' + "1,2,3,u\n2,1,4,v\n" * 3)
    found = json.loads(
        succeeds("fit", "t.csv", "--target", "y", "--categorical", "a,b", "--categorical", "c, d", "--json")
    )
    assert [column["kind"] for column in found["columns"]] == ["categorical"] * 3


def test_json_alone_is_on_stdout_and_warnings_are_on_stderr():
    write("t.csv", "a,b,y\n" + "1,,u\n2,,v\n" * 5)
    code, out, err = run("fit", "t.csv", "--target", "y", "--json")
    assert code == 0
    column = json.loads(out)["columns"][1]
    assert (column["missing"], column["mean"], column["sd"]) == (10, None, None)
    assert re.fullmatch(r"warning: column 'b' has no cell with a value[^\n]*\n", err)
    assert "none" in succeeds("fit", "t.csv", "--target", "y")


def test_hints():
    letters = "abcdefghijklmnopqrst"
    rows = [
        f"{i},name{i},{'free' if i == 3 else i * 7 % 20},{i % 2 * 100},{i // 2 % 2},same,{letters[i % 3]},{'uv'[i % 2]}"
        for i in range(20)
    ]
    # "binary" holds 0 and 1, which are categories: it needs no hint
    write("t.csv", "row,name,number,flag,binary,constant,plain,y\n" + "\n".join(rows))
    code, out, err = run("fit", "t.csv", "--target", "y", "--json")
    assert code == 0
    by_column = {re.search("'([^']+)'", hint)[1]: hint for hint in json.loads(out)["hints"]}
    assert set(by_column) == {"row", "name", "number", "flag", "constant"}
    assert "--column row=keep" in by_column["row"]
    assert "--column name=keep" in by_column["name"]
    assert "column 'number' holds numbers except 'free' (1 of 20 cells; the first in line 5), and stays text" in err
    assert "(--missing-values free)" in err
    assert "--categorical flag" in by_column["flag"]


def test_one_hint_names_all_columns_with_the_same_marks():
    rows = [f"{'?ab'[i % 3]},{'b?c'[i % 3]},{'+-'[i % 2]}" for i in range(40)]
    write("t.csv", "c,d,y\n" + "\n".join(rows))
    hints = json.loads(succeeds("fit", "t.csv", "--target", "y", "--json", "--column", "all=keep"))["hints"]
    assert hints == ["columns 'c', 'd' have the category '?'; if that means missing, add --missing-values '?'"]


def test_many_whole_numbers_that_are_named_like_codes_get_a_hint():
    rows = [f"{10000 + i * 37 % 40},{i * 7919 % 4001},{i * 31 % 50},{20 + i * 13 % 45}" for i in range(200)]
    lines = [f"{row},{'ab'[i % 2]}" for i, row in enumerate(rows)]
    write("t.csv", "ZIP Code,user_id,StoreID,age,y\n" + "\n".join(lines))
    named, identifying = json.loads(succeeds("fit", "t.csv", "--target", "y", "--json", "--model", "nb"))["hints"]
    assert named.startswith("columns 'ZIP Code', 'StoreID' are named like codes but read as quantities; ")
    assert named.endswith("add --categorical 'ZIP Code,StoreID'")
    assert identifying == (
        "column 'user_id' is named like a code, and nearly every row has its own; to leave out an identifier, add "
        "--ignore user_id"
    )
    options = ("--json", "--model", "nb", "--column", "ZIP Code,StoreID=poisson")
    stated = json.loads(succeeds("fit", "t.csv", "--target", "y", *options))["hints"]
    assert stated == [identifying]  # the user has chosen


def test_whole_numbers_that_look_like_codes_get_a_hint():
    odd, even = [10, 20, 31, 45], [2, 4, 6, 8]
    rows = [
        f"{odd[i % 4]},{even[i % 4]},{i % 3},{(0, 1, 2, 3, 8)[i % 5]},{i % 5 + 1},{i % 4},{'ab'[i % 2]}"
        for i in range(60)
    ]
    write("t.csv", "product,cylinders,sales_zone,children,score,ethnicClass,y\n" + "\n".join(rows))
    (hint,) = json.loads(succeeds("fit", "t.csv", "--target", "y", "--json", "--model", "nb"))["hints"]
    assert hint.startswith("columns 'product', 'sales_zone', 'ethnicClass' have few whole numbers")
    assert hint.endswith("add --categorical product,sales_zone,ethnicClass")


def test_a_progress_bar_only_where_somebody_looks(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(messages, "_DELAY", 0.0)
    write("t.csv", SMALL)
    err = Terminal()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        assert main(["fit", "t.csv", "--target", "kind"]) == 0
    assert "%" in err.getvalue()
    assert run("fit", "t.csv", "--target", "kind", "--output", "other.posteriori")[2] == ""


def test_tiny_tables_have_as_many_folds_as_rows():
    write("t.csv", "x,y\n1,a\n2,b\n3,a\n")
    code, out, err = run("fit", "t.csv", "--target", "y", "--json")
    assert (code, json.loads(out)["cross_validation"]["folds"]) == (0, 3)
    assert err.startswith("warning: there are only 3 rows")


def test_one_class_is_fitted_with_a_warning():
    write("t.csv", "x,z,y\n" + "1,u,a\n2,v,a\n" * 4)
    code, _, err = run("fit", "t.csv", "--target", "y", "--quiet")
    assert code == 0
    assert err == "warning: the target 'y' has only one class, 'a': every prediction will be that class\n"
    code, _, err = run("evaluate", "t.posteriori", "t.csv")
    assert code == 0
    assert succeeds("explain", "t.posteriori", "t.csv")
