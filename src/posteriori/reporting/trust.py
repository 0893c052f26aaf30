"""Calibration of the probabilities, the confusion matrix, and what a threshold of the probability costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from posteriori.model_selection import HeldOut, metrics
from posteriori.model_selection.ranking import Ranking
from posteriori.plotting.canvas import class_colours
from posteriori.plotting.held_out import CalibrationBins, calibration_bins
from posteriori.plotting.reading import Scale, evenly
from posteriori.reporting.charts import Panel, chart, figure, legend
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import Section, bar, number, paragraph, percent, table
from posteriori.support.formatting import count
from posteriori.support.markup import Html, details, element, joined
from posteriori.support.typing import Array

_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_MOST_CURVES = 6  # classes
_MOST_POINTS = 100
_TOP, _SIZE, _WIDTH = 20.0, 210.0, 300.0  # pixels
_CALIBRATION, _DOT = 380.0, 3.0  # pixels: height of the chart, radius of a point


def thresholds_section(subject: ReportData, evaluated: HeldOut) -> Section | None:
    """Return the curves of each class against the others, and tables of thresholds; None for fewer than two classes."""
    counts = np.bincount(evaluated.y_true, evaluated.weight, len(subject.labels))
    if np.count_nonzero(counts) < 2:
        return None
    lead = (
        "What if a row is assigned to a class only above a chosen probability? A lower threshold finds more rows of "
        "the class (recall), but a smaller share of the rows found is of the class (precision). All figures are of the "
        f"{evaluated.predictions_are}."
    )
    one = evaluated.figures.of_interest
    classes = (
        [int(c) for c in np.argsort(-counts, kind="stable")[:_MOST_CURVES]] if one is None or not counts[one] else [one]
    )
    rankings = {c: Ranking.of(evaluated.y_true, evaluated.filled, c, evaluated.weight) for c in classes if counts[c]}
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


_MOST_IN_MATRIX = 40
_MOST_NAMED = 8  # classes; with more, the columns of the matrix are numbered instead of named
_MOST_LETTERS, _MOST_LETTERS_WIDE = 24, 105  # of all names together, on a narrow page and on a wide one
_MOST_MISTAKES = 10


def calibration_section(subject: ReportData, evaluated: HeldOut) -> Section:
    """Return accuracy against confidence, in bins of confidence."""
    bins = metrics.calibration(*evaluated.judged)
    lead = (
        "Do the predicted probabilities match the observed frequencies? Of 100 rows predicted with a probability of "
        "80 %, about 80 should be correct. Confidence is the probability of the predicted class. In each line the bar "
        "shows the accuracy and the black mark the mean confidence. In a calibrated model the two agree."
    )
    filled = np.flatnonzero(bins.weight > 0)
    rows = [
        [
            f"{100 * bins.edges[b]:.0f} to {percent(bins.edges[b + 1])}",
            count(bins.weight[b]),
            percent(bins.confidence[b]),
            percent(bins.accuracy[b]),
            _against(bins.accuracy[b], bins.confidence[b]),
        ]
        for b in filled
    ]
    contents = [
        table(
            "Accuracy by confidence",
            ["confidence", "rows", "mean confidence", "accuracy", ""],
            rows,
        ),
        paragraph(_verdict(evaluated, bins.expected_error)),
    ]
    if 1 < len(subject.labels) <= _MOST_CURVES:
        contents.append(_picture(subject, evaluated))
    return Section("calibration", "Calibration", lead, tuple(contents))


def _against(accuracy: float, confidence: float) -> Html:
    filled = element("i", style=f"width:{100 * accuracy:.1f}%")
    mark = element("b", style=f"left:calc({100 * confidence:.1f}% - 1px)")
    return element("span", filled, mark, class_="bar", aria_hidden="true")


def _verdict(evaluated: HeldOut, expected_error: float) -> str:
    confidence = float(np.average(evaluated.confidence, weights=evaluated.weight))
    accuracy = float(np.average(evaluated.right, weights=evaluated.weight))
    error = evaluated.standard_error(evaluated.right - evaluated.confidence)
    averages = f"Mean confidence {percent(confidence)}, accuracy {percent(accuracy)}"
    if abs(confidence - accuracy) <= 2.0 * error:  # both are means over the same rows: about a 95 % interval
        verdict = "the difference is within sampling error"
    else:
        verdict = "the model is overconfident" if confidence > accuracy else "the model is underconfident"
    return f"{averages}: {verdict}. Expected calibration error: {percent(expected_error)}."


def _picture(subject: ReportData, evaluated: HeldOut) -> Html:
    """Return the calibration curve of the second of two classes, or of each of several classes."""
    n_classes = len(subject.labels)
    colours, names = class_colours(n_classes), subject.label_phrases
    drawn = range(1 if n_classes == 2 else 0, n_classes)
    bins = {c: calibration_bins(evaluated.filled[:, c], evaluated.y_true == c) for c in drawn}
    panel = Panel(_TOP, _CALIBRATION, (0.0, 1.0), (0.0, 1.0))
    diagonal = np.array([0.0, 1.0])
    parts = [*panel.axes("observed frequency against mean predicted probability", Scale())]
    parts.append(panel.line(diagonal, diagonal, "var(--quiet)", "dashed"))
    for c, of_class in bins.items():
        parts += _calibration_curve(panel, of_class, colours[c])
    gaps = [f"{names[c]} (mean gap {of_class.gap:.3f})" for c, of_class in bins.items()]
    label = f"Calibration curve per class; the diagonal is ideal: {'; '.join(gaps)}"
    caption = (
        "Calibration curve of each class: observed frequency against mean predicted probability, in bins of equally "
        "many rows. On the dashed diagonal the two agree; vertical lines are 95 % intervals. The mean gap is the "
        "distance from the diagonal, averaged over the rows."
    )
    picture = figure(chart(parts, _TOP + _CALIBRATION + 22.0, label), caption)
    return details("Calibration curve per class", legend(gaps, [colours[c] for c in drawn]), picture)


def _calibration_curve(panel: Panel, bins: CalibrationBins, colour: str) -> Iterator[Html]:
    x, y = panel.x(bins.sure), panel.y(bins.share)
    low, high = (panel.y(end) for end in bins.interval)
    lines = "".join(f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(x, low, high, strict=True))
    yield element("path", d=lines, fill="none", stroke=colour, stroke_opacity=0.5)
    yield panel.line(bins.sure, bins.share, colour)
    for a, b in zip(x, y, strict=True):
        yield element("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=_DOT, fill=colour)


def confusion_section(subject: ReportData, evaluated: HeldOut) -> Section:
    """Return the confusion matrix, the most frequent errors, and precision and recall per class."""
    confusion = metrics.confusion_matrix(*evaluated.judged)
    lead = (
        "Rows by true and predicted class. Each line holds the rows of one true class, each column the rows of one "
        "predicted class. Correct predictions are on the diagonal (blue), errors off the diagonal (orange)."
    )
    contents = []
    if len(subject.labels) <= _MOST_IN_MATRIX:
        contents.append(_matrix(subject, confusion))
    else:
        contents.append(paragraph(f"There are {len(subject.labels)} classes, too many for a matrix."))
    mistakes = _mistakes(subject, confusion)
    contents.append(mistakes)
    contents.append(_by_class(subject, evaluated))
    return Section("confusion", "Confusion matrix", lead, tuple(contents))


def _matrix(subject: ReportData, confusion: np.ndarray) -> Html:
    of_class = np.maximum(confusion.sum(axis=1, keepdims=True), 1e-300)
    share = confusion / of_class
    short = max(map(len, subject.labels)) <= 3
    words = [max(map(len, label.split()), default=0) + 2 for label in subject.labels]  # no narrower than its words
    many = len(subject.labels) > _MOST_NAMED and not short
    numbered = many or max(map(len, subject.labels)) + sum(words) > _MOST_LETTERS_WIDE
    # A narrow page shows numbers instead of names that it has no room for.
    keyed = not numbered and sum(map(len, subject.labels)) > _MOST_LETTERS
    keys = [str(position) for position in range(1, len(subject.labels) + 1)]
    names: list[Any] = keys if numbered else subject.labels
    lines: list[Any]
    if keyed:
        pairs = list(zip(keys, subject.labels, strict=True))
        names = [joined([_key(key), element("span", label, class_="name")]) for key, label in pairs]
        lines = [joined([_key(f"{key} "), label]) for key, label in pairs]
    else:
        lines = [f"{key}  {label}" if numbered else label for key, label in zip(keys, subject.labels, strict=True)]
    rows = [
        [line, *(_matrix_cell(confusion[t, p], share[t, p], t == p) for p in range(len(names)))]
        for t, line in enumerate(lines)
    ]
    dense = "confusion dense" if len(names) > _MOST_NAMED else "confusion"
    return table("Rows by true class and predicted class", ["true ↓ predicted →", *names], rows, class_=dense)


def _key(number: str) -> Html:
    return element("span", number, class_="key")


def _matrix_cell(rows: float, share: float, right: bool) -> Html:
    if not rows:
        return element("td", "·")
    strength = 0.08 + (0.42 if right else 0.62) * share
    colour = "0,114,178" if right else "213,94,0"
    return element("td", count(rows), style=f"background:rgba({colour},{strength:.2f})", title=percent(share))


def _mistakes(subject: ReportData, confusion: np.ndarray) -> Html:
    wrong = [
        (confusion[t, p], t, p)
        for t in range(len(confusion))
        for p in range(len(confusion))
        if t != p and confusion[t, p] > 0
    ]
    if not wrong:
        return paragraph("All of these rows were predicted correctly.")
    wrong.sort(key=lambda one: -one[0])
    total = confusion.sum(axis=1)
    rows = [
        [subject.labels[t], subject.labels[p], count(n), percent(n / total[t]), bar(n / total[t], "quiet optional")]
        for n, t, p in wrong[:_MOST_MISTAKES]
    ]
    more = f", {len(rows)} of {len(wrong)} pairs of classes" if len(wrong) > len(rows) else ""
    head = ["true class", "predicted class", "rows", "share of true class", ""]
    return table(f"Most frequent errors{more}", head, rows, text=(0, 1))


def _by_class(subject: ReportData, evaluated: HeldOut) -> Html:
    found = metrics.precision_recall(*evaluated.judged)
    areas = [
        Ranking.of(evaluated.y_true, evaluated.filled, c, evaluated.weight).area for c in range(len(subject.labels))
    ]
    rows = [
        [label, count(support), percent(precision), percent(recall), number(f1, 3), number(area, 3)]
        for label, support, precision, recall, f1, area in zip(
            subject.labels, found.support, found.precision, found.recall, found.f1, areas, strict=True
        )
    ]
    head = [subject.target, "rows", "precision", "recall", "F1", "AUC"]
    title = "Precision, recall, F1 and AUC per class"
    note = paragraph(
        "Precision is the share of correct rows among those predicted as the class, recall the share of its rows that "
        "are found.",
        class_="note",
    )
    each = Html(table(title, head, rows) + note)
    return details(title, each) if len(rows) > 12 else each
