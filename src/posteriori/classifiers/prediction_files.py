"""Predictions of more rows than fit into memory, written to a file as they are made."""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from errno import EIO
from functools import partial
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event
from typing import IO, Any

import numpy as np
import polars as pl

from posteriori import kernels
from posteriori.atomic_write import atomic_write
from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.generative_classifier import GenerativeClassifier
from posteriori.classifiers.mixture import MixtureModel
from posteriori.classifiers.predicting import most_probable
from posteriori.classifiers.table_classifier import warn_of_impossible
from posteriori.model import GenerativeModel
from posteriori.sources.table_source import warn_of_unseen
from posteriori.tables import Batch, Scan
from posteriori.tables.forking import require_threads
from posteriori.tables.scanning import format_of
from posteriori.tables.text import SEPARATORS
from posteriori.typing import Array

_HANDED = 4  # frames that wait to be written
_PATIENCE = 0.1  # seconds after which one thread checks whether the other has ended


def predict_to(
    estimator: Any,
    X: Any,
    path: str | os.PathLike[str],
    proba: bool = False,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the prediction of every row, in order, to a file; memory does not grow with the number of rows.

    Parameters
    ----------
    estimator : fitted classifier or MixtureModel
        Classifiers of `posteriori.drop_in` are not supported.
    X : Scan, or anything that `predict` takes
    path : path
        The suffix sets the format: ``.parquet``, ``.arrow``, ``.csv``, ``.tsv`` or ``.ndjson``, for text also ``.gz``.
        The file gets this name only when all rows are written: after an error, an earlier file of this name remains.
    proba : bool, default False
        Whether to write p(y | x) of each class as well.
    progress : callable, optional
        Called with the number of rows of each batch.

    Returns
    -------
    int
        Number of rows written. The columns are prediction, and p_CLASS of each class if `proba`.

    Raises
    ------
    OSError
        The folder does not exist, the path is a folder, or writing fails; the error names the path.
    ValueError
        The suffix is unknown, or the path is one of the files that are read.
    RuntimeError
        The process was forked after polars started its threads.

    Examples
    --------
    >>> import os, tempfile, polars as pl, posteriori as po
    >>> rows = pl.DataFrame({"height": [1.0, 2.0, 8.0, 9.0], "y": ["low", "low", "high", "high"]})
    >>> folder = tempfile.mkdtemp()
    >>> rows.write_parquet(os.path.join(folder, "rows.parquet"))
    >>> model = po.NaiveBayes().fit(rows, "y")
    >>> out = os.path.join(folder, "out.csv")
    >>> po.predict_to(model, po.scan(os.path.join(folder, "rows.parquet")), out)
    4
    >>> pl.read_csv(out)["prediction"].to_list()
    ['low', 'low', 'high', 'high']
    """
    if not isinstance(estimator, GenerativeEstimator | MixtureModel | GenerativeClassifier):
        raise TypeError(f"{type(estimator).__name__} writes no files; use a classifier of posteriori, or its predict")
    require_threads("writing files")
    path = Path(path)
    kind = format_of(path)
    if path.suffix.lower() == ".zst":
        raise ValueError(f"{str(path)!r} would have to be packed by zstd; write .gz or .parquet")
    if isinstance(X, Scan) and any(path.exists() and path.samefile(one) for one in X.paths if one.exists()):
        raise ValueError(f"the output would overwrite {str(path)!r}, which is read; name another file")
    frames = predictions(estimator, X, proba, progress)
    n_rows = 0

    def counted() -> Iterator[pl.DataFrame]:
        nonlocal n_rows
        for frame in frames:
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
    estimator: Any, X: Any, proba: bool = False, progress: Callable[[int], None] | None = None
) -> Generator[pl.DataFrame, None, None]:
    """Yield the predictions of all rows in order, part by part.

    After the last row, warn of unseen categories and of rows that no class can produce.

    The arguments are those of `predict_to`.
    """
    source = estimator._source(X).with_progress(progress)
    mixture = isinstance(estimator, MixtureModel)
    labels = range(estimator.model_.n_components) if mixture else estimator.classes_.tolist()
    classes = pl.Series("prediction", labels)
    names = [_column(label) for label in labels] if proba else []
    score = _scorer(estimator)
    fallback = 0 if mixture else int(estimator.class_log_prior_.argmax())
    unseen: Counter[str] = Counter()
    impossible: list[int] = []
    n_impossible = 0

    def predicted(batch: Batch) -> tuple[pl.DataFrame, dict[str, int], list[int]]:
        scores = score(batch)
        best = most_probable(scores)
        rows = [batch.number(i) for i in np.flatnonzero(best < 0).tolist()]
        columns = [classes.gather(np.where(best < 0, fallback, best))]
        if proba:
            kernels.normalise(scores)
            columns += [pl.Series(name, scores[:, position]) for position, name in enumerate(names)]
        return pl.DataFrame(columns), batch.unseen, rows

    with closing(source.stream(predicted)) as parts:
        for frame, strange, rows in parts:
            unseen.update(strange)
            impossible.extend(rows[: 1 - len(impossible)])
            n_impossible += len(rows)
            yield frame
    if unseen:
        warn_of_unseen(unseen)
    if n_impossible and not mixture:
        warn_of_impossible(impossible[0], n_impossible)


def _scorer(estimator: Any) -> Callable[[Batch], Array]:
    """Return the function from a batch to log p(y | x) + constant per row."""
    if isinstance(estimator, GenerativeClassifier):
        return estimator._log_posterior
    model: GenerativeModel = estimator.model_
    return model.scores


def _column(label: Any) -> str:
    return f"p_{str(label).lower() if isinstance(label, bool) else label}"


def _hand_over(frames: Iterator[pl.DataFrame], write: Callable[[Iterator[pl.DataFrame]], None]) -> None:
    """Write frames in another thread while this one produces them; an error or Ctrl-C in either ends both."""
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
    """The producer of frames has stopped, so the file is incomplete."""


def _write_text(frames: Iterator[pl.DataFrame], position: Path, kind: str, packed: bool) -> None:
    opened: Callable[..., IO[bytes]] = gzip.open if packed else open  # type: ignore[assignment]
    with opened(position, "wb") as handle:
        for number, frame in enumerate(frames):
            if kind == "ndjson":
                text = frame.write_ndjson()
            else:
                text = frame.write_csv(include_header=not number, separator=SEPARATORS[kind])
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
