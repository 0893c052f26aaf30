"""Networks and trees on paper: nothing on top of anything, every arrow downwards, and what is known stands out."""

import itertools

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.plotting import plot_network, plot_tree
from posteriori.plotting.graphs import outline_of
from posteriori.support.graph_layout import layered


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def sprinkler():
    net = po.BayesianNetwork([("cloudy", "sprinkler"), ("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")])
    net.add_cpt("cloudy", [0.5, 0.5], states=["yes", "no"])
    net.add_cpt("sprinkler", [[0.1, 0.9], [0.5, 0.5]], states=["on", "off"])
    net.add_cpt("rain", [[0.8, 0.2], [0.2, 0.8]], states=["yes", "no"])
    net.add_cpt("wet", [[[0.99, 0.01], [0.9, 0.1]], [[0.9, 0.1], [0.0, 1.0]]], states=["yes", "no"])
    return net


def texts(ax):
    return [text.get_text() for text in ax.texts]


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 14))
    pairs = list(itertools.combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    size = {f"v{k}": (draw(st.floats(0.3, 2.0)), draw(st.floats(0.2, 1.0))) for k in range(n)}
    return size, [(f"v{i}", f"v{j}") for i, j in edges]


@given(graphs())
def test_no_boxes_overlap_and_every_edge_goes_down(graph):
    size, edges = graph
    layout = layered(size, edges)
    for one, other in itertools.combinations(size, 2):
        (x, y), (u, v) = layout.centre[one], layout.centre[other]
        apart = abs(x - u) >= (size[one][0] + size[other][0]) / 2 - 1e-6
        above = abs(y - v) >= (size[one][1] + size[other][1]) / 2 - 1e-6
        assert apart or above
    for parent, child in edges:
        points = [layout.centre[parent], *layout.way[parent, child], layout.centre[child]]
        for (xa, ya), (xb, yb) in itertools.pairwise(points):
            assert ya > yb
            for name in size.keys() - {parent, child}:  # an edge passes through no box
                (x, y), (width, height) = layout.centre[name], size[name]
                beside = max(xa, xb) <= x - width / 2 + 1e-6 or min(xa, xb) >= x + width / 2 - 1e-6
                assert beside or yb >= y + height / 2 - 1e-6 or ya <= y - height / 2 + 1e-6
    for name, (x, y) in layout.centre.items():
        assert x - size[name][0] / 2 >= -1e-6
        assert x + size[name][0] / 2 <= layout.width + 1e-6
        assert y - size[name][1] / 2 >= -1e-6
        assert y + size[name][1] / 2 <= layout.height + 1e-6


@given(graphs(), st.booleans())
def test_an_outline_has_one_node_per_line_below_its_parents(graph, as_forest):
    size, edges = graph
    if as_forest:
        edges = list({child: (parent, child) for parent, child in edges}.values())
    outline = outline_of(size, {edge: float(k) for k, edge in enumerate(edges)})
    assert outline.is_forest is (len({child for _, child in edges}) == len(edges))
    assert set(outline.box) == set(size)
    lines = sorted(y for _, y, _ in outline.box.values())
    assert min(np.diff(lines), default=1.0) > 0.3
    assert lines[0] > 0.1
    assert lines[-1] < outline.height - 0.1
    assert all(left >= 0 and left + width < outline.width for left, _, width in outline.box.values())
    for parent, child in edges:
        assert outline.box[parent][1] > outline.box[child][1]
        assert (outline.box[parent][0] < outline.box[child][0]) is outline.is_forest


def test_siblings_of_an_outline_are_sorted_by_their_information():
    size = dict.fromkeys("abcd", (1.0, 0.3))
    outline = outline_of(size, {("a", "b"): 0.1, ("a", "c"): 0.3, ("c", "d"): 0.2})
    assert list(outline.box) == ["a", "c", "d", "b"]


@pytest.mark.parametrize("model", [po.TreeAugmentedNaiveBayes(), po.KDependenceBayes(2)], ids=["tree", "two parents"])
def test_many_columns_fit_on_a_page(model):
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 4, 300)
    columns = {f"a_long_name_{k}": np.where(rng.random(300) < 0.6, cause, 0).astype(str) for k in range(25)}
    model.fit(pl.DataFrame(columns | {"y": rng.integers(0, 2, 300).astype(str)}), "y")
    figure = plot_tree(model).figure
    assert figure.get_size_inches()[0] < 8.5
    figure.draw_without_rendering()
    boxes = [patch.get_window_extent() for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]
    assert len(boxes) == 25
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    _, ax = plt.subplots(figsize=(4.0, 10.0))  # an outline also suits narrow axes
    plot_tree(model, ax=ax)
    assert min(text.get_fontsize() for text in ax.texts if text.get_text().startswith("a_long")) > 6.0


def test_a_chain_stands_upright_and_its_layout_is_repeatable():
    size = dict.fromkeys("abc", (1.0, 0.5))
    layout = layered(size, [("a", "b"), ("b", "c")])
    assert np.ptp([x for x, _ in layout.centre.values()]) < 1e-6
    assert layered(size, [("a", "b"), ("b", "c")]) == layout


def test_a_network_shows_its_probabilities(sprinkler):
    ax = plot_network(sprinkler)
    assert len([patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]) == 4
    assert {"cloudy", "sprinkler", "rain", "wet", "on", "off"} <= set(texts(ax))
    assert f"{sprinkler.probability({'wet': 'yes'}):.0%}" in texts(ax)


def test_evidence_stands_out(sprinkler):
    ax = plot_network(sprinkler, {"wet": "yes"})
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert len({mpl.colors.to_hex(box.get_edgecolor()) for box in boxes}) == 2
    assert "100%" in texts(ax)
    assert f"{sprinkler.probability({'rain': 'yes'}, given={'wet': 'yes'}):.0%}" in texts(ax)


def test_soft_evidence_and_no_bars(sprinkler):
    ax = plot_network(sprinkler, {"rain": {"yes": 1.0, "no": 0.5}})
    assert "cloudy" in texts(ax)
    assert set(texts(plot_network(sprinkler, bars=False))) == {"cloudy", "sprinkler", "rain", "wet"}


def test_a_wrong_finding_is_refused(sprinkler):
    with pytest.raises(ValueError, match="did you mean 'rain'"):
        plot_network(sprinkler, {"rian": "yes"})


def test_a_tree_is_drawn_with_its_information():
    model = po.TreeAugmentedNaiveBayes().fit(load_penguins(), "species")
    ax = plot_tree(model)
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == len(model.edge_information_)
    assert set(model.tree_) <= set(texts(ax))
    assert {f"{nats:.3f}" for nats in model.edge_information_.values()} <= set(texts(ax))
    widths = [arrow.get_linewidth() for arrow in arrows]
    assert np.argmax(widths) == np.argmax(list(model.edge_information_.values()))
    assert ax.get_title(loc="left") == "given species; numbers are nats"


def test_trees_of_classes_of_no_class_and_several_parents():
    penguins = load_penguins()
    own = po.classifiers.ChowLiuClassifier().fit(penguins, "species")
    assert "given species = Gentoo" in plot_tree(own, "Gentoo").get_title(loc="left")
    with pytest.raises(ValueError, match="each class has a tree of its own; say which: label='Adelie'"):
        plot_tree(own)
    with pytest.raises(ValueError, match="'Emperor' is not a class"):
        plot_tree(own, "Emperor")
    assert plot_tree(po.ChowLiuTree().fit(penguins)).get_title(loc="left").startswith("what depends on what")
    two_parents = po.KDependenceBayes(2).fit(penguins, "species")
    plot_tree(two_parents)
    with pytest.raises(ValueError, match="all classes share the tree"):
        plot_tree(two_parents, "Adelie")
    with pytest.raises(ValueError, match="all classes share the tree"):
        plot_tree(po.TreeAugmentedNaiveBayes().fit(penguins, "species"), "Gentoo")
    with pytest.raises(TypeError, match="a NaiveBayes that is not fitted, or that has no tree"):
        plot_tree(po.NaiveBayes().fit(penguins, "species"))


def test_the_axes_given_are_drawn_on(sprinkler):
    _, (left, right) = plt.subplots(1, 2)
    assert plot_network(sprinkler, ax=left) is left
    tree = po.ChowLiuTree().fit(pl.DataFrame({"a": ["x", "y"] * 9, "b": ["u", "v"] * 9}))
    assert plot_tree(tree, ax=right) is right
