"""Other ways to learn a graph: tests of independence, MMHC, structural EM, bootstrap; and equivalence classes."""

import itertools

import networkx as nx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln

import posteriori as po
from posteriori.networks import (
    DAG,
    K2,
    PartialDAG,
    StructureSearch,
    bootstrap_structure,
    cpdag,
    learn_structure,
    score_structure,
    structural_hamming_distance,
)
from posteriori.networks.graph.equivalence import consistent_extension
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.completion import complete_rows
from posteriori.networks.learning.constraint_based import (
    CategoricalTests,
    EdgeConstraints,
    PartialCorrelationTests,
    pc_stable,
)
from posteriori.networks.learning.family_statistics import CaseRows


def all_dags(names):
    pairs = list(itertools.combinations(names, 2))
    for ways in itertools.product((0, 1, 2), repeat=len(pairs)):
        edges = [(u, v) if way == 1 else (v, u) for (u, v), way in zip(pairs, ways, strict=True) if way]
        graph = nx.DiGraph(edges)
        if nx.is_directed_acyclic_graph(graph):
            yield DAG(tuple(names), tuple(edges))


def signature(dag):
    """Return the skeleton and the unshielded common effects, which define the class (Verma & Pearl 1990)."""
    joined = {frozenset(edge) for edge in dag.edges}
    effects = {
        (frozenset((a, b)), c)
        for c in dag.nodes
        for a, b in itertools.combinations(dag.parents[c], 2)
        if frozenset((a, b)) not in joined
    }
    return frozenset(joined), frozenset(effects)


def test_the_cpdag_has_the_edges_of_all_equivalent_graphs():
    """Against the enumeration of all 543 graphs of four variables."""
    classes = {}
    for dag in all_dags("abcd"):
        classes.setdefault(signature(dag), []).append(dag)
    for members in classes.values():
        shared = set(members[0].edges).intersection(*(dag.edges for dag in members))
        for dag in members:
            found = cpdag(dag)
            assert set(found.directed) == shared
        matrix = consistent_extension(found.matrix())
        extended = DAG("abcd", tuple(("abcd"[u], "abcd"[v]) for u, v in np.argwhere(matrix).tolist()))
        assert signature(extended) == signature(members[0])


def test_the_distance_counts_pairs():
    fork, effect = DAG.of([("b", "a"), ("b", "c")]), DAG.of([("a", "b"), ("c", "b")], nodes=("b", "a", "c"))
    assert structural_hamming_distance(fork, DAG.of([("a", "b"), ("b", "c")])) == 0
    assert structural_hamming_distance(fork, effect) == 2
    assert structural_hamming_distance(fork, DAG(("a", "b", "c"), ())) == 2
    with pytest.raises(ValueError, match="one graph only"):
        structural_hamming_distance(fork, DAG(("a", "b"), ()))


class Oracle:
    """The independences of a graph."""

    def __init__(self, dag):
        self.dag, self.n_tests = dag, 0
        self.n_variables = len(dag.nodes)

    def p_value(self, x, y, z):
        names = self.dag.nodes
        return float(self.dag.d_separated(names[x], names[y], [names[v] for v in z]))


@given(st.integers(0, 10_000))
def test_pc_finds_the_class_from_its_independences(seed):
    rng = np.random.default_rng(seed)
    names = tuple(f"v{k}" for k in range(7))
    order = rng.permutation(7).tolist()
    edges = [(names[a], names[b]) for a, b in itertools.combinations(order, 2) if rng.random() < 0.35]
    dag = DAG(names, tuple(edges))
    found = PartialDAG.of(names, pc_stable(Oracle(dag), EdgeConstraints.of(names), 0.05, None))
    assert found == cpdag(dag) or (set(found.directed), set(found.undirected)) == (
        set(cpdag(dag).directed),
        set(cpdag(dag).undirected),
    )
    if edges:  # background knowledge directs more
        u, v = edges[0]
        constraints = EdgeConstraints.of(names, required=[(u, v)])
        matrix = pc_stable(Oracle(dag), constraints, 0.05, None)
        assert not matrix[names.index(v), names.index(u)]
        truth = PartialDAG(names, dag.edges, ()).matrix()
        assert not (truth & ~matrix).any()


@pytest.mark.parametrize(("test", "lambda_"), [("chi2", "pearson"), ("g2", "log-likelihood")])
def test_a_test_is_that_of_scipy(test, lambda_):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.integers(0, 3, 300), "y": rng.integers(0, 4, 300), "z": rng.integers(0, 2, 300)})
    tests = CategoricalTests.of(open_cases(frame, None, {}).reduce(CaseRows).categories, test)
    table = np.zeros((2, 3, 4))
    np.add.at(table, (frame["z"], frame["x"], frame["y"]), 1)
    whole = stats.chi2_contingency(table.sum(axis=0), correction=False, lambda_=lambda_)
    assert_allclose(tests.p_value(0, 1, ()), whole.pvalue, rtol=1e-10)
    parts = [stats.chi2_contingency(one, correction=False, lambda_=lambda_) for one in table]
    wanted = stats.chi2.sf(sum(part.statistic for part in parts), sum(part.dof for part in parts))
    assert_allclose(tests.p_value(1, 0, (2,)), wanted, rtol=1e-10)


def test_partial_correlation_is_that_of_residuals():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 2))
    x, y = z @ [1.0, -1.0] + rng.normal(size=200), z @ [0.5, 2.0] + rng.normal(size=200)
    covariance = np.cov(np.column_stack([x, y, z]), rowvar=False)
    design = np.column_stack([np.ones(200), z])
    residuals = [one - design @ np.linalg.lstsq(design, one, rcond=None)[0] for one in (x, y)]
    r = np.corrcoef(residuals)[0, 1]
    wanted = 2 * stats.norm.sf(abs(np.arctanh(r)) * np.sqrt(200 - 2 - 3))
    assert_allclose(PartialCorrelationTests(covariance, 200.0).p_value(0, 1, (2, 3)), wanted, rtol=1e-9)


@pytest.mark.parametrize("method", ["pc", "mmhc"])
def test_methods_find_a_common_effect(method):
    net = po.BayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
    net.add_cpt("a", {"0": 0.6, "1": 0.4})
    net.add_cpt("b", {"0": 0.5, "1": 0.5})
    net.add_cpt("c", [[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.1, 0.9]]], states=["0", "1"])
    net.add_cpt("d", {"0": {"0": 0.8, "1": 0.2}, "1": {"0": 0.15, "1": 0.85}})
    rows = net.sample(5000, random_state=0)
    found = learn_structure(rows, StructureSearch(method, significance=0.01))
    assert set(found.dag.edges) == set(net.edges)
    assert found.n_tests > 0
    tiers = [["d"], ["a", "b", "c"]]  # wrong on purpose: d comes first
    for u, v in learn_structure(rows, StructureSearch(method, tiers=tiers)).dag.edges:
        assert v != "d", (u, v)
    search = StructureSearch(method, required=[("a", "d")], forbidden=[("a", "c"), ("c", "a")])
    forced = learn_structure(rows, search).dag.edges
    assert ("a", "d") in forced
    assert not {("a", "c"), ("c", "a")} & set(forced)


def test_k2_is_the_marginal_likelihood():
    frame = pl.DataFrame({"x": ["a", "b", "a", "a", "b", "c"], "y": ["u", "u", "v", "u", "v", "v"]})
    counts = np.array([[2, 1], [1, 1], [0, 1]])
    of_x = gammaln(3) - gammaln(6 + 3) + gammaln(counts.sum(axis=1) + 1).sum()
    of_y = (gammaln(2) - gammaln(counts.sum(axis=1) + 2) + gammaln(counts + 1).sum(axis=1)).sum()
    assert_allclose(score_structure(DAG.of([("x", "y")]), frame, K2()), of_x + of_y, rtol=1e-12)
    assert score_structure(DAG.of([("x", "y")]), frame, "k2") == score_structure(DAG.of([("x", "y")]), frame, K2())


def gappy(rows, share, seed):
    rng = np.random.default_rng(seed)
    return rows.with_columns(
        pl.when(pl.Series(rng.random(len(rows)) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name in rows.columns
    )


def test_completions_weigh_what_the_joint_says():
    net = po.BayesianNetwork([("a", "b"), ("b", "c")])
    net.add_cpt("a", {"x": 0.3, "y": 0.7})
    net.add_cpt("b", {"x": {"u": 0.9, "v": 0.1}, "y": {"u": 0.2, "v": 0.8}})
    net.add_cpt("c", {"u": {"s": 0.6, "t": 0.4}, "v": {"s": 0.1, "t": 0.9}})
    frame = gappy(net.sample(200, random_state=0), 0.4, 1)
    cases = open_cases(frame, net.variables, {name: net.states(name) for name in net.variables})
    rows = complete_rows(cases.reduce(CaseRows), net._inference, np.random.default_rng(0)).rows
    joint = np.zeros((2, 2, 2))
    np.add.at(joint, tuple(rows.codes.T.astype(int) - 1), rows.weight)
    wanted = np.zeros((2, 2, 2))
    for row in frame.iter_rows(named=True):
        p = net.query(*net.variables, evidence={}).probabilities.copy()
        for axis, name in enumerate(net.variables):
            if row[name] is not None:
                other = [k for k, state in enumerate(net.states(name)) if state != row[name]]
                p[(slice(None),) * axis + (other,)] = 0
        wanted += p / p.sum()
    assert_allclose(joint, wanted, atol=1e-9)


def test_structural_em_finds_the_graph_where_cells_are_missing():
    net = po.BayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
    net.add_cpt("a", {"0": 0.6, "1": 0.4})
    net.add_cpt("b", {"0": 0.5, "1": 0.5})
    net.add_cpt("c", [[[0.95, 0.05], [0.4, 0.6]], [[0.3, 0.7], [0.05, 0.95]]], states=["0", "1"])
    net.add_cpt("d", {"0": {"0": 0.9, "1": 0.1}, "1": {"0": 0.1, "1": 0.9}})
    rows = gappy(net.sample(3000, random_state=0), 0.15, 1)
    found = learn_structure(rows)
    assert structural_hamming_distance(found.dag, net.dag) == 0
    assert all(after >= before - 1e-6 * abs(before) for before, after in itertools.pairwise(found.trace))
    # Its score is the log-likelihood of the known cells less the penalty, and is that of a fit of this graph.
    learned = po.learn_network(rows, alpha=1.0)
    value = learned.log_likelihood(rows).sum() - 0.5 * np.log(len(rows)) * learned.n_parameters
    assert_allclose(found.score, value, rtol=1e-3)


def test_bootstrap_strengths_and_their_average():
    net = po.BayesianNetwork([("a", "c"), ("b", "c")], variables=["a", "b", "c", "noise"])
    net.add_cpt("a", {"0": 0.6, "1": 0.4})
    net.add_cpt("b", {"0": 0.5, "1": 0.5})
    net.add_cpt("c", [[[0.9, 0.1], [0.3, 0.7]], [[0.3, 0.7], [0.1, 0.9]]], states=["0", "1"])
    net.add_cpt("noise", {"0": 0.5, "1": 0.5})
    rows = net.sample(1500, random_state=0)
    found = bootstrap_structure(rows, n_graphs=30)
    assert_allclose(found.strength, found.strength.T)
    joined = found.strength > 0
    assert_allclose((found.direction + found.direction.T)[joined], 1.0)
    assert found.strength[0, 2] == 1.0
    assert found.strength[3].max() < 0.5
    assert set(found.averaged().edges) == {("a", "c"), ("b", "c")}
    assert 0 < found.threshold() <= 1
    again = bootstrap_structure(rows, n_graphs=30)
    assert (again.strength == found.strength).all()
    assert found.to_polars()["strength"].max() == 1.0


def test_constraints_of_tiers_are_checked():
    frame = pl.DataFrame({"a": ["x", "y"] * 10, "b": ["x", "y"] * 10})
    assert learn_structure(frame, StructureSearch(tiers=[["b"], ["a"]])).dag.edges == (("b", "a"),)
    for tiers, error, message in (
        ([["a"], ["a", "b"]], ValueError, "in two tiers"),
        ([["a"], ["c"]], ValueError, "no variable"),
        (["a", "b"], TypeError, "list of variables"),
    ):
        with pytest.raises(error, match=message):
            learn_structure(frame, StructureSearch(tiers=tiers))
    with pytest.raises(ValueError, match="in a later tier"):
        learn_structure(frame, StructureSearch(tiers=[["b"], ["a"]], required=[("a", "b")]))
    with pytest.raises(ValueError, match="significance is 2"):
        StructureSearch("pc", significance=2)
    with pytest.raises(ValueError, match=r"method is 'pcc'; did you mean 'pc'\?"):
        learn_structure(frame, "pcc")


@pytest.mark.parametrize("gap", [None, 5])
def test_numbers_whose_squares_overflow_are_refused_by_name(gap):
    x = np.random.default_rng(0).normal(size=40)
    x[3] = -1e200
    frame = pl.DataFrame({"x": x, "y": np.arange(40.0)})
    if gap is not None:
        frame[gap, "y"] = None
    with pytest.raises(ValueError, match="column 'x' holds -1e\\+200, whose square overflows"):
        po.networks.learn_network(frame)


@pytest.mark.parametrize("test", ["g2", "chi2"])
def test_variables_that_no_row_has_together_show_no_dependence(test):
    rows = pl.DataFrame({"a": ["u", "v", "u", "v", None, None], "b": [None, None, None, None, "x", "y"]})
    assert learn_structure(rows, StructureSearch("pc", test=test)).dag.edges == ()
