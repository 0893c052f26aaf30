"""Training rows are recognised together, in any part, and no row alone."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori.classifiers.training_record import record_rows, share_of_seen_rows
from posteriori.statistics import RowFingerprints
from posteriori.statistics.row_records import hash_rows


def hashes(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, np.uint64)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "x": rng.normal(size=n),
            "k": rng.integers(0, 5, n),
            "c": rng.choice(["a", "b", "ü"], n),
            "y": rng.choice(["u", "v"], n),
        }
    )


@given(st.integers(20, 30_000), st.integers(0, 100))
def test_all_training_rows_are_recognised_and_few_others(n, seed):
    record = RowFingerprints.of(hashes(n, seed))
    assert record.overlap(hashes(n, seed)) == 1.0
    assert record.overlap(hashes(n, seed + 1000)) == 0.0
    assert len(record.bits) <= 4096
    # A single other row matches by chance, so that a match is little evidence of one row.
    assert 0.08 < np.unpackbits(record.bits).mean() < 0.3


def test_the_share_of_training_rows_among_others_is_estimated():
    record, other = RowFingerprints.of(hashes(20_000)), hashes(40_000, 1)
    for share in (0.25, 0.5):
        n = int(20_000 * share)
        mixed = np.concatenate([hashes(20_000)[:n], other[: 20_000 - n]])
        assert record.overlap(mixed) == pytest.approx(share, abs=0.05)


def test_rows_that_repeat_are_no_sign_of_training_rows():
    few = hashes(50)  # a table of 50 different rows
    training, new = few[np.random.default_rng(0).integers(0, 50, (2, 3000))]
    record = RowFingerprints.of(training)
    assert record.repeated == 1.0
    assert record.overlap(new) == 0.0


def test_the_hash_of_a_row_ignores_codes_and_the_column_order():
    rows = table(200)
    model = po.NaiveBayes().fit(rows, "y")
    wider = po.NaiveBayes().fit(pl.concat([table(200, 1).with_columns(c=pl.lit("0")), rows]), "y")
    turned = po.NaiveBayes().fit(rows.select("c", "k", "x", "y"), "y")
    expected = model._source(rows).map(hash_rows)
    for other in (wider, turned):
        assert_array_equal(other._source(rows).map(hash_rows), expected)
    assert len(np.unique(expected)) == 200
    changed = rows.with_columns(c=pl.lit("a"))
    assert (model._source(changed).map(hash_rows) == expected).mean() == (rows["c"] == "a").mean()


def test_the_record_follows_the_training_rows(tmp_path):
    rows = table(300)
    model = po.NaiveBayes().fit(rows, "y")
    assert share_of_seen_rows(model, rows) is None
    record_rows(model, rows)
    po.save(model, tmp_path / "m")
    assert share_of_seen_rows(po.load(tmp_path / "m"), rows) == 1.0
    assert share_of_seen_rows(po.load(tmp_path / "m").partial_fit(table(50, 1), "y"), rows) == 1.0
    for changed in (
        po.load(tmp_path / "m").unlearn(rows[:20], "y"),
        po.load(tmp_path / "m").fit(table(300, 2), "y"),
        po.merge([po.load(tmp_path / "m")] * 2),
    ):
        assert share_of_seen_rows(changed, rows) is None


def test_crafted_records_are_refused():
    for bits, level, repeated in (
        (np.zeros(3, np.uint8), 0, 0.0),
        (np.zeros(0, np.uint8), 0, 0.0),
        (np.zeros(4, np.bool_), 0, 0.0),
        (np.zeros(4, np.uint8), 64, 0.0),
        (np.zeros(4, np.uint8), 0, 1.5),
    ):
        with pytest.raises(ValueError, match=r"fingerprints|repeated"):
            RowFingerprints(bits, level, repeated).check()


def test_a_number_has_one_hash_in_every_type():
    x = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
    narrow, wide = (pl.DataFrame(x.astype(dtype), schema=["a", "b"]) for dtype in (np.float32, np.float64))
    model = po.NaiveBayes().fit(wide, list("ababa"))
    assert_array_equal(model._source(narrow).map(hash_rows), model._source(wide).map(hash_rows))
