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
from posteriori.scoring.fitted import FittedPosterior, most_probable, warn_of_impossible
from posteriori.sources.table_source import warn_of_unseen
from posteriori.tables import Batch, Scan
from posteriori.tables.dialects import SEPARATORS
from posteriori.tables.forking import require_threads
from posteriori.tables.scanning import format_of

_HANDED = 4  # frames that wait to be written
_PATIENCE = 0.1  # seconds until one thread asks whether the other has ended


def write_predictions(
    fitted: FittedPosterior,
    X: Any,
    path: str | os.PathLike[str],
    proba: bool = False,
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
    frames = predictions(fitted, X, proba, progress)
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
    fitted: FittedPosterior, X: Any, proba: bool = False, progress: Callable[[int], None] | None = None
) -> Generator[pl.DataFrame, None, None]:
    """Yield the predictions for all rows, in order, some at a time; warn at the end of unseen and impossible rows.

    The arguments are those of `write_predictions`.
    """
    source = fitted.source(X).with_progress(progress)
    classes = pl.Series("prediction", fitted.labels)
    names = [_column(label) for label in fitted.labels] if proba else []
    fallback, scores_of = fitted.fallback, fitted.posterior.scores
    unseen: Counter[str] = Counter()
    impossible: list[int] = []
    n_impossible = 0

    def predicted(batch: Batch) -> tuple[pl.DataFrame, dict[str, int], list[int]]:
        scores = scores_of(batch)
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
    if n_impossible and not fitted.is_mixture:
        warn_of_impossible(impossible[0], n_impossible)


def _column(label: Any) -> str:
    return f"p_{str(label).lower() if isinstance(label, bool) else label}"


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
