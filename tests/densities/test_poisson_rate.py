"""Counts with an exposure: Poisson rates against brute force, scipy and the laws of models."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from scipy.special import gammaln

import posteriori as po
from posteriori.densities import Multinomial, PoissonRate
from posteriori.statistics import CountExposed
from posteriori.tables import Assignment, Bags, Numbers

Z, V, N = 3, 5, 50
RNG = np.random.default_rng(3)
HOURS = RNG.gamma(2.0, 3.0, N) + 0.1
COMPONENT = RNG.integers(0, Z, N).astype(np.int32)
COUNTS = RNG.poisson(HOURS[:, None] * RNG.gamma(1.0, 0.3, (Z, V))[COMPONENT]).astype(float)
WEIGHT = RNG.integers(1, 4, N).astype(float)
LABELS = Assignment(COMPONENT, WEIGHT, Z)
BAGS = replace(Bags.of_matrix(csr_array(COUNTS), slice(0, N)), exposure=HOURS)
DENSE = Numbers(COUNTS, exposure=HOURS)
Y = np.array(["a", "b", "c"])[COMPONENT]


def fitted(density, tile=BAGS, labels=LABELS):
    return density.estimate(density.sufficient_statistics.of(tile, labels))


@pytest.mark.parametrize("tile", [BAGS, DENSE], ids=["bags", "dense"])
def test_it_is_scipys_poisson_of_rate_times_exposure(tile):
    density = PoissonRate("hours")
    parameters = fitted(density, tile)
    for z in range(Z):
        expected = scipy.stats.poisson(parameters.rate[z] * HOURS[:, None]).logpmf(COUNTS).sum(axis=1)
        assert_allclose(density.log_density(parameters, tile)[:, z], expected, rtol=1e-10)
    assert_allclose(
        density.log_factors(parameters, tile).sum(axis=2), density.log_density(parameters, tile), rtol=1e-10
    )
    factors, rest = density.word_factors(parameters, BAGS)
    assert_allclose(BAGS.sums_per_row(factors) + rest, density.log_density(parameters, BAGS), rtol=1e-10)


def test_without_exposure_it_is_scipys_multinomial():
    parameters = fitted(PoissonRate())
    totals = COUNTS.sum(axis=1).astype(int)
    orders = gammaln(totals + 1) - gammaln(COUNTS + 1).sum(axis=1)
    found = PoissonRate().log_density(parameters, replace(BAGS, exposure=None))
    for z in range(Z):
        law = scipy.stats.multinomial(totals, parameters.rate[z] / parameters.rate[z].sum())
        assert_allclose(found[:, z], law.logpmf(COUNTS.astype(int)) - orders, atol=1e-9)


def test_without_a_prior_rates_are_events_per_exposure():
    density = PoissonRate("hours", smoothing=0.0)
    parameters = fitted(density)
    for z in range(Z):
        rows = z == COMPONENT
        w = WEIGHT[rows]
        assert_allclose(parameters.rate[z], w @ COUNTS[rows] / (w @ HOURS[rows]))

        def loss(log_rate, rows=rows, w=w):
            return -w @ scipy.stats.poisson(np.exp(log_rate) * HOURS[rows, None]).logpmf(COUNTS[rows]).sum(axis=1)

        best = scipy.optimize.minimize(loss, np.zeros(V))
        assert loss(np.log(parameters.rate[z])) <= best.fun + 1e-6


@pytest.mark.parametrize("smoothing", [0.3, 4.0])
def test_the_prior_is_a_gamma_distribution_of_rows_of_the_mean(smoothing):
    """The rate is the mean of the posterior: by numerical integration over the rate."""
    parameters = fitted(PoissonRate("hours", smoothing))
    total = WEIGHT.sum()
    for z, j in ((0, 1), (2, 4)):
        rows = z == COMPONENT
        prior = scipy.stats.gamma(smoothing * WEIGHT @ COUNTS[:, j] / total, scale=total / (smoothing * WEIGHT @ HOURS))
        grid = np.linspace(1e-6, 8, 100_001)
        log_posterior = prior.logpdf(grid) + sum(
            w * scipy.stats.poisson(grid * hours).logpmf(x)
            for w, hours, x in zip(WEIGHT[rows], HOURS[rows], COUNTS[rows, j], strict=True)
        )
        posterior = np.exp(log_posterior - log_posterior.max())
        assert_allclose(parameters.rate[z, j], (grid * posterior).sum() / posterior.sum(), rtol=1e-4)


def test_limits_of_the_prior():
    whole = WEIGHT @ COUNTS / (WEIGHT @ HOURS)
    assert_allclose(fitted(PoissonRate("hours", np.inf)).rate, np.tile(whole, (Z, 1)))
    empty = fitted(PoissonRate("hours"), BAGS, Assignment(COMPONENT, WEIGHT, Z + 1))
    assert_allclose(empty.rate[Z], whole)
    nothing = replace(BAGS, counts=np.zeros_like(BAGS.counts))
    assert_allclose(fitted(PoissonRate("hours"), nothing).rate.sum(axis=0) > 0, True)


@pytest.mark.parametrize("tile", [BAGS, DENSE], ids=["bags", "dense"])
@pytest.mark.parametrize("smoothing", [0.0, 0.7])
def test_leave_one_out_is_refitting(tile, smoothing):
    density = PoissonRate("hours", smoothing)
    statistics = density.sufficient_statistics.of(tile, LABELS)
    left = density.left_out(density.estimate(statistics), statistics, tile, LABELS)
    for i in (0, 7, 31):
        others, row = np.arange(N) != i, np.array([i])
        expected = density.log_factors(fitted(density, tile.rows(others), LABELS.rows(others)), tile.rows(row))[0]
        assert_allclose(left[i], expected, rtol=1e-8)
        again = statistics.without(tile.rows(row), LABELS.rows(row))
        assert_allclose(density.log_factors(density.estimate(again), tile.rows(row))[0], expected, rtol=1e-8)


def test_a_missing_exposure_is_integrated_out():
    """∫ Π_j Poisson(x_j; λ_j·ℓ) dℓ / ℓ by quadrature; only differences between components have a meaning."""
    density = PoissonRate("hours")
    parameters = fitted(density)
    kept = COUNTS.sum(axis=1) > 0
    tile = replace(BAGS, exposure=np.full(N, np.nan)).rows(kept)
    found = density.log_density(parameters, tile)
    exposures = np.exp(np.linspace(-16, 9, 4001))  # uniform in log ℓ
    expected = np.stack(
        [
            np.logaddexp.reduce(
                scipy.stats.poisson(parameters.rate[z] * exposures[:, None, None]).logpmf(COUNTS[kept]).sum(axis=2),
                axis=0,
            )
            for z in range(Z)
        ],
        axis=1,
    )
    assert_allclose(found[:, 1:] - found[:, :1], expected[:, 1:] - expected[:, :1], atol=1e-6)
    assert_allclose(density.log_factors(parameters, tile)[:, :, 0], found, rtol=1e-12)


def test_the_total_as_exposure_gives_a_smoothed_multinomial():
    X = csr_array(COUNTS)
    by_rates = po.NaiveBayes(distributions=PoissonRate(smoothing=0.0)).fit(X, Y, WEIGHT)
    by_shares = po.NaiveBayes(distributions=Multinomial(0.0)).fit(X, Y, WEIGHT)
    assert_allclose(by_rates.predict_log_proba(X), by_shares.predict_log_proba(X), rtol=1e-9)
    rate = fitted(PoissonRate(smoothing=2.0), replace(BAGS, exposure=None)).rate
    assert_allclose(rate.sum(axis=1), 1.0)
    # The Poisson form has the same differences between classes, because the rates sum to 1.
    totals = replace(BAGS, exposure=COUNTS.sum(axis=1)).rows(COUNTS.sum(axis=1) > 0)
    parameters = fitted(PoissonRate(smoothing=2.0), replace(BAGS, exposure=None))
    odds = [
        np.diff(density.log_density(parameters, tile))
        for density, tile in ((PoissonRate("n"), totals), (PoissonRate(), replace(totals, exposure=None)))
    ]
    assert_allclose(*odds, rtol=1e-9, atol=1e-12)


FRAME = pl.DataFrame({"hours": HOURS, **{f"k{j}": COUNTS[:, j] for j in range(V)}})
RATES = {f"k{j}": PoissonRate("hours") for j in range(V)}


def test_dense_columns_and_a_block_are_the_same_model():
    dense = po.NaiveBayes(distributions=RATES).fit(FRAME, Y)
    rows = po.tables.Blocks(FRAME.select("hours"), {"events": csr_array(COUNTS)})
    block = po.NaiveBayes(distributions={"events": PoissonRate("hours")}).fit(rows, Y)
    assert_allclose(block.predict_log_proba(rows), dense.predict_log_proba(FRAME), rtol=1e-9)
    assert_allclose(block.score_samples(rows), dense.score_samples(FRAME), rtol=1e-9)
    assert dense.model_.given[1:] == ((0,),) * V  # each count is conditional on the hours
    assert_allclose(
        block.explain(rows).log_factors.sum(axis=2), dense.explain(FRAME).log_factors.sum(axis=2), rtol=1e-9
    )


def test_models_with_exposures_are_updated_merged_and_saved(tmp_path):
    whole = po.NaiveBayes(distributions=RATES).fit(FRAME, Y)
    parts = [po.NaiveBayes(distributions=RATES).fit(FRAME[rows], Y[rows]) for rows in (slice(0, 25), slice(25, N))]
    later = po.NaiveBayes(distributions=RATES).fit(FRAME[:25], Y[:25]).partial_fit(FRAME[25:], Y[25:])
    po.save(whole, tmp_path / "m.posteriori")
    expected = whole.predict_log_proba(FRAME)
    for found in (po.merge(parts), later, po.load(tmp_path / "m.posteriori")):
        assert_allclose(found.predict_log_proba(FRAME), expected, rtol=1e-8)
    later.unlearn(FRAME[25:], Y[25:])
    assert_allclose(later.predict_log_proba(FRAME), parts[0].predict_log_proba(FRAME), rtol=1e-6, atol=1e-8)
    again = po.model_selection.leave_one_out(whole, FRAME, Y)
    assert np.isfinite(again.log_loss)


def test_drawn_rows_have_events_in_proportion_to_their_exposure():
    model = po.NaiveBayes(distributions=RATES).fit(FRAME, Y)
    rows, labels = model.sample(6000, random_state=0)
    again = po.NaiveBayes(distributions=RATES).fit(rows, labels)
    (rate,), (expected,) = (
        [parameters.rate for parameters in one.model_.parameters if hasattr(parameters, "rate")]
        for one in (again, model)
    )
    assert_allclose(rate, expected, rtol=0.1, atol=0.01)


def test_a_row_explains_itself_exactly_also_without_its_exposure():
    rows = po.tables.Blocks(FRAME.select("hours"), {"events": csr_array(COUNTS)})
    unknown = po.tables.Blocks(FRAME.select(hours=pl.col("hours") * np.nan), {"events": csr_array(COUNTS)})
    model = po.NaiveBayes(distributions={"events": PoissonRate("hours")}).fit(rows, Y)
    for some in (rows, unknown):
        explained = model.explain(some)
        total = explained.log_prior + explained.log_factors.sum(axis=2)
        assert_allclose(total, model.predict_joint_log_proba(some), rtol=1e-9)
        words = explained.words[3]["events"]
        assert_allclose(sum(words.factors.values()) + words.rest, explained.log_factors[3, :, 1], rtol=1e-9)


@pytest.mark.parametrize(
    ("hours", "message"),
    [
        (None, "column 'hours' is the exposure of counts, and lacks a value in row 2"),
        (0.0, "column 'hours' holds 0 in row 2, but it is the exposure of counts, which is above 0"),
        (-1.5, "column 'hours' holds -1.5 in row 2"),
    ],
)
def test_a_training_row_needs_an_exposure_above_0(hours, message):
    rows = FRAME.with_columns(hours=pl.Series([*HOURS[:2], hours, *HOURS[3:]]))
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes(distributions=RATES).fit(rows, Y)


def test_errors_name_the_column_of_exposures():
    for exposure, message in (
        ("hour", "distributions names 'hour', which is not a feature"),
        ("k0", "the exposure of column 'k0' is 'k0', which is the column itself"),
        ("place", "'place', which is not a column of numbers"),
    ):
        rows = FRAME.with_columns(place=pl.Series(["x", "y"] * (N // 2)))
        with pytest.raises(ValueError, match=message):
            po.NaiveBayes(distributions={"k0": PoissonRate(exposure)}).fit(rows, Y)
    model = po.NaiveBayes(distributions=RATES).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"column 'hours' holds -2 in row 0"):
        model.predict(FRAME[:1].with_columns(hours=pl.lit(-2.0)))


def test_fits_with_other_exposures_share_no_statistics():
    assert CountExposed("a") != CountExposed("b")
    model = po.NaiveBayes(distributions=RATES).fit(FRAME, Y)
    model.set_params(distributions={name: PoissonRate() for name in RATES})
    with pytest.raises(ValueError, match="distributions have changed"):
        model.partial_fit(FRAME, Y)


def test_a_row_of_missing_counts_and_exposure_has_the_prior():
    table = pl.DataFrame({"n": [0, 1, 4, 5], "m": [2, 3, 0, 1], "y": ["a", "a", "b", "b"]})
    model = po.NaiveBayes(distributions="poisson_rate").fit(table, "y")
    missing = pl.DataFrame({"n": [None], "m": [None]}, schema={"n": pl.Float64, "m": pl.Float64})
    assert_allclose(model.predict_proba(missing)[0], model.class_prior_)
