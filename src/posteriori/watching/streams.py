"""Streams of scores of rows: log p(x), the log-loss of labels, and the cells of each column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.plotting.reading import Feature, cells_of
from posteriori.reporting.drift import TableRows
from posteriori.support.checks import require
from posteriori.support.formatting import exponential, percent
from posteriori.support.typing import Array
from posteriori.watching.evidence import Martingale

ROWS, LABELS, COLUMN = "rows", "labels", "column"
_MORE_MISSING = 0.05  # share of cells from which missing ones are the sentence
_IN_WORDS = {
    ROWS: {
        "larger": "rows are more probable than before: log p(x) is larger",
        "smaller": "rows are less probable than before: log p(x) is smaller",
        "wider": "log p(x) of rows varies more than before",
        "narrower": "log p(x) of rows varies less than before",
    },
    LABELS: {
        "larger": "labels are less probable under the predictions than before: the log-loss is larger",
        "smaller": "labels are more probable under the predictions than before: the log-loss is smaller",
        "wider": "the log-loss of labels varies more than before",
        "narrower": "the log-loss of labels varies less than before",
    },
}
_NUMBERS = {
    "larger": "numbers are larger than before",
    "smaller": "numbers are smaller than before",
    "wider": "numbers vary more than before",
    "narrower": "numbers vary less than before",
}
_CATEGORIES = {
    "larger": "categories that are frequent under the model are more frequent than before",
    "smaller": "categories that are rare under the model are more frequent than before",
    "wider": "both the rarest and the most frequent categories are more frequent than before",
    "narrower": "categories between rare and frequent ones are more frequent than before",
}


@dataclass(frozen=True)
class Stream:
    """One stream of scores, its evidence, and when it gave an alarm.

    Attributes
    ----------
    kind : "rows", "labels" or "column"
    column : str or None
        The name of the column.
    evidence : Martingale
    level : float
        α: the probability that it ever gives an alarm without a change is at most this.
    alarm : int or None
        The first batch after which the evidence was at least 1/α.
    """

    kind: str
    column: str | None
    evidence: Martingale
    level: float
    alarm: int | None = None

    @property
    def name(self) -> str:
        """The name of the stream in messages."""
        return {ROWS: "log p(x)", LABELS: "log-loss"}.get(self.kind, f"column {self.column!r}")

    def check(self) -> None:
        """Raise ValueError if values that come from a file cannot be."""
        known = self.kind in (ROWS, LABELS, COLUMN) and (self.column is not None) == (self.kind == COLUMN)
        require(known, f"{self.kind!r} is no stream")
        require(1e-300 <= self.level <= 1.0, "the level of a stream cannot be")

    def after(self, scores: Array, batch: int, rng: np.random.Generator) -> Stream:
        """Return the stream after the scores of a batch, (n,)."""
        evidence = self.evidence.after(scores, rng)
        raised = self.alarm is None and evidence.log_e >= -math.log(self.level)
        return replace(self, evidence=evidence, alarm=batch if raised else self.alarm)

    def change(self, before: Stream, scores: Array, categories: tuple[Any, ...] | None) -> str:
        """Return how the scores of a batch differ from those before, as a sentence.

        `categories` are those of the column in the order of their places; None of another stream.
        """
        evidence = f"(evidence {exponential(self.evidence.log_e, 2)})"
        if self.kind != COLUMN:
            return f"{_IN_WORDS[self.kind][self.evidence.direction]} {evidence}"
        how = (_NUMBERS if categories is None else _CATEGORIES)[self.evidence.direction]
        earlier, now = before.evidence.shares(scores)
        k = int(np.argmax(np.abs(now - earlier)))
        if abs(now[0] - earlier[0]) > _MORE_MISSING:
            how = f"{percent(now[0])} of its cells are missing or unseen categories, {percent(earlier[0])} before"
        elif categories is not None and k and _has_a_bin_each(before.evidence, len(categories)):
            how = f"{percent(now[k])} of its cells are {categories[k - 1]!r}, {percent(earlier[k])} before"
        return f"{self.name} changed: {how} {evidence}"


def _has_a_bin_each(evidence: Martingale, n: int) -> bool:
    """Whether each of n places has a bin of its own, after that of −∞."""
    return np.array_equal(evidence.edges[1:n], np.arange(n - 1.0))


@dataclass(frozen=True)
class Scores:
    """The functions that score rows for the streams, by kind and column; each returns (n,), −∞ for no value."""

    of: dict[tuple[str, str | None], Callable[[TableRows], Array]]
    categories: dict[str | None, tuple[Any, ...]]  # of categorical columns, in the order of their places

    @classmethod
    def under(cls, estimator: Classifier, with_labels: bool) -> Scores:
        """Choose what to score: log p(x) if the model has one, labels if they are known, and modelled columns.

        A number is its own score: ranks see shifts to both sides. The score of a category is its place by probability
        under the model, so that equal probabilities do not hide a change. Columns of counts and of text are seen by
        log p(x) alone.
        """
        found: dict[tuple[str, str | None], Callable[[TableRows], Array]] = {}
        if estimator._posterior.has_density:
            found[ROWS, None] = _log_densities
        if with_labels:
            found[LABELS, None] = log_losses
        categories: dict[str | None, tuple[Any, ...]] = {}
        for j in estimator.schema_.modelled:
            column = estimator.schema_.columns[j]
            if column.kind == "continuous":
                found[COLUMN, column.name] = _NumbersOf(int(j))
            elif column.kind == "categorical" and column.categories:
                places = found[COLUMN, column.name] = _PlacesOf.under(estimator, int(j))
                categories[column.name] = tuple(column.categories[k] for k in np.argsort(places.place[1:]))
        return cls(found, categories)

    def levels(self, false_alarms: float) -> dict[tuple[str, str | None], float]:
        """Split the probability of false alarms evenly over rows, labels and columns, and over the columns."""
        kinds = [kind for kind, _ in self.of]
        return {key: false_alarms / len(set(kinds)) / kinds.count(key[0]) for key in self.of}


def _log_densities(rows: TableRows) -> Array:
    assert rows.log_evidence is not None  # the model has a density
    return np.nan_to_num(rows.log_evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


def log_losses(rows: TableRows) -> Array:
    """Return −log p(y | x) of the labelled rows; ∞ if no class can produce the row."""
    if rows.components is None:
        return np.empty(0)
    labelled = np.flatnonzero(rows.components >= 0)
    losses = -rows.log_posterior[labelled, rows.components[labelled]]
    return np.nan_to_num(losses, nan=np.inf, posinf=np.inf, neginf=-np.inf)


@dataclass(frozen=True)
class _NumbersOf:
    """The numbers of a column."""

    position: int

    def __call__(self, rows: TableRows) -> Array:
        cells = cells_of(rows.batch, self.position)
        return np.where(np.isnan(cells), -np.inf, cells)


@dataclass(frozen=True)
class _PlacesOf:
    """The place of each cell among the categories of its column, from the rarest under the model."""

    position: int
    place: Array  # (K + 1,): by code; −∞ for a missing or unseen category

    @classmethod
    def under(cls, estimator: Classifier, position: int) -> _PlacesOf:
        codes = np.arange(1.0, len(estimator.schema_.columns[position].categories) + 1.0)
        order = np.argsort(Feature.of(estimator, position).log_density(codes), kind="stable")
        place = np.full(len(codes) + 1, -np.inf)
        place[order + 1] = np.arange(len(codes))
        return cls(position, place)

    def __call__(self, rows: TableRows) -> Array:
        cells = cells_of(rows.batch, self.position)
        places: Array = self.place[np.nan_to_num(cells).astype(np.intp)]
        return places
