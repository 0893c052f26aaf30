"""Rows of pandas frames: all columns at once where they have one type of numbers, else column by column."""

import numpy as np
import pandas as pd
import pytest

import posteriori as po
from posteriori.reading import infer_schema, read_table


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.uint64])
@pytest.mark.parametrize("columns", [[0, 1, 2], [2, 0]])
def test_columns_of_one_type_are_those_of_the_array(dtype, columns):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    frame = pd.DataFrame(values, columns=list("abc"))
    frame["c"] = frame["c"].to_numpy()  # another block in memory
    table = read_table(frame)
    schema = infer_schema(table)
    tile = table.numbers(columns, [schema.columns[j] for j in columns], slice(1, 3))
    assert tile.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert tile.flags.c_contiguous
    np.testing.assert_array_equal(tile, values[1:3][:, columns])


def test_a_row_of_strings_has_the_codes_of_a_column_of_strings():
    rows = pd.DataFrame({"c": ["u", None, "v", "w"] * 400, "x": np.arange(1600.0)})
    model = po.NaiveBayes().fit(rows, (np.arange(1600) % 4 == 0).astype(int))
    whole = model.predict_proba(rows)  # so many rows are factorised, a few are looked up
    np.testing.assert_array_equal(np.concatenate([model.predict_proba(rows[j : j + 1]) for j in range(8)]), whole[:8])


def test_a_name_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="column 'a' occurs twice"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_series_is_a_row_and_so_is_each_of_a_list():
    rows = pd.DataFrame({"c": ["u", None, "v", "w"], "x": [1.0, 2.0, np.nan, 4.0], "y": ["a", "b", "a", "b"]})
    model = po.NaiveBayes().fit(rows, "y")
    whole = model.predict_proba(rows)
    for j in range(4):
        np.testing.assert_array_equal(model.predict_proba(rows.iloc[j]), whole[j : j + 1])
        assert model.explain(rows.iloc[j]).bayes_table(0) == model.explain(rows[j : j + 1]).bayes_table(0)
    assert model.predict([row for _, row in rows.iterrows()]).tolist() == model.predict(rows).tolist()
    with pytest.warns(UserWarning, match="the rows have column 'z'"):
        model.predict(pd.Series({"x": 1.0, "z": 2.0}))


def test_a_series_of_a_column_is_no_row():
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0], "y": ["a", "b", "a", "b"]})
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        po.NaiveBayes().fit(rows, "y").predict(rows["x"])
