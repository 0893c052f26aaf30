"""Densities of a column in many classes: one shaded strip per class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.plotting.canvas import class_name
from posteriori.plotting.reading import Feature, Scale, cells_of
from posteriori.reporting.charts import LETTERS, WIDTH, NamesBelow, Panel, chart, cut_text, text_width
from posteriori.support.formatting import cell_text
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array
from posteriori.tables import Batch

_MOST_STRIPS = 40  # classes; the most frequent are drawn
_POINTS = 200
_SHADES = 12
_DARKEST = 0.96  # opacity
_TOP, _STRIP, _GAP = 4.0, 13.0, 2.0  # pixels
_RIGHT = 8.0
_BESIDE = 10.0  # between the names of the classes and the strips


@dataclass(frozen=True)
class StripChart:
    """p(x_j | y) at some points of a column, of each class on the scale of its own maximum."""

    feature: Feature
    classes: list[tuple[str, str]]  # the name of each drawn class, as it is drawn and as a whole
    points: Array  # (k,): the numbers or codes
    shade: Array  # (C, k): whole numbers up to _SHADES

    @classmethod
    def of(cls, estimator: Classifier, j: int, rows: Batch) -> StripChart:
        """Compute the densities over the range of the rows, of which some have a cell in the column."""
        feature = Feature.of(estimator, j)
        points = _points(feature, cells_of(rows, j))
        chosen = np.sort(np.argsort(-feature.fitted.class_log_prior, kind="stable")[:_MOST_STRIPS])
        density = feature.densities(points).T[chosen]
        greatest = np.maximum(density.max(axis=1, keepdims=True), 1e-300)
        labels, target = estimator.classes_.tolist(), estimator.schema_.target
        names = [(class_name(labels[c], target), cell_text(labels[c], longest=None)) for c in chosen]
        return cls(feature, names, points, np.rint(_SHADES * density / greatest).astype(int))

    @property
    def is_wide(self) -> bool:
        """Whether the chart is wider than those of other columns."""
        return self._width > WIDTH

    def written(self, label: str) -> Html:
        """Return the chart as SVG, with a text for screen readers."""
        height = _TOP + _STRIP * len(self.classes)
        below = self._names.height(self._step)
        return chart(self._parts(height), height + below, label, self._width, scrolls=self.is_wide)

    @cached_property
    def _names(self) -> NamesBelow:
        """The names below the strips: none of numbers, which have an axis."""
        categories = self.feature.column.categories if self.feature.categorical else ()
        return NamesBelow(tuple(cell_text(category, longest=None) for category in categories))

    @cached_property
    def _left(self) -> float:
        """The width of the names of the classes, or of a turned name that reaches farther."""
        return self._names.left(max(text_width(name) for name, _ in self.classes) + _BESIDE)

    @property
    def _width(self) -> float:
        return max(WIDTH, self._left + LETTERS * len(self._names.names) + _RIGHT)

    @property
    def _step(self) -> float:
        """The width of a point in pixels."""
        return (self._width - self._left - _RIGHT) / len(self.points)

    def _parts(self, bottom: float) -> Iterator[Html]:
        for c, (name, whole) in enumerate(self.classes):
            middle = _TOP + _STRIP * (c + 0.5)
            yield cut_text(name, whole, x=f"{self._left - 5:.0f}", y=f"{middle:.1f}", class_="left")
        # The area of each shade lies on those of all lighter ones: there are no seams between two shades.
        for shade in range(1, _SHADES + 1):
            path = "".join(self._runs(shade))
            if path:
                opacity = _DARKEST / (_SHADES - _DARKEST * (shade - 1))
                yield element(
                    "path", d=path, fill="none", stroke="var(--blue)", stroke_width=_STRIP - _GAP,
                    stroke_opacity=f"{opacity:.3f}",
                )  # fmt: skip
        yield from self._axis(bottom)

    def _runs(self, shade: int) -> Iterator[str]:
        """Yield the lines that cover the points of at least a shade."""
        for c, of_class in enumerate(self.shade):
            ends = np.flatnonzero(np.diff(np.concatenate([[0], of_class >= shade, [0]]))).reshape(-1, 2)
            for start, end in (self._left + self._step * ends).tolist():
                yield f"M{start:.1f} {_TOP + _STRIP * (c + 0.5):.1f}H{end:.1f}"

    def _axis(self, bottom: float) -> Iterator[Html]:
        if not self.feature.categorical:
            half = float(self.points[1] - self.points[0]) / 2.0 if len(self.points) > 1 else 0.5
            across = (float(self.points[0]) - half, float(self.points[-1]) + half)
            yield from Panel(_TOP, bottom - _TOP, across, (0.0, 1.0), self._width, self._left).ticks(Scale())
            return
        yield from self._names.written(self._left, self._step, bottom)


def _points(feature: Feature, cells: Array) -> Array:
    """Return the evaluation points: every category, or an even grid over the central 99 % of the values."""
    if feature.categorical:
        return np.arange(1, len(feature.column.categories) + 1)
    low, high = np.nanquantile(cells, [0.005, 0.995])
    if feature.whole and high - low <= _POINTS:
        return np.arange(np.floor(low), np.ceil(high) + 1)
    points = np.linspace(low, high, _POINTS) if high > low else np.array([low])
    return np.unique(points.round()) if feature.whole else points
