"""The page of a regressor in a real browser: its density is that of Python."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.exploring import explore
from tests.cli.command_line import CommandLine
from tests.exploring.browser import address_of
from tests.javascript.regressors import REGRESSORS, rows_of_numbers

KINDS = ["as is", "logarithms with zeros", "ranks", "whole numbers", "tenths", "an atom", "gaps in training"]
ROW = {"size": 120.0, "town": "<script>"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for place, name in enumerate(KINDS):
        model, _ = REGRESSORS[name]()
        explore(model, path=folder / f"{place}.html")
        found[name] = model, folder / f"{place}.html"
    return found


def shown_moments(browser):
    return browser.value("[...document.querySelectorAll('#moments [data-value]')].map((e) => Number(e.dataset.value))")


def assert_moments(browser, model, row):
    names = model.schema_.given
    density = model.predict_density(pl.DataFrame([{name: row.get(name) for name in names}], infer_schema_length=None))
    wanted = [density.mean[0], density.median[0], density.std[0], *density.interval(0.9)[0]]
    width = density.cells.high[-1] - density.cells.low[0]
    assert_allclose(shown_moments(browser), wanted, rtol=0, atol=1e-7 * width)
    return density


@pytest.mark.parametrize("name", KINDS)
def test_the_density_follows_the_known_cells(name, browser, pages):
    model, path = pages[name]
    browser.open(path.as_uri())
    assert_moments(browser, model, {})
    browser.open(address_of(path, row=ROW))
    density = assert_moments(browser, model, ROW)
    browser.value(
        "(document.querySelector('#range-low').value = '0', document.querySelector('#range-high').value = '300', "
        "document.querySelector('#range-high').dispatchEvent(new Event('input')), 0)"
    )
    probability = browser.value("Number(document.querySelector('#in-range').dataset.value)")
    assert probability == pytest.approx(density.probability_between(0, 300)[0], abs=1e-9)
    browser.click("section[aria-labelledby=what-if] .buttons button")
    assert_moments(browser, model, {})
    assert browser.complaints == []


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("width", [390, 1300])
def test_every_drawing_has_its_numbers_and_fits_the_page(name, width, browser, pages):
    _, path = pages[name]
    browser.open(address_of(path, row=ROW), width=width)
    drawn = browser.value(
        "[...document.querySelectorAll('svg *')].flatMap((e) => [...e.attributes].map((a) => a.value)).join(' ')"
    )
    assert not [word for word in ("NaN", "Infinity", "undefined") if word in drawn]
    assert browser.value("document.querySelectorAll('svg.density').length") == 1
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []


def test_a_slider_moves_the_density_and_the_parts_of_its_sum(browser, pages):
    model, path = pages["as is"]
    browser.open(path.as_uri())
    before = shown_moments(browser)[0]
    browser.value("document.querySelector('#column-0').focus()")
    for _ in range(3):
        browser.key("ArrowRight")
    size = browser.value("Number(document.querySelector('.control input[type=number]').value)")
    assert_moments(browser, model, {"size": size})
    assert shown_moments(browser)[0] != before
    browser.click("section[aria-labelledby=sum] summary")
    browser.wait("document.querySelector('section[aria-labelledby=sum] tbody') !== null")
    terms = browser.value(
        "[...document.querySelectorAll('section[aria-labelledby=sum] tbody tr')].map((r) => r.cells[1].textContent)"
    )
    *parts, total = (float(text.replace("−", "-")) for text in terms)
    assert sum(parts) == pytest.approx(total, abs=0.05 * len(terms))
    assert browser.complaints == []


def test_the_same_model_gives_the_same_page_without_rows(pages):
    model, path = pages["as is"]
    assert po.explore(model).html == path.read_text(encoding="utf-8")
    sizes = rows_of_numbers()["size"].to_list()
    text = path.read_text(encoding="utf-8")
    assert sum(json.dumps(size) in text for size in sizes) <= 2  # the ends of the range


def test_one_sentence_refuses_what_a_regressor_page_lacks(pages, tmp_path):
    model, _ = pages["as is"]
    with pytest.raises(ValueError, match="rows are shown for classifiers; explore a regressor without rows"):
        po.explore(model, rows_of_numbers())
    with pytest.raises(ValueError, match="explore a regressor without it"):
        po.explore(model, positive="a")
    rows_of_numbers(60).write_csv(tmp_path / "rows.csv")
    po.save(model, tmp_path / "sum.posteriori")
    run = CommandLine()
    assert "explore a regressor without rows" in run.refused(
        "explore", tmp_path / "sum.posteriori", tmp_path / "rows.csv"
    )
    assert "wrote" in run.succeeds("explore", tmp_path / "sum.posteriori")
    assert po.explore(model).html == (tmp_path / "sum.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [po.GenerativeRegressor, po.KernelRegressor])
def test_other_regressors_name_the_one_with_a_page(kind, tmp_path):
    model = kind().fit(rows_of_numbers(80), "price")
    with pytest.raises(TypeError, match=f"a {kind.__name__} has .*additive_member.*, else fit an AdditiveRegressor"):
        po.explore(model)
    po.save(model, tmp_path / "price.posteriori")
    if kind is po.GenerativeRegressor:
        assert po.explore(model.additive_member()).html
        return
    assert "fit an AdditiveRegressor" in CommandLine().refused("explore", tmp_path / "price.posteriori")


def test_ranges_and_logarithmic_axes_are_of_the_training_rows():
    from posteriori.exploring.axes import axis_of_target, ranges_of_features

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 90, 500), rng.integers(0, 9, 500) / 2, np.exp(4 * rng.normal(size=500))])
    model = po.AdditiveRegressor().fit(X, np.exp(4 * rng.normal(size=500)))
    ranges = ranges_of_features(model.fitted_)
    assert [one[2] for one in ranges.values()] == [True, False, False]
    assert [one[3] is not None for one in ranges.values()] == [False, False, True]
    assert_allclose([one[:2] for one in ranges.values()], np.stack([X.min(axis=0), X.max(axis=0)], axis=1))
    assert axis_of_target(model.fitted_)[3] is not None
