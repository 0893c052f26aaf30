"""Curves of calibration are those of scikit-learn, and of a loop."""

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

mpl.use("Agg")


import posteriori as po
from posteriori.plotting import (
    plot_calibration,
    plot_confusion,
    plot_lift,
    plot_precision_recall,
    plot_roc,
)
from tests.plotting.tables import MEASURES, PENGUINS, TABLES


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_calibration_of_two_classes_equals_scikit_learn_and_loop(strategy, n_bins):
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


def test_calibration_draws_each_class_or_the_one_asked_for(model):
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


def test_curves_of_given_probabilities_have_areas_in_the_legend(model):
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
