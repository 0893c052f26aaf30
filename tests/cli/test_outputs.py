"""What commands write: never over what they read, and over other files with --force only."""

import shlex
from pathlib import Path

import polars as pl
import pytest

import posteriori as po
from posteriori.cli import fits
from posteriori.datasets import load_penguins
from posteriori.model_files import read_file
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(model="nb")
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = load_penguins().drop_nulls().sample(60, seed=0)
    rows.write_csv("birds.csv")
    rows.drop("island", "bill_depth_mm").write_parquet("birds.parquet")
    po.save(po.NaiveBayes().fit(rows, "species"), "m.posteriori")
    po.write_network(po.NaiveBayes(distributions="binned").fit(rows, "species").to_network(), "net.bif")
    return tmp_path


WRITERS = {
    "a.csv": [
        "sample m.posteriori -n 3 -o a.csv",
        "predict m.posteriori birds.csv -o a.csv",
        "cluster birds.csv -k 2 -o c.posteriori --assign a.csv",
        "network sample net.bif -n 3 -o a.csv",
    ],
    "a.json": ["export m.posteriori -o a.json"],
    "a.mjs": ["export m.posteriori -o b.json --evaluator a.mjs"],
    "a.html": [
        "explore m.posteriori -o a.html",
        "report m.posteriori birds.csv -o a.html",
        "fit birds.csv -t species -o n.posteriori --report a.html",
    ],
    "a.png": [
        "compare birds.csv -t species --models nb,lda --sizes 20 --repeats 1 --plot a.png",
        'query net.bif "P(*)" --picture a.png',
    ],
    "a.posteriori": [
        "fit birds.csv -t species -o a.posteriori",
        "cluster birds.csv -k 2 -o a.posteriori",
        "merge m.posteriori m.posteriori -o a.posteriori",
        "network learn birds.csv --binned -o a.posteriori",
        "network convert net.bif a.posteriori",
    ],
}
COMMANDS = [(name, command) for name, commands in WRITERS.items() for command in commands]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[command for _, command in COMMANDS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_only_force_replaces_a_file_and_it_is_reported(name, command):
    Path(name).write_text("my only copy")
    words = shlex.split(command)
    sentence = refused(*words)
    assert name in sentence
    assert "--force" in sentence
    assert Path(name).read_text() == "my only copy"
    code, _, err = run(*words, "--force")
    assert code == 0, err
    assert Path(name).read_bytes() != b"my only copy"
    assert [line for line in err.splitlines() if line.startswith(f"note: replaced {name!r}")], err


READ = [
    "sample m.posteriori -o m.posteriori",
    "predict m.posteriori birds.csv -o birds.csv",
    "predict m.posteriori birds.csv --costs costs.csv -o costs.csv",
    "predict m.posteriori parts -o parts/1.csv",
    'predict m.posteriori "parts/*.csv" -o linked.csv',
    "export m.posteriori -o m.posteriori",
    "export m.posteriori -o same.json --evaluator same.json",
    "explore m.posteriori birds.html -o birds.html",
    "report m.posteriori birds.html -o birds.html",
    "cluster birds.csv -k 2 --assign birds.csv",
    "merge m.posteriori m.posteriori -o m.posteriori",
    "network convert net.bif net.bif",
    "network sample net.bif -o net.bif",
]


@pytest.mark.parametrize("command", READ)
def test_no_command_writes_over_what_it_reads_even_with_force(command):
    Path("parts").mkdir()
    for name in ("parts/1.csv", "parts/2.csv", "birds.html", "costs.csv"):
        Path(name).write_bytes(Path("birds.csv").read_bytes())
    Path("linked.csv").symlink_to("parts/2.csv")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    refused(*shlex.split(command), "--force")
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_the_same_fit_may_replace_its_model_without_force():
    fit = ("fit", "birds.csv", "--target", "species")
    succeeds(*fit)
    first = read_file(Path("birds.posteriori"))[0]["content"]
    code, _, err = run(*fit)
    assert (code, "replaced 'birds.posteriori'" in err) == (0, True)
    assert read_file(Path("birds.posteriori"))[0]["content"] == first
    Path("moved").mkdir()
    Path("moved/birds.csv").write_bytes(Path("birds.csv").read_bytes())
    succeeds("fit", "moved/birds.csv", "--target", "species")  # the same content
    before = Path("birds.posteriori").read_bytes()
    for other in (
        ("--model", "lda"),
        ("--ignore", "year"),
        ("--set", "alpha=2"),
        ("--categorical", "year"),
    ):
        assert "the model of the target 'species'" in refused(*fit, *other)
    assert "holds the model" in refused("fit", "birds.parquet", "--target", "species")  # another table of this name
    assert "holds the model" in refused("fit", "birds.csv", "--target", "island")
    assert Path("birds.posteriori").read_bytes() == before
    pl.read_csv("birds.csv").head(50).write_csv("birds.csv")
    assert "holds the model" in refused(*fit)
    succeeds(*fit, "--force")


def test_a_model_that_was_changed_after_the_fit_is_kept():
    fit = ("fit", "birds.csv", "--target", "species")
    succeeds(*fit)
    rows = pl.read_csv("birds.csv")
    model = po.load("birds.posteriori").partial_fit(rows.drop("species"), rows["species"])
    po.save(model, "birds.posteriori")
    assert "--force" in refused(*fit)
    assert po.load("birds.posteriori").class_count_.sum() == 2 * rows.height


def test_a_fitted_model_is_saved_though_a_fact_fails(monkeypatch):
    def fails(*_):
        raise ArithmeticError("a fact")

    monkeypatch.setattr(fits, "fit_facts", fails)
    code, _, err = run("fit", "birds.csv", "--target", "species")
    assert (code, "the model is saved to 'birds.posteriori'" in err) == (1, True)
    rows = pl.read_csv("birds.csv")
    assert (po.load("birds.posteriori").predict(rows.drop("species")) == rows["species"].to_numpy()).mean() > 0.9


def test_a_forest_of_arithmetic_means_is_fitted_and_reported(folder):
    fit = (
        "fit",
        "birds.csv",
        "-t",
        "species",
        "--model",
        "forest",
        "--set",
        "combine=arithmetic",
        "--set",
        "n_trees=5",
    )
    assert "feature importance" in succeeds(*fit, "--report", "page.html")
    assert "arithmetic mean" in (folder / "page.html").read_text()
    assert "birds.csv" in succeeds("evaluate", "birds.posteriori", "birds.csv")


OF_TABLES = ["csv", "tsv", "parquet", "arrow", "xlsx", "ndjson", "csv.gz"]
OF_NETWORKS = [
    "json",
    "JSON",
    "json.gz",
    "bif",
    "bif.gz",
    "xmlbif",
    "bifxml",
    "xml",
    "net",
    "dne",
    "xdsl",
    "uai",
    "dot",
]
OF_PAGES = ["js", "mjs", "sql", "html", "svg", "png", "pdf"]


@pytest.mark.parametrize(
    "command",
    ["fit birds.csv -t species -o", "cluster birds.csv -k 2 -o", "merge m.posteriori m.posteriori -o"],
)
def test_a_model_is_not_named_as_another_file(command):
    for suffix in (*OF_TABLES, *OF_NETWORKS, *OF_PAGES):
        error = refused(*shlex.split(command), f"a.{suffix}")
        assert error.startswith(f"'a.{suffix}' has the suffix of ")
        assert error.endswith("; name the model NAME.posteriori")
        assert not Path(f"a.{suffix}").exists()


@pytest.mark.parametrize("command", ["network learn no.csv -o", "network convert no.bif"])
def test_a_network_is_not_named_as_another_file(command):
    for suffix in ("csv", "parquet", "js", "sql", "html", "svg", "pkl", "model", "posteriori.gz"):
        error = refused(*shlex.split(command), f"a.{suffix}")  # before the file is read
        assert "has no ending of a network file; use .bif" in error
    assert ".dot holds the graph alone; learn g.json" in refused("network", "learn", "birds.csv", "-o", "g.dot")


def test_a_model_is_read_by_its_content():
    content = Path("m.posteriori").read_bytes()
    for suffix in ("json", "bif", "xml", "net", "dot", "html", "model", "pkl"):
        path = Path(f"renamed.{suffix}")
        path.write_bytes(content)
        assert succeeds("predict", str(path), "birds.csv").splitlines()[0] == "prediction"
    assert "holds a Bayesian network" in refused("predict", "net.bif", "birds.csv")
