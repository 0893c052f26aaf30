"""Parameters of --set and kinds of --column: what the help says is taken, and what an error advises works."""

import re
import shlex
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine()
succeeds, refused = COMMAND_LINE.succeeds, COMMAND_LINE.refused
FIT = ("fit", "birds.csv", "-t", "species", "--folds", "2", "-q")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load_penguins().drop_nulls().sample(60, seed=0).write_csv("birds.csv")


@pytest.mark.parametrize("model", ["nb", "lda"])
def test_priors_are_named_by_class_in_any_order(model):
    succeeds(*FIT, "--model", model, "--set", "priors=Gentoo=0.5,Adelie=0.2,Chinstrap=0.3")
    assert_allclose(po.load("birds.posteriori").class_prior_, [0.2, 0.3, 0.5])


@pytest.mark.parametrize(
    ("priors", "sentence"),
    [
        ("Gentoo=0.5,Adele=0.5", "did you mean 'Adelie'"),
        ("Gentoo=half,Adelie=0.5", "CLASS=0.3,OTHER=0.7"),
        ("Gentoo=0.5,Adelie=0.5", "must name every class once"),
    ],
)
def test_wrong_priors_are_refused_with_the_fix(priors, sentence):
    assert sentence in refused(*FIT, "--model", "nb", "--set", f"priors={priors}")


def test_the_advice_on_learned_tables_is_an_option_that_works():
    error = refused(*FIT, "--model", "nb", "--set", "feature_weights=cells")
    assert "distributions" not in error
    advice = re.search(r"add (--column [^;,]*(,[^;,]*)*?=binned)", error)
    succeeds(*FIT, "--model", "nb", "--set", "feature_weights=cells", *shlex.split(advice[1]))
    assert Path("birds.posteriori").exists()


def test_no_threads_at_all_are_refused():
    assert "Got 0" in refused(*FIT, "--model", "nb", "--set", "n_jobs=0")


@pytest.mark.parametrize("command", ["cv", "compare", "cluster"])
def test_the_help_of_column_names_no_kind_that_is_refused(command):
    text = " ".join(succeeds(command, "--help").split())
    assert "--column" in text
    assert "binned" not in text


def test_bins_without_a_column_in_bins_are_named():
    *_, said = COMMAND_LINE.run(*FIT, "--model", "nb", "--set", "bins=5")
    (line,) = [line for line in said.splitlines() if "bins" in line]
    assert line.startswith("note: --set bins=5 has no effect, because nb cuts no column into bins here; add --column ")
    kinds = shlex.split(line.partition("; add ")[2])
    for options in ([*kinds, "--model", "nb"], ["--model", "tan"], ["--model", "binned weighted"]):
        code, _, said = COMMAND_LINE.run(*FIT, *options, "--set", "bins=5", "--force")
        assert code == 0
        assert "has no effect" not in said
    assert "has no effect" not in COMMAND_LINE.run(*FIT, "--model", "nb", "--force")[2]
