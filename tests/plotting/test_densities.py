"""Drawn densities have area one and are those of the model."""

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

mpl.use("Agg")


import posteriori as po
from posteriori.densities import BaseDensity
from posteriori.plotting import (
    plot_decision_regions,
    plot_densities,
)
from tests.plotting.tables import MEASURES, PENGUINS, TABLES, areas, heights, winners


@TABLES
@pytest.mark.parametrize("by_name", [True, False])
def test_curves_are_the_densities_and_have_area_one(table, by_name):
    rows = table(PENGUINS.select(MEASURES))
    model = po.NaiveBayes().fit(rows, PENGUINS["species"].to_numpy())
    named = by_name and not isinstance(rows, np.ndarray)
    ax = plot_densities(model, "body_mass_g" if named else 3)
    assert_allclose(areas(ax), 1.0, atol=2e-3)
    for c, line in enumerate(ax.lines):
        x = line.get_xdata()
        expected = stats.norm.pdf(x, model.theta_[c, 3], np.sqrt(model.var_[c, 3]))
        assert_allclose(line.get_ydata(), expected, rtol=1e-9)
    assert [line.get_label() for line in ax.lines] == ["Adelie", "Chinstrap", "Gentoo"]


@pytest.fixture(scope="module")
def binned():
    return po.NaiveBayes(distributions={"bill_length_mm": "binned", "body_mass_g": "binned"}).fit(PENGUINS, "species")


def test_a_binned_feature_is_drawn_in_steps_of_area_one(binned):
    ax = plot_densities(binned, "bill_length_mm", X=PENGUINS, y="species")
    assert_allclose(areas(ax), 1.0, atol=5e-3)
    cuts = binned.cuts_["bill_length_mm"]
    for c, line in enumerate(ax.lines):
        x, height = line.get_xdata(), line.get_ydata()
        inner = (x >= cuts[0]) & (x < cuts[1])
        share = np.exp(binned.feature_log_prob_[1][c, 1])  # after the island
        assert_allclose(height[inner], share / (cuts[1] - cuts[0]), rtol=1e-9)


def test_regions_of_binned_features_are_what_the_model_predicts(binned):
    ax = plot_decision_regions(binned, PENGUINS, features=["bill_length_mm", "body_mass_g"], resolution=20)
    won, across, up, _ = winners(ax, 3)
    plane = pl.DataFrame({name: [None] * across.size for name in PENGUINS.columns}).with_columns(
        bill_length_mm=across.ravel(), body_mass_g=up.ravel()
    )
    assert (binned.classes_[won.ravel()] == binned.predict(plane)).mean() > 0.99


def test_a_narrow_class_beside_a_wide_one_keeps_its_area():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = np.where(y == 0, rng.normal(0, 1e-4, 600), rng.normal(50, 1e3, 600)).reshape(-1, 1)
    ax = plot_densities(po.NaiveBayes(distributions=po.Gaussian(0.0)).fit(X, y), 0)
    assert_allclose(areas(ax), 1.0, atol=2e-3)


def test_joint_curves_have_the_priors_as_areas_and_add_up(model):
    ax = plot_densities(model, "bill_length_mm", X=PENGUINS, joint=True)
    assert_allclose(areas(ax), [*model.class_prior_, 1.0], atol=2e-3)
    *classes, everyone = (line.get_ydata() for line in ax.lines)
    assert_allclose(np.sum(classes, axis=0), everyone, atol=1e-15)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("feature", ["bill_length_mm", "body_mass_g"])
def test_histograms_of_the_rows_have_the_area_of_their_curve(model, joint, feature):
    ax = plot_densities(model, feature, X=PENGUINS, y="species", joint=joint)
    wanted = model.class_prior_ if joint else np.ones(3)
    for patch, area in zip(ax.patches, wanted, strict=True):
        heights, edges, _ = patch.get_data()
        assert_allclose(np.sum(heights * np.diff(edges)), area)
    assert ax.lines[0].get_xdata()[0] <= np.nanmin(PENGUINS[feature].to_numpy())


@TABLES
def test_bars_of_categories_are_probabilities_circles_shares(table):
    rows = PENGUINS.select("island", "sex")
    labels = PENGUINS["species"].to_numpy()
    model = po.NaiveBayes(alpha=3.0).fit(table(rows), labels)
    ax = plot_densities(model, 0, X=table(rows), y=labels)
    for c, species in enumerate(model.classes_):
        assert_allclose(heights(ax, c), np.exp(model.feature_log_prob_[0][c]))
        assert_allclose(heights(ax, c).sum(), 1.0)
        mine = rows["island"].to_numpy()[labels == species]
        shares = [np.mean(mine == island) for island in ("Biscoe", "Dream", "Torgersen")]
        assert_allclose(ax.lines[c].get_ydata(), [share for share in shares if share])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["Biscoe", "Dream", "Torgersen"]


def test_bars_of_all_rows_are_the_mixture_joint_bars_the_priors(model):
    ax = plot_densities(model, "sex", X=PENGUINS)
    mixture = sum(p * heights(ax, c) for c, p in enumerate(model.class_prior_))
    assert_allclose(heights(ax, 3), mixture)
    joint = plot_densities(model, "sex", joint=True)
    assert_allclose([heights(joint, c).sum() for c in range(3)], model.class_prior_)


def test_bars_of_counts_are_the_probabilities_of_whole_numbers(counts):
    model, X, y = counts
    ax = plot_densities(model, 0, X=X, y=y)
    for c in range(3):
        bars = heights(ax, c)
        assert_allclose(bars, stats.poisson.pmf(np.arange(len(bars)), model.rate_[c, 0]))
        assert_allclose(bars.sum(), 1.0, atol=2e-3)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["class = 0", "class = 1", "class = 2", "observed"]
    assert_array_equal(ax.get_xticks(), np.floor(ax.get_xticks()))


def test_large_counts_become_a_curve_over_whole_numbers():
    X = np.random.default_rng(0).poisson(500, 400).reshape(-1, 1).astype(float)
    ax = plot_densities(po.NaiveBayes(distributions="poisson").fit(X, np.arange(400) % 2), 0)
    for line in ax.lines:
        assert_array_equal(line.get_xdata(), np.floor(line.get_xdata()))
        assert_allclose(line.get_ydata().sum(), 1.0, atol=2e-3)


def test_a_density_that_knows_only_the_protocol_is_drawn(model):
    class Uniform(BaseDensity):
        """A uniform distribution, met through the protocol alone."""

        name, kind, support, has_full_support = "uniform", "continuous", "a number between 0 and 1", False

        def out_of_support(self, tile):
            return (tile.values < 0) | (tile.values > 1)

        def log_density(self, parameters, tile):
            return np.zeros((len(tile.values), 3))

        def sample(self, parameters, component, rng):
            return rng.random((len(component), 1))

    from posteriori.model import Block, GenerativeModel
    from posteriori.tables import Column, Schema

    schema = Schema((Column("u", "continuous"),), named=True)
    stranger = po.NaiveBayes()
    model = GenerativeModel(schema, (Block(Uniform(), (0,)),), np.log(np.ones(3) / 3), (None,))
    stranger._set_model(model, Column("y", "categorical", ("a", "b", "c")))
    ax = plot_densities(stranger, "u")
    assert_allclose(areas(ax), 1.0, atol=0.02)
    x = ax.lines[0].get_xdata()
    assert x.min() >= 0
    assert x.max() <= 1


def test_many_classes_and_categories_stay_legible():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 20
    X = pl.DataFrame({"c": [f"category number {k:02d}" for k in rng.integers(0, 30, 400)], "x": rng.normal(y)})
    model = po.NaiveBayes().fit(X, y)
    for feature in ("c", "x"):
        ax = plot_densities(model, feature)
        ax.figure.canvas.draw()
        legend = ax.get_legend().get_window_extent()
        assert legend.x0 >= ax.bbox.x1 or legend.y0 >= ax.bbox.y1 - 1
        assert legend.x1 <= ax.figure.bbox.x1
    assert len({line.get_color() for line in ax.lines}) == 20
