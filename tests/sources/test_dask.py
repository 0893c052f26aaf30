"""Dask: threads and worker processes, and what may be wrong with partitions."""

import itertools
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import posteriori as po

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")


@pytest.fixture(scope="module")
def frame(mixed_frame):
    return mixed_frame.to_pandas()


def in_parts(frame, *cuts):
    """Return a Dask DataFrame of the rows between cuts."""
    cuts = [0, *cuts, len(frame)]
    parts = [dask.delayed(frame.iloc[start:stop]) for start, stop in itertools.pairwise(cuts)]
    return dd.from_delayed(parts, meta=frame.iloc[:0])


def agree(model, other, rows):
    np.testing.assert_allclose(model.predict_log_proba(rows), other.predict_log_proba(rows), rtol=1e-9, atol=1e-11)


# Frames --------------------------------------------------------------------------------------------------------------


def test_predictions_compute_nothing_until_they_are_asked_for(frame):
    read = []

    def mark(part):
        read.append(len(part))
        return part

    rows = in_parts(frame, 2000).map_partitions(mark, meta=frame.iloc[:0])
    model = po.NaiveBayes().fit(frame, "y")
    lazy = [model.predict(rows), model.predict_proba(rows), model.predict_log_proba(rows), model.score_samples(rows)]
    assert read == []
    assert [one.ndim for one in lazy] == [1, 2, 2, 1]
    assert all(isinstance(one, da.Array) for one in lazy)
    assert lazy[1].shape[1] == 3
    expected = [model.predict(frame), model.predict_proba(frame), model.predict_log_proba(frame)]
    for one, other in zip(lazy, expected, strict=False):
        found = one.compute()
        assert found.dtype == one.dtype == other.dtype
        np.testing.assert_array_equal(found, other)


@pytest.mark.filterwarnings("ignore:X lacks column")
@pytest.mark.parametrize("lacking", ["height", "sky"])
def test_a_column_absent_from_all_partitions_is_unknown(frame, lacking):
    model = po.NaiveBayes().fit(frame, "y")
    fewer, expected = in_parts(frame, 2000).drop(columns=lacking), model.predict_proba(frame.drop(columns=lacking))
    with pytest.warns(UserWarning, match=f"X lacks column '{lacking}', which NaiveBayes was trained on: unknown in"):
        lazy = model.predict_proba(fewer)
    np.testing.assert_array_equal(lazy.compute(), expected)
    assert model.score(fewer, "y") == model.score(frame.drop(columns=lacking), "y")


def test_each_block_can_be_asked_for_alone(frame):
    model = po.NaiveBayes().fit(frame, "y")
    lazy = model.predict(in_parts(frame, 2000))
    assert lazy.blocks[1].compute().tolist() == model.predict(frame)[2000:].tolist()


def test_labels_and_weights_may_be_dask_too(frame):
    rows, weight = in_parts(frame, 2000), np.arange(1.0, 1.0 + len(frame))
    other = po.NaiveBayes().fit(frame.drop(columns="y"), frame["y"], sample_weight=weight)
    X = rows.drop(columns="y")
    for y in (
        frame["y"],
        frame["y"].to_numpy(),
        rows["y"],
        da.from_array(frame["y"].to_numpy(dtype=object), chunks=900),
    ):
        model = po.NaiveBayes().fit(X, y, sample_weight=da.from_array(weight, chunks=700))
        agree(model, other, frame.drop(columns="y"))
        assert model.score(X, y) == other.score(frame.drop(columns="y"), frame["y"])


def test_partitions_without_rows_add_nothing(frame):
    rows = in_parts(frame, 0, 0, 2500, 2500, len(frame))
    model = po.NaiveBayes().fit(rows, "y")
    agree(model, po.NaiveBayes().fit(frame, "y"), frame)
    assert model.predict(rows).compute().tolist() == model.predict(frame).tolist()


def test_no_rows_at_all_are_refused(frame):
    with pytest.raises(ValueError, match="0 sample"):
        po.NaiveBayes().fit(in_parts(frame.iloc[:0], 0), "y")
    empty = po.NaiveBayes().fit(frame, "y").predict(in_parts(frame.iloc[:0], 0)).compute()
    assert empty.shape == (0,)


def test_a_partition_may_lack_all_cells_of_a_column_or_labels(frame):
    few = frame.copy()
    few.loc[few.index < 500, ["height", "sky", "y"]] = None
    rows = in_parts(few, 500, 2000)
    model, other = (
        po.NaiveBayes(labels=po.Labels(unlabelled="learn"), em=po.EM(max_iter=3, tol=1.0)).fit(one, "y")
        for one in (rows, few)
    )
    agree(model, other, frame)


def test_what_all_partitions_lack_is_warned_of_as_in_memory(frame):
    few = frame.assign(height=np.nan)
    said = []
    for rows in (few, in_parts(few, 100, 2000)):
        with pytest.warns(UserWarning, match="height") as caught:
            po.NaiveBayes().fit(rows, "y")
        said.append([str(one.message) for one in caught])
    assert said[0] == said[1]


@pytest.mark.parametrize("known", [True, False])
def test_categorical_types_are_known_or_not(frame, known):
    typed = frame.assign(sky=frame["sky"].astype("category"), roof=frame["roof"].astype("category"))
    rows = in_parts(typed, 1000, 3000)
    if not known:
        rows["sky"] = rows["sky"].cat.as_unknown()
        rows["roof"] = rows["roof"].cat.as_unknown()
    model = po.NaiveBayes().fit(rows, "y")
    agree(model, po.NaiveBayes().fit(typed, "y"), typed)
    agree(model, po.NaiveBayes().fit(frame, "y"), typed)
    assert model.predict(rows).compute().tolist() == model.predict(typed).tolist()


def test_partitions_may_know_other_categories(frame):
    """As reading many files with a categorical type does: each has those that it saw, in its own order."""
    parts = [part.assign(sky=part["sky"].astype("category")) for part in (frame[:2000], frame[4990:], frame[2000:4990])]
    whole = pd.concat([part.assign(sky=part["sky"].astype(object)) for part in parts])
    meta = parts[0].iloc[:0].assign(sky=dd.utils.clear_known_categories(parts[0].iloc[:0]["sky"]))
    rows = dd.from_delayed([dask.delayed(part) for part in parts], meta=meta)
    agree(po.NaiveBayes().fit(rows, "y"), po.NaiveBayes().fit(whole, "y"), whole)


@pytest.mark.parametrize("kind", ["nullable", "arrow", "object"])
def test_types_of_pandas_beyond_numpy_are_read(frame, kind):
    if kind == "object":
        typed = frame.astype({"sky": object, "roof": object, "windy": object, "rooms": object})
    else:
        typed = frame.convert_dtypes(dtype_backend="numpy_nullable" if kind == "nullable" else "pyarrow")
    with dask.config.set({"dataframe.convert-string": False}):
        rows = in_parts(typed, 1300, 1300, 1320)
        model = po.NaiveBayes().fit(rows, "y")
        agree(model, po.NaiveBayes().fit(typed, "y"), typed)
        assert model.predict(rows).compute().tolist() == model.predict(typed).tolist()


def test_numbers_may_be_categories(frame):
    rows = in_parts(frame, 1300, 2600)
    models = [po.NaiveBayes(columns=po.Columns(categorical_features=["rooms"])).fit(one, "y") for one in (rows, frame)]
    agree(*models, frame)
    agree(*(po.NaiveBayes().fit(one, "windy") for one in (rows, frame)), frame)
    agree(*(po.NaiveBayes().fit(one, "rooms") for one in (rows[rows["rooms"] < 5], frame[frame["rooms"] < 5])), frame)


def test_columns_are_found_by_their_names(frame):
    model = po.NaiveBayes().fit(frame, "y")
    rows = in_parts(frame, 2000)[list(frame.columns[::-1])]
    assert model.predict(rows).compute().tolist() == model.predict(frame).tolist()
    with pytest.raises(ValueError, match="X has none of the columns"):
        model.predict(rows[["y"]])
    with pytest.raises(ValueError, match="'nope' is not a column of X"):
        po.NaiveBayes().fit(rows, "nope")
    with pytest.raises(ValueError, match="X has 5000 rows but y has 3 labels"):
        po.NaiveBayes().fit(rows, ["a", "b", "c"])


def test_columns_of_one_name_are_refused(frame):
    twice = in_parts(frame, 2000)
    twice = twice.rename(columns={"height": "width"})
    with pytest.raises(ValueError, match="column 'width' occurs twice; rename or drop one"):
        po.NaiveBayes().fit(twice, "y")


def test_dates_are_python_objects_only_in_memory(frame):
    born = pd.Series([pd.Timestamp("2020-01-01").date()] * len(frame), dtype=object)
    no_strings = dask.config.set({"dataframe.convert-string": False})  # older versions read dates as strings otherwise
    with no_strings, pytest.raises(TypeError, match="column 'born' holds a date"):
        po.NaiveBayes().fit(in_parts(frame.assign(born=born), 10), "y")


def test_a_series_is_no_table(frame):
    with pytest.raises(TypeError, match="give a Dask DataFrame, or a Dask array"):
        po.NaiveBayes().fit(in_parts(frame, 10)["height"], frame["y"])


def test_what_is_wrong_is_said_of_the_row_among_all(frame):
    infinite = frame.copy()
    infinite.loc[4321, "width"] = np.inf
    with pytest.raises(ValueError, match="'width' holds inf in row 4321"):
        po.NaiveBayes().fit(in_parts(infinite, 1000, 3000), "y")
    mixed = frame.astype({"rooms": object})
    mixed.loc[4321, "rooms"] = "many"
    with dask.config.set({"dataframe.convert-string": False}), pytest.raises(ValueError, match="rooms") as there:
        po.NaiveBayes(distributions={"rooms": po.Gaussian()}).fit(in_parts(mixed, 1000, 3000), "y")
    with pytest.raises(ValueError, match="rooms") as here:
        po.NaiveBayes(distributions={"rooms": po.Gaussian()}).fit(mixed, "y")
    assert str(there.value) == str(here.value)


def test_a_partition_of_another_type_is_named(frame):
    """The first rows are numbers; one file of many is not."""
    parts = [frame[:2000], frame[2000:].astype({"rooms": str})]
    rows = dd.from_map(lambda k: parts[k], [0, 1], meta=frame.iloc[:0], enforce_metadata=False)
    with pytest.raises(ValueError, match="column 'rooms' was numeric in training but is"):
        po.NaiveBayes().fit(rows, "y")


def test_rows_that_come_differently_each_time_are_refused(frame):
    drawn = itertools.count(900)
    rows = in_parts(frame, 2000).map_partitions(lambda part: part.iloc[: next(drawn)], meta=frame.iloc[:0])
    with pytest.raises(ValueError, match="rows come differently each time; persist"):
        po.NaiveBayes().fit(rows, "y")


def test_far_from_zero_nothing_is_lost():
    rng = np.random.default_rng(0)
    far = pd.DataFrame({"a": 1e9 + rng.normal(size=3000), "y": rng.integers(0, 2, 3000)})
    model, other = po.NaiveBayes().fit(in_parts(far, 100, 1700), "y"), po.NaiveBayes().fit(far, "y")
    np.testing.assert_allclose(model.var_, other.var_, rtol=1e-9)
    np.testing.assert_allclose(model.var_, 1.0, rtol=0.1)


def test_a_model_goes_on_from_a_cluster_to_a_file(frame, tmp_path):
    from posteriori import load, save

    model = po.NaiveBayes().fit(in_parts(frame, 2000), "y")
    save(model, tmp_path / "a.posteriori")
    assert load(tmp_path / "a.posteriori").predict(frame).tolist() == model.predict(frame).tolist()
    X, _ = model.sample(5, random_state=0)
    assert X.shape == (5, 6)
    assert isinstance(X, pd.DataFrame)


# Arrays --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers(frame):
    return frame[["height", "width", "rooms"]].to_numpy(dtype=float), frame["y"].to_numpy(dtype=str)


@pytest.mark.parametrize("chunks", [(1300, 3), (1300, 2), ((0, 5000), 1)])
def test_arrays_are_read_in_blocks(numbers, chunks):
    X, y = numbers
    rows = da.from_array(X, chunks=chunks)
    for estimator in (po.NaiveBayes, po.GaussianDiscriminant):
        model, other = estimator().fit(rows, da.from_array(y, chunks=900)), estimator().fit(X, y)
        agree(model, other, X)
        lazy = model.predict_proba(rows)
        assert lazy.shape == (5000, 3)
        np.testing.assert_allclose(lazy.compute(), other.predict_proba(X), rtol=1e-9)
        assert model.predict(rows).compute().tolist() == other.predict(X).tolist()


def test_blocks_may_be_of_unknown_length(numbers):
    X, y = numbers
    rows, kept = da.from_array(X, chunks=(1300, 2)), X[:, 2] > 1
    rows = rows[rows[:, 2] > 1]
    model, other = po.NaiveBayes().fit(rows, y[kept]), po.NaiveBayes().fit(X[kept], y[kept])
    agree(model, other, X)
    np.testing.assert_allclose(model.predict_proba(rows).compute(), other.predict_proba(X[kept]), rtol=1e-9)


def test_the_mixture_takes_arrays(numbers):
    X = numbers[0][:1500]
    models = [po.MixtureModel(2, n_init=1, random_state=0, em=po.EM(max_iter=3, tol=1.0)) for _ in range(2)]
    models[0].fit(da.from_array(X, chunks=(700, 3)))
    np.testing.assert_allclose(models[0].means_, models[1].fit(X).means_, rtol=1e-9)
    assert models[0].predict(da.from_array(X, chunks=(700, 3))).compute().tolist() == models[1].predict(X).tolist()


def test_whole_numbers_may_be_categories(numbers):
    X, y = numbers[0][:, 2:].astype(np.int64), numbers[1]
    models = [
        po.NaiveBayes(columns=po.Columns(categorical_features=[0])).fit(one, y)
        for one in (da.from_array(X, chunks=(900, 1)), X)
    ]
    agree(*models, X)
    assert models[0].model_.schema == models[1].model_.schema


def test_arrays_of_another_shape_are_refused(numbers):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        po.NaiveBayes().fit(da.from_array(numbers[0][:, 0], chunks=100), numbers[1])
    model = po.NaiveBayes().fit(*numbers)
    with pytest.raises(ValueError, match="2 features, but NaiveBayes is expecting 3"):
        model.predict(da.from_array(numbers[0][:, :2], chunks=100))


# Worker processes ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    with (
        dask.config.set({"distributed.worker.daemon": True}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_workers_fit_and_predict(cluster, frame):
    rows = in_parts(frame, 1300, 1300, 1320, 4000)
    held = rows.persist()
    other = po.NaiveBayes().fit(frame, "y")
    for one in (rows, held):
        model = po.NaiveBayes().fit(one, "y")
        agree(model, other, frame)
        lazy = model.predict_proba(one)
        assert isinstance(lazy, da.Array)
        np.testing.assert_allclose(lazy.compute(), other.predict_proba(frame), rtol=1e-9)
        assert model.score(one, "y") == other.score(frame, "y")


def test_workers_say_what_is_wrong_in_the_same_words(cluster, frame):
    infinite = frame.copy()
    infinite.loc[4321, "width"] = np.inf
    with pytest.raises(ValueError, match=r"'width' holds inf in row 4321") as there:
        po.NaiveBayes().fit(in_parts(infinite, 1000, 3000), "y")
    with pytest.raises(ValueError, match="inf") as here:
        po.NaiveBayes().fit(infinite, "y")
    assert str(there.value) == str(here.value)


def test_a_worker_that_is_killed_changes_nothing(cluster, frame, tmp_path):
    """Its partitions are done again; nothing is counted twice, nothing is lost."""

    def slowly(part, k, folder):
        (folder / f"{k}-{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(0.1)
        return part

    parts = [dask.delayed(slowly)(frame.iloc[start : start + 500], start, tmp_path) for start in range(0, 5000, 500)]
    rows = dd.from_delayed(parts, meta=frame.iloc[:0])
    killed = []

    def kill_one_at_work():
        while not killed:
            begun = sorted(tmp_path.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            if len(begun) > 25:  # 10 to count the rows, 10 to find their categories: the fold has begun
                killed.append(int(begun[-1].name.split("-")[1]))
                os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one_at_work, daemon=True)
    killer.start()
    model = po.NaiveBayes().fit(rows, "y")
    killer.join()
    assert len(list(tmp_path.iterdir())) > 30  # some partitions were begun again
    other = po.NaiveBayes().fit(frame, "y")
    np.testing.assert_array_equal(model.class_count_, other.class_count_)
    agree(model, other, frame)
