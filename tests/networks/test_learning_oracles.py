"""Scores, equivalence classes, PC and structural EM beside pgmpy, pyAgrum and brute force."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from scipy.stats import multivariate_t

import posteriori as po
from posteriori.networks import (
    DAG,
    StructureSearch,
    cpdag,
    learn_structure,
    score_structure,
    structural_hamming_distance,
)
from posteriori.networks.learning.family_scores import BDeu, BGe

WITHOUT = "{} is not installed; make oracles installs it"
noisy = pytest.mark.filterwarnings("ignore")


def random_dag(seed, n=6, density=0.4):
    rng = np.random.default_rng(seed)
    order = [f"v{k}" for k in rng.permutation(n)]
    edges = [pair for pair in itertools.combinations(order, 2) if rng.random() < density]
    return DAG(tuple(f"v{k}" for k in range(n)), tuple(edges))


def random_network(seed, n=6, density=0.4):
    rng = np.random.default_rng(seed)
    dag = random_dag(seed, n, density)
    states = {name: [f"s{k}" for k in range(rng.integers(2, 4))] for name in dag.nodes}
    tables = []
    for name in dag.nodes:
        shape = [len(states[one]) for one in (*dag.parents[name], name)]
        parents = {one: states[one] for one in dag.parents[name]}
        tables.append(po.networks.CPT(name, states[name], parents, rng.dirichlet(np.ones(shape[-1]), shape[:-1])))
    return po.BayesianNetwork(dag.edges, variables=dag.nodes, cpts=tables)


def predictive_chain(net, rows, pseudo_count):
    """Log p(rows) row by row: p(state | rows so far) under a Dirichlet prior, for q configurations of k states."""
    total = 0.0
    for cpt in net.cpts:
        k, q = len(cpt.states), cpt.probabilities.size // len(cpt.states)
        counts = {}
        for row in rows.iter_rows(named=True):
            above = tuple(row[one] for one in cpt.parents)
            seen = counts.setdefault(above, dict.fromkeys(cpt.states, pseudo_count(q, k)))
            total += np.log(seen[row[cpt.variable]] / sum(seen.values()))
            seen[row[cpt.variable]] += 1
    return total


@pytest.mark.parametrize("seed", range(8))
def test_k2_and_bdeu_are_chains_of_predictive_probabilities(seed):
    net = random_network(seed)
    rows = net.sample(150, random_state=seed)
    assert_allclose(score_structure(net, rows, "k2"), predictive_chain(net, rows, lambda q, k: 1.0), rtol=1e-11)
    for size in (0.5, 10.0):
        wanted = predictive_chain(net, rows, lambda q, k, size=size: size / (q * k))
        assert_allclose(score_structure(net, rows, BDeu(size)), wanted, rtol=1e-11)


@noisy
@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(20))
def test_scores_are_those_of_pgmpy(seed):
    peer = pytest.importorskip("pgmpy.structure_score", reason=WITHOUT.format("pgmpy"))
    net = random_network(seed)
    rows = net.sample(150, random_state=seed)
    states = {name: list(net.states(name)) for name in net.variables}
    frame = rows.to_pandas()
    # Its K2 adds log Γ(K) for a configuration that no row has, whose marginal likelihood is 1.
    seen = {cpt.variable: rows.select(list(cpt.parents)).n_unique() if cpt.parents else 1 for cpt in net.cpts}
    unseen = sum(
        (cpt.probabilities.size // len(cpt.states) - seen[cpt.variable]) * gammaln(len(cpt.states)) for cpt in net.cpts
    )
    for ours, theirs, added in (
        ("bic", peer.BIC(frame, state_names=states), 0.0),
        ("aic", peer.AIC(frame, state_names=states), 0.0),
        ("k2", peer.K2(frame, state_names=states), unseen),
        (BDeu(5.0), peer.BDeu(frame, equivalent_sample_size=5, state_names=states), 0.0),
    ):
        wanted = sum(theirs.local_score(name, tuple(net.dag.parents[name])) for name in net.variables)
        assert_allclose(score_structure(net, rows, ours), wanted - added, rtol=1e-10)


def log_marginal(values, freedom, prior_rows, t):
    """Log p(rows) as a chain of predictive densities, Student's t, of a normal-Wishart prior (mean 0, T = t·I)."""
    d = values.shape[1]
    mean, scale, kappa, total = np.zeros(d), t * np.eye(d), prior_rows, 0.0
    for row in values:
        nu = freedom - d + 1
        total += multivariate_t(mean, scale * (kappa + 1) / (kappa * nu), df=nu).logpdf(row)
        off = row - mean
        scale = scale + np.outer(off, off) * kappa / (kappa + 1)
        mean, kappa, freedom = mean + off / (kappa + 1), kappa + 1, freedom + 1
    return total


@pytest.mark.parametrize(("seed", "prior_rows"), [(0, 1.0), (1, 0.5), (2, 3.0)])
def test_bge_is_a_chain_of_predictive_densities(seed, prior_rows):
    rng = np.random.default_rng(seed)
    dag = random_dag(seed, n=4)
    d = len(dag.nodes)
    values = rng.normal(size=(25, d)) @ rng.normal(size=(d, d)) * [1.0, 10.0, 0.1, 3.0] + 5.0
    standard = (values - values.mean(axis=0)) / values.std(axis=0)
    a_w = d + prior_rows + 1
    t = prior_rows * (a_w - d - 1) / (prior_rows + 1)

    def of(names):
        columns = [dag.nodes.index(name) for name in names]
        return log_marginal(standard[:, columns], a_w - d + len(columns), prior_rows, t) if columns else 0.0

    wanted = sum(of([*dag.parents[name], name]) - of(list(dag.parents[name])) for name in dag.nodes)
    rows = pl.DataFrame(dict(zip(dag.nodes, values.T, strict=True)))
    assert_allclose(score_structure(dag, rows, BGe(prior_rows)), wanted, rtol=1e-9)


def essential_edges(dag, gum):
    """Return the edges of pyAgrum's essential graph: pairs by the ends of an arrow, sets for edges without one."""
    model = gum.BayesNet()
    node = {name: model.add(gum.LabelizedVariable(name, name, 2)) for name in dag.nodes}
    for parent, child in dag.edges:
        model.addArc(parent, child)
    graph, names = gum.EssentialGraph(model), {number: name for name, number in node.items()}
    arrows = {(names[u], names[v]) for u, v in graph.arcs()}
    return arrows, {frozenset((names[u], names[v])) for u, v in graph.edges()}


@noisy
@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(50))
def test_the_class_and_the_distance_are_those_of_pyagrum(seed):
    gum = pytest.importorskip("pyagrum", reason=WITHOUT.format("pyagrum"))
    one, other = random_dag(seed, 9, 0.3), random_dag(seed + 1000, 9, 0.3)
    described = []
    for dag in (one, other):
        arrows, lines = essential_edges(dag, gum)
        found = cpdag(dag)
        assert set(found.directed) == arrows
        assert {frozenset(edge) for edge in found.undirected} == lines
        joined = {frozenset(edge): edge for edge in arrows} | {edge: edge for edge in lines}
        described.append(joined)
    pairs = map(frozenset, itertools.combinations(one.nodes, 2))
    distance = sum(described[0].get(pair) != described[1].get(pair) for pair in pairs)
    assert structural_hamming_distance(one, other) == distance


@noisy
@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("test", "theirs"), [("chi2", "chi_square"), ("g2", "g_sq")])
def test_pc_finds_the_skeleton_of_pgmpy(seed, test, theirs):
    """The order of tests decides which separating set comes first, so that arrows may differ, and edges may not."""
    estimators = pytest.importorskip("pgmpy.estimators", reason=WITHOUT.format("pgmpy"))
    net = random_network(seed, 5)
    rows = net.sample(1500, random_state=seed)
    options = {"ci_test": theirs, "significance_level": 0.01, "n_jobs": 1, "show_progress": False}
    peer = estimators.PC(rows.to_pandas()).estimate(variant="stable", return_type="skeleton", **options)[0]
    found = learn_structure(rows, StructureSearch("pc", test=test, significance=0.01))
    assert {frozenset(edge) for edge in found.dag.edges} == {frozenset(edge) for edge in peer.edges()}


def all_dags(names):
    pairs = list(itertools.combinations(names, 2))
    for ways in itertools.product((None, 0, 1), repeat=len(pairs)):
        edges = tuple(pair[::-1] if way else pair for pair, way in zip(pairs, ways, strict=True) if way is not None)
        try:
            yield DAG(names, edges)
        except ValueError:
            continue


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.oracle) for k in range(1, 20))])
def test_structural_em_ends_where_no_graph_scores_better(seed):
    """The fixed point of Friedman (1998), over all 25 graphs; another may have a better BIC of the known cells."""
    rng = np.random.default_rng(seed)
    names = ("a", "b", "c")
    net = po.BayesianNetwork([("a", "c"), ("b", "c")])
    for name in "ab":
        net.add_cpt(name, rng.dirichlet([3, 3]), states=["0", "1"])
    net.add_cpt("c", rng.dirichlet([1, 1], (2, 2)), states=["0", "1"])
    rows = net.sample(600, random_state=seed)
    rows = rows.select(
        pl.when(pl.Series(rng.random(600) < 0.2)).then(None).otherwise(pl.col(one)).alias(one) for one in names
    )
    states = {name: ["0", "1"] for name in names}
    found = learn_structure(rows, states=states)
    fitted = po.BayesianNetwork(found.dag.edges, variables=names, states=states).fit(rows, alpha=1.0)
    whole = list(itertools.product("01", repeat=3))
    p = fitted.query(*names, evidence={}).probabilities.ravel()
    expected = np.zeros(8)
    for row in rows.iter_rows():
        agrees = [all(cell in (None, own) for cell, own in zip(row, one, strict=True)) for one in whole]
        expected += p * agrees / (p * agrees).sum()
    table = pl.DataFrame(whole, schema=list(names), orient="row")
    scores = {dag: score_structure(dag, table, "bic", states=states, sample_weight=expected) for dag in all_dags(names)}
    of_found = next(score for dag, score in scores.items() if set(dag.edges) == set(found.dag.edges))
    assert len(scores) == 25
    assert max(scores.values()) - of_found < 0.05
