"""Figures as inline SVG with selectable text and without external references."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from posteriori.plotting.canvas import INK
from posteriori.support.markup import Html, as_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",  # keep text as text, for selection, search and screen readers
    "svg.hashsalt": "posteriori",  # deterministic ids
    "text.parse_math": False,  # a column name may contain "$"
    "font.size": 9.0,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "axes.unicode_minus": True,
    "path.simplify_threshold": 0.3,
}
_PIXELS_PER_POINT = 96.0 / 72.0
# Ink and paper follow the page, which is dark where the reader wants it so.
_COLOURS = {INK.lower(): "currentColor", "#000000": "currentColor", "#ffffff": "var(--paper)"}


def draw(paint: Callable[[Axes], Any], width: float, height: float, label: str, name: str) -> Html:
    """Call a function that paints on new axes of a size in inches and return the figure as an SVG element.

    The label is read to those who do not see it; the name is the prefix of its ids, unique on the page.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with _look():
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        return _svg_of(figure, label, name)


def draw_own(paint: Callable[[], Axes], label: str, name: str) -> Html:
    """Call a function that creates its own figure and return the figure as an SVG element."""
    import matplotlib.pyplot as plt

    with _look(), plt.ioff():
        figure: Any = paint().figure
        try:
            return _svg_of(figure, label, name)
        finally:
            plt.close(figure)


@contextmanager
def _look() -> Iterator[None]:
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # The text is drawn by the browser, whose fonts have glyphs that Matplotlib's font lacks.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph")
        mpl.rcdefaults()
        mpl.rcParams.update(_LOOK)
        yield


def _svg_of(figure: Figure, label: str, name: str) -> Html:
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing, facecolor="none")
    width = figure.get_size_inches()[0] * 72.0 * _PIXELS_PER_POINT
    return inlined(buffer.getvalue(), label, name, width)


def inlined(svg: str, label: str, name: str, width: float) -> Html:
    """Convert an SVG document to an element of a page: without namespaces and styles, with ids that start with a name.

    Its largest width is in pixels.
    """
    body = svg[svg.index("<svg") :].strip()
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>|<defs>\s*</defs>", "", body, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', body)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', body))
    # Only inside tags: the text of a label may look like an id or a number to replace.
    body = re.sub(r"<[^>]+>", lambda tag: _tidy(tag[0], name, used), body[body.index(">") + 1 :])
    look = f'{box[0] if box else ""} style="max-width:{width:.0f}px"'
    body = re.sub(r"\s*\n\s*", "\n", body)
    return Html(f'<svg {look} role="img" aria-label="{as_html(label)}">{body}')


def _tidy(tag: str, name: str, used: set[str]) -> str:
    """Prefix the ids of a tag, shorten its numbers, remove its font family, and take ink and paper from the page."""
    tag = tag.replace("xlink:href=", "href=")
    tag = re.sub(r' id="([^"]*)"', lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "", tag)
    tag = re.sub(r'(url\(|href=")#', rf"\1#{name}-", tag)
    tag = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda match: _COLOURS.get(match[0], match[0]), tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
    tag = re.sub(r"(font: [^;\"]*?)'DejaVu Sans'[^;\"]*", r"\1sans-serif", tag)
    return re.sub(r"-?\d+\.\d{3,}", lambda match: _short(match[0]), tag)


def _short(decimal: str) -> str:
    text = f"{float(decimal):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
