"""Whether the probabilities can be trusted, and which classes are taken for which."""

from __future__ import annotations

import numpy as np

from posteriori.learning import metrics
from posteriori.plotting import plot_calibration
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import HeldOutPredictions
from posteriori.reporting.markup import Html, Section, bar, details, element, paragraph, table
from posteriori.reporting.pictures import draw, figure
from posteriori.reporting.writing import count, percent

_MOST_CURVES = 6
_MOST_IN_MATRIX = 40
_MOST_NAMED = 8  # classes whose names stand above the matrix as well
_MOST_MISTAKES = 10


def calibration_section(subject: ReportData, evaluated: HeldOutPredictions) -> Section:
    """Return how often the model was right, by how sure it was."""
    bins = metrics.calibration(evaluated.components, evaluated.posterior, evaluated.weight)
    lead = (
        "Of 100 rows of which it said “80 %”, how many were right? About 80, if its probabilities can be taken at "
        "their word. In each line the bar is how often it was right, the black mark how sure it was: the nearer the "
        "two, the better."
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
        table("By how sure it was of its answer", ["it said", "rows", "mean said", "were right", ""], rows),
        paragraph(_verdict(evaluated, bins.expected_error)),
    ]
    if 1 < len(subject.labels) <= _MOST_CURVES:
        contents.append(_picture(subject, evaluated))
    return Section("calibration", "Calibration: can its probabilities be believed?", lead, tuple(contents))


def _against(accuracy: float, confidence: float) -> Html:
    filled = element("i", style=f"width:{100 * accuracy:.1f}%")
    mark = element("b", style=f"left:calc({100 * confidence:.1f}% - 1px)")
    return element("span", filled, mark, class_="bar", aria_hidden="true")


def _verdict(evaluated: HeldOutPredictions, expected_error: float) -> str:
    sure = float(np.average(evaluated.confidence, weights=evaluated.weight))
    right = float(np.average(evaluated.right, weights=evaluated.weight))
    error = evaluated.standard_error(evaluated.right - evaluated.confidence)
    said = f"On average it was {percent(sure)} sure and {percent(right)} of its answers were right"
    if abs(sure - right) <= 2.0 * error:
        verdict = "no more apart than chance would make them"
    else:
        verdict = "too sure of itself" if sure > right else "too modest"
    return f"{said}: {verdict}. The two differ by {percent(expected_error)} on average over these lines."


def _picture(subject: ReportData, evaluated: HeldOutPredictions) -> Html:
    labels = subject.estimator.classes_[evaluated.components]
    picture = draw(
        lambda ax: plot_calibration(subject.estimator, y=labels, proba=evaluated.posterior, ax=ax),
        4.8,
        4.6,
        "Share of each class against its mean probability, in ten bins of rows; the diagonal is where they agree",
        "calibration",
    )
    caption = (
        "The same for each class: how often rows were of it, against how probable it was said to be, in bins of "
        "equally many rows. On the dashed line the two agree; vertical lines are 95 % intervals."
    )
    return details("A picture of it, class by class", figure(picture, caption))


def confusion_section(subject: ReportData, evaluated: HeldOutPredictions) -> Section:
    """Return which classes are taken for which."""
    confusion = metrics.confusion_matrix(evaluated.components, evaluated.posterior, evaluated.weight)
    lead = (
        "Which classes are taken for which. Each line holds the rows of one true class, each column those that were "
        "given one answer: right answers are on the diagonal (blue), mistakes beside it (orange)."
    )
    contents = []
    if len(subject.labels) <= _MOST_IN_MATRIX:
        contents.append(_matrix(subject, confusion))
    else:
        contents.append(paragraph(f"There are {len(subject.labels)} classes, too many for a matrix."))
    mistakes = _mistakes(subject, confusion)
    contents.append(mistakes)
    contents.append(_by_class(subject, evaluated))
    return Section("confusion", "Confusion matrix: which mistakes it makes", lead, tuple(contents))


def _matrix(subject: ReportData, confusion: np.ndarray) -> Html:
    of_class = np.maximum(confusion.sum(axis=1, keepdims=True), 1e-300)
    share = confusion / of_class
    short = max(map(len, subject.labels)) <= 3
    numbered = len(subject.labels) > _MOST_NAMED and not short
    names = [str(position) for position in range(1, len(subject.labels) + 1)] if numbered else subject.labels
    rows = [
        [f"{names[t]}  {label}" if numbered else label]
        + [_matrix_cell(confusion[t, p], share[t, p], t == p) for p in range(len(names))]
        for t, label in enumerate(subject.labels)
    ]
    dense = "confusion dense" if len(names) > _MOST_NAMED else "confusion"
    return table("Rows of each true class by the answer given", ["true ↓ answer →", *names], rows, class_=dense)


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
        return paragraph("It made no mistake on these rows.")
    wrong.sort(key=lambda one: -one[0])
    most, total = wrong[0][0], confusion.sum(axis=1)
    rows = [
        [subject.labels[t], subject.labels[p], count(n), percent(n / total[t]), bar(n / most, "quiet optional")]
        for n, t, p in wrong[:_MOST_MISTAKES]
    ]
    more = f", {len(rows)} of {len(wrong)} kinds" if len(wrong) > len(rows) else ""
    head = ["is truly", "was taken for", "rows", "of its class", ""]
    return table(f"The most frequent mistakes{more}", head, rows, text=(0, 1))


def _by_class(subject: ReportData, evaluated: HeldOutPredictions) -> Html:
    found = metrics.precision_recall(evaluated.components, evaluated.posterior, evaluated.weight)
    rows = [
        [label, count(support), percent(recall), percent(precision)]
        for label, support, recall, precision in zip(
            subject.labels, found.support, found.recall, found.precision, strict=True
        )
    ]
    head = [subject.target, "rows", "recall: share of its rows found", "precision: share of such answers right"]
    each = table("Class by class", head, rows)
    return details("Class by class", each) if len(rows) > 12 else each
