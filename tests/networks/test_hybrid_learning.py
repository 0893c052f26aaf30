"""Densities, graphs and hidden clusters of hybrid networks, learned from rows."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import posteriori as po
from posteriori.networks import DAG, bootstrap_structure, learn_structure, score_structure
from tests.networks.test_hybrid_networks import random_hybrid, with_gaps


def test_densities_are_the_regressions_of_each_configuration():
    net = random_hybrid(3)
    rows = net.sample(3000, random_state=0)
    fitted = po.BayesianNetwork(net.edges, variables=net.variables).fit(rows, alpha=0)
    log_likelihood = 0.0
    for one in fitted.gaussians:
        for place in np.ndindex(one.intercept.shape):
            part = rows
            for (name, states), code in zip(one.parents.items(), place, strict=True):
                part = part.filter(pl.col(name) == states[code])
            y = part[one.variable].to_numpy()
            design = np.column_stack([np.ones(len(part)), *(part[name].to_numpy() for name in one.continuous)])
            wanted, *_ = np.linalg.lstsq(design, y, rcond=None)
            assert_allclose([one.intercept[place], *one.coefficients[place]], wanted, atol=1e-8)
            assert_allclose(one.variance[place], np.mean((y - design @ wanted) ** 2), rtol=1e-8)
            log_likelihood += stats.norm.logpdf(y, design @ wanted, np.sqrt(one.variance[place])).sum()
    for cpt in fitted.cpts:
        at = tuple(
            np.array([fitted.states(name).index(state) for state in rows[name]])
            for name in (*cpt.parents, cpt.variable)
        )
        log_likelihood += np.log(cpt.probabilities[at]).sum()
    assert_allclose(fitted.log_likelihood(rows).sum(), log_likelihood, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:EM stopped")
def test_parts_and_files_give_the_same_fit(tmp_path):
    net = random_hybrid(3)
    rows = with_gaps(net.sample(900, random_state=0), 0.05, 1)
    graph = {"edges": net.edges, "variables": net.variables}
    whole = po.BayesianNetwork(**graph).fit(rows, max_iter=5, tol=0.0)
    parts = po.BayesianNetwork(**graph).fit(rows[:300], max_iter=5, tol=0.0).partial_fit(rows[300:])
    rows.write_parquet(tmp_path / "rows.parquet")
    file = po.BayesianNetwork(**graph).fit(po.scan(tmp_path / "rows.parquet"), max_iter=5, tol=0.0)
    for other in (parts, file):
        for cpt in whole.cpts:
            theirs = other.cpt(cpt.variable)
            assert theirs.states == cpt.states
            assert_allclose(theirs.probabilities, cpt.probabilities, atol=1e-6)
        for density in whole.gaussians:
            assert_allclose(other.cpt(density.variable).intercept, density.intercept, atol=1e-5)
            assert_allclose(other.cpt(density.variable).variance, density.variance, rtol=1e-5)


def test_a_weight_of_two_is_two_rows():
    net = random_hybrid(3)
    rows = net.sample(300, random_state=0)
    twice = po.BayesianNetwork(net.edges, variables=net.variables).fit(pl.concat([rows, rows]))
    weighted = po.BayesianNetwork(net.edges, variables=net.variables).fit(rows, sample_weight=np.full(300, 2.0))
    for density in twice.gaussians:
        assert_allclose(weighted.cpt(density.variable).intercept, density.intercept, atol=1e-8)
        assert_allclose(weighted.cpt(density.variable).variance, density.variance, rtol=1e-8)


def test_em_never_lowers_the_likelihood_of_the_known_cells():
    net = random_hybrid(11)
    rows = with_gaps(net.sample(400, random_state=0), 0.15, 1)
    fitted = po.BayesianNetwork(net.edges, variables=net.variables).fit(rows, alpha=0, max_iter=100, tol=1e-6)
    trace = fitted.log_likelihood_trace_
    assert len(trace) > 3
    assert all(after >= before - 1e-7 * abs(before) for before, after in itertools.pairwise(trace))
    assert_allclose(fitted.log_likelihood(rows).sum(), trace[-1], rtol=1e-4)


def test_em_finds_two_hidden_clusters():
    rng = np.random.default_rng(0)
    group = rng.random(600) < 0.4
    rows = pl.DataFrame({name: rng.normal(np.where(group, 4.0, 0.0)) for name in ("x", "y")})
    net = po.BayesianNetwork([("g", "x"), ("g", "y")], states={"g": ["0", "1"]}).fit(rows, max_iter=500)
    assert_allclose(sorted(net.cpt("x").intercept), [0.0, 4.0], atol=0.3)
    assert_allclose(sorted(net.cpt("g").probabilities), [0.4, 0.6], atol=0.05)
    agree = (net.predict_proba(rows, "g").argmax(axis=1) == group).mean()
    assert max(agree, 1 - agree) > 0.98


def test_measurements_with_a_discrete_child_are_refused():
    rows = pl.DataFrame({"x": np.linspace(0, 1, 50), "d": ["a", "b"] * 25})
    with pytest.raises(ValueError, match="its child 'd' states"):
        po.BayesianNetwork([("x", "d")]).fit(rows)


def test_the_score_is_the_penalised_likelihood_of_the_fit():
    net = random_hybrid(3)
    rows = net.sample(400, random_state=0)
    fitted = po.BayesianNetwork(net.edges, variables=net.variables).fit(rows, alpha=0)
    wanted = fitted.log_likelihood(rows).sum() - 0.5 * np.log(400) * fitted.n_parameters
    assert_allclose(score_structure(fitted, rows), wanted, rtol=1e-10)


def test_bge_is_equal_for_equivalent_graphs_and_exact():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) * [1.0, 10.0, 0.1]
    rows = pl.DataFrame(dict(zip("abc", z.T, strict=True)))
    chains = ([("a", "b"), ("b", "c")], [("b", "a"), ("b", "c")], [("c", "b"), ("b", "a")])
    found = [score_structure(DAG(("a", "b", "c"), tuple(edges)), rows, "bge") for edges in chains]
    assert_allclose(found, found[0], rtol=1e-12)
    complete = [
        score_structure(DAG(("a", "b", "c"), edges), rows, "bge")
        for edges in ((("a", "b"), ("a", "c"), ("b", "c")), (("c", "b"), ("c", "a"), ("b", "a")))
    ]
    assert_allclose(complete[0], complete[1], rtol=1e-12)


@pytest.mark.parametrize("method", ["hill_climbing", "pc", "mmhc"])
def test_a_graph_over_measurements(method):
    net = po.BayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
    net.add_gaussian("a")
    net.add_gaussian("b")
    net.add_gaussian("c", 1.0, {"a": 1.0, "b": -1.0}, 0.5)
    net.add_gaussian("d", 0.0, {"c": 0.7}, 0.5)
    learned = po.learn_network(net.sample(2000, random_state=0), po.StructureSearch(method, significance=0.01))
    assert set(learned.edges) == set(net.edges)
    assert_allclose(learned.cpt("c").coefficients, [1.0, -1.0], atol=0.1)


def test_a_graph_over_both_kinds():
    net = po.BayesianNetwork([("d", "x"), ("e", "x"), ("x", "y")])
    net.add_cpt("d", {"a": 0.5, "b": 0.5})
    net.add_cpt("e", {"a": 0.5, "b": 0.5})
    net.add_gaussian("x", [[0.0, 2.0], [3.0, -1.0]], variance=0.5)
    net.add_gaussian("y", 0.0, {"x": 1.0}, 0.5)
    rows = net.sample(1500, random_state=0)
    assert set(po.learn_network(rows).edges) == set(net.edges)
    assert ("y", "x") in po.learn_network(rows, po.StructureSearch(required=[("y", "x")])).edges
    for options, message in (
        ({"score": "bge"}, "BGe takes measurements only"),
        ({"score": "bdeu"}, "takes categories only"),
        ({"method": "pc"}, "takes columns of one kind"),
        ({"method": "chow_liu"}, "column 'x' holds numbers, and method='chow_liu' takes categories"),
        ({"required": [("x", "d")]}, "from measurements to states"),
    ):
        with pytest.raises(ValueError, match=message):
            po.learn_network(rows, po.StructureSearch(**options))
    gaps = with_gaps(rows.select("x", "y"), 0.1, 0)
    for method in ("pc", "mmhc"):
        with pytest.raises(ValueError, match="takes partial correlations of complete rows"):
            po.learn_network(gaps, method)
    with pytest.raises(ValueError, match="columns 'x', 'y' lack cells"):
        score_structure(DAG.of([("x", "y")]), gaps)


def test_the_graph_of_a_known_sample_is_found(shared_data):
    """The sample clgaussian.test of bnlearn, whose documentation states the graph that it was drawn from."""
    rows = pl.read_csv(shared_data / "csv" / "bn_clgaussian_test.csv")
    parents = {"D": "AH", "E": "BD", "F": "BC", "G": "ADEF"}
    truth = {(parent, child) for child, above in parents.items() for parent in above}
    learned = po.learn_network(rows)
    assert set(learned.edges) == truth


def test_a_graph_of_states_and_numbers_is_learned_despite_gaps():
    net = po.BayesianNetwork([("kind", "length"), ("length", "mass"), ("site", "mass")])
    net.add_cpt("kind", {"a": 0.4, "b": 0.6})
    net.add_cpt("site", {"n": 0.5, "s": 0.5})
    net.add_gaussian("length", {"a": 0.0, "b": 3.0}, variance={"a": 1.0, "b": 0.5})
    net.add_gaussian("mass", {"n": 1.0, "s": -2.0}, {"length": 1.5}, 0.5)
    rows = with_gaps(net.sample(1500, random_state=0), 0.15, 1)
    found = learn_structure(rows)
    joined = {frozenset(edge) for edge in found.dag.edges}
    assert joined == {frozenset(edge) for edge in net.dag.edges}
    assert all(after >= before - 1e-6 * abs(before) for before, after in itertools.pairwise(found.trace))
    learned = po.BayesianNetwork(found.dag.edges, variables=rows.columns).fit(rows, alpha=0)
    value = learned.log_likelihood(rows).sum() - 0.5 * np.log(len(rows)) * learned.n_parameters
    assert_allclose(found.score, value, rtol=1e-3)
    strength = bootstrap_structure(net.sample(300, random_state=1), n_graphs=3)
    at = {name: k for k, name in enumerate(strength.nodes)}
    assert strength.strength[at["length"], at["mass"]] == 1.0
