"""Everything a user may pass to an estimator: what is good works, what is bad gets one sentence with the fix."""

import datetime
import decimal
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po

X = np.random.default_rng(0).normal(size=(20, 2))
Y = np.arange(20) % 2
FRAME = pl.DataFrame({"height": X[:, 0], "sky": ["clear", "clouds"] * 10, "rain": [0, 1] * 10})
FEATURES = FRAME.drop("rain")


def fit(X, y, **parameters):
    return po.NaiveBayes(**parameters).fit(X, y)


def refused(error, match):
    """Expect an error of this type whose message is one line that matches."""

    class Refused:
        def __enter__(self):
            self.raised = pytest.raises(error, match=match)
            self.caught = self.raised.__enter__()
            return self.caught

        def __exit__(self, *args):
            done = self.raised.__exit__(*args)
            message = str(self.caught.value)
            assert "\n" not in message
            assert len(message) < 320
            return done

    return Refused()


# Labels ----------------------------------------------------------------------------------------------------------


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
        fit(X, y)


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


# Tables that are none ---------------------------------------------------------------------------------------------

BAD_TABLES = {
    "sparse, one-dimensional": (scipy.sparse.coo_array(X[:, 0]), ValueError, "X has 1 dimensions; give rows and col"),
    "sparse, complex": (scipy.sparse.csr_array(X * 1j), ValueError, "X holds complex128; give counts as real numbers"),
    "sparse, no rows": (scipy.sparse.csr_array((0, 2)), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\)"),
    "lazy": (FEATURES.lazy(), TypeError, "X is a lazy polars table; collect it first"),
    "string": ("table.csv", TypeError, "X is a str, not a table; pass an array or a data frame"),
    "bytes": (b"1,2", TypeError, "X is a bytes, not a table"),
    "none": (None, TypeError, "X is a NoneType, not a table"),
    "number": (3.5, ValueError, "Expected 2D array, got 0D array instead"),
    "one-dimensional": (X[:, 0], ValueError, r"Expected 2D array, got 1D array instead.*reshape\(-1, 1\)"),
    "series": (pd.Series(X[:, 0]), ValueError, "Expected 2D array, got 1D array instead"),
    "polars series": (pl.Series(X[:, 0]), ValueError, "Expected 2D array, got 1D array instead"),
    "three-dimensional": (X.reshape(5, 4, 2), ValueError, "Expected 2D array, got 3D array instead"),
    "complex": (X * 1j, ValueError, "Complex data not supported: X is complex128; give real numbers"),
    "records": (np.zeros((20, 1), "i4,f4"), TypeError, "X is .*; turn it into numbers or categories"),
    "bytes array": (np.full((20, 1), b"a"), TypeError, r"X is an array of bytes; decode them: X.astype\(str\)"),
    "masked": (
        np.ma.masked_greater(X, 0),
        TypeError,
        r"is a masked array; fill its masked cells: X.filled\(np.nan\)",
    ),
    "ragged": ([[1, 2], [3]], ValueError, "the rows of X are not of one length; give each row one cell per column"),
    "no rows": (np.zeros((0, 2)), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1 is required"),
    "no rows, pandas": (pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\)"),
    "no rows, polars": (FEATURES.head(0), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\)"),
    "no columns": (np.zeros((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
    "no columns, pandas": (pd.DataFrame(index=range(3)), ValueError, r"0 feature\(s\)"),
    "no columns, polars": (pl.DataFrame(), ValueError, r"0 feature\(s\)"),
    "empty list": ([], ValueError, "Expected 2D array, got 1D array instead"),
    "names partly strings": (pd.DataFrame({"a": [1], 2: [3]}), TypeError, "column names are partly strings.*astype"),
    "name twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "column 'a' occurs twice; rename or drop"),
    "name twice, Arrow": (
        pa.Table.from_arrays([pa.array([1])] * 3, names=["b", "a", "a"]),
        ValueError,
        "column 'a' occurs twice",
    ),
}


@pytest.mark.parametrize(("table", "error", "match"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_what_is_no_table(table, error, match):
    with refused(error, match):
        fit(table, Y)
    with refused(error, match):
        fit(X, Y).predict(table)


def test_a_dict_of_columns_is_no_table():
    columns = {"x0": X[:, 0].tolist(), "x1": X[:, 1].tolist()}
    with refused(TypeError, "X is a dict, not a table"):
        fit(columns, Y)
    with refused(TypeError, "column 'x0' holds a list"):  # a dict is one row to predict
        fit(X, Y).predict(columns)


BAD_COLUMNS = {
    "complex": (pd.DataFrame({"c": [1j, 2]}), TypeError, "column 'c' is complex128"),
    "categories of dates": (
        pd.DataFrame({"c": pd.to_datetime(["2020-01-01"] * 2)}).astype("category"),
        TypeError,
        r"column 'c' holds a Timestamp .*; cells must be numbers",
    ),
    "polars list": (pl.DataFrame({"c": [[1], [2]]}), TypeError, r"column 'c' is List\(Int64\)"),
    "polars struct": (pl.DataFrame({"c": [{"a": 1}, {"a": 2}]}), TypeError, "column 'c' is Struct"),
    "polars binary": (pl.DataFrame({"c": [b"a", b"b"]}), TypeError, "column 'c' is Binary"),
    "dict": (pd.DataFrame({"c": [{"a": 1}, {}]}), TypeError, r"column 'c' holds a dict \(\{'a': 1\}\); cells must be"),
    "list": (pd.DataFrame({"c": [[1], 2]}), TypeError, r"column 'c' holds a list \(\[1\]\)"),
    "array": (pd.DataFrame({"c": [np.zeros(3), 2]}), TypeError, "column 'c' holds a ndarray"),
    "long cell": (pd.DataFrame({"c": [list(range(999)), 2]}), TypeError, r"holds a list \(\[0, 1.*\.\.\.\]\)"),
    "tuple": (pd.DataFrame({"c": [(1,), (2,)]}), TypeError, r"column 'c' holds a tuple \(\(1,\)\)"),
    "bytes": (pd.DataFrame({"c": [b"a", b"b"]}), TypeError, r"column 'c' holds a bytes \(b'a'\)"),
    "decimal": (pd.DataFrame({"c": [decimal.Decimal(1), 2]}), TypeError, "column 'c' holds a Decimal"),
    "complex object": (np.array([[1j], [2]], dtype=object), TypeError, "column 'x0' holds a complex"),
    "strings and numbers": (
        np.array([["a"], [1]], dtype=object),
        ValueError,
        "'x0' mixes strings and numbers; convert",
    ),
    "flags and numbers": ([[True], [2]], ValueError, "column 'x0' mixes numbers and booleans; convert it to one of"),
    "huge integer": (np.array([[10**400], [1]], dtype=object), ValueError, "'x0' holds an integer too large.*rescale"),
}


@pytest.mark.parametrize(("table", "error", "match"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_columns_of_neither_numbers_strings_nor_booleans(table, error, match):
    with refused(error, match):
        fit(table, [0, 1])


def test_polars_decimals_are_numbers():
    frame = pl.DataFrame({"c": [decimal.Decimal("1.5"), None, decimal.Decimal("2.5")]})
    assert fit(frame, [0, 0, 0]).theta_.tolist() == [[2.0]]


# Which columns are categorical, and of which distribution -----------------------------------------------------------


@pytest.mark.parametrize(
    "chosen",
    [[1], (1,), [-1], np.array([1]), [False, True], np.array([False, True]), pd.Series([False, True]), [1, 1]],
)
def test_ways_to_choose_categorical_columns(chosen):
    table = np.column_stack([X[:, 0], Y * 7])
    model = fit(table, Y, columns=po.Columns(categorical_features=chosen))
    assert [column.kind for column in model.schema_.columns] == ["continuous", "categorical"]
    assert model.categories_[0].tolist() == [0, 7]


@pytest.mark.parametrize("chosen", ["floors", ["floors"], np.array(["floors"]), [1], [-1], [False, True]])
def test_columns_chosen_by_name_or_place_among_the_features(chosen):
    frame = pl.DataFrame({"rain": Y, "height": X[:, 0], "floors": Y * 7})
    model = fit(frame, "rain", columns=po.Columns(categorical_features=chosen))
    assert [column.name for column in model.schema_.columns if column.kind == "categorical"] == ["floors"]


@pytest.mark.parametrize("chosen", [None, "from_dtype", [], np.array([], int), [False, False]])
def test_data_types_decide_where_nothing_is_chosen(chosen):
    model = fit(FEATURES, Y, columns=po.Columns(categorical_features=chosen))
    assert [column.kind for column in model.schema_.columns] == ["continuous", "categorical"]


@pytest.mark.parametrize(
    ("chosen", "match"),
    [
        ([2], "categorical_features names 2; give a column's name or an index below 2"),
        ([-3], "categorical_features names -3; give a column's name or an index below 2"),
        ([0.5], "categorical_features names 0.5; give"),
        (["snow"], r"categorical_features names 'snow', which is not a feature of X \(columns 'height', 'sky'\)"),
        ("every", "categorical_features names 'every', which is not a feature"),
        ("rain", "categorical_features names 'rain', which is not a feature"),
        ([True], "categorical_features is a mask of 1 entries but there are 2 features"),
        (3, "The 'categorical_features' parameter of Columns must be"),
    ],
)
def test_bad_categorical_features(chosen, match):
    with refused(ValueError, match):
        fit(FRAME, "rain", columns=po.Columns(categorical_features=chosen))


@pytest.mark.parametrize(
    ("distributions", "names"),
    [
        (None, ["gaussian", "categorical"]),
        ({"sky": "categorical"}, ["gaussian", "categorical"]),
        ({0: "categorical"}, ["categorical", "categorical"]),
        ({"height": "categorical"}, ["categorical", "categorical"]),
        ({-2: "poisson"}, ["poisson", "categorical"]),
        ({"height": po.Gaussian(0.0)}, ["gaussian", "categorical"]),
        ("poisson", ["poisson", "categorical"]),
    ],
)
def test_distributions(distributions, names):
    table = FRAME.with_columns(height=pl.col("height").round().abs())
    model = fit(table, "rain", distributions=distributions)
    by_column = {column: block.density.name for block in model.model_.blocks for column in block.columns}
    assert [by_column[j] for j in range(2)] == names


@pytest.mark.parametrize(
    ("distributions", "match"),
    [
        (
            "normal",
            "'normal' is not a distribution; choose one of binned, categorical, complement, compound, gaussian, ",
        ),
        ({"height": "normal"}, "'normal' is not a distribution; choose one of"),
        ({"height": 3}, "3 is not a distribution; choose one of"),
        ({"snow": "gaussian"}, r"distributions names 'snow', which is not a feature of X \(columns 'height', 'sky'\)"),
        ({"rain": "categorical"}, "distributions names 'rain', which is not a feature of X"),
        ({2: "gaussian"}, "distributions names 2; give a column's name or an index below 2"),
        (
            {"sky": "gaussian"},
            "column 'sky' is categorical, but its distribution 'gaussian' makes continuous columns; ",
        ),
        ("categorical", "column 'height' is continuous, but its distribution 'categorical' makes categorical"),
        (3, "The 'distributions' parameter of NaiveBayes must be"),
    ],
)
def test_bad_distributions(distributions, match):
    with refused(ValueError, match):
        fit(FRAME, "rain", distributions=distributions)


# Matching columns at prediction ------------------------------------------------------------------------------------


def test_columns_are_matched_by_name_in_any_order(constructor, columns, labels):
    table = constructor(columns)
    if isinstance(table, np.ndarray):
        pytest.skip("columns of an array have no names")
    model = fit(table, labels)
    other = constructor({name: columns[name] for name in ("windy", "height", "sky", "floors")})
    assert_array_equal(model.predict_proba(other), model.predict_proba(table))
    twice = fit(table, labels).partial_fit(other, labels)
    assert_allclose(twice.statistics_.blocks[0].mean, model.statistics_.blocks[0].mean, rtol=1e-14)
    assert_array_equal(twice.category_count_[0], 2 * model.category_count_[0])


def test_missing_and_extra_columns_are_named(constructor, columns, labels):
    table = constructor(columns)
    model = fit(table, labels)
    fewer = constructor({name: columns[name] for name in ("sky", "height")})
    more = constructor(columns | {"snow": columns["sky"]})
    if isinstance(table, np.ndarray):
        messages = [f"X has {n} features, but NaiveBayes is expecting 4 features as input" for n in (2, 5)]
    else:
        messages = [
            "X lacks columns 'floors', 'windy', which NaiveBayes was trained on; add it, empty where unknown",
        ]
    for call in (model.predict, lambda rows: model.partial_fit(rows, labels)):
        for rows, message in zip((fewer, more), messages, strict=False):
            with refused(ValueError, message):
                call(rows)
    if not isinstance(table, np.ndarray):
        with pytest.warns(UserWarning, match="^X has column 'snow', which NaiveBayes was not trained on; ignored$"):
            assert_array_equal(model.predict_proba(more), model.predict_proba(table))


def test_arrays_are_matched_by_place_to_named_columns_with_a_warning():
    rows = FEATURES.to_numpy()
    model = fit(FEATURES, Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but NaiveBayes was fitted with"):
        assert_array_equal(model.predict_proba(rows), model.predict_proba(FEATURES))
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        refused(ValueError, "X has 1 features, but NaiveBayes is expecting 2 features"),
    ):
        model.predict(X[:, :1])
    with pytest.warns(UserWarning, match="X has feature names, but NaiveBayes was fitted without feature names"):
        fit(X, Y).predict(pl.DataFrame(X, schema=["a", "b"]))


def test_names_that_are_numbers_are_no_names():
    frame = pd.DataFrame(X, columns=[7, 3])
    model = fit(frame, Y)
    assert_array_equal(model.predict_proba(X), model.predict_proba(frame))
    multiple = pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    assert_array_equal(fit(multiple, Y).theta_, model.theta_)


def test_the_index_of_a_frame_does_not_matter(columns, labels):
    table = pd.DataFrame(columns).astype({"sky": "category"})
    expected = fit(table, labels)
    for index in (range(100, 108), [5] * 8, list("hgfedcba"), pd.date_range("2020-01-01", periods=8)):
        other = table.set_axis(index, axis=0)
        model = po.NaiveBayes().fit(other, pd.Series(labels), pd.Series(np.ones(8), index=range(8)))
        assert_array_equal(model.predict_proba(other), expected.predict_proba(table))
    shuffled = table.iloc[::-1].iloc[::-1]
    assert_array_equal(expected.predict_proba(shuffled), expected.predict_proba(table))


# Kinds that change -------------------------------------------------------------------------------------------------


def test_strings_where_numbers_were(constructor):
    model = fit(constructor({"a": [1.5, 2.5]}), [0, 1])
    for cells in (["x", "y"], ["1.5", "2.5"], [None, "1.5"]):
        with refused(
            ValueError, r"column '(a|x0)' was numeric in training but (is .* now|holds .* in row .); convert it"
        ):
            model.predict(constructor({"a": cells}))
        with refused(ValueError, "was continuous in training but is categorical now; convert it, or name it in"):
            po.NaiveBayes().fit(constructor({"a": [1.5, 2.5]}), [0, 1]).partial_fit(constructor({"a": cells}), [0, 1])


def test_numbers_where_strings_were(constructor):
    table = constructor({"a": ["x", "y"]})
    model = fit(table, [0, 1])
    for cells in ([1.5, 2.5], [1, 2], [None, 3], [True, False]):
        kind = "booleans" if cells[0] is True else "numbers"
        match = f"column '(a|x0)' held strings in training but holds {kind} now; convert it"
        with refused(ValueError, match):
            model.predict(constructor({"a": cells}))
        with refused(ValueError, match):
            fit(table, [0, 1]).partial_fit(constructor({"a": cells}), [0, 1])


def test_categories_of_another_kind():
    words, numbers = (pd.DataFrame({"a": cells}).astype("category") for cells in (["x", "y"], [1, 2]))
    with refused(ValueError, "column 'a' held strings in training but holds numbers now; convert it"):
        fit(words, [0, 1]).predict(numbers)
    for rows in (words, words.astype("str"), words.astype("string"), pl.DataFrame({"a": ["x"]}), [["x"]]):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            with refused(ValueError, "column 'a' held numbers in training but holds strings now; convert it"):
                fit(numbers, [0, 1]).predict(rows)


def test_other_numbers_where_booleans_were(constructor):
    model = fit(constructor({"a": [True, False]}), [0, 1])
    expected = model.predict_proba(constructor({"a": [True, False]}))
    assert_array_equal(model.predict_proba(constructor({"a": [1, 0]})), expected)
    with refused(ValueError, "column '(a|x0)' held booleans in training but holds numbers now; convert it"):
        model.predict(constructor({"a": [1, 2]}))


def test_booleans_where_numbers_were_count_as_nought_and_one(constructor):
    model = fit(constructor({"a": [0.0, 0.5, 1.5]}), [0, 0, 1])
    expected = model.predict_proba(constructor({"a": [1.0, None, 0.0]}))
    assert_array_equal(model.predict_proba(constructor({"a": [True, None, False]})), expected)


@pytest.mark.parametrize(
    "cells",
    [
        pl.Series([datetime.date(2020, 1, 1)]),
        pl.Series(["x"], dtype=pl.Categorical),
        pd.Series(["x"], dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series(["1"], dtype="str"),
    ],
    ids=lambda cells: f"{type(cells).__module__.split('.')[0]}-{cells.dtype}",
)
def test_other_types_where_numbers_were(cells):
    rows = cells.to_frame("a")
    with refused(ValueError, "column 'a' was numeric in training but is .* now; convert it"):
        fit(pl.DataFrame({"a": [1.5, 2.5]}), [0, 1]).predict(rows)


@pytest.mark.parametrize("kind", ["numeric", "strings"])
@pytest.mark.parametrize("cell", [{}, [1], b"x", datetime.date(2020, 1, 1), decimal.Decimal(1)], ids=repr)
def test_cells_of_no_known_kind_at_prediction(kind, cell):
    model = fit([[1.5], [2.5]] if kind == "numeric" else [["x"], ["y"]], [0, 1])
    rows = np.empty((1, 1), dtype=object)
    rows[0, 0] = cell
    with refused(TypeError, f"column 'x0' holds a {type(cell).__name__} .*; cells must be numbers, strings"):
        model.predict(rows)


def test_columns_named_categorical_may_mix_strings_and_numbers():
    first = np.array([["a"], [1], [True]], dtype=object)
    model = po.NaiveBayes(columns=po.Columns(categorical_features=[0])).partial_fit(first[:2], [0, 1])
    model.partial_fit(np.array([["b"], ["a"]]), [0, 1]).partial_fit(np.array([[2.5]]), [1])
    assert model.categories_[0].tolist() == [1, 2.5, "a", "b"]
    assert model.category_count_[0].tolist() == [[0, 0, 1, 1], [1, 1, 1, 0]]


# Missing cells and unseen categories ---------------------------------------------------------------------------------

NOTHING = {
    "polars Null": pl.Series("a", [None, None, None]),
    "polars Float64": pl.Series("a", [None, None, None], dtype=pl.Float64),
    "polars NaN": pl.Series("a", [np.nan] * 3),
    "polars Int8": pl.Series("a", [None, None, None], dtype=pl.Int8),
    "polars String": pl.Series("a", [None, None, None], dtype=pl.String),
    "polars Categorical": pl.Series("a", [None, None, None], dtype=pl.Categorical),
    "polars Boolean": pl.Series("a", [None, None, None], dtype=pl.Boolean),
    "polars Object": pl.Series("a", [None, None, None], dtype=pl.Object),
    "pandas object": pd.Series([None, None, None], dtype=object),
    "pandas NaN": pd.Series([np.nan] * 3),
    "pandas Int64": pd.Series([None, None, None], dtype="Int64"),
    "pandas str": pd.Series([None, None, None], dtype="str"),
    "pandas string": pd.Series([None, None, None], dtype="string"),
    "pandas boolean": pd.Series([None, None, None], dtype="boolean"),
    "pandas category": pd.Series([None, None, None], dtype="category"),
    "pandas double[pyarrow]": pd.Series([None, None, None], dtype="double[pyarrow]"),
    "Arrow null": pa.nulls(3),
    "Arrow string": pa.nulls(3, pa.string()),
    "numpy": np.full(3, np.nan),
    "numpy object": np.array([None, np.nan, pd.NA], dtype=object),
}


def table_of(nothing, height):
    """Return a table of a column without values and one with."""
    if isinstance(nothing, pl.Series):
        return pl.DataFrame({"a": nothing, "height": height})
    if isinstance(nothing, pd.Series):
        return pd.DataFrame({"a": nothing, "height": height})
    if isinstance(nothing, pa.Array):
        return pa.table({"a": nothing, "height": height})
    return np.column_stack([nothing, height])


@pytest.mark.parametrize("categorical", [None, [0]], ids=["by type", "categorical"])
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
def test_a_column_without_values_in_training_changes_nothing(nothing, categorical):
    table = table_of(nothing, [1.0, 2.5, 4.0])
    with pytest.warns(UserWarning, match=r"column '(a|x0)' has no cell with a value and will influence no") as caught:
        model = fit(table, [0, 1, 1], columns=po.Columns(categorical_features=categorical))
    assert len(caught) == 1
    without = fit(np.array([[1.0], [2.5], [4.0]]), [0, 1, 1])
    assert_array_equal(model.predict_proba(table), without.predict_proba([[1.0], [2.5], [4.0]]))


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize("cells", [[1.5, 2.5, 3.0], ["x", "y", "x"], [True, False, True]], ids=["x", "s", "b"])
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
def test_a_column_without_values_at_prediction_counts_as_missing(nothing, cells):
    height = [1.0, 2.5, 4.0]
    model = fit(pl.DataFrame({"a": cells, "height": height}), [0, 1, 1])
    blank = pl.DataFrame({"a": cells, "height": height}).with_columns(a=pl.when(False).then(pl.col("a")))
    assert_array_equal(model.predict_proba(table_of(nothing, height)), model.predict_proba(blank))


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
def test_later_rows_may_lack_all_values_of_a_column(nothing):
    for cells in ([1.5, 2.5, 3.0], ["x", "y", "x"]):
        table = table_of(nothing, [1.0, 2.5, 4.0])
        first = pl.DataFrame({"a": cells, "height": [0.5, 1.5, 2.0]})
        model = po.NaiveBayes()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            model.partial_fit(first, [0, 1, 1]).partial_fit(table, [0, 1, 1])
        block = next(block for block in model.statistics_.blocks if block.observed().sum() < 12)
        assert block.observed()[:, 0].tolist() == [1, 2]


def test_unseen_categories_are_told_of_once_and_count_as_missing(constructor, columns, labels):
    model = fit(constructor(columns), labels)
    rows = columns | {"sky": ["clear", "hail", None, "snow", "hail", "fog", "clouds", "hail"]}
    blank = columns | {"sky": ["clear", None, None, None, None, "fog", "clouds", None]}
    with pytest.warns(UserWarning, match="unseen in training count as missing: 4 cells of column '(sky|x2)'") as caught:
        posterior = model.predict_proba(constructor(rows))
    assert len(caught) == 1
    assert_array_equal(posterior, model.predict_proba(constructor(blank)))


# Cells that a distribution cannot produce ---------------------------------------------------------------------------


def with_cell(constructor, cell):
    return constructor({"calm": [1.0, 2.0, 3.0, 4.0], "wild": [0.0, 1.0, cell, 3.0]})


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_named_by_column_and_row(constructor, infinity):
    good, bad = with_cell(constructor, 2.0), with_cell(constructor, infinity)
    match = f"column '(wild|x1)' holds {infinity} in row 2; replace it by a number, or by NaN if it is unknown"
    model = fit(good, [0, 1, 0, 1])
    calls = [
        lambda: fit(bad, [0, 1, 0, 1]),
        lambda: po.NaiveBayes().fit(bad, [0, 1, 0, 1], [1, 1, 0, 1]),
        lambda: po.NaiveBayes(columns=po.Columns(categorical_features=[1])).fit(bad, [0, 1, 0, 1]),
        lambda: fit(good, [0, 1, 0, 1]).partial_fit(bad, [0, 1, 0, 1]),
        lambda: fit(good, [0, 1, 0, 1], distributions={1: "poisson"}).predict(bad),
        lambda: model.predict(bad),
        lambda: model.predict_proba(bad),
        lambda: model.score_samples(bad),
        lambda: model.explain(bad),
    ]
    for call in calls:
        with refused(ValueError, match):
            call()


def test_numbers_whose_square_overflows(constructor):
    for first in (0.0, -1e200):
        cells = constructor({"calm": [1.0, 2.0, 3.0], "wild": [first, 1e200, 1e200]})
        with refused(ValueError, "the square of a value in .*'(wild|x1)' overflows; rescale the column"):
            fit(cells, [0, 1, 1])


@pytest.mark.parametrize("cell", [-1.0, 2.5, -0.5])
def test_counts_that_are_none(constructor, cell):
    good, bad = with_cell(constructor, 2.0), with_cell(constructor, cell)
    distributions = {1: "poisson"}
    match = re.escape(f"holds {cell:g} in row 2, but its distribution is poisson: a whole number of events, 0 or more")
    model = fit(good, [0, 1, 0, 1], distributions=distributions)
    for call in (
        lambda: fit(bad, [0, 1, 0, 1], distributions=distributions),
        lambda: po.NaiveBayes(distributions=distributions).fit(bad, [0, 1, 0, 1], [1, 1, 0, 1]),
        lambda: model.predict(bad),
        lambda: model.explain(bad),
        lambda: fit(good, [0, 1, 0, 1], distributions=distributions).partial_fit(bad, [0, 1, 0, 1]),
    ):
        with refused(ValueError, match):
            call()
    missing = with_cell(constructor, None)
    assert fit(missing, [0, 1, 0, 1], distributions=distributions).rate_[1, 0] > 1


# Weights -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (-np.ones(20), r"sample_weight holds -1 in row 0; weights must be 0, or lie between 1e-100 and 1e\+50"),
        (np.where(np.arange(20) == 7, np.nan, 1), "sample_weight holds nan in row 7; weights must be"),
        (np.where(np.arange(20) == 7, np.inf, 1), "sample_weight holds inf in row 7; weights must be"),
        (pd.Series([1.0, None] * 10, dtype="Float64"), "sample_weight holds nan in row 1; weights must be"),
        (np.where(np.arange(20) == 7, 5e-324, 1), "sample_weight holds 4.94066e-324 in row 7; weights must be"),
        (np.where(np.arange(20) == 7, 1e51, 1), "sample_weight holds 1e.51 in row 7; weights must be"),
        (np.ones(19), r"sample_weight.shape == \(19,\), expected \(20,\): one weight per row"),
        (np.ones((20, 1)), r"sample_weight.shape == \(20, 1\), expected \(20,\)"),
        (np.zeros(20), "every sample_weight is zero; at least one row must have some weight"),
        (["heavy"] * 20, "sample_weight holds a cell that is not a number; give one number per row"),
        (["1"] * 20, "sample_weight holds a cell that is not a number; give one number per row"),
        ([{}] * 20, "sample_weight holds a cell that is not a number"),
        (np.ones(20) * 1j, "sample_weight holds a cell that is not a number"),
    ],
)
def test_bad_weights(weight, match):
    with refused(ValueError, match):
        po.NaiveBayes().fit(X, Y, weight)
    with refused(ValueError, match):
        po.NaiveBayes().partial_fit(X, Y, sample_weight=weight)


def test_weights_of_every_kind():
    weight = np.arange(20) % 3
    expected = po.NaiveBayes().fit(X, Y, weight.astype(float))
    readonly = weight.astype(float)
    readonly.flags.writeable = False
    for same in (
        weight.tolist(),
        weight.astype(np.float32),
        weight.astype(">f8"),
        weight.astype(object),
        np.repeat(weight, 2)[::2],
        readonly,
        pd.Series(weight, index=range(50, 70)),
        pd.Series(weight, dtype="Int64"),
        pl.Series(weight),
        pa.array(weight),
    ):
        model = po.NaiveBayes().fit(X, Y, same)
        assert_array_equal(model.theta_, expected.theta_)
        assert_array_equal(model.class_count_, expected.class_count_)
    assert_array_equal(po.NaiveBayes().fit(X, Y, 2).class_count_, [20, 20])
    assert_array_equal(po.NaiveBayes().fit(X, Y, Y == 0).class_count_, [10, 0])


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = po.NaiveBayes().partial_fit(X, Y, classes=[0, 1])
    before = model.predict_proba(X)
    for call in (
        lambda: model.fit(X, Y, np.zeros(20)),
        lambda: model.fit(X * np.inf, Y),
        lambda: model.partial_fit(X, Y + 1),
        lambda: model.partial_fit(X[:, :1], Y),
    ):
        with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=r"zero|infinity|classes|features"):
            call()
        assert_array_equal(model.predict_proba(X), before)
        assert_array_equal(model.class_count_, [10, 10])
    with refused(ValueError, "y holds 2, which is not among the classes"):
        model.partial_fit(X, Y + 1)


# Learning from rows as they come --------------------------------------------------------------------------------------


@st.composite
def chunks(draw):
    """Draw a table with missing cells, its labels, and the same rows in chunks of any order."""
    n = draw(st.integers(1, 12))

    def cells(values):
        return draw(st.lists(st.none() | values, min_size=n, max_size=n))

    columns = {
        "height": cells(st.sampled_from([0.0, 1.5, -2.0, 1e3, 7.25])),
        "sky": cells(st.sampled_from(["clear", "fog", "hail", "snow"])),
        "floors": cells(st.integers(-3, 300)),
        "windy": cells(st.booleans()),
    }
    labels = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    order = draw(st.permutations(range(n)))
    cuts = sorted(draw(st.sets(st.integers(1, n - 1), max_size=4))) if n > 1 else []
    parts = [order[start:stop] for start, stop in zip([0, *cuts], [*cuts, n], strict=True)]
    return columns, labels, parts


@given(case=chunks())
def test_partial_fits_in_any_order_are_one_fit(constructor, case):
    columns, labels, parts = case
    typed = {name: [cell for cell in cells if cell is not None] for name, cells in columns.items()}
    if any(not cells for cells in typed.values()):
        columns = columns | {name: [cell] * len(labels) for name, cell in EXAMPLES.items() if not typed[name]}
    chosen = ["sky", "floors", "windy"]
    chosen = [1, 2, 3] if constructor.__name__ == "numpy_objects" else chosen
    parameters = {"columns": po.Columns(categorical_features=chosen)}

    def rows(positions):
        return constructor({name: [cells[i] for i in positions] for name, cells in columns.items()})

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no cell with a value")
        whole = po.NaiveBayes(**parameters).fit(rows(range(len(labels))), labels)
        model = po.NaiveBayes(**parameters)
        for positions in parts:
            model.partial_fit(rows(positions), [labels[i] for i in positions])
    assert model.classes_.tolist() == whole.classes_.tolist()
    assert [mine.tolist() for mine in model.categories_] == [theirs.tolist() for theirs in whole.categories_]
    assert_array_equal(model.class_count_, whole.class_count_)
    for mine, theirs in zip(model.category_count_, whole.category_count_, strict=True):
        assert_array_equal(mine, theirs)
    (moments, _), (expected, _) = model.statistics_.blocks, whole.statistics_.blocks
    assert_array_equal(moments.weight, expected.weight)
    assert_allclose(moments.mean, expected.mean, rtol=1e-12, atol=1e-12)
    assert_allclose(moments.scatter, expected.scatter, rtol=1e-9, atol=1e-9)
    table = rows(range(len(labels)))
    assert_allclose(model.predict_proba(table), whole.predict_proba(table), rtol=1e-9, atol=1e-9)


EXAMPLES = {"height": 1.5, "sky": "clear", "floors": 3, "windy": True}


def test_classes_may_be_declared():
    model = po.NaiveBayes().partial_fit(X, Y, classes=[2, 0, 1])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.class_count_.tolist() == [10, 10, 0]
    assert_array_equal(model.predict_proba(X)[:, 2], 0)
    model.partial_fit(X, Y + 1, classes=np.array([0, 1, 2]))
    assert model.class_count_.tolist() == [10, 20, 10]
    assert_allclose(model.theta_, fit(np.vstack([X, X]), np.append(Y, Y + 1)).theta_, rtol=1e-12)


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        ([0, 2], "y holds 1, which is not among the classes"),
        ([0], "y holds 1, which is not among the classes"),
        (["0", "1"], "column 'y' held strings in training but holds numbers now; convert it"),
        ("01", "classes is '01'; list the labels"),
        ([], r"classes is \[\]; list the labels"),
        ([0, None, 1], "classes holds a missing label; leave it out"),
    ],
)
def test_bad_classes(classes, match):
    with refused(ValueError, match):
        po.NaiveBayes().partial_fit(X, Y, classes=classes)


def test_classes_may_not_change():
    model = po.NaiveBayes().partial_fit(X, Y, classes=[0, 1])
    with refused(ValueError, r"classes=\[0, 1, 2\] differs from that of the first call: \[0, 1\]"):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    with refused(ValueError, "y holds 2, which is not among the classes"):
        model.partial_fit(X, Y * 2)
    assert model.fit(X, Y * 2).partial_fit(X, Y).classes_.tolist() == [0, 1, 2]


def test_labels_of_another_kind_later():
    with refused(ValueError, "column 'y' held numbers in training but holds strings now; convert it"):
        fit(X, Y).partial_fit(X, Y.astype(str))


def test_a_model_of_parameters_cannot_learn_more_but_can_learn_anew():
    model = po.NaiveBayes.from_parameters(priors=[0.5, 0.5], gaussian={"a": {"mean": [0, 1], "sd": [1, 1]}})
    with refused(ValueError, "this model was built from parameters, which do not contain the number of rows; use fit"):
        model.partial_fit(X[:, :1], Y)
    model.fit(X[:, :1], Y).partial_fit(X[:, :1], Y)
    assert_array_equal(model.class_count_, [20, 20])


def test_distributions_may_not_change_between_calls():
    counts = np.round(3 * X) ** 2
    model = fit(counts, Y)
    model.set_params(distributions="poisson", columns__categorical_features=None)
    model.partial_fit(counts, Y)  # the same statistics serve
    assert model.rate_.shape == (2, 2)
    model.set_params(distributions={0: "categorical"})
    with refused(ValueError, "column 'x0' is continuous, but its distribution 'categorical' makes categorical"):
        model.partial_fit(counts, Y)


# Few rows, few classes, and drawing -----------------------------------------------------------------------------------


def test_one_row_one_class(constructor):
    table = constructor({"height": [1.5], "sky": ["clear"]})
    model = fit(table, ["only"])
    assert_array_equal(model.predict_proba(table), [[1.0]])
    assert model.predict(table).tolist() == ["only"]
    assert np.isfinite(model.score_samples(table)).all()


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier(members=["nb", "tan"])])
def test_one_class_is_warned_of_once(model):
    table = pl.DataFrame({"sky": ["clear", "grey"] * 4, "y": ["only"] * 8})
    for X, y, labels in ((table, "y", "the target 'y'"), (table.drop("y"), table["y"], "y")):
        with pytest.warns(UserWarning, match="only one class") as caught:
            model.fit(X, y)
        sentence = f"{labels} has only one class, 'only': every prediction will be that class"
        assert [(str(one.message), one.filename) for one in caught] == [(sentence, __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        po.ChowLiuTree().fit(table.drop("y"))
        po.NaiveBayes().partial_fit(table, "y")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"n": 0}, ValueError, "n is 0; draw at least one row"),
        ({"n": -3}, ValueError, "n is -3; draw at least one row"),
        ({"n": 2, "y": "snow"}, ValueError, r"'snow' is not a class; the classes are \[0, 1\]"),
        ({"n": 2, "y": [0, 5]}, ValueError, "5 is not a class; the classes are"),
    ],
)
def test_bad_ways_to_draw(arguments, error, match):
    with refused(error, match):
        fit(X, Y).sample(**arguments)


# Columns of odd types and names, and integers of 128 bits --------------------------------------------------------


@pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt128])
@pytest.mark.parametrize("cells", [[1, 5, None, 5], [2**100, 5, 7, None]])
def test_integers_of_128_bits_are_numbers(dtype, cells):
    wide = pl.DataFrame({"a": pl.Series(cells * 5, dtype=dtype)})
    plain = pl.DataFrame({"a": [None if cell is None else float(cell) for cell in cells * 5]})
    assert_array_equal(fit(wide, Y).predict_proba(wide), fit(plain, Y).predict_proba(plain))


def test_integers_that_floats_do_not_hold_are_named():
    wide = pl.DataFrame({"a": pl.Series([2**127 - 1, 0] * 10, dtype=pl.Int128)})
    with pytest.warns(UserWarning, match="column 'a' holds integers of more than 53 bits"):
        fit(wide, Y)


@pytest.mark.parametrize("dtype", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_as_categories_are_told_apart(dtype):
    cells = [2**100, 2**100 + 1] * 10  # the same number as floats
    frame = pl.DataFrame({"a": pl.Series(cells, dtype=dtype)})
    model = fit(frame, Y, columns=po.Columns(categorical_features=["a"]))
    assert model.schema_.columns[0].categories == (2**100, 2**100 + 1)
    assert_array_equal(model.predict(frame), Y)
    assert model.sample(3, random_state=0)[0].schema == {"a": dtype}
    assert fit(FEATURES, frame["a"]).classes_.tolist() == [2**100, 2**100 + 1]


@pytest.mark.parametrize("name", ["*", "^a$", "^.*$", "", "cells", "count", "a\x00missing"])
def test_a_name_is_no_pattern(name):
    sky = ["clear", None, "fog", "fog"] * 5
    frame = pl.DataFrame({"a": X[:, 0], name: sky, "b": X[:, 1]})
    plain = pl.DataFrame({"a": X[:, 0], "sky": sky, "b": X[:, 1]})
    assert_array_equal(fit(frame, Y).predict_proba(frame), fit(plain, Y).predict_proba(plain))


@pytest.mark.parametrize("pooling", ["pooled", "per_class", 0.5])
@pytest.mark.parametrize("n_columns", [2, 150])
@pytest.mark.parametrize("cell", [np.inf, -np.inf, 1e308])
def test_cells_without_finite_moments_are_refused_by_discriminants(pooling, n_columns, cell):
    table = np.random.default_rng(0).normal(size=(20, n_columns))
    table[[3, 8], 1], table[[5, 10], 1] = cell, -cell
    with refused(ValueError, "x1"):
        po.GaussianDiscriminant(pooling=pooling).fit(table, Y)


def test_values_of_another_kind_are_refused_in_one_sentence():
    rows = pl.DataFrame({"words": ["good soup and bread", "cold wine and soup"] * 4})
    with pytest.raises(ValueError, match="text gives 3 for a column; give its settings"):
        po.NaiveBayes(columns=po.Columns(text={"words": 3})).fit(rows, [0, 1] * 4)
    with pytest.raises(ValueError, match="priors is a list; give one number per class"):
        po.NaiveBayes(priors=["nothing"]).fit(rows, [0, 1] * 4)
    with pytest.raises(ValueError, match="categorical_features"):
        po.NaiveBayes(columns=po.Columns(categorical_features=np.array(2))).fit(rows, [0, 1] * 4)


def test_a_parameter_of_32_bits_raises_no_warning():
    assert po.NaiveBayes(alpha=np.float32(0.5)).fit(pl.DataFrame({"x": ["a", "b"] * 4}), [0, 1] * 4).alpha == 0.5


def test_a_label_noise_of_text_is_refused():
    with pytest.raises(ValueError, match="label_noise is a list; give a share"):
        po.NaiveBayes(labels=po.Labels(label_noise=["nothing"])).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])


def test_mahalanobis_distances_of_a_column_without_numbers_are_0():
    X = np.full((4, 1), np.nan)
    with pytest.warns(UserWarning, match="x0"):
        model = po.GaussianDiscriminant(pooling="per_class", predictive=True).fit(X, [0, 0, 1, 1])
    assert model.mahalanobis(X[:1]).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [(po.Columns(text=["x0"]), "is read as text"), (po.Columns(dates=["era"]), "dates names 'era'")],
)
def test_an_array_of_floats_is_refused_where_an_argument_says_that_it_holds_text_or_dates(columns, message):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes(columns=columns).fit(X, np.repeat(["a", "b"], 20))


def with_an_empty_column(n_rows):
    return pl.DataFrame({"a": np.arange(n_rows) % 5.5, "b": ["u", "v"] * (n_rows // 2), "c": [None] * n_rows})


@pytest.mark.parametrize("kind", [po.NaiveBayes, po.TreeAugmentedNaiveBayes])
def test_every_warning_names_the_line_of_the_user(kind):
    frame, y = with_an_empty_column(40), [0, 0, 1, 1] * 10
    numbered = frame.with_columns(number=pl.Series(range(40)), time=pl.Series([datetime.date(2020, 1, 1)] * 40))
    model = kind().fit(frame.drop("c"), y)
    calls = {
        "'c' has no cell with a value": lambda: kind().fit(frame, y),
        "'c' has no cell": lambda: kind().partial_fit(frame, y),
        "'number' is ignored": lambda: kind().fit(numbered.drop("c", "time"), y),
        "'time' is ignored": lambda: kind().fit(numbered.drop("c", "number"), y),
        "categories unseen": lambda: model.predict(pl.DataFrame({"a": [1.0], "b": ["w"]})),
        "was not trained on": lambda: model.predict(numbered.drop("c", "time")),
        "feature names": lambda: model.predict(np.array([[1.0, "u"]], dtype=object)),
        "not trained on; ignored": lambda: model.predict([{"a": 1.0, "b": "u", "z": 2.0}]),
        "only one class": lambda: kind().fit(frame.drop("c"), [0] * 40),
    }
    for message, call in calls.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert any(message in str(one.message) for one in caught), message
        assert {one.filename for one in caught} == {__file__}, message
