"""Charts of two tables on one axis: the cells of a column, and log p(x)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posteriori.formatting import plural, shortened
from posteriori.plotting.effects import cells_of
from posteriori.plotting.scales import Scale, histogram_edges
from posteriori.reporting.charts import WIDTH, Panel, chart
from posteriori.reporting.column_charts import n_bins, rectangle
from posteriori.reporting.drift import ColumnDrift, TableRows
from posteriori.reporting.markup import Html, element
from posteriori.reporting.writing import percent
from posteriori.typing import Array

BEFORE, AFTER = "var(--quiet)", "var(--blue)"
_TOP, _HEIGHT, _BELOW = 20.0, 120.0, 22.0  # pixels
_NAMES, _SHARES, _GROUP = 130.0, 138.0, 22.0
_MOST_STATES = 14
_MARGIN = 0.02


def drift_chart(drift: ColumnDrift, before: TableRows, after: TableRows, label: str) -> Html:
    """Return the distributions of one column in two tables: histograms of numbers, or the share of each category."""
    if drift.column.kind == "categorical":
        return _of_states(drift, label)
    cells = [cells_of(rows.batch, drift.position) for rows in (before, after)]
    before_known, after_known = (one[~np.isnan(one)] for one in cells)
    return histograms_chart(before_known, after_known, label)


def histograms_chart(before: Array, after: Array, label: str, title: str = "density") -> Html:
    """Return histograms of two samples of numbers over one axis, each of area 1."""
    both = np.concatenate([before, after])
    scale = Scale.of(both)
    positions = [scale.position(one) for one in (before, after)]
    whole = scale.width is None and not (both != np.floor(both)).any()
    edges = histogram_edges(scale.position(both), n_bins(len(both)), whole)
    margin = _MARGIN * float(edges[-1] - edges[0]) or 0.5
    heights = [np.histogram(one, edges)[0] / (max(len(one), 1) * np.diff(edges)) for one in positions]
    top = max(float(one.max(initial=0.0)) for one in heights) or 1.0
    panel = Panel(_TOP, _HEIGHT, (float(edges[0] - margin), float(edges[-1] + margin)), (0.0, top))

    def parts() -> Iterator[Html]:
        yield from panel.axes(title if scale.width is None else f"{title} per unit of the axis", scale)
        for height, colour in zip(heights, (BEFORE, AFTER), strict=True):
            yield panel.histogram(edges, height, colour)
            steps = np.concatenate([[0.0], np.repeat(height, 2), [0.0]])
            yield panel.line(np.repeat(edges, 2), steps, colour)

    return chart(parts(), _TOP + _HEIGHT + _BELOW, label)


def _of_states(drift: ColumnDrift, label: str) -> Html:
    shares = drift.shares
    order = np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_STATES]
    hidden = shares.shape[1] - len(order)
    longest = max(float(shares.max()), 1e-9)
    bottom = _TOP + _GROUP * len(order)

    def parts() -> Iterator[Html]:
        yield element("text", f"share of rows (longest {percent(longest)})", x=_SHARES, y=12)
        for row, k in enumerate(order.tolist()):
            top = _TOP + row * _GROUP
            middle = f"{top + _GROUP / 2:.1f}"
            yield element("text", shortened(drift.names[k], 20), x=_NAMES, y=middle, class_="left")
            for place, colour in enumerate((BEFORE, AFTER)):
                length = float(shares[place, k]) / longest * (WIDTH - _SHARES - 92.0)
                yield rectangle(_SHARES, top + 3 + 8 * place, length, 7.0, colour)
            text = f"{percent(float(shares[0, k]))} → {percent(float(shares[1, k]))}"
            yield element("text", text, x=WIDTH - 2, y=f"{top + _GROUP / 2 + 4:.1f}", class_="right")
        if hidden:
            text = f"{plural(hidden, 'rarer state')} not drawn"
            yield element("text", text, x=_SHARES, y=f"{bottom + 14:.0f}")

    return chart(parts(), bottom + (18.0 if hidden else 4.0), label)
