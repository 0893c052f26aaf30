"""Streams of scores of rows: log p(x), the log-loss of labels, and the cells of each column."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from posteriori.classifiers.estimator import Estimator, OfClasses
from posteriori.fitting.label_parameters import labels_to_learn
from posteriori.plotting.reading import Feature, cells_of
from posteriori.reading import read_labels, read_table
from posteriori.reading.known_columns import KnownColumns
from posteriori.registry import Subject
from posteriori.regression.rows import numbers_of
from posteriori.support.checks import require
from posteriori.support.formatting import exponential, percent
from posteriori.support.typing import Array
from posteriori.tables import Batch, Table
from posteriori.tables.batch import joined
from posteriori.tables.rows import take_rows
from posteriori.watching.evidence import Martingale

ROWS, LABELS, COLUMN = "rows", "labels", "column"
_MOST_ROWS = 100_000  # of a batch; more are sampled
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
_CHANGED = dict.fromkeys(_CATEGORIES, "its categories have other shares than before")


@dataclass(frozen=True)
class WatchedRows:
    """The rows of a table as a model of any subject reads them."""

    n_rows: int  # of the whole table
    batch: Batch  # the rows, or a random sample of them
    log_evidence: Array | None  # (n,): log p(x) in nats; None if the model has none
    losses: Array  # −log p(truth | x) in nats of the rows whose class or number is known
    errors: Array  # of these rows: 1 where another class is predicted, else 0; or |E[y | x] − y|

    def __len__(self) -> int:
        return len(self.batch)

    @classmethod
    def of(cls, model: Any, X: Any, y: Any = None) -> WatchedRows:
        """Read a table; y is the labels, the name of their column, or None.

        Raises
        ------
        ValueError
            The table has no rows, or a label is not one of the classes.
        """
        table = read_table(X, KnownColumns.of_model(model.schema_, model.target_))
        n_rows = table.n_rows
        truth = None if y is None else _truth(model, y, table)
        if n_rows > _MOST_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(n_rows, _MOST_ROWS, replace=False))
            X, truth = take_rows(X, chosen), None if truth is None else truth[chosen]
        with warnings.catch_warnings():  # of unseen categories and impossible rows, which the streams show
            warnings.simplefilter("ignore", UserWarning)
            batch = joined(list(model._source(X).stream(lambda part: part))).with_schema(model.schema_)
            log_evidence = np.asarray(model.score_samples(X)) if has_evidence(model) else None
            losses, errors = (np.empty(0), np.empty(0)) if truth is None else _judged(model, X, truth)
        return cls(n_rows, batch, log_evidence, losses, errors)


def has_evidence(model: Any) -> bool:
    """Return whether a model has log p(x)."""
    posterior = getattr(model, "_posterior", None)
    return hasattr(model, "score_samples") if posterior is None else bool(posterior.has_density)


def _truth(model: Estimator, y: Any, table: Table) -> Array:
    """Return the index of the class of each row, −1 without label; or its number, NaN without."""
    labels = read_labels(y, table)
    if model.subject is Subject.NUMBER:
        return numbers_of(labels, may_miss=True)
    components: Array = labels_to_learn(labels, "learn", True, True).components(model.target_, slice(0, table.n_rows))
    return components


def _judged(model: Any, X: Any, truth: Array) -> tuple[Array, Array]:
    """Return `losses` and `errors` of the rows that have a truth; the loss is ∞ if no class can produce the row."""
    if model.subject is Subject.NUMBER:
        answer, known = model.answer(X), ~np.isnan(truth)
        log_probability, errors = answer.log_prob(truth), np.abs(answer.density.mean - truth)
    else:
        known, of_classes = truth >= 0, model.predict_log_proba(X)
        log_probability = of_classes[np.arange(len(truth)), truth]
        errors = (model.predict(X) != model.classes_[truth]).astype(np.float64)
    losses = np.nan_to_num(-log_probability[known], nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return np.asarray(losses), np.asarray(errors[known])


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

    def change(self, before: Stream, scores: Array, categories: tuple[Any, ...] | None, ranked: bool = True) -> str:
        """Return how the scores of a batch differ from those before, as a sentence.

        `categories` are those of the column in the order of their places, None of another stream; `ranked` is whether
        that is the order of their probability.
        """
        evidence = f"(evidence {exponential(self.evidence.log_e, 2)})"
        if self.kind != COLUMN:
            return f"{_IN_WORDS[self.kind][self.evidence.direction]} {evidence}"
        how = (_NUMBERS if categories is None else _CATEGORIES if ranked else _CHANGED)[self.evidence.direction]
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

    of: dict[tuple[str, str | None], Callable[[WatchedRows], Array]]
    categories: dict[str | None, tuple[Any, ...]]  # of categorical columns, in the order of their places
    ranked: bool  # whether the places are in the order of the probability of categories

    @classmethod
    def under(cls, estimator: Estimator, with_labels: bool) -> Scores:
        """Choose what to score: log p(x) if the model has one, labels if they are known, and modelled columns.

        A number is its own score: ranks see shifts to both sides. The score of a category is its place by probability
        under the model, so that equal probabilities do not hide a change; of a model without p(column), that in the
        order of their names. Columns of counts and of text are seen by log p(x) alone.
        """
        found: dict[tuple[str, str | None], Callable[[WatchedRows], Array]] = {}
        if has_evidence(estimator):
            found[ROWS, None] = _log_densities
        if with_labels:
            found[LABELS, None] = lambda rows: rows.losses
        categories: dict[str | None, tuple[Any, ...]] = {}
        for j in estimator.schema_.modelled:
            column = estimator.schema_.columns[j]
            if column.kind == "continuous":
                found[COLUMN, column.name] = _NumbersOf(int(j))
            elif column.kind == "categorical" and column.categories:
                places = found[COLUMN, column.name] = _PlacesOf.under(estimator, int(j))
                categories[column.name] = tuple(column.categories[k] for k in np.argsort(places.place[1:]))
        return cls(found, categories, hasattr(estimator, "_posterior"))

    def levels(self, false_alarms: float) -> dict[tuple[str, str | None], float]:
        """Split the probability of false alarms evenly over rows, labels and columns, and over the columns."""
        kinds = [kind for kind, _ in self.of]
        return {key: false_alarms / len(set(kinds)) / kinds.count(key[0]) for key in self.of}


def _log_densities(rows: WatchedRows) -> Array:
    assert rows.log_evidence is not None  # the model has a density
    return np.nan_to_num(rows.log_evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)


@dataclass(frozen=True)
class _NumbersOf:
    """The numbers of a column."""

    position: int

    def __call__(self, rows: WatchedRows) -> Array:
        cells = cells_of(rows.batch, self.position)
        return np.where(np.isnan(cells), -np.inf, cells)


@dataclass(frozen=True)
class _PlacesOf:
    """The place of each cell among the categories of its column, from the rarest under the model."""

    position: int
    place: Array  # (K + 1,): by code; −∞ for a missing or unseen category

    @classmethod
    def under(cls, estimator: Estimator, position: int) -> _PlacesOf:
        codes = np.arange(1.0, len(estimator.schema_.columns[position].categories) + 1.0)
        order = np.arange(len(codes))
        if hasattr(estimator, "_posterior"):
            order = np.argsort(Feature.of(cast(OfClasses, estimator), position).log_density(codes), kind="stable")
        place = np.full(len(codes) + 1, -np.inf)
        place[order + 1] = np.arange(len(codes))
        return cls(position, place)

    def __call__(self, rows: WatchedRows) -> Array:
        cells = cells_of(rows.batch, self.position)
        places: Array = self.place[np.nan_to_num(cells).astype(np.intp)]
        return places
