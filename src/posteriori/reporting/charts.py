"""Small charts as SVG, written directly: a page holds one for each column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.explain.effects import ColumnEffect
from posteriori.plotting.canvas import Scale, class_colours, class_names, histogram_edges
from posteriori.plotting.effects import cells_of, effect_of, effect_points, evenly
from posteriori.plotting.reading import Feature
from posteriori.reporting.markup import Html, element
from posteriori.support.formatting import cell_text, plural, shorten
from posteriori.support.typing import Array
from posteriori.tables import Batch

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WIDTH = 440.0
_LEFT, _RIGHT = 46.0, 8.0
_FEWEST_TICKS = 3


@dataclass(frozen=True)
class Panel:
    """Rectangle of a chart with its horizontal and vertical range.

    Attributes
    ----------
    top, height : float
        In pixels of the chart.
    across : tuple of float
        The range of the horizontal axis, in positions of its scale.
    up : tuple of float
        The range of the vertical axis.
    width : float
        Of the chart, in pixels.
    """

    top: float
    height: float
    across: tuple[float, float]
    up: tuple[float, float]
    width: float = WIDTH

    def x(self, position: Array) -> Array:
        """Return pixels from the left, within the panel."""
        low, high = self.across
        share = np.clip((position - low) / ((high - low) or 1.0), 0.0, 1.0)
        return _LEFT + (self.width - _LEFT - _RIGHT) * share

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
        bottom = self.top + self.height
        yield element("text", title, x=_LEFT, y=f"{self.top - 5:.0f}")
        for value in nice_ticks(*self.up, 4):
            height = f"{float(self.y(np.array(value))):.1f}"
            yield element("path", d=f"M{_LEFT} {height}H{self.width - _RIGHT}", class_="grid")
            yield element("text", tick_text(value), x=_LEFT - 5, y=height, class_="left")
        if scale is None:
            return
        yield element("path", d=f"M{_LEFT} {bottom:.0f}H{self.width - _RIGHT}", class_="axis")
        last = -np.inf
        for value in scale_ticks(scale, self.across):
            at = float(self.x(scale.position(np.array(value))))
            text = tick_text(value)
            middle = min(at, self.width - 3.2 * len(text))
            if middle - 3.2 * len(text) > last:  # skip a number that would touch the previous one
                yield element("path", d=f"M{at:.1f} {bottom:.0f}v4", class_="axis")
                yield element("text", text, x=f"{middle:.1f}", y=f"{bottom + 15:.0f}", class_="middle")
                last = middle + 3.2 * len(text) + 4.0


def chart(parts: Iterable[Html], height: float, label: str, width: float = WIDTH) -> Html:
    """Return a chart as an SVG element, with a text for screen readers."""
    return element(
        "svg", *parts, viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", aria_label=label, class_="chart",
        style=f"max-width:{width:.0f}px",
    )  # fmt: skip


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


def legend(names: Sequence[str], colours: Sequence[str]) -> Html:
    """Return the names of classes beside their colours."""
    swatches = (
        element("span", element("i", style=f"background:{colour}"), name)
        for name, colour in zip(names, colours, strict=True)
    )
    return element("p", *swatches, class_="legend")


MOST_SHADES = 40  # classes; the most frequent are drawn
_POINTS = 200


def plot_density_strips(model: Any, feature: int, X: Any, ax: Axes) -> Axes:
    """Draw p(x_j | y) as one shaded strip per class, each scaled to its own maximum.

    Parameters
    ----------
    model : fitted classifier
    feature : int
        Index of the feature.
    X : table (n, d)
        Rows that determine the range of the axis.
    ax : matplotlib Axes
    """
    drawn = Feature.of(model, feature)
    points = _points(drawn, drawn.read(model, X))
    density = drawn.densities(points).T
    chosen = np.sort(np.argsort(-drawn.fitted.class_log_prior, kind="stable")[:MOST_SHADES])
    density = density[chosen]
    greatest = np.maximum(density.max(axis=1, keepdims=True), 1e-300)
    half = (points[1] - points[0]) / 2.0 if len(points) > 1 else 0.5
    extent = (points[0] - half, points[-1] + half, len(chosen) - 0.5, -0.5)
    ax.imshow(density / greatest, aspect="auto", cmap="Blues", extent=extent, interpolation="nearest")
    ax.set_yticks(range(len(chosen)), [class_names(model)[c] for c in chosen])
    ax.tick_params(axis="y", length=0)
    if drawn.categorical:
        names = [shorten(category) for category in drawn.column.categories]
        ax.set_xticks(points, names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_xlabel(drawn.column.name)
    return ax


def _points(feature: Feature, cells: Array) -> Array:
    """Return the evaluation points: every category, or an even grid over the central 99 % of the values."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    low, high = np.nanquantile(cells, [0.005, 0.995])
    if feature.whole and high - low <= _POINTS:
        return np.arange(np.floor(low), np.ceil(high) + 1)
    points = np.linspace(low, high, _POINTS) if high > low else np.array([low])
    return np.unique(points.round()) if feature.whole else points


_UPPER, _LOWER, _TITLE, _BELOW = 120.0, 90.0, 20.0, 22.0  # pixels
_EFFECT_ROWS = 60
_GRID = 120
_MOST_CUTS = 40
_MARGIN = 0.02
_SPIKE = 1.6  # times the highest bar
_MOST_CATEGORIES, _MOST_BARS = 24, 54  # of a chart, on each side
_FEWEST_CATEGORIES = 6
_MOST_BANDS = 3
_NAMES, _MIDDLE, _SHARES = 124.0, 208.0, 302.0  # pixels: the end of names, the zero of effects, the start of shares
_REACH = 78.0


@dataclass(frozen=True)
class ColumnChart:
    """What the chart of a column shows.

    Attributes
    ----------
    feature : Feature
    effect : ColumnEffect
    component : ndarray (n,)
        The class of each row.
    cells : ndarray (n,)
        Its cells as numbers or codes, NaN where missing.
    scale : Scale
        The horizontal axis of numbers.
    """

    feature: Feature
    effect: ColumnEffect
    component: Array
    cells: Array
    scale: Scale

    @classmethod
    def of(cls, estimator: Any, j: int, rows: Batch, component: Array) -> ColumnChart:
        """Compute the effect of a column over some of the rows.

        Raises
        ------
        ValueError
            All cells of the column are missing.
        """
        feature, cells = Feature.of(estimator, j), cells_of(rows, j)
        known = cells[~np.isnan(cells)]
        scale = Scale() if feature.whole else Scale.of(known)
        if feature.categorical:
            counts = np.bincount(known.astype(int), minlength=len(feature.column.categories) + 1)[1:]
            most = min(_MOST_CATEGORIES, _MOST_BARS // len(estimator.classes_))
            points = np.argsort(-counts, kind="stable")[: max(most, _FEWEST_CATEGORIES)] + 1
        else:
            points = effect_points(feature, cells, scale)
        effect = effect_of(estimator, rows.rows(evenly(len(rows), _EFFECT_ROWS)), j, points)
        return cls(feature, effect, component, cells, scale)

    @property
    def curves(self) -> list[tuple[int, int | None]]:
        """The classes whose log-odds are drawn, each with the class that it is compared with, if it is one."""
        n_classes = self.effect.contributions.shape[2]
        return [(1, 0)] if n_classes == 2 else [(c, None) for c in range(n_classes)]

    @property
    def colours(self) -> list[str]:
        """The colour of each class."""
        return class_colours(self.effect.contributions.shape[2])

    def written(self, label: str) -> Html:
        """Return the chart as SVG, with a text for screen readers."""
        parts = self._categories() if self.feature.categorical else self._numbers()
        height = self._height_of_categories if self.feature.categorical else _HEIGHT
        return chart(parts, height, label)

    def _numbers(self) -> Iterator[Html]:
        known = self.cells[~np.isnan(self.cells)]
        ends = self.scale.position(np.array([known.min(), known.max()]))
        margin = _MARGIN * (ends[1] - ends[0]) or 0.5
        across = (float(ends[0] - margin), float(ends[1] + margin))
        points = self.scale.position(self.effect.cells)
        found = [(self.colours[c], *self.effect.log_odds(c, against)) for c, against in self.curves]
        extent = np.array([0.0, *(edge for _, mean, low, high in found for one in (mean, low, high) for edge in one)])
        upper = Panel(_TITLE, _UPPER, across, _widened(float(extent.min()), float(extent.max())))
        yield from upper.axes("effect on the log-odds (nats)")
        yield upper.line(np.array(across), np.zeros(2), "var(--quiet)", "axis")
        for colour, _, low, high in found if len(found) <= _MOST_BANDS else []:
            yield upper.band(points, low, high, colour)
        for colour, mean, _, _ in found:
            yield upper.line(points, mean, colour)
        yield from self._densities(across, known)

    def _densities(self, across: tuple[float, float], known: Array) -> Iterator[Html]:
        x = self._grid(across)
        curves = self.scale.per_unit_of_axis(x[:, np.newaxis], self.feature.densities(x))
        whole = self.scale.width is None and not (known != np.floor(known)).any()
        edges = histogram_edges(self.scale.position(known), n_bins(len(known)), whole)
        bars = [self._share_in_bins(c, edges) for c in range(curves.shape[1])]
        tallest, highest = max(float(one.max(initial=0.0)) for one in bars), float(curves.max(initial=0.0))
        top = min(highest, _SPIKE * tallest) if tallest > 0 else highest
        lower = Panel(2 * _TITLE + _UPPER, _LOWER, across, (0.0, max(top, tallest) or 1.0))
        per = "" if self.scale.width is None else " per unit of the axis"
        yield from lower.axes(f"{'probability' if self.feature.whole else 'density'}{per}", self.scale)
        for colour, bar in zip(self.colours, bars, strict=True):
            yield lower.histogram(edges, bar, colour)
        for c, colour in enumerate(self.colours):
            yield lower.line(self.scale.position(x), curves[:, c], colour)

    def _grid(self, across: tuple[float, float]) -> Array:
        x = self.scale.number(np.linspace(*across, _GRID))
        if self.feature.whole:
            x = np.unique(x.round())
        else:
            cuts = self.feature.cuts
            cuts = cuts[(cuts > x[0]) & (cuts < x[-1])]
            cuts = cuts[evenly(len(cuts), _MOST_CUTS)] if len(cuts) else cuts
            x = np.unique(np.concatenate([x, cuts, np.nextafter(cuts, -np.inf)]))
        return x[~self.feature.out_of_support(x)]

    def _share_in_bins(self, c: int, edges: Array) -> Array:
        mine = self.cells[(self.component == c) & ~np.isnan(self.cells)]
        counts = np.histogram(self.scale.position(mine), edges)[0]
        shares: Array = counts / (max(counts.sum(), 1) * np.diff(edges))
        return shares

    @property
    def _group(self) -> float:
        """The height of one category in pixels."""
        return max(16.0, 5.0 * len(self.colours) + 4.0)

    @property
    def _hidden(self) -> int:
        return len(self.feature.column.categories) - len(self.effect.cells)

    @property
    def _height_of_categories(self) -> float:
        return _TITLE + self._group * len(self.effect.cells) + (18.0 if self._hidden else 6.0)

    def _categories(self) -> Iterator[Html]:
        found = [(self.colours[c], *self.effect.log_odds(c, against)) for c, against in self.curves]
        reach = max(float(np.abs([mean for _, mean, _, _ in found]).max(initial=0.0)), 1e-9)
        shares = self.feature.densities(self.effect.cells)
        most, bottom = max(float(shares.max()), 1e-9), _TITLE + self._group * len(self.effect.cells)
        yield element("text", f"effect (longest {reach:.2g} nats)", x=_NAMES + 6, y=12)
        yield element("text", f"share (longest {100 * most:.0f} %)", x=_SHARES, y=12)
        yield element("path", d=f"M{_MIDDLE} {_TITLE}V{bottom:.0f}", class_="axis")
        for row, code in enumerate(self.effect.cells.tolist()):
            top = _TITLE + row * self._group
            name = cell_text(self.feature.column.categories[code - 1], longest=19)
            yield element("text", name, x=_NAMES, y=f"{top + self._group / 2:.1f}", class_="left")
            thick = (self._group - 5.0) / len(found)
            for k, (colour, mean, _, _) in enumerate(found):
                end = float(mean[row]) / reach * _REACH
                yield rectangle(_MIDDLE + min(end, 0.0), top + 2 + k * thick, abs(end), thick, colour)
            thick = (self._group - 5.0) / len(self.colours)
            for c, colour in enumerate(self.colours):
                length = float(shares[row, c]) / most * (WIDTH - _SHARES - 6)
                yield rectangle(_SHARES, top + 2 + c * thick, length, thick, colour)
        if self._hidden:
            more = f"{plural(self._hidden, 'rarer category')} not drawn"
            yield element(
                "text", more.replace("categorys", "categories"), x=_NAMES, y=f"{bottom + 12:.0f}", class_="left"
            )


_HEIGHT = 2 * _TITLE + _UPPER + _LOWER + _BELOW


def rectangle(x: float, y: float, width: float, height: float, colour: str) -> Html:
    """Return a filled rectangle, in pixels."""
    return element("path", d=f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z", fill=colour, class_="bar")


def _widened(low: float, high: float) -> tuple[float, float]:
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def n_bins(n: int) -> int:
    """Return the number of histogram bins for n numbers."""
    return int(np.clip(2.5 * n ** (1 / 3), 8, 40))
