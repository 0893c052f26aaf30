"""Held-out predictions in sentences, with which every page begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori.fitting.held_out_figures import HeldOutFigures
from posteriori.model_selection.ranking import Ranking
from posteriori.support.formatting import cell_text, escaped, shortened
from posteriori.support.typing import Array

_TWO_SIDED = 1.96  # standard errors of a 95 % interval
_SMALL = 0.02  # a difference of confidence and accuracy that no reader acts on
_DOUBTFUL = 0.05  # a probability of the stated class below which a row is worth a look
_FEW_FOUND = 0.1  # of the rows of a class, below which another threshold is named
_FIRST = 0.05  # of the rows, ranked by probability
_LONGEST = 32  # characters of a class
MOST_ROWS = 3  # rows that are named


def sentences(found: HeldOutFigures, labels: Sequence[str]) -> list[str]:
    """Return how good the predictions are, and whether their probabilities can be trusted.

    Where there is one class, nothing can be judged, and the one sentence says so.
    """
    if len(labels) == 1:
        return [f"Every row is “{labels[0]}”: with one class there is nothing to predict."]
    every = (
        how_good(found, labels),
        how_complete(found, labels),
        how_near(found),
        how_trustworthy(found),
        how_informative(found),
    )
    return [sentence for sentence in every if sentence]


def class_phrases(classes: Sequence[Any], target: str | None) -> list[str]:
    """Return the classes for use in a sentence: "target = 1" for a class that is not a string."""
    return [
        _shown(label) if isinstance(label, str) else f"{_shown(target or 'class')} = {_shown(label)}"
        for label in classes
    ]


def _shown(label: Any) -> str:
    # All digits of a float: two classes must not look the same.
    text = f"{label:.15g}" if isinstance(label, float) else cell_text(label, longest=None)
    return shortened(escaped(text), _LONGEST)


def of_hundred(share: float) -> str:
    """Return a share as cases out of 100, with a decimal near both ends."""
    hundred = 100.0 * share
    return f"{hundred:.1f}" if share not in (0.0, 1.0) and (hundred > 98.5 or hundred < 10.0) else f"{hundred:.0f}"


def how_good(found: HeldOutFigures, labels: Sequence[str]) -> str:
    """Return how many of 100 rows are predicted correctly, with a 95 % interval, beside always guessing one class.

    The interval is Wilson's, which stays within 0 and 100 (Wilson, JASA 22, 1927).
    """
    accuracy, n = found.accuracy, found.n
    centre = (accuracy + _TWO_SIDED**2 / (2.0 * n)) / (1.0 + _TWO_SIDED**2 / n)
    half = (
        np.sqrt(accuracy * (1.0 - accuracy) / n + (_TWO_SIDED / (2.0 * n)) ** 2)
        * _TWO_SIDED
        / (1.0 + _TWO_SIDED**2 / n)
    )
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)  # rounding may go beyond
    return (
        f"Of 100 {found.rows_are}, it predicts {of_hundred(accuracy)} correctly "
        f"({of_hundred(low)} to {of_hundred(high)}); "
        f"always “{labels[found.commonest]}” would be correct for {of_hundred(found.true[found.commonest] / n)}."
    )


def how_complete(found: HeldOutFigures, labels: Sequence[str]) -> str:
    """Return the recall and the precision of the class of interest; empty where there is none."""
    c = found.of_interest
    if c is None:
        return ""
    name, predicted = labels[c], found.predicted[c]
    if not found.true[c]:
        return f"No row is “{name}”."
    recall = f"Of 100 that are “{name}”, it finds {of_hundred(found.correct[c] / found.true[c])}"
    more, share = "", threshold_to_find_more(found)
    if share is not None:
        more = f" A threshold of {share:.2g}, the share of “{name}”, in place of one half finds more."
    if not predicted:
        return f"{recall}: it never predicts “{name}”.{more}"
    return f"{recall}; of 100 that it calls “{name}”, {of_hundred(found.correct[c] / predicted)} are.{more}"


def how_near(found: HeldOutFigures) -> str:
    """Return how near the median level is to the true one, and what its intervals hold; empty of unordered classes."""
    if found.levels is None:
        return ""
    same, near, held, width = found.levels
    return (
        f"Its median level is the true one for {of_hundred(same)} of 100 {found.rows_are}, and at most one level away "
        f"for {of_hundred(near)}; its 90 % intervals hold {of_hundred(held)} of 100 true levels, and are {width:.2g} "
        "levels wide in the mean."
    )


def threshold_to_find_more(found: HeldOutFigures) -> float | None:
    """Return the share of the class of interest if, of two classes, few of its rows are found at one half."""
    c = found.of_interest
    return found.true[c] / found.n if c is not None and len(found.true) == 2 and _is_hardly_found(found) else None


def _is_hardly_found(found: HeldOutFigures) -> bool:
    """Return whether few rows of the class of interest are found, although the probabilities are informative."""
    c = found.of_interest
    if c is None or c == found.commonest or found.verdict == "uninformative":
        return False
    return found.true[c] > 0 and found.correct[c] < _FEW_FOUND * found.true[c]


def first_ranked(
    found: HeldOutFigures, y_true: Array, posterior: Array, weight: Array
) -> tuple[float, float, float] | None:
    """Return the yield of the rows ranked first by the probability of a class of interest that is hardly found.

    Returns
    -------
    tuple of float, or None
        The share of all rows, about 5 %; the share of the rows of the class that are among them; and the probability of
        the last one, rounded down to three digits. None where enough rows of the class are found, or there is none.
    """
    c = found.of_interest
    if c is None or not _is_hardly_found(found):
        return None
    ranking = Ranking.of(y_true, posterior, c, weight)
    last = int(np.argmax(ranking.selected >= _FIRST - 1e-9))
    lowest = float(ranking.threshold[last])
    if not 0.0 < lowest < 1.0:
        return None
    unit = 10.0 ** (np.floor(np.log10(lowest)) - 2)
    return float(ranking.selected[last]), float(ranking.recall[last]), float(f"{np.floor(lowest / unit) * unit:.3g}")


def how_trustworthy(found: HeldOutFigures) -> str:
    """Return whether the probability of the predicted class agrees with how often it is right."""
    confidence, accuracy = found.confidence, found.accuracy
    difference = confidence - accuracy
    figures = f"on average it is {of_hundred(confidence)} % sure, and right in {of_hundred(accuracy)} %"
    if abs(difference) <= 2.0 * found.gap_error:
        return f"Its probabilities can be trusted: {figures}, which agrees within chance."
    if abs(difference) <= _SMALL:
        return f"Its probabilities can be trusted: {figures}."
    if difference > 0:
        guessing = found.true[found.commonest] / found.n
        advice = " Trust its classes more than its probabilities." if accuracy > guessing else ""
        return f"Its probabilities are too high: {figures}.{advice}"
    return f"Its probabilities are too cautious: {figures}."


def how_informative(found: HeldOutFigures) -> str:
    """Return that the class shares predict as well; empty if the model predicts better."""
    if found.verdict != "uninformative":
        return ""
    if found.by_folds:
        return "These columns carry no information about the target: the class shares predict as well."
    return f"On the {found.rows_are} its probabilities are no better than the class shares."


def doubtful_rows(of_truth: Array, weight: Array) -> list[tuple[int, float]]:
    """Return the places of the rows whose class has the least probability, with it, the least first."""
    weighted = np.where(weight > 0, of_truth, 1.0)
    order = np.argsort(weighted, kind="stable")[:MOST_ROWS]
    return [(int(i), float(weighted[i])) for i in order if weighted[i] < _DOUBTFUL]
