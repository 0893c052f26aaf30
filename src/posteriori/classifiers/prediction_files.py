"""Predictions of more rows than fit into memory, written to a file as they are made."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from posteriori import kernels
from posteriori.classifiers.base import GenerativeEstimator, most_probable, warn_of_impossible
from posteriori.classifiers.mixture import MixtureModel
from posteriori.sources.memory import warn_of_unseen
from posteriori.tables import Batch, Scan
from posteriori.tables.scanning import format_of


def predict_to(
    estimator: Any,
    X: Any,
    path: str | os.PathLike[str],
    proba: bool = False,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the prediction for every row, in order, to a file: memory does not grow with the number of rows.

    Parameters
    ----------
    estimator : fitted classifier or MixtureModel
        Not of `posteriori.drop_in`.
    X : Scan, or anything that `predict` takes
    path : path
        Its suffix says the format: ``.parquet``, ``.arrow``, ``.csv``, ``.tsv`` or ``.ndjson``, text also ``.gz``. It
        takes this name only when all is written: after an error what was there before is there still.
    proba : bool, default False
        Whether p(y | x) of each class is written as well.
    progress : callable, optional
        Called with the number of rows of every batch that is predicted.

    Returns
    -------
    int
        The number of rows written: column prediction, and p_CLASS of each class.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        There is no such folder, or the path is that of a folder.
    ValueError
        The suffix is not known, or the path is that of one of the files that are read.

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
    if not isinstance(estimator, GenerativeEstimator | MixtureModel):
        raise TypeError(f"{type(estimator).__name__} writes no files; use a classifier of posteriori, or its predict")
    path = Path(path)
    kind = format_of(path)
    if path.suffix.lower() == ".zst":
        raise ValueError(f"{str(path)!r} would have to be packed by zstd; write .gz or .parquet")
    if isinstance(X, Scan) and any(path.exists() and path.samefile(one) for one in X.paths if one.exists()):
        raise ValueError(f"the output would overwrite {str(path)!r}, which is read; name another file")
    source = replace(estimator._source(X), progress=progress)
    model = estimator.model_
    mixture = isinstance(estimator, MixtureModel)
    labels = range(model.n_components) if mixture else estimator.classes_.tolist()
    classes = pl.Series("prediction", labels)
    fallback = 0 if mixture else int(model.class_log_prior.argmax())
    unseen: Counter[str] = Counter()
    impossible: list[int] = []
    n_rows, n_impossible = 0, 0

    def predicted(batch: Batch) -> tuple[pl.DataFrame, dict[str, int], list[int]]:
        scores = model.scores(batch)
        best = most_probable(scores)
        rows = [batch.number(i) for i in np.flatnonzero(best < 0).tolist()]
        columns = [classes.gather(np.where(best < 0, fallback, best))]
        if proba:
            kernels.normalise(scores)
            columns += [pl.Series(_column(label), scores[:, place]) for place, label in enumerate(labels)]
        return pl.DataFrame(columns), batch.unseen, rows

    def frames() -> Generator[pl.DataFrame, None, None]:
        nonlocal n_rows, n_impossible
        with closing(source.stream(predicted)) as parts:
            for frame, strange, rows in parts:
                unseen.update(strange)
                impossible.extend(rows[: 1 - len(impossible)])
                n_impossible += len(rows)
                n_rows += frame.height
                yield frame

    with _beside(path) as place, closing(frames()) as written:
        if kind in ("parquet", "arrow"):
            names = {_column(label): pl.Float64() for label in labels} if proba else {}
            _sink(written, {"prediction": classes.dtype, **names}, place, kind)
        else:
            _write_text(written, place, kind, packed=path.suffix.lower() == ".gz")
    if unseen:
        warn_of_unseen(unseen)
    if n_impossible and not mixture:
        warn_of_impossible(impossible[0], n_impossible)
    return n_rows


def _column(label: Any) -> str:
    return f"p_{str(label).lower() if isinstance(label, bool) else label}"


def _write_text(frames: Iterator[pl.DataFrame], place: Path, kind: str, packed: bool) -> None:
    opened: Callable[..., IO[bytes]] = gzip.open if packed else open  # type: ignore[assignment]
    with opened(place, "wb") as handle:
        for number, frame in enumerate(frames):
            if kind == "ndjson":
                frame.write_ndjson(handle)
            else:
                frame.write_csv(handle, include_header=not number, separator="," if kind == "csv" else "\t")


def _sink(frames: Iterator[pl.DataFrame], schema: dict[str, Any], place: Path, kind: str) -> None:
    """Write frames to a file of columns, which polars asks for one after the other."""
    from polars.io.plugins import register_io_source

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del with_columns, predicate, n_rows, batch_size  # a sink takes all columns and all rows
        return frames

    table = register_io_source(read, schema=schema)
    if kind == "parquet":
        table.sink_parquet(place, maintain_order=True)
    else:
        table.sink_ipc(place, maintain_order=True)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Give a place in the same folder to write to, which takes the final name only once all is written."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} in")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file")
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        yield Path(beside)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # mkstemp makes files that only their owner can read
        os.replace(beside, path)
    finally:
        Path(beside).unlink(missing_ok=True)
