"""Networks, their answers and explanations as HTML for notebooks."""

import re
import subprocess
import sys
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


SVG = "{http://www.w3.org/2000/svg}"


def boxes(net):
    """Return the groups of the picture that hold a box, by the first line of the tooltip."""
    groups = parsed(net).findall(f".//{SVG}svg/{SVG}g")
    with_box = [one for one in groups if one.find(f"{SVG}rect") is not None]
    return {one.find(f"{SVG}title").text.split("\n")[0]: one for one in with_box}


def test_a_network_is_a_graph_with_marginals_as_bars(network):
    found = boxes(network)
    assert list(found) == list(network.variables)
    marginals = network.query(joint=False)
    for name, box in found.items():
        lengths = [float(one.get("width")) for one in box.findall(f"{SVG}rect")[1:]]
        shares = [filled / whole for whole, filled in zip(lengths[::2], lengths[1::2], strict=True)]
        assert shares == pytest.approx(marginals[name].probabilities.tolist(), abs=1e-3)
    arrows = [one.text for one in parsed(network).iter(f"{SVG}title") if "→" in one.text]
    assert sorted(arrows) == ["rain → <b>wet</b>", "sprinkler → <b>wet</b>"]


def test_arrows_lead_down_and_boxes_do_not_overlap():
    net = po.BayesianNetwork([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")])
    found = {name: box.find(f"{SVG}rect") for name, box in boxes(net).items()}
    place = {name: [float(box.get(key)) for key in ("x", "y", "width", "height")] for name, box in found.items()}
    for parent, child in net.edges:
        assert place[parent][1] + place[parent][3] < place[child][1]
    assert place["b"][0] + place["b"][2] < place["c"][0] or place["c"][0] + place["c"][2] < place["b"][0]


def test_a_network_without_tables_has_boxes_with_names_only():
    net = po.BayesianNetwork([("a", "b")])
    assert [len(box.findall(f"{SVG}rect")) for box in boxes(net).values()] == [1, 1]
    assert parsed(net).find("details") is not None


def test_many_states_are_one_line_with_their_sum():
    net = po.BayesianNetwork(variables=["v"])
    net.add_cpt("v", np.full(60, 1 / 60), states=[f"s{k}" for k in range(60)])
    texts = [one.text for one in boxes(net)["v"].findall(f"{SVG}text")]
    assert texts[-2:] == ["51 more states", "85%"]


def test_a_fitted_network_classifier_shows_what_it_learned(network):
    cases = network.sample(50, random_state=0)
    model = po.networks.NetworkClassifier(network, "rain")
    assert '<svg xmlns="http://www.w3.org/2000/svg" role' not in model._repr_html_()
    model.fit(cases.drop("rain"), cases["rain"])
    assert model.network_._repr_html_() in model._repr_html_()
    assert model._repr_html_().count("parameters, by scikit-learn") == 1


def test_states_that_look_alike_keep_their_bars():
    net = po.BayesianNetwork(variables=["v"])
    net.add_cpt("v", [0.25, 0.75], states=["x" * 90 + "1", "x" * 90 + "2"])
    assert [one.text for one in boxes(net)["v"].findall(f"{SVG}text")][2::2] == ["25%", "75%"]


def test_continuous_variables_have_bars_of_intervals():
    net = po.BayesianNetwork([("x", "y")])
    net.add_gaussian("x", intercept=0.0, variance=1.0)
    net.add_gaussian("y", intercept=1.0, coefficients=[2.0], variance=1.0)
    assert [len(box.findall(f"{SVG}rect")) for box in boxes(net).values()] == [15, 15]


def test_networks_of_more_than_40_variables_are_tables():
    net = po.BayesianNetwork(variables=[f"v{k}" for k in range(41)])
    assert not boxes(net)
    assert "… and 1 more variables" in net._repr_html_()


def test_pictures_and_plots_do_not_import_matplotlib():
    code = (
        "import sys, posteriori as po, posteriori.plotting; net = po.BayesianNetwork([('a', 'b')]); "
        "net._repr_html_(); assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


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
