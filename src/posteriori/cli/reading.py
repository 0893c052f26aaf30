"""Tables from files and back, by their suffix."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import Refusal, one_line

if TYPE_CHECKING:
    import polars as pl

    from posteriori.tables import Column, Schema

# What stands for a missing cell in text files; "None", "?" and "-" do not: elsewhere they are categories.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null")

_READ = {
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
_SHIPPED = ("penguins.csv",)


def format_of(path: Path) -> tuple[str, str]:
    """Return the format that a file's suffixes name, and how it is packed: ``".gz"``, ``".zst"`` or ``""``.

    Raises
    ------
    Refusal
        The suffix is not known.
    """
    packed = path.suffix.lower() if path.suffix.lower() in _PACKED else ""
    suffix = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    kind = _READ.get(suffix)
    if kind is None or (packed and kind not in ("csv", "tsv")):
        raise Refusal(
            f"{str(path)!r} has no suffix that names a table ({', '.join(_READ)}; .csv and .tsv also with .gz or .zst)"
        )
    return kind, packed


def names_table(path: Path) -> bool:
    """Whether a path has a suffix that tables have."""
    try:
        format_of(path)
    except Refusal:
        return False
    return True


def stem_of(path: Path) -> str:
    """Return the name of a table's file without its suffixes."""
    _, packed = format_of(path)
    return Path(path.stem).stem if packed else path.stem


def read_frame(path: Path, schema: Schema | None = None, target: Column | None = None) -> pl.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : Path
        If there is no such file and the name is that of a table shipped with the library, that one is read.
    schema, target : Schema and Column, optional
        What a model knows of the columns: in text files, those that were strings in training are not read as
        numbers.

    Raises
    ------
    Refusal
        The file cannot be read, or holds no row.
    """
    import polars as pl

    kind, _ = format_of(path)
    path = _existing(path)
    if not path.stat().st_size:
        raise Refusal(f"{path.name!r} is empty")
    known = (*schema.columns, *([target] if target else [])) if schema is not None else ()
    strings = {column.name: pl.String for column in known if column.holds_strings}
    try:
        with _quiet_threads():
            frame = _read(path, kind, strings)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, UnicodeError) as error:
        raise Refusal(f"cannot read {path.name!r}: {_reason(error)}") from None
    if not frame.width or not frame.height:
        raise Refusal(f"{path.name!r} holds no rows")
    return frame


def _existing(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists() and str(path) in _SHIPPED:
        from importlib.resources import files

        return Path(str(files("posteriori").joinpath("datasets", path.name)))
    raise Refusal(f"{str(path)!r} is a folder" if path.is_dir() else f"there is no file {str(path)!r}")


@contextmanager
def _quiet_threads() -> Iterator[None]:
    """Keep polars off stderr: what its threads say of a damaged file comes as an exception as well."""
    try:
        kept = os.dup(2)
    except OSError:  # this process has no stderr
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


def _reason(error: Exception) -> str:
    """Return what a reader says is wrong, without its advice on how to call it from Python."""
    text = str(error)
    if type(error).__name__ == "PanicException":
        return "it is damaged"
    if "more fields than defined" in text:
        return "a line has more cells than the header"
    if "invalid utf-8" in text:
        return "it is not UTF-8 text"
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return one_line(re.split(r"\n\s*\n|You might want", text)[0])[:200] or type(error).__name__


def _read(path: Path, kind: str, strings: dict[str, Any]) -> pl.DataFrame:
    import polars as pl

    if kind == "parquet":
        return pl.read_parquet(path, glob=False)
    if kind == "arrow":
        return pl.read_ipc(path)
    if kind == "ndjson":
        return pl.read_ndjson(path, infer_schema_length=None)
    separator = "," if kind == "csv" else "\t"
    text: dict[str, Any] = {"separator": separator, "null_values": list(MISSING), "glob": False}
    header = pl.read_csv(path, n_rows=0, infer_schema=False, **text).columns
    overrides = {name: dtype for name, dtype in strings.items() if name in header}
    frame = pl.read_csv(path, infer_schema_length=None, schema_overrides=overrides, **text)
    return _tidy(frame, path.name)


def _tidy(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Mend what a text file cannot say: empty columns, columns without a name, empty lines at the end."""
    import polars as pl

    if any("\x00" in column or "\ufffd" in column for column in frame.columns):
        raise Refusal(f"cannot read {name!r}: it is not UTF-8 text")
    twice = [match[1] for c in frame.columns if (match := re.fullmatch(r"(.+)_duplicated_\d+", c))]
    for column in twice:
        if column in frame.columns:
            warnings.warn(
                f"{name} has the column {column!r} twice; the second is called {column + '_duplicated_0'!r}",
                UserWarning,
                stacklevel=2,
            )
    if frame.width > 1 and frame.height:
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null()).arg_true().max()).item()
        empty = frame.height - 1 - (-1 if filled is None else filled)
        if empty:
            warnings.warn(
                f"{name} ends in {empty} line{'s' if empty > 1 else ''} without any value, left out",
                UserWarning,
                stacklevel=2,
            )
            frame = frame.head(frame.height - empty)
    places = enumerate(frame.columns, start=1)
    frame = frame.rename({column: f"column_{place}" for place, column in places if not column})
    nothing = [column for column in frame.columns if frame[column].null_count() == frame.height]
    return frame.with_columns(pl.col(column).cast(pl.Null) for column in nothing)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Give a place to write to, in the same folder, that takes the final name only once all is written.

    Raises
    ------
    Refusal
        There is no such folder, or the name is that of a folder.
    """
    check_place(path)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        yield Path(beside)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(beside, 0o666 & ~umask)  # mkstemp makes files that only their owner can read
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def check_place(path: Path, *sources: Path) -> None:
    """Raise Refusal where no file can be written at this path, or one of the sources would be lost by it."""
    if any(source.exists() and path.exists() and path.samefile(source) for source in sources):
        raise Refusal(f"the output would overwrite {str(path)!r}; name another file")
    if not path.parent.is_dir():
        raise Refusal(f"there is no folder {str(path.parent)!r} to write {path.name!r} in")
    if path.is_dir():
        raise Refusal(f"{str(path)!r} is a folder; name a file")


def writer_of(path: Path) -> Callable[[pl.DataFrame, Path], None]:
    """Return the function that writes a frame in the format of a path's suffix.

    Raises
    ------
    Refusal
        The suffix is not known, or cannot be written.
    """
    kind, packed = format_of(path)
    if packed == ".zst":
        raise Refusal(f"{str(path)!r} would have to be packed by zstd; write .csv, .csv.gz or .parquet")
    if kind in ("csv", "tsv"):
        separator = "," if kind == "csv" else "\t"

        def write_text(frame: pl.DataFrame, place: Path) -> None:
            text = frame.write_csv(separator=separator).encode()
            place.write_bytes(gzip.compress(text) if packed else text)

        return write_text
    method = {"parquet": "write_parquet", "arrow": "write_ipc", "ndjson": "write_ndjson"}[kind]
    return lambda frame, place: getattr(frame, method)(place)
