"""Cut points by minimum description length, against the paper read slowly."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po


@parametrize_with_checks(
    [po.MDLPDiscretizer()],
    expected_failed_checks=lambda _: {"check_dtype_object": "a cell that is no number is named, in words of our own"},
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def entropy(labels):
    shares = [count / len(labels) for count in Counter(labels).values()]
    return -sum(share * math.log2(share) for share in shares)


def cuts_by_the_paper(rows):
    """Fayyad & Irani (1993): rows are pairs of value and label, sorted."""
    values, labels = [value for value, _ in rows], [label for _, label in rows]
    best = None
    for i in range(1, len(rows)):
        if values[i - 1] == values[i]:
            continue
        parts = labels[:i], labels[i:]
        mean = sum(len(part) / len(rows) * entropy(part) for part in parts)
        if best is None or mean < best[0] - 1e-10:
            best = mean, i
    if best is None:
        return []
    mean, i = best
    left, right = labels[:i], labels[i:]
    n, k, k1, k2 = len(rows), len(set(labels)), len(set(left)), len(set(right))
    delta = math.log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(labels) - mean <= math.log2(n - 1) / n + delta / n + 1e-12:
        return []
    return [*cuts_by_the_paper(rows[:i]), (values[i - 1] + values[i]) / 2, *cuts_by_the_paper(rows[i:])]


@st.composite
def labelled(draw):
    n = draw(st.integers(1, 60))
    values = draw(hnp.arrays(np.float64, n, elements=st.integers(0, 12).map(float)))
    noise = draw(hnp.arrays(np.int64, n, elements=st.sampled_from([0, 0, 0, 1, 2])))
    return values, (np.searchsorted([4, 8], values) + noise) % 3


@given(labelled())
def test_it_is_the_paper(rows):
    values, y = rows
    expected = cuts_by_the_paper(sorted(zip(values.tolist(), y.tolist(), strict=True)))
    assert po.MDLPDiscretizer().fit(values[:, np.newaxis], y).cuts_[0].tolist() == expected


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_paper_on_many_values(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 400)
    values = rng.normal(1.5 * (y % 3), 1.0)
    expected = cuts_by_the_paper(sorted(zip(values.tolist(), y.tolist(), strict=True)))
    assert len(expected) > 1
    np.testing.assert_allclose(po.MDLPDiscretizer().fit(values[:, np.newaxis], y).cuts_[0], expected, rtol=1e-15)


@given(labelled(), st.data())
def test_weights_are_repetitions(rows, data):
    values, y = rows
    weight = data.draw(hnp.arrays(np.float64, len(y), elements=st.integers(0, 3).map(float)))
    if not weight.any():
        weight[0] = 1.0
    times = weight.astype(int)
    weighted = po.MDLPDiscretizer().fit(values[:, np.newaxis], y, sample_weight=weight)
    repeated = po.MDLPDiscretizer().fit(np.repeat(values, times)[:, np.newaxis], np.repeat(y, times))
    assert_array_equal(weighted.cuts_[0], repeated.cuts_[0])


def test_fractional_weights_are_between():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(2.0 * y, 1.0)[:, np.newaxis]
    one = po.MDLPDiscretizer().fit(X, y, sample_weight=np.full(300, 1.0)).cuts_[0]
    nearly = po.MDLPDiscretizer().fit(X, y, sample_weight=np.full(300, 1.0 + 1e-9)).cuts_[0]
    assert_array_equal(one, nearly)
    assert len(po.MDLPDiscretizer().fit(X, y, sample_weight=np.full(300, 0.01)).cuts_[0]) == 0  # three rows' worth


@given(labelled(), st.sampled_from([0.25, 1.0, 8.0]), st.sampled_from([0.0, -5.0, 1024.0]))
def test_an_increasing_map_moves_the_cuts_alike(rows, factor, offset):
    values, y = rows
    cuts = po.MDLPDiscretizer().fit(values[:, np.newaxis], y).cuts_[0]
    moved = po.MDLPDiscretizer().fit(factor * values[:, np.newaxis] + offset, y).cuts_[0]
    assert_array_equal(moved, factor * cuts + offset)


@given(labelled(), st.data())
def test_the_order_of_the_rows_does_not_matter(rows, data):
    values, y = rows
    order = np.array(data.draw(st.permutations(range(len(y)))))
    shuffled = po.MDLPDiscretizer().fit(values[order, np.newaxis], y[order])
    assert_array_equal(shuffled.cuts_[0], po.MDLPDiscretizer().fit(values[:, np.newaxis], y).cuts_[0])


def test_two_classes_apart_are_cut_once():
    X = np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]])
    bins = po.MDLPDiscretizer().fit(X, list("aaabbb"))
    assert_array_equal(bins.cuts_[0], [6.5])
    assert_array_equal(bins.bin_edges_[0], [-np.inf, 6.5, np.inf])
    assert_array_equal(bins.transform([[6.4], [6.5], [np.nan], [-1e300]]), [[0.0], [1.0], [np.nan], [0.0]])


def test_a_column_that_tells_nothing_stays_whole():
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    assert po.MDLPDiscretizer().fit(X, list("ababab")).n_bins_.tolist() == [1]
    assert po.MDLPDiscretizer().fit(X, list("aaaaaa")).n_bins_.tolist() == [1]


def test_missing_cells_choose_nothing_and_stay_missing():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.column_stack([rng.normal(3.0 * y, 1.0), np.full(200, np.nan)])
    X[rng.random(200) < 0.3, 0] = np.nan
    bins = po.MDLPDiscretizer().fit(X, y)
    present = ~np.isnan(X[:, 0])
    assert_array_equal(bins.cuts_[0], po.MDLPDiscretizer().fit(X[present, :1], y[present]).cuts_[0])
    assert_array_equal(np.isnan(bins.transform(X)), np.isnan(X))
    assert bins.n_bins_[1] == 1


@pytest.mark.parametrize("constructor", [pd.DataFrame, pl.DataFrame])
def test_frames(constructor):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    columns = {"a": rng.normal(4.0 * y, 1.0), "b": rng.integers(0, 9, 100), "y": y}
    frame = constructor(columns)
    bins = po.MDLPDiscretizer().fit(frame, "y")
    plain = po.MDLPDiscretizer().fit(np.column_stack([columns["a"], columns["b"]]), y)
    assert_array_equal(bins.cuts_[0], plain.cuts_[0])
    assert bins.get_feature_names_out().tolist() == ["a", "b"]
    features = frame[["b", "a"]]
    assert_array_equal(bins.transform(features), plain.transform(np.column_stack([columns["a"], columns["b"]])))
    out = bins.set_output(transform="polars").transform(features)
    assert out.columns == ["a", "b"]
    assert make_pipeline(po.MDLPDiscretizer(), po.NaiveBayes()).fit(features, y).score(features, y) > 0.9


def test_a_categorical_column_is_refused_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"], "on": [True, False]})
    with pytest.raises(ValueError, match="columns 'colour', 'on' are categorical"):
        po.MDLPDiscretizer().fit(frame, [0, 1])


def test_bad_cells_are_named():
    with pytest.raises(ValueError, match="column 'x1' holds inf in row 1"):
        po.MDLPDiscretizer().fit([[1.0, 2.0], [1.0, np.inf]], [0, 1])
    bins = po.MDLPDiscretizer().fit([[1.0, 2.0], [1.0, 3.0]], [0, 1])
    with pytest.raises(ValueError, match="column 'x0' holds -inf in row 0"):
        bins.transform([[-np.inf, 1.0]])
