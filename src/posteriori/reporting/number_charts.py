"""Charts of predicted numbers: against the truth, their calibration, residuals, and effects of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from posteriori.plotting.reading import Scale
from posteriori.reporting.charts import (
    LETTERS,
    WIDTH,
    Panel,
    chart,
    cut_text,
    nice_ticks,
    rectangle,
    scale_ticks,
    text_width,
    tick_text,
)
from posteriori.reporting.number_data import NOMINAL, ColumnResiduals
from posteriori.support.formatting import shorten
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array

_TITLE, _HEIGHT, _BELOW, _RIGHT = 20.0, 300.0, 36.0, 8.0  # pixels
_SMALL = 180.0  # the height of charts side by side
_DOT = 2.0
_LINE = 17.0  # the height of a group of rows
_MARGIN = 0.03
BLUE, ORANGE, QUIET = "var(--blue)", "var(--orange)", "var(--quiet)"


def predictions_chart(y: Array, median: Array, interval: Array, target: str) -> Html:
    """Return predicted medians with their 90 % intervals against the true numbers."""
    scale = Scale.of(np.concatenate([y, median]))
    at = scale.position(np.concatenate([y, median]))  # the ends of a few intervals may be far outside
    margin = _MARGIN * float(at.max() - at.min()) or 0.5
    ends = (float(at.min()) - margin, float(at.max()) + margin)
    ticks = scale_ticks(scale, ends)
    left = max(text_width(tick_text(value)) for value in ticks or [0.0]) + 14.0
    width = 620.0
    panel = Panel(_TITLE, _HEIGHT, ends, ends, width, left)
    outside = (y < interval[:, 0]) | (y > interval[:, 1])

    def parts() -> Iterator[Html]:
        yield element("text", f"predicted {target}", x=f"{left:.0f}", y=f"{_TITLE - 6:.0f}")
        for value in ticks:
            at = f"{float(panel.y(scale.position(np.array(value)))):.1f}"
            yield element("path", d=f"M{left:.1f} {at}H{width - _RIGHT}", class_="grid")
            yield element("text", tick_text(value), x=f"{left - 5:.1f}", y=at, class_="left")
        yield panel.line(np.array(ends), np.array(ends), QUIET, "dashed")
        x = panel.x(scale.position(y))
        low, high = (panel.y(scale.position(end)) for end in interval.T)
        for colour, chosen in ((BLUE, ~outside), (ORANGE, outside)):
            spans = zip(x[chosen].tolist(), low[chosen].tolist(), high[chosen].tolist(), strict=True)
            path = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in spans)
            if path:
                yield element("path", d=path, stroke=colour, fill="none", stroke_opacity=".25")
        dots = zip(x.tolist(), panel.y(scale.position(median)).tolist(), outside.tolist(), strict=True)
        for a, b, out in dots:
            yield element("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=_DOT, fill=ORANGE if out else BLUE)
        yield from panel.ticks(scale)
        yield _below(f"true {target}", _TITLE + _HEIGHT, left, width)

    return chart(parts(), _TITLE + _HEIGHT + _BELOW, f"Predicted against true {target}, with 90 % intervals", width)


def coverage_chart(covered: Array) -> Html:
    """Return the share of rows within intervals against their nominal coverage."""
    panel = Panel(_TITLE, _SMALL, (0.0, 1.0), (0.0, 1.0))

    def parts() -> Iterator[Html]:
        yield from panel.axes("share of rows within", Scale())
        yield panel.line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), QUIET, "dashed")
        yield panel.line(NOMINAL, covered, BLUE)
        for a, b in zip(panel.x(NOMINAL).tolist(), panel.y(covered).tolist(), strict=True):
            yield element("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=3, fill=BLUE)
        yield _below("nominal coverage", _TITLE + _SMALL, panel.left)

    return chart(parts(), _TITLE + _SMALL + _BELOW, "Share of rows within central intervals, by nominal coverage")


def pit_chart(shares: Array) -> Html:
    """Return the histogram of P(Y ≤ y | x); a dashed line marks what equal shares would be."""
    n = len(shares)
    panel = Panel(_TITLE, _SMALL, (0.0, 1.0), (0.0, 1.1 * max(float(n * shares.max()), 1.0)))

    def parts() -> Iterator[Html]:
        yield from panel.axes("density", Scale())
        yield panel.histogram(np.linspace(0.0, 1.0, n + 1), n * shares, BLUE)
        yield panel.line(np.array([0.0, 1.0]), np.ones(2), QUIET, "dashed")
        yield _below("P(Y ≤ y | x)", _TITLE + _SMALL, panel.left)

    return chart(parts(), _TITLE + _SMALL + _BELOW, "Histogram of the probability integral transform")


def residuals_chart(found: ColumnResiduals) -> Html:
    """Return the mean residual of each group of rows, with a line of two standard errors to both sides."""
    error = 2.0 * np.nan_to_num(found.standard_error)
    reach = float(np.max(np.abs(found.mean) + error)) * 1.05 or 1.0
    names = [shorten(name) for name in found.names]
    left = max(map(text_width, names)) + 10.0
    height = _LINE * len(names)
    panel = Panel(_TITLE, height, (-reach, reach), (0.0, 1.0), WIDTH, left)

    def parts() -> Iterator[Html]:
        yield element("text", "mean residual", x=f"{left:.0f}", y=12)
        zero = float(panel.x(np.array(0.0)))
        yield element("path", d=f"M{zero:.1f} {_TITLE}v{height:.0f}", class_="axis")
        for k, (shown, whole) in enumerate(zip(names, found.names, strict=True)):
            y = f"{_TITLE + _LINE * (k + 0.5):.1f}"
            low, at, high = (float(panel.x(np.array(found.mean[k] + side * error[k]))) for side in (-1, 0, 1))
            colour = ORANGE if found.is_off[k] else BLUE
            yield cut_text(shown, whole, x=f"{left - 6:.0f}", y=y, class_="left")
            yield element("path", d=f"M{low:.1f} {y}H{high:.1f}", stroke=colour, fill="none", stroke_width="1.5")
            yield element("circle", cx=f"{at:.1f}", cy=y, r=3, fill=colour)
        yield from panel.ticks(Scale())

    return chart(parts(), _TITLE + height + 22.0, f"Mean residuals along {found.column}")


def curve_chart(column: str, cells: Array, band: Array, label: str) -> Html:
    """Return the effect of a column of numbers: its mean, and the band between two quantiles, (P, 3)."""
    scale = Scale.of(cells)
    points = scale.position(cells)
    low, high = min(0.0, float(band.min())), max(0.0, float(band.max()))
    room = 0.05 * (high - low) or 0.5
    left = max(text_width(tick_text(value)) for value in nice_ticks(low - room, high + room, 4) or [0.0]) + 12.0
    panel = Panel(_TITLE, 120.0, (float(points[0]), float(points[-1])), (low - room, high + room), WIDTH, left)

    def parts() -> Iterator[Html]:
        yield from panel.axes(label, scale)
        yield panel.line(points[[0, -1]], np.zeros(2), QUIET, "axis")
        yield panel.band(points, band[:, 1], band[:, 2], BLUE)
        yield panel.line(points, band[:, 0], BLUE)

    return chart(parts(), _TITLE + 120.0 + 22.0, f"Effect of {column}")


def bars_chart(column: str, names: Sequence[str], mean: Array, label: str) -> Html:
    """Return the mean effects of categories as bars to both sides of 0."""
    shown = [shorten(name) for name in names]
    left = max(map(text_width, shown)) + 10.0
    reach = float(np.abs(mean).max()) * 1.05 or 1.0
    height = _LINE * len(names)
    panel = Panel(_TITLE, height, (-reach, reach), (0.0, 1.0), WIDTH, left)

    def parts() -> Iterator[Html]:
        yield element("text", label, x=0, y=12)
        zero = float(panel.x(np.array(0.0)))
        for k, end in enumerate(panel.x(mean).tolist()):
            y = _TITLE + _LINE * k
            yield cut_text(shown[k], names[k], x=f"{left - 6:.0f}", y=f"{y + _LINE / 2:.1f}", class_="left")
            yield rectangle(min(zero, end), y + 3, abs(end - zero), _LINE - 6, BLUE)
        yield element("path", d=f"M{zero:.1f} {_TITLE}v{height:.0f}", class_="axis")
        yield from panel.ticks(Scale())

    return chart(parts(), _TITLE + height + 22.0, f"Effect of {column}")


def _below(text: str, bottom: float, left: float, width: float = WIDTH) -> Html:
    return element(
        "text", text, x=f"{(left + width - _RIGHT) / 2:.0f}", y=f"{bottom + 18 + LETTERS:.0f}", class_="middle"
    )
