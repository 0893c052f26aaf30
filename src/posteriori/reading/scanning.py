"""The files of a path, a folder or a list, and all of them as one lazy frame."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from posteriori.reading.dialects import AskedDialect, TableFile, opened_files
from posteriori.reading.file_frames import Types, lazily
from posteriori.reading.file_types import types_of
from posteriori.reading.known_columns import KnownColumns
from posteriori.reading.text_lines import empty_lines_at_the_end, reason_of
from posteriori.reading.written_numbers import without_marker
from posteriori.support.lazy_polars import pl
from posteriori.tables.polars import exactly
from posteriori.user_warnings import warn

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".xlsx": "excel",
    ".xls": "excel",
    ".ods": "excel",
}

_PACKED = (".gz", ".zst")

_MISSING_KEY = "__HIVE_DEFAULT_PARTITION__"  # the folder name that Hive writes for a missing value

_KEY_AND_VALUE = re.compile(r"([^=]+)=(.*)")


def format_of(path: Path) -> str:
    """Return the format of a file, by its suffixes; ValueError if the suffixes name no known format."""
    packed = path.suffix.lower() in _PACKED
    kind = FORMATS.get(Path(path.stem).suffix.lower() if packed else path.suffix.lower())
    if kind is None or (packed and kind not in ("csv", "tsv", "ndjson")):
        raise ValueError(
            f"{str(path)!r} has no suffix that names a table ({', '.join(FORMATS)}; text also .gz or .zst)"
        )
    return kind


def paths_of(paths: Any) -> tuple[Path, ...]:
    """Return the files of a path, a glob, a folder or a list of these, sorted within each.

    Raises FileNotFoundError if a path, glob or folder matches no file, and ValueError if the files are of several
    formats, or of an unknown one.
    """
    if hasattr(type(paths), "columns"):  # of a lazy frame itself they are computed
        raise TypeError(
            f"scan reads files, and was given a {type(paths).__name__}; give it to fit itself, which takes lazy tables"
        )
    names = [os.fspath(paths)] if isinstance(paths, str | os.PathLike) else [os.fspath(path) for path in paths]
    files: list[Path] = []
    for name in names:
        if os.path.isdir(name):
            folder = Path(name)
            matches = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder))
        elif os.path.exists(name):
            matches = [Path(name)]
        else:
            matches = [Path(path) for path in sorted(glob.glob(name, recursive=True)) if os.path.isfile(path)]
        if not matches:
            is_folder = os.path.isdir(name)
            raise FileNotFoundError(
                f"{name!r} is a folder without a file" if is_folder else f"there is no file {name!r}"
            )
        files += matches
    if not files:
        raise FileNotFoundError("paths is empty; name at least one file")
    kinds = {format_of(path): path for path in reversed(files)}
    if len(kinds) > 1:
        (a, first), (b, second) = list(kinds.items())[:2]
        raise ValueError(f"{str(first)!r} is {a} and {str(second)!r} is {b}; scan files of one format")
    return tuple(files)


def _is_hidden(path: Path, folder: Path) -> bool:
    """Return whether a file only keeps the books of the program that wrote the folder: _SUCCESS, .crc."""
    return any(name[0] in "._" and "=" not in name for name in path.relative_to(folder).parts)


def partitions_of(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Return the values of Hive partitions, one per file, by key: the folders key=value in the path of each file.

    Raises ValueError if the files lie in folders of different keys.
    """
    pairs: list[dict[str, str]] = []
    for path in paths:
        folders = [match for folder in path.parts[:-1] if (match := _KEY_AND_VALUE.fullmatch(folder))]
        pairs.append({match[1]: match[2] for match in folders})
    keys = list(pairs[0])
    for path, of_file in zip(paths, pairs, strict=True):
        if list(of_file) != keys:
            raise ValueError(f"{str(path)!r} lies in the partitions {list(of_file)}, but {str(paths[0])!r} in {keys}")
    return {key: _numbers_if_all([of_file[key] for of_file in pairs]) for key in keys}


def _numbers_if_all(written: list[str]) -> list[Any]:
    cells = [None if cell == _MISSING_KEY else unquote(cell) for cell in written]
    if all(cell is None or re.fullmatch(r"-?(0|[1-9]\d{0,17})", cell) for cell in cells):
        return [None if cell is None else int(cell) for cell in cells]
    return cells


@dataclass(frozen=True)
class FileSet:
    """Files of one format that are read as one table."""

    files: tuple[TableFile, ...]
    partitions: Mapping[str, list[Any]]  # the values of Hive partitions, one per file, by key

    @property
    def paths(self) -> tuple[Path, ...]:
        """The names of the files in messages."""
        return tuple(one.path for one in self.files)

    @property
    def kind(self) -> str:
        """Their format: a value of `FORMATS`; copies of spreadsheets are CSV."""
        return self.files[0].kind

    @property
    def is_text(self) -> bool:
        """Whether types are inferred from the cells, and not stored in the files."""
        return self.kind not in ("parquet", "arrow")


def resolve_files(paths: Any, asked: AskedDialect, shown: Mapping[Path, Path]) -> FileSet:
    """Return the files of a path, a glob, a folder or a list of these; `shown` gives names in messages.

    Raises the errors of `paths_of`, `partitions_of` and `opened_files`.
    """
    found = paths_of(paths)
    files = opened_files(found, format_of(found[0]), asked)
    named = tuple(replace(one, path=shown.get(one.path, one.path)) for one in files)
    return FileSet(named, partitions_of(found))


def resolve_types(
    files: FileSet,
    known: KnownColumns,
    columns: Collection[str] | None,
    whole: bool = False,
) -> dict[Path, Types]:
    """Return the type of each column in each file: the stated one, or the one that the file gives.

    Parameters
    ----------
    files : FileSet
    known : KnownColumns
    columns : collection of str or None
        The columns to keep; None for all.
    whole : bool, default False
        Whether types are inferred from all rows of text files, and not from the first ones.

    Raises
    ------
    ValueError
        A file cannot be read, or is empty.
    """
    types = {}
    for file in files.files:
        try:
            types[file.path] = types_of(file, whole, known) | known.types
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            if getattr(error, "errno", None):  # of the system, which names the file
                raise
            raise ValueError(f"cannot read {str(file.path)!r}: {reason_of(error, file)}") from None
    if columns is None:
        return types
    return {path: {n: dtype for n, dtype in of_file.items() if n in columns} for path, of_file in types.items()}


def joined_frame(files: FileSet, types: Types, of_file: Mapping[Path, Types]) -> pl.LazyFrame:
    """Return all files as one lazy frame with a column per partition key; warn of empty lines at the end of a file.

    Parameters
    ----------
    files : FileSet
    types : dict
        The type of each column in the result.
    of_file : mapping
        The type of each column in each file.
    """
    n_rows = _rows_above_empty_lines(files)
    stated = types if files.is_text else None
    has_one_schema = files.is_text or all(list(t.items()) == list(types.items()) for t in of_file.values())
    has_one_dialect = len({one.dialect for one in files.files}) == 1
    if has_one_schema and has_one_dialect and not (files.partitions or n_rows) and _has_one_header(files):
        return lazily(files.files, stated).select(exactly(*types))
    keys = {key: pl.Series(key, values) for key, values in files.partitions.items()}
    frames = []
    for position, file in enumerate(files.files):
        frame = lazily(file, stated)
        frame = frame.head(n_rows[file.path]) if file.path in n_rows else frame
        cells = [exactly(name).cast(without_marker(dtype)) for name, dtype in types.items() if name not in keys]
        values = [pl.lit(series[position], dtype=series.dtype).alias(key) for key, series in keys.items()]
        frames.append(frame.select(*cells).with_columns(*values))
    return pl.concat(frames)


def _has_one_header(files: FileSet) -> bool:
    """Return whether files name the same columns in the same order, those that are not read as well.

    polars takes no other files as one table, except those of JSON.
    """
    if files.kind == "ndjson" or len(files.files) == 1:
        return True
    return len({tuple(lazily(one, sampled=0).collect_schema()) for one in files.files}) == 1


def _rows_above_empty_lines(files: FileSet) -> dict[Path, int]:
    """Return the number of rows of each text file that ends in lines without any value, and warn of these lines."""
    n_rows = {}
    for file in files.files if files.kind in ("csv", "tsv") else ():
        empty, rows_above = empty_lines_at_the_end(file)
        if empty:
            n_rows[file.path] = rows_above
            lines = f"{empty} line{'s' if empty > 1 else ''}"
            warn(f"{file.path.name} ends in {lines} without any value, left out")
    return n_rows
