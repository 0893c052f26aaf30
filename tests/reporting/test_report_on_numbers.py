"""The report on a regressor: whole, in plain HTML, and with figures that equal those computed by hand."""

from __future__ import annotations

import functools

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.collections import PathCollection
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.model.predictive import NumberCells, PredictiveDensity
from posteriori.regression.held_out import HeldOutNumbers
from posteriori.reporting.number_data import NOMINAL, NumberReport, coverage_of, pit_shares, residuals_along
from posteriori.reporting.number_sections import number_effect
from tests.reporting.test_report import Page, check

mpl.use("Agg")
SECTIONS = ["table", "members", "predictions", "calibration", "residuals", "rows", "effects"]


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    size, kind = rng.normal(size=n), rng.choice(["a", "b", "c"], n)
    y = 100 + 30 * size + 20 * (kind == "b") + 5 * rng.normal(size=n)
    found = pl.DataFrame({"size": size, "kind <b>": kind, "noise": rng.normal(size=n), "cost": y})
    return found.with_columns(size=pl.when(pl.Series(rng.random(n) < 0.1)).then(None).otherwise("size"))


@functools.cache
def fitted():
    return po.GenerativeRegressor().fit(table(), "cost")


@functools.cache
def subject():
    return NumberReport.of(fitted(), table(), "cost")


def test_sections_of_training_rows():
    report = po.report(fitted(), table())
    page = check(report)
    assert [one["id"] for one in page.of("h2")] == SECTIONS
    assert report.title == "GenerativeRegressor: predicting cost"
    assert "Each row was predicted by models that had not learned from it." in page.text
    assert "kind <b>" in page.text
    assert len(page.of("svg")) == 3 + 3 + 3  # predictions and calibration, residuals, effects
    assert "Written by posteriori" in page.text


def test_other_rows_are_predicted_and_the_page_says_so(tmp_path):
    rows = table(50, seed=1).with_columns(cost=pl.when(pl.int_range(50) == 3).then(None).otherwise("cost"))
    page = check(po.report(fitted(), rows, "cost", tmp_path / "report.html", title="Costs"))
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "not the rows that the model was fitted to" in page.text
    assert "Left out: 1 row without a number." in page.text
    assert "rows of this report" in page.text


def test_a_model_from_a_file_has_no_held_out_predictions(tmp_path):
    po.save(fitted(), tmp_path / "model.json")
    page = check(po.report(po.load(tmp_path / "model.json"), table(), "cost"))
    assert "The model keeps no held-out predictions" in page.text


def test_unnamed_rows_and_heavy_tailed_numbers_are_reported():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(rng.random(200) < 0.4, 0.0, np.exp(3 * X[:, 0] + rng.normal(size=200)))
    model = po.GenerativeRegressor(members=["forest"]).fit(X, y)
    page = check(po.report(model, X, y))
    assert [one["id"] for one in page.of("h2")] == SECTIONS


def test_parameters_for_classifiers_are_refused():
    for name, value in {"against": table(), "explorer": "x.html", "positive": 1, "out_of_fold": np.ones(3)}.items():
        with pytest.raises(ValueError, match=f"^{name} is not used in a report on a regressor; remove it$"):
            po.report(fitted(), table(), "cost", **{name: value})
    with pytest.raises(ValueError, match="give y, or X with the column 'cost'"):
        po.report(fitted(), table().drop("cost"))
    with pytest.raises(ValueError, match="is missing in every row"):
        po.report(fitted(), table(5).with_columns(cost=pl.lit(None, pl.Float64)), np.full(5, np.nan))


# Figures -------------------------------------------------------------------------------------------------------


def test_held_out_predictions_are_those_of_the_fit():
    found = subject()
    assert found.held_out
    assert found.predicted is fitted().out_of_fold_
    assert_array_equal(found.predicted.y, table()["cost"].to_numpy()[found.predicted.rows])


def test_coverage_is_the_share_of_rows_within():
    held = fitted().out_of_fold_
    covered = coverage_of(held)
    for level, share in zip(NOMINAL, covered, strict=True):
        low, high = held.density.quantile([(1 - level) / 2, (1 + level) / 2]).T
        assert_allclose(share, np.average((low <= held.y) & (held.y <= high), weights=held.weight))
    assert covered[-1] > covered[0]


def test_pit_of_a_density_is_its_histogram_of_probabilities():
    held = fitted().out_of_fold_
    shares = pit_shares(held, 10)
    assert_allclose(shares.sum(), 1.0)
    assert_allclose(shares, np.histogram(held.density.cdf(held.y), np.linspace(0, 1, 11))[0] / len(held.y), atol=1e-6)


def test_pit_of_right_atoms_is_uniform():
    cells = NumberCells(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    n = 100
    density = PredictiveDensity(cells, np.tile([0.3, 0.7], (n, 1)))
    y = np.repeat([0.0, 1.0], [30, 70])
    assert_allclose(pit_shares(HeldOutNumbers(density, y, np.ones(n), np.arange(n)), 10), 0.1)


def test_residuals_of_groups_equal_those_by_hand():
    found, X = subject(), table()
    held = found.predicted
    residual = held.y - held.density.mean
    cells = X[held.rows]
    of = {one.column: one for one in found.residuals}
    for k, name in enumerate(of["kind <b>"].names):
        mine = residual[(cells["kind <b>"] == name).to_numpy()]
        assert of["kind <b>"].n_rows[k] == len(mine)
        assert_allclose(of["kind <b>"].mean[k], mine.mean())
        assert_allclose(of["kind <b>"].standard_error[k], mine.std(ddof=1) / np.sqrt(len(mine)))
    missing = residual[cells["size"].is_null().to_numpy()]
    assert of["size"].names[-1] == "missing"
    assert_allclose(of["size"].mean[-1], missing.mean())
    assert of["size"].n_rows.sum() == len(residual)


def test_a_group_that_is_off_is_marked():
    found = subject()
    cells = table()[found.predicted.rows]
    rng = np.random.default_rng(0)
    residual = rng.normal(size=len(cells)) + 2.0 * (cells["kind <b>"] == "c").to_numpy()
    place = found.batch.schema.names.index("kind <b>")
    one = residuals_along(found.batch, place, residual, np.ones(len(cells)))
    assert [name for name, off in zip(one.names, one.is_off, strict=True) if off] == ["c"]
    assert one.most_off > 3


def test_rows_to_look_at_are_the_farthest():
    found = subject()
    places, ratio = found.surprising(5)
    low, high = found.predicted.density.interval(0.9).T
    by_hand = np.abs(found.predicted.y - found.predicted.density.median) / (high - low)
    assert_allclose(ratio, np.sort(by_hand)[::-1][:5])
    assert_allclose(by_hand[places], ratio)
    page = Page(po.report(fitted(), table()).html)
    assert f"row {found.predicted.rows[places[0]]}" in page.text


def test_effects_are_changes_of_the_mean():
    found = subject()
    place = found.batch.schema.names.index("size")
    effect = number_effect(found, place, np.array([-1.0, 1.0]))
    some = table()[found.predicted.rows]
    chosen = np.unique(np.linspace(0, len(some) - 1, 60).astype(int)).tolist()
    known = np.sort(some["size"].drop_nulls().to_numpy())
    usual = known[np.unique(np.linspace(0, len(known) - 1, 40).astype(int))]
    at, *others = (
        fitted().predict(some[chosen].with_columns(size=pl.lit(value, pl.Float64))) for value in (1.0, *usual.tolist())
    )
    assert_allclose(effect[:, 1], at - np.mean(others, axis=0))
    assert 40 < (effect[:, 1] - effect[:, 0]).mean() < 70


def test_importance_finds_the_column():
    importance = subject().importance
    assert importance.names[importance.order[0]] == "size"


def test_the_plot_of_predictions():
    held = fitted().out_of_fold_
    ax = po.plotting.plot_predictions(fitted(), coverage=0.8, most=100)
    dots = [one for one in ax.collections if isinstance(one, PathCollection)]
    drawn = np.concatenate([one.get_offsets() for one in dots])
    assert len(drawn) == 100
    assert set(drawn[:, 0].tolist()) <= set(held.y.tolist())
    low, high = held.density.interval(0.8).T
    share = np.mean((low <= held.y) & (held.y <= high))
    assert f"within the 80 % interval: {100 * share:.0f} %" in ax.get_legend().get_texts()[0].get_text()
    with pytest.raises(ValueError, match="most is 0; draw at least one row"):
        po.plotting.plot_predictions(fitted(), most=0)


@pytest.mark.parametrize("kind", [po.AdditiveRegressor, po.KernelRegressor])
def test_a_report_on_a_sum_has_its_held_out_scores(kind):
    rows = table()
    model = kind().fit(rows, "cost")
    page = check(po.report(model, rows))
    assert [one["id"] for one in page.of("h2")] == SECTIONS
    assert "Each row was predicted by models that had not learned from it." in page.text
    assert "Scores of the model" in page.text
    assert "pool" not in page.text
    updated = check(po.report(model.partial_fit(rows, "cost"), rows)).text
    assert "rows of this report" in updated
    assert "held out from" not in updated
