"""Networks, their answers and explanations as HTML for notebooks."""

import re
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import posteriori as po


@pytest.fixture(scope="module")
def network():
    net = po.BayesianNetwork([("rain", "<b>wet</b>"), ("sprinkler", "<b>wet</b>")])
    net.add_cpt("rain", {"yes": 0.25, "no": 0.75})
    net.add_cpt("sprinkler", {"on & off": 0.5, "</td>": 0.5})
    net.add_cpt("<b>wet</b>", np.array([[[0.9, 0.1], [0.8, 0.2]], [[0.6, 0.4], [0.125, 0.875]]]), states=["y", "n"])
    return net


def displays(net):
    evidence = {"<b>wet</b>": "y"}
    return {
        "network": net,
        "table": net.cpt("<b>wet</b>"),
        "joint": net.query("rain", "sprinkler", evidence=evidence),
        "marginals": net.query(evidence=evidence, joint=False),
        "conditional": net.conditional("rain", given="<b>wet</b>"),
        "most probable": net.most_probable(evidence),
        "trails": net.active_trails("rain", "sprinkler", "<b>wet</b>"),
        "sampled": net.query("rain", evidence=evidence, method="sampling", n_samples=100, random_state=0),
    }


def parsed(display):
    """Return the elements; the markup has to be well formed."""
    return ElementTree.fromstring(f"<div>{display._repr_html_()}</div>")


@pytest.mark.parametrize("name", ["network", "table", "joint", "marginals", "conditional", "most probable", "trails"])
def test_displays_are_well_formed_and_hold_names_as_text(network, name):
    written = parsed(displays(network)[name])
    assert "<b>wet</b>" in "".join(written.itertext()) or name == "joint"
    assert written.find(".//b") is None


def test_probabilities_are_numbers_and_bars(network):
    joint = displays(network)["joint"]
    rows = parsed(joint).findall(".//tbody/tr")
    assert len(rows) == 4
    for row, p in zip(rows, joint.probabilities.ravel(), strict=True):
        cell = row.findall("td")[-1]
        assert cell.text == f"{p:.6f}"
        assert float(re.search(r"\) ([0-9.]+)%", cell.get("style"))[1]) == pytest.approx(100 * p, abs=0.06)


def test_standard_errors_have_a_column(network):
    head = [one.text for one in parsed(displays(network)["sampled"]).findall(".//th")]
    assert head == ["rain", "probability", "standard error"]


def test_long_tables_state_what_they_leave_out():
    states = [f"s{k}" for k in range(60)]
    net = po.BayesianNetwork(variables=["v"])
    net.add_cpt("v", np.full(60, 1 / 60), states=states)
    assert "… and 20 more rows" in net.query("v")._repr_html_()
    assert "… and 48 more columns" in net.cpt("v")._repr_html_()
    large = po.BayesianNetwork(variables=[f"v{k}" for k in range(100)])
    assert "… and 60 more variables" in large._repr_html_()


def test_an_explanation_shows_bayes_rule_of_its_first_rows():
    table = pl.DataFrame({"<i>x</i>": [1.0, 2.0, 3.0, 4.0] * 2, "u": ["a", "b"] * 4, "y": ["p", "p", "q", "q"] * 2})
    explanation = po.NaiveBayes().fit(table, "y").explain(table)
    written = parsed(explanation)
    assert len(written.findall("table")) == 5
    assert "… and 3 more rows" in "".join(written.itertext())
    assert written.find(".//i") is None
    first = [[cell.text for cell in row] for row in written.findall("table")[0].findall("./tbody/tr")]
    assert [line[0] for line in first] == ["prior", "p(<i>x</i> = 1)", "p(u = a)", "sum", "posterior"]
    assert [float(cell) for cell in first[-1][1:]] == pytest.approx(explanation.posterior[0].tolist(), abs=1e-6)
    assert [float(cell) for cell in first[1][1:]] == pytest.approx(explanation.log_factors[0, :, 0].tolist(), abs=6e-4)
