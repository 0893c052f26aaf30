"""Everything a user may pass to an estimator: what is good works, what is bad gets one sentence with the fix."""

import datetime
import decimal
import io
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

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


# Tables that are none ---------------------------------------------------------------------------------------------

BAD_TABLES = {
    "sparse, one-dimensional": (scipy.sparse.coo_array(X[:, 0]), ValueError, "X has 1 dimensions; give rows and col"),
    "sparse, complex": (scipy.sparse.csr_array(X * 1j), ValueError, "X holds complex128; give counts as real numbers"),
    "sparse, no rows": (scipy.sparse.csr_array((0, 2)), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\)"),
    "absent file": ("table.csv", FileNotFoundError, "there is no file 'table.csv'"),
    "list of texts": (
        ["no rain today", "rain"],
        ValueError,
        r'a list of strings; give a table.*Columns\(text=\["text"\]\)',
    ),
    "series of texts": (pd.Series(["no rain", "rain"]), ValueError, "X is a list of strings; give a table"),
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


@pytest.fixture(params=["path", "path as text", "polars", "duckdb"])
def lazy_rows(request, tmp_path):
    """Return the rows of `FRAME` as a table that is not in memory yet."""
    path = tmp_path / "rain.csv"
    FRAME.write_csv(path)
    if request.param == "duckdb":
        return pytest.importorskip("duckdb").connect().sql(f"SELECT * FROM read_csv('{path}')")
    return {"path": path, "path as text": str(path), "polars": FRAME.lazy()}[request.param]


def test_files_and_lazy_tables_are_read_as_the_rows_in_memory(lazy_rows):
    model = fit(FRAME, "rain")
    found = fit(lazy_rows, "rain")
    assert found.feature_names_in_.tolist() == ["height", "sky"]
    np.testing.assert_allclose(found.predict_proba(lazy_rows), model.predict_proba(FRAME), rtol=1e-9)
    assert found.score(lazy_rows, "rain") == model.score(FRAME, "rain")


def test_scan_sends_a_lazy_frame_to_fit():
    with refused(TypeError, "scan reads files, and was given a LazyFrame; give it to fit itself"):
        po.scan(FRAME.lazy())


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
    "quantiles": (pd.DataFrame({"c": pd.qcut([1, 2], 2)}), TypeError, r"'c' holds intervals \(.*\.astype\(.string.\)"),
    "intervals": (pd.DataFrame({"c": pd.IntervalIndex.from_breaks([1, 2, 3])}), TypeError, "'c' holds intervals"),
    "interval objects": (np.array([[pd.Interval(0, 1)], ["a"]], dtype=object), TypeError, "'x0' holds intervals"),
    "complex object": (np.array([[1j], [2]], dtype=object), TypeError, "column 'x0' holds a complex"),
    "strings and numbers": (
        np.array([["a"], [1]], dtype=object),
        ValueError,
        "'x0' mixes strings and numbers; convert",
    ),
    "flags and numbers": ([[True], [2]], ValueError, "column 'x0' mixes numbers and booleans; convert all"),
    "huge integer": (np.array([[10**400], [1]], dtype=object), ValueError, "'x0' holds an integer too large.*rescale"),
}


@pytest.mark.parametrize(("table", "error", "match"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_columns_of_neither_numbers_strings_nor_booleans(table, error, match):
    with refused(error, match):
        fit(table, [0, 1])


def test_polars_decimals_are_numbers():
    frame = pl.DataFrame({"c": [decimal.Decimal("1.5"), None, decimal.Decimal("2.5")]})
    assert fit(frame, [0, 0, 0]).theta_.tolist() == [[2.0]]


_DECIMALS = [decimal.Decimal("0.1"), None, decimal.Decimal("2.5"), decimal.Decimal("NaN")] * 5
_OBJECTS = {
    "pandas": pd.DataFrame({"c": _DECIMALS}),
    "polars objects": pl.DataFrame({"c": pl.Series(_DECIMALS, dtype=pl.Object)}),
    "array": np.array(_DECIMALS, dtype=object)[:, np.newaxis],
}


@pytest.mark.parametrize("table", _OBJECTS.values(), ids=_OBJECTS)
def test_decimal_objects_are_numbers_as_columns_of_numbers_are(table):
    numbers = np.array([0.1, np.nan, 2.5, np.nan] * 5)[:, np.newaxis]
    as_is = fit(table, Y)
    assert as_is.schema_.columns[0].kind == "continuous"
    assert_array_equal(as_is.predict_proba(table), fit(numbers, Y).predict_proba(numbers))
    codes = po.Columns(categorical_features=[0])
    as_codes = fit(table, Y, columns=codes)
    assert as_codes.categories_[0].tolist() == [0.1, 2.5]
    assert_array_equal(as_codes.predict_proba(table), fit(numbers, Y, columns=codes).predict_proba(numbers))


def test_labels_may_be_decimals_and_intervals_become_strings():
    labels = pd.Series([decimal.Decimal(label) for label in Y.tolist()])
    assert fit(X, labels).classes_.tolist() == [0, 1]
    quantiles = pd.DataFrame({"c": pd.qcut([*range(19), np.nan], 3)})
    assert fit(quantiles.astype("string"), Y).schema_.columns[0].cardinality == 3
    with pytest.raises(TypeError, match=r"holds intervals .*\.astype"):
        fit(X, quantiles["c"])


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
        ({"n": 2, "y": "snow"}, ValueError, r"'snow' is not a class; the classes are 0, 1"),
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
def test_discriminants_refuse_cells_without_finite_moments(pooling, n_columns, cell):
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
def test_floats_are_refused_where_text_or_dates_are_stated(columns, message):
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


@pytest.mark.parametrize("frame", [FRAME, FRAME.to_pandas()], ids=["polars", "pandas"])
def test_labels_that_are_also_a_feature_are_named(frame):
    advice = "the column 'rain' of X holds the labels y, so the model learns .* fit\\(X, 'rain'\\), or drop"
    with pytest.warns(UserWarning, match=advice):
        fit(frame, frame["rain"])
    with pytest.warns(UserWarning, match=advice):
        po.GenerativeClassifier(["nb"], folds=2).fit(frame, frame["rain"])
    reversed_labels = frame["rain"].to_numpy()[::-1]
    fit(frame, reversed_labels)
    fit(frame, frame.assign(rain=reversed_labels)["rain"] if hasattr(frame, "assign") else frame["rain"].reverse())
    fit(frame[["height", "sky"]], frame["rain"])
    fit(frame, "rain")


def test_the_advice_on_intervals_keeps_their_order():
    rows = pd.DataFrame({"x": [1.5, 30, 2, 110, 5, 1000] * 6})
    rows["q"] = pd.cut(rows["x"], [0, 2, 10, 100, 1000])
    with pytest.raises(TypeError, match=r"'q' holds intervals .*in order by \.cat\.rename_categories\(str\)"):
        po.NaiveBayes().fit(rows, ["u", "v"] * 18)
    rows["q"] = rows["q"].cat.rename_categories(str)
    model = po.NaiveBayes().fit(rows, ["u", "v"] * 18)
    assert model.schema_.columns[1].categories == ("(0, 2]", "(2, 10]", "(10, 100]", "(100, 1000]")


def test_an_open_file_is_no_path():
    with pytest.raises(TypeError, match="paths is a BytesIO; give the path of a file"):
        po.scan(io.BytesIO(b"a,b"))
