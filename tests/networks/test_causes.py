"""Interventions and identified effects: equal to sums over the mutilated joint, and blind to hidden tables."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks import CPT, DAG, adjustment_sets, identify

YES_NO = ("yes", "no")


def random_tables(dag, seed, states=YES_NO):
    rng = np.random.default_rng(seed)
    cpts = []
    for name in dag.nodes:
        table = rng.random((*(len(states) for _ in dag.parents[name]), len(states))) + 0.05
        cpts.append(CPT(name, states, dict.fromkeys(dag.parents[name], states), table / table.sum(-1, keepdims=True)))
    return po.BayesianNetwork(dag.edges, variables=dag.nodes, cpts=cpts)


def random_dag(seed, n=6, density=0.45):
    rng = np.random.default_rng(seed)
    names = [f"v{k}" for k in range(n)]
    return DAG(tuple(names), tuple(pair for pair in itertools.combinations(names, 2) if rng.random() < density))


def effect_by_sums(net, outcome, settings_, evidence):
    """Return p(outcome | do(settings), evidence) by the truncated product over all configurations."""
    total = dict.fromkeys(YES_NO, 0.0)
    for states in itertools.product(YES_NO, repeat=len(net.variables)):
        row = dict(zip(net.variables, states, strict=True))
        if any(row[name] != state for name, state in {**settings_, **evidence}.items()):
            continue
        p = 1.0
        for cpt in net.cpts:
            if cpt.variable not in settings_:
                place = tuple(YES_NO.index(row[name]) for name in (*cpt.parents, cpt.variable))
                p *= cpt.probabilities[place]
        total[row[outcome]] += p
    return np.array(list(total.values())) / sum(total.values())


@given(st.integers(0, 10_000))
def test_do_is_the_truncated_product(seed):
    net = random_tables(random_dag(seed), seed)
    rng = np.random.default_rng(seed)
    y, x, z = rng.choice(net.variables, 3, replace=False).tolist()
    found = net.do({x: "no"}).query(y, evidence={z: "yes"})
    assert_allclose(found.probabilities, effect_by_sums(net, y, {x: "no"}, {z: "yes"}), atol=1e-12)


@given(st.integers(0, 10_000), st.booleans())
def test_an_identified_effect_is_that_of_the_intervention(seed, with_evidence):
    """The formula reads observed probabilities only, and gives what the hidden tables give."""
    dag = random_dag(seed, n=7)
    net = random_tables(dag, seed)
    rng = np.random.default_rng(seed + 1)
    y, x, z, *hidden = rng.choice(net.variables, 5, replace=False).tolist()
    evidence = {z: "yes"} if with_evidence else {}
    found = identify(dag, y, x, tuple(evidence), hidden)
    if found.is_identifiable:
        assert found.formula.free.isdisjoint(hidden)
        answer = net.causal_effect(y, {x: "no"}, evidence, hidden)
        assert_allclose(answer.probabilities, effect_by_sums(net, y, {x: "no"}, evidence), atol=1e-10)
    else:
        with pytest.raises(ValueError, match=r"not identifiable.*hedge"):
            net.causal_effect(y, {x: "no"}, evidence, hidden)


@given(st.integers(0, 10_000))
def test_adjustment_sets_give_the_effect(seed):
    dag = random_dag(seed, n=7, density=0.35)
    net = random_tables(dag, seed)
    rng = np.random.default_rng(seed + 1)
    y, x, *hidden = rng.choice(net.variables, 4, replace=False).tolist()
    sets = adjustment_sets(dag, x, y, hidden)
    wanted = effect_by_sums(net, y, {x: "no"}, {})
    for z in sets.back_door:
        table = net.joint(x, *z, y)
        joint = table.probabilities[1]  # x = no; then the axes of z, and y
        weight = table.probabilities.sum(axis=(0, -1))
        given_z = joint / joint.sum(axis=-1, keepdims=True)
        assert_allclose((given_z * weight[..., None]).reshape(-1, 2).sum(axis=0), wanted, atol=1e-10)
    for z in sets.front_door:
        p = np.moveaxis(net.joint(*z, x, y).probabilities.reshape(-1, 2, 2), 0, 1)  # x, z, y
        z_given_x = p.sum(axis=2)[1] / p[1].sum()
        y_given_xz, p_x = p / p.sum(axis=2, keepdims=True), p.sum(axis=(1, 2))
        assert_allclose(np.einsum("z,xzy,x->y", z_given_x, y_given_xz, p_x), wanted, atol=1e-10)
    if sets.back_door or sets.front_door:
        assert identify(dag, y, x, (), hidden).is_identifiable


BOW = DAG.of([("u", "x"), ("u", "y"), ("x", "y")])
FRONT = DAG.of([("u", "x"), ("u", "y"), ("x", "m"), ("m", "y")])
NAPKIN = DAG.of([("a", "w"), ("a", "x"), ("b", "w"), ("b", "y"), ("w", "z"), ("z", "x"), ("x", "y")])
INSTRUMENT = DAG.of([("i", "x"), ("u", "x"), ("u", "y"), ("x", "y")])


@pytest.mark.parametrize(
    ("dag", "hidden", "identifiable"),
    [(BOW, "u", False), (BOW, (), True), (FRONT, "u", True), (NAPKIN, ("a", "b"), True), (INSTRUMENT, "u", False)],
)
def test_textbook_graphs(dag, hidden, identifiable):
    """The bow and the instrument are hedges; the front door and Pearl's napkin are not."""
    found = identify(dag, "y", "x", hidden=hidden)
    assert found.is_identifiable is identifiable
    if identifiable:
        net = random_tables(dag, 3)
        answer = net.causal_effect("y", {"x": "yes"}, hidden=hidden)
        assert_allclose(answer.probabilities, effect_by_sums(net, "y", {"x": "yes"}, {}), atol=1e-12)


def test_reasons_name_the_trails():
    sets = adjustment_sets(FRONT, "x", "y", hidden="u")
    assert sets.back_door == ()
    assert sets.front_door == (("m",),)
    assert "x ← u → y stays open (u is hidden)" in repr(sets)
    assert adjustment_sets(FRONT, "x", "y").back_door == (("u",),)
    assert "it blocks x ← u → y" in repr(adjustment_sets(FRONT, "x", "y"))
    m_graph = DAG.of([("a", "x"), ("a", "z"), ("b", "z"), ("b", "y"), ("x", "y")])
    assert adjustment_sets(m_graph, "x", "y").back_door == ((),)  # to adjust for z alone would open a trail


def test_a_random_intervention_and_errors():
    net = random_tables(BOW, 0)
    drawn = net.do({"x": {"yes": 0.25, "no": 0.75}}).query("y").probabilities
    each = [net.do({"x": state}).query("y").probabilities for state in YES_NO]
    assert_allclose(drawn, 0.25 * each[0] + 0.75 * each[1], atol=1e-12)
    assert net.do({"x": "yes"}).properties == net.properties
    for settings_, message in (({"x": "maybe"}, "no state 'maybe'"), ({"w": "yes"}, "no variable 'w'")):
        with pytest.raises(ValueError, match=message):
            net.do(settings_)
    with pytest.raises(ValueError, match="set one state"):
        net.do({"x": {"yes", "no"}})
    with pytest.raises(TypeError, match="mapping"):
        net.do("x")
    with pytest.raises(ValueError, match="is in outcome and in treatment"):
        net.identify("x", "x")
    with pytest.raises(ValueError, match="the outcome 'y' is hidden"):
        net.adjustment_sets("x", "y", hidden="y")
