"""What held-out predictions show, in sentences that every page begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posteriori.model_selection import metrics

if TYPE_CHECKING:
    from posteriori.model_selection.held_out_predictions import HeldOut

_TWO_SIDED = 1.96  # standard errors of a 95 % interval
_SMALL = 0.02  # a difference of confidence and accuracy that no reader acts on
_DOUBTFUL = 0.05  # a probability of the stated class below which a row is worth a look
MOST_ROWS = 3  # rows that are named


def sentences(evaluated: HeldOut, labels: Sequence[str]) -> list[str]:
    """Return how good the predictions are, and whether their probabilities can be trusted."""
    found = (how_good(evaluated, labels), how_complete(evaluated, labels), how_trustworthy(evaluated))
    return [sentence for sentence in found if sentence]


def of_hundred(share: float) -> str:
    """Return a share as cases out of 100, with a decimal near both ends."""
    hundred = 100.0 * share
    return f"{hundred:.1f}" if share not in (0.0, 1.0) and (hundred > 98.5 or hundred < 10.0) else f"{hundred:.0f}"


def how_good(evaluated: HeldOut, labels: Sequence[str]) -> str:
    """Return how many of 100 rows are predicted correctly, with a 95 % interval, beside always guessing one class.

    The interval is Wilson's, which stays within 0 and 100 (Wilson, JASA 22, 1927).
    """
    accuracy = float(np.average(evaluated.right, weights=evaluated.weight))
    n = float(evaluated.weight.sum())
    centre = (accuracy + _TWO_SIDED**2 / (2.0 * n)) / (1.0 + _TWO_SIDED**2 / n)
    half = (
        np.sqrt(accuracy * (1.0 - accuracy) / n + (_TWO_SIDED / (2.0 * n)) ** 2)
        * _TWO_SIDED
        / (1.0 + _TWO_SIDED**2 / n)
    )
    counts = np.bincount(evaluated.y_true, evaluated.weight, len(labels))
    commonest = int(counts.argmax())
    return (
        f"Of 100 {evaluated.rows_are}, it predicts {of_hundred(accuracy)} correctly "
        f"({of_hundred(centre - half)} to {of_hundred(centre + half)}); "
        f"always “{labels[commonest]}” would be correct for {of_hundred(counts[commonest] / n)}."
    )


def of_interest(evaluated: HeldOut) -> int | None:
    """Return the class that people ask about where there are two: the rarer one; None where there are more."""
    counts = np.bincount(evaluated.y_true, evaluated.weight, len(evaluated.classes))
    return int(counts.argmin()) if len(counts) == 2 and counts.all() else None


def how_complete(evaluated: HeldOut, labels: Sequence[str]) -> str:
    """Return the recall and the precision of the rarer of two classes; empty where there are more."""
    c = of_interest(evaluated)
    if c is None:
        return ""
    confusion = metrics.confusion_matrix(*evaluated.judged)
    called, name = confusion[:, c].sum(), labels[c]
    found = f"Of 100 that are “{name}”, it finds {of_hundred(confusion[c, c] / confusion[c].sum())}"
    if called == 0:
        return f"{found}: it never predicts “{name}”."
    return f"{found}; of 100 that it calls “{name}”, {of_hundred(confusion[c, c] / called)} are."


def how_trustworthy(evaluated: HeldOut) -> str:
    """Return whether the probability of the predicted class agrees with how often it is right."""
    confidence = float(np.average(evaluated.confidence, weights=evaluated.weight))
    accuracy = float(np.average(evaluated.right, weights=evaluated.weight))
    error = evaluated.standard_error(evaluated.right - evaluated.confidence)
    difference = confidence - accuracy
    figures = f"on average it is {of_hundred(confidence)} % sure, and right in {of_hundred(accuracy)} %"
    if abs(difference) <= 2.0 * error:
        return f"Its probabilities can be trusted: {figures}, which agrees within chance."
    if abs(difference) <= _SMALL:
        return f"Its probabilities can be trusted: {figures}."
    if difference > 0:
        guessing = float(np.bincount(evaluated.y_true, evaluated.weight).max() / evaluated.weight.sum())
        advice = " Trust its classes more than its probabilities." if accuracy > guessing else ""
        return f"Its probabilities are too high: {figures}.{advice}"
    return f"Its probabilities are too cautious: {figures}."


def doubtful_rows(evaluated: HeldOut) -> list[tuple[int, float]]:
    """Return the places of the rows whose class has the least probability, with it, the least first."""
    of_truth = np.where(evaluated.weight > 0, evaluated.of_truth, 1.0)
    order = np.argsort(of_truth, kind="stable")[:MOST_ROWS]
    return [(int(i), float(of_truth[i])) for i in order if of_truth[i] < _DOUBTFUL]
