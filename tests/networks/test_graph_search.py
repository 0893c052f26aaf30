"""The graph of a network from rows: scores, hill climbing and the tree of Chow and Liu."""

import dataclasses
import inspect
import itertools
import math
import re

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import gammaln

import posteriori as po
from posteriori.networks import (
    AIC,
    BIC,
    DAG,
    BDeu,
    StructureSearch,
    bootstrap_structure,
    learn_structure,
    score_structure,
)
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.family_scores import FamilyScores
from posteriori.networks.learning.family_statistics import CaseRows
from tests.networks.test_network_learning import DAYS, counted, random_cases, random_dag, random_tables

# Scores ---------------------------------------------------------------------------------------------------------


def score_by_formula(dag, frame, states, score):
    total = 0.0
    for name in dag.nodes:
        counts = counted(frame, [*dag.parents[name], name], states)
        counts = counts.reshape(-1, counts.shape[-1])
        q, k = counts.shape
        n_a = counts.sum(axis=1)
        if isinstance(score, BDeu):
            s = score.equivalent_sample_size
            total += (gammaln(s / q) - gammaln(n_a + s / q)).sum()
            total += (gammaln(counts + s / (q * k)) - gammaln(s / (q * k))).sum()
        else:
            seen = counts > 0
            total += (counts[seen] * np.log((counts / np.maximum(n_a, 1)[:, None])[seen])).sum()
            total -= q * (k - 1) * (0.5 * math.log(len(frame)) if isinstance(score, BIC) else 1)
    return total


@given(st.integers(0, 10_000), st.sampled_from([BIC(), AIC(), BDeu(), BDeu(0.5)]))
def test_scores_are_their_formulas(seed, score):
    rng = np.random.default_rng(seed)
    frame = random_cases(rng, rng.integers(1, 60), (2, 3, 4, 2))
    dag = random_dag(rng, frame.columns)
    states = {name: ["s0", "s1", "s2", "s3"] for name in frame.columns}
    found = score_structure(dag, frame, score, states=states)
    assert_allclose(found, score_by_formula(dag, frame, states, score), rtol=1e-11, atol=1e-9)
    distinct = frame.group_by(frame.columns).len()
    weighted = score_structure(
        dag, distinct.select(frame.columns), score, states=states, sample_weight=distinct["len"].to_numpy()
    )
    assert_allclose(weighted, found, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("score", ["bic", "aic", BDeu(3.0)])
def test_graphs_of_the_same_independences_have_the_same_score(score):
    frame = random_cases(np.random.default_rng(3), 400, (2, 3, 4))
    chains = [[("v0", "v1"), ("v1", "v2")], [("v2", "v1"), ("v1", "v0")], [("v1", "v0"), ("v1", "v2")]]
    same = [score_structure(DAG.of(edges, frame.columns), frame, score) for edges in chains]
    assert_allclose(same, same[0], rtol=1e-12)
    collider = score_structure(DAG.of([("v0", "v1"), ("v2", "v1")], frame.columns), frame, score)
    assert abs(collider - same[0]) > 1


def test_a_score_of_another_name_or_kind_is_refused():
    with pytest.raises(ValueError, match=r"score is 'bick'; did you mean 'bic'\?"):
        StructureSearch(score="bick")
    with pytest.raises(TypeError, match="give 'bic', 'aic', 'bdeu', 'k2', 'bge' or BDeu"):
        StructureSearch(score=3)
    with pytest.raises(ValueError, match="must be a number of rows above 0"):
        BDeu(-1)


@pytest.mark.parametrize("learn", [po.learn_network, learn_structure, bootstrap_structure], ids=lambda f: f.__name__)
@pytest.mark.parametrize("setting", ["required", "score", "max_parents", "method"])
def test_a_search_setting_as_a_keyword_is_an_error_that_names_it(learn, setting):
    advice = f"{learn.__name__} has no parameter {setting!r}; use search=po.StructureSearch({setting}=…)"
    with pytest.raises(TypeError, match=f"^{re.escape(advice)}$"):
        learn(pl.DataFrame({"a": ["u", "v"], "b": ["p", "q"]}), **{setting: None})


def test_a_misspelt_keyword_is_an_error_that_names_the_right_one():
    with pytest.raises(TypeError, match="learn_network has no parameter 'statess'; did you mean 'states'"):
        po.learn_network(pl.DataFrame({"a": ["u", "v"]}), statess={})
    assert list(inspect.signature(po.learn_network).parameters)[:2] == ["table", "search"]


# Hill climbing --------------------------------------------------------------------------------------------------


@given(
    st.integers(0, 10_000), st.sampled_from(["bic", "aic", "bdeu"]), st.sampled_from([0, 5]), st.sampled_from([0, 2])
)
def test_hill_climbing_finds_an_acyclic_summit_within_limits(seed, score, tabu, restarts):
    rng = np.random.default_rng(seed)
    frame = random_cases(rng, 150, (2, 3, 2, 2, 3))
    names = frame.columns
    pairs = list(itertools.permutations(names, 2))
    required = random_dag(rng, names, 0.15).edges
    forbidden = [pair for pair in pairs if rng.random() < 0.2 and pair not in required]
    allowed = None if rng.random() < 0.5 else [pair for pair in pairs if rng.random() < 0.8 or pair in required]
    most = max([2, *(sum(v == name for _, v in required) for name in names)])
    limits = {"required": required, "forbidden": forbidden, "allowed": allowed, "max_parents": most}
    search = StructureSearch(score=score, tabu=tabu, restarts=restarts, **limits)
    found = learn_structure(frame, search, random_state=seed)
    edges = set(found.dag.edges)  # a DAG refuses cycles
    assert edges >= set(required)
    assert edges.isdisjoint(forbidden)
    assert allowed is None or edges <= set(allowed)
    assert max(map(len, found.dag.parents.values())) <= most
    # The sum of its moves is what its score is when counted again, and no neighbour within the constraints has more.
    assert_allclose(found.score, score_structure(found.dag, frame, score), rtol=1e-12)
    again = learn_structure(frame, search, random_state=seed, n_jobs=1)
    assert (again.dag, again.score, again.trace) == (found.dag, found.score, found.trace)
    for u, v in pairs:
        for changed in (edges ^ {(u, v)}, (edges - {(u, v)}) | {(v, u)} if (u, v) in edges else edges):
            if not changed >= set(required) or (changed - edges) & set(forbidden):
                continue
            if allowed is not None and not changed <= set(allowed):
                continue
            if max(sum(child == name for _, child in changed) for name in names) > most:
                continue
            if nx.is_directed_acyclic_graph(nx.DiGraph(changed)):
                assert score_structure(DAG(tuple(names), tuple(changed)), frame, score) <= found.score + 1e-6


def plain_tabu_search(scores, tabu):
    """Return the score after each move of tabu search: every neighbour is a set of edges, scored from scratch."""
    d = scores.n_variables

    def score_of(edges):
        return scores.graph([sorted(u for u, w in edges if w == v) for v in range(d)])

    edges, best, past, last_changed, trace = frozenset(), score_of(()), 0, {}, []
    tenure = min(tabu, d * (d - 1) // 4)
    while True:
        moves = []
        for turns, u, v in itertools.product((False, True), range(d), range(d)):
            neighbour = (edges - {(u, v)}) | {(v, u)} if turns else edges ^ {(u, v)}
            if u == v or (turns and (u, v) not in edges) or not nx.is_directed_acyclic_graph(nx.DiGraph(neighbour)):
                continue
            score, age = score_of(neighbour), len(trace) - last_changed.get(frozenset((u, v)), -tenure)
            if age >= tenure or score > best + 1e-9 * abs(best):
                moves.append((score, neighbour, frozenset((u, v))))
        most = max((score for score, *_ in moves), default=-np.inf)
        now = score_of(edges)
        if not moves or (past >= 3 * tabu and most <= now + 1e-9 * abs(now)):
            return trace
        score, edges, pair = next(move for move in moves if move[0] >= most - 1e-9 * abs(most))
        trace.append(score)
        last_changed[pair] = len(trace)
        best, past = (score, 0) if score > best + 1e-9 * abs(best) else (best, past + 1)


@pytest.mark.parametrize("tabu", [0, 1, 4, 15])
@pytest.mark.parametrize("seed", range(3))
def test_hill_climbing_moves_as_plain_tabu_search_does(seed, tabu):
    rng = np.random.default_rng(seed)
    names, states = tuple("abcdef"), {name: ("x", "y", "z")[: rng.integers(2, 4)] for name in "abcdef"}
    frame = random_tables(rng, random_dag(rng, names, 0.5), states).sample(400, random_state=rng)
    cases = open_cases(frame, None, {}, None, 1)
    scores = FamilyScores(cases.columns, cases.reduce(CaseRows), BIC(), 1)
    expected = plain_tabu_search(scores, tabu)
    found = learn_structure(frame, StructureSearch(tabu=tabu))
    assert_allclose(found.trace, expected, rtol=1e-9)
    assert_allclose(found.score, max(expected), rtol=1e-9)


def skeleton_and_colliders(dag):
    joined = {frozenset(edge) for edge in dag.edges}
    colliders = {
        (frozenset((a, b)), child)
        for child, parents in dag.parents.items()
        for a, b in itertools.combinations(parents, 2)
        if frozenset((a, b)) not in joined
    }
    return joined, colliders


@pytest.mark.parametrize("seed", range(6))
def test_many_rows_give_a_network_back_up_to_equivalence(seed):
    rng = np.random.default_rng(seed)
    names = ("a", "b", "c", "d", "e")
    states = {name: ("x", "y", "z")[: rng.integers(2, 4)] for name in names}
    dag = random_dag(rng, names, 0.4)
    truth = random_tables(rng, dag, states)
    rows = truth.sample(100_000, random_state=rng)
    found = po.learn_network(rows, po.StructureSearch(restarts=5))
    assert score_structure(found, rows) >= score_structure(truth.dag, rows) - 1e-6
    assert skeleton_and_colliders(found.dag) == skeleton_and_colliders(truth.dag)
    gap = found.log_likelihood(rows).mean() - truth.log_likelihood(rows).mean()
    assert abs(gap) < 1e-3


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, "the edge 'a' → 'b' is required and forbidden"),
        ({"required": [("a", "b")], "allowed": [("b", "a")]}, "is required but not among the allowed ones"),
        ({"required": [("a", "b"), ("b", "a")]}, "in the required edges: the edges form a cycle"),
        ({"required": [("a", "c"), ("b", "c")], "max_parents": 1}, "'c' has 2 required parents, more than max_parents"),
        ({"forbidden": [("a", "x")]}, "forbidden names 'x', which is no variable"),
        ({"forbidden": [("a", "a")]}, "forbidden has an edge from 'a' to itself"),
        ({"max_parents": -1}, "max_parents is -1"),
        ({"tabu": -1}, "tabu is -1"),
        ({"root": "a"}, "only a tree has one"),
        ({"method": "pcs"}, "method is 'pcs'; did you mean 'pc'?"),
        ({"method": "hc"}, "method is 'hc'; did you mean 'hill_climbing'?"),
        ({"method": "chow_liu", "required": [("a", "b")]}, "a Chow-Liu tree takes no constraints"),
        ({"method": "chow_liu", "score": "bdeu"}, "a Chow-Liu tree takes 'bic', 'aic' or"),
    ],
)
def test_constraints_that_contradict_each_other_are_refused(limits, message):
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"]})
    with pytest.raises(ValueError, match=re.escape(message)):
        po.learn_network(frame, po.StructureSearch(**limits))


def test_a_score_refuses_missing_cells_and_a_tree_takes_them():
    frame = random_cases(np.random.default_rng(0), 500, (2, 2, 3), 0.1)
    with pytest.raises(ValueError, match="columns 'v0', 'v1', 'v2' lack cells, but a score compares"):
        score_structure(DAG(("v0", "v1", "v2"), ()), frame)
    net = po.learn_network(frame, "chow_liu")
    assert len(net.edges) == 2
    assert len(net.log_likelihood_trace_) > 1


@pytest.mark.parametrize("learn", [po.learn_network, learn_structure, bootstrap_structure])
def test_a_search_is_one_value_that_serves_many_tables(learn):
    """Constraints may be iterators, which are read once; a method alone is a search with its defaults."""
    search = StructureSearch(
        required=iter([["wet", "rain"]]), tiers=(tier for tier in [["wet"], ["rain"]]), score="aic"
    )
    assert search == StructureSearch(required=[("wet", "rain")], tiers=[["wet"], ["rain"]], score="aic")
    assert repr(search) == "StructureSearch(score='aic', required=(('wet', 'rain'),), tiers=(('wet',), ('rain',)))"
    assert (repr(StructureSearch()), repr(StructureSearch("pc"))) == (
        "StructureSearch()",
        "StructureSearch(method='pc')",
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        search.tabu = 3
    for _ in range(2):
        found = learn(pl.DataFrame(DAYS), search)
        dag = found.averaged(0.5) if learn is bootstrap_structure else found if learn is po.learn_network else found.dag
        assert dag.edges == (("wet", "rain"),)
    taken = set(inspect.signature(learn).parameters)
    assert not taken & {one.name for one in dataclasses.fields(StructureSearch)}
    with pytest.raises(ValueError, match=r"method is \['pc'\]; "):
        learn(pl.DataFrame(DAYS), ["pc"])


# Chow-Liu -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000))
def test_no_tree_is_more_likely_than_that_of_chow_and_liu(seed):
    frame = random_cases(np.random.default_rng(seed), 60, (2, 3, 2, 3))
    found = po.learn_network(frame, po.StructureSearch("chow_liu", root="v2"), alpha=1e-12)
    assert found.dag.parents["v2"] == ()
    trees = []
    for edges in itertools.combinations(itertools.combinations(frame.columns, 2), 3):
        tree = nx.Graph(edges)
        if nx.is_tree(tree) and len(tree) == 4:
            directed = list(nx.bfs_edges(tree, "v0"))
            trees.append(po.BayesianNetwork(directed).fit(frame, alpha=1e-12))
    assert len(trees) == 16
    best = max(tree.log_likelihood(frame).sum() for tree in trees)
    assert_allclose(found.log_likelihood(frame).sum(), best, rtol=1e-9)


def test_a_penalised_tree_omits_edges_that_cost_too_much():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1000)
    frame = pd.DataFrame({"a": a, "b": a ^ (rng.random(1000) < 0.1), "c": rng.integers(0, 3, 1000)})
    assert len(po.learn_network(frame, "chow_liu").edges) == 2
    assert po.learn_network(frame, po.StructureSearch("chow_liu", score="bic")).edges == (("a", "b"),)
