"""Files for Hugin, GeNIe and UAI beside pyAgrum and pgmpy: they read what is written, and what they write is read."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks.formats.reading import identifiers

NAMES = ["alarm", "asia", "cancer", "child", "earthquake", "hailfinder", "insurance", "sachs", "survey"]
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def gum():
    return pytest.importorskip("pyagrum", reason="pyagrum is not installed; make oracles installs it")


def assert_same_posteriors(net, peer, gum, known_as):
    """Compare all posteriors given three states that occur together; states have the same order in both."""
    row = net.sample(1, random_state=0).row(0, named=True)
    evidence = {name: row[name] for name in np.random.default_rng(0).choice(net.variables, 3, False).tolist()}
    inference = gum.LazyPropagation(peer)
    inference.setEvidence({known_as[name]: net.states(name).index(state) for name, state in evidence.items()})
    for name, found in net.query(evidence=evidence).items():
        assert_allclose(inference.posterior(known_as[name]).tolist(), found.probabilities, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["net", "xdsl", "uai"])
def test_pyagrum_reads_what_is_written(gum, shared_data, tmp_path, name, suffix):
    net = po.read_network(shared_data / "bif" / f"{name}.bif")
    path = tmp_path / f"{name}.{suffix}"
    po.write_network(net, path)
    peer = gum.loadBN(str(path))
    numbered = {one: str(k) for k, one in enumerate(net.variables)}
    known_as = numbered if suffix == "uai" else identifiers(net.variables)
    assert set(peer.names()) == set(known_as.values())
    assert {(peer.variable(u).name(), peer.variable(v).name()) for u, v in peer.arcs()} == {
        (known_as[parent], known_as[child]) for parent, child in net.edges
    }
    if suffix == "net":
        assert_same_posteriors(net, peer, gum, known_as)
        return
    # Its readers of XDSL and UAI let the first parent vary faster than the last. UAI and SMILE say the last is fastest
    # (docs/networks.md), and so does pgmpy below, so that numbers are compared in the order of the file.
    for cpt in net.cpts:
        numbers = peer.cpt(known_as[cpt.variable]).toarray().ravel()
        assert_allclose(numbers, cpt.probabilities.ravel(), atol=1e-6)


@pytest.mark.parametrize("suffix", ["xdsl", "uai"])
@pytest.mark.parametrize("seed", range(20))
def test_what_pyagrum_writes_with_its_order_of_parents_is_read(gum, tmp_path, suffix, seed):
    gum.initRandom(seed)
    model = gum.randomBN(n=7, ratio_arc=2.5, domain_size=3)
    path = str(tmp_path / f"theirs.{suffix}")
    gum.saveBN(model, path)
    theirs, ours = po.networks.from_pyagrum(model), po.read_network(path)
    known_as = {name: f"v{model.idFromName(name)}" if suffix == "uai" else name for name in theirs.variables}
    assert set(ours.edges) == {(known_as[parent], known_as[child]) for parent, child in theirs.edges}
    for cpt in theirs.cpts:
        table = ours.cpt(known_as[cpt.variable])
        order = [list(table.parents).index(known_as[name]) for name in cpt.parents] + [len(cpt.parents)]
        assert_allclose(table.probabilities.transpose(order), cpt.probabilities, atol=2e-6)  # it writes six digits


@pytest.mark.parametrize("name", [one for one in NAMES if one != "child"])  # it writes >=7.5 without quotes
def test_what_pyagrum_writes_for_hugin_is_read(gum, shared_data, tmp_path, name):
    net = po.read_network(shared_data / "bif" / f"{name}.bif")
    known_as = {one: one for one in net.variables}
    gum.saveBN(po.networks.to_pyagrum(net), str(tmp_path / "theirs.net"))
    again = po.read_network(tmp_path / "theirs.net")
    assert_same_posteriors(again, po.networks.to_pyagrum(net), gum, known_as)


@pytest.mark.parametrize("name", ["asia", "cancer", "child", "earthquake", "survey"])
@pytest.mark.parametrize("suffix", ["net", "xdsl"])  # in UAI it takes the first variable as the child
def test_pgmpy_reads_the_tables_that_are_written(shared_data, tmp_path, name, suffix):
    readwrite = pytest.importorskip("pgmpy.readwrite", reason="pgmpy is not installed; make oracles installs it")
    net = po.read_network(shared_data / "bif" / f"{name}.bif")
    path = tmp_path / f"{name}.{suffix}"
    po.write_network(net, path)
    peer = (readwrite.NETReader if suffix == "net" else readwrite.XDSLReader)(str(path)).get_model()
    known_as = identifiers(net.variables)
    assert set(peer.nodes()) == set(known_as.values())
    for cpt in net.cpts:
        theirs = peer.get_cpds(known_as[cpt.variable])
        order = [theirs.variables.index(known_as[one]) for one in (*cpt.parents, cpt.variable)]
        assert_allclose(theirs.values.transpose(order), cpt.probabilities, atol=1e-9)
