"""Networks as SVG for notebooks, which takes the text colour of the page, without matplotlib."""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping, Sequence

from posteriori.formatting import percent, probability, shorten
from posteriori.networks.graph.layout import BAR, LETTER, LINE, PAD, box_size, layered

_PIXELS = 80.0  # per inch
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
        return _PIXELS * (x + _MARGIN), _PIXELS * (layout.height - y + _MARGIN)

    drawn = []
    for parent, child in edges:
        (x0, y0), (x1, y1) = layout.centre[parent], layout.centre[child]
        ends = [(x0, y0 - size[parent][1] / 2.0), *layout.way[parent, child], (x1, y1 + size[child][1] / 2.0)]
        drawn.append(_arrow([pixels(*end) for end in ends], f"{parent} → {child}"))
    for name, states in shown.items():
        (x, y), (width, height) = layout.centre[name], size[name]
        corner = pixels(x - width / 2.0, y + height / 2.0)
        drawn.append(_node(corner, (_PIXELS * width, _PIXELS * height), name, states, beliefs[name]))
    width, height = (_PIXELS * (length + 2.0 * _MARGIN) for length in (layout.width, layout.height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{html.escape(title)}" '
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
    half = _ARROW * _PIXELS
    points = [*ends[:-1], (x, y - 2.0 * half)]  # the line ends where the head begins
    points = [points[0], *(b for a, b in itertools.pairwise(points) if abs(b[1] - a[1]) > _FEWEST_PIXELS)]
    way = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (xa, ya), (xb, yb) in itertools.pairwise(points):
        middle = (ya + yb) / 2.0
        way += f"C{xa:.1f} {middle:.1f} {xb:.1f} {middle:.1f} {xb:.1f} {yb:.1f}"
    head = f"M{x:.1f} {y:.1f}l{-half:g} {-2.0 * half:g}h{2.0 * half:g}z"
    return (
        f'<g opacity="0.6"><title>{html.escape(title)}</title>'
        f'<path d="{way}" fill="none" stroke="currentColor"/><path d="{head}"/></g>'
    )


def _node(corner: Point, size: Point, name: str, shown: Mapping[str, float], states: Mapping[str, float]) -> str:
    """Return a box with the name and a bar for each shown state; all states are its tooltip."""
    (left, top), (width, height) = corner, size
    tip = "\n".join([name, *(f"{state}: {probability(p)}" for state, p in states.items())])
    y = top + _PIXELS * (PAD + LINE / 2.0) if shown else top + height / 2.0
    weight = ' font-weight="600"' if shown else ""
    parts = [
        f'<g><title>{html.escape(tip)}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="5" fill="{_PAPER}" stroke="currentColor" stroke-opacity="0.5"/>',
        _letters(left + width / 2.0, y, shorten(name), f'text-anchor="middle"{weight}'),
    ]
    bar, inside = _PIXELS * BAR, left + width - _PIXELS * PAD
    start = inside - _PIXELS * 5.0 * LETTER - bar
    for state, p in shown.items():
        y += _PIXELS * LINE
        parts.append(_letters(left + _PIXELS * PAD, y, state))
        for length, colour in ((bar, _GREY), (bar * p, _BELIEF)):
            parts.append(f'<rect x="{start:.1f}" y="{y - 5.0:.1f}" width="{length:.2f}" height="10" fill="{colour}"/>')
        parts.append(_letters(inside, y, percent(p), 'text-anchor="end"'))
    return "".join(parts) + "</g>"


def _letters(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y + 0.35 * _LETTERS:.1f}" {more}>{html.escape(text)}</text>'
