"""Labels of every kind, missing labels and those that are refused."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import posteriori as po
from tests.classifiers.test_inputs import FRAME, X, Y, fit, refused


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a"] * 10, ["a", "b"]),
        ([3, -1] * 10, [-1, 3]),
        (tuple([3, -1] * 10), [-1, 3]),
        (np.array([3, -1] * 10, np.int8), [-1, 3]),
        (np.array([2**64 - 1, 0] * 10, np.uint64), [0, 2**64 - 1]),
        (np.array([2**40, -(2**40)] * 10), [-(2**40), 2**40]),
        (np.array([1.0, 0.0] * 10), [0.0, 1.0]),
        (np.array(["b", "a"] * 10), ["a", "b"]),
        (np.array(["b", "a"] * 10, dtype=object), ["a", "b"]),
        (np.array([2, 1] * 10, dtype=object), [1, 2]),
        (np.array([True, False] * 10), [False, True]),
        (np.ones(20, bool), [True]),
        ([False] * 20, [False]),
        (np.array([True] * 20, dtype=object), [True]),
        (pd.Series(["b", "a"] * 10), ["a", "b"]),
        (pd.Series(["b", "a"] * 10, index=range(100, 120)), ["a", "b"]),
        (pd.Series(["b", "a"] * 10, dtype=object), ["a", "b"]),
        (pd.Series(["b", "a"] * 10, dtype=pd.ArrowDtype(pa.string())), ["a", "b"]),
        (pd.Series([1, 0] * 10, dtype="Int32"), [0, 1]),
        (pd.Series([True] * 20), [True]),
        (pd.Series([True] * 20, dtype="boolean"), [True]),
        (pd.Series(pd.Categorical(["b", "a"] * 10, ["z", "b", "a"])), ["a", "b"]),
        (pd.Series(pd.Categorical(["b", "a"] * 10, ["z", "b", "a"], ordered=True)), ["a", "b"]),
        (pd.Series(pd.Categorical([5, 3] * 10, [9, 5, 3])), [3, 5]),
        (pd.Categorical(["b", "a"] * 10, ["z", "b", "a"]), ["a", "b"]),
        (pd.Index(["b", "a"] * 10), ["a", "b"]),
        (pd.array([1, 0] * 10, dtype="Int64"), [0, 1]),
        (pl.Series(["b", "a"] * 10), ["a", "b"]),
        (pl.Series(["b", "a"] * 10, dtype=pl.Categorical), ["a", "b"]),
        (pl.Series(["b", "a"] * 10, dtype=pl.Enum(["z", "b", "a"])), ["a", "b"]),
        (pl.Series([1, 0] * 10, dtype=pl.UInt8), [0, 1]),
        (pl.Series([True] * 20), [True]),
        (pa.chunked_array([["b", "a"] * 5, ["b", "a"] * 5]), ["a", "b"]),
        (pa.array(["b", "a"] * 10), ["a", "b"]),
    ],
)
def test_labels_of_every_kind(y, classes):
    model = fit(X, y)
    assert model.classes_.tolist() == classes
    if isinstance(y, np.ndarray | list | tuple):
        assert model.classes_.dtype == np.unique(y).dtype
    number = np.array([classes.index(label) for label in (y.to_pylist() if hasattr(y, "to_pylist") else y)])
    assert_array_equal(model.class_count_, np.bincount(number))
    expected = fit(X, number)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert_array_equal(model.predict(X), model.classes_[expected.predict(X)])
    assert model.score(X, y) == expected.score(X, number)
    assert set(model.sample(5, y=model.classes_[0])[1].tolist()) == {classes[0]}


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"])
def test_classes_have_the_data_type_of_the_labels(dtype):
    y = np.array([0, 1] * 10, dtype)
    assert fit(X, y).classes_.dtype == y.dtype
    if dtype not in ("f2", "?"):
        assert fit(X, pd.Series(y)).classes_.dtype == y.dtype
        assert fit(X, pl.Series(y)).classes_.dtype == y.dtype


def test_the_target_may_be_a_column(constructor):
    named = not isinstance(constructor({"a": [1.5]}), np.ndarray)
    columns = {"height": [1.0, 2.0, None, 4.0], "rain": ["n", "y", "n", "y"], "sky": ["c", "c", "d", "d"]}
    table = constructor(columns)
    if not named:
        with refused(ValueError, "the target 'rain' is not a column of X, which has no named columns"):
            fit(table, "rain")
        return
    model = fit(table, "rain")
    features = constructor({name: columns[name] for name in ("height", "sky")})
    expected = fit(features, columns["rain"])
    assert model.classes_.tolist() == ["n", "y"]
    assert model.feature_names_in_.tolist() == ["height", "sky"]
    for rows in (table, features, constructor({name: columns[name] for name in ("sky", "rain", "height")})):
        assert_array_equal(model.predict_proba(rows), expected.predict_proba(features))
    assert model.score(table, "rain") == expected.score(features, columns["rain"])
    more = model.partial_fit(table, "rain")
    assert more.class_count_.tolist() == [4, 4]


def test_a_column_vector_is_taken_with_a_warning():
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        model = fit(X, Y.reshape(-1, 1))
    assert_array_equal(model.theta_, fit(X, Y).theta_)


LABELS_MISSING = {
    "list of None": [*[0, 1] * 9, None, 1],
    "list of NaN": [*["a", "b"] * 9, np.nan, "b"],
    "floats": np.array([*[0, 1] * 9, np.nan, 1]),
    "objects": np.array([*["a", "b"] * 9, pd.NA, "b"], dtype=object),
    "pandas": pd.Series([*["a", "b"] * 9, None, "b"]),
    "pandas Int64": pd.Series([*[0, 1] * 9, None, 1], dtype="Int64"),
    "pandas category": pd.Series([*["a", "b"] * 9, None, "b"], dtype="category"),
    "pandas boolean": pd.Series([*[True, False] * 9, None, True], dtype="boolean"),
    "polars": pl.Series([*["a", "b"] * 9, None, "b"]),
    "polars integers": pl.Series([*[0, 1] * 9, None, 1]),
    "polars floats": pl.Series([*[0.0, 1.0] * 9, np.nan, 1.0]),
    "polars Enum": pl.Series([*["a", "b"] * 9, None, "b"], dtype=pl.Enum(["b", "a"])),
}


@pytest.mark.parametrize("y", LABELS_MISSING.values(), ids=LABELS_MISSING)
def test_missing_labels_are_named_by_their_rows(y):
    with refused(ValueError, "Input y contains NaN: the label of row 18 is missing; drop or label such rows"):
        po.NaiveBayes(labels=po.Labels(unlabelled="error")).fit(X, y)


BAD_LABELS = {
    "none": (None, ValueError, "requires y to be passed, but the target y is None"),
    "continuous": (X[:, 0], ValueError, "Unknown label type: continuous.*bin the target"),
    "continuous list": ([0.5, 1] * 10, ValueError, "The labels hold 0.5; a classifier needs classes"),
    "infinite": ([np.inf, 1] * 10, ValueError, "Unknown label type: continuous. The labels hold inf"),
    "too short": (Y[:-1], ValueError, "X has 20 rows but y has 19 labels; give one label per row"),
    "too long": ([*Y, 1], ValueError, "X has 20 rows but y has 21 labels"),
    "two columns": (np.zeros((20, 2)), ValueError, r"y should be a 1d array, got an array of shape \(20, 2\)"),
    "a number": (3, ValueError, r"y should be a 1d array, got an array of shape \(\)"),
    "all missing": ([None] * 20, ValueError, "every label is missing; at least one row of each class must be"),
    "all null": (pl.Series([None] * 20), ValueError, "every label is missing"),
    "all missing category": (pd.Series(pd.Categorical([None] * 20, ["a"])), ValueError, "every label is missing"),
    "complex": (Y + 1j, ValueError, "Complex data not supported: y is complex128"),
    "dates": (np.array(["2020-01-01"] * 20, "M8[D]"), TypeError, r"y is datetime64\[D\]; turn it into"),
    "pandas dates": (pd.Series(pd.to_datetime(["2020-01-01"] * 20)), TypeError, "column 'y' is datetime64.*turn it"),
    "polars dates": (pl.Series("when", [datetime.date(2020, 1, 1)] * 20), TypeError, "column 'y' is Date; turn it"),
    "bytes": (np.array([b"a", b"b"] * 10), TypeError, r"y is an array of bytes; decode them: y.astype\(str\)"),
    "dicts": ([{}] * 20, TypeError, r"column 'y' holds a dict \(\{\}\); cells must be numbers, strings or"),
    "lists": (pd.Series([[1, 2]] * 20), TypeError, r"column 'y' holds a list \(\[1, 2\]\)"),
    "mixed": (["a", 1] * 10, ValueError, "column 'y' mixes strings and numbers as labels; convert them to one kind"),
    "flags and numbers": (
        np.array([True, 5] * 10, dtype=object),
        ValueError,
        "column 'y' mixes numbers and booleans as labels",
    ),
}


@pytest.mark.parametrize(("y", "error", "match"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels(y, error, match):
    with refused(error, match):
        fit(X, y)


def test_a_target_that_is_no_column():
    with refused(ValueError, "the target 'snow' is not a column of X, which has columns 'height', 'sky', 'rain'"):
        fit(FRAME, "snow")
    with refused(ValueError, "the target 'snow' is not a column of X, which has no named columns"):
        fit(X, "snow")
    with refused(ValueError, "X has no column except the target 'rain'; give at least one feature"):
        fit(FRAME.select("rain"), "rain")
