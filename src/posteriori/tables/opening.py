"""Files as polars can read them: text in other encodings, spreadsheets and streams are copied to temporary files."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from posteriori.lazy_polars import pl
from posteriori.tables.dialects import SEPARATORS, UTF8_WITH_COMMAS, AskedDialect, Dialect, common_decimal, detect

_MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\x03\x04": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"{": ".ndjson",
}


class _TemporaryFolder:
    """A folder for copies, which is removed with the last reference to this object, or when the process ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="posteriori-"))
        self._removal = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class TableFile:
    """A file of a table.

    Attributes
    ----------
    path : Path
        Its name in messages.
    kind : {"csv", "tsv", "ndjson", "parquet", "arrow"}
        The format of the file that is read.
    readable : Path
        The file that polars reads: the file itself, or a temporary copy of it.
    dialect : Dialect
        How the file spells its cells, if it is CSV or TSV.
    """

    path: Path
    kind: str
    readable: Path
    dialect: Dialect = UTF8_WITH_COMMAS
    _folder: Any = field(default=None, repr=False, compare=False)  # of the copy; removed with its last reference

    @property
    def packing(self) -> str:
        """The suffix of the compression, in lower case: .gz, .zst, or another one where there is none."""
        return self.readable.suffix.lower()


def opened_files(paths: Sequence[Path], kind: str, asked: AskedDialect) -> tuple[TableFile, ...]:
    """Return files as polars can read them.

    Raises
    ------
    ValueError
        A file is not text, or not a spreadsheet, or an option on text is given for files that are none.
    """
    asked.check()
    if kind not in SEPARATORS and asked.states_something:
        raise ValueError(
            f"separator, decimal and encoding are options for CSV and TSV files, which {str(paths[0])!r} is not; "
            "leave them out"
        )
    if kind == "excel":
        return tuple(_copy_of_spreadsheet(path) for path in paths)
    if kind not in SEPARATORS:
        return tuple(TableFile(path, kind, path) for path in paths)
    dialects = common_decimal([detect(path, kind, asked) for path in paths])
    files = [TableFile(path, kind, path, dialect) for path, dialect in zip(paths, dialects, strict=True)]
    return tuple(one if one.dialect.encoding in ("utf-8", "ascii") else _copy_in_utf8(one) for one in files)


def _copy_in_utf8(file: TableFile) -> TableFile:
    if file.packing == ".zst":
        raise ValueError(f"{str(file.path)!r} is {file.dialect.encoding} packed by zstd; unpack it first")
    folder = _TemporaryFolder()
    copy = folder.path / f"copy.{file.kind}"
    encoding = file.dialect.encoding
    opened: Any = gzip.open if file.packing == ".gz" else open
    try:
        with (
            opened(file.readable, "rt", encoding=encoding, newline="") as text,
            copy.open("w", encoding="utf-8", newline="") as out,
        ):
            shutil.copyfileobj(text, out, 1 << 20)
    except UnicodeError:
        raise ValueError(f"cannot read {str(file.path)!r}: it is not {encoding} text; state its encoding") from None
    return replace(file, readable=copy, _folder=folder)


def _copy_of_spreadsheet(path: Path) -> TableFile:
    """Return the first sheet of a spreadsheet as CSV, so that its cells are read as those of other text files are."""
    try:
        import fastexcel
    except ImportError:
        raise ValueError(
            f"{str(path)!r} is a spreadsheet, which fastexcel reads: pip install fastexcel, or write the sheet as CSV"
        ) from None
    try:
        sheets = fastexcel.read_excel(path).sheet_names
        frame = pl.read_excel(path, sheet_name=sheets[0], engine="calamine", raise_if_empty=False)
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ValueError(f"cannot read {str(path)!r}: it is not a spreadsheet ({reason})") from None
    if len(sheets) > 1:
        warnings.warn(
            f"{path.name} has {len(sheets)} sheets; the first, {sheets[0]!r}, is read", UserWarning, stacklevel=5
        )
    folder = _TemporaryFolder()
    copy = folder.path / "copy.csv"
    frame.write_csv(copy)
    return TableFile(path, "csv", copy, _folder=folder)


def spooled(stream: Any, name: str = "stdin") -> tuple[Path, Any]:
    """Copy a binary stream to a temporary file; return the file, and an object that keeps it.

    The first bytes give the format: Parquet, Arrow, Excel, packed or newline-delimited JSON, and else CSV.
    """
    folder = _TemporaryFolder()
    copy = folder.path / name
    with copy.open("wb") as out:
        shutil.copyfileobj(stream, out, 1 << 20)
    with copy.open("rb") as file:
        head = file.read(1 << 10)
    suffix = next((suffix for magic, suffix in _MAGIC.items() if head.lstrip().startswith(magic)), ".csv")
    with suppress(FileNotFoundError):
        copy = copy.rename(copy.with_name(name + suffix))
    return copy, folder
