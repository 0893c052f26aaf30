"""Predictions of more rows than fit into memory, written to a file as they are made."""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from errno import EIO
from functools import partial
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event
from typing import IO, Any

import numpy as np

from posteriori import kernels
from posteriori.model.answer import Answer, Categories, Meaning
from posteriori.model.number_cells import NumberCells
from posteriori.reading import Scan
from posteriori.reading.dialects import SEPARATORS
from posteriori.reading.scanning import format_of
from posteriori.scoring.decisions import Decision
from posteriori.scoring.fitted import FittedPosterior, most_probable, warn_of_impossible
from posteriori.scoring.out_of_range import OutOfRange, sentences_outside
from posteriori.scoring.prediction_sets import sets_within
from posteriori.scoring.strangeness import Strangeness
from posteriori.sources import LabelledSource
from posteriori.sources.table_source import ComposedSource, warn_of_unseen
from posteriori.statistics import ColumnRanges
from posteriori.support.atomic_write import atomic_write
from posteriori.support.lazy_polars import pl
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.formulas import without_formulas
from posteriori.tables.polars import require_threads
from posteriori.tables.writing import csv_text, label_series, text_of_label
from posteriori.user_warnings import warn

_HANDED = 4  # frames that wait to be written
INTERVAL = {"prediction_low": 0.05, "prediction_high": 0.95}  # the central 90 % interval
_PATIENCE = 0.1  # seconds until one thread asks whether the other has ended


@dataclass(frozen=True)
class ResultColumns:
    """The columns of predictions beside the predicted class."""

    proba: bool = False  # p(y | x) of each class
    # of numbers and ordered classes: quantiles by the names of their columns
    levels: Mapping[str, float] = field(default_factory=lambda: INTERVAL)
    strangeness: bool = False  # log p(x) and its rank among rows drawn from the model (`Strangeness`)
    decision: Decision | None = None  # the rule that predicts; default the most probable class
    limit: Array | None = None  # (C,): 1 − p(y | x) up to which a class is in the set of a row


_CLASS_ONLY = ResultColumns()


@dataclass(frozen=True)
class Part:
    """The predictions of a batch, and what warnings need."""

    frame: pl.DataFrame
    unseen: dict[str, int]  # categories
    impossible: Sequence[int] = ()  # rows that no class can produce
    outside: OutOfRange | None = None  # numbers outside of the training rows


@dataclass(frozen=True)
class RowPredictor:
    """A function from rows to columns of predictions, for any target."""

    columns: Sequence[str]  # the names of the results
    source: Callable[[Any], LabelledSource]
    predicted: Callable[[Batch], Part]
    schema: Schema
    ranges: ColumnRanges | None = None
    classes: str = "class"  # the kind that may be unable to produce a row

    @classmethod
    def of_classes(cls, fitted: FittedPosterior, wanted: ResultColumns = _CLASS_ONLY) -> RowPredictor:
        """Return the predictor of classes."""
        columns = ["prediction", *(map(probability_column, fitted.labels) if wanted.proba else ())]
        columns += ["median", *wanted.levels] if fitted.meaning.is_ordered else []
        columns += ["set", "set_size"] if wanted.limit is not None else []
        columns += ["log_density", "strangeness"] if wanted.strangeness else []
        of_batch = _of_batch(fitted, wanted)
        classes = "component" if fitted.is_mixture else "class"
        return cls(columns, fitted.source, of_batch, fitted.schema, fitted.ranges, classes)

    @classmethod
    def of_answers(
        cls,
        answer: Callable[[Batch], Answer],
        meaning: Meaning,
        source: Callable[[Any], LabelledSource],
        schema: Schema,
        ranges: ColumnRanges | None,
        wanted: ResultColumns,
    ) -> RowPredictor:
        """Return the predictor of a column by the answers about each batch: a number, or one of categories."""
        if isinstance(meaning, NumberCells):
            columns, labels = ["prediction", *wanted.levels], []
        else:
            labels = list(meaning.labels)
            columns = ["prediction", *(map(probability_column, labels) if wanted.proba else ())]
            columns += ["median", *wanted.levels] if meaning.is_ordered else []
        decision = wanted.decision
        classes = label_series("prediction", labels if decision is None else decision.labels(labels))

        def predicted(batch: Batch) -> Part:
            of_rows = answer(batch)
            if of_rows.is_number:
                quantiles = of_rows.density.quantile(list(wanted.levels.values())).T
                cells: list[Any] = [of_rows.density.mean, *quantiles]
            else:
                p = of_rows.probability
                chosen = p.argmax(axis=1) if decision is None else decision.choose(p)
                cells = [classes.gather(chosen), *(p.T if wanted.proba else ())]
                if isinstance(meaning, Categories) and meaning.is_ordered:
                    level = of_rows.density.quantile([0.5, *wanted.levels.values()])
                    cells += [label_series("level", labels).gather(one.astype(np.int64)) for one in level.T]
            frame = pl.DataFrame([pl.Series(name, column) for name, column in zip(columns, cells, strict=True)])
            return Part(frame, batch.unseen, outside=None if ranges is None else OutOfRange.of(batch, ranges))

        return cls(columns, source, predicted, schema, ranges)

    def with_outside(self) -> RowPredictor:
        """Return the predictor with a column that names the cells outside of the range of the training rows.

        Raises
        ------
        ValueError
            The model does not know the ranges.
        """
        ranges = self.ranges
        if ranges is None:
            raise ValueError("this model does not know the ranges of its training rows; fit it again")

        def predicted(batch: Batch) -> Part:
            part = self.predicted(batch)
            texts = pl.Series("outside", sentences_outside(batch, ranges), pl.String)
            return replace(part, frame=part.frame.with_columns(texts))

        return replace(self, columns=[*self.columns, "outside"], predicted=predicted)


def write_predictions(
    predictor: RowPredictor,
    X: Any,
    path: str | os.PathLike[str],
    beside: Scan | None = None,
    escape_formulas: bool = False,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the prediction for every row to a file, and return the number of rows; see `posteriori.predict_to`."""
    require_threads("writing files")
    path = Path(path)
    kind = format_of(path)
    if kind == "excel":
        raise ValueError(f"{str(path)!r} is a spreadsheet, which is not written; write .csv or .parquet")
    if path.suffix.lower() == ".zst":
        raise ValueError(f"{str(path)!r} would have to be packed by zstd; write .gz or .parquet")
    if isinstance(X, Scan) and any(path.exists() and path.samefile(one) for one in X.paths if one.exists()):
        raise ValueError(f"the output would overwrite {str(path)!r}, which is read; name another file")
    if escape_formulas and kind not in SEPARATORS:
        raise ValueError(f"escape_formulas is for CSV and TSV files, which {str(path)!r} is not; leave it out")
    frames = predictions(predictor, X, beside, progress)
    written = without_formulas(frames, escape_formulas) if kind in SEPARATORS else frames
    n_rows = 0

    def counted() -> Iterator[pl.DataFrame]:
        nonlocal n_rows
        for frame in written:
            n_rows += frame.height
            yield frame

    with atomic_write(path) as position, closing(frames):
        if kind in ("parquet", "arrow"):
            write: Callable[..., None] = partial(_write_columns, position=position, kind=kind)
        else:
            write = partial(_write_text, position=position, kind=kind, packed=path.suffix.lower() == ".gz")
        _hand_over(counted(), write)
    return n_rows


def predictions(
    predictor: RowPredictor,
    X: Any,
    beside: Scan | None = None,
    progress: Callable[[int], None] | None = None,
    warned: set[str] | None = None,
) -> Generator[pl.DataFrame, None, None]:
    """Yield the predictions for all rows, in order, some at a time; warn at the end of unseen and impossible rows.

    The arguments are those of `write_predictions`; the columns of `beside` come first. What is in `warned` was warned
    of before: it is not again, and what is warned of now is added.

    Raises
    ------
    ValueError
        A column of the table that is wanted has the name of a result.
    """
    _check_names(predictor, beside)
    source = predictor.source(X).with_progress(progress)
    unseen: Counter[str] = Counter()
    outside: OutOfRange | None = None
    impossible: list[int] = []
    n_impossible = 0
    with closing(source.stream(predictor.predicted)) as parts, closing(_Beside(beside)) as first:
        for part in parts:
            unseen.update(part.unseen)
            outside = part.outside if outside is None or part.outside is None else outside + part.outside
            impossible.extend(part.impossible[: 1 - len(impossible)])
            n_impossible += len(part.impossible)
            yield first.with_table_columns(part.frame)
    warned = set() if warned is None else warned
    if new := {name: count for name, count in unseen.items() if f"unseen {name}" not in warned}:
        warned.update(f"unseen {name}" for name in new)
        warn_of_unseen(new, source.reader.misspelt(new) if isinstance(source, ComposedSource) else {})
    ranges = predictor.ranges
    sentence = "" if outside is None or ranges is None else outside.sentence(predictor.schema, ranges)
    if sentence and "outside" not in warned:
        warned.add("outside")
        warn(sentence)
    if n_impossible and "impossible" not in warned:
        warned.add("impossible")
        warn_of_impossible(impossible[0], n_impossible, of=predictor.classes)


def _of_batch(fitted: FittedPosterior, wanted: ResultColumns) -> Callable[[Batch], Part]:
    decision = wanted.decision
    classes = label_series("prediction", fitted.labels if decision is None else decision.labels(fitted.labels))
    names = [probability_column(label) for label in fitted.labels] if wanted.proba else []
    fallback, scores_of = fitted.fallback, fitted.posterior.scores
    meaning, order = fitted.meaning, np.array(fitted.target.order, np.int64)
    labels = label_series("level", fitted.labels)
    strangeness = Strangeness.of(fitted.posterior) if wanted.strangeness else None

    def predicted(batch: Batch) -> Part:
        scores = scores_of(batch)
        best = most_probable(scores)
        undefined = best < 0
        rows = [batch.number(i) for i in np.flatnonzero(undefined).tolist()]
        chosen = np.where(undefined, fallback, best)
        if wanted.decision is not None or wanted.proba or wanted.limit is not None or meaning.is_ordered:
            kernels.normalise(scores)
        if wanted.decision is not None:
            prior = np.exp(fitted.posterior.models[0].class_log_prior)
            chosen = wanted.decision.choose(np.where(undefined[:, np.newaxis], prior, scores))
        columns = [classes.gather(chosen)]
        columns += [pl.Series(name, scores[:, position]) for position, name in enumerate(names)]
        if meaning.is_ordered:
            filled = np.where(undefined[:, np.newaxis], np.exp(fitted.posterior.class_log_prior), scores)
            level = Answer("level", meaning, filled[:, order]).density.quantile([0.5, *wanted.levels.values()])
            for name, of_rows in zip(("median", *wanted.levels), level.T, strict=True):
                columns.append(labels.gather(order[of_rows.astype(np.int64)]).alias(name))
        if wanted.limit is not None:
            columns += _sets(fitted, scores, wanted.limit)
        if strangeness is not None:
            log_density = strangeness.log_density(batch)
            columns.append(pl.Series("log_density", log_density))
            columns.append(pl.Series("strangeness", strangeness.ranks(batch, log_density)))
        outside = None if fitted.ranges is None else OutOfRange.of(batch, fitted.ranges)
        return Part(pl.DataFrame(columns), batch.unseen, rows, outside)

    return predicted


def _sets(fitted: FittedPosterior, posterior: Array, limit: Array) -> list[pl.Series]:
    """Return the set of classes of each row, the most probable one first, and its size.

    A class with a bar in its name stands in quotes, which are doubled within it, as in CSV.
    """
    included, order = sets_within(posterior, "probability", limit), np.argsort(-posterior, axis=1, kind="stable")
    texts = [text_of_label(label) for label in fitted.labels]
    names = ['"' + one.replace('"', '""') + '"' if "|" in one or one[:1] == '"' else one for one in texts]
    rows = zip(order.tolist(), included.tolist(), strict=True)
    sets = ["|".join(names[k] for k in ranked if inside[k]) for ranked, inside in rows]
    return [pl.Series("set", sets, pl.String), pl.Series("set_size", included.sum(axis=1), pl.Int64)]


def columns_beside(X: Any, names: Sequence[str]) -> Scan | None:
    """Return the columns of a scan that are to be written before the predictions; None for no names.

    Raises
    ------
    ValueError
        The table is not a `Scan`, or lacks a column.
    """
    if not names:
        return None
    if not isinstance(X, Scan):
        raise ValueError("columns beside the predictions are read from files: pass a posteriori.scan of the rows")
    absent = [name for name in names if name not in X.names]
    if absent:
        raise ValueError(f"the table has no column {absent[0]!r}; {closest(absent[0], X.names, 'columns')}")
    return X.narrowed(names)


def _check_names(predictor: RowPredictor, beside: Scan | None) -> None:
    taken = [name for name in (beside.names if beside is not None else ()) if name in predictor.columns]
    if taken:
        raise ValueError(f"the table has a column {taken[0]!r}, which is the name of a result too; leave it out")


class _Beside:
    """Columns of a scan, which a second pass reads part by part beside the predictions."""

    def __init__(self, scan: Scan | None) -> None:
        self._frames = None if scan is None else scan.frames(scan.names)
        self._left = pl.DataFrame()

    def with_table_columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a frame of the next rows with the columns of the table before it."""
        if self._frames is None:
            return frame
        while self._left.height < frame.height:
            following = next(self._frames)
            self._left = pl.concat([self._left, following]) if self._left.height else following
        rows, self._left = self._left[: frame.height], self._left[frame.height :]
        return pl.concat([rows, frame], how="horizontal")

    def close(self) -> None:
        if self._frames is not None:
            self._frames.close()  # type: ignore[attr-defined]  # a generator


def probability_column(label: Any) -> str:
    """Return the name of the column of the probability of a class."""
    return f"p_{text_of_label(label)}"


def _hand_over(frames: Iterator[pl.DataFrame], write: Callable[[Iterator[pl.DataFrame]], None]) -> None:
    """Have another thread write frames while this one makes them: an error, or Ctrl-C, of either ends both."""
    handed: Queue[pl.DataFrame | None] = Queue(_HANDED)
    ended = Event()

    def received() -> Iterator[pl.DataFrame]:
        while True:
            if ended.is_set():
                raise _Abandoned
            with suppress(Empty):
                frame = handed.get(timeout=_PATIENCE)
                if frame is None:
                    return
                yield frame

    def hand(frame: pl.DataFrame | None) -> bool:
        while not writing.done():
            with suppress(Full):
                handed.put(frame, timeout=_PATIENCE)
                return True
        return False

    thread = ThreadPoolExecutor(1)
    try:
        writing = thread.submit(write, received())
        if all(map(hand, frames)):
            hand(None)
        writing.result()
    finally:
        ended.set()
        thread.shutdown()


class _Abandoned(Exception):
    """Those who make the frames have stopped: what is written is not whole."""


def _write_text(frames: Iterator[pl.DataFrame], position: Path, kind: str, packed: bool) -> None:
    opened: Callable[..., IO[bytes]] = gzip.open if packed else open  # type: ignore[assignment]
    with opened(position, "wb") as handle:
        for number, frame in enumerate(frames):
            text = frame.write_ndjson() if kind == "ndjson" else csv_text(frame, SEPARATORS[kind], header=not number)
            handle.write(text.encode())


def _write_columns(frames: Iterator[pl.DataFrame], position: Path, kind: str) -> None:
    """Write frames to a file of columns, which polars asks for one after the other."""
    from polars.io.plugins import register_io_source

    first = next(frames)

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del with_columns, predicate, n_rows, batch_size  # a sink takes all columns and all rows
        yield first
        yield from frames

    table = register_io_source(read, schema=first.schema)
    try:
        if kind == "parquet":
            table.sink_parquet(position, maintain_order=True)
        else:
            table.sink_ipc(position, maintain_order=True)
    except (OSError, pl.exceptions.PolarsError) as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else getattr(error, "errno", None) or EIO
        raise OSError(code, os.strerror(code)) from None
