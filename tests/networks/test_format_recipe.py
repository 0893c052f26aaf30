"""The recipe that adds a network format: `examples/extending/network_format.py`."""

import numpy as np
import pytest

import posteriori as po
from examples.extending import network_format
from posteriori.networks.formats import files


@pytest.fixture
def lines_format():
    network_format.register()
    yield
    files.FORMATS.remove(network_format.LINES)


def test_the_format_of_the_recipe_is_read_and_written(lines_format, tmp_path):
    net = po.BayesianNetwork([("rain", "wet"), ("hose", "wet")])
    net.add_cpt("rain", {"no": 0.8, "yes": 0.2})
    net.add_cpt("hose", {"off": 0.7, "on": 0.3})
    rng = np.random.default_rng(0)
    p = rng.random((2, 2))
    net.add_cpt("wet", np.stack([p, 1 - p], axis=-1), states=["no", "yes"], parents=["rain", "hose"])
    path = tmp_path / "net.lines"
    po.write_network(net, path)
    assert po.read_network(path) == net
    path.write_text("NETWORK\nrain: no yes = 0.8 0.1\n")
    with pytest.raises(ValueError, match=r"net.lines', line 2: the table of 'rain' sums to 0.9"):
        po.read_network(path)
    path.write_text("NETWORK\nrain | wind: no yes = 0.8 0.2\n")
    with pytest.raises(ValueError, match="line 2: there is no variable 'wind'"):
        po.read_network(path)
