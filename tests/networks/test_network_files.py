"""Network files that are rounded, odd or hostile: what is accepted sums to 1 and comes back, the rest is refused."""

import gzip
import re
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks import CPT
from posteriori.networks.graph.cpt import as_number, as_numbers, rounding_error

HEAD = "network n {{}} variable a {{ type discrete [{}] {{ {} }}; }} "


def one_table(numbers):
    states = " ".join(f"s{k}" for k in range(len(numbers.split())))
    return HEAD.format(len(numbers.split()), states) + f"probability (a) {{ table {numbers}; }}"


@pytest.fixture
def read(tmp_path):
    def read(content, name="net.bif", **more):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return po.read_network(path, **more)

    return read


# Rounded rows ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(4, 9), st.sampled_from(["{:.{}g}", "{:.{}f}"]))
def test_rows_written_with_a_fixed_number_of_digits_are_accepted(tmp_path_factory, seed, n, digits, form):
    row = np.random.default_rng(seed).dirichlet(np.ones(n))
    written = [form.format(p, digits) for p in row]
    path = tmp_path_factory.mktemp("net") / "net.bif"
    path.write_text(one_table(" ".join(written)))
    off = abs(sum(map(float, written)) - 1)
    assert off <= rounding_error(np.array(list(map(float, written)))) * (1 + 1e-6) + 1e-15
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = po.read_network(path).cpt("a").probabilities
    assert_allclose(found.sum(), 1, rtol=1e-14)
    assert_allclose(found, row, atol=2 * n * 10.0**-digits)
    assert len(caught) == (off > 1e-6) or abs(off - 1e-6) < 1e-12  # the sum itself is rounded
    assert all("'a' sums to 1 only within" in str(one.message) for one in caught)


@pytest.mark.parametrize("numbers", ["0.123546 0.876544", "0.5 0.499", "0.33 0.33 0.33", "0.1 0.2 0.8"])
def test_rows_that_rounding_does_not_explain_are_refused_by_name(read, numbers):
    off = abs(sum(map(float, numbers.split())) - 1)
    with pytest.raises(ValueError, match=r"line 1: the table of 'a' sums to .*; each row must sum to 1") as caught:
        read(one_table(numbers))
    advised = float(str(caught.value).split("tolerance=")[1].split()[0])
    assert_allclose(read(one_table(numbers), tolerance=advised).cpt("a").probabilities.sum(), 1, rtol=1e-14)
    with pytest.raises(ValueError, match=r"further off than tolerance = .* allows"):
        read(one_table(numbers), tolerance=off / 2)


def test_the_refused_row_is_named_in_xmlbif_as_well(read):
    text = (
        "<BIF><NETWORK><NAME>n</NAME><VARIABLE><NAME>a</NAME><OUTCOME>t</OUTCOME><OUTCOME>f</OUTCOME></VARIABLE>"
        "<VARIABLE><NAME>b</NAME><OUTCOME>t</OUTCOME><OUTCOME>f</OUTCOME></VARIABLE>"
        "<DEFINITION><FOR>a</FOR><TABLE>0.3 0.7</TABLE></DEFINITION>\n"
        "<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>0.6 0.4 {} 0.75</TABLE></DEFINITION></NETWORK></BIF>"
    )
    with pytest.raises(ValueError, match=r"line 2: the table of 'b' sums to 1.15 where a = 'f'; .*tolerance=0.2 "):
        read(text.format("0.4"))
    assert_allclose(read(text.format("0.4"), tolerance=0.2).cpt("b").probabilities[1], [0.4 / 1.15, 0.75 / 1.15])
    with pytest.warns(
        UserWarning, match=r"1 row of the table of 'b' sums to 1 only within 1.0e-05.*divided by its sum"
    ):
        read(text.format("0.24999"))


@pytest.mark.parametrize("tolerance", [-1, np.nan, np.inf])
def test_a_tolerance_is_a_number_of_at_least_0(read, tolerance):
    with pytest.raises(ValueError, match=r"tolerance is .*; it must be a number of at least 0"):
        read(one_table("0.5 0.5"), tolerance=tolerance)


# Numbers --------------------------------------------------------------------------------------------------------


@given(st.text("0123456789.eE+-_ nanif", max_size=8) | st.floats(allow_nan=False).map(repr))
@example("0.2_5")
@example("٣")
def test_numbers_are_decimal_numbers_and_nothing_else(word):
    def fail(strange):
        return ValueError(strange)

    try:
        expected = float(word)
        plain = set(word) <= set("0123456789.eE+-")
    except ValueError:
        plain = False
    if plain:
        assert as_number(word) == as_numbers([word], fail)[0] == expected
        return
    with pytest.raises(ValueError, match="is no number"):
        as_number(word)
    with pytest.raises(ValueError, match=f"^{re.escape(word)}$"):
        as_numbers(["1", word], fail)


@pytest.mark.parametrize("number", ["0.2_5", "nan", "inf", "٠.٢٥", "0x1p-2", "+-1", "--"])
def test_a_word_that_is_no_number_is_named(read, number):
    with pytest.raises(ValueError, match=r"expected a number or ';' in the table of 'a', found"):
        read(one_table(f"{number} 0.75"))
    with pytest.raises(ValueError, match="no array of numbers"):
        CPT("a", ["x", "y"], {}, [number, "0.75"])
    net = po.BayesianNetwork(variables=["a"])
    with pytest.raises(ValueError, match="probabilities are numbers from 0 to 1"):
        net.add_cpt("a", {"x": number, "y": 0.75})


def test_the_line_of_a_strange_number_is_that_of_the_word_itself(read):
    with pytest.raises(ValueError, match=r"line 3: .* found '5_0'"):
        read(one_table("0.5\n15_0.5\n5_0").replace("15_0.5", "0.5"))


# Hostile files --------------------------------------------------------------------------------------------------

ATTRIBUTES = " ".join(f'a{i}="1"' for i in range(300_000))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"<BIF {ATTRIBUTES}/>", "a tag, comment or declaration is longer than"),
        (f"<BIF><!--{'x' * 3_000_000}--></BIF>", "a tag, comment or declaration is longer than"),
        ("<BIF>" + "<A>" * 1000, "nested more than 32 deep"),
        pytest.param(
            "<BIF><NETWORK>" + "<OUTCOME/>" * 2_000_001,
            "more than 2,000,000 elements and attributes",
        ),
        ('<?xml version="1.0" encoding="UTF-99"?><BIF/>', "its encoding is 'UTF-99', which is not read"),
        ('<?xml version="1.0" encoding="shift_jis"?><BIF/>', "its encoding is 'shift_jis', which is not read"),
        ('<?xml version="1.0" encoding="idna"?><BIF/>', "its encoding is 'idna', which is not read"),
        ("network n {} /* " + "/* " * 100_000, r"line 1: a comment is opened by /\* and never closed"),
        ("network n {\n /*/", "line 2: a comment is opened by"),
        ("network n { property " + " " * 100_000, "expected ';' after a property"),
        (HEAD.format("9" * 5000, "x"), "the number of states of 'a' is '9+…9+'; write it as a whole number"),
        (HEAD.format("٣", "x y z"), "the number of states of 'a' is '٣'"),
        (one_table("1e308 1e308"), "sums to inf"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_hostile_files_are_refused_in_one_sentence_cheaply(read, content, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message) as caught:
            read(content)
        assert tracemalloc.get_traced_memory()[1] < 5e8
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert "net.bif" in str(caught.value)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(read, monkeypatch):
    monkeypatch.setattr("posteriori.networks.formats.files._MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="holds more than 1,048,576 bytes"):
        read(gzip.compress(b" " * (1 << 21)))


def test_a_table_of_too_many_cells_is_refused_before_it_is_made(read):
    n = 30
    lines = [f"variable v{i} {{ type discrete [2] {{ x y }}; }} " for i in range(n)]
    lines += [f"probability (v{i}) {{ table 0.5 0.5; }}\n" for i in range(n - 1)]
    lines += [f"probability (v29 | {', '.join(f'v{i}' for i in range(n - 1))}) {{ default 0.5 0.5; }}"]
    sentence = r"line 30: the table of 'v29' given 29 parents has 1,073,741,824 cells, .*max_table_size=1073741824 "
    with pytest.raises(ValueError, match=sentence):
        read("network n {} " + "".join(lines))


# Round trips ----------------------------------------------------------------------------------------------------


def test_empty_and_multiline_properties_and_states_come_back(tmp_path):
    net = po.BayesianNetwork(
        cpts=[CPT("a", ["", "two\nlines"], {}, [0.5, 0.5])], properties={"": [""], "a": ["", "tab\tand\nline"]}
    )
    for name in ("net.xmlbif", "net.bifxml", "net.xml.gz", "net.bif", "net.posteriori"):
        po.write_network(net, tmp_path / name)
        again = po.read_network(tmp_path / name)
        assert again == net
        assert again.properties == net.properties


@pytest.mark.parametrize("letter", ["\r", "\ud800", "\0", "\ufffe"])
def test_what_a_format_cannot_hold_is_refused_when_it_is_written(tmp_path, letter):
    net = po.BayesianNetwork(cpts=[CPT(f"a{letter}b", ["x"], {}, [1])])
    for name in ("net.bif", "net.xmlbif"):
        try:
            po.write_network(net, tmp_path / name)
        except ValueError as error:
            refused = str(error)
            assert "cannot be written" in refused or "cannot write" in refused or "no character of Unicode" in refused
            assert not (tmp_path / name).exists()
        else:
            assert po.read_network(tmp_path / name) == net


def test_a_nameless_variable_is_drawn_but_not_written(read, tmp_path):
    with pytest.raises(ValueError, match="line 1: a variable has an empty name"):
        read('network n {} variable "" { type discrete [2] {x y}; } probability ("") { table 0.5 0.5; }')
    net = po.BayesianNetwork(cpts=[CPT("", ["x", "y"], {}, [0.5, 0.5])])
    for suffix in ("bif", "xmlbif"):
        with pytest.raises(ValueError, match="a variable without a name cannot be written"):
            po.write_network(net, tmp_path / f"net.{suffix}")
    assert net.sample(3, random_state=0).columns == [""]
    assert net.query("")["x"] == pytest.approx(0.5)


def test_no_document_type_is_written_which_pyagrum_cannot_read(tmp_path):
    po.write_network(po.BayesianNetwork(cpts=[CPT("a", ["x"], {}, [1])]), tmp_path / "net.xmlbif")
    assert "DOCTYPE" not in (tmp_path / "net.xmlbif").read_text()


def test_a_model_file_is_read_and_written_by_its_name(tmp_path):
    net = po.BayesianNetwork(cpts=[CPT("a", [True, 2], {}, [0.5, 0.5])], max_table_size=99)
    po.write_network(net, tmp_path / "net.posteriori")
    again = po.read_network(tmp_path / "net.posteriori")
    assert again == net == po.load(tmp_path / "net.posteriori")
    assert again.max_table_size == 99
    assert po.read_network(tmp_path / "net.posteriori", max_table_size=7).max_table_size == 7
    po.save(po.NaiveBayes().fit([["a"], ["b"]], [0, 1]), tmp_path / "naive.posteriori")
    with pytest.raises(ValueError, match="holds a NaiveBayes, not a network"):
        po.read_network(tmp_path / "naive.posteriori")
    with pytest.raises(ValueError, match=r"use .bif, .xmlbif, .bifxml, .xml, .net.* or .posteriori"):
        po.write_network(net, tmp_path / "net.text")
    with pytest.raises(ValueError, match="max_table_size is 0; it must be a whole number of at least 1"):
        po.read_network(tmp_path / "net.posteriori", max_table_size=0)


# What a network is made of --------------------------------------------------------------------------------------

TABLE = CPT("a", ["x", "y"], {}, [0.5, 0.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cpts": [1]}, "cpts holds 1, a int; give a CPT or LinearGaussian"),
        ({"cpts": None}, "cpts is None; give a list"),
        ({"cpts": [TABLE, TABLE]}, "the variable 'a' has two tables"),
        ({"edges": 3}, "edges is 3; give a list"),
        ({"edges": ["ab"]}, "'ab' is no edge"),
        ({"edges": [("a",)]}, "is no edge"),
        ({"edges": [("a", [])]}, "the name of a variable is \\[\\], a list; it must be a string"),
        ({"edges": [("a", 1)]}, "the name of a variable is 1, a int"),
        ({"variables": 5}, "variables is 5; give a list"),
        ({"variables": [["a"]]}, r"the name of a variable is \['a'\], a list"),
        ({"variables": ["a"], "states": ["x"]}, "states is .*; give a mapping"),
        ({"variables": ["a"], "states": {"b": ["x"]}}, "no variable 'b'"),
        ({"variables": ["a"], "states": {"a": [np.nan]}}, "a state of 'a' is NaN"),
        ({"variables": ["a"], "properties": {"a": 7}}, "the list of properties of 'a' is 7"),
        ({"variables": ["a"], "properties": {"a": [7]}}, "a property of 'a' is 7, a int; it must be a string"),
        ({"variables": ["a"], "properties": {3: ["x"]}}, "a key of properties is 3"),
        ({"variables": ["a"], "name": 4}, "name is 4, a int; it must be a string"),
        ({"variables": ["a"], "max_table_size": 0}, "max_table_size is 0"),
        ({"variables": ["a"], "max_table_size": 1.5}, "max_table_size is 1.5"),
        ({"variables": ["a"], "max_table_size": True}, "max_table_size is True"),
        ({"cpts": [TABLE, CPT("b", ["z"], {"a": ["x", "w"]}, np.ones((2, 1)))]}, "must be the same in the same order"),
    ],
)
def test_a_network_is_made_of_what_fits_together(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        po.BayesianNetwork(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, ["x"], {}, [1]), "names of variables are strings"),
        (("a", ["x"], [("b", ["y"])], [[1]]), "the parents of 'a' are .*; give a mapping"),
        (("a", ["x"], {2: ["y"]}, [[1]]), "names of variables are strings"),
        (("a", ["x", np.nan], {}, [1, 0]), "a state of 'a' is NaN"),
        (("a", ["x", "y"], {}, [1j, 1]), "no array of numbers"),
        (("a", ["x", "y"], {}, np.array(["2020-01-01", "2021-01-01"], "M8[D]")), "no array of numbers"),
        (("a", ["x", "y"], {}, [10**400, 1]), "no array of numbers"),
        (("a", ["x", "y"], {}, [np.inf, -np.inf]), "holds inf"),
        (("a", ["x", "y"], {}, [2, -1]), "holds -1"),
        (("a", ["x", "y"], {}, [1e308, 1e308]), "sums to inf"),
        (("a", ["x", "y"], {"b": ["z"]}, [1, 0]), "has shape .*needed"),
    ],
)
def test_a_table_is_made_of_probabilities(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CPT(*arguments)
