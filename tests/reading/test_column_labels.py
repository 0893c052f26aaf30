"""Labels of pandas columns of every type: prediction matches them by label, in any order, or refuses them."""

from __future__ import annotations

import datetime as dt
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import posteriori as po

_RNG = np.random.default_rng(0)
CELLS = _RNG.normal(size=(60, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, 10.0]
Y = np.where(CELLS[:, 0] + 0.3 * _RNG.normal(size=60) > 0, "a", "b")

LABELS = {
    "of an array": range(3),
    "of an array, as floats": [0.0, 1.0, 2.0],
    "integers": [5, 7, 6],
    "integers from 1": np.array([1, 2, 3], np.uint8),
    "in another order": [1, 0, 2],
    "negative": [-1, 0, 1],
    "floats": [0.5, 1.5, 2.0],
    "booleans": [True, False, 2],
    "dates": [dt.date(2020, 1, k) for k in (1, 2, 3)],
    "timestamps": pd.date_range("2020", periods=3),
    "periods": pd.period_range("2020", periods=3, freq="M"),
    "durations": pd.to_timedelta([1, 2, 3], "s"),
    "intervals": pd.interval_range(0, 3),
    "levels of strings": pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]),
    "levels of several types": pd.MultiIndex.from_product([["a"], [1, 2, 3]]),
    "tuples and numbers": [(1, 2), 3, 4.5],
    "none": [None, 1, 2.5],
    "not a number": [np.nan, 1, 2],
    "categories": pd.CategoricalIndex([3, 1, 2]),
    "bytes": [b"a", b"b", b"c"],
    "strings": ["p", "q", "r"],
}


@pytest.fixture(params=LABELS)
def frame(request):
    return pd.DataFrame(CELLS, columns=LABELS[request.param])


@pytest.mark.parametrize("make", [po.NaiveBayes, po.GaussianDiscriminant, po.GenerativeClassifier])
def test_columns_in_any_order_give_the_same_predictions(frame, make):
    parameters = {"members": ["nb", "lda"]} if make is po.GenerativeClassifier else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for of_fit in ([0, 1, 2], [2, 0, 1]):
            model = make(**parameters).fit(frame.iloc[:, of_fit], Y)
            expected = model.predict_proba(frame.iloc[:, of_fit])
            for order in itertools.permutations(range(3)):
                found = model.predict_proba(frame.iloc[:, list(order)])
                np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rows_and_updates_in_another_order(frame):
    model = po.NaiveBayes().fit(frame, Y)
    other = frame.iloc[:, [1, 2, 0]]
    np.testing.assert_allclose(model.predict_proba([other.iloc[4]]), model.predict_proba(frame)[4:5])
    model.partial_fit(other, Y)
    whole = po.NaiveBayes().fit(pd.concat([frame, frame]), np.r_[Y, Y])
    np.testing.assert_allclose(model.predict_proba(frame), whole.predict_proba(frame), rtol=1e-9)


def test_chosen_columns_of_an_array_are_found_in_the_whole(frame):
    model = po.NaiveBayes().fit(frame.iloc[:, [2, 0]], Y)
    with pytest.warns(UserWarning, match="which NaiveBayes was not trained on; ignored"):
        found = model.predict_proba(frame)
    expected = po.NaiveBayes().fit(CELLS[:, [2, 0]], Y).predict_proba(CELLS[:, [2, 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_different_number_of_columns_is_not_matched_silently():
    model = po.NaiveBayes().fit(CELLS, Y)
    with pytest.warns(UserWarning, match="X has feature names, but NaiveBayes was fitted without"):
        model.predict(pd.DataFrame(CELLS, columns=[1, 2, 3]))
    shifted = po.NaiveBayes().fit(pd.DataFrame(CELLS, columns=[1, 2, 3]), Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        shifted.predict(pd.DataFrame(CELLS))


@pytest.mark.parametrize("labels", [[1, 1, 2], [1, 1.0, 2], [np.nan, np.nan, 1], [None, None, 1], [(1,), (1,), 2]])
def test_labels_that_occur_twice(labels):
    with pytest.raises(ValueError, match=r"column '.*' occurs twice; rename or drop one"):
        po.NaiveBayes().fit(pd.DataFrame(CELLS, columns=pd.Index(labels, tupleize_cols=False)), Y)


def test_a_number_may_be_a_label_and_another_columns_index():
    frame = pd.DataFrame(CELLS.round(), columns=[1, 2, 3])
    with pytest.raises(ValueError, match="names 1, a name and the index of another column; give the name '1'"):
        po.NaiveBayes(columns=po.Columns(categorical_features=[1])).fit(frame, Y)
    model = po.NaiveBayes(columns=po.Columns(categorical_features=["1"])).fit(frame, Y)
    assert [column.kind for column in model.schema_.columns] == ["categorical", "continuous", "continuous"]
