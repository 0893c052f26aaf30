"""The threshold of a probability for a wanted precision, recall or number of cases, by held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.support.checks import generator
from posteriori.support.formatting import plural
from posteriori.support.typing import Array

_REDRAWN = 200  # times that the held-out rows are drawn again, for the errors
_INTERVAL = (0.05, 0.95)


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold of p(class | x), and how rows are decided by it, on held-out rows.

    Attributes
    ----------
    label : Any
        The class.
    threshold : float
        Rows with this probability of the class, or more, are decided for it.
    precision, recall, share : float
        The share of these rows that are of the class, that of the rows of the class that are among them, and that of
        all rows.
    intervals : dict
        Of ``threshold``, ``precision``, ``recall`` and ``share``: their 5 % and 95 % quantiles if the held-out rows are
        drawn again.
    n, n_of_class : int
        Held-out rows, and those of the class.
    """

    label: Any
    threshold: float
    precision: float
    recall: float
    share: float
    intervals: dict[str, tuple[float, float]]
    n: int
    n_of_class: int

    @property
    def written(self) -> str:
        """The threshold in four digits, or in as many as keep it as far from 0 and from 1."""
        near = 1e-3 * min(self.threshold, 1.0 - self.threshold)
        texts = (f"{self.threshold:.{digits}g}" for digits in range(4, 18))
        return next((one for one in texts if abs(float(one) - self.threshold) <= near), repr(self.threshold))

    @property
    def thresholds(self) -> dict[Any, float]:
        """The threshold by class, as `decide` takes it."""
        return {self.label: self.threshold}

    def __str__(self) -> str:
        def of(name: str) -> str:
            low, high = self.intervals[name]
            return f"{100 * getattr(self, name):.0f} ({100 * low:.0f} to {100 * high:.0f})"

        low, high = self.intervals["threshold"]
        return (
            f"Decide for {self.label!r} from a probability of {self.written} ({low:.2g} to {high:.2g}). Of 100 "
            f"rows, {of('share')} are decided for it; of 100 of these, {of('precision')} are right; of 100 that are "
            f"{self.label!r}, {of('recall')} are found. By {plural(self.n, 'held-out row')}, of which "
            f"{self.n_of_class:,} are {self.label!r}; in brackets what other such rows would say."
        )


@dataclass(frozen=True)
class Aim:
    """The aim of a threshold: one of the three."""

    precision: float | None = None
    recall: float | None = None
    capacity: float | None = None  # share of rows

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) != 1:
            raise ValueError("give one of precision, recall and capacity")
        name, value = next(iter(given.items()))
        if not 0.0 < value <= 1.0:
            raise ValueError(f"{name} is {value}; give a share above 0, and 1 at most")

    def threshold(self, probability: Array, is_class: Array) -> float | None:
        """Return the threshold with which most rows of the class are found; None if none reaches the aim.

        It is between two probabilities, so that rounding puts no row on the other side.
        """
        chosen = self.least(probability, is_class)
        lower = probability[probability < chosen] if chosen is not None else np.empty(0)
        return chosen if chosen is None or not len(lower) else (chosen + float(lower.max())) / 2.0

    def least(self, probability: Array, is_class: Array) -> float | None:
        """Return the least probability of the rows that are decided for the class."""
        order = np.argsort(-probability, kind="stable")
        ordered = probability[order]
        last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of equal probabilities
        found, taken = np.cumsum(is_class[order])[last], last + 1
        if self.precision is not None:
            reached = np.flatnonzero(found >= self.precision * taken)
            return float(ordered[last[reached[-1]]]) if len(reached) else None
        if self.recall is not None:
            reached = np.flatnonzero(found >= self.recall * found[-1])
            return float(ordered[last[reached[0]]])
        assert self.capacity is not None
        reached = np.flatnonzero(taken <= self.capacity * len(ordered))
        return float(ordered[last[reached[-1]]]) if len(reached) else None


def choose_threshold(probability: Array, is_class: Array, label: Any, aim: Aim) -> ThresholdChoice:
    """Return the threshold for an aim from the probabilities of held-out rows, (m,), and whether each is of the class.

    Raises
    ------
    ValueError
        No held-out row is of the class, or no threshold reaches the aim.
    """
    known = ~np.isnan(probability)
    probability, is_class = probability[known], is_class[known].astype(np.float64)
    if not is_class.any():
        raise ValueError(f"no held-out row is {label!r}, so that no threshold can be chosen; give more rows")
    chosen = aim.threshold(probability, is_class)
    if chosen is None:
        raise ValueError(_unreached(aim, probability, is_class))
    figures = _figures(probability, is_class, chosen)
    rng, drawn = generator(0), []
    for _ in range(_REDRAWN):
        rows = rng.integers(0, len(probability), len(probability))
        again = aim.threshold(probability[rows], is_class[rows]) if is_class[rows].any() else None
        if again is not None:  # what the threshold does on other rows, and where other rows would put it
            drawn.append([again, *_figures(probability[rows], is_class[rows], chosen)])
    names = ("threshold", "precision", "recall", "share")
    ends = np.quantile(drawn, _INTERVAL, axis=0) if drawn else np.full((2, 4), np.nan)
    intervals = {name: (float(low), float(high)) for name, low, high in zip(names, *ends, strict=True)}
    return ThresholdChoice(label, chosen, *figures, intervals, len(probability), int(is_class.sum()))


def _figures(probability: Array, is_class: Array, threshold: float) -> tuple[float, float, float]:
    taken = probability >= threshold
    found = float(is_class[taken].sum())
    return found / max(int(taken.sum()), 1), found / max(float(is_class.sum()), 1.0), float(taken.mean())


def _unreached(aim: Aim, probability: Array, is_class: Array) -> str:
    if aim.capacity is not None:
        return (
            f"no threshold leaves {aim.capacity:.2%} of the rows or fewer, because the highest probability is that of "
            f"{(probability == probability.max()).mean():.2%}; give a larger capacity"
        )
    order = np.argsort(-probability, kind="stable")
    last = np.append(np.flatnonzero(np.diff(probability[order])), len(order) - 1)
    most = float((np.cumsum(is_class[order])[last] / (last + 1)).max())
    return f"no threshold has a precision of {aim.precision:g} on held-out rows; the most is {most:.3f}"
