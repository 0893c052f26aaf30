"""One suite over every place where rows live: the same model, the same predictions, the same warnings."""

import itertools
import re
import warnings

import numpy as np
import polars as pl
import pytest

import posteriori as po


def parquet_row_groups(frame, folder):
    frame.write_parquet(folder / "rows.parquet", row_group_size=700)
    return folder / "rows.parquet"


def parquet_files(frame, folder):
    for part, start in enumerate(range(0, frame.height, 1300)):
        frame[start : start + 1300].write_parquet(folder / f"{part}.parquet")
    return folder


def arrow_files(frame, folder):
    frame[:1000].write_ipc(folder / "a.arrow")
    frame[1000:].write_ipc(folder / "b.arrow")
    return str(folder / "*.arrow")


def csv_files(frame, folder):
    frame[:2000].write_csv(folder / "a.csv")
    frame[2000:].write_csv(folder / "b.csv")
    return [folder / "a.csv", folder / "b.csv"]


def csv_packed(frame, folder):
    import gzip

    (folder / "rows.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    return folder / "rows.csv.gz"


def ndjson(frame, folder):
    frame.write_ndjson(folder / "rows.ndjson")
    return folder / "rows.ndjson"


FILES = (parquet_row_groups, parquet_files, arrow_files, csv_files, csv_packed, ndjson)


def dask_partitions(frame):
    """Return a Dask DataFrame: one partition has no rows, one no cell of some columns, the last one category more."""
    dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    dask = pytest.importorskip("dask", reason="dask is not installed")
    cuts = [0, 1300, 1300, 1320, 4000, frame.height]
    parts = [frame[start:stop].to_pandas() for start, stop in itertools.pairwise(cuts)]
    meta = frame.to_pandas().iloc[:0]
    return dd.from_delayed([dask.delayed(part.astype(meta.dtypes)) for part in parts], meta=meta)


def query(frame):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    database = duckdb.connect()
    database.register("arrived", frame.to_arrow())
    database.execute("CREATE TABLE plants AS SELECT * FROM arrived")
    return po.reading.scan_sql(database, "plants")


ENGINES = (dask_partitions, query)


@pytest.fixture(params=[None, *FILES, *ENGINES], ids=["memory", *(one.__name__ for one in (*FILES, *ENGINES))])
def source(request, tmp_path):
    """Return a function from a polars frame to what estimators take: the frame, or what holds its rows elsewhere."""
    if request.param is None:
        return lambda frame: frame
    if request.param in ENGINES:
        return request.param
    return lambda frame: po.scan(request.param(frame, tmp_path))


@pytest.fixture
def assert_same(request):
    """Return what compares results: to the last digit where batches are those of memory, else to 1e-9."""
    engine = request.node.callspec.params["source"] in ENGINES

    def compare(found, expected):
        found = here(found)
        if engine and np.asarray(expected).dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_array_equal(found, expected)

    return compare


def here(found):
    return found.compute() if hasattr(found, "compute") else found


def what_columns_are(model):
    """Return names, kinds and categories; data types are those of the engine."""
    return [(one.name, one.kind, one.categories, one.cuts) for one in model.model_.schema.columns]


@pytest.fixture(scope="module")
def frame(mixed_frame):
    return mixed_frame


ESTIMATORS = {
    "NaiveBayes": po.NaiveBayes(),
    "mixed": po.NaiveBayes(distributions={"height": po.Binned(), "rooms": "poisson", "width": po.Binned(8)}),
    "weighted": po.NaiveBayes(feature_weights="conditional"),
    "TAN": po.TreeAugmentedNaiveBayes(),
    "components": po.NaiveBayes(em=po.EM(components_per_class=2, max_iter=2, tol=0.0), random_state=0),
}


@pytest.mark.parametrize(
    ("source", "estimator"),
    [
        pytest.param(
            where,
            estimator,
            id=f"{where.__name__ if where else 'memory'}-{name}",
        )
        for where in (None, *FILES, *ENGINES)
        for name, estimator in ESTIMATORS.items()
    ],
    indirect=["source"],
)
def test_the_model_and_its_predictions_are_those_of_memory(source, assert_same, frame, estimator):
    from sklearn.base import clone

    rows = source(frame)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = clone(estimator).set_params(n_jobs=2).fit(rows, "y")
        posterior = here(model.predict_proba(rows))
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        other = clone(estimator).set_params(n_jobs=1).fit(frame, "y")
    assert [str(one.message) for one in said] == [str(one.message) for one in expected]
    assert what_columns_are(model) == what_columns_are(other)
    assert_same(posterior, other.predict_proba(frame))
    assert_same(model.predict(rows), other.predict(frame))
    assert_same(model.score_samples(rows), other.score_samples(frame))
    assert model.score(rows, "y") == other.score(frame, "y")


def test_dates_are_read_as_in_memory(source, assert_same, frame):
    first = pl.datetime(2021, 5, 1) + pl.duration(hours=7 * pl.int_range(pl.len()))
    few = frame[1200:2700].select("height", "y", when=first)
    model, other = (po.NaiveBayes().fit(rows, "y") for rows in (source(few), few))
    assert what_columns_are(model) == what_columns_are(other)
    assert_same(model.predict_proba(source(few)), other.predict_proba(few))


def test_the_discriminant_and_the_mixture_are_those_of_memory(source, assert_same, frame):
    numbers = frame.select("height", "width", "rooms")
    rows = source(numbers)
    model = po.MixtureModel(2, n_init=1, random_state=0, em=po.EM(max_iter=3, tol=1.0)).fit(rows)
    other = po.MixtureModel(2, n_init=1, random_state=0, em=po.EM(max_iter=3, tol=1.0)).fit(numbers)
    assert_same(model.predict(rows), other.predict(numbers))
    y = frame["y"]
    fitted = po.GaussianDiscriminant().fit(rows, y)
    assert_same(fitted.predict_proba(rows), po.GaussianDiscriminant().fit(numbers, y).predict_proba(numbers))


def test_a_tree_without_labels_is_that_of_memory(source, assert_same, frame):
    features = frame.select("sky", "roof", "windy")
    model, other = po.ChowLiuTree().fit(source(features)), po.ChowLiuTree().fit(features)
    assert_same(model.score_samples(features), other.score_samples(features))


def test_weights_of_rows_count_as_in_memory(source, assert_same, frame):
    weight = np.random.default_rng(1).exponential(size=frame.height)
    model, other = (po.NaiveBayes().fit(rows, "y", sample_weight=weight) for rows in (source(frame), frame))
    assert_same(model.predict_proba(frame), other.predict_proba(frame))
    assert model.score(source(frame), "y", weight) == pytest.approx(other.score(frame, "y", weight), rel=1e-12)


def test_rows_without_label_teach_as_in_memory(source, assert_same, frame):
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise(pl.col("y")).alias("y"))
    models = [
        po.NaiveBayes(labels=po.Labels(unlabelled="learn"), em=po.EM(max_iter=4, tol=1.0)).fit(rows, "y")
        for rows in (source(hidden), hidden)
    ]
    assert_same(models[0].predict_proba(frame), models[1].predict_proba(frame))


def test_models_are_compared_as_in_memory(source, assert_same, frame):
    few = frame[1200:2200].drop("width")
    found, expected = (po.cross_validate(["nb", "lda"], rows, "y", folds=3) for rows in (source(few), few))
    assert found.table["model"].to_list() == expected.table["model"].to_list()
    for name, posterior in expected.posteriors.items():
        assert_same(found.posteriors[name], posterior)


def test_each_row_is_left_out_as_in_memory(source, assert_same, frame):
    few = frame[1200:2200]
    left_out = [
        po.model_selection.leave_one_out(po.NaiveBayes().fit(rows, "y"), rows, "y") for rows in (source(few), few)
    ]
    assert_same(left_out[0].posterior, left_out[1].posterior)


def test_the_pool_is_that_of_memory(source, assert_same, frame):
    few = frame[1200:2200]
    rows = source(few)
    models = [po.GenerativeClassifier(["nb", "tan"], folds=3).fit(one, "y") for one in (rows, few)]
    assert_same(models[0].predict_proba(rows), models[1].predict_proba(few))
    assert models[0].score(rows, "y") == models[1].score(few, "y")


def test_partial_fit_goes_on_from_wherever_rows_live(source, assert_same, frame):
    model = po.NaiveBayes().partial_fit(frame, "y").partial_fit(source(frame), "y")
    twice = po.NaiveBayes().fit(pl.concat([frame, frame]), "y")
    np.testing.assert_allclose(model.predict_proba(frame), twice.predict_proba(frame), rtol=1e-9)


def test_unseen_categories_are_told_of(source, assert_same, frame):
    model = po.NaiveBayes().fit(frame.filter((pl.col("sky") != "fog") | pl.col("sky").is_null()), "y")
    count = (frame["sky"] == "fog").sum()
    with pytest.warns(UserWarning, match="cells of column 'sky'") as said:
        here(model.predict(source(frame)))
    # A Dask table is predicted partition by partition, each of which speaks for itself.
    assert sum(int(re.search(r"(\d+) cells", str(one.message))[1]) for one in said) == count
    assert len(said) == 1 or hasattr(source(frame), "npartitions")


def test_what_is_wrong_is_said_of_the_same_row(source, assert_same, frame):
    infinite = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 4321).then(np.inf).otherwise(pl.col("width")).alias("width")
    )
    if "ndjson" in repr(source(frame)):
        return  # which has no word for it
    with pytest.raises(ValueError, match="'width' holds inf in row 4321"):
        po.NaiveBayes().fit(source(infinite), "y")


def test_a_missing_label_is_told_of_with_its_row(source, assert_same, frame):
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) == 4321).then(None).otherwise(pl.col("y")).alias("y"))
    with pytest.raises(ValueError, match="row 4321 is missing"):
        po.NaiveBayes(n_jobs=1, labels=po.Labels(unlabelled="error")).fit(source(hidden), "y")
    with pytest.warns(UserWarning, match="1 of 5,000 rows has no y; it is learned from by EM"):
        po.NaiveBayes(n_jobs=1).fit(source(hidden), "y")


SUFFIXES = (".parquet", ".csv", ".tsv.gz", ".ndjson", ".arrow")


def written_from(where, suffix):
    """Return parameters of a source and a format: in the quick run, memory is written in all, the others in one."""
    name = f"{where.__name__ if where else 'memory'}-{suffix}"
    return pytest.param(where, suffix, id=name)


@pytest.mark.parametrize(
    ("source", "suffix"),
    [written_from(where, suffix) for where in (None, *FILES, *ENGINES) for suffix in SUFFIXES],
    indirect=["source"],
)
def test_predictions_are_written_as_they_are_made(source, assert_same, frame, tmp_path_factory, suffix):
    model = po.NaiveBayes().fit(frame, "y")
    out = tmp_path_factory.mktemp("out") / f"predictions{suffix}"
    done = []
    assert po.predict_to(model, source(frame), out, proba=True, progress=done.append) == frame.height == sum(done)
    read = po.scan(out)
    written = read.frame.collect()
    assert written.columns == ["prediction", "p_a", "p_b", "p_c"]
    assert written["prediction"].to_list() == model.predict(frame).tolist()
    np.testing.assert_allclose(written.drop("prediction").to_numpy(), model.predict_proba(frame), rtol=1e-14)
    assert list(out.parent.iterdir()) == [out]
