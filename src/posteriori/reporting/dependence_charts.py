"""Chart of the dependences between columns: boxes and arrows in layers, or one column per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from posteriori.plotting.canvas import PALETTE
from posteriori.plotting.graphs import PITCH, TRUNK, WIDEST, Edges, Outline, arc_bulge, edge_width, outline_of
from posteriori.reporting.charts import chart, cut_text
from posteriori.reporting.markup import fixed
from posteriori.support.formatting import shorten
from posteriori.support.graph_layout import PIXELS, box_size, edge_path, layered
from posteriori.support.markup import Html, element

_DOWN = 0.75  # inches between two layers, with room for a number
_MARGIN = 8.0  # pixels
_PIXELS_PER_POINT = 96.0 / 72.0
_BOX = 21.0  # pixels, the height of a box on a line
_BESIDE = 6.0  # pixels between a box and its number
_ABOVE = 14.0  # pixels between a number and the box below it

_Size = Mapping[str, tuple[float, float]]


def dependence_chart(names: Sequence[str], edges: Edges, label: str) -> Html:
    """Return the graph of columns in layers or, where they are wide, with one column per line."""
    size = {name: box_size(name, {}) for name in names}
    if layered(size, list(edges), down=_DOWN).width <= WIDEST:
        return _in_layers(size, edges, label)
    return _on_lines(outline_of(size, edges), edges, label)


def _in_layers(size: _Size, edges: Edges, label: str) -> Html:
    layout = layered(size, list(edges), down=_DOWN)

    def pixels(x: float, y: float) -> tuple[float, float]:  # y is down in SVG
        return PIXELS * x + _MARGIN, PIXELS * (layout.height - y) + _MARGIN

    def parts() -> Iterator[Html]:
        notes = []
        for (parent, child), nats in edges.items():
            ends = [pixels(*end) for end in layout.ends(parent, child, size)]
            x, y = ends[-1]
            width, length = _widths(edges, nats)
            head = f"M{x:.1f} {y:.1f}l{-length / 2:.1f} {-length:.1f}h{length:.1f}z"
            yield _arrow(edge_path(ends, length), head, width, "var(--quiet)", parent, child, nats)
            if nats is not None:
                above = y - length - _ABOVE  # over the child, where no other edge has its number
                notes.append(element("text", fixed(nats), x=f"{x:.1f}", y=f"{above:.1f}", class_="middle halo"))
        yield from notes
        for name, (width, height) in size.items():
            x, y = pixels(*layout.centre[name])
            yield _box(name, x - PIXELS * width / 2.0, y, PIXELS * width, PIXELS * height)

    width, height = (PIXELS * length + 2.0 * _MARGIN for length in (layout.width, layout.height))
    return chart(parts(), height, label, width, scrolls=True)


def _on_lines(outline: Outline, edges: Edges, label: str) -> Html:
    """Return one column per line: the children of a column are indented below it, or reached by arcs from it."""
    place = {
        name: (PIXELS * left + _MARGIN, PIXELS * (outline.height - y) + _MARGIN, PIXELS * width)
        for name, (left, y, width) in outline.box.items()
    }
    colour: dict[str, str] = {}
    if not outline.is_forest:  # the arcs of one parent have one colour
        several = [name for name in place if sum(parent == name for parent, _ in edges) > 1]
        colour = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(several)}

    def parts() -> Iterator[Html]:
        for (parent, child), nats in edges.items():
            (start, top, _), (x, y, wide) = place[parent], place[child]
            width, length = _widths(edges, nats)
            head = f"M{x:.1f} {y:.1f}l{-length:.1f} {-length / 2:.1f}v{length:.1f}z"
            if outline.is_forest:
                trunk = start + PIXELS * TRUNK
                way = f"M{trunk:.1f} {y:.1f}H{x - length:.1f}"
            else:  # a cubic curve reaches 3/4 of its control points
                bulge = start - 4.0 / 3.0 * PIXELS * arc_bulge(round((y - top) / (PIXELS * PITCH)))
                way = f"M{start:.1f} {top:.1f}C{bulge:.1f} {top:.1f} {bulge:.1f} {y:.1f} {x - length:.1f} {y:.1f}"
            yield _arrow(way, head, width, colour.get(parent, "var(--quiet)"), parent, child, nats)
            if nats is not None:
                yield element("text", fixed(nats), x=f"{x + wide + _BESIDE:.1f}", y=f"{y:.1f}", class_="beside")
        if outline.is_forest:
            yield from _trunks(place, edges)
        for name, (left, y, wide) in place.items():
            yield _box(name, left, y, wide, _BOX, colour.get(name))

    width, height = (PIXELS * length + 2.0 * _MARGIN for length in (outline.width, outline.height))
    return chart(parts(), height, label, width, scrolls=True)


def _trunks(place: Mapping[str, tuple[float, float, float]], edges: Iterable[tuple[str, str]]) -> Iterator[Html]:
    """Yield a vertical line from each parent down to its lowest child."""
    lowest: dict[str, float] = {}
    for parent, child in edges:
        lowest[parent] = max(place[child][1], lowest.get(parent, 0.0))
    for parent, y in lowest.items():
        left, top, _ = place[parent]
        yield element("path", d=f"M{left + PIXELS * TRUNK:.1f} {top:.1f}V{y:.1f}", class_="axis")


def _widths(edges: Edges, nats: float | None) -> tuple[float, float]:
    """Return the width of an arrow and the length of its head, in pixels."""
    width = _PIXELS_PER_POINT * edge_width(edges, nats)
    return width, 6.0 + 1.4 * width


def _arrow(way: str, head: str, width: float, colour: str, parent: str, child: str, nats: float | None) -> Html:
    note = "" if nats is None else f": {fixed(nats)} nats"
    return element(
        "g",
        element("title", f"{parent} → {child}{note}"),
        element("path", d=way, fill="none", stroke=colour, stroke_width=f"{width:.1f}"),
        element("path", d=head, fill=colour),
    )


def _box(name: str, left: float, y: float, width: float, height: float, edge: str | None = None) -> Html:
    """Return a box with a name; left and y are the middle of its left side."""
    corner = {"x": f"{left:.1f}", "y": f"{y - height / 2.0:.1f}"}
    style = None if edge is None else f"stroke:{edge}"
    outline = element("rect", **corner, width=f"{width:.1f}", height=f"{height:.1f}", rx=5, class_="box", style=style)
    inside = cut_text(shorten(name), name, x=f"{left + width / 2.0:.1f}", y=f"{y + 4:.1f}", class_="middle")
    return Html(outline + inside)
