"""Pages show what they should, counted by the boxes on the screen and not by elements."""

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from tests.exploring.browser import address_of

_VISIBLE = "[...document.querySelectorAll('{}')].filter((e) => e.getClientRects().length).length"


def visible(browser, selector):
    return browser.value(_VISIBLE.format(selector))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A page of 15 sliders and one menu."""
    rng = np.random.default_rng(0)
    numbers = {f"measured value number {j}": rng.normal(size=60) for j in range(15)}
    table = pl.DataFrame(numbers | {"colour": rng.choice(["red", "blue"], 60), "y": rng.choice(["a", "b"], 60)})
    path = tmp_path_factory.mktemp("wide") / "wide.html"
    explore(po.NaiveBayes().fit(table, "y"), path=path)
    return path


@pytest.mark.parametrize(("typed", "left"), [("number 14", 1), ("NUMBER", 15), ("colour", 1), ("none", 0), ("", 16)])
def test_finding_a_column_hides_sliders_and_menus(browser, wide, typed, left):
    browser.open(wide.as_uri())
    browser.value(
        "(() => { const e = document.querySelector('#find-column'); "
        f"e.value = '{typed}'; e.dispatchEvent(new Event('input')); }})()"
    )
    assert visible(browser, ".control") == left


def test_labels_of_the_sum_are_whole_and_within_the_drawing(browser, wide):
    cell = -1.2345678
    browser.open(address_of(wide, row={f"measured value number {j}": cell for j in range(15)}))
    labels = browser.value(
        "[...document.querySelectorAll('svg.sum g')].map((g) => [...g.querySelectorAll('text')]"
        ".map((t) => [t.textContent, t.getBBox().x]))"
    )
    assert len(labels) == 16  # and the prior
    assert not [text for lines in labels for text, _ in lines if "…" in text]
    assert min(left for lines in labels for _, left in lines) >= 0
    assert ["measured value number 14 = −1.235"] in [[text for text, _ in lines] for lines in labels]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_answer_stays_in_sight_beside_the_last_control(browser, penguins, width):
    _, path = penguins
    browser.open(address_of(path, row={"island": "Biscoe"}), width=width, height=700)
    browser.wait()
    browser.value("[...document.querySelectorAll('.control')].at(-1).scrollIntoView({block: 'end'})")
    top, bottom = browser.value(
        "(({top, bottom}) => [top, bottom])(document.querySelector('#answer').getBoundingClientRect())"
    )
    assert 0 <= top < bottom <= 700


def test_slow_parts_say_that_they_are_computing(browser, penguins):
    _, path = penguins
    browser.open(path.as_uri())
    browser.wait()
    shown = "getComputedStyle(document.querySelector('#questions'), '::after').content"
    assert browser.value(shown) == "none"
    change = "e.value = e.options[1].value; e.dispatchEvent(new Event('change'));"
    at_once = browser.value(f"(() => {{ const e = document.querySelector('#column-0'); {change} return {shown}; }})()")
    assert "computing" in at_once
    browser.wait()
    assert browser.value(shown) == "none"


def test_a_number_outside_of_the_range_is_named_with_the_range(browser, penguins):
    _, path = penguins
    browser.open(address_of(path, row={"body_mass_g": 9200}))
    browser.wait()
    text = browser.value("document.querySelector('#density').innerText")
    assert "body_mass_g = 9200 is outside of the range of the training rows, 2700 to 6300." in text


@pytest.mark.parametrize("width", [390, 900])
def test_an_embedded_page_is_the_question_and_its_answer(browser, tmp_path, width):
    model = po.NaiveBayes().fit(load_penguins(), "species")
    path = tmp_path / "page.html"
    explore(model, path=path, embed=True)
    browser.open(address_of(path, row={"island": "Torgersen"}), width=width, height=600)
    browser.wait()
    assert not visible(browser, "header, nav, h1, #questions, #changes")
    assert visible(browser, ".control") == 7
    assert browser.value("document.querySelector('#answer').innerText").startswith("Adelie")
    assert visible(browser, "svg.sum") == 1
    assert browser.value("document.documentElement.scrollWidth") <= width
