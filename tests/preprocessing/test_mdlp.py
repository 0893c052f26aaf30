"""MDLPDiscretizer: cut points where the classes change."""

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.learning.cut_points import mdlp_of_counts


def unmet(estimator):
    """Return the checks of scikit-learn that the library answers in words of its own, with the reason."""
    return {"check_dtype_object": "a cell that is a dict is refused by its column, not in Python's words for float()"}


@parametrize_with_checks(
    [po.preprocessing.MDLPDiscretizer(), po.preprocessing.MDLPDiscretizer(n_jobs=1)], expected_failed_checks=unmet
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def fit_column(values, labels, weight=None):
    """Return the discretizer of one column."""
    return po.preprocessing.MDLPDiscretizer(n_jobs=1).fit(np.asarray(values).reshape(-1, 1), labels, weight)


def cuts_of(values, labels, weight=None):
    return fit_column(values, labels, weight).cuts_[0].tolist()


# The paper, word by word: rows as (value, label, weight) triples, every cut point tried, nothing merged ------------


def entropy(rows):
    """Return Ent(S) in bits."""
    total = math.fsum(w for _, _, w in rows)
    shares = [math.fsum(w for _, label, w in rows if label == one) / total for one in {label for _, label, _ in rows}]
    return -math.fsum(share * math.log2(share) for share in shares)


def weight_of(rows):
    return math.fsum(w for _, _, w in rows)


def paper_cuts(rows):
    """Return the cut points of rows: Fayyad & Irani (1993), equations 3 and 9, and section 3 for the recursion."""
    rows = [(x, label, w) for x, label, w in rows if not math.isnan(x) and w > 0]
    distinct = sorted({x for x, _, _ in rows})
    n = weight_of(rows)
    best, least = None, math.inf
    for low, high in itertools.pairwise(distinct):
        parts = [row for row in rows if row[0] <= low], [row for row in rows if row[0] >= high]
        left_over = sum(weight_of(part) / n * entropy(part) for part in parts)
        if left_over < least - 1e-9:
            best, least, halves = (low + high) / 2, left_over, parts
    if best is None:
        return []
    k, k1, k2 = (len({label for _, label, _ in part}) for part in (rows, *halves))
    delta = math.log2(3**k - 2) - (k * entropy(rows) - k1 * entropy(halves[0]) - k2 * entropy(halves[1]))
    if not entropy(rows) - least > (math.log2(n - 1) + delta) / n:
        return []
    return [*paper_cuts(halves[0]), best, *paper_cuts(halves[1])]


@st.composite
def labelled_columns(draw, weights=(1.0,)):
    """Return values, labels and weights of some rows: many values repeat, and the classes follow them loosely."""
    n = draw(st.integers(1, 60))
    values = draw(st.lists(st.sampled_from([*range(12), math.nan]), min_size=n, max_size=n))
    width = draw(st.integers(1, 12))
    noise = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2]), min_size=n, max_size=n))
    labels = [(0 if x != x else int(x) // width + e) % 3 for x, e in zip(values, noise, strict=True)]
    weight = draw(st.lists(st.sampled_from(weights), min_size=n, max_size=n))
    return np.array(values, np.float64), np.array(labels), np.array(weight)


@given(labelled_columns())
def test_the_cuts_are_those_of_the_paper(rows):
    values, labels, weight = rows
    assert cuts_of(values, labels) == paper_cuts(list(zip(values, labels, weight, strict=True)))


@given(labelled_columns(weights=(1.25, 2.5, 3.0, 7.125)))
def test_fractional_weights_are_counted_as_the_paper_counts_rows(rows):
    values, labels, weight = rows
    plain = [(x, label, w) for x, label, w in zip(values, labels, weight, strict=True)]
    assert cuts_of(values, labels, weight) == paper_cuts(plain)


def test_many_rows_as_the_paper_has_them():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 400)
    values = np.round(rng.normal(labels * 2.0, 1.0), 1)
    found = cuts_of(values, labels)
    assert len(found) > 1
    assert_allclose(found, paper_cuts([(x, label, 1.0) for x, label in zip(values, labels, strict=True)]))


# By hand ------------------------------------------------------------------------------------------------------------


def test_iris_has_the_cuts_that_other_programs_find():
    X, y = load_iris(return_X_y=True)
    cuts = po.preprocessing.MDLPDiscretizer().fit(X, y).cuts_
    expected = [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]
    assert_allclose(np.concatenate(cuts), np.concatenate(expected))
    assert [len(one) for one in cuts] == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("ab", [0.5]),  # saves 2 bits for log₂ 1 + log₂ 7 − 2 = 0.81
        ("abab", []),  # saves 1.25 bits at most, for log₂ 3 + log₂ 7 − 0.16 = 4.23
        ("aaaabbbb", [3.5]),
        ("a" * 8 + "b" * 8 + "a" * 8, []),  # saves 6.04 bits, for log₂ 23 + log₂ 7 + 0.16 = 7.49
        ("a" * 16 + "b" * 16 + "a" * 16, [15.5, 31.5]),  # 12.08 bits for 8.52
        ("a" * 8 + "b" * 8 + "c" * 8, [7.5, 15.5]),
        ("aaaa", []),
        ("a", []),
    ],
)
def test_small_columns(labels, expected):
    assert cuts_of(np.arange(float(len(labels))), list(labels)) == expected


def test_a_column_that_says_nothing_of_the_class_is_not_cut():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 8)), rng.integers(0, 3, 2000)
    assert_array_equal(po.preprocessing.MDLPDiscretizer().fit(X, y).n_bins_, np.ones(8))


def test_a_cut_never_parts_equal_values():
    assert cuts_of([1.0] * 20 + [2.0] * 20, [0] * 19 + [1] * 21) == [1.5]
    assert cuts_of([1.0] * 40, [0] * 20 + [1] * 20) == []
    assert cuts_of([-0.0, 0.0] * 10, [0, 1] * 10) == []


def test_equally_good_cuts_leave_the_choice_to_the_first():
    rows = [*"a" * 18, *"b" * 18, *"ab" * 9, *"a" * 18, *"b" * 18]  # as good cut before 18 as before 72
    values = np.arange(float(len(rows)))
    assert cuts_of(values, rows)[0] == 17.5
    assert cuts_of(values, rows) == cuts_of(values, [{"a": "z", "b": "y"}[label] for label in rows])


# Laws ---------------------------------------------------------------------------------------------------------------


@given(labelled_columns(), st.sampled_from([0.25, 1.0, 8.0]), st.integers(-1000, 1000))
def test_cuts_move_with_an_increasing_affine_map(rows, scale, shift):
    values, labels, _ = rows
    moved = cuts_of(scale * values + shift, labels)
    assert moved == [scale * cut + shift for cut in cuts_of(values, labels)]  # exact, for so are these maps


@given(labelled_columns())
def test_bins_depend_on_the_order_of_the_values_alone(rows):
    values, labels, _ = rows
    bins = fit_column(values, labels).transform(values.reshape(-1, 1))
    cubed = np.exp(values)
    assert_array_equal(fit_column(cubed, labels).transform(cubed.reshape(-1, 1)), bins)


@given(labelled_columns(weights=(0.0, 1.0, 2.0, 5.0)))
def test_a_weight_repeats_a_row(rows):
    values, labels, weight = rows
    if not weight.any():
        weight[0] = 1.0
    times = weight.astype(int)
    assert cuts_of(values, labels, weight) == cuts_of(np.repeat(values, times), np.repeat(labels, times))


@given(labelled_columns(), st.randoms(use_true_random=False))
def test_class_names_and_the_order_of_rows_do_not_matter(rows, random):
    values, labels, _ = rows
    order = list(range(len(values)))
    random.shuffle(order)
    names = ["one", "two", "three"]
    random.shuffle(names)
    assert cuts_of(values[order], np.array(names)[labels[order]]) == cuts_of(values, labels)


@given(labelled_columns())
def test_a_grid_of_counts_is_cut_as_its_rows_are(rows):
    values, labels, _ = rows
    counts = np.zeros((3, 12))
    present = ~np.isnan(values)
    np.add.at(counts, (labels[present], values[present].astype(int)), 1.0)
    behind = mdlp_of_counts(counts)
    held = np.flatnonzero(counts.any(axis=0))
    following = held[np.searchsorted(held, behind, side="right")]
    assert ((behind + following) / 2).tolist() == cuts_of(values, labels)


@given(labelled_columns())
def test_bin_numbers_rise_with_the_values_from_zero_to_the_last(rows):
    values, labels, _ = rows
    discretizer = fit_column(values, labels)
    bins = discretizer.transform(values.reshape(-1, 1))[:, 0]
    assert_array_equal(np.isnan(bins), np.isnan(values))
    order = np.argsort(values)
    rising = bins[order][: int(np.count_nonzero(~np.isnan(values)))]
    assert (np.diff(rising) >= 0).all()
    if len(rising):
        assert_array_equal(np.unique(rising), np.arange(discretizer.n_bins_[0]))


def test_more_weight_is_more_evidence():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 60)
    values = rng.normal(labels * 0.5, 1.0)
    assert cuts_of(values, labels) == []
    assert len(cuts_of(values, labels, np.full(60, 20.0))) >= 1


@pytest.mark.parametrize("total", [0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 1.01, 1.9])
def test_less_than_two_rows_are_no_evidence(total):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(100, 5)), rng.integers(0, 2, 100)
    assert po.preprocessing.MDLPDiscretizer().fit(X, y, np.full(100, total / 100)).n_bins_.tolist() == [1] * 5


def test_the_number_of_threads_changes_nothing():
    X, y = load_iris(return_X_y=True)
    for one, three in zip(
        po.preprocessing.MDLPDiscretizer(n_jobs=1).fit(X, y).cuts_,
        po.preprocessing.MDLPDiscretizer(n_jobs=3).fit(X, y).cuts_,
    ):
        assert_array_equal(one, three)


# Cells of all kinds -------------------------------------------------------------------------------------------------


def test_a_cell_at_the_cut_is_in_the_bin_above():
    discretizer = fit_column([0.0] * 5 + [1.0] * 5, [0] * 5 + [1] * 5)
    assert discretizer.cuts_[0].tolist() == [0.5]
    below = np.nextafter(0.5, 0.0)
    assert discretizer.transform([[below], [0.5], [-1e300], [1e300]])[:, 0].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("low", [1.0, -1.0, 0.0, 1e308, 5e-324, -1.7e308])
def test_neighbouring_numbers_are_told_apart(low):
    values = np.repeat([low, np.nextafter(low, math.inf)], 5)
    bins = fit_column(values, [0] * 5 + [1] * 5).transform(values.reshape(-1, 1))
    assert bins[:, 0].tolist() == [0] * 5 + [1] * 5


def test_the_middle_of_numbers_whose_sum_overflows():
    assert_allclose(cuts_of([1.5e308] * 5 + [1.7e308] * 5, [0] * 5 + [1] * 5), [1.6e308])
    assert cuts_of([-1.7e308] * 5 + [1.7e308] * 5, [0] * 5 + [1] * 5) == [0.0]


def test_neighbouring_float32_have_a_cut_between_them():
    low = np.float32(1.0)
    high = np.nextafter(low, np.float32(2.0))
    values = np.repeat([low, high], 5)
    discretizer = fit_column(values, [0] * 5 + [1] * 5)
    assert low < discretizer.cuts_[0][0] < high
    bins = discretizer.transform(values.reshape(-1, 1))
    assert bins.dtype == np.float64
    assert bins[:, 0].tolist() == [0] * 5 + [1] * 5


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, object])
def test_numbers_of_any_type(dtype):
    assert cuts_of(np.array([1, 1, 2, 2, 2, 8, 8, 9, 9, 9]).astype(dtype), [0] * 5 + [1] * 5) == [5.0]


def test_missing_cells_choose_nothing_and_stay_missing():
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    labels = np.repeat([0, 1], 4)
    with_gaps = np.concatenate([values, [np.nan] * 4])
    discretizer = fit_column(with_gaps, [*labels, 1, 0, 1, 0])
    assert discretizer.cuts_[0].tolist() == cuts_of(values, labels) == [4.5]
    assert_array_equal(np.isnan(discretizer.transform(with_gaps.reshape(-1, 1)))[:, 0], np.isnan(with_gaps))


def test_columns_without_a_cut():
    X = np.array([[np.nan, 7.0, 1.0], [np.nan, 7.0, 2.0], [np.nan, 7.0, 3.0], [np.nan, 7.0, 4.0]])
    discretizer = po.preprocessing.MDLPDiscretizer().fit(X, [0, 0, 1, 1])
    assert discretizer.n_bins_.tolist() == [1, 1, 2]
    expected = [[np.nan, 0, 0], [np.nan, 0, 0], [np.nan, 0, 1], [np.nan, 0, 1]]
    assert_array_equal(discretizer.transform(X), expected)
    assert discretizer.transform([[5.0, np.nan, 0.0]])[0, 0] == 0  # one bin, for cells that are observed only now
    assert po.preprocessing.MDLPDiscretizer().fit(X, ["only"] * 4).n_bins_.tolist() == [1, 1, 1]


def test_rows_without_weight_leave_no_trace():
    values, labels = [1.0, 2.0, 2.9, 3.0, 4.0], [0, 0, 1, 1, 1]
    assert cuts_of(values, labels, [1, 1, 0, 1, 1]) == [2.5]


@pytest.mark.parametrize("kind", [int, str, bool, float])
def test_labels_of_any_kind(kind):
    labels = [kind(label) if kind is not str else "ab"[label] for label in [0] * 5 + [1] * 5]
    assert cuts_of(np.arange(10.0), labels) == [4.5]


# Tables -------------------------------------------------------------------------------------------------------------


def test_every_table_gives_the_same_cuts(constructor, columns, labels):
    numbers = {name: columns[name] * 4 for name in ("height", "floors")}
    X, y = constructor(numbers), ["tall" if (x or 0) > 1 else "small" for x in numbers["height"]]
    plain = np.array([[np.nan if x is None else x for x in cells] for cells in numbers.values()], float).T
    discretizer, expected = (
        po.preprocessing.MDLPDiscretizer().fit(X, y),
        po.preprocessing.MDLPDiscretizer().fit(plain, y),
    )
    assert discretizer.n_bins_[0] > 1
    for one, other in zip(discretizer.cuts_, expected.cuts_, strict=True):
        assert_array_equal(one, other)
    assert_array_equal(discretizer.transform(X), expected.transform(plain))


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def frame(request):
    """Return a frame of two columns of numbers, and the column of labels that both follow."""
    return request.param({"a": np.arange(20.0), "kind": ["x"] * 10 + ["y"] * 10, "b": np.arange(20)[::-1] % 13})


def test_columns_are_found_by_name(frame):
    discretizer = po.preprocessing.MDLPDiscretizer().fit(frame[["a", "b"]], frame["kind"])
    assert discretizer.feature_names_in_.tolist() == ["a", "b"]
    assert discretizer.get_feature_names_out().tolist() == ["a", "b"]
    assert_array_equal(discretizer.transform(frame[["b", "a"]]), discretizer.transform(frame[["a", "b"]]))


def test_labels_may_be_a_column_of_the_table(frame):
    by_name = po.preprocessing.MDLPDiscretizer().fit(frame, "kind")
    apart = po.preprocessing.MDLPDiscretizer().fit(frame[["a", "b"]], frame["kind"])
    assert by_name.n_features_in_ == 2
    assert [one.tolist() for one in by_name.cuts_] == [one.tolist() for one in apart.cuts_]
    assert_array_equal(by_name.transform(frame), apart.transform(frame[["a", "b"]]))


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_output_as_a_frame(frame, output):
    discretizer = po.preprocessing.MDLPDiscretizer().set_output(transform=output)
    out = discretizer.fit_transform(frame[["a", "b"]], frame["kind"])
    assert type(out).__module__.split(".")[0] == output
    assert list(out.columns) == ["a", "b"]
    assert out["a"].to_numpy().tolist() == [0.0] * 10 + [1.0] * 10


def test_a_fitted_discretizer_can_be_pickled(frame):
    discretizer = po.preprocessing.MDLPDiscretizer().fit(frame, "kind")
    copy = pickle.loads(pickle.dumps(discretizer))
    assert_array_equal(copy.transform(frame), discretizer.transform(frame))


def test_many_rows_are_cut_near_the_best_place_in_batches():
    values = np.arange(200_000.0).reshape(-1, 1)
    values[::7] = np.nan
    discretizer = po.preprocessing.MDLPDiscretizer().fit(values, np.arange(200_000) >= 150_000)
    cuts = discretizer.cuts_[0]
    assert np.abs(cuts - 150_000).min() < 400  # two bins of the grid
    bins = discretizer.transform(values)[:, 0]
    assert_array_equal(bins, np.where(np.isnan(values[:, 0]), np.nan, np.searchsorted(cuts, values[:, 0], "right")))


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [["u", "v", "w"], [True, False, True]], ids=["strings", "booleans"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_categories_are_refused_by_name(make, cells):
    X = make({"a": [1.0, 2.0, 3.0], "sky": cells, "sea": cells})
    with pytest.raises(ValueError, match=r"columns 'sky', 'sea' are categorical"):
        po.preprocessing.MDLPDiscretizer().fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match=r"column 'sky' is categorical"):
        po.preprocessing.MDLPDiscretizer().fit(X[["a", "sky"]], [0, 1, 1])


@pytest.mark.parametrize("infinity", [math.inf, -math.inf])
def test_infinite_cells_are_refused_with_their_place(infinity):
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, infinity]})
    message = rf"Input X contains infinity: column 'b' holds {infinity} in row 2"
    with pytest.raises(ValueError, match=message):
        po.preprocessing.MDLPDiscretizer().fit(X, [0, 1, 1])
    discretizer = po.preprocessing.MDLPDiscretizer().fit(X.iloc[:2], [0, 1])
    with pytest.raises(ValueError, match=message):
        discretizer.transform(X)


def test_labels_and_weights_are_checked():
    X = [[1.0], [2.0]]
    for y, weight, message in [
        (None, None, "MDLPDiscretizer requires y to be passed"),
        ([0.5, 1.2], None, "Unknown label type"),
        ([0], None, "X has 2 rows but y has 1 labels"),
        ([0, 1], [1, -1], "holds -1 in row 1"),
        ([0, 1], [0, 0], "every sample_weight is zero"),
        ([0, 1], [1], "one weight per row"),
    ]:
        with pytest.raises(ValueError, match=message):
            po.preprocessing.MDLPDiscretizer().fit(X, y, weight)


def test_a_table_of_labels_alone_is_refused():
    with pytest.raises(ValueError, match="no column beside the target 'y'"):
        po.preprocessing.MDLPDiscretizer().fit(pd.DataFrame({"y": [0, 1]}), "y")


def test_other_columns_than_those_of_fit_are_refused():
    discretizer = po.preprocessing.MDLPDiscretizer().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}), [0, 1])
    with pytest.raises(ValueError, match="X lacks column 'b'"):
        discretizer.transform(pd.DataFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="column 'a' was numeric in training"):
        discretizer.transform(pd.DataFrame({"a": ["x"], "b": [1.0]}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        discretizer.transform([[1.0, 2.0]])
