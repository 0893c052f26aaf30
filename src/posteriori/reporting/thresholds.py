"""ROC, precision-recall and lift curves, and what a threshold of the probability costs and finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posteriori.formatting import count
from posteriori.model_selection.ranking import Ranking
from posteriori.plotting.canvas import class_colours
from posteriori.plotting.effects import evenly
from posteriori.plotting.scales import Scale
from posteriori.reporting.charts import Panel, chart, legend
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import HeldOutPredictions
from posteriori.reporting.markup import Html, Section, details, element, table
from posteriori.reporting.pictures import figure
from posteriori.reporting.writing import number, percent
from posteriori.typing import Array

_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_MOST_CURVES = 6  # classes
_MOST_POINTS = 100
_TOP, _SIZE, _WIDTH = 20.0, 210.0, 300.0  # pixels


def thresholds_section(subject: ReportData, evaluated: HeldOutPredictions) -> Section | None:
    """Return the curves of each class against the others, and tables of thresholds; None for fewer than two classes."""
    counts = np.bincount(evaluated.y_true, evaluated.weight, len(subject.labels))
    if np.count_nonzero(counts) < 2:
        return None
    lead = (
        "What if a row is assigned to a class only above a chosen probability? A lower threshold finds more rows of "
        "the class (recall), but a smaller share of the rows found is of the class (precision). All figures are of the "
        f"{evaluated.predictions_are}."
    )
    classes = [1] if len(counts) == 2 else [int(c) for c in np.argsort(-counts, kind="stable")[:_MOST_CURVES]]
    rankings = {c: Ranking.of(evaluated.y_true, evaluated.posterior, c, evaluated.weight) for c in classes if counts[c]}
    contents = [
        legend([subject.label_phrases[c] for c in rankings], [class_colours(len(counts))[c] for c in rankings]),
        element("div", *_curves(subject, rankings), class_="pictures three"),
    ]
    for c, ranking in rankings.items():
        name = subject.label_phrases[c]
        grid = table(f"Thresholds of p({name})", _HEAD, list(_rows(ranking)))
        contents.append(grid if len(counts) == 2 else details(f"Thresholds of {name} against the other classes", grid))
    return Section("thresholds", "Thresholds and ranking", lead, tuple(contents))


_HEAD = ["predicted above", "rows", "share of rows", "precision", "recall", "F1", "false positive rate", "lift"]


def _rows(ranking: Ranking) -> Iterator[list[Any]]:
    """Yield one line per threshold, and one for the threshold of greatest F1."""
    best = float(ranking.threshold[1 + int(np.nanargmax(ranking.f1[1:]))])
    for threshold in sorted({*_THRESHOLDS, best}):
        t = ranking.at(threshold)
        name = percent(threshold)
        yield [
            element("span", f"{name}, greatest F1", class_="best") if threshold == best else name,
            count(float(ranking.hits[t] + ranking.false_alarms[t])),
            percent(float(ranking.selected[t])),
            percent(float(ranking.precision[t])),
            percent(float(ranking.recall[t])),
            number(float(ranking.f1[t]), 2),
            percent(float(ranking.false_positive_rate[t])),
            number(float(ranking.lift[t]), 2),
        ]


def _curves(subject: ReportData, rankings: dict[int, Ranking]) -> Iterator[Html]:
    """Yield the ROC, the precision-recall and the lift chart of the classes."""
    colours = class_colours(len(subject.labels))
    highest = max(float(np.nanmax(ranking.lift[1:])) for ranking in rankings.values())
    panels = [
        ("recall", "false positive rate", "ROC: recall against the false positive rate. AUC is the area below.", 1.0),
        ("precision", "recall", "Precision against recall. Dashed: the share of the class.", 1.0),
        ("lift", "share of rows", "Lift: how much more frequent the class is among the rows ranked first.", highest),
    ]
    for k, (up, across, caption, most) in enumerate(panels):
        panel = Panel(_TOP, _SIZE, (0.0, 1.0), (0.0, most), _WIDTH)
        parts = [*panel.axes(f"{up} against {across}", Scale())]
        if k == 0:
            parts.append(panel.line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "var(--quiet)", "dashed"))
        for c, ranking in rankings.items():
            x, y = _points(ranking, k)
            parts.append(panel.line(x, y, colours[c]))
            if k == 1:
                share = ranking.positives / ranking.total
                parts.append(panel.line(np.array([0.0, 1.0]), np.array([share, share]), colours[c], "dashed"))
        yield element("div", figure(chart(parts, _TOP + _SIZE + 22.0, caption, _WIDTH), caption))


def _points(ranking: Ranking, k: int) -> tuple[Array, Array]:
    """Return at most 200 points of the k-th curve."""
    x, y = [
        (ranking.false_positive_rate, ranking.recall),
        (ranking.recall[1:], ranking.precision[1:]),
        (ranking.selected[1:], ranking.lift[1:]),
    ][k]
    along = np.searchsorted(x, np.linspace(0.0, 1.0, _MOST_POINTS)).clip(0, len(x) - 1)
    kept = np.union1d(evenly(len(x), _MOST_POINTS), along)
    return x[kept], y[kept]
