"""Graphs: the independences they state are those of the distributions they carry."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori.networks import DAG, active_trails


@st.composite
def dags(draw, most=6):
    n = draw(st.integers(2, most))
    names = draw(st.permutations([f"v{i}" for i in range(n)]))
    pairs = list(itertools.combinations(names, 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=len(pairs)))
    return DAG(tuple(sorted(names)), tuple(edges))


def as_networkx(dag):
    graph = nx.DiGraph(dag.edges)
    graph.add_nodes_from(dag.nodes)
    return graph


def splits(dag):
    """Yield every pair with every set of the others."""
    for x, y in itertools.combinations(dag.nodes, 2):
        others = [node for node in dag.nodes if node not in (x, y)]
        for size in range(len(others) + 1):
            for chosen in itertools.combinations(others, size):
                yield x, y, chosen


@given(dags())
def test_d_separation_is_that_of_networkx(dag):
    graph = as_networkx(dag)
    for x, y, chosen in splits(dag):
        assert dag.d_separated(x, y, chosen) == nx.is_d_separator(graph, {x}, {y}, set(chosen))


@given(dags(5), st.integers(0, 2**32 - 1))
def test_d_separation_is_independence_in_the_enumerated_joint(dag, seed):
    rng = np.random.default_rng(seed)
    position = {name: axis for axis, name in enumerate(dag.nodes)}
    joint = np.ones((2,) * len(dag.nodes))
    for name in dag.nodes:
        scope = sorted(position[one] for one in (*dag.parents[name], name))
        first = rng.uniform(0.1, 0.9, (2,) * (len(scope) - 1))
        table = np.stack([first, 1 - first], axis=scope.index(position[name]))
        joint = joint * table.reshape([2 if axis in scope else 1 for axis in range(joint.ndim)])
    for x, y, chosen in splits(dag):
        if dag.d_separated(x, y, chosen):
            rest = tuple(axis for name, axis in position.items() if name not in (x, y, *chosen))
            p = joint.sum(axis=rest, keepdims=True)
            without_x, without_y = p.sum(axis=position[x], keepdims=True), p.sum(axis=position[y], keepdims=True)
            both = p.sum(axis=(position[x], position[y]), keepdims=True)
            assert_allclose(p * both, without_x * without_y, atol=1e-14)


@given(dags())
def test_an_active_trail_joins_a_pair_unless_it_is_separated(dag):
    for x, y, chosen in splits(dag):
        found = active_trails(dag, x, y, chosen, limit=1000)
        assert found.d_separated == dag.d_separated(x, y, chosen)
        assert found.complete
        skeleton = as_networkx(dag).to_undirected()
        paths = set(map(tuple, nx.all_simple_paths(skeleton, x, y)))
        active = {trail.nodes for trail in found.trails if trail.active}
        assert bool(active) != found.d_separated
        if found.d_separated:
            assert {trail.nodes for trail in found.trails} == paths
        else:  # every path that is not listed has a triple that blocks it
            opened = {node for name in chosen for node in (name, *nx.ancestors(as_networkx(dag), name))}
            for path in paths:
                flows = all(
                    (b in opened) if {(a, b), (c, b)} <= set(dag.edges) else (b not in chosen)
                    for a, b, c in zip(path, path[1:], path[2:], strict=False)
                )
                assert flows == (path in active)
        lengths = [len(trail.nodes) for trail in found.trails]
        assert lengths == sorted(lengths)


@given(dags())
def test_the_markov_blanket_is_the_least_separating_set(dag):
    for x in dag.nodes:
        blanket = dag.markov_blanket(x)
        others = set(dag.nodes) - blanket - {x}
        assert not others or dag.d_separated(x, others, blanket)
        for name in blanket:
            assert not dag.d_separated(x, {name, *others}, blanket - {name})


@given(dags())
def test_ancestors_and_the_order_are_those_of_networkx(dag):
    graph = as_networkx(dag)
    for node in dag.nodes:
        assert dag.ancestors(node) == nx.ancestors(graph, node) | {node}
        assert dag.descendants(node) == nx.descendants(graph, node) | {node}
    position = {node: k for k, node in enumerate(dag.topological_order)}
    assert all(position[a] < position[b] for a, b in dag.edges)


@given(dags(5))
def test_the_independencies_are_all_that_there_are(dag):
    listed = {(one.x, one.y, frozenset(one.given)) for one in dag.independencies()}
    assert listed == {(x, y, frozenset(c)) for x, y, c in splits(dag) if dag.d_separated(x, y, c)}
    assert all(len(one.given) <= 1 for one in dag.independencies(max_given=1))


def test_triples_are_named():
    dag = DAG.of([("a", "b"), ("b", "c"), ("b", "d"), ("e", "d"), ("d", "f")])
    chain, fork, collider = (
        active_trails(dag, x, y, g).trails[0] for x, y, g in [("a", "c", ()), ("c", "d", ()), ("b", "e", "f")]
    )
    assert [triple.kind for triple in chain.triples] == ["chain"]
    assert [triple.kind for triple in fork.triples] == ["common cause"]
    assert [(t.kind, t.reason) for t in collider.triples] == [("common effect", "its effect f is given")]
    assert str(active_trails(dag, "a", "e")).startswith(
        "a and e are independent: every trail is blocked\na → b → d ← e  (blocked)"
    )
    assert "no trail joins them" in str(active_trails(DAG(("a", "b"), ()), "a", "b"))
    assert "nothing lies between" in str(active_trails(dag, "a", "b", "c"))


def test_long_chains_are_no_burden():
    names = [f"v{i}" for i in range(3000)]
    dag = DAG.of(itertools.pairwise(names))
    assert dag.topological_order == tuple(names)
    assert not dag.d_separated("v0", "v2999")
    assert dag.d_separated("v0", "v2999", "v1500")


@pytest.mark.parametrize(
    ("edges", "error", "message"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a")], ValueError, "form a cycle, .*→.*→.*→.*; remove or reverse"),
        ([("a", "a")], ValueError, "form a cycle, a → a"),
        ([("a", "b"), ("a", "b")], ValueError, "edge 'a' → 'b' occurs twice"),
        (["ab"], TypeError, "'ab' is no edge; an edge is a pair"),
        ([("a", "b", "c")], TypeError, "is no edge"),
        ([("a", 1)], TypeError, "1 is a int; the names of variables are strings"),
    ],
)
def test_bad_edges_are_named(edges, error, message):
    with pytest.raises(error, match=message):
        DAG.of(edges)


def test_bad_questions_are_named():
    dag = DAG.of([("smoke", "lung"), ("smoke", "bronc")])
    with pytest.raises(ValueError, match="no variable 'Lung'; did you mean 'lung'"):
        dag.d_separated("smoke", "Lung")
    with pytest.raises(ValueError, match="'lung' is in x and in given; leave it out of one"):
        dag.d_separated("lung", "bronc", ["lung"])
    with pytest.raises(ValueError, match="x is empty"):
        dag.d_separated([], "bronc")
    with pytest.raises(ValueError, match="limit is 0"):
        active_trails(dag, "lung", "bronc", limit=0)
    with pytest.raises(ValueError, match="two single variables"):
        active_trails(dag, ["lung"], "bronc")
    with pytest.raises(ValueError, match="no variable 'b'"):
        DAG(("a",), (("a", "b"),))
    with pytest.raises(ValueError, match="variable 'a' occurs twice"):
        DAG(("a", "a"), ())
    with pytest.raises(ValueError, match="set max_given"):
        DAG(tuple("abcdefghijk"), ()).independencies()


def test_what_is_no_name_is_refused():
    dag = DAG.of([("a", "b")])
    for wrong in (None, 2, 0.5, object):
        with pytest.raises(TypeError, match="is no name; give the name of a variable, or several in a list"):
            dag.d_separated(wrong, "b")
    with pytest.raises(ValueError, match="is a list of names, and one is wanted; give each as an argument of its own"):
        dag.markov_blanket(["a", "b"])
    for wrong in ([], None):
        with pytest.raises(ValueError, match="the network has no variable"):
            dag.markov_blanket(wrong)
