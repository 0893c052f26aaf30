"""Files to learn from: what they may be, and what may be wrong with them."""

import gzip
import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.reading import files


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    return pl.DataFrame(
        {"x": rng.normal(y), "sky": np.array(["fog", "sun"])[(rng.random(3000) < 0.3 + 0.4 * y).astype(int)], "y": y}
    )


def same(model, other, rows):
    np.testing.assert_array_equal(model.predict_proba(rows), other.predict_proba(rows))


def test_a_scan_says_what_it_holds(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    rows = po.scan(tmp_path / "a.parquet", target="y")
    assert "3,000 rows × 3 columns" in repr(rows)
    assert "target: y" in repr(rows)


def test_folders_become_columns(frame, tmp_path):
    parts = []
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        part = frame.filter(pl.int_range(pl.len()) % 2 == year % 2)
        part.write_parquet(tmp_path / f"year={year}" / "a.parquet")
        parts.append(part.with_columns(pl.lit(year, pl.Int64).alias("year")))
    whole = pl.concat(parts)
    same(po.NaiveBayes().fit(po.scan(tmp_path, target="y")), po.NaiveBayes().fit(whole, "y"), whole)


def test_categories_of_the_last_file_are_known(frame, tmp_path):
    frame.write_csv(tmp_path / "a.csv")
    frame.with_columns(pl.lit("hail").alias("sky")).write_csv(tmp_path / "b.csv")
    model = po.NaiveBayes().fit(po.scan(tmp_path / "*.csv", target="y"))
    assert model.model_.schema.columns[1].categories == ("fog", "hail", "sun")


def test_declared_categories_take_no_pass_and_are_binding(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    rows = po.scan(tmp_path, "y", categories={"sky": ["sun", "fog"]})
    model = po.NaiveBayes().fit(rows)
    assert model.model_.schema.columns[1].categories == ("sun", "fog")
    assert set(rows._distinct) == {"y"}
    with pytest.raises(ValueError, match="cannot read"):
        po.NaiveBayes().fit(po.scan(tmp_path, "y", categories={"sky": ["sun", "hail"]}))


def test_columns_and_numbers_as_categories(frame, tmp_path):
    both = frame.with_columns((pl.col("y") * 2 + 1).alias("floors"))
    both.write_parquet(tmp_path / "a.parquet")
    rows = po.scan(tmp_path, "y", columns=["floors", "x"], categorical=["floors"])
    model = po.NaiveBayes().fit(rows)
    assert model.feature_names_in_.tolist() == ["floors", "x"]
    assert model.model_.schema.columns[0].categories == (1, 3)


def test_a_column_without_any_cell_in_one_file(frame, tmp_path):
    for suffix, write in ((".parquet", "write_parquet"), (".csv", "write_csv")):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        getattr(frame.with_columns(x=None), write)(folder / f"a{suffix}")
        getattr(frame, write)(folder / f"b{suffix}")
        whole = pl.concat([frame.with_columns(pl.lit(None, pl.Float64).alias("x")), frame])
        same(po.NaiveBayes().fit(po.scan(folder, "y")), po.NaiveBayes().fit(whole, "y"), whole)


def test_a_file_without_rows_adds_nothing(frame, tmp_path):
    for suffix, write in ((".parquet", "write_parquet"), (".csv", "write_csv")):
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        getattr(frame[:0], write)(folder / f"a{suffix}")
        with pytest.raises(ValueError, match="0 sample"):
            po.NaiveBayes().fit(po.scan(folder, "y"))
        getattr(frame, write)(folder / f"b{suffix}")
        same(po.NaiveBayes().fit(po.scan(folder, "y")), po.NaiveBayes().fit(frame, "y"), frame)
    (tmp_path / "csv" / "c.csv").touch()
    with pytest.raises(ValueError, match=r"c\.csv' is empty"):
        po.scan(tmp_path / "csv")


def test_a_type_that_differs_is_named(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    frame.with_columns(pl.col("x").cast(pl.String)).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"column 'x' is Float64 in .*a\.parquet' but String in .*b\.parquet'"):
        po.scan(tmp_path)
    frame.drop("x").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"column 'x' is in .*a\.parquet' but not in .*b\.parquet'"):
        po.scan(tmp_path)


@pytest.mark.parametrize("quoted", [False, True])
def test_a_row_with_too_few_cells_is_named(frame, tmp_path, quoted):
    text = frame.write_csv()
    cell = '"a, b"' if quoted else "fog"
    (tmp_path / "a.csv").write_text(text + f"1.5,{cell}\n2.5,sun,1\n")
    with pytest.raises(ValueError, match=r"line 3002 of .*a\.csv' has fewer cells than the 3"):
        po.NaiveBayes().fit(po.scan(tmp_path / "a.csv", "y"))
    (tmp_path / "a.csv").write_text(text + "1.5,fog,\n")
    with pytest.raises(ValueError, match="row 3000 is missing"):
        po.NaiveBayes(labels=po.Labels(unlabelled="error")).fit(po.scan(tmp_path / "a.csv", "y"))


def test_a_file_that_vanishes_is_named(frame, tmp_path):
    for name in "ab":
        frame.write_parquet(tmp_path / f"{name}.parquet")
    rows = po.scan(tmp_path, "y")
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"b\.parquet' is gone"):
        po.NaiveBayes().fit(rows)


def test_files_that_change_are_told_of(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    rows = po.scan(tmp_path, "y")
    assert rows.n_rows == 3000
    frame[:2000].write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="scan the files again"):
        po.NaiveBayes().fit(rows)


def test_a_damaged_row_group_is_named_and_leaves_no_file(frame, tmp_path):
    good = tmp_path / "a.parquet"
    frame.write_parquet(good)
    bad = tmp_path / "b.parquet"
    pl.DataFrame({name: frame[name] for name in frame.columns}).write_parquet(bad)
    data = bytearray(bad.read_bytes())
    data[50 : len(data) // 2] = b"\x07" * (len(data) // 2 - 50)
    bad.write_bytes(data)
    rows = po.scan(tmp_path, "y")
    with pytest.raises(ValueError, match=r"cannot read .*b\.parquet'"):
        po.NaiveBayes().fit(rows)
    out = tmp_path / "out"
    out.mkdir()
    model = po.NaiveBayes().fit(frame, "y")
    for suffix in ("csv", "parquet"):
        with pytest.raises(ValueError, match=r"cannot read .*b\.parquet'"):
            po.predict_to(model, rows, out / f"p.{suffix}")
    assert not list(out.iterdir())


def test_too_many_categories_are_refused_before_all_are_read(frame, tmp_path):
    frame.with_columns(pl.lit("")).with_columns(name=pl.int_range(pl.len()).cast(pl.String)).write_parquet(
        tmp_path / "a.parquet"
    )
    rows = po.scan(tmp_path / "a.parquet", "y")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "MAX_CATEGORIES", 100)
        with pytest.raises(ValueError, match="column 'name' has more than 100 categories"):
            po.NaiveBayes(columns=po.Columns(keep="all")).fit(rows)


def test_what_is_no_table_is_refused(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        po.scan(tmp_path / "nothing*.csv")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ValueError, match="no suffix"):
        po.scan(tmp_path / "a.txt")
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="one format"):
        po.scan([tmp_path / "a.csv", tmp_path / "a.parquet"])
    with pytest.raises(ValueError, match="lack column 'z'"):
        po.scan(tmp_path / "a.csv", "z")
    with pytest.raises(ValueError, match="requires y"):
        po.NaiveBayes().fit(po.scan(tmp_path / "a.csv"))
    with pytest.raises(ValueError, match="learns without labels"):
        po.MixtureModel(2).fit(po.scan(tmp_path / "a.csv", "y"))
    model = po.NaiveBayes().fit(frame, "y")
    with pytest.raises(ValueError, match="overwrite"):
        po.predict_to(model, po.scan(tmp_path / "a.csv"), tmp_path / "a.csv")
    with pytest.raises(FileNotFoundError, match="no folder"):
        po.predict_to(model, frame, tmp_path / "b" / "a.csv")


SLOWLY = """
import signal, sys, time, posteriori as po, polars as pl
signal.signal(signal.SIGINT, signal.default_int_handler)  # what started the tests may have it ignored
folder, suffix = sys.argv[1:]
model = po.NaiveBayes(n_jobs=2).fit(pl.read_parquet(folder + "/a.parquet"), "y")
def wait(n):
    print("begun", flush=True)
    time.sleep(0.2)  # so that the work takes a minute
rows = po.scan([folder + "/a.parquet"] * 300, "y")
try:
    po.predict_to(model, rows, folder + "/out" + suffix, progress=wait)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="has no SIGINT to send to one process")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_interrupt_leaves_nothing_behind(frame, tmp_path, suffix):
    frame.write_parquet(tmp_path / "a.parquet")
    (tmp_path / f"out{suffix}").write_text("before")
    command = [sys.executable, "-c", SLOWLY, str(tmp_path), suffix]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline().startswith("begun")
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=30)
    assert "interrupted" in said
    assert running.returncode == 0
    assert (tmp_path / f"out{suffix}").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", f"out{suffix}"]


@pytest.mark.parametrize("column", [None, "sky", "y"])
def test_a_category_that_a_glance_has_missed_is_learned(frame, tmp_path, monkeypatch, column):
    monkeypatch.setattr(files, "_MANY_ROWS", 100)
    monkeypatch.setattr(files, "_HEAD_ROWS", 50)
    if column is not None:
        last = pl.int_range(pl.len()) == frame.height - 1
        frame = frame.with_columns(pl.when(last).then(pl.lit("late")).otherwise(pl.col(column)).alias(column))
    frame.write_parquet(tmp_path / "a.parquet")
    rows = po.scan(tmp_path / "a.parquet", "y")
    looks = []
    monkeypatch.setattr(files, "start_progress", lambda what, n_rows: looks.append(what) or (lambda n: None))
    model, other = po.NaiveBayes().fit(rows), po.NaiveBayes().fit(frame, "y")
    assert looks == ([] if column is None else ["categories"])
    assert model.schema_.columns == other.schema_.columns
    np.testing.assert_array_equal(model.predict_proba(frame), other.predict_proba(frame))


def test_integers_beyond_64_bits_keep_their_digits(tmp_path):
    path = tmp_path / "large.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("a,b\n" + "1,2\n" * 3 + f"1,{2**156}\n")
    assert po.scan(path).frame.collect()["b"].to_list() == ["2", "2", "2", str(2**156)]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_at_some_positions_come_in_the_order_of_the_table(tmp_path, suffix):
    frame = pl.DataFrame({"row": np.arange(1000), "y": ["a", "b"] * 500})
    getattr(frame, f"write_{suffix}")(tmp_path / f"t.{suffix}")
    places = np.sort(np.random.default_rng(0).permutation(1000)[:300])
    rows = po.scan(tmp_path / f"t.{suffix}", "y").at(places)
    assert rows.n_rows == 300
    assert rows.types.keys() == {"row", "y"}
    assert pl.concat(rows.frames(["row"]))["row"].to_list() == places.tolist()
    np.testing.assert_array_equal(po.NaiveBayes().fit(rows).class_count_, np.bincount(places % 2))
