"""Networks in files: what is read is what was written, and what is malformed is named with its line."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks import CPT

SPRINKLER = """// The lawn of every textbook.
network "wet grass" { property author someone; property "a; b"; }
variable rain { /* two
lines */ type discrete [ 2 ] { yes, no }; property position = (10, 20) ; }
variable sprinkler { type discrete[2]{ on, off }; }
variable "the grass" { type discrete [ 3 ] { <1cm, Asy/Patch, "3, or more" }; }
probability ( rain ) { table 2e-1, .8; }
probability ( sprinkler | rain ) { default 0.4 0.6; (yes) 0.01, 0.99; property checked; }
probability ( "the grass" | sprinkler, rain ) {
  (on, yes) 0.1, 0.2, 0.7; // the first
  (off, yes) 0.2, 0.2, 0.6;
  (on, no) 0.3, 0.3, 0.4;
  (off, no) 1, 0, 0;
}
"""


@pytest.fixture
def read(tmp_path):
    def read(content, name="net.bif", **more):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return po.read_network(path, **more)

    return read


def round_trip(network, path):
    po.write_network(network, path)
    again = po.read_network(path)
    assert again == network
    assert (again.name, again.properties) == (network.name, network.properties)
    assert again.edges == network.edges


def test_comments_properties_quotes_and_odd_states_are_read(read):
    net = read(SPRINKLER)
    assert net.name == "wet grass"
    assert net.variables == ("rain", "sprinkler", "the grass")
    assert net.states("the grass") == ("<1cm", "Asy/Patch", "3, or more")
    assert net.properties == {
        "": ("author someone", '"a; b"'),
        "rain": ("position = (10, 20)",),
        "sprinkler": ("checked",),
    }
    assert_allclose(net.cpt("sprinkler").probabilities, [[0.01, 0.99], [0.4, 0.6]])
    assert net.cpt("the grass").probabilities[0, 1].tolist() == [0.3, 0.3, 0.4]


@pytest.mark.parametrize("name", ["net.bif", "net.BIF.gz", "net.xmlbif", "net.xml", "net.xml.gz", "v1.2.bif"])
def test_what_is_written_is_read(read, tmp_path, name):
    round_trip(read(SPRINKLER), tmp_path / name)
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith("gz")


WORDS = st.text(st.characters(blacklist_categories=("C", "Z"), blacklist_characters='"'), min_size=1, max_size=6)


@given(st.data())
def test_any_network_is_read_as_it_was_written(tmp_path_factory, data):
    names = data.draw(st.lists(WORDS, min_size=1, max_size=4, unique=True))
    states = {name: data.draw(st.lists(WORDS, min_size=1, max_size=3, unique=True)) for name in names}
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    cpts = []
    for k, name in enumerate(names):
        parents = {one: states[one] for one in names[:k] if data.draw(st.booleans())}
        shape = (*map(len, parents.values()), len(states[name]))
        table = rng.random(shape) ** 9
        cpts.append(CPT(name, states[name], parents, table / table.sum(axis=-1, keepdims=True)))
    folder = tmp_path_factory.mktemp("nets")
    for suffix in ("bif", "xmlbif"):
        round_trip(po.BayesianNetwork(cpts=cpts), folder / f"net.{suffix}")


def test_a_plain_table_has_its_variable_slowest_only_in_bif(read):
    bif = read(
        "network n {} variable a { type discrete [2] {t f}; } variable b { type discrete [2] {t f}; }"
        "probability ( a ) { table 0.3 0.7; } probability ( b a ) { table 0.6 0.05 0.4 0.95; }"
    )
    xml = read(
        "<BIF><NETWORK><NAME>n</NAME><VARIABLE><NAME>a</NAME><OUTCOME>t</OUTCOME><OUTCOME>f</OUTCOME></VARIABLE>"
        "<VARIABLE><NAME>b</NAME><OUTCOME>t</OUTCOME><OUTCOME>f</OUTCOME></VARIABLE>"
        "<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>0.6 0.4 <!-- then --> 0.05 0.95</TABLE></DEFINITION>"
        "<DEFINITION><FOR>a</FOR><TABLE>0.3 0.7</TABLE></DEFINITION></NETWORK></BIF>"
    )
    assert bif == xml
    assert bif.cpt("b").probabilities.tolist() == [[0.6, 0.4], [0.05, 0.95]]


def test_names_with_blanks_are_read_where_commas_separate_them(read):
    net = read("network n {} variable a { type discrete [2] {very high, low}; } probability (a) { table 0.5 0.5; }")
    assert net.states("a") == ("very high", "low")


def test_rounded_rows_are_normalised_and_others_refused(read):
    text = "network n {{}} variable a {{ type discrete [3] {{x y z}}; }} probability (a) {{ table {0} {0} {0}; }}"
    assert_allclose(read(text.format(0.3333333)).cpt("a").probabilities, 1 / 3, rtol=1e-15)
    with pytest.raises(ValueError, match=r"line 1: the table of 'a' sums to 0.99;"):
        read(text.format(0.33))
    assert_allclose(read(text.format(0.33), tolerance=0.02).cpt("a").probabilities, 1 / 3)


def changed(old, new):
    assert old in SPRINKLER
    return SPRINKLER.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("(off, yes)", "(of, yes)"), r"line 11: 'sprinkler' has no state 'of'; did you mean 'off'"),
        (changed("0.1, 0.2, 0.7", "0.1, 0.2"), r"line 10: a row of 'the grass' has 2 numbers; it needs 3"),
        (changed("0.1, 0.2, 0.7", "0.1, 0.x, 0.7"), r"line 10: expected a number or ';' .*found '0.x'"),
        (changed("0.1, 0.2, 0.7", "0.1, 0.2, 0.9"), r"line 9: .* sums to 1.2 where sprinkler = 'on', rain = 'yes'"),
        (changed("  (off, no) 1, 0, 0;\n", ""), r"line 9: 'the grass' has no probabilities for \(off, no\)"),
        (changed("(on, no)", "(on, yes)"), r"line 12: the row \(on, yes\) of 'the grass' occurs twice"),
        (changed("(on, no)", "(on)"), r"line 12: a row of 'the grass' names 1 states for 2 parents"),
        (changed("probability ( rain )", "probabilty ( rain )"), r"line 7: .*found 'probabilty'; did you mean 'proba"),
        (changed("| rain", "| ran"), r"line 8: there is no variable 'ran'; did you mean 'rain'"),
        (changed("| rain", "| sprinkler"), r"line 8: a variable occurs twice among 'sprinkler' and its parents"),
        (changed("( sprinkler | rain )", "( sprinkler rain | rain )"), r"line 8: expected one variable before '\|'"),
        (changed("[ 3 ]", "[ 4 ]"), r"line 6: 'the grass' declares 4 states but lists 3"),
        (changed("on, off }", "on, on }"), r"line 5: the state 'on' of 'sprinkler' occurs twice"),
        (changed("discrete[2]", "continuous[2]"), r"line 5: the variable 'sprinkler' is of type 'continuous'"),
        (changed("off }; }", "off } }"), r"line 5: expected ';' after the states of 'sprinkler', found '}'"),
        (changed('"3, or more"', '"3, or more'), r"line \d+: "),
        (changed("probability ( rain ) { table 2e-1, .8; }", ""), r"the variable 'rain' has no probabilities"),
        (changed("variable sprinkler", "variable rain"), r"line 5: the variable 'rain' is declared twice"),
        (SPRINKLER[:-4], r"line 13: expected ';' after a row of 'the grass', found the end of the file"),
        (SPRINKLER.rstrip()[:-1], r"line 13: expected 'table', .* found the end of the file"),
        ("", r"there is no variable"),
        (b"network n {}\n\xff", r"line 2: this is no text in UTF-8"),
        (gzip.compress(b"network n {}", mtime=0)[:-6], r"compressed, and damaged or cut short"),
        ("<BIF>\n<NETWORK>\n</BIF>", r"line 3: this is no well-formed XML: mismatched tag"),
        ("<x/>", r"line 1: expected the element BIF, found 'X'"),
        ("<BIF/>", r"line 1: there is no element NETWORK"),
        (
            '<!DOCTYPE BIF [\n<!ENTITY lol "lol">\n]><BIF><NETWORK><NAME>&lol;</NAME></NETWORK></BIF>',
            r"line 2: it declares the entity 'lol'",
        ),
        ("<BIF><NETWORK>\n<VARIABLE><NAME>a</NAME></VARIABLE></NETWORK></BIF>", r"line 2: .* has no states"),
    ],
)
def test_what_is_malformed_is_named_with_its_line(read, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(text)
    assert "net.bif'" in str(caught.value)


def test_a_cycle_in_a_file_is_named(read):
    two = "variable a { type discrete [1] {t}; } variable b { type discrete [1] {t}; }"
    with pytest.raises(ValueError, match="form a cycle, "):
        read(f"network n {{}} {two} probability (a | b) {{ table 1; }} probability (b | a) {{ table 1; }}")


def test_bad_paths_and_unwritable_networks_are_named(read, tmp_path):
    net = read(SPRINKLER)
    with pytest.raises(ValueError, match="has no ending of a network file; use "):
        po.write_network(net, tmp_path / "net.txt")
    with pytest.raises(ValueError, match="has no ending of a network file"):
        po.write_network(net, tmp_path / "net.gz")
    with pytest.raises(FileNotFoundError, match="no folder"):
        po.write_network(net, tmp_path / "nowhere" / "net.bif")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        po.read_network(tmp_path / "absent.bif")
    with pytest.raises(ValueError, match="is a folder"):
        po.read_network(tmp_path)
    with pytest.raises(ValueError, match="'a' has no table yet"):
        po.write_network(po.BayesianNetwork(variables=["a"]), tmp_path / "a.bif")
    quoted = po.BayesianNetwork(cpts=[CPT("a", ['"'], {}, [1])])
    with pytest.raises(ValueError, match="quotation mark, which BIF cannot write"):
        po.write_network(quoted, tmp_path / "a.bif")
    round_trip(quoted, tmp_path / "a.xmlbif")
    with pytest.raises(ValueError, match="would both be written '1'"):
        po.write_network(po.BayesianNetwork(cpts=[CPT("a", [1, "1"], {}, [0.5, 0.5])]), tmp_path / "a.bif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.xmlbif", "net.bif"]  # no half file is left


def test_every_shared_network_is_read_as_it_is_written(shared_data, tmp_path):
    lines = (shared_data / "BIF_INDEX.tsv").read_text().splitlines()[1:]
    for name, file, nodes, arcs, parameters in (line.split("\t") for line in lines):
        net = po.read_network(shared_data / file)
        counted = (len(net.variables), len(net.edges), net.n_parameters)
        assert counted == (int(nodes), int(arcs), int(parameters)), name
        if net.n_parameters < 20_000:
            round_trip(net, tmp_path / "net.bif")
            round_trip(net, tmp_path / "net.xmlbif")
