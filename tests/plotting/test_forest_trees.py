"""A tree of a forest as text and on paper: conditions hold for the rows they are about, and nothing overlaps."""

import itertools

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.patches import FancyBboxPatch

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.plotting import plot_tree


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def penguins():
    return po.GenerativeForest(n_trees=10).fit(load_penguins(), "species")


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    columns = {
        f"a very long name of a column, number {k}": rng.choice([f"a long category {i}" for i in range(9)], 300)
        for k in range(4)
    } | {"income": rng.normal(3e6, 1e6, 300).round(), "flag": rng.random(300) < 0.3}
    y = np.where(columns["flag"] ^ (columns["income"] > 3e6), 3, rng.integers(0, 12, 300))
    return po.GenerativeForest(n_trees=10, missing="informative").fit(pl.DataFrame(columns | {"answer": y}), "answer")


def holds(condition, row):
    """Return whether a row satisfies a condition whose names are not shortened."""
    for sign in (" < ", " ≥ "):
        if sign in condition:
            name, cut = condition.split(sign)
            return (row[name] < float(cut)) is (sign == " < ")
    name, names = condition.split(" = ")
    return str(row[name]) in names.replace(" or ", ", ").split(", ")


def test_shares_and_classes_are_of_rows_that_meet_conditions():
    table = load_penguins().drop_nulls().drop("island")  # without it no node lacks a category
    forest = po.GenerativeForest(n_trees=10, strength=1e-6, combine="geometric").fit(table, "species")
    rows = table.to_dicts()
    for tree in range(10):
        nodes = forest.outline(tree, max_depth=60).nodes
        reached = [rows]
        for node in nodes[1:]:
            reached.append([row for row in reached[node.parent] if holds(node.condition, row)])
        for k, (node, mine) in enumerate(zip(nodes, reached, strict=True)):
            assert node.share == pytest.approx(len(mine) / len(rows), abs=0.01)  # half a row on each side of a split
            children = [other for other in nodes if other.parent == k]
            if children:
                joint = sum(child.share * child.probabilities for child in children)
                np.testing.assert_allclose(node.share * node.probabilities, joint, atol=0.01)
            elif mine:
                classes = [row["species"] for row in mine]
                shares = [classes.count(label) / len(mine) for label in forest.classes_]
                np.testing.assert_allclose(node.probabilities, shares, atol=0.03)
        assert sum(node.share for node in nodes if node.n_leaves == 1) == pytest.approx(1.0)
        assert nodes[0].n_leaves == sum(node.n_leaves == 1 for node in nodes)


def test_deeper_nodes_are_folded_and_counted(penguins):
    whole = penguins.outline(2, max_depth=60)
    assert not any(node.n_folded for node in whole.nodes)
    for depth in range(4):
        cut = penguins.outline(2, max_depth=depth)
        assert [node.condition for node in cut.nodes] == [one.condition for one in whole.nodes if one.depth <= depth]
        ends = [node for k, node in enumerate(cut.nodes) if k not in {other.parent for other in cut.nodes}]
        assert sum(max(node.n_folded, 1) for node in ends) == whole.nodes[0].n_leaves
    assert str(penguins.outline(2, max_depth=0)).endswith(f"… {whole.nodes[0].n_leaves} leaves")


def test_other_priors_change_class_distributions_of_trees_too():
    table = load_penguins()
    priors = {"Adelie": 0.8, "Chinstrap": 0.1, "Gentoo": 0.1}
    forest = po.GenerativeForest(n_trees=5, priors=priors).fit(table, "species")
    np.testing.assert_allclose(forest.outline().nodes[0].probabilities, list(priors.values()), atol=0.01)


def test_categories_that_a_node_has_not_seen_are_on_neither_side(penguins):
    sides = {}
    for tree in range(10):
        for node in penguins.outline(tree, max_depth=60).nodes:
            if node.condition.startswith("island = "):
                names = node.condition.removeprefix("island = ").replace(" or ", ", ").split(", ")
                sides.setdefault((tree, node.parent), []).append(set(names))
    assert sides
    assert all(not left & right and left and right for left, right in sides.values())
    assert {len(left | right) for left, right in sides.values()} == {2, 3}


def test_text_has_a_line_per_node(penguins, wide):
    for forest in (penguins, wide):
        outline = forest.outline(1)
        title, *lines = str(outline).split("\n")
        assert title.startswith("tree 1 of 10: ")
        assert [node.condition in line for node, line in zip(outline.nodes, lines, strict=True)]
    assert "a long category 0 or 1 more" in "".join(str(wide.outline(t, max_depth=60)) for t in range(10))
    assert "flag = false" in "".join(str(wide.outline(t)) for t in range(10))


@pytest.mark.parametrize("name", ["penguins", "wide"])
def test_the_picture_names_every_node_and_nothing_overlaps(name, request):
    forest = request.getfixturevalue(name)
    outline = forest.outline(3)
    ax = plot_tree(forest, tree=3)
    ax.figure.draw_without_rendering()
    texts = [text for text in ax.texts if text.get_text()]
    shown = [text.get_text() for text in texts]
    for node in outline.nodes:
        assert node.condition in shown
        assert not node.folded or node.folded in shown
    boxes = [patch.get_window_extent() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == len(outline.nodes)
    extents = [text.get_window_extent() for text in texts]
    for some in (boxes, extents):
        assert not any(one.overlaps(other) for one, other in itertools.combinations(some, 2))
    inside = {text.get_text(): text.get_window_extent() for text in texts if text.get_text() == "all rows"}
    assert boxes[0].x0 < inside["all rows"].x0 < inside["all rows"].x1 < boxes[0].x1
    figure = ax.figure.bbox
    assert all(figure.x0 <= one.x0 and one.x1 <= figure.x1 and one.y1 <= figure.y1 for one in extents)
    bars = [patch for patch in ax.patches if not isinstance(patch, FancyBboxPatch)]
    widths = np.array([bar.get_width() for bar in bars]).reshape(len(outline.nodes), -1)
    np.testing.assert_allclose(widths / 1.6, [node.probabilities for node in outline.nodes], atol=1e-9)


def test_what_does_not_apply_is_refused(penguins):
    with pytest.raises(ValueError, match="tree == 10, must be <= 9"):
        plot_tree(penguins, tree=10)
    with pytest.raises(ValueError, match="max_depth == -1, must be >= 0"):
        penguins.outline(max_depth=-1)
    with pytest.raises(ValueError, match="all classes share the trees of a forest; leave label='Adelie' out"):
        plot_tree(penguins, "Adelie")
    tan = po.TreeAugmentedNaiveBayes().fit(load_penguins(), "species")
    with pytest.raises(TypeError, match="tree and max_depth are for forests, and a TreeAugmentedNaiveBayes is none"):
        plot_tree(tan, max_depth=2)
    _, ax = plt.subplots()
    assert plot_tree(penguins, ax=ax) is ax


def test_an_empty_category_is_visible():
    forest = po.GenerativeForest(n_trees=2).fit([["", "u"], ["x", "v"], ["", "v"], ["x", "u"]] * 9, [0, 0, 1, 1] * 9)
    assert '= ""' in str(forest.outline(max_depth=9))


def test_a_node_of_a_sum_shows_what_its_value_makes_of_the_prior():
    model = po.GenerativeForest(combine="sum", n_trees=10).fit(load_penguins(), "species")
    root, *nodes = model.outline(max_depth=20).nodes
    np.testing.assert_allclose(root.probabilities, model.class_prior_)
    values = model.model_.parameters[0].trees.change[: model.outline().nodes[0].n_leaves]
    alike = values - values[:, :1]
    leaves = np.array([node.probabilities for node in nodes if node.n_leaves == 1])
    changes = np.log(leaves / model.class_prior_)
    moves = changes - changes[:, :1]
    np.testing.assert_allclose(np.ptp(moves, axis=0), np.ptp(alike, axis=0), atol=1e-6)


def test_what_only_random_trees_have_is_no_attribute_of_a_sum():
    model = po.GenerativeForest(combine="sum", n_trees=5).fit(load_penguins(), "species")
    assert model.n_leaves_ == model.model_.parameters[0].trees.n_leaves
    for name in ("strength_", "information_gain_"):
        with pytest.raises(AttributeError, match="use another combine"):
            getattr(model, name)
