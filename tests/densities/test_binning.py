"""Binned columns: where they are cut, what the density is, and that whatever learns from codes learns from bins."""

import copy
import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
import posteriori.sources.table_source
from posteriori.densities import Binned
from posteriori.learning.cut_points import mdlp_of_counts, midpoints, quantile_cuts
from posteriori.learning.importance import mutual_information
from posteriori.model_selection import out_of_fold
from posteriori.statistics import RowSample, TailMoments
from posteriori.tables import Assignment, Batch, Column, Numbers, Schema

CUTS = ((0.0, 2.0, 5.0), (), (1.0,))


def numbers(values, cuts=CUTS):
    return Numbers(np.ascontiguousarray(values, dtype=np.float64), cuts)


def rows_of(rng, n):
    values = rng.normal([1.0, 7.0, 1.0], [4.0, 2.0, 3.0], (n, 3))
    values[rng.random(values.shape) < 0.1] = np.nan
    return values


def everyone(n):
    return Assignment(np.zeros(n, np.int32), np.ones(n), 1)


# Where the cuts are -----------------------------------------------------------------------------------------------

values_with_ties = hnp.arrays(np.float64, st.integers(2, 60), elements=st.integers(-8, 8).map(float))


@given(values_with_ties, st.integers(2, 9))
def test_cuts_divide_the_weight_as_evenly_as_ties_allow(values, bins):
    cuts = quantile_cuts(values, np.ones(len(values)), bins)
    distinct = np.unique(values)
    assert len(cuts) == min(bins, len(distinct)) - 1 or len(cuts) < bins
    assert (np.diff(cuts) > 0).all()
    assert not np.isin(cuts, values).any()
    below = np.array([(values < cut).mean() for cut in cuts])
    reachable = np.array([(values <= x).mean() for x in distinct[:-1]])
    for share in np.arange(1, bins) / bins if len(distinct) > bins else []:
        assert np.abs(below - share).min() <= np.abs(reachable - share).min() + 1e-12


@given(values_with_ties, st.integers(2, 9), st.data())
def test_weights_are_repetitions_in_quantiles(values, bins, data):
    weight = data.draw(hnp.arrays(np.float64, len(values), elements=st.integers(0, 3).map(float)))
    repeated = np.repeat(values, weight.astype(int))
    assert_array_equal(quantile_cuts(values, weight, bins), quantile_cuts(repeated, np.ones(len(repeated)), bins))


def test_many_zeros_stay_together():
    values = np.concatenate([np.zeros(95), np.arange(1.0, 6.0)])
    assert_array_equal(quantile_cuts(values, np.ones(100), 5), [0.5])


def test_midpoints_lie_above_the_lower_number():
    low = np.array([0.0, 1.0, -1.7e308, 0.0])
    high = np.array([1.0, np.nextafter(1.0, 2.0), 1.7e308, 5e-324])
    middle = midpoints(low, high)
    assert ((low < middle) & (middle <= high)).all()
    assert_array_equal(middle[[0, 2]], [0.5, 0.0])


@pytest.mark.parametrize("bins", [1, 0, True, "kmeans", [2.0, 1.0], [np.inf], [[1.0]], 2.5, ["a"], [10**400]])
def test_bins_that_are_none(bins):
    with pytest.raises(ValueError, match=r"bins is .*; give a number of at least 2, one of 'mdlp', 'auto', .*, or cut"):
        Binned(bins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_cuts", [0, 1, 2, 3, 7, 8, 300])
def test_codes_are_those_of_a_search(dtype, n_cuts):
    rng = np.random.default_rng(n_cuts)
    values = rng.normal(size=(600, 2)).astype(dtype)
    values[rng.random(values.shape) < 0.1] = np.nan
    cuts = np.unique(np.concatenate([values[~np.isnan(values)][: n_cuts // 2], rng.normal(size=n_cuts - n_cuts // 2)]))
    schema = Schema((Column("a", "continuous"), Column("b", "continuous"))).with_cuts({1: cuts})
    batch = Batch.of(schema, 0, values, np.empty((600, 0), np.uint8), {})
    expected = np.where(np.isnan(values[:, 1]), 0, 1 + np.searchsorted(cuts, values[:, 1], side="right"))
    assert_array_equal(batch.codes.values[:, 0], expected)
    assert batch.codes.cardinalities == (len(cuts) + 1,)
    assert batch.codes.values.dtype == (np.uint8 if n_cuts < 255 else np.uint32)
    assert_array_equal(batch.with_schema(schema.with_cuts({1: [0.0]})).codes.values[:, 0] == 2, values[:, 1] >= 0)


# Statistics -------------------------------------------------------------------------------------------------------


def sample_of(values, rows, size=8):
    schema = Schema((Column("a", "continuous"),))
    weight = np.arange(len(values)) % 4 + 0.0
    return [
        RowSample.of(
            Batch.of(
                schema,
                part.start,
                values[part, np.newaxis],
                np.empty((len(values[part]), 0), np.uint8),
                {},
                Assignment(np.zeros(len(values[part]), np.int32), weight[part], 1),
            ),
            (0,),
            size,
        )
        for part in rows
    ]


@given(st.integers(1, 80), st.data())
def test_a_sample_of_rows_is_a_commutative_monoid(n, data):
    values = np.arange(n) + 0.5
    ends = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=5))})
    parts = sample_of(values, [slice(*pair) for pair in itertools.pairwise(ends)])
    whole = sample_of(values, [slice(0, n)])[0].rows()
    order = data.draw(st.permutations(parts))
    total = order[0]
    for part in order[1:]:
        total = total + part
    right = order[-1]
    for part in reversed(order[:-1]):
        right = part + right
    for other in (total.rows(), right.rows()):
        assert_array_equal(other.values, whole.values)
        assert_array_equal(other.weight, whole.weight)
    counted = np.count_nonzero(np.arange(n) % 4)
    assert len(whole.number) == min(counted, 8)
    assert whole.n_rows == total.n_rows == counted
    assert whole.is_complete == (counted <= 8)
    assert (whole.weight == (whole.values[:, 0] - 0.5) % 4).all()


def test_a_sample_is_uniform():
    values = np.arange(40_000.0)
    drawn = sample_of(values, [slice(0, 40_000)], size=3000)[0].rows().values[:, 0]
    assert len(np.unique(drawn)) == 3000
    assert scipy.stats.kstest(drawn, "uniform", (0, 40_000)).pvalue > 0.01


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_outer_bins_add_up(pieces):
    rng = np.random.default_rng(0)
    values = rows_of(rng, 60)
    component, weight = rng.integers(0, 2, 60).astype(np.int32), rng.integers(0, 3, 60).astype(float)
    whole = TailMoments.of(numbers(values), Assignment(component, weight, 2))
    parts = np.array_split(np.arange(60), pieces)
    total = TailMoments.of(numbers(values[:0]), Assignment(component[:0], weight[:0], 2))
    for part in reversed(parts):
        total = total + TailMoments.of(numbers(values[part]), Assignment(component[part], weight[part], 2))
    assert_allclose(total.excess.weight, whole.excess.weight)
    seen = whole.excess.weight > 0
    assert_allclose(total.excess.mean[seen], whole.excess.mean[seen])
    below = (values[:, 0] < 0) & (component == 1)
    assert_allclose(whole.excess.mean[1, 0], np.average(-values[below, 0], weights=weight[below]))
    assert_allclose(whole.observed().sum(axis=0)[1], weight[~np.isnan(values[:, 1])].sum())


# The density ------------------------------------------------------------------------------------------------------


def test_within_each_bin_the_density_integrates_to_one():
    density = Binned()
    values = rows_of(np.random.default_rng(0), 300)
    parameters = density.estimate(TailMoments.of(numbers(values), everyone(300)))
    for j, cuts in enumerate(CUTS):
        edges = [-np.inf, *cuts, np.inf]

        def q(x, j=j):
            row = np.full((1, 3), np.nan)
            row[0, j] = x
            return float(np.exp(density.log_density(parameters, numbers(row))[0, 0]))

        for low, high in itertools.pairwise(edges):
            assert scipy.integrate.quad(q, low, high)[0] == pytest.approx(1.0, rel=1e-6)


def test_outer_bins_have_the_mean_of_their_rows_one_bin_moments():
    values = rows_of(np.random.default_rng(0), 300)
    parameters = Binned().estimate(TailMoments.of(numbers(values), everyone(300)))
    first = values[:, 0]
    assert_allclose(parameters.scale[0, 0], -first[first < 0].mean())
    assert_allclose(parameters.scale[1, 0], (first[first >= 5] - 5).mean())
    single = values[~np.isnan(values[:, 1]), 1]
    assert_allclose([parameters.mean[1], parameters.scale[0, 1]], [single.mean(), single.std()])


def test_factors_have_no_components_and_sum_to_the_density():
    density, values = Binned(), rows_of(np.random.default_rng(0), 50)
    parameters = density.estimate(TailMoments.of(numbers(values), everyone(50)))
    factors = density.log_factors(parameters, numbers(values))
    assert factors.shape == (50, 1, 3)
    assert_allclose(density.log_density(parameters, numbers(values)), factors.sum(axis=2))
    assert (factors[np.isnan(values)[:, np.newaxis]] == 0).all()


def test_drawn_rows_fall_into_bins_and_give_the_parameters_back():
    density, rng = Binned(), np.random.default_rng(0)
    parameters = density.estimate(TailMoments.of(numbers(rows_of(rng, 300)), everyone(300)))
    codes = np.column_stack([rng.integers(1, len(cuts) + 2, 40_000) for cuts in CUTS])
    drawn = density.sample(parameters, codes, rng)
    for j, cuts in enumerate(CUTS):
        assert_array_equal(np.searchsorted(cuts, drawn[:, j], side="right") + 1, codes[:, j])
    again = density.estimate(TailMoments.of(numbers(drawn), everyone(len(drawn))))
    assert_allclose(again.scale, parameters.scale, rtol=0.05)
    inner = drawn[codes[:, 0] == 2, 0]
    assert scipy.stats.kstest(inner, "uniform", (0, 2)).pvalue > 0.01


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize(
    "column",
    [[3.0] * 6, [np.nan] * 6, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0], [1.0, np.nan, np.nan, np.nan, np.nan, np.nan]],
    ids=["constant", "empty", "two values", "one cell"],
)
@pytest.mark.parametrize("bins", [4, "mdlp", (1.0, 2.0), (3.0,), ()])
def test_degenerate_columns(column, offset, bins):
    X, y = np.column_stack([np.array(column) + offset, np.arange(6.0)]), [0, 0, 0, 1, 1, 1]
    bins = tuple(cut + offset for cut in bins) if isinstance(bins, tuple) else bins
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="column 'x0' has no cell")
        model = po.NaiveBayes(distributions={"x0": Binned(bins)}).fit(X, y)
    assert np.isfinite(model.score_samples(X)).all()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    drawn = model.sample(5, random_state=0)[0]
    assert np.isfinite(drawn).all(axis=0).tolist() == [not np.isnan(column).all(), True]


def test_one_row():
    model = po.NaiveBayes(distributions="binned", bins=5).fit([[2.0]], ["a"])
    assert model.predict([[7.0]]) == ["a"]
    assert_allclose(model.score_samples([[2.0]]), scipy.stats.norm(2, 1).logpdf(2))


# In a model -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 600
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(y, 1.0),
            "kind": np.array(["p", "q", "r"])[(y + rng.integers(0, 2, n)) % 3],
            "age": rng.integers(0, 40, n) + 10 * (y == 1),
            "wait": rng.exponential(1.0 + y),
            "y": np.array(["a", "b", "c"])[y],
        }
    )
    frame.loc[rng.random(n) < 0.1, "size"] = np.nan
    return frame


def binned(bins, **settings):
    return po.NaiveBayes(distributions={"size": "binned", "age": "binned"}, bins=bins, **settings)


@pytest.fixture(scope="module", params=[6, "mdlp"])
def model(request, table):
    return binned(request.param).fit(table, "y")


def test_the_posterior_is_that_of_categories(model, table):
    as_categories = table.copy()
    for name, cuts in model.cuts_.items():
        bins = np.searchsorted(cuts, table[name], side="right")
        as_categories[name] = pd.Categorical(np.where(table[name].isna(), None, bins), categories=range(len(cuts) + 1))
    other = po.NaiveBayes().fit(as_categories, "y")
    assert_allclose(model.predict_proba(table), other.predict_proba(as_categories), atol=1e-12)
    names = ["size", "kind", "age", "wait"]
    of = dict(zip(other.schema_.names, mutual_information(other.model_), strict=True))
    assert_allclose(mutual_information(model.model_), [of[name] for name in names], atol=1e-9)


def test_the_factors_and_the_joint_agree(model, table):
    explanation = model.explain(table)
    assert_allclose(explanation.log_joint, model.predict_joint_log_proba(table), rtol=1e-10)
    assert_allclose(explanation.posterior, model.predict_proba(table), atol=1e-10)
    assert explanation.values[0, 2] == table["age"][0]


def test_the_evidence_integrates_to_one(model):
    def density(x):
        row = pd.DataFrame({"size": [x], "kind": [None], "age": [np.nan], "wait": [np.nan]})
        return np.exp(model.score_samples(row))[0]

    edges = [-40.0, *model.cuts_["size"], 40.0]
    total = sum(
        scipy.integrate.fixed_quad(np.vectorize(density), a, b - 1e-9, n=30)[0] for a, b in itertools.pairwise(edges)
    )
    assert total == pytest.approx(1.0, abs=1e-3)


def test_drawn_rows_are_of_the_model(model, table):
    X, y = model.sample(20_000, random_state=0, respect_ranges=False)
    assert list(X.columns) == ["size", "kind", "age", "wait"]
    again = binned(bins=4).set_params(distributions={n: Binned(c) for n, c in model.cuts_.items()}).fit(X, y)
    seen = table.drop(columns="y").assign(wait=np.nan)
    assert_allclose(again.predict_proba(seen), model.predict_proba(seen), atol=0.05)
    assert_allclose(again.score_samples(seen), model.score_samples(seen), atol=0.2)


def test_partial_fit_keeps_the_cuts_and_equals_fit(table):
    first, second = table[:400], table[400:]
    parts = binned(6).partial_fit(first, "y")
    cuts = parts.cuts_
    parts.partial_fit(second, "y")
    whole = po.NaiveBayes(distributions={name: Binned(points) for name, points in cuts.items()}).fit(table, "y")
    assert_array_equal(parts.cuts_["size"], cuts["size"])
    assert_allclose(parts.predict_joint_log_proba(table), whole.predict_joint_log_proba(table), rtol=1e-10)


def test_a_binned_column_alone_among_batches(table, monkeypatch):
    whole = binned("mdlp").fit(table, "y")
    monkeypatch.setattr(posteriori.sources.table_source, "_MOST_ROWS", 64)
    parts = binned("mdlp", n_jobs=2).fit(table, "y")
    assert_array_equal(parts.cuts_["size"], whole.cuts_["size"])
    assert_allclose(parts.predict_joint_log_proba(table), whole.predict_joint_log_proba(table), rtol=1e-9)


def test_a_multiple_of_the_columns_changes_no_posterior(model, table):
    scaled = table.assign(size=table["size"] * 1024, age=table["age"] / 4)
    again = binned(model.bins).fit(scaled, "y")
    assert_allclose(again.predict_proba(scaled), model.predict_proba(table), atol=1e-12)


def test_save_and_load(model, table, tmp_path):
    po.save(model, tmp_path / "m.posteriori")
    again = po.load(tmp_path / "m.posteriori")
    assert_array_equal(again.predict_joint_log_proba(table), model.predict_joint_log_proba(table))
    assert_array_equal(again.cuts_["age"], model.cuts_["age"])
    expected = copy.deepcopy(model).partial_fit(table, "y").predict_proba(table)
    assert_array_equal(again.partial_fit(table, "y").predict_proba(table), expected)


def test_an_infinite_cell_is_refused_wherever_it_is(model, table):
    rows = table.drop(columns="y").assign(size=np.inf)
    for method in (model.predict_proba, model.predict, model.explain):
        with pytest.raises(ValueError, match="column 'size' holds inf in row 0"):
            method(rows)
    with pytest.raises(ValueError, match="column 'size' holds inf in row 0"):
        binned(4).fit(table.assign(size=np.inf), "y")


@pytest.mark.parametrize("bins", [4, "mdlp", (1.5,)])
@pytest.mark.parametrize("cell", [np.inf, -np.inf])
def test_no_cut_falls_beside_an_infinite_cell(bins, cell):
    with pytest.raises(ValueError, match=f"column 'x0' holds {cell} in row 2"):
        po.NaiveBayes(distributions="binned", bins=bins).fit([[1.0], [2.0], [cell]], [0, 1, 1])


def test_quantiles_of_many_rows_are_those_of_a_sample():
    rng = np.random.default_rng(0)
    X, y = rng.exponential(size=(120_000, 1)), rng.integers(0, 2, 120_000)
    model = po.NaiveBayes(distributions="binned", bins=4).fit(X, y)
    shares = [(cut > X).mean() for cut in model.cuts_["x0"]]
    assert_allclose(shares, [0.25, 0.5, 0.75], atol=0.01)
    assert_array_equal(po.NaiveBayes(distributions="binned", bins=4, n_jobs=1).fit(X, y).cuts_["x0"], model.cuts_["x0"])


def test_what_a_model_says_of_its_bins():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 0, 1, 1]
    model = po.NaiveBayes(distributions="binned", bins=[2.5, 3.5]).fit(X, y)
    assert model.n_categories_ == [3]
    assert model.categories_[0].tolist() == ["< 2.5", "[2.5, 3.5)", "≥ 3.5"]
    assert_allclose(np.exp(model.feature_log_prob_[0]), [[3 / 5, 1 / 5, 1 / 5], [1 / 5, 2 / 5, 2 / 5]])
    assert model.n_parameters_ == 1 + 2 * 2 + 2
    with pytest.raises(ValueError, match="column 'x0' is binned: its log-odds are steps"):
        po.explain.linear_form(model)


def test_a_binned_column_must_hold_numbers(table):
    with pytest.raises(ValueError, match="column 'kind' is categorical, but its distribution 'binned'"):
        po.NaiveBayes(distributions={"kind": "binned"}).fit(table, "y")


# Cross-validation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [6, "mdlp", (0.0, 1.0)])
def test_each_fold_is_cut_by_the_rows_of_the_others(table, bins):
    weight = np.random.default_rng(1).integers(1, 3, len(table)).astype(float)
    result = out_of_fold(binned(bins), table, "y", folds=3, sample_weight=weight)
    whole = binned(bins).fit(table, "y", sample_weight=weight)
    assert_allclose(result.estimator.predict_joint_log_proba(table), whole.predict_joint_log_proba(table), rtol=1e-9)
    for k in range(3):
        held_out = result.fold == k
        refit = binned(bins).fit(table[~held_out], "y", sample_weight=weight[~held_out])
        assert_allclose(result.posterior[held_out], refit.predict_proba(table[held_out]), atol=1e-9)


def test_progress_of_folds_with_their_own_cuts(table):
    done = []
    out_of_fold(binned("mdlp"), table, "y", progress=done.append)
    assert sum(done) == 2 * len(table)


def test_noise_does_not_seem_informative():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"noise": rng.normal(size=500), "y": rng.integers(0, 2, 500)})
    result = out_of_fold(po.NaiveBayes(distributions="binned"), frame, "y")
    assert len(result.estimator.cuts_["noise"]) == 0
    assert_allclose(result.posterior, result.prior, atol=1e-9)


def test_cuts_of_counts():
    assert_array_equal(mdlp_of_counts(np.array([[9.0, 8.0, 0.0, 0.0], [0.0, 0.0, 7.0, 9.0]])), [1])
    assert len(mdlp_of_counts(np.array([[5.0, 5.0], [5.0, 5.0]]))) == 0
    assert len(mdlp_of_counts(np.empty((2, 0)))) == 0
