"""A browser and the pages that several tests open."""

import os
from pathlib import Path

import numpy as np
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from posteriori.networks import read_network
from tests.exploring.browser import Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def penguins(tmp_path_factory):
    table = load_penguins()
    model = po.GenerativeClassifier(members=["nb", "lda", "tan"], folds=2, random_state=1).fit(table, "species")
    path = tmp_path_factory.mktemp("pages") / "penguins.html"
    explore(model, table, path=path)
    return model, path


@pytest.fixture(scope="session")
def network():
    data = Path(os.environ.get("POSTERIORI_DATA", "none")) / "bif" / "alarm.bif"
    if data.exists():
        return read_network(data)
    net = po.BayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
    for name, probability in (("a", 0.2), ("b", 0.3)):
        net.add_cpt(name, {"TRUE": probability, "FALSE": 1 - probability})
    net.add_cpt("c", np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.05, 0.95]]]), states=["TRUE", "FALSE"])
    net.add_cpt("d", np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), states=["LOW", "NORMAL", "HIGH"])
    return net
