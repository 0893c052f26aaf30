"""Charts of columns: the effect of a column, and its densities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.explain.effects import ColumnEffect, column_effect
from posteriori.plotting.canvas import class_colours, histogram_edges
from posteriori.plotting.effects import effect_points
from posteriori.plotting.reading import Feature, Scale, cells_of, evenly, posterior_of
from posteriori.reporting.charts import WIDTH, Panel, chart, n_bins, rectangle
from posteriori.support.formatting import cell_text, plural
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array
from posteriori.tables import Batch

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
    """Content of the chart of a column."""

    feature: Feature
    effect: ColumnEffect
    component: Array  # (n,): the class of each row
    cells: Array  # (n,): its cells as numbers or codes, NaN where missing
    scale: Scale  # the horizontal axis of numbers

    @classmethod
    def of(cls, estimator: Classifier, j: int, rows: Batch, component: Array) -> ColumnChart:
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
        effect = column_effect(posterior_of(estimator), rows.rows(evenly(len(rows), _EFFECT_ROWS)), j, points)
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
        return self.feature.along(self.scale.number(np.linspace(*across, _GRID)), _MOST_CUTS)

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
            yield element("text", more, x=_NAMES, y=f"{bottom + 12:.0f}", class_="left")


_HEIGHT = 2 * _TITLE + _UPPER + _LOWER + _BELOW


def _widened(low: float, high: float) -> tuple[float, float]:
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin
