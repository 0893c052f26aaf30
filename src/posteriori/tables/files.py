"""Files as tables: polars reads them part after part, so that their rows need not fit into memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from posteriori.tables.forking import require_threads
from posteriori.tables.frames import PolarsTable
from posteriori.tables.lazy import StreamedTable, too_many_categories
from posteriori.tables.names import exactly
from posteriori.tables.progress import start_progress
from posteriori.tables.scanning import (
    Types,
    common_types,
    format_of,
    lazily,
    partitions_of,
    paths_of,
    types_of,
)
from posteriori.tables.schema import MAX_CATEGORIES, quote
from posteriori.tables.targets import TargetCuts
from posteriori.tables.text import empty_lines_at_the_end, reason_of, short_row

_READ_AHEAD = 1 << 17  # rows that polars is asked for at a time
_GLANCED_ROWS = 1 << 18
_MANY_ROWS = 1 << 20  # from which on a pass for the categories alone is worth avoiding


@dataclass(frozen=True, eq=False)
class Scan(StreamedTable):
    """Files that estimators learn from and predict without ever holding all of their rows; made by `scan`.

    Attributes
    ----------
    paths : tuple of Path
    target : str or None
        The column that holds the labels.
    types : dict
        The polars data type of each column.
    categorical : frozenset of str
        The columns of numbers that are categories all the same.
    from_first_rows : bool
        Whether the categories are those of the first rows, on the chance that the others have no more.
    """

    paths: tuple[Path, ...]
    types: Types
    frame: pl.LazyFrame
    target: str | None = None
    categorical: frozenset[str] = frozenset()
    _stamps: tuple[tuple[int, int], ...] = ()
    from_first_rows: bool = False

    @cached_property
    def n_rows(self) -> int:
        """The number of rows; of text files, which do not say, it is counted."""
        with self._explained():
            if format_of(self.paths[0]) in ("csv", "tsv"):
                self._require_full_rows()
            return int(self.frame.select(pl.len()).collect(engine="streaming").item())

    @property
    def size(self) -> int:
        """The size of the files in bytes."""
        return sum(path.stat().st_size for path in self.paths)

    def __repr__(self) -> str:
        files = f"{len(self.paths)} files, {self.paths[0]} …" if len(self.paths) > 1 else str(self.paths[0])
        listed = ", ".join(f"{name}: {dtype}" for name, dtype in list(self.types.items())[:12])
        more = f" and {len(self.types) - 12} more" if len(self.types) > 12 else ""
        target = "" if self.target is None else f"\n  target: {self.target}"
        return (
            f"Scan of {files}\n  {self.n_rows:,} rows × {len(self.types)} columns, {self.size / 1e6:,.1f} MB"
            f"\n  {listed}{more}{target}"
        )

    def head_sample(self) -> Scan | None:
        """Return the same rows with the categories of the first of them; None where that would not be worth it.

        A later row with another category raises `UnseenCategoryError`, and the reader starts again.
        """
        worth = self.n_rows >= _MANY_ROWS and any(self._cells_tell(j, False) for j in range(len(self.names)))
        return replace(self, from_first_rows=True) if worth and not self._distinct else None

    def narrowed(self, names: Sequence[str], labels: str | None = None) -> Scan:
        """Return some of the columns; where labels names one of them, of the rows only that it has a label for."""
        frame = self.frame.select(exactly(*names))
        if labels is not None:
            known = exactly(labels).is_not_null()
            frame = frame.filter(known & exactly(labels).is_not_nan() if self.types[labels].is_float() else known)
        narrow = replace(self, types={name: self.types[name] for name in names}, frame=frame)
        if labels is None:
            vars(narrow)["n_rows"] = self.n_rows  # text files need not be counted once more
            vars(narrow)["_distinct"] = self._distinct
        return narrow

    def with_target_cut(self, target: str, cuts: TargetCuts) -> Scan:
        """Return the same rows, the numbers of a column as the names of their classes."""
        frame = self.frame.with_columns(cuts.expression(target))
        cut = replace(self, types={**self.types, target: pl.String()}, frame=frame)
        vars(cut)["n_rows"] = self.n_rows
        return cut

    def _frames(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        self._require_unchanged()
        with self._explained():
            batches = self.frame.select(exactly(*names)).collect_batches(
                chunk_size=_READ_AHEAD, maintain_order=True, lazy=True, engine="streaming"
            )
            yield from batches
        self._require_unchanged()

    def _find_distinct(self, names: Sequence[str]) -> dict[str, PolarsTable]:
        types = {name: self.types[name] for name in names}
        if self.from_first_rows:
            with self._explained():
                return distinct_of(
                    [self.frame.select(exactly(*names)).head(_GLANCED_ROWS).collect()], types, lambda _: None
                )
        return distinct_of(self._frames(names), types, start_progress("categories", self.n_rows))

    def _require_full_rows(self) -> None:
        """Raise ValueError if a row of a text file has fewer cells than the header; polars calls them missing."""
        kind = format_of(self.paths[0])
        for path in self.paths:
            frame = lazily(path, kind, None)
            names = frame.collect_schema().names()
            if len(names) == 1:
                continue
            last: Types = {names[-1]: pl.String()}
            if not lazily(path, kind, last).select(exactly(names[-1]).null_count()).collect(engine="streaming").item():
                continue
            line = short_row(path, kind, len(names))
            if line is not None:
                raise ValueError(f"line {line} of {str(path)!r} has fewer cells than the {len(names)} of its header")

    def _require_unchanged(self) -> None:
        """Raise if a file is not what it was when it was scanned: polars would read it by what it was then."""
        for path, stamp in zip(self.paths, self._stamps, strict=True):
            if not path.exists():
                raise FileNotFoundError(f"{str(path)!r} is gone since it was scanned; scan the files anew")
            if _stamp(path) != stamp:
                raise ValueError(f"{str(path)!r} has changed since it was scanned; scan the files anew")

    def changed(self) -> ValueError:
        """Return the error that the rows are not those that were scanned."""
        return ValueError(
            f"the rows of {self._listed} are no longer the {self.n_rows:,} that were counted; scan the files anew"
        )

    @property
    def _listed(self) -> str:
        first = repr(str(self.paths[0]))
        return first if len(self.paths) == 1 else f"the {len(self.paths)} files from {first} on"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what polars raises into one sentence that names the file."""
        require_threads("reading files")
        try:
            yield
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise self._explanation(error) from None

    def _explanation(self, error: BaseException) -> Exception:
        self._require_unchanged()
        kind = format_of(self.paths[0])
        culprit, position = self._listed, self.paths[0]
        for path in self.paths:
            try:
                lazily(path, kind, self._file_types(kind)).select(pl.all().count()).collect(engine="streaming")
            except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
                culprit, position = repr(str(path)), path
                break
        return ValueError(f"cannot read {culprit}: {reason_of(error, position)}")

    def _file_types(self, kind: str) -> Types | None:
        return None if kind in ("parquet", "arrow") else self.types


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def distinct_of(
    frames: Iterable[pl.DataFrame], types: Types, progress: Callable[[int], None]
) -> dict[str, PolarsTable]:
    """Return the distinct cells of each column of a table that comes in parts, telling of the rows of each."""
    found = {name: pl.Series(name, [], dtype) for name, dtype in types.items()}
    with ThreadPoolExecutor(pl.thread_pool_size()) as threads:
        for frame in frames:
            progress(frame.height)
            for new in threads.map(_distinct, frame.iter_columns()):
                name, seen = new.name, found[new.name].alias("cells")
                new = new.alias("cells")
                if len(new) > len(seen) or not new.is_in(seen.implode()).all():
                    seen = pl.concat([seen, new]).unique()
                    found[name] = seen.alias(name)
                if len(seen) > MAX_CATEGORIES:
                    raise too_many_categories(name, MAX_CATEGORIES)
    return {name: PolarsTable(cells.to_frame()) for name, cells in found.items()}


def _distinct(series: pl.Series) -> pl.Series:
    return series.alias("cells").drop_nulls().unique().alias(series.name)


def scan(
    paths: Any,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    dtypes: Mapping[str, Any] | None = None,
) -> Scan:
    """Open files to learn from, or to predict, part by part: memory does not grow with the number of rows.

    An estimator reads them twice: for the categories of strings (not where all are declared, or the files say them),
    then for the statistics. The model is the one that `fit` learns from the same rows in memory.

    Parameters
    ----------
    paths : path, or list of paths
        Files, globs (``"data/*.parquet"``, ``"data/**/*.csv"``) or folders: Parquet, Arrow IPC, CSV, TSV or newline-
        delimited JSON, text also packed (``.gz``, ``.zst``). Folders ``key=value`` on the way become columns. In CSV
        and TSV an empty cell, NA, N/A, NaN, nan and null are missing; lines without any value at the end are left out.
    target : str, optional
        The column of labels: ``fit(scan)`` then needs no y.
    columns : list of str, optional
        The features to read, beside the target; default all.
    categorical : list of str, optional
        Columns of numbers that are categories.
    categories : mapping of str to list of str, optional
        The categories of columns of strings. Another one is an error. No pass is spent on these columns.
    dtypes : mapping of str to polars data type, optional
        Of columns of text files, where the first 10,000 rows of each file do not tell.

    Returns
    -------
    Scan
        Printing it shows files, rows, columns and size.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        A column is not in all files or not of one type in them, or a file is empty or no table: the message names it.
    RuntimeError
        The process was forked after polars had started its threads.

    Examples
    --------
    >>> import os, tempfile, polars as pl, posteriori as po
    >>> folder = tempfile.mkdtemp()
    >>> for month in (1, 2):
    ...     rows = pl.DataFrame({"height": [1.0, 2.0, 8.0, 9.0], "y": ["low", "low", "high", "high"]})
    ...     rows.write_parquet(os.path.join(folder, f"{month}.parquet"))
    >>> rows = po.scan(folder, target="y")
    >>> rows.n_rows
    8
    >>> po.NaiveBayes().fit(rows).predict(rows).tolist()[:4]
    ['low', 'low', 'high', 'high']
    """
    require_threads("reading files")
    files = paths_of(paths)
    stamps = tuple(map(_stamp, files))
    kind = format_of(files[0])
    partitions = partitions_of(files)
    try:
        of_file = {path: types_of(path, kind, known=dict(dtypes or {})) | dict(dtypes or {}) for path in files}
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        culprit = _unreadable(files, kind)
        raise ValueError(f"cannot read {str(culprit)!r}: {reason_of(error, culprit)}") from None
    wanted = None if columns is None else {*columns, *([] if target is None else [target])}
    if wanted is not None:
        of_file = {path: {n: t for n, t in one.items() if n in wanted} for path, one in of_file.items()}
    types = common_types(of_file, kind)
    frame = _joined(files, kind, types, of_file, partitions, _rows_above_empty_lines(files, kind))
    types |= {key: pl.Series(cells).dtype for key, cells in partitions.items() if wanted is None or key in wanted}
    named = [*(columns or ()), *(categorical or ()), *(categories or ()), *(() if target is None else (target,))]
    absent = [name for name in dict.fromkeys(named) if name not in types]
    if absent:
        raise ValueError(f"the files lack {quote(absent)}; they have {quote(types, most=20)}")
    if columns is not None:
        order = [*columns, *([target] if target is not None and target not in columns else [])]
        types = {name: types[name] for name in order}
    for name, cells in (categories or {}).items():
        if types[name] not in (pl.String, pl.Categorical):
            raise ValueError(f"categories declares {name!r}, which holds no strings but {types[name]}; leave it out")
        types[name] = pl.Enum(cells)
        frame = frame.with_columns(exactly(name).cast(types[name]))
    return Scan(files, types, frame, target, frozenset(categorical or ()), _stamps=stamps)


def _rows_above_empty_lines(paths: Sequence[Path], kind: str) -> dict[Path, int]:
    """Return the number of rows of each text file that ends in lines without any value, and warn of these."""
    rows = {}
    for path in paths if kind in ("csv", "tsv") else ():
        empty, rows_above = empty_lines_at_the_end(path, kind)
        if empty:
            rows[path] = rows_above
            lines = f"{empty} line{'s' if empty > 1 else ''}"
            warnings.warn(f"{path.name} ends in {lines} without any value, left out", UserWarning, stacklevel=3)
    return rows


def _joined(
    paths: Sequence[Path],
    kind: str,
    types: Types,
    of_file: Mapping[Path, Types],
    partitions: Mapping[str, list[Any]],
    rows: Mapping[Path, int],
) -> pl.LazyFrame:
    """Return all files as one lazy table, of some of them the first rows only."""
    text = kind not in ("parquet", "arrow")
    if not (partitions or rows) and (text or all(list(one.items()) == list(types.items()) for one in of_file.values())):
        return lazily(paths, kind, types if text else None).select(exactly(*types))
    cells = {key: pl.Series(key, values) for key, values in partitions.items()}
    frames = []
    for position, path in enumerate(paths):
        one = lazily(path, kind, types if text else None)
        one = one.head(rows[path]) if path in rows else one
        chosen = [exactly(name).cast(dtype) for name, dtype in types.items() if name not in cells]
        keys = [pl.lit(series[position], dtype=series.dtype).alias(key) for key, series in cells.items()]
        frames.append(one.select(*chosen).with_columns(*keys))
    return pl.concat(frames)


def _unreadable(paths: Sequence[Path], kind: str) -> Path:
    for path in paths:
        try:
            types_of(path, kind)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return path
    return paths[0]
