"""Nodes of graphs as boxes, and edges as arrows, on axes in inches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.formatting import percent, shorten
from posteriori.networks.graph.layout import BAR, LETTER, LINE, PAD, POINTS
from posteriori.plotting.canvas import INK, PALETTE, open_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    from matplotlib.patches import FancyBboxPatch, Rectangle

    (x, y), (width, height) = centre, size
    left, top = x - width / 2.0, y + height / 2.0
    box = FancyBboxPatch(
        (left, y - height / 2.0),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.06",
        fc="#FFF3DC" if is_known else "white",
        ec=PALETTE[1] if is_known else edge,
        lw=(2.0 if is_known else 0.9) * scale,
        zorder=3,
    )
    ax.add_patch(box)
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
