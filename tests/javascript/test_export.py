"""What is written for JavaScript, and what is refused."""

import dataclasses
import json
import re
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.densities import Grouped
from posteriori.densities.registry import REGISTRY
from posteriori.javascript import javascript_evaluator, to_javascript
from posteriori.javascript.export import FIELDS, UNREAD
from posteriori.networks import read_network
from tests.cli.command_line import CommandLine
from tests.javascript.engines import in_node, node
from tests.javascript.models import mixed_table


@pytest.fixture(scope="module")
def penguins():
    return po.NaiveBayes().fit(load_penguins(), "species")


def test_numbers_keep_every_bit(penguins):
    written = json.loads(to_javascript(penguins))
    (gaussian,) = (block for block in written["models"][0]["blocks"] if block["density"] == "Gaussian")
    mean = gaussian["parameters"]["mean"]
    assert np.array_equal(np.array(mean["values"]).reshape(mean["shape"]), penguins.theta_)


def test_probabilities_of_zero_are_strings_in_valid_json():
    table = pl.DataFrame({"u": ["a", "b"], "y": [0, 1]})
    written = to_javascript(po.NaiveBayes(alpha=0).fit(table, "y"))
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert '"-inf"' in written


def test_the_file_holds_no_rows(penguins):
    written = json.loads(to_javascript(penguins))
    known = {"format", "posteriori", "kind", "name", "target", "classes", "columns", "class_log_prior", "cuts"}
    assert set(written) == known | {"models", "pool", "levels"}
    assert len(to_javascript(penguins)) < 5_000


def test_the_evaluator_is_one_module_without_imports():
    source = javascript_evaluator()
    assert "import " not in "".join(line for line in source.splitlines() if not line.startswith("//"))
    assert source.isascii() or "−" in source
    assert re.findall(r"^export (.*?)(?:\(|$)", source, re.MULTILINE) == ["{ standardError };", "function load"]


def test_what_cannot_be_written_is_refused_in_one_sentence(penguins):
    with pytest.raises(TypeError, match="give a fitted classifier or a BayesianNetwork"):
        to_javascript("penguins")
    tree = po.ChowLiuTree().fit(mixed_table().drop("y"))
    with pytest.raises(TypeError, match="a ChowLiuTree cannot be written"):
        to_javascript(tree)
    net = po.BayesianNetwork([("a", "b")])
    with pytest.raises(ValueError, match="'a'"):
        to_javascript(net)
    large = po.NaiveBayes(columns=po.Columns(categorical_features=["id"])).fit(
        pl.DataFrame({"id": [2**60, 2**60 + 1] * 9, "y": [0, 1] * 9}), "y"
    )
    with pytest.raises(ValueError, match="make them strings"):
        to_javascript(large)
    text = po.NaiveBayes(columns=po.Columns(text={"body": {"analyzer": "char"}})).fit(
        pl.DataFrame({"body": ["ab", "ba"] * 9, "y": [0, 1] * 9}), "y"
    )
    with pytest.raises(ValueError, match="'body' of text"):
        to_javascript(text)


def test_no_parameter_is_left_out():
    for registration in REGISTRY:
        if registration.density is Grouped:  # written by hand
            continue
        fields = {field.name for field in dataclasses.fields(registration.density.fitted)}
        assert fields <= set(FIELDS[registration.density]) | UNREAD, registration.density


def test_a_cell_of_the_wrong_kind_is_refused_naming_its_column(penguins, tmp_path):
    rows = [{"bill_length_mm": "50"}, {"bill_length_mm": {"inf": 1}}, {"island": "Atlantis"}]
    script = """
const model = load(given.file);
const result = given.rows.map((row) => {
  try { model.posterior(row); return model.unseen(row); } catch (error) { return error.message; }
});
"""
    answers = in_node(script, {"file": to_javascript(penguins), "rows": rows}, tmp_path)
    assert answers[0] == 'column "bill_length_mm" holds "50"; give a number, or null'
    assert "bill_length_mm" in answers[1]
    assert answers[2] == ["island"]


def test_the_example_of_the_docs_runs(penguins, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "explore.md").read_text(encoding="utf-8")
    example = page.split("```js\n")[1].split("```")[0]
    assert len(example.splitlines()) <= 10
    (tmp_path / "penguins.json").write_text(to_javascript(penguins), encoding="utf-8")
    (tmp_path / "posteriori.mjs").write_text(javascript_evaluator(), encoding="utf-8")
    (tmp_path / "example.mjs").write_text(example, encoding="utf-8")
    done = subprocess.run([node(), "example.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    posterior = penguins.scorer()({"bill_length_mm": 46.5, "island": "Dream"})
    assert f"Adelie: {posterior['Adelie']:.11f}"[:-1] in done.stdout


def test_a_model_and_the_evaluator_are_one_module(penguins, tmp_path):
    po.save(penguins, tmp_path / "penguins.posteriori")
    module, run = tmp_path / "penguins.mjs", CommandLine(replaces=True)
    run.succeeds("export", tmp_path / "penguins.posteriori", "-o", module)
    (tmp_path / "use.mjs").write_text(
        'import { model } from "./penguins.mjs"; console.log(JSON.stringify(model.score({ island: "Dream" })));'
    )
    done = subprocess.run([node(), "use.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    written, of_python = json.loads(done.stdout), penguins.scorer()({"island": "Dream"})
    assert written == pytest.approx({str(label): of_python[label] for label in penguins.classes_})
    assert "holds the evaluator too" in run.refused(
        "export", tmp_path / "penguins.posteriori", "-o", module, "--evaluator", tmp_path / "e.mjs"
    )


def test_dates_are_read_as_parts(tmp_path):
    from tests.javascript.models import MODELS

    model, rows = MODELS["dates"]()
    row = rows[0]
    script = """
const model = load(given.file);
const whole = model.posterior({ when: given.when, x: given.x });
const names = model.columns.filter((column) => column.part).map((column) => column.name);
let error = "";
try { model.posterior({ when: "2023-02-31" }); } catch (caught) { error = caught.message; }
const result = { whole: Array.from(whole), names, error };
"""
    given = {"file": to_javascript(model), "when": row["when"].strftime("%Y-%m-%d %H:%M"), "x": row["x"]}
    answer = in_node(script, given, tmp_path)
    assert answer["whole"] == pytest.approx(model.predict_proba(pl.DataFrame([row]))[0], abs=1e-9)
    assert "when.weekday" in answer["names"]
    assert "give a date" in answer["error"]


@pytest.mark.parametrize("distribution", ["multinomial", "compound", "presence", "complement", "scaled"])
def test_sparse_blocks_are_objects_of_counts(distribution, tmp_path):
    rng = np.random.default_rng(6)
    counts = rng.poisson(1.0, (50, 4))
    y = (counts[:, 0] > counts[:, 1]).astype(int)
    words = ("spam", "__proto__", "ham", "été")

    def table(counts):
        numbers = pl.DataFrame({"x": np.linspace(-1, 2, len(counts))})
        return po.tables.Blocks(numbers, {"bag": csr_array(counts)}, words={"bag": words})

    model = po.NaiveBayes(distributions={"bag": distribution}).fit(table(counts), y)
    frame = table(counts[:6])
    rows = [
        {"x": float(x), "bag": {word: int(n) for word, n in zip(words, line, strict=True) if n}}
        for x, line in zip(np.linspace(-1, 2, 6), counts[:6], strict=True)
    ]
    script = """
const model = load(given.file);
const result = given.rows.map((row) => {
  const { bias, factors } = model.explain(row);
  return { posterior: [...model.posterior(row)], bias: [...bias], log: factors.map(({ log }) => [...log]) };
});
"""
    found = in_node(script, {"file": to_javascript(model), "rows": rows}, tmp_path)
    explanation = model.explain(frame)
    assert_allclose([one["posterior"] for one in found], model.predict_proba(frame), atol=1e-9)
    assert_allclose(np.array([one["log"] for one in found]).transpose(0, 2, 1), explanation.log_factors, atol=1e-9)


def test_the_command_writes_a_model_a_network_and_the_evaluator(penguins, tmp_path):
    run = CommandLine(replaces=True)
    model, network = tmp_path / "penguins.posteriori", tmp_path / "net.bif"
    po.save(penguins, model)
    net = po.BayesianNetwork([("a", "b")])
    net.add_cpt("a", {"yes": 0.25, "no": 0.75})
    net.add_cpt("b", {"yes": {"u": 0.5, "v": 0.5}, "no": {"u": 0.125, "v": 0.875}})
    po.write_network(net, network)
    assert json.loads(run.succeeds("export", model)) == json.loads(to_javascript(penguins))
    output, evaluator = tmp_path / "net.json", tmp_path / "posteriori.mjs"
    assert run.succeeds("export", network, "--to", "js", "-o", output, "--evaluator", evaluator) == ""
    assert json.loads(output.read_text()) == json.loads(to_javascript(read_network(network)))
    assert evaluator.read_text(encoding="utf-8") == javascript_evaluator()
    po.save(net, tmp_path / "net.posteriori")
    assert json.loads(run.succeeds("export", tmp_path / "net.posteriori"))["kind"] == "network"
    assert "there is no file" in run.refused("export", tmp_path / "none.posteriori")
    assert "overwrite" in run.refused("export", model, "-o", model)
