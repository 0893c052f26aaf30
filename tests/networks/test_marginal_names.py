"""What marginals answer about variables that the query did not ask for."""

import pytest

import posteriori as po


@pytest.fixture
def network():
    net = po.BayesianNetwork([("d", "a"), ("a", "b")])
    net.add_cpt("d", [0.4, 0.6], states=["u", "v"])
    for name in ("a", "b"):
        net.add_cpt(name, [[0.9, 0.1], [0.2, 0.8]], states=["u", "v"])
    return net


@pytest.mark.parametrize("method", ["exact", "conditioning", "sampling"])
def test_marginals_say_why_a_variable_is_not_among_them(network, method):
    answer = network.query(joint=False, evidence={"d": "u"}, method=method, random_state=0)
    assert list(answer) == ["a", "b"]
    with pytest.raises(ValueError, match="'d' is evidence, 'u'"):
        answer["d"]
    with pytest.raises(ValueError, match="the query did not ask for 'b'"):
        network.query("a", joint=False, method=method, random_state=0)["b"]
    with pytest.raises(ValueError, match="no variable 'e'"):
        answer["e"]
