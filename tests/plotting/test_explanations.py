"""The steps of a waterfall are those of the explanation."""

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

mpl.use("Agg")

from matplotlib.colors import to_rgb

import posteriori as po
from posteriori.plotting import (
    plot_explanation,
)
from posteriori.plotting.canvas import class_colours
from tests.plotting.tables import PENGUINS, TABLES


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


def test_the_steps_are_those_of_the_explanation_with_their_cells(model):
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
