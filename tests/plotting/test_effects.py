"""The effect of a column: the factor of the column where factors add up, and a mean of differences elsewhere."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.plotting import plot_effect
from posteriori.plotting.reading import Scale, cells_of, read_batch

PENGUINS = load_penguins().drop("year")
TWO = PENGUINS.filter(pl.col("species") != "Gentoo")


@pytest.fixture(autouse=True)
def _tidy():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def naive():
    return po.NaiveBayes(missing="informative").fit(TWO, "species")


def curve(ax):
    return next(line for line in ax.lines if len(line.get_xdata()) > 2)


def test_where_factors_add_up_the_effect_is_that_of_explain(naive):
    ax = plot_effect(naive, "bill_length_mm", TWO, "species")
    cells, effect = curve(ax).get_data()
    rows = pl.concat([TWO[:1].drop("species")] * len(cells)).with_columns(bill_length_mm=pl.Series(cells))
    factors = naive.explain(rows).log_factors[:, :, rows.columns.index("bill_length_mm")]
    assert_allclose(effect, factors[:, 1] - factors[:, 0], atol=1e-8)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert_allclose(np.unique(band.round(6)).size, np.unique(effect.round(6)).size, atol=2)


def test_bars_of_a_category_are_its_factors(naive):
    ax = plot_effect(naive, "island", TWO)
    prior = naive.class_log_prior_
    for bar, island in zip(ax.containers[0], sorted(TWO["island"].unique()), strict=True):
        alone = TWO[:1].drop("species").with_columns(pl.lit(None).alias(c) for c in TWO.columns if c != "species")
        alone = alone.with_columns(island=pl.lit(island)).select(TWO.drop("species").columns)
        explained = naive.explain(alone).log_factors[0, :, 0]
        assert_allclose(bar.get_height(), explained[1] - explained[0], atol=1e-8)
    assert len(prior) == 2


def test_elsewhere_it_is_the_mean_of_what_the_prediction_gains():
    model = po.GenerativeClassifier(["lda", "tan"]).fit(PENGUINS, "species")
    ax = plot_effect(model, "body_mass_g", PENGUINS[:50], label="Gentoo", against="Adelie")
    cells, effect = curve(ax).get_data()
    X = PENGUINS[:50].drop("species")

    def odds(rows):
        log_posterior = model.predict_log_proba(rows)
        return log_posterior[:, 2] - log_posterior[:, 0]

    without = odds(X.with_columns(body_mass_g=pl.lit(None, pl.Int64)))
    for position in (0, 7, len(cells) - 1):
        given = odds(X.with_columns(body_mass_g=pl.lit(cells[position])))
        assert_allclose(effect[position], (given - without).mean(), atol=1e-6)


def test_several_classes_are_drawn_against_their_mean_and_cancel():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    ax = plot_effect(model, "flipper_length_mm")
    drawn = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]
    assert len(drawn) == 3
    assert_allclose(sum(drawn), 0.0, atol=1e-8)


def test_errors_name_the_class(naive):
    with pytest.raises(ValueError, match="'Emu' is not a class"):
        plot_effect(naive, "island", label="Emu")
    with pytest.raises(ValueError, match="give two classes"):
        plot_effect(naive, "island", label="Adelie", against="Adelie")
    with pytest.raises(ValueError, match="y needs X"):
        plot_effect(naive, "island", y="species")
    assert not plt.get_fignums()


def test_a_heavy_tail_gets_a_logarithmic_axis_with_true_areas():
    rng = np.random.default_rng(0)
    assert Scale.of(rng.normal(size=1000)).width is None
    assert Scale.of(rng.normal(1e6, 1.0, size=1000)).width is None
    assert Scale.of(np.repeat([0.0, 1.0, 50.0], [900, 90, 10])).width is None  # few values
    heavy = Scale.of(np.where(rng.random(1000) < 0.8, 0.0, np.exp(rng.normal(7, 2, 1000))))
    assert heavy.width is not None
    x = np.array([-5e4, 0.0, 3.0, 1e5])
    assert_allclose(heavy.number(heavy.position(x)), x, atol=1e-9)
    u = np.linspace(-12, 12, 20001)
    density = np.exp(-0.5 * (heavy.number(u) / 100) ** 2) / (100 * np.sqrt(2 * np.pi))
    assert_allclose(np.trapezoid(heavy.per_unit_of_axis(heavy.number(u), density), u), 1.0, atol=1e-4)


def test_a_scale_of_numbers_near_the_largest_stays_finite():
    scale = Scale(1e-200)
    ends = scale.position(np.array([-1e108, 1e108]))
    for beyond in (1.0, 1.1, 3.0):
        numbers = scale.number(beyond * ends)
        assert np.isfinite(numbers).all()
        assert np.isfinite(scale.per_unit_of_axis(numbers, np.ones(2))).all()


def test_the_greatest_numbers_have_a_place_on_an_axis():
    x = np.arange(12.0)[:, np.newaxis]
    model = po.NaiveBayes(distributions="binned", bins=3).fit(x, list("ab") * 6)
    rows = read_batch(model, np.array([[-1e300], [3.0], [np.nan], [1e300]]))
    assert_allclose(cells_of(rows, 0), [-1e150, 3.0, np.nan, 1e150])
