"""Write tables to files, in the format of their suffix, and to stdout."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.atomic_write import atomic_write
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.reading import check_place

if TYPE_CHECKING:
    import polars as pl


def open_output(output: Path | None, *sources: Path) -> Callable[[pl.DataFrame], Any]:
    """Return a function that writes a frame to a file in the format of its suffix, or to stdout as CSV."""
    if output is None:
        return lambda frame: write_out(_csv_text(frame))
    check_output(output, *sources)
    write_file = writer_of(output)

    def write(frame: pl.DataFrame) -> None:
        with atomic_write(output) as position:
            write_file(frame, position)

    return write


def _csv_text(frame: pl.DataFrame, separator: str = ",") -> str:
    from posteriori.tables.writing import csv_text

    with as_user_errors():
        return csv_text(frame, separator)


def write_out(text: str) -> None:
    """Write to stdout; an OSError names it."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from None


def check_output(path: Path, *sources: Path) -> None:
    """Raise UserError if the format of a file is unknown, or if no file can be written there, as `check_place` does."""
    writer_of(path)
    check_place(path, *sources)


def writer_of(path: Path) -> Callable[[pl.DataFrame, Path], None]:
    """Return the function that writes a frame in the format of a path's suffix.

    Raises
    ------
    UserError
        The suffix is unknown, or the format cannot be written.
    """
    from posteriori.tables.dialects import SEPARATORS
    from posteriori.tables.scanning import format_of

    with as_user_errors():
        kind = format_of(path)
    if kind == "excel":
        raise UserError(f"{str(path)!r} is a spreadsheet, which is not written; write .csv or .parquet")
    packed = path.suffix.lower()
    if packed == ".zst":
        raise UserError(
            f"{str(path)!r} asks for compression by zstd, which is not supported; write .csv, .csv.gz or .parquet"
        )

    def write(frame: pl.DataFrame, position: Path) -> None:
        if kind == "parquet":
            frame.write_parquet(position)
        elif kind == "arrow":
            frame.write_ipc(position)
        else:
            text = _csv_text(frame, SEPARATORS[kind]) if kind in SEPARATORS else frame.write_ndjson()
            position.write_bytes(gzip.compress(text.encode()) if packed == ".gz" else text.encode())

    return write
