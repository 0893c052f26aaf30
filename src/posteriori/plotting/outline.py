"""Dependences of many columns on a narrow figure: one column per line, so that names stay legible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posteriori.networks.graph.layout import LETTER, POINTS
from posteriori.plotting.boxes import draw_arrow, draw_node, open_inches
from posteriori.plotting.canvas import GREY, INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Edges = Mapping[tuple[str, str], float | None]  # (parent, child) to nats, if known

_PITCH, _BOX, _INDENT = 0.34, 0.26, 0.36  # inches: from line to line, height of a box, indentation of a child
_TRUNK = 0.15  # from the left of a box to the line down to its children
_NEAR, _FAR = 0.2, 0.42  # an arc over n lines bulges by near + far √n inches
_NOTE = 6 * LETTER


@dataclass(frozen=True)
class Outline:
    """Nodes from top to bottom, every parent above its children.

    Attributes
    ----------
    box : dict from str to (left, y, width)
        Of each node, in inches, with y upwards.
    is_forest : bool
        Whether no node has two parents; then a child is indented below its parent.
    width, height : float
        In inches.
    """

    box: dict[str, tuple[float, float, float]]
    is_forest: bool
    width: float
    height: float


def outline_of(size: Mapping[str, tuple[float, float]], edges: Edges) -> Outline:
    """Lay out an acyclic graph as an outline.

    In a forest a child follows its parent, the one with the most information first. Otherwise the order is topological:
    a node follows its last parent as closely as this allows.

    Parameters
    ----------
    size : mapping from str to (width, height)
        Of the box of each node, in inches.
    edges : mapping from (parent, child) to nats or None
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
    left = 0.0 if is_forest else max((_bulge(line[child] - line[parent]) for parent, child in edges), default=0.0)
    height = _PITCH * len(depth)
    box = {
        node: (left + _INDENT * level, height - _PITCH * (line[node] + 0.5), size[node][0])
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
            vertices, codes = [(outline.box[parent][0] + _TRUNK, y), (left, y)], [1, 2]
        else:
            start, top, _ = outline.box[parent]
            bulge = 4.0 / 3.0 * _bulge(round((top - y) / _PITCH))  # a cubic curve reaches 3/4 of its control points
            vertices, codes = [(start, top), (start - bulge, top), (start - bulge, y), (left, y)], [1, 4, 4, 4]
        line = colour[parent] if colour[parent] != INK else GREY
        draw_arrow(ax, vertices, codes, edge_width(edges, nats), line, scale)
        if nats is not None:
            size = 0.8 * POINTS * scale
            ax.text(left + wide + LETTER, y, f"{nats:.3f}", fontsize=size, color=INK, va="center")
    for node, (left, y, wide) in outline.box.items():
        draw_node(ax, (left + wide / 2.0, y), (wide, _BOX), node, {}, False, scale, colour[node])
    return ax, scale


def _bulge(lines: int) -> float:
    return float(_NEAR + _FAR * np.sqrt(max(lines - 1, 0)))


def _draw_trunks(ax: Axes, outline: Outline, edges: Iterable[tuple[str, str]], scale: float) -> None:
    """Draw a vertical line from each parent down to its lowest child."""
    lowest: dict[str, float] = {}
    for parent, child in edges:
        lowest[parent] = min(outline.box[child][1], lowest.get(parent, np.inf))
    for parent, y in lowest.items():
        left, top, _ = outline.box[parent]
        ax.plot([left + _TRUNK] * 2, [top, y], color=GREY, lw=1.0 * scale, zorder=1)
