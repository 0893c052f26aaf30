"""Ellipses and discriminants of Gaussian models."""

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

mpl.use("Agg")

import matplotlib.pyplot as plt

import posteriori as po
from posteriori.plotting import (
    plot_covariances,
    plot_decision_regions,
    plot_densities,
    plot_discriminants,
)
from tests.plotting.tables import MEASURES, PENGUINS, TABLES


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


def test_regions_and_densities_integrate_the_other_columns_out(gaussian):
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
