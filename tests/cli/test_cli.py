"""The command line: what it prints is what the library says, and nothing it is given ends in a traceback."""

from __future__ import annotations

import contextlib
import gzip
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import sklearn.metrics
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.cli import commands, facts, main, messages
from posteriori.cli import files as reading
from posteriori.cli import files as writing
from posteriori.cli import fit as fitting
from posteriori.cli.commands import app
from posteriori.cli.tables import bar
from posteriori.datasets import load_penguins
from posteriori.explain.sums import merge_classes
from posteriori.model_selection import metrics, out_of_fold
from posteriori.support import formatting
from posteriori.tables.scanning import MISSING
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(model="nb", replaces=True)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return the facts that fit printed of the penguins, and the model it saved."""
    path = tmp_path_factory.mktemp("fitted") / "penguins.posteriori"
    return json.loads(succeeds("fit", "penguins.csv", "--target", "species", "--output", path, "--json")), path


@pytest.fixture
def model(fitted):
    return fitted[1]


@pytest.fixture
def penguins(folder):
    path = folder / "birds.csv"
    load_penguins().write_csv(path)
    return path


def write(name, text):
    Path(name).write_text(text, encoding="utf-8")
    return name


SMALL = "colour,size,kind\nred,1.5,a\nred,2.5,a\nblue,7,b\nblue,8,b\ngreen,9.5,b\nred,1,a\n"


# Help -------------------------------------------------------------------------------------------


def examples():
    groups = [group.typer_instance for group in commands.app.registered_groups]
    learn_first = sorted(
        (one for group in groups for one in group.registered_commands), key=lambda one: one.callback.__name__ != "learn"
    )
    helps = [command.help for command in (*learn_first, *commands.app.registered_commands)]
    found = [line.strip() for text in helps for line in text.splitlines() if line.startswith("    posteriori ")]
    assert all("\n    posteriori " in text for text in helps)
    return [commands.app.info.epilog.removeprefix("A first look: "), *found]


def test_every_example_of_the_help_runs_in_an_empty_folder():
    for shard in ("north", "south"):  # what merge is given
        succeeds("fit", "penguins.csv", "--target", "species", "--output", f"{shard}.posteriori")
    for line in examples():
        CommandLine(model="nb").succeeds(*shlex.split(line)[1:])


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "sample", "show"])
def test_help_shows_the_example_on_a_line_of_its_own(command):
    out = succeeds(command, "--help")
    assert re.search(rf"^ +posteriori {command} penguins", out, re.MULTILINE)


@pytest.mark.parametrize("command", [one.callback.__name__ for one in app.registered_commands])
def test_help_fits_a_terminal_of_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = succeeds(command, "--help").splitlines()
    assert max(len(line) for line in lines if not line.startswith("      posteriori ")) <= 80  # an example is one line
    assert len(lines) <= 60
    callback = next(one.callback for one in app.registered_commands if one.callback.__name__ == command)
    reads_tables = "sep" in inspect.signature(callback).parameters
    assert ("Text files:" in lines) is reads_tables


@pytest.mark.parametrize(("shell", "start"), [("bash", "--ta"), ("fish", "--ta")])
def test_shells_complete_options(shell, start, monkeypatch):
    for name, value in (
        ("_POSTERIORI_COMPLETE", f"complete_{shell}"),
        ("COMP_WORDS", f"posteriori fit {start}"),
        ("COMP_CWORD", "2"),
        ("_TYPER_COMPLETE_ARGS", f"posteriori fit {start}"),
        ("_TYPER_COMPLETE_FISH_ACTION", "get-args"),
    ):
        monkeypatch.setenv(name, value)
    assert "--target" in succeeds().split()


def test_fit_says_what_counts_as_missing():
    out = " ".join(succeeds("fit", "--help").split())
    assert all(word in out for word in MISSING)


def test_no_arguments_show_the_help_and_version_the_version():
    assert succeeds() == succeeds("--help")
    assert succeeds("--version") == f"posteriori {po.__version__}\n"


def test_help_is_quick_since_nothing_heavy_is_imported():
    code = (
        "import sys; from posteriori.cli import main; main(['--help']); "
        "print([m for m in ('numpy', 'polars', 'sklearn', 'numba') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


# fit --------------------------------------------------------------------------------------------


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
    nats = dict(zip(scored.estimator.schema_.names, scored.estimator.feature_information_, strict=True))
    assert {entry["feature"]: entry["nats"] for entry in found["information"]} == nats
    assert [entry["nats"] for entry in found["information"]] == sorted(nats.values(), reverse=True)
    assert [(entry["class"], entry["rows"]) for entry in found["classes"]] == [
        ("Adelie", 152),
        ("Chinstrap", 68),
        ("Gentoo", 124),
    ]


def test_fit_says_that_noise_tells_nothing_and_that_copies_make_over_confident(tmp_path, monkeypatch):
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
    nats = dict(zip(model.model_.schema.names, model.feature_information_, strict=True))
    assert {entry["feature"]: entry["nats"] for entry in found["information"]} == nats
    assert found["information_rows"] == {"rows": 344, "held_out": True}
    assert_array_equal(po.load("m.posteriori").feature_information_, model.feature_information_)
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


def test_json_is_all_there_is_on_stdout_and_warnings_are_lines_on_stderr():
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
        f"{i},name{i},{'?' if i == 3 else i * 7 % 20},{i % 2 * 100},{i // 2 % 2},same,{letters[i % 3]},{'uv'[i % 2]}"
        for i in range(20)
    ]
    # "binary" holds 0 and 1, which are categories: it needs no hint
    write("t.csv", "row,name,number,flag,binary,constant,plain,y\n" + "\n".join(rows))
    hints = json.loads(succeeds("fit", "t.csv", "--target", "y", "--json"))["hints"]
    by_column = {re.search("'([^']+)'", hint)[1]: hint for hint in hints}
    assert set(by_column) == {"row", "name", "number", "flag", "constant"}
    assert "--column row=keep" in by_column["row"]
    assert "--column name=keep" in by_column["name"]
    assert "'?' in 1 cell;" in by_column["number"]
    assert "--categorical flag" in by_column["flag"]


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


# Reading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["", "NA", "N/A", "NaN", "nan", "null", '""'])
def test_missing_cells_of_text_files(missing):
    write("t.csv", f"a,b\n1,x\n{missing},{missing}\n2,None\n3,?\n4,-\n")
    frame = reading.read_frame(Path("t.csv"))
    assert frame["a"].to_list() == [1, None, 2, 3, 4]
    assert frame["b"].to_list() == ["x", None, "None", "?", "-"]


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.tsv",
        "t.parquet",
        "t.pq",
        "t.arrow",
        "t.feather",
        "t.ipc",
        "t.ndjson",
        "t.jsonl",
        "t.csv.gz",
        "T.CSV",
    ],
)
def test_every_format_is_written_and_read(name, model):
    succeeds("sample", model, "-n", 12, "--seed", 0, "--output", name)
    X, y = po.load(model).sample(12, random_state=0)
    frame = reading.read_frame(Path(name))
    assert frame.columns == [*X.columns, "species"]
    assert frame["species"].to_list() == y.tolist()
    assert_allclose(frame["body_mass_g"], X["body_mass_g"])


def test_zstd_is_read():
    frame = pl.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    try:
        frame.write_csv("t.csv.zst", compression="zstd")
    except TypeError:
        pytest.skip("this polars writes no packed CSV")
    assert reading.read_frame(Path("t.csv.zst")).equals(frame)


def test_columns_read_as_the_model_knows_them():
    write("t.csv", "doors,y\n" + "2,a\n3,b\n5more,a\n" * 4)
    succeeds("fit", "t.csv", "--target", "y")
    write("new.csv", "doors,y\n2,a\n3,b\n")  # would be numbers, had the model not been asked
    assert succeeds("predict", "t.posteriori", "new.csv") == "prediction\na\nb\n"
    write("new.csv", "doors\nNA\nNA\n")
    assert len(succeeds("predict", "t.posteriori", "new.csv").splitlines()) == 3


def test_numeric_labels_that_once_had_a_word_among_them():
    write("t.csv", "x,y\n" + "1,1\n2,2\n3,x\n" * 4)
    succeeds("fit", "t.csv", "--target", "y")
    write("new.csv", "x,y\n1,1\n2,2\n")
    assert "accuracy" in succeeds("evaluate", "t.posteriori", "new.csv")


def test_a_column_without_a_name_gets_one_and_a_double_one_a_warning():
    write("t.csv", ",a,a,y\n" + "0,1,2,u\n1,2,3,v\n" * 3)
    code, out, err = run("fit", "t.csv", "--target", "y", "--json")
    assert code == 0
    assert [column["name"] for column in json.loads(out)["columns"]] == ["column_1", "a", "a_duplicated_0"]
    assert err == "warning: t.csv has the column 'a' twice; the second is called 'a_duplicated_0'\n"


def test_empty_lines_at_the_end_are_left_out_with_a_warning():
    write("t.csv", SMALL + "\n\n")
    code, out, err = run("fit", "t.csv", "--target", "kind", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 6)
    assert err == "warning: t.csv ends in 2 lines without any value, left out\n"


def test_names_with_markup_and_line_ends_are_printed_as_they_are():
    write("t.csv", '"[red]a[/red]","b\nc",y\n' + "1,:smile:,[bold]\n2,[/x],v\n" * 4)
    out = succeeds("fit", "t.csv", "--target", "y")
    assert "[red]a[/red]" in out
    assert "b\\nc" in out
    for command in ("evaluate", "explain"):
        assert "[bold]" in succeeds(command, "t.posteriori", "t.csv")
    assert ":smile:" in succeeds("show", "t.posteriori")


# predict, evaluate, explain, sample, show -------------------------------------------------------


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
    found = json.loads(succeeds("evaluate", model, penguins, "--json"))
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


def test_explanation_prints_bayes_rule_and_contributions_that_sum_to_the_log_odds(model, penguins):
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


# Width ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, pytest.param(80, marks=pytest.mark.long), 120])
def test_no_line_is_wider_than_the_terminal(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    rng = np.random.default_rng(0)
    labels = [f"a-class-with-a-long-name-{k}" for k in range(25)]
    y = np.repeat(labels, 8)
    table = {
        f"a_feature_with_quite_a_long_name_{j}": rng.choice(["lorem ipsum dolor sit amet", "b", "c"], 200)
        for j in range(3)
    }
    frame = pl.DataFrame(table | {"x": rng.normal(size=200) * 1e6, "y": y})
    frame.write_csv("t.csv")
    commands_of = (
        ("fit", "t.csv", "--target", "y"),
        ("evaluate", "t.posteriori", "t.csv"),
        ("explain", "t.posteriori", "t.csv"),
        ("show", "t.posteriori"),
    )
    for arguments in commands_of:
        out = succeeds(*arguments)
        ruled = [line for line in out.splitlines() if "─" in line or "█" in line]
        assert ruled
        assert max(len(line.rstrip()) for line in ruled) <= width, arguments
        if arguments[0] != "explain":
            assert max(len(line.rstrip()) for line in out.splitlines()) <= width, arguments


def test_confusions_are_named_then_numbered_then_listed(monkeypatch):
    x = np.random.default_rng(0).normal(size=(90, 1))
    frames = {}
    for n_classes, length in ((3, 1), (9, 15), (30, 12)):
        y = [f"{k % n_classes:0{length}d}c" for k in range(90)]
        frames[n_classes] = pl.DataFrame({"x": x[:, 0], "y": y})
    headers = {}
    for n_classes, frame in frames.items():
        frame.write_csv("t.csv")
        succeeds("fit", "t.csv", "--target", "y")
        headers[n_classes] = succeeds("evaluate", "t.posteriori", "t.csv")
    assert re.search(r"predicted → +0c +1c +2c", headers[3])
    assert re.search(r"predicted →  +1  +2  +3", headers[9])
    assert "most frequent mistakes" in headers[30]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (189664.1, "189664"),
        (38.1279, "38.13"),
        (-0.001234, "-0.001234"),
        (1e-12, "1e-12"),
        (2.5e12, "2.5e+12"),
        (float("nan"), "–"),
        (None, "–"),
        (100.0, "100"),
    ],
)
def test_numbers(value, text):
    assert formatting.number(value) == text


def test_counts_too_long_to_read_are_powers_of_ten():
    assert formatting.count(1234567) == "1,234,567"
    assert formatting.count(19 * 10**15) == "about 1.9e16"
    assert formatting.count(10**400) == "about 1.0e400"
    assert facts.plain(10**400) is None


# Refusals ---------------------------------------------------------------------------------------

REFUSALS = [
    (("fit", "absent.csv", "--target", "y"), "there is no file 'absent.csv'"),
    (("fit", "small.csv", "--target", "knd"), "did you mean 'kind'"),
    (("fit", "small.csv", "--target", "KIND"), "did you mean 'kind'"),
    (("fit", "small.csv", "--target", "zzz"), "the columns are 'colour'"),
    (("fit", "small.csv", "--target", "size"), "holds 1.5, so it is a quantity"),
    (("fit", "small.csv", "--target", "kind", "--ignore", "colour,size"), "no column left"),
    (("fit", "small.csv", "--target", "kind", "--ignore", "color"), "--ignore names 'color'"),
    (("fit", "small.csv", "--target", "kind", "--categorical", "sise"), "did you mean 'size'"),
    (("fit", "small.csv", "--target", "kind", "--categorical", "kind"), "not a feature of the table"),
    (
        ("fit", "small.csv", "--target", "kind", "--column", "colour=poisson"),
        "reads 'colour' as poisson, and it holds no numbers",
    ),
    (("fit", "small.csv", "--target", "kind", "--column", "size=poisson"), "column 'size' holds 1.5 in row 0"),
    (("fit", "small.csv", "--target", "kind", "--column", "size=poisson", "--categorical", "size"), "choose one"),
    (
        ("fit", "small.csv", "--target", "kind", "--column", "size=binned", "--column", "size=poisson"),
        "as binned and as poisson",
    ),
    (("fit", "small.csv", "--target", "kind", "--column", "colour=binned"), "holds no numbers; remove it"),
    (("fit", "small.csv", "--target", "kind", "--folds", "1"), "'--folds'"),
    (("fit", "small.csv", "--target", "kind", "--model", "svm"), "'--model'"),
    (
        ("fit", "penguins.csv", "--target", "species", "--model", "qda", "--column", "year=poisson"),
        "--model pool or nb",
    ),
    (
        ("fit", "penguins.csv", "--target", "species", "--model", "lda", "--column", "year=binned"),
        "binned needs --model pool, nb",
    ),
    (("fit", "small.csv", "--target", "kind", "--output", "no/m.posteriori"), "no folder 'no'"),
    (("fit", "small.csv", "--target", "kind", "--output", "small.csv"), "suffix of a table"),
    (("fit", "small.csv", "--target", "kind", "--output", "."), "is a folder"),
    (("fit", "small.csv"), "missing option '--target' / '-t' (see posteriori fit --help)"),
    (("fit",), "missing argument"),
    (("fit", "small.csv", "--target", "kind", "--nonsense"), "no such option"),
    (("nonsense",), "no such command"),
    (("fit", "folder.csv", "--target", "y"), "is a folder"),
    (("fit", "small.json", "--target", "y"), "no suffix that names a table"),
    (("fit", "garbage.xlsx", "--target", "y"), "not a spreadsheet"),
    (("fit", "binary.csv", "--target", "y"), "not text in UTF-8"),
    (("fit", "latin.csv", "--target", "y", "--encoding", "utf-8"), "not UTF-8"),
    (("fit", "latin.csv", "--target", "y", "--encoding", "klingon"), "'klingon' is unknown"),
    (("fit", "small.csv", "--target", "kind", "--sep", "ab"), "the separator is 'ab'"),
    (("fit", "small.csv", "--target", "kind", "--decimal", ";"), "the decimal mark is ';'"),
    (("fit", "dates.parquet", "--target", "y", "--sep", ";"), "options for CSV and TSV files"),
    (("fit", "empty.csv", "--target", "y"), "'empty.csv' is empty"),
    (("fit", "header.csv", "--target", "y"), "has no rows"),
    (("fit", "ragged.csv", "--target", "y"), "in line 2 there are more cells than in the header"),
    (("fit", "garbage.parquet", "--target", "y"), "cannot read 'garbage.parquet'"),
    (("fit", "garbage.arrow", "--target", "y"), "cannot read 'garbage.arrow'"),
    (("fit", "garbage.ndjson", "--target", "y"), "cannot read 'garbage.ndjson'"),
    (("fit", "single.csv", "--target", "y"), "only one column"),
    (("fit", "onerow.csv", "--target", "y"), "only one row"),
    (("fit", "unlabelled.csv", "--target", "y"), "every label in 'y' is missing"),
    (("fit", "infinite.csv", "--target", "y"), "column 'x' holds inf in row 1"),
    (("fit", "many.csv", "--target", "y"), "100 classes in 100 rows"),
    (("fit", "dates.parquet", "--target", "y", "--dates", "decade"), "--dates names 'decade'; name some of days"),
    (("fit", "dates.parquet", "--target", "when"), "the target 'when' is Date"),
    (("predict", "absent.posteriori", "small.csv"), "there is no file 'absent.posteriori'"),
    (("predict", "small.csv", "small.csv"), "is not a posteriori model"),
    (("predict", ".", "small.csv"), "is a folder"),
    (("predict", "MODEL", "small.csv"), "lacks columns 'island'"),
    (("predict", "MODEL", "penguins.csv", "--output", "out.xlsx"), "a spreadsheet, which is not written"),
    (("predict", "MODEL", "penguins.csv", "--output", "out.csv.zst"), "zstd"),
    (("predict", "MODEL", "penguins.csv", "--output", "no/out.csv"), "no folder 'no'"),
    (("predict", "MODEL", "renamed.csv"), "is it 'bill_lenght_mm'?"),
    (("predict", "MODEL", "renamed.csv", "--output", "renamed.csv"), "overwrite"),
    (("predict", "MODEL", "strings.csv"), "'year' was numeric in training"),
    (("evaluate", "MODEL", "penguins.csv", "--target", "island"), "'Biscoe', which is not a class of the model"),
    (("evaluate", "MODEL", "small.csv"), "no column 'species'"),
    (("explain", "MODEL", "penguins.csv", "--row", "344"), "the rows 0 to 343"),
    (("explain", "MODEL", "penguins.csv", "--row", "-1"), "no row -1"),
    (("sample", "MODEL", "-n", "0"), "'-n'"),
    (("show", "MODEL.cut"), "is not a posteriori model"),
]


@pytest.fixture
def pitfalls(model):
    """Write the files that refusals are about."""
    write("small.csv", SMALL)
    Path("folder.csv").mkdir()
    write("empty.csv", "")
    write("header.csv", "x,y\n")
    write("ragged.csv", "x,y\n1,a,b\n")
    Path("latin.csv").write_bytes("x,y\né,a\nb,b\n".encode("latin-1"))
    Path("binary.csv").write_bytes(b"x,y\n\xe9\x00\x01,a\nb,b\n")
    for kind in ("parquet", "arrow", "ndjson", "xlsx"):
        write(f"garbage.{kind}", "nonsense\n" * 9)
    write("single.csv", "y\na\nb\n")
    write("onerow.csv", "x,y\n1,a\n")
    write("unlabelled.csv", "x,y\n1,\n2,NA\n")
    write("infinite.csv", "x,y\n1,a\ninf,b\n2,a\n3,b\n")
    write("many.csv", "x,y\n" + "".join(f"{i},name{i}\n" for i in range(100)))
    dates = pl.DataFrame({"when": ["2020-01-01"] * 4, "x": [1, 2, 3, 4], "y": ["a", "b"] * 2})
    dates.with_columns(pl.col("when").str.to_date()).write_parquet("dates.parquet")
    load_penguins().rename({"bill_length_mm": "bill_lenght_mm"}).write_csv("renamed.csv")
    load_penguins().with_columns(pl.lit("long ago").alias("year")).write_csv("strings.csv")
    Path("MODEL.cut").write_bytes(model.read_bytes()[:1000])
    return model


@pytest.mark.parametrize(("arguments", "part"), REFUSALS, ids=[" ".join(arguments) for arguments, _ in REFUSALS])
def test_refusals_are_one_sentence(arguments, part, pitfalls):
    filled = [str(pitfalls) if argument == "MODEL" else argument for argument in arguments]
    assert part in refused(*filled)


def test_a_file_that_must_not_be_read(folder):
    write("t.csv", SMALL)
    os.chmod("t.csv", 0)
    if os.access("t.csv", os.R_OK):
        pytest.skip("this user may read everything")
    assert "permission denied" in refused("fit", "t.csv", "--target", "kind").lower()


def test_interrupts_are_quiet(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "open_and_summarise", interrupt)
    assert run("fit", "t.csv", "--target", "kind") == (130, "", "error: interrupted\n")


def test_defects_are_told_from_refusals(monkeypatch):
    def fail(*_):
        raise KeyError("surprise")

    monkeypatch.setattr(fitting, "open_and_summarise", fail)
    code, out, err = run("fit", "t.csv", "--target", "kind")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "KeyError" in err
    monkeypatch.setenv("POSTERIORI_DEBUG", "1")
    with pytest.raises(KeyError):
        run("fit", "t.csv", "--target", "kind")


def test_memory_that_does_not_suffice_is_a_refusal(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(fitting, "open_and_summarise", fail)
    assert "not enough memory" in refused("fit", "t.csv", "--target", "kind")


def test_a_reader_that_goes_away_is_no_error(model):
    start = "import sys; from posteriori.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "sample", str(model), "-n", "20000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"island,")
        process.stdout.close()
        assert process.stderr.read() == b""
        # Some kernels let a write that was under way when the reader left pass for a whole one.
        assert process.wait() in (0, 141)


def test_a_closed_pipe_has_the_exit_code_of_the_signal(model):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    err = io.StringIO()
    for arguments in (["sample", str(model)], ["show", str(model)]):
        with contextlib.redirect_stdout(Closed()), contextlib.redirect_stderr(err):
            assert main(arguments) == 141
    assert err.getvalue() == ""


# Anything at all --------------------------------------------------------------------------------

CELLS = st.one_of(
    st.sampled_from(["", "1", "2", "0", "-1", "2.5", "1e400", "NA", "nan", "inf", "null", "9" * 25, " 1"]),
    st.sampled_from(["a", "b", "None", "?", "true", "false", "é", "a b", "[x]", "2020-01-01", '"q,r"']),
    st.sampled_from(['"', "'", "\t", ";", "\x00", "1,2", "\r"]),
)


def never_a_traceback(*arguments):
    code, _, err = run(*arguments)
    assert code in (0, 2), err
    assert all(line.startswith(("error: ", "warning: ", "note: ")) for line in err.splitlines()), err
    assert sum(line.startswith("error: ") for line in err.splitlines()) == (code == 2)
    return code


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=0, max_size=14), st.integers(1, 3))
@example([["1", "a"]] * 2 + [["2", "b"]] * 2, 1)
@example([["1", "2", "a"], ["", "1", "b"], ["NA", "2", "a"], ["3", "", "b"]], 2)
def test_any_text_is_fitted_or_refused(scratch, rows, n_features):
    table, model = scratch / "t.csv", scratch / "m.posteriori"
    header = [*(f"x{j}" for j in range(n_features)), "y"]
    table.write_text("\n".join(",".join(row) for row in [header, *rows]), encoding="utf-8", newline="")
    if never_a_traceback("fit", table, "--target", "y", "--output", model) == 0:
        for command in ("predict", "evaluate", "explain"):
            assert never_a_traceback(command, model, table) == 0
        assert never_a_traceback("show", model) == 0
        assert never_a_traceback("sample", model, "-n", 3, "--seed", 0) == 0


@given(st.binary(max_size=60), st.sampled_from(["csv", "tsv", "parquet", "arrow", "ndjson", "csv.gz", "csv.zst"]))
def test_any_bytes_are_refused_or_fitted(scratch, content, kind):
    table = scratch / f"b.{kind}"
    table.write_bytes(content)
    never_a_traceback("fit", table, "--target", "y", "--output", scratch / "m.posteriori")


@given(st.sampled_from(["parquet", "arrow", "ndjson", "csv.gz"]), st.data())
def test_damaged_tables_are_refused_or_read(scratch, kind, data):
    whole = scratch / f"whole.{kind}"
    if not whole.exists():
        frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 5, "z": list("abcd") * 5, "y": ["u", "v"] * 10})
        writing.writer_of(whole)(frame, whole)
    damaged = scratch / f"damaged.{kind}"
    damaged.write_bytes(damage(whole.read_bytes(), data))
    never_a_traceback("fit", damaged, "--target", "y", "--output", scratch / "m.posteriori")


@given(st.data())
def test_damaged_models_are_refused(scratch, fitted, data):
    content = fitted[1].read_bytes()
    changed = damage(content, data)
    path = scratch / "damaged.posteriori"
    path.write_bytes(changed)
    code = never_a_traceback("show", path)
    assert code == (0 if changed == content else 2)


def damage(content, data):
    """Return some bytes cut short, or with one of them changed, or with a part left out."""
    position = data.draw(st.integers(0, len(content) - 1))
    how = data.draw(st.sampled_from(["cut", "flip", "drop"]))
    if how == "cut":
        return content[:position]
    if how == "flip":
        return (
            content[:position] + bytes([content[position] ^ data.draw(st.integers(1, 255))]) + content[position + 1 :]
        )
    return content[:position] + content[position + data.draw(st.integers(1, 9)) :]


def test_messages_are_one_line_and_said_once():
    err = io.StringIO()
    with contextlib.redirect_stderr(err), messages.one_line_warnings():
        import warnings

        for _ in range(2):
            warnings.warn("a\n  b", UserWarning, stacklevel=1)
    assert err.getvalue() == "warning: a b\n"


def test_a_bar_has_the_length_of_its_share_and_a_negative_number_none():
    assert [bar(value, 2.0, width=8) for value in (2.0, 1.0, 0.0, -1.0)] == ["█" * 8, "█" * 4, "", ""]
    assert bar(-1e300, 1e-300) == ""
