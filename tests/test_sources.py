"""One suite over every place where rows live: the same model, the same predictions, the same warnings."""

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


@pytest.fixture(params=[None, *FILES], ids=["memory", *(one.__name__ for one in FILES)])
def source(request, tmp_path):
    """Return a function from a polars frame to what estimators take: the frame, or a scan of files that hold it."""
    if request.param is None:
        return lambda frame, target=None: frame
    return lambda frame, target=None: po.scan(request.param(frame, tmp_path), target=target)


@pytest.fixture(scope="module")
def frame():
    """Return rows of both kinds, with missing cells, more than a batch holds."""
    rng = np.random.default_rng(0)
    n = 5000
    y = rng.integers(0, 3, n)
    sky = np.array(["clear", "clouds", "fog", "rain"])[(y + rng.integers(0, 2, n)) % 4]
    return pl.DataFrame(
        {
            "height": np.where(rng.random(n) < 0.1, np.nan, rng.normal(y, 1.0)),
            "width": rng.normal(1e6 + y, 2.0),
            "rooms": rng.poisson(2.0 + y),
            "sky": [None if miss else cell for miss, cell in zip(rng.random(n) < 0.1, sky.tolist(), strict=True)],
            "roof": np.array(["flat", "steep"])[(rng.random(n) < 0.3 + 0.2 * y).astype(int)],
            "windy": rng.random(n) < 0.5,
            "y": np.array(["a", "b", "c"])[y],
        }
    ).with_columns(pl.col("height").fill_nan(None))


ESTIMATORS = {
    "NaiveBayes": po.NaiveBayes(),
    "mixed": po.NaiveBayes(distributions={"height": po.Binned(), "rooms": "poisson", "width": po.Binned(8)}),
    "weighted": po.NaiveBayes(weights="conditional"),
    "TAN": po.TreeAugmentedNaiveBayes(),
    "components": po.NaiveBayes(components=2, max_iter=5, tol=0.0, random_state=0),
}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_the_model_and_its_predictions_are_those_of_memory(source, frame, estimator):
    from sklearn.base import clone

    rows = source(frame)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = clone(estimator).set_params(n_jobs=2).fit(rows, "y")
        posterior = model.predict_proba(rows)
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        other = clone(estimator).set_params(n_jobs=1).fit(frame, "y")
    assert [str(one.message) for one in said] == [str(one.message) for one in expected]
    assert model.model_.schema == other.model_.schema
    np.testing.assert_array_equal(posterior, other.predict_proba(frame))
    np.testing.assert_array_equal(model.predict(rows), other.predict(frame))
    assert model.score(rows, "y") == other.score(frame, "y")


def test_the_discriminant_and_the_mixture_are_those_of_memory(source, frame):
    numbers = frame.select("height", "width", "rooms")
    rows = source(numbers)
    model = po.MixtureModel(2, random_state=0, max_iter=3, tol=1.0).fit(rows)
    other = po.MixtureModel(2, random_state=0, max_iter=3, tol=1.0).fit(numbers)
    np.testing.assert_array_equal(model.predict(rows), other.predict(numbers))
    y = frame["y"]
    fitted = po.GaussianDiscriminant().fit(rows, y)
    np.testing.assert_array_equal(
        fitted.predict_proba(rows), po.GaussianDiscriminant().fit(numbers, y).predict_proba(numbers)
    )


def test_a_tree_without_labels_is_that_of_memory(source, frame):
    features = frame.select("sky", "roof", "windy")
    model, other = po.ChowLiuTree().fit(source(features)), po.ChowLiuTree().fit(features)
    np.testing.assert_array_equal(model.score_samples(features), other.score_samples(features))


def test_weights_of_rows_count_as_in_memory(source, frame):
    weight = np.random.default_rng(1).exponential(size=frame.height)
    model, other = (po.NaiveBayes().fit(rows, "y", sample_weight=weight) for rows in (source(frame), frame))
    np.testing.assert_array_equal(model.predict_proba(frame), other.predict_proba(frame))
    assert model.score(source(frame), "y", weight) == other.score(frame, "y", weight)


def test_rows_without_label_teach_as_in_memory(source, frame):
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise(pl.col("y")).alias("y"))
    models = [
        po.NaiveBayes(unlabelled="learn", max_iter=4, tol=1.0).fit(rows, "y") for rows in (source(hidden), hidden)
    ]
    np.testing.assert_array_equal(models[0].predict_proba(frame), models[1].predict_proba(frame))


def test_partial_fit_goes_on_from_wherever_rows_live(source, frame):
    model = po.NaiveBayes().partial_fit(frame, "y").partial_fit(source(frame), "y")
    twice = po.NaiveBayes().fit(pl.concat([frame, frame]), "y")
    np.testing.assert_allclose(model.predict_proba(frame), twice.predict_proba(frame), rtol=1e-9)


def test_unseen_categories_are_told_of(source, frame):
    model = po.NaiveBayes().fit(frame.filter((pl.col("sky") != "fog") | pl.col("sky").is_null()), "y")
    count = (frame["sky"] == "fog").sum()
    with pytest.warns(UserWarning, match=f"{count} cells of column 'sky'"):
        model.predict(source(frame))


def test_what_is_wrong_is_said_of_the_same_row(source, frame):
    infinite = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 4321).then(np.inf).otherwise(pl.col("width")).alias("width")
    )
    if "ndjson" in repr(source(frame)):
        return  # which has no word for it
    with pytest.raises(ValueError, match="'width' holds inf in row 4321"):
        po.NaiveBayes().fit(source(infinite), "y")


def test_a_missing_label_is_told_of_with_its_row(source, frame):
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) == 4321).then(None).otherwise(pl.col("y")).alias("y"))
    with pytest.raises(ValueError, match="row 4321 is missing"):
        po.NaiveBayes(n_jobs=1).fit(source(hidden), "y")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv.gz", ".ndjson", ".arrow"])
def test_predictions_are_written_as_they_are_made(source, frame, tmp_path_factory, suffix):
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
