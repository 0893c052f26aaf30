"""Weights of rows, and fits of rows as they come."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from tests.classifiers.test_inputs import X, Y, fit, refused

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


def test_a_model_of_parameters_cannot_learn_more_but_can_refit():
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
