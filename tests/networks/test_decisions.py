"""Value of information, sensitivity and strength of edges: equal to what changed networks give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks import CPT
from tests.networks.test_networks import random_network


@given(st.integers(0, 10_000))
def test_a_sensitivity_function_answers_as_the_changed_network(seed):
    net = random_network(seed, n=5, zeros=False)
    rng = np.random.default_rng(seed)
    open_names = [name for name in net.variables if len(net.states(name)) > 1]
    if len(open_names) < 2:
        return
    target, known = rng.choice(open_names, 2, replace=False).tolist()
    event, evidence = {target: net.states(target)[0]}, {known: net.states(known)[1]}
    found = net.sensitivity(event, evidence, change=0.5)
    assert_allclose(found.probability, net.probability(event, evidence), rtol=1e-10)
    assert_allclose(found.without[known], net.probability(event), rtol=1e-10)
    ranges = [one.high - one.low for one in found.parameters]
    assert ranges == sorted(ranges, reverse=True)
    for one in found.parameters[:6]:
        for theta in (0.5 * one.value, min(1.5 * one.value, 1.0), 0.25):
            cpt = net.cpt(one.variable)
            table = cpt.probabilities.copy()
            row = tuple(net.states(name).index(state) for name, state in one.parents.items())
            k = cpt.states.index(one.state)
            table[row] *= (1 - theta) / (1 - one.value)
            table[(*row, k)] = theta
            changed = po.BayesianNetwork(
                cpts=[CPT(cpt.variable, cpt.states, cpt.parents, table) if c is cpt else c for c in net.cpts]
            )
            assert_allclose(one(theta), changed.probability(event, evidence), rtol=1e-9)
        step = 1e-6
        assert_allclose(
            one.derivative, (one(one.value + step) - one(one.value - step)) / (2 * step), rtol=1e-4, atol=1e-9
        )


@given(st.integers(0, 10_000))
def test_the_value_of_information_is_the_gain_from_knowing_it(seed):
    net = random_network(seed, n=5)
    rng = np.random.default_rng(seed)
    target = max(net.variables, key=lambda name: len(net.states(name)))
    costs = {action: {state: rng.normal() for state in net.states(target)} for action in ("a", "b", "c")}

    def least(posterior):
        return min(sum(costs[a][s] * posterior[s] for s in net.states(target)) for a in costs)

    found = net.value_of_information(
        target, costs=costs, test_costs={net.variables[0]: 0.1} if net.variables[0] != target else {}
    )
    now = least(net.query(target).to_dict())
    assert_allclose(found.expected_cost, now, atol=1e-10)
    for one in found:
        after = 0.0
        information = 0.0
        for state, p in net.query(one.variable).to_dict().items():
            if p > 0:
                posterior = net.query(target, evidence={one.variable: state}).to_dict()
                after += p * least(posterior)
                prior = net.query(target).to_dict()
                information += p * sum(q * np.log(q / prior[s]) for s, q in posterior.items() if q > 0)
        assert_allclose(one.saved, now - after, atol=1e-9)
        assert_allclose(one.information, information, atol=1e-9)
    nets = [one.net_value for one in found]
    assert nets == sorted(nets, reverse=True)


def test_the_strength_of_an_edge_is_its_information():
    net = po.BayesianNetwork([("a", "c"), ("b", "c")])
    net.add_cpt("a", {"0": 0.5, "1": 0.5})
    net.add_cpt("b", {"0": 0.5, "1": 0.5})
    net.add_cpt("c", [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]], states=["0", "1"])
    strengths = net.arc_strengths()  # exclusive or: nothing alone, everything together
    assert_allclose([strengths["a", "c"], strengths["b", "c"]], np.log(2))
    net.add_cpt("c", [[[0.7, 0.3], [0.1, 0.9]]] * 2)
    assert net.arc_strengths()["a", "c"] == pytest.approx(0.0, abs=1e-12)


def test_errors_name_what_is_wrong():
    net = po.BayesianNetwork([("ill", "test")])
    net.add_cpt("ill", {"yes": 0.1, "no": 0.9})
    net.add_cpt("test", {"yes": {"+": 0.9, "-": 0.1}, "no": {"+": 0.05, "-": 0.95}})
    for call, message in (
        (lambda: net.value_of_information("ill", {"ill": "yes"}), "is known"),
        (lambda: net.value_of_information("ill", costs={"treat": {"yes": 1}}), "the cost of 'treat' where ill = 'no'"),
        (lambda: net.value_of_information("ill", costs={}), "names no action"),
        (lambda: net.value_of_information("ill", candidates=["ill"]), "leave it out of the candidates"),
        (lambda: net.sensitivity({"ill": "yes"}, {"ill": "no"}), "contradicts the evidence"),
        (lambda: net.sensitivity({}, {}), "the event is empty"),
        (lambda: net.sensitivity({"ill": "yes"}, change=2), "change is 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert net.value_of_information("ill", {"test": "+"}).values == ()
    assert "without" in repr(net.sensitivity({"ill": "yes"}, {"test": "+"}))
    continuous = po.BayesianNetwork(variables=["x"])
    continuous.add_gaussian("x")
    with pytest.raises(ValueError, match="'x' is continuous"):
        continuous.arc_strengths()
