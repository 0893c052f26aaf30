"""Tables of a network: how they are stated, and what is refused."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks import CPT
from tests.networks.test_networks import sprinkler


def test_tables_are_stated_in_many_ways():
    net = sprinkler()
    rows = net.cpt("grass")
    for stated in (
        rows.probabilities,
        rows.probabilities.tolist(),
        {
            key: [net.cpt("grass").probabilities[position][0], net.cpt("grass").probabilities[position][1]]
            for position, key in zip(np.ndindex(2, 2), itertools.product(["yes", "no"], ["on", "off"]), strict=True)
        },
        rows.to_polars(),
        rows.to_pandas(),
        rows.to_pandas().sample(frac=1, random_state=0),
        rows.to_polars().unpivot(index=["rain", "sprinkler"], variable_name="grass", value_name="p"),
        rows,
    ):
        again = sprinkler()
        again.add_cpt(*([stated] if isinstance(stated, CPT) else ["grass", stated]))
        assert again == net
    by_columns = sprinkler()
    by_columns.add_cpt("grass", rows.probabilities.transpose(1, 0, 2), parents=["sprinkler", "rain"])
    assert by_columns != net
    assert_allclose(by_columns.joint(*net.variables).probabilities, net.joint().probabilities)
    fresh = po.BayesianNetwork([("a", "b")], states={"a": [0, 1], "b": [False, True]})
    fresh.add_cpt("b", [[0.1, 0.9], [0.5, 0.5]])
    fresh.add_cpt("a", pl.DataFrame({"a": [1, 0], "p": [0.25, 0.75]}))
    assert fresh.cpt("a").probabilities.tolist() == [0.75, 0.25]
    fresh.add_cpt("a", pd.DataFrame({"0": [0.5], "1": [0.5]}))
    assert fresh.probability({"b": True}) == pytest.approx(0.7)


def test_a_changed_table_changes_the_answers():
    net = sprinkler()
    before = net.probability({"grass": "wet"})
    net.add_cpt("rain", {"yes": 1.0, "no": 0.0})
    assert net.probability({"grass": "wet"}) == pytest.approx(0.01 * 0.99 + 0.99 * 0.8)
    assert before != net.probability({"grass": "wet"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rain", {"yes": 0.2, "no": 0.9}), "table of 'rain' sums to 1.1; each row must sum to 1"),
        (("rain", {"yes": 0.2}), "no probability for rain = 'no'"),
        (("rain", {"yes": 0.2, "now": 0.8}), "'rain' has no state 'now'; did you mean 'no'"),
        (("rain", {"yes": 0.2, "no": "much"}), "holds 'much'"),
        (("rain", {"yes": -0.2, "no": 1.2}), "holds -0.2 at rain = 'yes'"),
        (("rain", [0.1, 0.2, 0.7]), r"has shape \(3,\); \(2,\) is needed: an axis of states for each of rain"),
        (("rain", [[0.1], [0.2, 0.7]]), r"is no array of numbers .* its shape is \(2,\)"),
        (("rian", [0.5, 0.5]), "no variable 'rian'; did you mean 'rain'"),
        (("rain",), "table of 'rain' is missing"),
        (("sprinkler", {"yes": [0.5, 0.5]}), "no probability for rain = 'no', sprinkler = 'on'"),
        (("sprinkler", {"yes": [0.5, 0.5], "no": [1]}), "row 'no' of the table of 'sprinkler' must have 2 numbers"),
        (("sprinkler", [[0.5, 0.5], [0.5, 0.6]]), "table of 'sprinkler' sums to 1.1 where rain = 'no'"),
        (("grass", {"yes": [0.5, 0.5]}), r"must name a state of each of its parents: \(rain, sprinkler\)"),
        (("grass", pl.DataFrame({"rain": ["yes"], "wet": [1.0]})), "lacks a column for its parent 'sprinkler'"),
        (("rain", pl.DataFrame({"yes": [0.5], "nope": [0.5]})), "'rain' has no state 'nope'"),
        (("rain", pl.DataFrame({"rain": ["yes"], "p": [0.5], "q": [1]})), "exactly one is needed"),
        (("rain", pl.DataFrame({"rain": ["yes", "yes"], "p": [0.5, 0.5]})), "has two rows for rain = 'yes'; leave one"),
        (("rain", pl.DataFrame({"yes": [0.5, 0.5], "no": [0.5, 0.5]})), "table of 'rain' has two rows; leave one out"),
    ],
)
def test_bad_tables_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sprinkler().add_cpt(*arguments)


def test_tables_must_fit_each_other_and_the_graph():
    net = sprinkler()
    with pytest.raises(ValueError, match="has the parents 'rain', but in the graph they are 'rain', 'sprinkler'"):
        net.add_cpt("grass", [[0.5, 0.5]] * 2, parents=["rain"])
    with pytest.raises(ValueError, match="gives 'rain' the states 'wet', 'not'; elsewhere they are 'yes', 'no'"):
        net.add_cpt("rain", [0.5, 0.5], states=["wet", "not"])
    net.add_cpt("grass", np.full((2, 2, 3), 1 / 3), states=["wet", "damp", "dry"])  # nothing else names them
    assert net.states("grass") == ("wet", "damp", "dry")
    fresh = po.BayesianNetwork([("a", "b")])
    with pytest.raises(ValueError, match="the states of 'a', a parent of 'b', are not known"):
        fresh.add_cpt("b", [[1.0]])
    with pytest.raises(ValueError, match="the states of 'a' are not known; name them"):
        fresh.add_cpt("a", [1.0])
    with pytest.raises(ValueError, match="'a' has no table yet; add it"):
        fresh.query("a")
    with pytest.raises(ValueError, match="states of 'a' are not known yet"):
        fresh.states("a")
    with pytest.raises(TypeError, match="give them as a list"):
        fresh.add_cpt("a", [0.5, 0.5], states="ab")
    with pytest.raises(ValueError, match="the state 'a' of 'x' occurs twice"):
        CPT("x", ["a", "a"], {}, [0.5, 0.5])
    with pytest.raises(ValueError, match="its own parent"):
        CPT("x", ["a"], {"x": ["a"]}, [[1.0]])
    with pytest.raises(ValueError, match="two tables"):
        po.BayesianNetwork(cpts=[CPT("x", ["a"], {}, [1.0])] * 2)
    assert repr(fresh) == "<BayesianNetwork: 2 variables, 1 edges, 0 tables so far>"


def test_a_cpt_cannot_be_written_into():
    table = np.array([0.5, 0.5])
    cpt = CPT("x", ["a", "b"], {}, table)
    table[0] = 7
    assert cpt.probabilities.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        cpt.probabilities[0] = 1


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        (lambda net: net.query("Rain"), ValueError, "no variable 'Rain'; did you mean 'rain'"),
        (
            lambda net: net.query("rain", evidence={"gras": "wet"}),
            ValueError,
            "no variable 'gras'; did you mean 'grass'",
        ),
        (
            lambda net: net.query("rain", evidence={"grass": "Wet"}),
            ValueError,
            "'grass' has no state 'Wet'; did you mean",
        ),
        (
            lambda net: net.query("rain", evidence={"rain": "no"}),
            ValueError,
            "'rain' is asked for and is evidence, 'no'",
        ),
        (lambda net: net.query("rain", "rain"), ValueError, "asked for twice"),
        (lambda net: net.query("rain", evidence="wet"), TypeError, "give it as a mapping"),
        (lambda net: net.causal_effect("rain", {"grass": "wet"}, 2), TypeError, "evidence is 2; give it as a mapping"),
        (lambda net: net.causal_effect("rain", "grass"), TypeError, "settings is 'grass'; .*, {'grass': state}"),
        (lambda net: net.do("grass"), TypeError, "an intervention is 'grass'; .*, {'grass': state}"),
        (lambda net: net.sensitivity("grass"), TypeError, "the event is 'grass'; .*, {'grass': state}"),
        (lambda net: net.probability("grass"), TypeError, "the event is 'grass'; .*, {'grass': state}"),
        (lambda net: net.query("rain", evidence={"grass": {"wet": 1.0}}), ValueError, "lacks its state 'dry'"),
        (lambda net: net.query("rain", evidence={"grass": {"wet": 0, "dry": 0}}), ValueError, "not all of them 0"),
        (lambda net: net.query("rain", evidence={"grass": set()}), ValueError, "no state of 'grass' is left"),
        (lambda net: net.query("rain", method="magic"), ValueError, "choose 'exact', 'conditioning' or 'sampling'"),
        (lambda net: net.query("rain", method="sampling", n_samples=1), ValueError, "draw at least two"),
        (lambda net: net.sample(0), ValueError, "draw at least one row"),
        (lambda net: net.conditional("rain", "rain"), ValueError, "'rain' is in x and in y"),
        (lambda net: net.log_likelihood(pl.DataFrame({"rian": ["no"]})), ValueError, "did you mean 'rain'.*or drop it"),
        (
            lambda net: net.log_likelihood(pl.DataFrame({"rain": ["maybe"]})),
            ValueError,
            "'rain' holds 'maybe', which is no",
        ),
        (lambda net: net.log_likelihood(pl.DataFrame({"rain": [1, 0]})), ValueError, "holds 0, which is no state"),
        (
            lambda net: net.log_likelihood(np.array([["yes", "on"]])),
            ValueError,
            "2 columns without names, .* 3 variables",
        ),
        (lambda net: net.predict_proba(pl.DataFrame({"rain": ["yes"]}), "gras"), ValueError, "did you mean 'grass'"),
        (lambda net: net.markov_blanket("gras"), ValueError, "did you mean 'grass'"),
    ],
)
def test_bad_questions_are_named(question, error, message):
    with pytest.raises(error, match=message):
        question(sprinkler())


def test_a_too_large_network_is_refused_with_its_size_or_sampled():
    rng = np.random.default_rng(0)
    roots = [f"r{i}" for i in range(12)]
    cpts = [CPT(name, ["a", "b"], {}, [0.3, 0.7]) for name in roots]
    table = rng.dirichlet([1, 1], size=(2,) * 12)
    cpts.append(CPT("all", ["a", "b"], dict.fromkeys(roots, ("a", "b")), table))
    net = po.BayesianNetwork(cpts=cpts, max_table_size=1000)
    with pytest.raises(ValueError, match=r"8,\d{3}.*1,000.*method='sampling'"):
        net.query("r0", evidence={"all": "a"})
    assert_allclose(net.query("r0", evidence={"r1": "a"}).probabilities, [0.3, 0.7])  # "all" is barren here
    estimate = net.query("r0", evidence={"all": "a"}, method="sampling", random_state=0)
    exact = po.BayesianNetwork(cpts=cpts).query("r0", evidence={"all": "a"})
    assert (np.abs(estimate.probabilities - exact.probabilities) < 5 * estimate.standard_errors).all()
    with pytest.raises(ValueError, match="ask for fewer"):
        net.joint()
