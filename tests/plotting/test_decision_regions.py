"""Drawn regions are what the model predicts."""

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

mpl.use("Agg")


import posteriori as po
from posteriori.plotting import (
    plot_decision_regions,
)
from tests.plotting.tables import PENGUINS, TABLES, winners


@TABLES
@pytest.mark.parametrize("by_name", [True, False])
def test_regions_are_predictions_with_the_other_cells_missing(table, by_name):
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
