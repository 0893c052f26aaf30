"""Decisions from posteriors: which rows are refused, and which class a label names."""

import numpy as np
import pytest

import posteriori as po
from posteriori.support.suggestions import class_index, find_class


@pytest.mark.parametrize("row", [[np.nan, np.nan], [0.2, 0.2], [2.0, -1.0], [np.inf, 0.0], [0.9, 0.3]])
def test_rows_that_are_no_probabilities_are_refused(row):
    with pytest.raises(ValueError, match=r"row 1 of the posterior is \[.*\]; give probabilities that sum to 1"):
        po.decide([[0.5, 0.5], row], ["a", "b"], thresholds={"a": 0.3})


def test_probabilities_of_two_digits_and_of_float32_are_taken():
    for rows in ([[0.33, 0.33, 0.33]], np.full((1, 3), 1 / 3, np.float32)):
        assert po.decide(rows, ["a", "b", "c"], thresholds={"b": 0.3}).tolist() == ["b"]


@pytest.mark.parametrize(
    ("label", "classes", "position"),
    [
        ("1", [0, 1], 1),
        ("1.0", [0, 1], 1),
        ("1e0", [0.0, 1.0], 1),
        (1, ["0", "1"], 1),
        (1.0, ["0", "1"], 1),
        ("true", [False, True], 1),
        (str(2**53 + 1), [2**53, 2**53 + 1], 1),
        ("01", ["1", "a"], None),
        ("2", [0, 1], None),
        ("nan", [0.0, 1.0], None),
        ("a", ["b", "a"], 1),
    ],
)
def test_a_label_names_the_class_of_its_number(label, classes, position):
    assert find_class(label, classes) == position
    if position is None:
        with pytest.raises(ValueError, match="is not a class; "):
            class_index(label, classes)


def test_costs_and_thresholds_name_classes_of_numbers_by_text():
    p = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    assert po.decide(p, [0, 1, 2], thresholds={"2": 0.25}).tolist() == [2, 2]
    costs = {true: {decided: int(true != decided) for decided in "012"} for true in "012"}
    assert po.decide(p, [0, 1, 2], costs=costs).tolist() == [1, 2]


def test_every_look_up_of_a_class_takes_its_text():
    x, y = np.arange(40.0)[:, np.newaxis], np.arange(40) % 2
    pool = po.GenerativeClassifier(members=["nb"], folds=2, random_state=0).fit(x, y)
    assert pool.explain(x[:1]).log_odds(0, "1").label == 1
    assert pool.sample(3, y="1", random_state=0)[1].tolist() == [1, 1, 1]
    assert pool.choose_threshold("1", recall=0.5).n > 0
    assert pool.predict_set(x[:2]).covers(["0", "1"]).dtype == np.bool_
