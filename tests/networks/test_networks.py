"""Networks: every answer is what summing the enumerated joint gives."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.networks import CPT

STATES = ("low", "mid", "high")


def random_network(seed, n=5, zeros=True, **more):
    """Return a network of n variables of 1 to 3 states, some of its probabilities 0."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    states = {name: STATES[: rng.choice([1, 2, 2, 3])] for name in names}
    cpts = []
    for k, name in enumerate(names):
        parents = [one for one in names[:k] if rng.random() < 0.5]
        shape = (*(len(states[one]) for one in parents), len(states[name]))
        table = rng.random(shape) + 1e-3
        if zeros:
            table *= rng.random(shape) < 0.7
            table[..., 0] += table.sum(axis=-1) == 0
        cpts.append(
            CPT(name, states[name], {one: states[one] for one in parents}, table / table.sum(-1, keepdims=True))
        )
    return po.BayesianNetwork(cpts=[cpts[k] for k in rng.permutation(n)], **more)


def enumerated(net):
    """Return the joint, an axis a variable, by multiplying the tables out."""
    axis = {name: k for k, name in enumerate(net.variables)}
    joint = np.ones([len(net.states(name)) for name in net.variables])
    for cpt in net.cpts:
        scope = [axis[name] for name in (*cpt.parents, cpt.variable)]
        table = cpt.probabilities.transpose(np.argsort(scope))
        joint = joint * table.reshape([joint.shape[k] if k in scope else 1 for k in range(joint.ndim)])
    return joint


def weighed(net, joint, evidence):
    """Return p(x) times the likelihood of x."""
    for name, finding in evidence.items():
        states = net.states(name)
        if isinstance(finding, dict):
            likelihood = np.array([finding[state] for state in states])
        else:
            likelihood = np.array(
                [state in finding if isinstance(finding, set) else state == finding for state in states]
            )
        shape = [1] * joint.ndim
        shape[net.variables.index(name)] = -1
        joint = joint * likelihood.reshape(shape)
    return joint


def summed(net, joint, names):
    kept = [name for name in net.variables if name in names]
    out = joint.sum(axis=tuple(k for k, name in enumerate(net.variables) if name not in names))
    return out.transpose([kept.index(name) for name in names])


@st.composite
def cases(draw):
    """Return a network, its joint, and evidence that is possible."""
    net = random_network(draw(st.integers(0, 10_000)), draw(st.integers(1, 5)))
    joint = enumerated(net)
    evidence = {}
    for name in net.variables:
        kind, states = draw(st.sampled_from(["hard", "soft", "several", "no", "no"])), net.states(name)
        if kind == "hard":
            evidence[name] = draw(st.sampled_from(states))
        elif kind == "soft":
            evidence[name] = {state: draw(st.sampled_from([0.0, 0.1, 0.7, 2.0])) for state in states}
        elif kind == "several":
            evidence[name] = set(draw(st.lists(st.sampled_from(states), min_size=1)))
        if name in evidence and not weighed(net, joint, evidence).sum() > 0:
            del evidence[name]
    return net, joint, evidence


def is_settled(net, name, evidence):
    return name in evidence and (
        isinstance(evidence[name], str)
        or (isinstance(evidence[name], set) and len(evidence[name]) == 1)
        or (
            isinstance(evidence[name], dict)
            and sorted(evidence[name].values())[-1:] == [1]
            and sum(evidence[name].values()) == 1
        )
    )


@given(cases(), st.data())
def test_a_query_is_the_normalised_sum_of_the_joint(case, data):
    net, joint, evidence = case
    posterior = weighed(net, joint, evidence)
    free = [name for name in net.variables if not is_settled(net, name, evidence)]
    marginals = net.query(evidence=evidence)
    assert list(marginals) == free
    for name in free:
        assert_allclose(marginals[name].probabilities, summed(net, posterior, [name]) / posterior.sum(), atol=1e-12)
    if free:
        names = data.draw(st.permutations(free))[: data.draw(st.integers(1, len(free)))]
        answer = net.query(*names, evidence=evidence)
        assert answer.variables == tuple(names)
        assert_allclose(answer.probabilities, summed(net, posterior, names) / posterior.sum(), atol=1e-12)
        separate = net.query(*names, evidence=evidence, joint=False)
        for name in names:
            assert_allclose(answer.marginal(name).probabilities, separate[name].probabilities, atol=1e-12)


@given(cases())
def test_pruned_trees_answer_as_the_whole_one_does(case):
    net, joint, evidence = case
    posterior = weighed(net, joint, evidence)
    net._inference.tables.__dict__["whole"] = None  # as if it were too large
    for name, found in net.query(evidence=evidence).items():
        assert_allclose(found.probabilities, summed(net, posterior, [name]) / posterior.sum(), atol=1e-12)
    for name in net.variables:
        if not is_settled(net, name, evidence):
            found = net.query(name, evidence=evidence)
            assert_allclose(found.probabilities, summed(net, posterior, [name]) / posterior.sum(), atol=1e-12)
    assert_allclose(math.exp(net.most_probable(evidence).log_evidence), posterior.sum(), rtol=1e-12)


@given(st.integers(0, 1000), st.data())
def test_impossible_evidence_is_found_by_pruned_trees_too(seed, data):
    net = random_network(seed)
    joint = enumerated(net)
    evidence = {name: data.draw(st.sampled_from(net.states(name))) for name in net.variables[1:]}
    net._inference.tables.__dict__["whole"] = None
    target = net.variables[0]
    if weighed(net, joint, evidence).sum() > 0:
        net.query(target, evidence=evidence)
    else:
        with pytest.raises(ValueError, match="the evidence has probability 0"):
            net.query(target, evidence=evidence)


@given(cases(), st.data())
def test_a_probability_is_a_ratio_of_sums(case, data):
    net, joint, evidence = case
    event = {
        name: set(data.draw(st.lists(st.sampled_from(net.states(name)), min_size=1)))
        for name in net.variables
        if data.draw(st.booleans())
    }
    posterior = weighed(net, joint, evidence)
    expected = weighed(net, posterior, event).sum() / posterior.sum()
    assert_allclose(net.probability(event, evidence), expected, atol=1e-12)


@given(cases())
def test_the_most_probable_configuration_is_the_largest_cell(case):
    net, joint, evidence = case
    posterior = weighed(net, joint, evidence)
    found = net.most_probable(evidence)
    position = tuple(net.states(name).index(found[name]) for name in net.variables)
    assert_allclose(posterior[position], posterior.max(), rtol=1e-12)
    assert_allclose(found.log_probability, np.log(posterior.max()), rtol=1e-12, atol=1e-12)
    assert_allclose(found.probability, posterior.max() / posterior.sum(), rtol=1e-12)


@given(st.integers(0, 1000), st.data())
def test_a_conditional_is_a_joint_divided_by_a_marginal(seed, data):
    net = random_network(seed)
    joint = enumerated(net)
    names = data.draw(st.permutations(net.variables))
    a, b = names[: data.draw(st.integers(1, 2))], names[2 : data.draw(st.integers(3, 5))]
    both = summed(net, joint, [*b, *a])
    with np.errstate(invalid="ignore"):
        expected = both / both.sum(axis=tuple(range(len(b), both.ndim)), keepdims=True)
    found = net.conditional(a, given=b)
    assert_allclose(found.probabilities, expected, atol=1e-12)
    assert (list(found.states), list(found.given)) == (list(a), list(b))
    repr(found)


def test_the_joint_is_the_product_and_its_marginals_the_sums():
    net = random_network(3)
    full = net.joint()
    assert_allclose(full.probabilities, enumerated(net), atol=1e-15)
    assert_allclose(full.marginal("v3", "v0").probabilities, net.query("v3", "v0").probabilities, atol=1e-14)
    for name in net.variables:
        again = net.conditional(name, given=net.cpt(name).parents) if net.cpt(name).parents else net.query(name)
        seen = ~np.isnan(again.probabilities)
        assert_allclose(again.probabilities[seen], net.cpt(name).probabilities[seen], atol=1e-12)


# Tables of evidence -------------------------------------------------------------------------------------------------


def drawn_table(net, n, seed, missing=0.4):
    """Return drawn rows with cells missing, as columns of Python cells."""
    rng = np.random.default_rng(seed)
    rows = net.sample(n, random_state=rng)
    return {name: [None if rng.random() < missing else cell for cell in rows[name].to_list()] for name in rows.columns}


@given(st.integers(0, 1000))
def test_rows_of_a_table_are_answered_like_single_cases(seed):
    net = random_network(seed, 4)
    columns = drawn_table(net, 8, seed)
    table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    marginals, likelihood = net.marginals(table), net.log_likelihood(table)
    proba = net.predict_proba(table, "v1")
    joint = enumerated(net)
    for i, row in enumerate(table.iter_rows(named=True)):
        known = {name: cell for name, cell in row.items() if cell is not None}
        posterior = weighed(net, joint, known)
        assert_allclose(likelihood[i], np.log(posterior.sum()), atol=1e-12)
        for name in net.variables:
            assert_allclose(marginals[name][i], summed(net, posterior, [name]) / posterior.sum(), atol=1e-12)
        others = weighed(net, joint, {name: cell for name, cell in known.items() if name != "v1"})
        assert_allclose(proba[i], summed(net, others, ["v1"]) / others.sum(), atol=1e-12)


def test_any_kind_of_table_is_read(constructor):
    net = po.BayesianNetwork(
        cpts=[
            CPT("sky", ["clear", "fog"], {}, [0.7, 0.3]),
            CPT("floors", [1, 2, 3], {"sky": ["clear", "fog"]}, [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
            CPT("windy", [False, True], {"floors": [1, 2, 3]}, [[0.5, 0.5], [0.4, 0.6], [0.1, 0.9]]),
        ]
    )
    columns = {"sky": ["fog", None, "clear"], "floors": [3, 1, None], "windy": [True, None, False]}
    assert_allclose(
        net.log_likelihood(constructor(columns)),
        np.log([0.3 * 0.1 * 0.9, 0.7 * 0.2 + 0.3 * 0.6, 0.7 * (0.2 * 0.5 + 0.3 * 0.4 + 0.5 * 0.1)]),
    )


def test_columns_may_be_absent_and_in_any_order():
    net = random_network(1, zeros=False)
    table = net.sample(20, random_state=0)
    shuffled = table.select(["v4", "v2", "v0", "v3", "v1"])
    assert_allclose(net.log_likelihood(shuffled), net.log_likelihood(table))
    part = table.select("v3", "v1").to_pandas()
    assert_allclose(
        net.predict_proba(part, "v2"),
        net.marginals(table.with_columns(v0=None, v2=None, v4=None), "v2")["v2"],
    )


def test_a_target_in_the_table_is_not_looked_at():
    net = random_network(5, zeros=False)
    table = net.sample(10, random_state=0)
    assert_allclose(net.predict_proba(table, "v2"), net.predict_proba(table.drop("v2"), "v2"))


def test_soft_evidence_for_a_table():
    net = random_network(8, zeros=False)
    table = net.sample(4, random_state=0).select("v0", "v4")
    k = len(net.states("v2"))
    weights = np.random.default_rng(0).random((4, k))
    found = net.marginals(table, ["v1"], soft={"v2": weights})["v1"]
    same = net.marginals(table, ["v1"], soft={"v2": weights[0]})["v1"]
    for i, row in enumerate(table.iter_rows(named=True)):
        soft = dict(zip(net.states("v2"), weights[i].tolist(), strict=True))
        assert_allclose(found[i], net.query("v1", evidence={**row, "v2": soft}).probabilities)
    assert_allclose(same[0], found[0])
    with pytest.raises(ValueError, match=r"likelihoods of 'v2' have shape \(7,\)"):
        net.marginals(table, soft={"v2": np.ones(7)})
    with pytest.raises(ValueError, match="must be finite, at least 0"):
        net.marginals(table, soft={"v2": -np.ones(k)})


def sprinkler():
    net = po.BayesianNetwork([("rain", "sprinkler"), ("rain", "grass"), ("sprinkler", "grass")])
    net.add_cpt("rain", {"yes": 0.2, "no": 0.8})
    net.add_cpt("sprinkler", {"yes": {"on": 0.01, "off": 0.99}, "no": {"on": 0.4, "off": 0.6}})
    net.add_cpt(
        "grass",
        {
            ("yes", "on"): {"wet": 0.99, "dry": 0.01},
            ("no", "on"): {"wet": 0.9, "dry": 0.1},
            ("yes", "off"): {"wet": 0.8, "dry": 0.2},
            ("no", "off"): {"wet": 0.0, "dry": 1.0},
        },
    )
    return net


def test_impossible_rows_are_nan_with_one_warning():
    net = sprinkler()
    table = pl.DataFrame({"rain": ["no", "no"], "sprinkler": ["off", "on"], "grass": ["wet", "wet"]})
    assert net.log_likelihood(table)[0] == -np.inf
    with pytest.warns(UserWarning, match=r"row \(0\) has probability 0") as caught:
        found = net.marginals(table)
    assert len(caught) == 1
    assert all(np.isnan(found[name][0]).all() for name in found)
    assert found["grass"][1].tolist() == [1, 0]
    with pytest.raises(ValueError, match="the evidence has probability 0 under this network"):
        net.query("sprinkler", evidence={"rain": "no", "grass": "wet", "sprinkler": {"on": 0, "off": 1.5}})
    for ask in (net.most_probable, lambda evidence: net.sample(evidence=evidence), lambda e: net.probability({}, e)):
        with pytest.raises(ValueError, match="the evidence has probability 0 under this network"):
            ask({"rain": "no", "grass": "wet", "sprinkler": "off"})


def test_the_sprinkler_by_hand():
    net = sprinkler()
    assert net.n_parameters == 1 + 2 + 4
    wet = 0.2 * (0.01 * 0.99 + 0.99 * 0.8) + 0.8 * 0.4 * 0.9
    assert_allclose(net.probability({"grass": "wet"}), wet)
    assert_allclose(net.query("rain", evidence={"grass": "wet"})["yes"], 0.2 * (0.01 * 0.99 + 0.99 * 0.8) / wet)
    assert_allclose(net.probability({"rain": "yes"}, given={"grass": "wet", "sprinkler": "on"}), 0.00198 / 0.28998)
    assert net.probability({"rain": "yes"}, given={"rain": "no"}) == 0
    assert net.probability({}) == 1
    assert net.query("rain", evidence={"grass": None, "sprinkler": float("nan")})["yes"] == pytest.approx(0.2)


# Sampling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", [{}, {"v4": "low"}, {"v4": {"low": 0.2, "mid": 0.9, "high": 0.4}}])
def test_samples_have_the_frequencies_of_the_posterior(evidence):
    net = next(one for one in map(random_network, range(100)) if len(one.states("v4")) == 3)
    n = 4000
    drawn = net.sample(n, evidence=evidence, random_state=1)
    for name, found in net.query(evidence=evidence).items():
        for state, p in found.to_dict().items():
            share = (drawn[name] == state).mean()
            assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) / n) + 1e-12, (name, state)
    assert np.isfinite(net.log_likelihood(drawn)).all()
    assert drawn.equals(net.sample(n, evidence=evidence, random_state=1))
    if evidence.get("v4") == "low":
        assert (drawn["v4"] == "low").all()


@given(cases())
def test_estimates_lie_within_their_standard_errors(case):
    net, joint, evidence = case
    posterior = weighed(net, joint, evidence)
    for name, found in net.query(evidence=evidence, method="sampling", n_samples=3000, random_state=0).items():
        exact = summed(net, posterior, [name]) / posterior.sum()
        # 1/n for what no sample has hit.
        assert (np.abs(found.probabilities - exact) <= 6 * found.standard_errors + 0.05).all()


def test_standard_errors_are_those_of_repeated_sampling():
    net = sprinkler()
    runs = [
        net.probability({"rain": "yes"}, {"grass": "wet"}, method="sampling", n_samples=500, random_state=s)
        for s in range(200)
    ]
    exact = net.probability({"rain": "yes"}, {"grass": "wet"})
    stated = np.mean([run.standard_error for run in runs])
    assert_allclose(np.std(runs), stated, rtol=0.25)
    assert abs(np.mean(runs) - exact) < 4 * stated / math.sqrt(200) + 1e-3
    one = net.query("rain", evidence={"grass": "wet"}, method="sampling", n_samples=500, random_state=0)
    assert one["yes"] == pytest.approx(runs[0])
    assert one.standard_errors[0] == pytest.approx(runs[0].standard_error)
    assert "standard error" in repr(one)
    assert "±" in repr(runs[0])
    with pytest.raises(ValueError, match="none of the 50 samples agrees"):
        net.query(
            "grass",
            evidence={"rain": "no", "sprinkler": {"on": 0, "off": 2}, "grass": {"wet": 2, "dry": 0}},
            method="sampling",
            n_samples=50,
        )


# What is shown ------------------------------------------------------------------------------------------------------


def test_answers_print_and_convert():
    net = sprinkler()
    both = net.query("rain", "grass", evidence={"sprinkler": "on"})
    assert repr(both).splitlines()[:2] == ["p(rain, grass | sprinkler = on)", "rain  grass  probability"]
    assert both["yes", "wet"] == both[{"rain": "yes", "grass": "wet"}] == both.to_dict()["yes", "wet"]
    assert both[{"rain": "yes"}] == pytest.approx(both.marginal("rain")["yes"])
    assert both.most_probable == {"rain": "no", "grass": "wet"}
    assert both.to_polars().columns == list(both.to_pandas().columns) == ["rain", "grass", "probability"]
    with pytest.raises(KeyError, match="'gras' is not in"):
        both[{"gras": "wet"}]
    with pytest.raises(KeyError, match="names 1 states; name one of each of rain, grass"):
        both["yes"]
    each = net.query(evidence={"sprinkler": "on"})
    assert set(each) == {"rain", "grass"}
    assert "sprinkler" not in each
    assert each.to_polars().shape == each.to_pandas().shape == (4, 3)
    assert repr(each).startswith("p(variable | sprinkler = on)\nvariable")
    table = net.conditional("rain", given=["grass", "sprinkler"])
    assert table["wet", "on"]["yes"] == pytest.approx(0.00198 / 0.28998)
    assert table[{"sprinkler": "on", "grass": "wet"}]["yes"] == table["wet", "on"]["yes"]
    with pytest.raises(KeyError, match="must name a state of each of grass, sprinkler"):
        table[{"grass": "wet"}]
    with pytest.raises(KeyError, match="names 1 states"):
        table["wet"]
    long = CPT("x", list(range(60)), {}, np.full(60, 1 / 60))
    assert repr(long).splitlines()[1].endswith("…")
    assert "… and 20 more rows" in repr(po.BayesianNetwork(cpts=[long]).query("x"))
    assert "configuration" not in repr(net.most_probable())
    assert repr(net) == "<BayesianNetwork: 3 variables, 3 edges, 7 parameters>"


def test_networks_are_saved_and_loaded(tmp_path, capsys):
    from posteriori.cli import main

    net = po.BayesianNetwork(
        cpts=[CPT("a", [0, 1], {}, [0.25, 0.75]), CPT("b", [False, True], {"a": [0, 1]}, [[0.5, 0.5], [1, 0]])],
        name="small",
        properties={"": ["drawn by hand"], "a": ["position = (1, 2)"]},
        max_table_size=1000,
    )
    po.save(net, tmp_path / "net.posteriori")
    again = po.load(tmp_path / "net.posteriori")
    assert again == net
    assert again.to_parameters() == net.to_parameters()
    assert again.joint().to_dict() == net.joint().to_dict()
    pl.DataFrame({"a": [0]}).write_csv(tmp_path / "table.csv")
    assert main(["predict", str(tmp_path / "net.posteriori"), str(tmp_path / "table.csv")]) == 2
    assert "holds a Bayesian network; a classifier is needed here" in capsys.readouterr().err
    for command in (["show", "n.bif"], ["predict", "n.bif.gz", "t.csv"]):
        file = tmp_path / command[1]
        file.write_bytes(b"network unknown {}")
        assert main([command[0], str(file), *command[2:]]) == 2
        assert "classifier is needed here (posteriori network and posteriori query take networks)" in (
            capsys.readouterr().err
        )


def test_a_peer_gives_the_same_posteriors(shared_data):
    gum = pytest.importorskip("pyagrum", reason="pyagrum is not installed")
    rng = np.random.default_rng(0)
    for name in ("asia", "alarm", "hailfinder", "win95pts"):  # it cannot read states such as Asy/Patch
        path = shared_data / "bif" / f"{name}.bif"
        net, peer = po.read_network(path), gum.loadBN(str(path))
        for cpt in net.cpts:  # as it reads numbers into single precision
            scope = [*cpt.parents, cpt.variable]
            theirs = peer.cpt(cpt.variable)
            table = cpt.probabilities.transpose([scope.index(one) for one in reversed(theirs.names)])
            theirs[:] = np.ascontiguousarray(table)
        row = net.sample(1, random_state=rng).row(0, named=True)
        evidence = {one: row[one] for one in rng.choice(net.variables, 3, replace=False).tolist()}
        inference = gum.LazyPropagation(peer)
        inference.setEvidence(evidence)
        for variable, found in net.query(evidence=evidence).items():
            assert_allclose(found.probabilities, inference.posterior(variable).tolist(), atol=1e-10)


@pytest.mark.parametrize("name", ["", "^a$", "*", "^.*$"])
def test_a_name_that_polars_takes_for_a_pattern_is_sampled(name):
    net = po.BayesianNetwork(cpts=[CPT(name, ["u", "v"], {}, [0.0, 1.0]), CPT("b", [1, 2], {}, [1.0, 0.0])])
    assert net.sample(2, random_state=0).to_dict(as_series=False) == {name: ["v", "v"], "b": [1, 1]}


def test_names_in_a_list_are_asked_for_one_by_one():
    net = random_network(0)
    with pytest.raises(ValueError, match=r"\['v0', 'v1'\] is a list of names, and one is wanted; give each"):
        net.query(["v0", "v1"])
