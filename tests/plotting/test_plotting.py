import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.plotting import (
    plot_calibration,
    plot_confusion,
    plot_covariances,
    plot_decision_regions,
    plot_densities,
    plot_discriminants,
    plot_effect,
    plot_explanation,
    plot_feature_information,
    plot_lift,
    plot_precision_recall,
    plot_roc,
)
from posteriori.plotting.canvas import PALETTE, class_colours
from posteriori.plotting.reading import Feature, posterior_of

PENGUINS = load_penguins().drop("year")
MEASURES = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


@pytest.fixture(autouse=True)
def _tidy():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="module")
def model():
    return po.NaiveBayes().fit(PENGUINS, "species")


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [200, 100, 50])
    X = np.column_stack([rng.poisson(np.array([1.0, 4.0, 9.0])[y]), rng.normal(y, 1.0)]).astype(float)
    return po.NaiveBayes(distributions={0: "poisson"}).fit(X, y), X, y


def numpy_table(frame):
    numeric = all(dtype.is_numeric() for dtype in frame.dtypes)
    return frame.to_numpy() if numeric else np.array(frame.rows(), dtype=object)


def pandas_table(frame):
    return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})


def polars_table(frame):
    return frame


TABLES = pytest.mark.parametrize("table", [numpy_table, pandas_table, polars_table])


def areas(ax):
    return [np.trapezoid(line.get_ydata(), line.get_xdata()) for line in ax.lines]


def heights(ax, k):
    return np.array([bar.get_height() for bar in ax.containers[k]])


# Densities


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


def test_joint_curves_have_the_priors_as_areas_and_add_up_to_that_of_all_rows(model):
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
def test_bars_of_categories_are_their_probabilities_and_circles_their_shares(table):
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


def test_bars_of_all_rows_are_the_mixture_and_joint_bars_sum_to_the_priors(model):
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
    class UnseenCategoryError:
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
    stranger.classes_ = np.array(["a", "b", "c"])
    stranger.model_ = GenerativeModel(schema, (Block(UnseenCategoryError(), (0,)),), np.log(np.ones(3) / 3), (None,))
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


# Decision regions


def winners(ax, n_classes):
    """Read the class of each cell of the picture off its hue, and the cells' places."""
    mesh = ax.collections[0]
    ink = 1.0 - np.asarray(mesh.get_array())
    hues = 1.0 - np.array([to_rgb(colour) for colour in class_colours(n_classes)])
    directions = hues / np.linalg.norm(hues, axis=1, keepdims=True)
    corners = mesh.get_coordinates()
    centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    return (ink @ directions.T).argmax(axis=-1), centres[..., 0], centres[..., 1], ink


@TABLES
@pytest.mark.parametrize("by_name", [True, False])
def test_regions_are_what_the_model_predicts_with_the_rest_missing(table, by_name):
    columns = ["bill_length_mm", "island", "bill_depth_mm", "flipper_length_mm"]
    frame = PENGUINS.select(columns)
    rows, labels = table(frame), PENGUINS["species"].to_numpy()
    model = po.NaiveBayes(distributions={0: "gaussian", 2: "gaussian", 3: "gaussian"}).fit(rows, labels)
    named = by_name and not isinstance(rows, np.ndarray)
    features = ("flipper_length_mm", "bill_length_mm") if named else (3, 0)
    ax = plot_decision_regions(model, rows, labels, features=features, resolution=40)
    won, across, up, ink = winners(ax, 3)
    assert won.shape == (40, 40)
    nothing = pl.Series([None] * won.size)
    plane = pl.DataFrame(
        {
            "bill_length_mm": up.ravel(),
            "island": nothing,
            "bill_depth_mm": nothing,
            "flipper_length_mm": across.ravel(),
        }
    )
    proba = model.predict_proba(table(plane))
    assert_array_equal(model.classes_[won.ravel()], model.predict(table(plane)))
    strength = np.linalg.norm(ink.reshape(-1, 3), axis=1)
    for c in range(3):
        mine = won.ravel() == c
        assert stats.spearmanr(strength[mine], proba[mine, c]).statistic > 0.99
    rows_of = [np.ma.getdata(points.get_offsets()) for points in ax.collections[-3:]]
    for c, offsets in enumerate(rows_of):
        mine = frame.filter(pl.Series(labels == model.classes_[c]))
        assert_array_equal(offsets[:, 1], mine["bill_length_mm"].to_numpy())
        assert_array_equal(offsets[:, 0], mine["flipper_length_mm"].to_numpy())


def test_boundaries_lie_where_two_classes_are_as_probable(model):
    ax = plot_decision_regions(model, PENGUINS, features=("bill_length_mm", "bill_depth_mm"))
    lines = [c for c in ax.collections if type(c).__name__ == "QuadContourSet"]
    assert len(lines) == 3
    points = np.concatenate([path.vertices for line in lines for path in line.get_paths()])
    plane = pl.DataFrame({name: [None] * len(points) for name in PENGUINS.columns}).with_columns(
        bill_length_mm=points[:, 0], bill_depth_mm=points[:, 1]
    )
    proba = np.sort(model.predict_proba(plane), axis=1)
    assert_allclose(proba[:, -1], proba[:, -2], atol=0.02)


def test_the_model_s_two_continuous_features_are_the_default():
    rows = PENGUINS.select("bill_length_mm", "sex", "body_mass_g", "species")
    ax = plot_decision_regions(po.NaiveBayes().fit(rows, "species"), rows, "species", resolution=20)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("bill_length_mm", "body_mass_g")


def test_counts_are_drawn_at_whole_numbers_only(counts):
    model, X, y = counts
    ax = plot_decision_regions(model, X, y, resolution=30)
    won, across, up, _ = winners(ax, 3)
    assert_allclose(across, across.round(), atol=1e-9)
    assert across.min() == 0
    assert_array_equal(won.ravel(), model.predict(np.column_stack([across.ravel().round(), up.ravel()])))


def test_one_class_is_one_region():
    X = np.random.default_rng(0).normal(size=(10, 2))
    ax = plot_decision_regions(po.NaiveBayes().fit(X, np.zeros(10)), X, resolution=5)
    assert (winners(ax, 1)[0] == 0).all()


# Calibration


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_calibration_of_two_classes_is_that_of_scikit_learn_and_of_a_loop(strategy, n_bins):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 500)
    X = rng.normal(y[:, np.newaxis] * [0.5, 0.3, 0.8], 1.0)
    model = po.NaiveBayes().fit(X, y)
    ax = plot_calibration(model, X, y, n_bins=n_bins, strategy=strategy)
    sure, share = ax.lines[1].get_data()
    p = model.predict_proba(X)[:, 1]
    expected = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
    assert_allclose(share, expected[0])
    assert_allclose(sure, expected[1])

    steps = np.linspace(0, 1, n_bins + 1)
    edges = steps if strategy == "uniform" else np.quantile(p, steps)
    rows = [[] for _ in range(n_bins)]
    for i, value in enumerate(p):
        rows[next(k for k in range(n_bins) if k == n_bins - 1 or value <= edges[k + 1])].append(i)
    rows = [bin for bin in rows if bin]
    assert_allclose(sure, [p[bin].mean() for bin in rows])
    assert_allclose(share, [y[bin].mean() for bin in rows])
    gap = sum(abs(p[bin].mean() - y[bin].mean()) * len(bin) for bin in rows) / len(y)
    assert ax.lines[1].get_label() == f"class = 1: mean gap {gap:.3f}"
    sizes = ax.collections[-1].get_sizes()
    longest = max(map(len, rows))
    assert_allclose(sizes, [max(110 * len(bin) / longest, 16) for bin in rows])
    for bin, segment in zip(rows, ax.collections[0].get_segments(), strict=True):
        interval = stats.binomtest(int(y[bin].sum()), len(bin)).proportion_ci(method="wilson")
        assert_allclose(segment[:, 1], [interval.low, interval.high], atol=1e-4)


def test_calibration_draws_each_of_several_classes_or_the_one_asked_for(model):
    ax = plot_calibration(model, PENGUINS, "species", strategy="uniform")
    assert len(ax.lines) == 4
    one = plot_calibration(model, PENGUINS, "species", strategy="uniform", label="Gentoo")
    assert_allclose(one.lines[1].get_data(), ax.lines[3].get_data())
    assert one.lines[1].get_color() == ax.lines[3].get_color()


@TABLES
def test_calibration_of_given_probabilities_is_that_of_the_rows(table):
    rows, labels = table(PENGUINS.select(MEASURES)), PENGUINS["species"].to_numpy()
    model = po.NaiveBayes().fit(rows, labels)
    expected = plot_calibration(model, rows, labels)
    given = plot_calibration(model, y=labels.tolist(), proba=model.predict_proba(rows).tolist())
    for line, other in zip(expected.lines, given.lines, strict=True):
        assert_allclose(line.get_data(), other.get_data())


def test_curves_of_given_probabilities_are_those_of_the_rows_with_their_area_in_the_legend(model):
    posterior = model.predict_proba(PENGUINS.drop("species"))
    labels = PENGUINS["species"].to_numpy()
    for draw in (plot_roc, plot_precision_recall, plot_lift):
        lines = [line.get_xydata() for line in draw(model, PENGUINS, "species").lines]
        given = [line.get_xydata() for line in draw(model, y=labels, proba=posterior).lines]
        assert all(np.array_equal(one, other) for one, other in zip(lines, given, strict=True))
    ax = plot_roc(model, PENGUINS, "species", label="Chinstrap")
    area = roc_auc_score(labels == "Chinstrap", posterior[:, 1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"Chinstrap: AUC {area:.3f}"]
    numbers = [text.get_text() for text in plot_confusion(model, PENGUINS, "species").texts]
    assert sum(map(int, numbers)) == len(PENGUINS)


def test_calibration_takes_a_classifier_of_scikit_learn():
    X = PENGUINS.select(MEASURES).drop_nulls().to_numpy()
    y = PENGUINS.drop_nulls(MEASURES)["species"].to_numpy()
    assert len(plot_calibration(GaussianNB().fit(X, y), X, y).lines) == 4


# Explanations


def spans(ax):
    return np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches])


@TABLES
@pytest.mark.parametrize("row", [0, 3, -1])
def test_the_waterfall_ends_at_the_log_odds_of_the_posterior(table, row):
    rows, labels = table(PENGUINS.drop("species")), PENGUINS["species"].to_numpy()
    model = po.NaiveBayes(distributions=dict.fromkeys((1, 2, 3, 4), "gaussian")).fit(rows, labels)
    log_proba = model.predict_log_proba(rows)[row]
    second, first = np.argsort(log_proba)[-2:]
    ax = plot_explanation(model, rows, row)
    bars = spans(ax)
    assert_allclose(bars[-1], [0.0, log_proba[first] - log_proba[second]], atol=1e-9)
    assert_allclose(bars[0], [0.0, model.class_log_prior_[first] - model.class_log_prior_[second]])
    assert_allclose(bars[1:-1, 0], bars[:-2, 1], atol=1e-12)
    assert_allclose(bars[-2, 1], bars[-1, 1], atol=1e-12)
    steps = np.abs(np.diff(bars[1:-1], axis=1)[:, 0])
    assert (np.diff(steps) <= 1e-12).all()
    assert ax.get_xlabel() == f"log-odds of {model.classes_[first]} against {model.classes_[second]} (nats)"


def test_the_steps_are_those_of_the_explanation_and_named_with_their_cells(model):
    explanation = model.explain(PENGUINS)
    ax = plot_explanation(explanation, row=9, label="Gentoo", against="Adelie")
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    odds = explanation.log_odds(9, "Gentoo", "Adelie")
    steps = {"prior": odds.prior} | odds.factors
    assert "sex missing" in names
    assert "bill_length_mm = 42" in names
    for name, (start, end) in zip(names[:-1], spans(ax), strict=False):
        assert_allclose(end - start, steps[name.split()[0]], atol=1e-12)
    p = explanation.posterior[9]
    assert p[2] < 0.001 < p[0] < 0.999
    assert ax.get_title(loc="left") == f"p(Gentoo | x) < 0.001,  p(Adelie | x) = {p[0]:.3f}"


def test_what_does_not_fit_is_summed_into_the_others(model):
    full = spans(plot_explanation(model, PENGUINS, 0))
    ax = plot_explanation(model, PENGUINS, 0, max_features=2)
    short = spans(ax)
    assert ax.get_yticklabels()[3].get_text() == "4 others"
    assert_allclose(short[:3], full[:3])
    assert_allclose(short[-2:], [[full[2, 1], full[-1, 1]], full[-1]])


def test_a_step_has_the_colour_of_the_class_it_speaks_for(model):
    ax = plot_explanation(model, PENGUINS, 314)
    colours = dict(zip(model.classes_, class_colours(3), strict=True))
    for bar in ax.patches[:-1]:
        wanted = colours["Chinstrap" if bar.get_width() >= 0 else "Adelie"]
        assert_allclose(bar.get_facecolor()[:3], to_rgb(wanted))


def test_against_the_most_probable_class_the_next_one_is_meant(model):
    ax = plot_explanation(model, PENGUINS, 0, against="Adelie")
    assert ax.get_xlabel() == "log-odds of Chinstrap against Adelie (nats)"


def test_a_feature_called_prior_is_a_step_of_its_own():
    X = pl.DataFrame({"prior": [0.0, 1.0, 3.0, 4.0], "x": [0.0, 1.0, 1.0, 2.0]})
    model = po.NaiveBayes().fit(X, ["a", "a", "b", "b"])
    log_proba = model.predict_log_proba(X)[0]
    assert_allclose(spans(plot_explanation(model, X))[-1, 1], log_proba[0] - log_proba[1])


# Discriminant analysis


@pytest.fixture(scope="module", params=["pooled", "per_class"])
def gaussian(request):
    return po.GaussianDiscriminant(pooling=request.param).fit(PENGUINS, "species")


def curves(ax):
    """Return the lines of an axes that are no single points."""
    return [line.get_xydata() for line in ax.lines if len(line.get_xydata()) > 1]


def test_ellipses_are_as_far_from_the_mean_as_their_share_says(gaussian):
    ax = plot_covariances(gaussian, features=(2, "flipper_length_mm"), shares=(0.5, 0.9))
    positions = [1, 2]  # among the continuous columns
    drawn = curves(ax)
    assert len(drawn) == 3 * 2
    for k, points in enumerate(drawn):
        c, share = divmod(k, 2)
        covariance = gaussian.covariance_ if gaussian.covariance_.ndim == 2 else gaussian.covariance_[c]
        away = points - gaussian.means_[c, positions]
        squared = (away @ np.linalg.inv(covariance[np.ix_(positions, positions)]) * away).sum(axis=1)
        assert_allclose(stats.chi2(2).cdf(squared), (0.5, 0.9)[share])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(gaussian.classes_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("bill_depth_mm", "flipper_length_mm")


@TABLES
def test_discriminants_are_the_rows_transformed(table):
    frame = PENGUINS.drop_nulls()
    X, y = table(frame.select(MEASURES)), frame["species"].to_list()
    fitted = po.GaussianDiscriminant().fit(X, y)
    ax = plot_discriminants(fitted, X, y)
    rows = fitted.transform(X)
    for c, label in enumerate(fitted.classes_):
        assert_allclose(ax.collections[c].get_offsets(), rows[np.array(y) == label])
    for c, points in enumerate(curves(ax)):
        centre = rows[np.array(y) == fitted.classes_[c]].mean(axis=0)
        assert_allclose(np.linalg.norm(points - centre, axis=1), np.sqrt(stats.chi2(2).ppf(0.95)))
    assert ax.get_xlabel() == f"direction 1 ({fitted.explained_variance_ratio_[0]:.1%})"


def test_two_classes_lie_along_one_direction():
    frame = PENGUINS.drop_nulls().drop("species")
    fitted = po.GaussianDiscriminant().fit(frame, "sex")
    ax = plot_discriminants(fitted, frame)
    predicted = fitted.predict(frame)
    for c, label in enumerate(fitted.classes_):
        drawn = np.asarray(ax.collections[c].get_offsets())
        assert_allclose(drawn[:, 0], fitted.transform(frame)[predicted == label, 0])
        assert (np.abs(drawn[:, 1] - c) < 0.5).all()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["female", "male"]


def test_regions_and_densities_of_a_discriminant_analysis_integrate_the_other_columns_out(gaussian):
    ax = plot_densities(gaussian, "bill_length_mm")
    x, density = ax.lines[0].get_xydata().T
    covariance = gaussian.covariance_ if gaussian.covariance_.ndim == 2 else gaussian.covariance_[0]
    assert_allclose(density, stats.norm(gaussian.means_[0, 0], np.sqrt(covariance[0, 0])).pdf(x), rtol=1e-6)
    assert plot_decision_regions(gaussian, PENGUINS, "species", features=(1, 2), resolution=20).has_data()


GAUSSIAN_ERRORS = [
    (lambda m: plot_covariances(m, features=(1, 2), shares=(95,)), "between 0 and 1"),
    (lambda m: plot_covariances(m, y="species", features=(1, 2)), "y needs X"),
    (lambda m: plot_covariances(m), "4 continuous features, not two"),
    (lambda m: plot_covariances(m, features=("sex", 1)), "'sex' is categorical"),
    (lambda m: plot_discriminants(po.GaussianDiscriminant().fit([[0.0], [1.0]], [1, 1]), [[0.0]]), "one class only"),
]


@pytest.mark.parametrize(("draw", "message"), GAUSSIAN_ERRORS, ids=[message for _, message in GAUSSIAN_ERRORS])
def test_errors_of_discriminant_pictures_name_what_is_wrong(gaussian, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(gaussian)
    assert not plt.get_fignums()


# All of them

GAUSSIAN = po.GaussianDiscriminant().fit(PENGUINS, "species")
DRAWINGS = {
    "densities": lambda model, **ax: plot_densities(model, "island", X=PENGUINS, y="species", **ax),
    "regions": lambda model, **ax: plot_decision_regions(model, PENGUINS, features=(1, 2), resolution=9, **ax),
    "calibration": lambda model, **ax: plot_calibration(model, PENGUINS, "species", **ax),
    "roc": lambda model, **ax: plot_roc(model, PENGUINS, "species", **ax),
    "precision and recall": lambda model, **ax: plot_precision_recall(model, PENGUINS, "species", **ax),
    "lift": lambda model, **ax: plot_lift(model, PENGUINS, "species", **ax),
    "confusion": lambda model, **ax: plot_confusion(model, PENGUINS, "species", **ax),
    "effect": lambda model, **ax: plot_effect(model, "sex", PENGUINS, "species", **ax),
    "explanation": lambda model, **ax: plot_explanation(model, PENGUINS, **ax),
    "covariances": lambda model, **ax: plot_covariances(GAUSSIAN, PENGUINS, "species", features=(1, 2), **ax),
    "discriminants": lambda model, **ax: plot_discriminants(GAUSSIAN, PENGUINS, "species", **ax),
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_the_axes_given_is_drawn_on_and_returned(model, draw):
    figure, (left, right) = plt.subplots(1, 2)
    assert draw(model, ax=right) is right
    assert plt.get_fignums() == [figure.number]
    assert right.has_data()
    assert not left.has_data()
    own = draw(model)
    assert own.figure is not figure
    assert len(plt.get_fignums()) == 2


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_every_text_lies_within_the_figure_and_no_legend_over_the_axes(model, draw):
    ax = draw(model)
    ax.figure.canvas.draw()
    box = ax.get_tightbbox()
    assert box.x0 >= -1
    assert box.y0 >= -1
    assert box.x1 <= ax.figure.bbox.x1 + 1
    assert box.y1 <= ax.figure.bbox.y1 + 1
    if ax.get_legend():
        assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1 - 1


@pytest.fixture(scope="module")
def pool():
    return po.GenerativeClassifier(["lda", "tan", "nb", "binned weighted"]).fit(PENGUINS, "species")


def unknown_but(features, rows):
    others = [name for name in rows.columns if name not in (*features, "species")]
    return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in others)


def test_densities_of_a_pool_are_the_mixture_of_its_members_and_have_area_one(pool):
    for feature in ("bill_length_mm", "island"):
        drawn = plot_densities(pool, feature)
        alone = {name: plot_densities(one, feature) for name, one in pool.members_.items()}
        weight = pl.Series(list(pool.member_weights_.values()), dtype=pl.Float64).to_numpy()
        share = weight / weight.sum()
        if feature == "island":
            found = np.array([bar.get_height() for bar in drawn.patches])
            parts = [[bar.get_height() for bar in ax.patches] for ax in alone.values()]
            assert_allclose(found, share @ np.array(parts))
            continue
        for c, line in enumerate(drawn.lines):
            x, y = line.get_data()
            assert_allclose(np.trapezoid(y, x), 1.0, atol=0.02)
            shown = [Feature.of(one, feature).densities(np.asarray(x))[:, c] for one in pool.members_.values()]
            assert_allclose(y, share @ np.array(shown), rtol=1e-9)


def test_a_score_whose_exponential_overflows_is_drawn():
    model = po.NaiveBayes(distributions="complement").fit([[60000, 10**6], [0, 10**6], [60000, 10**6]], [0, 1, 1])
    assert np.isfinite(Feature.of(model, 0).densities(np.array([0.0, 60000.0]))).all()


@pytest.mark.parametrize("name", ["pool", "weighted", "gaussian"])
def test_regions_show_the_posterior_of_the_classifier(name, pool):
    weighted = po.NaiveBayes(distributions="binned", feature_weights="conditional")
    model = {"pool": pool, "weighted": weighted, "gaussian": po.NaiveBayes()}[name]
    model = model if name == "pool" else model.fit(PENGUINS, "species")
    pair = ("bill_length_mm", "body_mass_g")
    ax = plot_decision_regions(model, PENGUINS, features=pair, resolution=15)
    across, up = np.meshgrid(*(_centres(ax, axis) for axis in (0, 1)))
    rows = unknown_but(pair, PENGUINS.head(1)).select(pl.all().repeat_by(across.size).explode())
    rows = rows.with_columns(pl.Series(pair[0], across.ravel()), pl.Series(pair[1], up.ravel()))
    best = model.predict_proba(rows).argmax(axis=1)
    colours = np.array([to_rgb(colour) for colour in PALETTE[:3]])
    shades = np.asarray(ax.collections[0].get_array()).reshape(-1, 3)
    strength = (1.0 - shades).max(axis=1, keepdims=True) / (1.0 - colours[best]).max(axis=1, keepdims=True)
    assert_allclose(shades, 1.0 - strength * (1.0 - colours[best]), atol=1e-9)


def _centres(ax, axis):
    corners = np.unique(ax.collections[0].get_coordinates()[..., axis])
    return (corners[1:] + corners[:-1]) / 2.0


@pytest.mark.parametrize("feature", ["bill_length_mm", "island"])
def test_along_one_feature_the_posterior_stands_above_the_joint_densities(feature, pool):
    for model in (pool, po.NaiveBayes().fit(PENGUINS, "species")):
        upper = plot_decision_regions(model, PENGUINS, "species", features=(feature,), resolution=20)
        lower = upper.figure.axes[1]
        assert upper.get_position().y0 >= lower.get_position().y1 - 1e-9
        if feature == "island":
            found = np.array([bar.get_height() for bar in upper.patches]).reshape(3, -1).T
            cells = model.schema_.columns[model.schema_.names.index(feature)].categories
        else:
            found = np.stack([line.get_ydata() for line in upper.lines], axis=1)
            cells = upper.lines[0].get_xdata()
        rows = unknown_but((), PENGUINS.head(1)).select(pl.all().repeat_by(len(cells)).explode())
        rows = rows.with_columns(pl.Series(feature, list(cells)))
        assert_allclose(found, model.predict_proba(rows), atol=1e-12)
        if feature != "island":
            joint = np.array([np.interp(cells, *line.get_data()) for line in lower.lines[:3]]).T
            expected = np.exp(posterior_of(model).class_log_prior) * Feature.of(model, feature).densities(
                np.asarray(cells)
            )
            assert_allclose(joint[2:-2], expected[2:-2], atol=2e-3)


def test_a_model_of_one_feature_is_drawn_along_it():
    table = PENGUINS.select("bill_length_mm", "species")
    _, ax = plt.subplots()
    assert plot_decision_regions(po.NaiveBayes().fit(table, "species"), table, "species", ax=ax) is ax
    assert len(ax.figure.axes) == 2
    free = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    plot_decision_regions(po.NaiveBayes().fit(table, "species"), table, "species", ax=free)
    assert len(free.figure.axes) == 2


def test_gaussian_pictures_of_a_pool_are_those_of_its_weightiest_gaussian_member(pool):
    lda = pool.members_["lda"]
    pair = {"features": ("bill_length_mm", "bill_depth_mm")}
    for draw in (lambda m: plot_covariances(m, **pair), lambda m: plot_discriminants(m, PENGUINS, "species")):
        of_pool, alone = draw(pool), draw(lda)
        for line, expected in zip(of_pool.lines, alone.lines, strict=True):
            assert_allclose(line.get_xydata(), expected.get_xydata())
        assert "member lda" in of_pool.get_title(loc="right")
        assert not alone.get_title(loc="right")
    without = po.GenerativeClassifier(["nb"]).fit(PENGUINS, "species")
    with pytest.raises(ValueError, match="none of the pool's members"):
        plot_covariances(without, **pair)


def test_bars_of_importance_are_the_attribute_with_its_errors(pool):
    for model in (pool, po.NaiveBayes().fit(PENGUINS, "species")):
        ax = plot_feature_information(model, most=3)
        order = np.argsort(-model.feature_information_)[:3]
        assert_allclose([bar.get_width() for bar in ax.patches], model.feature_information_[order])
        assert [label.get_text() for label in ax.get_yticklabels()] == [model.schema_.names[j] for j in order]
        spans = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
        assert_allclose(np.ptp(spans, axis=1), 2 * 1.96 * model.feature_information_error_[order])
        assert ("held-out" in ax.get_xlabel()) == model.importance_.held_out
    with pytest.raises(ValueError, match="most is 0"):
        plot_feature_information(pool, most=0)


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_without_matplotlib_one_sentence_says_what_to_install(model, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="plotting needs matplotlib: pip install matplotlib"):
        draw(model)


def test_an_unfitted_model_is_not_drawn():
    with pytest.raises(NotFittedError):
        plot_densities(po.NaiveBayes(), 0)
    with pytest.raises(NotFittedError):
        plot_decision_regions(po.NaiveBayes(), PENGUINS)
    with pytest.raises(NotFittedError):
        plot_calibration(po.NaiveBayes(), PENGUINS, "species")


P = PENGUINS
ERRORS = [
    (lambda m: plot_densities(m, "wing"), "'wing' is not the name or the index of a feature"),
    (lambda m: plot_densities(m, 6), "6 is not the name or the index of a feature"),
    (lambda m: plot_densities(m, "sex", y="species"), "y needs X"),
    (lambda m: plot_densities(m, "sex", X=P, y=["Emu"] * len(P)), "y holds 'Emu'"),
    (lambda m: plot_decision_regions(m, P), "4 continuous features, not two"),
    (lambda m: plot_decision_regions(m, P, features=("sex", "body_mass_g")), "column 'sex' is categorical"),
    (lambda m: plot_decision_regions(m, P, features=(1, "bill_length_mm")), "not two different"),
    (lambda m: plot_decision_regions(m, P, features=(1, 2), resolution=1), "resolution is 1"),
    (lambda m: plot_decision_regions(m, P[3:4], features=(1, 2)), "'bill_length_mm' of X has no cell"),
    (lambda m: plot_calibration(m, y=P["species"]), "give rows X"),
    (lambda m: plot_calibration(m, P), "requires y"),
    (lambda m: plot_calibration(m, P, "species", label="Emu"), "'Emu' is not a class"),
    (lambda m: plot_calibration(m, P, "species", strategy="even"), "'even'"),
    (lambda m: plot_calibration(m, P, "species", n_bins=0), "n_bins=0"),
    (lambda m: plot_calibration(m, y=["Adelie"], proba=[[0.5, 0.5]]), "3 columns, one per class"),
    (lambda m: plot_calibration(m, y=["Adelie"], proba=[[0.5, np.nan, 0.5]]), "finite"),
    (lambda m: plot_calibration(m, P, "species", proba=[[0.2, 0.3, 0.5]]), "proba has 1 rows"),
    (lambda m: plot_explanation(m), "X is needed"),
    (lambda m: plot_explanation(m, P, label="Emu"), "'Emu' is not a class"),
    (lambda m: plot_explanation(m, P, label="Gentoo", against="Gentoo"), "give two classes"),
    (lambda m: plot_explanation(m, P, max_features=0), "max_features is 0"),
]


@pytest.mark.parametrize(("draw", "message"), ERRORS, ids=[message for _, message in ERRORS])
def test_errors_name_what_is_wrong(model, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(model)
    assert not plt.get_fignums()


def test_a_row_that_is_not_there_is_an_index_error(model):
    with pytest.raises(IndexError, match="row is 344"):
        plot_explanation(model, PENGUINS, 344)


def test_infinite_odds_are_refused_by_name():
    X = pl.DataFrame({"c": ["u", "v"], "x": [0.0, 1.0]})
    with pytest.raises(ValueError, match="'c' makes the odds infinite"):
        plot_explanation(po.NaiveBayes(alpha=0.0).fit(X, ["a", "b"]), X)


def test_a_model_of_one_class_has_no_odds():
    X = np.array([[0.0], [1.0]])
    with pytest.raises(ValueError, match="one class only"):
        plot_explanation(po.NaiveBayes().fit(X, [1, 1]), X)


def test_cells_a_density_cannot_make_are_refused(counts):
    model, X, _ = counts
    with pytest.raises(ValueError, match=r"'x0' holds 2\.5"):
        plot_densities(model, 0, X=X + 0.5)
    with pytest.raises(ValueError, match="infinity"):
        plot_decision_regions(model, np.array([[1.0, np.inf]]))


def test_labels_do_not_touch_the_edge_of_a_figure():
    rows = pl.DataFrame({"a long name of a column of numbers": np.exp(np.arange(60) / 6.0), "y": ["a", "b"] * 30})
    model = po.NaiveBayes().fit(rows, "y")
    figure = plot_densities(model, 0, X=rows, y="y").figure
    figure.draw_without_rendering()
    drawn = figure.get_tightbbox()  # in inches
    assert drawn.x0 > 0.05
    assert drawn.y0 > 0.05
    assert drawn.y1 < figure.get_figheight() - 0.05
