"""Conditioning gives the exact answer with tables of any smaller size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from tests.networks.test_networks import random_network


@given(st.integers(0, 10_000), st.sampled_from([8, 16, 40]))
def test_conditioning_equals_one_tree(seed, most):
    net = random_network(seed, n=7)
    small = po.BayesianNetwork(**(net.to_parameters() | {"max_table_size": most}))
    rng = np.random.default_rng(seed)
    row = net.sample(1, random_state=seed).row(0, named=True)
    names = rng.permutation(net.variables).tolist()
    evidence = {names[0]: row[names[0]]}
    evidence[names[1]] = {state: float(state == row[names[1]]) + 0.3 for state in net.states(names[1])}
    for name, found in small.query(evidence=evidence, method="conditioning").items():
        assert_allclose(found.probabilities, net.query(name, evidence=evidence).probabilities, atol=1e-10)
    event = {names[2]: row[names[2]]}
    assert_allclose(
        small.probability(event, evidence, method="conditioning"), net.probability(event, evidence), atol=1e-10
    )


def test_a_joint_of_several_variables():
    net = random_network(4, n=7, zeros=False)
    small = po.BayesianNetwork(**(net.to_parameters() | {"max_table_size": 24}))
    asked = net.variables[:2]
    found = small.query(*asked, method="conditioning")
    assert_allclose(found.probabilities, net.query(*asked).probabilities, atol=1e-12)


def test_the_error_of_a_large_tree_names_conditioning():
    net = po.BayesianNetwork([("a", "c"), ("b", "c")], max_table_size=7)
    net.add_cpt("a", {"0": 0.5, "1": 0.5})
    net.add_cpt("b", {"0": 0.5, "1": 0.5})
    net.add_cpt("c", [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]], states=["0", "1"])
    with pytest.raises(ValueError, match="method='conditioning' or 'sampling'"):
        net.query("a", evidence={"c": "1"})
    assert_allclose(net.query("a", evidence={"c": "1"}, method="conditioning").probabilities, [0.5, 0.5])
    impossible = {"a": "0", "b": "0", "c": "1"}
    with pytest.raises(ValueError, match="probability 0"):
        net.query(evidence={"a": "0", "b": "0"} | {"c": {"0": 0.0, "1": 0.5}}, method="conditioning")
    assert net.probability(impossible, method="conditioning") == 0.0
