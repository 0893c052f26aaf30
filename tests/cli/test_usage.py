"""Errors in the use of commands name what to write instead, in options and not in Python."""

import json

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.cli.wording import in_options
from posteriori.model_cost import require_affordable_export
from tests.cli.command_line import CommandLine

LINE = CommandLine(model="nb", details=False, replaces=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("cv birds.csv --set alpha=2", "posteriori cv has no option --set; it takes models with their defaults; "),
        ("compare birds.csv --bins 3", "posteriori fit --set NAME=VALUE sets a parameter of one"),
        ("fit birds.csv --alpha 2", "posteriori fit has no option --alpha; use --set alpha=VALUE"),
        ("fit birds.csv --components-per-class 2", "use --set components_per_class=VALUE"),
        ("fit birds.csv --text x", "posteriori fit has no option --text; use --column A,B=text"),
        ("cv birds.csv --keep x", "posteriori cv has no option --keep; use --column A,B=keep"),
        ("cluster birds.csv --exclude x", "posteriori cluster has no option --exclude; use --ignore"),
        ("cv birds.csv --models", "option '--models' requires an argument (see posteriori cv --help)"),
        ("network learn", "(see posteriori network learn --help)"),
        ("network learn birds.csv --nonsense", "no such option: --nonsense (see posteriori network learn --help)"),
        ("network lern", "did you mean 'learn'? (see posteriori network --help)"),
    ],
)
def test_an_absent_option_is_named_with_its_equivalent(penguins, words, sentence):
    assert sentence.lower() in LINE.refused(*words.split()).lower()


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "report", "explore", "show", "sample"])
def test_a_table_in_the_place_of_the_model(penguins, model, command):
    error = LINE.refused(command, penguins, *([] if command in ("show", "sample") else [model]))
    assert error == f"{str(penguins)!r} is a table, and the model comes first: give the file that fit saved"


def test_rows_without_labels_are_compared_with_earlier_ones(penguins, model):
    pl.read_csv(penguins).drop("species").write_csv("new.csv")
    error = LINE.refused("evaluate", model, "new.csv")
    assert f"posteriori report {model} new.csv --against EARLIER_TABLE compares" in error
    assert "--against EARLIER_TABLE" in LINE.refused("report", model, "new.csv", "-o", "page.html")
    pl.read_csv(penguins).rename({"species": "Species"}).write_csv("other.csv")
    assert LINE.refused("evaluate", model, "other.csv").endswith("did you mean 'Species'?")  # which is a typo


def test_a_classifier_that_is_asked_a_joint_question(penguins, model):
    assert (
        json.loads(LINE.succeeds("query", model, "P(island = Dream | species = Gentoo)", "--json"))["probability"] < 0.1
    )
    error = in_options("'a' holds a GenerativeClassifier, not a network; read it by posteriori.load")
    assert error.endswith("predict --proba gives P(class | row); fit without --target makes a model of questions")
    LINE.succeeds("fit", penguins, "-t", "species", "--model", "forest", "--output", "forest.posteriori")
    error = LINE.refused("query", "forest.posteriori", "P(species)")
    assert error.endswith("which is no joint distribution; fit without --target")
    assert "posteriori.load" not in error


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "to use them, pass columns=po.Columns(keep=['a', 'b c']) (--column NAME=keep on the command line)",
            "to use them, pass --column 'a,b c=keep'",
        ),
        ("pass escape_formulas=True (--escape-formulas on the command line)", "add --escape-formulas"),
        ("convert it, or name it in categorical_features", "convert it, or name it in --categorical"),
        ('missing="em" is defined for counts only', "--set missing=em is defined for counts only"),
        ("is not tried: why; see skipped_", "is not tried: why; --json lists all that are left out"),
        ('the label is missing=“a”, or x="y"', 'the label is missing=“a”, or x="y"'),
    ],
)
def test_messages_of_the_library_name_options(message, shown):
    assert in_options(message) == shown


def test_a_too_long_export_names_the_option_that_shortens_it():
    with pytest.raises(ValueError, match='fit with language="sql", which leaves out what is too large') as caught:
        require_affordable_export("the SELECT", "sql", {"a": 90, "b": 20}, "characters", 100, "do less")
    assert "fit with --for sql, which" in in_options(str(caught.value))


def test_a_warning_on_the_terminal_has_no_python(folder):
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"id": range(60), "x": rng.normal(size=60), "y": ["u", "v"] * 30})
    rows.write_csv("t.csv")
    code, _, err = LINE.run("cv", "t.csv", "--target", "y", "--models", "nb", "-q")
    assert (code, "po." in err) == (0, False)
    assert "to use it, pass --column id=keep" in err


def test_learning_a_network_names_columns_that_identify_rows(folder):
    pl.DataFrame({"id": range(60), "x": ["a", "b", "b"] * 20, "y": ["u", "v"] * 30}).write_csv("t.csv")
    code, _, err = LINE.run("network", "learn", "t.csv", "-o", "net.bif", "--binned", "-q")
    assert code == 0
    assert "note: column 'id': it numbers the rows, from 0 to 59; to leave it out, add --ignore id" in err
    assert po.read_network("net.bif").variables == ("id", "x", "y")


def test_names_that_do_not_fit_are_wrapped_and_not_cut(folder):
    states = [f"state{k}" for k in range(30)]
    net = po.BayesianNetwork(variables=["v"], states={"v": states})
    net.add_cpt("v", [1 / 30] * 30)
    po.write_network(net, "net.json")
    shown = " ".join(LINE.succeeds("network", "show", "net.json").split())
    assert all(state in shown for state in states)
    assert "…" not in shown
