"""Networks in JavaScript: marginals, p(evidence), most probable states and d-separation are those of Python."""

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.javascript import to_javascript
from posteriori.networks import read_network
from tests.javascript.engines import in_node

SCRIPT = """
const plain = (numbers) => Array.from(numbers, (x) => Number.isFinite(x) ? x : String(x));
const result = given.map(({ file, cases, pairs }) => {
  const net = load(file);
  return {
    cases: cases.map((evidence) => {
      const found = evidence === null ? {} : evidence;
      const most = net.mostProbable(found);
      return {
        marginals: Object.fromEntries(Object.entries(net.marginals(found)).map(([name, p]) => [name, plain(p)])),
        log_evidence: plain([net.logEvidence(found)])[0],
        states: most.states,
        log_probability: plain([most.logProbability])[0],
      };
    }),
    separated: pairs.map(([x, y, others]) => net.dSeparated(x, y, others)),
    active: pairs.map(([x, y, others]) => net.trails(x, y, others, 500).some((trail) => trail.active)),
  };
});
"""


def random_network(rng, n=9):
    names = [f"v{k}" for k in range(n)]
    edges = [(names[i], names[j]) for j in range(n) for i in range(j) if rng.random() < 0.3][:14]
    states = {name: [f"s{k}" for k in range(rng.integers(2, 4))] for name in names}
    net = po.BayesianNetwork(edges, variables=names, states=states)
    for name in names:
        parents = [a for a, b in edges if b == name]
        shape = [len(states[parent]) for parent in parents]
        table = rng.dirichlet(np.full(len(states[name]), 0.7), size=shape)
        if not parents or rng.random() < 0.7:
            net.add_cpt(name, table, parents=parents)
        else:  # a deterministic table: probabilities of 0
            net.add_cpt(name, np.eye(len(states[name]))[table.argmax(axis=-1)], parents=parents)
    return net


def cases_of(net, rng, n=6):
    """Return evidence: none, hard, a set of states, and soft; all possible, because one case was drawn."""
    cases = [{}]
    rows = net.sample(n, random_state=3).to_dicts()
    for k, row in enumerate(rows):
        names = rng.choice(list(net.variables), size=1 + k % 4, replace=False).tolist()
        evidence = {name: row[name] for name in names}
        if k % 3 == 1:
            evidence[names[0]] = [row[names[0]], net.states(names[0])[0]]
        if k % 3 == 2:
            evidence[names[0]] = {s: 0.3 + 0.5 * i for i, s in enumerate(net.states(names[0]))}
        cases.append(evidence)
    return cases


def pairs_of(net, rng, n=12):
    names = list(net.variables)
    found = []
    for k in range(n):
        x, y, *others = rng.choice(names, size=min(2 + k % 3, len(names)), replace=False).tolist()
        found.append([x, y, others])
    return found


@pytest.fixture(scope="module")
def networks():
    rng = np.random.default_rng(0)
    nets = [random_network(rng) for _ in range(6)]
    folder = Path(os.environ.get("POSTERIORI_DATA", "none")) / "bif"
    nets += [read_network(path) for name in ("alarm", "win95pts") for path in sorted(folder.glob(f"{name}.bif*"))]
    return [(net, cases_of(net, rng), pairs_of(net, rng)) for net in nets]


@pytest.fixture(scope="module")
def answers(networks, tmp_path_factory):
    given = [{"file": to_javascript(net), "cases": cases, "pairs": pairs} for net, cases, pairs in networks]
    return in_node(SCRIPT, given, tmp_path_factory.mktemp("node"))


def test_every_marginal_is_that_of_python(networks, answers):
    for (net, cases, _), found in zip(networks, answers, strict=True):
        for evidence, result in zip(cases, found["cases"], strict=True):
            expected = net.query(evidence=evidence, joint=False)
            assert len(result["marginals"]) == len(net.variables)
            for name in net.variables:
                if name in expected:
                    assert_allclose(result["marginals"][name], expected[name].probabilities, rtol=0, atol=1e-9)
                else:  # the state is known
                    (state,) = set(np.ravel(evidence[name]).tolist())
                    assert result["marginals"][name][net.states(name).index(state)] == 1.0


def test_evidence_and_most_probable_states_are_those_of_python(networks, answers):
    for (net, cases, _), found in zip(networks, answers, strict=True):
        for evidence, result in zip(cases, found["cases"], strict=True):
            most = net.most_probable(evidence)
            log_evidence = most.log_probability - np.log(most.probability)
            assert_allclose(result["log_evidence"], log_evidence, atol=1e-8)
            assert_allclose(result["log_probability"], most.log_probability, atol=1e-8)
            states = {name: net.states(name)[k] for name, k in zip(net.variables, result["states"], strict=True)}
            ties = net.probability(states, given={}) > 0
            assert ties


def test_impossible_evidence_has_probability_0_and_no_marginals(tmp_path):
    net = po.BayesianNetwork([("a", "b")])
    net.add_cpt("a", {"yes": 0.25, "no": 0.75})
    net.add_cpt("b", {"yes": {"u": 1.0, "v": 0.0}, "no": {"u": 1.0, "v": 0.0}})
    given = [{"file": to_javascript(net), "cases": [{"b": "v"}], "pairs": []}]
    (answer,) = in_node(SCRIPT.replace("net.mostProbable(found)", "{ states: [], logProbability: 0 }"), given, tmp_path)
    (case,) = answer["cases"]
    assert case["log_evidence"] == "-Infinity"
    assert case["marginals"]["a"] == ["NaN", "NaN"]


def test_d_separation_is_that_of_python(networks, answers):
    for (net, _, pairs), found in zip(networks, answers, strict=True):
        assert found["separated"] == [net.d_separated(x, y, others) for x, y, others in pairs]
        if len(net.variables) < 10:  # all trails of a small network are listed
            assert found["active"] == [not separated for separated in found["separated"]]


def test_evidence_about_no_state_is_refused(tmp_path):
    net = random_network(np.random.default_rng(1))
    cases = [{"v0": "no such"}, {"v0": ["s0", "no such"]}, {"v0": {"s0": 1}}, {"none": "s0"}]
    script = """
const net = load(given.file);
const result = given.cases.map((evidence) => {
  try { net.query(evidence); return ""; } catch (error) { return error.message; }
});
"""
    found = in_node(script, {"file": json.loads(to_javascript(net)), "cases": cases}, tmp_path)
    assert all('"v0"' in message for message in found[:3])
    assert "no variable" in found[3]


def test_an_intervention_has_the_numbers_of_python(networks, tmp_path):
    script = """
const result = given.map(({ file, settings, evidence, pairs }) => {
  const net = load(file).do(settings);
  const { marginals, logEvidence } = net.query(evidence);
  return {
    marginals: marginals.map((p) => Array.from(p)),
    log_evidence: logEvidence,
    separated: pairs.map(([x, y, others]) => net.dSeparated(x, y, others)),
  };
});
"""
    cases, afters = [], []
    for net, _, pairs in networks:
        child, below = [name for name in net.variables if net.dag.parents[name]][:2]  # edges into both are cut
        settings = {child: net.states(child)[0], below: net.states(below)[-1]}
        after = net.do(settings)
        seen = [name for name in net.variables if name not in settings][-2:]
        row = after.sample(1, random_state=5).to_dicts()[0]
        evidence = {name: row[name] for name in seen}
        cases.append({"file": to_javascript(net), "settings": settings, "evidence": evidence, "pairs": pairs})
        afters.append(after)
    for case, after, found in zip(cases, afters, in_node(script, cases, tmp_path), strict=True):
        expected = after.query(evidence=case["evidence"], joint=False)
        for name, marginal in zip(after.variables, found["marginals"], strict=True):
            if name in expected:
                assert_allclose(marginal, expected[name].probabilities, rtol=0, atol=1e-9)
        assert_allclose(found["log_evidence"], np.log(after.probability(case["evidence"])), atol=1e-8)
        assert found["separated"] == [after.d_separated(x, y, others) for x, y, others in case["pairs"]]


def test_an_intervention_on_no_state_is_refused(tmp_path):
    script = """
const result = given.settings.map((one) => {
  try { load(given.file).do(one); return ""; } catch (error) { return error.message; }
});
"""
    net = random_network(np.random.default_rng(1))
    given = {"file": json.loads(to_javascript(net)), "settings": [{"v0": "no such"}, {"none": "s0"}]}
    unknown_state, unknown_name = in_node(script, given, tmp_path)
    assert '"v0" is set to none of its states' in unknown_state
    assert "no variable" in unknown_name


def hybrid_network(rng, n=9):
    """Return a network of discrete variables, then continuous ones with parents of both kinds."""
    names = [f"v{k}" for k in range(n)]
    discrete = names[: n // 2]
    edges = [(names[i], names[j]) for j in range(n) for i in range(j) if rng.random() < 0.35][:16]
    states = {name: [f"s{k}" for k in range(rng.integers(1, 4))] for name in discrete}
    net = po.BayesianNetwork(edges, variables=names, states=states)
    for name in names:
        parents = [a for a, b in edges if b == name]
        shape = [len(states[parent]) for parent in parents if parent in states]
        if name in states:
            net.add_cpt(name, rng.dirichlet(np.ones(len(states[name])), size=shape), parents=parents)
        else:
            slopes = {parent: rng.normal(size=shape) for parent in parents if parent not in states}
            net.add_gaussian(name, rng.normal(size=shape), slopes, rng.uniform(0.2, 2.0, size=shape))
    return net


def test_densities_of_hybrid_networks_are_those_of_python(tmp_path):
    script = """
const result = given.map(({ file, evidence, settings }) => {
  const net = load(file).do(settings);
  const { marginals, logEvidence } = net.query(evidence);
  const numbers = (one) => one.mean === undefined ? Array.from(one) : [one.mean, one.deviation, one.density(0.5)];
  return { marginals: marginals.map(numbers), log_evidence: logEvidence };
});
"""
    rng = np.random.default_rng(4)
    cases, afters = [], []
    for k in range(30):
        net = hybrid_network(rng)
        row = net.sample(1, random_state=k).to_dicts()[0]
        settings = {name: row[name] for name in rng.choice(net.variables, size=k % 3, replace=False).tolist()}
        left = [name for name in net.variables if name not in settings]
        evidence = {name: row[name] for name in rng.choice(left, size=k % 5, replace=False).tolist()}
        after = net.do(settings)
        cases.append({"file": json.loads(to_javascript(net)), "evidence": evidence, "settings": settings})
        afters.append((after, set(settings)))
    for case, (after, is_set), found in zip(cases, afters, in_node(script, cases, tmp_path), strict=True):
        expected = after.query(evidence=case["evidence"], joint=False)
        for name, marginal in zip(after.variables, found["marginals"], strict=True):
            if name in case["evidence"]:
                continue
            of_python = expected[name]
            if name in {one.variable for one in after.gaussians}:
                numbers = [of_python.mean, of_python.standard_deviation]
                assert_allclose(marginal[:2], numbers, rtol=1e-9, atol=1e-9)
                if name not in is_set:
                    assert_allclose(marginal[2], of_python.pdf([0.5])[0], rtol=1e-8)
            else:
                assert_allclose(marginal, of_python.probabilities, rtol=0, atol=1e-9)
        if case["evidence"]:
            codes = pl.DataFrame([case["evidence"]])
            assert_allclose(found["log_evidence"], after.log_likelihood(codes)[0], atol=1e-8)


def test_findings_must_be_numbers_and_numbers_have_densities(tmp_path):
    net = po.BayesianNetwork([("x", "y")])
    net.add_gaussian("x", 0.0, variance=1.0)
    net.add_gaussian("y", 1.0, {"x": 2.0}, 0.0)
    script = """
const net = load(given);
const result = [{ x: 1, y: 3 }, { x: "high" }].map((evidence) => {
  try { net.query(evidence); return ""; } catch (error) { return error.message; }
});
result.push(net.query({ y: 5 }).marginals.map((one) => [one.mean, one.deviation]));
"""
    singular, no_number, given_y = in_node(script, json.loads(to_javascript(net)), tmp_path)
    assert '"x", "y" has no density' in singular
    assert "give a number" in no_number
    assert_allclose(given_y, [[2.0, 0.0], [5.0, 0.0]], atol=1e-12)


def test_a_hybrid_network_that_is_too_large_is_refused():
    causes = [f"c{k}" for k in range(24)]
    net = po.BayesianNetwork([(name, f"x{k}") for k, name in enumerate(causes)] + [(f"x{k}", "sum") for k in range(24)])
    for k, name in enumerate(causes):
        net.add_cpt(name, {"yes": 0.5, "no": 0.5})
        net.add_gaussian(f"x{k}", {"yes": 0.0, "no": 1.0})
    net.add_gaussian("sum", 0.0, dict.fromkeys((f"x{k}" for k in range(24)), 1.0))
    with pytest.raises(ValueError, match="too much for a browser"):
        to_javascript(net)
