"""One tree of a forest on a figure: a node per line, with its share of the rows and its class distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from posteriori.explain.tree_outline import TreeNode, TreeOutline
from posteriori.formatting import percent
from posteriori.networks.graph.layout import LETTER, LINE, PAD, POINTS
from posteriori.plotting.boxes import open_inches
from posteriori.plotting.canvas import GREY, INK, class_colours, draw_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PITCH, _BOX, _INDENT, _TRUNK = 0.34, 0.26, 0.3, 0.13  # inches: line to line, box, child below its parent, trunk
_BARS = 1.6  # width of a bar of classes
_GAP = 2 * LETTER
_LETTERS = 0.9 * POINTS
_HINTING = 1.1  # pixels make letters wider than their outlines
_THICKEST = 6.0  # points: the edge of all rows
_THINNEST = 0.6


def draw_forest_tree(outline: TreeOutline, names: Sequence[str], ax: Axes | None) -> Axes:
    """Draw a tree with one node per line, indented below its parent.

    Parameters
    ----------
    outline : TreeOutline
    names : sequence of str
        The display name of each class.
    ax : matplotlib Axes or None
        None for axes of a new figure.
    """
    nodes = outline.nodes
    left = [_INDENT * node.depth for node in nodes]
    width = [_inches(node.condition) + 2 * PAD for node in nodes]
    folded = [_GAP / 2.0 + _inches(node.folded) if node.folded else 0.0 for node in nodes]
    bars = max(sum(parts) for parts in zip(left, width, folded, strict=True)) + _GAP + 5 * LETTER + _GAP
    most_probable = [_most_probable(node, names) for node in nodes]
    total = bars + _BARS + LETTER + max(map(_inches, most_probable))
    height = _PITCH * len(nodes)
    own = ax is None
    ax, scale = open_inches(ax, total, height + LINE)
    letters: dict[str, Any] = {"va": "center", "color": INK, "fontsize": _LETTERS * scale, "zorder": 5}
    colours = class_colours(len(names))
    y = [height - _PITCH * (k + 0.5) for k in range(len(nodes))]
    ax.text(0.0, height + LINE / 2.0, outline.title, **letters | {"fontsize": 1.05 * POINTS * scale})
    ax.text(bars - _GAP, height + LINE / 2.0, "rows", ha="right", **letters)
    ax.text(bars, height + LINE / 2.0, "classes", **letters)
    for k, node in enumerate(nodes):
        if node.parent >= 0:
            _draw_edge(ax, left[node.parent] + _TRUNK, y[node.parent] - _BOX / 2.0, left[k], y[k], node.share, scale)
        _draw_box(ax, left[k], y[k], width[k], node, scale)
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


def _draw_box(ax: Axes, left: float, y: float, width: float, node: TreeNode, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (left, y - _BOX / 2.0),
        width,
        _BOX,
        boxstyle="round,pad=0,rounding_size=0.06",
        fc="white",
        ec=GREY if node.n_folded else INK,
        ls="--" if node.n_folded else "-",
        lw=0.9 * scale,
        zorder=3,
    )
    ax.add_patch(box)


def _draw_bar(ax: Axes, left: float, y: float, node: TreeNode, colours: Sequence[str]) -> None:
    from matplotlib.patches import Rectangle

    for probability, colour in zip(node.probabilities.tolist(), colours, strict=True):
        ax.add_patch(Rectangle((left, y - 0.07), _BARS * probability, 0.14, fc=colour, lw=0, zorder=4))
        left += _BARS * probability
