"""Figures of Bayesian networks, dependence trees and trees of a forest."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.classifiers.estimator import OfClasses
from posteriori.classifiers.generative_forest import GenerativeForest
from posteriori.explain.tree_outline import TreeNode, TreeOutline
from posteriori.plotting.canvas import GREY, INK, PALETTE, class_colours, class_names, draw_legend, open_axes
from posteriori.plotting.reading import parents_of
from posteriori.support.formatting import percent, shorten
from posteriori.support.graph_layout import BAR, LETTER, LINE, PAD, POINTS, GraphLayout, box_size, layered, text_length
from posteriori.support.suggestions import class_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from posteriori.networks import BayesianNetwork


_MARGIN = 0.15  # inches around a drawing


def open_inches(ax: Axes | None, width: float, height: float) -> tuple[Axes, float]:
    """Return axes for a drawing of a size in inches, and the scale factor of its text and lines."""
    width, height = width + 2 * _MARGIN, height + 2 * _MARGIN
    own = ax is None
    ax = open_axes(ax, max(width, 2.5) + 0.2, max(height, 1.2) + 0.4)
    ax.set_axis_off()
    ax.set(xlim=(-_MARGIN, width - _MARGIN), ylim=(-_MARGIN, height - _MARGIN), aspect="equal")
    return ax, 1.0 if own else scale_on(ax, width, height)


def scale_on(ax: Axes, width: float, height: float) -> float:
    """Return the factor, at most 1, by which a drawing of a size in inches shrinks on axes."""
    space = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(min(space.width / width, space.height / height, 1.0))


def draw_node(
    ax: Axes,
    centre: tuple[float, float],
    size: tuple[float, float],
    name: str,
    states: Mapping[str, float],
    is_known: bool,
    scale: float,
    edge: str = INK,
) -> None:
    """Draw a box with the name, and one bar per state."""
    from matplotlib.patches import Rectangle

    (x, y), (width, height) = centre, size
    left, top = x - width / 2.0, y + height / 2.0
    if is_known:
        _draw_box(ax, left, y, size, fc="#FFF3DC", ec=PALETTE[1], lw=2.0 * scale)
    else:
        _draw_box(ax, left, y, size, fc="white", ec=edge, lw=0.9 * scale)
    letters: dict[str, Any] = {"va": "center", "color": INK, "zorder": 5}
    weight = "bold" if states else "normal"
    line = top - PAD - LINE / 2.0 if states else y
    ax.text(x, line, shorten(name), ha="center", fontsize=POINTS * scale, fontweight=weight, **letters)
    bar_right = left + width - PAD - 5 * LETTER
    for state, probability in states.items():
        line -= LINE
        ax.text(left + PAD, line, state, ha="left", fontsize=0.9 * POINTS * scale, **letters)
        for length, colour in ((BAR, "#EEEEEE"), (BAR * probability, PALETTE[1] if is_known else PALETTE[0])):
            ax.add_patch(Rectangle((bar_right - BAR, line - 0.06), length, 0.12, fc=colour, lw=0, zorder=4))
        ax.text(left + width - PAD, line, percent(probability), ha="right", fontsize=0.85 * POINTS * scale, **letters)


def _draw_box(ax: Axes, left: float, y: float, size: tuple[float, float], **look: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = left, y - size[1] / 2.0
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle="round,pad=0,rounding_size=0.06", zorder=3, **look))


def draw_arrow(
    ax: Axes, vertices: Sequence[tuple[float, float]], codes: Sequence[Any], width: float, colour: str, scale: float
) -> None:
    """Draw an arrow along a path of Matplotlib; a wider arrow has a larger head."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    arrow = FancyArrowPatch(
        path=Path(np.array(vertices), codes),
        arrowstyle=f"-|>,head_length={4 + width},head_width={1.8 + 0.5 * width}",
        lw=width * scale,
        color=colour,
        shrinkA=0.0,
        shrinkB=0.0,
        mutation_scale=scale,
        zorder=1,
    )
    ax.add_patch(arrow)


Edges = Mapping[tuple[str, str], float | None]  # (parent, child) to nats, if known

PITCH, _BOX, _INDENT = 0.34, 0.26, 0.36  # inches: from line to line, height of a box, indentation of a child
TRUNK = 0.15  # from the left of a box to the line down to its children
_NEAR, _FAR = 0.2, 0.42  # an arc over n lines bulges by near + far √n inches
_NOTE = 6 * LETTER


@dataclass(frozen=True)
class Outline:
    """Nodes from top to bottom, every parent above its children."""

    box: dict[str, tuple[float, float, float]]  # of each node, in inches, with y upwards
    is_forest: bool  # whether no node has two parents; then a child is indented below its parent
    # width, height: in inches
    width: float
    height: float


def outline_of(size: Mapping[str, tuple[float, float]], edges: Edges) -> Outline:
    """Lay out an acyclic graph of boxes of given sizes in inches as an outline.

    In a forest a child follows its parent, the one with the most information first. Otherwise the order is topological:
    a node follows its last parent as closely as this allows.
    """
    parents: dict[str, list[str]] = {node: [] for node in size}
    children: dict[str, list[str]] = {node: [] for node in size}
    for parent, child in sorted(edges, key=lambda edge: -(edges[edge] or 0.0)):
        parents[child].append(parent)
        children[parent].append(child)
    is_forest = all(len(of_child) <= 1 for of_child in parents.values())
    waiting = {node: len(of_child) for node, of_child in parents.items()}
    depth: dict[str, int] = {}
    stack = [(node, 0) for node in reversed(list(size)) if not waiting[node]]
    while stack:
        node, level = stack.pop()
        depth[node] = level if is_forest else 0
        ready = []
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append((child, level + 1))
        stack += reversed(ready)
    line = {node: k for k, node in enumerate(depth)}
    left = 0.0 if is_forest else max((arc_bulge(line[child] - line[parent]) for parent, child in edges), default=0.0)
    height = PITCH * len(depth)
    box = {
        node: (left + _INDENT * level, height - PITCH * (line[node] + 0.5), size[node][0])
        for node, level in depth.items()
    }
    width = max((start + wide for start, _, wide in box.values()), default=0.0)
    return Outline(box, is_forest, width + _NOTE, height)


def edge_width(edges: Edges, nats: float | None) -> float:
    """Return the line width of an edge in points, proportional to its information above a minimum."""
    greatest = max((one for one in edges.values() if one is not None), default=0.0)
    return 1.2 if nats is None or greatest <= 0 else 0.6 + 4.4 * max(nats, 0.0) / greatest


def draw_outline(ax: Axes | None, outline: Outline, edges: Edges) -> tuple[Axes, float]:
    """Draw a graph as an outline; return the axes and the scale factor of text."""
    ax, scale = open_inches(ax, outline.width, outline.height)
    colour = dict.fromkeys(outline.box, INK)
    if outline.is_forest:
        _draw_trunks(ax, outline, edges, scale)
    else:
        several = [node for node in outline.box if sum(parent == node for parent, _ in edges) > 1]
        colour |= {node: PALETTE[k % len(PALETTE)] for k, node in enumerate(several)}
    for (parent, child), nats in edges.items():
        left, y, wide = outline.box[child]
        if outline.is_forest:
            vertices, codes = [(outline.box[parent][0] + TRUNK, y), (left, y)], [1, 2]
        else:
            start, top, _ = outline.box[parent]
            bulge = 4.0 / 3.0 * arc_bulge(round((top - y) / PITCH))  # a cubic curve reaches 3/4 of its control points
            vertices, codes = [(start, top), (start - bulge, top), (start - bulge, y), (left, y)], [1, 4, 4, 4]
        line = colour[parent] if colour[parent] != INK else GREY
        draw_arrow(ax, vertices, codes, edge_width(edges, nats), line, scale)
        if nats is not None:
            size = 0.8 * POINTS * scale
            ax.text(left + wide + LETTER, y, f"{nats:.3f}", fontsize=size, color=INK, va="center")
    for node, (left, y, wide) in outline.box.items():
        draw_node(ax, (left + wide / 2.0, y), (wide, _BOX), node, {}, False, scale, colour[node])
    return ax, scale


def arc_bulge(lines: int) -> float:
    """Return how far an arc over so many lines reaches to the left, in inches."""
    return float(_NEAR + _FAR * np.sqrt(max(lines - 1, 0)))


def _draw_trunks(ax: Axes, outline: Outline, edges: Iterable[tuple[str, str]], scale: float) -> None:
    """Draw a vertical line from each parent down to its lowest child."""
    lowest: dict[str, float] = {}
    for parent, child in edges:
        lowest[parent] = min(outline.box[child][1], lowest.get(parent, np.inf))
    for parent, y in lowest.items():
        left, top, _ = outline.box[parent]
        ax.plot([left + TRUNK] * 2, [top, y], color=GREY, lw=1.0 * scale, zorder=1)


_TREE_INDENT, _TREE_TRUNK = 0.3, 0.13  # inches: child below its parent, trunk
_BARS = 1.6  # width of a bar of classes
_GAP = 2 * LETTER
_LETTERS = 0.9 * POINTS
_HINTING = 1.1  # pixels make letters wider than their outlines
_THICKEST = 6.0  # points: the edge of all rows
_THINNEST = 0.6


def draw_forest_tree(outline: TreeOutline, names: Sequence[str], ax: Axes | None) -> Axes:
    """Draw a tree with one node per line, indented below its parent, and a bar of the named classes."""
    nodes = outline.nodes
    left = [_TREE_INDENT * node.depth for node in nodes]
    width = [_inches(node.condition) + 2 * PAD for node in nodes]
    folded = [_GAP / 2.0 + _inches(node.folded) if node.folded else 0.0 for node in nodes]
    bars = max(sum(parts) for parts in zip(left, width, folded, strict=True)) + _GAP + 5 * LETTER + _GAP
    most_probable = [_most_probable(node, names) for node in nodes]
    total = bars + _BARS + LETTER + max(map(_inches, most_probable))
    height = PITCH * len(nodes)
    own = ax is None
    ax, scale = open_inches(ax, total, height + LINE)
    letters: dict[str, Any] = {"va": "center", "color": INK, "fontsize": _LETTERS * scale, "zorder": 5}
    colours = class_colours(len(names))
    y = [height - PITCH * (k + 0.5) for k in range(len(nodes))]
    ax.text(0.0, height + LINE / 2.0, outline.title, **letters | {"fontsize": 1.05 * POINTS * scale})
    ax.text(bars - _GAP, height + LINE / 2.0, "rows", ha="right", **letters)
    ax.text(bars, height + LINE / 2.0, "classes", **letters)
    for k, node in enumerate(nodes):
        if node.parent >= 0:
            _draw_edge(
                ax, left[node.parent] + _TREE_TRUNK, y[node.parent] - _BOX / 2.0, left[k], y[k], node.share, scale
            )
        line = {"ec": GREY, "ls": "--"} if node.n_folded else {"ec": INK, "ls": "-"}
        _draw_box(ax, left[k], y[k], (width[k], _BOX), fc="white", lw=0.9 * scale, **line)
        ax.text(left[k] + PAD, y[k], node.condition, **letters)
        if node.folded:
            ax.text(left[k] + width[k] + _GAP / 2.0, y[k], node.folded, **letters)
        ax.text(bars - _GAP, y[k], percent(node.share), ha="right", **letters)
        _draw_bar(ax, bars, y[k], node, colours)
        ax.text(bars + _BARS + LETTER, y[k], most_probable[k], **letters)
    for name, colour in zip(names, colours, strict=True):
        ax.plot([], [], "s", color=colour, label=name)
    draw_legend(ax)
    if own:  # the legend takes no room from the tree, so that letters fit their boxes
        figure: Any = ax.figure
        across, high = figure.get_size_inches()
        legend: Any = ax.get_legend()
        lines = -(-len(names) // legend._ncols)
        figure.set_size_inches(across, high + 0.25 * lines)
    return ax


def _most_probable(node: TreeNode, names: Sequence[str]) -> str:
    c = int(node.probabilities.argmax())
    return f"{node.probabilities[c]:.2f} {names[c]}"


def _inches(text: str) -> float:
    """Return the width of a text at the size of the letters of nodes."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0.0, 0.0), text, size=_LETTERS).get_extents().width) / 72.0 * _HINTING


def _draw_edge(ax: Axes, x: float, top: float, right: float, y: float, share: float, scale: float) -> None:
    """Draw a line down from a parent and to the child, as wide as the share of the rows."""
    thick = max(_THICKEST * share, _THINNEST) * scale
    ax.plot([x, x], [top, y], color=GREY, lw=_THINNEST * scale, zorder=1)
    ax.plot([x, right], [y, y], color=GREY, lw=thick, solid_capstyle="butt", zorder=1)


def _draw_bar(ax: Axes, left: float, y: float, node: TreeNode, colours: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    for probability, colour in zip(node.probabilities.tolist(), colours, strict=True):
        ax.add_patch(Rectangle((left, y - 0.07), _BARS * probability, 0.14, fc=colour, lw=0, zorder=4))
        left += _BARS * probability


_MOST_WITH_BARS = 45
WIDEST = 8.0  # inches; a wider tree is an outline
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

    Raises
    ------
    ValueError
        The evidence names an unknown variable or state, or is impossible.

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
    from posteriori.networks.notebooks import beliefs_of  # imported here: charts of reports need no networks

    known = dict(evidence or {})
    shown = len(network.variables) <= _MOST_WITH_BARS if bars is None else bars
    beliefs = beliefs_of(network, known) if shown else {name: {} for name in network.variables}
    size = {name: box_size(name, states) for name, states in beliefs.items()}
    layout = layered(size, network.edges)
    ax, scale = open_inches(ax, layout.width, layout.height)
    for parent, child in network.edges:
        _draw_network_edge(ax, layout, size, parent, child, scale)
    for name, states in beliefs.items():
        draw_node(ax, layout.centre[name], size[name], name, states, name in known, scale)
    return ax


def plot_tree(
    model: OfClasses,
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

    Raises
    ------
    ValueError
        There is no such class, or each class has a tree and label is None; or there is no such tree of the forest.
    TypeError
        The model has no tree, or is no forest and tree or max_depth is given.

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
    if isinstance(model, GenerativeForest):
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
        as_outline = layout.width > WIDEST
    else:
        as_outline = scale_on(ax, outline.width, outline.height) > scale_on(ax, layout.width, layout.height)
    width = (outline if as_outline else layout).width
    if as_outline:
        ax, scale = draw_outline(ax, outline, edges)
    else:
        ax, scale = open_inches(ax, layout.width, layout.height)
        for (parent, child), nats in edges.items():
            note = None if nats is None else f"{nats:.3f}"
            _draw_network_edge(ax, layout, size, parent, child, scale, edge_width(edges, nats), note)
        for name in names:
            draw_node(ax, layout.centre[name], size[name], name, {}, False, scale)
    given = model.schema_.target or "the class"
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


def _edges_of(model: OfClasses, label: Any) -> tuple[dict[tuple[str, str], float | None], tuple[str, ...]]:
    """Return the edges of the tree of a model with their information if known, and all features."""
    found = parents_of(model) if isinstance(model, OfClasses) else {}
    if not found:
        raise TypeError(f"a {type(model).__name__} that is not fitted, or that has no tree, cannot be drawn as one")
    if None in found and label is not None:
        raise ValueError(f"all classes share the tree; leave label={label!r} out")
    if None not in found and label is None:
        raise ValueError(f"each class has a tree of its own; say which: label={next(iter(found))!r}")
    parents = found[label if label is None else list(found)[class_index(label, found)]]
    edges = {(parent, child): nats for child, above in parents.items() for parent, nats in above.items()}
    return edges, tuple(parents)


def _draw_network_edge(
    ax: Axes,
    layout: GraphLayout,
    size: Mapping[str, tuple[float, float]],
    parent: str,
    child: str,
    scale: float,
    width: float = 1.1,
    note: str | None = None,
) -> None:
    """Draw an edge from the bottom of the parent box to the top of the child box."""
    from matplotlib.path import Path

    ends = layout.ends(parent, child, size)
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
