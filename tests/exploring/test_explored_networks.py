"""Networks in the explorer, in a real browser: every bar is that of Python."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from tests.cli.command_line import CommandLine
from tests.exploring.browser import address_of, python_posterior, table_under


def state_button(name, state):
    return f'.node[aria-label="{name}"] button[title="{state}"]'


def assert_bars(browser, net, evidence):
    bars = browser.value(
        "Object.fromEntries([...document.querySelectorAll('.node')].map((n) => [n.getAttribute('aria-label'), "
        "[...n.querySelectorAll('button')].map((b) => Number(b.dataset.value))]))"
    )
    expected = net.query(evidence=evidence, joint=False)
    assert set(bars) == set(net.variables)
    for name in net.variables:
        if name in expected:
            assert_allclose(bars[name], expected[name].probabilities, rtol=0, atol=1e-9)
        else:
            assert bars[name][net.states(name).index(evidence[name])] == 1.0


def test_every_bar_of_a_network_is_that_of_python(browser, network, tmp_path):
    page = tmp_path / "network.html"
    explore(network, path=page)
    browser.open(page.as_uri())
    assert_bars(browser, network, {})
    names = network.variables
    evidence = {
        names[-1]: network.states(names[-1])[0],
        names[len(names) // 2]: network.states(names[len(names) // 2])[-1],
    }
    for name, state in evidence.items():
        browser.click(state_button(name, state))
    assert_bars(browser, network, evidence)
    last = list(evidence)[-1]
    browser.wait(f"decodeURIComponent(location.hash).includes('\"{last}\":')")
    assert json.loads(browser.value("decodeURIComponent(location.hash.slice(1))"))["evidence"] == evidence
    browser.click(state_button(names[-1], evidence.pop(names[-1])))
    assert_bars(browser, network, evidence)
    browser.wait()
    shown = table_under(browser, "sensitivity")
    target = browser.value("document.getElementById('target').value")
    name, nats, *_ = shown[0]
    joint = network.query(target, name, evidence=evidence).probabilities
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    information = np.where(joint > 0, joint * np.log(np.where(joint > 0, joint, 1.0) / product), 0.0).sum()
    assert float(nats) == pytest.approx(information, abs=6e-5)
    assert browser.complaints == []


def test_a_network_by_keys_and_with_soft_evidence(browser, network, tmp_path):
    page = tmp_path / "network.html"
    explore(network, path=page)
    browser.open(page.as_uri())
    name = network.variables[0]
    state = network.states(name)[1]
    browser.value(f"document.querySelector({json.dumps(state_button(name, state))}).focus()")
    browser.key(" ", "Space")
    assert_bars(browser, network, {name: state})
    assert browser.value("document.activeElement.getAttribute('aria-pressed')") == "true"
    browser.key("Enter")
    assert_bars(browser, network, {})
    likelihood = {one: 0.2 + 0.3 * k for k, one in enumerate(network.states(name))}
    browser.open(address_of(page, evidence={name: list(likelihood.items())}))
    assert_bars(browser, network, {name: likelihood})


def test_a_wide_graph_is_wider_than_the_text_and_not_cut_off(browser, tmp_path):
    names = [f"cause {k}" for k in range(7)]
    net = po.BayesianNetwork([(name, f"effect of {name}") for name in names])
    for name in names:
        net.add_cpt(name, {"yes": 0.2, "no": 0.8})
        net.add_cpt(f"effect of {name}", {"yes": {"u": 0.9, "v": 0.1}, "no": {"u": 0.3, "v": 0.7}})
    explore(net, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri(), width=1500)
    for name in (names[0], names[-1]):
        x, y, _ = browser.place(f'.node[aria-label="{name}"] h3')
        assert browser.value(f"document.elementFromPoint({x}, {y}).textContent") == name


def test_a_wide_network_opens_whole_and_is_zoomed(browser, tmp_path):
    names = [f"v{k}" for k in range(14)]
    net = po.BayesianNetwork([(name, f"child of {name}") for name in names])
    for name in names:
        net.add_cpt(name, {"yes": 0.2, "no": 0.8})
        net.add_cpt(f"child of {name}", {"yes": {"u": 0.9, "v": 0.1}, "no": {"u": 0.3, "v": 0.7}})
    explore(net, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri(), width=1300)
    box = "document.querySelector('.network')"
    level = "Number(document.querySelector('.plane').style.zoom)"
    browser.wait(f"{level} > 0 && {level} < 1")
    assert browser.value(f"{box}.scrollWidth - {box}.clientWidth") <= 1
    fitted = browser.value(level)
    browser.click(".zoom button")
    assert browser.value(level) == pytest.approx(1.25 * fitted)
    wheel = f"{box}.dispatchEvent(new WheelEvent('wheel', {{deltaY: -100, ctrlKey: CTRL, cancelable: true}}))"
    assert browser.value(wheel.replace("CTRL", "false"))  # the page scrolls
    assert not browser.value(wheel.replace("CTRL", "true"))
    assert browser.value(level) > 1.25 * fitted
    browser.click(state_button("v13", "yes"))
    assert_bars(browser, net, {"v13": "yes"})
    browser.click(".zoom button:nth-child(3)")
    assert browser.value(level) == pytest.approx(fitted, abs=0.02)
    assert browser.complaints == []


def test_a_tree_is_shown_as_a_network(browser, tmp_path):
    table = load_penguins().select("species", "island", "sex", "bill_length_mm")
    model = po.TreeAugmentedNaiveBayes().fit(table, "species")
    po.save(model, tmp_path / "tan.posteriori")
    CommandLine().succeeds("explore", tmp_path / "tan.posteriori", "--network", "-o", tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    browser.click(state_button("island", "Dream"))
    bars = browser.value(
        "[...document.querySelectorAll('.node[aria-label=species] button')].map((b) => Number(b.dataset.value))"
    )
    assert_allclose(bars, python_posterior(model, {"island": "Dream"}), atol=1e-9)
    assert len(browser.value("[...document.querySelectorAll('.arrows path[stroke-width]')].map((p) => 1)")) >= 4
    bayes = po.NaiveBayes().fit(table, "species")
    po.save(bayes, tmp_path / "nb.posteriori")
    CommandLine().succeeds("explore", tmp_path / "nb.posteriori", "--network")
    row = {"island": "Dream", "bill_length_mm": 45.5}
    browser.open(address_of(tmp_path / "nb.html", evidence=row))
    bars = browser.value(
        "[...document.querySelectorAll('.node[aria-label=species] button')].map((b) => Number(b.dataset.value))"
    )
    assert_allclose(bars, python_posterior(bayes, row), atol=1e-9)


def test_a_click_sets_a_variable_and_cuts_the_arrows_into_it(browser, network, tmp_path):
    page = tmp_path / "network.html"
    explore(network, path=page)
    browser.open(page.as_uri())
    name = next(name for name in network.variables if network.dag.parents[name])
    parent, state = network.dag.parents[name][0], network.states(name)[-1]
    cut = "document.querySelectorAll('.arrows path[stroke-dasharray]').length"
    browser.click(state_button(name, state))
    assert_bars(browser, network, {name: state})
    assert browser.value(cut) == 0
    browser.click("#click-sets")
    browser.click(state_button(name, state))  # the observation becomes an intervention
    after = network.do({name: state})
    assert_bars(browser, after, {})
    assert browser.value(cut) == len(network.dag.parents[name])
    assert f"do({name} = {state})" in browser.value("document.getElementById('answer').textContent")
    assert browser.value(f"document.querySelector('.node[aria-label={json.dumps(name)}]').classList.contains('set')")
    browser.click("#click-observes")
    finding = {parent: network.states(parent)[0]}
    browser.click(state_button(parent, finding[parent]))
    assert_bars(browser, after, finding)
    browser.wait(f"decodeURIComponent(location.hash).includes('\"{parent}\":')")
    saved = json.loads(browser.value("decodeURIComponent(location.hash.slice(1))"))
    assert (saved["evidence"], saved["set"]) == (finding, {name: state})
    browser.open(address_of(page, evidence=finding, set={name: state}))
    assert_bars(browser, after, finding)
    browser.click("#click-sets")
    browser.click(state_button(name, state))
    assert_bars(browser, network, finding)
    assert browser.complaints == []


def test_a_hybrid_network_shows_the_densities_of_its_numbers(browser, tmp_path):
    net = po.BayesianNetwork([("machine", "length"), ("length", "weight")])
    net.add_cpt("machine", {"old": 0.3, "new": 0.7})
    net.add_gaussian("length", {"old": 10.2, "new": 10.0}, variance={"old": 0.04, "new": 0.01})
    net.add_gaussian("weight", 1.0, {"length": 2.0}, 0.25)
    explore(net, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())

    def card(name):
        return f"document.querySelector('.node[aria-label={name}]')"

    def assert_shown(expected, evidence):
        shown = browser.value(f"[{card('length')}.dataset.mean, {card('length')}.dataset.deviation].map(Number)")
        density = expected.query("length", evidence=evidence)
        assert_allclose(shown, [density.mean, density.standard_deviation], rtol=1e-9)
        bars = f"[...{card('machine')}.querySelectorAll('button')].map((b) => Number(b.dataset.value))"
        assert_allclose(browser.value(bars), expected.query("machine", evidence=evidence).probabilities, atol=1e-9)

    def type_weight(number):
        browser.value(
            f"(() => {{ const field = {card('weight')}.querySelector('input'); field.value = '{number}'; "
            "field.dispatchEvent(new Event('change')); })()"
        )

    assert_shown(net, {})
    assert browser.value(f"{card('length')}.querySelectorAll('polyline').length") == 2
    type_weight(22)
    assert_shown(net, {"weight": 22.0})
    browser.wait()
    assert browser.value("document.getElementById('most-probable')") is None
    assert browser.complaints == []
    browser.click("#click-sets")
    type_weight(23)
    assert_shown(net.do({"weight": 23.0}), {})
    type_weight("")
    assert_shown(net, {})
    browser.open(address_of(tmp_path / "page.html", evidence={"weight": 21.5, "machine": 3}))
    assert_shown(net, {"weight": 21.5})
    assert browser.complaints == []


def test_many_children_of_one_variable_stand_in_several_layers(browser, tmp_path):
    net = po.BayesianNetwork([("cause", f"effect {k}") for k in range(24)])
    net.add_cpt("cause", {"yes": 0.2, "no": 0.8})
    for k in range(24):
        net.add_cpt(f"effect {k}", {"yes": {"u": 0.9, "v": 0.1}, "no": {"u": 0.3, "v": 0.7}})
    explore(net, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri(), width=1300)
    tops = browser.value("[...document.querySelectorAll('.node')].map((e) => e.style.top)")
    assert sorted(tops.count(top) for top in set(tops)) == [1, 4, 10, 10]
    level = browser.value("Number(document.querySelector('.plane').style.zoom)")
    assert level > 0.4  # 0.3 in one layer
