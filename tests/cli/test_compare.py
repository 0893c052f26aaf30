"""The command compare, as a person types it."""

import json

import pytest

import posteriori as po
from posteriori.cli import main
from posteriori.datasets import load_penguins

FEW = ("compare", "penguins.csv", "--target", "species", "--models", "nb,logistic", "--repeats", 2, "--sizes", "10,60")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_json_says_what_the_library_says(run):
    code, out, _ = run(*FEW, "--seed", 3, "--json")
    assert code == 0
    facts = json.loads(out)
    found = po.compare(["nb", "logistic"], load_penguins(), "species", sizes=[10, 60], repeats=2, random_state=3)
    assert facts["generative"] == ["naive Bayes"]
    names = {"naive Bayes": "nb", "logistic regression": "logistic"}
    assert {one["model"]: one["name"] for one in facts["models"]} == names
    assert (facts["rows"], facts["test_rows"], facts["repeats"]) == (344, 86, 2)
    assert [row["log_loss"] for row in facts["scores"]] == pytest.approx(found.scores["log_loss"].to_list())
    assert len(facts["summary"]) == 4
    assert [row["measure"] for row in facts["crossings"]] == ["accuracy", "log_loss", "brier"]


def test_tables_and_sentences(run, folder):
    code, out, _ = run(*FEW, "--plot", "curves.png")
    assert code == 0
    assert "\nnb: naive Bayes, logistic: logistic regression\n" in out
    for piece in ("86 of them test rows", "accuracy", "log-loss (nats per row)", "seconds to fit", "10 rows", "±"):
        assert piece in out
    assert any(words in out for words in ("overtakes", "leads", "do not differ"))
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_columns_can_be_left_out_and_called_categorical(run):
    code, out, _ = run(*FEW, "--ignore", "island,sex", "--categorical", "year", "--json")
    assert code == 0
    without = po.compare(
        ["nb", "logistic"],
        load_penguins().drop("island", "sex"),
        "species",
        sizes=[10, 60],
        repeats=2,
        random_state=0,
        categorical_features=["year"],
    )
    losses = [row["log_loss"] for row in json.loads(out)["scores"]]
    assert losses == pytest.approx(without.scores["log_loss"].to_list())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("absent.csv", "--target", "y"), "there is no file"),
        (("penguins.csv", "--target", "specie"), "did you mean 'species'?"),
        (("penguins.csv", "--target", "species", "--models", "nb,svm"), "there is no model 'svm'"),
        (("penguins.csv", "--target", "species", "--sizes", "10,many"), "--sizes holds 'many'"),
        (("penguins.csv", "--target", "species", "--sizes", "10,9999"), "sizes holds 9999"),
        (("penguins.csv", "--target", "species", "--plot", "curves.txt"), "does not have the suffix of a picture"),
        (("penguins.csv", "--target", "species", "--plot", "nowhere/curves.png"), "there is no folder 'nowhere'"),
        (("penguins.csv", "--target", "species", "--repeats", "0"), "repeats"),
        (("penguins.csv", "--target", "species", "--categorical", "yaer"), "did you mean 'year'?"),
    ],
)
def test_refusals(run, arguments, sentence):
    code, out, err = run("compare", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert sentence in err


def test_warnings_are_one_line_each(run):
    code, _, err = run("compare", "penguins.csv", "--target", "species", "--models", "qda", "--sizes", "5")
    assert code == 0
    assert all(line.startswith("warning: QDA on 5 rows") for line in err.splitlines())


def test_curves_of_numbers(run, folder):
    words = ("compare", "penguins.csv", "--target", "body_mass_g", "--sizes", "30,100", "--repeats", 2)
    code, out, _ = run(*words, "--models", "additive,ridge", "--plot", "curves.png")
    assert code == 0
    assert "\nadditive: sum of functions of single columns, ridge: ridge regression\n" in out
    for piece in ("86 of them test rows", "CRPS", "RMSE", "seconds to fit", "30 rows", "±", "–"):
        assert piece in out
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run(*words, "--json")
    assert code == 0
    names = [one["name"] for one in json.loads(out)["models"]]
    assert names == ["regressor", "additive", "boosting regressor", "forest regressor", "ridge"]
