"""Pairs of columns: how far each moves the prediction, and maps of the strongest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posteriori.explain import PairEffect, pair_effects
from posteriori.reporting.charts import WIDTH, NamesBelow, chart, cut_text, figure, text_width
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import Section, bar, fixed, paragraph, scrolled, table
from posteriori.support.formatting import shorten
from posteriori.support.markup import Html, element, joined
from posteriori.support.typing import Array

_MOST_LISTED = 10
_MOST_DRAWN = 3
_SHADES = 8
_DARKEST = 0.72  # opacity, so that a number on it can be read
_TOP, _RIGHT, _BESIDE = 20.0, 8.0, 10.0  # pixels
_TALL, _LOW, _MOST_TALL = 24.0, 14.0, 12  # pixels: heights of a line; with more lines they are low
_NARROWEST = 14.0  # pixels of a cell
_OF_A_NUMBER = 36.0  # pixels of a cell that holds a number


def pairs_section(subject: ReportData) -> Section | None:
    """Return the effects of pairs of columns beyond each alone; None of a model without pairs, or of one class."""
    effects = [effect for effect in pair_effects(subject.estimator) if effect.strength > 0.0]
    if not effects or len(subject.labels) < 2:
        return None
    lead = (
        "What two columns say together, beyond what each says alone: for each pair of groups of their cells, the model "
        "adds a number to the log-odds of each class, and nothing where a cell is missing. Pairs are sorted by how far "
        "they move the log-odds of a class against the others in a usual row: the root of the mean square, in which "
        "each pair of groups counts by the share of rows that is expected there if both columns are independent given "
        "the class. 0.69 nats double the odds."
    )
    greatest = effects[0].strength
    shown = effects[:_MOST_LISTED]
    rows = [[effect.name, fixed(effect.strength), bar(effect.strength / greatest)] for effect in shown]
    more = f", the first {len(shown)} of {len(effects)}" if len(shown) < len(effects) else ""
    drawn = [_picture(subject, effect) for effect in shown[:_MOST_DRAWN]]
    contents = (
        table(f"Pairs of columns{more}", ["pair", "moves the log-odds by (nats)", ""], rows),
        element("div", *drawn, class_="pictures"),
        paragraph(
            "Blue speaks for the class, orange against it; pale groups change little. explain.pair_effects has all "
            "numbers.",
            class_="note",
        ),
    )
    return Section("pairs", "Pairs of columns", lead, contents)


def _picture(subject: ReportData, effect: PairEffect) -> Html:
    """Return the map of a pair, for the second of two classes, or for the class that it moves most."""
    c = 1 if len(subject.labels) == 2 else int(effect.strengths.argmax())
    others = subject.label_phrases[0] if len(subject.labels) == 2 else "the other classes"
    what = f"what they add to the log-odds of {subject.label_phrases[c]} against {others}"
    drawn = PairMap.of(effect, c)
    low, high = (fixed(float(end), "+") for end in (drawn.nats.min(), drawn.nats.max()))
    caption = joined([element("strong", effect.name), f": {what}, from {low} to {high} nats"])
    label = f"Map of {effect.name}: {what}"
    if drawn.is_wide:
        return element("div", figure(scrolled(drawn.written(label), label), caption), class_="broad")
    return element("div", figure(drawn.written(label), caption))


@dataclass(frozen=True)
class PairMap:
    """A table of nats as shaded cells: blue above 0, orange below."""

    title: str
    rows: tuple[str, ...]
    columns: NamesBelow
    nats: Array  # (rows, columns)

    @classmethod
    def of(cls, effect: PairEffect, label: int) -> PairMap:
        """Return the map of a class; the column of more groups is down, where there is room for their names."""
        nats, (first, second), (down, across) = effect.log_odds(label), effect.columns, effect.groups
        if len(down) < len(across):
            nats, first, second, down, across = nats.T, second, first, across, down
        return cls(f"{shorten(first)} ↓ {shorten(second)} →", down, NamesBelow(across), nats)

    @property
    def is_wide(self) -> bool:
        """Whether the map is wider than other charts."""
        return self._width > WIDTH

    @property
    def _left(self) -> float:
        return self.columns.left(max(text_width(shorten(name)) for name in self.rows) + _BESIDE)

    @property
    def _width(self) -> float:
        return max(WIDTH, self._left + _NARROWEST * len(self.columns.names) + _RIGHT)

    @property
    def _step(self) -> tuple[float, float]:
        """The width and the height of a cell in pixels."""
        tall = _TALL if len(self.rows) <= _MOST_TALL else _LOW
        return (self._width - self._left - _RIGHT) / len(self.columns.names), tall

    def written(self, label: str) -> Html:
        """Return the map as SVG, with a text for screen readers."""
        width, tall = self._step
        height = _TOP + tall * len(self.rows) + self.columns.height(width)
        return chart(self._parts(), height, label, self._width, scrolls=self.is_wide)

    def _parts(self) -> Iterator[Html]:
        left, (width, tall) = self._left, self._step
        yield element("text", self.title, x=0, y=11)
        for g, name in enumerate(self.rows):
            y = _TOP + tall * (g + 0.5)
            yield cut_text(shorten(name), name, x=f"{left - 5:.0f}", y=f"{y:.1f}", class_="left")
        greatest = float(np.abs(self.nats).max()) or 1.0
        shades = np.rint(_SHADES * self.nats / greatest).astype(int)
        for shade in np.unique(shades[shades != 0]).tolist():
            cells = np.argwhere(shades == shade).tolist()
            colour, opacity = "var(--blue)" if shade > 0 else "var(--orange)", _DARKEST * abs(shade) / _SHADES
            path = "".join(f"M{left + width * h:.1f} {_TOP + tall * g:.1f}{self._cell()}" for g, h in cells)
            yield element("path", d=path, fill=colour, fill_opacity=f"{opacity:.2f}")
        if width >= _OF_A_NUMBER and tall == _TALL:
            for (g, h), nats in np.ndenumerate(self.nats):
                at = {"x": f"{left + width * (h + 0.5):.1f}", "y": f"{_TOP + tall * (g + 0.5) + 4:.1f}"}
                yield element("text", f"{nats:+.2f}".replace("-", "\N{MINUS SIGN}"), **at, class_="middle")
        yield from self.columns.written(left, width, _TOP + tall * len(self.rows))

    def _cell(self) -> str:
        width, tall = self._step
        return f"h{width - 1:.1f}v{tall - 1:.1f}h{1 - width:.1f}z"
