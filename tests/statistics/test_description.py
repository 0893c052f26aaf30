"""The description of a table: by parts, by batches and by NumPy it is the same."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.reading import infer_schema, read_table
from posteriori.statistics import description
from posteriori.statistics.description import NumericColumns, describe_scan
from posteriori.tables import Batch

CELLS = st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=30)


def scanned(frame, folder, batch_rows, monkeypatch):
    monkeypatch.setattr(description, "_BATCH_ROWS", batch_rows)
    frame.write_parquet(folder / "t.parquet")
    return describe_scan(po.scan(folder / "t.parquet"), [name for name in frame.columns if name != "y"], "y")


@given(cells=CELLS, batch_rows=st.integers(1, 40), offset=st.sampled_from([0.0, 1e8]))
def test_numbers_are_those_of_numpy_however_the_rows_are_cut(cells, batch_rows, offset, tmp_path_factory):
    cells = [None if cell is None else cell + offset for cell in cells]
    frame = pl.DataFrame({"x": pl.Series(cells, dtype=pl.Float64), "y": ["a"] * len(cells)})
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = scanned(frame, tmp_path_factory.mktemp("t"), batch_rows, monkeypatch).columns["x"].cells
    present = np.array([cell for cell in cells if cell is not None and cell == cell])
    assert (found.present, found.missing) == (len(present), len(cells) - len(present))
    if not len(present):
        assert (found.mean, found.sd, found.lowest, found.highest) == (None,) * 4
        return
    assert_allclose(found.mean, present.mean(), rtol=1e-12, atol=1e-9)
    assert (found.lowest, found.highest) == (present.min(), present.max())
    if len(present) == 1:
        assert found.sd is None
    else:
        assert_allclose(found.sd, present.std(ddof=1), rtol=1e-6, atol=1e-6)


def test_a_file_and_a_table_in_memory_have_the_same_description(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.normal(1e8, 1.0, 500), "k": rng.integers(9, size=500), "y": ["a", "b"] * 250})
    frame = frame.with_columns(x=pl.when(pl.int_range(500) % 7 == 0).then(None).otherwise("x"))
    of_file = scanned(frame, tmp_path, 64, monkeypatch)
    features = frame.select("x", "k")
    table = read_table(features)
    schema = infer_schema(table)
    numbers = np.column_stack([frame["x"].to_numpy(), frame["k"].cast(pl.Float64).to_numpy()])
    batches = [
        Batch.of(schema, start, numbers[start : start + 100], np.zeros((100, 0), schema.code_dtype), {})
        for start in range(0, 500, 100)
    ]
    of_batches = NumericColumns.of(batches[0])
    for batch in batches[1:]:
        of_batches += NumericColumns.of(batch)
    for position, name in enumerate(("x", "k")):
        one, other = of_file.columns[name].cells, of_batches.column(position)
        assert (one.present, one.missing, one.lowest, one.highest) == (
            other.present,
            other.missing,
            other.lowest,
            other.highest,
        )
        assert_allclose([one.mean, one.sd], [other.mean, other.sd], rtol=1e-9)


def test_labels_values_and_row_counters(tmp_path, monkeypatch):
    frame = pl.DataFrame(
        {
            "row": range(100, 200),
            "flag": [0, 1] * 50,
            "constant": [3] * 100,
            "name": ["u", None] * 50,
            "nothing": [None] * 100,
            "y": ["a", "b", None, "a"] * 25,
        }
    )
    found = scanned(frame, tmp_path, 30, monkeypatch)
    assert found.labels == {"a": 50, "b": 25}
    assert found.n_labelled == 75
    assert {name: column.counts_rows for name, column in found.columns.items()} == {
        "row": True,
        "flag": False,
        "constant": False,
        "name": False,
        "nothing": False,
    }
    assert [column.n_values for column in found.columns.values()] == [3, 2, 1, 1, 0]


def test_many_labels_are_checked_before_all_rows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(description, "_MANY_LABELS", 10)
    frame = pl.DataFrame({"x": range(100), "y": [str(k) for k in range(100)]})
    monkeypatch.setattr(description, "_BATCH_ROWS", 20)
    frame.write_parquet(tmp_path / "t.parquet")
    sizes = []

    def refuse(labels):
        sizes.append(len(labels))
        raise ValueError("too many")

    with pytest.raises(ValueError, match="too many"):
        describe_scan(po.scan(tmp_path / "t.parquet"), ["x"], "y", check_labels=refuse)
    assert sizes == [20]
