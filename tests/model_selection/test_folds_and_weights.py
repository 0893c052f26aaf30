"""Every form of folds, and rows of weight 0 with categories of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import posteriori as po
from posteriori.model_selection import leave_one_out, out_of_fold

_RNG = np.random.default_rng(0)
X, Y = _RNG.normal(size=(40, 2)), _RNG.choice(["a", "b"], 40)
ROWS = np.arange(40)
FOLD = ROWS % 4
PAIRS = [(np.flatnonzero(k != FOLD), np.flatnonzero(k == FOLD)) for k in range(4)]

SAME = {
    "array": FOLD,
    "list": FOLD.tolist(),
    "floats": FOLD * 1.0,
    "names": np.array(list("pqrs"))[FOLD],
    "pandas": pd.Series(FOLD),
    "polars": pl.Series(FOLD),
    "pairs": PAIRS,
    "tuple of pairs": tuple(PAIRS),
    "lists in pairs": [[training.tolist(), test.tolist()] for training, test in PAIRS],
    "masks in pairs": [(k != FOLD, k == FOLD) for k in range(4)],
    "splitter": PredefinedSplit(FOLD),
}


@pytest.mark.parametrize("folds", SAME.values(), ids=SAME)
def test_forms_of_the_same_folds(folds):
    expected = out_of_fold(po.NaiveBayes(), X, Y, folds=FOLD)
    found = out_of_fold(po.NaiveBayes(), X, Y, folds=folds)
    np.testing.assert_array_equal(found.fold, FOLD)
    np.testing.assert_array_equal(found.posterior, expected.posterior)


@pytest.mark.parametrize("splitter", [KFold(3), StratifiedKFold(3), LeaveOneOut()])
def test_splits_of_scikit_learn_as_a_generator(splitter):
    expected = out_of_fold(po.NaiveBayes(), X, Y, folds=splitter)
    found = out_of_fold(po.NaiveBayes(), X, Y, folds=splitter.split(X, Y))
    np.testing.assert_array_equal(found.posterior, expected.posterior)


_REST = np.flatnonzero(ROWS >= 20)
REFUSED = {
    "in time": (TimeSeriesSplit(3), "trains split 0 on other rows than all .* fit the training rows and score"),
    "in time, as a list": (list(TimeSeriesSplit(3).split(X)), "folds trains split 0 on other rows than all"),
    "at random": (ShuffleSplit(3, random_state=0), "tests row . 0 times; give splits that test each row once"),
    "repeated": (RepeatedKFold(n_repeats=2), "tests row 0 2 times; give splits that test each row once"),
    "one pair": ([(_REST, np.flatnonzero(ROWS < 20))], "tests row 20 0 times"),
    "a gap": ([(_REST[1:], np.flatnonzero(ROWS < 20))], "trains split 0 on other rows"),
    "beyond the rows": ([(_REST, [40])], "names row 40, and there are 40 rows"),
    "fractions": ([(_REST, [0.5])], "names rows by float64; give their positions, or a mask"),
    "number": (2.5, "folds is 2.5; give a number, the fold of each of the 40 rows"),
    "text": ("kfold", "folds is 'kfold'; give a number"),
    "none": (None, "folds is None; give a number"),
    "set": ({1, 2}, "folds is {1, 2}; give a number"),
    "mapping": ({0: 1}, "folds is {0: 1}; give a number"),
    "ragged": ([[1, 2], [3]], "give a number, the fold of each of the 40 rows"),
    "two columns": (np.zeros((40, 2), int), "give a number, the fold of each of the 40 rows"),
    "no fold": ([], "folds has 0 entries|tests row 0 0 times"),
    "too short": ([0, 1], "folds has 2 entries and 2 distinct values"),
    "one fold": (np.zeros(40, int), "folds has 40 entries and 1 distinct values"),
    "missing": (np.where(ROWS == 3, np.nan, FOLD), "folds is NaN for row 3"),
    "too many": (41, "folds is 41; give at least 2 and no more than the 40 rows"),
    "one": (1, "folds is 1; give at least 2"),
    "truth": (True, "folds is True; give at least 2"),
}


@pytest.mark.parametrize(("folds", "match"), REFUSED.values(), ids=REFUSED)
def test_folds_that_are_refused(folds, match):
    with pytest.raises(ValueError, match=match):
        out_of_fold(po.NaiveBayes(), X, Y, folds=folds)


pytestmark = pytest.mark.filterwarnings("ignore:categories unseen in training count as missing")

CELLS = [["u"], ["v"], ["u"], ["v"], ["w"], ["u"]]
LABELS = ["a", "b", "a", "b", "a", "b"]
WEIGHT = [1, 1, 1, 1, 0, 2]
MODELS = [po.NaiveBayes, po.TreeAugmentedNaiveBayes, po.KDependenceBayes, po.AveragedOneDependence]


@pytest.mark.parametrize("make", MODELS[:2])
def test_leave_one_out_with_a_category_of_weight_0(make):
    model = make().fit(CELLS, LABELS, sample_weight=WEIGHT)
    found = leave_one_out(model, CELLS, LABELS, WEIGHT).posterior
    for row in range(6):
        others = [j for j in range(6) if j != row]
        X, y, weight = ([given[j] for j in others] for given in (CELLS, LABELS, WEIGHT))
        refit = make().fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(found[row], refit.predict_proba([CELLS[row]])[0], rtol=1e-12)


@pytest.mark.parametrize("make", MODELS)
def test_updates_by_a_category_of_weight_0(make):
    whole = make().fit(CELLS, LABELS, sample_weight=WEIGHT)
    model = make().fit(CELLS[:4], LABELS[:4]).partial_fit(CELLS[4:], LABELS[4:], sample_weight=WEIGHT[4:])
    assert model.schema_.columns[0].categories == whole.schema_.columns[0].categories == ("u", "v")
    np.testing.assert_allclose(model.predict_proba(CELLS), whole.predict_proba(CELLS), rtol=1e-12)
    model.partial_fit([["w"]], ["a"])
    assert model.schema_.columns[0].categories == ("u", "v", "w")
