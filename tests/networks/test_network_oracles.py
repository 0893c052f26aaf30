"""Network files and posteriors beside pyAgrum and pgmpy: what they write is read, what is written they read."""

from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po

NAMES = ("alarm", "asia", "cancer", "child", "earthquake", "hailfinder", "insurance", "sachs", "survey", "water")


@pytest.fixture(scope="module")
def gum():
    return pytest.importorskip("pyagrum", reason="pyagrum is not installed; make oracles installs it")


def assert_same_posteriors(net, peer, gum):
    rng = np.random.default_rng(0)
    row = net.sample(1, random_state=0).row(0, named=True)
    evidence = {name: row[name] for name in rng.choice(net.variables, min(3, len(net.variables) - 1), False).tolist()}
    inference = gum.LazyPropagation(peer)
    inference.setEvidence(evidence)
    for name, found in net.query(evidence=evidence).items():
        theirs = dict(zip(peer.variable(name).labels(), inference.posterior(name).tolist(), strict=True))
        # It reads numbers in single precision and writes six digits of them.
        assert_allclose(found.probabilities, [theirs[state] for state in net.states(name)], atol=2e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["bif", "bifxml"])
def test_pyagrum_reads_what_is_written(gum, shared_data, tmp_path, name, suffix):
    if (name, suffix) == ("child", "bif"):
        pytest.skip("pyAgrum's BIF reader knows no state such as Asy/Patch")
    net = po.read_network(shared_data / "bif" / f"{name}.bif")
    path = tmp_path / f"{name}.{suffix}"
    po.write_network(net, path)
    peer = gum.loadBN(str(path))
    assert set(peer.names()) == set(net.variables)
    assert {(peer.variable(u).name(), peer.variable(v).name()) for u, v in peer.arcs()} == set(net.edges)
    assert_same_posteriors(net, peer, gum)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:(?s).*being rounded:UserWarning")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["bif", "bifxml"])
def test_what_pyagrum_writes_is_read(gum, shared_data, tmp_path, name, suffix):
    if (name, suffix) in (("child", "bif"), ("water", "bif"), ("child", "bifxml")):
        pytest.skip("pyAgrum refuses to write states such as 20_MG_L in BIF, and does not escape < in XML")
    po.write_network(po.read_network(shared_data / "bif" / f"{name}.bif"), tmp_path / "ours.bifxml")
    peer = gum.loadBN(str(tmp_path / "ours.bifxml"))
    path = tmp_path / f"theirs.{suffix}"
    write = peer.saveBIF if suffix == "bif" else peer.saveBIFXML
    write(str(path))
    net = po.read_network(path)
    assert set(net.variables) == set(peer.names())
    assert_same_posteriors(net, peer, gum)
    po.write_network(net, tmp_path / "again.xmlbif")  # its empty properties too
    again = po.read_network(tmp_path / "again.xmlbif")
    assert again == net
    assert again.properties == net.properties


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["asia", "cancer", "child", "earthquake", "sachs", "survey"])
@pytest.mark.parametrize("suffix", ["bif", "xmlbif"])
def test_pgmpy_reads_the_tables_that_are_written(shared_data, tmp_path, name, suffix):
    readwrite = pytest.importorskip("pgmpy.readwrite", reason="pgmpy is not installed; make oracles installs it")
    net = po.read_network(shared_data / "bif" / f"{name}.bif")
    path = tmp_path / f"{name}.{suffix}"
    po.write_network(net, path)
    reader = readwrite.BIFReader if suffix == "bif" else readwrite.XMLBIFReader
    peer = reader(str(path)).get_model()
    assert set(peer.nodes()) == set(net.variables)
    for cpt in net.cpts:
        theirs = peer.get_cpds(cpt.variable)
        known = {**cpt.parents, cpt.variable: cpt.states}
        # It renames states that hold other letters, in their order.
        assert [len(theirs.state_names[one]) for one in known] == [len(states) for states in known.values()]
        order = [theirs.variables.index(one) for one in known]
        assert_allclose(theirs.values.transpose(order), cpt.probabilities, atol=1e-9)


def test_a_parser_of_xml_reads_what_is_written(tmp_path):
    net = po.BayesianNetwork([("a", "b")], states={"a": ["x", "<&>"], "b": ["z"]})
    net.add_cpt("a", [0.5, 0.5])
    net.add_cpt("b", [[1], [1]])
    po.write_network(net, tmp_path / "net.xmlbif")
    root = ElementTree.parse(tmp_path / "net.xmlbif").getroot()
    assert [one.findtext("NAME") for one in root.iter("VARIABLE")] == ["a", "b"]
    assert [one.text for one in root.iter("OUTCOME")] == ["x", "<&>", "z"]
