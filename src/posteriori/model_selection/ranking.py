"""Rows ranked by the probability of one class: ROC, precision-recall and lift curves, and thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.support.typing import Array


@dataclass(frozen=True)
class Ranking:
    """Rows in descending order of p(c | x) for one class c, against all other classes.

    Position t holds the totals of the rows with p(c | x) ≥ threshold[t]; position 0, with threshold inf, holds none.
    """

    threshold: Array  # (T + 1,): inf, and the distinct probabilities in descending order
    # hits, false_alarms (T + 1,): the weight of the rows of class c, and of the rows of other classes, at or above each
    # threshold
    hits: Array
    false_alarms: Array

    @classmethod
    def of(cls, y_true: Array, posterior: Array, label: int, weight: Array | None = None) -> Ranking:
        """Rank rows by the probability of a class.

        Parameters
        ----------
        y_true : ndarray (n,)
            The class index of each row.
        posterior : ndarray (n, C)
        label : int
            The index c of the class.
        weight : ndarray (n,), optional
            The weight of each row, ≥ 0; default 1.

        Examples
        --------
        >>> posterior = np.array([[0.9, 0.1], [0.4, 0.6], [0.6, 0.4], [0.2, 0.8]])
        >>> found = Ranking.of(np.array([0, 0, 1, 1]), posterior, 1)
        >>> found.threshold, found.recall, found.area
        (array([inf, 0.8, 0.6, 0.4, 0.1]), array([0. , 0.5, 0.5, 1. , 1. ]), 0.75)
        """
        weight = np.ones(len(y_true)) if weight is None else weight
        distinct, position = np.unique(-posterior[:, label], return_inverse=True)
        positive = y_true == label
        hits, false_alarms = (
            np.append(0.0, np.bincount(position.ravel(), np.where(chosen, weight, 0.0), len(distinct)).cumsum())
            for chosen in (positive, ~positive)
        )
        return cls(np.append(np.inf, -distinct), hits, false_alarms)

    @property
    def positives(self) -> float:
        """The weight of the rows of the class."""
        return float(self.hits[-1])

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.hits[-1] + self.false_alarms[-1])

    @property
    def recall(self) -> Array:
        """The true positive rate: the share of the rows of the class at or above each threshold; NaN if it has none."""
        return _divide(self.hits, self.hits[-1])

    @property
    def false_positive_rate(self) -> Array:
        """The share of the rows of other classes at or above each threshold; NaN without such rows."""
        return _divide(self.false_alarms, self.false_alarms[-1])

    @property
    def precision(self) -> Array:
        """The share of the class among the rows at or above each threshold; NaN where there are none."""
        return _divide(self.hits, self.hits + self.false_alarms)

    @property
    def selected(self) -> Array:
        """The share of all rows at or above each threshold."""
        return _divide(self.hits + self.false_alarms, self.total)

    @property
    def lift(self) -> Array:
        """Precision divided by the share of the class among all rows: 1 for rows chosen at random."""
        return _divide(self.precision, _divide(self.hits[-1:], self.total))

    @property
    def f1(self) -> Array:
        """2·hits / (2·hits + false alarms + misses): the harmonic mean of precision and recall."""
        return _divide(2.0 * self.hits, self.hits + self.false_alarms + self.hits[-1])

    @property
    def area(self) -> float:
        """The area under the ROC curve, by the trapezoidal rule; NaN if only one class occurs."""
        return float(np.trapezoid(self.recall, self.false_positive_rate))

    @property
    def average_precision(self) -> float:
        """Σ_t (recall_t − recall_{t−1})·precision_t, as in scikit-learn; NaN without rows of the class."""
        return float(np.diff(self.recall) @ self.precision[1:]) if self.positives > 0 else float("nan")

    def at(self, threshold: float) -> int:
        """Return the position of the totals of the rows with p(c | x) ≥ threshold."""
        return int(np.searchsorted(-self.threshold, -threshold, side="right")) - 1


def _divide(numerator: Array, denominator: Array | float) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Array = np.divide(numerator, denominator)
    return shares
