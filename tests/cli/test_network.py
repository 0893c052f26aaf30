"""The commands about networks, as a person types them."""

import json
import re
from decimal import Decimal

import polars as pl
import pytest

import posteriori as po
from posteriori.cli import main
from posteriori.cli.network import _binned
from posteriori.joint.questions import Variables, read_findings, read_question
from posteriori.networks import CPT


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks")
    net = po.BayesianNetwork([("smoke", "lung"), ("smoke", "bad cough")])
    net.add_cpt("smoke", [0.3, 0.7], states=["yes", "no"])
    net.add_cpt("lung", [[0.1, 0.9], [0.01, 0.99]], states=["yes", "no"])
    net.add_cpt("bad cough", [[0.5, 0.5], [0.2, 0.8]], states=["a,b", "none"])
    po.write_network(net, path / "lungs.xmlbif")
    po.save(net, path / "lungs.posteriori")
    net.sample(400, random_state=0).write_csv(path / "cases.csv")
    return path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("name", ["lungs.xmlbif", "lungs.posteriori"])
def test_a_question(folder, capsys, name):
    code, out, _ = run(capsys, "query", folder / name, "P(smoke=yes | lung=yes)")
    assert code == 0
    assert out.strip() == f"P(smoke=yes | lung=yes) = {0.03 / 0.037:.6f}"
    _, out, _ = run(capsys, "query", folder / name, "P(smoke, lung)", "--json")
    found = json.loads(out)["answer"]
    assert len(found) == 4
    assert sum(cell["probability"] for cell in found) == pytest.approx(1.0)
    _, out, _ = run(capsys, "query", folder / name, "P(smoke | lung=yes)")
    assert "0.810811" in out


def test_a_question_with_odd_names(folder, capsys):
    code, out, _ = run(capsys, "query", folder / "lungs.xmlbif", """P("bad cough"='a,b' | smoke=yes)""")
    assert (code, out.split()[-1]) == (0, "0.5")


def test_sampling_says_how_sure_it_is(folder, capsys):
    question = ("query", folder / "lungs.xmlbif", "P(smoke=yes | lung=yes)", "--method", "sampling", "--seed", 1)
    _, out, _ = run(capsys, *question)
    assert "±" in out
    assert run(capsys, *question)[1] == out


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("P(lung | smok=yes)", "no variable 'smok'; did you mean 'smoke'?"),
        ("P(lung | smoke=ye)", "'smoke' has no state 'ye'; did you mean 'yes'?"),
        ("P(lung | smoke)", "state the value of 'smoke'"),
        ("lung | smoke=yes", "begin with P("),
        ("P(lung | smoke=yes", ") is missing"),
        ("P(lung) + 1", "nothing may follow"),
        ("P(lung, lung)", "'lung' is stated twice"),
        ("P()", "name a column"),
        ("P(lung | lung=yes)", "both asked for and given"),
        ("P(lung=yes, smoke)", "states some of the columns asked for"),
        ("P(lung =ye)", "'lung' has no state 'ye'; did you mean 'yes'?"),
        ("P(lung=Yes)", "'lung' has no state 'Yes'; did you mean 'yes'?"),
        ("P(lung | smoke=YES)", "'smoke' has no state 'YES'; did you mean 'yes'?"),
        ("P(lung=)", "give a value of 'lung'"),
        ("P(lung=yes=no)", ") is missing"),
        ("P(|smoke=yes)", "name a column"),
        ("P(lung\n| smoke=\n)", "give a value of 'smoke'"),
    ],
)
def test_a_question_that_cannot_be_read(folder, capsys, question, sentence):
    code, out, err = run(capsys, "query", folder / "lungs.xmlbif", question)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_numeric_and_boolean_states_are_asked_for_as_they_print(folder, capsys):
    net = po.BayesianNetwork(cpts=[CPT("a", [True, False, 1.5, "x"], {}, [0.1, 0.2, 0.3, 0.4])])
    po.write_network(net, folder / "kinds.posteriori")
    for state, p in (("True", 0.1), ("TRUE", 0.1), ("false", 0.2), ("1.5", 0.3), ("1.50", 0.3), ("x", 0.4)):
        assert run(capsys, "query", folder / "kinds.posteriori", f"P(a={state})")[1].split()[-1] == str(p)
    for state in ("1.51", "1_0", "X"):
        assert run(capsys, "query", folder / "kinds.posteriori", f"P(a={state})")[0] == 2


def test_limits_are_raised_where_the_message_says(folder, capsys):
    (folder / "off.bif").write_text(
        "network n {} variable a { type discrete [2] {x y}; } probability (a) { table 0.5 0.49; }"
    )
    code, _, err = run(capsys, "query", folder / "off.bif", "P(a=x)")
    assert (code, err.count("\n")) == (2, 1)
    option = re.search(r"--tolerance \S+", err)[0].split()
    code, out, err = run(capsys, "query", folder / "off.bif", "P(a=x)", *option)
    assert (code, err) == (0, "")
    assert float(out.split()[-1]) == pytest.approx(0.5 / 0.99, abs=1e-6)
    for command in (("query", folder / "lungs.bifxml", "P(lung)"), ("network", "show", folder / "lungs.bifxml")):
        po.write_network(po.load(folder / "lungs.posteriori"), folder / "lungs.bifxml")
        code, _, err = run(capsys, *command, "--max-table-size", 3)
        assert (code, err.count("\n")) == (2, 1)
        assert "'lung' given 1 parents has 4 cells, more than max_table_size = 3" in err
        assert run(capsys, *command, *re.search(r"--max-table-size \d+", err)[0].split())[0] == 0
    code, _, err = run(capsys, "query", folder / "lungs.posteriori", "P(lung)", "--max-table-size", 3)
    assert (code, err.count("\n")) == (2, 1)
    assert "clique tables of 4 cells" in err
    assert run(capsys, "query", folder / "lungs.posteriori", "P(lung)", "--max-table-size", 4)[0] == 0


def test_a_large_network_is_short_on_screen_and_whole_in_json(folder, capsys):
    po.write_network(po.BayesianNetwork(cpts=[CPT(f"v{i}", ["s"], {}, [1]) for i in range(1200)]), folder / "many.bif")
    _, out, _ = run(capsys, "network", "show", folder / "many.bif")
    assert "… and 200 more variables; --json lists all" in out
    assert "v999 " in out
    assert "v1000 " not in out
    assert len(json.loads(run(capsys, "network", "show", folder / "many.bif", "--json")[1])["variables"]) == 1200


def test_files_that_are_no_networks(folder, capsys):
    assert "there is no file" in run(capsys, "query", folder / "none.bif", "P(a)")[2]
    po.save(po.NaiveBayes().fit([["a"], ["b"]], [0, 1]), folder / "naive.posteriori")
    assert "no column 'a'" in run(capsys, "query", folder / "naive.posteriori", "P(a)")[2]  # it answers about its own
    assert "holds a NaiveBayes, not a network" in run(capsys, "network", "show", folder / "naive.posteriori")[2]


def test_parsing():
    variables = Variables(["a", "b", "c", "d", "e"])
    asked = read_question(" p( a | e=f/g ) ", variables)
    assert asked.asked == {"a": None}
    assert asked.given == {"e": "f/g"}
    assert not asked.is_event
    assert read_question("P(a=b,c=d)", variables).is_event
    assert read_findings(" a=b , c = 'd e' ", variables) == {"a": "b", "c": "d e"}
    with pytest.raises(ValueError, match="separate findings by commas"):
        read_findings("a=b c=d", variables)


def test_showing_and_drawing(folder, capsys):
    code, out, _ = run(capsys, "network", "show", folder / "lungs.xmlbif")
    assert code == 0
    assert "3 variables, 2 edges, 5 parameters" in " ".join(out.split())
    _, out, _ = run(capsys, "network", "show", folder / "lungs.xmlbif", "--json")
    assert json.loads(out)["variables"][1]["parents"] == ["smoke"]
    drawn = ("network", "sample", folder / "lungs.xmlbif", "-n", 30, "--seed", 1, "--evidence", "smoke=yes")
    _, out, _ = run(capsys, *drawn)
    frame = pl.read_csv(out.encode())
    assert frame.shape == (30, 3)
    assert set(frame["smoke"]) == {"yes"}


@pytest.mark.parametrize("method", ["hill-climbing", "chow-liu"])
def test_learning(folder, capsys, method):
    output = folder / f"{method}.posteriori"
    code, out, _ = run(capsys, "network", "learn", folder / "cases.csv", "--output", output, "--method", method)
    assert code == 0
    assert "saved to" in out
    assert set(po.load(output).variables) == {"smoke", "lung", "bad cough"}
    code, _, err = run(
        capsys, "network", "learn", folder / "cases.csv", "--output", folder / "x.bif", "--ignore", "lun"
    )
    assert code == 2
    assert "did you mean 'lung'" in err


def test_numbers_are_refused_or_cut(tmp_path, capsys):
    table = tmp_path / "sizes.csv"
    pl.DataFrame({"size": [k / 7 for k in range(60)], "kind": ["a", "b"] * 30}).write_csv(table)
    learn = ("network", "learn", table, "--output", tmp_path / "sizes.posteriori", "--method", "chow-liu")
    code, _, err = run(capsys, *learn)
    assert code == 2
    assert "'size' holds numbers" in err
    assert run(capsys, *learn, "--binned")[0] == 0
    states = po.load(tmp_path / "sizes.posteriori").states("size")
    assert len(states) == 4
    assert sum(state.startswith(("<", "≥")) for state in states) == 2


def test_an_intervention(folder, capsys):
    """To cough on purpose brings no cancer; a lungs network has smoke above both."""
    _, out, _ = run(capsys, "query", folder / "lungs.xmlbif", "P(smoke=yes | do(lung=yes))")
    assert out.strip() == "P(smoke=yes | do(lung=yes)) = 0.3"
    question = """P("bad cough"=none | do(lung=yes), smoke=no)"""
    _, out, _ = run(capsys, "query", folder / "lungs.xmlbif", question, "--json")
    assert json.loads(out)["do"] == {"lung": "yes"}
    variables = Variables(["a", "b", "c", "d", "e"])
    assert read_question("P(a | do(b=x, c=y), d=z, do(e=w))", variables).done == {"b": "x", "c": "y", "e": "w"}
    for wrong in ("P(a | do(b))", "P(a | do(a=x))", "P(a | b=x, do(b=x))", "P(a | do(b=x)"):
        with pytest.raises(ValueError, match=r"state the value|both|missing"):
            read_question(wrong, variables)


def test_learning_with_constraints(folder, capsys, tmp_path):
    def edges(*options):
        target = tmp_path / "learned.bif"
        code, out, err = run(
            capsys, "network", "learn", folder / "cases.csv", "-o", target, "--force", "--json", *options
        )
        assert code == 0, err
        return {(edge["parent"], edge["child"]) for edge in json.loads(out)["edges"]}

    assert ("lung", "smoke") in edges("--required", "lung->smoke")
    assert not {("lung", "smoke"), ("smoke", "lung")} & edges(
        "--forbidden", "lung->smoke", "--forbidden", "smoke->lung", "--method", "mmhc", "--score", "k2"
    )
    assert not {child for _, child in edges("--tiers", "smoke;lung,bad cough", "--method", "pc")} & {"smoke"}
    code, _, err = run(
        capsys, "network", "learn", folder / "cases.csv", "-o", tmp_path / "no.bif", "--required", "lung,smoke"
    )
    assert code != 0
    assert "is no edge; write it as parent->child" in err


def test_the_network_prints_marginals_best_states_and_a_picture(folder, capsys, tmp_path):
    code, out, _ = run(capsys, "query", folder / "lungs.xmlbif")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[3:] if line[:1].strip()] == ["smoke", "lung", "bad"]
    picture = tmp_path / "lungs.svg"
    arguments = ("query", folder / "lungs.xmlbif", "P(* | lung=yes)", "--mpe", "--picture", picture)
    _, out, _ = run(capsys, *arguments)
    assert "most probable state" in out
    assert "<svg" in picture.read_text()
    found = json.loads(run(capsys, *arguments, "--json", "--force")[1])
    assert found["most_probable"]["lung"] == "yes"
    assert found["marginals"]["smoke"]["yes"] == pytest.approx(0.03 / 0.037)
    assert "lung" not in found["marginals"]
    _, out, _ = run(capsys, "query", folder / "lungs.xmlbif", """P("bad cough" | lung=yes)""", "--why")
    assert "bad cough ← smoke → lung  (active)" in out
    for wrong in (("P(* | lung=yes)", "--why"), ("P(*=yes)",), ("P(smoke)", "--picture", tmp_path / "x.txt")):
        assert run(capsys, "query", folder / "lungs.xmlbif", *wrong)[0] == 2


def test_a_question_about_a_continuous_variable(tmp_path, capsys):
    net = po.BayesianNetwork([("state", "temperature")])
    net.add_cpt("state", {"ill": 0.1, "healthy": 0.9})
    net.add_gaussian("temperature", {"ill": 39.0, "healthy": 36.8}, variance=0.25)
    path = tmp_path / "fever.json"
    po.write_network(net, path)
    _, out, _ = run(capsys, "query", path, "P(state=ill | temperature=38)")
    assert out.strip().endswith("= 0.21128")
    _, out, _ = run(capsys, "query", path, "P(temperature)")
    assert "a mixture of 2 normal densities" in out
    assert run(capsys, "query", path, "P(state | temperature=hot)")[0] == 2
    _, out, _ = run(capsys, "query", path, "P(*)", "--picture", tmp_path / "fever.png", "--mpe")
    assert (tmp_path / "fever.png").stat().st_size > 5000
    _, out, _ = run(capsys, "network", "show", path)
    assert "continuous" in out


@pytest.mark.parametrize("suffix", ["net", "dne", "xdsl", "json", "bif.gz"])
def test_a_network_is_converted_and_every_command_takes_it(folder, tmp_path, capsys, suffix):
    path = tmp_path / f"lungs.{suffix}"
    code, out, _ = run(capsys, "network", "convert", folder / "lungs.xmlbif", path)
    assert code == 0
    assert "3 variables, 2 edges saved to" in " ".join(out.split())
    _, out, _ = run(capsys, "query", path, """P("bad cough"='a,b' | smoke=yes)""", "--json")
    assert json.loads(out)["answer"][0]["probability"] == pytest.approx(0.5)
    assert run(capsys, "network", "show", path)[0] == 0
    assert run(capsys, "network", "sample", path, "-n", 3, "--seed", 1)[0] == 0
    code, _, err = run(capsys, "network", "convert", path, path)
    assert (code, "would overwrite" in err) == (2, True)
    (tmp_path / "notes.bif").write_text("my notes")
    code, _, err = run(capsys, "network", "convert", path, tmp_path / "notes.bif")
    assert (code, "--force" in err) == (2, True)
    code, _, err = run(capsys, "network", "convert", path, tmp_path / "lungs.text")
    assert (code, "has no ending of a network file" in err) == (2, True)
    _, out, _ = run(capsys, "network", "convert", path, tmp_path / "lungs.dot", "--json")
    assert json.loads(out)["n_edges"] == 2
    code, _, err = run(capsys, "query", path, "P(smoke=YES)")
    assert (code, "no state 'YES'; did you mean 'yes'?" in err) == (2, True)


def test_why_goes_by_the_graph_that_do_leaves(tmp_path, capsys):
    """a ← b → c: do(b) blocks the trail as evidence does; do(c) removes the edge, so that no trail is left."""
    net = po.BayesianNetwork([("b", "a"), ("b", "c")])
    net.add_cpt("b", {"y": 0.5, "n": 0.5})
    for name in "ac":
        net.add_cpt(name, {"y": {"y": 0.9, "n": 0.1}, "n": {"y": 0.2, "n": 0.8}})
    path = tmp_path / "abc.bif"
    po.write_network(net, path)
    for question, said in (
        ("P(a | do(b=y), c=y)", "a and c are independent given b"),
        ("P(a | do(c=y))", "a and c are independent"),
        ("P(c | do(a=y), b=n)", "c and a are independent given b"),
    ):
        code, out, _ = run(capsys, "query", path, question, "--why")
        assert code == 0
        assert said in out
        assert "a and c may" not in out


def test_intervals_keep_the_order_of_their_numbers(tmp_path, capsys):
    values = [k / 7 - 3 for k in range(40)]
    table = pl.DataFrame({"z": values, "side": ["left" if z < 0 else "right" for z in values]})
    table.write_csv(tmp_path / "z.csv")
    path = tmp_path / "z.bif"
    assert run(capsys, "network", "learn", tmp_path / "z.csv", "--binned", "--output", path)[0] == 0
    states = po.read_network(path).states("z")
    assert [state[0] for state in states] == ["<", "[", "[", "≥"]
    lows = [float(re.findall(r"-?[0-9.]+", state)[0]) for state in states]
    assert lows == sorted(lows)
    for number in (-9, -3, lows[1], lows[2], lows[2] + 1e-3, lows[3], 1e9):
        held = states[sum(number >= low for low in lows[1:])]
        asked = json.loads(run(capsys, "query", path, f"P(side | z={number})", "--json")[1])
        by_name = json.loads(run(capsys, "query", path, f"P(side | z='{held}')", "--json")[1])
        assert asked["given"] == {"z": held}
        assert asked["answer"] == by_name["answer"]
        assert po.read_network(path).query("side", evidence={"z": number}).to_dict() == pytest.approx(
            {one["states"]["side"]: one["probability"] for one in by_name["answer"]}
        )
    assert run(capsys, "query", path, "P(side | z=nan)")[0] == 2


def test_decimals_are_cut_too(tmp_path, capsys):
    cells = [Decimal(10**12 * k + 1).scaleb(-9) for k in range(40)]  # the cuts have more digits than their type
    table = pl.DataFrame({"z": pl.Series(cells, dtype=pl.Decimal(38, 9)), "side": ["left", "right"] * 20})
    table.write_parquet(tmp_path / "z.parquet")
    path = tmp_path / "z.bif"
    assert run(capsys, "network", "learn", tmp_path / "z.parquet", "--binned", "--output", path)[0] == 0
    assert len(po.read_network(path).states("z")) == 4


def test_infinite_numbers_are_in_the_outer_bins():
    cells = pl.DataFrame({"z": [float("-inf"), *map(float, range(40)), float("inf")]})
    binned = _binned(cells)["z"]
    assert binned[0] == binned[1] != binned[-1] == binned[-2]
