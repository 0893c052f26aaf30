"""Sets of classes that hold the true one with a promised probability, from held-out predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array

Score = Literal["probability", "cumulative", "density"]
SCORES = ("probability", "cumulative", "density")


@dataclass(frozen=True)
class PredictionSets:
    """A set of classes for each row.

    Attributes
    ----------
    classes : ndarray (C,)
    included : ndarray of bool (n, C)
        Whether each class is in the set of the row.
    coverage : float
        The promised share of rows whose set holds their class.
    n_held_out : int
        The held-out rows from which the promise follows.
    """

    classes: Array
    included: Array
    coverage: float
    n_held_out: int

    def __len__(self) -> int:
        return len(self.included)

    @cached_property
    def sets(self) -> list[tuple[Any, ...]]:
        """The classes of each row, as tuples."""
        labels = self.classes.tolist()
        return [tuple(labels[k] for k in np.flatnonzero(row)) for row in self.included]

    @property
    def size(self) -> Array:
        """The number of classes of each row, (n,)."""
        return np.asarray(self.included.sum(axis=1))

    def covers(self, y_true: Any) -> Array:
        """Return whether each set holds a label, (n,).

        Raises
        ------
        ValueError
            There is not one label per row, or a label is not a class.
        """
        labels, classes = list(y_true), self.classes.tolist()
        if len(labels) != len(self):
            raise ValueError(f"there are {len(labels)} labels, and {len(self)} sets; give one per row")
        place = {label: class_index(label, classes) for label in dict.fromkeys(labels)}
        return np.asarray(self.included[np.arange(len(self)), [place[label] for label in labels]])


def scores_of(posterior: Array, score: Score) -> Array:
    r"""Return how badly each class fits each row, (n, C): the higher, the worse.

    .. math:: s_{\text{probability}} = 1 - p(y \mid x), \quad
              s_{\text{cumulative}} = \sum_{y':\, p(y' \mid x) > p(y \mid x)} p(y' \mid x) + \tfrac12 p(y \mid x)
    """
    if score == "probability":
        return np.asarray(1.0 - posterior)
    order = np.argsort(-posterior, axis=1, kind="stable")
    ordered = np.take_along_axis(posterior, order, axis=1)
    above = np.cumsum(ordered, axis=1) - ordered / 2.0
    found = np.empty_like(posterior)
    np.put_along_axis(found, order, above, axis=1)
    return found


def sets_within(posterior: Array, score: Score, limit: Array) -> Array:
    """Return which classes fit each row well enough, (n, C), and the most probable one; none of a row of NaN."""
    with np.errstate(invalid="ignore"):
        included = scores_of(posterior, score) <= limit
        return np.asarray(included | (posterior >= posterior.max(axis=1, keepdims=True)))


def limits(scores: Array, y_true: Array, coverage: float, classes: Array, per_class: bool) -> Array:
    r"""Return the score up to which each class is in the set, (C,).

    .. math:: q = s_{(\lceil (n + 1)\,c \rceil)}

    of the scores of held-out rows, each of its own class, (m,), of all rows or of each class: a new row that is
    exchangeable with them has a score above q with a probability of at most 1 − c.

    Raises
    ------
    ValueError
        The coverage is not between 0 and 1, or rows are too few for it.
    """
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage is {coverage}; give a number between 0 and 1, such as 0.9")
    scores = np.where(np.isnan(scores), np.inf, scores)  # a row that no class can produce is covered by no set
    if not per_class:
        return np.full(len(classes), _quantile(scores, coverage, "the model has"))
    return np.array(
        [_quantile(scores[y_true == k], coverage, f"class {one!r} has") for k, one in enumerate(classes.tolist())]
    )


def _quantile(scores: Array, coverage: float, whose: str) -> float:
    needed = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
    if needed > len(scores):
        fewest = int(np.ceil(coverage / (1.0 - coverage) - 1e-9))
        raise ValueError(
            f"{whose} {len(scores)} held-out rows, and a coverage of {coverage:g} needs {fewest}; give more rows or a "
            "smaller coverage"
        )
    return float(np.partition(scores, needed - 1)[needed - 1])
