"""Draws within the ranges of columns, and the summary of columns that they rest on."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.densities import MultivariateGaussian, MultivariateGaussianParameters, Poisson, PoissonParameters
from posteriori.densities.within_ranges import Box, draw_within, truncated_normal
from posteriori.model import GenerativeModel, draw_rows
from posteriori.statistics import ColumnRanges

CELL = st.one_of(st.none(), st.integers(-5, 5).map(float), st.floats(-1e9, 1e9).map(lambda x: round(x, 9)))


def mixed_rows(n=300, seed=0):
    """Return a table of every kind of column, skewed, with gaps, and its classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n)
    shift = pd.Series(y).map({"a": 0, "b": 1, "c": 3}).to_numpy()
    debt = np.rint(np.exp(rng.normal(3 + shift, 1.5))).astype(np.int64)
    frame = pd.DataFrame(
        {
            "debt": np.where(rng.random(n) < 0.7, 0, debt),
            "age": pd.array(rng.integers(18, 70, n), dtype="Int64"),
            "share": rng.random(n) ** (1 + shift),
            "count": rng.poisson(1 + shift),
            "colour": rng.choice(["red", "green"], n),
            "size": rng.gamma(1.0, 1.0 + shift).astype(np.float32),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = pd.NA
    frame.loc[rng.random(n) < 0.1, "share"] = np.nan
    return frame, y


NUMBERS = ["debt", "age", "share", "count", "size"]
MODELS = {
    "gaussian": po.NaiveBayes(),
    "poisson": po.NaiveBayes(distributions={"count": "poisson"}),
    "binned": po.NaiveBayes(distributions="binned"),
    "quantiles": po.NaiveBayes(distributions="binned", bins=4),
    "informative": po.NaiveBayes(missing="informative"),
    "components": po.NaiveBayes(em=po.EM(components_per_class=2), random_state=0),
    "lda": po.GaussianDiscriminant(),
    "qda": po.GaussianDiscriminant(pooling="per_class"),
    "tan": po.TreeAugmentedNaiveBayes(),
    "tan of numbers": po.TreeAugmentedNaiveBayes(bins=None),
    "kdb": po.KDependenceBayes(),
    "aode": po.AveragedOneDependence(),
    "pool": po.GenerativeClassifier(),
}


def require_within(drawn, rows):
    for name in NUMBERS:
        cells, seen = drawn[name].dropna().astype(float), rows[name].dropna().astype(float)
        assert cells.between(seen.min(), seen.max()).all(), name
        if (seen == np.floor(seen)).all():
            assert (cells == np.floor(cells)).all(), name


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_drawn_numbers_are_whole_and_in_the_training_range(name):
    rows, y = mixed_rows()
    model = MODELS[name].fit(rows, y)
    drawn, labels = model.sample(2000, random_state=0)
    require_within(drawn, rows)
    assert (drawn.dtypes[["debt", "age", "count"]] == rows.dtypes[["debt", "age", "count"]]).all() or drawn.isna().any(
        axis=None
    )
    of_one, _ = model.sample(50, y="c", random_state=0)
    require_within(of_one, rows)
    raw, _ = model.sample(2000, random_state=0, respect_ranges=False)
    with pytest.raises(AssertionError):
        require_within(raw, rows)
    # Nothing is moved to the upper bound, and the classes are drawn as before.
    assert (drawn["size"] == rows["size"].max()).mean() < 0.001
    assert_allclose(pd.Series(labels).value_counts(normalize=True)["a"], (y == "a").mean(), atol=0.08)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_mixtures_and_trees_draw_within_the_ranges():
    rows, _ = mixed_rows()
    require_within(po.MixtureModel(3, random_state=0).fit(rows).sample(500, random_state=0)[0], rows)
    require_within(po.ChowLiuTree().fit(rows).sample(500, random_state=0), rows)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda d: np.column_stack(list(d.values()))])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64])
def test_integers_come_back_as_integers_of_their_type(make, dtype):
    rng = np.random.default_rng(0)
    X = make({"a": rng.integers(0, 100, 50).astype(dtype), "b": rng.integers(90, 128, 50).astype(dtype)})
    y = np.arange(50) % 2
    drawn, _ = po.NaiveBayes().fit(X, y).sample(100, random_state=0)
    before, after = (
        [one.dtype]
        if isinstance(one, np.ndarray)
        else list(getattr(one, "dtypes", None) or one.schema.types)
        if not isinstance(one, pd.DataFrame)
        else one.dtypes.tolist()
        for one in (X, drawn)
    )
    assert before == after


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda d: np.column_stack(list(d.values()))])
@pytest.mark.parametrize("rate", [120, 1e10, 1e25])
def test_raw_draws_widen_an_integer_type_that_is_too_small(make, rate):
    X = make({"a": np.array([120, 126, 127, 100], np.int8)})
    model = po.NaiveBayes(distributions="poisson").fit(X, [0, 1, 0, 1])
    (parameters,) = model.model_.parameters
    parameters.rate[:] = rate
    drawn, _ = model.sample(200, random_state=0, respect_ranges=False)
    cells = np.asarray(drawn if isinstance(drawn, np.ndarray) else drawn["a"], dtype=float).ravel()
    assert cells.max() > 127
    assert_allclose(cells.mean(), min(rate, 2.0**63), rtol=0.1)


def test_a_later_integer_beyond_the_first_type_is_drawn():
    model = po.NaiveBayes().partial_fit(pl.DataFrame({"a": pl.Series([1, 2, 3, 100], dtype=pl.Int8)}), [0, 1, 0, 1])
    model.partial_fit(pl.DataFrame({"a": [1000, 2000, 3000, 4000]}), [0, 1, 0, 1])
    drawn, _ = model.sample(100, random_state=0)
    assert drawn["a"].max() > 127
    assert drawn["a"].dtype == pl.Int64


def test_infinite_and_huge_numbers_of_rows_are_refused():
    model = po.NaiveBayes().fit([[1.0], [2.0]], [0, 1])
    for n in (99999999999999999999, 0, 1.5, True, "3"):
        with pytest.raises(ValueError, match=r"n is|draw of 99,999,999"):
            model.sample(n)


# The summary of columns ------------------------------------------------------------------------------------------


def ranges_by_hand(rows):
    cells = [[x for x in column if x is not None] for column in zip(*rows, strict=True)]
    return (
        [min(one, default=np.inf) for one in cells],
        [max(one, default=-np.inf) for one in cells],
        [all(x == int(x) for x in one) for one in cells],
    )


def require_ranges(found, rows):
    for got, wanted in zip((found.lowest, found.highest, found.whole), ranges_by_hand(rows), strict=True):
        assert_array_equal(got, wanted)


@given(st.lists(st.tuples(CELL, CELL), min_size=4, max_size=12), st.data())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ranges_of_parts_add_up_to_those_of_all_rows(rows, data):
    cut = data.draw(st.integers(2, len(rows) - 2))
    y = [i % 2 for i in range(len(rows))]
    table = np.array([[np.nan if x is None else x for x in row] for row in rows])
    whole = po.NaiveBayes().fit(table, y)
    require_ranges(whole.statistics_.ranges, rows)
    parts = po.NaiveBayes().partial_fit(table[:cut], y[:cut], classes=[0, 1]).partial_fit(table[cut:], y[cut:])
    require_ranges(parts.statistics_.ranges, rows)
    shards = [po.NaiveBayes().partial_fit(table[s], y[s], classes=[0, 1]) for s in (slice(cut, None), slice(0, cut))]
    require_ranges(po.merge(shards).statistics_.ranges, rows)
    weight = [1.0] * cut + [0.0] * (len(rows) - cut)
    require_ranges(po.NaiveBayes().fit(table, y, weight).statistics_.ranges, rows[:cut])


def test_ranges_come_from_files_streams_and_databases_alike(tmp_path):
    pytest.importorskip("duckdb", reason="scan_sql needs DuckDB")
    rng = np.random.default_rng(0)
    n = 3000
    frame = pl.DataFrame(
        {
            "a": rng.integers(-5, 900, n),
            "b": rng.normal(size=n),
            "c": rng.choice(["u", "v"], n),
            "d": pl.Series(rng.normal(size=n).astype(np.float32)),
            "e": pl.Series([None] * n, dtype=pl.Float64),
            "y": rng.integers(0, 3, n),
        }
    )
    frame.write_parquet(tmp_path / "rows.parquet")
    frame.write_csv(tmp_path / "rows.csv")
    with pytest.warns(UserWarning, match="'e' has no cell"):
        models = [
            po.NaiveBayes().fit(source, "y")
            for source in (
                frame,
                po.scan(tmp_path / "rows.parquet"),
                po.scan(tmp_path / "rows.csv", dtypes=dict(frame.schema)),
                po.reading.scan_sql("duckdb://", f"SELECT * FROM read_parquet('{tmp_path / 'rows.parquet'}')"),
            )
        ]
    expected = frame.select("a", "b", "d")
    for model in models:
        ranges = model.statistics_.ranges
        numbers = ranges.take([0, 1, 3])
        assert_array_equal(numbers.lowest, expected.min().row(0))
        assert_array_equal(numbers.highest, expected.max().row(0))
        assert_array_equal(ranges.whole, [True, False, True, False, True])
        assert_array_equal(ranges.has_numbers, [True, True, False, True, False])


def test_saved_models_keep_ranges_or_draw_without_them(tmp_path):
    X = np.array([[1.0, 0.5], [2.0, 3.5], [4.0, 1.5], [9.0, 7.5]])
    model = po.NaiveBayes().fit(X, [0, 0, 1, 1])
    po.save(model, tmp_path / "new.posteriori")
    loaded = po.load(tmp_path / "new.posteriori")
    require_ranges(loaded.statistics_.ranges, X.tolist())
    assert_array_equal(loaded.sample(50, random_state=1)[0], model.sample(50, random_state=1)[0])
    object.__setattr__(loaded.statistics_, "ranges", None)  # as a file of an earlier version is read
    raw = model.sample(50, random_state=1, respect_ranges=False)[0]
    assert_array_equal(loaded.sample(50, random_state=1)[0], raw)
    loaded.partial_fit(X, [0, 0, 1, 1])
    assert loaded.statistics_.ranges is None


def test_forgetting_keeps_ranges_and_stated_parameters_lack_them():
    X = np.array([[1.0], [2.0], [4.0], [9.0]])
    model = po.NaiveBayes().fit(X, [0, 0, 1, 1]).unlearn(X[3:], [1])
    assert model.statistics_.ranges.highest == 9.0
    stated = po.NaiveBayes.from_parameters(priors={"a": 1.0}, gaussian={"x": {"mean": [3.0], "sd": [1.0]}})
    assert (stated.sample(20, random_state=0)[0] % 1 != 0).any()


# The truncated densities ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(-1.0, 0.5), (2.0, 9.0), (-np.inf, -6.0), (30.0, 31.0), (-np.inf, np.inf)])
def test_truncated_normals_follow_the_truncated_distribution(low, high):
    drawn = truncated_normal(np.zeros(4000), 1.0, low, high, np.random.default_rng(0))
    assert scipy.stats.kstest(drawn, scipy.stats.truncnorm(low, high).cdf).pvalue > 1e-4


def gaussian_pair(correlation):
    covariance = np.array([[[1.0, correlation], [correlation, 1.0]]])
    return MultivariateGaussianParameters(np.zeros((1, 2)), covariance)


def test_correlated_rows_are_those_of_the_truncated_density():
    box = Box(np.array([0.5, -np.inf]), np.array([np.inf, 0.0]), np.zeros(2, np.bool_))
    rng = np.random.default_rng(0)
    drawn = draw_within(MultivariateGaussian(), gaussian_pair(0.6), np.zeros(20000, np.int64), rng, box)
    brute = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 400_000)
    brute = brute[(brute[:, 0] >= 0.5) & (brute[:, 1] <= 0.0)]
    assert_allclose(drawn.mean(axis=0), brute.mean(axis=0), atol=0.03)
    assert_allclose(np.cov(drawn.T), np.cov(brute.T), atol=0.03)


def test_rows_drawn_in_an_improbable_box_stay_correlated():
    d = 40
    covariance = np.full((1, d, d), 0.5) + 0.5 * np.eye(d)
    parameters = MultivariateGaussianParameters(np.zeros((1, d)), covariance)
    box = Box(np.tile([0.0, -np.inf], d // 2), np.tile([np.inf, 0.0], d // 2), np.zeros(d, np.bool_))
    drawn = draw_within(MultivariateGaussian(), parameters, np.zeros(500, np.int64), np.random.default_rng(0), box)
    assert not box.out_of_support(drawn).any()
    assert np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1] > 0.02


def test_whole_numbers_have_the_mass_between_their_halves():
    box = Box(np.array([0.0]), np.array([3.0]), np.array([True]))
    parameters = MultivariateGaussianParameters(np.array([[1.0]]), np.array([[[1.0]]]))
    drawn = draw_within(MultivariateGaussian(), parameters, np.zeros(40000, np.int64), np.random.default_rng(0), box)
    mass = np.diff(scipy.stats.norm(1.0, 1.0).cdf(np.arange(-0.5, 4.0)))
    assert_allclose(np.bincount(drawn[:, 0].astype(int)) / 40000, mass / mass.sum(), atol=0.01)


@pytest.mark.parametrize("cut", [3.0, 2.5, 2.7])
def test_whole_numbers_of_a_bin_are_alike_and_stay_in_it(cut):
    x = np.tile(np.arange(7.0), 40)[:, np.newaxis]
    model = po.NaiveBayes(distributions="binned", bins=[0.5, cut, 4.5]).fit(x, (x[:, 0] >= cut).astype(int))
    drawn, labels = model.sample(20000, random_state=0)
    counts = np.bincount(drawn[:, 0].astype(int), minlength=7) / 20000
    assert_allclose(counts[:5], 1 / 7, atol=0.01)
    assert_allclose(counts[5:].sum(), 2 / 7, atol=0.01)
    assert ((drawn[:, 0] >= cut) == labels).mean() > 0.98


def test_huge_rates_are_drawn_from_the_normal_approximation():
    parameters = PoissonParameters(np.array([[1e19, 5.0, 1e14]]))
    drawn = Poisson().sample(parameters, np.zeros(2000, np.int64), np.random.default_rng(0))
    assert_allclose(drawn.mean(axis=0), parameters.rate[0], rtol=0.05)
    assert_allclose(drawn.std(axis=0), np.sqrt(parameters.rate[0]), rtol=0.1)


def test_ranges_do_not_change_the_columns_that_are_drawn_raw():
    rows, y = mixed_rows()
    model = po.NaiveBayes().fit(rows, y)
    assert isinstance(model.model_, GenerativeModel)
    assert isinstance(model.statistics_.ranges, ColumnRanges)
    component = np.zeros(10, np.int64)
    raw = draw_rows(model.model_, component, np.random.default_rng(3))
    nothing = draw_rows(model.model_, component, np.random.default_rng(3), ColumnRanges.empty(len(rows.columns)))
    for one, other in zip(raw, nothing, strict=True):
        assert_array_equal(one, other)


def test_a_polars_column_may_be_named_like_a_pattern():
    rows = pl.DataFrame({"^x$": [1.5, 2.5, 3.5], "^n$": [1, 2, 3], "y": ["a", "b", "a"]})
    drawn, _ = po.NaiveBayes().fit(rows, "y").sample(5, random_state=0)
    assert drawn.columns == ["^x$", "^n$"]


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier(["nb", "lda"])])
def test_labels_to_draw_are_one_or_as_many_as_rows(model):
    model.fit(pl.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}), list("ababab"))
    assert_array_equal(model.sample(3, y=["a", "b", "a"])[1], ["a", "b", "a"])
    with pytest.raises(ValueError, match=r"y is of shape \(2,\); give one class, or one for each of the 3"):
        model.sample(3, y=["a", "b"])
