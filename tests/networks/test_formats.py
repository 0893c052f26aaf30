"""Formats of other tools: what is written is read, what they write is read, and crafted files are refused."""

import re
import sys

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import posteriori as po
from posteriori.networks import CPT
from posteriori.networks.formats.block_formats import SYNTAX, value
from posteriori.networks.formats.reading import Reading
from posteriori.networks.formats.tokens import Tokens
from tests.networks.test_networks import random_network

SUFFIXES = [".net", ".dne", ".xdsl", ".uai", ".json"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read(tmp_path, suffix, seed):
    net = random_network(seed, n=6, name="sprinkler")
    for path in (tmp_path / f"net{suffix}", tmp_path / f"net{suffix}.gz"):
        po.write_network(net, path)
        back = po.read_network(path)
        if suffix == ".uai":  # which has no names
            assert [cpt.probabilities.tolist() for cpt in back.cpts] == [c.probabilities.tolist() for c in net.cpts]
        else:
            assert set(back.edges) == set(net.edges)
            for name in net.variables:
                assert back.cpt(name) == net.cpt(name)
            assert back.name == net.name


def test_json_keeps_types_and_continuous_variables(tmp_path):
    net = po.BayesianNetwork([("n", "x"), ("x", "y")], properties={"x": ["in metres"]})
    net.add_cpt("n", {1: 0.5, 2: 0.25, 3.5: 0.25})
    net.add_gaussian("x", {1: 0.0, 2: 1.5, 3.5: -1.0}, variance=[1.0, 2.0, 3.0])
    net.add_gaussian("y", 1.0, {"x": 2.0}, 0.1)
    po.write_network(net, tmp_path / "net.json")
    back = po.read_network(tmp_path / "net.json")
    assert back == net
    assert back.properties == net.properties
    assert [type(state) for state in back.states("n")] == [int, int, float]
    with pytest.raises(ValueError, match=r"'x' is continuous, which .net cannot hold; write .posteriori or .json"):
        po.write_network(net, tmp_path / "net.net")
    po.write_network(net, tmp_path / "net.dot")
    dot = (tmp_path / "net.dot").read_text()
    assert '"n" -> "x";' in dot
    assert dot.startswith("digraph")


@pytest.mark.parametrize("suffix", [".net", ".dne", ".xdsl"])
def test_names_that_are_no_identifiers_stand_beside_others(tmp_path, suffix):
    net = po.BayesianNetwork(
        cpts=[CPT("bad cough", [">=20", 'a"b\\'], {}, [0.5, 0.5]), CPT("bad_cough", ["x", "y"], {}, [0.1, 0.9])],
        properties={"": ["two\nlines", ""], "bad cough": ["a = \\n;", '"quoted"']},
    )
    path = tmp_path / f"net{suffix}"
    po.write_network(net, path)
    back = po.read_network(path)
    assert back == net
    assert back.properties == net.properties
    text = path.read_text()
    assert "bad_cough_2" in text
    assert ("ge_20" in text) == (suffix != ".net")  # states of Hugin are any text


HUGIN = """% made by hand
net { node_size = (80 40); }
node A { label = "the cause"; position = (1 2); states = ("yes" "no"); }
discrete node B { states = ("lo" "mid" "hi"); subtype = label; }
potential (A) { data = ( 0.2 0.8 ); }
potential (B | A) { data = (( 0.1 0.2 0.7 )   % A=yes
 ( 0.5 0.25 0.25 )); }
"""
NETICA = """// ~->[DNET-1]->~
// File created by hand
bnet Small {
AutoCompile = TRUE;
autoupdate = TRUE;
whenchanged = 1080000000;
visual V1 { defdispform = BELIEFBARS; nodelabeling = TITLE; NodeMaxNumEntries = 50;
  nodefont = font {shape= "Arial"; size= 9;}; };
node A {
  kind = NATURE; discrete = TRUE; chance = CHANCE;
  states = (yes, no);
  parents = ();
  probs = // yes no
     (0.2, 0.8);
  title = "the cause";
  visual V1 { center = (100, 50); height = 1; };
  };
node B {
  kind = NATURE; discrete = TRUE; chance = CHANCE;
  states = (lo, mid, hi);
  parents = (A);
  probs =
    // lo mid hi     // A
    ((0.1, 0.2, 0.7),  // yes
     (0.5, 0.25, 0.25)); // no
  };
node C { kind = NATURE; discrete = TRUE; chance = DETERMIN; states = (on, off); parents = (A); functable = (off, on); };
};
"""
GENIE = """<?xml version="1.0" encoding="ISO-8859-1"?>
<smile version="1.0" id="Small" numsamples="1000">
 <nodes>
  <cpt id="A"><state id="yes" /><state id="no" /><probabilities>0.2 0.8</probabilities></cpt>
  <cpt id="B"><state id="lo" /><state id="mid" /><state id="hi" /><parents>A</parents>
   <probabilities>0.1 0.2 0.7 0.5 0.25 0.25</probabilities></cpt>
  <deterministic id="C"><state id="on" /><state id="off" /><parents>A</parents>
   <resultingstates>off on</resultingstates></deterministic>
 </nodes>
 <extensions><genie version="1.0" app="GeNIe"><node id="A"><name>the cause</name></node></genie></extensions>
</smile>
"""
UAI = "BAYES\n2\n2 3\n2\n1 0\n2 0 1\n\n2\n 0.2 0.8\n\n6\n 0.1 0.2 0.7\n 0.5 0.25 0.25\n"


@pytest.mark.parametrize("text", [HUGIN, NETICA, GENIE, UAI], ids=["hugin", "netica", "genie", "uai"])
def test_files_as_the_tools_write_them(tmp_path, text):
    path = tmp_path / "small.txt"
    path.write_text(text)
    net = po.read_network(path)
    a, b = net.variables[:2]
    assert net.cpt(a).probabilities.tolist() == [0.2, 0.8]
    assert net.cpt(b).probabilities.tolist() == [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]
    if "C" in net.variables:
        assert net.cpt("C").probabilities.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    if text is HUGIN:
        assert net.properties == {"A": ("label = the cause",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HUGIN.replace("0.5 0.25", "0.25"), "has 5 numbers; it needs 6"),
        (HUGIN.replace("| A", "| D"), "line 6: there is no variable 'D'"),
        (HUGIN.replace("0.7", "0.x"), r"line 6: the table of 'B' holds '0.x'"),
        (HUGIN.replace("0.8 )", "0.9 )"), "sums to 1.1"),
        (HUGIN.replace("node A", "decision A"), "a decision node is not read"),
        (HUGIN + "potential (A) { data = (0.5 0.5); }", "two potentials"),
        (HUGIN + 'node Z { states = ("x', "a quotation mark is opened and never closed"),
        (HUGIN + "node Z { states", "expected '{', found the end of the file"),
        (NETICA.replace("kind = NATURE", "kind = UTILITY", 1), "a utility node"),
        (NETICA.replace("functable = (off, on)", "functable = (off, maybe)"), "no state 'maybe'"),
        (NETICA[:-5], "expected"),
        (GENIE.replace('cpt id="A"', 'mau id="A"').replace("</cpt>", "</mau>", 1), "is a mau node"),
        (GENIE.replace("<nodes>", "<dynamic/><nodes>", 1), "it is a dynamic network"),
        (GENIE.replace("<parents>A</parents>", "<parents>B</parents>", 1), "twice among"),
        (UAI.replace("BAYES", "MARKOV"), "only BAYES is read"),
        (UAI.replace("2 3", "2 99999999999999999999"), "a whole number up to"),
        (UAI[:-8], "found the end of the file"),
        ('{"variables": [{"name": "a", "states": ["x"], "probabilities": [2.0]}]}', "sums to 2"),
        ('{"variables": [{"states": ["x"]}]}', "lacks 'name'"),
        ('{"variables": ' + "[" * 100_000, "nested more than 64 deep"),
        ('{"variables": [{"name": "a", "states": ["x", "y"], "probabilities": [NaN, 1.0]}]}', "NaN is no number"),
        ('{"variables": 3}', "expected an object with a list"),
    ],
)
def test_crafted_files_are_refused_with_the_line(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        po.read_network(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", [".net", ".dne", ".xdsl", ".uai", ".json"])
def test_a_table_beyond_the_limit_is_refused_before_it_is_made(tmp_path, suffix):
    net = random_network(1, n=5, zeros=False)
    path = tmp_path / f"net{suffix}"
    po.write_network(net, path)
    with pytest.raises(ValueError, match="max_table_size"):
        po.read_network(path, max_table_size=1)


SAMPLES = {"net": HUGIN, "dne": NETICA, "xdsl": GENIE, "uai": UAI}


@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 400), st.text('{}()=;|,"%/*[] 01.ea\n<>', max_size=4))
def test_a_damaged_file_is_read_or_refused_with_a_sentence(tmp_path_factory, name, at, inserted):
    text = SAMPLES[name]
    path = tmp_path_factory.mktemp("damaged") / f"net.{name}"
    path.write_text(text[: at % len(text)] + inserted + text[(at + 1) % len(text) :])
    try:
        po.read_network(path)
    except ValueError as error:
        assert re.search(r"line \d+: ", str(error)), error  # noqa: PT017


@given(st.lists(st.sampled_from(["0.5", "off", "a/b", "(", ")", ",", "\n", " ", "\t"]), max_size=20), st.booleans())
def test_a_value_of_plain_words_is_read_as_one_with_quoted_text(parts, ends):
    def read(quoted):
        tokens = Tokens(f"\n {' '.join(parts)} {quoted}{';' if ends else ''} next", Reading("a.net"), SYNTAX)
        try:
            words = value(tokens)
        except ValueError as error:
            return str(error)
        n_words = len(words.texts) - len(quoted.split())
        return [(word, words.line_of(k)) for k, word in enumerate(words.texts[:n_words])], tokens.take(), tokens.line

    assert read("") == read('"not_plain"')


def test_a_large_file_is_read_in_linear_time(tmp_path):
    rng = np.random.default_rng(0)
    parents = {f"p{k}": ["a", "b", "c", "d"] for k in range(6)}
    table = rng.dirichlet(np.ones(4), size=(4,) * 6)
    cpts = [CPT(name, states, {}, np.full(4, 0.25)) for name, states in parents.items()]
    net = po.BayesianNetwork(cpts=[*cpts, CPT("x", ["a", "b", "c", "d"], parents, table)])
    for suffix in SUFFIXES:
        po.write_network(net, tmp_path / f"large{suffix}")
        assert po.read_network(tmp_path / f"large{suffix}").n_parameters == net.n_parameters


def test_a_graph_of_networkx_and_back():
    nx = pytest.importorskip("networkx")
    net = random_network(3, name="five")
    assert po.networks.from_networkx(po.networks.to_networkx(net)) == net
    empty = po.networks.from_networkx(nx.DiGraph([("a", "b")]))
    assert empty.edges == (("a", "b"),)
    assert empty.cpts == ()
    with pytest.raises(TypeError, match="not directed"):
        po.networks.from_networkx(nx.Graph([("a", "b")]))
    with pytest.raises(ValueError, match="cycle"):
        po.networks.from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ImportWarning")
def test_normal_variables_are_those_of_pgmpy():
    pytest.importorskip("pgmpy", reason="pgmpy is not installed; make oracles installs it")
    rng = np.random.default_rng(0)
    net = po.BayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
    for name in "abcd":
        slopes = {parent: rng.normal() for parent in net.dag.parents[name]}
        net.add_gaussian(name, rng.normal(), slopes, rng.uniform(0.5, 2.0))
    model = po.networks.to_pgmpy(net)
    mean, covariance = model.to_joint_gaussian()
    ours = net.query(*model.nodes)
    order = list(networkx.topological_sort(model))
    ours = ours.marginal(*order)
    np.testing.assert_allclose(ours.mean, mean, atol=1e-3)  # it rounds
    np.testing.assert_allclose(ours.covariance, covariance, atol=1e-3)
    assert po.networks.from_pgmpy(model).query("d").mean == pytest.approx(net.query("d").mean)


def of_two_states(seed):
    """Return a network without variables of one state, which other tools refuse."""
    rng = np.random.default_rng(seed)
    names = [f"v{k}" for k in range(5)]
    states = {name: ["a", "b", "c"][: rng.integers(2, 4)] for name in names}
    cpts = []
    for k, name in enumerate(names):
        parents = {one: states[one] for one in names[:k] if rng.random() < 0.5}
        table = rng.dirichlet(np.ones(len(states[name])), size=tuple(map(len, parents.values())))
        cpts.append(CPT(name, states[name], parents, table))
    return po.BayesianNetwork(cpts=cpts)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ImportWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_pgmpy_and_back(seed):
    pytest.importorskip("pgmpy", reason="pgmpy is not installed; make oracles installs it")
    from pgmpy.inference import VariableElimination

    net = of_two_states(seed)
    model = po.networks.to_pgmpy(net)
    assert model.check_model()
    back = po.networks.from_pgmpy(model)
    for name in net.variables:
        assert back.cpt(name) == net.cpt(name)
    evidence = {net.variables[0]: net.states(net.variables[0])[0]}
    theirs = VariableElimination(model).query([net.variables[-1]], evidence=evidence, show_progress=False)
    np.testing.assert_allclose(theirs.values, net.query(net.variables[-1], evidence=evidence).probabilities, atol=1e-9)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:(?s).*being rounded:UserWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_pyagrum_and_back(seed, tmp_path):
    gum = pytest.importorskip("pyagrum", reason="pyagrum is not installed; make oracles installs it")
    net = of_two_states(seed)
    model = po.networks.to_pyagrum(net)
    back = po.networks.from_pyagrum(model)
    assert set(back.edges) == set(net.edges)
    inference = gum.LazyPropagation(model)
    evidence = {net.variables[0]: net.states(net.variables[0])[0]}
    inference.setEvidence(evidence)
    for name, found in net.query(evidence=evidence).items():
        np.testing.assert_allclose(inference.posterior(name).tolist(), found.probabilities, atol=1e-9)
        np.testing.assert_allclose(back.query(name, evidence=evidence).probabilities, found.probabilities, atol=1e-9)
    for suffix, write in ((".net", model.saveNET), (".uai", model.saveUAI)):  # what it writes is read
        write(str(tmp_path / f"theirs{suffix}"))
        theirs = po.read_network(tmp_path / f"theirs{suffix}")
        assert theirs.n_parameters == net.n_parameters
        po.write_network(net, tmp_path / f"ours{suffix}")
        assert gum.loadBN(str(tmp_path / f"ours{suffix}")).dim() == model.dim()
    po.write_network(net, tmp_path / "ours.xdsl")
    ours = gum.loadBN(str(tmp_path / "ours.xdsl"))
    assert {ours.variable(node).name() for node in ours.nodes()} == set(net.variables)


def test_a_slash_within_a_word_is_no_comment(tmp_path):
    text = HUGIN.replace('"yes" "no"', "Asy/Patch 1/2 // two\n")
    (tmp_path / "net.net").write_text(text)
    assert po.read_network(tmp_path / "net.net").states("A") == ("Asy/Patch", "1/2")


@pytest.mark.parametrize("package", ["networkx", "pgmpy", "pyagrum"])
def test_an_absent_library_is_named_with_its_install_command(monkeypatch, package):
    for name in (package, f"{package}.models"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"run: pip install {package}"):
        getattr(po.networks, f"to_{package}")(random_network(0))


def test_the_order_of_parents_is_that_of_the_writing_program(tmp_path):
    """SMILE and UAI define the last parent as the faster one; pyAgrum, which names itself, lets the first be."""
    node = '<cpt id="{}"><state id="s"/><state id="t"/>{}<probabilities>{}</probabilities></cpt>'
    nodes = node.format("a", "", "0.5 0.5") + node.format("b", "", "0.5 0.5")
    nodes += node.format("c", "<parents>a b</parents>", "0.1 0.9 0.2 0.8 0.3 0.7 0.4 0.6")
    xdsl = '<smile id="n"><nodes>{}</nodes><extensions><genie app="{}"/></extensions></smile>'
    uai = "BAYES\n3\n2 2 2\n3\n1 0{0}a\n1 1{0}b\n3 0 1 2{0}c\n2 .5 .5\n2 .5 .5\n8 .1 .9 .2 .8 .3 .7 .4 .6\n"
    for suffix, text, names, states, b_given_s in (
        ("xdsl", xdsl.format(nodes, "GeNIe 4.1"), "abc", "st", 0.2),
        ("xdsl", xdsl.format(nodes, "aGrUM 3.3.1"), "abc", "st", 0.3),
        ("uai", uai.format("\n#"), ("v0", "v1", "v2"), "01", 0.2),
        ("uai", uai.format("   # "), ("v0", "v1", "v2"), "01", 0.3),
    ):
        path = tmp_path / f"net.{suffix}"
        path.write_text(text)
        a, b, c = names
        given = {a: states[0], b: states[1]}
        assert po.read_network(path).probability({c: states[0]}, given) == pytest.approx(b_given_s)


def test_an_error_quotes_only_the_ends_of_a_very_long_number(tmp_path):
    path = tmp_path / "net.uai"
    path.write_text(f"BAYES {'9' * 5000}")
    with pytest.raises(ValueError, match=r"line 1: expected the number of variables.*found '9{3,}…9{3,}'$") as caught:
        po.read_network(path)
    assert len(str(caught.value)) < 2000


def test_an_error_quotes_a_type_of_two_lines_in_one(tmp_path):
    path = tmp_path / "net"
    bif = "network n { }\nvariable a { type odd\ntype [ 2 ] { x, y }; }\n"
    xmlbif = (
        '<BIF VERSION="0.3"><NETWORK><NAME>n</NAME><VARIABLE TYPE="a&#10;b"><NAME>a</NAME></VARIABLE></NETWORK></BIF>'
    )
    for text in (bif, xmlbif):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"a.* of type .*; only '?(nature|discrete)") as caught:
            po.read_network(path.rename(path.with_suffix(".bif")))
        assert "\n" not in str(caught.value)
