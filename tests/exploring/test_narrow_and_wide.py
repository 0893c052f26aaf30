"""Pages of hard tables fit their screen and their paper: nothing is wider, and no cut text hides its whole."""

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from posteriori.reporting import report
from posteriori.watching import Monitor
from tests.exploring.browser import address_of

PHONE, SCREEN, PAPER = 390, 1300, 718  # pixels; A4 with the margins of the browser
NAME = "a_name_of_a_column_that_has_seventy_letters_and_nowhere_a_single_blank"
TARGET = "the target, whose name has seventy letters, as the other columns have"

# Elements beyond the right end; on paper also those in boxes that scroll on a screen.
_WIDER = """[...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length
  && e.getBoundingClientRect().right > {width} + 1
  && (matchMedia('print').matches || !e.closest('.scroll, pre, .network'))).map((e) => e.outerHTML.slice(0, 100))"""
# Cut by "…" or by the end of a control, without a title that has the whole text.
_CUT = """[...document.querySelectorAll('label, button, select, h3, th, td, span')].filter((e) =>
  e.getClientRects().length && getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1
  && !e.closest('[title]')).map((e) => e.outerHTML.slice(0, 100))"""


def hard_table(n_rows=200):
    """A table in which every name and every category has about seventy letters."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, n_rows)
    classes = np.array([f"class {k}, whose name is as long as those of the columns of this table" for k in range(4)])
    categories = np.array([f"category_{k}_of_a_column_whose_cells_are_as_long_as_its_name_is" for k in range(4)])
    numbers = {f"{NAME}_{j}": rng.normal(size=n_rows) + y for j in range(2)}
    texts = {f"{NAME}_of_categories": categories[rng.permutation(y)], TARGET: classes[y]}
    return pl.DataFrame(numbers | {"amount": rng.lognormal(5.0, 2.0, n_rows)} | texts)


def many_classes():
    y = np.repeat(np.arange(30), 12)
    rng = np.random.default_rng(0)
    labels = [f"species number {k} of a long list" for k in y]
    return pl.DataFrame({"x": rng.normal(y), "z": rng.normal(y % 5), "species": labels})


def many_columns():
    rng = np.random.default_rng(0)
    numbers = {f"measured value {j}": rng.normal(size=60) for j in range(45)}
    return pl.DataFrame(numbers | {"y": rng.choice(["no", "yes"], 60)})


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hard")
    hard, wide, species = hard_table(), many_columns(), many_classes()
    pool = po.GenerativeClassifier(members=["nb", "tan"], folds=2, random_state=0).fit(hard, TARGET)
    of_classes, of_columns = po.NaiveBayes().fit(species, "species"), po.NaiveBayes().fit(wide, "y")
    number = po.AdditiveRegressor().fit(hard, f"{NAME}_0")
    joint = po.JointModel().fit(hard)
    monitor = Monitor(pool, hard[:100], TARGET)
    monitor.update(hard[100:], TARGET)
    made = {
        "explorer of long names": explore(pool, hard),
        "explorer of many classes": explore(of_classes, species),
        "explorer of many columns": explore(of_columns, wide),
        "explorer of a number": explore(number),
        "explorer of a joint model": explore(joint),
        "explorer of a mixture": explore(po.MixtureModel(3, random_state=0).fit(load_penguins().drop("species"))),
        "report of long names": report(pool, hard, TARGET),
        "report of many classes": report(of_classes, species, "species"),
        "report of many columns": report(of_columns, wide, "y"),
        "report of a number": report(number, hard, f"{NAME}_0"),
        "report of a joint model": report(joint, hard),
        "drift": report(pool, hard[:100], TARGET, against=hard[100:]),
        "two models": report(pool, hard, TARGET, against=po.NaiveBayes().fit(hard, TARGET)),
        "history": monitor.page("watched"),
    }
    for name, page in made.items():
        page.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


def opened(browser, path, width):
    """Open a page with all of it laid out, also what is out of sight."""
    browser.open(path.as_uri(), width=width)
    browser.wait()
    browser.value("document.querySelectorAll('section').forEach((e) => e.style.contentVisibility = 'visible')")


@pytest.mark.parametrize("width", [PHONE, SCREEN])
def test_a_page_is_as_wide_as_its_screen(browser, pages, width):
    for name, path in pages.items():
        opened(browser, path, width)
        assert browser.value("document.scrollingElement.scrollWidth") <= width, name
        assert browser.value(_WIDER.replace("{width}", str(width))) == [], name
        assert browser.value(_CUT) == [], name
        assert browser.complaints == []
        assert [one for one in browser.requests if not one.startswith(("file:", "data:"))] == []
        assert browser.value("document.querySelectorAll('head > title').length") == 1


def test_on_paper_nothing_is_cut(browser, pages):
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        for name, path in pages.items():
            opened(browser, path, PAPER)
            assert browser.value("document.scrollingElement.scrollWidth") <= PAPER, name
            assert browser.value(_WIDER.replace("{width}", str(PAPER))) == [], name
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize(("name", "scrolls"), [("long names", False), ("many columns", True)])
def test_few_controls_are_in_no_box_that_scrolls(browser, pages, name, scrolls):
    opened(browser, pages[f"explorer of {name}"], SCREEN)
    assert (
        browser.value(
            "(({scrollHeight, clientHeight}) => scrollHeight > clientHeight)(document.querySelector('.controls'))"
        )
        == scrolls
    )


def test_of_many_classes_three_have_curves(browser, pages):
    path = pages["explorer of many classes"]
    for row, nearest in (({"x": 3.0}, "species number 3 "), ({"x": 25.0}, "species number 25 ")):
        browser.open(address_of(path, row=row), width=SCREEN)
        browser.wait()
        shown = """[...document.querySelectorAll('.densities')].map((e) => [...e.querySelectorAll('.curve')]
          .filter((one) => getComputedStyle(one).display !== 'none').length)"""
        assert browser.value(shown) == [3, 3]
        assert nearest in browser.value("document.querySelector('.answers tbody').innerText")


def test_an_axis_has_its_middle(browser, pages):
    opened(browser, pages["explorer of many classes"], SCREEN)
    low, middle, high = browser.value(
        "[...document.querySelector('.ends').children].map((e) => Number(e.textContent.replace('−', '-')))"
    )
    assert low < middle < high
    assert middle == pytest.approx((low + high) / 2, rel=1e-3, abs=1e-3 * (high - low))


def test_a_certain_event_has_log_probability_0(browser, tmp_path):
    path = tmp_path / "page.html"
    explore(po.NaiveBayes().fit(pl.DataFrame({"kind": ["a"] * 7, "y": ["p"] * 3 + ["q"] * 4}), "y"), path=path)
    browser.open(address_of(path, row={"kind": "a"}))
    browser.wait()
    assert "log p(what is known) = 0 nats" in browser.value("document.querySelector('#density').innerText")
