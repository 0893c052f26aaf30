"""What holds for every picture: its axes, its texts and its errors."""

import sys

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb

import posteriori as po
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
from tests.plotting.tables import PENGUINS

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
def test_texts_lie_in_the_figure_and_legends_beside_the_axes(model, draw):
    ax = draw(model)
    ax.figure.canvas.draw()
    box = ax.get_tightbbox()
    assert box.x0 >= -1
    assert box.y0 >= -1
    assert box.x1 <= ax.figure.bbox.x1 + 1
    assert box.y1 <= ax.figure.bbox.y1 + 1
    if ax.get_legend():
        assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1 - 1


def unknown_but(features, rows):
    others = [name for name in rows.columns if name not in (*features, "species")]
    return rows.with_columns(pl.lit(None, rows.schema[name]).alias(name) for name in others)


def test_densities_of_a_pool_are_a_mixture_of_area_one(pool):
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
def test_along_a_feature_the_posterior_is_above_the_densities(feature, pool):
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


def test_gaussian_pictures_of_a_pool_show_its_main_gaussian(pool):
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
        order = np.argsort(-model.importance_.increase)[:3]
        assert_allclose([bar.get_width() for bar in ax.patches], model.importance_.increase[order])
        assert [label.get_text() for label in ax.get_yticklabels()] == [model.schema_.names[j] for j in order]
        spans = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
        assert_allclose(np.ptp(spans, axis=1), 2 * 1.96 * model.importance_.standard_error[order])
        assert ("held-out" in ax.get_xlabel()) == model.importance_.held_out
    with pytest.raises(ValueError, match="most is 0"):
        plot_feature_information(pool, most=0)
    table = PENGUINS.with_columns(land=pl.col("island") + "!")
    copied = po.GenerativeClassifier(["tan", "binned weighted"]).fit(table, "species")
    ax = plot_feature_information(copied)
    assert "island and land" in [label.get_text() for label in ax.get_yticklabels()]


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


def test_colours_of_many_classes_are_those_of_turbo():
    for n in (7, 26, 100):
        expected = mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n))[:, :3]
        colours = class_colours(n)
        assert len(set(colours)) == n
        assert_allclose([mpl.colors.to_rgb(colour) for colour in colours], expected, atol=0.04)
