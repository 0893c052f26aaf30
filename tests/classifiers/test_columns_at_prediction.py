"""Columns at prediction are matched by name and read as those of training; unseen categories are missing cells."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.scoring.fitted import load_posterior
from tests.classifiers.test_inputs import FEATURES, X, Y, fit, refused

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


def test_extra_columns_are_ignored_with_a_warning(constructor, columns, labels):
    table = constructor(columns)
    model = fit(table, labels)
    more = constructor(columns | {"snow": columns["sky"]})
    if isinstance(table, np.ndarray):
        for call in (model.predict, lambda rows: model.partial_fit(rows, labels)):
            with refused(ValueError, "X has 5 features, but NaiveBayes is expecting 4 features as input"):
                call(more)
        return
    with pytest.warns(UserWarning, match="^X has column 'snow', which NaiveBayes was not trained on; ignored$"):
        assert_array_equal(model.predict_proba(more), model.predict_proba(table))


def test_a_column_that_a_frame_lacks_is_unknown_in_every_row(constructor, columns, labels):
    table = constructor(columns)
    model = fit(table, labels)
    fewer = constructor({name: columns[name] for name in ("sky", "height")})
    if isinstance(table, np.ndarray):
        with refused(ValueError, "X has 2 features, but NaiveBayes is expecting 4 features as input"):
            model.predict(fewer)
        return
    lacks = "X lacks columns 'floors', 'windy', which NaiveBayes was trained on: unknown in every row"
    with pytest.warns(UserWarning, match=f"^{lacks}$") as caught:
        posterior = model.predict_proba(fewer)
    assert len(caught) == 1
    pairs = zip(columns["sky"], columns["height"], strict=True)
    assert_array_equal(posterior, model.predict_proba([{"sky": sky, "height": height} for sky, height in pairs]))
    with refused(ValueError, "X lacks columns 'floors', 'windy', which NaiveBayes was trained on; add it, empty where"):
        model.partial_fit(fewer, labels)
    other = constructor({"sky": columns["sky"], "height": columns["height"], "snow": columns["sky"]})
    with pytest.warns(UserWarning, match=f"^{lacks}; ignored: column 'snow', which it was not trained on$"):
        assert_array_equal(model.predict_proba(other), posterior)


def test_a_frame_with_a_misspelt_column_or_with_none_is_refused(constructor, columns, labels):
    table = constructor(columns)
    if isinstance(table, np.ndarray):
        pytest.skip("columns of an array have no names")
    model = fit(table, labels)
    misspelt = constructor({{"floors": "Floor"}.get(name, name): cells for name, cells in columns.items()})
    match = r"X lacks column 'floors', which NaiveBayes was trained on; is it 'Floor'\? Rename one, or remove the other"
    with refused(ValueError, match):
        model.predict(misspelt)
    none = constructor({f"other {name}": cells for name, cells in columns.items()})
    with refused(ValueError, "X has none of the columns that NaiveBayes was trained on; is it another table"):
        model.predict(none)


@pytest.mark.filterwarnings("ignore:X lacks column")
@pytest.mark.parametrize("lacking", ["height", "day", "sky", "note"])
def test_every_kind_of_column_may_be_lacking_in_every_method(lacking, tmp_path):
    n = 40
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=3 * i) for i in range(n)]
    frame = pl.DataFrame(
        {
            "height": np.linspace(0, 1, n),
            "day": days,
            "sky": ["clear", "clouds"] * (n // 2),
            "note": [f"{'good' if i < 25 else 'bad'} text number {i}" for i in range(n)],
        }
    )
    y = np.repeat(["a", "b"], n // 2)
    model = po.NaiveBayes(columns=po.Columns(text=["note"])).fit(frame, y)
    blank = frame.with_columns(pl.lit(None, frame.schema[lacking]).alias(lacking))
    fewer = frame.drop(lacking)
    expected = model.predict_proba(blank)
    assert_array_equal(model.predict_proba(fewer), expected)
    assert_array_equal(model.predict(fewer), model.predict(blank))
    assert_array_equal(model.score_samples(fewer), model.score_samples(blank))
    assert model.score(fewer, y) == model.score(blank, y)
    assert model.explain(fewer[:5]).bayes_table(3) == model.explain(blank[:5]).bayes_table(3)
    fewer.write_parquet(tmp_path / "fewer.parquet")
    assert_array_equal(model.predict_proba(po.scan(tmp_path / "fewer.parquet")), expected)
    po.save(model, tmp_path / "model.posteriori")
    kept = load_posterior(tmp_path / "model.posteriori")
    assert_array_equal(kept.source(fewer).map(kept.posterior.posterior), expected)


def test_a_column_without_influence_may_be_absent_silently():
    frame = pl.DataFrame({"customer_id": [f"c{i:04}" for i in range(60)], "height": np.linspace(0, 1, 60)})
    with pytest.warns(UserWarning, match="customer_id"):
        model = fit(frame, [0] * 30 + [1] * 30)
    assert model.schema_.columns[0].is_ignored
    assert_array_equal(model.predict_proba(frame[["height"]]), model.predict_proba(frame))
    with refused(ValueError, "X has none of the columns that NaiveBayes was trained on"):
        model.predict(frame[["customer_id"]])


def test_arrays_match_named_columns_by_place_with_a_warning():
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


def test_labels_that_are_no_strings_are_names():
    frame = pd.DataFrame(X, columns=[7, 3])
    model = fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["7", "3"]
    with pytest.warns(UserWarning, match="X does not have valid feature names, but NaiveBayes was fitted with"):
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
@pytest.mark.parametrize("cell", [{}, [1], b"x", datetime.date(2020, 1, 1)], ids=repr)
def test_cells_that_are_neither_numbers_nor_texts_at_prediction(kind, cell):
    model = fit([[1.5], [2.5]] if kind == "numeric" else [["x"], ["y"]], [0, 1])
    rows = np.empty((1, 1), dtype=object)
    rows[0, 0] = cell
    with refused(TypeError, f"column 'x0' holds a {type(cell).__name__} .*; cells must be numbers, strings"):
        model.predict(rows)


def test_a_decimal_at_prediction_is_a_number():
    rows = np.array([[decimal.Decimal("1.5")]], dtype=object)
    model = fit([[1.5], [2.5]], [0, 1])
    assert_array_equal(model.predict_proba(rows), model.predict_proba([[1.5]]))
    with refused(ValueError, "column 'x0' held strings in training but holds numbers now; convert it"):
        fit([["x"], ["y"]], [0, 1]).predict(rows)


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


def test_one_warning_names_unseen_categories_taken_as_missing(constructor, columns, labels):
    model = fit(constructor(columns), labels)
    rows = columns | {"sky": ["clear", "hail", None, "snow", "hail", "fog", "clouds", "hail"]}
    blank = columns | {"sky": ["clear", None, None, None, None, "fog", "clouds", None]}
    with pytest.warns(UserWarning, match="unseen in training count as missing: 4 cells of column '(sky|x2)'") as caught:
        posterior = model.predict_proba(constructor(rows))
    assert len(caught) == 1
    assert_array_equal(posterior, model.predict_proba(constructor(blank)))
