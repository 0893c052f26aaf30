"""Tables as files of every format and dialect, and bytes of which one thing is changed."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl

from fuzz.tables import Rng, pick

_SUFFIXES = (".csv", ".csv", ".csv", ".tsv", ".ndjson", ".parquet", ".arrow", ".csv.gz")
_POISON = (b'"', b"\r", b"\n", b"\x00", b"\xef\xbb\xbf", b"\xff", b",", b"\t", b"'", b"{", b"}", b"\\", b"1e999", b"-")
_NOT_TEXT = {".ndjson": (pl.Binary, pl.Duration, pl.Int128, pl.UInt128, pl.Time, pl.Object)}


def _writable(frame: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """Return a table without the columns that its format cannot hold."""
    refused = {".parquet": (pl.UInt128, pl.Object), ".arrow": (pl.Object,), **_NOT_TEXT}
    text = (pl.Binary, pl.Duration, pl.Object)
    kept = [
        one
        for one in frame.iter_columns()
        if one.dtype not in refused.get(suffix, text) and not (suffix not in refused and one.dtype.is_nested())
    ]
    return pl.DataFrame(kept)


def _text_of(rng: Rng, frame: pl.DataFrame, separator: str) -> bytes:
    """Return a table as text of some dialect that can be detected: its separator, line ends and encoding."""
    separator = pick(rng, (separator, separator, ";", "|"))
    text = frame.write_csv(separator=separator, line_terminator=pick(rng, ("\n", "\n", "\r\n")))
    return text.encode(pick(rng, ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16")))


def write_table(rng: Rng, frame: pl.DataFrame, folder: Path, stem: str) -> Path:
    """Write a table in some format, and return the path of its file."""
    suffix = pick(rng, _SUFFIXES)
    path = folder / f"{stem}{suffix}"
    frame = _writable(frame, suffix)
    if suffix == ".parquet":
        frame.write_parquet(path, compression=pick(rng, ("zstd", "uncompressed")))
    elif suffix == ".arrow":
        frame.write_ipc(path)
    elif suffix == ".ndjson":
        frame.write_ndjson(path)
    else:
        text = _text_of(rng, frame, "\t" if suffix == ".tsv" else ",")
        path.write_bytes(gzip.compress(text, mtime=0) if suffix.endswith(".gz") else text)
    return path


def mutate_file(rng: Rng, path: Path) -> None:
    """Change one thing of the bytes of a file."""
    content = path.read_bytes()
    inside = path.suffix == ".gz" and rng.random() < 0.9
    changed = bytearray(gzip.decompress(content) if inside else content)
    if not changed:
        return
    position = int(rng.integers(len(changed)))
    stop = position + int(rng.integers(1, 40))
    match int(rng.integers(7)):
        case 0:
            changed[position] ^= 1 << int(rng.integers(8))
        case 1:
            del changed[position:]
        case 2:
            changed[position] = int(rng.integers(256))
        case 3:
            changed[position:position] = changed[position:stop]
        case 4:
            del changed[position:stop]
        case _:
            changed[position:position] = pick(rng, _POISON)
    path.write_bytes(gzip.compress(bytes(changed), mtime=0) if inside else bytes(changed))
