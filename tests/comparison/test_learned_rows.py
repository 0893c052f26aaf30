"""Which rows a comparison learns from: stratified, and of growing size."""

from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_regressor
from sklearn.naive_bayes import GaussianNB

import posteriori as po
from posteriori.comparison import training_sizes
from posteriori.comparison.discriminative import DiscriminativeClassifier, DiscriminativeRegressor
from posteriori.comparison.models import stratified_order, training_rows

classes_of_rows = st.lists(st.integers(0, 3), min_size=8, max_size=60)


@given(classes_of_rows, st.integers(0, 100))
def test_every_beginning_of_the_order_is_stratified(labels, seed):
    _, components = np.unique(labels, return_inverse=True)
    order = stratified_order(components, np.random.default_rng(seed))
    assert_array_equal(np.sort(order), np.arange(len(labels)))
    n_classes = components.max() + 1
    shares = np.bincount(components) / len(components)
    assert len(set(components[order[:n_classes]])) == n_classes
    for n in range(n_classes, len(order) + 1):
        counts = np.bincount(components[order[:n]], minlength=n_classes)
        assert np.all(np.abs(counts - n * shares) <= n_classes + 1)


def test_an_order_depends_on_the_generator():
    components = np.repeat([0, 1], 50)
    one, other = (stratified_order(components, np.random.default_rng(seed)) for seed in (0, 1))
    assert (one != other).any()


@given(st.integers(4, 100_000), st.integers(2, 30), st.floats(0.05, 0.5))
def test_sizes_ascend_to_all_rows_but_those_kept(n_rows, n_classes, test_share):
    sizes = training_sizes(n_rows, n_classes, test_share)
    assert list(sizes) == sorted(set(sizes))
    assert 1 <= len(sizes) <= 7
    assert sizes[-1] == training_rows(n_rows, test_share)


class Witness(GaussianNB):
    """Writes down which rows it is given."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.seen.append(("fit", frozenset(X["row"].to_list())))
        return super().fit(X, y)

    def predict_proba(self, X):
        self.seen.append(("predict", frozenset(X["row"].to_list())))
        return super().predict_proba(X)


def test_smaller_sizes_are_nested_and_hold_no_test_rows():
    Witness.seen.clear()
    X = pl.DataFrame({"row": np.arange(100.0)})
    po.compare({"a": Witness()}, X, np.arange(100) % 2, sizes=[5, 20, 60], repeats=2, random_state=0)
    calls = Witness.seen[2:]  # after the one that is not timed
    for repeat in (calls[:6], calls[6:]):
        learned, evaluated = [rows for what, rows in repeat[::2]], [rows for what, rows in repeat[1::2]]
        assert learned[0] < learned[1] < learned[2]
        assert evaluated[0] == evaluated[1] == evaluated[2]
        assert len(evaluated[0]) == 25
        assert not learned[2] & evaluated[0]
    assert calls[1][1] != calls[7][1]


@pytest.mark.parametrize("run", [po.compare, po.cross_validate])
def test_lazy_frames_may_lack_targets_and_files_are_refused(run, tmp_path):
    X = pl.DataFrame({"u": np.arange(60.0) % 7, "t": [None if i % 5 == 0 else "ab"[i % 2] for i in range(60)]})
    X.write_csv(path := tmp_path / "t.csv")
    with pytest.warns(UserWarning, match="12 of 60 rows have no t; they are left out"):
        run(["nb", "logistic"], X.lazy(), "t", random_state=0)
    with pytest.raises(ValueError, match="at once; read them into memory"):
        run(["nb", "logistic"], path, "t", random_state=0)


@pytest.mark.filterwarnings("ignore:12 of 60 rows have no label")
@pytest.mark.parametrize("models", [["nb"], ["nb", "logistic"]])
def test_folds_are_pairs_of_rows_or_one_of_each_row_of_the_table(models):
    X, y, first = pl.DataFrame({"u": np.arange(60.0) % 7}), np.array(["a", "b"] * 30, dtype=object), np.arange(60) < 25
    parts = np.flatnonzero(first), np.flatnonzero(~first)
    pairs = po.cross_validate(models, X, y, folds=[parts, parts[::-1]])
    assert_array_equal(pairs.fold, first)
    known = np.arange(60) % 5 > 0
    of_rows, of_pairs = first.astype(int), [parts, parts[::-1]]
    for folds in (of_rows, of_pairs):
        result = po.cross_validate(models, X, np.where(known, y, None), folds=folds)
        assert_array_equal(result.fold, first[known])
    with pytest.raises(ValueError, match="folds tests row 59 2 times"):
        po.cross_validate(models, X, np.where(known, y, None), folds=[*of_pairs, (range(59), [59])])


@pytest.mark.parametrize(
    "model", [po.NaiveBayes(), po.GenerativeRegressor(), DiscriminativeClassifier(), DiscriminativeRegressor()]
)
def test_a_score_leaves_rows_without_target_out(model):
    X, is_known = pl.DataFrame({"u": np.arange(60.0) % 7}), np.arange(60) % 5 > 0
    y = X["u"].to_numpy() ** 2 if is_regressor(model) else np.where(X["u"] > 2, "a", "b")
    expected = model.fit(X, y).score(X.filter(is_known), y[is_known])
    with pytest.warns(UserWarning, match="12 of 60 rows have no label; they are left out") as said:
        assert_allclose(model.score(X, np.where(is_known, y, None).tolist()), expected)
    assert len(said) == 1
