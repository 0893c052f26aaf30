"""Rows taken out again: what is left is what a fit without them gives, and what was never in is refused."""

import re
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import posteriori as po
from posteriori.densities import Binned
from posteriori.statistics import (
    ColumnRanges,
    Counts,
    JointCounts,
    JointStatistics,
    Moments,
    PairMoments,
    Pairs,
    ReversibleStatistics,
    Scatter,
    TailMoments,
)

CUTS = (-1.0, 0.25)
ESTIMATORS = {
    "naive Bayes": po.NaiveBayes(),
    "maximum likelihood": po.NaiveBayes(missing="informative", distributions=po.Gaussian(0.0, ddof=1)),
    "poisson and bins": po.NaiveBayes(distributions={"n": "poisson", "x": Binned(CUTS), "w": "categorical"}),
    "lda": po.GaussianDiscriminant(),
    "rda": po.GaussianDiscriminant(pooling=0.5, shrinkage="oas", missing="informative"),
    "tan": po.TreeAugmentedNaiveBayes(bins=CUTS),
    "tan of numbers": po.TreeAugmentedNaiveBayes(bins=None),
    "chow-liu": po.classifiers.ChowLiuClassifier(bins=CUTS, missing="informative"),
    "aode": po.AveragedOneDependence(bins=CUTS),
    "full joint": po.classifiers.FullJointClassifier(bins=(0.0,)),
    "kdb of no parents": po.KDependenceBayes(k=0, bins=CUTS),
}
COMPLETE = ("lda", "rda")  # whose missing numbers take EM
SKIES = pl.Enum(["clear", "clouds", "haze", "snow"])  # known to every model, whichever its rows show


def mixed_table(seed, n, missing=0.2, offset=0.0):
    """Return a table with all kinds of columns, and weights whose sums are exact, the first row's not 0."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["low", "mid", "top"], n, p=[0.5, 0.4, 0.1])
    x = rng.normal(size=n) + (label == "low")
    columns = {
        "sky": rng.choice(["clear", "clouds", "haze", "snow"], n, p=[0.4, 0.3, 0.2, 0.1]).astype(object),
        "x": x + offset,
        "z": 0.3 * x + rng.normal(size=n) + offset,
        "n": rng.poisson(2.0, n).astype(float),
        "w": pd.Series(rng.integers(0, 3, n)).map(str).to_numpy(object),
    }
    for name, cells in columns.items():
        gaps = rng.random(n) < missing
        columns[name] = [None if gap else cell for gap, cell in zip(gaps, cells.tolist(), strict=True)]
    kinds = {"sky": SKIES, "w": pl.Enum(["0", "1", "2"])}
    frame = pl.DataFrame(columns, schema={name: kinds.get(name, pl.Float64) for name in columns})
    weight = rng.integers(0, 9, n) / 4.0
    weight[0] = 1.0
    return frame.with_columns(label=pl.Series(label)), weight


def parts_of(statistics):
    """Yield the statistics that statistics consist of, themselves the last."""
    for field in fields(statistics):
        value = getattr(statistics, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if is_dataclass(one):
                yield from parts_of(one)
    yield statistics


def assert_left(rest, expected, before):
    """Check that sums without some rows are those of the others, to 1e-9 of what they were before."""
    for mine, theirs, all_of_it in zip(parts_of(rest), parts_of(expected), parts_of(before), strict=True):
        if isinstance(mine, Counts):
            assert_array_equal(mine.table, theirs.table)
        elif isinstance(mine, JointCounts):
            assert_array_equal(mine.cells, theirs.cells)
        elif isinstance(mine, Moments | Scatter | PairMoments | JointStatistics):
            assert_array_equal(mine.weight, theirs.weight)
        elif isinstance(mine, ColumnRanges):  # which may be wider than those of the rows that are left
            assert (mine.lowest <= theirs.lowest).all()
            assert (mine.highest >= theirs.highest).all()
            assert (mine.whole <= theirs.whole).all()
            assert_array_equal(mine.has_numbers, theirs.has_numbers)
        if isinstance(mine, Moments | Scatter | PairMoments):
            assert_moments_left(mine, theirs, all_of_it)
        else:
            assert isinstance(mine, ColumnRanges | Counts | JointCounts | TailMoments | Pairs | JointStatistics)


def assert_moments_left(mine, theirs, before):
    pairs, matrix = isinstance(before, PairMoments), isinstance(before, Scatter)
    squares = np.diagonal(before.scatter, axis1=1, axis2=2) if matrix else before.scatter
    weight = before.weight[:, np.newaxis] if matrix else before.weight
    seen = mine.weight[:, np.newaxis] > 0 if matrix else mine.weight > 0
    scale = np.sqrt(squares / np.where(weight > 0, weight, 1.0))
    shift = (mine.shift - theirs.shift)[..., np.newaxis] if pairs else mine.shift - theirs.shift
    apart = np.abs(shift + (mine.offset - theirs.offset))
    assert (np.where(seen, apart, 0.0) <= 1e-9 * scale).all()
    units = np.sqrt(squares)
    bound = 1e-9 * (units[:, :, np.newaxis] * units[:, np.newaxis, :] if matrix else squares)
    assert (np.abs(mine.scatter - theirs.scatter) <= bound).all()
    if pairs:
        assert (np.abs(mine.cross - theirs.cross) <= 1e-9 * units * units.swapaxes(1, 2) + 1e-12).all()


def fitted(estimator, frame, weight):
    return clone(estimator).fit(frame, "label", weight)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 50), share=st.floats(0.05, 0.95))
def test_what_is_left_is_what_the_other_rows_give(name, offset, seed, n, share):
    estimator = ESTIMATORS[name]
    if offset and not (name in COMPLETE or "numbers" in name or name == "naive Bayes"):
        return
    frame, weight = mixed_table(seed, n, 0.0 if name in COMPLETE else 0.2, offset)
    gone = np.random.default_rng(seed).random(n) < share
    gone[0] = False
    model = fitted(estimator, frame, weight)
    before = model.statistics_
    if not weight[gone].any():
        return
    model.unlearn(frame.filter(gone), "label", weight[gone])
    others = clone(estimator).partial_fit(
        frame.filter(~gone), "label", classes=model.classes_.tolist(), sample_weight=weight[~gone]
    )
    assert model.schema_.columns == others.schema_.columns
    assert_left(model.statistics_, others.statistics_, before)
    if name in ("tan", "chow-liu", "aode", "full joint", "kdb of no parents"):
        expected = others.predict_joint_log_proba(frame.drop("label"))
        assert_allclose(model.predict_joint_log_proba(frame.drop("label")), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_predicts_as_if_it_had_never_seen_them(name):
    frame, weight = mixed_table(3, 600, 0.0 if name in COMPLETE else 0.2)
    model = fitted(ESTIMATORS[name], frame[:400], weight[:400]).partial_fit(
        frame[400:], "label", sample_weight=weight[400:]
    )
    for start in (300, 100):  # of rows of several calls, and again
        rows = slice(start, 600 if start == 300 else 300)
        assert model.unlearn(frame[rows], "label", weight[rows]) is model
    rest, X = fitted(ESTIMATORS[name], frame[:100], weight[:100]), frame.drop("label")
    assert_allclose(model.predict_joint_log_proba(X), rest.predict_joint_log_proba(X), rtol=1e-9)
    model.partial_fit(frame[100:], "label", sample_weight=weight[100:])  # and it goes on
    whole = fitted(ESTIMATORS[name], frame, weight)
    assert_allclose(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)


def test_forgetting_undoes_merging(tmp_path):
    frame, weight = mixed_table(4, 300)
    north, south = (fitted(ESTIMATORS["tan"], frame[rows], weight[rows]) for rows in (slice(0, 150), slice(150, 300)))
    both = po.merge([north, south])
    po.save(both, tmp_path / "both.posteriori")
    both = po.load(tmp_path / "both.posteriori").unlearn(frame[150:], "label", weight[150:])
    assert_array_equal(both.statistics_.blocks[0].codes.cells, north.statistics_.blocks[0].codes.cells)
    tree = po.ChowLiuTree(bins=CUTS).fit(frame.drop("label"))
    tree.unlearn(frame[150:].drop("label"))
    rest = po.ChowLiuTree(bins=CUTS).fit(frame[:150].drop("label"))
    assert_allclose(tree.score_samples(frame.drop("label")), rest.score_samples(frame.drop("label")), rtol=1e-12)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40), st.data())
def test_weights_of_fractions_leave_no_rests(weights, data):
    """What is left of a category or class of which every row is gone is 0, however its weights were rounded."""
    weight = np.array(weights)
    gone = np.array(data.draw(st.lists(st.booleans(), min_size=len(weight), max_size=len(weight))))
    gone[0] = True
    X = np.column_stack([np.where(gone, "u", "v"), np.where(gone, "p", "q")]).astype(object)
    model = po.NaiveBayes(priors=1.0).fit([*X, ["v", "p"]], [*gone, False], [*weight, 1.0])
    model.unlearn(X[gone][::-1], gone[gone], weight[gone][::-1])
    assert model.class_count_[model.classes_.tolist().index(True)] == 0.0
    assert all((counts[1] == 0.0).all() for counts in model.category_count_)


def test_counts_of_which_only_zeros_are_left_have_a_rate_of_zero():
    X, y = [[0.0], [3.0], [0.0], [7.0], [1.0], [0.0]], list("aaabbb")
    model = po.NaiveBayes(distributions=po.Poisson(0.0)).fit(X, y, [1, 3, 1, 1, 1, 1])
    assert model.unlearn([[3.0]], ["a"], [3]).statistics_.blocks[0].mean[0, 0] == 0.0
    assert np.isfinite(model.predict_joint_log_proba([[0.0]])).all()


def test_categories_and_classes_without_rows_stay_known():
    X, y = [["u"], ["u"], ["v"], ["w"]], ["a", "a", "b", "c"]
    model = po.NaiveBayes(priors=1.0).fit(X, y).unlearn([["w"]], ["c"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.class_count_.tolist() == [2.0, 1.0, 0.0]
    assert model.categories_[0].tolist() == ["u", "v", "w"]
    declared = pd.DataFrame({"x0": pd.Categorical(["u", "u", "v"], ["u", "v", "w"])})
    expected = po.NaiveBayes(priors=1.0).partial_fit(declared, y[:3], classes=["a", "b", "c"])
    assert_array_equal(model.predict_proba([["u"], ["w"]]), expected.predict_proba(pd.DataFrame({"x0": ["u", "w"]})))


def test_declared_categories_without_rows_are_no_strangers():
    kinds = pd.CategoricalDtype(["u", "v", "never"])
    X = pd.DataFrame({"a": ["u", "v", "u"], "b": [1.0, 2.0, 4.0]})
    model = po.NaiveBayes().fit(X, [0, 1, 0])
    model.unlearn(X.astype({"a": kinds})[2:], [0])
    assert model.class_count_.tolist() == [1.0, 1.0]


def refusals():
    """Yield a model, rows and labels and weights that cannot have been in it, and the error."""
    X = np.array([["u", "p"], ["u", "q"], ["v", "p"], ["u", "p"]], object)
    plain = po.NaiveBayes().fit(X, ["a", "a", "b", "b"], [1, 2, 1, 1])
    yield plain, [["u", "p"]], ["c"], None, "learned of no row of class 'c'"
    yield plain, [["x", "p"]], ["a"], None, "no row with 'x' in column 'x0'"
    yield plain, [["u", "p"]], ["a"], [4], "rows of class 'a' weigh 4, but the model has learned from 3"
    yield plain, [["v", "p"]], ["a"], None, "in rows of class 'a', column 'x0' holds"
    yield plain, [["u", "p"]], ["a"], [2], "in rows of class 'a', column 'x1' holds"
    yield plain, [[None, "p"]], ["a"], None, "in rows of class 'a', column 'x0' holds"
    yield plain, X, ["a", "a", "b", "b"], [1, 2, 1, 1], "all the rows that the model has learned from"
    yield plain, [["u", "p", "q"]], ["a"], None, "3 features"
    closed = po.NaiveBayes().partial_fit(X, ["a", "a", "b", "b"], classes=["a", "b"])
    yield closed, [["u", "p"]], ["c"], None, "not among the classes"
    for kind in (po.TreeAugmentedNaiveBayes(), po.AveragedOneDependence(), po.classifiers.FullJointClassifier()):
        together = clone(kind).fit([["u", "p"], ["v", "q"], ["u", "q"]], ["a", "a", "b"])
        yield together, [["u", "q"]], ["a"], None, "in rows of class 'a', columns 'x0', 'x1' hold"
    rng = np.random.default_rng(0)
    line = rng.normal(size=50)
    numbers, label = np.column_stack([line, line + 1e-3 * rng.normal(size=50)]) + 1e6, ["a"] * 25 + ["b"] * 25
    for kind in (
        po.NaiveBayes(),
        po.GaussianDiscriminant(),
        po.TreeAugmentedNaiveBayes(bins=None),
        po.NaiveBayes(distributions="binned", bins=(1e6,)),
    ):
        model = clone(kind).fit(numbers, label)
        yield model, [[1e6 + 30.0, 1e6]], ["b"], None, "in rows of class 'b', column 'x0' holds"
        yield model, numbers[:25], label[25:], None, "in rows of class 'b', column"
    for kind in (po.GaussianDiscriminant(), po.TreeAugmentedNaiveBayes(bins=None)):
        model = clone(kind).fit(numbers, label)
        yield model, [[1e6 + 1.0, 1e6 - 1.0]], ["a"], None, "in rows of class 'a', column"
    yield po.GaussianDiscriminant().fit(numbers, label), [[1e6, np.nan]], ["a"], None, "column 'x1' holds"
    known = po.NaiveBayes.from_parameters(priors=[0.5, 0.5], gaussian={"x": {"mean": [0, 1], "sd": [1, 1]}})
    yield known, [[1.0]], [0], None, "built from parameters"
    shrunk = po.GaussianDiscriminant(shrinkage="ledoit_wolf").fit(numbers, label)
    yield shrunk, numbers[:1], ["a"], None, "looks at all rows twice, and unlearn sees only sums"
    conditional = po.NaiveBayes(feature_weights="conditional").fit(numbers, label)
    yield conditional, numbers[:1], ["a"], None, 'feature_weights="conditional"'
    hidden = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(numbers, [None, *label[1:]])
    yield hidden, numbers[1:2], ["a"], None, "this model was learned from rows without label by EM"
    gappy = numbers.copy()
    gappy[3, 0] = np.nan
    yield po.GaussianDiscriminant().fit(gappy, label), gappy[:1], ["a"], None, "missing cells of columns 'x0', 'x1'"
    strict = po.NaiveBayes(labels=po.Labels(unlabelled="error")).fit(numbers, label)
    yield strict, numbers[:2], [None, "a"], None, "label of row 0 is missing"
    yield po.NaiveBayes(alpha=1.0).fit(X, list("aabb")), [["u", "p"]], ["a"], [-1], "weights must be 0, or lie between"


@pytest.mark.filterwarnings("ignore:.*(singular|EM stopped):UserWarning")
def test_rows_that_were_never_learned_are_not_unlearned():
    for model, X, y, weight, message in refusals():
        before = vars(model).copy()
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            model.unlearn(X, y, weight)
        assert re.search(message, str(caught.value)), (message, str(caught.value))
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
    with pytest.raises(NotFittedError):
        po.NaiveBayes().unlearn([[1.0]], [0])


@pytest.mark.filterwarnings("ignore:.*few digits are left:UserWarning")
def test_it_warns_as_a_fit_would():
    model = po.NaiveBayes(distributions=po.Gaussian(0.0)).fit([[1.0], [1.0], [2.0], [3.0], [4.0]], list("aaabb"))
    with pytest.warns(UserWarning, match="does not vary within class 'a'") as caught:
        model.unlearn([[2.0]], ["a"])
    assert caught[0].filename == __file__


def test_it_warns_where_digits_are_lost():
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=100), 1e9)[:, np.newaxis]
    for kind in (po.NaiveBayes(), po.GaussianDiscriminant(), po.classifiers.ChowLiuClassifier(bins=None)):
        model = clone(kind).fit(x, np.arange(101) % 2)
        with pytest.warns(UserWarning, match="few digits are left of its variance") as caught:
            model.unlearn(x[100:], [0])
        assert caught[0].filename == __file__


def test_transduction_of_rows_that_are_gone_is_dropped():
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit([[1.0], [2.0], [4.0]], [0, 1, 1])
    model.unlearn([[2.0]], [1])
    assert not hasattr(model, "transduction_")


def test_statistics_are_reversible():
    frame, weight = mixed_table(1, 60, 0.0)
    for estimator in ESTIMATORS.values():
        for sums in fitted(estimator, frame, weight).statistics_.blocks:
            assert isinstance(sums, ReversibleStatistics)
            assert not (sums + sums).would_go_negative(sums).any()
            assert_left((sums + sums) - sums, sums, sums)
