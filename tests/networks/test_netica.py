"""Files of Netica: nodes cut by levels, states by title and by place, constants, and what has no meaning here."""

import pytest

import posteriori as po

A = "node A { kind = NATURE; discrete = TRUE; states = (yes, no); parents = (); probs = (0.2, 0.8); };"
CUT = "node X { kind = NATURE; discrete = FALSE; levels = (0, 5, 10.5); %s parents = (A); %s };"


def read(tmp_path, *nodes):
    path = tmp_path / "small.dne"
    path.write_text("// ~->[DNET-1]->~\nbnet Small {\n" + "\n".join(nodes) + "\n};\n")
    net = po.read_network(path)
    for suffix in (".dne", ".posteriori"):
        again = po.read_network(po.write_network(net, tmp_path / f"again{suffix}") or tmp_path / f"again{suffix}")
        assert again.variables == net.variables
        assert [cpt.states for cpt in again.cpts] == [cpt.states for cpt in net.cpts]
    return net


PROBS = "probs = ((0.25, 0.75), (0.5, 0.5));"


@pytest.mark.parametrize(
    ("node", "states", "table"),
    [
        (CUT % ("", PROBS), ("[0, 5)", "[5, 10.5]"), [[0.25, 0.75], [0.5, 0.5]]),
        (CUT % ("states = (low, high);", PROBS), ("low", "high"), [[0.25, 0.75], [0.5, 0.5]]),
        (CUT % ('statetitles = ("is low", "is high");', PROBS), ("is low", "is high"), [[0.25, 0.75], [0.5, 0.5]]),
        (CUT % ("", "functable = (5, 0.5);"), ("[0, 5)", "[5, 10.5]"), [[0, 1], [1, 0]]),  # numbers within
        (CUT % ("", "functable = (10.5, #0);"), ("[0, 5)", "[5, 10.5]"), [[0, 1], [1, 0]]),
        (
            "node X { discrete = FALSE; levels = (-INFINITY, 5, INFINITY); parents = (A); " + PROBS + " };",
            ("< 5", "≥ 5"),
            [[0.25, 0.75], [0.5, 0.5]],
        ),
        (
            "node X { discrete = FALSE; levels = (9, 5, 1); parents = (A); " + PROBS + " };",
            ("[5, 9]", "[1, 5)"),
            [[0.25, 0.75], [0.5, 0.5]],
        ),
        (
            "node X { discrete = TRUE; levels = (1, 2.5); parents = (A); " + PROBS + " };",
            ("1", "2.5"),
            [[0.25, 0.75], [0.5, 0.5]],
        ),
        (
            "node X { discrete = TRUE; states = (u, v); levels = (1, 2.5); parents = (A); functable = (2.50, u); };",
            ("u", "v"),
            [[0, 1], [1, 0]],
        ),
        (
            'node X { discrete = TRUE; statetitles = ("not at all", "much"); parents = (A); ' + PROBS + " };",
            ("not at all", "much"),
            [[0.25, 0.75], [0.5, 0.5]],
        ),
        (
            "node X { discrete = TRUE; chance = DETERMIN; states = (u, v); parents = (A); functable = (#1, #0); };",
            ("u", "v"),
            [[0, 1], [1, 0]],
        ),
        ("node X { kind = CONSTANT; discrete = TRUE; states = (u, v); value = v; };", ("u", "v"), [0, 1]),
        ("node X { kind = CONSTANT; discrete = TRUE; states = (u, v); value = #0; };", ("u", "v"), [1, 0]),
        ("node X { kind = CONSTANT; discrete = TRUE; states = (u, v); probs = (0.5, 0.5); };", ("u", "v"), [0.5, 0.5]),
        ("node X { kind = CONSTANT; discrete = FALSE; value = 3.5; };", ("3.5",), [1]),
        (
            "node X { kind = CONSTANT; discrete = FALSE; levels = (0, 1, 2); value = 1.5; };",
            ("[0, 1)", "[1, 2]"),
            [0, 1],
        ),
    ],
)
def test_what_has_a_meaning_is_read(tmp_path, node, states, table):
    net = read(tmp_path, A, node)
    assert net.cpt("X").states == states
    assert net.cpt("X").probabilities.tolist() == table


def test_names_of_intervals_keep_their_levels_as_a_property(tmp_path):
    net = read(tmp_path, A, CUT % ("states = (low, high);", PROBS))
    assert net.properties["X"] == ("levels = 0, 5, 10.5",)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("node X { discrete = FALSE; parents = (A); };", "'X' is continuous and has no levels; cut it into"),
        (CUT % ("states = (a, b, c);", PROBS), "'X' has 3 levels and 3 states; it needs 4 levels"),
        (CUT.replace("10.5", "ten") % ("", PROBS), "the levels of 'X' hold 'ten', which is no number"),
        (CUT.replace("10.5", "3") % ("", PROBS), "the levels of 'X' are in no order; sort them"),
        (CUT % ("", "functable = (11, 0);"), "'X' has no state '11'"),
        (CUT % ("", "functable = (#2, #0);"), "'X' has no state '#2'"),
        (CUT % ("", 'equation = "X = 1";'), "'X' has an equation and no table; convert the equation to a table"),
        ("node X { kind = CONSTANT; discrete = TRUE; states = (u, v); };", "'X' is a constant without a value; set it"),
        ("node X { kind = DECISION; states = (u, v); };", "'X' is a decision node; only nature nodes and constants"),
        ("node X { kind = DISCONNECTED; states = (u, v); };", "'X' is a disconnected node; only nature nodes and"),
        ('node X { statetitles = ("u", "u"); parents = (A); ' + PROBS + " };", "the state 'u' of 'X' occurs twice"),
    ],
)
def test_what_has_none_is_refused_in_one_sentence(tmp_path, node, message):
    with pytest.raises(ValueError, match=r"small\.dne', line 4: ") as caught:
        read(tmp_path, A, node)
    assert message in str(caught.value)
