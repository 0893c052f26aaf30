"""Layered layout of acyclic graphs, and their drawing as SVG for notebooks."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from posteriori.support.formatting import percent, probability, shorten
from posteriori.support.markup import as_html
from posteriori.support.typing import Array

LETTER, LINE, PAD = 0.085, 0.2, 0.09  # inches, at the font size below
POINTS = 9.0
BAR = 0.75
Node = str | tuple[str, str, int]  # a node, or a dummy node (parent, child, layer) where an edge crosses a layer
_SWEEPS = 24
_ROUNDS = 100
_PULL = 0.15  # weight of the centre, against 1 per neighbour; keeps components from drifting apart
_ACROSS = 0.3  # least distance between neighbouring boxes, in inches
_PASSING = 0.12  # width of a dummy node, in inches


def box_size(name: str, states: Mapping[str, float]) -> tuple[float, float]:
    """Return the width and height of a node's box in inches."""
    inside = max(map(text_length, states), default=0.0) + PAD + BAR + 5 * LETTER if states else 0.0
    width = max(1.1 * text_length(shorten(name)), inside) + 2 * PAD
    return width, LINE * (1 + len(states)) + 2 * PAD


def text_length(text: str) -> float:
    """Estimate the width of a text in inches; capitals are wide."""
    return sum(1.2 * LETTER if letter.isupper() else LETTER for letter in text)


@dataclass(frozen=True)
class GraphLayout:
    """Positions in inches, with y upwards from 0 at the bottom.

    Attributes
    ----------
    centre : dict from str to tuple of float
        Centre of the box of each node.
    way : dict from tuple of str to list of tuple of float
        Points where each edge enters and leaves each layer: an edge runs straight down within a layer, so that it meets
        no box there, and bends between two layers.
    width, height : float
    """

    centre: dict[str, tuple[float, float]]
    way: dict[tuple[str, str], list[tuple[float, float]]]
    width: float
    height: float

    def ends(self, parent: str, child: str, size: Mapping[str, tuple[float, float]]) -> list[tuple[float, float]]:
        """Return the points of an edge from the bottom of the parent's box to the top of the child's box."""
        (x0, y0), (x1, y1) = self.centre[parent], self.centre[child]
        return [(x0, y0 - size[parent][1] / 2.0), *self.way[parent, child], (x1, y1 + size[child][1] / 2.0)]


def layered(
    size: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]], down: float = 0.55
) -> GraphLayout:
    """Compute a layered layout of an acyclic graph.

    Parameters
    ----------
    size : mapping from str to (width, height)
        Size of the box of each node, in inches.
    edges : sequence of (parent, child)
    down : float
        Minimum distance between layers, in inches.

    References
    ----------
    Sugiyama, Tagawa & Toda, Methods for visual understanding of hierarchical system structures, IEEE Trans. SMC 11
    (1981): assign layers, reduce crossings by barycentres of the neighbours, then assign coordinates.
    """
    layer = _layers(list(size), edges)
    rows, chains = _rows_and_chains(layer, edges)
    links = [link for chain in chains.values() for link in itertools.pairwise(chain)]
    above = _neighbours([(child, parent) for parent, child in links])
    below = _neighbours(links)
    _reduce_crossings(rows, above, below)
    width = {node: size[node][0] if isinstance(node, str) else _PASSING for row in rows for node in row}
    x = _places(rows, above, below, width, _ACROSS)
    middle, height, total = _middles(rows, size, down)
    left = min((x[node] - width[node] / 2.0 for node in x), default=0.0)
    right = max((x[node] + width[node] / 2.0 for node in x), default=0.0)
    centre = {node: (x[node] - left, middle[layer[node]]) for node in size}
    way = {
        edge: [
            (x[stop] - left, middle[k] + side * height[k] / 2.0)
            for stop, k in zip(chain, range(layer[edge[0]], layer[edge[1]] + 1), strict=True)
            for side in (1.0, -1.0)
        ][1:-1]
        for edge, chain in chains.items()
    }
    return GraphLayout(centre, way, right - left, total)


def _rows_and_chains(
    layer: Mapping[str, int], edges: Sequence[tuple[str, str]]
) -> tuple[list[list[Node]], dict[tuple[str, str], list[Node]]]:
    """Return the nodes of each layer, and each edge as a chain with one dummy node per layer that it crosses."""
    rows: list[list[Node]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node, k in layer.items():
        rows[k].append(node)
    chains: dict[tuple[str, str], list[Node]] = {}
    for parent, child in edges:
        crossed = range(layer[parent] + 1, layer[child])
        for k in crossed:
            rows[k].append((parent, child, k))
        chains[parent, child] = [parent, *((parent, child, k) for k in crossed), child]
    return rows, chains


def _middles(
    rows: list[list[Node]], size: Mapping[str, tuple[float, float]], down: float
) -> tuple[list[float], list[float], float]:
    """Return y of the middle of each layer, the height of each layer, and the total height, in inches."""
    if not rows:
        return [], [], 0.0
    heights = [max((size[node][1] for node in row if isinstance(node, str)), default=0.0) for row in rows]
    tops = np.cumsum([0.0, *(height + down for height in heights[:-1])])
    total = float(tops[-1] + heights[-1])
    return (total - tops - np.array(heights) / 2.0).tolist(), heights, total


def _layers(nodes: list[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each node: one below its lowest parent; a root is one above its highest child."""
    parents: dict[str, list[str]] = {node: [] for node in nodes}
    children: dict[str, list[str]] = {node: [] for node in nodes}
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    layer: dict[str, int] = {}

    def depth(node: str) -> int:
        if node not in layer:
            layer[node] = 1 + max((depth(parent) for parent in parents[node]), default=-1)
        return layer[node]

    for node in nodes:
        depth(node)
    for node in nodes:
        if not parents[node] and children[node]:
            layer[node] = min(layer[child] for child in children[node]) - 1
    return {node: layer[node] for node in nodes}  # the given order, not that of the recursion


def _neighbours(links: list[tuple[Node, Node]]) -> dict[Node, list[Node]]:
    found: dict[Node, list[Node]] = {}
    for one, other in links:
        found.setdefault(one, []).append(other)
    return found


def _reduce_crossings(rows: list[list[Node]], above: dict[Node, list[Node]], below: dict[Node, list[Node]]) -> None:
    """Order each layer by the mean position of its neighbours, in alternating sweeps; keep the best order."""
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        neighbours, order = (above, rows[1:]) if sweep % 2 == 0 else (below, rows[-2::-1])
        for row in order:
            position = {node: k / max(len(other), 1) for other in rows for k, node in enumerate(other)}
            mean = {
                node: float(np.mean([position[other] for other in neighbours.get(node, [])] or [position[node]]))
                for node in row
            }
            row.sort(key=mean.__getitem__)
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    rows[:] = best


def _crossings(rows: list[list[Node]], below: dict[Node, list[Node]]) -> int:
    total = 0
    for row, under in itertools.pairwise(rows):
        position = {node: k for k, node in enumerate(under)}
        ends = [position[other] for node in row for other in sorted(below.get(node, []), key=position.__getitem__)]
        total += sum(1 for i, end in enumerate(ends) for later in ends[i + 1 :] if later < end)
    return total


def _places(
    rows: list[list[Node]],
    above: dict[Node, list[Node]],
    below: dict[Node, list[Node]],
    width: dict[Node, float],
    across: float,
) -> dict[Node, float]:
    """Return x of each node: close to the mean of its neighbours, given the order and widths of its layer."""
    from sklearn.isotonic import isotonic_regression  # imported here: inference needs no scikit-learn

    offsets: list[Array] = []
    x: dict[Node, float] = {}
    for row in rows:
        wide = np.array([width[node] for node in row])
        offsets.append(np.concatenate([[0.0], np.cumsum((wide[:-1] + wide[1:]) / 2.0 + across)]))
        x |= dict(zip(row, offsets[-1] - offsets[-1].mean(), strict=True))
    for _ in range(_ROUNDS):
        for row, offset in zip(rows, offsets, strict=True):
            around = [[x[other] for other in (*above.get(node, []), *below.get(node, []))] for node in row]
            wanted = np.array([sum(positions) / (len(positions) + _PULL) for positions in around])
            # Least squares subject to x_{k+1} − x_k ≥ distance; after subtracting the offsets, isotonic regression.
            x |= dict(zip(row, (isotonic_regression(wanted - offset) + offset).tolist(), strict=True))
    return x


PIXELS = 80.0  # per inch
_LETTERS = 11.0  # pixels
_MARGIN = 0.1  # inches
_ARROW = 0.05  # inches, half the width of an arrowhead
_FEWEST_PIXELS = 1e-4  # a shorter part of an edge has no direction
_MOST_STATES = 10
_BELIEF = "rgba(30, 130, 200, 0.75)"
_GREY = "rgba(128, 128, 128, 0.22)"
_PAPER = "rgba(128, 128, 128, 0.07)"

Point = tuple[float, float]


def network_svg(beliefs: Mapping[str, Mapping[str, float]], edges: Sequence[tuple[str, str]], title: str) -> str:
    """Return a network as SVG: a box for each variable, with a bar for each state, and arrows from the parents.

    Parameters
    ----------
    beliefs : mapping from str to mapping from str to float
        The probability of each state of each variable; no states for boxes with the name only. Of more than 10 states,
        the last ones are one line with their sum.
    edges : sequence of (parent, child)
    title : str
        Read to those who do not see the picture.
    """
    shown = {name: _first_states(states) for name, states in beliefs.items()}
    size = {name: box_size(name, states) for name, states in shown.items()}
    layout = layered(size, edges)

    def pixels(x: float, y: float) -> Point:  # y is down in SVG
        return PIXELS * (x + _MARGIN), PIXELS * (layout.height - y + _MARGIN)

    drawn = []
    for parent, child in edges:
        ends = [pixels(*end) for end in layout.ends(parent, child, size)]
        drawn.append(_arrow(ends, f"{parent} → {child}"))
    for name, states in shown.items():
        (x, y), (width, height) = layout.centre[name], size[name]
        corner = pixels(x - width / 2.0, y + height / 2.0)
        drawn.append(_node(corner, (PIXELS * width, PIXELS * height), name, states, beliefs[name]))
    width, height = (PIXELS * (length + 2.0 * _MARGIN) for length in (layout.width, layout.height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{as_html(title)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'font-family="system-ui, sans-serif" font-size="{_LETTERS:g}" fill="currentColor">{"".join(drawn)}</svg>'
    )


def _first_states(states: Mapping[str, float]) -> dict[str, float]:
    if len(states) <= _MOST_STATES:
        return dict(states)
    pairs = list(states.items())
    first, rest = pairs[: _MOST_STATES - 1], pairs[_MOST_STATES - 1 :]
    return dict(first) | {f"{len(rest):,} more states": sum(p for _, p in rest)}


def _arrow(ends: Sequence[Point], title: str) -> str:
    """Return an edge that leaves and enters each layer straight down, with its head at the last point."""
    x, y = ends[-1]
    half = _ARROW * PIXELS
    way = edge_path(ends, 2.0 * half)
    head = f"M{x:.1f} {y:.1f}l{-half:g} {-2.0 * half:g}h{2.0 * half:g}z"
    return (
        f'<g opacity="0.6"><title>{as_html(title)}</title>'
        f'<path d="{way}" fill="none" stroke="currentColor"/><path d="{head}"/></g>'
    )


def edge_path(ends: Sequence[Point], head: float) -> str:
    """Return the path of an edge that passes each point straight down and ends where its head begins, in pixels."""
    lowest = ends[-1][1] - head
    ends = [(x, min(y, lowest)) for x, y in ends]
    points = [ends[0], *(b for a, b in itertools.pairwise(ends) if abs(b[1] - a[1]) > _FEWEST_PIXELS)]
    way = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (xa, ya), (xb, yb) in itertools.pairwise(points):
        middle = (ya + yb) / 2.0
        way += f"C{xa:.1f} {middle:.1f} {xb:.1f} {middle:.1f} {xb:.1f} {yb:.1f}"
    return way


def _node(corner: Point, size: Point, name: str, shown: Mapping[str, float], states: Mapping[str, float]) -> str:
    """Return a box with the name and a bar for each shown state; all states are its tooltip."""
    (left, top), (width, height) = corner, size
    tip = "\n".join([name, *(f"{state}: {probability(p)}" for state, p in states.items())])
    y = top + PIXELS * (PAD + LINE / 2.0) if shown else top + height / 2.0
    weight = ' font-weight="600"' if shown else ""
    parts = [
        f'<g><title>{as_html(tip)}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="5" fill="{_PAPER}" stroke="currentColor" stroke-opacity="0.5"/>',
        _letters(left + width / 2.0, y, shorten(name), f'text-anchor="middle"{weight}'),
    ]
    bar, inside = PIXELS * BAR, left + width - PIXELS * PAD
    start = inside - PIXELS * 5.0 * LETTER - bar
    for state, p in shown.items():
        y += PIXELS * LINE
        parts.append(_letters(left + PIXELS * PAD, y, state))
        for length, colour in ((bar, _GREY), (bar * p, _BELIEF)):
            parts.append(f'<rect x="{start:.1f}" y="{y - 5.0:.1f}" width="{length:.2f}" height="10" fill="{colour}"/>')
        parts.append(_letters(inside, y, percent(p), 'text-anchor="end"'))
    return "".join(parts) + "</g>"


def _letters(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y + 0.35 * _LETTERS:.1f}" {more}>{as_html(text)}</text>'
