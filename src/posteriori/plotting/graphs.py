"""Figures of Bayesian networks and dependence trees, with parents above children."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from posteriori.formatting import shorten
from posteriori.networks.graph.layout import LETTER, POINTS, Layout, box_size, layered, text_length
from posteriori.networks.notebooks import beliefs_of
from posteriori.plotting.boxes import draw_arrow, draw_node, open_inches, scale_on
from posteriori.plotting.canvas import GREY, INK, class_names
from posteriori.plotting.forest_trees import draw_forest_tree
from posteriori.plotting.outline import draw_outline, edge_width, outline_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.networks import BayesianNetwork

_MOST_WITH_BARS = 45
_WIDEST = 8.0  # inches; a wider tree is an outline
_NO_LENGTH = 1e-6  # inches
_SHORTEST_TITLE = 24  # letters in a line


def plot_network(
    network: BayesianNetwork,
    evidence: Mapping[str, Any] | None = None,
    *,
    bars: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a network, with p(variable | evidence) as bars in its nodes.

    Parameters
    ----------
    network : BayesianNetwork
    evidence : mapping, optional
        As in `BayesianNetwork.query`; variables with evidence are highlighted.
    bars : bool, optional
        Whether nodes show their probabilities. Default: in networks of up to 45 variables.
    ax : matplotlib Axes, optional
        Default: axes of a new figure, as large as the network needs.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        The evidence names an unknown variable or state, or is impossible.
    ImportError
        Matplotlib is not installed.

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> ax = po.plotting.plot_network(net, {"wet": "yes"})
    >>> [text.get_text() for text in ax.texts][:3]
    ['rain', 'yes', '69%']
    """
    known = dict(evidence or {})
    shown = len(network.variables) <= _MOST_WITH_BARS if bars is None else bars
    beliefs = beliefs_of(network, known) if shown else {name: {} for name in network.variables}
    size = {name: box_size(name, states) for name, states in beliefs.items()}
    layout = layered(size, network.edges)
    ax, scale = open_inches(ax, layout.width, layout.height)
    for parent, child in network.edges:
        _draw_edge(ax, layout, size, parent, child, scale)
    for name, states in beliefs.items():
        draw_node(ax, layout.centre[name], size[name], name, states, name in known, scale)
    return ax


def plot_tree(
    model: Any,
    label: Any = None,
    *,
    tree: int | None = None,
    max_depth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the dependences among features given the class, or one tree of a forest.

    Of dependences, wider edges carry more information. Parents are above their children. A tree too wide for a page is
    an outline with one feature per line, indented below its parent. Features with several parents are then one per line
    too, with an arc from each parent.

    A tree of a forest has one node per line, indented below its parent, with the condition of the split in the units of
    the column, the share of the rows that reaches it (also as the width of its edge), and p(y | node) as a bar. Deeper
    nodes are folded. `GenerativeForest.outline` gives the same as text.

    Parameters
    ----------
    model : fitted TreeAugmentedNaiveBayes, ChowLiuClassifier, ChowLiuTree, KDependenceBayes or GenerativeForest
    label : class label, optional
        Class whose tree to draw, if each class has its own.
    tree : int, optional
        Which tree of a forest. Default: 0.
    max_depth : int, optional
        Levels of a tree of a forest below its root. Default: 3.
    ax : matplotlib Axes, optional
        Default: axes of a new figure, as large as the tree needs.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        There is no such class, or each class has a tree and label is None; or there is no such tree of the forest.
    TypeError
        The model has no tree, or is no forest and tree or max_depth is given.
    ImportError
        Matplotlib is not installed.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins().drop("island", "sex")
    >>> model = po.TreeAugmentedNaiveBayes().fit(table, "species")
    >>> ax = po.plotting.plot_tree(model)
    >>> sorted({text.get_text() for text in ax.texts} & set(table.columns))
    ['bill_depth_mm', 'bill_length_mm', 'body_mass_g', 'flipper_length_mm', 'year']
    """
    if hasattr(model, "outline"):
        if label is not None:
            raise ValueError(f"all classes share the trees of a forest; leave label={label!r} out")
        outline_of_one = model.outline(0 if tree is None else tree, max_depth=3 if max_depth is None else max_depth)
        return draw_forest_tree(outline_of_one, class_names(model), ax)
    if tree is not None or max_depth is not None:
        raise TypeError(f"tree and max_depth are for forests, and a {type(model).__name__} is none; leave them out")
    edges, names = _edges_of(model, label)
    size = {name: box_size(name, {}) for name in names}
    layout, outline = layered(size, list(edges), down=0.75), outline_of(size, edges)
    own = ax is None
    if ax is None:
        as_outline = layout.width > _WIDEST
    else:
        as_outline = scale_on(ax, outline.width, outline.height) > scale_on(ax, layout.width, layout.height)
    width = (outline if as_outline else layout).width
    if as_outline:
        ax, scale = draw_outline(ax, outline, edges)
    else:
        ax, scale = open_inches(ax, layout.width, layout.height)
        for (parent, child), nats in edges.items():
            note = None if nats is None else f"{nats:.3f}"
            _draw_edge(ax, layout, size, parent, child, scale, edge_width(edges, nats), note)
        for name in names:
            draw_node(ax, layout.centre[name], size[name], name, {}, False, scale)
    target = getattr(getattr(model, "model_", None), "schema", None)
    given = (target.target if target is not None else None) or "the class"
    titles = {"ChowLiuTree": "what depends on what"}
    if label is not None:
        title = f"given {given} = {shorten(label)}"
    else:
        title = titles.get(type(model).__name__, f"given {given}")
    if any(nats is not None for nats in edges.values()):
        title += "; numbers are nats"
    if own:  # a narrow tree must not cut the title off
        title = textwrap.fill(title, max(int(width / (LETTER * 1.1)), _SHORTEST_TITLE))
        figure: Any = ax.figure
        across, height = figure.get_size_inches()
        longest = max(map(text_length, title.split("\n")))
        figure.set_size_inches(max(across, 1.1 * longest + 0.4), height + 0.2 * title.count("\n"))
    ax.set_title(title, loc="left", fontsize=POINTS * 1.1 * scale, color=INK)
    return ax


def _edges_of(model: Any, label: Any) -> tuple[dict[tuple[str, str], float | None], tuple[str, ...]]:
    """Return the edges of the tree of a model with their information if known, and all features."""
    if hasattr(model, "parents_"):
        parents = model.parents_
        return {(parent, child): None for child, of_child in parents.items() for parent in of_child}, tuple(parents)
    if not hasattr(model, "tree_"):
        raise TypeError(f"a {type(model).__name__} that is not fitted, or that has no tree, cannot be drawn as one")
    tree, weights = model.tree_, model.edge_information_
    if any(isinstance(one, dict) for one in tree.values()):
        if label is None:
            raise ValueError(f"each class has a tree of its own; say which: label={next(iter(tree))!r}")
        if label not in tree:
            raise ValueError(f"{label!r} is not a class; the classes are {list(tree)}")
        tree, weights = tree[label], weights[label]
    elif label is not None:
        raise ValueError(f"all classes share the tree; leave label={label!r} out")
    return dict(weights), tuple(tree)


def _draw_edge(
    ax: Axes,
    layout: Layout,
    size: Mapping[str, tuple[float, float]],
    parent: str,
    child: str,
    scale: float,
    width: float = 1.1,
    note: str | None = None,
) -> None:
    """Draw an edge from the bottom of the parent box to the top of the child box."""
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = layout.centre[parent], layout.centre[child]
    ends = [(x0, y0 - size[parent][1] / 2.0), *layout.way[parent, child], (x1, y1 + size[child][1] / 2.0)]
    # A segment without length would have no direction for the arrowhead.
    points = [ends[0], *(end for before, end in itertools.pairwise(ends) if abs(end[1] - before[1]) > _NO_LENGTH)]
    vertices, codes = [points[0]], [Path.MOVETO]
    for (xa, ya), (xb, yb) in itertools.pairwise(points):
        middle = (ya + yb) / 2.0
        vertices += [(xa, middle), (xb, middle), (xb, yb)]
        codes += [Path.CURVE4] * 3
    draw_arrow(ax, vertices, codes, width, GREY, scale)
    if note:
        (_, ya), (xb, yb) = points[-2:]
        ax.text(
            xb,  # above the child, where no other edge has its number
            ya + 0.7 * (yb - ya),
            note,
            fontsize=0.8 * POINTS * scale,
            color=INK,
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.85},
            zorder=2,
        )
