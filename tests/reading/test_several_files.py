"""Several files as one table: their columns are matched by name, whatever their order."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import polars as pl
import pytest

import posteriori as po

_RNG = np.random.default_rng(0)
ROWS = pl.DataFrame(
    {
        "x": _RNG.normal(size=90),
        "k": _RNG.choice(list("uvw"), 90),
        "day": [f"2024-01-{1 + i % 28:02d}" for i in range(90)],
        "y": _RNG.choice(["a", "b"], 90),
    }
)


def _write_gzipped(rows, path):
    with gzip.open(path, "wt") as file:
        file.write(rows.write_csv())


def _write_latin(rows, path):
    path.write_text(rows.with_columns(pl.col("k").replace("u", "ü")).write_csv(), "latin-1")


WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "semicolon.csv": lambda rows, path: rows.write_csv(path, separator=";"),
    "latin.csv": _write_latin,
    "csv.gz": _write_gzipped,
    "tsv": lambda rows, path: rows.write_csv(path, separator="\t"),
    "ndjson": pl.DataFrame.write_ndjson,
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
}
_PAIRS = [(kind, kind) for kind in WRITERS] + [
    ("csv", "semicolon.csv"),
    ("csv", "csv.gz"),
    ("semicolon.csv", "latin.csv"),
]


@pytest.fixture(params=_PAIRS, ids="-".join)
def written(request, tmp_path):
    """Return a function that writes two tables as files of some kinds, and returns their paths."""

    def write(*tables):
        paths = [tmp_path / f"{k}.{kind}" for k, kind in enumerate(request.param)]
        for table, path, kind in zip(tables, paths, request.param, strict=True):
            WRITERS[kind](table, path)
        return paths

    return write


def _cells(paths, **options):
    rows = po.scan(paths, **options)  # holds the copies in UTF-8
    return rows.frame.collect()


def test_columns_in_any_order_are_one_table(written):
    expected = _cells(written(ROWS[:50], ROWS[50:]))
    for order in itertools.permutations(ROWS.columns):
        paths = written(ROWS[:50], ROWS[50:].select(order))
        assert _cells(paths).equals(expected)
    po.NaiveBayes().fit(po.scan(paths, "y"))


@pytest.mark.parametrize("place", range(5))
def test_a_column_that_one_file_lacks_or_has_beside_the_others(written, place):
    wider = ROWS[50:].insert_column(place, pl.Series("more", range(40)))
    for tables, has in (((ROWS[:50], wider), 1), ((wider, ROWS[:50]), 0)):
        paths = written(*tables)
        with pytest.raises(ValueError, match=r"column 'more' is in .* but not in") as caught:
            po.scan(paths)
        assert str(paths[has]) in str(caught.value).partition(" but not in ")[0]


@pytest.mark.parametrize("place", range(5))
def test_files_may_differ_in_columns_that_are_not_read(written, place):
    wider = ROWS[50:].insert_column(place, pl.Series("more", range(40)))
    read = {"target": "y", "columns": ["k", "x"]}
    expected = _cells(written(ROWS[:50], ROWS[50:]), **read)
    for tables in ((ROWS[:50], wider), (ROWS[:50], ROWS[50:].select("y", "k", "x"))):
        assert _cells(written(*tables), **read).equals(expected)
