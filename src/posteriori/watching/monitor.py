"""Monitor: whether the model of a classifier still holds for the rows of each new batch."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.estimator import Estimator
from posteriori.classifiers.training_record import share_of_seen_rows
from posteriori.reading import read_table
from posteriori.reading.matching import without_unused
from posteriori.registry import Subject
from posteriori.reporting.data import target_of
from posteriori.reporting.markup import HtmlPage
from posteriori.support.formatting import listed, number, plural
from posteriori.tables import quote
from posteriori.tables.messages import UnseenCategoryError
from posteriori.user_warnings import warn
from posteriori.watching.evidence import FEWEST, Martingale
from posteriori.watching.history import history_page
from posteriori.watching.state import BatchFacts, State, read_state, write_state
from posteriori.watching.streams import LABELS, Scores, Stream, WatchedRows

_SEEN = 0.5  # share of training rows in a reference from which there is a warning


@dataclass(frozen=True)
class BatchVerdict:
    """Verdict of a `Monitor` on a batch.

    Attributes
    ----------
    batch : int
        Its number, from 1.
    n_rows : int
    n_labelled : int
        Rows whose label was compared with the prediction.
    evidence : dict
        log E by the name of the stream: ``"log p(x)"``, ``"log-loss"`` and ``"column 'NAME'"``.
    alarms : tuple of str
        The streams whose evidence reached the limit with this batch.
    standing : tuple of str
        The streams that have given an alarm, now or with an earlier batch.
    columns : tuple of str
        The names of the columns among these.
    sentences : tuple of str
    """

    batch: int
    n_rows: int
    n_labelled: int
    evidence: dict[str, float]
    alarms: tuple[str, ...]
    standing: tuple[str, ...]
    columns: tuple[str, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences)


class Monitor:
    r"""Watches a model in use: takes batches of new rows, and says when its model no longer holds.

    Each batch is compared with reference rows and with all earlier batches, in streams: log p(x) of the rows, the
    log-loss of the labels or numbers where they are known, and the cells of each column, so that an alarm names the
    column. The evidence of a stream is a test martingale :math:`E` (`posteriori.watching.evidence`): as long as the
    rows are exchangeable, :math:`P(\sup_k E_k \ge 1/\alpha) \le \alpha` over any number of batches. `false_alarms` is
    the sum of the :math:`\alpha` of all streams: a third each for log p(x), labels, and all columns together.

    Parameters
    ----------
    model : fitted classifier, regressor, mixture or joint model
    reference : table
        Rows from when the model held that it has **not** learned from: log p(x) of training rows is too large. At least
        20; changes are found as surely as with two samples, so some hundreds are better.
    y : labels or str, optional
        The labels of the reference rows, or the name of their column. Default: the target of the model, if the
        reference has it. Without labels, those of batches are not watched.
    false_alarms : float, default 0.01
        The probability that there is ever an alarm although nothing changes.
    seed : int, default 0
        For the random numbers that break ties.

    Attributes
    ----------
    model : classifier
    n_batches : int
    alarms : dict
        The first batch of the alarm, by the name of the stream.
    history : tuple
        Rows, labels and log E of each batch.

    Raises
    ------
    ValueError
        The reference has fewer than 20 rows, or lacks columns of the model; `false_alarms` is not between 0 and 1.
    TypeError
        The model is a network, or none of this library.

    Notes
    -----
    An alarm stands. After it, find out what changed; then fit again, and start a new monitor with new reference rows.
    Rows within a batch may come in any order only if they are exchangeable: rows that repeat or depend on each other,
    such as those of one customer, make alarms too frequent. Of more than 100,000 rows in a batch, so many are sampled.

    Examples
    --------
    >>> import numpy as np, posteriori as po
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=900)
    >>> X = rng.normal(size=(900, 2)) + 2.0 * y[:, None]
    >>> model = po.NaiveBayes().fit(X[:300], y[:300])
    >>> monitor = po.Monitor(model, X[300:600], y[300:600])
    >>> print(monitor.update(X[600:700], y[600:700]))
    batch 1: 100 rows, 100 with labels; nothing changed
    >>> print(monitor.update(X[700:] + [0.0, 5.0]))
    batch 2: 200 rows; alarm
    rows are less probable than before: log p(x) is smaller (evidence 1.2e+43)
    column 'x1' changed: numbers are larger than before (evidence 2.5e+42)
    """

    def __init__(
        self, model: Estimator, reference: Any = None, y: Any = None, *, false_alarms: float = 0.01, seed: int = 0
    ) -> None:
        _check_model(model)
        if reference is None:
            raise ValueError(
                "Monitor needs reference=, rows from when the model held that it has not learned from; give a table"
            )
        if not 0.0 < false_alarms < 1.0:
            raise ValueError(f"false_alarms is {false_alarms!r}; give a probability between 0 and 1, such as 0.01")
        rows = _read(model, reference, y, "the reference")
        losses = rows.losses
        for n, what in ((len(rows), "rows"), (len(losses), "rows with labels")):
            if n < FEWEST and (n or what == "rows"):
                raise ValueError(f"the reference has {n} {what}; give at least {FEWEST}, better some hundreds")
        if (share := share_of_seen_rows(model, reference) or 0.0) > _SEEN:
            warn(
                f"about {share:.0%} of the reference rows are among those that the model was trained on, whose log "
                "p(x) is too large; give other rows, or new rows will seem strange"
            )
        self.model = model
        self._scores = Scores.under(model, len(losses) > 0)
        rng = np.random.default_rng([seed, 0])
        levels = self._scores.levels(false_alarms)
        streams = [Stream(*key, Martingale.of(of(rows), rng), levels[key]) for key, of in self._scores.of.items()]
        self._state = State(seed, false_alarms, tuple(streams), (BatchFacts.of(rows, [0.0] * len(streams)),))

    @property
    def n_batches(self) -> int:
        """Number of batches so far."""
        return len(self.history)

    @property
    def alarms(self) -> dict[str, int]:
        """The first batch of the alarm, by the name of the stream."""
        return {one.name: one.alarm for one in self._state.streams if one.alarm is not None}

    @property
    def history(self) -> tuple[BatchFacts, ...]:
        """Rows, labels and log E of each batch."""
        return self._state.history[1:]

    def update(self, X: Any, y: Any = None) -> BatchVerdict:
        """Take the rows of a batch, and return what they say.

        Parameters
        ----------
        X : table
            With the columns of the model.
        y : labels or str, optional
            The labels, or the name of their column; some may be missing. Default: the target of the model, if X has it.

        Returns
        -------
        BatchVerdict

        Raises
        ------
        ValueError
            The batch has no rows or lacks columns, or a label is not one of the classes.
        """
        rows = _read(self.model, X, y, "the batch")
        before = self._state
        place = len(before.history)
        rng = np.random.default_rng([before.seed, place])
        scores = [self._scores.of[one.kind, one.column](rows) for one in before.streams]
        streams = [one.after(some, place, rng) for one, some in zip(before.streams, scores, strict=True)]
        facts = BatchFacts.of(rows, [one.evidence.log_e for one in streams])
        self._state = replace(before, streams=tuple(streams), history=(*before.history, facts))
        changes = {
            one.name: one.change(past, some, self._scores.categories.get(one.column), self._scores.ranked)
            for past, one, some in zip(before.streams, streams, scores, strict=True)
            if one.alarm == place
        }
        return self._verdict(facts, changes)

    def _verdict(self, facts: BatchFacts, changes: dict[str, str]) -> BatchVerdict:
        """Return the verdict on the last batch; `changes` are the sentences of its alarms by stream."""
        streams, alarms = self._state.streams, self.alarms
        watched = any(one.kind == LABELS for one in streams)
        earlier = [f"{name} (batch {batch})" for name, batch in alarms.items() if name not in changes]
        quiet = f"no new alarm; those of {listed(earlier)} stand" if earlier else "nothing changed"
        labels = f", {facts.n_labelled:,} with labels" if facts.n_labelled and watched else ""
        first = (
            f"batch {self.n_batches}: {plural(facts.n_rows, 'row')}{labels}; {self._alarm(facts) if changes else quiet}"
        )
        unwatched = "the labels are not watched, because the reference rows have none"
        return BatchVerdict(
            batch=self.n_batches,
            n_rows=facts.n_rows,
            n_labelled=facts.n_labelled if watched else 0,
            evidence=dict(zip((one.name for one in streams), facts.log_e, strict=True)),
            alarms=tuple(changes),
            standing=tuple(alarms),
            columns=tuple(one.column for one in streams if one.column is not None and one.alarm is not None),
            sentences=(first, *changes.values(), *([unwatched] if facts.n_labelled and not watched else [])),
        )

    def _alarm(self, facts: BatchFacts) -> str:
        """Return the word alarm, with the errors now and before the first alarm where labels are known."""
        earlier = [one for one in self._state.history[: min(self.alarms.values())] if one.error is not None]
        if facts.error is None or not earlier:
            return "alarm"
        before = float(np.average([one.error for one in earlier], weights=[one.n_labelled for one in earlier]))
        if self.model.subject is Subject.NUMBER:
            return f"alarm: it is now wrong by {number(facts.error, 3)} on average; {number(before, 3)} before"
        right, right_before = (round(100.0 * (1.0 - error)) for error in (facts.error, before))
        return f"alarm: of 100 rows it now predicts {right} right; {right_before} before"

    def page(self, title: str | None = None) -> HtmlPage:
        """Return the history as a page: the evidence of each stream, batch by batch."""
        return history_page(self._state, title or f"{type(self.model).__name__}, watched", repr(self.model))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what the monitor has counted to a file, atomically; `load` continues from it.

        The file holds no rows: counts of scores in bins, the evidence, and the history.
        """
        write_state(Path(path), self._state, self.model)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Estimator) -> Monitor:
        """Continue from a file, with the same model.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            The file is no state of a monitor, is damaged, or is that of another model.
        """
        _check_model(model)
        monitor = cls.__new__(cls)
        monitor.model = model
        monitor._state = read_state(Path(path), model)
        monitor._scores = Scores.under(model, any(one.kind == LABELS for one in monitor._state.streams))
        if [(one.kind, one.column) for one in monitor._state.streams] != list(monitor._scores.of):
            raise ValueError(f"{str(path)!r} watches other columns than the model has; start again with a reference")
        return monitor

    def __repr__(self) -> str:
        state = self._state
        given = f"false_alarms={state.false_alarms:g}"
        return f"Monitor({type(self.model).__name__}, {given}, batches={self.n_batches}, alarms={len(self.alarms)})"


def _check_model(model: Any) -> None:
    """Raise TypeError unless a model is fitted, and of this library."""
    if getattr(model, "subject", Subject.VARIABLES) is Subject.VARIABLES:
        raise TypeError(f"a {type(model).__name__} cannot be watched; give a classifier, regressor or joint model")
    check_is_fitted(model)


def _read(model: Estimator, X: Any, y: Any, what: str) -> WatchedRows:
    """Read the rows of a table; its labels are those of the target of the model if it has them."""
    schema = model.schema_
    if schema.named:
        names = read_table(X).names
        absent = [name for name in schema.given if name not in names and name != schema.target]
        if used := without_unused(absent, schema):
            raise ValueError(f"{what} lacks {quote(used)}, which the model needs; add them, or watch another model")
    try:
        return WatchedRows.of(model, X, target_of(model, X) if y is None else y)
    except UnseenCategoryError as error:
        raise ValueError(f"{error}; fit a model that knows this class, or leave out these labels") from None
