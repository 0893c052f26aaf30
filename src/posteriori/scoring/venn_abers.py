"""Intervals for the probability of a class that hold for any model: Venn-Abers predictors on held-out scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.support.typing import Array

FEWEST = 20  # held-out rows


@dataclass(frozen=True)
class ProbabilityIntervals:
    r"""Two probabilities of a class for each row, of which one is calibrated, whatever the model.

    The isotonic regression of held-out labels on scores is fitted twice for each new row: with the row as one that is
    not of the class, and as one that is. One of the two fits knows the truth, so its value at the row is calibrated.

    Attributes
    ----------
    low, high : ndarray (n,)
        The values of the two fits at the row, p₀ and p₁.
    n_held_out : int

    References
    ----------
    Vovk & Petej, Venn-Abers predictors, UAI 2014. Vovk, Petej & Fedorova, Large-scale probabilistic predictors with and
    without guarantees of validity, NeurIPS 2015.
    """

    low: Array
    high: Array
    n_held_out: int

    @property
    def probability(self) -> Array:
        r"""One probability for both, p₁ / (1 − p₀ + p₁), (n,): the one of the least regret in log-loss."""
        return np.asarray(self.high / (1.0 - self.low + self.high))


def venn_abers(scores: Array, is_class: Array, new: Array) -> ProbabilityIntervals:
    """Return the intervals of new scores, (n,), from those of held-out rows, (m,), and whether each is of the class.

    Rows with the score NaN are left out, and new ones have NaN.

    Raises
    ------
    ValueError
        Held-out rows are too few.
    """
    known = ~np.isnan(scores)
    if known.sum() < FEWEST:
        raise ValueError(f"the model has {int(known.sum())} held-out rows, and intervals need {FEWEST}; give more rows")
    distinct, place = np.unique(scores[known], return_inverse=True)
    weight = np.bincount(place).astype(np.float64)
    ones = np.bincount(place, is_class[known])
    # A new score is one of the distinct ones, or between two of them: 2 K + 1 cases, of which few occur.
    left = np.searchsorted(distinct, new, side="left")
    is_equal = (left < len(distinct)) & (distinct[np.minimum(left, len(distinct) - 1)] == new)
    case = 2 * left + is_equal
    valid = ~np.isnan(new)
    found = np.full((2, len(new)), np.nan)
    asked, of_row = np.unique(case[valid], return_inverse=True)
    for label in (0, 1):
        values = _at_new(ones, weight, asked, float(label))
        found[label, valid] = values[of_row]
    return ProbabilityIntervals(found[0], found[1], int(known.sum()))


def _at_new(ones: Array, weight: Array, cases: Array, label: float) -> Array:
    """Return the isotonic fit at a new row with a label, in each of some cases, which ascend.

    The pools of adjacent violators of the scores below it and above it are merged with the row; the order in which
    violators are pooled does not matter.
    """
    places, is_equal = np.divmod(cases, 2)
    below = _pools(ones, weight, places, upwards=True)
    above = _pools(ones[::-1], weight[::-1], len(ones) - places - is_equal, upwards=False)
    found = np.empty(len(cases))
    for k, place in enumerate(places.tolist()):
        total, size = label, 1.0
        if is_equal[k]:  # rows with the score of the new one have its value
            total, size = total + float(ones[place]), size + float(weight[place])
        left, right = list(below[k]), list(above[k])
        changed = True
        while changed:
            changed = False
            while right and total / size > right[-1][0] / right[-1][1]:
                total, size = total + right[-1][0], size + right[-1][1]
                right.pop()
                changed = True
            while left and left[-1][0] / left[-1][1] > total / size:
                total, size = total + left[-1][0], size + left[-1][1]
                left.pop()
                changed = True
        found[k] = total / size
    return found


def _pools(ones: Array, weight: Array, lengths: Array, upwards: bool) -> list[list[tuple[float, float]]]:
    """Return the pools of an isotonic fit to the first rows, of each of some lengths, as ones and weights.

    The last pool is the one beside the new row. Downwards, the rows are those above it, from the highest on.
    """
    found: list[list[tuple[float, float]]] = [[] for _ in lengths]
    stack: list[tuple[float, float]] = []
    order, read, sign = np.argsort(lengths, kind="stable").tolist(), 0, 1.0 if upwards else -1.0
    for k in order:
        for row in range(read, int(lengths[k])):
            total, size = float(ones[row]), float(weight[row])
            while stack and sign * (stack[-1][0] / stack[-1][1] - total / size) > 0:
                one, other = stack.pop()
                total, size = total + one, size + other
            stack.append((total, size))
        read = max(read, int(lengths[k]))
        found[k] = list(stack)
    return found
