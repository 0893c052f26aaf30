"""Small charts as SVG, written directly: a page holds one for each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.plotting.canvas import histogram_edges
from posteriori.plotting.reading import Scale
from posteriori.support.formatting import shorten
from posteriori.support.graph_layout import PIXELS, text_length
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array

WIDTH = 440.0
_LEFT, _RIGHT = 46.0, 8.0
_FEWEST_TICKS = 3
LETTERS = 13.0  # height of a line
_ACROSS, _DOWN = 0.77, 0.64  # cosine and sine of the angle of turned names
_BESIDE = 10.0  # pixels between two names
_BELOW = 22.0  # pixels, for the numbers or names of the horizontal axis


@dataclass(frozen=True)
class Panel:
    """Rectangle of a chart with its horizontal and vertical range."""

    # top, height: in pixels of the chart
    top: float
    height: float
    across: tuple[float, float]  # the range of the horizontal axis, in positions of its scale
    up: tuple[float, float]  # the range of the vertical axis
    # width, left: of the chart and of its left margin, in pixels
    width: float = WIDTH
    left: float = _LEFT

    def x(self, position: Array) -> Array:
        """Return pixels from the left, within the panel."""
        low, high = self.across
        share = np.clip((position - low) / ((high - low) or 1.0), 0.0, 1.0)
        return self.left + (self.width - self.left - _RIGHT) * share

    def y(self, value: Array) -> Array:
        """Return pixels from the top, within the panel."""
        low, high = self.up
        share = np.clip((value - low) / ((high - low) or 1.0), 0.0, 1.0)
        return self.top + self.height * (1.0 - share)

    def line(self, position: Array, value: Array, colour: str, class_: str = "curve") -> Html:
        """Return a curve; class_ is "curve" or "dashed"."""
        return element("path", d=_path(self.x(position), self.y(value)), stroke=colour, class_=class_)

    def band(self, position: Array, low: Array, high: Array, colour: str) -> Html:
        """Return the area between two curves."""
        there, back = self.x(position), self.x(position)[::-1]
        outline = _path(np.concatenate([there, back]), np.concatenate([self.y(low), self.y(high)[::-1]]))
        return element("path", d=f"{outline}Z", fill=colour, class_="shade")

    def histogram(self, edges: Array, height: Array, colour: str) -> Html:
        """Return a histogram as one area."""
        position = np.repeat(edges, 2)
        value = np.concatenate([[0.0], np.repeat(height, 2), [0.0]])
        return element("path", d=f"{_path(self.x(position), self.y(value))}Z", fill=colour, class_="shade")

    def axes(self, title: str, scale: Scale | None = None) -> Iterable[Html]:
        """Yield the title, the ticks of the vertical axis and, with a scale, those of the horizontal one."""
        yield element("text", title, x=self.left, y=f"{self.top - 5:.0f}")
        for value in nice_ticks(*self.up, 4):
            height = f"{float(self.y(np.array(value))):.1f}"
            yield element("path", d=f"M{self.left} {height}H{self.width - _RIGHT}", class_="grid")
            yield element("text", tick_text(value), x=self.left - 5, y=height, class_="left")
        if scale is not None:
            yield from self.ticks(scale)

    def ticks(self, scale: Scale) -> Iterable[Html]:
        """Yield the horizontal axis with its ticks."""
        bottom = self.top + self.height
        yield element("path", d=f"M{self.left:g} {bottom:.0f}H{self.width - _RIGHT}", class_="axis")
        last = -np.inf
        for value in scale_ticks(scale, self.across):
            at = float(self.x(scale.position(np.array(value))))
            text = tick_text(value)
            middle = min(at, self.width - 3.2 * len(text))
            if middle - 3.2 * len(text) > last:  # skip a number that would touch the previous one
                yield element("path", d=f"M{at:.1f} {bottom:.0f}v4", class_="axis")
                yield element("text", text, x=f"{middle:.1f}", y=f"{bottom + 15:.0f}", class_="middle")
                last = middle + 3.2 * len(text) + 4.0


def chart(parts: Iterable[Html], height: float, label: str, width: float = WIDTH, scrolls: bool = False) -> Html:
    """Return a chart as an SVG element, with a text for screen readers; on a narrow page it shrinks, or scrolls."""
    return element(
        "svg", *parts, viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", aria_label=label, class_="chart",
        style=f"{'width' if scrolls else 'max-width'}:{width:.0f}px",
    )  # fmt: skip


def text_width(text: str) -> float:
    """Estimate the width of a text of a chart, in pixels."""
    return PIXELS * text_length(text)


def cut_text(shown: str, whole: str, **attributes: Any) -> Html:
    """Return a text of a chart; if it is cut, it shows the whole text on hovering."""
    title = element("title", whole) if shown.endswith("…") else None
    return element("text", shown, title, **attributes)


@dataclass(frozen=True)
class NamesBelow:
    """Names below the columns of a chart, which are turned where they are wider than a column."""

    names: tuple[str, ...]

    @cached_property
    def _shown(self) -> list[str]:
        return [shorten(name) for name in self.names]

    @cached_property
    def _longest(self) -> float:
        return max(map(text_width, self._shown), default=0.0)

    def left(self, beside: float) -> float:
        """Return the width of the left margin in pixels: that of what stands beside, or of a turned name."""
        return max(beside, *(_ACROSS * text_width(name) - LETTERS * k for k, name in enumerate(self._shown)), 0.0)

    def height(self, step: float) -> float:
        """Return the height in pixels below columns of a width."""
        return self._longest * _DOWN + LETTERS if self._is_turned(step) else _BELOW

    def _is_turned(self, step: float) -> bool:
        return bool(self.names) and self._longest + _BESIDE > step

    def written(self, left: float, step: float, bottom: float) -> Iterator[Html]:
        """Yield the names; `left` is that of the first column, of a width, and `bottom` that of the columns."""
        for k, (shown, whole) in enumerate(zip(self._shown, self.names, strict=True)):
            x = left + step * (k + 0.5)
            if self._is_turned(step):
                yield cut_text(shown, whole, transform=f"translate({x:.1f} {bottom + 7:.0f})rotate(-40)", class_="left")
            else:
                yield cut_text(shown, whole, x=f"{x:.1f}", y=f"{bottom + 15:.0f}", class_="middle")


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers in a range, about as many as asked for.

    Examples
    --------
    >>> nice_ticks(0.0, 1.0, 4), nice_ticks(-3.0, 7.0, 4)
    ([0.0, 0.5, 1.0], [0.0, 5.0])
    """
    if not high > low:
        return [low]
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    step = power * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if (high - low) / (power * factor) <= most)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def scale_ticks(scale: Scale, across: tuple[float, float]) -> list[float]:
    """Return round numbers along an axis: powers of ten and 0 where it is logarithmic."""
    low, high = (float(end) for end in scale.number(np.array(across)))
    if scale.width is None:
        return nice_ticks(low, high, 5)
    powers = 10.0 ** np.arange(np.ceil(np.log10(scale.width) - 0.3), np.floor(np.log10(max(abs(low), abs(high)))) + 1)
    ticks = [value for value in (*(-powers[::-1]), 0.0, *powers) if low <= value <= high]
    return [float(f"{value:.12g}") for value in ticks] if len(ticks) >= _FEWEST_TICKS else nice_ticks(low, high, 5)


def tick_text(value: float) -> str:
    """Format the number of a tick.

    Examples
    --------
    >>> tick_text(0.5), tick_text(-20000.0), tick_text(2010.0), tick_text(1e-6)
    ('0.5', '−20,000', '2010', '1e-06')
    """
    text = f"{value:,.6g}" if abs(value) >= 10_000 else f"{value:.6g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if value < 0 else text


def _path(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def figure(picture: Html, caption: Any) -> Html:
    """Return a picture with a caption."""
    return element("figure", picture, element("figcaption", caption))


def legend(names: Sequence[str], colours: Sequence[str]) -> Html:
    """Return the names of classes beside their colours."""
    swatches = (
        element("span", element("i", style=f"background:{colour}"), name)
        for name, colour in zip(names, colours, strict=True)
    )
    return element("p", *swatches, class_="legend")


def rectangle(x: float, y: float, width: float, height: float, colour: str) -> Html:
    """Return a filled rectangle, in pixels."""
    return element("path", d=f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z", fill=colour, class_="bar")


def n_bins(n: int) -> int:
    """Return the number of histogram bins for n numbers."""
    return int(np.clip(2.5 * n ** (1 / 3), 8, 40))


BEFORE, AFTER = "var(--quiet)", "var(--blue)"
_TITLE, _HISTOGRAM = 20.0, 120.0  # pixels
_MARGIN = 0.02


def histograms_chart(before: Array, after: Array, label: str) -> Html:
    """Return histograms of two samples of numbers over one axis, each of area 1."""
    both = np.concatenate([before, after])
    scale = Scale.of(both)
    positions = [scale.position(one) for one in (before, after)]
    whole = scale.width is None and not (both != np.floor(both)).any()
    edges = histogram_edges(scale.position(both), n_bins(len(both)), whole)
    margin = _MARGIN * float(edges[-1] - edges[0]) or 0.5
    heights = [np.histogram(one, edges)[0] / (max(len(one), 1) * np.diff(edges)) for one in positions]
    top = max(float(one.max(initial=0.0)) for one in heights) or 1.0
    panel = Panel(_TITLE, _HISTOGRAM, (float(edges[0] - margin), float(edges[-1] + margin)), (0.0, top))

    def parts() -> Iterator[Html]:
        yield from panel.axes("density" if scale.width is None else "density per unit of the axis", scale)
        for height, colour in zip(heights, (BEFORE, AFTER), strict=True):
            yield panel.histogram(edges, height, colour)
            steps = np.concatenate([[0.0], np.repeat(height, 2), [0.0]])
            yield panel.line(np.repeat(edges, 2), steps, colour)

    return chart(parts(), _TITLE + _HISTOGRAM + _BELOW, label)
