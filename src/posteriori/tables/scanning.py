"""What files hold: which they are, in which format, and of which type each column is."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from posteriori.tables.text import SAMPLED_ROWS, Types, lazy_text, require_text

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
}
_PACKED = (".gz", ".zst")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def format_of(path: Path) -> str:
    """Return the format that the suffixes of a file name.

    Raises
    ------
    ValueError
        There is none.
    """
    packed = path.suffix.lower() in _PACKED
    kind = FORMATS.get(Path(path.stem).suffix.lower() if packed else path.suffix.lower())
    if kind is None or (packed and kind not in ("csv", "tsv", "ndjson")):
        raise ValueError(
            f"{str(path)!r} has no suffix that names a table ({', '.join(FORMATS)}; text also .gz or .zst)"
        )
    return kind


def paths_of(paths: Any) -> tuple[Path, ...]:
    """Return the files that a path, a glob, a folder or a list of these stand for, sorted within each.

    Raises
    ------
    FileNotFoundError
        There is none.
    ValueError
        They are of several formats, or of none that is known.
    """
    wanted: list[str | os.PathLike[str]] = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Path] = []
    for one in (os.fspath(one) for one in wanted):
        if os.path.isdir(one):
            inside = sorted(path for path in Path(one).rglob("*") if path.is_file() and not _is_hidden(path, Path(one)))
        elif os.path.exists(one):
            inside = [Path(one)]
        else:
            inside = [Path(path) for path in sorted(glob.glob(one, recursive=True)) if os.path.isfile(path)]
        if not inside:
            empty = os.path.isdir(one)
            raise FileNotFoundError(f"{one!r} is a folder without a file" if empty else f"there is no file {one!r}")
        found += inside
    if not found:
        raise FileNotFoundError("paths is empty; name at least one file")
    kinds = {format_of(path): path for path in reversed(found)}
    if len(kinds) > 1:
        (a, first), (b, second) = list(kinds.items())[:2]
        raise ValueError(f"{str(first)!r} is {a} and {str(second)!r} is {b}; scan files of one format")
    return tuple(found)


def _is_hidden(path: Path, folder: Path) -> bool:
    """Whether a file in a folder is the bookkeeping of whatever wrote it: _SUCCESS, .crc."""
    return any(part[0] in "._" and "=" not in part for part in path.relative_to(folder).parts)


def lazily(
    path: Path | Sequence[Path], kind: str, types: Types | None = None, sampled: int | None = SAMPLED_ROWS
) -> pl.LazyFrame:
    """Return files of one format and one schema as a table that polars has not read yet; sampled None: all rows."""
    source: Any = path if isinstance(path, Path) else list(path)
    if kind == "parquet":
        return pl.scan_parquet(source, glob=False, hive_partitioning=False)
    if kind == "arrow":
        return pl.scan_ipc(source, glob=False, hive_partitioning=False)
    if kind == "ndjson":
        return pl.scan_ndjson(source, infer_schema_length=sampled, schema_overrides=types)
    return lazy_text(source, kind, types, sampled)


def types_of(path: Path, kind: str, whole: bool = False, known: Types | None = None) -> Types:
    """Return the type of each column of a file, Null where nothing says so.

    Of text the first rows say, or all of them: whole; but those that are known already are taken to be so.
    """
    if not path.stat().st_size:
        raise ValueError(f"{str(path)!r} is empty: it has not even the names of columns; leave it out")
    frame = lazily(path, kind, known, None if whole else SAMPLED_ROWS)
    if kind in ("parquet", "arrow"):
        return dict(frame.collect_schema())
    require_text(path, frame.collect_schema().names())
    # A text file says nothing of the type of a column without any cell.
    names = frame.collect_schema().names()
    # polars parses more than the rows it is asked for: as strings, since further down others may be of another type.
    cells = frame if kind == "ndjson" else lazily(path, kind, dict.fromkeys(names, pl.String()))
    counts = (cells if whole else cells.head(SAMPLED_ROWS)).select(pl.all().count()).collect(engine="streaming")
    types = frame.collect_schema().items()
    return {name: dtype if count else pl.Null() for (name, dtype), count in zip(types, counts.row(0), strict=True)}


def common_types(types: Mapping[Path, Types], kind: str) -> Types:
    """Return the type of each column in all files.

    Raises
    ------
    ValueError
        Files have different columns, or a column is of different types: the message names both files.
    """
    (first, common), *others = ((path, dict(one)) for path, one in types.items())
    origin = dict.fromkeys(common, first)
    for path, one in others:
        strange = [name for name in (*common, *one) if (name in common) != (name in one)]
        if strange:
            has, lacks = (first, path) if strange[0] in common else (path, first)
            raise ValueError(
                f"column {strange[0]!r} is in {str(has)!r} but not in {str(lacks)!r}; "
                "give all files the same columns, or name those to read in columns"
            )
        for name, dtype in one.items():
            known = common[name]
            if dtype == known or dtype == pl.Null:
                continue
            if known == pl.Null:
                common[name], origin[name] = dtype, path
            elif kind in ("csv", "tsv", "ndjson") and {known, dtype} == {pl.Int64(), pl.Float64()}:
                common[name] = pl.Float64()
            else:
                raise ValueError(
                    f"column {name!r} is {known} in {str(origin[name])!r} but {dtype} in {str(path)!r}; "
                    "convert it, or state its type in dtypes where the files are text"
                )
    if kind in ("csv", "tsv"):  # which polars reads as strings, in memory too
        return {name: pl.String() if dtype == pl.Null else dtype for name, dtype in common.items()}
    return common


def partitions_of(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Return what the folders key=value on the way to each file say of its rows: a value a file, by key.

    Raises
    ------
    ValueError
        Only some of the files lie in such folders.
    """
    found: list[dict[str, str]] = []
    for path in paths:
        folders = [match for part in path.parts[:-1] if (match := _PARTITION.fullmatch(part))]
        found.append({match[1]: match[2] for match in folders})
    keys = list(found[0])
    for path, one in zip(paths, found, strict=True):
        if list(one) != keys:
            raise ValueError(f"{str(path)!r} lies in the partitions {list(one)}, but {str(paths[0])!r} in {keys}")
    return {key: _numbers_if_all([one[key] for one in found]) for key in keys}


_PARTITION = re.compile(r"([^=]+)=(.*)")


def _numbers_if_all(written: list[str]) -> list[Any]:
    cells = [None if cell == _NOTHING else unquote(cell) for cell in written]
    if all(cell is None or re.fullmatch(r"-?(0|[1-9]\d{0,17})", cell) for cell in cells):
        return [None if cell is None else int(cell) for cell in cells]
    return cells
